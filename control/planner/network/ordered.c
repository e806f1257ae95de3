/*
 * Ordered reduction. See ordered.h. A column of the program is the set of trees for one unit of the
 * collective: a pair of trees for allreduce, a tree for reduce, one tree to each compute node for
 * reduce-scatter.
 */
#include "control/planner/network/ordered.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/planner/network/blocks.h"
#include "control/planner/network/grow.h"
#include "control/planner/network/interval.h"
#include "control/planner/network/simplex.h"
#include "control/planner/pack/tree.h"
#include "control/planner/planner.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Limits: rows up to which the program is tried, columns after which it stops with the result so
 * far (counts), and work (steps x rows^2). */
#define ROWS_MAX    400u
#define COLUMNS_MAX 400u
#define WORK_MAX    40000000u

static int refuse_range(struct by_problem *problem)
{
    return by_problem_set(problem, BY_ERANGE, (struct by_place){0, 0},
                          "an exact rate or weight needs more than 63 bits; round the bandwidths");
}

/* ---- checking ---- */

/* The ranks below a node: first, last and count. */
struct ordered_span {
    uint32_t first, last, count;
};

static void widen(struct ordered_span *span, const struct ordered_span *by)
{
    span->first = by->first < span->first ? by->first : span->first;
    span->last = by->last > span->last ? by->last : span->last;
    span->count += by->count;
}

bool by_ordered_is(const struct by_plan *plan, const struct by_topology *topology)
{
    uint32_t n = topology->node_count, rank = 0, *rank_of = by_alloc(n, sizeof(*rank_of));
    struct ordered_span *spans = by_alloc(n, sizeof(*spans));
    bool ordered = true;

    for (uint32_t i = 0; i < n; i++)
        rank_of[i] = topology->nodes[i].compute ? rank++ : UINT32_MAX;
    for (uint32_t t = 0; t < plan->tree_count && ordered; t++) {
        const struct by_tree *tree = &plan->trees[t];

        if (tree->use == BY_TREE_DOWN)
            continue;
        for (uint32_t i = 0; i < n; i++)
            spans[i] = rank_of[i] == UINT32_MAX ? (struct ordered_span){UINT32_MAX, 0, 0}
                                                : (struct ordered_span){rank_of[i], rank_of[i], 1};
        for (uint32_t i = tree->edge_count; i-- > 0 && ordered;) {
            uint32_t path = plan->edges[tree->first_edge + i];
            const struct ordered_span *below = &spans[by_paths_to(&plan->paths, path)];

            ordered = below->count > 0 && below->last - below->first + 1 == below->count;
            widen(&spans[by_paths_from(&plan->paths, path)], below);
        }
    }
    free(rank_of);
    free(spans);
    return ordered;
}

/* ---- columns ---- */

struct ordered_part {
    uint32_t root;
    enum by_tree_use use;
    uint32_t path_count;
    struct by_path *paths;
};

struct ordered_column {
    uint32_t part_count;
    struct ordered_part *parts;
};

struct ordered_task {
    const struct by_topology *topology;
    const struct by_plan_options *options;
    struct by_graph *both, *up, *down;
    struct by_grower *grower;     /* numbers the rows: arcs, then additions */
    struct by_interval *interval; /* NULL on large fabrics */
    uint32_t rows;
    int64_t *limits;
    int64_t *prices;
    int32_t *counts;
    int64_t *dense; /* prices by cell of the `up` graph */
    uint32_t column_count;
    struct ordered_column columns[COLUMNS_MAX];
};

static void column_free(struct ordered_column *column)
{
    for (uint32_t i = 0; i < column->part_count; i++) {
        for (uint32_t j = 0; j < column->parts[i].path_count; j++)
            free(column->parts[i].paths[j].nodes);
        free(column->parts[i].paths);
    }
    free(column->parts);
}

static void task_make(struct ordered_task *task, const struct by_topology *topology,
                      const struct by_plan_options *options)
{
    uint32_t n = topology->node_count;

    *task = (struct ordered_task){.topology = topology, .options = options};
    task->both = by_graph_make(topology, BY_DIRECTION_BOTH, options->in_network);
    task->up = by_graph_make(topology, BY_DIRECTION_UP, options->in_network);
    task->down = by_graph_make(topology, BY_DIRECTION_DOWN, options->in_network);
    task->grower = by_grower_new(task->both, task->up, task->down);
    task->rows = task->grower->arc_count + n;
    task->limits = by_alloc(task->rows, sizeof(*task->limits));
    task->prices = by_alloc(task->rows, sizeof(*task->prices));
    task->counts = by_alloc(task->rows, sizeof(*task->counts));
    task->dense = by_alloc((size_t)n * n, sizeof(*task->dense));
    for (uint32_t i = 0; i < task->rows; i++)
        task->limits[i] = task->grower->capacity[i] == INT64_MAX ? 0 : task->grower->capacity[i];
}

static void task_free(struct ordered_task *task)
{
    for (uint32_t i = 0; i < task->column_count; i++)
        column_free(&task->columns[i]);
    by_grower_free(task->grower);
    by_interval_free(task->interval);
    by_graph_free(task->both);
    by_graph_free(task->up);
    by_graph_free(task->down);
    free(task->limits);
    free(task->prices);
    free(task->counts);
    free(task->dense);
}

/* Adds the loads of a tree to the counts. */
static void count_part(struct ordered_task *task, const struct ordered_part *part)
{
    struct by_grower view = *task->grower;
    uint32_t *children = by_alloc(task->topology->node_count, sizeof(*children));

    view.paths = part->paths;
    view.path_count = part->path_count;
    view.children = children;
    for (uint32_t i = 0; i < part->path_count; i++)
        children[part->paths[i].nodes[0]]++;
    by_grower_count(&view, part->use, task->counts);
    free(children);
}

static void count_column(struct ordered_task *task, const struct ordered_column *column)
{
    memset(task->counts, 0, task->rows * sizeof(*task->counts));
    for (uint32_t i = 0; i < column->part_count; i++)
        count_part(task, &column->parts[i]);
    for (uint32_t i = 0; i < task->rows; i++)
        if (task->grower->capacity[i] == INT64_MAX)
            task->counts[i] = 0;
}

static struct ordered_part *add_part(struct ordered_column *column, uint32_t root, enum by_tree_use use,
                                     uint32_t room)
{
    struct ordered_part *part;

    column->parts = by_realloc(column->parts, column->part_count + 1, sizeof(*column->parts));
    part = &column->parts[column->part_count++];
    *part = (struct ordered_part){root, use, 0, by_alloc(room, sizeof(*part->paths))};
    return part;
}

/* Adds the grower's last tree as a part. */
static void add_grown(const struct ordered_task *task, struct ordered_column *column, uint32_t root,
                      enum by_tree_use use)
{
    struct ordered_part *part = add_part(column, root, use, task->grower->path_count);

    for (; part->path_count < task->grower->path_count; part->path_count++) {
        const struct by_path *from = &task->grower->paths[part->path_count];
        struct by_path *to = &part->paths[part->path_count];

        to->node_count = from->node_count;
        to->nodes = by_alloc(from->node_count, sizeof(*to->nodes));
        memcpy(to->nodes, from->nodes, from->node_count * sizeof(*to->nodes));
    }
}

static bool is_pair(const struct ordered_task *task)
{
    return by_collective_way(task->options->collective) == BY_DATA_BOTH;
}

/* Returns the root for which an ordered tree up and a cheap tree down together cost least. */
static uint32_t best_root(struct ordered_task *task, int64_t *prices)
{
    uint32_t best = UINT32_MAX;
    __int128 least = 0;

    for (uint32_t i = 0; i < task->topology->node_count; i++) {
        int64_t up = by_interval_price(task->interval, i);
        __int128 sum = up;

        if (up == INT64_MAX || !(task->both->compute[i] || task->both->branch[i]) ||
            !by_grower_run(task->grower, BY_TREE_DOWN, i, prices))
            continue;
        memset(task->counts, 0, task->rows * sizeof(*task->counts));
        by_grower_count(task->grower, BY_TREE_DOWN, task->counts);
        for (uint32_t row = 0; row < task->grower->arc_count; row++)
            sum += (__int128)task->prices[row] * task->counts[row];
        if (best == UINT32_MAX || sum < least) {
            best = i;
            least = sum;
        }
    }
    return best;
}

/* Finds a cheap column at the current prices; false when there is none. */
static bool price_column(struct ordered_task *task, struct ordered_column *column)
{
    uint32_t n = task->topology->node_count, arcs = task->grower->arc_count;
    int64_t *prices = by_alloc(task->rows, sizeof(*prices));
    bool right = true;

    *column = (struct ordered_column){0};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t a = task->grower->first[i]; a < task->grower->first[i + 1]; a++)
            if (task->grower->links[a].there != BY_GROW_NONE)
                task->dense[(size_t)task->grower->links[a].to * n + i] =
                    task->prices[task->grower->links[a].there];
    for (uint32_t i = 0; i < task->rows; i++)
        prices[i] = task->prices[i] >> 2; /* the grower's limit */
    by_interval_search(task->interval, task->dense, task->prices + arcs);
    for (uint32_t i = 0; i < n && right; i++) {
        uint32_t root = is_pair(task) ? best_root(task, prices) : i;
        struct ordered_part *part;

        if (!is_pair(task) && (task->options->collective == BY_COLLECTIVE_REDUCE ? i != task->options->root
                                                                                 : !task->both->compute[i]))
            continue;
        right = root != UINT32_MAX;
        if (!right)
            break;
        part = add_part(column, root, BY_TREE_UP, 2 * task->up->compute_count);
        part->path_count = by_interval_tree(task->interval, root, part->paths);
        right = part->path_count > 0;
        if (!is_pair(task))
            continue;
        right = right && by_grower_run(task->grower, BY_TREE_DOWN, root, prices);
        if (right)
            add_grown(task, column, root, BY_TREE_DOWN);
        break;
    }
    free(prices);
    if (!right)
        column_free(column);
    return right;
}

/* ---- the plan ---- */

/* Replaces the plan's trees; `parts` are columns with their amounts. */
static int replace_trees(const struct ordered_task *task, const struct by_simplex_part *parts, uint32_t count,
                         struct by_fraction value, struct by_plan *plan)
{
    struct by_tree_list list = {0};
    uint32_t room = 2 * task->topology->node_count, *edges = by_alloc(room, sizeof(*edges));
    int64_t roots = task->options->collective == BY_COLLECTIVE_REDUCE_SCATTER ? task->up->compute_count : 1;
    int error = 0;

    for (uint32_t i = 0; i < count && !error; i++) {
        const struct ordered_column *column = &task->columns[parts[i].tag];
        struct by_fraction weight;

        error = by_fraction_multiply(parts[i].amount, task->both->unit, &weight);
        for (uint32_t j = 0; j < column->part_count && !error; j++) {
            const struct ordered_part *part = &column->parts[j];

            for (uint32_t k = 0; k < part->path_count; k++)
                edges[k] = by_paths_add(&list.paths, part->paths[k].nodes, part->paths[k].node_count);
            by_tree_list_append(&list, part->root, part->use, weight, edges, part->path_count);
        }
    }
    free(edges);
    if (!error)
        error = by_fraction_multiply(value, task->both->unit, &plan->achieved);
    if (!error)
        error = by_fraction_multiply(plan->achieved, (struct by_fraction){roots, 1}, &plan->achieved);
    if (error) {
        by_tree_list_free(&list);
        return error;
    }
    by_tree_list_replace(&list, plan->achieved, plan);
    return 0;
}

/* Column generation; returns the count of parts. */
static uint32_t solve(struct ordered_task *task, double deadline, struct by_simplex_part *parts,
                      struct by_fraction *value)
{
    struct by_simplex *simplex = by_simplex_new(task->rows, task->limits);
    uint32_t count;

    task->interval = by_interval_new(task->up);
    while (task->column_count < COLUMNS_MAX && (task->column_count == 0 || !by_plan_late(deadline)) &&
           (uint64_t)by_simplex_steps(simplex) * task->rows * task->rows < WORK_MAX) {
        struct ordered_column *column = &task->columns[task->column_count];
        int64_t one;

        by_simplex_prices(simplex, task->prices, &one);
        if (!price_column(task, column))
            break;
        count_column(task, column);
        if (!by_simplex_offer(simplex, task->counts, task->column_count)) {
            column_free(column);
            break;
        }
        task->column_count++;
    }
    count = by_simplex_solution(simplex, parts, value);
    by_simplex_free(simplex);
    return count;
}

/* For large fabrics: uses trees over blocks of ranks. */
static int replace_by_blocks(const struct ordered_task *task, struct by_plan *plan,
                             struct by_problem *problem)
{
    struct by_tree_list list = {0};
    struct by_fraction rate = {0, 1};
    int error = by_blocks_make(task->both, task->options->collective, task->options->root, &list, &rate);

    if (error) {
        by_tree_list_free(&list);
        return error == BY_ERANGE
                   ? refuse_range(problem)
                   : by_problem_set(problem, error, (struct by_place){0, 0},
                                    "no ordered trees found: consecutive ranks are connected only through "
                                    "other ranks; leave out --ordered");
    }
    by_tree_list_replace(&list, rate, plan);
    return 0;
}

int by_ordered_make(const struct by_topology *topology, const struct by_plan_options *options,
                    struct by_plan *plan, struct by_problem *problem)
{
    struct ordered_task *task;
    struct by_simplex_part *parts;
    struct by_fraction value = {0, 1};
    double start = by_plan_clock();
    uint32_t count = 0, sites;
    int error = 0;

    if (by_collective_way(options->collective) == BY_DATA_DOWN)
        return by_problem_set(problem, BY_EINVAL, (struct by_place){0, 0},
                              "%s does not reduce, so its sums have no order; leave out --ordered",
                              by_collective_name(options->collective));
    plan->ordered = true;
    if (by_ordered_is(plan, topology))
        return 0;
    task = by_alloc(1, sizeof(*task));
    task_make(task, topology, options);
    parts = by_alloc(task->rows + 1, sizeof(*parts));
    sites = task->up->compute_count;
    for (uint32_t i = 0; i < topology->node_count; i++)
        sites += task->up->branch[i];
    if (task->up->compute_count <= BY_INTERVAL_RANKS_MAX && sites <= BY_INTERVAL_SITES_MAX &&
        task->rows <= ROWS_MAX)
        count = solve(task, options->time_limit_s > 0 ? start + options->time_limit_s : 0, parts, &value);
    if (count == 0)
        error = replace_by_blocks(task, plan, problem);
    else if (replace_trees(task, parts, count, value, plan) != 0)
        error = refuse_range(problem);
    plan->seconds.pack += by_plan_clock() - start;
    free(parts);
    task_free(task);
    free(task);
    return error;
}

/* Turns scaled capacities into finished trees. See forest.h. */
#include "control/planner/pack/forest.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/base/stage.h"
#include "control/fabric/build.h"
#include "control/planner/optimum/oracle.h"
#include "control/planner/pack/height.h"
#include "control/planner/pack/merge.h"
#include "control/planner/split/flow_path.h"
#include "control/planner/split/tighten.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

/* The solution of a piece, cached because many pieces of a fabric are equal. */
struct solution {
    struct by_piece piece;
    uint64_t hash;
    uint32_t join_count;
    struct by_join *joins;
    struct by_contraction contraction;
    struct by_packing packing;
    struct solution *next; /* next in the same hash bucket */
};

#define BUCKETS 1024u

struct forest_work {
    const struct by_forest *forest;
    struct by_plan *plan;
    struct by_tree_list *list;
    int64_t *capacity; /* by half: tightened */
    bool *member;
    bool *removed;
    bool removes; /* some switch is to be removed */
    bool staying; /* some switch remains */
    struct by_laminar laminar;
    struct solution *buckets[BUCKETS];
    struct solution **of_group;
    int error;
    /* Scratch for writing trees. */
    uint32_t *children; /* by node */
    /* by node: the path into a switch with one child, which the child's path continues, + 1 */
    uint32_t *carried;
    uint32_t *edges;
    struct by_tree_shape *shape;
};

/* Chooses the nodes that trees span: compute nodes, and branching switches that every tree can
 * reach. All other switches are to be removed. */
static void choose_members(struct forest_work *work)
{
    const struct by_forest *forest = work->forest;
    const struct by_graph *graph = forest->graph;
    struct by_reach *reach = by_reach_new(graph->net);
    int64_t total = 0;

    for (uint32_t half = 0; half < 2 * graph->net->pair_count; half++)
        by_reach_set(reach, half, forest->capacity[half]);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        by_reach_set_root(reach, i, forest->roots[i]);
        /* every tree reaches them, so no violated set holds one */
        reach->contracted[i] = graph->compute[i];
        total += forest->roots[i];
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        bool touched = false;

        work->member[i] = graph->compute[i];
        for (uint32_t j = graph->net->first[i]; j < graph->net->first[i + 1]; j++)
            touched |= forest->capacity[graph->net->near[j].half] > 0 ||
                       forest->capacity[graph->net->near[j].half ^ 1] > 0;
        if (graph->compute[i] || !touched)
            continue;
        work->member[i] = graph->branch[i] && by_reach_flow(reach, i, total) == total;
        work->removed[i] = !work->member[i];
        work->removes |= work->removed[i];
        work->staying |= work->member[i];
    }
    by_reach_free(reach);
}

/* Switch removal needs an Eulerian graph: reports the first node that is not balanced. */
static int check_balance(const struct by_forest *forest, struct by_problem *problem)
{
    const struct by_graph *graph = forest->graph;
    const struct by_mesh *net = graph->net;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        char in_text[BY_FRACTION_TEXT_BYTES], out_text[BY_FRACTION_TEXT_BYTES];
        struct by_fraction bandwidth[2];
        int64_t in = 0, out = 0, unbalanced;

        for (uint32_t j = net->first[i]; j < net->first[i + 1]; j++) {
            in += forest->capacity[net->near[j].half];
            out += forest->capacity[net->near[j].half ^ 1];
        }
        if (in == out)
            continue;
        bandwidth[0] = (struct by_fraction){in, 1};
        bandwidth[1] = (struct by_fraction){out, 1};
        /* The planner's capacities may be transposed or rounded down, so report the sums of the
         * file. */
        unbalanced = by_topology_unbalanced(graph->topology, &bandwidth[0], &bandwidth[1]);
        if (unbalanced < 0)
            unbalanced = i;
        return by_problem_set(problem, BY_EINVAL, (struct by_place){0, 0},
                              "node '%s' has %s %s in and %s %s out: planning around switches that do not "
                              "branch requires equal sums; balance its links, or let the switches branch",
                              graph->topology->nodes[unbalanced].name,
                              by_fraction_text(bandwidth[0], in_text), graph->topology->unit,
                              by_fraction_text(bandwidth[1], out_text), graph->topology->unit);
    }
    return 0;
}

/* ---- pieces ---- */

static bool has_removed(const struct by_piece *piece)
{
    for (uint32_t i = 0; i < piece->count; i++)
        if (piece->kind[i] == BY_PIECE_REMOVED)
            return true;
    return false;
}

/* Removes the switches and packs the rest. Adds the time to the plan's seconds. */
static int solve(struct forest_work *work, struct solution *solution)
{
    double deadline = work->forest->deadline, start = by_plan_clock(), split_end;
    int error = 0;

    if (has_removed(&solution->piece)) {
        struct by_split split;

        by_split_make(&split, &solution->piece, deadline);
        error = by_split_run(&split);
        if (!error)
            by_contraction_make(&solution->contraction, &solution->piece, split.capacity);
        solution->joins = split.joins;
        solution->join_count = split.join_count;
        split.joins = NULL;
        by_split_free(&split);
    } else {
        by_contraction_make(&solution->contraction, &solution->piece, NULL);
    }
    split_end = by_plan_clock();
    if (!error)
        error =
            by_pack_run(solution->contraction.net, solution->contraction.roots, deadline, &solution->packing);
    work->plan->seconds.split += split_end - start;
    work->plan->seconds.pack += by_plan_clock() - split_end;
    return error;
}

/* Returns the solution of a group's piece, from the cache or newly solved. */
static int solve_group(struct forest_work *work, uint32_t group)
{
    struct solution *solution = by_alloc(1, sizeof(*solution)), *known;
    int error;

    by_piece_make(&work->laminar, group, &solution->piece);
    solution->hash = by_piece_hash(&solution->piece);
    for (known = work->buckets[solution->hash % BUCKETS]; known; known = known->next)
        if (known->hash == solution->hash && by_piece_equal(&known->piece, &solution->piece))
            break;
    if (known) {
        by_piece_free(&solution->piece);
        free(solution);
        work->of_group[group] = known;
        return 0;
    }
    solution->next = work->buckets[solution->hash % BUCKETS];
    work->buckets[solution->hash % BUCKETS] = work->of_group[group] = solution;
    error = solve(work, solution);
    if (!error && by_plan_late(work->forest->deadline))
        error = BY_ETIMEDOUT;
    return error;
}

/* The weight of a group in the progress report: the square of its number of children. */
static uint64_t weight_of_group(const struct forest_work *work, uint32_t group)
{
    uint64_t children = work->laminar.groups[group].child_count;

    return children * children;
}

static uint64_t weight_of_groups(const struct forest_work *work)
{
    uint64_t sum = 0;

    for (uint32_t g = 0; g < work->laminar.group_count; g++)
        sum += weight_of_group(work, g);
    return sum;
}

static void free_solutions(struct forest_work *work)
{
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (struct solution *solution = work->buckets[i], *next; solution; solution = next) {
            next = solution->next;
            by_piece_free(&solution->piece);
            by_contraction_free(&solution->contraction);
            by_pack_free(&solution->packing);
            free(solution->joins);
            free(solution);
        }
}

/* ---- trees ---- */

static uint32_t join_paths(struct by_paths *paths, uint32_t upper, uint32_t lower)
{
    struct by_path a = by_paths_get(paths, upper), b = by_paths_get(paths, lower);
    uint32_t count = a.node_count + b.node_count - 1, path;
    uint32_t *nodes = by_alloc(count, sizeof(*nodes));

    memcpy(nodes, a.nodes, a.node_count * sizeof(*nodes));
    memcpy(nodes + a.node_count, b.nodes + 1, (b.node_count - 1) * sizeof(*nodes));
    path = by_paths_add(paths, nodes, by_tree_cut_loops(nodes, count));
    free(nodes);
    return path;
}

/* Drops switches that lead nowhere, and merges switches with one child into paths. Returns the
 * number of edges left. */
static uint32_t prune(struct forest_work *work, const uint32_t *paths, uint32_t count)
{
    struct by_paths *table = &work->list->paths;
    const bool *compute = work->forest->graph->compute;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++)
        work->children[by_paths_from(table, paths[i])]++;
    for (uint32_t i = count; i-- > 0;) {
        uint32_t to = by_paths_to(table, paths[i]);

        if (!compute[to] && work->children[to] == 0)
            work->children[by_paths_from(table, paths[i])]--;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t path = paths[i], from = by_paths_from(table, path), to = by_paths_to(table, path);

        if (!compute[to] && work->children[to] == 0)
            continue;
        if (work->carried[from])
            path = join_paths(table, work->carried[from] - 1, path);
        if (!compute[to] && work->children[to] == 1)
            work->carried[to] = path + 1;
        else
            work->edges[kept++] = path;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = by_paths_from(table, paths[i]), to = by_paths_to(table, paths[i]);

        work->children[from] = work->children[to] = 0;
        work->carried[from] = work->carried[to] = 0;
    }
    return kept;
}

/* Whether a path passes a switch that may branch but was removed, since not every tree can reach
 * it. */
static bool passes_branch(const struct forest_work *work, const uint32_t *paths, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct by_path path = by_paths_get(&work->list->paths, paths[i]);

        for (uint32_t j = 1; j + 1 < path.node_count; j++)
            if (work->forest->graph->branch[path.nodes[j]])
                return true;
    }
    return false;
}

/* Receives trees from by_merge_run. */
static void emit(void *context, uint32_t root, int64_t count, const uint32_t *ids, uint32_t id_count)
{
    struct forest_work *work = context;
    const struct by_forest *forest = work->forest;
    struct by_fraction weight;
    int error = by_fraction_multiply(forest->weight, (struct by_fraction){count, 1}, &weight);

    BY_ASSERT(error == 0);
    by_stage_add(forest->stage, (uint64_t)count);
    if (forest->use == BY_TREE_BOTH || (work->removes && passes_branch(work, ids, id_count))) {
        by_tree_shape_add(work->shape, work->list, root, forest->use, weight, ids, id_count);
    } else if (work->staying) {
        uint32_t kept = prune(work, ids, id_count);

        by_tree_list_append(work->list, root, forest->use, weight, work->edges, kept);
    } else {
        by_tree_list_append(work->list, root, forest->use, weight, ids, id_count);
    }
}

static int make_trees(struct forest_work *work)
{
    uint32_t groups = work->laminar.group_count, n = work->forest->graph->node_count, count;
    uint32_t first = work->list->count;
    struct by_flow_path_joins *joins = by_alloc(groups, sizeof(*joins));
    struct by_merge_group *merged = by_alloc(groups, sizeof(*merged));
    struct by_merge_flow_path *flow_paths;
    double start = by_plan_clock();
    int error;

    by_stage_begin(work->forest->stage, "laying trees", (uint64_t)work->laminar.total);
    for (uint32_t g = 0; g < groups; g++) {
        joins[g] = (struct by_flow_path_joins){work->of_group[g]->join_count, work->of_group[g]->joins};
        merged[g] = (struct by_merge_group){&work->of_group[g]->contraction, &work->of_group[g]->packing};
    }
    flow_paths = by_flow_path_make(&work->laminar, joins, merged, &work->list->paths, &count);
    work->children = by_alloc(n, sizeof(*work->children));
    work->carried = by_alloc(n, sizeof(*work->carried));
    work->edges = by_alloc(n, sizeof(*work->edges));
    work->shape = by_tree_shape_new(work->forest->graph);
    error = by_merge_run(&work->laminar, merged, flow_paths, count, work->forest->deadline, emit, work);
    if (error) {
        by_tree_list_free(work->list);
    } else {
        by_tree_list_merge(work->list);
        by_height_lower(work->forest, work->list, first, &work->plan->packed);
    }
    free(work->children);
    free(work->carried);
    free(work->edges);
    by_tree_shape_free(work->shape);
    free(flow_paths);
    free(joins);
    free(merged);
    work->plan->seconds.in_network += by_plan_clock() - start;
    return error;
}

/* Makes tight sets by tightening capacities, and finds the remaining ones. */
static void make_laminar(struct forest_work *work)
{
    const struct by_forest *forest = work->forest;
    const struct by_mesh *net = forest->graph->net;
    struct by_clusters clusters = {0};
    double start = by_plan_clock();

    by_stage_begin(forest->stage, "finding tight sets", 0);
    by_tighten(net, work->capacity, forest->roots, work->member, forest->graph->compute, &clusters);
    by_laminar_make(&work->laminar, net, work->capacity, forest->roots, work->member, forest->graph->compute);
    by_tighten_insert(&work->laminar, &clusters);
    by_tight_laminar(&work->laminar);
    by_clusters_free(&clusters);
    work->plan->seconds.split += by_plan_clock() - start;
}

int by_forest_make(const struct by_forest *forest, struct by_tree_list *list, struct by_plan *plan,
                   struct by_problem *problem)
{
    uint32_t n = forest->graph->node_count, halves = 2 * forest->graph->net->pair_count;
    struct forest_work *work = by_alloc(1, sizeof(*work));
    int error = 0;

    work->forest = forest;
    work->plan = plan;
    work->list = list;
    work->member = by_alloc(n, sizeof(*work->member));
    work->removed = by_alloc(n, sizeof(*work->removed));
    work->capacity = by_alloc(halves, sizeof(*work->capacity));
    memcpy(work->capacity, forest->capacity, halves * sizeof(*work->capacity));
    forest->graph->net->deadline = forest->deadline;
    choose_members(work);
    if (work->removes)
        error = check_balance(forest, problem);
    if (!error) {
        make_laminar(work);
        /* Tight sets found after the deadline are invalid. */
        error = by_plan_late(forest->deadline) ? BY_ETIMEDOUT : 0;
        work->of_group = by_alloc(work->laminar.group_count, sizeof(struct solution *));
        by_stage_begin(forest->stage, "packing trees", weight_of_groups(work));
        for (uint32_t g = 0; g < work->laminar.group_count && !error; g++) {
            error = solve_group(work, g);
            by_stage_add(forest->stage, weight_of_group(work, g));
        }
        if (!error)
            error = make_trees(work);
        if (error)
            by_problem_set(problem, error, (struct by_place){0, 0},
                           "the time limit passed before all trees were packed; allow more time, or fewer "
                           "trees with --fixed-k");
        free_solutions(work);
        by_laminar_free(&work->laminar);
    }
    free(work->of_group);
    free(work->member);
    free(work->removed);
    free(work->capacity);
    free(work);
    return error;
}

/*
 * Makes plans by classes. See classes.h. Averaged over the images of a tree, each image of a link
 * carries the same, so only the number of a tree's edges counts that pass images of a link, not
 * which: that makes any shape of tree as good as a flat one.
 */
#include "control/planner/classes/classes.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/plan/tree_list.h"
#include "control/planner/classes/around.h"
#include "control/planner/classes/class_trees.h"
#include "control/planner/classes/fold.h"
#include "control/planner/classes/inner.h"
#include "control/planner/classes/routes.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Trees for each rank over which routes are shared where switches branch (count). */
#define JOINED_COPIES_MAX 16u

/* Edges of all trees, beyond which no more trees for each rank are tried (count). */
#define EDGES_MAX ((uint64_t)1 << 23)

/* Trees for each rank that are tried, so that routes are used in equal parts (count). */
static const uint32_t copies_tried[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64};
#define COPIES_TRIED (sizeof(copies_tried) / sizeof(*copies_tried))

/* Levels of which all orders are tried (count). */
#define TURNS_MAX 4u

static const struct by_place nowhere = {0, 0};

struct classes_task {
    const struct by_plan_options *options;
    struct by_graph *graph;
    struct by_symmetry *symmetry;
    struct by_routes routes;
    struct by_around around; /* the bound */
    struct by_inner inner;   /* trees within one part of the innermost level */
    by_inner_plan_fn *plan_part;
    bool both_ways;
    struct by_fraction rate; /* of each compute node's trees together, in the graph's unit */
};

static int refuse_growth(int error, struct by_problem *problem)
{
    if (error == BY_ELIMIT)
        return by_problem_set(problem, BY_ELIMIT, nowhere,
                              "its parts are so different that the trees of all classes are too many");
    return by_problem_set(problem, BY_ERANGE, nowhere,
                          "a tree's weight needs more than 63 bits; round the bandwidths");
}

/* The rate at which the most loaded link is full. */
static int find_rate(struct classes_task *task, struct by_problem *problem)
{
    const struct by_routes *routes = &task->routes;
    const struct by_mesh *net = task->graph->net;
    struct by_fraction most = {0, 1};

    for (uint32_t half = 0; half < 2 * net->pair_count; half++) {
        struct by_fraction load, inner;

        if (routes->factor[half] == 0) /* no link between representatives */
            continue;
        if (by_fraction_set((__int128)routes->load[half] * routes->factor[half], routes->copies, &load) !=
                0 ||
            by_fraction_multiply(by_inner_load(&task->inner, half),
                                 (struct by_fraction){(int64_t)by_symmetry_order(task->symmetry), 1},
                                 &inner) != 0 ||
            by_fraction_add(load, inner, &load) != 0 ||
            by_fraction_divide(load, (struct by_fraction){net->capacity[half], 1}, &load) != 0)
            return by_problem_set(problem, BY_ERANGE, nowhere,
                                  "the load of a link needs more than 63 bits; round the bandwidths");
        if (by_fraction_compare(load, most) > 0)
            most = load;
    }
    task->rate = (struct by_fraction){most.den, most.num};
    return 0;
}

/* The rate of all compute nodes together. */
static int sum_rate(const struct classes_task *task, struct by_fraction *sum)
{
    return by_fraction_multiply(task->rate, (struct by_fraction){task->graph->compute_count, 1}, sum);
}

/* Whether the rate is below the bound. */
static bool misses(const struct classes_task *task)
{
    struct by_fraction sum;

    return sum_rate(task, &sum) != 0 || by_fraction_compare(sum, task->around.bound) < 0;
}

/* Whether some compute node has several routes. */
static bool has_choice(const struct classes_task *task)
{
    bool choice = false;

    for (uint32_t i = 0; i < task->symmetry->level_count * task->routes.rank_count; i++)
        choice |= task->routes.lists[i].count > 1;
    return choice;
}

/* Finds the rate of `copies` trees for each rank. */
static int try_copies(struct classes_task *task, uint32_t copies, struct by_problem *problem)
{
    int error;

    by_routes_share(&task->routes, copies);
    error = by_inner_make(&task->inner, &task->routes, task->around.each, task->plan_part, problem);
    return error ? error : find_rate(task, problem);
}

/* What was best so far. */
struct classes_solution {
    struct by_fraction rate;
    uint32_t copies, turn[BY_ROTATIONS_MAX];
};

static void keep_better(const struct classes_task *task, struct classes_solution *best)
{
    if (by_fraction_compare(task->rate, best->rate) <= 0)
        return;
    best->rate = task->rate;
    best->copies = task->routes.copies;
    memcpy(best->turn, task->routes.turn, sizeof(best->turn));
}

/* Finds an order of levels, routes, and trees within a part that together reach the bound, or come
 * near it. */
static int solve(struct classes_task *task, struct by_problem *problem)
{
    uint64_t edges = (uint64_t)task->routes.rank_count * task->graph->compute_count;
    struct classes_solution best = {.rate = {0, 1}};
    bool choice = has_choice(task), more = true;
    int error = 0;

    task->rate = (struct by_fraction){0, 1};
    while (more && !error && misses(task)) {
        for (size_t i = 0; i < (choice ? COPIES_TRIED : 1) && !error && misses(task); i++) {
            if (i > 0 && copies_tried[i] * edges > EDGES_MAX)
                break;
            error = try_copies(task, copies_tried[i], problem);
            keep_better(task, &best);
        }
        if (!error && misses(task))
            more = task->symmetry->level_count <= TURNS_MAX && by_routes_turn(&task->routes);
    }
    if (error || !misses(task))
        return error;
    memcpy(task->routes.turn, best.turn, sizeof(best.turn));
    return try_copies(task, best.copies, problem);
}

/* Grows the trees for the rate found. */
static int grow(struct classes_task *task, struct by_tree_list *list, struct by_problem *problem)
{
    unsigned way = by_collective_way(task->options->collective);
    enum by_tree_use use = way == BY_DATA_BOTH ? BY_TREE_BOTH : way == BY_DATA_UP ? BY_TREE_UP : BY_TREE_DOWN;
    struct by_class_trees grower;
    struct by_fraction weight;
    int error = by_fraction_multiply(task->rate, task->graph->unit, &weight);

    if (!error)
        error = by_fraction_divide(weight, (struct by_fraction){task->routes.copies, 1}, &weight);
    if (!error) {
        by_class_trees_init(&grower, &task->routes, &task->inner, use, false, list);
        error = by_class_trees_grow(&grower, weight);
        by_class_trees_free(&grower);
    }
    return error ? refuse_growth(error, problem) : 0;
}

/* Whether the trees may have switches as nodes. */
static bool may_join(const struct classes_task *task)
{
    return task->both_ways && by_topology_capable(task->graph->topology);
}

/* Grows trees of an allreduce whose switches branch, with `copies` trees for each rank. Finds the
 * weight of each, and the rate of each compute node. */
static int try_joined(struct classes_task *task, uint32_t copies, struct by_tree_list *list,
                      struct by_fraction *each, struct by_fraction *rate)
{
    struct by_fraction trees = {(int64_t)copies, 1};
    struct by_class_trees grower;
    int error;

    by_routes_share(&task->routes, copies);
    by_class_trees_init(&grower, &task->routes, &task->inner, BY_TREE_BOTH, true, list);
    error = by_class_trees_grow(&grower, (struct by_fraction){1, 1});
    by_class_trees_free(&grower);
    if (!error)
        error = by_fold_weight(list, &task->routes, task->inner.k, each);
    return error ? error : by_fraction_multiply(*each, trees, rate);
}

/* Multiplies the weights of trees. */
static int weigh(struct by_tree_list *list, struct by_fraction factor)
{
    int error = 0;

    for (uint32_t i = 0; i < list->count && !error; i++)
        error = by_fraction_multiply(list->trees[i].weight, factor, &list->trees[i].weight);
    return error;
}

/*
 * Trees of an allreduce whose switches branch. Where a level joins its parts at a switch, a link
 * carries each tree once up and once down. Puts them into `list`, which is empty, and sets their
 * rate and the rotations.
 */
static int grow_joined(struct classes_task *task, struct by_tree_list *list, struct by_rotations **rotations,
                       struct by_problem *problem)
{
    struct by_fraction each, rate;
    bool more = true;
    int error;

    by_routes_share(&task->routes, 1);
    error = by_inner_make(&task->inner, &task->routes, task->around.each, task->plan_part, problem);
    if (error)
        return error;
    while (more && !error && misses(task)) {
        for (uint32_t copies = 1; copies <= JOINED_COPIES_MAX && !error && misses(task); copies *= 2) {
            struct by_tree_list made = {0};

            error = try_joined(task, copies, &made, &each, &rate);
            if (!error && by_fraction_compare(rate, task->rate) > 0) {
                by_tree_list_free(list);
                *list = made;
                made = (struct by_tree_list){0};
                task->rate = rate;
                error = weigh(list, each);
            }
            by_tree_list_free(&made);
        }
        more = task->symmetry->level_count <= TURNS_MAX && by_routes_turn(&task->routes);
        error = error == BY_ELIMIT && list->count > 0 ? 0 : error; /* those found so far */
    }
    *rotations = by_symmetry_rotations(task->symmetry);
    if (!error)
        error = weigh(list, (struct by_fraction){by_fold_trees(list, &task->routes, *rotations), 1});
    if (!error)
        error = weigh(list, task->graph->unit);
    return error ? refuse_growth(error, problem) : 0;
}

/* Fills the figures of the plan. */
static int describe(struct classes_task *task, struct by_plan *plan, struct by_problem *problem)
{
    struct by_fraction sum = {0, 1}, unit = task->graph->unit;
    int error = sum_rate(task, &sum);

    if (!error)
        error = by_fraction_multiply(sum, unit, &plan->achieved);
    if (!error)
        error = by_fraction_multiply(task->around.bound, unit, &plan->optimum);
    if (!error && by_collective_is_sharded(plan->collective))
        error = by_fraction_divide((struct by_fraction){plan->compute_count, 1}, plan->optimum, &plan->inv_x);
    if (error)
        return by_problem_set(problem, BY_ERANGE, nowhere,
                              "the rate needs more than 63 bits; round the bandwidths");
    plan->k = task->both_ways ? 0 : task->routes.copies * task->inner.k;
    return by_around_describe(&task->around, plan, problem);
}

/* Makes trees whose nodes are compute nodes only, unless those of `list` are at least as good. */
static int make_forwarded(struct classes_task *task, struct by_tree_list *list,
                          struct by_rotations **rotations, struct by_problem *problem)
{
    struct by_fraction joined = task->rate;
    int error;

    while (by_routes_turn(&task->routes)) /* back to the first order */
        ;
    error = solve(task, problem);

    if (!error && by_around_tighten(&task->around, task->rate))
        error = solve(task, problem);
    if (!error && by_fraction_compare(task->rate, joined) <= 0) {
        task->rate = joined;
        return 0;
    }
    by_tree_list_free(list);
    by_rotations_free(*rotations);
    *rotations = NULL;
    return error ? error : grow(task, list, problem);
}

static int make(struct classes_task *task, struct by_plan *plan, struct by_problem *problem)
{
    struct by_tree_list list = {0};
    struct by_rotations *rotations = NULL;
    double start = by_plan_clock();
    int error;

    by_stage_begin(task->options->stage, "finding alike parts", 0);
    task->symmetry = by_symmetry_find(task->graph);
    if (task->symmetry->level_count == 0)
        return by_problem_set(problem, BY_EUNSUPPORTED, nowhere,
                              "the fabric has no alike parts under the same switches");
    error = by_routes_find(&task->routes, task->graph, task->symmetry, task->both_ways, problem);
    if (!error)
        error = by_around_find(&task->around, task->graph, task->symmetry, task->both_ways, problem);
    plan->seconds.optimum = by_plan_clock() - start;
    by_stage_begin(task->options->stage, "growing trees", 0);
    if (!error && may_join(task))
        error = grow_joined(task, &list, &rotations, problem);
    if (!error && misses(task))
        error = make_forwarded(task, &list, &rotations, problem);
    if (!error)
        error = describe(task, plan, problem);
    if (error) {
        by_tree_list_free(&list);
        by_rotations_free(rotations);
        return error;
    }
    by_tree_list_give(&list, plan);
    plan->rotations = rotations ? rotations : by_symmetry_rotations(task->symmetry);
    if (plan->rotations->count == 0) {
        by_rotations_free(plan->rotations);
        plan->rotations = NULL;
    }
    plan->seconds.pack = by_plan_clock() - start - plan->seconds.optimum;
    return 0;
}

int by_classes_plan(const struct by_topology *topology, const struct by_plan_options *options,
                    by_inner_plan_fn *plan_part, struct by_plan *plan, struct by_problem *problem)
{
    unsigned way = by_collective_way(options->collective);
    struct classes_task task = {
        .options = options, .plan_part = plan_part, .both_ways = way == BY_DATA_BOTH, .rate = {0, 1}};
    int error;

    if (by_collective_is_rooted(options->collective) || options->member || options->shares ||
        options->fixed_k || options->loss.num > 0 || options->trees_max || options->latency_aware ||
        options->ordered)
        return by_problem_set(
            problem, BY_EUNSUPPORTED, nowhere,
            "plans by classes are for allgather, reduce-scatter, allreduce and barrier of all "
            "compute nodes, without --shares, --fixed-k, --trees-max, --latency-aware and "
            "--ordered");
    task.graph =
        by_graph_make_sparse(topology, way == BY_DATA_UP ? BY_DIRECTION_UP : BY_DIRECTION_DOWN, false);
    error = make(&task, plan, problem);
    by_routes_free(&task.routes);
    by_inner_free(&task.inner);
    by_around_free(&task.around);
    by_symmetry_free(task.symmetry);
    by_graph_free(task.graph);
    return error;
}

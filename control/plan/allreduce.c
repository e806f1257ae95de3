/*
 * Planning allreduce. See allreduce.h.
 *
 * On a symmetric fabric a tree used up and down loads each of its links once each way, wherever its root is.
 * So the question is how many trees fit into undirected links: a fractional packing of (Steiner) trees,
 * solved exactly as a linear program whose columns are priced one by one (simplex.h, steiner.h). Where every
 * switch branches this reaches the cut on all regular fabrics, which reduce-scatter and allgather cannot:
 * they root all trees at compute nodes and send N - 1 shards over each host's link twice. Where links or
 * switches differ between the directions, the same program has pairs of trees as its columns (pairs.h).
 *
 * Reduce-scatter plus allgather (ForestColl's optimum, at half its rate each way) is the other candidate: it
 * needs no linear program, and is the best of all on many fabrics whose switches do not branch.
 */
#include "control/plan/allreduce.h"

#include "control/plan/forest.h"
#include "control/plan/optimum.h"
#include "control/plan/packing.h"
#include "control/plan/pairs.h"
#include "control/topology/alloc.h"
#include "control/topology/build.h"
#include "control/topology/fraction.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

static int refuse_range(struct by_problem *problem)
{
    return by_problem_set(problem, BY_ERANGE, (struct by_place){0, 0},
                          "an exact rate or weight needs more than 63 bits; round the bandwidths");
}

/* The trees of reduce-scatter plus allgather on one graph: `share` of the allgather's rate, used as `use`. */
static int rs_ag_trees(const struct by_graph *graph, int64_t p, int64_t q, struct by_fraction share,
                       enum by_tree_use use, double deadline, struct by_tree_list *list, struct by_plan *plan,
                       struct by_problem *problem)
{
    size_t n = graph->node_count;
    int64_t *capacity = by_alloc(n * n, sizeof(*capacity)), *roots = by_alloc(n, sizeof(*roots));
    struct by_forest forest = {graph, capacity, roots, {0, 1}, use, deadline};
    struct by_fraction unit;
    int error = by_fraction_divide(graph->unit, (struct by_fraction){p, 1}, &unit);

    for (size_t i = 0; i < n * n; i++)
        capacity[i] = graph->capacity[i] * p;
    for (size_t i = 0; i < n; i++)
        roots[i] = graph->compute[i] ? q : 0;
    if (!error)
        error = by_fraction_multiply(unit, share, &forest.weight);
    if (error)
        error = refuse_range(problem);
    else
        error = by_forest_make(&forest, list, plan, problem);
    free(capacity);
    free(roots);
    return error;
}

/* Takes the common part off two weights. */
static int pair_weight(struct by_fraction *up, struct by_fraction *down, struct by_fraction *common)
{
    *common = by_fraction_compare(*up, *down) <= 0 ? *up : *down;
    if (by_fraction_subtract(*up, *common, up) != 0 || by_fraction_subtract(*down, *common, down) != 0)
        return BY_ERANGE;
    return 0;
}

/* Pairs the trees of each root: both lists are sorted by root and have equal sums for each. Empties their
 * weights. */
static int pair_trees(struct by_tree_list *up, struct by_tree_list *down, struct by_tree_list *list)
{
    uint32_t i = 0, j = 0;

    while (i < up->count && j < down->count) {
        struct by_fraction common;

        BY_ASSERT(up->trees[i].root == down->trees[j].root);
        if (pair_weight(&up->trees[i].weight, &down->trees[j].weight, &common) != 0)
            return BY_ERANGE;
        by_tree_list_copy(list, up, i, common);
        by_tree_list_copy(list, down, j, common);
        i += up->trees[i].weight.num == 0;
        j += down->trees[j].weight.num == 0;
    }
    return 0;
}

/* The three graphs of one topology and what is known about them. */
struct task {
    struct by_graph *both, *up, *down;
    int64_t bound;               /* the least cut, in units of capacity */
    int64_t up_p, up_q;          /* reduce-scatter: 1/x* */
    int64_t down_p, down_q;      /* allgather */
    struct by_fraction up_share; /* of the links' time for reduce-scatter */
    struct by_fraction down_share;
    struct by_fraction two_phases; /* rate of both together */
    double deadline;               /* a time of by_plan_clock, 0 for none */
};

/*
 * Reduce-scatter of rate a and then allgather of rate b take the time 1/a + 1/b, so side by side the first
 * gets the share b / (a + b) of every link.
 */
static int find_two_phases(struct task *task, struct by_problem *problem)
{
    bool *inside = by_alloc(task->both->node_count, sizeof(*inside));
    int64_t n = task->both->compute_count;
    struct by_fraction a, b, sum;
    int error = by_optimum_allgather(task->up, &task->up_p, &task->up_q, inside, problem);

    if (!error)
        error = by_optimum_allgather(task->down, &task->down_p, &task->down_q, inside, problem);
    free(inside);
    if (error)
        return error;
    if (by_fraction_set((__int128)n * task->up_q, task->up_p, &a) != 0 ||
        by_fraction_set((__int128)n * task->down_q, task->down_p, &b) != 0 ||
        by_fraction_add(a, b, &sum) != 0 || by_fraction_divide(b, sum, &task->up_share) != 0 ||
        by_fraction_divide(a, sum, &task->down_share) != 0 ||
        by_fraction_multiply(a, task->up_share, &task->two_phases) != 0)
        return refuse_range(problem);
    return 0;
}

/* Trees for reduce-scatter beside allgather, in pairs. */
static int pair_two_phases(const struct task *task, struct by_tree_list *list, struct by_plan *plan,
                           struct by_problem *problem)
{
    struct by_tree_list up = {0}, down = {0};
    int error = rs_ag_trees(task->up, task->up_p, task->up_q, task->up_share, BY_TREE_UP, task->deadline, &up,
                            plan, problem);

    if (!error)
        error = rs_ag_trees(task->down, task->down_p, task->down_q, task->down_share, BY_TREE_DOWN,
                            task->deadline, &down, plan, problem);
    if (!error && pair_trees(&up, &down, list) != 0)
        error = refuse_range(problem);
    by_tree_list_free(&up);
    by_tree_list_free(&down);
    return error;
}

/* Whether some switch does one thing and not the other: then trees up and down may differ to advantage. */
static bool has_half_capable(const struct task *task)
{
    for (uint32_t i = 0; i < task->both->node_count; i++)
        if (task->up->branch[i] != task->down->branch[i])
            return true;
    return false;
}

/* The best of: trees for both ways (symmetric links only), pairs of trees, reduce-scatter beside allgather.
 */
static int choose_trees(const struct task *task, struct by_tree_list *list, struct by_plan *plan,
                        struct by_problem *problem)
{
    struct by_fraction rate = {0, 1}, pairs = {0, 1}, bound = {task->bound, 1};
    struct by_tree_list pair_list = {0};
    bool symmetric = by_graph_is_symmetric(task->both);
    double start = by_plan_clock();
    int error = 0;

    if (symmetric)
        error = by_packing_symmetric(task->both, task->bound, task->two_phases, list, task->deadline, &rate);
    if (!error && by_fraction_compare(rate, bound) < 0 && (!symmetric || has_half_capable(task)))
        error = by_pairs_pack(task->up, task->down, task->bound, rate.num ? rate : task->two_phases,
                              &pair_list, task->deadline, &pairs);
    plan->seconds.pack += by_plan_clock() - start;
    if (error)
        error = refuse_range(problem);
    if (!error && pairs.num > 0) {
        by_tree_list_free(list);
        *list = pair_list;
        pair_list = (struct by_tree_list){0};
        rate = pairs;
    } else if (!error && rate.num == 0) {
        rate = task->two_phases;
        error = symmetric ? rs_ag_trees(task->both, task->down_p, task->down_q, (struct by_fraction){1, 2},
                                        BY_TREE_BOTH, task->deadline, list, plan, problem)
                          : pair_two_phases(task, list, plan, problem);
    }
    if (!error && by_fraction_multiply(rate, task->both->unit, &plan->achieved) != 0)
        error = refuse_range(problem);
    by_tree_list_free(&pair_list);
    return error;
}

/* The bound and its cut: data must enter the side that the least cut closes off. */
static int find_bound(struct task *task, struct by_plan *plan, struct by_problem *problem)
{
    bool *inside = by_alloc(task->both->node_count, sizeof(*inside));
    int error = by_optimum_allreduce(task->both, &task->bound, inside, problem);

    if (!error &&
        by_fraction_multiply(task->both->unit, (struct by_fraction){task->bound, 1}, &plan->optimum) != 0)
        error = refuse_range(problem);
    for (uint32_t i = 0; i < task->both->node_count && !error; i++)
        if (!inside[i])
            plan->cut[plan->cut_count++] = i;
    plan->cut_exiting = plan->optimum;
    free(inside);
    return error;
}

int by_allreduce_plan(const struct by_topology *topology, const struct by_plan_options *options,
                      struct by_plan *plan, struct by_problem *problem)
{
    struct task task = {.both = by_graph_make(topology, BY_DIRECTION_BOTH, options->in_network),
                        .up = by_graph_make(topology, BY_DIRECTION_UP, options->in_network),
                        .down = by_graph_make(topology, BY_DIRECTION_DOWN, options->in_network)};
    struct by_tree_list list = {0};
    double start = by_plan_clock();
    int error;

    task.deadline = options->time_limit_s > 0 ? start + options->time_limit_s : 0;
    error = find_bound(&task, plan, problem);

    if (!error)
        error = find_two_phases(&task, problem);
    plan->seconds.optimum = by_plan_clock() - start;
    if (!error)
        error = choose_trees(&task, &list, plan, problem);
    by_tree_list_move(&list, plan);
    by_graph_free(task.both);
    by_graph_free(task.up);
    by_graph_free(task.down);
    return error;
}

/*
 * Checks the options, runs the planner of the collective and describes the result. This file plans
 * allgather, reduce-scatter, broadcast and reduce: all use trees rooted at compute nodes, packed by
 * forest.h. allreduce.c plans allreduce. See planner.h.
 */
#include "control/planner/planner.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/fabric/members.h"
#include "control/plan/merge.h"
#include "control/plan/shares.h"
#include "control/planner/classes/classes.h"
#include "control/planner/network/allreduce.h"
#include "control/planner/network/budget.h"
#include "control/planner/network/few.h"
#include "control/planner/network/first.h"
#include "control/planner/network/ordered.h"
#include "control/planner/network/shallow.h"
#include "control/planner/optimum/optimum.h"
#include "control/planner/pack/forest.h"
#include "control/planner/partial.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* The largest fixed k: trees for each root (count). */
#define FIXED_K_MAX 1000000
/* The largest k tried for a plan that may lose a part of the rate (count). */
#define CHEAP_K_MAX 256

/* More trees for each root than this times --trees-max are not packed: merging equal ones would
 * hardly leave few enough (count). */
#define MERGED_MAX 4

/* Trees of a single root when the time for the optimal number has run out (count). */
#define HURRIED_TREES 16

/* Trees of a single root that are made where fewer are high: of more than HIGH_FACTOR times the
 * hops to the farthest node and HIGH_MIN more (count, hops). */
#define LOW_TREES   32
#define HIGH_FACTOR 3u
#define HIGH_MIN    16u

/* Nodes of a fabric that is planned as a whole (count). Some tables have an entry for each pair of
 * nodes of a piece. */
#define PLAN_NODES_MAX 16384u

static const struct by_place nowhere = {0, 0};

/* Checks that the shares fit the fabric, and that the collective has shards. */
static int check_shares(const struct by_topology *topology, const struct by_plan_options *options,
                        struct by_problem *problem)
{
    int64_t sum = 0;

    if (!options->shares)
        return 0;
    if (!by_collective_is_sharded(options->collective))
        return by_problem_set(problem, BY_EINVAL, nowhere,
                              "%s has no shards: shares are for allgather and reduce-scatter",
                              by_collective_name(options->collective));
    if (options->latency_aware || options->ordered)
        return by_problem_set(problem, BY_EUNSUPPORTED, nowhere,
                              "shares cannot be combined with ordered or latency-aware trees; leave out one");
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (options->shares[i] < 0 || (options->shares[i] > 0 && !topology->nodes[i].compute) ||
            __builtin_add_overflow(sum, options->shares[i], &sum))
            return by_problem_set(problem, BY_EINVAL, nowhere,
                                  "the share of '%s' is %lld: compute nodes have 0 or more, switches 0, "
                                  "and the sum must fit 63 bits",
                                  topology->nodes[i].name, (long long)options->shares[i]);
    return sum > 0 ? 0
                   : by_problem_set(problem, BY_EINVAL, nowhere,
                                    "all shares are 0: no node has data; at least one must be positive");
}

/* Checks the limit of the number of trees. */
static int check_count(const struct by_plan_options *options, struct by_problem *problem)
{
    if (options->trees_max == 0)
        return 0;
    if (options->trees_max < 0 || options->trees_max > FIXED_K_MAX)
        return by_problem_set(problem, BY_EINVAL, nowhere,
                              "the largest number of trees is %lld; it must be from 1 to %d",
                              (long long)options->trees_max, FIXED_K_MAX);
    if (options->fixed_k > 0 || options->loss.num > 0)
        return by_problem_set(problem, BY_EINVAL, nowhere,
                              "a largest number of trees and a fixed k exclude each other; leave out one");
    if (options->shares || options->latency_aware || options->ordered)
        return by_problem_set(problem, BY_EUNSUPPORTED, nowhere,
                              "a largest number of trees cannot be combined with shares, and with ordered or "
                              "latency-aware trees; leave out one");
    return 0;
}

static int check_options(const struct by_topology *topology, const struct by_plan_options *options,
                         struct by_problem *problem)
{
    const char *name = by_collective_name(options->collective);
    bool both_ways = by_collective_way(options->collective) == BY_DATA_BOTH;
    int error;

    if (options->collective == 0 || options->collective >= BY_COLLECTIVE_COUNT)
        return by_problem_set(problem, BY_EINVAL, nowhere, "collective number %u is unknown",
                              options->collective);
    if (by_topology_compute_count(topology) < 2)
        return by_problem_set(problem, BY_EINVAL, nowhere,
                              "the fabric has one compute node; a collective needs at least two");
    if (by_collective_is_rooted(options->collective)) {
        if (options->root < 0 || options->root >= topology->node_count)
            return by_problem_set(problem, BY_EINVAL, nowhere, "%s needs a root: name a compute node", name);
        if (!topology->nodes[options->root].compute)
            return by_problem_set(problem, BY_EINVAL, nowhere,
                                  "root '%s' is a switch; %s starts or ends at a compute node",
                                  topology->nodes[options->root].name, name);
    }
    if (options->fixed_k < 0 || options->fixed_k > FIXED_K_MAX)
        return by_problem_set(problem, BY_EINVAL, nowhere, "k is %lld; it must be from 1 to %d",
                              (long long)options->fixed_k, FIXED_K_MAX);
    if (options->loss.num < 0 || (options->loss.num > 0 && options->loss.num >= options->loss.den))
        return by_problem_set(problem, BY_EINVAL, nowhere,
                              "the part of the rate that may be lost must be at least 0 and below 1");
    if ((options->fixed_k > 0 || options->loss.num > 0) && both_ways)
        return by_problem_set(problem, BY_EINVAL, nowhere,
                              "%s has no k: its trees need not start at every node; a fixed k is for "
                              "allgather, reduce-scatter, "
                              "broadcast and reduce",
                              name);
    error = check_count(options, problem);
    return error ? error : check_shares(topology, options, problem);
}

/* The capacities and roots that the trees are packed into. */
struct planner_task {
    struct by_graph *graph;
    bool *inside;    /* the side of the bottleneck that data must enter, in the direction of the graph */
    int64_t *roots;  /* trees at each node */
    int64_t *shares; /* parts of the data at each node (allgather, reduce-scatter) */
    int64_t share_sum;
    int64_t *capacity;      /* by half of the graph's net, in trees */
    int64_t p, q;           /* capacity is p/q times the graph's, rounded down */
    int64_t best_p, best_q; /* the same at the optimum, for one tree */
    int64_t bound;          /* broadcast: the least flow, in the graph's unit */
    int64_t k;
    double deadline; /* a time of by_plan_clock, 0 for none */
};

/*
 * Broadcast and reduce: the number of trees equals the least flow, at the graph's own capacities.
 */
static int bound_rooted(struct planner_task *task, uint32_t root, struct by_fraction *bound,
                        struct by_problem *problem)
{
    const struct by_mesh *net = task->graph->net;
    int error = by_optimum_broadcast(task->graph, root, &task->bound, task->inside, problem);

    *bound = (struct by_fraction){task->bound, 1}; /* also after a timeout: a valid cut */
    task->p = task->q = 1;
    task->k = task->bound;
    memcpy(task->capacity, net->capacity, 2 * net->pair_count * sizeof(*task->capacity));
    return error;
}

/* Allgather and reduce-scatter: the optimum, and the least k that reaches it. */
static int bound_shared(struct planner_task *task, const struct by_plan_options *options,
                        struct by_fraction *bound, struct by_plan *plan, struct by_problem *problem)
{
    const struct by_graph *graph = task->graph;
    int64_t p = 1, q = 1;
    bool balanced = false;
    int error;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        task->shares[i] = options->shares ? options->shares[i] : graph->compute[i];
        balanced |= !graph->compute[i]; /* switches may have to be removed */
    }
    task->share_sum = by_shares_sum(task->shares, graph->node_count);
    error = by_optimum_shares(graph, task->shares, &p, &q, task->inside, problem);
    if (error && error != BY_ETIMEDOUT)
        return error;
    if (by_fraction_divide((struct by_fraction){p, q}, graph->unit, &plan->inv_x) != 0 ||
        by_fraction_set((__int128)task->share_sum * q, p, bound) != 0)
        return by_problem_set(problem, BY_ERANGE, nowhere,
                              "the bound needs more than 63 bits; round the bandwidths");
    if (error)
        return error;
    task->k = by_optimum_least_k(graph, task->shares, p, q, task->inside, balanced, task->capacity);
    /* capacity = floor(p k / q of the graph's): p / (q / k) if that is an integer,
     * else a fraction */
    task->p = p;
    task->q = q;
    return 0;
}

/* The scale of `k` trees for each root at the optimum. Rounding to whole trees needs at least this
 * scale. */
static int scale_of(const struct planner_task *task, bool rooted, int64_t k, struct by_fraction *scale)
{
    return by_fraction_set((__int128)task->best_p * k, rooted ? task->bound : task->best_q, scale);
}

/* Sets `k` trees at the root, or for each part of the data. */
static void set_roots(struct planner_task *task, const struct by_plan_options *options, int64_t k)
{
    for (uint32_t i = 0; i < task->graph->node_count; i++)
        task->roots[i] =
            by_collective_is_rooted(options->collective) ? (i == options->root ? k : 0) : k * task->shares[i];
}

/* Finds the best capacities for `k` trees: `*u` times the graph's, rounded down. */
static int fix_k(struct planner_task *task, const struct by_plan_options *options, int64_t k,
                 struct by_fraction *u, struct by_problem *problem)
{
    struct by_fraction scale = {0, 1};

    if (scale_of(task, by_collective_is_rooted(options->collective), k, &scale) != 0 ||
        task->share_sum > BY_CAPACITY_SUM_MAX / k)
        return by_problem_set(problem, BY_ERANGE, nowhere,
                              "the scale needs more than 63 bits; round the bandwidths%s",
                              options->shares ? " or the shares" : "");
    set_roots(task, options, k);
    return by_optimum_fixed(task->graph, task->roots, scale, &u->num, &u->den, task->capacity, problem);
}

/* Finds, by trying, the least k below the optimal one that loses at most `loss` of the rate: scale
 * / u >= 1 - loss. */
static int find_cheap_k(struct planner_task *task, const struct by_plan_options *options, int64_t *k,
                        struct by_problem *problem)
{
    struct by_fraction least = {options->loss.den - options->loss.num, options->loss.den};
    struct by_fraction u = {0, 1}, scale = {0, 1}, rate = {0, 1};
    bool switches = task->graph->compute_count < task->graph->node_count;
    int error = 0;

    by_stage_begin(options->stage, "trying fewer trees",
                   task->k < CHEAP_K_MAX ? (uint64_t)task->k : CHEAP_K_MAX);
    for (int64_t tried = 1; tried < task->k && tried <= CHEAP_K_MAX && !error; tried++) {
        if (by_plan_late(task->deadline))
            return by_problem_set(problem, BY_ETIMEDOUT, nowhere,
                                  "the time limit passed while trying fewer trees; allow more time, or give "
                                  "their number");
        error = fix_k(task, options, tried, &u, problem);
        if (!error && scale_of(task, by_collective_is_rooted(options->collective), tried, &scale) == 0 &&
            by_fraction_divide(scale, u, &rate) == 0 && by_fraction_compare(rate, least) >= 0 &&
            (!switches || by_optimum_balanced(task->graph->net, task->capacity))) {
            *k = tried;
            break;
        }
        by_stage_add(options->stage, 1);
    }
    return error;
}

/* Finds the k up to `most` with the best rate, and sets the capacities and roots of `task` for it.
 */
static int fix_few(struct planner_task *task, const struct by_plan_options *options, int64_t most,
                   struct by_problem *problem)
{
    struct by_fraction u = {0, 1}, scale = {0, 1}, rate = {0, 1}, best = {0, 1};
    bool switches = task->graph->compute_count < task->graph->node_count;
    bool rooted = by_collective_is_rooted(options->collective);
    int64_t k = 0;
    int error = 0;

    most = most < CHEAP_K_MAX ? most : CHEAP_K_MAX;
    by_stage_begin(options->stage, "trying fewer trees", (uint64_t)most);
    for (int64_t tried = 1; tried <= most && !error; tried++) {
        if (by_plan_late(task->deadline))
            break;
        error = fix_k(task, options, tried, &u, problem);
        if (!error && scale_of(task, rooted, tried, &scale) == 0 &&
            by_fraction_divide(scale, u, &rate) == 0 && by_fraction_compare(rate, best) > 0 &&
            (!switches || by_optimum_balanced(task->graph->net, task->capacity))) {
            best = rate;
            k = tried;
        }
        by_stage_add(options->stage, 1);
    }
    if (!error && k == 0)
        error = by_plan_late(task->deadline)
                    ? by_problem_set(problem, BY_ETIMEDOUT, nowhere,
                                     "the time limit passed while trying fewer trees; allow more time")
                    : by_problem_set(problem, BY_EUNSUPPORTED, nowhere,
                                     "no number of trees up to %lld gives each node as much capacity in as "
                                     "out; allow more with --trees-max",
                                     (long long)most);
    if (!error)
        error = fix_k(task, options, k, &u, problem);
    if (!error) {
        task->k = k;
        task->p = u.num;
        task->q = u.den;
    }
    return error;
}

/* Finds the bound, the scale at which one tree has capacity 1, and the trees at each root. */
static int find_bound(struct planner_task *task, const struct by_plan_options *options, struct by_plan *plan,
                      struct by_problem *problem)
{
    size_t bytes = 2 * (size_t)task->graph->net->pair_count * sizeof(*task->capacity);
    bool rooted = by_collective_is_rooted(options->collective);
    int64_t k = options->fixed_k, *optimal;
    struct by_fraction bound = {0, 1}, scale = {0, 1};
    int error = rooted ? bound_rooted(task, (uint32_t)options->root, &bound, problem)
                       : bound_shared(task, options, &bound, plan, problem);

    if (error && error != BY_ETIMEDOUT)
        return error;
    task->best_p = task->p;
    task->best_q = task->q;
    if (by_fraction_multiply(bound, task->graph->unit, &plan->optimum) != 0)
        return by_problem_set(problem, BY_ERANGE, nowhere,
                              "the bound needs more than 63 bits; round the bandwidths");
    if (error)
        return error;
    optimal = by_alloc(bytes, 1);
    memcpy(optimal, task->capacity, bytes);
    if (options->loss.num > 0)
        error = find_cheap_k(task, options, &k, problem);
    if (!error && k > 0) {
        error = fix_k(task, options, k, &scale, problem);
        task->k = k;
    } else if (!error) {
        memcpy(task->capacity, optimal, bytes);
        set_roots(task, options, task->k);
        if (scale_of(task, rooted, task->k, &scale) != 0)
            error = by_problem_set(problem, BY_ERANGE, nowhere,
                                   "the scale needs more than 63 bits; round the bandwidths");
    }
    free(optimal);
    if (!error) {
        task->p = scale.num;
        task->q = scale.den;
    }
    return error;
}

/* Fills the certificate: the nodes that data must leave. In a transposed graph data leaves where
 * trees enter. */
static int describe_cut(const struct planner_task *task, const struct by_plan_options *options,
                        struct by_plan *plan, struct by_problem *problem)
{
    bool leaving = by_collective_way(options->collective) == BY_DATA_UP;

    for (uint32_t i = 0; i < task->graph->node_count; i++)
        if (task->inside[i] == leaving)
            plan->cut[plan->cut_count++] = i;
    if (by_fraction_multiply(task->graph->unit,
                             (struct by_fraction){by_graph_entering_set(task->graph, task->inside), 1},
                             &plan->cut_exiting) != 0)
        return by_problem_set(problem, BY_ERANGE, nowhere,
                              "the cut needs more than 63 bits; round the bandwidths");
    return 0;
}

/* Makes the trees of `task` into the empty list, and sets k, the rate and the heights of the plan.
 */
static int make_list(const struct planner_task *task, const struct by_plan_options *options,
                     struct by_tree_list *list, struct by_plan *plan, struct by_problem *problem)
{
    struct by_forest forest = {.graph = task->graph, .capacity = task->capacity, .roots = task->roots};
    int64_t roots = by_collective_is_rooted(options->collective) ? 1 : task->share_sum;
    struct by_fraction scale = {task->q, task->p};

    forest.deadline = task->deadline;
    forest.stage = options->stage;
    forest.use = by_collective_way(options->collective) == BY_DATA_UP ? BY_TREE_UP : BY_TREE_DOWN;
    plan->packed = (struct by_heights){0, 0};
    plan->k = task->k;
    if (by_fraction_multiply(task->graph->unit, scale, &forest.weight) != 0 ||
        by_fraction_set((__int128)forest.weight.num * task->k * roots, forest.weight.den, &plan->achieved) !=
            0)
        return by_problem_set(problem, BY_ERANGE, nowhere,
                              "a tree's weight needs more than 63 bits; round the bandwidths");
    return by_budget_forest(&forest, task->graph, list, plan, problem);
}

/* Makes the trees of `task`; with a largest number of trees those of a smaller k, if there are too
 * many. */
static int make_trees(struct planner_task *task, const struct by_plan_options *options, struct by_plan *plan,
                      struct by_problem *problem)
{
    struct by_tree_list list = {0};
    bool many = options->trees_max > 0 && task->k / MERGED_MAX > options->trees_max;
    int error = many ? 0 : make_list(task, options, &list, plan, problem);

    if (!error && !many && options->trees_max > 0) {
        by_tree_list_move(&list, plan);
        by_plan_merge(plan);
        if (by_plan_trees_each(plan, task->graph->node_count) <= options->trees_max)
            return 0;
        many = true;
    }
    if (!error && many) {
        error = fix_few(task, options, options->trees_max, problem);
        if (error == BY_EUNSUPPORTED) /* one tree for each root, without flows */
            return by_first_make(task->graph->topology, options, plan, problem);
        if (!error)
            error = make_list(task, options, &list, plan, problem);
        if (!error && plan->tree_count > 0) {
            struct by_heights packed = plan->packed;

            by_tree_list_replace(&list, plan->achieved, plan);
            plan->packed = packed;
            plan->k = task->k;
            return 0;
        }
    }

    if (error)
        by_tree_list_free(&list);
    else
        by_tree_list_move(&list, plan);
    return error;
}

/* The number of trees for each root when the time for the optimal number has run out. */
static int64_t hurried_trees(const struct by_plan_options *options)
{
    return by_collective_is_rooted(options->collective) ? HURRIED_TREES : 1;
}

/* Packs few trees for each root within the remaining time, after the optimal trees
 * took too long. BY_ETIMEDOUT if that takes too long as well. */
static int hurry(struct planner_task *task, const struct by_plan_options *options, double deadline,
                 struct by_plan *plan, struct by_problem *problem)
{
    int64_t k = hurried_trees(options);
    struct by_fraction scale = {0, 1};
    int error;

    if (k >= task->k)
        return BY_ETIMEDOUT; /* `problem` is filled */
    task->deadline = task->graph->net->deadline = deadline;
    error = fix_k(task, options, k, &scale, problem);
    if (error)
        return error;
    task->k = k;
    task->p = scale.num;
    task->q = scale.den;
    return make_trees(task, options, plan, problem);
}

/*
 * One root: where hosts have one link each, a tree at the full rate is a chain through all of them,
 * and a few trees are chains of subtrees. More trees of smaller weight at the same rate can be
 * complementary: a node has many children in one tree and is a leaf of the others (SplitStream,
 * Castro et al. 2003; two trees: Sanders, Speck and Traeff 2009). Replaces the trees by about
 * LOW_TREES if these are much lower. Errors leave the trees as they are.
 */
static void lower_rooted(struct planner_task *task, const struct by_plan_options *options,
                         struct by_plan *plan)
{
    uint32_t n = task->graph->node_count, high = by_plan_heights(plan, n).max;
    struct by_plan before = *plan;
    struct by_tree_list list = {0};
    struct by_fraction scale = {0, 1};
    struct by_problem problem = {0};
    int64_t most = options->trees_max > 0 && options->trees_max < LOW_TREES ? options->trees_max : LOW_TREES;
    int64_t k = most / task->k * task->k;

    if (!by_collective_is_rooted(options->collective) || options->fixed_k > 0 || options->loss.num > 0 ||
        k <= task->k ||
        high <= HIGH_FACTOR * by_mesh_farthest(task->graph->net, (uint32_t)options->root) + HIGH_MIN)
        return;
    if (fix_k(task, options, k, &scale, &problem) != 0)
        return;
    task->k = k;
    task->p = scale.num;
    task->q = scale.den;
    if (make_list(task, options, &list, plan, &problem) == 0 &&
        by_fraction_compare(plan->achieved, before.achieved) == 0) {
        struct by_plan made = {.trees = list.trees, .tree_count = list.count, .paths = list.paths};

        made.edges = list.edges;
        if (2 * by_plan_heights(&made, n).max <= high) {
            struct by_heights packed = plan->packed;

            by_tree_list_replace(&list, before.achieved, plan);
            plan->packed = packed;
            plan->k = k;
            return;
        }
    }
    by_tree_list_free(&list);
    plan->packed = before.packed;
    plan->achieved = before.achieved;
    plan->k = before.k;
}

static int plan_rooted(const struct by_topology *topology, const struct by_plan_options *options,
                       struct by_plan *plan, struct by_problem *problem)
{
    struct planner_task task = {0};
    size_t n = topology->node_count;
    double start = by_plan_clock(), limit = options->time_limit_s;
    /* The search may switch from the optimal k to a small one halfway. */
    bool yields = limit > 0 && options->trees_max == 0 && options->fixed_k == 0 && options->loss.num == 0,
         bounded;
    int error;

    task.graph = by_graph_make_sparse(
        topology, by_collective_way(options->collective) == BY_DATA_UP ? BY_DIRECTION_UP : BY_DIRECTION_DOWN,
        options->in_network);
    task.deadline = limit > 0 ? start + (yields ? limit / 2 : limit) : 0;
    task.graph->net->deadline = task.deadline;
    by_stage_begin(options->stage, "finding the bottleneck", 0);
    task.inside = by_alloc(n, sizeof(*task.inside));
    task.roots = by_alloc(n, sizeof(*task.roots));
    task.shares = by_alloc(n, sizeof(*task.shares));
    task.capacity = by_alloc(2 * (size_t)task.graph->net->pair_count, sizeof(*task.capacity));
    error = find_bound(&task, options, plan, problem);
    bounded = !error;
    if (bounded && yields && task.k <= hurried_trees(options)) /* there is no quicker choice */
        task.deadline = start + limit;
    if ((!error || error == BY_ETIMEDOUT) && describe_cut(&task, options, plan, problem) != 0)
        error = BY_ERANGE;
    plan->seconds.optimum = by_plan_clock() - start;
    if (!error)
        error = make_trees(&task, options, plan, problem);
    if (!error)
        lower_rooted(&task, options, plan);
    plan->hurried = error == BY_ETIMEDOUT;
    if (error == BY_ETIMEDOUT && yields && bounded)
        error = hurry(&task, options, start + limit, plan, problem);
    if (error == BY_ETIMEDOUT)
        error = by_first_make(topology, options, plan, problem);
    by_graph_free(task.graph);
    free(task.inside);
    free(task.roots);
    free(task.shares);
    free(task.capacity);
    return error;
}

/* Plans with switches that only forward, so that bounds and proofs hold for the requested trees. */
static int plan_hosts_only(const struct by_topology *topology, const struct by_plan_options *options,
                           struct by_plan **plan, struct by_problem *problem)
{
    struct by_topology forwarding = by_topology_forwarding(topology);
    int error = by_plan_make(&forwarding, options, plan, problem);

    free(forwarding.nodes);
    if (!error)
        (*plan)->hosts_only = true;
    return error;
}

/* Plans an allgather within one of alike parts. */
static int plan_part(const struct by_topology *part, struct by_plan **plan, struct by_problem *problem)
{
    return by_plan_make(part, &(struct by_plan_options){.collective = BY_COLLECTIVE_ALLGATHER, .root = -1},
                        plan, problem);
}

/* Plans by classes. If only the size of the fabric requires it, the reason for a refusal includes
 * that. */
static int plan_classes(const struct by_topology *topology, const struct by_plan_options *options,
                        struct by_plan *plan, struct by_problem *problem)
{
    struct by_problem why = {0};
    int error = by_classes_plan(topology, options, plan_part, plan, &why);

    if (error && topology->node_count > PLAN_NODES_MAX)
        return by_problem_set(problem, error, nowhere,
                              "the fabric has %u nodes, and above %u only plans by classes are made: %s",
                              topology->node_count, PLAN_NODES_MAX, why.text);
    *problem = why;
    return error;
}

int by_plan_make(const struct by_topology *topology, const struct by_plan_options *given,
                 struct by_plan **plan, struct by_problem *problem)
{
    struct by_plan_options used = *given, *options = &used;
    struct by_plan *made;
    double start = by_plan_clock();
    int error;

    *plan = NULL;
    problem->text[0] = '\0';
    if (!used.in_network && by_topology_capable(topology))
        return plan_hosts_only(topology, options, plan, problem);
    if (used.member && by_members_count(topology, used.member) < by_topology_compute_count(topology))
        return by_partial_plan(topology, options, plan, problem);
    used.classes |= topology->node_count > PLAN_NODES_MAX && !by_collective_is_rooted(used.collective);
    error = check_options(topology, options, problem);
    if (error)
        return error;
    if (used.shares && by_shares_equal(used.shares, topology))
        used.shares = NULL;
    made = by_alloc(1, sizeof(*made));
    made->topology_name = by_copy_text(topology->name);
    made->unit = by_copy_text(topology->unit);
    made->collective = options->collective;
    made->root = by_collective_is_rooted(options->collective) ? options->root : -1;
    made->compute_count = by_topology_compute_count(topology);
    made->inv_x = made->two_phases = (struct by_fraction){0, 1};
    made->cut = by_alloc(topology->node_count, sizeof(*made->cut));
    if (options->shares) {
        made->shares = by_alloc(topology->node_count, sizeof(*made->shares));
        memcpy(made->shares, options->shares, topology->node_count * sizeof(*made->shares));
    }
    if (options->classes)
        error = plan_classes(topology, options, made, problem);
    else if (by_collective_way(options->collective) == BY_DATA_BOTH)
        error = by_allreduce_plan(topology, options, made, problem);
    else
        error = plan_rooted(topology, options, made, problem);
    if (!error && options->trees_max > 0 && by_collective_way(options->collective) == BY_DATA_BOTH)
        error = by_few_make(topology, options, made, problem);
    made->trees_max = options->trees_max;
    if (used.time_limit_s > 0) { /* the remaining time; afterwards the plan found so far stays */
        used.time_limit_s -= by_plan_clock() - start;
        used.time_limit_s = used.time_limit_s > 0 ? used.time_limit_s : 1e-9;
    }
    if (!error && options->trees_max == 0 && !made->hurried && !options->ordered && !options->classes &&
        by_collective_way(options->collective) == BY_DATA_BOTH)
        by_few_keep(topology, options, made);
    if (!error && options->latency_aware)
        error = by_shallow_make(topology, options, made, problem);
    if (!error && options->ordered)
        error = by_ordered_make(topology, options, made, problem);
    if (!error && !options->classes)
        by_plan_merge(made);
    made->seconds.total = by_plan_clock() - start;
    if (error) {
        by_plan_free(made);
        return error;
    }
    *plan = made;
    return 0;
}

int by_plan_make_whole(const struct by_topology *topology, const struct by_plan_options *options,
                       struct by_plan **plan, struct by_problem *problem)
{
    int error = by_plan_make(topology, options, plan, problem);

    if (error || !(*plan)->hurried)
        return error;
    by_plan_free(*plan);
    *plan = NULL;
    return by_problem_set(problem, BY_ETIMEDOUT, nowhere,
                          "it did not finish within its time limit; raise --time-limit");
}

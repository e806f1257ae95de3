/*
 * Plans allreduce. See allreduce.h. Three kinds of trees compete:
 *
 * - Trees rooted at compute nodes (phases.h), which do not need aggregation or multicast in
 *   switches. On balanced fabrics whose switches only forward, no trees are better, and disjoint
 *   sets of nodes prove it.
 * - Trees for both directions (packing.h), on symmetric fabrics. A tree used up and down loads each
 *   of its links once in each direction, wherever its root is, so the problem is how many (Steiner)
 *   trees fit into undirected links.
 * - Pairs of trees (pairs.h), if links or switches differ between the directions.
 *
 * The bound is the smaller of the least cut between compute nodes, which holds for every schedule,
 * and the bound for the kind of trees in use.
 */
#include "control/planner/network/allreduce.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/planner/network/fill.h"
#include "control/planner/network/first.h"
#include "control/planner/network/joint.h"
#include "control/planner/network/packing.h"
#include "control/planner/network/pairs.h"
#include "control/planner/network/parts.h"
#include "control/planner/network/phases.h"
#include "control/planner/optimum/optimum.h"
#include "control/planner/planner.h"
#include "offload/base/errors.h"

/* Trees that are tried one after the other: in general, and after the time limit (counts). */
#define ROUNDS_MAX  400u
#define ROUNDS_LATE 8u
/* Trees that are few enough in any case where they are lower (count). */
#define FEW_TREES 32u
/* With a time limit, the parts of the time left that the programs may use for a bound, and for
 * trees where those of the two phases are better than the ones so far: these must be packed too. */
#define BOUND_TIME 0.25
#define TREES_TIME 0.6

static int refuse_range(struct by_problem *problem)
{
    return by_problem_set(problem, BY_ERANGE, (struct by_place){0, 0},
                          "an exact rate or weight needs more than 63 bits; round the bandwidths");
}

/* One topology and what is known about it; rates in units of capacity. */
struct allreduce_task {
    struct by_graph *both, *up, *down;
    double deadline;              /* a time of by_plan_clock, 0 for none */
    bool firm;                    /* the program of the options was solved */
    bool hurried;                 /* it prevented a better bound or better trees */
    struct by_stage *stage;       /* or NULL */
    int64_t cut;                  /* the least cut */
    struct by_fraction bound;     /* the least bound known */
    struct by_certificate *proof; /* proof of the bound, NULL: the cut */
    struct by_phases phases;
    struct by_tree_list list;
    struct by_fraction rate; /* of the trees in the list */
};

/* Whether some switch branches, in at least one direction, in these graphs. */
static bool has_branching(const struct allreduce_task *task)
{
    for (uint32_t i = 0; i < task->both->node_count; i++)
        if (task->up->branch[i] || task->down->branch[i])
            return true;
    return false;
}

/* Whether some switch does only one of aggregation and multicast: then different trees up and down
 * can be better. */
static bool has_half_capable(const struct allreduce_task *task)
{
    for (uint32_t i = 0; i < task->both->node_count; i++)
        if (task->up->branch[i] != task->down->branch[i])
            return true;
    return false;
}

/* Finds the least cut, and its side that data must leave. */
static int find_cut(struct allreduce_task *task, struct by_plan *plan, struct by_problem *problem)
{
    bool *inside = by_alloc(task->both->node_count, sizeof(*inside));
    int error = by_optimum_allreduce(task->both, &task->cut, inside, problem);

    if (error == BY_ETIMEDOUT) {
        task->hurried = true;
        error = 0; /* the cut is valid */
    }
    if (!error &&
        by_fraction_multiply(task->both->unit, (struct by_fraction){task->cut, 1}, &plan->cut_exiting) != 0)
        error = refuse_range(problem);
    for (uint32_t i = 0; i < task->both->node_count && !error; i++)
        if (!inside[i])
            plan->cut[plan->cut_count++] = i;
    task->bound = (struct by_fraction){task->cut, 1};
    free(inside);
    return error;
}

static void try_parts(struct allreduce_task *task, const uint32_t *part, uint32_t count)
{
    struct by_fraction bound = by_parts_bound(task->both, task->up, task->down, part, count);

    if (bound.num == 0 || by_fraction_compare(bound, task->bound) >= 0)
        return;
    by_certificate_free(task->proof);
    task->bound = bound;
    task->proof = by_certificate_of_parts(part, task->both->node_count, count);
}

/* Tries disjoint sets as a bound: the tight sets of trees at compute nodes, and single compute
 * nodes. */
static void bound_by_parts(struct allreduce_task *task)
{
    const struct by_spanning *spanning = &task->phases.spanning;
    const struct by_strength *strength = &task->phases.strength;
    uint32_t *single = by_alloc(task->both->node_count, sizeof(*single));

    if (spanning->part || strength->part)
        try_parts(task, spanning->part ? spanning->part : strength->part,
                  spanning->part ? spanning->part_count : strength->part_count);
    try_parts(task, single, by_parts_single(task->both, single));
    free(single);
}

/* Keeps better trees and a lower bound; frees the ones that are not kept. */
static void offer(struct allreduce_task *task, struct by_tree_list *list, struct by_packed *packed)
{
    if (by_fraction_compare(packed->rate, task->rate) > 0) {
        struct by_tree_list loser = task->list;

        task->list = *list;
        task->rate = packed->rate;
        *list = loser;
    }
    by_tree_list_free(list);
    if (packed->bound.num > 0 && by_fraction_compare(packed->bound, task->bound) < 0) {
        struct by_certificate *loser = task->proof;

        task->bound = packed->bound;
        task->proof = packed->proof;
        packed->proof = loser;
    }
    by_certificate_free(packed->proof);
}

/* Whether pairs may be better than trees for both directions: a link or a switch differs between
 * the directions, or additions are limited, which affects only trees that carry up. */
static bool wants_pairs(const struct allreduce_task *task)
{
    for (uint32_t i = 0; i < task->both->node_count; i++)
        if (task->up->branch[i] && task->up->budget[i] >= 0)
            return true;
    return !task->phases.symmetric || has_half_capable(task);
}

/* Fills the links with trees one by one: the final result if they reach the bound, else a starting
 * solution. */
static int pack_quickly(struct allreduce_task *task, uint32_t rounds, double deadline)
{
    struct by_tree_list list = {0};
    struct by_packed packed = {.bound = {0, 1}};
    int error = by_fill(task->both, task->up, task->down, wants_pairs(task), task->cut, rounds, deadline,
                        &list, &packed.rate);

    if (error)
        by_tree_list_free(&list);
    else
        offer(task, &list, &packed);
    return error;
}

/* Packs trees by linear programs, if switches branch or free roots are not known to be optimal. */
static int pack_programs(struct allreduce_task *task)
{
    struct by_fraction least = task->phases.rate;
    struct by_tree_list list = {0};
    struct by_packed packed;
    bool pairs = wants_pairs(task);
    int error = 0;

    if (task->phases.symmetric) {
        error = by_packing_symmetric(task->both, task->cut, least, &list, task->deadline, &packed);
        if (pairs) { /* a bound for trees in both directions does not bound pairs */
            by_certificate_free(packed.proof);
            packed.proof = NULL;
            packed.bound.num = 0;
        }
        offer(task, &list, &packed);
    }
    if (!error && by_fraction_compare(task->rate, task->bound) < 0 && pairs) {
        error = by_pairs_pack(task->up, task->down, task->cut, task->rate.num ? task->rate : least, &list,
                              task->deadline, &packed);
        offer(task, &list, &packed);
    }
    return error;
}

/*
 * Replaces the trees found so far by trees of the two phases, if these are faster. When the first
 * half of the time is over, roots get equal shares, which need less time to pack; when all of it is
 * over, the former trees stay.
 */
static int pack_phases(struct allreduce_task *task, struct by_plan *plan, struct by_problem *problem)
{
    struct by_tree_list list = {0};
    int error = by_phases_trees(&task->phases, &list, plan, problem);

    if (error == BY_ETIMEDOUT && by_fraction_compare(task->phases.equal, task->rate) > 0 &&
        task->phases.deadline > 0) {
        by_tree_list_free(&list);
        by_phases_equal(&task->phases);
        task->phases.deadline = task->deadline;
        task->hurried = true;
        error = by_phases_trees(&task->phases, &list, plan, problem);
    }
    if (error == BY_ETIMEDOUT) {
        by_tree_list_free(&list);
        task->hurried = true;
        return 0;
    }
    by_tree_list_free(&task->list);
    task->list = list;
    task->rate = task->phases.rate;
    return error;
}

/* Packs trees of parts that are connected only through one node. */
static int pack_parts(struct allreduce_task *task, const struct by_plan_options *options,
                      struct by_problem *problem)
{
    struct by_plan_options inner = *options;
    struct by_tree_list list = {0};
    struct by_packed packed;
    int error;

    if (!task->phases.symmetric || wants_pairs(task))
        return 0;
    if (task->deadline > 0) {
        inner.time_limit_s = task->deadline - by_plan_clock();
        if (inner.time_limit_s <= 0)
            return 0;
    }
    error = by_joint_pack(task->both, &inner, &list, &packed, problem);
    if (error) {
        by_tree_list_free(&list);
        packed.rate = (struct by_fraction){0, 1};
    }
    offer(task, &list, &packed);
    return error == BY_ERANGE ? error : 0; /* other errors: the whole is planned without parts */
}

static struct by_plan_gap make_gap(const struct allreduce_task *task)
{
    return (struct by_plan_gap){.both = task->both,
                                .up = task->up,
                                .down = task->down,
                                .pairs = wants_pairs(task),
                                .branching = has_branching(task),
                                .bound = task->bound,
                                .trees = &task->list,
                                .deadline = task->deadline};
}

/* The time at which a step must end that may use this part of the time left; 0: no limit. */
static double part_of_time(const struct allreduce_task *task, double part)
{
    double now = by_plan_clock();

    return task->deadline > 0 ? now + part * (task->deadline - now) : 0;
}

/* Packs trees, and finds a bound, with the programs of the options. */
static int pack_outside(struct allreduce_task *task, const struct by_plan_options *options, bool bound_only,
                        struct by_problem *problem)
{
    struct by_plan_gap gap = make_gap(task);
    struct by_tree_list list = {0};
    struct by_packed packed = {.rate = {0, 1}, .bound = {0, 1}};
    int error;

    gap.bound_only = bound_only;
    if (bound_only)
        gap.deadline = part_of_time(task, BOUND_TIME);
    else if (by_fraction_compare(task->rate, task->phases.rate) < 0)
        gap.deadline = part_of_time(task, TREES_TIME);
    error = options->programs(&gap, &list, &packed, problem);
    task->hurried |= by_plan_late(gap.deadline);
    if (error)
        packed.rate = (struct by_fraction){0, 1};
    task->firm |= packed.bound.num > 0;
    offer(task, &list, &packed);
    return error;
}

/* The hops between the farthest compute node and the node for which these are fewest. */
static uint32_t find_radius(const struct by_graph *graph)
{
    uint32_t n = graph->node_count, *hops = by_alloc(n, sizeof(*hops)), *queue = by_alloc(n, sizeof(*queue)),
             radius = UINT32_MAX;

    for (uint32_t start = 0; start < n; start++) {
        uint32_t head = 0, tail = 0, farthest = 0;

        memset(hops, 0xff, n * sizeof(*hops));
        hops[start] = 0;
        queue[tail++] = start;
        while (head < tail && farthest < radius) {
            uint32_t node = queue[head++];

            farthest = graph->compute[node] ? hops[node] : farthest;
            for (uint32_t i = graph->net->first[node]; i < graph->net->first[node + 1]; i++) {
                uint32_t other = graph->net->near[i].node;

                if (hops[other] == UINT32_MAX) {
                    hops[other] = hops[node] + 1;
                    queue[tail++] = other;
                }
            }
        }
        radius = farthest < radius ? farthest : radius;
    }
    free(hops);
    free(queue);
    return radius;
}

static uint32_t find_height(const struct by_tree_list *list, uint32_t node_count)
{
    uint32_t height = 0;

    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t hops = by_tree_list_height(list, i, node_count);

        height = hops > height ? hops : height;
    }
    return height;
}

/* Replaces trees that reach the bound but are more than twice as high as they must be by lower ones
 * of the programs of the options; by more of them only if these are lower by a quarter. */
static void pack_low(struct allreduce_task *task, const struct by_plan_options *options,
                     struct by_problem *problem)
{
    uint32_t n = task->both->node_count, high = find_height(&task->list, n), low;
    struct by_plan_gap gap = make_gap(task);
    struct by_tree_list list = {0};
    struct by_packed packed;
    int error;

    if (high <= 2 * find_radius(task->both))
        return;
    by_stage_begin(task->stage, "lowering trees", 0);
    gap.lower = true;
    error = options->programs(&gap, &list, &packed, problem);
    by_certificate_free(packed.proof);
    low = find_height(&list, n);
    if (!error && by_fraction_compare(packed.rate, task->rate) >= 0 && low < high &&
        (list.count <= task->list.count || (list.count <= FEW_TREES && 4 * low <= 3 * high))) {
        struct by_tree_list loser = task->list;

        task->list = list;
        list = loser;
    }
    by_tree_list_free(&list);
}

/* Makes trees without flows, by both quick methods, when the time limit has passed: they may be
 * better than those found. */
static int pack_first(struct allreduce_task *task, struct by_problem *problem)
{
    struct by_tree_list list = {0};
    struct by_packed packed = {.bound = {0, 1}};
    int error = pack_quickly(task, ROUNDS_LATE, 0);

    task->hurried = true;
    if (!error)
        error = by_first_both(task->both, task->up, task->down, wants_pairs(task), &list, &packed.rate);
    if (error) {
        by_tree_list_free(&list);
        return refuse_range(problem);
    }
    offer(task, &list, &packed);
    return task->rate.num > 0
               ? 0
               : by_problem_set(problem, BY_EINVAL, (struct by_place){0, 0},
                                "no node can be reached by all compute nodes and reach all of them; add the "
                                "missing link directions");
}

static int choose_trees(struct allreduce_task *task, const struct by_plan_options *options,
                        struct by_plan *plan, struct by_problem *problem)
{
    double start = by_plan_clock();
    bool branching = has_branching(task), low = false;
    int error = 0;

    bound_by_parts(task);
    if (branching) {
        by_stage_begin(task->stage, "filling links", 0);
        error = pack_quickly(task, ROUNDS_MAX, task->deadline);
    }
    if (!error && branching && options->programs && !by_plan_late(task->deadline) &&
        by_fraction_compare(task->rate, task->bound) < 0) {
        by_stage_begin(task->stage, "finding a bound", 0);
        error = pack_outside(task, options, true, problem);
        if (error)
            return error;
    }
    if (!error && branching && by_fraction_compare(task->rate, task->bound) < 0) {
        by_stage_begin(task->stage, "planning parts", 0);
        error = pack_parts(task, options, problem);
    }
    if (!error && by_fraction_compare(task->rate, task->bound) < 0 && !by_plan_late(task->deadline) &&
        (branching || by_fraction_compare(task->phases.rate, task->bound) < 0)) {
        by_stage_begin(task->stage, "improving trees", 0);
        if (options->programs) {
            error = pack_outside(task, options, false, problem);
            if (error)
                return error;
            low = true;
        }
        if ((!options->programs || !branching) && by_fraction_compare(task->rate, task->bound) < 0)
            error = pack_programs(task);
    }
    if (!error && branching && options->programs && !low && !by_plan_late(task->deadline) &&
        by_fraction_compare(task->rate, task->bound) >= 0)
        pack_low(task, options, problem);
    plan->seconds.pack += by_plan_clock() - start;
    if (error)
        return refuse_range(problem);
    if (by_fraction_compare(task->rate, task->phases.rate) < 0)
        error = pack_phases(task, plan, problem);
    if (!error && (task->rate.num == 0 || task->hurried) && by_fraction_compare(task->rate, task->bound) < 0)
        error = pack_first(task, problem);
    return error;
}

/* Stores the result in the plan. */
static int fill_plan(struct allreduce_task *task, struct by_plan *plan, struct by_problem *problem)
{
    const struct by_fraction unit = task->both->unit;

    by_tree_list_move(&task->list, plan);
    plan->proof = task->proof;
    plan->bound_is_firm = task->firm;
    if (by_fraction_multiply(task->rate, unit, &plan->achieved) != 0 ||
        by_fraction_multiply(task->bound, unit, &plan->optimum) != 0 ||
        by_fraction_multiply(task->phases.equal, unit, &plan->two_phases) != 0)
        return refuse_range(problem);
    return 0;
}

int by_allreduce_plan(const struct by_topology *topology, const struct by_plan_options *options,
                      struct by_plan *plan, struct by_problem *problem)
{
    struct allreduce_task task = {.both = by_graph_make(topology, BY_DIRECTION_BOTH, options->in_network),
                                  .up = by_graph_make(topology, BY_DIRECTION_UP, options->in_network),
                                  .down = by_graph_make(topology, BY_DIRECTION_DOWN, options->in_network),
                                  .rate = {0, 1}};
    double start = by_plan_clock(), half;
    int error;

    task.deadline = options->time_limit_s > 0 ? start + options->time_limit_s : 0;
    task.both->net->deadline = task.up->net->deadline = task.down->net->deadline = task.deadline;
    half = task.deadline > 0 ? start + options->time_limit_s / 2 : 0;
    task.stage = options->stage;
    by_stage_begin(task.stage, "finding the bottleneck", 0);
    error = find_cut(&task, plan, problem);
    if (!error)
        error = by_phases_find(task.both, task.up, task.down, half, &task.phases, problem);
    task.hurried |= task.phases.late;
    if (by_fraction_compare(task.phases.rate, task.phases.equal) == 0)
        task.phases.deadline = task.deadline; /* there is no quicker choice */
    task.phases.stage = task.stage;
    plan->seconds.optimum = by_plan_clock() - start;
    if (!error)
        error = choose_trees(&task, options, plan, problem);
    if (!error) {
        error = fill_plan(&task, plan, problem);
        plan->hurried =
            (task.hurried || by_plan_late(task.deadline)) && by_fraction_compare(task.rate, task.bound) < 0;
    } else {
        by_tree_list_free(&task.list);
        by_certificate_free(task.proof);
    }
    by_phases_free(&task.phases);
    by_graph_free(task.both);
    by_graph_free(task.up);
    by_graph_free(task.down);
    return error;
}

/* Computes all bounds of a fabric, collective by collective. See bound.h. */
#include "control/study/bound/bound.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/fabric/vary.h"
#include "control/planner/planner.h"
#include "control/study/bound/cuts.h"
#include "control/study/bound/pack.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Largest number of compute nodes for which the trees of every root are made. */
#define ALL_ROOTS_MAX 16u

struct bound_work {
    const struct by_topology *topology;
    const struct by_bound_options *options;
    double deadline; /* a time of by_plan_clock, 0 for none */
    struct by_bound *bound;
    struct by_problem *problem;
};

int by_bound_strip(const struct by_topology *topology, struct by_topology **stripped,
                   struct by_problem *problem)
{
    int error = by_topology_without(topology, NULL, NULL, stripped, problem);

    for (uint32_t i = 0; i < topology->node_count && !error; i++) {
        struct by_node *node = &(*stripped)->nodes[i];

        node->multicast = node->aggregate = false;
        node->aggregate_rate = (struct by_fraction){0, 1};
    }
    return error;
}

static int make_plan(const struct bound_work *work, unsigned collective, int64_t root, bool in_network,
                     struct by_plan **plan)
{
    struct by_plan_options options = {.collective = collective,
                                      .root = root,
                                      .in_network = in_network,
                                      .stage = work->options->stage,
                                      .programs = by_program_pack};

    if (work->deadline > 0) {
        options.time_limit_s = work->deadline - by_plan_clock();
        options.time_limit_s = options.time_limit_s > 0 ? options.time_limit_s : 1e-9;
    }
    return by_plan_make_whole(work->topology, &options, plan, work->problem);
}

static int check_plan(const struct bound_work *work, const struct by_plan *plan,
                      const struct by_topology *topology)
{
    return work->options->check ? work->options->check(plan, topology, work->problem) : 0;
}

/*
 * Finds the rate of the planner's trees. For collectives of one direction these trees reach their
 * bound without switch support. If no trees can exist, the reason is stored instead.
 */
static int reach(const struct bound_work *work, unsigned collective, int64_t root,
                 struct by_fraction *reached)
{
    struct by_plan *plan;
    int error = make_plan(work, collective, root, true, &plan);

    *reached = (struct by_fraction){0, 1};
    if (error == BY_EINVAL) {
        memcpy(work->bound->unreached, work->problem->text, sizeof(work->bound->unreached));
        return 0;
    }
    if (error)
        return error;
    error = check_plan(work, plan, work->topology);
    *reached = plan->achieved;
    by_plan_free(plan);
    return error;
}

static int bound_shared(const struct bound_work *work, unsigned collective, const struct by_graph *graph,
                        struct by_bound_shared *shared)
{
    int error = by_cuts_shared(graph, collective == BY_COLLECTIVE_REDUCE_SCATTER, shared, work->problem);

    return error ? error : reach(work, collective, -1, &shared->reached);
}

/* Whether an earlier root with the same bound has trees. */
static bool is_met(const struct by_bound_rooted *rooted, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (rooted->roots[i].reached.num > 0 &&
            by_fraction_compare(rooted->roots[i].bound, rooted->roots[index].bound) == 0)
            return true;
    return false;
}

/*
 * Finds every root's bound, and makes the trees of all roots, or of the first root of each bound.
 */
static int bound_rooted(const struct bound_work *work, unsigned collective, const struct by_graph *graph,
                        struct by_bound_rooted *rooted)
{
    int error = by_cuts_rooted(graph, collective == BY_COLLECTIVE_REDUCE, rooted, work->problem);
    bool all = work->options->all_roots || work->bound->compute_count <= ALL_ROOTS_MAX;

    for (uint32_t i = 0; i < rooted->root_count && !error && !work->bound->unreached[0]; i++)
        if (all || !is_met(rooted, i))
            error = reach(work, collective, rooted->roots[i].node, &rooted->roots[i].reached);
    return error;
}

/* Reduce followed by broadcast takes the time 1/a + 1/b at one root; finds the best root. */
static int reduce_and_broadcast(struct by_bound *bound, struct by_problem *problem)
{
    struct by_bound_allreduce *allreduce = &bound->allreduce;

    allreduce->re_bc = (struct by_fraction){0, 1};
    for (uint32_t i = 0; i < bound->broadcast.root_count && !bound->unreached[0]; i++) {
        struct by_fraction a = bound->reduce.roots[i].bound, b = bound->broadcast.roots[i].bound, sum, rate;

        if (by_fraction_add(a, b, &sum) != 0 || by_fraction_multiply(a, b, &rate) != 0 ||
            by_fraction_divide(rate, sum, &rate) != 0)
            return by_problem_set(problem, BY_ERANGE, (struct by_place){0, 0},
                                  "the rate of reduce and then broadcast needs more than 63 bits; round the "
                                  "bandwidths");
        if (by_fraction_compare(rate, allreduce->re_bc) <= 0)
            continue;
        allreduce->re_bc = rate;
        allreduce->re_bc_root = bound->broadcast.roots[i].node;
    }
    return 0;
}

/*
 * Which bound reduce-scatter followed by allgather reaches: theorem 19 of "Bandwidth Optimal
 * Pipeline Schedule". Condition (a), that a bottleneck has half of the compute nodes on each side,
 * means that the rate equals the cut-set bound. Condition (b), that one side is a single compute
 * node and no compute node has wider links, means that the rate equals the bound of processes.
 */
static enum by_bound_proved proved(const struct by_bound_allreduce *allreduce, bool capable)
{
    const struct by_plan *plan = allreduce->rate.plan;

    if (by_fraction_compare(allreduce->rs_ag, allreduce->cut_set) == 0)
        return BY_PROVED_CUT;
    if (!capable && by_fraction_compare(allreduce->rs_ag, allreduce->processes) == 0)
        return BY_PROVED_PROCESSES;
    return by_fraction_compare(allreduce->rs_ag, plan->optimum) == 0 ? BY_PROVED_TREES : BY_PROVED_NOT;
}

/* Marks the switches where tree edges meet: they add on the way up, and copy on the way down. */
static void mark_switches(const struct by_topology *topology, struct by_bound_allreduce *allreduce)
{
    const struct by_plan *plan = allreduce->in_network;
    uint32_t *children = by_alloc(topology->node_count, sizeof(*children));

    allreduce->sums = by_alloc(topology->node_count, sizeof(*allreduce->sums));
    allreduce->copies = by_alloc(topology->node_count, sizeof(*allreduce->copies));
    for (uint32_t i = 0; i < plan->tree_count; i++) {
        const struct by_tree *tree = &plan->trees[i];

        memset(children, 0, topology->node_count * sizeof(*children));
        for (uint32_t k = 0; k < tree->edge_count; k++)
            children[by_plan_edge(plan, tree, k).nodes[0]]++;
        for (uint32_t node = 0; node < topology->node_count; node++)
            if (!topology->nodes[node].compute && children[node] > 1) {
                allreduce->sums[node] |= tree->use != BY_TREE_DOWN;
                allreduce->copies[node] |= tree->use != BY_TREE_UP;
            }
    }
    for (uint32_t node = 0; node < topology->node_count; node++) {
        allreduce->sum_count += allreduce->sums[node];
        allreduce->copy_count += allreduce->copies[node];
    }
    free(children);
}

/* Plans trees that may start and branch at switches. */
static int plan_in_network(const struct bound_work *work)
{
    struct by_plan **plan = &work->bound->allreduce.in_network;
    int error = make_plan(work, BY_COLLECTIVE_ALLREDUCE, -1, true, plan);

    if (error == BY_EINVAL) {
        memcpy(work->bound->unreached, work->problem->text, sizeof(work->bound->unreached));
        return 0;
    }
    return error ? error : check_plan(work, *plan, work->topology);
}

static int bound_allreduce(const struct bound_work *work, const struct by_graph *graph)
{
    struct by_bound_allreduce *allreduce = &work->bound->allreduce;
    bool capable = work->bound->capable_count > 0;
    struct by_topology *stripped = NULL;
    int error = by_cuts_allreduce(graph, &allreduce->cut_set, &allreduce->cut, work->problem);

    if (!error)
        error = by_cuts_processes(graph, &allreduce->processes, &allreduce->process, work->problem);
    if (!error)
        error = by_cuts_links(graph, &allreduce->links, work->problem);
    if (!error)
        error = reduce_and_broadcast(work->bound, work->problem);
    if (!error)
        error = by_bound_strip(work->topology, &stripped, work->problem);
    if (!error)
        error = by_rate_find(stripped, work->deadline, &allreduce->rate, work->problem);
    if (!error && allreduce->rate.plan->achieved.num > 0)
        error = check_plan(work, allreduce->rate.plan, stripped);
    if (!error && capable)
        error = plan_in_network(work);
    by_topology_free(stripped);
    if (error)
        return error;
    allreduce->rs_ag = (struct by_fraction){0, 1};
    if (work->bound->allgather.reached.num > 0 && work->bound->reduce_scatter.reached.num > 0) {
        allreduce->rs_ag = allreduce->rate.plan->two_phases;
        allreduce->rs_ag_proved = proved(allreduce, capable);
    }
    if (allreduce->in_network)
        mark_switches(work->topology, allreduce);
    return 0;
}

int by_bound_make(const struct by_topology *topology, const struct by_bound_options *options,
                  struct by_bound **bound, struct by_problem *problem)
{
    double start = by_plan_clock();
    struct by_graph *up, *down;
    struct bound_work work = {.topology = topology, .options = options, .problem = problem};
    int error = 0;

    *bound = NULL;
    if (by_topology_compute_count(topology) < 2)
        return by_problem_set(problem, BY_EINVAL, (struct by_place){0, 0},
                              "the fabric has one compute node; a collective needs at least two");
    up = by_graph_make(topology, BY_DIRECTION_UP, false);
    down = by_graph_make(topology, BY_DIRECTION_DOWN, false);
    work.deadline = options->time_limit_s > 0 ? start + options->time_limit_s : 0;
    work.bound = by_alloc(1, sizeof(*work.bound));
    work.bound->compute_count = by_topology_compute_count(topology);
    for (uint32_t i = 0; i < topology->node_count; i++)
        work.bound->capable_count += topology->nodes[i].multicast || topology->nodes[i].aggregate;
    error = bound_shared(&work, BY_COLLECTIVE_ALLGATHER, down, &work.bound->allgather);
    if (!error)
        error = bound_shared(&work, BY_COLLECTIVE_REDUCE_SCATTER, up, &work.bound->reduce_scatter);
    if (!error)
        error = bound_rooted(&work, BY_COLLECTIVE_BROADCAST, down, &work.bound->broadcast);
    if (!error)
        error = bound_rooted(&work, BY_COLLECTIVE_REDUCE, up, &work.bound->reduce);
    if (!error)
        error = bound_allreduce(&work, down);
    by_graph_free(up);
    by_graph_free(down);
    work.bound->seconds = by_plan_clock() - start;
    if (error)
        by_bound_free(work.bound);
    else
        *bound = work.bound;
    return error;
}

static void free_rooted(struct by_bound_rooted *rooted)
{
    for (uint32_t i = 0; i < rooted->cut_count; i++)
        by_bound_cut_free(&rooted->cuts[i]);
    free(rooted->cuts);
    free(rooted->roots);
}

void by_bound_free(struct by_bound *bound)
{
    if (!bound)
        return;
    by_bound_cut_free(&bound->allgather.cut);
    by_bound_cut_free(&bound->reduce_scatter.cut);
    free_rooted(&bound->broadcast);
    free_rooted(&bound->reduce);
    by_bound_cut_free(&bound->allreduce.cut);
    by_rate_free(&bound->allreduce.rate);
    by_plan_free(bound->allreduce.in_network);
    free(bound->allreduce.sums);
    free(bound->allreduce.copies);
    free(bound);
}

struct by_fraction by_bound_reached(const struct by_bound_allreduce *allreduce)
{
    struct by_fraction reached = allreduce->rate.plan->achieved;

    if (allreduce->in_network && by_fraction_compare(allreduce->in_network->achieved, reached) > 0)
        reached = allreduce->in_network->achieved;
    return reached;
}

struct by_fraction by_bound_least(const struct by_bound_allreduce *allreduce)
{
    return allreduce->in_network ? allreduce->in_network->optimum : allreduce->rate.plan->optimum;
}

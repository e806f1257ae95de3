/* Cuts of a fabric, for each collective. See cuts.h. */
#include "control/study/bound/cuts.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/planner/flow/flow.h"
#include "control/planner/optimum/optimum.h"
#include "offload/base/errors.h"

static int refuse_range(struct by_problem *problem)
{
    return by_problem_set(problem, BY_ERANGE, (struct by_place){0, 0},
                          "an exact bound needs more than 63 bits; round the bandwidths");
}

/*
 * Stores the cut across which data must enter `inside` in the graph's direction. The stored set is
 * the one that data must leave; in a transposed graph that is `inside` itself.
 */
static int keep_cut(const struct by_graph *graph, bool up, const bool *inside, struct by_bound_cut *cut,
                    struct by_problem *problem)
{
    *cut = (struct by_bound_cut){.nodes = by_alloc(graph->node_count, sizeof(*cut->nodes))};
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (inside[i] != up)
            continue;
        cut->nodes[cut->count++] = i;
        cut->compute_count += graph->compute[i];
    }
    if (by_fraction_multiply(graph->unit, (struct by_fraction){by_graph_entering_set(graph, inside), 1},
                             &cut->exiting) != 0)
        return refuse_range(problem);
    return 0;
}

void by_bound_cut_free(struct by_bound_cut *cut)
{
    free(cut->nodes);
    *cut = (struct by_bound_cut){0};
}

int by_cuts_shared(const struct by_graph *graph, bool up, struct by_bound_shared *shared,
                   struct by_problem *problem)
{
    bool *inside = by_alloc(graph->node_count, sizeof(*inside));
    int64_t p = 1, q = 1;
    int error = by_optimum_allgather(graph, &p, &q, inside, problem);

    if (!error && (by_fraction_divide((struct by_fraction){p, q}, graph->unit, &shared->inv_x) != 0 ||
                   by_fraction_divide((struct by_fraction){graph->compute_count, 1}, shared->inv_x,
                                      &shared->bound) != 0))
        error = refuse_range(problem);
    if (!error)
        error = keep_cut(graph, up, inside, &shared->cut, problem);
    free(inside);
    return error;
}

int by_cuts_allreduce(const struct by_graph *graph, struct by_fraction *bound, struct by_bound_cut *cut,
                      struct by_problem *problem)
{
    bool *inside = by_alloc(graph->node_count, sizeof(*inside));
    int64_t rate = 0;
    int error = by_optimum_allreduce(graph, &rate, inside, problem);

    if (!error)
        error = keep_cut(graph, false, inside, cut, problem);
    if (!error)
        *bound = cut->exiting;
    free(inside);
    return error;
}

static int add_cut(const struct by_graph *graph, bool up, const bool *inside, struct by_bound_rooted *rooted,
                   uint32_t *room, struct by_problem *problem)
{
    BY_GROW(rooted->cuts, rooted->cut_count, *room);
    return keep_cut(graph, up, inside, &rooted->cuts[rooted->cut_count++], problem);
}

/* Assigns a minimum cut to the roots that it limits: those outside of it. */
static void serve(const struct by_graph *graph, const bool *inside, uint32_t cut, uint32_t *cut_of)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->compute[i] && !inside[i])
            cut_of[i] = cut;
}

/*
 * The minimum cut of the fabric limits every root outside of it. The roots inside are examined one
 * by one. If every node has equal capacity in and out, all roots have the same rate, so the cut of
 * one root can limit others too.
 */
int by_cuts_rooted(const struct by_graph *graph, bool up, struct by_bound_rooted *rooted,
                   struct by_problem *problem)
{
    uint32_t n = graph->node_count, room = 0, *cut_of = by_alloc(n, sizeof(*cut_of));
    bool *inside = by_alloc(n, sizeof(*inside)), balanced = true;
    int64_t rate = 0;
    int error = 0;

    rooted->roots = by_alloc(graph->compute_count, sizeof(*rooted->roots));
    for (uint32_t i = 0; i < n; i++) {
        balanced &= by_graph_entering(graph, i) == by_graph_leaving(graph, i);
        cut_of[i] = UINT32_MAX;
    }
    error = by_optimum_allreduce(graph, &rate, inside, problem);
    if (!error)
        error = add_cut(graph, up, inside, rooted, &room, problem);
    if (!error)
        serve(graph, inside, 0, cut_of);
    for (uint32_t root = 0; root < n && !error; root++) {
        if (!graph->compute[root] || cut_of[root] != UINT32_MAX)
            continue;
        error = by_optimum_broadcast(graph, root, &rate, inside, problem);
        if (!error)
            error = add_cut(graph, up, inside, rooted, &room, problem);
        cut_of[root] = rooted->cut_count - 1;
        if (balanced && !error)
            serve(graph, inside, cut_of[root], cut_of);
    }
    for (uint32_t i = 0; i < n && !error; i++)
        if (graph->compute[i]) {
            struct by_fraction bound = rooted->cuts[cut_of[i]].exiting;

            rooted->roots[rooted->root_count++] = (struct by_bound_root){i, bound, {0, 1}, cut_of[i]};
        }
    free(cut_of);
    free(inside);
    return error;
}

/*
 * Returns the greatest of the compute nodes' minimum cuts. The minimum cut of a compute node
 * separates it from all others, for data that leaves it (or enters it, with `into`).
 */
static int64_t widest_process(const struct by_graph *graph, bool into, uint32_t *process)
{
    uint32_t n = graph->node_count, *other = by_alloc(n, sizeof(*other));
    struct by_flow *flow = by_flow_new(n + 1);
    int64_t widest = 0;

    for (uint32_t half = 0; half < 2 * graph->net->pair_count; half++) {
        uint32_t from = graph->net->tail[half], to = by_mesh_head(graph->net, half);

        if (graph->net->capacity[half] > 0)
            by_flow_add(flow, into ? to : from, into ? from : to, graph->net->capacity[half]);
    }
    for (uint32_t i = 0; i < n; i++)
        other[i] = graph->compute[i] ? by_flow_add(flow, i, n, BY_FLOW_INFINITE) : 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t found;

        if (!graph->compute[i])
            continue;
        by_flow_set(flow, other[i], 0);
        found = by_flow_run(flow, i, n, BY_FLOW_INFINITE);
        by_flow_set(flow, other[i], BY_FLOW_INFINITE);
        if (found > widest) {
            widest = found;
            *process = i;
        }
    }
    by_flow_free(flow);
    free(other);
    return widest;
}

/* The bound N / (2 (N - 1)) * `amount` / `count`, with `amount` in the graph's unit. */
static int share_of(const struct by_graph *graph, int64_t amount, int64_t count, struct by_fraction *bound,
                    struct by_problem *problem)
{
    __int128 den = (__int128)2 * (graph->compute_count - 1) * count;

    if (by_fraction_set((__int128)amount * graph->compute_count, den, bound) != 0 ||
        by_fraction_multiply(*bound, graph->unit, bound) != 0)
        return refuse_range(problem);
    return 0;
}

int by_cuts_processes(const struct by_graph *graph, struct by_fraction *bound, uint32_t *process,
                      struct by_problem *problem)
{
    uint32_t receiver = 0;
    int64_t sends = widest_process(graph, false, process), receives = widest_process(graph, true, &receiver);

    if (receives < sends) {
        sends = receives;
        *process = receiver;
    }
    return share_of(graph, sends, 1, bound, problem);
}

int by_cuts_links(const struct by_graph *graph, struct by_fraction *bound, struct by_problem *problem)
{
    int64_t leaving = 0, entering = 0;

    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->compute[i]) {
            leaving += by_graph_leaving(graph, i);
            entering += by_graph_entering(graph, i);
        }
    return share_of(graph, leaving < entering ? leaving : entering, graph->compute_count, bound, problem);
}

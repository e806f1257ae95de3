/*
 * Breadth-first broadcast (Zhao et al., "Efficient Direct-Connect Topologies for Collective
 * Communications", NSDI 2025). See baseline.h.
 *
 * Allgather in steps: in step t every node receives the shards of all nodes at distance t, from
 * neighbours at distance t - 1 of them, divided over these neighbours so that the fullest of its
 * links carries as little as possible. That is a program for each node and step alone: the least
 * time T is the greatest |J| / (bandwidth of the links that can bring shards of J) over sets J of
 * shards. A maximum flow tests a T and gives the set that violates it (Dinkelbach 1967).
 * Reduce-scatter is an allgather on reversed links, allreduce is both.
 */
#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/planner/flow/flow.h"
#include "control/study/baseline/baseline.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

#define FAR UINT16_MAX

struct bfb {
    struct by_baseline_task *task;
    const struct by_baseline_net *net;
    uint32_t n;
    uint16_t *distance; /* [root * node_count + node]: hops between ranks, without switches */
    uint32_t depth;
};

/* Searches from a rank through compute nodes only. Returns the number of ranks found. */
static uint32_t search(struct bfb *bfb, uint32_t root)
{
    const struct by_baseline_net *net = bfb->net;
    uint16_t *distance = bfb->distance + (size_t)root * net->node_count;
    uint32_t head = 0, tail = 0;

    for (uint32_t i = 0; i < net->node_count; i++)
        distance[i] = FAR;
    net->queue[tail++] = net->compute[root];
    distance[net->compute[root]] = 0;
    while (head < tail) {
        uint32_t node = net->queue[head++];

        for (uint32_t a = net->first[node]; a < net->first[node + 1]; a++) {
            uint32_t to = net->arcs[a].to;

            if (!net->topology->nodes[to].compute || distance[to] != FAR)
                continue;
            distance[to] = (uint16_t)(distance[node] + 1);
            bfb->depth = distance[to] > bfb->depth ? distance[to] : bfb->depth;
            net->queue[tail++] = to;
        }
    }
    return tail;
}

/* Raises `time` (shards in a unit of capacity) until the links of `node` carry all shards of a
 * step. */
static int raise_time(const struct bfb *bfb, uint32_t node, uint32_t step, struct by_fraction *time)
{
    const struct by_baseline_net *net = bfb->net;
    uint32_t in = 0, jobs = 0, n = bfb->n;
    uint32_t *links = by_alloc(net->node_count, sizeof(*links)); /* arcs into the node */
    uint32_t *shards = by_alloc(n, sizeof(*shards));
    uint32_t *sinks, *sources;
    struct by_flow *flow;
    bool *side;
    int error = 0;

    for (uint32_t r = 0; r < n; r++)
        if (bfb->distance[(size_t)r * net->node_count + node] == step)
            shards[jobs++] = r;
    for (uint32_t i = 0; i < n && jobs > 0; i++) {
        uint32_t arc = net->compute[i] == node ? BY_NET_NO_ARC : by_net_arc(net, net->compute[i], node);

        if (arc != BY_NET_NO_ARC)
            links[in++] = arc;
    }
    flow = by_flow_new(2 + jobs + in); /* 0 source, 1 sink, shards, links */
    sources = by_alloc(jobs, sizeof(*sources));
    sinks = by_alloc(in, sizeof(*sinks));
    side = by_alloc(2u + jobs + in, sizeof(*side));
    for (uint32_t j = 0; j < jobs; j++)
        sources[j] = by_flow_add(flow, 0, 2 + j, 0);
    for (uint32_t l = 0; l < in; l++) {
        sinks[l] = by_flow_add(flow, 2 + jobs + l, 1, 0);
        for (uint32_t j = 0; j < jobs; j++)
            if (bfb->distance[(size_t)shards[j] * net->node_count + net->arcs[links[l]].from] + 1u == step)
                by_flow_add(flow, 2 + j, 2 + jobs + l, BY_FLOW_INFINITE);
    }
    while (jobs > 0 && error == 0) {
        int64_t need = (int64_t)jobs * time->den, count = 0;
        __int128 wide = 0, all = 0;

        for (uint32_t l = 0; l < in; l++)
            all += net->arcs[links[l]].capacity;
        if (all * time->num >= BY_FLOW_INFINITE || (__int128)jobs * time->den >= BY_FLOW_INFINITE) {
            error = BY_ERANGE;
            break;
        }
        for (uint32_t j = 0; j < jobs; j++)
            by_flow_set(flow, sources[j], time->den);
        for (uint32_t l = 0; l < in; l++)
            by_flow_set(flow, sinks[l], net->arcs[links[l]].capacity * time->num);
        if (by_flow_run(flow, 0, 1, need) >= need)
            break;
        by_flow_source_side(flow, side);
        for (uint32_t j = 0; j < jobs; j++)
            count += side[2 + j];
        for (uint32_t l = 0; l < in; l++)
            if (side[2 + jobs + l])
                wide += net->arcs[links[l]].capacity;
        error = by_fraction_set(count, wide, time);
    }
    by_flow_free(flow);
    free(links);
    free(shards);
    free(sources);
    free(sinks);
    free(side);
    return error;
}

/* Adds the time of an allgather on a net, in shards in a unit of capacity. */
static int gather(struct by_baseline_task *task, const struct by_baseline_net *net, struct by_fraction *total,
                  uint32_t *rounds)
{
    struct bfb bfb = {.task = task, .net = net, .n = net->compute_count};
    int error = 0;

    bfb.distance = by_alloc((size_t)bfb.n * net->node_count, sizeof(*bfb.distance));
    for (uint32_t r = 0; r < bfb.n && error == 0; r++)
        if (search(&bfb, r) < bfb.n)
            error = by_problem_say(task->problem, BY_EUNSUPPORTED,
                                   "only on direct links between hosts: '%s' does not reach all by them",
                                   net->topology->nodes[net->compute[r]].name);
    for (uint32_t step = 1; step <= bfb.depth && error == 0; step++) {
        struct by_fraction time = {0, 1};

        for (uint32_t i = 0; i < bfb.n && error == 0; i++) {
            error = by_task_late(task) ? BY_ETIMEDOUT : raise_time(&bfb, net->compute[i], step, &time);
            if (error == BY_ERANGE)
                by_problem_say(task->problem, error, "a time needs more than 63 bits; round the bandwidths");
        }
        if (error == 0 && by_fraction_add(*total, time, total) != 0)
            error = by_problem_say(task->problem, BY_ERANGE,
                                   "the time of the steps needs more than 63 bits; round the bandwidths");
    }
    *rounds += bfb.depth;
    free(bfb.distance);
    return error;
}

int by_baseline_bfb(struct by_baseline_task *task, struct by_sketch_facts *facts, uint32_t *rounds)
{
    return by_task_gather(task, "bfb", gather, 1, facts, rounds);
}

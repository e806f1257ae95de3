/* Dinic's maximum flow on a residual network in arrays, without recursion. See flow.h. */
#include "control/planner/flow/flow.h"

#include "control/base/alloc.h"
#include "offload/base/assert.h"

#define NO_ARC   UINT32_MAX
#define NO_LEVEL UINT32_MAX

/* Arc number a is the pair of half arcs 2a (forward) and 2a + 1 (backward). */
struct flow_half {
    uint32_t to;
    uint32_t next; /* next half arc of the same tail */
};

struct by_flow {
    uint32_t node_count;
    uint32_t half_count;
    uint32_t half_room;
    struct flow_half *halves;
    int64_t *residual;
    uint32_t capacity_count;
    uint32_t capacity_room;
    int64_t *capacity; /* by arc */
    uint32_t *first;   /* by node */
    uint32_t *level;   /* by node: distance to the sink */
    uint32_t *current; /* by node: the half arc to try next */
    uint32_t *queue;
    uint32_t *path; /* half arcs from the source to the current node of the search */
    uint32_t source;
    uint32_t sink;
};

struct by_flow *by_flow_new(uint32_t node_count)
{
    struct by_flow *flow = by_alloc(1, sizeof(*flow));

    flow->node_count = node_count;
    flow->first = by_alloc(node_count, sizeof(*flow->first));
    flow->level = by_alloc(node_count, sizeof(*flow->level));
    flow->current = by_alloc(node_count, sizeof(*flow->current));
    flow->queue = by_alloc(node_count, sizeof(*flow->queue));
    flow->path = by_alloc(node_count, sizeof(*flow->path));
    for (uint32_t i = 0; i < node_count; i++)
        flow->first[i] = NO_ARC;
    return flow;
}

void by_flow_free(struct by_flow *flow)
{
    if (!flow)
        return;
    free(flow->halves);
    free(flow->residual);
    free(flow->capacity);
    free(flow->first);
    free(flow->level);
    free(flow->current);
    free(flow->queue);
    free(flow->path);
    free(flow);
}

static void add_half(struct by_flow *flow, uint32_t from, uint32_t to)
{
    if (flow->half_count == flow->half_room) {
        flow->half_room = flow->half_room ? flow->half_room * 2 : 64;
        flow->halves = by_realloc(flow->halves, flow->half_room, sizeof(*flow->halves));
        flow->residual = by_realloc(flow->residual, flow->half_room, sizeof(*flow->residual));
    }
    flow->halves[flow->half_count] = (struct flow_half){to, flow->first[from]};
    flow->first[from] = flow->half_count++;
}

uint32_t by_flow_add(struct by_flow *flow, uint32_t from, uint32_t to, int64_t capacity)
{
    BY_ASSERT(from < flow->node_count && to < flow->node_count);
    BY_ASSERT(capacity >= 0 && capacity <= BY_FLOW_INFINITE);
    BY_GROW(flow->capacity, flow->capacity_count, flow->capacity_room);
    flow->capacity[flow->capacity_count] = capacity;
    add_half(flow, from, to);
    add_half(flow, to, from);
    return flow->capacity_count++;
}

void by_flow_set(struct by_flow *flow, uint32_t arc, int64_t capacity)
{
    BY_ASSERT(arc < flow->capacity_count);
    BY_ASSERT(capacity >= 0 && capacity <= BY_FLOW_INFINITE);
    flow->capacity[arc] = capacity;
}

int64_t by_flow_capacity(const struct by_flow *flow, uint32_t arc)
{
    BY_ASSERT(arc < flow->capacity_count);
    return flow->capacity[arc];
}

/* Labels nodes with their distance to the sink, until the source has one. */
static bool find_levels(struct by_flow *flow)
{
    uint32_t head = 0, tail = 0;

    for (uint32_t i = 0; i < flow->node_count; i++)
        flow->level[i] = NO_LEVEL;
    flow->level[flow->sink] = 0;
    flow->queue[tail++] = flow->sink;
    while (head < tail && flow->level[flow->source] == NO_LEVEL) {
        uint32_t node = flow->queue[head++];

        for (uint32_t half = flow->first[node]; half != NO_ARC; half = flow->halves[half].next) {
            uint32_t to = flow->halves[half].to;

            if (flow->level[to] == NO_LEVEL && flow->residual[half ^ 1] > 0) {
                flow->level[to] = flow->level[node] + 1;
                flow->queue[tail++] = to;
            }
        }
    }
    return flow->level[flow->source] != NO_LEVEL;
}

/* Sends as much as the path in `flow->path` can carry. Returns the amount and sets `*depth` to the
 * position of the first saturated arc. */
static int64_t push_path(struct by_flow *flow, uint32_t *depth, int64_t wanted)
{
    uint32_t length = *depth;
    int64_t amount = wanted;

    for (uint32_t i = 0; i < length; i++)
        if (flow->residual[flow->path[i]] < amount)
            amount = flow->residual[flow->path[i]];
    for (uint32_t i = length; i-- > 0;) {
        flow->residual[flow->path[i]] -= amount;
        flow->residual[flow->path[i] ^ 1] += amount;
        if (flow->residual[flow->path[i]] == 0)
            *depth = i;
    }
    return amount;
}

/* A blocking flow in the level graph, of at most `wanted`. */
static int64_t block(struct by_flow *flow, int64_t wanted)
{
    uint32_t depth = 0, node = flow->source;
    int64_t total = 0;

    memcpy(flow->current, flow->first, flow->node_count * sizeof(*flow->current));
    for (;;) {
        uint32_t half;

        if (node == flow->sink) {
            total += push_path(flow, &depth, wanted - total);
            if (total == wanted)
                return total;
            node = depth ? flow->halves[flow->path[depth - 1]].to : flow->source;
            continue;
        }
        for (half = flow->current[node]; half != NO_ARC; half = flow->halves[half].next)
            if (flow->residual[half] > 0 && flow->level[flow->halves[half].to] < flow->level[node])
                break;
        flow->current[node] = half;
        if (half != NO_ARC) {
            flow->path[depth++] = half;
            node = flow->halves[half].to;
            continue;
        }
        flow->level[node] = NO_LEVEL;
        if (depth == 0)
            return total;
        depth--;
        node = flow->halves[flow->path[depth] ^ 1].to;
    }
}

int64_t by_flow_run(struct by_flow *flow, uint32_t source, uint32_t sink, int64_t limit)
{
    int64_t total = 0;

    BY_ASSERT(source < flow->node_count && sink < flow->node_count && source != sink);
    BY_ASSERT(limit >= 0 && limit <= BY_FLOW_INFINITE);
    flow->source = source;
    flow->sink = sink;
    for (uint32_t arc = 0; arc < flow->capacity_count; arc++) {
        flow->residual[2 * arc] = flow->capacity[arc];
        flow->residual[2 * arc + 1] = 0;
    }
    while (total < limit && find_levels(flow))
        total += block(flow, limit - total);
    return total;
}

int64_t by_flow_amount(const struct by_flow *flow, uint32_t arc)
{
    BY_ASSERT(arc < flow->capacity_count);
    return flow->residual[2 * arc + 1];
}

/* Marks the nodes that residual arcs connect to `start`, followed forward or backward. */
static void mark_side(const struct by_flow *flow, uint32_t start, uint32_t reversed, bool *side)
{
    uint32_t head = 0, tail = 0;

    memset(side, 0, flow->node_count * sizeof(*side));
    side[start] = true;
    flow->queue[tail++] = start;
    while (head < tail) {
        uint32_t node = flow->queue[head++];

        for (uint32_t half = flow->first[node]; half != NO_ARC; half = flow->halves[half].next) {
            uint32_t to = flow->halves[half].to;

            if (!side[to] && flow->residual[half ^ reversed] > 0) {
                side[to] = true;
                flow->queue[tail++] = to;
            }
        }
    }
}

void by_flow_sink_side(const struct by_flow *flow, bool *side)
{
    mark_side(flow, flow->sink, 1, side);
}

void by_flow_source_side(const struct by_flow *flow, bool *side)
{
    mark_side(flow, flow->source, 0, side);
}

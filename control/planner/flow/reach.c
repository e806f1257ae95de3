/* Rooted connectivity by local flows. See reach.h. */
#include "control/planner/flow/reach.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "offload/base/assert.h"

#define NODE_BIT 0x80000000u
/* Rounds on shortest paths, before the search uses the source wherever it meets it (count). */
#define SHORTEST_ROUNDS 6u

struct by_reach *by_reach_new(const struct by_mesh *net)
{
    struct by_reach *reach = by_alloc(1, sizeof(*reach));
    uint32_t n = net->node_count, halves = 2 * net->pair_count;

    reach->net = net;
    reach->capacity = by_alloc(halves, sizeof(*reach->capacity));
    reach->left = by_alloc(halves, sizeof(*reach->left));
    reach->root = by_alloc(n, sizeof(*reach->root));
    reach->root_left = by_alloc(n, sizeof(*reach->root_left));
    reach->contracted = by_alloc(n, sizeof(*reach->contracted));
    reach->level = by_alloc(n, sizeof(*reach->level));
    reach->current = by_alloc(n, sizeof(*reach->current));
    reach->queue = by_alloc(n, sizeof(*reach->queue));
    reach->frames = by_alloc(n + 1, sizeof(*reach->frames));
    if (halves > 0) {
        memcpy(reach->capacity, net->capacity, halves * sizeof(*reach->capacity));
        memcpy(reach->left, net->capacity, halves * sizeof(*reach->left));
    }
    return reach;
}

void by_reach_free(struct by_reach *reach)
{
    if (!reach)
        return;
    free(reach->capacity);
    free(reach->left);
    free(reach->root);
    free(reach->root_left);
    free(reach->contracted);
    free(reach->level);
    free(reach->current);
    free(reach->queue);
    free(reach->frames);
    free(reach->touched);
    free(reach);
}

static void touch(struct by_reach *reach, uint32_t what)
{
    BY_GROW(reach->touched, reach->touched_count, reach->touched_room);
    reach->touched[reach->touched_count++] = what;
}

/* Undoes the last flow. */
static void restore(struct by_reach *reach)
{
    for (uint32_t i = 0; i < reach->touched_count; i++) {
        uint32_t what = reach->touched[i];

        if (what & NODE_BIT) {
            reach->root_left[what ^ NODE_BIT] = reach->root[what ^ NODE_BIT];
        } else {
            reach->left[2 * what] = reach->capacity[2 * what];
            reach->left[2 * what + 1] = reach->capacity[2 * what + 1];
        }
    }
    reach->touched_count = 0;
}

void by_reach_set(struct by_reach *reach, uint32_t half, int64_t capacity)
{
    BY_ASSERT(capacity >= 0);
    reach->capacity[half] = capacity;
    if (reach->touched_count)
        touch(reach, half / 2); /* both halves are reset to their capacities before the next query */
    else
        reach->left[half] = capacity;
}

void by_reach_set_root(struct by_reach *reach, uint32_t node, int64_t amount)
{
    BY_ASSERT(amount >= 0);
    reach->root[node] = amount;
    if (reach->touched_count)
        touch(reach, node | NODE_BIT);
    else
        reach->root_left[node] = amount;
}

static void next_round(struct by_reach *reach)
{
    if (++reach->round == 0) {
        memset(reach->level, 0, reach->net->node_count * sizeof(*reach->level));
        reach->round = 1;
    }
}

static void label(struct by_reach *reach, uint32_t node, uint32_t distance)
{
    reach->level[node] = (uint64_t)reach->round << 32 | distance;
    reach->current[node] = reach->net->first[node];
    reach->queue[reach->queue_count++] = node;
}

/* Labels nodes with their distance to `node`; with `shortest`, only up to the distance at which the
 * source is first met. Returns that distance, or UINT32_MAX when the source is not met. */
static uint32_t find_levels(struct by_reach *reach, uint32_t node, bool shortest)
{
    const struct by_mesh *net = reach->net;
    uint32_t met = UINT32_MAX;

    next_round(reach);
    reach->queue_count = 0;
    label(reach, node, 0);
    for (uint32_t head = 0; head < reach->queue_count; head++) {
        uint32_t at = reach->queue[head], distance = (uint32_t)reach->level[at];

        if (reach->root_left[at] > 0 && met == UINT32_MAX) {
            met = distance;
            if (shortest)
                return met;
        }
        for (uint32_t i = net->first[at]; i < net->first[at + 1]; i++) {
            const struct by_near *near = &net->near[i];

            if (reach->left[near->half] == 0 || by_reach_inside(reach, near->node))
                continue;
            if (!reach->contracted[near->node]) {
                label(reach, near->node, distance + 1);
            } else if (met == UINT32_MAX) {
                met = distance;
                if (shortest)
                    return met;
            }
        }
    }
    return met;
}

/* Sends flow from the source directly to the frame's node. */
static void take_root(struct by_reach *reach, struct by_reach_frame *frame)
{
    int64_t amount = reach->root_left[frame->node];

    amount = amount < frame->want - frame->got ? amount : frame->want - frame->got;
    if (amount > 0) {
        reach->root_left[frame->node] -= amount;
        frame->got += amount;
        touch(reach, frame->node | NODE_BIT);
    }
}

static void move(struct by_reach *reach, uint32_t half, int64_t amount)
{
    reach->left[half] -= amount;
    reach->left[half ^ 1] += amount;
    touch(reach, half / 2);
}

/* Finds the next neighbour to visit from the frame. Capacity from contracted neighbours is used up
 * on the way. */
static bool advance(struct by_reach *reach, struct by_reach_frame *frame, uint32_t met, bool shortest,
                    const struct by_near **next)
{
    const struct by_mesh *net = reach->net;
    uint32_t at = frame->node, distance = (uint32_t)reach->level[at];
    bool at_source = !shortest || distance == met;

    for (; reach->current[at] < net->first[at + 1]; reach->current[at]++) {
        const struct by_near *near = &net->near[reach->current[at]];
        int64_t left = reach->left[near->half];

        if (left == 0)
            continue;
        if (reach->contracted[near->node]) {
            if (!at_source)
                continue;
            left = left < frame->want - frame->got ? left : frame->want - frame->got;
            move(reach, near->half, left);
            frame->got += left;
            if (frame->got == frame->want)
                return false;
        } else if ((!shortest || distance < met) && by_reach_inside(reach, near->node) &&
                   (uint32_t)reach->level[near->node] == distance + 1) {
            *next = near;
            return true;
        }
    }
    return false;
}

/* Finds a blocking flow of at most `wanted` in the levels found. Each node returns the amount that
 * it gathered to the node before it. */
static int64_t gather(struct by_reach *reach, uint32_t node, int64_t wanted, uint32_t met, bool shortest)
{
    struct by_reach_frame *frame = reach->frames;

    *frame = (struct by_reach_frame){node, UINT32_MAX, wanted, 0};
    take_root(reach, frame);
    for (;;) {
        const struct by_near *next;

        if (frame->got < frame->want && advance(reach, frame, met, shortest, &next)) {
            int64_t room = frame->want - frame->got, left = reach->left[next->half];

            frame++;
            *frame = (struct by_reach_frame){next->node, next->half, left < room ? left : room, 0};
            if (!shortest || (uint32_t)reach->level[next->node] == met)
                take_root(reach, frame);
            continue;
        }
        if (frame == reach->frames)
            return frame->got;
        if (frame->got > 0)
            move(reach, frame->half, frame->got);
        frame[-1].got += frame->got;
        /* A node that gathered less than wanted is exhausted: the one before it tries its next
         * neighbour. */
        if (frame->got < frame->want)
            reach->current[frame[-1].node]++;
        frame--;
    }
}

int64_t by_reach_flow(struct by_reach *reach, uint32_t node, int64_t limit)
{
    int64_t total = 0;

    BY_ASSERT(!reach->contracted[node] && limit <= BY_REACH_MAX);
    restore(reach);
    reach->late = reach->late || by_plan_late(reach->net->deadline);
    if (reach->late)
        return limit;
    for (uint32_t round = 0; total < limit; round++) {
        bool shortest = round < SHORTEST_ROUNDS;
        uint32_t met = find_levels(reach, node, shortest);

        if (met == UINT32_MAX)
            break;
        total += gather(reach, node, limit - total, met, shortest);
    }
    return total;
}

/*
 * Rings. Every root's data travel round the ring as a chain; partial sums travel in the same
 * direction towards their root. See baseline.h.
 */
#include "control/base/alloc.h"
#include "control/base/stage.h"
#include "control/fabric/build.h"
#include "control/study/baseline/baseline.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Lays the paths between neighbours; returns false if a path does not exist. */
static bool lay_ring(struct by_baseline_task *task, struct by_baseline_ring *ring, bool left, int64_t *uses)
{
    struct by_baseline_net *net = task->net;
    uint32_t n = net->compute_count;
    uint32_t *nodes = by_alloc(net->node_count, sizeof(*nodes));
    bool whole = true;

    memset(uses, 0, net->arc_count * sizeof(*uses));
    by_net_clear(net);
    for (uint32_t i = 0; i < n && whole; i++) {
        uint32_t count = by_net_route(net, ring->order[i], ring->order[(i + 1) % n], 1, left, nodes);

        whole = count > 0;
        if (!whole)
            break;
        for (uint32_t h = 0; h + 1 < count; h++)
            uses[by_net_arc(net, nodes[h], nodes[h + 1])]++;
        ring->forth[i] = by_sketch_path(task->sketch, nodes, count);
        for (uint32_t h = 0; h < count / 2; h++) {
            uint32_t swapped = nodes[h];

            nodes[h] = nodes[count - 1 - h];
            nodes[count - 1 - h] = swapped;
        }
        ring->back[i] = by_sketch_path(task->sketch, nodes, count);
    }
    free(nodes);
    return whole;
}

/* Returns what the remaining capacity lets the ring carry, in whole units, and subtracts it. */
static int64_t take_left(struct by_baseline_net *net, const int64_t *uses)
{
    int64_t units = INT64_MAX;

    for (uint32_t i = 0; i < net->arc_count; i++)
        if (uses[i] > 0 && net->arcs[i].left / uses[i] < units)
            units = net->arcs[i].left / uses[i];
    for (uint32_t i = 0; i < net->arc_count; i++)
        net->arcs[i].left -= units * uses[i];
    return units;
}

static void add_down(const struct by_baseline_task *task, const struct by_baseline_ring *ring, int64_t units,
                     uint32_t at)
{
    uint32_t n = task->net->compute_count;

    by_sketch_tree(task->sketch, ring->order[at], BY_TREE_DOWN, units);
    for (uint32_t i = 0; i + 1 < n; i++)
        by_sketch_edge(task->sketch, ring->forth[(at + i) % n]);
}

static void add_up(const struct by_baseline_task *task, const struct by_baseline_ring *ring, int64_t units,
                   uint32_t at)
{
    uint32_t n = task->net->compute_count;

    by_sketch_tree(task->sketch, ring->order[at], BY_TREE_UP, units);
    for (uint32_t i = 0; i + 1 < n; i++)
        by_sketch_edge(task->sketch, ring->back[(at + n - 1 - i) % n]);
}

static void add_trees(const struct by_baseline_task *task, const struct by_baseline_ring *ring, int64_t units)
{
    unsigned collective = task->collective;
    bool up = by_collective_way(collective) != BY_DATA_DOWN;
    bool down = by_collective_way(collective) != BY_DATA_UP;

    for (uint32_t i = 0; i < task->net->compute_count; i++) {
        if (by_task_rooted(task) && ring->order[i] != task->root)
            continue;
        if (up)
            add_up(task, ring, units, i);
        if (down)
            add_down(task, ring, units, i);
    }
}

void by_ring_make(struct by_baseline_ring *ring, const struct by_baseline_net *net)
{
    uint32_t n = net->compute_count;

    ring->order = by_alloc(n, sizeof(*ring->order));
    ring->forth = by_alloc(n, sizeof(*ring->forth));
    ring->back = by_alloc(n, sizeof(*ring->back));
    by_boxes_find(net, &ring->boxes);
}

void by_ring_free(struct by_baseline_ring *ring)
{
    free(ring->order);
    free(ring->forth);
    free(ring->back);
    by_boxes_free(&ring->boxes);
}

int64_t by_ring_next(struct by_baseline_ring *ring, struct by_baseline_task *task, uint32_t index)
{
    struct by_baseline_net *net = task->net;
    uint32_t n = net->compute_count;
    int64_t *uses = by_alloc(net->arc_count, sizeof(*uses)), units = 0;
    bool found = by_cycle_find(net, &ring->boxes, index % n, ring->order), laid = false;

    if (!found) /* no ring through switches alone: use rank order, with compute nodes as relays */
        memcpy(ring->order, net->compute, n * sizeof(*ring->order));
    if (found || index == 0)
        laid = lay_ring(task, ring, found, uses);
    if (laid) {
        units = take_left(net, uses);
        if (units == 0 && index == 0)
            units = 1;
    }
    free(uses);
    if (!laid && index == 0)
        return by_problem_set(task->problem, BY_EINVAL, (struct by_place){0, 0},
                              "no ring visits all compute nodes: some cannot reach others");
    return units;
}

int by_baseline_ring(struct by_baseline_task *task, uint32_t rings_max)
{
    struct by_baseline_ring ring;
    int64_t units = 1;

    by_ring_make(&ring, task->net);
    by_stage_begin(task->stage, rings_max > 1 ? "rings" : "ring", rings_max);
    for (uint32_t i = 0; i < rings_max && units > 0; i++) {
        units = by_task_late(task) ? BY_ETIMEDOUT : by_ring_next(&ring, task, i);
        if (units > 0)
            add_trees(task, &ring, units);
        by_stage_add(task->stage, 1);
    }
    by_ring_free(&ring);
    return units < 0 ? (int)units : 0;
}

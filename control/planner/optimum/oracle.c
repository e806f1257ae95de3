/* Rooted connectivity by maximum flows. See oracle.h. */
#include "control/planner/optimum/oracle.h"

#include "control/base/alloc.h"

uint32_t by_oracle_order(const struct by_mesh *net, uint32_t *order)
{
    bool *seen = by_alloc(net->node_count, sizeof(*seen));
    uint32_t head = 0, tail = 0;

    for (uint32_t start = 0; start < net->node_count; start++) {
        if (seen[start])
            continue;
        seen[start] = true;
        order[tail++] = start;
        while (head < tail) {
            uint32_t node = order[head++];

            for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++)
                if (!seen[net->near[i].node]) {
                    seen[net->near[i].node] = true;
                    order[tail++] = net->near[i].node;
                }
        }
    }
    free(seen);
    return tail;
}

int64_t by_oracle_ask(struct by_reach *reach, const uint32_t *order, int64_t total, const bool *targets)
{
    for (uint32_t i = 0; i < reach->net->node_count; i++) {
        uint32_t node = order[i];

        if (!targets[node] || reach->contracted[node])
            continue;
        if (by_reach_flow(reach, node, total) < total)
            return node;
        /* No violated set contains this node: make it part of the source. */
        reach->contracted[node] = true;
    }
    return -1;
}

int64_t by_oracle_check(uint32_t node_count, const int64_t *capacity, const int64_t *roots,
                        const bool *targets, bool *inside)
{
    struct by_mesh_arc *arcs = NULL;
    uint32_t *order = by_alloc(node_count, sizeof(*order)), count = 0, room = 0;
    struct by_reach *reach;
    struct by_mesh *net;
    int64_t total = 0, failed;

    for (uint32_t i = 0; i < node_count * node_count; i++)
        if (capacity[i]) {
            BY_GROW(arcs, count, room);
            arcs[count++] = (struct by_mesh_arc){i / node_count, i % node_count, capacity[i]};
        }
    net = by_mesh_new(node_count, arcs, count);
    reach = by_reach_new(net);
    by_oracle_order(net, order);
    for (uint32_t i = 0; i < node_count; i++) {
        by_reach_set_root(reach, i, roots[i]);
        total += roots[i];
    }
    failed = by_oracle_ask(reach, order, total, targets);
    for (uint32_t i = 0; i < node_count && failed >= 0 && inside; i++)
        inside[i] = by_reach_inside(reach, i);
    by_reach_free(reach);
    by_mesh_free(net);
    free(order);
    free(arcs);
    return failed;
}

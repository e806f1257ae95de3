/* Rooted connectivity by maximum flows. See oracle.h. */
#include "control/plan/oracle.h"

#include "control/flow/flow.h"
#include "control/topology/alloc.h"

int64_t by_oracle_check(uint32_t node_count, const int64_t *capacity, const int64_t *roots,
                        const bool *targets, bool *inside)
{
    struct by_flow *flow = by_flow_new(node_count + 1);
    uint32_t *source = by_alloc(node_count, sizeof(*source));
    int64_t total = 0, failed = -1;

    for (uint32_t i = 0; i < node_count * node_count; i++)
        if (capacity[i])
            by_flow_add(flow, i / node_count, i % node_count, capacity[i]);
    for (uint32_t i = 0; i < node_count; i++) {
        source[i] = by_flow_add(flow, node_count, i, roots[i]);
        total += roots[i];
    }
    for (uint32_t node = 0; node < node_count && failed < 0; node++) {
        if (!targets[node])
            continue;
        if (by_flow_run(flow, node_count, node, total) < total)
            failed = node;
        else /* no violated set contains this node: make it part of the source */
            by_flow_set(flow, source[node], BY_FLOW_INFINITE);
    }
    if (failed >= 0 && inside) {
        bool *side = by_alloc(node_count + 1, sizeof(*side));

        by_flow_sink_side(flow, side);
        memcpy(inside, side, node_count * sizeof(*inside));
        free(side);
    }
    by_flow_free(flow);
    free(source);
    return failed;
}

int64_t by_oracle_slack(uint32_t node_count, const int64_t *capacity, const int64_t *roots,
                        const bool *inside)
{
    int64_t slack = 0;

    for (uint32_t to = 0; to < node_count; to++) {
        slack -= inside[to] ? 0 : roots[to];
        for (uint32_t from = 0; from < node_count && inside[to]; from++)
            slack += inside[from] ? 0 : capacity[(size_t)from * node_count + to];
    }
    return slack;
}

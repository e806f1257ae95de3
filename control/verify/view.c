/* Plans for a subset of the compute nodes: the fabric as their job sees it. See checker.h. */
#include "control/base/alloc.h"
#include "control/verify/checker.h"

/* Switches not connected to a member take no part: clears their capabilities. */
static void drop_far(struct by_topology *view, const bool *member)
{
    bool *near = by_alloc(view->node_count, sizeof(*near)), grows = true;
    uint32_t first = 0;

    while (first + 1 < view->node_count && !member[first])
        first++;
    near[first] = true;
    while (grows) {
        grows = false;
        for (uint32_t i = 0; i < view->arc_count; i++) {
            uint32_t from = view->arcs[i].from, to = view->arcs[i].to;

            if (near[from] == near[to])
                continue;
            near[from] = near[to] = grows = true;
        }
    }
    for (uint32_t i = 0; i < view->node_count; i++)
        if (!near[i])
            view->nodes[i].multicast = view->nodes[i].aggregate = false;
    free(near);
}

/* Checks that no path and no cut names an idle node. */
static bool check_idle(struct by_claim *claim, const bool *idle)
{
    for (uint32_t i = 0; claim->path_count > 0 && i < claim->path_start[claim->path_count]; i++)
        if (idle[claim->path_nodes[i]])
            return by_claim_violate(claim, "an edge touches %s, which is not a rank and does not forward",
                                    by_claim_name(claim, claim->path_nodes[i]));
    for (uint32_t i = 0; i < claim->topology->node_count; i++)
        if (claim->cut[i] && idle[i])
            return by_claim_violate(claim, "the bottleneck names %s, which is not a rank",
                                    by_claim_name(claim, i));
    return true;
}

bool by_job_view_make(struct by_job_view *view, struct by_claim *claim)
{
    const struct by_topology *whole = claim->topology;
    uint32_t ranks = 0;

    view->topology = *whole;
    view->topology.nodes = by_alloc(whole->node_count, sizeof(*whole->nodes));
    view->topology.arcs = by_alloc(whole->arc_count, sizeof(*whole->arcs));
    view->topology.arc_count = 0;
    view->idle = by_alloc(whole->node_count, sizeof(*view->idle));
    for (uint32_t i = 0; i < whole->node_count; i++) {
        struct by_node *node = &view->topology.nodes[i];

        *node = whole->nodes[i];
        view->idle[i] = node->compute && !claim->member[i] && !node->forward;
        node->compute = node->compute && claim->member[i];
        ranks += node->compute;
    }
    for (uint32_t i = 0; i < whole->arc_count; i++)
        if (!view->idle[whole->arcs[i].from] && !view->idle[whole->arcs[i].to])
            view->topology.arcs[view->topology.arc_count++] = whole->arcs[i];
    if (ranks < 2)
        return by_claim_violate(claim, "\"ranks\" names %u compute nodes; a collective has at least two",
                                ranks);
    drop_far(&view->topology, claim->member);
    return check_idle(claim, view->idle);
}

void by_job_view_free(struct by_job_view *view)
{
    free(view->topology.nodes);
    free(view->topology.arcs);
    free(view->idle);
}

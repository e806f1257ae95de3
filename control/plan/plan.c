/* Releases plans, and computes the heights of their trees. See plan.h. */
#include "control/plan/plan.h"

#include <stdlib.h>

#include "control/base/alloc.h"

void by_plan_free(struct by_plan *plan)
{
    if (!plan)
        return;
    by_paths_free(&plan->paths);
    free(plan->edges);
    free(plan->trees);
    free(plan->cut);
    free(plan->shares);
    free(plan->member);
    by_certificate_free(plan->proof);
    by_rotations_free(plan->rotations);
    free(plan->trades);
    free(plan->topology_name);
    free(plan->unit);
    free(plan);
}

uint32_t by_plan_height(const struct by_plan *plan, const struct by_tree *tree, uint32_t node_count)
{
    uint32_t *depth = by_alloc(node_count, sizeof(*depth)), height = 0;

    for (uint32_t i = 0; i < tree->edge_count; i++) {
        uint32_t path = plan->edges[tree->first_edge + i];
        uint32_t at = depth[by_paths_from(&plan->paths, path)] + by_paths_hops(&plan->paths, path);

        depth[by_paths_to(&plan->paths, path)] = at;
        height = at > height ? at : height;
    }
    free(depth);
    return height;
}

struct by_heights by_plan_heights(const struct by_plan *plan, uint32_t node_count)
{
    struct by_heights heights = {0, 0};
    double weight = 0;

    for (uint32_t i = 0; i < plan->tree_count; i++) {
        uint32_t height = by_plan_height(plan, &plan->trees[i], node_count);

        heights.max = height > heights.max ? height : heights.max;
        heights.mean += height * by_fraction_value(plan->trees[i].weight);
        weight += by_fraction_value(plan->trees[i].weight);
    }
    heights.mean /= weight > 0 ? weight : 1;
    return heights;
}

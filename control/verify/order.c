/*
 * Ordered plans: at each node of each tree that carries up, its own rank and the ranks below form a
 * contiguous interval, and so does the part from each child. Sums can then be computed from left to
 * right. See checker.h.
 */
#include <stdlib.h>

#include "control/base/alloc.h"
#include "control/verify/checker.h"

struct interval {
    uint32_t least, greatest, count;
};

static bool check_tree(struct by_claim *claim, const struct by_claim_tree *tree, uint32_t number,
                       struct interval *below)
{
    uint32_t rank = 0;

    for (uint32_t i = 0; i < claim->topology->node_count; i++) {
        bool compute = claim->topology->nodes[i].compute;

        below[i] = compute ? (struct interval){rank, rank, 1} : (struct interval){UINT32_MAX, 0, 0};
        rank += compute;
    }
    /* Children come after their parents, so in reverse order a node's own children are complete
     * first. */
    for (uint32_t i = tree->edge_count; i-- > 0;) {
        uint32_t path = claim->edges[tree->first_edge + i];
        uint32_t parent = claim->path_nodes[claim->path_start[path]],
                 child = claim->path_nodes[claim->path_start[path + 1] - 1];

        if (below[child].greatest - below[child].least + 1 != below[child].count)
            return by_claim_violate(
                claim,
                "tree %u is not ordered: %s adds up %u of the ranks %u to %u, which is not an interval",
                number, by_claim_name(claim, child), below[child].count, below[child].least,
                below[child].greatest);
        if (below[child].least < below[parent].least)
            below[parent].least = below[child].least;
        if (below[child].greatest > below[parent].greatest)
            below[parent].greatest = below[child].greatest;
        below[parent].count += below[child].count;
    }
    return true;
}

bool by_check_order(struct by_checker *checker)
{
    struct by_claim *claim = checker->claim;
    struct interval *below;
    bool right = true;

    if (!claim->ordered)
        return true;
    below = by_alloc(checker->node_count, sizeof(*below));
    for (uint32_t i = 0; i < claim->tree_count && right; i++)
        if (by_claim_carries_up(&claim->trees[i]))
            right = check_tree(claim, &claim->trees[i], i, below);
    free(below);
    return right;
}

/*
 * Proofs by cuts: prices of links with weighted sets of nodes, for each direction. A tree that
 * carries down enters every set that holds a compute node and not the root; a tree that carries up
 * leaves it. If no path between two nodes of trees costs less than the weights of the sets that it
 * enters (or leaves), then a tree costs at least the weights of all sets without its root, however
 * many switches it branches at. Unlike prices alone (price.c), this takes polynomial time. See
 * checker.h.
 */
#include <stdlib.h>

#include "control/base/alloc.h"
#include "control/verify/checker.h"

static bool check_sets(struct by_claim *claim)
{
    for (uint32_t c = 0; c < claim->cut_count; c++) {
        bool compute = false;

        for (uint32_t i = 0; i < claim->topology->node_count; i++)
            compute |= claim->cuts[c].inside[i] && claim->topology->nodes[i].compute;
        if (!compute)
            return by_claim_violate(claim,
                                    "cut %u of the proof holds no compute node, so that trees need not "
                                    "cross it",
                                    c);
    }
    return true;
}

/* Checks that no path from a node of a tree to a node below it is cheaper than its cuts. */
static bool check_paths(struct by_claim *claim, const struct by_price_side *side)
{
    for (uint32_t i = 0; i < side->count; i++)
        for (uint32_t j = 0; j < side->count; j++) {
            __int128 sum = 0;

            for (uint32_t c = 0; c < claim->cut_count && i != j; c++)
                if (claim->cuts[c].up == side->up && claim->cuts[c].inside[side->node[j]] &&
                    !claim->cuts[c].inside[side->node[i]])
                    sum += claim->cuts[c].weight;
            if (sum > side->way[(size_t)i * side->count + j])
                return by_claim_violate(claim,
                                        "data from %s to %s pay less than the weights of the proof's cuts on "
                                        "their way",
                                        by_claim_name(claim, side->node[side->up ? j : i]),
                                        by_claim_name(claim, side->node[side->up ? i : j]));
        }
    return true;
}

__int128 by_check_cuts(struct by_checker *checker, const struct by_price_side *up,
                       const struct by_price_side *down)
{
    struct by_claim *claim = checker->claim;
    uint8_t *sides = by_alloc(checker->node_count, sizeof(*sides)); /* directions of which it is a node */
    __int128 least = BY_COST_FAR;

    if (!check_sets(claim) || !check_paths(claim, up) || !check_paths(claim, down)) {
        free(sides);
        return 0;
    }
    for (uint32_t i = 0; i < up->count; i++)
        sides[up->node[i]]++;
    for (uint32_t i = 0; i < down->count; i++)
        sides[down->node[i]]++;
    for (uint32_t root = 0; root < checker->node_count; root++) {
        __int128 sum = 0;

        for (uint32_t c = 0; c < claim->cut_count; c++)
            sum += claim->cuts[c].inside[root] ? 0 : claim->cuts[c].weight;
        least = sides[root] == 2 && sum < least ? sum : least;
    }
    free(sides);
    return least;
}

/*
 * The number of trees: at most `trees_max` share the data of one rank. Where every root has its own
 * data these are the trees of one root; for allreduce and barrier all trees, where a pair counts
 * once. See checker.h.
 */
#include <stdlib.h>

#include "control/base/alloc.h"
#include "control/verify/checker.h"
#include "offload/wire/types.h"

static bool check_all(struct by_claim *claim)
{
    int64_t count = 0;

    for (uint32_t i = 0; i < claim->tree_count; i++)
        count += by_claim_carries_down(&claim->trees[i]); /* each pair has one */
    return count <= claim->trees_max ||
           by_claim_violate(claim, "the plan has %lld trees, but its trees_max is %lld", (long long)count,
                            (long long)claim->trees_max);
}

bool by_check_count(struct by_checker *checker)
{
    struct by_claim *claim = checker->claim;
    int64_t *count;
    bool right = true;

    if (claim->trees_max == 0)
        return true;
    if (by_collective_way(claim->collective) == BY_DATA_BOTH)
        return check_all(claim);
    count = by_alloc(checker->node_count, sizeof(*count));
    for (uint32_t i = 0; i < claim->tree_count && right; i++)
        if (++count[claim->trees[i].root] > claim->trees_max)
            right =
                by_claim_violate(claim, "more than %lld trees start at %s, but the plan's trees_max is %lld",
                                 (long long)claim->trees_max, by_claim_name(claim, claim->trees[i].root),
                                 (long long)claim->trees_max);
    free(count);
    return right;
}

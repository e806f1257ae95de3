/* Checks the trees together: the share of each root, the rate, the cut, and the figures that the
 * plan states. See checker.h. */
#include "control/verify/checker.h"
#include "offload/wire/types.h"

/* Allreduce: the weights up to a root and down from it must be equal; trees of one direction come
 * in pairs. */
static bool check_pairs(const struct by_checker *checker)
{
    struct by_claim *claim = checker->claim;

    for (uint32_t i = 0; i < checker->node_count; i++)
        if (!mpq_equal(checker->up[i], checker->down[i]))
            return by_claim_violate(claim, "the trees rooted at %s carry different amounts up and down",
                                    by_claim_name(checker->claim, i));
    for (uint32_t i = 0; i < claim->tree_count; i++) {
        const struct by_claim_tree *tree = &claim->trees[i];

        if (tree->use == BY_CLAIM_BOTH)
            continue;
        if (tree->use != BY_CLAIM_UP || i + 1 == claim->tree_count || tree[1].use != BY_CLAIM_DOWN ||
            tree[1].root != tree->root || !mpq_equal(tree[1].weight, tree->weight))
            return by_claim_violate(claim,
                                    "tree %u has one direction and is not paired with the next: up, then "
                                    "down, of equal root and weight",
                                    i);
        i++;
    }
    return true;
}

/*
 * Allgather and reduce-scatter: the weights of the trees of each compute node must be proportional
 * to its parts of the data. Each node is compared with the first that has any: weight x first's
 * parts = first's weight x parts.
 */
static bool check_parts(const struct by_checker *checker)
{
    struct by_claim *claim = checker->claim;
    const mpq_t *weights = claim->collective == BY_COLLECTIVE_ALLGATHER ? (const mpq_t *)checker->down
                                                                        : (const mpq_t *)checker->up;
    uint32_t first = 0;
    bool right = true;
    mpq_t left, wanted, parts;

    mpq_inits(left, wanted, parts, NULL);
    while (by_checker_share(checker, first) == 0)
        first++;
    for (uint32_t i = 0; i < checker->node_count && right; i++) {
        mpq_set_si(parts, by_checker_share(checker, first), 1);
        mpq_mul(left, weights[i], parts);
        mpq_set_si(parts, by_checker_share(checker, i), 1);
        mpq_mul(wanted, weights[first], parts);
        right = mpq_equal(left, wanted);
        if (right)
            continue;
        if (claim->shares)
            by_claim_violate(claim,
                             "the weights of the trees of %s, with %lld parts of the data, are not in "
                             "proportion to those of %s, with %lld",
                             by_claim_name(claim, i), (long long)claim->shares[i],
                             by_claim_name(claim, first), (long long)claim->shares[first]);
        else
            by_claim_violate(
                claim,
                "the weights of the trees of %s differ from those of %s; every compute node has an equal "
                "share",
                by_claim_name(claim, i), by_claim_name(claim, first));
    }
    mpq_clears(left, wanted, parts, NULL);
    return right;
}

/* Checks that each tree represents an integer number of the equal trees of its root, k for each
 * part of the data. */
static bool check_multiplicity(const struct by_checker *checker)
{
    struct by_claim *claim = checker->claim;
    bool right = true;
    mpq_t number, parts;

    if (claim->k == 0)
        return true;
    mpq_inits(number, parts, NULL);
    for (uint32_t i = 0; i < claim->tree_count && right; i++) {
        const struct by_claim_tree *tree = &claim->trees[i];

        mpq_set_si(number, claim->k, 1);
        mpq_mul(number, number, tree->weight);
        if (claim->shares) {
            mpq_set_si(parts, claim->shares[tree->root], 1);
            mpq_mul(number, number, parts);
        }
        mpq_div(number, number,
                by_claim_carries_down(tree) ? checker->down[tree->root] : checker->up[tree->root]);
        if (mpz_cmp_ui(mpq_denref(number), 1) != 0)
            right = by_claim_violate(claim, "tree %u is not a whole number of the %lld trees of its root%s",
                                     i, (long long)claim->k, claim->shares ? "'s every part" : "");
    }
    mpq_clears(number, parts, NULL);
    return right;
}

static void find_rate(struct by_checker *checker)
{
    bool down = by_collective_way(checker->claim->collective) == BY_DATA_DOWN;

    for (uint32_t i = 0; i < checker->node_count; i++)
        mpq_add(checker->rate, checker->rate, down ? checker->down[i] : checker->up[i]);
}

/* ---- the cut ---- */

/* Adds up the bandwidth of the links that leave the bottleneck. */
static void add_leaving(struct by_checker *checker)
{
    const struct by_links *links = checker->links;
    mpz_t sum;

    mpz_init(sum);
    for (uint32_t i = 0; i < links->count; i++)
        if (checker->claim->cut[links->from[i]] && !checker->claim->cut[links->to[i]])
            mpz_add_ui(sum, sum, (unsigned long)links->capacity[i]);
    mpz_set(mpq_numref(checker->bound), sum);
    mpz_set_si(mpq_denref(checker->bound), checker->topology->scale);
    mpq_canonicalize(checker->bound);
    mpz_clear(sum);
}

static bool check_cut(struct by_checker *checker)
{
    struct by_claim *claim = checker->claim;
    int64_t inside = 0, parts = 0;
    bool down = claim->collective == BY_COLLECTIVE_ALLGATHER,
         shared = down || claim->collective == BY_COLLECTIVE_REDUCE_SCATTER;
    mpq_t factor;
    bool right = true;

    mpq_init(factor);
    /* The data that must leave: in allgather the parts of the nodes inside, in reduce-scatter the
     * sums for the nodes outside. */
    for (uint32_t i = 0; i < checker->node_count; i++) {
        inside += claim->cut[i] && checker->topology->nodes[i].compute;
        parts += claim->cut[i] == down ? by_checker_share(checker, i) : 0;
    }
    add_leaving(checker);
    if (inside == 0 || inside == checker->compute_count)
        right = by_claim_violate(claim, "the bottleneck has %lld of %u compute nodes: it separates nothing",
                                 (long long)inside, checker->compute_count);
    else if (inside != claim->cut_compute_count)
        right = by_claim_violate(claim, "the bottleneck has %lld compute nodes, the plan states %lld",
                                 (long long)inside, (long long)claim->cut_compute_count);
    else if (!mpq_equal(checker->bound, claim->exiting))
        right = by_claim_violate(claim, "the bandwidth leaving the bottleneck is not what the plan states");
    else if (claim->collective == BY_COLLECTIVE_BROADCAST && !claim->cut[claim->root])
        right = by_claim_violate(claim,
                                 "the bottleneck does not contain the root %s, so no data needs to leave it",
                                 by_claim_name(checker->claim, (uint32_t)claim->root));
    else if (claim->collective == BY_COLLECTIVE_REDUCE && claim->cut[claim->root])
        right = by_claim_violate(claim, "the bottleneck contains the root %s, so no data needs to leave it",
                                 by_claim_name(checker->claim, (uint32_t)claim->root));
    else if (shared && parts == 0)
        right = by_claim_violate(claim, "no part of the data needs to leave the bottleneck: it bounds "
                                        "nothing");
    if (right && shared) {
        mpq_set_si(factor, checker->share_sum, (unsigned long)parts);
        mpq_canonicalize(factor);
        mpq_mul(checker->bound, checker->bound, factor);
    }
    mpq_clear(factor);
    return right;
}

static bool check_stated(const struct by_checker *checker)
{
    struct by_claim *claim = checker->claim;
    bool right = true;
    mpq_t inverse;

    if (!mpq_equal(checker->rate, claim->achieved))
        return by_claim_violate(claim, "the trees' rate is not the \"achieved\" that the plan states");
    if (!mpq_equal(checker->bound, claim->optimum))
        return by_claim_violate(claim, "the bottleneck%s does not prove the \"optimum\" that the plan states",
                                claim->proof ? " with the proof" : "");
    if (mpq_cmp(checker->rate, checker->bound) > 0)
        return by_claim_violate(claim, "the trees carry more than the bound allows: one of them is wrong");
    if (!claim->has_inv_x)
        return true;
    mpq_init(inverse);
    mpq_set_si(inverse, checker->share_sum, 1);
    mpq_div(inverse, inverse, checker->bound);
    if (!mpq_equal(inverse, claim->inv_x))
        right = by_claim_violate(claim, "inv_x is not the number of %s over the optimum",
                                 claim->shares ? "parts of the data" : "compute nodes");
    mpq_clear(inverse);
    return right;
}

bool by_check_shares(struct by_checker *checker)
{
    unsigned collective = checker->claim->collective;
    bool both = by_collective_way(collective) == BY_DATA_BOTH;
    bool shared = by_collective_is_sharded(collective);

    if (both)
        return check_pairs(checker);
    return (!shared || check_parts(checker)) && check_multiplicity(checker);
}

bool by_check_figures(struct by_checker *checker)
{
    find_rate(checker);
    return check_cut(checker) && by_check_proof(checker) && check_stated(checker);
}

/*
 * Proofs in addition to the cut: they prove that no trees carry more, up to a root and down again.
 * The bound is computed from the topology here; only the sets or the prices are the plan's. See
 * checker.h.
 *
 * Disjoint sets: whatever its root, a tree that carries down enters each of the m sets but at most
 * one, and the tree that carries up to the same root leaves each but that one. If no node outside
 * the sets can be a node of a tree, each path that enters a set has left another before. Then down
 * and up together pass links that leave sets 2 (m - 1) times, and links that enter sets as often.
 * Otherwise only the links that touch a set are counted, 2 (m - 1) times.
 */
#include <stdlib.h>

#include "control/base/alloc.h"
#include "control/verify/checker.h"
#include "offload/wire/types.h"

/* Whether a node outside all sets could be a node of a tree. */
static bool has_site_outside(const struct by_claim *claim)
{
    for (uint32_t i = 0; i < claim->topology->node_count; i++) {
        const struct by_node *node = &claim->topology->nodes[i];

        if (!claim->part[i] && (node->compute || node->multicast || node->aggregate))
            return true;
    }
    return false;
}

static bool check_parts(struct by_claim *claim)
{
    bool *compute = by_alloc((size_t)claim->part_count + 1, sizeof(*compute)), right = true;

    for (uint32_t i = 0; i < claim->topology->node_count; i++)
        compute[claim->part[i]] |= claim->topology->nodes[i].compute;
    if (claim->part_count < 2)
        right = by_claim_violate(claim, "the proof has fewer than two parts");
    for (uint32_t i = 1; i <= claim->part_count && right; i++)
        if (!compute[i])
            right = by_claim_violate(claim, "part %u of the proof holds no compute node", i - 1);
    free(compute);
    return right;
}

static void bound_of_parts(const struct by_checker *checker, mpq_t bound)
{
    const struct by_links *links = checker->links;
    const struct by_claim *claim = checker->claim;
    mpz_t leaving, entering, touching;

    mpz_inits(leaving, entering, touching, NULL);
    for (uint32_t i = 0; i < links->count; i++) {
        uint32_t from = claim->part[links->from[i]], to = claim->part[links->to[i]];
        unsigned long capacity = (unsigned long)links->capacity[i];

        if (from == to)
            continue;
        mpz_add_ui(touching, touching, capacity);
        if (from)
            mpz_add_ui(leaving, leaving, capacity);
        if (to)
            mpz_add_ui(entering, entering, capacity);
    }
    if (has_site_outside(claim))
        mpz_set(mpq_numref(bound), touching);
    else
        mpz_set(mpq_numref(bound), mpz_cmp(leaving, entering) < 0 ? leaving : entering);
    mpz_set_si(mpq_denref(bound), checker->topology->scale);
    mpz_mul_ui(mpq_denref(bound), mpq_denref(bound), 2ul * (claim->part_count - 1));
    mpq_canonicalize(bound);
    mpz_clears(leaving, entering, touching, NULL);
}

bool by_check_proof(struct by_checker *checker)
{
    struct by_claim *claim = checker->claim;
    bool right = false;
    mpq_t bound;

    if (!claim->proof)
        return true;
    if (by_collective_way(claim->collective) != BY_DATA_BOTH)
        return by_claim_violate(claim, "%s has a proof beside its cut; only the cut is allowed",
                                by_collective_name(claim->collective));
    mpq_init(bound);
    if (claim->proof == BY_CLAIM_PROOF_PARTS) {
        right = check_parts(claim);
        if (right)
            bound_of_parts(checker, bound);
    } else {
        right = by_check_prices(checker, bound);
    }
    if (right && mpq_cmp(bound, checker->bound) < 0) {
        mpq_set(checker->bound, bound);
        checker->of_trees = true;
    }
    mpq_clear(bound);
    return right;
}

/*
 * Proofs in addition to the cut: they prove that no trees carry more, up to a root and down again.
 * The bound is computed from the topology here; only the sets or the prices are the plan's. See
 * checker.h.
 *
 * Disjoint sets: whatever its root, a tree that carries down enters each of the m sets but at most
 * one, and the tree that carries up to the same root leaves each but that one. If no node outside
 * the sets can multicast, all nodes of a tree that carries down are in sets, so that each of its
 * m - 1 or more paths between sets also leaves one: down and up together pass links that leave sets
 * 2 (m - 1) times. If no node outside can aggregate, they pass links that enter sets as often. If
 * both occur outside, or compute nodes, only the links that touch a set are counted.
 */
#include <stdlib.h>

#include "control/base/alloc.h"
#include "control/verify/checker.h"
#include "offload/wire/types.h"

/* What nodes outside all sets can be in trees. */
struct outside {
    bool compute, multicast, aggregate;
};

static struct outside find_outside(const struct by_claim *claim)
{
    struct outside outside = {false, false, false};

    for (uint32_t i = 0; i < claim->topology->node_count; i++) {
        const struct by_node *node = &claim->topology->nodes[i];

        if (claim->part[i])
            continue;
        outside.compute |= node->compute;
        outside.multicast |= node->multicast;
        outside.aggregate |= node->aggregate;
    }
    return outside;
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
    struct outside outside = find_outside(claim);
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
    if (outside.compute || (outside.multicast && outside.aggregate))
        mpz_set(mpq_numref(bound), touching);
    else if (outside.aggregate || (!outside.multicast && mpz_cmp(leaving, entering) < 0))
        mpz_set(mpq_numref(bound), leaving);
    else
        mpz_set(mpq_numref(bound), entering);
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

/*
 * Verifies a plan in memory. The verifier receives the plan as a claim and shares no other data
 * with the planner. See check.h.
 */
#include "control/cli/check.h"

#include "control/base/alloc.h"
#include "control/fabric/members.h"
#include "control/verify/claim.h"

static void set(mpq_t number, struct by_fraction value)
{
    mpq_set_si(number, value.num, (unsigned long)value.den);
    mpq_canonicalize(number);
}

static void claim_trees(struct by_claim *claim, const struct by_plan *plan)
{
    claim->trees = by_alloc(plan->tree_count, sizeof(*claim->trees));
    for (; claim->tree_count < plan->tree_count; claim->tree_count++) {
        const struct by_tree *tree = &plan->trees[claim->tree_count];
        struct by_claim_tree *claimed = &claim->trees[claim->tree_count];

        claimed->root = tree->root;
        claimed->use = tree->use == BY_TREE_BOTH ? BY_CLAIM_BOTH
                       : tree->use == BY_TREE_UP ? BY_CLAIM_UP
                                                 : BY_CLAIM_DOWN;
        mpq_init(claimed->weight);
        set(claimed->weight, tree->weight);
        claimed->edge_count = tree->edge_count;
        claimed->first_edge = tree->first_edge;
    }
}

static void claim_proof(struct by_claim *claim, const struct by_certificate *proof)
{
    if (!proof)
        return;
    if (proof->kind == BY_CERTIFICATE_PARTS) {
        claim->proof = BY_CLAIM_PROOF_PARTS;
        claim->part_count = proof->part_count;
        claim->part = by_alloc(claim->topology->node_count, sizeof(*claim->part));
        for (uint32_t i = 0; i < proof->part_count; i++)
            for (uint32_t j = 0; j < proof->parts[i].node_count; j++)
                claim->part[proof->parts[i].nodes[j]] = i + 1;
        return;
    }
    claim->proof = proof->kind == BY_CERTIFICATE_CUTS ? BY_CLAIM_PROOF_CUTS : BY_CLAIM_PROOF_PRICES;
    claim->cuts = by_alloc(proof->part_count, sizeof(*claim->cuts));
    claim->cut_count = proof->part_count;
    for (uint32_t i = 0; i < proof->part_count; i++) {
        const struct by_part *part = &proof->parts[i];

        claim->cuts[i] = (struct by_claim_cut){
            part->weight, part->up, by_alloc(claim->topology->node_count, sizeof(*claim->cuts[i].inside))};
        for (uint32_t j = 0; j < part->node_count; j++)
            claim->cuts[i].inside[part->nodes[j]] = true;
    }
    claim->prices = by_alloc(proof->price_count, sizeof(*claim->prices));
    claim->price_count = proof->price_count;
    for (uint32_t i = 0; i < proof->price_count; i++)
        claim->prices[i] =
            (struct by_claim_price){proof->prices[i].from, proof->prices[i].to, proof->prices[i].price};
}

static void claim_rotations(struct by_claim *claim, const struct by_rotations *rotations)
{
    claim->rotation_count = rotations ? rotations->count : 0;
    claim->rotations = by_alloc(claim->rotation_count, sizeof(*claim->rotations));
    for (uint32_t i = 0; i < claim->rotation_count; i++)
        claim->rotations[i] = (struct by_claim_rotation){rotations->list[i].order, rotations->list[i].next};
}

void by_cli_check(const struct by_plan *plan, const struct by_topology *topology,
                  struct by_verify_report *report)
{
    struct by_claim claim;

    by_claim_init(&claim, topology);
    claim.collective = plan->collective;
    claim.root = plan->root;
    set(claim.optimum, plan->optimum);
    set(claim.achieved, plan->achieved);
    set(claim.exiting, plan->cut_exiting);
    claim.has_inv_x = plan->inv_x.num > 0;
    if (claim.has_inv_x)
        set(claim.inv_x, plan->inv_x);
    claim.k = plan->k;
    if (plan->member) {
        claim.member = by_alloc(topology->node_count, sizeof(*claim.member));
        memcpy(claim.member, plan->member, topology->node_count * sizeof(*claim.member));
    }
    if (plan->shares) {
        claim.shares = by_alloc(topology->node_count, sizeof(*claim.shares));
        memcpy(claim.shares, plan->shares, topology->node_count * sizeof(*claim.shares));
    }
    for (uint32_t i = 0; i < plan->cut_count; i++) {
        claim.cut[plan->cut[i]] = true;
        claim.cut_compute_count += by_members_have(topology, plan->member, plan->cut[i]);
    }
    claim.path_count = plan->paths.count;
    claim.path_start = plan->paths.start;
    claim.path_nodes = plan->paths.nodes;
    claim.edges = plan->edges;
    claim.hosts_only = plan->hosts_only;
    claim.trees_max = plan->trees_max;
    claim.ordered = plan->ordered;
    claim_proof(&claim, plan->proof);
    claim_rotations(&claim, plan->rotations);
    claim_trees(&claim, plan);
    by_claim_check(&claim, report);
    by_claim_clear(&claim);
}

const char *by_verdict_name(enum by_verdict verdict)
{
    static const char *const names[] = {"?", "OPTIMAL", "VALID", "INVALID"};

    return names[verdict];
}

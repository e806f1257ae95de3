/*
 * Checks the claims of a plan. See verify.h. The order is: each tree alone; the trees together
 * (loads of the links, shares of the roots); the cut; the figures that the plan states. Checking
 * ends at the first violation.
 */
#include "control/verify/verify.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/json.h"
#include "control/study/series/rational.h"
#include "control/verify/checker.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Maximum size of a plan file (bytes): many times a plan for 4096 nodes. */
#define FILE_BYTES_MAX ((size_t)4 << 30)

static bool check_root(const struct by_checker *checker)
{
    struct by_claim *claim = checker->claim;
    bool rooted = by_collective_is_rooted(claim->collective);

    if (rooted && (claim->root < 0 || !checker->topology->nodes[claim->root].compute))
        return by_claim_violate(claim, "%s needs a compute node as its root",
                                by_collective_name(claim->collective));
    if (!rooted && claim->root >= 0)
        return by_claim_violate(claim, "%s has no root", by_collective_name(claim->collective));
    return true;
}

/* Checks the shares: only compute nodes have data, and some have; adds them up. */
static bool check_parts(struct by_checker *checker)
{
    struct by_claim *claim = checker->claim;
    bool shared = by_collective_is_sharded(claim->collective);

    if (claim->shares && !shared)
        return by_claim_violate(claim, "%s has no shards, so it cannot have shares",
                                by_collective_name(claim->collective));
    for (uint32_t i = 0; i < checker->node_count; i++) {
        int64_t share = by_checker_share(checker, i);

        if (share < 0 || (share > 0 && !checker->topology->nodes[i].compute))
            return by_claim_violate(claim, "the share of %s is %lld: only compute nodes have data",
                                    by_claim_name(claim, i), (long long)share);
        if (__builtin_add_overflow(checker->share_sum, share, &checker->share_sum))
            return by_claim_violate(claim, "the shares add up to more than 63 bits");
    }
    return checker->share_sum > 0 || by_claim_violate(claim, "all shares are 0: no node has data");
}

static void set_number(struct by_verify_number *number, mpq_t value)
{
    gmp_snprintf(number->num, sizeof(number->num), "%Zd", mpq_numref(value));
    gmp_snprintf(number->den, sizeof(number->den), "%Zd", mpq_denref(value));
    number->value = mpq_get_d(value);
}

static void check_all(struct by_claim *claim, struct by_verify_report *report)
{
    const struct by_topology *topology = claim->topology;
    struct by_checker checker = {.claim = claim, .topology = topology, .node_count = topology->node_count};

    checker.compute_count = by_topology_compute_count(topology);
    checker.links = by_links_new(topology);
    checker.up = by_rationals_new(topology->node_count);
    checker.down = by_rationals_new(topology->node_count);
    mpq_inits(checker.rate, checker.bound, NULL);
    *report = (struct by_verify_report){.tree_count = claim->tree_count, .images = 1};
    if (!check_root(&checker) || !check_parts(&checker) || !by_check_rotations(&checker) ||
        !by_check_trees(&checker) || !by_check_loads(&checker) || !by_check_order(&checker) ||
        !by_check_count(&checker) || !by_check_budgets(&checker) || !by_check_shares(&checker) ||
        !by_check_figures(&checker)) {
        report->verdict = BY_VERDICT_INVALID;
        memcpy(report->reason, claim->reason, sizeof(report->reason));
    } else {
        set_number(&report->achieved, checker.rate);
        set_number(&report->bound, checker.bound);
        report->of_trees = checker.of_trees;
        report->images = checker.images;
        report->verdict = mpq_equal(checker.rate, checker.bound) ? BY_VERDICT_OPTIMAL : BY_VERDICT_VALID;
        mpq_div(checker.rate, checker.rate, checker.bound);
        set_number(&report->ratio, checker.rate);
    }
    by_rationals_free(checker.up, topology->node_count);
    by_rationals_free(checker.down, topology->node_count);
    mpq_clears(checker.rate, checker.bound, NULL);
    by_links_free(checker.links);
}

static void check_job(struct by_claim *claim, struct by_verify_report *report)
{
    const struct by_topology *whole = claim->topology;
    struct by_job_view view;

    if (!claim->member) {
        check_all(claim, report);
        return;
    }
    *report = (struct by_verify_report){.verdict = BY_VERDICT_INVALID, .tree_count = claim->tree_count};
    if (by_job_view_make(&view, claim)) {
        claim->topology = &view.topology;
        check_all(claim, report);
        claim->topology = whole;
    } else {
        memcpy(report->reason, claim->reason, sizeof(report->reason));
    }
    by_job_view_free(&view);
}

void by_claim_check(struct by_claim *claim, struct by_verify_report *report)
{
    const struct by_topology *whole = claim->topology;
    struct by_topology forwarding;

    if (!claim->hosts_only) {
        check_job(claim, report);
        return;
    }
    forwarding = by_topology_forwarding(whole);
    claim->topology = &forwarding;
    check_job(claim, report);
    claim->topology = whole;
    report->hosts_only = true;
    free(forwarding.nodes);
}

int by_verify_text(const struct by_topology *topology, const char *text, size_t bytes,
                   struct by_verify_report *report, struct by_problem *problem)
{
    struct by_claim_arrays arrays = {0};
    struct by_claim claim;
    bool right;
    int error;

    *report = (struct by_verify_report){0};
    by_claim_init(&claim, topology);
    error = by_claim_read(&claim, text, bytes, &arrays, &right, problem);
    if (!error && right) {
        by_claim_check(&claim, report);
    } else if (!error) {
        report->verdict = BY_VERDICT_INVALID;
        memcpy(report->reason, claim.reason, sizeof(report->reason));
    }
    by_claim_clear(&claim);
    by_claim_arrays_free(&arrays);
    return error;
}

int by_verify_file(const struct by_topology *topology, const char *path, struct by_verify_report *report,
                   struct by_problem *problem)
{
    char *text;
    size_t bytes;
    int error = by_text_read(path, FILE_BYTES_MAX, &text, &bytes, problem);

    *report = (struct by_verify_report){0};
    if (error)
        return error;
    error = by_verify_text(topology, text, bytes, report, problem);
    free(text);
    return error;
}

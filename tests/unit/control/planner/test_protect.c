/*
 * Plans for failures: on random fabrics and presets, for each single link and switch, the verifier
 * checks the set that remains, on the fabric that remains. Planted faults show that these checks
 * can fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/fabric/members.h"
#include "control/planner/replan/protect.h"
#include "control/tables/runs.h"
#include "offload/base/errors.h"
#include "tests/unit/control/campaign/fabric.h"
#include "tests/unit/control/campaign/mixed.h"
#include "tests/unit/control/planner/rig.h"

#define RANDOM_FABRICS 90u

static const unsigned collectives[] = {BY_COLLECTIVE_ALLGATHER, BY_COLLECTIVE_REDUCE_SCATTER,
                                       BY_COLLECTIVE_BROADCAST, BY_COLLECTIVE_REDUCE,
                                       BY_COLLECTIVE_ALLREDUCE};

struct protect_tally {
    unsigned failures, covered, cut, refused, without_backups, whole; /* whole: a part of 1 */
    uint32_t trees, backups;
};

/* Whether all ranks are connected without the failed part, links taken both ways. */
static bool is_connected(const struct by_topology *topology, const bool *member,
                         const struct by_protect_failure *failure)
{
    bool *seen = calloc(topology->node_count, sizeof(*seen)), more = true, all = true;
    uint32_t first = UINT32_MAX;

    assert_non_null(seen);
    for (uint32_t i = 0; i < topology->node_count && first == UINT32_MAX; i++)
        if (by_members_have(topology, member, i))
            seen[first = i] = true;
    while (more) {
        more = false;
        for (uint32_t l = 0; l < topology->link_count; l++) {
            uint32_t a = topology->links[l].a, b = topology->links[l].b;
            bool lost = failure->is_switch ? a == failure->what || b == failure->what : l == failure->what;

            if (lost || by_members_idle(topology, member, a) || by_members_idle(topology, member, b) ||
                seen[a] == seen[b])
                continue;
            seen[a] = seen[b] = more = true;
        }
    }
    for (uint32_t i = 0; i < topology->node_count; i++)
        all = all && (seen[i] || !by_members_have(topology, member, i));
    free(seen);
    return all;
}

/* Returns the verifier's verdict, and compares its rate over bound with the part. */
static enum by_verdict judge(const struct by_plan *plan, const struct by_topology *topology,
                             struct by_fraction part)
{
    struct by_verify_report report;
    struct by_problem problem = {0};
    char *text = rig_text(plan, topology), num[24], den[24];

    if (by_verify_text(topology, text, strlen(text), &report, &problem) != 0)
        fail_msg("%s", problem.text);
    free(text);
    snprintf(num, sizeof(num), "%lld", (long long)part.num);
    snprintf(den, sizeof(den), "%lld", (long long)part.den);
    if (report.verdict != BY_VERDICT_INVALID) {
        assert_string_equal(report.ratio.num, num);
        assert_string_equal(report.ratio.den, den);
    } else {
        print_message("  invalid: %s\n", report.reason);
    }
    return report.verdict;
}

static void check_failure(const struct by_protect *protect, uint32_t number, struct protect_tally *tally)
{
    const struct by_protect_failure *failure = &protect->failures[number];
    bool connected = is_connected(protect->topology, protect->options->member, failure);
    struct by_topology *left;
    struct by_plan *plan;

    tally->failures++;
    assert_int_equal(failure->state == BY_PROTECT_CUT, !connected);
    tally->cut += failure->state == BY_PROTECT_CUT;
    if (failure->state == BY_PROTECT_REFUSED) {
        assert_true(failure->reason && failure->reason[0]);
        tally->refused++;
    }
    if (failure->state != BY_PROTECT_COVERED)
        return;
    assert_int_equal(by_protect_plan(protect, number, &left, &plan), 0);
    if (judge(plan, left, failure->part) !=
        (failure->part.num == failure->part.den ? BY_VERDICT_OPTIMAL : BY_VERDICT_VALID))
        fail_msg("%s on %s without %s %u: the set that remains is not what it claims",
                 by_collective_name(plan->collective), protect->topology->name,
                 failure->is_switch ? "switch" : "link", failure->what);
    tally->covered++;
    tally->whole += failure->part.num == failure->part.den;
    tally->without_backups += failure->added == 0;
    by_plan_free(plan);
    by_topology_free(left);
}

/* Plans, protects, and checks each failure. Returns the protection of `*plan`. */
static struct by_protect *protect_all(const struct by_topology *topology,
                                      const struct by_plan_options *options, struct by_fraction part,
                                      struct by_plan **plan, struct protect_tally *tally)
{
    struct by_protect_request request = {.links = true, .switches = true, .part = part};
    struct by_problem problem = {0};
    struct by_protect *protect;

    if (by_plan_make(topology, options, plan, &problem) != 0 ||
        by_protect_make(topology, options, *plan, &request, &protect, &problem) != 0)
        fail_msg("%s on %s: %s", by_collective_name(options->collective), topology->name, problem.text);
    for (uint32_t i = 0; i < protect->failure_count; i++)
        check_failure(protect, i, tally);
    tally->trees += (*plan)->tree_count;
    tally->backups += by_protect_backups(protect);
    return protect;
}

static void run(const struct by_topology *topology, unsigned collective, struct by_fraction part,
                struct protect_tally *tally)
{
    bool rooted = by_collective_is_rooted(collective);
    int64_t root = 0;
    struct by_plan *plan, *all;
    struct by_protect *protect;

    while (!topology->nodes[root].compute)
        root++;
    protect = protect_all(
        topology,
        &(struct by_plan_options){.collective = collective, .root = rooted ? root : -1, .in_network = true},
        part, &plan, tally);
    assert_int_equal(by_protect_all(protect, &all), 0);
    assert_int_equal(all->tree_count, by_protect_backups(protect) + plan->tree_count);
    by_plan_free(all);
    by_protect_free(protect);
    by_plan_free(plan);
}

static void tell(const char *what, const struct protect_tally *tally)
{
    print_message("%-26s %u failures: %u covered (%u at the optimum, %u without new trees), %u cut a rank "
                  "off, %u refused; %u trees, %u backups\n",
                  what, tally->failures, tally->covered, tally->whole, tally->without_backups, tally->cut,
                  tally->refused, tally->trees, tally->backups);
}

static void each_failure_of_random_fabrics_leaves_a_set(void **state)
{
    struct protect_tally best = {0}, half = {0};

    (void)state;
    for (uint64_t seed = 1; seed <= RANDOM_FABRICS; seed++) {
        struct by_topology *topology =
            seed % 2 ? mixed_fabric(seed) : campaign_fabric(seed, (struct fabric_sizes){4, 9});
        unsigned collective = collectives[seed / 2 % (sizeof(collectives) / sizeof(collectives[0]))];

        run(topology, collective, (struct by_fraction){1, 1}, &best);
        run(topology, collective, (struct by_fraction){1, 2}, &half);
        by_topology_free(topology);
    }
    tell("random, part 1", &best);
    tell("random, part 1/2", &half);
    assert_true(best.covered > 300);
    assert_true(best.refused * 5 < best.failures); /* one-way links: what remains is not balanced */
    assert_true(best.whole * 10 > best.covered * 8);
    assert_true(half.backups < best.backups);
}

static void a_backup_over_another_spine_serves_its_links_too(void **state)
{
    static const struct by_fraction whole = {1, 1};
    struct by_topology *topology = rig_preset("leafspine", "all", "4", "4", "4", NULL);
    struct by_plan_options options = {.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1, .in_network = true};
    struct by_protect_request request = {.links = true, .part = whole};
    struct protect_tally tally = {0};
    struct by_problem problem = {0};
    struct by_plan *plan, *all;
    struct by_protect *protect = protect_all(topology, &options, whole, &plan, &tally), *links;
    struct by_runs runs;

    (void)state;
    assert_int_equal(plan->tree_count, 1);
    assert_int_equal(tally.failures, 8 + 32);
    assert_int_equal(tally.cut, 4 + 16); /* the leaves, and the hosts' links */
    assert_int_equal(tally.whole, 4 + 16);
    assert_int_equal(by_protect_backups(protect), 1);
    assert_int_equal(by_protect_count(protect, BY_PROTECT_CUT), 20);
    rig_assert_fraction(by_protect_worst(protect)->part, 1, 1);
    assert_int_equal(by_protect_all(protect, &all), 0);
    by_runs_find(topology, all, &runs);
    assert_true(runs.runs);
    assert_int_equal(runs.fullest_trees, 2);
    assert_int_equal(by_protect_make(topology, &options, plan, &request, &links, &problem), 0);
    assert_int_equal(links->failure_count, 32);
    assert_int_equal(by_protect_backups(links), 1);
    by_protect_free(links);
    by_plan_free(all);
    by_protect_free(protect);
    by_plan_free(plan);
    by_topology_free(topology);
}

static void presets_keep_the_optimum_or_the_requested_part(void **state)
{
    struct by_topology *fabrics[] = {rig_preset("leafspine", "none", "3", "2", "3", NULL),
                                     rig_preset("torus", NULL, "3x4", NULL),
                                     rig_preset("hypercube", NULL, "3", NULL),
                                     rig_preset("rail", "all", "3", "3", NULL),
                                     rig_preset("a100", "none", "2", "4", NULL),
                                     rig_preset("twobox", "all", "3", NULL)};

    (void)state;
    for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++) {
        struct protect_tally best = {0}, less = {0};

        for (size_t c = 0; c < sizeof(collectives) / sizeof(collectives[0]); c++) {
            run(fabrics[f], collectives[c], (struct by_fraction){1, 1}, &best);
            run(fabrics[f], collectives[c], (struct by_fraction){1, 2}, &less);
        }
        tell(fabrics[f]->name, &best);
        tell("  ... part 1/2", &less);
        assert_int_equal(best.refused, 0);
        assert_int_equal(best.covered, less.covered);
        assert_true(less.backups <= best.backups);
        by_topology_free(fabrics[f]);
    }
}

/* Some of the hosts, unequal shards, ordered sums, few trees, switches that only forward. */
static void options_of_the_plan_are_kept(void **state)
{
    struct by_topology *topology = rig_preset("leafspine", "all", "3", "2", "3", NULL);
    bool member[64] = {false};
    int64_t shares[64] = {0};
    struct by_plan_options options[] = {
        {.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1, .in_network = true, .member = member},
        {.collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .in_network = true, .member = member},
        {.collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .in_network = true, .shares = shares},
        {.collective = BY_COLLECTIVE_REDUCE_SCATTER, .root = -1, .in_network = true, .ordered = true},
        {.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1, .in_network = true, .trees_max = 2},
        {.collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .in_network = true, .fixed_k = 1},
        {.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1},
    };

    (void)state;
    for (uint32_t i = 0, host = 0; i < topology->node_count; i++)
        if (topology->nodes[i].compute) {
            member[i] = host % 3 != 1;
            shares[i] = 1 + host++ % 2;
        }
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        struct protect_tally tally = {0};
        struct by_plan *plan;
        struct by_protect *protect =
            protect_all(topology, &options[i], (struct by_fraction){1, 1}, &plan, &tally);

        tell(by_collective_name(options[i].collective), &tally);
        assert_true(tally.covered >= 2 + 6); /* the spines, and their links */
        assert_int_equal(tally.refused, 0);
        by_protect_free(protect);
        by_plan_free(plan);
    }
    by_topology_free(topology);
}

/* Returns the first covered failure of a link that needed new trees. */
static uint32_t find_link(const struct by_protect *protect)
{
    for (uint32_t i = 0; i < protect->failure_count; i++)
        if (!protect->failures[i].is_switch && protect->failures[i].added > 0)
            return i;
    fail_msg("no such failure");
    return 0;
}

/* The plan's trees replace the set of a failure; a weight grows; the rate is not the set's. */
static void planted_faults_are_found(void **state)
{
    struct by_topology *topology = rig_preset("torus", NULL, "3x4", NULL), *left;
    struct by_plan_options options = {.collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .in_network = true};
    struct protect_tally tally = {0};
    struct by_plan *plan, *rest;
    struct by_protect *protect = protect_all(topology, &options, (struct by_fraction){1, 1}, &plan, &tally);
    uint32_t number = find_link(protect);
    struct by_protect_failure *failure = &protect->failures[number];
    struct by_protect_set right = failure->set;

    (void)state;
    failure->set = protect->own;
    assert_int_equal(by_protect_plan(protect, number, &left, &rest), 0);
    assert_int_equal(judge(rest, left, failure->part), BY_VERDICT_INVALID);
    by_plan_free(rest);
    by_topology_free(left);
    failure->set = right;
    failure->set.parts[0].weight.num++;
    assert_int_equal(by_protect_plan(protect, number, &left, &rest), 0);
    assert_int_equal(judge(rest, left, failure->part), BY_VERDICT_INVALID);
    by_plan_free(rest);
    by_topology_free(left);
    failure->set.parts[0].weight.num--;
    failure->set.rate.num--;
    assert_int_equal(by_protect_plan(protect, number, &left, &rest), 0);
    assert_int_equal(judge(rest, left, failure->part), BY_VERDICT_INVALID);
    by_plan_free(rest);
    by_topology_free(left);
    by_protect_free(protect);
    by_plan_free(plan);
    by_topology_free(topology);
}

static void switches_of_a_fabric_without_switches_are_refused(void **state)
{
    struct by_topology *topology = rig_preset("hypercube", NULL, "3", NULL);
    struct by_plan_options options = {.collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .in_network = true};
    struct by_protect_request request = {.switches = true, .part = {1, 1}};
    struct by_plan *plan = rig_plan(topology, options.collective, -1, 0, true);
    struct by_protect *protect;
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(by_protect_make(topology, &options, plan, &request, &protect, &problem), BY_EINVAL);
    assert_non_null(strstr(problem.text, "no switch"));
    assert_null(protect);
    by_plan_free(plan);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_failure_of_random_fabrics_leaves_a_set),
        cmocka_unit_test(a_backup_over_another_spine_serves_its_links_too),
        cmocka_unit_test(presets_keep_the_optimum_or_the_requested_part),
        cmocka_unit_test(options_of_the_plan_are_kept),
        cmocka_unit_test(planted_faults_are_found),
        cmocka_unit_test(switches_of_a_fabric_without_switches_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

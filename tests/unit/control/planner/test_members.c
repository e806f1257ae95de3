/*
 * Plans for some of the compute nodes: lists of them, plans compared with the remaining fabric and
 * with each of its cuts, and plan files that use forbidden nodes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/base/fraction.h"
#include "control/fabric/members.h"
#include "control/plan/shares.h"
#include "control/planner/planner.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"
#include "tests/unit/control/campaign/cuts.h"
#include "tests/unit/control/campaign/fabric.h"
#include "tests/unit/control/planner/rig.h"

/* leaf0 with host0, host1; leaf1 with host2, host3; spine0 above; all links 10. */
static struct by_topology *fabric(void)
{
    return rig_preset("leafspine", "all", "2", "1", "2", NULL);
}

static bool *members(const struct by_topology *topology, const char *text)
{
    struct by_problem problem;
    bool *member;

    if (by_members_parse(text, strlen(text), topology, &member, &problem) != 0)
        fail_msg("%s: %s", text, problem.text);
    return member;
}

static void lists_of_ranks_are_read(void **state)
{
    static const struct {
        const char *text;
        uint32_t bits;
    } cases[] = {
        {"host0,host1", 3},          {"host1,host0", 3},
        {"host0 host3", 9},          {"host3\nhost2\nhost1\n", 14},
        {",,host0,\t host2\r\n", 5}, {"host0,host1,host2,host3", 15},
    };
    struct by_topology *topology = fabric();

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool *member = members(topology, cases[i].text);

        for (uint32_t node = 0; node < topology->node_count; node++)
            assert_int_equal(member[node], cases[i].bits >> node & 1);
        free(member);
    }
    by_topology_free(topology);
}

static void wrong_lists_of_ranks_are_refused_with_place_and_reason(void **state)
{
    static const struct {
        const char *text;
        int line, column;
        const char *says;
    } cases[] = {
        {"", 0, 0, "0 compute nodes are named"},
        {"host0", 0, 0, "1 compute nodes are named"},
        {"host0,host9", 1, 7, "'host9' is not a node"},
        {"host0\nhost1\n  leaf0\n", 3, 3, "'leaf0' is a switch"},
        {"host0,host1\nhost0", 2, 1, "'host0' appears twice"},
        {"host0;host1", 1, 1, "'host0;host1' is not a node"},
    };
    struct by_topology *topology = fabric();

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_problem problem;
        bool *member;

        assert_true(by_members_parse(cases[i].text, strlen(cases[i].text), topology, &member, &problem) < 0);
        assert_null(member);
        if (!strstr(problem.text, cases[i].says) || problem.line != cases[i].line ||
            problem.column != cases[i].column)
            fail_msg("'%s': %d:%d: '%s'", cases[i].text, problem.line, problem.column, problem.text);
    }
    { /* a name with bytes after a zero is a different name */
        struct by_problem problem;
        bool *member;

        assert_true(by_members_parse("host0\0\0\0\0\0,host1", 16, topology, &member, &problem) < 0);
        assert_non_null(strstr(problem.text, "is not a node"));
    }
    by_topology_free(topology);
}

static struct by_plan *planned(const struct by_topology *topology, unsigned collective, const bool *member,
                               int64_t root)
{
    struct by_plan_options options = {
        .collective = collective, .root = root, .member = member, .in_network = true};
    struct by_problem problem = {0};
    struct by_plan *plan;

    if (by_plan_make(topology, &options, &plan, &problem) != 0)
        fail_msg("%s", problem.text);
    return plan;
}

/* Returns the value from trying every cut of the job's fabric. */
static struct cut_value value_of(const struct cuts *cuts, unsigned collective)
{
    switch (collective) {
    case BY_COLLECTIVE_BROADCAST:
        return cuts->broadcast;
    case BY_COLLECTIVE_REDUCE:
        return cuts->reduce;
    case BY_COLLECTIVE_ALLREDUCE:
        return cuts->allreduce;
    default:
        return cuts->inv_x;
    }
}

/* Checks one random job on one random fabric. Returns false if the ranks are not connected. */
static bool check_job(uint64_t seed)
{
    struct by_topology *topology = campaign_fabric(seed, (struct fabric_sizes){5, 11}), *part;
    bool *member = calloc(topology->node_count, sizeof(*member));
    struct by_prng prng = {seed * 31 + 7};
    struct by_problem problem = {0};
    uint32_t *whole, root = 0;
    struct cuts cuts;

    assert_non_null(member);
    do
        for (uint32_t i = 0; i < topology->node_count; i++) {
            topology->nodes[i].forward = topology->nodes[i].compute && by_prng_below(&prng, 2);
            member[i] = topology->nodes[i].compute && by_prng_below(&prng, 2);
        }
    while (by_topology_compute_count(topology) > 2 && by_members_count(topology, member) < 2);
    if (by_members_count(topology, member) < 2 ||
        by_members_part(topology, member, &part, &whole, &problem) != 0) {
        assert_true(by_members_count(topology, member) < 2 || strstr(problem.text, "connected only through"));
        free(member);
        by_topology_free(topology);
        return false;
    }
    while (!part->nodes[root].compute)
        root++;
    cuts_find(part, root, &cuts);
    for (unsigned collective = 1; collective < BY_COLLECTIVE_COUNT; collective++) {
        bool rooted = collective == BY_COLLECTIVE_BROADCAST || collective == BY_COLLECTIVE_REDUCE;
        bool shared = collective == BY_COLLECTIVE_ALLGATHER || collective == BY_COLLECTIVE_REDUCE_SCATTER;
        struct by_plan_options options = {
            .collective = collective, .root = rooted ? (int64_t)whole[root] : -1, .member = member};
        struct by_plan *plan;

        if (by_topology_unbalanced(part, NULL, NULL) >= 0 || collective == BY_COLLECTIVE_BARRIER)
            continue;
        options.in_network = true;
        if (by_plan_make(topology, &options, &plan, &problem) != 0)
            fail_msg("%s", problem.text);
        if (rooted || shared) {
            assert_true(cut_equals(value_of(&cuts, collective), shared ? plan->inv_x : plan->optimum));
            rig_verify(plan, topology, BY_VERDICT_OPTIMAL);
            rig_verify(plan, topology, BY_VERDICT_OPTIMAL);
        } else {
            bool reached = by_fraction_compare(plan->achieved, plan->optimum) == 0;

            assert_true(cut_allows(cuts.allreduce, plan->optimum));
            rig_verify(plan, topology, reached ? BY_VERDICT_OPTIMAL : BY_VERDICT_VALID);
        }
        by_plan_free(plan);
    }
    free(whole);
    free(member);
    by_topology_free(part);
    by_topology_free(topology);
    return true;
}

static void random_jobs_reach_the_least_of_all_cuts_of_what_they_may_use(void **state)
{
    uint32_t planned_jobs = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 250; seed++) {
        print_message("seed %llu\n", (unsigned long long)seed);
        planned_jobs += check_job(seed);
    }
    print_message("%u jobs planned\n", planned_jobs);
    assert_true(planned_jobs >= 100);
}

static void all_ranks_named_are_no_subset(void **state)
{
    struct by_topology *topology = fabric();
    bool *member = members(topology, "host0,host1,host2,host3");
    struct by_plan *plan = planned(topology, BY_COLLECTIVE_ALLGATHER, member, -1);

    (void)state;
    assert_null(plan->member);
    by_plan_free(plan);
    free(member);
    by_topology_free(topology);
}

static void half_of_each_of_two_mi250_boxes_has_the_rate_of_the_paper(void **state)
{
    static const char ranks[] = "gcd0,gcd1,gcd2,gcd3,gcd4,gcd5,gcd6,gcd7,"
                                "gcd16,gcd17,gcd18,gcd19,gcd20,gcd21,gcd22,gcd23";
    struct by_topology *topology = rig_preset("mi250", NULL, "2", NULL),
                       *half = rig_preset("mi250", NULL, "2", "8", NULL);
    bool *member = members(topology, ranks);
    struct by_plan *plan = planned(topology, BY_COLLECTIVE_ALLGATHER, member, -1),
                   *same = rig_plan(half, BY_COLLECTIVE_ALLGATHER, -1, 0, true);

    (void)state;
    rig_assert_fraction(plan->optimum, same->optimum.num, same->optimum.den);
    rig_assert_fraction(plan->achieved, same->achieved.num, same->achieved.den);
    assert_int_equal(plan->compute_count, 16);
    rig_verify(plan, topology, BY_VERDICT_OPTIMAL);
    by_plan_free(plan);
    by_plan_free(same);
    free(member);
    by_topology_free(topology);
    by_topology_free(half);
}

static void idle_nodes_carry_nothing_and_those_that_forward_do(void **state)
{
    struct by_topology *ring = rig_preset("ring", NULL, "5", "10", NULL);
    bool *member = members(ring, "host0,host2,host3");
    struct by_plan_options options = {
        .collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .member = member, .in_network = true};
    struct by_problem problem = {0};
    struct by_plan *plan = NULL;

    (void)state;
    assert_int_equal(by_plan_make(ring, &options, &plan, &problem), BY_EINVAL);
    assert_non_null(strstr(problem.text, "'host0' and 'host2' are connected only through"));
    ring->nodes[1].forward = true; /* a chain of host0, host2 and host3, 10 in both directions */
    plan = planned(ring, BY_COLLECTIVE_ALLGATHER, member, -1);
    rig_assert_fraction(plan->optimum, 15, 1); /* two of three shards enter host0 over 10 */
    rig_verify(plan, ring, BY_VERDICT_OPTIMAL);
    by_plan_free(plan);
    ring->nodes[4].forward = true; /* a ring of three */
    plan = planned(ring, BY_COLLECTIVE_ALLGATHER, member, -1);
    rig_assert_fraction(plan->optimum, 30, 1);
    rig_verify(plan, ring, BY_VERDICT_OPTIMAL);
    by_plan_free(plan);
    free(member);
    by_topology_free(ring);
}

static void ranks_and_shares_go_together(void **state)
{
    struct by_topology *topology = fabric();
    bool *member = members(topology, "host0,host1,host3");
    struct by_plan_options options = {
        .collective = BY_COLLECTIVE_REDUCE_SCATTER, .root = -1, .member = member, .in_network = true};
    struct by_problem problem = {0};
    struct by_plan *plan = NULL;
    int64_t *shares;

    (void)state;
    assert_true(by_shares_parse("[1, 2, 3, 4]", 12, topology, member, &shares, &problem) < 0);
    assert_int_equal(by_shares_parse("[1, 0, 3]", 9, topology, member, &shares, &problem), 0);
    assert_int_equal(shares[3], 3);
    options.shares = shares;
    assert_int_equal(by_plan_make(topology, &options, &plan, &problem), 0);
    assert_int_equal(plan->shares[3], 3);
    rig_verify(plan, topology, BY_VERDICT_OPTIMAL);
    by_plan_free(plan);
    shares[2] = 1; /* host2 is not a rank */
    assert_int_equal(by_plan_make(topology, &options, &plan, &problem), BY_EINVAL);
    assert_non_null(strstr(problem.text, "'host2' has a share"));
    free(shares);
    free(member);
    by_topology_free(topology);
}

static void a_plan_file_keeps_its_ranks(void **state)
{
    struct by_topology *topology = fabric();
    bool *member = members(topology, "host3,host0");
    struct by_plan *plan = planned(topology, BY_COLLECTIVE_ALLREDUCE, member, -1), *back;
    char path[] = "/tmp/banyan-members-XXXXXX", *text = rig_text(plan, topology), *again;
    struct by_problem problem = {0};
    int file = mkstemp(path);

    (void)state;
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    assert_non_null(strstr(text, "\"ranks\": [\"host0\", \"host3\"]"));
    if (by_plan_read(path, topology, &back, &problem) != 0)
        fail_msg("%s", problem.text);
    assert_int_equal(back->compute_count, 2);
    again = rig_text(back, topology);
    assert_string_equal(text, again);
    unlink(path);
    free(text);
    free(again);
    by_plan_free(plan);
    by_plan_free(back);
    free(member);
    by_topology_free(topology);
}

/* ---- tampering: host0, host1, host2 of the fabric; host3 is idle ---- */

static void one_rank_more(json_t *plan)
{
    json_array_append_new(json_object_get(plan, "ranks"), json_string("host3"));
}

static void one_rank_less(json_t *plan)
{
    json_array_remove(json_object_get(plan, "ranks"), 2);
}

static void no_ranks(json_t *plan)
{
    json_object_del(plan, "ranks");
}

static void a_single_rank(json_t *plan)
{
    json_object_set_new(plan, "ranks", json_pack("[s]", "host0"));
}

static void a_switch(json_t *plan)
{
    json_object_set_new(plan, "ranks", json_pack("[s, s, s]", "host0", "host1", "leaf0"));
}

static void a_stranger(json_t *plan)
{
    json_object_set_new(plan, "ranks", json_pack("[s, s, s]", "host0", "host1", "host9"));
}

static void twice(json_t *plan)
{
    json_object_set_new(plan, "ranks", json_pack("[s, s, s]", "host0", "host1", "host1"));
}

static void no_list(json_t *plan)
{
    json_object_set_new(plan, "ranks", json_integer(3));
}

static void an_edge_to_an_idle_node(json_t *plan)
{
    json_t *tree = json_array_get(json_object_get(plan, "trees"), 0);

    json_array_append_new(json_object_get(tree, "edges"), json_pack("[s, s, s]", "host2", "leaf1", "host3"));
}

static void an_idle_node_in_the_bottleneck(json_t *plan)
{
    json_array_append_new(json_object_get(json_object_get(plan, "bottleneck"), "nodes"),
                          json_string("host3"));
}

static void each_tampering_with_ranks_is_named(void **state)
{
    static const struct {
        void (*tamper)(json_t *plan);
        const char *says;
    } cases[] = {
        {one_rank_more, "does not reach compute node host3"},
        {one_rank_less, "host2, which is not a rank"},
        {no_ranks, "does not reach compute node host3"},
        {a_single_rank, "names 1 compute nodes"},
        {a_switch, "names leaf0"},
        {a_stranger, "'host9'"},
        {twice, "names host1"},
        {no_list, "is not an array"},
        {an_edge_to_an_idle_node, "host3, which is not a rank"},
        {an_idle_node_in_the_bottleneck, "host3, which is not a rank"},
    };
    struct by_topology *topology = fabric();
    bool *member = members(topology, "host0,host1,host2");

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_plan *plan = planned(topology, BY_COLLECTIVE_ALLGATHER, member, -1);
        char *text = rig_text(plan, topology);
        json_t *json = json_loads(text, 0, NULL);
        struct by_verify_report report;
        struct by_problem problem = {0};

        rig_verify(plan, topology, BY_VERDICT_OPTIMAL);
        free(text);
        cases[i].tamper(json);
        text = json_dumps(json, 0);
        assert_int_equal(by_verify_text(topology, text, strlen(text), &report, &problem), 0);
        if (report.verdict != BY_VERDICT_INVALID || !strstr(report.reason, cases[i].says))
            fail_msg("verdict %d: '%s', expected '%s'", (int)report.verdict, report.reason, cases[i].says);
        json_decref(json);
        free(text);
        by_plan_free(plan);
    }
    free(member);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_ranks_are_read),
        cmocka_unit_test(wrong_lists_of_ranks_are_refused_with_place_and_reason),
        cmocka_unit_test(random_jobs_reach_the_least_of_all_cuts_of_what_they_may_use),
        cmocka_unit_test(all_ranks_named_are_no_subset),
        cmocka_unit_test(half_of_each_of_two_mi250_boxes_has_the_rate_of_the_paper),
        cmocka_unit_test(idle_nodes_carry_nothing_and_those_that_forward_do),
        cmocka_unit_test(ranks_and_shares_go_together),
        cmocka_unit_test(a_plan_file_keeps_its_ranks),
        cmocka_unit_test(each_tampering_with_ranks_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Shards of unequal size: the file that defines them, plans compared with trying every cut, and
 * plan files with altered shares.
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
#include "control/plan/shares.h"
#include "control/planner/planner.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"
#include "tests/unit/control/campaign/cuts.h"
#include "tests/unit/control/campaign/fabric.h"
#include "tests/unit/control/planner/rig.h"

/* leaf0 with host0, host1; leaf1 with host2, host3; spine0 above; all links 10. */
static struct by_topology *fabric(const char *capable)
{
    return rig_preset("leafspine", capable, "2", "1", "2", NULL);
}

/* Returns the shares of a text, by node. Fails the test if the text is refused. */
static int64_t *parsed(const char *text, const struct by_topology *topology)
{
    struct by_problem problem;
    int64_t *shares;

    if (by_shares_parse(text, strlen(text), topology, NULL, &shares, &problem) != 0)
        fail_msg("%s: %s", text, problem.text);
    return shares;
}

static struct by_plan *planned(const struct by_topology *topology, unsigned collective, const char *text,
                               int64_t fixed_k, bool in_network)
{
    int64_t *shares = parsed(text, topology);
    struct by_plan_options options = {
        .collective = collective, .root = -1, .shares = shares, .fixed_k = fixed_k, .in_network = in_network};
    struct by_problem problem = {0};
    struct by_plan *plan;

    if (by_plan_make(topology, &options, &plan, &problem) != 0)
        fail_msg("%s on %s: %s", text, topology->name, problem.text);
    free(shares);
    return plan;
}

static void shares_are_read_by_name_or_by_rank_and_made_whole(void **state)
{
    static const struct {
        const char *text;
        int64_t shares[4];
    } cases[] = {
        {"{\"host0\": 1, \"host1\": 2, \"host2\": 3, \"host3\": 0}", {1, 2, 3, 0}},
        {"{\"host3\": 0, \"host2\": 3, \"host1\": 2, \"host0\": 1}", {1, 2, 3, 0}},
        {"[1, 2, 3, 0]", {1, 2, 3, 0}},
        {" [ 10 , 20,\n30, 0 ] ", {1, 2, 3, 0}},
        {"[0.5, \"1/3\", \"1/6\", 0.0]", {3, 2, 1, 0}},
        {"[1e3, 0, 500, 2.5e2]", {4, 0, 2, 1}},
        {"[0, 0, 7, 0]", {0, 0, 1, 0}},
        {"[9007199254740991, 0, 0, 1]", {9007199254740991, 0, 0, 1}},
    };
    struct by_topology *topology = fabric("all");

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t *shares = parsed(cases[i].text, topology);

        for (uint32_t node = 0; node < topology->node_count; node++)
            assert_int_equal(shares[node], node < 4 ? cases[i].shares[node] : 0);
        free(shares);
    }
    by_topology_free(topology);
}

static void wrong_shares_are_refused_with_place_and_reason(void **state)
{
    static const struct {
        const char *text;
        int line, column;
        const char *says;
    } cases[] = {
        {"", 1, 1, "not valid JSON"},
        {"gpu0 3\n", 1, 1, "not valid JSON"},
        {"3", 1, 1, "must be an object"},
        {"[1, 2, 3", 1, 9, "not valid JSON"},
        {"[1, 2, 3, 4] 5", 1, 14, "text after the first value"},
        {"[1, 2, 3]", 0, 0, "no share for compute node 'host3'"},
        {"[1, 2, 3, 4, 5]", 1, 13, "more shares than the 4 participating compute nodes"},
        {"[0, 0, 0, 0]", 0, 0, "all shares are 0"},
        {"[1,\n -2, 3, 4]", 2, 2, "the share of 'host1' is -2"},
        {"[1, true, 3, 4]", 1, 5, "the share of 'host1' is true"},
        {"[1, \"much\", 3, 4]", 1, 5, "the share of 'host1' is much"},
        {"[1, [2], 3, 4]", 1, 5, "the share of 'host1' is [2]"},
        {"[1, \"1/0\", 3, 4]", 1, 5, "the share of 'host1' is 1/0"},
        {"[1, 99999999999999999999, 3, 4]", 1, 5, "must fit 63 bits"},
        {"[9007199254740992, 1, 0, 0]", 0, 0, "more than 2^53"},
        {"[\"1/3037000493\", \"1/3037000489\", \"1/3037000453\", 0]", 0, 0, "more than 2^53"},
        {"{\"host9\": 1}", 1, 10, "'host9', which is not a node"},
        {"{\"leaf0\": 1}", 1, 10, "'leaf0', which is not a participating compute node"},
        {"{\"host0\": 1, \"host0\": 2}", 1, 22, "two shares for 'host0'"},
        {"{\"host0\": 1}", 0, 0, "no share for compute node 'host1'"},
    };
    struct by_topology *topology = fabric("all");

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_problem problem;
        int64_t *shares = NULL;

        assert_true(by_shares_parse(cases[i].text, strlen(cases[i].text), topology, NULL, &shares, &problem) <
                    0);
        assert_null(shares);
        if (!strstr(problem.text, cases[i].says) || problem.line != cases[i].line ||
            problem.column != cases[i].column)
            fail_msg("%s: %d:%d: '%s' instead of %d:%d: '%s'", cases[i].text, problem.line, problem.column,
                     problem.text, cases[i].line, cases[i].column, cases[i].says);
    }
    by_topology_free(topology);
}

/* Random shares, many of them 0. */
static void draw(struct by_prng *prng, const struct by_topology *topology, int64_t *shares)
{
    memset(shares, 0, topology->node_count * sizeof(*shares));
    do
        for (uint32_t i = 0; i < topology->node_count; i++)
            shares[i] = topology->nodes[i].compute && by_prng_below(prng, 3)
                            ? (int64_t)by_prng_below(prng, by_prng_below(prng, 2) ? 4 : 100)
                            : 0;
    while (by_shares_equal(shares, topology));
}

static void random_fabrics_with_random_shares_reach_the_least_of_all_cuts(void **state)
{
    enum { RUNS = 150 };

    (void)state;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        struct by_topology *topology = campaign_fabric(seed, (struct fabric_sizes){3, 10});
        int64_t *shares = calloc(topology->node_count, sizeof(*shares));
        struct by_prng prng = {seed};

        print_message("seed %llu: make planner-check N=1 SEED=%llu\n", (unsigned long long)seed,
                      (unsigned long long)seed);
        assert_non_null(shares);
        draw(&prng, topology, shares);
        for (unsigned i = 0; i < 4; i++) {
            unsigned collective = i % 2 ? BY_COLLECTIVE_REDUCE_SCATTER : BY_COLLECTIVE_ALLGATHER;
            struct by_plan_options options = {
                .collective = collective, .root = -1, .shares = shares, .in_network = i < 2};
            struct by_problem problem = {0};
            struct by_plan *plan;

            if (by_plan_make(topology, &options, &plan, &problem) != 0)
                fail_msg("%s", problem.text);
            assert_true(cut_equals(cuts_shares(topology, shares, i % 2), plan->inv_x));
            rig_verify(plan, topology, BY_VERDICT_OPTIMAL);
            by_plan_free(plan);
        }
        free(shares);
        by_topology_free(topology);
    }
}

static void data_of_one_node_alone_go_as_fast_as_a_broadcast(void **state)
{
    struct by_topology *topology = rig_preset("mi250", NULL, "2", "8", NULL);
    int64_t shares[64] = {0};
    struct by_plan_options options = {
        .collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .shares = shares, .in_network = true};
    struct by_plan *broadcast = rig_plan(topology, BY_COLLECTIVE_BROADCAST, 3, 0, true), *plan;
    struct by_problem problem = {0};

    (void)state;
    assert_true(topology->node_count <= 64);
    shares[3] = 5;
    if (by_plan_make(topology, &options, &plan, &problem) != 0)
        fail_msg("%s", problem.text);
    rig_assert_fraction(plan->optimum, broadcast->optimum.num, broadcast->optimum.den);
    rig_assert_fraction(plan->achieved, broadcast->achieved.num, broadcast->achieved.den);
    for (uint32_t i = 0; i < plan->tree_count; i++)
        assert_int_equal(plan->trees[i].root, 3);
    rig_verify(plan, topology, BY_VERDICT_OPTIMAL);
    by_plan_free(plan);
    by_plan_free(broadcast);
    by_topology_free(topology);
}

/* On a star each host receives all data but its own, and its own data leave once. */
static void a_star_is_bound_by_who_sends_most_or_hears_most(void **state)
{
    struct by_topology *star = rig_preset("star", "none", "4", "10", NULL);
    struct by_plan *plan;

    (void)state;
    /* 9 of 10 parts must enter host 2, all 10 enter host 3, which has no data: 10 x 10 / 10. */
    plan = planned(star, BY_COLLECTIVE_ALLGATHER, "[7, 2, 1, 0]", 0, true);
    rig_assert_fraction(plan->optimum, 10, 1); /* host 3 receives 10 parts over 10 GB/s */
    rig_verify(plan, star, BY_VERDICT_OPTIMAL);
    by_plan_free(plan);
    /* The sums for the other hosts must leave each host: 10 parts over 10 from host 3. */
    plan = planned(star, BY_COLLECTIVE_REDUCE_SCATTER, "[7, 2, 1, 0]", 0, true);
    rig_assert_fraction(plan->optimum, 10, 1);
    rig_verify(plan, star, BY_VERDICT_OPTIMAL);
    by_plan_free(plan);
    /* Three parts of four must enter each host. */
    plan = planned(star, BY_COLLECTIVE_ALLGATHER, "[3, 3, 3, 3]", 0, true);
    assert_null(plan->shares);
    rig_assert_fraction(plan->optimum, 40, 3);
    rig_verify(plan, star, BY_VERDICT_OPTIMAL);
    by_plan_free(plan);
    by_topology_free(star);
}

/* Boxes on one switch have different numbers of trees: those with many leave sends to the others,
 * and nothing is searched. Growing bundle after bundle makes nearly twice as many trees. */
static void boxes_with_unequal_shards_have_few_low_trees(void **state)
{
    struct by_topology *topology = rig_preset("a100", "none", "16", NULL);
    int64_t *shares = calloc(topology->node_count, sizeof(*shares));
    struct by_prng prng = {7};

    (void)state;
    assert_non_null(shares);
    for (uint32_t i = 0; i < topology->node_count; i++)
        shares[i] = topology->nodes[i].compute ? 1 + (int64_t)by_prng_below(&prng, 100) : 0;
    for (unsigned collective = BY_COLLECTIVE_REDUCE_SCATTER; collective <= BY_COLLECTIVE_ALLGATHER;
         collective++) {
        struct by_plan_options options = {
            .collective = collective, .root = -1, .shares = shares, .in_network = true};
        struct by_problem problem = {0};
        struct by_plan *plan;

        if (by_plan_make(topology, &options, &plan, &problem) != 0)
            fail_msg("%s", problem.text);
        rig_verify(plan, topology, BY_VERDICT_OPTIMAL);
        print_message("%u trees, %u hops\n", plan->tree_count,
                      by_plan_heights(plan, topology->node_count).max);
        assert_true(plan->tree_count <= 8 * topology->node_count);
        assert_true(by_plan_heights(plan, topology->node_count).max <= 8);
        by_plan_free(plan);
    }
    free(shares);
    by_topology_free(topology);
}

static void a_fixed_k_is_for_each_part_of_the_data(void **state)
{
    struct by_topology *topology = rig_preset("mi250", NULL, "2", NULL);

    (void)state;
    for (int64_t k = 1; k <= 3; k++) {
        struct by_plan *plan =
            planned(topology, BY_COLLECTIVE_ALLGATHER,
                    "[1,2,3,0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3,0]", k, true);
        bool optimal = by_fraction_compare(plan->achieved, plan->optimum) == 0;

        assert_int_equal(plan->k, k);
        rig_verify(plan, topology, optimal ? BY_VERDICT_OPTIMAL : BY_VERDICT_VALID);
        by_plan_free(plan);
    }
    by_topology_free(topology);
}

static void a_plan_file_keeps_its_shares(void **state)
{
    struct by_topology *topology = fabric("none");
    struct by_plan *plan = planned(topology, BY_COLLECTIVE_ALLGATHER, "[1, 2, 3, 0]", 0, true), *back;
    char path[] = "/tmp/banyan-shares-XXXXXX", *text = rig_text(plan, topology), *again;
    struct by_problem problem = {0};
    int file = mkstemp(path);

    (void)state;
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    if (by_plan_read(path, topology, &back, &problem) != 0)
        fail_msg("%s", problem.text);
    again = rig_text(back, topology);
    assert_string_equal(text, again);
    assert_non_null(strstr(text, "\"shares\": {\"host0\": 1, \"host1\": 2, \"host2\": 3, \"host3\": 0}"));
    unlink(path);
    free(text);
    free(again);
    by_plan_free(plan);
    by_plan_free(back);
    by_topology_free(topology);
}

/* ---- tampering ---- */

static void set_share(json_t *plan, const char *node, json_t *value)
{
    json_object_set_new(json_object_get(plan, "shares"), node, value);
}

static void more_than_the_trees_carry(json_t *plan)
{
    set_share(plan, "host0", json_integer(2));
}

static void some_where_there_were_none(json_t *plan)
{
    set_share(plan, "host3", json_integer(1));
}

static void none_where_there_were_some(json_t *plan)
{
    set_share(plan, "host1", json_integer(0));
}

static void none_at_all(json_t *plan)
{
    for (int i = 0; i < 4; i++) {
        char name[] = {'h', 'o', 's', 't', (char)('0' + i), 0};

        set_share(plan, name, json_integer(0));
    }
}

static void negative(json_t *plan)
{
    set_share(plan, "host0", json_integer(-1));
}

static void a_fraction(json_t *plan)
{
    set_share(plan, "host0", json_real(0.5));
}

static void a_node_left_out(json_t *plan)
{
    json_object_del(json_object_get(plan, "shares"), "host3");
}

static void a_stranger(json_t *plan)
{
    set_share(plan, "host9", json_integer(1));
}

static void a_switch(json_t *plan)
{
    set_share(plan, "leaf0", json_integer(0));
}

static void a_list(json_t *plan)
{
    json_object_set_new(plan, "shares", json_pack("[i, i, i, i]", 1, 2, 3, 0));
}

static void beyond_63_bits(json_t *plan)
{
    set_share(plan, "host0", json_integer(INT64_MAX));
    set_share(plan, "host1", json_integer(INT64_MAX));
}

static void left_out_altogether(json_t *plan)
{
    json_object_del(plan, "shares");
}

static void another_bound(json_t *plan)
{
    json_object_set_new(plan, "optimum", json_pack("{s:i, s:i}", "num", 40, "den", 3));
}

static void a_cut_that_no_data_must_leave(json_t *plan)
{
    json_t *bottleneck = json_object_get(plan, "bottleneck");

    json_object_set_new(bottleneck, "nodes", json_pack("[s]", "host3"));
    json_object_set_new(bottleneck, "compute_count", json_integer(1));
    json_object_set_new(bottleneck, "exiting", json_pack("{s:i, s:i}", "num", 10, "den", 1));
}

/* One part of the data weighs 5/3, all parts together 10. The tree of host0 is split in two,
 * neither of which is a whole number of equal trees. */
static void parts_of_trees(json_t *plan)
{
    json_t *trees = json_object_get(plan, "trees"), *first = json_array_get(trees, 0), *copy;

    copy = json_deep_copy(first);
    json_object_set_new(first, "weight", json_pack("{s:i, s:i}", "num", 1, "den", 1));
    json_object_set_new(copy, "weight", json_pack("{s:i, s:i}", "num", 2, "den", 3));
    json_array_append_new(trees, copy);
}

static void a_broadcast(json_t *plan)
{
    json_object_set_new(plan, "collective", json_string("broadcast"));
    json_object_set_new(plan, "root", json_string("host0"));
}

static void each_tampering_with_shares_is_named(void **state)
{
    static const struct {
        void (*tamper)(json_t *plan);
        const char *says;
    } cases[] = {
        {more_than_the_trees_carry, "are not in proportion"},
        {some_where_there_were_none, "are not in proportion"},
        {none_where_there_were_some, "are not in proportion"},
        {none_at_all, "all shares are 0"},
        {negative, "a share is not a count"},
        {a_fraction, "a share is not a count"},
        {a_node_left_out, "does not name compute node host3"},
        {a_stranger, "names 'host9'"},
        {a_switch, "names 'leaf0'"},
        {a_list, "is not an object"},
        {beyond_63_bits, "more than 63 bits"},
        {left_out_altogether, "equal share"},
        {another_bound, "does not prove"},
        {a_cut_that_no_data_must_leave, "bounds nothing"},
        {parts_of_trees, "whole number"},
        {a_broadcast, "has no shards"},
    };
    struct by_topology *topology = fabric("all");

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_plan *plan = planned(topology, BY_COLLECTIVE_ALLGATHER, "[1, 2, 3, 0]", 0, true);
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
    by_topology_free(topology);
}

static void shares_where_they_mean_nothing_are_refused(void **state)
{
    static const struct {
        struct by_plan_options options;
        int64_t shares[7];
        const char *says;
    } cases[] = {
        {{.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1}, {1, 2, 3, 4}, "allreduce has no shards"},
        {{.collective = BY_COLLECTIVE_BROADCAST, .root = 0}, {1, 2, 3, 4}, "broadcast has no shards"},
        {{.collective = BY_COLLECTIVE_ALLGATHER, .root = -1}, {0}, "all shares are 0"},
        {{.collective = BY_COLLECTIVE_ALLGATHER, .root = -1}, {1, -1}, "the share of 'host1' is -1"},
        {{.collective = BY_COLLECTIVE_ALLGATHER, .root = -1}, {1, 0, 0, 0, 1}, "the share of 'leaf0' is 1"},
        {{.collective = BY_COLLECTIVE_REDUCE_SCATTER, .root = -1, .ordered = true}, {1, 2}, "leave out one"},
        {{.collective = BY_COLLECTIVE_ALLGATHER, .root = -1},
         {(int64_t)1 << 60, 1, 1, 1},
         "round the shares"},
        {{.collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .fixed_k = 1000000},
         {(int64_t)1 << 50, 1, 1, 1},
         "or the shares"},
    };
    struct by_topology *topology = fabric("none");

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_plan_options options = cases[i].options;
        struct by_problem problem = {0};
        struct by_plan *plan = NULL;

        options.shares = cases[i].shares;
        assert_true(by_plan_make(topology, &options, &plan, &problem) < 0);
        assert_null(plan);
        if (!strstr(problem.text, cases[i].says))
            fail_msg("'%s' instead of '%s'", problem.text, cases[i].says);
    }
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_read_by_name_or_by_rank_and_made_whole),
        cmocka_unit_test(wrong_shares_are_refused_with_place_and_reason),
        cmocka_unit_test(random_fabrics_with_random_shares_reach_the_least_of_all_cuts),
        cmocka_unit_test(data_of_one_node_alone_go_as_fast_as_a_broadcast),
        cmocka_unit_test(a_star_is_bound_by_who_sends_most_or_hears_most),
        cmocka_unit_test(boxes_with_unequal_shards_have_few_low_trees),
        cmocka_unit_test(a_fixed_k_is_for_each_part_of_the_data),
        cmocka_unit_test(a_plan_file_keeps_its_shares),
        cmocka_unit_test(each_tampering_with_shares_is_named),
        cmocka_unit_test(shares_where_they_mean_nothing_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

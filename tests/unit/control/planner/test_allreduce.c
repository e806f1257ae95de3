/* Allreduce with roots in the network: few, low trees at the rate of the cut on regular fabrics,
 * and correctly reported rates elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/planner/pack/tree.h"
#include "tests/unit/control/planner/rig.h"

static void a_star_has_one_tree_rooted_at_the_switch(void **state)
{
    static const unsigned collectives[] = {BY_COLLECTIVE_ALLREDUCE, BY_COLLECTIVE_BARRIER};
    struct by_topology *topology = rig_preset("star", "all", "8", "10", NULL);

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct by_plan *plan = rig_verified(topology, collectives[i], -1, 0, true, BY_VERDICT_OPTIMAL);

        rig_assert_fraction(plan->achieved, 10, 1);
        assert_int_equal(plan->tree_count, 1);
        assert_int_equal(plan->trees[0].root, by_topology_find(topology, "switch0"));
        assert_int_equal(plan->trees[0].use, BY_TREE_BOTH);
        assert_int_equal(plan->trees[0].edge_count, 8);
        by_plan_free(plan);
    }
    by_topology_free(topology);
}

static void a_star_that_only_forwards_takes_two_phases(void **state)
{
    struct by_topology *topology = rig_preset("star", "all", "8", "10", NULL);
    struct by_plan *plan = rig_verified(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, false, BY_VERDICT_OPTIMAL);

    (void)state;
    rig_assert_fraction(plan->achieved, 40, 7);
    rig_assert_fraction(plan->optimum, 40, 7);
    rig_assert_fraction(plan->cut_exiting, 10, 1);
    by_plan_free(plan);
    by_topology_free(topology);
}

/* Switches that may only forward have the same optimum as switches that can only forward. */
static void a_plan_for_hosts_alone_is_proved_on_the_fabric_without_capabilities(void **state)
{
    static const struct {
        const char *fabric, *parameters[4];
        int64_t num, den;
    } rows[] = {{"a100", {"2"}, 520, 3}, {"twobox", {"4", "100", "10"}, 40, 1}, {"star", {"5"}, 25, 4}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_topology *able = rig_preset_list(rows[i].fabric, "all", rows[i].parameters),
                           *bare = rig_preset_list(rows[i].fabric, "none", rows[i].parameters);
        struct by_plan *plan = rig_verified(able, BY_COLLECTIVE_ALLREDUCE, -1, 0, false, BY_VERDICT_OPTIMAL),
                       *same = rig_verified(bare, BY_COLLECTIVE_ALLREDUCE, -1, 0, false, BY_VERDICT_OPTIMAL),
                       *back;
        char *text = rig_text(plan, able), *again;
        struct by_problem problem = {0};

        rig_assert_fraction(plan->optimum, rows[i].num, rows[i].den);
        rig_assert_fraction(same->optimum, rows[i].num, rows[i].den);
        assert_true(plan->hosts_only && !same->hosts_only);
        assert_int_equal(by_plan_parse(text, strlen(text), able, &back, &problem), 0);
        again = rig_text(back, able);
        assert_string_equal(text, again);
        /* A proof by parts is invalid where switches can do more than forward. */
        plan->hosts_only = false;
        rig_verify(plan, able, plan->proof ? BY_VERDICT_INVALID : BY_VERDICT_OPTIMAL);
        free(text);
        free(again);
        by_plan_free(plan);
        by_plan_free(same);
        by_plan_free(back);
        by_topology_free(able);
        by_topology_free(bare);
    }
}

static void a_plan_for_hosts_alone_may_not_branch_at_switches(void **state)
{
    struct by_topology *topology = rig_preset("star", "all", "8", "10", NULL);
    struct by_plan *plan = rig_verified(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true, BY_VERDICT_OPTIMAL);

    (void)state;
    plan->hosts_only = true;
    rig_verify(plan, topology, BY_VERDICT_INVALID);
    by_plan_free(plan);
    by_topology_free(topology);
}

static void regular_fabrics_reach_the_cut_with_few_low_trees(void **state)
{
    static const struct {
        const char *name, *capable, *texts[6];
        int64_t rate;
        uint32_t trees, height;
    } cases[] = {
        {"leafspine", "all", {"2", "1", "2"}, 10, 1, 2},
        {"leafspine", "all", {"4", "2", "4"}, 10, 1, 2},
        {"leafspine", "all", {"2", "2", "2", "10", "5"}, 10, 2, 2},
        {"leafspine", "leaf", {"2", "1", "2"}, 10, 1, 3},
        {"twobox", "all", {"4"}, 40, 4, 3},
        {"twobox", "all", {"2", "100", "10", "4"}, 20, 2, 3},
        {"twobox", "all", {"8", "100", "10", "16"}, 80, 8, 3},
        {"h100", "all", {"2"}, 400, 8, 3},
        {"h100", "all", {"8"}, 400, 8, 3},
        {"fattree", "all", {"4"}, 10, 1, 3},
        {"rail", "all", {"4", "4"}, 40, 4, 3},
        {"dragonfly", "all", {"5", "2", "2"}, 10, 1, 4},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const *t = cases[i].texts;
        struct by_topology *topology =
            rig_preset(cases[i].name, cases[i].capable, t[0], t[1], t[2], t[3], t[4], NULL);
        struct by_plan *plan =
            rig_verified(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true, BY_VERDICT_OPTIMAL);

        print_message("%s: %u trees\n", topology->name, plan->tree_count);
        rig_assert_fraction(plan->achieved, cases[i].rate, 1);
        assert_int_equal(plan->tree_count, cases[i].trees);
        for (uint32_t j = 0; j < plan->tree_count; j++)
            assert_true(by_plan_height(plan, &plan->trees[j], topology->node_count) <= cases[i].height);
        by_plan_free(plan);
        by_topology_free(topology);
    }
}

/* Boxes whose own switch only forwards, joined at a switch that adds. A box has 8 links of 50 and 8
 * of 450. A tree with e links out of the box uses e of the former and 2 (8 - e) of the latter. */
static void boxes_that_meet_at_one_switch_are_planned_one_by_one(void **state)
{
    static const char *const boxes[] = {"2", "16", "128"};

    (void)state;
    for (size_t i = 0; i < sizeof(boxes) / sizeof(boxes[0]); i++) {
        struct by_topology *topology = rig_preset("h100", "ib", boxes[i], NULL);
        struct by_plan *plan =
            rig_verified(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true, BY_VERDICT_OPTIMAL);

        rig_assert_fraction(plan->achieved, 275, 1);
        assert_true(plan->tree_count <= 16);
        by_plan_free(plan);
        by_topology_free(topology);
    }
}

/* Leaves only forward: each spine has bandwidth 20 to a leaf with 32 hosts. */
static void a_link_that_a_tree_passes_often_is_shared_in_parts(void **state)
{
    struct by_topology *topology = rig_preset("leafspine", "spine", "16", "16", "32", "10", "20", NULL);
    struct by_plan *plan = rig_verified(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true, BY_VERDICT_OPTIMAL);

    (void)state;
    rig_assert_fraction(plan->achieved, 10, 1);
    assert_true(plan->tree_count <= 16);
    assert_int_equal(by_plan_heights(plan, topology->node_count).max, 2);
    by_plan_free(plan);
    by_topology_free(topology);
}

static void the_slowest_part_says_how_fast_the_whole_is(void **state)
{
    /* Two rings of three at one switch, and one host linked to it with bandwidth 2. Alone the ring
     * with links of 2 reaches 3, the other ring 3/2. */
    struct by_topology *topology = rig_parse(
        "{\"name\": \"parts\", \"nodes\": [{\"name\": \"a\", \"kind\": \"compute\"},"
        "{\"name\": \"b\", \"kind\": \"compute\"}, {\"name\": \"c\", \"kind\": \"compute\"},"
        "{\"name\": \"d\", \"kind\": \"compute\"}, {\"name\": \"e\", \"kind\": \"compute\"},"
        "{\"name\": \"s\", \"kind\": \"switch\", \"multicast\": true, \"aggregate\": true}],"
        "\"links\": [{\"between\": [\"a\", \"b\"], \"bandwidth\": 2}, {\"between\": [\"b\", \"s\"], "
        "\"bandwidth\": 2},"
        "{\"between\": [\"s\", \"a\"], \"bandwidth\": 2}, {\"between\": [\"c\", \"d\"], \"bandwidth\": 1},"
        "{\"between\": [\"d\", \"s\"], \"bandwidth\": 1}, {\"between\": [\"s\", \"c\"], \"bandwidth\": 1},"
        "{\"between\": [\"e\", \"s\"], \"bandwidth\": 2}]}");
    struct by_plan *plan = rig_verified(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true, BY_VERDICT_OPTIMAL);

    (void)state;
    rig_assert_fraction(plan->achieved, 3, 2);
    assert_non_null(plan->proof);
    by_plan_free(plan);
    by_topology_free(topology);
}

/* Closed forms for links of 1 (Zhou and Sun 2026): K/(K-1) on rings, K/2 on complete graphs,
 * U 2^(U-1) / (2^U - 1) on cubes. */
static void fabrics_without_switches_have_their_closed_forms(void **state)
{
    static const struct {
        const char *name, *size;
        int64_t num, den;
    } cases[] = {{"ring", "4", 4, 3},     {"ring", "9", 9, 8},       {"complete", "5", 5, 2},
                 {"complete", "8", 4, 1}, {"hypercube", "3", 12, 7}, {"hypercube", "5", 80, 31}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology = rig_preset(cases[i].name, NULL, cases[i].size, "1", NULL);
        struct by_plan *plan =
            rig_verified(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true, BY_VERDICT_OPTIMAL);

        rig_assert_fraction(plan->achieved, cases[i].num, cases[i].den);
        rig_assert_fraction(plan->two_phases, cases[i].num, cases[i].den);
        assert_non_null(plan->proof);
        by_plan_free(plan);
        by_topology_free(topology);
    }
}

/* The same trees cannot serve both directions, so there are pairs; the first of each goes up. */
static void a_fabric_that_is_not_symmetric_gets_pairs_of_trees(void **state)
{
    struct by_topology *topology = rig_parse("{\"name\": \"cycle\", \"nodes\": [{\"name\": \"a\", \"kind\": "
                                             "\"compute\"}, {\"name\": \"b\", \"kind\": \"compute\"},"
                                             "{\"name\": \"c\", \"kind\": \"compute\"}], \"links\": "
                                             "[{\"from\": \"a\", \"to\": \"b\", \"bandwidth\": 1},"
                                             "{\"from\": \"b\", \"to\": \"c\", \"bandwidth\": 1}, {\"from\": "
                                             "\"c\", \"to\": \"a\", \"bandwidth\": 1}]}");
    struct by_plan *plan = rig_verified(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true, BY_VERDICT_OPTIMAL);

    (void)state;
    rig_assert_fraction(plan->achieved, 3, 4); /* K / (2 (K - 1)) on a cycle of K */
    assert_int_equal(plan->tree_count % 2, 0);
    for (uint32_t i = 0; i < plan->tree_count; i += 2) {
        assert_int_equal(plan->trees[i].use, BY_TREE_UP);
        assert_int_equal(plan->trees[i + 1].use, BY_TREE_DOWN);
        assert_int_equal(plan->trees[i].root, plan->trees[i + 1].root);
    }
    by_plan_free(plan);
    by_topology_free(topology);
}

/* Hosts send 10 and receive 20: reduce-scatter (12) followed by allgather (24) gives 8, reduction
 * in the network 10. */
static void an_unequal_star_reduces_in_the_network_with_one_pair(void **state)
{
    struct by_topology *topology = rig_preset("star", "all", "6", "10", NULL);
    struct by_plan *plan;

    (void)state;
    for (uint32_t i = 0; i < topology->arc_count; i++)
        if (topology->nodes[topology->arcs[i].to].compute)
            topology->arcs[i].capacity *= 2;
    plan = rig_verified(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true, BY_VERDICT_OPTIMAL);
    rig_assert_fraction(plan->achieved, 10, 1);
    assert_int_equal(plan->tree_count, 2);
    assert_int_equal(plan->trees[0].root, by_topology_find(topology, "switch0"));
    by_plan_free(plan);
    by_topology_free(topology);
}

/* A switch that only multicasts: each host still receives from the N - 1 others. One that only
 * aggregates: each host still sends to them. */
static void half_a_capability_is_used_as_far_as_it_goes(void **state)
{
    (void)state;
    for (int half = 0; half < 2; half++) {
        struct by_topology *topology = rig_preset("star", "all", "6", "10", NULL);
        struct by_plan *plan;

        topology->nodes[6].multicast = half;
        topology->nodes[6].aggregate = !half;
        plan = rig_verified(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true, BY_VERDICT_OPTIMAL);
        rig_assert_fraction(plan->achieved, 6, 1);
        by_plan_free(plan);
        by_topology_free(topology);
    }
}

/* The gain of branching switches over reduce-scatter and allgather: 2 (N - 1) / N on a star, 2 (M -
 * 1) / M for M boxes whose external links are the bottleneck. */
static void branching_switches_gain_what_the_closed_forms_say(void **state)
{
    static const struct {
        const char *name, *texts[4];
        int64_t num, den;
    } cases[] = {{"star", {"8", "10"}, 7, 4},
                 {"twobox", {"2", "100", "10", "4"}, 3, 2},
                 {"twobox", {"8", "1000", "10", "16"}, 15, 8}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const *t = cases[i].texts;
        struct by_topology *able = rig_preset(cases[i].name, "all", t[0], t[1], t[2], t[3], NULL),
                           *unable = rig_preset(cases[i].name, "none", t[0], t[1], t[2], t[3], NULL);
        struct by_plan *with = rig_verified(able, BY_COLLECTIVE_ALLREDUCE, -1, 0, true, BY_VERDICT_OPTIMAL),
                       *without =
                           rig_verified(unable, BY_COLLECTIVE_ALLREDUCE, -1, 0, true, BY_VERDICT_OPTIMAL);
        struct by_fraction gain;

        assert_int_equal(by_fraction_divide(with->achieved, without->achieved, &gain), 0);
        rig_assert_fraction(gain, cases[i].num, cases[i].den);
        rig_assert_fraction(without->two_phases, without->achieved.num, without->achieved.den);
        by_plan_free(with);
        by_plan_free(without);
        by_topology_free(able);
        by_topology_free(unable);
    }
}

/* A star of 4 whose switch adds at most 15. With b = 10 one tree adds 3 x 10, so half of the rate
 * is added there, and the rest as far as the links permit. */
static void a_limit_of_addition_costs_what_it_costs(void **state)
{
    struct by_topology *topology = rig_preset("star", "all", "4", "10", NULL);
    struct by_plan *plan;

    (void)state;
    topology->nodes[4].aggregate_rate = (struct by_fraction){30, 1};
    plan = rig_verified(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true, BY_VERDICT_OPTIMAL);
    rig_assert_fraction(plan->achieved, 10, 1);
    by_plan_free(plan);
    topology->nodes[4].aggregate_rate = (struct by_fraction){15, 1};
    plan = rig_verified(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true, BY_VERDICT_OPTIMAL);
    assert_true(by_fraction_compare(plan->achieved, (struct by_fraction){10, 1}) < 0);
    assert_true(by_fraction_compare(plan->achieved, plan->two_phases) > 0);
    by_plan_free(plan);
    plan = rig_verified(topology, BY_COLLECTIVE_REDUCE_SCATTER, -1, 0, true, BY_VERDICT_OPTIMAL);
    by_plan_free(plan);
    plan = rig_verified(topology, BY_COLLECTIVE_REDUCE, 0, 0, true, BY_VERDICT_OPTIMAL);
    by_plan_free(plan);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_star_has_one_tree_rooted_at_the_switch),
        cmocka_unit_test(a_star_that_only_forwards_takes_two_phases),
        cmocka_unit_test(a_plan_for_hosts_alone_is_proved_on_the_fabric_without_capabilities),
        cmocka_unit_test(a_plan_for_hosts_alone_may_not_branch_at_switches),
        cmocka_unit_test(regular_fabrics_reach_the_cut_with_few_low_trees),
        cmocka_unit_test(boxes_that_meet_at_one_switch_are_planned_one_by_one),
        cmocka_unit_test(a_link_that_a_tree_passes_often_is_shared_in_parts),
        cmocka_unit_test(the_slowest_part_says_how_fast_the_whole_is),
        cmocka_unit_test(fabrics_without_switches_have_their_closed_forms),
        cmocka_unit_test(a_fabric_that_is_not_symmetric_gets_pairs_of_trees),
        cmocka_unit_test(an_unequal_star_reduces_in_the_network_with_one_pair),
        cmocka_unit_test(half_a_capability_is_used_as_far_as_it_goes),
        cmocka_unit_test(branching_switches_gain_what_the_closed_forms_say),
        cmocka_unit_test(a_limit_of_addition_costs_what_it_costs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

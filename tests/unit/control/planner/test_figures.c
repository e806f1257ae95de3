/* Figures printed in the papers, and closed forms, reproduced exactly. The verifier checks each
 * plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "control/planner/planner.h"
#include "tests/unit/control/planner/rig.h"

/* ForestColl, NSDI'26, figure 5: two boxes of 4, 10 b inside, b outside: 1/x* = 1/b, k = 1. */
static void two_boxes_of_four_have_one_tree_for_each_root(void **state)
{
    struct by_topology *topology = rig_preset("twobox", "none", "4", "10", "1", NULL);
    struct by_plan *plan = rig_verified(topology, BY_COLLECTIVE_ALLGATHER, -1, 0, true, BY_VERDICT_OPTIMAL);

    (void)state;
    rig_assert_fraction(plan->inv_x, 1, 1);
    rig_assert_fraction(plan->achieved, 8, 1);
    rig_assert_fraction(plan->cut_exiting, 4, 1);
    assert_int_equal(plan->k, 1);
    by_plan_free(plan);
    by_topology_free(topology);
}

/* Section 6 of the same paper: 2 boxes of 8 A100. */
static void two_a100_boxes_need_thirteen_trees_for_each_root(void **state)
{
    struct by_topology *topology = rig_preset("a100", NULL, "2", NULL);
    static const unsigned collectives[] = {BY_COLLECTIVE_ALLGATHER, BY_COLLECTIVE_REDUCE_SCATTER};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct by_plan *plan = rig_verified(topology, collectives[i], -1, 0, true, BY_VERDICT_OPTIMAL);

        rig_assert_fraction(plan->inv_x, 3, 65);
        rig_assert_fraction(plan->achieved, 1040, 3);
        assert_int_equal(plan->k, 13);
        by_plan_free(plan);
    }
    by_topology_free(topology);
}

static void sixteen_h100_boxes_need_one_tree_for_each_root(void **state)
{
    struct by_topology *topology = rig_preset("h100", NULL, "16", NULL);
    struct by_plan *plan = rig_verified(topology, BY_COLLECTIVE_ALLGATHER, -1, 0, true, BY_VERDICT_OPTIMAL);

    (void)state;
    rig_assert_fraction(plan->achieved, 1280, 3);
    assert_int_equal(plan->k, 1);
    by_plan_free(plan);
    by_topology_free(topology);
}

static void two_mi250_boxes_need_eighty_three_trees_for_each_root(void **state)
{
    struct by_topology *topology = rig_preset("mi250", NULL, "2", NULL);
    struct by_plan *plan = rig_verified(topology, BY_COLLECTIVE_ALLGATHER, -1, 0, true, BY_VERDICT_OPTIMAL);

    (void)state;
    rig_assert_fraction(plan->inv_x, 15, 166);
    rig_assert_fraction(plan->achieved, 5312, 15);
    assert_int_equal(plan->k, 83);
    by_plan_free(plan);
    by_topology_free(topology);
}

/* Table 1 of the same paper: fixed k on 2 boxes of MI250. */
static void a_fixed_k_gives_the_rates_of_the_table(void **state)
{
    static const struct {
        int64_t k, num, den;
    } rows[] = {{1, 320, 1}, {2, 1024, 3}, {3, 2400, 7}, {4, 1024, 3}, {5, 8000, 23}};
    struct by_topology *topology = rig_preset("mi250", NULL, "2", NULL);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_plan *plan =
            rig_verified(topology, BY_COLLECTIVE_ALLGATHER, -1, rows[i].k, true, BY_VERDICT_VALID);

        print_message("k %lld: %lld/%lld\n", (long long)rows[i].k, (long long)plan->achieved.num,
                      (long long)plan->achieved.den);
        rig_assert_fraction(plan->achieved, rows[i].num, rows[i].den);
        rig_assert_fraction(plan->optimum, 5312, 15);
        assert_int_equal(plan->k, rows[i].k);
        by_plan_free(plan);
    }
    by_topology_free(topology);
}

/* The rates of that table determine the minimum k for a loss: 320, 341.33, 342.86, 341.33, 347.83
 * of 354.13. */
static void the_least_k_within_a_loss_is_found(void **state)
{
    static const struct {
        struct by_fraction loss;
        int64_t k;
    } rows[] = {{{1, 10}, 1}, {{1, 25}, 2}, {{35, 1000}, 3}, {{2, 100}, 5}, {{1, 1000000000}, 83}};
    struct by_topology *topology = rig_preset("mi250", NULL, "2", NULL);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_plan_options options = {
            .collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .in_network = true, .loss = rows[i].loss};
        struct by_problem problem = {0};
        struct by_plan *plan;

        assert_int_equal(by_plan_make(topology, &options, &plan, &problem), 0);
        assert_int_equal(plan->k, rows[i].k);
        rig_verify(plan, topology, rows[i].k == 83 ? BY_VERDICT_OPTIMAL : BY_VERDICT_VALID);
        by_plan_free(plan);
    }
    by_topology_free(topology);
}

/* A thousand GPUs, with and without branching switches. Numbers and heights of trees are those of
 * the present planner. */
static void a_thousand_gpus_have_optimal_plans(void **state)
{
    static const struct {
        const char *preset, *capable, *parameters[4];
        int64_t num, den, k;
        uint32_t trees, height;
    } cases[] = {{"a100", "none", {"128"}, 127, 25, 1, 1024, 4},
                 {"a100", "all", {"128"}, 127, 25, 1, 1024, 4},
                 {"mi250", "none", {"64"}, 63, 16, 1, 1024, 12},
                 {"fattree", "none", {"16"}, 1023, 10, 1, 1024, 24},
                 {"leafspine", "all", {"32", "32", "32"}, 1023, 10, 1, 1024, 8}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology =
            rig_preset_list(cases[i].preset, cases[i].capable, cases[i].parameters);
        struct by_plan *plan =
            rig_verified(topology, BY_COLLECTIVE_ALLGATHER, -1, 0, true, BY_VERDICT_OPTIMAL);
        uint32_t height = 0;

        for (uint32_t j = 0; j < plan->tree_count; j++) {
            uint32_t one = by_plan_height(plan, &plan->trees[j], topology->node_count);

            height = one > height ? one : height;
        }
        print_message("%s: k %lld, %u trees, height %u\n", topology->name, (long long)plan->k,
                      plan->tree_count, height);
        rig_assert_fraction(plan->inv_x, cases[i].num, cases[i].den);
        assert_int_equal(plan->k, cases[i].k);
        assert_int_equal(plan->tree_count, cases[i].trees);
        assert_true(height <= cases[i].height);
        by_plan_free(plan);
        by_topology_free(topology);
    }
}

/* N hosts of bandwidth b at one switch: each receives N - 1 shards. */
static void a_star_sends_each_shard_once(void **state)
{
    static const char *const capable[] = {"all", "none"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct by_topology *topology = rig_preset("star", capable[i], "8", "10", NULL);
        struct by_plan *plan =
            rig_verified(topology, BY_COLLECTIVE_ALLGATHER, -1, 0, true, BY_VERDICT_OPTIMAL);

        rig_assert_fraction(plan->achieved, 80, 7);
        assert_int_equal(plan->tree_count, 8);
        for (uint32_t j = 0; j < 8; j++)
            assert_int_equal(by_plan_height(plan, &plan->trees[j], topology->node_count), 2);
        by_plan_free(plan);
        by_topology_free(topology);
    }
}

/* A tree on a star with a multicasting switch is host -> switch -> all other hosts: one edge up,
 * then branches at the switch. */
static void a_capable_switch_is_a_node_of_the_tree(void **state)
{
    struct by_topology *topology = rig_preset("star", "all", "5", "10", NULL);
    static const unsigned collectives[] = {BY_COLLECTIVE_ALLGATHER, BY_COLLECTIVE_REDUCE_SCATTER,
                                           BY_COLLECTIVE_BROADCAST, BY_COLLECTIVE_REDUCE};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct by_plan *plan =
            rig_verified(topology, collectives[i], i < 2 ? -1 : 2, 0, true, BY_VERDICT_OPTIMAL);

        assert_int_equal(plan->tree_count, i < 2 ? 5 : 1);
        for (uint32_t j = 0; j < plan->tree_count; j++) {
            const struct by_tree *tree = &plan->trees[j];

            assert_int_equal(tree->edge_count, 5);
            assert_int_equal(by_plan_edge(plan, tree, 0).nodes[0], tree->root);
            for (uint32_t e = 0; e < 5; e++) {
                assert_int_equal(by_plan_edge(plan, tree, e).node_count, 2);
                assert_int_equal(by_plan_edge(plan, tree, e).nodes[e == 0 ? 1 : 0], 5);
            }
        }
        by_plan_free(plan);
    }
    by_topology_free(topology);
}

static void rings_cubes_and_complete_graphs_have_their_closed_forms(void **state)
{
    static const struct {
        const char *name, *size;
        int64_t num, den; /* allgather, b = 10: N times the bandwidth into a node over N - 1 */
    } cases[] = {{"ring", "4", 80, 3},
                 {"ring", "7", 140, 6},
                 {"complete", "6", 60, 1},
                 {"hypercube", "3", 240, 7},
                 {"hypercube", "4", 640, 15}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology = rig_preset(cases[i].name, NULL, cases[i].size, "10", NULL);
        struct by_plan *plan =
            rig_verified(topology, BY_COLLECTIVE_ALLGATHER, -1, 0, true, BY_VERDICT_OPTIMAL);

        rig_assert_fraction(plan->achieved, cases[i].num, cases[i].den);
        by_plan_free(plan);
        plan = rig_verified(topology, BY_COLLECTIVE_BROADCAST, 1, 0, true, BY_VERDICT_OPTIMAL);
        by_plan_free(plan);
        by_topology_free(topology);
    }
}

/* A broadcast from a host is limited by the host's own links or by the trunk between the boxes. */
static void broadcast_reaches_the_least_flow(void **state)
{
    struct by_topology *topology = rig_preset("a100", NULL, "2", NULL);
    static const unsigned collectives[] = {BY_COLLECTIVE_BROADCAST, BY_COLLECTIVE_REDUCE};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct by_plan *plan = rig_verified(topology, collectives[i], 3, 0, true, BY_VERDICT_OPTIMAL);

        rig_assert_fraction(plan->achieved, 200, 1);
        by_plan_free(plan);
        plan = rig_verified(topology, collectives[i], 3, 3, true, BY_VERDICT_VALID);
        rig_assert_fraction(plan->achieved, 75, 1);
        by_plan_free(plan);
    }
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_boxes_of_four_have_one_tree_for_each_root),
        cmocka_unit_test(two_a100_boxes_need_thirteen_trees_for_each_root),
        cmocka_unit_test(sixteen_h100_boxes_need_one_tree_for_each_root),
        cmocka_unit_test(two_mi250_boxes_need_eighty_three_trees_for_each_root),
        cmocka_unit_test(a_fixed_k_gives_the_rates_of_the_table),
        cmocka_unit_test(the_least_k_within_a_loss_is_found),
        cmocka_unit_test(a_thousand_gpus_have_optimal_plans),
        cmocka_unit_test(a_star_sends_each_shard_once),
        cmocka_unit_test(a_capable_switch_is_a_node_of_the_tree),
        cmocka_unit_test(rings_cubes_and_complete_graphs_have_their_closed_forms),
        cmocka_unit_test(broadcast_reaches_the_least_flow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

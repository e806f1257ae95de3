/* The figures that the papers print, and closed forms, reproduced exactly; each plan checked by the verifier.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/unit/control/plan/rig.h"

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

/* Section 6 of the same: 2 boxes of 8 A100. */
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

/* Table 1 of the same: fixed k on 2 boxes of MI250. */
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

/* A tree on a star whose switch multicasts is host -> switch -> all other hosts: one edge up, and branches at
 * the switch. */
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
        int64_t num, den; /* allgather with b = 10: N times the bandwidth into a node over N - 1 */
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

/* Broadcast from a host is limited by its own links, or by the trunk between the boxes. */
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
        cmocka_unit_test(a_star_sends_each_shard_once),
        cmocka_unit_test(a_capable_switch_is_a_node_of_the_tree),
        cmocka_unit_test(rings_cubes_and_complete_graphs_have_their_closed_forms),
        cmocka_unit_test(broadcast_reaches_the_least_flow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

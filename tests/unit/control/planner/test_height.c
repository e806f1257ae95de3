/* Heights: trees become lower where this costs nothing, and stay valid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control/fabric/vary.h"
#include "tests/unit/control/planner/rig.h"

/* Returns a preset without a part of its links. */
static struct by_topology *damaged(struct by_topology *whole, int64_t percent, uint64_t seed)
{
    struct by_variation variation = {.name = "damaged", .fail = {percent, 100}, .seed = seed};
    struct by_topology *topology = NULL;
    struct by_problem problem = {0};

    if (by_vary(whole, &variation, &topology, &problem) != 0)
        fail_msg("%s: %s", whole->name, problem.text);
    by_topology_free(whole);
    return topology;
}

static void a_fat_tree_is_entered_once_in_each_pod_and_leaf(void **state)
{
    /* From root to pod 6 hops, to leaf 4, to host 2, and one detour within a leaf. */
    struct by_topology *topology = rig_preset("fattree", "none", "8", "10", NULL);
    struct by_plan *plan = rig_verified(topology, BY_COLLECTIVE_ALLGATHER, -1, 0, true, BY_VERDICT_OPTIMAL);

    (void)state;
    assert_true(by_plan_heights(plan, topology->node_count).max <= 14);
    by_plan_free(plan);
    by_topology_free(topology);
}

static void lost_links_do_not_make_towers(void **state)
{
    static const struct {
        const char *name, *sizes[3];
        unsigned collective;
        uint32_t most;
        bool packed_low; /* no tree needs to be changed */
    } cases[] = {{"a100", {"16"}, BY_COLLECTIVE_ALLGATHER, 8, true},
                 {"a100", {"16"}, BY_COLLECTIVE_REDUCE_SCATTER, 8, true},
                 {"rail", {"16", "8"}, BY_COLLECTIVE_ALLGATHER, 10, false},
                 {"rail", {"16", "8"}, BY_COLLECTIVE_REDUCE_SCATTER, 10, false},
                 {"mi250", {"8"}, BY_COLLECTIVE_ALLGATHER, 10, false}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology = damaged(rig_preset_list(cases[i].name, "none", cases[i].sizes), 5, 3);
        struct by_plan *plan = rig_verified(topology, cases[i].collective, -1, 0, true, BY_VERDICT_OPTIMAL);
        struct by_heights heights = by_plan_heights(plan, topology->node_count);

        assert_int_equal(plan->packed.max == 0, cases[i].packed_low);
        assert_true(cases[i].packed_low || plan->packed.max > heights.max);
        assert_true(cases[i].packed_low || plan->packed.mean > heights.mean);
        assert_true(heights.max <= cases[i].most);
        by_plan_free(plan);
        by_topology_free(topology);
    }
}

static void lowered_trees_are_right_on_many_fabrics(void **state)
{
    static const struct {
        const char *name, *capable, *parameters[4];
    } cases[] = {{"a100", "none", {"6"}},
                 {"mi250", "none", {"3"}},
                 {"fattree", "none", {"4", "10"}},
                 {"fattree", "all", {"4", "10"}},
                 {"leafspine", "all", {"6", "4", "5", "10"}},
                 {"leafspine", "leaf", {"6", "4", "5", "10"}},
                 {"torus", NULL, {"5x5", "10"}}};
    static const unsigned collectives[] = {BY_COLLECTIVE_ALLGATHER, BY_COLLECTIVE_REDUCE_SCATTER,
                                           BY_COLLECTIVE_BROADCAST, BY_COLLECTIVE_REDUCE};
    uint32_t lowered = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint64_t seed = 1; seed <= 4; seed++)
            for (size_t c = 0; c < sizeof(collectives) / sizeof(collectives[0]); c++) {
                const char *list[5] = {cases[i].parameters[0], cases[i].parameters[1], cases[i].parameters[2],
                                       cases[i].parameters[3], NULL};
                struct by_topology *topology =
                    damaged(rig_preset_list(cases[i].name, cases[i].capable, list), 8, seed);
                bool rooted =
                    collectives[c] == BY_COLLECTIVE_BROADCAST || collectives[c] == BY_COLLECTIVE_REDUCE;
                struct by_plan *plan = rig_plan(topology, collectives[c], rooted ? 0 : -1, 0, true);
                struct by_heights heights = by_plan_heights(plan, topology->node_count);

                rig_verify(plan, topology, BY_VERDICT_OPTIMAL);
                assert_true(plan->packed.max == 0 || heights.max <= plan->packed.max);
                lowered += plan->packed.max > 0 && heights.mean < plan->packed.mean;
                by_plan_free(plan);
                by_topology_free(topology);
            }
    assert_true(lowered >= 20);
}

/* One root: where nodes have many children in one tree and none in the others, trees at the full
 * rate have few hops. Chains would have 78 hops at the A100 boxes, and 254 or more at the leaves.
 */
static void trees_of_one_root_are_complementary(void **state)
{
    static const struct {
        const char *name, *parameters[4];
        uint32_t most;
    } cases[] = {
        {"a100", {"128"}, 30}, {"leafspine", {"8", "8", "16", "10"}, 24}, {"star", {"100", "10"}, 12}};
    static const unsigned collectives[] = {BY_COLLECTIVE_BROADCAST, BY_COLLECTIVE_REDUCE};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t c = 0; c < sizeof(collectives) / sizeof(collectives[0]); c++) {
            const char *list[5] = {cases[i].parameters[0], cases[i].parameters[1], cases[i].parameters[2],
                                   cases[i].parameters[3], NULL};
            struct by_topology *topology = rig_preset_list(cases[i].name, "none", list);
            struct by_plan *plan = rig_verified(topology, collectives[c], 0, 0, true, BY_VERDICT_OPTIMAL);

            if (by_plan_heights(plan, topology->node_count).max > cases[i].most)
                fail_msg("%s: height %u", cases[i].name, by_plan_heights(plan, topology->node_count).max);
            assert_true(plan->tree_count <= 32);
            by_plan_free(plan);
            by_topology_free(topology);
        }
}

/* Thousands of trees into links that are used completely: the trees of the last few nodes are found
 * only by exchanges far from these nodes. All roots at one node took minutes, and 62 hops. */
static void a_damaged_torus_is_filled_with_low_trees(void **state)
{
    struct by_topology *topology = damaged(rig_preset("torus", NULL, "10x10x10", "10", NULL), 5, 1);
    struct by_plan *plan = rig_verified(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true, BY_VERDICT_OPTIMAL);

    (void)state;
    assert_true(by_plan_heights(plan, topology->node_count).max <= 20);
    by_plan_free(plan);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fat_tree_is_entered_once_in_each_pod_and_leaf),
        cmocka_unit_test(lost_links_do_not_make_towers),
        cmocka_unit_test(lowered_trees_are_right_on_many_fabrics),
        cmocka_unit_test(trees_of_one_root_are_complementary),
        cmocka_unit_test(a_damaged_torus_is_filled_with_low_trees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The operations of a tree's nodes according to hosts' tables. Single-threaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "control/fabric/site.h"
#include "offload/base/bytes.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

/* Determined by the slots of its entries and by the operations of their switches; operations that
 * every node must support are always included. */
static void a_leaf_says_what_all_nodes_of_its_tree_can_do(void **state)
{
    static const char *const trees[] = {"10 sw0: sw0>h0 sw0>h1 sw0>h2 sw0>h3", NULL};
    static const struct {
        uint16_t ops, dtypes, said_ops, said_dtypes;
        uint8_t det, modes;
    } cases[] = {
        {0, 0, 0xfe, 0x7fe, 0, BY_LEAF_MARKS | 1u << BY_MODE_FAST | 1u << BY_MODE_EXACT},
        {0, 0, 0xfe, 0x7fe, 1, BY_LEAF_MARKS | 1u << BY_MODE_FAST | 1u << BY_MODE_DET | 1u << BY_MODE_EXACT},
        {1u << BY_OP_SUM, 1u << BY_DTYPE_I32, 1u << BY_OP_SUM | 1u << BY_OP_BOR,
         1u << BY_DTYPE_I32 | 1u << BY_DTYPE_U8, 0, BY_LEAF_MARKS | 1u << BY_MODE_FAST | 1u << BY_MODE_EXACT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology = bench_topology("h0 h1 h2 h3 sw0*", "h0-sw0 h1-sw0 h2-sw0 h3-sw0");
        struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
        struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
        struct by_problem problem = {0};
        struct by_lowering *lowering;
        struct bench_images images;
        struct by_image_leaf leaf;

        topology->nodes[4].ops = cases[i].ops;
        topology->nodes[4].dtypes = cases[i].dtypes;
        assert_int_equal(
            by_lower(topology, &job, 1, &(struct by_lower_options){.det = cases[i].det}, &lowering, &problem),
            0);
        bench_plan_free(plan);
        images = bench_images(lowering);
        for (uint32_t host = 0; host < 4; host++) {
            by_image_leaf(images.bytes[host], 0, &leaf);
            assert_int_equal(leaf.modes, cases[i].modes);
            assert_int_equal(leaf.ops, cases[i].said_ops);
            assert_int_equal(leaf.dtypes, cases[i].said_dtypes);
        }
        bench_images_free(&images);
        by_lowering_free(lowering);
        by_topology_free(topology);
    }
}

/* Whether the first leaf of h0 states that queues mark, for trees on a line of two switches with x0
 * between them. */
static bool states_marks(unsigned collective, const char *root, const char *const *trees, const char *site)
{
    struct by_topology *topology =
        bench_topology("h0 h1 h2 sw0* sw1* x0", "h0-sw0 h1-sw0 h2-sw1 sw0-x0 x0-sw1 sw0-sw1 h0-h1");
    struct by_plan *plan = bench_plan(topology, collective, root, trees);
    struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
    struct by_problem problem = {0};
    struct by_lowering *lowering;
    struct bench_images images;
    struct by_image_leaf leaf;

    if (site != NULL)
        assert_int_equal(by_site_parse(site, strlen(site), topology, &problem), 0);
    assert_int_equal(by_lower(topology, &job, 1, &(struct by_lower_options){0}, &lowering, &problem), 0);
    bench_plan_free(plan);
    images = bench_images(lowering);
    by_image_leaf(images.bytes[0], 0, &leaf);
    for (uint32_t host = 1; host < 3; host++) {
        struct by_image_leaf other;

        by_image_leaf(images.bytes[host], 0, &other);
        assert_int_equal(other.modes, leaf.modes);
    }
    bench_images_free(&images);
    by_lowering_free(lowering);
    by_topology_free(topology);
    return (leaf.modes & BY_LEAF_MARKS) != 0;
}

/* All nodes between root and leaves must be switches of banyan: no host, bridge or router. */
static void a_leaf_states_marks_where_all_queues_are_those_of_switches(void **state)
{
    static const char *const direct[] = {"1 sw0: sw0>h0 sw0>h1 sw0>sw1 sw1>h2", NULL};
    static const char *const relayed[] = {"1 sw0: sw0>h0 sw0>h1 sw0>x0>sw1 sw1>h2", NULL};
    static const char *const from_host[] = {"1 h2: h2>sw1 sw1>sw0 sw0>h0 sw0>h1", NULL};
    static const char *const through_host[] = {"1 h2: h2>sw1 sw1>sw0 sw0>h0 h0>h1", NULL};
    static const char bridge[] =
        "{\"format\": \"banyan-site-1\", \"nodes\": [{\"name\": \"x0\", \"runs\": \"bridge\"}]}";

    (void)state;
    assert_true(states_marks(BY_COLLECTIVE_ALLREDUCE, NULL, direct, NULL));
    assert_true(states_marks(BY_COLLECTIVE_ALLREDUCE, NULL, direct, bridge));
    assert_true(states_marks(BY_COLLECTIVE_ALLREDUCE, NULL, relayed, NULL));
    assert_false(states_marks(BY_COLLECTIVE_ALLREDUCE, NULL, relayed, bridge));
    assert_true(states_marks(BY_COLLECTIVE_BROADCAST, "h2", from_host, NULL));
    assert_false(states_marks(BY_COLLECTIVE_BROADCAST, "h2", through_host, NULL));
}

/* A switch that is not the root, or that is in one tree of a pair alone, limits all leaves. */
static void each_switch_of_a_tree_or_a_pair_limits_its_leaves(void **state)
{
    static const struct {
        const char *links, *trees[3];
    } rows[] = {
        {"h0-s0 s0-s1 s1-h1 s1-h2", {"1 s0: s0>h0 s0>s1 s1>h1 s1>h2"}},
        {"h0-s0 h1-s0 h2-s0 h0-s1 h1-s1 h2-s1",
         {"1 up h0: h0>s0 s0>h1 s0>h2", "1 down h0: h0>s1 s1>h1 s1>h2"}},
        {"h0-s0 h1-s0 h2-s0 h0-s1 h1-s1 h2-s1",
         {"1 up h0: h0>s1 s1>h1 s1>h2", "1 down h0: h0>s0 s0>h1 s0>h2"}},
    };

    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct by_topology *topology = bench_topology("h0 h1 h2 s0* s1*", rows[r].links);
        struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, rows[r].trees);
        struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
        struct by_problem problem = {0};
        struct by_lowering *lowering;

        topology->nodes[4].ops = 1u << BY_OP_SUM;
        topology->nodes[4].dtypes = 1u << BY_DTYPE_I32;
        if (by_lower(topology, &job, 1, &(struct by_lower_options){0}, &lowering, &problem) != 0)
            fail_msg("%s", problem.text);
        assert_int_equal(lowering->tree_count, r == 0 ? 1 : 2);
        for (uint32_t t = 0; t < lowering->tree_count; t++) {
            assert_int_equal(lowering->trees[t].ops, 1u << BY_OP_SUM | 1u << BY_OP_BOR);
            assert_int_equal(lowering->trees[t].dtypes, 1u << BY_DTYPE_I32 | 1u << BY_DTYPE_U8);
        }
        by_lowering_free(lowering);
        bench_plan_free(plan);
        by_topology_free(topology);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_says_what_all_nodes_of_its_tree_can_do),
        cmocka_unit_test(a_leaf_states_marks_where_all_queues_are_those_of_switches),
        cmocka_unit_test(each_switch_of_a_tree_or_a_pair_limits_its_leaves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

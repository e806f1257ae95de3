/* Ordered reduction: each partial sum covers an interval of ranks. Order is found where it costs
 * nothing, and its cost is reported elsewhere. The verifier refuses plans that are not ordered.
 * SEED=N runs only one seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/fabric/vary.h"
#include "control/planner/network/ordered.h"
#include "control/planner/planner.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"
#include "tests/unit/control/planner/rig.h"

static uint64_t first_seed = 1, last_seed = 100;

static struct by_plan *plan_ordered(const struct by_topology *topology, unsigned collective, int64_t root)
{
    struct by_plan_options options = {
        .collective = collective, .root = root, .in_network = true, .ordered = true};
    struct by_problem problem = {0};
    struct by_plan *plan;

    if (by_plan_make(topology, &options, &plan, &problem) != 0)
        fail_msg("%s on %s: %s", by_collective_name(collective), topology->name, problem.text);
    assert_true(plan->ordered);
    assert_true(by_ordered_is(plan, topology));
    rig_verify(plan, topology,
               by_fraction_compare(plan->achieved, plan->optimum) == 0 ? BY_VERDICT_OPTIMAL
                                                                       : BY_VERDICT_VALID);
    return plan;
}

static void order_costs_nothing_where_neighbours_have_neighbouring_ranks(void **state)
{
    static const struct {
        const char *name, *texts[4];
        int64_t num, den;
    } cases[] = {
        {"star", {"8", "10"}, 10, 1}, {"leafspine", {"4", "2", "4"}, 10, 1}, {"fattree", {"4"}, 10, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology =
            rig_preset(cases[i].name, "all", cases[i].texts[0], cases[i].texts[1], cases[i].texts[2], NULL);
        struct by_plan *plan = plan_ordered(topology, BY_COLLECTIVE_ALLREDUCE, -1);

        rig_assert_fraction(plan->achieved, cases[i].num, cases[i].den);
        by_plan_free(plan);
        by_topology_free(topology);
    }
}

/* Host 1 of a star must receive the sums of 0 and of 2 to 5 separately: its link carries both. */
static void a_root_between_the_ranks_hears_two_partial_sums(void **state)
{
    struct by_topology *topology = rig_preset("star", "all", "6", "10", NULL);
    struct by_plan *middle = plan_ordered(topology, BY_COLLECTIVE_REDUCE, 1),
                   *end = plan_ordered(topology, BY_COLLECTIVE_REDUCE, 0);

    (void)state;
    rig_assert_fraction(middle->achieved, 5, 1);
    rig_assert_fraction(end->achieved, 10, 1);
    by_plan_free(middle);
    by_plan_free(end);
    by_topology_free(topology);
}

/* At least num / den of the bound, on fabrics too large for the exact program. */
static void order_costs_little_on_large_regular_fabrics(void **state)
{
    static const struct {
        const char *name, *capable, *parameters[5];
        unsigned collective;
        int64_t root;
        int64_t num, den;
        uint32_t height;
    } cases[] = {
        {"h100", "none", {"16"}, BY_COLLECTIVE_REDUCE, 0, 1, 1, 40},
        {"h100", "nvswitch", {"16"}, BY_COLLECTIVE_REDUCE_SCATTER, -1, 15, 16, 20},
        {"h100", "nvswitch", {"16"}, BY_COLLECTIVE_ALLREDUCE, -1, 1, 2, 20},
        {"rail", "all", {"16", "8", "450", "50"}, BY_COLLECTIVE_REDUCE_SCATTER, -1, 15, 16, 20},
        {"fattree", "none", {"8", "10"}, BY_COLLECTIVE_ALLREDUCE, -1, 1, 1, 20},
        {"leafspine", "spine", {"16", "8", "8", "10"}, BY_COLLECTIVE_REDUCE_SCATTER, -1, 99, 100, 30},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology = rig_preset_list(cases[i].name, cases[i].capable, cases[i].parameters);
        struct by_plan *plan = plan_ordered(topology, cases[i].collective, cases[i].root);
        struct by_fraction ratio;

        assert_true(plan->compute_count > 64);
        assert_int_equal(by_fraction_divide(plan->achieved, plan->optimum, &ratio), 0);
        if (by_fraction_compare(ratio, (struct by_fraction){cases[i].num, cases[i].den}) < 0 ||
            by_plan_heights(plan, topology->node_count).max > cases[i].height)
            fail_msg("%s: %lld/%lld of the bound, height %u", topology->name, (long long)ratio.num,
                     (long long)ratio.den, by_plan_heights(plan, topology->node_count).max);
        by_plan_free(plan);
        by_topology_free(topology);
    }
}

static void order_finds_a_way_round_what_is_lost(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct by_topology *whole = rig_preset("leafspine", "none", "12", "6", "8", "10", NULL), *topology;
        struct by_variation variation = {.name = "damaged", .fail = {1, 20}, .seed = seed};
        struct by_problem problem = {0};
        struct by_plan *plan;
        struct by_fraction ratio;

        print_message("replay with seed %llu of the variation\n", (unsigned long long)seed);
        assert_int_equal(by_vary(whole, &variation, &topology, &problem), 0);
        plan = plan_ordered(topology, BY_COLLECTIVE_ALLREDUCE, -1);
        assert_int_equal(by_fraction_divide(plan->achieved, plan->optimum, &ratio), 0);
        assert_true(by_fraction_compare(ratio, (struct by_fraction){1, 2}) >= 0);
        by_plan_free(plan);
        by_topology_free(topology);
        by_topology_free(whole);
    }
}

static void the_verifier_names_what_is_no_interval(void **state)
{
    struct by_topology *topology = rig_preset("ring", NULL, "5", "10", NULL);
    struct by_plan *plan = rig_plan(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true);
    struct by_verify_report report;
    struct by_problem problem = {0};
    char *text;

    (void)state;
    assert_false(by_ordered_is(plan, topology)); /* some tree wraps around the end of the ranks */
    plan->ordered = true;
    text = rig_text(plan, topology);
    assert_int_equal(by_verify_text(topology, text, strlen(text), &report, &problem), 0);
    assert_int_equal(report.verdict, BY_VERDICT_INVALID);
    assert_non_null(strstr(report.reason, "not an interval"));
    free(text);
    by_plan_free(plan);
    by_topology_free(topology);
}

static void what_adds_nothing_has_no_order(void **state)
{
    struct by_topology *topology = rig_preset("star", "all", "4", "10", NULL);
    struct by_plan_options options = {
        .collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .in_network = true, .ordered = true};
    struct by_problem problem = {0};
    struct by_plan *plan;

    (void)state;
    assert_int_equal(by_plan_make(topology, &options, &plan, &problem), BY_EINVAL);
    assert_non_null(strstr(problem.text, "does not reduce"));
    by_topology_free(topology);
}

static struct by_topology *random_fabric(uint64_t seed)
{
    struct by_prng prng = {seed * 32452843};
    uint32_t hosts = 2 + (uint32_t)by_prng_below(&prng, 6), switches = 1 + (uint32_t)by_prng_below(&prng, 3),
             n = hosts + switches;
    struct by_builder *builder = by_builder_new("random", "GB/s");
    struct by_topology *topology;
    struct by_problem problem = {0};

    for (uint32_t i = 0; i < n; i++) {
        bool able = by_prng_below(&prng, 3) > 0;
        struct by_node node = {.name = (char[]){(char)('a' + i), 0},
                               .compute = i < hosts,
                               .multicast = i >= hosts && able,
                               .aggregate = i >= hosts && able};

        by_builder_node(builder, &node);
    }
    for (uint32_t i = 0; i + 1 < n; i++) /* each host joins a switch, so that all are connected */
        by_builder_link(builder, i < hosts ? i : i + 1,
                        hosts + (uint32_t)by_prng_below(&prng, i < hosts ? switches : i + 1 - hosts), true,
                        (struct by_fraction){1 + (int64_t)by_prng_below(&prng, 4), 1},
                        (struct by_place){0, 0});
    if (by_builder_finish(builder, &topology, &problem) != 0)
        fail_msg("%s", problem.text);
    by_builder_free(builder);
    return topology;
}

static void ordered_plans_of_random_fabrics_are_right(void **state)
{
    static const unsigned collectives[] = {BY_COLLECTIVE_ALLREDUCE, BY_COLLECTIVE_REDUCE,
                                           BY_COLLECTIVE_REDUCE_SCATTER};

    (void)state;
    for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
        struct by_topology *topology = random_fabric(seed);

        print_message("replay with SEED=%llu\n", (unsigned long long)seed);
        for (size_t i = 0; i < 3; i++)
            by_plan_free(plan_ordered(topology, collectives[i], i == 1 ? 0 : -1));
        by_topology_free(topology);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_costs_nothing_where_neighbours_have_neighbouring_ranks),
        cmocka_unit_test(a_root_between_the_ranks_hears_two_partial_sums),
        cmocka_unit_test(order_costs_little_on_large_regular_fabrics),
        cmocka_unit_test(order_finds_a_way_round_what_is_lost),
        cmocka_unit_test(the_verifier_names_what_is_no_interval),
        cmocka_unit_test(what_adds_nothing_has_no_order),
        cmocka_unit_test(ordered_plans_of_random_fabrics_are_right),
    };
    const char *seed = getenv("SEED");

    if (seed)
        first_seed = last_seed = strtoull(seed, NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

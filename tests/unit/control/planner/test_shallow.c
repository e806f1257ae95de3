/* Latency-aware plans: no tree is higher than reported, the loss of rate is within the limit, and
 * the plans are valid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control/base/fraction.h"
#include "control/planner/planner.h"
#include "offload/base/errors.h"
#include "tests/unit/control/planner/rig.h"

static struct by_plan *plan_low(const struct by_topology *topology, unsigned collective, int64_t root,
                                struct by_fraction loss)
{
    struct by_plan_options options = {
        .collective = collective, .root = root, .in_network = true, .latency_aware = true, .loss_max = loss};
    struct by_problem problem = {0};
    struct by_plan *plan;

    if (by_plan_make(topology, &options, &plan, &problem) != 0)
        fail_msg("%s on %s: %s", by_collective_name(collective), topology->name, problem.text);
    rig_verify(plan, topology,
               by_fraction_compare(plan->achieved, plan->optimum) == 0 ? BY_VERDICT_OPTIMAL
                                                                       : BY_VERDICT_VALID);
    return plan;
}

static uint32_t height_of(const struct by_plan *plan, const struct by_topology *topology)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < plan->tree_count; i++) {
        uint32_t height = by_plan_height(plan, &plan->trees[i], topology->node_count);

        most = height > most ? height : most;
    }
    return most;
}

static void a_part_of_the_rate_buys_lower_trees(void **state)
{
    static const struct {
        unsigned collective;
        const char *name, *size;
    } cases[] = {{BY_COLLECTIVE_ALLREDUCE, "mi250", "2"},      {BY_COLLECTIVE_ALLGATHER, "mi250", "2"},
                 {BY_COLLECTIVE_REDUCE_SCATTER, "mi250", "1"}, {BY_COLLECTIVE_BROADCAST, "torus", "6x6"},
                 {BY_COLLECTIVE_REDUCE, "torus", "4x4"},       {BY_COLLECTIVE_ALLREDUCE, "torus", "6x6"}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology = rig_preset(cases[i].name, "none", cases[i].size, NULL);
        int64_t root = i == 3 || i == 4 ? 0 : -1;
        struct by_plan *best = rig_plan(topology, cases[i].collective, root, 0, true),
                       *low = plan_low(topology, cases[i].collective, root, (struct by_fraction){1, 2});
        struct by_fraction half;

        assert_int_equal(by_fraction_multiply(best->achieved, (struct by_fraction){1, 2}, &half), 0);
        assert_true(by_fraction_compare(low->achieved, half) >= 0);
        assert_true(height_of(low, topology) <= height_of(best, topology));
        assert_true(low->trade_count > 0);
        assert_true(by_fraction_compare(low->trades[low->trade_count - 1].rate, best->achieved) == 0);
        for (uint32_t j = 0; j + 1 < low->trade_count; j++)
            assert_true(low->trades[j].height < low->trades[j + 1].height);
        if (low->trade_count > 1 && by_fraction_compare(low->achieved, best->achieved) != 0)
            assert_true(height_of(low, topology) <= low->trades[low->trade_count - 2].height);
        by_plan_free(best);
        by_plan_free(low);
        by_topology_free(topology);
    }
}

/* Each listed height is faster than all lower ones. */
static void heights_and_rates_are_a_pareto_front(void **state)
{
    static const char *const names[] = {"mi250", "torus", "leafspine"}, *const sizes[] = {"2", "5x5", "3"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct by_topology *topology = rig_preset(names[i], "none", sizes[i], NULL);
        struct by_plan *plan = plan_low(topology, BY_COLLECTIVE_ALLREDUCE, -1, (struct by_fraction){1, 1000});

        assert_true(plan->trade_count > 0);
        for (uint32_t t = 1; t < plan->trade_count; t++) {
            assert_true(plan->trades[t].height > plan->trades[t - 1].height);
            assert_true(by_fraction_compare(plan->trades[t].rate, plan->trades[t - 1].rate) > 0);
        }
        by_plan_free(plan);
        by_topology_free(topology);
    }
}

static void the_whole_rate_cannot_be_given_up(void **state)
{
    struct by_topology *topology = rig_preset("ring", NULL, "6", "1", NULL);
    struct by_plan_options options = {.collective = BY_COLLECTIVE_ALLREDUCE,
                                      .root = -1,
                                      .in_network = true,
                                      .latency_aware = true,
                                      .loss_max = {1, 1}};
    struct by_problem problem = {0};
    struct by_plan *plan;

    (void)state;
    assert_int_equal(by_plan_make(topology, &options, &plan, &problem), BY_EINVAL);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_of_the_rate_buys_lower_trees),
        cmocka_unit_test(heights_and_rates_are_a_pareto_front),
        cmocka_unit_test(the_whole_rate_cannot_be_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Allreduce by column generation (control/study/bound/columns.h) on random fabrics of up to 24
 * nodes: one-way links, parallel links, switches of mixed capability. Each plan is verified, and
 * compared with the one that the planner makes without linear programs of floating point.
 * SEED=N runs only one seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/study/bound/pack.h"
#include "offload/base/errors.h"
#include "tests/unit/control/campaign/fabric.h"
#include "tests/unit/control/planner/rig.h"

#define SEEDS 44u
/* Weights may be rounded. */
static const struct by_fraction nearly_all = {65535, 65536};

static uint64_t first_seed = 1, last_seed = SEEDS;

static struct by_plan *plan_of(const struct by_topology *topology, by_plan_programs_fn *programs,
                               double limit)
{
    struct by_plan_options options = {.collective = BY_COLLECTIVE_ALLREDUCE,
                                      .root = -1,
                                      .in_network = true,
                                      .time_limit_s = limit,
                                      .programs = programs};
    struct by_problem problem = {0};
    struct by_plan *plan;

    if (by_plan_make(topology, &options, &plan, &problem) != 0)
        fail_msg("%s", problem.text);
    return plan;
}

static struct by_fraction ratio(const struct by_plan *plan)
{
    struct by_fraction ratio;

    assert_int_equal(by_fraction_divide(plan->achieved, plan->optimum, &ratio), 0);
    return ratio;
}

static void random_fabrics_reach_their_bound(void **state)
{
    uint64_t better = 0;

    (void)state;
    for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
        struct by_topology *topology = campaign_fabric(seed, (struct fabric_sizes){10, 24});
        struct by_plan *plan = plan_of(topology, by_program_pack, 0), *plain = plan_of(topology, NULL, 0);

        rig_verify(plan, topology,
                   by_fraction_compare(plan->achieved, plan->optimum) < 0 ? BY_VERDICT_VALID
                                                                          : BY_VERDICT_OPTIMAL);
        assert_true(by_fraction_compare(ratio(plan), nearly_all) > 0);
        assert_true(by_fraction_compare(plan->achieved, plain->achieved) >= 0);
        better += by_fraction_compare(plan->achieved, plain->achieved) > 0;
        by_plan_free(plain);
        by_plan_free(plan);
        by_topology_free(topology);
    }
    print_message("%llu of %llu are faster by columns\n", (unsigned long long)better,
                  (unsigned long long)(last_seed - first_seed + 1));
    if (last_seed > first_seed)
        assert_true(better >= 3);
}

/* A switch for each pair of `things` (at most 6), linked to those whose pair is disjoint from its
 * own, and a host at each: a third aggregates, a third multicasts, a third does both. 5 things make
 * the Petersen graph. The caller frees the fabric. */
static struct by_topology *kneser(uint32_t things)
{
    struct by_builder *builder = by_builder_new("kneser", "GB/s");
    struct by_place nowhere = {0, 0};
    struct by_problem problem = {0};
    struct by_topology *topology;
    uint32_t pairs[15], count = 0;
    char name[32];

    for (uint32_t i = 0; i < things; i++)
        for (uint32_t j = i + 1; j < things; j++)
            pairs[count++] = 1u << i | 1u << j;
    for (uint32_t i = 0; i < count; i++) {
        struct by_node node = {.name = name, .multicast = i % 3 != 0, .aggregate = i % 3 != 1};

        snprintf(name, sizeof(name), "switch%u", i);
        by_builder_node(builder, &node);
    }
    for (uint32_t i = 0; i < count; i++) {
        by_builder_compute(builder, "host%u", i);
        by_builder_link(builder, i, count + i, true, (struct by_fraction){2, 1}, nowhere);
        for (uint32_t j = 0; j < i; j++)
            if ((pairs[i] & pairs[j]) == 0)
                by_builder_link(builder, i, j, true, (struct by_fraction){1, 1}, nowhere);
    }
    assert_int_equal(by_builder_finish(builder, &topology, &problem), 0);
    by_builder_free(builder);
    return topology;
}

/* Trees that fill the links one by one reach the bound, too: 400 of 11 hops. */
static void trees_at_the_bound_become_lower_and_fewer(void **state)
{
    struct by_topology *topology = kneser(6);
    struct by_plan *plan = plan_of(topology, by_program_pack, 0), *plain = plan_of(topology, NULL, 0);
    uint32_t low = by_plan_heights(plan, topology->node_count).max,
             high = by_plan_heights(plain, topology->node_count).max;

    (void)state;
    print_message("%u hops and %u trees instead of %u and %u\n", low, plan->tree_count, high,
                  plain->tree_count);
    rig_verify(plan, topology, BY_VERDICT_OPTIMAL);
    assert_int_equal(by_fraction_compare(plan->achieved, plain->achieved), 0);
    assert_true(low <= 6 && low < high);
    assert_true(plan->tree_count < plain->tree_count);
    by_plan_free(plain);
    by_plan_free(plan);
    by_topology_free(topology);
}

/* 9 leaves of 8 hosts, each linked to 4 of 6 spines. Switches multicast, aggregate, do both or only
 * forward; two leaves add at a limited rate, which their hosts' trees exceed if all add there. The
 * caller frees the fabric. */
static struct by_topology *large_mixed(void)
{
    enum { LEAVES = 9, SPINES = 6, HOSTS = 8 };
    struct by_builder *builder = by_builder_new("large", "GB/s");
    struct by_place nowhere = {0, 0};
    struct by_problem problem = {0};
    struct by_topology *topology;
    char name[32];

    for (uint32_t i = 0; i < LEAVES + SPINES; i++) {
        struct by_node node = {
            .name = name, .multicast = i % 4 == 0 || i % 4 == 2, .aggregate = i % 4 == 1 || i % 4 == 2};

        if (i == 3 || i == 6)
            node = (struct by_node){
                .name = name, .multicast = true, .aggregate = true, .aggregate_rate = {11, 1}};
        snprintf(name, sizeof(name), "switch%u", i);
        by_builder_node(builder, &node);
    }
    for (uint32_t i = 0; i < LEAVES * HOSTS; i++)
        by_builder_compute(builder, "host%u", i);
    for (uint32_t i = 0; i < LEAVES; i++) {
        for (uint32_t j = 0; j < 4; j++)
            by_builder_link(builder, i, LEAVES + (i + j) % SPINES, true,
                            (struct by_fraction){2 + (i + j) % 5, 1}, nowhere);
        for (uint32_t j = 0; j < HOSTS; j++)
            by_builder_link(builder, i, LEAVES + SPINES + i * HOSTS + j, true,
                            (struct by_fraction){2 + j % 3, 1}, nowhere);
    }
    assert_int_equal(by_builder_finish(builder, &topology, &problem), 0);
    by_builder_free(builder);
    return topology;
}

/* 87 nodes of pairs are more than those of which the cheapest are sought. */
static void large_fabrics_of_mixed_switches_reach_their_bound(void **state)
{
    struct by_topology *topology = large_mixed();
    struct by_plan *plan = plan_of(topology, by_program_pack, 0), *plain = plan_of(topology, NULL, 0);

    (void)state;
    print_message("%.4f of the bound, %g instead of %g without programs\n", by_fraction_value(ratio(plan)),
                  by_fraction_value(plan->achieved), by_fraction_value(plain->achieved));
    rig_verify(plan, topology,
               by_fraction_compare(plan->achieved, plan->optimum) < 0 ? BY_VERDICT_VALID
                                                                      : BY_VERDICT_OPTIMAL);
    assert_true(by_fraction_compare(ratio(plan), (struct by_fraction){99, 100}) > 0);
    assert_true(by_fraction_value(plain->achieved) < 0.95 * by_fraction_value(plan->achieved));
    for (uint32_t i = 1; i < plan->tree_count; i++) /* pairs, or trees in both directions */
        assert_true((plan->trees[i].use == BY_TREE_BOTH) == (plan->trees[0].use == BY_TREE_BOTH));
    by_plan_free(plain);
    by_plan_free(plan);
    by_topology_free(topology);
}

/* The program in integers weighs trees as it finds them: they are as fast, and higher. */
static void trees_of_columns_are_low(void **state)
{
    struct by_topology *topology = kneser(5);
    struct by_plan *plan = plan_of(topology, by_program_pack, 0), *plain = plan_of(topology, NULL, 0);
    struct by_heights low = by_plan_heights(plan, topology->node_count),
                      high = by_plan_heights(plain, topology->node_count);

    (void)state;
    print_message("%u hops instead of %u\n", low.max, high.max);
    rig_verify(plan, topology, BY_VERDICT_OPTIMAL);
    assert_int_equal(by_fraction_compare(plan->achieved, plain->achieved), 0);
    assert_true(low.max <= 8 && low.max < high.max);
    assert_true(low.mean < high.mean);
    by_plan_free(plain);
    by_plan_free(plan);
    by_topology_free(topology);
}

/* Columns on this fabric (36 hosts, 782 links) take most of a minute; the plan so far is valid. */
static void a_time_limit_ends_the_search(void **state)
{
    struct by_topology *topology = campaign_fabric(1009, (struct fabric_sizes){10, 40});
    struct by_plan *plan = plan_of(topology, by_program_pack, 0.5);

    (void)state;
    assert_true(plan->hurried);
    assert_true(plan->achieved.num > 0);
    rig_verify(plan, topology, BY_VERDICT_VALID);
    by_plan_free(plan);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_fabrics_reach_their_bound),
        cmocka_unit_test(large_fabrics_of_mixed_switches_reach_their_bound),
        cmocka_unit_test(trees_at_the_bound_become_lower_and_fewer),
        cmocka_unit_test(trees_of_columns_are_low),
        cmocka_unit_test(a_time_limit_ends_the_search),
    };
    const char *seed = getenv("SEED");

    if (seed)
        first_seed = last_seed = strtoull(seed, NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Random balanced fabrics against every cut and every partition; the verifier checks every plan. A
 * failure prints the fabric with its seed; SEED=N runs only this seed.
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
#include "offload/base/prng.h"
#include "tests/unit/control/planner/exhaustive.h"
#include "tests/unit/control/planner/rig.h"

#define SEEDS 150u

static uint64_t first_seed = 1, last_seed = SEEDS;

static uint32_t below(struct by_prng *prng, uint32_t bound)
{
    return (uint32_t)by_prng_below(prng, bound);
}

static struct by_fraction random_bandwidth(struct by_prng *prng)
{
    static const struct by_fraction choices[] = {{1, 1}, {1, 1}, {2, 1},  {3, 1},
                                                 {5, 2}, {7, 1}, {10, 1}, {1, 3}};

    return choices[below(prng, sizeof(choices) / sizeof(choices[0]))];
}

/* Switches come first in the spanning tree. `capable`: 0 none, 1 all, 2 some, 3 some multicast and
 * some aggregate. */
static void add_nodes(struct by_builder *builder, struct by_prng *prng, uint32_t compute, uint32_t switches,
                      uint32_t capable)
{
    for (uint32_t i = 0; i < compute; i++)
        by_builder_compute(builder, "host%u", i);
    for (uint32_t i = 0; i < switches; i++) {
        struct by_node node = {.multicast = capable == 1 || (capable >= 2 && below(prng, 2))};
        char name[32];

        node.aggregate = capable == 3 ? below(prng, 2) : node.multicast;
        snprintf(name, sizeof(name), "switch%u", i);
        node.name = name;
        by_builder_node(builder, &node);
    }
}

/* Makes links in both directions and, with `cycles`, one-way cycles, so that every node is
 * balanced. */
static struct by_topology *random_topology(uint64_t seed, uint32_t compute_max, uint32_t switches_max,
                                           bool cycles)
{
    struct by_prng prng = {seed * 7919};
    uint32_t compute = 2 + below(&prng, compute_max - 1),
             switches = switches_max ? below(&prng, switches_max + 1) : 0;
    uint32_t n = compute + switches;
    struct by_builder *builder = by_builder_new("random", "GB/s");
    struct by_topology *topology;
    struct by_problem problem = {0};

    add_nodes(builder, &prng, compute, switches, below(&prng, 4));
    for (uint32_t i = 1; i < n; i++)
        by_builder_link(builder, (i + compute) % n, (below(&prng, i) + compute) % n, true,
                        random_bandwidth(&prng), (struct by_place){0, 0});
    for (uint32_t i = below(&prng, 2 * n); i > 0; i--) {
        uint32_t a = below(&prng, n), b = below(&prng, n - 1);

        by_builder_link(builder, a, b + (b >= a), true, random_bandwidth(&prng), (struct by_place){0, 0});
    }
    for (uint32_t i = cycles && n > 2 ? 1 + below(&prng, 3) : 0; i > 0; i--) {
        uint32_t start = below(&prng, n), step = 1 + below(&prng, 2), at = start;
        struct by_fraction bandwidth = random_bandwidth(&prng);

        do {
            by_builder_link(builder, at, (at + step) % n, false, bandwidth, (struct by_place){0, 0});
            at = (at + step) % n;
        } while (at != start);
    }
    if (by_builder_finish(builder, &topology, &problem) != 0)
        fail_msg("%s", problem.text);
    by_builder_free(builder);
    return topology;
}

static void announce(uint64_t seed, const char *test)
{
    print_message("%s: replay with SEED=%llu\n", test, (unsigned long long)seed);
}

static void assert_equal(struct by_fraction value, struct by_fraction expected)
{
    rig_assert_fraction(value, expected.num, expected.den);
}

static void plans_reach_the_least_of_all_cuts(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
        struct by_topology *topology = random_topology(seed, 6, 4, seed % 3 == 0);
        int64_t root = (int64_t)(seed % by_topology_compute_count(topology));
        struct by_fraction inv_x = exhaustive_inv_x(topology);

        announce(seed, "cuts");
        for (int in_network = 0; in_network < 2; in_network++) {
            struct by_plan *plan =
                rig_verified(topology, BY_COLLECTIVE_ALLGATHER, -1, 0, in_network, BY_VERDICT_OPTIMAL);

            assert_equal(plan->inv_x, inv_x);
            by_plan_free(plan);
            plan =
                rig_verified(topology, BY_COLLECTIVE_REDUCE_SCATTER, -1, 0, in_network, BY_VERDICT_OPTIMAL);
            assert_equal(plan->inv_x, inv_x);
            by_plan_free(plan);
            plan = rig_verified(topology, BY_COLLECTIVE_BROADCAST, root, 0, in_network, BY_VERDICT_OPTIMAL);
            assert_equal(plan->achieved, exhaustive_broadcast(topology, (uint32_t)root));
            by_plan_free(plan);
            plan = rig_verified(topology, BY_COLLECTIVE_REDUCE, root, 0, in_network, BY_VERDICT_OPTIMAL);
            assert_equal(plan->achieved, exhaustive_reduce(topology, (uint32_t)root));
            by_plan_free(plan);
        }
        by_topology_free(topology);
    }
}

static void allreduce_is_bounded_by_the_least_cut_and_never_below_two_phases(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
        struct by_topology *topology = random_topology(seed, 6, 4, seed % 3 == 0);
        struct by_fraction inv_x = exhaustive_inv_x(topology), two_phases,
                           cut = exhaustive_allreduce(topology);

        announce(seed, "allreduce");
        /* Reduce-scatter, then allgather: N x* / 2. */
        assert_int_equal(by_fraction_set((__int128)by_topology_compute_count(topology) * inv_x.den,
                                         (__int128)2 * inv_x.num, &two_phases),
                         0);
        for (int in_network = 0; in_network < 2; in_network++) {
            struct by_plan *plan = rig_plan(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, in_network);
            bool reached = by_fraction_compare(plan->achieved, plan->optimum) == 0;

            assert_equal(plan->cut_exiting, cut);
            assert_true(by_fraction_compare(plan->optimum, cut) <= 0);
            assert_int_equal(by_fraction_compare(plan->optimum, cut) < 0, plan->proof != NULL);
            assert_true(by_fraction_compare(plan->achieved, two_phases) >= 0);
            rig_verify(plan, topology, reached ? BY_VERDICT_OPTIMAL : BY_VERDICT_VALID);
            by_plan_free(plan);
        }
        by_topology_free(topology);
    }
}

static void allreduce_without_switches_reaches_the_least_of_all_partitions(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
        struct by_topology *topology = random_topology(seed, 7, 0, false);
        struct by_plan *plan = rig_plan(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true);

        announce(seed, "partitions");
        assert_equal(plan->achieved, exhaustive_partition(topology));
        assert_equal(plan->optimum, plan->achieved);
        rig_verify(plan, topology, BY_VERDICT_OPTIMAL);
        by_plan_free(plan);
        by_topology_free(topology);
    }
}

static void a_fixed_k_is_valid_and_better_as_k_approaches_the_optimum(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
        struct by_topology *topology = random_topology(seed, 6, 3, false);
        struct by_plan *best = rig_plan(topology, BY_COLLECTIVE_ALLGATHER, -1, 0, true);

        announce(seed, "fixed k");
        for (int64_t k = 1; k <= 4; k++) {
            struct by_plan *plan = rig_plan(topology, BY_COLLECTIVE_ALLGATHER, -1, k, true);
            bool optimal = by_fraction_compare(plan->achieved, best->achieved) == 0;

            assert_true(by_fraction_compare(plan->achieved, best->achieved) <= 0);
            assert_true(k % best->k != 0 || optimal);
            rig_verify(plan, topology, optimal ? BY_VERDICT_OPTIMAL : BY_VERDICT_VALID);
            by_plan_free(plan);
        }
        by_plan_free(best);
        by_topology_free(topology);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_reach_the_least_of_all_cuts),
        cmocka_unit_test(allreduce_is_bounded_by_the_least_cut_and_never_below_two_phases),
        cmocka_unit_test(allreduce_without_switches_reaches_the_least_of_all_partitions),
        cmocka_unit_test(a_fixed_k_is_valid_and_better_as_k_approaches_the_optimum),
    };
    const char *seed = getenv("SEED");

    if (seed)
        first_seed = last_seed = strtoull(seed, NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The planner and the program of reductions (SSR), which share no code, on small fabrics whose
 * switches add at limited rates. Links share nothing, hosts combine without cost, and the operator
 * commutes: then a planned reduce is as fast as possible. If only switches combine, the limits
 * decide, and SSR finds how many additions they permit.
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
#include "tests/unit/control/planner/rig.h"
#include "tests/unit/control/study/steady/rig.h"

#define SEEDS 24u

static uint64_t running;

static uint32_t below(struct by_prng *prng, uint32_t bound)
{
    return (uint32_t)by_prng_below(prng, bound);
}

/* Makes links in both directions. Hosts combine without cost; switches add at their own `rate` or
 * without limit. */
static struct by_topology *random_fabric(struct by_prng *prng, uint32_t hosts, uint32_t switches)
{
    struct by_builder *builder = by_builder_new("random", "GB/s");
    struct by_topology *topology = NULL;
    struct by_problem problem = {0};

    for (uint32_t i = 0; i < switches + hosts; i++) {
        char name[32];
        struct by_node node = {.name = name, .compute = i >= switches, .has_task_time = i >= switches};

        snprintf(name, sizeof(name), "%s%u", node.compute ? "host" : "switch", i);
        node.aggregate = node.multicast = !node.compute;
        if (!node.compute && below(prng, 3))
            node.aggregate_rate = (struct by_fraction){1 + below(prng, 8), 1 + below(prng, 2)};
        by_builder_node(builder, &node);
    }
    for (uint32_t i = 1; i < switches + hosts; i++)
        by_builder_link(builder, below(prng, i), i, true, (struct by_fraction){1 + below(prng, 6), 1},
                        (struct by_place){0, 0});
    for (uint32_t extra = below(prng, 4); extra > 0; extra--) {
        uint32_t a = below(prng, switches + hosts), b = below(prng, switches + hosts);

        if (a != b)
            by_builder_link(builder, a, b, true, (struct by_fraction){1 + below(prng, 6), 1},
                            (struct by_place){0, 0});
    }
    if (by_builder_finish(builder, &topology, &problem) != 0)
        fail_msg("%s", problem.text);
    by_builder_free(builder);
    return topology;
}

static struct by_series *reduction(const struct by_topology *topology, uint32_t first, uint32_t hosts,
                                   uint32_t target)
{
    uint32_t holders[8];
    struct by_steady_problem problem = {.topology = topology,
                                        .ports = BY_SERIES_MANY_PORTS,
                                        .operation = BY_SERIES_REDUCE,
                                        .commutative = true,
                                        .target_count = 1,
                                        .targets = &target,
                                        .holder_count = hosts,
                                        .holders = holders};

    for (uint32_t i = 0; i < hosts; i++)
        holders[i] = first + i;
    return steady_made(&problem);
}

static void assert_same(const mpq_t rate, struct by_fraction planned)
{
    steady_assert_rational(rate, (unsigned long)planned.num, (unsigned long)planned.den);
}

static void try_seed(uint64_t seed)
{
    struct by_prng prng = {seed * 6700417};
    uint32_t hosts = 2 + below(&prng, 3), switches = below(&prng, 4);
    struct by_topology *topology = random_fabric(&prng, hosts, switches);
    struct by_plan *all = rig_plan(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true);
    mpq_t allreduce;

    rig_verify(all, topology,
               all->achieved.num * all->optimum.den == all->optimum.num * all->achieved.den
                   ? BY_VERDICT_OPTIMAL
                   : BY_VERDICT_VALID);
    mpq_init(allreduce);
    mpq_set_si(allreduce, all->achieved.num, (unsigned long)all->achieved.den);
    mpq_canonicalize(allreduce);
    for (uint32_t i = 0; i < hosts; i++) {
        struct by_plan *plan =
            rig_verified(topology, BY_COLLECTIVE_REDUCE, switches + i, 0, true, BY_VERDICT_OPTIMAL);
        struct by_series *series = reduction(topology, switches, hosts, switches + i);

        assert_same(series->throughput, plan->achieved);
        /* an allreduce contains a reduce to every host */
        assert_true(mpq_cmp(allreduce, series->throughput) <= 0);
        by_series_free(series);
        by_plan_free(plan);
    }
    mpq_clear(allreduce);
    by_plan_free(all);
    by_topology_free(topology);
}

static void planned_reduces_are_as_fast_as_the_program_allows(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        running = seed;
        try_seed(seed);
    }
    running = 0;
}

/* Called even after a failure. */
static int tell_seed(void **state)
{
    (void)state;
    if (running)
        print_message("seed %llu\n", (unsigned long long)running);
    return 0;
}

/*
 * A star of `hosts` with links of 10 up and 1000 down, so that the way up is the limit. Hosts
 * combine without cost, so the switch's rate matters little to SSR. If hosts cannot combine (no
 * task_time), the switch makes n - 1 additions for each operation, and its limit r permits r / (n -
 * 1).
 */
static void a_switch_that_adds_alone_reduces_at_its_rate_over_the_additions(void **state)
{
    static const unsigned long rates[] = {7, 35, 70, 100};

    (void)state;
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
        for (uint32_t hosts = 3; hosts <= 5; hosts++) {
            struct by_builder *builder = by_builder_new("star", "GB/s");
            struct by_node node = {
                .name = (char[]){"switch"}, .aggregate = true, .aggregate_rate = {(int64_t)rates[i], 1}};
            struct by_topology *topology = NULL;
            struct by_problem problem = {0};
            struct by_series *series;
            unsigned long additions = hosts - 1;
            bool limited = rates[i] < 10 * additions;

            by_builder_node(builder, &node);
            for (uint32_t h = 0; h < hosts; h++) {
                by_builder_compute(builder, "host%u", h);
                by_builder_link(builder, 0, h + 1, true, (struct by_fraction){10, 1},
                                (struct by_place){0, 0});
            }
            assert_int_equal(by_builder_finish(builder, &topology, &problem), 0);
            by_builder_free(builder);
            series = reduction(topology, 1, hosts, 1);
            steady_assert_rational(series->throughput, limited ? rates[i] : 10, limited ? additions : 1);
            by_series_free(series);
            by_topology_free(topology);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(planned_reduces_are_as_fast_as_the_program_allows, tell_seed),
        cmocka_unit_test(a_switch_that_adds_alone_reduces_at_its_rate_over_the_additions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

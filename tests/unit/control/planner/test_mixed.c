/*
 * Allreduce on random fabrics on which some switches multicast, some aggregate, and some do both or
 * neither, some with one-way links. Each plan is verified, and nearly all reach their bound. SEED=N
 * runs only one seed.
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

#define SEEDS 120u

static uint64_t first_seed = 1, last_seed = SEEDS;

static uint32_t below(struct by_prng *prng, uint32_t bound)
{
    return (uint32_t)by_prng_below(prng, bound);
}

/* With `kinds` 0 all switches do both, with 1 some do both, with 2 some multicast and some
 * aggregate. With `limits` some aggregating switches have a limit. */
static void add_nodes(struct by_builder *builder, struct by_prng *prng, uint32_t hosts, uint32_t switches,
                      uint32_t kinds, bool limits)
{
    char name[32];

    for (uint32_t i = 0; i < hosts; i++)
        by_builder_compute(builder, "host%u", i);
    for (uint32_t i = 0; i < switches; i++) {
        struct by_node node = {.name = name, .multicast = kinds == 0 || below(prng, 2)};

        snprintf(name, sizeof(name), "switch%u", i);
        node.aggregate = kinds == 2 ? below(prng, 2) : node.multicast;
        if (limits && node.aggregate && below(prng, 2))
            node.aggregate_rate = (struct by_fraction){1 + below(prng, 12), 1 + below(prng, 2)};
        by_builder_node(builder, &node);
    }
}

static struct by_topology *mixed_fabric(uint64_t seed, bool limits)
{
    struct by_prng prng = {seed * 15485863};
    uint32_t hosts = 2 + below(&prng, 6), switches = 1 + below(&prng, 5), n = hosts + switches;
    struct by_builder *builder = by_builder_new("mixed", "GB/s");
    struct by_topology *topology;
    struct by_problem problem = {0};
    struct by_place nowhere = {0, 0};

    add_nodes(builder, &prng, hosts, switches, below(&prng, 3), limits);
    for (uint32_t i = 1; i < n; i++)
        by_builder_link(builder, (i + hosts) % n, (below(&prng, i) + hosts) % n, true,
                        (struct by_fraction){1 + below(&prng, 6), 1}, nowhere);
    for (uint32_t i = below(&prng, n + 3); i > 0; i--) {
        uint32_t a = below(&prng, n), b = (a + 1 + below(&prng, n - 1)) % n;

        by_builder_link(builder, a, b, true, (struct by_fraction){1 + below(&prng, 6), 1}, nowhere);
    }
    for (uint32_t i = 0; i < n && seed % 4 == 0 && n > 2; i++)
        by_builder_link(builder, i, (i + 1) % n, false, (struct by_fraction){2, 1}, nowhere);
    if (by_builder_finish(builder, &topology, &problem) != 0)
        fail_msg("%s", problem.text);
    by_builder_free(builder);
    return topology;
}

/* Plans each seed, verifies the plan, and counts those within a hundredth of the bound. */
static void run(bool limits, uint32_t per_hundred)
{
    uint64_t near = 0, optimal = 0, count = last_seed - first_seed + 1;

    for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
        struct by_topology *topology = mixed_fabric(seed, limits);
        struct by_plan *plan;
        bool equal;

        print_message("replay with SEED=%llu\n", (unsigned long long)seed);
        plan = rig_plan(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true);
        assert_true(by_fraction_compare(plan->achieved, plan->optimum) <= 0);
        equal = by_fraction_compare(plan->achieved, plan->optimum) == 0;
        rig_verify(plan, topology, equal ? BY_VERDICT_OPTIMAL : BY_VERDICT_VALID);
        optimal += equal;
        near += by_fraction_value(plan->achieved) >= 0.99 * by_fraction_value(plan->optimum);
        if (!equal)
            print_message("  ratio %.4f\n",
                          by_fraction_value(plan->achieved) / by_fraction_value(plan->optimum));
        by_plan_free(plan);
        by_topology_free(topology);
    }
    print_message("%llu of %llu optimal, %llu within a hundredth\n", (unsigned long long)optimal,
                  (unsigned long long)count, (unsigned long long)near);
    assert_true(count < SEEDS || near * 100 >= count * per_hundred);
}

static void allreduce_on_mixed_fabrics_is_within_a_hundredth_of_its_bound(void **state)
{
    (void)state;
    run(false, 95);
}

static void limits_of_addition_are_kept_and_nearly_used_up(void **state)
{
    (void)state;
    run(true, 95);
}

/* Three hosts at s3 may meet in s2, behind which s1 leads nowhere. */
static void a_switch_without_hosts_behind_it_is_in_no_tree(void **state)
{
    struct by_topology *topology = rig_parse(
        "{\"name\": \"chain\", \"nodes\": [{\"name\": \"h0\", \"kind\": \"compute\"},"
        "{\"name\": \"h1\", \"kind\": \"compute\"}, {\"name\": \"h2\", \"kind\": \"compute\"},"
        "{\"name\": \"h3\", \"kind\": \"compute\"}, {\"name\": \"h4\", \"kind\": \"compute\"},"
        "{\"name\": \"s0\", \"kind\": \"switch\"}, {\"name\": \"s3\", \"kind\": \"switch\"},"
        "{\"name\": \"s1\", \"kind\": \"switch\", \"multicast\": true, \"aggregate\": true},"
        "{\"name\": \"s2\", \"kind\": \"switch\", \"multicast\": true, \"aggregate\": true},"
        "{\"name\": \"s4\", \"kind\": \"switch\", \"multicast\": true, \"aggregate\": true},"
        "{\"name\": \"s5\", \"kind\": \"switch\", \"multicast\": true, \"aggregate\": true}],"
        "\"links\": [{\"between\": [\"s1\", \"s0\"], \"bandwidth\": 4},"
        "{\"between\": [\"s2\", \"s1\"], \"bandwidth\": 4}, {\"between\": [\"s3\", \"s2\"], \"bandwidth\": 4},"
        "{\"between\": [\"s4\", \"s3\"], \"bandwidth\": 4}, {\"between\": [\"s5\", \"s4\"], \"bandwidth\": 4},"
        "{\"between\": [\"h0\", \"s3\"], \"bandwidth\": 4}, {\"between\": [\"h1\", \"s3\"], \"bandwidth\": 4},"
        "{\"between\": [\"h2\", \"s4\"], \"bandwidth\": 4}, {\"between\": [\"h3\", \"s5\"], \"bandwidth\": 4},"
        "{\"between\": [\"h4\", \"s3\"], \"bandwidth\": 4}]}");

    (void)state;
    by_plan_free(rig_verified(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true, BY_VERDICT_OPTIMAL));
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_switch_without_hosts_behind_it_is_in_no_tree),
        cmocka_unit_test(allreduce_on_mixed_fabrics_is_within_a_hundredth_of_its_bound),
        cmocka_unit_test(limits_of_addition_are_kept_and_nearly_used_up),
    };
    const char *seed = getenv("SEED");

    if (seed)
        first_seed = last_seed = strtoull(seed, NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

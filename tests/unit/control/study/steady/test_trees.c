/*
 * Reductions whose trees are generated: on random small platforms they are exactly as fast as the
 * program SSR, and 64 values are reduced on fabrics for which SSR is too large. Every schedule is
 * checked, executed and read back (rig.h). A failure prints its seed; SEED=N runs only this seed,
 * N=M runs M seeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/fabric/build.h"
#include "control/study/series/rational.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"
#include "tests/unit/control/study/steady/rig.h"

#define SEEDS 60u
#define HOSTS 64u

static uint64_t first_seed = 1, last_seed = SEEDS, running;

static uint32_t below(struct by_prng *prng, uint32_t bound)
{
    return (uint32_t)by_prng_below(prng, bound);
}

static struct by_topology *finish(struct by_builder *builder)
{
    struct by_topology *topology = NULL;
    struct by_problem problem = {0};

    if (by_builder_finish(builder, &topology, &problem) != 0)
        fail_msg("%s", problem.text);
    by_builder_free(builder);
    return topology;
}

static void add_link(struct by_builder *builder, uint32_t from, uint32_t to, bool both, uint32_t bandwidth)
{
    by_builder_link(builder, from, to, both, (struct by_fraction){bandwidth, 1}, (struct by_place){0, 0});
}

/* What nodes of a random platform combine. */
enum adds { HOSTS_ADD = 1, SOME_SWITCHES_ADD, SWITCHES_TAKE_TIME };

/* Switches come first. The last node combines always, other hosts mostly. */
static struct by_topology *random_platform(struct by_prng *prng, uint32_t compute, uint32_t switches,
                                           enum adds adds)
{
    struct by_builder *builder = by_builder_new("random", "messages");
    uint32_t n = compute + switches;

    for (uint32_t i = 0; i < n; i++) {
        char name[32];
        struct by_node node = {.name = name, .compute = i >= switches};

        snprintf(name, sizeof(name), "%c%u", node.compute ? 'p' : 's', i);
        node.has_task_time = node.compute && (i == n - 1 || below(prng, 4) > 0);
        node.task_time = (struct by_fraction){below(prng, 4), 1 + below(prng, 3)};
        node.aggregate = !node.compute && adds != HOSTS_ADD && below(prng, 3) > 0;
        if (node.aggregate && adds == SWITCHES_TAKE_TIME)
            node.aggregate_rate = (struct by_fraction){1 + below(prng, 4), 1};
        by_builder_node(builder, &node);
    }
    for (uint32_t i = 1; i < n; i++)
        add_link(builder, below(prng, i), i, true, 1 + below(prng, 6));
    for (uint32_t extra = below(prng, n + 2); extra > 0; extra--) {
        uint32_t a = below(prng, n), b = below(prng, n);

        if (a != b)
            add_link(builder, a, b, below(prng, 2), 1 + below(prng, 5));
    }
    return finish(builder);
}

/* Sets `most` to the part of the time that the busiest processor works. */
static void find_busiest(const struct by_series *series, const struct by_topology *topology, mpq_t most)
{
    mpq_t *busy = by_rationals_new(topology->node_count), time, runs;

    mpq_inits(time, runs, NULL);
    mpq_set_ui(most, 0, 1);
    for (uint32_t l = 0; l < series->lane_count; l++)
        for (uint32_t t = 0; t < series->lanes[l].task_count; t++) {
            const struct by_series_task *task = &series->lanes[l].tasks[t];
            const struct by_node *node = &topology->nodes[task->node];

            if (task->to != BY_SERIES_NONE)
                continue;
            by_rational_set(time, node->has_task_time ? node->task_time : node->aggregate_rate);
            if (!node->has_task_time && node->aggregate_rate.num > 0)
                mpq_div(time, series->messages[task->message].size, time);
            mpz_set(mpq_numref(runs), series->lanes[l].amount);
            mpz_set(mpq_denref(runs), series->period);
            mpq_canonicalize(runs);
            mpq_mul(time, time, runs);
            mpq_add(busy[task->node], busy[task->node], time);
            if (mpq_cmp(busy[task->node], most) > 0)
                mpq_set(most, busy[task->node]);
        }
    mpq_clears(time, runs, NULL);
    by_rationals_free(busy, topology->node_count);
}

/* Makes the schedule by both programs: they are equally fast, and equally balanced if that is
 * required. */
static void compare(struct by_steady_problem *problem)
{
    struct by_series *trees, *whole;
    mpq_t busiest[2];

    mpq_inits(busiest[0], busiest[1], NULL);
    problem->trees_from = 1;
    trees = steady_made(problem);
    problem->trees_from = UINT32_MAX;
    whole = steady_made(problem);
    if (!mpq_equal(trees->throughput, whole->throughput))
        fail_msg("throughput %.15g by trees, %.15g by SSR", mpq_get_d(trees->throughput),
                 mpq_get_d(whole->throughput));
    find_busiest(trees, problem->topology, busiest[0]);
    find_busiest(whole, problem->topology, busiest[1]);
    if (problem->balance == BY_BALANCE_ALWAYS && !mpq_equal(busiest[0], busiest[1]))
        fail_msg("the busiest processor works %.15g of the time by trees, %.15g by SSR",
                 mpq_get_d(busiest[0]), mpq_get_d(busiest[1]));
    mpq_clears(busiest[0], busiest[1], NULL);
    by_series_free(trees);
    by_series_free(whole);
}

/* The first of `compute` hosts, in random order, is the target; the last `values` hold values. */
static void try_seed(uint64_t seed, bool commutative)
{
    struct by_prng prng = {seed * 7919 + commutative};
    uint32_t compute = 3 + below(&prng, commutative ? 3 : 4), switches = below(&prng, 4), nodes[16];
    uint32_t values = 2 + below(&prng, compute - 1);
    enum adds adds = (enum adds)(1 + below(&prng, commutative ? 2 : 3));
    struct by_topology *topology = random_platform(&prng, compute, switches, adds);
    struct by_steady_size sizes[2] = {{.first = BY_SERIES_NONE, .size = {1 + below(&prng, 3), 2}},
                                      {.last = 1, .size = {1 + below(&prng, 3), 1}}};
    struct by_steady_problem problem = {.topology = topology,
                                        .ports = (enum by_series_ports)(1 + seed % 3),
                                        .operation = BY_SERIES_REDUCE,
                                        .commutative = commutative,
                                        .balance = seed % 2 ? BY_BALANCE_NEVER : BY_BALANCE_ALWAYS,
                                        .target_count = 1,
                                        .targets = nodes,
                                        .holder_count = values,
                                        .holders = nodes + compute - values,
                                        .size_count = below(&prng, commutative ? 2 : 3),
                                        .sizes = sizes};

    for (uint32_t i = 0; i < compute; i++)
        nodes[i] = switches + i;
    for (uint32_t i = compute; i > 1; i--) {
        uint32_t j = below(&prng, i), kept = nodes[i - 1];

        nodes[i - 1] = nodes[j];
        nodes[j] = kept;
    }
    for (uint32_t i = 0; i < compute - values; i++) /* which hold none */
        if (commutative && topology->nodes[nodes[i]].has_task_time)
            problem.holder_count = compute, problem.holders = nodes;
    compare(&problem);
    by_topology_free(topology);
}

static void trees_in_order_are_as_fast_as_the_whole_program(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
        running = seed;
        try_seed(seed, false);
    }
    running = 0;
}

static void trees_in_any_order_are_as_fast_as_the_whole_program(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
        running = seed;
        try_seed(seed, true);
    }
    running = 0;
}

/* Called even after a failure. */
static int tell_seed(void **state)
{
    (void)state;
    if (running)
        print_message("replay: SEED=%llu build/release/tests/steady-trees\n", (unsigned long long)running);
    return 0;
}

/* ---- 64 values ---- */

/* Leaves of 8 hosts and 4 spines. Hosts combine, or the switches do. */
static struct by_topology *leaf_spine(uint64_t seed, bool hosts)
{
    struct by_builder *builder = by_builder_new("leaf-spine", "messages");
    struct by_prng prng = {seed};

    for (uint32_t i = 0; i < HOSTS + 12; i++) {
        char name[32];
        struct by_node node = {.name = name, .compute = i < HOSTS};

        snprintf(name, sizeof(name), "%c%u", node.compute ? 'h' : 's', i);
        node.has_task_time = node.compute && hosts;
        node.task_time = (struct by_fraction){1, 1 + below(&prng, 9)};
        node.aggregate = !node.compute && !hosts;
        by_builder_node(builder, &node);
    }
    for (uint32_t i = 0; i < HOSTS; i++)
        add_link(builder, i, HOSTS + i / 8, true, 1 + below(&prng, 9));
    for (uint32_t leaf = 0; leaf < 8; leaf++)
        for (uint32_t spine = 0; spine < 4; spine++)
            add_link(builder, HOSTS + leaf, HOSTS + 8 + spine, true, 1 + below(&prng, 9));
    return finish(builder);
}

/* Makes, checks, writes and reads a schedule, and one with a short period. */
static void reduce_64(const struct by_topology *topology, enum by_series_ports ports, bool commutative)
{
    uint32_t holders[HOSTS], target = 5;
    struct by_steady_problem problem = {.topology = topology,
                                        .ports = ports,
                                        .operation = BY_SERIES_REDUCE,
                                        .commutative = commutative,
                                        .balance = BY_BALANCE_CHEAP,
                                        .target_count = 1,
                                        .targets = &target,
                                        .holder_count = HOSTS,
                                        .holders = holders};
    struct by_series *series = NULL, *fixed = NULL;
    struct by_series_verdict verdict;
    struct by_problem trouble = {0};
    mpq_t loss;
    mpz_t period;

    for (uint32_t i = 0; i < HOSTS; i++)
        holders[i] = i * 5 % HOSTS;
    if (by_steady_make(&problem, &series, &trouble) != 0)
        fail_msg("%s", trouble.text);
    by_series_check(series, topology, &verdict);
    if (verdict.verdict != BY_VERDICT_OPTIMAL)
        fail_msg("%s", verdict.reason);
    mpq_init(loss);
    mpz_init_set_ui(period, 100);
    assert_int_equal(by_steady_fix(series, topology, period, &fixed, loss, &trouble), 0);
    by_series_check(fixed, topology, &verdict);
    if (verdict.verdict == BY_VERDICT_INVALID)
        fail_msg("%s", verdict.reason);
    mpq_sub(loss, loss, series->throughput);
    mpq_add(loss, loss, fixed->throughput);
    assert_true(mpq_sgn(loss) >= 0);
    by_series_free(fixed);
    by_series_free(series);
    mpq_clear(loss);
    mpz_clear(period);
}

static void hosts_under_switches_that_add_reduce_64_values(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        struct by_topology *topology = leaf_spine(i, false);

        reduce_64(topology, (enum by_series_ports)(1 + i % 3), i >= 3);
        by_topology_free(topology);
    }
}

static void hosts_that_add_reduce_64_values_in_any_order(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct by_topology *topology = leaf_spine(7 + i, true);

        reduce_64(topology, (enum by_series_ports)(1 + i), true);
        by_topology_free(topology);
    }
}

/* ---- what is refused ---- */

static struct by_series *small_sets(const struct by_topology *topology)
{
    static const uint32_t nodes[] = {0, 1, 2};
    struct by_steady_problem problem = {.topology = topology,
                                        .ports = BY_SERIES_ONE_PORT,
                                        .operation = BY_SERIES_REDUCE,
                                        .commutative = true,
                                        .balance = BY_BALANCE_NEVER,
                                        .target_count = 1,
                                        .targets = nodes,
                                        .holder_count = 3,
                                        .holders = nodes,
                                        .trees_from = 1};

    return steady_made(&problem);
}

static void higher_price(struct by_series *series)
{
    mpq_add(series->prices[0].price, series->prices[0].price, series->prices[0].price);
}

static void no_prices(struct by_series *series)
{
    for (uint32_t p = 0; p < series->price_count; p++)
        mpq_set_ui(series->prices[p].price, 0, 1);
}

static void better_bound(struct by_series *series)
{
    mpq_add(series->optimum, series->optimum, series->optimum);
}

static void other_size(struct by_series *series)
{
    mpq_set_ui(series->messages[series->message_count - 1].size, 2, 1);
}

static void same_set(struct by_series *series)
{
    series->messages[1].values = series->messages[0].values;
}

static void every_corruption_of_sets_is_named(void **state)
{
    static const char platform[] =
        "{\"name\": \"triangle\", \"nodes\": [{\"name\": \"0\", \"kind\": \"compute\", \"task_time\": 1},"
        "{\"name\": \"1\", \"kind\": \"compute\", \"task_time\": 2}, {\"name\": \"2\", \"kind\": \"compute\", "
        "\"task_time\": 3}], \"links\": [{\"between\": [\"0\", \"1\"], \"bandwidth\": 1}, {\"between\": "
        "[\"0\", \"2\"], \"bandwidth\": 2}, {\"between\": [\"1\", \"2\"], \"bandwidth\": 3}]}";
    static const struct {
        void (*corrupt)(struct by_series *series);
        const char *reason;
    } cases[] = {
        {higher_price, "do not prove"}, {no_prices, "costs nothing"}, {better_bound, "do not prove"},
        {other_size, "differ in size"}, {same_set, "are the same"},
    };
    struct by_topology *topology = steady_parse(platform);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_series *series = small_sets(topology);
        struct by_series_verdict verdict;

        cases[i].corrupt(series);
        by_series_check(series, topology, &verdict);
        assert_int_equal(verdict.verdict, BY_VERDICT_INVALID);
        if (!strstr(verdict.reason, cases[i].reason))
            fail_msg("case %zu: '%s' does not say '%s'", i, verdict.reason, cases[i].reason);
        by_series_free(series);
    }
    by_topology_free(topology);
}

/* Lists the first 9 of a chain of nodes as holders. */
static int refuse(struct by_topology *topology, uint32_t size_count, struct by_problem *trouble)
{
    static const uint32_t nodes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    static const struct by_steady_size size = {.first = 0, .last = 1, .size = {2, 1}};
    struct by_steady_problem problem = {.topology = topology,
                                        .ports = BY_SERIES_ONE_PORT,
                                        .operation = BY_SERIES_REDUCE,
                                        .commutative = true,
                                        .balance = BY_BALANCE_NEVER,
                                        .target_count = 1,
                                        .targets = nodes,
                                        .holder_count = 9,
                                        .holders = nodes,
                                        .size_count = size_count,
                                        .sizes = &size};
    struct by_series *series;
    int error = by_steady_make(&problem, &series, trouble);

    by_series_free(series);
    by_topology_free(topology);
    return error;
}

/* A chain of 9 hosts, and of `switches` that add at `rate`. */
static struct by_topology *chain(uint32_t switches, uint32_t rate)
{
    struct by_builder *builder = by_builder_new("chain", "messages");

    for (uint32_t i = 0; i < 9 + switches; i++) {
        char name[32];
        struct by_node node = {.name = name,
                               .compute = i < 9,
                               .has_task_time = i < 9,
                               .task_time = {1, 1},
                               .aggregate = i >= 9,
                               .aggregate_rate = {rate, 1}};

        snprintf(name, sizeof(name), "n%u", i);
        by_builder_node(builder, &node);
        if (i > 0)
            add_link(builder, i - 1, i, true, 1);
    }
    return finish(builder);
}

static void sets_that_are_not_arborescences_are_refused_beyond_8_values(void **state)
{
    struct by_problem trouble;

    (void)state;
    assert_int_equal(refuse(chain(0, 0), 0, &trouble), 0);
    assert_int_equal(refuse(chain(12, 0), 0, &trouble), 0);
    assert_int_equal(refuse(chain(0, 0), 1, &trouble), BY_ELIMIT);
    assert_non_null(strstr(trouble.text, "different sizes"));
    assert_int_equal(refuse(chain(1, 3), 0, &trouble), BY_ELIMIT);
    assert_non_null(strstr(trouble.text, "'n9' takes time to combine"));
    assert_int_equal(refuse(chain(13, 0), 0, &trouble), BY_ELIMIT);
    assert_non_null(strstr(trouble.text, "the limit is 12 such nodes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(trees_in_order_are_as_fast_as_the_whole_program, tell_seed),
        cmocka_unit_test_teardown(trees_in_any_order_are_as_fast_as_the_whole_program, tell_seed),
        cmocka_unit_test(hosts_under_switches_that_add_reduce_64_values),
        cmocka_unit_test(hosts_that_add_reduce_64_values_in_any_order),
        cmocka_unit_test(every_corruption_of_sets_is_named),
        cmocka_unit_test(sets_that_are_not_arborescences_are_refused_beyond_8_values),
    };
    const char *seed = getenv("SEED"), *count = getenv("N");

    if (count)
        last_seed = strtoull(count, NULL, 10);
    if (seed)
        first_seed = last_seed = strtoull(seed, NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Random platforms: every schedule is checked, executed and read back (rig.h), and its throughput
 * must equal that of LMR's own programs solved by glpsol (oracle.h). A failure prints its seed;
 * SEED=N runs only this seed, N=M runs M seeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "control/fabric/build.h"
#include "control/study/export/moves.h"
#include "control/study/steady/colour.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"
#include "tests/unit/control/study/steady/oracle.h"
#include "tests/unit/control/study/steady/rig.h"

#define SEEDS 60u

static uint64_t first_seed = 1, last_seed = SEEDS, running;
static uint32_t exported, reduces;
static bool told;

static uint32_t below(struct by_prng *prng, uint32_t bound)
{
    return (uint32_t)by_prng_below(prng, bound);
}

/* Makes a tree of links in both directions, and more links, some of them one-way. */
static struct by_topology *random_platform(struct by_prng *prng, uint32_t compute, uint32_t switches)
{
    struct by_builder *builder = by_builder_new("random", "messages");
    struct by_topology *topology = NULL;
    struct by_problem problem = {0};
    uint32_t n = compute + switches;

    for (uint32_t i = 0; i < n; i++) {
        char name[32];
        struct by_node node = {.name = name, .compute = i >= switches};

        snprintf(name, sizeof(name), "%c%u", node.compute ? 'p' : 's', i);
        node.has_task_time = node.compute && (i == n - 1 || below(prng, 4) > 0);
        node.task_time = (struct by_fraction){below(prng, 4), 1};
        by_builder_node(builder, &node);
    }
    for (uint32_t i = 1; i < n; i++)
        by_builder_link(builder, below(prng, i), i, true, (struct by_fraction){1 + below(prng, 6), 1},
                        (struct by_place){0, 0});
    for (uint32_t extra = below(prng, n); extra > 0; extra--) {
        uint32_t a = below(prng, n), b = below(prng, n);

        if (a != b)
            by_builder_link(builder, a, b, below(prng, 2), (struct by_fraction){1 + below(prng, 5), 1},
                            (struct by_place){0, 0});
    }
    if (by_builder_finish(builder, &topology, &problem) != 0)
        fail_msg("%s", problem.text);
    by_builder_free(builder);
    return topology;
}

static void shuffle(struct by_prng *prng, uint32_t *nodes, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = below(prng, i), kept = nodes[i - 1];

        nodes[i - 1] = nodes[j];
        nodes[j] = kept;
    }
}

/* As moves of hosts: written, read back and executed. Schedules that would cut messages too finely
 * are omitted. */
static void export_moves(const struct by_series *series, const struct by_topology *topology)
{
    struct by_moves moves, read = {0};
    struct by_problem problem = {0};
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream;
    int error = by_moves_make(series, topology, &moves, &problem);

    if (error) {
        /* a reduce whose values are not one for each host, or in which a switch combines */
        assert_true(error == BY_ELIMIT ||
                    (error == BY_EUNSUPPORTED && series->operation == BY_SERIES_REDUCE));
        by_moves_free(&moves);
        return;
    }
    stream = open_memstream(&text, &bytes);
    assert_int_equal(by_moves_write(&moves, topology, NULL, stream), 0);
    fclose(stream);
    assert_true(by_moves_suits(text, bytes));
    if (by_moves_check(text, bytes, &read, &problem) != 0)
        fail_msg("%s", problem.text);
    assert_int_equal(read.move_count, moves.move_count);
    exported++;
    reduces += series->operation == BY_SERIES_REDUCE;
    by_moves_free(&moves);
    by_moves_free(&read);
    free(text);
}

/* Makes, checks, runs and compares a schedule, then one with a short period. */
static void try(const struct by_steady_problem *problem)
{
    struct by_series *series = steady_made(problem), *fixed;
    double expected = oracle_throughput(problem), value = mpq_get_d(series->throughput);
    struct by_problem trouble;
    mpq_t loss, difference;
    mpz_t period;

    if (expected < 0 && !told)
        print_message("glpsol is not installed: throughputs are not compared\n");
    told |= expected < 0;
    if (expected >= 0 && fabs(expected - value) > 1e-12 * (1 + expected))
        fail_msg("throughput %.15g, glpsol says %.15g", value, expected);
    mpq_inits(loss, difference, NULL);
    mpz_init_set_ui(period, 50);
    export_moves(series, problem->topology);
    if (by_steady_fix(series, problem->topology, period, &fixed, loss, &trouble) == 0) {
        mpq_sub(difference, series->throughput, fixed->throughput);
        assert_true(mpq_sgn(difference) >= 0 && mpq_cmp(difference, loss) <= 0);
        steady_check(fixed, problem->topology, mpq_sgn(difference) ? BY_VERDICT_VALID : BY_VERDICT_OPTIMAL);
        export_moves(fixed, problem->topology);
        by_series_free(fixed);
    }
    mpq_clears(loss, difference, NULL);
    mpz_clear(period);
    by_series_free(series);
}

static void try_seed(uint64_t seed)
{
    struct by_prng prng = {seed * 7919};
    uint32_t compute = 3 + below(&prng, 3), switches = below(&prng, 4), nodes[16];
    struct by_topology *topology = random_platform(&prng, compute, switches);
    struct by_steady_size sizes[2] = {{.first = BY_SERIES_NONE, .size = {1 + below(&prng, 3), 1}},
                                      {.size = {1 + below(&prng, 3), 1}}};
    struct by_steady_problem problem = {.topology = topology,
                                        .ports = (enum by_series_ports)(1 + below(&prng, 3)),
                                        .operation = (enum by_series_operation)(1 + seed % 3),
                                        .target_count = 1,
                                        .size_count = below(&prng, 3),
                                        .sizes = sizes,
                                        .classes_from = seed / 3 % 2};

    for (uint32_t i = 0; i < compute; i++)
        nodes[i] = switches + i;
    shuffle(&prng, nodes, compute);
    problem.targets = nodes;
    if (problem.operation == BY_SERIES_REDUCE) {
        problem.holder_count = 2 + below(&prng, compute - 1);
        problem.holders = nodes + compute - problem.holder_count;
        problem.balance = (enum by_steady_balance)(1 + below(&prng, 3));
        sizes[1].last = 1;
    } else {
        problem.source_count = problem.operation == BY_SERIES_SCATTER ? 1 : 2 + below(&prng, compute - 1);
        problem.sources = nodes + compute - problem.source_count;
        problem.target_count = 1 + below(&prng, compute - 1);
        sizes[1].first = sizes[1].last = nodes[0];
    }
    try(&problem);
    by_topology_free(topology);
}

static void random_platforms_reach_what_the_programs_of_the_paper_allow(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
        running = seed;
        try_seed(seed);
    }
    running = 0;
    assert_true((exported > 0 && reduces > 0) || first_seed == last_seed);
}

/* An exchange of random sizes, many of them 0, between some nodes. */
static void try_exchange(uint64_t seed)
{
    struct by_prng prng = {seed * 6700417};
    uint32_t compute = 3 + below(&prng, 3), switches = below(&prng, 4), sources[16], targets[16];
    struct by_topology *topology = random_platform(&prng, compute, switches);
    struct by_fraction matrix[36];
    struct by_steady_problem problem = {.topology = topology,
                                        .ports = (enum by_series_ports)(1 + below(&prng, 3)),
                                        .operation = BY_SERIES_EXCHANGE,
                                        .source_count = 1 + below(&prng, compute),
                                        .target_count = 2 + below(&prng, compute - 1),
                                        .sources = sources,
                                        .targets = targets,
                                        .matrix = matrix,
                                        .classes_from = seed % 2};

    for (uint32_t i = 0; i < compute; i++)
        sources[i] = targets[i] = switches + i;
    shuffle(&prng, sources, compute);
    shuffle(&prng, targets, compute);
    for (uint32_t i = 0; i < problem.source_count * problem.target_count; i++)
        matrix[i] = (struct by_fraction){below(&prng, 2) ? 1 + below(&prng, 9) : 0, 1};
    matrix[sources[0] == targets[0]].num = 5; /* at least this one moves */
    try(&problem);
    by_topology_free(topology);
}

static void random_exchanges_reach_what_the_programs_of_the_paper_allow(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
        running = seed;
        try_exchange(seed);
    }
    running = 0;
}

/* Called even after a failure. */
static int tell_seed(void **state)
{
    (void)state;
    if (running)
        print_message("replay: SEED=%llu build/release/tests/steady-random\n", (unsigned long long)running);
    return 0;
}

/* A commutative operator is at least as fast, and equally fast on two values. */
static void order_never_helps(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct by_prng prng = {seed * 104729};
        struct by_topology *topology = random_platform(&prng, 4, below(&prng, 3));
        uint32_t n = topology->node_count, nodes[] = {n - 1, n - 2, n - 3, n - 4};
        struct by_steady_problem problem = {.topology = topology,
                                            .ports = BY_SERIES_ONE_PORT,
                                            .operation = BY_SERIES_REDUCE,
                                            .target_count = 1,
                                            .targets = nodes,
                                            .holder_count = seed % 3 ? 4 : 2,
                                            .holders = nodes};
        struct by_series *ordered = steady_made(&problem), *any;

        problem.commutative = true;
        any = steady_made(&problem);
        assert_true(mpq_cmp(any->throughput, ordered->throughput) >= 0);
        assert_true(seed % 3 || mpq_equal(any->throughput, ordered->throughput));
        by_series_free(ordered);
        by_series_free(any);
        by_topology_free(topology);
    }
}

/* Parallel edges, idle vertices, fractions. */
static void colours_are_matchings_and_few(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct by_prng prng = {seed * 15485863};
        uint32_t lefts = 1 + below(&prng, 6), rights = 1 + below(&prng, 6), edges = 1 + below(&prng, 20),
                 count;
        struct by_colour_edge list[20];
        struct by_matching *matchings;
        mpq_t busy[12], left[20], sum, most;

        mpq_inits(sum, most, NULL);
        for (uint32_t v = 0; v < 12; v++)
            mpq_init(busy[v]);
        for (uint32_t e = 0; e < edges; e++) {
            list[e].left = below(&prng, lefts);
            list[e].right = below(&prng, rights);
            mpq_inits(list[e].time, left[e], NULL);
            mpq_set_ui(list[e].time, 1 + below(&prng, 9), 1 + below(&prng, 5));
            mpq_canonicalize(list[e].time);
            mpq_set(left[e], list[e].time);
            mpq_add(busy[list[e].left], busy[list[e].left], list[e].time);
            mpq_add(busy[6 + list[e].right], busy[6 + list[e].right], list[e].time);
        }
        for (uint32_t v = 0; v < 12; v++)
            if (mpq_cmp(busy[v], most) > 0)
                mpq_set(most, busy[v]);
        matchings = by_colour(list, edges, lefts, rights, &count);
        assert_true(count <= 2 * edges + lefts + rights);
        for (uint32_t m = 0; m < count; m++) {
            bool seen[12] = {false};

            assert_true(mpq_sgn(matchings[m].time) > 0 && matchings[m].edge_count > 0);
            mpq_add(sum, sum, matchings[m].time);
            for (uint32_t i = 0; i < matchings[m].edge_count; i++) {
                uint32_t e = matchings[m].edges[i];

                assert_false(seen[list[e].left] || seen[6 + list[e].right]);
                seen[list[e].left] = seen[6 + list[e].right] = true;
                mpq_sub(left[e], left[e], matchings[m].time);
            }
        }
        assert_true(mpq_cmp(sum, most) <= 0);
        for (uint32_t e = 0; e < edges; e++) {
            assert_int_equal(mpq_sgn(left[e]), 0);
            mpq_clears(list[e].time, left[e], NULL);
        }
        for (uint32_t v = 0; v < 12; v++)
            mpq_clear(busy[v]);
        mpq_clears(sum, most, NULL);
        by_matchings_free(matchings, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(random_platforms_reach_what_the_programs_of_the_paper_allow, tell_seed),
        cmocka_unit_test_teardown(random_exchanges_reach_what_the_programs_of_the_paper_allow, tell_seed),
        cmocka_unit_test(order_never_helps),
        cmocka_unit_test(colours_are_matchings_and_few),
    };
    const char *seed = getenv("SEED"), *count = getenv("N");

    if (count)
        last_seed = strtoull(count, NULL, 10);
    if (seed)
        first_seed = last_seed = strtoull(seed, NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

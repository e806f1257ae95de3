/* The figures of LMR, as far as they are legible, and the effects of the command's options on small
 * platforms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/study/steady/program_reduce.h"
#include "control/view/plot/gantt.h"
#include "offload/base/errors.h"
#include "tests/unit/control/study/steady/platforms.h"
#include "tests/unit/control/study/steady/rig.h"

static void figure_2_scatters_once_in_two_units(void **state)
{
    static const uint32_t source[] = {0}, targets[] = {3, 4};
    struct by_topology *topology = steady_parse(PLATFORM_2);
    struct by_steady_problem problem = {.topology = topology,
                                        .operation = BY_SERIES_SCATTER,
                                        .ports = BY_SERIES_ONE_PORT,
                                        .source_count = 1,
                                        .sources = source,
                                        .target_count = 2,
                                        .targets = targets};
    struct by_series *series = steady_made(&problem);

    (void)state;
    steady_assert_rational(series->throughput, 1, 2);
    by_series_free(series);
    by_topology_free(topology);
}

static struct by_steady_problem figure_6(const struct by_topology *topology)
{
    static const uint32_t target[] = {0}, holders[] = {0, 1, 2};

    return (struct by_steady_problem){.topology = topology,
                                      .operation = BY_SERIES_REDUCE,
                                      .ports = BY_SERIES_ONE_PORT,
                                      .target_count = 1,
                                      .targets = target,
                                      .holder_count = 3,
                                      .holders = holders};
}

static void figure_6_reduces_once_in_a_unit(void **state)
{
    struct by_topology *topology = steady_parse(PLATFORM_6);
    struct by_steady_problem problem = figure_6(topology);

    (void)state;
    for (unsigned commutative = 0; commutative < 2; commutative++) {
        struct by_series *series;

        problem.commutative = commutative;
        series = steady_made(&problem);
        steady_assert_rational(series->throughput, 1, 1);
        by_series_free(series);
    }
    by_topology_free(topology);
}

static void balanced_figure_6_has_two_trees_whose_weights_are_the_throughput(void **state)
{
    struct by_topology *topology = steady_parse(PLATFORM_6);
    struct by_steady_problem problem = figure_6(topology);
    struct by_series *series;
    mpz_t sum;

    (void)state;
    problem.balance = BY_BALANCE_CHEAP; /* a period of 2 instead of 1 */
    series = steady_made(&problem);
    steady_assert_rational(series->throughput, 1, 1);
    assert_true(series->lane_count >= 2);
    mpz_init(sum);
    for (uint32_t l = 0; l < series->lane_count; l++)
        mpz_add(sum, sum, series->lanes[l].amount);
    assert_int_equal(mpz_cmp(sum, series->period), 0); /* divided by the period: 1 */
    mpz_clear(sum);
    by_series_free(series);
    by_topology_free(topology);
}

static void send(struct by_reduction *reduction, uint32_t from, uint32_t to, uint64_t values,
                 unsigned long amount)
{
    uint32_t link = by_links_find(reduction->platform->links, from, to);

    mpq_set_ui(
        reduction->sends[(size_t)link * reduction->message_count + by_reduction_message(reduction, values)],
        amount, 1);
}

static void make(struct by_reduction *reduction, uint32_t node, uint64_t values, uint64_t left,
                 unsigned long amount)
{
    uint32_t split = by_reduction_split(reduction, by_reduction_message(reduction, values),
                                        by_reduction_message(reduction, left));

    mpq_set_ui(reduction->makes[(size_t)node * reduction->split_count + split], amount, 1);
}

/* Figure 6(b), three operations in a period of three; figure 7 shows the trees. */
static void the_solution_of_figure_6_falls_apart_into_the_trees_of_figure_7(void **state)
{
    struct by_topology *topology = steady_parse(PLATFORM_6);
    struct by_steady_problem problem = figure_6(topology);
    struct by_platform *platform = by_platform_new(topology, BY_SERIES_ONE_PORT);
    struct by_lanes lanes = {.count = 0};
    struct by_reduction reduction;

    (void)state;
    by_reduction_make(&reduction, &problem, platform);
    mpq_set_ui(reduction.throughput, 3, 1);
    send(&reduction, 1, 2, 2, 2);
    send(&reduction, 2, 1, 4, 1);
    send(&reduction, 1, 0, 6, 1);
    send(&reduction, 2, 0, 6, 2);
    make(&reduction, 1, 6, 2, 1);
    make(&reduction, 2, 6, 2, 2);
    make(&reduction, 0, 7, 1, 3);
    /* and a cycle without effect, which a solution may contain */
    send(&reduction, 0, 1, 7, 5);
    send(&reduction, 1, 0, 7, 5);
    assert_true(by_reduction_trees(&reduction, &lanes));
    assert_int_equal(lanes.count, 2);
    steady_assert_rational(lanes.list[0].weight, 2, 1);
    steady_assert_rational(lanes.list[1].weight, 1, 1);
    for (uint32_t l = 0; l < 2; l++)
        assert_int_equal(lanes.list[l].task_count, 4);
    for (size_t i = 0; i < (size_t)platform->links->count * reduction.message_count; i++)
        assert_int_equal(mpq_sgn(reduction.sends[i]), 0);
    for (size_t i = 0; i < (size_t)topology->node_count * reduction.split_count; i++)
        assert_int_equal(mpq_sgn(reduction.makes[i]), 0);
    by_lanes_free(&lanes);
    by_reduction_free(&reduction);
    by_platform_free(platform);
    by_topology_free(topology);
}

static void a_solution_whose_values_come_from_nowhere_has_no_trees(void **state)
{
    struct by_topology *topology = steady_parse(PLATFORM_6);
    struct by_steady_problem problem = figure_6(topology);
    struct by_platform *platform = by_platform_new(topology, BY_SERIES_ONE_PORT);
    struct by_lanes lanes = {.count = 0};
    struct by_reduction reduction;

    (void)state;
    by_reduction_make(&reduction, &problem, platform);
    mpq_set_ui(reduction.throughput, 1, 1);
    make(&reduction, 0, 7, 1, 1);
    assert_false(by_reduction_trees(&reduction, &lanes));
    by_lanes_free(&lanes);
    by_reduction_free(&reduction);
    by_platform_free(platform);
    by_topology_free(topology);
}

/*
 * Figure 9: the routes of figures 10 to 12 show which nodes are connected. 17 bandwidths are
 * legible, as many as there are links: 1000 in the four LANs, and 10, 8, 14 on the chain of routers
 * between the halves (only with these does the load of figure 10 fill the ports of router 0, which
 * the throughput of 2/9 requires). How the other ten belong to ten links is not determined; the
 * throughput does not depend on it.
 */
static struct by_topology *figure_9(uint32_t turn)
{
    static const char *const pairs[10] = {"\"10\", \"4\"", "\"10\", \"5\"", "\"4\", \"12\"", "\"4\", \"5\"",
                                          "\"5\", \"12\"", "\"2\", \"6\"",  "\"2\", \"8\"",  "\"2\", \"3\"",
                                          "\"3\", \"6\"",  "\"3\", \"8\""};
    static const uint32_t bandwidths[10] = {182, 266, 295, 208, 125, 240, 144, 187, 146, 286};
    static const uint32_t speeds[8] = {92, 64, 55, 75, 17, 15, 38, 79};
    struct by_topology *topology;
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);

    fputs("{\"name\": \"figure 9\", \"nodes\": [", stream);
    for (uint32_t i = 0; i < 6; i++)
        fprintf(stream, "{\"name\": \"%u\", \"kind\": \"switch\"}, ", i);
    for (uint32_t i = 0; i < 8; i++)
        fprintf(stream, "%s{\"name\": \"%u\", \"kind\": \"compute\", \"task_time\": \"10/%u\"}",
                i ? ", " : "", i + 6, speeds[i]);
    fputs("], \"links\": [{\"between\": [\"0\", \"5\"], \"bandwidth\": 10},"
          "{\"between\": [\"0\", \"1\"], \"bandwidth\": 8},"
          "{\"between\": [\"1\", \"2\"], \"bandwidth\": 14},"
          "{\"between\": [\"10\", \"11\"], \"bandwidth\": 1000},"
          "{\"between\": [\"12\", \"13\"], \"bandwidth\": 1000},"
          "{\"between\": [\"6\", \"7\"], \"bandwidth\": 1000},"
          "{\"between\": [\"8\", \"9\"], \"bandwidth\": 1000}",
          stream);
    for (uint32_t i = 0; i < 10; i++)
        fprintf(stream, ", {\"between\": [%s], \"bandwidth\": %u}", pairs[i], bandwidths[(i + turn) % 10]);
    fputs("]}", stream);
    fclose(stream);
    topology = steady_parse(text);
    free(text);
    return topology;
}

static void figure_9_reduces_two_times_in_nine_units(void **state)
{
    static const uint32_t target[] = {6}, holders[] = {11, 8, 13, 9, 6, 12, 7, 10};
    static const struct by_steady_size size = {.first = BY_SERIES_NONE, .size = {10, 1}};

    (void)state;
    for (uint32_t turn = 0; turn < 10; turn += 3) {
        struct by_topology *topology = figure_9(turn);
        struct by_steady_problem problem = {.topology = topology,
                                            .operation = BY_SERIES_REDUCE,
                                            .ports = BY_SERIES_ONE_PORT,
                                            .target_count = 1,
                                            .targets = target,
                                            .holder_count = 8,
                                            .holders = holders,
                                            .size_count = 1,
                                            .sizes = &size};
        struct by_series *series = steady_made(&problem);

        steady_assert_rational(series->throughput, 2, 9);
        by_series_free(series);
        by_topology_free(topology);
    }
}

/* A star of four. A scatter from one host sends three messages through its own port. A gossip sends
 * twelve through the switch's single port, or three through each host's port if switches have many
 * ports. */
static void ports_decide_what_a_star_can_do(void **state)
{
    static const char star[] =
        "{\"name\": \"star\", \"nodes\": [{\"name\": \"s\", \"kind\": \"switch\"},"
        "{\"name\": \"a\", \"kind\": \"compute\"}, {\"name\": \"b\", \"kind\": \"compute\"},"
        "{\"name\": \"c\", \"kind\": \"compute\"}, {\"name\": \"d\", \"kind\": \"compute\"}],"
        "\"links\": [{\"between\": [\"a\", \"s\"], \"bandwidth\": 1}, {\"between\": [\"b\", \"s\"], "
        "\"bandwidth\": 1},{\"between\": [\"c\", \"s\"], \"bandwidth\": 1}, {\"between\": [\"d\", \"s\"], "
        "\"bandwidth\": 1}]}";
    static const uint32_t hosts[] = {1, 2, 3, 4};
    static const struct {
        enum by_series_ports ports;
        uint32_t sources;
        unsigned long num, den;
    } cases[] = {{BY_SERIES_ONE_PORT, 1, 1, 3},   {BY_SERIES_HOST_PORTS, 1, 1, 3},
                 {BY_SERIES_MANY_PORTS, 1, 1, 3}, {BY_SERIES_ONE_PORT, 4, 1, 12},
                 {BY_SERIES_HOST_PORTS, 4, 1, 3}, {BY_SERIES_MANY_PORTS, 4, 1, 3}};
    struct by_topology *topology = steady_parse(star);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_steady_problem problem = {.topology = topology,
                                            .operation =
                                                cases[i].sources == 1 ? BY_SERIES_SCATTER : BY_SERIES_GOSSIP,
                                            .ports = cases[i].ports,
                                            .source_count = cases[i].sources,
                                            .sources = hosts,
                                            .target_count = 4,
                                            .targets = hosts};
        struct by_series *series = steady_made(&problem);

        steady_assert_rational(series->throughput, cases[i].num, cases[i].den);
        by_series_free(series);
    }
    by_topology_free(topology);
}

/* Two trees of 1/2 would not run even once in a period of 1. Rounding leaves room, which one of
 * them takes. */
static void any_whole_period_of_figure_6_reaches_its_throughput(void **state)
{
    struct by_topology *topology = steady_parse(PLATFORM_6);
    struct by_steady_problem problem = figure_6(topology);
    struct by_series *best, *fixed;
    struct by_problem trouble;
    mpq_t loss;
    mpz_t period;

    (void)state;
    mpq_init(loss);
    mpz_init(period);
    problem.balance = BY_BALANCE_ALWAYS;
    best = steady_made(&problem);
    assert_int_equal(best->lane_count, 2);
    for (unsigned long length = 1; length < 40; length++) {
        mpz_set_ui(period, length);
        assert_int_equal(by_steady_fix(best, topology, period, &fixed, loss, &trouble), 0);
        steady_assert_rational(loss, 2, length);
        steady_assert_rational(fixed->throughput, 1, 1);
        assert_int_equal(mpz_cmp(fixed->period, period), 0);
        steady_check(fixed, topology, BY_VERDICT_OPTIMAL);
        by_series_free(fixed);
    }
    by_series_free(best);
    mpq_clear(loss);
    mpz_clear(period);
    by_topology_free(topology);
}

/* A scatter to three receivers through one port: an operation takes 3, so a period of 2 is too
 * short. */
static void a_period_without_room_for_an_operation_is_refused(void **state)
{
    struct by_topology *topology = steady_parse(
        "{\"name\": \"star\", \"nodes\": [{\"name\": \"s\", \"kind\": \"compute\"}, {\"name\": \"a\", "
        "\"kind\": "
        "\"compute\"}, {\"name\": \"b\", \"kind\": \"compute\"}, {\"name\": \"c\", \"kind\": \"compute\"}], "
        "\"links\": [{\"between\": [\"s\", \"a\"], \"bandwidth\": 1}, {\"between\": [\"s\", \"b\"], "
        "\"bandwidth\": 1}, {\"between\": [\"s\", \"c\"], \"bandwidth\": 1}]}");
    static const uint32_t source[] = {0}, targets[] = {1, 2, 3};
    struct by_steady_problem problem = {.topology = topology,
                                        .operation = BY_SERIES_SCATTER,
                                        .ports = BY_SERIES_ONE_PORT,
                                        .source_count = 1,
                                        .sources = source,
                                        .target_count = 3,
                                        .targets = targets};
    struct by_series *best = steady_made(&problem), *fixed;
    struct by_problem trouble;
    mpq_t loss;
    mpz_t period;

    (void)state;
    mpq_init(loss);
    mpz_init_set_ui(period, 2);
    assert_int_equal(by_steady_fix(best, topology, period, &fixed, loss, &trouble), BY_EINVAL);
    assert_null(fixed);
    for (unsigned long length = 3; length < 12; length++) {
        mpz_set_ui(period, length);
        assert_int_equal(by_steady_fix(best, topology, period, &fixed, loss, &trouble), 0);
        steady_assert_rational(fixed->throughput, length / 3, length);
        steady_check(fixed, topology, length % 3 ? BY_VERDICT_VALID : BY_VERDICT_OPTIMAL);
        by_series_free(fixed);
    }
    by_series_free(best);
    mpq_clear(loss);
    mpz_clear(period);
    by_topology_free(topology);
}

static uint32_t count_of(const char *text, const char *part)
{
    uint32_t count = 0;

    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

static void a_period_is_drawn_with_a_bar_for_each_transfer_and_combination(void **state)
{
    struct by_topology *topology = steady_parse(PLATFORM_6);
    struct by_steady_problem problem = figure_6(topology);
    struct by_series *series;
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);

    (void)state;
    problem.balance = BY_BALANCE_ALWAYS;
    series = steady_made(&problem);
    by_gantt_write(series, topology, stream);
    fclose(stream);
    assert_int_equal(count_of(text, ": sends v["), 4); /* two trees of two transfers and two combinations */
    assert_int_equal(count_of(text, ": makes v["), 4);
    assert_int_equal(count_of(text, "1 \u2192 2: sends v[1,1], lane"), 1);
    assert_int_equal(count_of(text, "<g"), count_of(text, "</g>"));
    assert_int_equal(count_of(text, "<rect"), 1 + 1 + 8 + 2); /* ground, a matching, bars, legend */
    assert_int_equal(strcmp(text + bytes - 7, "</svg>\n"), 0);
    free(text);
    by_series_free(series);
    by_topology_free(topology);
}

static void what_cannot_be_is_refused_with_its_reason(void **state)
{
    static const uint32_t source[] = {3}, target[] = {0}, holders[] = {0, 3, 4}, twice[] = {1, 1};
    struct by_topology *topology = steady_parse(PLATFORM_2);
    const struct {
        struct by_steady_problem problem;
        const char *reason;
    } cases[] = {
        {{.operation = BY_SERIES_SCATTER,
          .source_count = 1,
          .sources = source,
          .target_count = 1,
          .targets = target},
         "no links lead from 'p0' to 's'"},
        {{.operation = BY_SERIES_GOSSIP,
          .source_count = 2,
          .sources = twice,
          .target_count = 1,
          .targets = target},
         "named twice"},
        {{.operation = BY_SERIES_SCATTER,
          .source_count = 1,
          .sources = source,
          .target_count = 1,
          .targets = source},
         "no receiver"},
        {{.operation = BY_SERIES_REDUCE,
          .target_count = 1,
          .targets = target,
          .holder_count = 3,
          .holders = holders},
         "no reduction is possible"},
        {{.operation = BY_SERIES_REDUCE,
          .target_count = 1,
          .targets = target,
          .holder_count = 1,
          .holders = holders},
         "1 values are to be reduced"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_steady_problem problem = cases[i].problem;
        struct by_series *series;
        struct by_problem trouble;

        problem.topology = topology;
        problem.ports = BY_SERIES_ONE_PORT;
        assert_int_equal(by_steady_make(&problem, &series, &trouble), BY_EINVAL);
        assert_null(series);
        if (!strstr(trouble.text, cases[i].reason))
            fail_msg("'%s' does not say '%s'", trouble.text, cases[i].reason);
    }
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figure_2_scatters_once_in_two_units),
        cmocka_unit_test(figure_6_reduces_once_in_a_unit),
        cmocka_unit_test(balanced_figure_6_has_two_trees_whose_weights_are_the_throughput),
        cmocka_unit_test(the_solution_of_figure_6_falls_apart_into_the_trees_of_figure_7),
        cmocka_unit_test(a_solution_whose_values_come_from_nowhere_has_no_trees),
        cmocka_unit_test(figure_9_reduces_two_times_in_nine_units),
        cmocka_unit_test(ports_decide_what_a_star_can_do),
        cmocka_unit_test(any_whole_period_of_figure_6_reaches_its_throughput),
        cmocka_unit_test(a_period_without_room_for_an_operation_is_refused),
        cmocka_unit_test(a_period_is_drawn_with_a_bar_for_each_transfer_and_combination),
        cmocka_unit_test(what_cannot_be_is_refused_with_its_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

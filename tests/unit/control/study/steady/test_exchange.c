/*
 * All-to-alls, scatters and gathers as maximum concurrent flows: the optimum against every cut and
 * against a closed form, the verifier against wrong plans, and the reader of matrices.
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
#include "control/fabric/links.h"
#include "control/study/steady/matrix.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"
#include "tests/unit/control/study/steady/rig.h"

#define SEEDS 200u
#define NODES 8u

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

static void add_node(struct by_builder *builder, uint32_t number, bool compute)
{
    char name[32];
    struct by_node node = {.name = name, .compute = compute};

    snprintf(name, sizeof(name), "n%u", number);
    by_builder_node(builder, &node);
}

/* A tree of links in both directions and some more, some of them one-way; the last two nodes or
 * more compute. */
static struct by_topology *random_fabric(struct by_prng *prng, uint32_t n)
{
    struct by_builder *builder = by_builder_new("random", "GB/s");
    uint32_t switches = below(prng, n - 1);

    for (uint32_t i = 0; i < n; i++)
        add_node(builder, i, i >= switches);
    for (uint32_t i = 1; i < n; i++)
        by_builder_link(builder, below(prng, i), i, true, (struct by_fraction){1 + below(prng, 6), 1},
                        (struct by_place){0, 0});
    for (uint32_t extra = below(prng, 2 * n); extra > 0; extra--) {
        uint32_t a = below(prng, n), b = below(prng, n);

        if (a != b)
            by_builder_link(builder, a, b, below(prng, 2), (struct by_fraction){1 + below(prng, 5), 1},
                            (struct by_place){0, 0});
    }
    return finish(builder);
}

/* The least capacity out of a set per data that must leave it, over all sets with the root (into
 * it, for a gather): by the theorem of maximum flow and least cut the best throughput. */
static void least_cut(const struct by_steady_problem *problem, bool gather, mpq_t least)
{
    const struct by_topology *topology = problem->topology;
    struct by_links *links = by_links_new(topology);
    uint32_t root = gather ? problem->targets[0] : problem->sources[0];
    uint32_t count = gather ? problem->source_count : problem->target_count;
    const uint32_t *others = gather ? problem->sources : problem->targets;
    bool any = false;
    mpq_t ratio;

    mpq_init(ratio);
    for (uint32_t set = 0; set < 1u << topology->node_count; set++) {
        int64_t capacity = 0, data = 0;

        if (!(set >> root & 1))
            continue;
        for (uint32_t i = 0; i < count; i++)
            data += set >> others[i] & 1 ? 0 : problem->matrix[i].num;
        for (uint32_t l = 0; l < links->count; l++) {
            uint32_t from = gather ? links->to[l] : links->from[l];
            uint32_t to = gather ? links->from[l] : links->to[l];

            capacity += set >> from & 1 && !(set >> to & 1) ? links->capacity[l] : 0;
        }
        if (data == 0)
            continue;
        mpq_set_si(ratio, capacity, (unsigned long)data * (unsigned long)topology->scale);
        mpq_canonicalize(ratio);
        if (!any || mpq_cmp(ratio, least) < 0)
            mpq_set(least, ratio);
        any = true;
    }
    mpq_clear(ratio);
    by_links_free(links);
}

static void scatters_and_gathers_reach_the_least_cut(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct by_prng prng = {seed * 7919};
        uint32_t n = 3 + below(&prng, NODES - 2), ranks[NODES], count = 0, root;
        struct by_topology *topology = random_fabric(&prng, n);
        struct by_fraction matrix[NODES];
        bool gather = seed % 2;
        struct by_steady_problem problem = {.topology = topology,
                                            .operation = BY_SERIES_EXCHANGE,
                                            .ports = BY_SERIES_MANY_PORTS,
                                            .sources = gather ? ranks : &root,
                                            .targets = gather ? &root : ranks,
                                            .matrix = matrix,
                                            .classes_from = seed / 2 % 2};
        struct by_series *series;
        mpq_t least;

        for (uint32_t i = 0; i < n; i++)
            if (topology->nodes[i].compute)
                ranks[count++] = i;
        root = ranks[below(&prng, count)];
        for (uint32_t i = 0; i < count; i++)
            matrix[i] = (struct by_fraction){below(&prng, 4), 1};
        matrix[ranks[0] == root].num = 1; /* at least one message moves */
        problem.source_count = gather ? count : 1;
        problem.target_count = gather ? 1 : count;
        series = steady_made(&problem);
        mpq_init(least);
        least_cut(&problem, gather, least);
        if (!mpq_equal(series->throughput, least)) {
            gmp_fprintf(stderr, "seed %lu: throughput %Qd, least cut %Qd\n", (unsigned long)seed,
                        series->throughput, least);
            fail();
        }
        mpq_clear(least);
        by_series_free(series);
        by_topology_free(topology);
    }
}

/* `count` hosts at one switch, 12 GB/s each way. */
static struct by_topology *make_star(uint32_t count)
{
    struct by_builder *builder = by_builder_new("star", "GB/s");

    for (uint32_t i = 0; i < count; i++)
        add_node(builder, i, true);
    add_node(builder, count, false);
    for (uint32_t i = 0; i < count; i++)
        by_builder_link(builder, i, count, true, (struct by_fraction){12, 1}, (struct by_place){0, 0});
    return finish(builder);
}

static struct by_steady_problem star_problem(const struct by_topology *topology, const uint32_t *ranks,
                                             uint32_t count, const struct by_fraction *matrix)
{
    return (struct by_steady_problem){.topology = topology,
                                      .operation = BY_SERIES_EXCHANGE,
                                      .ports = BY_SERIES_MANY_PORTS,
                                      .source_count = count,
                                      .sources = ranks,
                                      .target_count = count,
                                      .targets = ranks,
                                      .matrix = matrix};
}

/* A skewed all-to-all on a star is as fast as its largest sender or receiver allows, as in FAST
 * (Lei et al., arXiv 2505.09764, the lower bound of a scale-out network). */
static void a_skewed_matrix_is_as_fast_as_its_largest_row_or_column(void **state)
{
    static const uint32_t ranks[] = {0, 1, 2, 3, 4, 5};

    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct by_prng prng = {seed * 104729};
        uint32_t count = 2 + below(&prng, 5);
        struct by_topology *topology = make_star(count);
        struct by_fraction matrix[36];
        struct by_steady_problem problem = star_problem(topology, ranks, count, matrix);
        struct by_series *series;
        unsigned long most = 0;

        for (uint32_t i = 0; i < count * count; i++)
            matrix[i] = (struct by_fraction){below(&prng, 3) ? below(&prng, 5) : below(&prng, 100), 1};
        matrix[1].num = 3;
        for (uint32_t i = 0; i < count; i++) {
            unsigned long row = 0, column = 0;

            for (uint32_t j = 0; j < count; j++) {
                row += j == i ? 0 : (unsigned long)matrix[i * count + j].num;
                column += j == i ? 0 : (unsigned long)matrix[j * count + i].num;
            }
            most = row > most ? row : most;
            most = column > most ? column : most;
        }
        series = steady_made(&problem);
        steady_assert_rational(series->throughput, 12, most);
        by_series_free(series);
        by_topology_free(topology);
    }
}

/* ---- wrong plans: each breaks one property ---- */

static void faster(struct by_series *series)
{
    mpq_add(series->throughput, series->throughput, series->throughput);
}

/* The price of the other direction of the link, which is not a bottleneck. */
static void other_price(struct by_series *series)
{
    uint32_t kept = series->prices[0].node;

    series->prices[0].node = series->prices[0].to;
    series->prices[0].to = kept;
}

static void larger_message(struct by_series *series)
{
    mpq_add(series->messages[0].size, series->messages[0].size, series->messages[0].size);
}

static void message_twice(struct by_series *series)
{
    series->messages[1].from = series->messages[0].from;
    series->messages[1].to = series->messages[0].to;
}

static void message_to_itself(struct by_series *series)
{
    series->messages[0].to = series->messages[0].from;
}

static void route_without_end(struct by_series *series)
{
    series->lanes[0].task_count--;
}

static void route_less(struct by_series *series)
{
    mpz_sub_ui(series->lanes[0].amount, series->lanes[0].amount, 1);
}

static void other_operation(struct by_series *series)
{
    series->operation = BY_SERIES_GOSSIP;
}

static void wrong_plans_are_named(void **state)
{
    static const struct {
        void (*corrupt)(struct by_series *series);
        const char *reason;
    } cases[] = {
        {faster, "but the throughput requires"},
        {other_price, "do not prove the optimum"},
        {larger_message, "do not last as long"},
        {message_twice, "are the same"},
        {message_to_itself, "its own sender"},
        {route_without_end, "ends at"},
        {route_less, "requires"},
        {other_operation, "these senders and receivers require 6"},
    };
    static const struct by_fraction matrix[] = {{9, 1}, {1, 1}, {7, 1}, {2, 1}, {9, 1},
                                                {0, 1}, {3, 1}, {1, 1}, {9, 1}};
    static const uint32_t ranks[] = {0, 1, 2};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology = make_star(3);
        struct by_steady_problem problem = star_problem(topology, ranks, 3, matrix);
        struct by_series *series = steady_made(&problem);
        struct by_series_verdict verdict;

        cases[i].corrupt(series);
        by_series_check(series, topology, &verdict);
        if (verdict.verdict != BY_VERDICT_INVALID)
            fail_msg("case %zu is not found", i);
        if (!strstr(verdict.reason, cases[i].reason))
            fail_msg("case %zu: '%s' does not say '%s'", i, verdict.reason, cases[i].reason);
        by_series_free(series);
        by_topology_free(topology);
    }
}

static void matrices_are_read_and_mistakes_are_named(void **state)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"[[0, 1], [0.5, 0]]", NULL},
        {"[[0, \"1/3\"], [2, 7]]", NULL},
        {"{}", "not valid JSON"},
        {"[[0, 1], [2, 0]", "not valid JSON"},
        {"[[0, 1]]", "has 1 rows; 2 are needed"},
        {"[[0, 1], [2, 0], [1, 1]]", "more than 2 rows"},
        {"[[0], [2, 0]]", "row of 'n0' has 1 numbers; 2 are needed"},
        {"[[0, 1, 2], [2, 0]]", "row of 'n0' has more than 2 numbers"},
        {"[[0, 1], [-2, 0]]", "size from 'n1' to 'n0' must be 0 or a positive"},
        {"[[0, true], [2, 0]]", "size from 'n0' to 'n1' must be 0 or a positive"},
        {"[[0, 99999999999999999999], [2, 0]]", "must fit 63 bits"},
    };
    static const uint32_t ranks[] = {0, 1};
    struct by_topology *topology = make_star(2);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_fraction *matrix;
        struct by_problem problem = {0};
        int error =
            by_matrix_parse(cases[i].text, strlen(cases[i].text), topology, ranks, 2, &matrix, &problem);

        if (!cases[i].reason) {
            assert_int_equal(error, 0);
            assert_int_equal(matrix[1].num, 1);
        } else if (error == 0 || !strstr(problem.text, cases[i].reason)) {
            fail_msg("case %zu: '%s' does not say '%s'", i, problem.text, cases[i].reason);
        }
        free(matrix);
    }
    by_topology_free(topology);
}

static void an_exchange_without_messages_is_refused(void **state)
{
    static const struct by_fraction matrix[] = {{1, 1}, {0, 1}, {0, 1}, {1, 1}};
    static const uint32_t ranks[] = {0, 1};
    struct by_topology *topology = make_star(2);
    struct by_steady_problem problem = star_problem(topology, ranks, 2, matrix);
    struct by_series *series = NULL;
    struct by_problem trouble = {0};

    (void)state;
    assert_int_equal(by_steady_make(&problem, &series, &trouble), BY_EINVAL);
    assert_non_null(strstr(trouble.text, "no message between two nodes"));
    problem.matrix = NULL;
    assert_int_equal(by_steady_make(&problem, &series, &trouble), BY_EINVAL);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scatters_and_gathers_reach_the_least_cut),
        cmocka_unit_test(a_skewed_matrix_is_as_fast_as_its_largest_row_or_column),
        cmocka_unit_test(wrong_plans_are_named),
        cmocka_unit_test(matrices_are_read_and_mistakes_are_named),
        cmocka_unit_test(an_exchange_without_messages_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

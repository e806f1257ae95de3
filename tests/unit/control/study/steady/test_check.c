/* The checker of schedules names the violation of each kind of wrong schedule, and readers refuse
 * what is not a schedule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "control/study/export/moves.h"
#include "offload/base/errors.h"
#include "tests/unit/control/study/steady/platforms.h"
#include "tests/unit/control/study/steady/rig.h"

static struct by_series *scatter(const struct by_topology *topology)
{
    static const uint32_t source[] = {0}, targets[] = {3, 4};
    struct by_steady_problem problem = {.topology = topology,
                                        .operation = BY_SERIES_SCATTER,
                                        .ports = BY_SERIES_ONE_PORT,
                                        .source_count = 1,
                                        .sources = source,
                                        .target_count = 2,
                                        .targets = targets};

    return steady_made(&problem);
}

static struct by_series *reduce(const struct by_topology *topology)
{
    static const uint32_t target[] = {0}, holders[] = {0, 1, 2};
    struct by_steady_problem problem = {.topology = topology,
                                        .operation = BY_SERIES_REDUCE,
                                        .ports = BY_SERIES_ONE_PORT,
                                        .target_count = 1,
                                        .targets = target,
                                        .holder_count = 3,
                                        .holders = holders};

    return steady_made(&problem);
}

/* ---- corruptions: each breaks one property ---- */

static void faster(struct by_series *series)
{
    mpq_add(series->throughput, series->throughput, series->throughput);
}

static void better_bound(struct by_series *series)
{
    mpq_add(series->optimum, series->optimum, series->optimum);
}

/* Twice the work in twice the time has the same throughput, but does not fit the old slots. */
static void twice_the_work(struct by_series *series)
{
    mpz_mul_ui(series->period, series->period, 2);
    for (uint32_t l = 0; l < series->lane_count; l++)
        mpz_mul_ui(series->lanes[l].amount, series->lanes[l].amount, 2);
}

static void long_slot(struct by_series *series)
{
    mpq_set_ui(series->slots[0].duration, 100, 1);
}

static void short_slot(struct by_series *series)
{
    mpq_set_ui(series->slots[0].duration, 1, 100);
}

static void no_matching(struct by_series *series)
{
    series->slots[0].busy[0].from = series->slots[0].busy[1].from = 0; /* s sends twice */
    series->slots[0].busy[0].to = 1;
    series->slots[0].busy[1].to = 2;
}

static void other_way(struct by_series *series)
{
    series->lanes[0].tasks[0].to = 4; /* no link from s to p1 */
}

static void lost_end(struct by_series *series)
{
    series->lanes[0].task_count--;
}

static void cheap_prices(struct by_series *series)
{
    for (uint32_t p = 0; p < series->price_count; p++)
        mpq_set_ui(series->prices[p].price, 0, 1);
}

static void wrong_prices(struct by_series *series)
{
    series->prices[0].resource = BY_SERIES_RECEIVES; /* that of p0 */
    series->prices[0].node = 3;
}

static void foreign_port(struct by_series *series)
{
    series->ports = BY_SERIES_MANY_PORTS;
}

static void twice_the_same(struct by_series *series)
{
    series->messages[1].to = series->messages[0].to;
}

static uint32_t combination(const struct by_series *series)
{
    for (uint32_t t = 0; t < series->lanes[0].task_count; t++)
        if (series->lanes[0].tasks[t].to == BY_SERIES_NONE)
            return t;
    fail();
    return 0;
}

static void against_the_order(struct by_series *series)
{
    struct by_series_task *task = &series->lanes[0].tasks[combination(series)];
    uint32_t left = task->left;

    task->left = task->right;
    task->right = left;
}

static void wrong_sum(struct by_series *series)
{
    struct by_series_task *task = &series->lanes[0].tasks[combination(series)];

    task->message = task->left;
}

static void one_value_less(struct by_series *series)
{
    memmove(series->lanes[0].tasks, series->lanes[0].tasks + 1,
            --series->lanes[0].task_count * sizeof(*series->lanes[0].tasks));
}

static void other_target(struct by_series *series)
{
    series->target = 1;
}

static void fewer_messages(struct by_series *series)
{
    mpq_clear(series->messages[--series->message_count].size);
}

static void two_values_at_one(struct by_series *series)
{
    series->holders[1] = series->holders[0];
}

static void big_tasks(struct by_series *series)
{
    mpz_mul_ui(series->lanes[0].amount, series->lanes[0].amount, 3);
    mpq_set_ui(series->throughput, 3, 1);
}

static void every_corruption_is_named(void **state)
{
    static const struct {
        bool reduces;
        void (*corrupt)(struct by_series *series);
        const char *reason;
    } cases[] = {
        {false, faster, "but the throughput requires"},
        {false, better_bound, "do not prove the optimum"},
        {false, twice_the_work, "do not last as long"},
        {false, long_slot, "longer than the period"},
        {false, short_slot, "is too short for what"},
        {false, no_matching, "is not a matching"},
        {false, other_way, "no link leads from s to p1"},
        {false, lost_end, "ends at"},
        {false, cheap_prices, "costs nothing"},
        {false, wrong_prices, "do not prove"},
        {false, foreign_port, "whose links do not share one"},
        {false, twice_the_same, "are the same"},
        {true, against_the_order, "against the order"},
        {true, wrong_sum, "which is not their combination"},
        {true, one_value_less, "does not have"},
        {true, other_target, "ends with"},
        {true, fewer_messages, "have 6 partial results"},
        {true, two_values_at_one, "holds two values"},
        {true, big_tasks, "do not last as long"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology = steady_parse(cases[i].reduces ? PLATFORM_6 : PLATFORM_2);
        struct by_series *series = cases[i].reduces ? reduce(topology) : scatter(topology);
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

static void what_is_no_schedule_is_refused(void **state)
{
    static const char head[] =
        "{\"format\": \"banyan-series-1\", \"operation\": \"scatter\", \"ports\": \"one\", "
        "\"throughput\": {\"num\": 1, \"den\": 2}, \"optimum\": {\"num\": 1, \"den\": "
        "2}, \"period\": 2";
    static const struct {
        const char *rest, *reason;
    } cases[] = {
        {"", "not valid JSON"},
        {"}x", "text after the first value"},
        {", \"speed\": 1}", "'speed' of a schedule"},
        {", \"messages\": 3}", "must be an array"},
        {", \"messages\": [{\"from\": \"s\", \"to\": \"x\"}]}", "'x'"},
        {", \"messages\": [{\"from\": \"s\", \"size\": {\"num\": 1, \"den\": 1}}]}", "either \"from\""},
        {", \"messages\": [{\"from\": \"s\", \"to\": \"a\", \"size\": {\"num\": 1, \"den\": 0}}]}",
         "fraction"},
        {", \"messages\": [{\"from\": \"s\", \"to\": \"a\", \"size\": {\"num\": -1, \"den\": 1}}]}",
         "not negative"},
        {", \"lanes\": [{\"amount\": 1, \"tasks\": [{\"send\": 0}]}]}", "must refer to an earlier entry"},
        {", \"lanes\": [{\"amount\": 1, \"tasks\": []}]}", "no tasks"},
        {", \"slots\": [{\"duration\": 3}]}", "fraction"},
        {", \"prices\": [{\"price\": {\"num\": 1, \"den\": 1}}]}", "must be for one of"},
        {", \"messages\": [{\"values\": [0, 64], \"size\": {\"num\": 1, \"den\": 1}}]}", "from 0 to 63"},
        {", \"messages\": [{\"values\": [0], \"size\": {\"num\": 1, \"den\": 1}}]}", "must have \"from\""},
        {", \"operation\": \"reduce\"}", "must have a \"target\""},
    };
    struct by_topology *topology = steady_parse(PLATFORM_2);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[1000];
        struct by_series *series;
        struct by_problem problem;

        snprintf(text, sizeof(text), "%s%s", head, cases[i].rest);
        assert_true(by_series_parse(text, strlen(text), topology, &series, &problem) != 0);
        assert_null(series);
        if (!strstr(problem.text, cases[i].reason))
            fail_msg("case %zu: '%s' does not say '%s'", i, problem.text, cases[i].reason);
    }
    by_topology_free(topology);
}

/* Checks the schedule of scatter() or reduce() as moves, after one replacement of `from` by `to` in
 * their text. */
static int check_moves(bool reduces, const char *from, const char *to, struct by_problem *problem)
{
    struct by_topology *topology = steady_parse(reduces ? PLATFORM_6 : PLATFORM_2);
    struct by_series *series = reduces ? reduce(topology) : scatter(topology);
    struct by_moves moves, read = {0};
    size_t bytes = 0;
    char *text = NULL, *at, changed[8192];
    FILE *stream = open_memstream(&text, &bytes);
    int error;

    assert_int_equal(by_moves_make(series, topology, &moves, problem), 0);
    assert_int_equal(by_moves_write(&moves, topology, NULL, stream), 0);
    fclose(stream);
    at = strstr(text, from);
    if (!at)
        fail_msg("'%s' is not in %s", from, text);
    snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    error = by_moves_check(changed, strlen(changed), &read, problem);
    by_moves_free(&moves);
    by_moves_free(&read);
    by_series_free(series);
    by_topology_free(topology);
    free(text);
    return error;
}

static void wrong_moves_are_named(void **state)
{
    static const struct {
        const char *from, *to, *reason;
        int error;
    } cases[] = {
        {"\"round\": 4, \"send\": 3", "\"round\": 3, \"send\": 3", "differs from what is received",
         BY_EINVAL},
        {"\"interval\"", "\"pace\"", "'pace' of a schedule", BY_EFORMAT},
        {"\"first\": 4, \"count\": 8", "\"first\": 5, \"count\": 8", "within 12 chunks", BY_EFORMAT},
        {"\"path\": 1", "\"path\": 0", "path 0 leads from", BY_EFORMAT},
        {"\"send\": 1", "\"send\": 0", "another rank", BY_EFORMAT},
        {"\"send\": 1", "\"send\": 9", "from 0 to 4", BY_EFORMAT},
        {"\"rank\": 1", "\"rank\": 2", "from 1 to 1", BY_EFORMAT},
        {"banyan-moves-1", "banyan-moves-9", "not a schedule of moves", BY_EFORMAT},
        {"scatter", "reduce", "partials must precede", BY_EFORMAT},
    };
    static const char head[] = "{\"format\": \"banyan-moves-1\", \"operation\": \"gossip\", \"ranks\": 2, "
                               "\"chunks\": 2, \"rounds\": 2, \"interval\": 1, \"hosts\": [{\"rank\": 0, "
                               "\"moves\": [";
    static const struct {
        const char *sends, *receives, *reason;
    } runs[] = {
        {"{\"round\": 0, \"send\": 1, \"source\": 1, \"target\": 0, \"first\": 0, \"count\": 1}",
         "{\"round\": 0, \"receive\": 0, \"source\": 1, \"target\": 0, \"first\": 0, \"count\": 1}",
         "which it does not have yet"},
        {"{\"round\": 0, \"send\": 1, \"source\": 0, \"target\": 1, \"first\": 0, \"count\": 1}",
         "{\"round\": 0, \"receive\": 0, \"source\": 0, \"target\": 1, \"first\": 0, \"count\": 1}",
         "does not receive the whole message"},
        {"{\"round\": 0, \"send\": 1, \"source\": 0, \"target\": 1, \"first\": 0, \"count\": 2},"
         "{\"round\": 1, \"send\": 1, \"source\": 0, \"target\": 1, \"first\": 1, \"count\": 1}",
         "{\"round\": 0, \"receive\": 0, \"source\": 0, \"target\": 1, \"first\": 0, \"count\": 2},"
         "{\"round\": 1, \"receive\": 0, \"source\": 0, \"target\": 1, \"first\": 1, \"count\": 1}",
         "reaches rank 1 again"},
    };
    struct by_problem problem;

    (void)state;
    assert_int_equal(check_moves(false, "scatter", "scatter", &problem), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(check_moves(false, cases[i].from, cases[i].to, &problem), cases[i].error);
        if (!strstr(problem.text, cases[i].reason))
            fail_msg("case %zu: '%s' does not say '%s'", i, problem.text, cases[i].reason);
    }
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct by_moves moves;
        char text[2000];

        snprintf(text, sizeof(text), "%s%s]}, {\"rank\": 1, \"moves\": [%s]}]}", head, runs[i].sends,
                 runs[i].receives);
        assert_int_equal(by_moves_check(text, strlen(text), &moves, &problem), BY_EINVAL);
        if (!strstr(problem.text, runs[i].reason))
            fail_msg("run %zu: '%s' does not say '%s'", i, problem.text, runs[i].reason);
        by_moves_free(&moves);
    }
}

static void wrong_moves_of_a_reduce_are_named(void **state)
{
    static const struct {
        const char *from, *to, *reason;
        int error;
    } cases[] = {
        {"\"target\": 0", "\"target\": 1", "rank 1 does not have the complete result", BY_EINVAL},
        {"\"target\": 0", "\"target\": 3", "the target, rank 3", BY_EFORMAT},
        {"\"combine\": 5, \"left\": 0, \"right\": 4", "\"combine\": 5, \"left\": 4, \"right\": 4",
         "which do not make 5", BY_EINVAL},
        {"\"combine\": 5, \"left\": 0, \"right\": 4", "\"combine\": 5, \"left\": 3, \"right\": 2",
         "which it does not have yet", BY_EINVAL},
        {"\"combine\": 5, \"left\": 0,", "\"combine\": 5,", "combine, left and right", BY_EFORMAT},
        {"\"partial\": 4", "\"partial\": 9", "from 0 to 5", BY_EFORMAT},
        {"\"partial\": 4", "\"source\": 4", "'source' of a move", BY_EFORMAT},
        {"\"round\": 3, \"combine\"", "\"round\": 2, \"combine\"", "which it does not have yet", BY_EINVAL},
    };
    struct by_problem problem;

    (void)state;
    assert_int_equal(check_moves(true, "reduce", "reduce", &problem), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int error = check_moves(true, cases[i].from, cases[i].to, &problem);

        if (error != cases[i].error || !strstr(problem.text, cases[i].reason))
            fail_msg("case %zu: %d, '%s' does not say '%s'", i, error, problem.text, cases[i].reason);
    }
}

/* Every prefix of a valid file, and every file with one changed byte, gets a verdict or a
 * refusal. */
static void no_damage_to_a_file_does_harm(void **state)
{
    struct by_topology *topology = steady_parse(PLATFORM_6);
    struct by_series *whole = reduce(topology);
    char *text = steady_text(whole, topology);
    size_t bytes = strlen(text);

    (void)state;
    for (size_t at = 0; at + 1 < bytes; at++) { /* the last byte is a newline */
        static const char letters[] = "0127\"{}[],:anx ";
        char kept = text[at];
        struct by_series *series;
        struct by_series_verdict verdict;
        struct by_problem problem;

        assert_true(by_series_parse(text, at, topology, &series, &problem) != 0);
        text[at] = letters[at % (sizeof(letters) - 1)];
        if (by_series_parse(text, bytes, topology, &series, &problem) == 0) {
            by_series_check(series, topology, &verdict);
            by_series_free(series);
        }
        text[at] = kept;
    }
    free(text);
    by_series_free(whole);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_corruption_is_named),     cmocka_unit_test(what_is_no_schedule_is_refused),
        cmocka_unit_test(wrong_moves_are_named),         cmocka_unit_test(wrong_moves_of_a_reduce_are_named),
        cmocka_unit_test(no_damage_to_a_file_does_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

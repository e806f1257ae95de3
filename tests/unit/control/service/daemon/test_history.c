/* The hour of the fabric's past: what a sample counts, when it is taken, and how loads of links and
 * the parts of the optimum are rounded and limited. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/history.h"
#include "control/service/daemon/latency.h"
#include "control/service/daemon/rates.h"

/* h0 and h1 have links of 1 MB/s to x0, in one direction alone between h1 and x0. */
static const char fabric[] =
    "{\"name\": \"f\", \"unit\": \"MB/s\", \"nodes\": [{\"name\": \"h0\", \"kind\": \"compute\"}, {\"name\": "
    "\"h1\", \"kind\": \"compute\"}, {\"name\": \"x0\", \"kind\": \"switch\"}], \"links\": [{\"between\": "
    "[\"h0\", \"x0\"], \"bandwidth\": 1}, {\"from\": \"h1\", \"to\": \"x0\", \"bandwidth\": 1}, {\"from\": "
    "\"x0\", \"to\": \"h1\", \"bandwidth\": 2}, {\"between\": [\"h0\", \"x0\"], \"bandwidth\": 4}]}";

enum { LINKS = 4 };

static struct by_daemon *daemon_open(void)
{
    struct by_daemon *daemon = by_alloc(1, sizeof(*daemon));
    struct by_problem problem = {0};

    if (by_topology_parse(fabric, strlen(fabric), &daemon->topology, &problem) != 0)
        fail_msg("%s", problem.text);
    assert_int_equal(daemon->topology->link_count, LINKS);
    daemon->links = by_alloc(LINKS, sizeof(*daemon->links));
    daemon->rates = by_rates_open(LINKS);
    daemon->history = by_history_open(LINKS);
    daemon->switches = by_alloc(3, sizeof(*daemon->switches));
    daemon->switch_count = 3;
    daemon->now_ms = 1000000;
    return daemon;
}

static void daemon_close(struct by_daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->job_count; i++) {
        struct by_job_tables *tables = daemon->jobs[i]->tables;

        for (uint32_t p = 0; tables != NULL && p < tables->plan_count; p++) {
            free(tables->plans[p]->unit);
            free(tables->plans[p]);
        }
        if (tables != NULL)
            free(tables->plans);
        free(tables);
        by_latency_free(daemon->jobs[i]->latency);
        free(daemon->jobs[i]);
    }
    by_history_close(daemon->history);
    by_rates_close(daemon->rates);
    by_topology_free(daemon->topology);
    free(daemon->links);
    free(daemon->switches);
    free(daemon);
}

/* Link `link` has carried `rate` bytes per second from end `from` in the last second. */
static void carry(struct by_daemon *daemon, uint32_t link, unsigned from, uint64_t rate)
{
    by_rates_take(daemon->rates, link, from, daemon->now_ms - 1000, 0, 0);
    by_rates_take(daemon->rates, link, from, daemon->now_ms, rate, 0);
}

static const struct by_history_sample *next_sample(struct by_daemon *daemon)
{
    uint32_t count = by_history_count(daemon->history);

    daemon->now_ms += BY_HISTORY_STEP_MS;
    by_history_tick(daemon);
    if (count < BY_HISTORY_SAMPLES)
        assert_int_equal(by_history_count(daemon->history), count + 1);
    return by_history_at(daemon->history, 0);
}

static void loads_are_whole_permille_rounded_down_and_limited(void **state)
{
    static const struct {
        uint64_t rate;
        unsigned permille;
    } rows[] = {{0, 0},
                {999, 0},
                {1000, 1},
                {999999, 999},
                {1000000, 1000},
                {59999999, 59999},
                {60000000, 60000},
                {61000000, 60000},
                {UINT64_MAX / 2, 60000}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_daemon *daemon = daemon_open();

        assert_int_equal(by_history_permille(daemon, 0, 0), BY_HISTORY_NO_PERMILLE);
        carry(daemon, 0, 0, rows[i].rate);
        assert_int_equal(by_history_permille(daemon, 0, 0), rows[i].permille);
        daemon_close(daemon);
    }
}

static void each_direction_has_its_own_capacity(void **state)
{
    struct by_daemon *daemon = daemon_open();

    (void)state;
    carry(daemon, 1, 0, 500000);
    carry(daemon, 2, 0, 500000);
    carry(daemon, 3, 1, 500000);
    assert_int_equal(by_history_permille(daemon, 1, 0), 500);
    assert_int_equal(by_history_permille(daemon, 2, 0), 250);
    assert_int_equal(by_history_permille(daemon, 3, 1), 125);
    /* The opposite direction does not exist. */
    carry(daemon, 1, 1, 500000);
    assert_int_equal(by_history_permille(daemon, 1, 1), BY_HISTORY_NO_PERMILLE);
    daemon_close(daemon);
}

static void a_sample_counts_what_is_down_and_what_is_carried(void **state)
{
    struct by_daemon *daemon = daemon_open();
    const struct by_history_sample *sample;

    (void)state;
    sample = next_sample(daemon);
    assert_int_equal(sample->links_down, 0);
    assert_int_equal(sample->switches_down, 0);
    assert_int_equal(sample->carried, 0);
    assert_int_equal(sample->peak_permille, BY_HISTORY_NO_PERMILLE); /* nothing is known */
    assert_int_equal(sample->job_count, 0);
    daemon->links[0].down = daemon->links[3].down = true;
    daemon->switches[1].state = BY_SWITCH_UP;
    daemon->switches[0].state = daemon->switches[2].state = BY_SWITCH_DOWN;
    daemon->now_ms += BY_HISTORY_STEP_MS;
    carry(daemon, 0, 0, 300000);
    carry(daemon, 0, 1, 200000);
    carry(daemon, 3, 0, 100);
    by_history_tick(daemon);
    sample = by_history_at(daemon->history, 0);
    assert_int_equal(sample->links_down, 2);
    assert_int_equal(sample->switches_down, 2);
    assert_int_equal(sample->carried, 500100);
    assert_int_equal(sample->peak_permille, 300);
    assert_int_equal(by_history_at(daemon->history, 1)->links_down, 0); /* the one before is as it was */
    daemon_close(daemon);
}

static void a_sample_is_taken_a_period_after_the_last(void **state)
{
    struct by_daemon *daemon = daemon_open();

    (void)state;
    by_history_tick(daemon);
    assert_int_equal(by_history_count(daemon->history), 1);
    daemon->now_ms += BY_HISTORY_STEP_MS - 1;
    by_history_tick(daemon);
    assert_int_equal(by_history_count(daemon->history), 1);
    daemon->now_ms += 1;
    by_history_tick(daemon);
    assert_int_equal(by_history_count(daemon->history), 2);
    daemon->now_ms += 10 * BY_HISTORY_STEP_MS; /* the loop paused: one sample, and the next a period later */
    by_history_tick(daemon);
    assert_int_equal(by_history_count(daemon->history), 3);
    daemon->now_ms += BY_HISTORY_STEP_MS - 1;
    by_history_tick(daemon);
    assert_int_equal(by_history_count(daemon->history), 3);
    assert_null(by_history_at(daemon->history, 3));
    by_history_close(daemon->history);
    daemon->history = NULL;
    by_history_tick(daemon); /* without a history, nothing */
    daemon_close(daemon);
}

/* Takes the samples of one mean of the links, in all of which link 0 carries `rate`, or nothing is
 * known. */
static void one_mean(struct by_daemon *daemon, uint64_t rate, bool known)
{
    for (unsigned i = 0; i < BY_HISTORY_LINK_STEPS; i++) {
        daemon->now_ms += 2 * BY_RATES_STALE_MS;
        if (known)
            carry(daemon, 0, 0, rate);
        by_history_tick(daemon);
    }
}

static void the_mean_of_a_link_is_rounded_to_percent(void **state)
{
    static const struct {
        uint64_t rate;
        unsigned percent;
    } rows[] = {{4999, 0},      {5000, 1},      {14999, 1},      {15000, 2},
                {994000, 99},   {995000, 100},  {2534999, 253},  {2535000, 254},
                {2544999, 254}, {2545000, 254}, {99000000, 254}, {0, 0}};
    enum { COUNT = sizeof(rows) / sizeof(rows[0]) };
    struct by_daemon *daemon = daemon_open();

    (void)state;
    assert_int_equal(by_history_link(daemon->history, 0, 0, 0), BY_HISTORY_NO_PERCENT);
    for (unsigned i = 0; i < COUNT; i++) {
        one_mean(daemon, rows[i].rate, true);
        assert_int_equal(by_history_link_count(daemon->history), i + 1);
        assert_int_equal(by_history_link(daemon->history, 0, 0, 0), rows[i].percent);
        assert_int_equal(by_history_link(daemon->history, 0, 1, 0), 0); /* it received nothing */
        assert_int_equal(by_history_link(daemon->history, 1, 0, 0), BY_HISTORY_NO_PERCENT);
    }
    one_mean(daemon, 0, false); /* no rate is known */
    assert_int_equal(by_history_link(daemon->history, 0, 0, 0), BY_HISTORY_NO_PERCENT);
    for (unsigned i = 0; i < COUNT; i++)
        assert_int_equal(by_history_link(daemon->history, 0, 0, COUNT - i), rows[i].percent);
    assert_int_equal(by_history_link(daemon->history, 0, 0, COUNT + 1), BY_HISTORY_NO_PERCENT);
    assert_int_equal(by_history_link(daemon->history, LINKS, 0, 0), BY_HISTORY_NO_PERCENT);
    daemon_close(daemon);
}

static void a_mean_has_only_the_samples_with_a_rate(void **state)
{
    struct by_daemon *daemon = daemon_open();

    (void)state;
    for (unsigned i = 0; i < BY_HISTORY_LINK_STEPS; i++) {
        daemon->now_ms += 2 * BY_RATES_STALE_MS;
        if (i % 4 == 0)
            carry(daemon, 0, 0, i == 0 ? 200000 : 400000);
        assert_int_equal(by_history_link_count(daemon->history), 0); /* not before the last sample */
        by_history_tick(daemon);
    }
    assert_int_equal(by_history_link_count(daemon->history), 1);
    assert_int_equal(by_history_link(daemon->history, 0, 0, 0), 30);
    daemon_close(daemon);
}

static struct by_job *add_job(struct by_daemon *daemon, uint16_t number, const struct by_job_want *wants,
                              const int64_t *optima, uint32_t count)
{
    struct by_job *job = by_alloc(1, sizeof(*job));

    job->spec.job = number;
    job->spec.want_count = count;
    job->state = BY_JOB_RUNNING;
    job->tables = by_alloc(1, sizeof(*job->tables));
    job->tables->plans = by_alloc(count, sizeof(struct by_plan *));
    job->tables->plan_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct by_plan *plan = by_alloc(1, sizeof(*plan));

        job->spec.wants[i] = wants[i];
        plan->unit = by_copy_text("MB/s");
        plan->optimum = (struct by_fraction){optima[i], 1};
        job->tables->plans[i] = plan;
    }
    daemon->jobs[daemon->job_count++] = job;
    return job;
}

/* Rank 0 reports one operation more of a collective. */
static void report(struct by_daemon *daemon, uint16_t job, unsigned collective, uint64_t bytes, uint64_t ns,
                   uint32_t length)
{
    uint8_t data[BY_LATENCY_ALL_BYTES + 8] = {0};
    struct by_latency latency = {0};
    static uint64_t process = 1; /* each report is of another one */

    by_latency_add(&latency, bytes, ns);
    by_latency_put(&latency, data + (size_t)(collective - 1) * BY_LATENCY_BYTES);
    by_latency_take(
        daemon,
        &(struct by_daemon_event){
            .kind = BY_EVENT_MEASURED, .job = job, .number = process++, .data = data, .bytes = length});
}

static void the_optimum_of_several_roots_is_the_lowest(void **state)
{
    static const struct by_job_want wants[] = {{.collective = BY_COLLECTIVE_BROADCAST, .root = 0},
                                               {.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1},
                                               {.collective = BY_COLLECTIVE_BROADCAST, .root = 1},
                                               {.collective = BY_COLLECTIVE_BROADCAST, .root = 2},
                                               {.collective = BY_COLLECTIVE_ALLGATHER, .root = -1}};
    static const int64_t optima[] = {5, 1, 3, 4, 0};
    struct by_daemon *daemon = daemon_open();
    struct by_job *job = add_job(daemon, 4, wants, optima, 5);

    (void)state;
    assert_int_equal(by_latency_optimum(job, BY_COLLECTIVE_BROADCAST), 3000000);
    assert_int_equal(by_latency_optimum(job, BY_COLLECTIVE_ALLREDUCE), 1000000);
    assert_int_equal(by_latency_optimum(job, BY_COLLECTIVE_REDUCE), 0);
    assert_int_equal(by_latency_optimum(job, BY_COLLECTIVE_ALLGATHER), 0);
    daemon_close(daemon);
}

static void each_job_has_its_part_of_the_optimum_in_the_sample(void **state)
{
    static const struct by_job_want wants[] = {{.collective = BY_COLLECTIVE_BROADCAST, .root = 0},
                                               {.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1}};
    static const int64_t optima[] = {4, 2};
    struct by_daemon *daemon = daemon_open();
    const struct by_history_sample *sample;
    const uint64_t second = 1000000000;

    (void)state;
    for (uint16_t number = 3; number <= 7; number++)
        add_job(daemon, number, wants, optima, 2);
    report(daemon, 3, BY_COLLECTIVE_ALLREDUCE, 1000000, second, BY_LATENCY_ALL_BYTES);
    report(daemon, 3, BY_COLLECTIVE_BROADCAST, 1000000, second, BY_LATENCY_ALL_BYTES);
    report(daemon, 4, BY_COLLECTIVE_ALLREDUCE, 119999999, second, BY_LATENCY_ALL_BYTES);
    report(daemon, 5, BY_COLLECTIVE_ALLREDUCE, 121000000, second, BY_LATENCY_ALL_BYTES);
    report(daemon, 6, BY_COLLECTIVE_ALLREDUCE, 1000000, second, BY_LATENCY_ALL_BYTES - 1);
    report(daemon, 6, BY_COLLECTIVE_ALLREDUCE, 1000000, second, BY_LATENCY_ALL_BYTES + 8);
    report(daemon, 7, BY_COLLECTIVE_ALLGATHER, 1000000, second, BY_LATENCY_ALL_BYTES); /* no plan */
    sample = next_sample(daemon);
    assert_int_equal(sample->job_count, 5);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(sample->jobs[i].job, 3 + i);
    /* A half and a quarter of a second would be enough, and it took two. */
    assert_int_equal(sample->jobs[0].permille, 375);
    assert_int_equal(sample->jobs[1].permille, 59999);
    assert_int_equal(sample->jobs[2].permille, 60000);
    assert_int_equal(sample->jobs[3].permille, BY_HISTORY_NO_PERMILLE); /* cut and long reports */
    assert_int_equal(sample->jobs[4].permille, BY_HISTORY_NO_PERMILLE);
    assert_null(by_latency_of(daemon->jobs[3], BY_COLLECTIVE_ALLREDUCE));
    assert_null(by_latency_recent(daemon->jobs[3], BY_COLLECTIVE_ALLREDUCE));
    assert_int_equal(by_latency_recent(daemon->jobs[0], BY_COLLECTIVE_BROADCAST)->operations, 1);
    sample = next_sample(daemon); /* a period without operations */
    assert_int_equal(sample->jobs[0].permille, BY_HISTORY_NO_PERMILLE);
    assert_int_equal(by_latency_recent(daemon->jobs[0], BY_COLLECTIVE_BROADCAST)->operations, 0);
    assert_int_equal(by_latency_of(daemon->jobs[0], BY_COLLECTIVE_BROADCAST)->operations, 1);
    daemon_close(daemon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_are_whole_permille_rounded_down_and_limited),
        cmocka_unit_test(each_direction_has_its_own_capacity),
        cmocka_unit_test(a_sample_counts_what_is_down_and_what_is_carried),
        cmocka_unit_test(a_sample_is_taken_a_period_after_the_last),
        cmocka_unit_test(the_mean_of_a_link_is_rounded_to_percent),
        cmocka_unit_test(a_mean_has_only_the_samples_with_a_rate),
        cmocka_unit_test(the_optimum_of_several_roots_is_the_lowest),
        cmocka_unit_test(each_job_has_its_part_of_the_optimum_in_the_sample),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

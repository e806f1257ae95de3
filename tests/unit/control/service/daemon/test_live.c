/* The data of the live page: valid JSON whatever names and messages contain, bounded memory, one
 * hour of history, the part of the optimum that jobs reach, and no secrets. */
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
#include "control/service/daemon/live.h"
#include "control/service/daemon/news.h"
#include "control/service/daemon/rates.h"
#include "control/service/daemon/status.h"

static unsigned present; /* ranks that are connected, as bits */

bool __wrap_by_recovery_has_rank(const struct by_daemon *daemon, uint16_t job, uint16_t rank);

bool __wrap_by_recovery_has_rank(const struct by_daemon *daemon, uint16_t job, uint16_t rank)
{
    (void)daemon;
    (void)job;
    return present >> rank & 1;
}

/* Two hosts and a switch; links of 1 MB/s. The name of the fabric needs escapes. */
static const char fabric_text[] =
    "{\"name\": \"a \\\"b\\\" </script>\", \"unit\": \"MB/s\", \"nodes\": [{\"name\": \"h0\", \"kind\": "
    "\"compute\"}, {\"name\": \"h.1\", \"kind\": \"compute\"}, {\"name\": \"x0\", \"kind\": "
    "\"switch\", \"multicast\": true, \"aggregate\": true}], \"links\": [{\"between\": [\"h0\", \"x0\"], "
    "\"bandwidth\": 1}, {\"between\": [\"h.1\", \"x0\"], \"bandwidth\": 1}]}";

static struct by_daemon *daemon_of(const char *text)
{
    struct by_daemon *daemon = by_alloc(1, sizeof(*daemon));
    struct by_problem problem = {0};

    if (by_topology_parse(text, strlen(text), &daemon->topology, &problem) != 0)
        fail_msg("%s", problem.text);
    daemon->links = by_alloc(daemon->topology->link_count, sizeof(*daemon->links));
    daemon->news = by_news_open();
    daemon->rates = by_rates_open(daemon->topology->link_count);
    daemon->history = by_history_open(daemon->topology->link_count);
    daemon->switches = by_alloc(1, sizeof(*daemon->switches));
    daemon->switches[0] = (struct by_daemon_switch){.node = 2, .name = "x0", .state = BY_SWITCH_UP};
    daemon->switch_count = 1;
    return daemon;
}

static struct by_job *add_job(struct by_daemon *daemon, uint16_t number)
{
    struct by_job *job = by_alloc(1, sizeof(*job));

    job->spec.job = number;
    job->spec.want_count = 1;
    job->spec.wants[0] = (struct by_job_want){.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1};
    job->state = BY_JOB_RUNNING;
    daemon->jobs[daemon->job_count++] = job;
    return job;
}

/* Gives a job tables with a plan of this optimum (MB/s). */
static struct by_plan *add_plan(struct by_job *job, int64_t optimum)
{
    struct by_plan *plan = by_alloc(1, sizeof(*plan));

    plan->unit = by_copy_text("MB/s");
    plan->optimum = (struct by_fraction){optimum, 1};
    plan->achieved = (struct by_fraction){optimum, 2};
    job->tables = by_alloc(1, sizeof(*job->tables));
    job->tables->gen = 3;
    memset(job->tables->secret, 0xab, sizeof(job->tables->secret));
    job->tables->plan_count = 1;
    job->tables->plans = by_alloc(1, sizeof(struct by_plan *));
    job->tables->plans[0] = plan;
    return plan;
}

static void daemon_free(struct by_daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->job_count; i++) {
        struct by_job_tables *tables = daemon->jobs[i]->tables;

        if (tables != NULL) {
            free(tables->plans[0]->unit);
            free(tables->plans[0]);
            free(tables->plans);
            free(tables);
        }
        by_latency_free(daemon->jobs[i]->latency);
        free(daemon->jobs[i]);
    }
    by_history_close(daemon->history);
    by_rates_close(daemon->rates);
    by_news_close(daemon->news);
    by_topology_free(daemon->topology);
    free(daemon->links);
    free(daemon->switches);
    free(daemon);
}

/* Writes an answer and reads it again, as strict JSON. */
static json_t *again(json_t *answer, size_t *bytes)
{
    char *text = json_dumps(answer, JSON_COMPACT);
    json_error_t fault;
    json_t *read;

    assert_non_null(answer);
    assert_non_null(text);
    read = json_loads(text, JSON_REJECT_DUPLICATES, &fault);
    if (read == NULL)
        fail_msg("%s: %s", fault.text, text);
    if (bytes != NULL)
        *bytes = strlen(text);
    free(text);
    json_decref(answer);
    return read;
}

/* A rank reports operations of `bytes` in all, that took `ns` in all. */
static void report(struct by_daemon *daemon, uint16_t job, uint64_t bytes, uint64_t ns)
{
    uint8_t data[BY_LATENCY_ALL_BYTES] = {0};
    struct by_latency latency = {0};

    by_latency_add(&latency, bytes, ns);
    by_latency_put(&latency, data + (size_t)(BY_COLLECTIVE_ALLREDUCE - 1) * BY_LATENCY_BYTES);
    by_latency_take(
        daemon, &(struct by_daemon_event){
                    .kind = BY_EVENT_MEASURED, .job = job, .number = 5, .data = data, .bytes = sizeof(data)});
}

static void the_fabric_has_names_positions_and_capacities(void **state)
{
    struct by_daemon *daemon = daemon_of(fabric_text);
    json_t *fabric = again(by_live_fabric(daemon), NULL), *nodes = json_object_get(fabric, "nodes"),
           *link = json_array_get(json_object_get(fabric, "links"), 1);

    (void)state;
    assert_string_equal(json_string_value(json_object_get(fabric, "topology")), "a \"b\" </script>");
    assert_string_equal(json_string_value(json_object_get(fabric, "shape")), "layers");
    assert_int_equal(json_array_size(nodes), 3);
    assert_string_equal(json_string_value(json_array_get(json_array_get(nodes, 1), 0)), "h.1");
    assert_int_equal(json_integer_value(json_array_get(json_array_get(nodes, 1), 2)), 0); /* below */
    assert_int_equal(json_integer_value(json_array_get(json_array_get(nodes, 2), 2)), 1); /* above */
    assert_int_equal(json_integer_value(json_array_get(link, 0)), 1);
    assert_int_equal(json_integer_value(json_array_get(link, 1)), 2);
    assert_int_equal(json_integer_value(json_array_get(link, 2)), 1000000);
    json_decref(fabric);
    daemon_free(daemon);
}

static void the_state_has_loads_and_what_is_down(void **state)
{
    struct by_daemon *daemon = daemon_of(fabric_text);
    json_t *live, *load;

    (void)state;
    daemon->links[1].down = true;
    for (uint64_t i = 0; i < 2; i++) /* the switch is end 1 of both links */
        by_rates_take(daemon->rates, 0, 1, 1000 * i, 250000 * i, 500000 * i);
    daemon->now_ms = 1000;
    live = again(by_live_state(daemon), NULL);
    load = json_object_get(live, "load");
    assert_int_equal(json_array_size(load), 4);
    assert_int_equal(json_integer_value(json_array_get(load, 0)), 500000);
    assert_int_equal(json_integer_value(json_array_get(load, 1)), 250000);
    assert_true(json_is_null(json_array_get(load, 2)));
    assert_int_equal(json_integer_value(json_array_get(json_object_get(live, "links_down"), 0)), 1);
    assert_int_equal(json_array_size(json_object_get(live, "nodes_down")), 0);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(live, "nodes_up"), 0)), 2);
    json_decref(live);
    daemon->switches[0].state = BY_SWITCH_DOWN;
    live = again(by_live_state(daemon), NULL);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(live, "nodes_down"), 0)), 2);
    json_decref(live);
    daemon_free(daemon);
}

static void any_message_is_valid_json(void **state)
{
    static const char *const texts[] = {"quote \" backslash \\ line\nend\ttab\x01", "<b>&amp;</b>",
                                        "cut \xc3", "\xff\xfe", ""};
    struct by_daemon *daemon = daemon_of(fabric_text);
    struct by_job *job = add_job(daemon, 1);
    json_t *live;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        by_news_tell(daemon->news, BY_NEWS_BAD, "%s", texts[i]);
        snprintf(job->text, sizeof(job->text), "%s", texts[i]);
        live = again(by_live_state(daemon), NULL);
        assert_int_equal(json_array_size(json_object_get(live, "events")), i + 1);
        json_decref(live);
        json_decref(again(by_live_history(daemon), NULL));
    }
    live = again(by_live_state(daemon), NULL);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(json_object_get(live, "events"), 2), "text")),
        "cut ?");
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(json_object_get(live, "events"), 4), "text")),
        texts[0]);
    json_decref(live);
    daemon_free(daemon);
}

static void a_cut_error_of_a_switch_is_valid_json_in_the_status(void **state)
{
    struct by_daemon *daemon = daemon_of(fabric_text);
    json_t *status, *device;
    char *text;

    (void)state;
    strcpy(daemon->switches[0].text, "no interface \xc3");
    status = by_status_json(daemon);
    assert_non_null(status);
    text = json_dumps(status, 0);
    assert_non_null(text);
    device = json_array_get(json_object_get(status, "switches"), 0);
    assert_string_equal(json_string_value(json_object_get(device, "error")), "no interface ?");
    free(text);
    json_decref(status);
    daemon_free(daemon);
}

static void only_the_latest_lines_are_kept(void **state)
{
    struct by_daemon *daemon = daemon_of(fabric_text);
    char line[2000];
    json_t *live, *history;

    (void)state;
    memset(line, 'n', sizeof(line));
    line[sizeof(line) - 1] = 0;
    for (unsigned i = 1; i <= 3 * BY_NEWS_MAX; i++)
        by_news_tell(daemon->news, BY_NEWS_PLAIN, "%u %s", i, line);
    live = again(by_live_state(daemon), NULL);
    history = again(by_live_history(daemon), NULL);
    assert_int_equal(json_array_size(json_object_get(live, "events")), BY_LIVE_NEWS_MAX);
    assert_int_equal(json_array_size(json_object_get(history, "events")), BY_NEWS_MAX);
    assert_int_equal(
        json_integer_value(json_object_get(json_array_get(json_object_get(history, "events"), 0), "number")),
        3 * BY_NEWS_MAX);
    assert_null(by_news_at(daemon->news, BY_NEWS_MAX));
    assert_int_equal(by_news_at(daemon->news, BY_NEWS_MAX - 1)->number, 2 * BY_NEWS_MAX + 1);
    assert_true(strlen(by_news_at(daemon->news, 0)->text) < BY_NEWS_BYTES);
    json_decref(live);
    json_decref(history);
    daemon_free(daemon);
}

static void the_history_has_one_hour_and_no_more(void **state)
{
    struct by_daemon *daemon = daemon_of(fabric_text);
    const struct by_history_sample *sample;
    json_t *history;
    size_t bytes;

    (void)state;
    daemon->now_ms = 1;
    by_history_tick(daemon);
    by_history_tick(daemon); /* the period has not passed */
    assert_int_equal(by_history_count(daemon->history), 1);
    for (uint32_t i = 1; i < BY_HISTORY_SAMPLES + 100; i++) {
        daemon->now_ms += BY_HISTORY_STEP_MS;
        /* Half of the capacity from host to switch, a quarter back. */
        by_rates_take(daemon->rates, 0, 1, daemon->now_ms, UINT64_C(500000) * i, UINT64_C(1000000) * i);
        by_history_tick(daemon);
    }
    assert_int_equal(by_history_count(daemon->history), BY_HISTORY_SAMPLES);
    sample = by_history_at(daemon->history, BY_HISTORY_SAMPLES - 1);
    assert_int_equal(sample->peak_permille, 500);
    assert_int_equal(sample->carried, 750000);
    assert_null(by_history_at(daemon->history, BY_HISTORY_SAMPLES));
    assert_int_equal(by_history_link_count(daemon->history), BY_HISTORY_LINK_SAMPLES);
    assert_int_equal(by_history_link(daemon->history, 0, 0, BY_HISTORY_LINK_SAMPLES - 1), 50);
    assert_int_equal(by_history_link(daemon->history, 0, 1, 0), 25);
    assert_int_equal(by_history_link(daemon->history, 1, 0, 0), BY_HISTORY_NO_PERCENT);
    history = again(by_live_history(daemon), &bytes);
    assert_int_equal(json_array_size(json_object_get(history, "samples")), BY_HISTORY_SAMPLES);
    assert_in_range(bytes, 1, 200 * BY_HISTORY_SAMPLES);
    json_decref(history);
    history = again(by_live_history_link(daemon, 0), NULL);
    assert_int_equal(json_array_size(json_object_get(history, "ab")), BY_HISTORY_LINK_SAMPLES);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(history, "ab"), 0)), 50);
    json_decref(history);
    assert_null(by_live_history_link(daemon, 2));
    daemon_free(daemon);
}

static void a_fabric_of_very_many_links_has_no_history_of_links(void **state)
{
    struct by_history *history = by_history_open(BY_HISTORY_LINKS_MAX + 1);

    (void)state;
    assert_false(by_history_has_links(history));
    assert_int_equal(by_history_link(history, 0, 0, 0), BY_HISTORY_NO_PERCENT);
    by_history_close(history);
    history = by_history_open(BY_HISTORY_LINKS_MAX);
    assert_true(by_history_has_links(history));
    by_history_close(history);
}

static void a_job_is_compared_with_its_optimum_over_the_last_period(void **state)
{
    struct by_daemon *daemon = daemon_of(fabric_text);
    struct by_job *job = add_job(daemon, 4);
    json_t *live, *one, *measured;

    (void)state;
    add_plan(job, 2);
    assert_int_equal(by_latency_permille(job), UINT16_MAX);
    report(daemon, 4, 1000000, UINT64_C(1000000000)); /* 1 MB/s; at 2 MB/s it would take half the time */
    assert_int_equal(by_latency_permille(job), UINT16_MAX); /* the period has not ended */
    daemon->now_ms = 10;
    by_history_tick(daemon);
    assert_int_equal(by_latency_permille(job), 500);
    live = again(by_live_state(daemon), NULL);
    one = json_array_get(json_object_get(live, "jobs"), 0);
    measured = json_array_get(json_object_get(one, "measured"), 0);
    assert_int_equal(json_integer_value(json_object_get(measured, "rate")), 1000000);
    assert_int_equal(json_integer_value(json_object_get(one, "permille")), 500);
    one = json_array_get(json_object_get(one, "plans"), 0);
    assert_int_equal(json_integer_value(json_object_get(one, "optimum")), 2000000);
    assert_int_equal(json_integer_value(json_object_get(one, "plan")), 1000000);
    json_decref(live);
    daemon->now_ms += BY_HISTORY_STEP_MS; /* a period without operations */
    by_history_tick(daemon);
    assert_int_equal(by_latency_permille(job), UINT16_MAX);
    assert_int_equal(by_history_at(daemon->history, 1)->jobs[0].permille, 500);
    assert_int_equal(by_history_at(daemon->history, 0)->jobs[0].permille, BY_HISTORY_NO_PERMILLE);
    daemon_free(daemon);
}

/* Fails if a text has any of these parts. */
static void has_none(const char *text)
{
    static const char *const parts[] = {
        "abab", "secret", "nonce", "election", "table", "key", "psk", "1234567890123456789", "/secret/path"};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strstr(text, parts[i]) != NULL)
            fail_msg("\"%s\" in %s", parts[i], text);
}

static void nothing_of_keys_or_nonces_is_in_an_answer(void **state)
{
    struct by_daemon *daemon = daemon_of(fabric_text);
    json_t *answers[4];

    (void)state;
    add_plan(add_job(daemon, 4), 2);
    report(daemon, 4, 1000, 1000);
    daemon->election_id = UINT64_C(1234567890123456789);
    daemon->switches[0].hello.boot_nonce = UINT64_C(1234567890123456789);
    snprintf(daemon->switches[0].address, sizeof(daemon->switches[0].address), "unix:/secret/path");
    daemon->now_ms = 10;
    by_history_tick(daemon);
    answers[0] = by_live_fabric(daemon);
    answers[1] = by_live_state(daemon);
    answers[2] = by_live_history(daemon);
    answers[3] = by_live_history_link(daemon, 0);
    for (unsigned i = 0; i < 4; i++) {
        char *text = json_dumps(answers[i], JSON_COMPACT);

        assert_non_null(text);
        has_none(text);
        free(text);
        json_decref(answers[i]);
    }
    daemon_free(daemon);
}

static void the_hosts_of_ranks_that_are_not_connected_are_listed(void **state)
{
    static const char *const names[] = {"h0", "h.1"};
    struct by_daemon *daemon = daemon_of(fabric_text);

    (void)state;
    add_job(daemon, 7);
    for (present = 0; present < 4; present++) {
        json_t *live = again(by_live_state(daemon), NULL);
        json_t *job = json_array_get(json_object_get(live, "jobs"), 0), *missing;
        size_t listed = 0;

        assert_int_equal(json_integer_value(json_object_get(job, "joined")), (present & 1) + (present >> 1));
        missing = json_object_get(job, "missing");
        for (unsigned rank = 0; rank < 2; rank++)
            if (!(present >> rank & 1))
                assert_string_equal(json_string_value(json_array_get(missing, listed++)), names[rank]);
        assert_int_equal(json_array_size(missing), listed);
        json_decref(live);
    }
    present = 0;
    daemon_free(daemon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fabric_has_names_positions_and_capacities),
        cmocka_unit_test(the_state_has_loads_and_what_is_down),
        cmocka_unit_test(any_message_is_valid_json),
        cmocka_unit_test(a_cut_error_of_a_switch_is_valid_json_in_the_status),
        cmocka_unit_test(only_the_latest_lines_are_kept),
        cmocka_unit_test(the_history_has_one_hour_and_no_more),
        cmocka_unit_test(a_fabric_of_very_many_links_has_no_history_of_links),
        cmocka_unit_test(a_job_is_compared_with_its_optimum_over_the_last_period),
        cmocka_unit_test(the_hosts_of_ranks_that_are_not_connected_are_listed),
        cmocka_unit_test(nothing_of_keys_or_nonces_is_in_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The answers of the live page as whole texts: the parts of the daemon that measure are replaced by
 * numbers that name what was asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/history.h"
#include "control/service/daemon/latency.h"
#include "control/service/daemon/live.h"
#include "control/service/daemon/news.h"
#include "control/service/daemon/rates.h"
#include "control/service/daemon/recover.h"
#include "control/service/daemon/recovery.h"
#include "control/service/daemon/status.h"
#include "tests/unit/control/tables/bench.h"

enum { H0, H1, H2, X0, X1, NODES };
enum { H0_X0, H1_X0, X0_X1, X1_H2, LINKS };

static struct {
    struct by_daemon daemon;
    struct by_daemon_switch switches[2];
    struct by_link_state links[LINKS];
    struct by_job jobs[2];
    struct by_job_tables tables;
    struct by_plan *plans[1];
    struct by_plan plan;
    uint32_t samples, lines, trees; /* kept; of news; that wait at each switch */
    bool no_links;                  /* of the history */
    struct by_history_sample sample;
    struct by_latency recent[BY_COLLECTIVE_COUNT], total[BY_COLLECTIVE_COUNT];
    bool measured[BY_COLLECTIVE_COUNT];
} rig;

/* ---- the other parts ---- */

bool by_rates_get(const struct by_rates *rates, uint32_t link, unsigned direction, uint64_t now_ms,
                  uint64_t *rate)
{
    (void)rates;
    assert_int_equal(now_ms, 5000);
    *rate = link == 3 ? UINT64_MAX : 100 * (link + 1) + direction;
    return link != 1;
}

bool by_history_has_links(const struct by_history *history)
{
    (void)history;
    return !rig.no_links;
}

uint32_t by_history_count(const struct by_history *history)
{
    (void)history;
    return rig.samples;
}

const struct by_history_sample *by_history_at(const struct by_history *history, uint32_t age)
{
    (void)history;
    if (age >= rig.samples)
        return NULL;
    rig.sample = (struct by_history_sample){.time_ms = 1000 - age,
                                            .carried = 70 + age,
                                            .peak_permille = age == 1 ? BY_HISTORY_NO_PERMILLE : 900,
                                            .links_down = 2 + age,
                                            .switches_down = 4 + age,
                                            .job_count = 2 - age % 3,
                                            .jobs = {{3, 500}, {4, BY_HISTORY_NO_PERMILLE}}};
    return &rig.sample;
}

uint32_t by_history_link_count(const struct by_history *history)
{
    (void)history;
    return rig.samples;
}

uint8_t by_history_link(const struct by_history *history, uint32_t link, unsigned direction, uint32_t age)
{
    (void)history;
    return age == 1 ? BY_HISTORY_NO_PERCENT : (uint8_t)(50 * link + 10 * direction + age);
}

const struct by_latency *by_latency_recent(const struct by_job *job, uint32_t collective)
{
    return job == &rig.jobs[0] && rig.measured[collective] ? &rig.recent[collective] : NULL;
}

const struct by_latency *by_latency_of(const struct by_job *job, uint32_t collective)
{
    return job == &rig.jobs[0] && rig.measured[collective] ? &rig.total[collective] : NULL;
}

uint16_t by_latency_permille(const struct by_job *job)
{
    return job == &rig.jobs[0] ? 875 : BY_HISTORY_NO_PERMILLE;
}

uint64_t by_news_clock_ms(void)
{
    return 1700000000123;
}

const struct by_news_line *by_news_at(const struct by_news *news, uint32_t age)
{
    static struct by_news_line line;

    (void)news;
    if (age >= rig.lines)
        return NULL;
    line = (struct by_news_line){.number = 50 - age,
                                 .time_ms = 60 - age,
                                 .grade = (enum by_news_grade)(BY_NEWS_GOOD + age % 3),
                                 .text = "news"};
    return &line;
}

bool by_recover_held(const struct by_recover *r, bool is_link, uint32_t what)
{
    (void)r;
    return is_link ? what == 0 || what == LINKS - 1 : what == NODES - 1;
}

/* Rank 1 of the first job is connected. */
bool by_recovery_has_rank(const struct by_daemon *daemon, uint16_t job, uint16_t rank)
{
    (void)daemon;
    return job == 3 && rank == 1;
}

json_t *by_status_text(const char *text)
{
    return json_string(text);
}

json_t *by_status_want(const struct by_daemon *daemon, const struct by_job *job, uint32_t index,
                       const struct by_plan **plan)
{
    (void)daemon;
    *plan = job->tables != NULL && index == 0 ? job->tables->plans[0] : NULL;
    return json_pack("{s:i}", "want", (int)index);
}

uint32_t by_status_waiting(const struct by_daemon_switch *device)
{
    return device->state == BY_SWITCH_UP ? rig.trees : 0;
}

json_t *by_status_waits(const struct by_daemon *daemon, const struct by_daemon_switch *device)
{
    json_t *array = json_array();

    (void)daemon;
    assert_int_equal(device->state, BY_SWITCH_UP); /* the others are not asked about */
    for (uint32_t i = 0; i < rig.trees; i++)
        json_array_append_new(array, json_pack("{s:i}", "tree", (int)i));
    return array;
}

/* ---- the daemon ---- */

static int set_up(void **state)
{
    struct by_daemon *daemon = &rig.daemon;

    (void)state;
    memset(&rig, 0, sizeof(rig));
    daemon->topology = bench_topology("h0 h1 h2 x0* x1*", "h0-x0 h1-x0 x0-x1 x1>h2");
    daemon->now_ms = 5000;
    daemon->started_ms = 1700000000000;
    daemon->links = rig.links;
    daemon->switches = rig.switches;
    daemon->switch_count = 2;
    rig.switches[0] = (struct by_daemon_switch){.node = X0, .state = BY_SWITCH_UP};
    rig.switches[1] = (struct by_daemon_switch){.node = X1, .state = BY_SWITCH_DOWN};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    by_topology_free(rig.daemon.topology);
    return 0;
}

static void expect(json_t *answer, const char *text)
{
    char *written = json_dumps(answer, JSON_COMPACT);

    assert_non_null(written);
    assert_string_equal(written, text);
    free(written);
    json_decref(answer);
}

#define HEAD                                                                                                 \
    "{\"started\":1700000000000,\"time\":1700000000123,\"leads\":true,\"changing\":false,\"switches\":2,"

/* ---- tests ---- */

static void an_idle_fabric_has_its_links_and_switches(void **state)
{
    (void)state;
    expect(by_live_state(&rig.daemon),
           HEAD "\"nodes_up\":[3],\"nodes_down\":[4],\"nodes_distrusted\":[],\"links_down\":[],"
                "\"links_distrusted\":[],\"load\":[100,101,null,null,300,301,9223372036854775807,"
                "9223372036854775807],\"jobs\":[],\"waiting\":[],\"events\":[],\"sample\":null}");
    rig.daemon.start = (struct by_start *)&rig;
    rig.daemon.change = (struct by_change *)&rig;
    rig.daemon.recover = (struct by_recover *)&rig;
    rig.links[0].down = rig.links[3].down = true;
    rig.switches[0].state = BY_SWITCH_UNKNOWN;
    rig.lines = 3;
    rig.samples = 2;
    expect(
        by_live_state(&rig.daemon),
        "{\"started\":1700000000000,\"time\":1700000000123,\"leads\":false,\"changing\":true,\"switches\":2,"
        "\"nodes_up\":[],\"nodes_down\":[4],\"nodes_distrusted\":[4],\"links_down\":[0,3],"
        "\"links_distrusted\":[0,3],\"load\":[100,101,null,null,300,301,9223372036854775807,"
        "9223372036854775807],\"jobs\":[],\"waiting\":[],\"events\":["
        "{\"number\":50,\"time\":60,\"grade\":\"good\",\"text\":\"news\"},"
        "{\"number\":49,\"time\":59,\"grade\":\"plain\",\"text\":\"news\"},"
        "{\"number\":48,\"time\":58,\"grade\":\"bad\",\"text\":\"news\"}],"
        "\"sample\":[1000,70,900,2,4,[[3,500],[4,null]]]}");
}

static void jobs_have_their_ranks_plans_and_measurements(void **state)
{
    bool member[NODES] = {[H1] = true, [H2] = true};
    json_t *live, *jobs;

    (void)state;
    rig.jobs[0] = (struct by_job){.spec = {.job = 3, .name = "train", .want_count = 2, .share = {1, 4}},
                                  .state = BY_JOB_RUNNING,
                                  .tables = &rig.tables};
    rig.jobs[1] =
        (struct by_job){.spec = {.job = 4, .member = member, .share = {0, 1}}, .state = BY_JOB_FAILED};
    snprintf(rig.jobs[1].text, sizeof(rig.jobs[1].text), "no path");
    rig.plan =
        (struct by_plan){.unit = (char[]){"MB/s"}, .optimum = {7, 3}, .achieved = {2, 1}, .tree_count = 9};
    rig.plans[0] = &rig.plan;
    rig.tables = (struct by_job_tables){.gen = 17, .plans = rig.plans};
    rig.measured[1] = rig.measured[2] = rig.measured[3] = rig.measured[BY_COLLECTIVE_COUNT - 1] = true;
    rig.total[1].operations = 40;
    rig.recent[1] = (struct by_latency){.operations = 4, .bytes = 3000, .duration_ns = 2000};
    rig.total[3].operations = 1; /* none recently, and the second none at all */
    rig.total[BY_COLLECTIVE_COUNT - 1].operations = 1;
    rig.recent[BY_COLLECTIVE_COUNT - 1] = (struct by_latency){.operations = 1, .bytes = 8, .duration_ns = 1};
    rig.daemon.jobs[0] = &rig.jobs[0];
    rig.daemon.jobs[1] = &rig.jobs[1];
    rig.daemon.job_count = 2;
    live = by_live_state(&rig.daemon);
    jobs = json_incref(json_object_get(live, "jobs"));
    json_decref(live);
    expect(jobs,
           "[{\"job\":3,\"name\":\"train\",\"state\":\"running\",\"text\":\"\",\"generation\":17,\"ranks\":3,"
           "\"joined\":1,\"missing\":[\"h0\",\"h2\"],\"share\":\"1/4\",\"permille\":875,\"plans\":["
           "{\"want\":0,\"optimum\":2333333,\"plan\":2000000,\"trees\":9},{\"want\":1}],\"measured\":["
           "{\"collective\":\"allreduce\",\"operations\":40,\"recent\":4,\"rate\":1500000000},"
           "{\"collective\":\"allgather\",\"operations\":1,\"recent\":0,\"rate\":null},"
           "{\"collective\":\"barrier\",\"operations\":1,\"recent\":1,\"rate\":8000000000}]},"
           "{\"job\":4,\"name\":\"\",\"state\":\"failed\",\"text\":\"no path\",\"generation\":0,\"ranks\":2,"
           "\"joined\":0,\"missing\":[\"h1\",\"h2\"],\"share\":\"0\",\"permille\":null,\"plans\":[],"
           "\"measured\":[]}]");
    rig.plan.unit = (char[]){"apples"}; /* not a rate of bytes */
    live = by_live_state(&rig.daemon);
    jobs = json_array_get(json_object_get(live, "jobs"), 0);
    assert_true(json_is_null(json_object_get(json_array_get(json_object_get(jobs, "plans"), 0), "optimum")));
    json_decref(live);
}

static void as_many_trees_and_lines_are_listed_as_the_limits_say(void **state)
{
    json_t *live, *waiting;

    (void)state;
    rig.switches[1].state = BY_SWITCH_UP;
    rig.lines = BY_LIVE_NEWS_MAX + 1;
    for (rig.trees = BY_LIVE_WAITS_MAX / 2; rig.trees <= BY_LIVE_WAITS_MAX / 2 + 1; rig.trees++) {
        live = by_live_state(&rig.daemon);
        waiting = json_object_get(live, "waiting");
        assert_int_equal(json_array_size(waiting), BY_LIVE_WAITS_MAX);
        assert_int_equal(json_integer_value(json_object_get(json_array_get(waiting, 0), "node")), X0);
        assert_int_equal(
            json_integer_value(json_object_get(json_array_get(waiting, BY_LIVE_WAITS_MAX - 1), "node")), X1);
        assert_int_equal(json_array_size(json_object_get(live, "events")), BY_LIVE_NEWS_MAX);
        json_decref(live);
    }
    rig.trees = BY_LIVE_WAITS_MAX / 2 - 1;
    live = by_live_state(&rig.daemon);
    assert_int_equal(json_array_size(json_object_get(live, "waiting")), BY_LIVE_WAITS_MAX - 2);
    json_decref(live);
}

/* Of a large job, the first missing hosts. */
static void as_many_missing_hosts_are_listed_as_the_limit_says(void **state)
{
    char nodes[200] = "x*", links[400] = "";

    (void)state;
    for (unsigned i = 0; i < BY_LIVE_MISSING_MAX + 2; i++) {
        snprintf(nodes + strlen(nodes), sizeof(nodes) - strlen(nodes), " h%u", i);
        snprintf(links + strlen(links), sizeof(links) - strlen(links), " h%u-x", i);
    }
    by_topology_free(rig.daemon.topology);
    rig.daemon.topology = bench_topology(nodes, links);
    rig.daemon.links = by_alloc(rig.daemon.topology->link_count, sizeof(*rig.daemon.links));
    rig.daemon.jobs[0] = &rig.jobs[0];
    rig.daemon.job_count = 1;
    rig.jobs[0] = (struct by_job){.spec = {.job = 3, .share = {0, 1}}, .state = BY_JOB_RUNNING};
    for (unsigned present = 0; present < 2; present++) {
        json_t *live, *missing;

        rig.jobs[0].spec.job = present ? 3 : 4;
        live = by_live_state(&rig.daemon);
        missing = json_object_get(json_array_get(json_object_get(live, "jobs"), 0), "missing");
        assert_int_equal(json_array_size(missing), BY_LIVE_MISSING_MAX);
        assert_string_equal(json_string_value(json_array_get(missing, 1)), present ? "h2" : "h1");
        json_decref(live);
    }
    free(rig.daemon.links);
}

static void the_hour_begins_with_the_oldest_sample(void **state)
{
    (void)state;
    rig.samples = 3;
    rig.lines = 1;
    expect(by_live_history(&rig.daemon),
           "{\"started\":1700000000000,\"step_ms\":2000,\"samples\":[[998,72,900,4,6,[]],"
           "[999,71,null,3,5,[[3,500]]],[1000,70,900,2,4,[[3,500],[4,null]]]],\"events\":["
           "{\"number\":50,\"time\":60,\"grade\":\"good\",\"text\":\"news\"}]}");
    expect(by_live_history_link(&rig.daemon, 2),
           "{\"link\":2,\"step_ms\":16000,\"ab\":[102,null,100],\"ba\":[112,null,110]}");
    expect(by_live_history_link(&rig.daemon, 0),
           "{\"link\":0,\"step_ms\":16000,\"ab\":[2,null,0],\"ba\":[12,null,10]}");
    assert_null(by_live_history_link(&rig.daemon, LINKS));
    rig.no_links = true;
    assert_null(by_live_history_link(&rig.daemon, 0));
}

static void the_fabric_has_its_layout_and_capacities(void **state)
{
    (void)state;
    expect(
        by_live_fabric(&rig.daemon),
        "{\"version\":\"" BY_VERSION "\",\"topology\":\"bench\",\"unit\":\"GB/s\",\"started\":1700000000000,"
        "\"shape\":\"layers\",\"width\":320,\"height\":301,\"keeps_links\":true,\"nodes\":[[\"h0\",1,0,72,248],"
        "[\"h1\",1,0,132,248],[\"h2\",1,0,218,248],[\"x0\",0,1,93,98],[\"x1\",0,1,227,98]],\"links\":["
        "[0,3,10000000000,10000000000],[1,3,10000000000,10000000000],[3,4,10000000000,10000000000],"
        "[4,2,10000000000,null]]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_idle_fabric_has_its_links_and_switches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(jobs_have_their_ranks_plans_and_measurements, set_up, tear_down),
        cmocka_unit_test_setup_teardown(as_many_trees_and_lines_are_listed_as_the_limits_say, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(as_many_missing_hosts_are_listed_as_the_limit_says, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_hour_begins_with_the_oldest_sample, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_fabric_has_its_layout_and_capacities, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

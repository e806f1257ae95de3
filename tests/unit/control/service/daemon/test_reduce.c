/* The order in which the parts of the daemon handle each event, before and while it leads. All
 * parts are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "control/service/daemon/ahead.h"
#include "control/service/daemon/groups.h"
#include "control/service/daemon/history.h"
#include "control/service/daemon/http.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/latency.h"
#include "control/service/daemon/members.h"
#include "control/service/daemon/notice.h"
#include "control/service/daemon/recovery.h"
#include "control/service/daemon/reduce.h"
#include "control/service/daemon/renew.h"
#include "control/service/daemon/standby.h"
#include "control/service/daemon/work.h"
#include "offload/base/errors.h"

static struct by_daemon daemon_of_test;
static struct by_daemon_switch device;
static const bool used[1];
static bool suspects, ends;
static char told[600]; /* the parts that were called since the last check */

static void record(const char *part)
{
    size_t length = strlen(told);

    snprintf(told + length, sizeof(told) - length, "%s%s", length > 0 ? ", " : "", part);
}

/* A part that is called at each tick. */
#define TICK(function, part)                                                                                 \
    void function(struct by_daemon *daemon)                                                                  \
    {                                                                                                        \
        assert_ptr_equal(daemon, &daemon_of_test);                                                           \
        record(part);                                                                                        \
    }

TICK(by_http_tick, "http")
TICK(by_history_tick, "history")
TICK(by_renew_tick, "renew")
TICK(by_members_tick, "members")
TICK(by_groups_tick, "groups")
TICK(by_notice_tick, "notice")
TICK(by_jobs_step, "jobs")
TICK(by_ahead_tick, "ahead")
TICK(by_standby_tick, "standbys")
TICK(by_start_tick, "start")

void by_recovery_event(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    (void)event;
    record("recovery");
    daemon->ending |= ends;
}

bool by_recovery_suspects(struct by_daemon *daemon, uint32_t node)
{
    (void)daemon;
    return suspects && node == 5;
}

const bool *by_recovery_suspected(struct by_daemon *daemon, uint16_t job)
{
    (void)daemon;
    return suspects && job == 3 ? used : NULL;
}

void by_recovery_rank(struct by_daemon *daemon, enum by_recover_type type, uint16_t job, uint16_t rank,
                      uint16_t gen, uint64_t number)
{
    char text[60];

    (void)daemon;
    snprintf(text, sizeof(text), "rank event %d %u.%u %u %u", type - BY_RECOVER_RANK_CAME, job, rank, gen,
             (unsigned)number);
    record(text);
}

void by_standby_moved(struct by_daemon *daemon, uint16_t job, uint16_t gen)
{
    char text[60];

    (void)daemon;
    snprintf(text, sizeof(text), "rank of %u in %u", job, gen);
    record(text);
}

void by_switches_beat(struct by_daemon *daemon, struct by_beat *beat, bool suspected)
{
    (void)beat;
    record(suspected ? "beat of a suspect" : "beat");
    daemon->ending |= ends;
}

void by_switches_ask(struct by_daemon *daemon, const bool *links)
{
    (void)daemon;
    assert_ptr_equal(links, used);
    record("ask");
}

struct by_daemon_switch *by_switch_find(struct by_daemon *daemon, uint32_t node)
{
    (void)daemon;
    assert_int_equal(node, 5);
    return &device;
}

void by_notice_switch(struct by_daemon *daemon, const struct by_daemon_switch *one,
                      const struct by_beat *beat)
{
    (void)daemon;
    (void)beat;
    assert_ptr_equal(one, &device);
    record("counters of a switch");
}

void by_notice_host(struct by_daemon *daemon, uint32_t node, const uint8_t *data, uint32_t bytes)
{
    (void)daemon;
    (void)data;
    assert_true(node == 5 && bytes == 16);
    record("counters of a host");
}

void by_latency_take(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    (void)daemon;
    (void)event;
    record("latency");
}

static void done(struct by_daemon *daemon, struct by_task *task)
{
    (void)daemon;
    (void)task;
    record("done");
}

static void gives(struct by_daemon_event event, const char *parts)
{
    told[0] = 0;
    by_reduce(&daemon_of_test, &event);
    assert_string_equal(told, parts);
}

static int set_up(void **state)
{
    (void)state;
    memset(&daemon_of_test, 0, sizeof(daemon_of_test));
    suspects = ends = false;
    return 0;
}

static void a_tick_goes_through_all_parts_with_recovery_before_requests(void **state)
{
    (void)state;
    gives((struct by_daemon_event){.kind = BY_EVENT_TICK},
          "http, history, renew, recovery, members, groups, notice, jobs, ahead, standbys");
    gives((struct by_daemon_event){.kind = BY_EVENT_RECORDED}, "recovery");
    gives((struct by_daemon_event){.kind = BY_EVENT_PUSHED}, "recovery, jobs");
    for (unsigned i = 0; i < 7; i++) {
        static const enum by_daemon_event_kind kinds[] = {
            BY_EVENT_LED,       BY_EVENT_SWITCH_UP, BY_EVENT_SWITCH_DOWN,    BY_EVENT_SWITCH_GONE,
            BY_EVENT_LINK_DOWN, BY_EVENT_LINK_UP,   BY_EVENT_SWITCH_REBOOTED};

        gives((struct by_daemon_event){.kind = kinds[i]}, "recovery");
    }
}

static void before_it_leads_only_the_start_goes_on(void **state)
{
    struct by_beat beat = {.node = 5};

    (void)state;
    daemon_of_test.start = (struct by_start *)told; /* not read */
    gives((struct by_daemon_event){.kind = BY_EVENT_TICK}, "start");
    gives((struct by_daemon_event){.kind = BY_EVENT_BEAT, .beat = &beat}, "beat, start");
    gives((struct by_daemon_event){.kind = BY_EVENT_SWITCH_UP}, "");
    ends = true;
    gives((struct by_daemon_event){.kind = BY_EVENT_BEAT, .beat = &beat}, "beat");
    gives((struct by_daemon_event){.kind = BY_EVENT_TICK}, "");
}

static void at_its_end_nothing_is_decided_any_more(void **state)
{
    struct by_beat beat = {.node = 5};

    (void)state;
    ends = true;
    gives((struct by_daemon_event){.kind = BY_EVENT_BEAT, .beat = &beat}, "beat");
    gives((struct by_daemon_event){.kind = BY_EVENT_TICK}, "");
    gives((struct by_daemon_event){.kind = BY_EVENT_SWITCH_DOWN}, "");
}

/* Whether ranks wait matters for the silence of a switch only. */
static void a_silent_switch_is_a_suspect_while_ranks_wait(void **state)
{
    struct by_beat beat = {.node = 5};

    (void)state;
    suspects = true;
    gives((struct by_daemon_event){.kind = BY_EVENT_BEAT, .beat = &beat}, "beat, notice");
    beat.error = BY_ETIMEDOUT;
    gives((struct by_daemon_event){.kind = BY_EVENT_BEAT, .beat = &beat}, "beat of a suspect, notice");
    beat.node = 6;
    gives((struct by_daemon_event){.kind = BY_EVENT_BEAT, .beat = &beat}, "beat, notice");
}

static void other_events_go_to_their_part_at_any_time(void **state)
{
    struct by_task task = {.done = done};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        gives((struct by_daemon_event){.kind = BY_EVENT_WORKED, .task = &task}, "done");
        gives((struct by_daemon_event){.kind = BY_EVENT_ANSWERED, .node = 5}, "counters of a switch");
        gives((struct by_daemon_event){.kind = BY_EVENT_COUNTED, .node = 5, .bytes = 16},
              "counters of a host");
        gives((struct by_daemon_event){.kind = BY_EVENT_MEASURED}, "latency");
        gives((struct by_daemon_event){.kind = BY_EVENT_RANK,
                                       .rank_event = BY_RECOVER_RANK_SUSPECTS,
                                       .job = 3,
                                       .rank = 1,
                                       .gen = 7,
                                       .number = 8},
              i == 0 ? "rank event 4 3.1 7 8" : "rank event 4 3.1 7 8, ask");
        suspects = true;
        gives(
            (struct by_daemon_event){
                .kind = BY_EVENT_RANK, .rank_event = BY_RECOVER_RANK_ALIVE, .job = 3, .rank = 1},
            "rank of 3 in 0, rank event 3 3.1 0 0");
        daemon_of_test.start = (struct by_start *)told;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_tick_goes_through_all_parts_with_recovery_before_requests, set_up),
        cmocka_unit_test_setup(before_it_leads_only_the_start_goes_on, set_up),
        cmocka_unit_test_setup(at_its_end_nothing_is_decided_any_more, set_up),
        cmocka_unit_test_setup(a_silent_switch_is_a_suspect_while_ranks_wait, set_up),
        cmocka_unit_test_setup(other_events_go_to_their_part_at_any_time, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The watch of one switch in virtual time: when it asks, with which time limit, what it reports,
 * and what becomes of its session. Sessions, the clock and poll() are the test's; the watch's
 * thread runs in the test's. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include <cmocka.h>

#include "control/fabric/build.h"
#include "control/service/daemon/watch.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/record.h"

#define BEAT_MS 100u
#define NEVER   UINT64_MAX
/* Clocks begin here, so that nothing has happened within a second. */
#define BEGIN_US UINT64_C(10000000)

static struct {
    struct by_watch *watch;
    void *(*run)(void *);
    void *argument;
    uint64_t now_us;
    bool open, stays_late; /* a session; its last call timed out */
    uint32_t limit_ms;     /* of its calls */
    int stop_fd;
    /* the switch */
    uint64_t answer_us; /* how long a Hello takes */
    int open_error, hello_error, counters_error, waiting_error;
    bool refused;
    uint64_t leader;
    const char *name;
    unsigned lost; /* so many Hellos lose the session */
    /* what happens, and when */
    uint64_t end_us, ask_us, notice_us, close_us;
    unsigned notices, beats;
    unsigned counted;             /* requests for counters */
    void (*after)(unsigned beat); /* changes what happens after this heartbeat, from 1 */
    bool joined, deaf;            /* the watch has ended; the loop acknowledges no beat */
    bool limits, sessions;        /* they are recorded */
} rig;

/* Begins a line with the time since the begin (ms). */
static void stamp(void)
{
    record("%llu ", (unsigned long long)((rig.now_us - BEGIN_US) / 1000));
}

/* ---- the clock, and what it waits for ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_eventfd_read(int fd, eventfd_t *value);
int __wrap_eventfd_write(int fd, eventfd_t value);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    (void)clock;
    *time = (struct timespec){.tv_sec = (time_t)(rig.now_us / 1000000),
                              .tv_nsec = (long)(rig.now_us % 1000000) * 1000};
    return 0;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
    (void)attributes;
    *thread = pthread_self();
    rig.run = run;
    rig.argument = argument;
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    (void)thread;
    (void)result;
    rig.joined = true;
    return 0;
}

/* The end of the watch, the request to query now, and the session, in this order. */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    uint64_t until = rig.now_us + (uint64_t)timeout_ms * 1000, first = until;
    uint64_t at[3] = {rig.end_us, rig.ask_us, rig.notice_us < rig.close_us ? rig.notice_us : rig.close_us};
    int ready = 0;

    assert_int_equal(count, 3);
    assert_true(timeout_ms >= 0);
    if ((fds[2].events & POLLIN) == 0)
        at[2] = rig.close_us;
    for (unsigned i = 0; i < 3; i++)
        if (fds[i].fd >= 0 && at[i] < first)
            first = at[i];
    if (first > rig.now_us)
        rig.now_us = first;
    for (unsigned i = 0; i < 3; i++) {
        fds[i].revents = 0;
        if (fds[i].fd >= 0 && at[i] <= rig.now_us)
            fds[i].revents = POLLIN;
        if (i == 2 && fds[i].fd >= 0 && rig.close_us <= rig.now_us)
            fds[i].revents = POLLRDHUP | (fds[2].events & POLLIN);
        ready += fds[i].revents != 0;
    }
    return ready;
}

int __wrap_eventfd_read(int fd, eventfd_t *value)
{
    (void)fd;
    *value = 1;
    assert_true(rig.ask_us <= rig.now_us);
    rig.ask_us = NEVER;
    return 0;
}

int __wrap_eventfd_write(int fd, eventfd_t value)
{
    (void)fd;
    (void)value;
    rig.ask_us = rig.now_us;
    return 0;
}

/* ---- the session ---- */

static int result(int error, const char *text, struct by_problem *problem)
{
    return error == 0 ? 0 : by_problem_say(problem, error, "%s", text);
}

int by_session_open(const char *address, const struct by_session_options *options,
                    struct by_session **session, struct by_problem *problem)
{
    assert_string_equal(address, "unix:/run/x0");
    assert_true(options->notify && options->timeout_ms == 3 * BEAT_MS && !rig.open);
    assert_string_equal(options->keys, "keys");
    assert_string_equal(options->psk, "psk");
    if (rig.sessions) {
        stamp();
        record("open %llu\n", (unsigned long long)options->election_id);
    }
    if (rig.open_error != 0)
        return result(rig.open_error, "nothing listens there", problem);
    rig.open = true;
    rig.close_us = NEVER;
    *session = (struct by_session *)&rig;
    return 0;
}

void by_session_close(struct by_session *session)
{
    if (session == NULL)
        return;
    assert_true(rig.open);
    rig.open = false;
    if (rig.sessions) {
        stamp();
        record("close\n");
    }
}

void by_session_limit(struct by_session *session, uint32_t timeout_ms, int stop_fd)
{
    assert_ptr_equal(session, (struct by_session *)&rig);
    rig.limit_ms = timeout_ms;
    rig.stop_fd = stop_fd;
    if (rig.limits) {
        stamp();
        record("limit %u%s\n", timeout_ms, stop_fd == 0 ? " urgent" : "");
    }
}

int by_session_fd(const struct by_session *session)
{
    assert_ptr_equal(session, (struct by_session *)&rig);
    return 1000;
}

bool by_session_refused(const struct by_session *session)
{
    assert_ptr_equal(session, (struct by_session *)&rig);
    return rig.refused;
}

bool by_session_is_late(const struct by_session *session)
{
    assert_ptr_equal(session, (struct by_session *)&rig);
    return rig.stays_late;
}

uint64_t by_session_leader(const struct by_session *session)
{
    (void)session;
    return rig.leader;
}

int by_session_hello(struct by_session *session, by_HelloReply *reply, struct by_problem *problem)
{
    uint64_t limit_us = (uint64_t)rig.limit_ms * 1000;
    uint64_t takes_us = rig.answer_us < limit_us ? rig.answer_us : limit_us;

    (void)session;
    rig.stays_late = false;
    if (rig.stop_fd != 0 && rig.ask_us <= rig.now_us + takes_us) {
        rig.now_us = rig.ask_us > rig.now_us ? rig.ask_us : rig.now_us;
        rig.stays_late = true;
        return BY_EABORTED;
    }
    rig.now_us += takes_us;
    if (rig.answer_us > limit_us) {
        rig.stays_late = true;
        return result(BY_ETIMEDOUT, "it is late", problem);
    }
    if (rig.lost > 0) {
        rig.lost--;
        return result(BY_EIO, "the connection has ended", problem);
    }
    reply->boot_nonce = 7;
    snprintf(reply->name, sizeof(reply->name), "%s", rig.name);
    return result(rig.hello_error, "refused", problem);
}

int by_session_counters(struct by_session *session, by_CountersReply *reply, struct by_problem *problem)
{
    (void)session;
    reply->ports_count = 2;
    rig.now_us += 1000;
    rig.counted++;
    return result(rig.counters_error, "no counters", problem);
}

int by_session_waiting(struct by_session *session, by_WaitingReply *reply, struct by_problem *problem)
{
    (void)session;
    reply->entries_count = 3;
    return result(rig.waiting_error, "no entries", problem);
}

int by_session_notice(struct by_session *session, by_CountersReply *reply, struct by_problem *problem)
{
    assert_ptr_equal(session, (struct by_session *)&rig);
    if (rig.close_us <= rig.now_us)
        return result(BY_EIO, "the connection has ended", problem);
    if (rig.notice_us > rig.now_us)
        return BY_EAGAIN;
    if (--rig.notices == 0)
        rig.notice_us = NEVER;
    reply->ports_count = 1;
    return 0;
}

/* ---- the loop ---- */

static void tell_beat(const struct by_beat *beat)
{
    record("%s", beat->error == 0 ? "answer" : by_error_name(beat->error));
    if (beat->patience_ms != UINT32_MAX)
        record(" patience %u", beat->patience_ms);
    if (beat->silent_ms != 0)
        record(" silent %llu", (unsigned long long)beat->silent_ms);
    record("%s%s%s%s", beat->gone ? " gone" : "", beat->deposed ? " deposed" : "",
           beat->hasty ? " hasty" : "", beat->has_waiting ? " with entries" : "");
    if (beat->error != 0)
        record(": %s", beat->problem.text);
    record("\n");
    if (beat->error == 0)
        assert_true(beat->hello.boot_nonce == 7 && beat->counters.ports_count == 2 &&
                    beat->waiting.entries_count == (beat->has_waiting ? 3 : 0) &&
                    beat->answered_ms - beat->asked_ms == 1 && beat->answered_ms == rig.now_us / 1000);
}

void by_event_put(struct by_event_queue *queue, const struct by_daemon_event *event)
{
    struct by_beat *beat = event->beat;

    assert_null(queue);
    assert_int_equal(event->kind, BY_EVENT_BEAT);
    assert_int_equal(beat->node, 5);
    stamp();
    if (beat->noticed) {
        assert_int_equal(beat->counters.ports_count, 1);
        record("notice\n");
    } else {
        tell_beat(beat);
        assert_true(++rig.beats < 1000); /* it pauses */
        if (rig.after != NULL)
            rig.after(rig.beats);
    }
    free(beat);
    if (!rig.deaf)
        by_watch_taken(rig.watch);
}

/* ---- runs ---- */

static void open_rig(void)
{
    static const struct by_watch_options options = {.node = 5,
                                                    .name = "x0",
                                                    .address = "unix:/run/x0",
                                                    .keys = "keys",
                                                    .psk = "psk",
                                                    .heartbeat_ms = BEAT_MS};

    memset(&rig, 0, sizeof(rig));
    record_clear();
    rig.now_us = BEGIN_US;
    rig.name = "x0";
    rig.end_us = rig.ask_us = rig.notice_us = rig.close_us = NEVER;
    rig.watch = by_watch_start(&options, NULL);
}

static uint64_t at(uint64_t ms)
{
    return BEGIN_US + ms * 1000;
}

/* Runs the watch until this time (ms), and ends it. Requires these lines, unless they are NULL. */
static void run(uint64_t until_ms, const char *told)
{
    rig.end_us = at(until_ms);
    rig.run(rig.argument);
    assert_false(rig.open);
    assert_true(rig.now_us >= rig.end_us);
    by_watch_stop(rig.watch);
    assert_true(rig.joined);
    if (told != NULL)
        assert_string_equal(recorded, told);
}

/* ---- tests ---- */

static void a_switch_is_asked_at_each_heartbeat_and_for_entries_each_second(void **state)
{
    (void)state;
    open_rig();
    rig.sessions = rig.limits = true;
    run(250, "0 open 0\n0 limit 300\n1 answer with entries\n100 limit 300\n101 answer\n200 limit 300\n201 "
             "answer\n250 close\n");
    open_rig();
    rig.answer_us = 30000; /* the pace stays */
    run(1250,
        "31 answer with entries\n131 answer\n231 answer\n331 answer\n431 answer\n531 answer\n631 answer\n"
        "731 answer\n831 answer\n931 answer\n1031 answer with entries\n1131 answer\n1231 answer\n");
    open_rig();
    rig.answer_us = 99000;
    run(250, "100 answer with entries\n200 answer\n300 answer\n");
    open_rig();
    rig.answer_us = 249000; /* at once, if the time is over */
    run(700, "250 answer with entries\n500 answer\n750 answer\n");
}

static void an_answer_of_another_switch_is_none(void **state)
{
    (void)state;
    open_rig();
    rig.sessions = true;
    rig.name = "x1";
    run(50,
        "0 open 0\n0 close\n0 EINVAL: unix:/run/x0 answers as 'x1', and not as 'x0': check the addresses\n");
    open_rig();
    rig.counters_error = BY_EFORMAT;
    run(50, "1 EFORMAT silent 1: no counters\n");
    open_rig();
    rig.waiting_error = BY_EFORMAT;
    run(50, "1 EFORMAT silent 1: no entries\n");
}

/* An answer that is late does not end the session, until the switch has been silent for long. */
static void a_silent_switch_keeps_its_session_for_three_heartbeats(void **state)
{
    (void)state;
    open_rig();
    rig.sessions = true;
    rig.answer_us = NEVER / 2;
    run(550,
        "0 open 0\n300 close\n300 ETIMEDOUT silent 300: it is late\n300 open 0\n600 close\n600 ETIMEDOUT "
        "silent 600: it is late\n");
}

static void ranks_that_wait_cause_a_heartbeat_at_once(void **state)
{
    (void)state;
    open_rig();
    rig.limits = true;
    rig.ask_us = at(150);
    run(350, "0 limit 300\n1 answer with entries\n100 limit 300\n101 answer\n150 limit 12 urgent\n151 answer "
             "patience 12\n251 limit 300\n252 answer\n");
    open_rig(); /* also in the middle of one */
    rig.limits = true;
    rig.answer_us = 60000;
    rig.ask_us = at(130);
    run(230, "0 limit 300\n61 answer with entries\n100 limit 300\n130 limit 244 urgent\n191 answer patience "
             "244\n200 limit 300\n261 answer\n");
    open_rig(); /* not within 5 ms after the last one began */
    rig.limits = true;
    rig.ask_us = at(102);
    run(150, "0 limit 300\n1 answer with entries\n100 limit 300\n101 answer\n105 limit 12 urgent\n106 answer "
             "patience 12\n");
    open_rig(); /* in whole milliseconds */
    rig.ask_us = at(101) + 999;
    run(150, "1 answer with entries\n101 answer\n106 answer patience 12\n");
    open_rig(); /* nor does it delay a later one */
    rig.limits = true;
    rig.ask_us = at(105);
    run(150, "0 limit 300\n1 answer with entries\n100 limit 300\n101 answer\n105 limit 12 urgent\n106 answer "
             "patience 12\n");
}

/* Four times the longest answer of late, at least 12 ms and at most three heartbeats. */
static void the_patience_follows_the_answers_of_the_switch(void **state)
{
    static const struct {
        uint64_t answer_us;
        unsigned limit_ms;
    } cases[] = {{0, 12}, {2999, 12}, {3000, 16}, {19000, 80}, {73000, 296}, {74000, 300}, {99000, 300}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[60];

        open_rig();
        rig.answer_us = cases[i].answer_us;
        rig.ask_us = at(150);
        rig.limits = true;
        rig.answer_us = cases[i].answer_us;
        run(160, NULL);
        snprintf(text, sizeof(text), " limit %u urgent\n", cases[i].limit_ms);
        if (strstr(recorded, text) == NULL)
            fail_msg("case %zu: %s", i, recorded);
    }
}

static void be_fast_and_ask(unsigned beat)
{
    rig.answer_us = beat == 1 ? 39000 : 0;
    rig.ask_us = beat == 1 ? NEVER : at(100 + 50 * beat);
}

static void a_slow_answer_is_forgotten_by_an_eighth_each_time(void **state)
{
    (void)state;
    open_rig();
    rig.after = be_fast_and_ask;
    run(440, "1 answer with entries\n140 answer\n201 answer patience 160\n251 answer patience 140\n"
             "301 answer patience 120\n351 answer patience 104\n401 answer patience 92\n");
}

static void be_silent_and_ask(unsigned beat)
{
    rig.answer_us = beat < 7 ? NEVER / 2 : 0;
    rig.ask_us = rig.now_us;
}

static void each_timeout_while_ranks_wait_doubles_the_patience_until_an_answer(void **state)
{
    (void)state;
    open_rig();
    rig.after = be_silent_and_ask;
    rig.sessions = true;
    run(687, "0 open 0\n1 answer with entries\n17 ETIMEDOUT patience 12 silent 16: it is late\n"
             "41 ETIMEDOUT patience 24 silent 40: it is late\n"
             "89 ETIMEDOUT patience 48 silent 88: it is late\n"
             "185 ETIMEDOUT patience 96 silent 184: it is late\n"
             "377 close\n377 ETIMEDOUT patience 192 silent 376: it is late\n"
             "377 open 0\n677 close\n677 ETIMEDOUT patience 300 silent 676: it is late\n677 open 0\n"
             "678 answer patience 300\n683 answer patience 12\n687 close\n");
}

static void be_late_once(unsigned beat)
{
    rig.answer_us = beat == 1 ? NEVER / 2 : 0;
    rig.ask_us = beat == 2 ? rig.now_us : NEVER;
}

static void a_timeout_without_ranks_that_wait_does_not_change_the_patience(void **state)
{
    (void)state;
    open_rig();
    rig.after = be_late_once;
    run(450, "1 answer with entries\n400 ETIMEDOUT silent 399: it is late\n401 answer patience 12\n");
}

static void lose(unsigned beat)
{
    rig.lost = beat == 1 ? 8 : rig.lost;
}

/* A process that ends may close a session before its socket. */
static void a_lost_session_is_opened_again_soon_but_not_for_ever(void **state)
{
    (void)state;
    open_rig();
    rig.after = lose;
    run(550, "1 answer with entries\n100 EIO silent 99: the connection has ended\n"
             "103 EIO silent 102: the connection has ended\n106 EIO silent 105: the connection has ended\n"
             "109 EIO silent 108: the connection has ended\n112 EIO silent 111: the connection has ended\n"
             "212 EIO silent 211: the connection has ended\n312 EIO silent 311: the connection has ended\n"
             "412 EIO silent 411: the connection has ended\n513 answer\n");
    open_rig(); /* a switch that has never answered is not there yet */
    rig.lost = 2;
    run(250, "0 EIO: the connection has ended\n100 EIO silent 100: the connection has ended\n"
             "201 answer with entries\n");
}

static void end_process(unsigned beat)
{
    rig.open_error = beat == 1 ? BY_EAGAIN : rig.open_error;
    rig.lost = beat == 1;
}

static void a_process_that_has_ended_is_noticed_with_its_session(void **state)
{
    (void)state;
    open_rig();
    rig.sessions = true;
    rig.after = end_process;
    run(130,
        "0 open 0\n1 answer with entries\n100 close\n100 open 0\n100 EIO silent 99 gone: nothing listens "
        "there\n125 open 0\n125 EAGAIN silent 124 gone: nothing listens there\n");
}

/* It may restart at once. */
static void a_switch_whose_process_is_gone_is_asked_more_often_for_five_seconds(void **state)
{
    (void)state;
    open_rig();
    rig.open_error = BY_EAGAIN;
    run(160,
        "0 EAGAIN gone: nothing listens there\n25 EAGAIN silent 25 gone: nothing listens there\n"
        "50 EAGAIN silent 50 gone: nothing listens there\n75 EAGAIN silent 75 gone: nothing listens there\n"
        "100 EAGAIN silent 100 gone: nothing listens there\n125 EAGAIN silent 125 gone: nothing listens "
        "there\n150 EAGAIN silent 150 gone: nothing listens there\n");
    open_rig();
    rig.open_error = BY_EAGAIN;
    run(5250, NULL);
    assert_int_equal(rig.beats, 200 + 3);
    assert_non_null(strstr(recorded, "\n4975 EAGAIN"));
    assert_non_null(strstr(recorded, "\n5000 EAGAIN"));
    assert_non_null(strstr(recorded, "\n5100 EAGAIN"));
    open_rig();
    rig.open_error = BY_EIO; /* whether its process has ended is unknown */
    run(250, "0 EIO: nothing listens there\n100 EIO silent 100: nothing listens there\n"
             "200 EIO silent 200: nothing listens there\n");
}

static void refuse(unsigned beat)
{
    rig.hello_error = beat < 4 ? BY_EAGAIN : BY_EPERM;
    rig.refused = true;
}

/* Too frequent requests are refused by a switch that is alive, and the session stays. */
static void a_refusal_of_frequent_requests_is_a_sign_of_life(void **state)
{
    (void)state;
    open_rig();
    rig.sessions = true;
    rig.after = refuse;
    run(650, "0 open 0\n1 answer with entries\n100 EAGAIN hasty: refused\n200 EAGAIN hasty: refused\n"
             "300 EAGAIN hasty: refused\n400 close\n400 EPERM silent 100: refused\n500 open 0\n500 close\n"
             "500 EPERM silent 200: refused\n600 open 0\n600 close\n600 EPERM silent 300: refused\n");
}

static void depose(unsigned beat)
{
    rig.hello_error = beat < 4 ? BY_EPERM : 0;
    rig.refused = true;
    rig.leader = 75 + beat; /* 76, 77, 78 */
}

static void a_later_controller_deposes_this_one(void **state)
{
    (void)state;
    open_rig();
    by_watch_lead(rig.watch, 77);
    rig.after = depose;
    run(450, "1 answer with entries\n100 EPERM silent 99: refused\n200 EPERM silent 199: refused\n"
             "300 EPERM silent 299 deposed: refused\n401 answer\n");
}

static void lead(unsigned beat)
{
    if (beat == 2)
        by_watch_lead(rig.watch, 77);
    rig.open_error = beat == 2 ? BY_EIO : 0;
}

static void the_election_id_goes_with_a_session_of_its_own(void **state)
{
    (void)state;
    open_rig();
    rig.sessions = true;
    rig.after = lead;
    run(220,
        "0 open 0\n1 answer with entries\n101 answer\n200 close\n200 open 77\n200 EIO silent 99: nothing "
        "listens there\n203 open 77\n204 answer\n220 close\n");
}

static void notices_are_passed_on_between_heartbeats(void **state)
{
    (void)state;
    open_rig();
    rig.notice_us = at(150);
    rig.notices = 3;
    run(250, "1 answer with entries\n101 answer\n150 notice\n150 notice\n150 notice\n201 answer\n");
}

static void be_deaf(unsigned beat)
{
    rig.deaf = beat == 1;
}

/* It would only queue. */
static void a_loop_that_is_behind_gets_no_more_beats(void **state)
{
    (void)state;
    open_rig();
    rig.deaf = true;
    run(450, "1 answer with entries\n");
    open_rig();
    rig.sessions = true;
    rig.after = be_deaf; /* a notice that cannot be posted causes another query */
    rig.notice_us = at(50);
    rig.notices = 1;
    run(80, "0 open 0\n1 answer with entries\n80 close\n");
    assert_int_equal(rig.beats, 1);
    assert_int_equal(rig.counted, 2);
}

static void lose_at_the_close(unsigned beat)
{
    rig.close_us = beat == 1 ? at(40) : NEVER;
    rig.lost = beat == 1;
}

static void a_session_that_the_switch_closes_is_a_reason_to_ask(void **state)
{
    (void)state;
    open_rig();
    rig.sessions = true;
    rig.after = lose_at_the_close;
    run(90, "0 open 0\n1 answer with entries\n40 close\n40 open 0\n40 EIO silent 39: the connection has "
            "ended\n44 answer\n90 close\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_switch_is_asked_at_each_heartbeat_and_for_entries_each_second),
        cmocka_unit_test(an_answer_of_another_switch_is_none),
        cmocka_unit_test(a_silent_switch_keeps_its_session_for_three_heartbeats),
        cmocka_unit_test(ranks_that_wait_cause_a_heartbeat_at_once),
        cmocka_unit_test(the_patience_follows_the_answers_of_the_switch),
        cmocka_unit_test(a_slow_answer_is_forgotten_by_an_eighth_each_time),
        cmocka_unit_test(each_timeout_while_ranks_wait_doubles_the_patience_until_an_answer),
        cmocka_unit_test(a_timeout_without_ranks_that_wait_does_not_change_the_patience),
        cmocka_unit_test(a_lost_session_is_opened_again_soon_but_not_for_ever),
        cmocka_unit_test(a_process_that_has_ended_is_noticed_with_its_session),
        cmocka_unit_test(a_switch_whose_process_is_gone_is_asked_more_often_for_five_seconds),
        cmocka_unit_test(a_refusal_of_frequent_requests_is_a_sign_of_life),
        cmocka_unit_test(a_later_controller_deposes_this_one),
        cmocka_unit_test(notices_are_passed_on_between_heartbeats),
        cmocka_unit_test(a_loop_that_is_behind_gets_no_more_beats),
        cmocka_unit_test(a_session_that_the_switch_closes_is_a_reason_to_ask),
        cmocka_unit_test(the_election_id_goes_with_a_session_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The thread that watches one switch. See watch.h. */
#include "control/service/daemon/watch.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/service/daemon/thread.h"
#include "offload/base/errors.h"

/* Interval of requests for waiting entries (milliseconds), for which the switch scans all its
 * entries. */
#define WAITING_MS 1000u
/* Longest timeout of a call (heartbeats), the same as that of a switch. */
#define CALL_BEATS 3u
/*
 * The timeout of calls while ranks wait follows the switch: a multiple (count) of its longest
 * answer of late, which is forgotten by a part in each heartbeat, but at least a minimum (ms). It
 * doubles with each timeout until the next answer. So a switch on a busy machine gets more time.
 */
#define PATIENCE_ANSWERS 4u
#define PATIENCE_FORGETS 8u
#define PATIENCE_MIN_MS  12u
/* Minimum time between the beginnings of two heartbeats (us) if ranks cause the second. */
#define NOW_US 5000u
/* A switch whose process has ended may restart at once. For this time (milliseconds) it is queried
 * this many times as often. */
#define RETURN_MS   5000u
#define RETURN_PART 4u
/* A process that ends may close a session before its socket. After a lost session the switch is
 * queried again after this time (ms), this many times at most (count). */
#define LOST_MS    3u
#define LOST_TRIES 4u

struct by_watch {
    struct by_watch_options options;
    struct by_event_queue *events;
    pthread_t thread;
    int end_fd;       /* readable when the watch is to end */
    int now_fd;       /* readable when the next heartbeat is to begin at once */
    atomic_bool told; /* a beat is not acknowledged yet */
    _Atomic uint64_t election_id;
    struct by_session *session;
    uint64_t session_election;
    bool heard; /* it has answered at least once */
    uint64_t heard_ms, waiting_ms;
    uint32_t answer_us; /* the longest answer of late */
    uint32_t grace_ms;  /* since a timeout, the least patience */
    uint32_t lost;      /* sessions lost since the last answer (count) */
};

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static uint64_t now_ms(void)
{
    return now_us() / 1000;
}

static uint32_t patience_ms(const struct by_watch *watch)
{
    uint32_t most = CALL_BEATS * watch->options.heartbeat_ms;
    uint32_t own = watch->answer_us / 1000 * PATIENCE_ANSWERS;

    own = own > PATIENCE_MIN_MS ? own : PATIENCE_MIN_MS;
    own = own > watch->grace_ms ? own : watch->grace_ms;
    return watch->heard && own < most ? own : most;
}

/* Learns from a heartbeat, or from a timeout. */
static void learn(struct by_watch *watch, const struct by_beat *beat, uint64_t took_us)
{
    uint32_t most_us = CALL_BEATS * watch->options.heartbeat_ms * 1000 / PATIENCE_ANSWERS;

    if (beat->error == 0) {
        watch->grace_ms = watch->lost = 0;
        watch->answer_us -= watch->answer_us / PATIENCE_FORGETS;
        if (took_us > watch->answer_us)
            watch->answer_us = took_us < most_us ? (uint32_t)took_us : most_us;
    } else if (beat->error == BY_ETIMEDOUT && beat->patience_ms != UINT32_MAX) {
        watch->grace_ms = 2 * patience_ms(watch);
    }
}

/* Opens a session with the present election id, unless it is open. */
static int open_session(struct by_watch *watch, struct by_problem *problem)
{
    struct by_session_options options = {.timeout_ms = CALL_BEATS * watch->options.heartbeat_ms,
                                         .election_id = watch->election_id,
                                         .notify = true,
                                         .keys = watch->options.keys,
                                         .psk = watch->options.psk};

    if (watch->session != NULL && watch->session_election == options.election_id)
        return 0;
    by_session_close(watch->session);
    watch->session = NULL;
    watch->session_election = options.election_id;
    return by_session_open(watch->options.address, &options, &watch->session, problem);
}

/* Queries the switch. `urgent`: ranks wait; otherwise BY_EABORTED as soon as they do. */
static int ask(struct by_watch *watch, struct by_beat *beat, bool urgent)
{
    uint32_t most_ms = CALL_BEATS * watch->options.heartbeat_ms;
    int error = open_session(watch, &beat->problem);

    beat->gone = error == BY_EAGAIN;
    if (error == 0)
        by_session_limit(watch->session, urgent ? patience_ms(watch) : most_ms, urgent ? 0 : watch->now_fd);
    if (error == 0)
        error = by_session_hello(watch->session, &beat->hello, &beat->problem);
    beat->deposed =
        error != 0 && watch->session != NULL && by_session_leader(watch->session) > watch->session_election;
    if (error == 0 && strcmp(beat->hello.name, watch->options.name) != 0)
        error = by_problem_say(&beat->problem, BY_EINVAL,
                               "%s answers as '%s', and not as '%s': check the addresses",
                               watch->options.address, beat->hello.name, watch->options.name);
    beat->asked_ms = now_ms();
    if (error == 0)
        error = by_session_counters(watch->session, &beat->counters, &beat->problem);
    beat->answered_ms = now_ms();
    if (error == 0 && now_ms() - watch->waiting_ms >= WAITING_MS) {
        watch->waiting_ms = now_ms();
        error = by_session_waiting(watch->session, &beat->waiting, &beat->problem);
        beat->has_waiting = error == 0;
    }
    return error;
}

/* Closes a session that failed. A switch that is alive may have closed it and accepts a new one; if
 * no program listens any more, its process has ended. A refusal of too frequent requests leaves the
 * session usable, and so does an answer that is late. */
static void leave(struct by_watch *watch, struct by_beat *beat)
{
    struct by_problem problem = {0};
    bool refused = watch->session != NULL && by_session_refused(watch->session);
    bool lost = watch->session != NULL && !refused && beat->error == BY_EIO;

    beat->hasty = refused && beat->error == BY_EAGAIN;
    if (beat->hasty || (watch->session != NULL && by_session_is_late(watch->session) &&
                        now_ms() - watch->heard_ms < CALL_BEATS * watch->options.heartbeat_ms))
        return;
    by_session_close(watch->session);
    watch->session = NULL;
    if (!lost || open_session(watch, &problem) != BY_EAGAIN)
        return;
    beat->problem = problem;
    beat->gone = true;
}

/* Returns the time until the next heartbeat (ms). */
static uint32_t pause_ms(struct by_watch *watch, const struct by_beat *beat)
{
    if (beat->error == BY_EIO && !beat->gone && watch->heard && watch->lost < LOST_TRIES) {
        watch->lost++;
        return LOST_MS;
    }
    return beat->gone && beat->silent_ms < RETURN_MS ? watch->options.heartbeat_ms / RETURN_PART
                                                     : watch->options.heartbeat_ms;
}

/* Passes a beat to the loop. Returns false if the loop is behind: further beats would only fill its
 * queue. */
static bool post(struct by_watch *watch, struct by_beat *beat)
{
    if (atomic_exchange(&watch->told, true)) {
        free(beat);
        return false;
    }
    by_event_put(watch->events, &(struct by_daemon_event){.kind = BY_EVENT_BEAT, .beat = beat});
    return true;
}

/* Passes on the notices that have arrived. Returns false if the switch is to be queried now:
 * because the session has failed, or because the loop could not take a notice. */
static bool take_notices(struct by_watch *watch)
{
    struct by_beat *beat;
    int error = 0;

    while (watch->session != NULL && error == 0) {
        beat = by_alloc(1, sizeof(*beat));
        beat->node = watch->options.node;
        beat->noticed = true;
        error = by_session_notice(watch->session, &beat->counters, &beat->problem);
        if (error == 0 && !post(watch, beat))
            return false;
        if (error != 0)
            free(beat);
    }
    return error == 0 || error == BY_EAGAIN;
}

/* Waits until `until`, until the switch closes the session, or until ranks wait: then *urgent is
 * true. Notices are passed on meanwhile. Returns false when the watch must end. */
static bool rest(struct by_watch *watch, uint64_t begun_us, uint64_t until, bool *urgent)
{
    struct pollfd fds[3] = {
        {.fd = watch->end_fd, .events = POLLIN},
        {.fd = watch->now_fd, .events = POLLIN},
        {.fd = watch->session != NULL ? by_session_fd(watch->session) : -1, .events = POLLIN | POLLRDHUP}};
    uint64_t now, since_us;
    eventfd_t count;
    bool quiet;
    int ready;

    do { /* also without time left, to notice the end of the watch */
        quiet = take_notices(watch);
        now = now_ms();
        ready = poll(fds, 3, quiet && now < until ? (int)(until - now) : 0);
    } while (ready < 0 ||
             (ready > 0 && quiet && fds[2].revents == POLLIN && fds[0].revents == 0 && fds[1].revents == 0));
    *urgent = fds[0].revents == 0 && fds[1].revents != 0;
    fds[2].events = POLLRDHUP;
    if (*urgent) {
        eventfd_read(watch->now_fd, &count);
        fds[1].fd = -1;
        since_us = now_us() - begun_us;
        poll(fds, 3, since_us < NOW_US ? (int)((NOW_US - since_us + 999) / 1000) : 0);
    }
    return fds[0].revents == 0;
}

static void *watch_run(void *argument)
{
    struct by_watch *watch = argument;
    uint64_t next = now_ms(), now, pause, begun_us;
    bool urgent = false;
    eventfd_t count;

    watch->heard_ms = next;
    do {
        struct by_beat *beat = by_alloc(1, sizeof(*beat));

        begun_us = now_us();
        beat->node = watch->options.node;
        beat->error = ask(watch, beat, urgent);
        if (beat->error == BY_EABORTED && !urgent) {
            eventfd_read(watch->now_fd, &count);
            urgent = true;
            begun_us = now_us();
            beat->error = ask(watch, beat, urgent);
        }
        beat->patience_ms = urgent ? patience_ms(watch) : UINT32_MAX;
        learn(watch, beat, now_us() - begun_us);
        if (beat->error != 0)
            leave(watch, beat);
        watch->heard |= beat->error == 0;
        if (watch->heard && (beat->error == 0 || beat->hasty))
            watch->heard_ms = now_ms();
        now = now_ms();
        beat->silent_ms = now - watch->heard_ms;
        pause = pause_ms(watch, beat);
        post(watch, beat);
        next = pause == LOST_MS ? now + pause : next + pause;
        if (next < now || next > now + pause)
            next = now + (next < now ? 0 : pause);
    } while (rest(watch, begun_us, next, &urgent));
    by_session_close(watch->session);
    return NULL;
}

struct by_watch *by_watch_start(const struct by_watch_options *options, struct by_event_queue *events)
{
    struct by_watch *watch = by_alloc(1, sizeof(*watch));

    watch->options = *options;
    watch->events = events;
    watch->end_fd = eventfd(0, EFD_CLOEXEC);
    watch->now_fd = eventfd(0, EFD_CLOEXEC);
    if (watch->end_fd < 0 || watch->now_fd < 0) {
        perror("banyand: eventfd");
        exit(3);
    }
    by_thread_start(&watch->thread, watch_run, watch);
    return watch;
}

void by_watch_lead(struct by_watch *watch, uint64_t election_id)
{
    watch->election_id = election_id;
}

void by_watch_now(struct by_watch *watch)
{
    eventfd_write(watch->now_fd, 1);
}

void by_watch_taken(struct by_watch *watch)
{
    watch->told = false;
}

void by_watch_stop(struct by_watch *watch)
{
    if (watch == NULL)
        return;
    eventfd_write(watch->end_fd, 1);
    pthread_join(watch->thread, NULL);
    close(watch->end_fd);
    close(watch->now_fd);
    free(watch);
}

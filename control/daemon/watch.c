/* A switch's own thread. See watch.h. */
#include "control/daemon/watch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "control/daemon/thread.h"
#include "control/topology/alloc.h"
#include "control/topology/build.h"
#include "offload/base/errors.h"

/* How often who is waited for is asked (milliseconds): it costs the switch a look at every entry. */
#define WAITING_MS 1000u
/* Heartbeats without an answer after which a call is given up (count): the same as make a switch down. */
#define CALL_BEATS 3u

struct by_watch {
    struct by_watch_options options;
    struct by_event_queue *events;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool end;
    atomic_bool told; /* a beat waits to be taken */
    _Atomic uint64_t election_id;
    struct by_session *session;
    uint64_t session_election;
    uint64_t heard_ms, waiting_ms;
};

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A session with the election id of now. */
static int open_session(struct by_watch *watch, struct by_problem *problem)
{
    struct by_session_options options = {.timeout_ms = CALL_BEATS * watch->options.heartbeat_ms,
                                         .election_id = watch->election_id,
                                         .keys = watch->options.keys};

    if (watch->session != NULL && watch->session_election == options.election_id)
        return 0;
    by_session_close(watch->session);
    watch->session = NULL;
    watch->session_election = options.election_id;
    return by_session_open(watch->options.address, &options, &watch->session, problem);
}

static int ask(struct by_watch *watch, struct by_beat *beat)
{
    int error = open_session(watch, &beat->problem);

    if (error == 0)
        error = by_session_hello(watch->session, &beat->hello, &beat->problem);
    beat->deposed = error == BY_EPERM && watch->session_election != 0 &&
                    strstr(beat->problem.text, "election id ") != NULL;
    if (error == 0 && strcmp(beat->hello.name, watch->options.name) != 0)
        error = by_problem_say(&beat->problem, BY_EINVAL,
                               "%s answers as '%s', and not as '%s': check the addresses",
                               watch->options.address, beat->hello.name, watch->options.name);
    if (error == 0)
        error = by_session_counters(watch->session, &beat->counters, &beat->problem);
    if (error == 0 && now_ms() - watch->waiting_ms >= WAITING_MS) {
        watch->waiting_ms = now_ms();
        error = by_session_waiting(watch->session, &beat->waiting, &beat->problem);
        beat->has_waiting = error == 0;
    }
    if (error != 0) {
        by_session_close(watch->session);
        watch->session = NULL;
    }
    return error;
}

/* Waits until `until`. False when the watch is to end. */
static bool rest(struct by_watch *watch, uint64_t until)
{
    struct timespec at = {.tv_sec = (time_t)(until / 1000), .tv_nsec = (long)(until % 1000) * 1000000};
    bool end;

    pthread_mutex_lock(&watch->lock);
    while (!watch->end && pthread_cond_timedwait(&watch->ended, &watch->lock, &at) == 0)
        ;
    end = watch->end;
    pthread_mutex_unlock(&watch->lock);
    return !end;
}

static void *watch_run(void *argument)
{
    struct by_watch *watch = argument;
    uint64_t next = now_ms();

    watch->heard_ms = next;
    do {
        struct by_beat *beat = by_alloc(1, sizeof(*beat));

        beat->node = watch->options.node;
        beat->error = ask(watch, beat);
        if (beat->error == 0)
            watch->heard_ms = now_ms();
        beat->silent_ms = now_ms() - watch->heard_ms;
        if (atomic_exchange(&watch->told, true))
            free(beat); /* the loop is behind: it shall not drown */
        else
            by_event_put(watch->events, &(struct by_event){.kind = BY_EVENT_BEAT, .beat = beat});
        next += watch->options.heartbeat_ms;
        if (next < now_ms())
            next = now_ms();
    } while (rest(watch, next));
    by_session_close(watch->session);
    return NULL;
}

struct by_watch *by_watch_start(const struct by_watch_options *options, struct by_event_queue *events)
{
    struct by_watch *watch = by_alloc(1, sizeof(*watch));
    pthread_condattr_t attributes;

    watch->options = *options;
    watch->events = events;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    by_thread_start(&watch->thread, watch_run, watch);
    return watch;
}

void by_watch_lead(struct by_watch *watch, uint64_t election_id)
{
    watch->election_id = election_id;
}

void by_watch_taken(struct by_watch *watch)
{
    watch->told = false;
}

void by_watch_stop(struct by_watch *watch)
{
    if (watch == NULL)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->end = true;
    pthread_cond_signal(&watch->ended);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->ended);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

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
/* Timeout of a call (heartbeats), the same as that of a switch. */
#define CALL_BEATS 3u
/* A switch whose process has ended may restart at once. For this time (milliseconds) it is queried
 * this many times as often. */
#define RETURN_MS   5000u
#define RETURN_PART 4u

struct by_watch {
    struct by_watch_options options;
    struct by_event_queue *events;
    pthread_t thread;
    int end_fd;       /* readable when the watch is to end */
    atomic_bool told; /* a beat is not acknowledged yet */
    _Atomic uint64_t election_id;
    struct by_session *session;
    uint64_t session_election;
    bool heard; /* it has answered at least once */
    uint64_t heard_ms, waiting_ms;
};

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Opens a session with the present election id, unless it is open. */
static int open_session(struct by_watch *watch, struct by_problem *problem)
{
    struct by_session_options options = {.timeout_ms = CALL_BEATS * watch->options.heartbeat_ms,
                                         .election_id = watch->election_id,
                                         .keys = watch->options.keys,
                                         .psk = watch->options.psk};

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

    beat->gone = error == BY_EAGAIN;
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
 * session usable. */
static void leave(struct by_watch *watch, struct by_beat *beat)
{
    struct by_problem problem = {0};
    bool refused = watch->session != NULL && by_session_refused(watch->session);
    bool lost = watch->session != NULL && !refused && beat->error == BY_EIO;

    beat->hasty = refused && beat->error == BY_EAGAIN;
    if (beat->hasty)
        return;
    by_session_close(watch->session);
    watch->session = NULL;
    if (!lost || open_session(watch, &problem) != BY_EAGAIN)
        return;
    beat->problem = problem;
    beat->gone = true;
}

/* Waits until `until`, or until a live switch closes the session. Returns false when the watch must
 * end. */
static bool rest(const struct by_watch *watch, uint64_t until, bool lives)
{
    struct pollfd fds[2] = {{.fd = watch->end_fd, .events = POLLIN},
                            {.fd = lives ? by_session_fd(watch->session) : -1, .events = POLLRDHUP}};
    uint64_t now;

    do { /* also without time left, to notice the end of the watch */
        now = now_ms();
    } while (poll(fds, 2, now < until ? (int)(until - now) : 0) < 0);
    return fds[0].revents == 0;
}

static void *watch_run(void *argument)
{
    struct by_watch *watch = argument;
    const uint32_t beat_ms = watch->options.heartbeat_ms;
    uint64_t next = now_ms(), now, pause;
    bool lives;

    watch->heard_ms = next;
    do {
        struct by_beat *beat = by_alloc(1, sizeof(*beat));

        beat->node = watch->options.node;
        beat->error = ask(watch, beat);
        if (beat->error != 0)
            leave(watch, beat);
        watch->heard |= beat->error == 0;
        lives = watch->heard && (beat->error == 0 || beat->hasty);
        if (lives)
            watch->heard_ms = now_ms();
        now = now_ms();
        beat->silent_ms = now - watch->heard_ms;
        pause = beat->gone && beat->silent_ms < RETURN_MS ? beat_ms / RETURN_PART : beat_ms;
        if (atomic_exchange(&watch->told, true))
            /* The loop is behind: further beats would only fill its queue. */
            free(beat);
        else
            by_event_put(watch->events, &(struct by_daemon_event){.kind = BY_EVENT_BEAT, .beat = beat});
        next += pause;
        if (next < now || next > now + pause)
            next = now + (next < now ? 0 : pause);
    } while (rest(watch, next, lives));
    by_session_close(watch->session);
    return NULL;
}

struct by_watch *by_watch_start(const struct by_watch_options *options, struct by_event_queue *events)
{
    struct by_watch *watch = by_alloc(1, sizeof(*watch));

    watch->options = *options;
    watch->events = events;
    watch->end_fd = eventfd(0, EFD_CLOEXEC);
    if (watch->end_fd < 0) {
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
    free(watch);
}

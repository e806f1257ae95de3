/* Watching of one switch: a thread with its own session sends Hello and a request for the counters
 * at each heartbeat, and passes the result to the loop. switches.c evaluates it. */
#ifndef BY_SERVICE_DAEMON_WATCH_H
#define BY_SERVICE_DAEMON_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "control/service/controller/session.h"
#include "control/service/daemon/event.h"

struct by_watch;

/* The result of one heartbeat. */
struct by_beat {
    uint32_t node;
    int error;          /* 0, or why there is no answer */
    bool deposed;       /* the switch reports that a newer controller leads it */
    bool gone;          /* no program listens at its address */
    bool hasty;         /* the switch refused too frequent requests: it is alive */
    bool noticed;       /* not a heartbeat: the switch has sent its counters, because of a carrier */
    uint64_t silent_ms; /* since the last answer, or the start */
    /* If ranks wait: how long a switch may be silent that works; else UINT32_MAX. */
    uint32_t patience_ms;
    by_HelloReply hello;
    by_CountersReply counters;
    uint64_t asked_ms, answered_ms; /* the counters were read in between */
    bool has_waiting;               /* requested once a second */
    by_WaitingReply waiting;
    struct by_problem problem;
};

struct by_watch_options {
    uint32_t node;
    const char *name, *address; /* must outlive the watch; the switch must report this name */
    const char *keys, *psk;     /* see by_session_options */
    uint32_t heartbeat_ms;
};

/* Starts to watch, at first as a reader that does not count as a controller. */
struct by_watch *by_watch_start(const struct by_watch_options *options, struct by_event_queue *events);
/* Sends this election id with each Hello from now on. The switch then refuses older controllers,
 * and reports when a newer one deposes this one. */
void by_watch_lead(struct by_watch *watch, uint64_t election_id);
/* Asks the switch now, or as soon as the current heartbeat has ended: ranks wait, and it may be the
 * cause. */
void by_watch_now(struct by_watch *watch);
/* Acknowledges a beat, so that the next one may be posted. */
void by_watch_taken(struct by_watch *watch);
void by_watch_stop(struct by_watch *watch);

#endif

/*
 * One switch, watched: a thread with a session of its own says Hello and asks for the counters each
 * heartbeat, and tells the loop what came of it. What that means is decided by switches.c.
 */
#ifndef BY_SERVICE_DAEMON_WATCH_H
#define BY_SERVICE_DAEMON_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "control/service/controller/session.h"
#include "control/service/daemon/event.h"

struct by_watch;

/* What one heartbeat brought. */
struct by_beat {
    uint32_t node;
    int error;          /* 0, or why there was no answer */
    bool deposed;       /* it answered that a newer controller leads it */
    bool gone;          /* nobody listens at its address (any more) */
    bool hasty;         /* it answered that it is asked too often: it lives */
    uint64_t silent_ms; /* since the last answer, or the start */
    by_HelloReply hello;
    by_CountersReply counters;
    uint64_t asked_ms, answered_ms; /* they were read in between */
    bool has_waiting;               /* asked for once a second */
    by_WaitingReply waiting;
    struct by_problem problem;
};

struct by_watch_options {
    uint32_t node;
    const char *name, *address; /* must outlive the watch; the name is what the switch must answer to */
    const char *keys, *psk;     /* as by_session_options has them */
    uint32_t heartbeat_ms;
};

/* Watches, as a reader at first, whom no switch takes for a controller. */
struct by_watch *by_watch_start(const struct by_watch_options *options, struct by_event_queue *events);
/* From now on Hello carries this election id: older controllers are refused by the switch, and we
 * hear so when we are deposed. */
void by_watch_lead(struct by_watch *watch, uint64_t election_id);
/* The beat was taken: the next may be told. */
void by_watch_taken(struct by_watch *watch);
void by_watch_stop(struct by_watch *watch);

#endif

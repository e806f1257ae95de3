/*
 * Events of banyand: what its other threads tell the loop's, in the order in which it happened.
 * Neighbours: watch.c and work.c put, loop.c takes; switches.c, members.c make the rest on the
 * loop's own thread.
 */
#ifndef BY_SERVICE_DAEMON_EVENT_H
#define BY_SERVICE_DAEMON_EVENT_H

#include <stdint.h>

struct by_task;
struct by_beat;

enum by_daemon_event_kind {
    /* From other threads; the loop alone sees these. */
    BY_EVENT_BEAT = 1, /* a switch answered, or did not: `beat` (watch.h) */
    BY_EVENT_WORKED,   /* the worker is done with `task` (work.h) */
    /* For those who react (jobs.c, recover.c): by_daemon_tell. */
    BY_EVENT_LED,         /* the first of all: this daemon leads, and the jobs of its last life are there */
    BY_EVENT_SWITCH_UP,   /* answers; for the first time, or again after it was down, with its table */
    BY_EVENT_SWITCH_DOWN, /* has not answered for three heartbeats */
    BY_EVENT_SWITCH_GONE, /* its process has ended */
    BY_EVENT_SWITCH_REBOOTED, /* answers with another boot nonce: its table is gone */
    BY_EVENT_LINK_DOWN,       /* a port at one of the link's ends has no carrier */
    BY_EVENT_LINK_UP,
    BY_EVENT_RANK_CAME, /* these four: of a job's rank (members.c) */
    BY_EVENT_RANK_LEFT,
    BY_EVENT_RANK_DIED,
    BY_EVENT_RANK_SUSPECTS, /* `node` does not answer this rank; `error` is why */
    BY_EVENT_PUSHED,        /* a change is done: `error`, and 0 when all its tables are active (change.h) */
    BY_EVENT_TICK,          /* time has passed: every heartbeat */
};

struct by_daemon_event {
    enum by_daemon_event_kind kind;
    uint32_t node; /* SWITCH_*, RANK_SUSPECTS */
    uint32_t link; /* LINK_* */
    uint16_t job, rank;
    int error;
    struct by_task *task;
    struct by_beat *beat;
    struct by_daemon_event *next; /* the queue's */
};

struct by_event_queue;

struct by_event_queue *by_event_queue_open(void);
void by_event_queue_close(struct by_event_queue *queue);
/* Readable while events wait. */
int by_event_queue_fd(const struct by_event_queue *queue);
/* Adds a copy. Any thread. */
void by_event_put(struct by_event_queue *queue, const struct by_daemon_event *event);
/* Takes the oldest: 1, or 0 when there is none. The loop's thread. */
int by_event_take(struct by_event_queue *queue, struct by_daemon_event *event);

#endif

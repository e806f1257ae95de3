/*
 * Events of banyand: what its other threads tell the loop's, in the order in which it happened.
 * Neighbours: watch.c and work.c put, loop.c takes; switches.c, members.c make the rest on the
 * loop's own thread.
 */
#ifndef BY_SERVICE_DAEMON_EVENT_H
#define BY_SERVICE_DAEMON_EVENT_H

#include <stdint.h>

#include "control/service/daemon/recover.h"

struct by_task;
struct by_beat;

enum by_daemon_event_kind {
    /* From other threads (watch.h, work.h). */
    BY_EVENT_BEAT = 1, /* a switch answered a heartbeat or did not: `beat` */
    BY_EVENT_WORKED,   /* the worker has finished `task` */
    /* From the loop's own thread. */
    BY_EVENT_LED,             /* this daemon leads, and the jobs of its last run are loaded */
    BY_EVENT_SWITCH_UP,       /* answers for the first time, or again after it was down, with its table */
    BY_EVENT_SWITCH_DOWN,     /* three heartbeats without an answer */
    BY_EVENT_SWITCH_GONE,     /* its process has ended */
    BY_EVENT_SWITCH_REBOOTED, /* answers with another boot nonce: its table is gone */
    BY_EVENT_LINK_DOWN,       /* a port at one of the link's ends has no carrier */
    BY_EVENT_LINK_UP,
    BY_EVENT_PUSHED,   /* a change is done: `error`, 0 if all its tables are active (change.h) */
    BY_EVENT_TICK,     /* every heartbeat */
    BY_EVENT_ANSWERED, /* switch `node` answered with the counters of `beat`, also before LED */
    BY_EVENT_COUNTED,  /* host `node` reports its ports' counters: `data` (offload/wire/member.h) */
    BY_EVENT_RANK,     /* `rank_event` of a job's rank (recover.h) */
};

struct by_daemon_event {
    enum by_daemon_event_kind kind;
    uint32_t node; /* SWITCH_*, ANSWERED, COUNTED */
    uint32_t link; /* LINK_* */
    int error;
    struct by_task *task;
    struct by_beat *beat; /* BEAT: the receiver frees it; ANSWERED: the sender's */
    const uint8_t *data;  /* the sender's, `bytes` of it */
    uint32_t bytes;
    enum by_recover_type rank_event; /* RANK, with what recover.h names for it */
    uint16_t job, rank, gen;
    uint64_t number;
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

/*
 * Events of banyand. Other threads send them to the loop in the order in which they occurred.
 * Neighbours: watch.c and work.c send, loop.c receives; switches.c and members.c post events on the
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
    BY_EVENT_BEAT = 1, /* `beat`: result of a heartbeat, with or without an answer */
    BY_EVENT_WORKED,   /* the worker has finished `task` */
    BY_EVENT_RECORDED, /* the store has the change that the worker pushes */
    /* From the loop's own thread. */
    BY_EVENT_LED,             /* this daemon leads, and the jobs of its last run are loaded */
    BY_EVENT_SWITCH_UP,       /* the first answer, or the first after it was down; it has its table */
    BY_EVENT_SWITCH_DOWN,     /* three heartbeats without an answer */
    BY_EVENT_SWITCH_GONE,     /* its process has ended */
    BY_EVENT_SWITCH_REBOOTED, /* answers with another boot nonce: its table is lost */
    BY_EVENT_LINK_DOWN,       /* a port at one of the link's ends has no carrier */
    BY_EVENT_LINK_UP,
    BY_EVENT_PUSHED,   /* a change is complete: `error`, 0 if all its tables are active (change.h) */
    BY_EVENT_TICK,     /* every heartbeat */
    BY_EVENT_ANSWERED, /* switch `node` answered with the counters of `beat`, also before LED */
    BY_EVENT_COUNTED,  /* host `node` reports its ports' counters: `data` (offload/wire/member.h) */
    BY_EVENT_MEASURED, /* a rank reports its operations: `data` (offload/wire/latency.h), `number`: its nonce
                        */
    BY_EVENT_RANK,     /* `rank_event` of a job's rank (recover.h) */
};

struct by_daemon_event {
    enum by_daemon_event_kind kind;
    uint32_t node; /* SWITCH_*, ANSWERED, COUNTED */
    uint32_t link; /* LINK_* */
    int error;
    struct by_task *task;
    struct by_beat *beat; /* BEAT: the receiver frees it; ANSWERED: owned by the sender */
    const uint8_t *data;  /* owned by the sender, `bytes` long */
    uint32_t bytes;
    enum by_recover_type rank_event; /* RANK; its arguments: see recover.h */
    uint16_t job, rank, gen;
    uint64_t number;
    struct by_daemon_event *next; /* for the queue */
};

struct by_event_queue;

struct by_event_queue *by_event_queue_open(void);
void by_event_queue_close(struct by_event_queue *queue);
/* Readable while events are queued. */
int by_event_queue_fd(const struct by_event_queue *queue);
/* Queues a copy. Any thread. */
void by_event_put(struct by_event_queue *queue, const struct by_daemon_event *event);
/* Takes the oldest event. Returns 1, or 0 when there is none. The loop's thread. */
int by_event_take(struct by_event_queue *queue, struct by_daemon_event *event);

#endif

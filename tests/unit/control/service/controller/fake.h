/* Switches without packets: real agents behind UNIX sockets, with one thread each and with nodes
 * that can be set to refuse. For the tests of the controller and its benchmark. */
#ifndef BY_TEST_CONTROLLER_FAKE_H
#define BY_TEST_CONTROLLER_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "firmware/agent/guard.h"

/* Simultaneous clients of a switch (count). */
#define FAKE_CLIENTS_MAX 8

/* A controller that ends at a certain request, counted over all switches. */
struct crash {
    atomic_int left;    /* remaining requests */
    atomic_bool before; /* true: the request is not executed; false: only its answer is lost */
    atomic_bool writes; /* count only requests that write: Stage, Validate, Commit, Abort */
    atomic_int process; /* the controller's; 0 = not known yet, -1 = killed by a switch */
};

/* Kills the controller, waits for its end, and states it in `process`. Waits until it is known. */
void fake_crash(struct crash *crash);

/* A connection, with its own thread. */
struct fake_client {
    struct controller_fake *fake;
    pthread_t thread;
    int fd;                     /* -1: no client */
    struct by_channel *channel; /* NULL: its thread does not run */
};

/* A switch that is complete except for packets. */
struct controller_fake {
    char address[128], path[108];
    int listener;
    pthread_t thread;
    pthread_mutex_t lock; /* protects the agent and the clients */
    struct fake_client clients[FAKE_CLIENTS_MAX];
    atomic_int end;
    atomic_bool down[2]; /* ports without a carrier */
    atomic_int commits, aborts;
    _Atomic uint64_t complete;       /* value of the counter `complete` */
    int refuse_stage, refuse_commit; /* errors to return */
    int garbage;                     /* answers with garbage */
    atomic_int silent;               /* does not answer */
    atomic_int reworded;             /* replaces the words "election id" in refusals by "ELECTION ID" */
    atomic_int misleading;  /* refuses all requests with BY_EPERM and a text that contains these words without
                               reason */
    atomic_int hasty;       /* refuses every request because of its rate */
    atomic_int together;    /* requests that must have arrived before it answers the first of a client */
    atomic_int missed;      /* clients that did not send so many within two seconds */
    atomic_int late_us;     /* delay of each answer (microseconds) */
    atomic_int holds;       /* sends no answers once it has committed a table */
    struct by_guard *guard; /* accepts only requests with its key; NULL: no guard */
    struct crash *_Atomic crash; /* when the controller ends, or NULL */
    uint8_t *staged, *active;
    size_t staged_bytes, active_bytes;
    struct by_agent *agent;
    void *memory;
};

/* Maximum number of requests that delayed switches have processed at the same time (count). */
extern atomic_int fake_busy_most;

/* What a switch that starts reports of enum Able: by default that it supports standbys. */
extern uint32_t fake_able;

/* Starts a switch with 8192 bytes of payload and 256 ports that accepts tables of at most
 * `image_bytes_max`. */
struct controller_fake *fake_start(const char *name, uint32_t slots, uint32_t image_bytes_max);
/* Notifies the clients that have requested it that a carrier has changed. */
void fake_notify(struct controller_fake *fake);
void fake_stop(struct controller_fake *fake);

#endif

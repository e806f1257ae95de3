/* Switches without packets: real agents behind UNIX sockets, a thread each, with nodes that can be
 * told to refuse. For the tests of the controller and its bench. */
#ifndef BY_TEST_CONTROLLER_FAKE_H
#define BY_TEST_CONTROLLER_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "firmware/agent/guard.h"

/* Clients of a switch at a time (count). */
#define FAKE_CLIENTS_MAX 8

/* A controller that ends at a certain request, counted over all switches. */
struct crash {
    atomic_int left;    /* requests until then */
    atomic_bool before; /* the request is not done any more, else only its answer is lost */
    atomic_bool writes; /* only those that write count: Stage, Validate, Commit, Abort */
    atomic_int process; /* the controller's, 0 = not yet known */
};

/* A connection, with a thread of its own. */
struct fake_client {
    struct controller_fake *fake;
    pthread_t thread;
    int fd; /* -1: no such client */
};

/* A switch that has everything but packets. */
struct controller_fake {
    char address[128], path[108];
    int listener;
    pthread_t thread;
    pthread_mutex_t lock; /* of the agent, and of the clients */
    struct fake_client clients[FAKE_CLIENTS_MAX];
    atomic_int end;
    atomic_bool down[2]; /* ports without a carrier */
    atomic_int commits, aborts;
    _Atomic uint64_t complete;       /* the counter of that name */
    int refuse_stage, refuse_commit; /* errors to give */
    int garbage;                     /* answers nonsense */
    atomic_int silent;               /* answers nothing */
    atomic_int reworded;             /* says "ELECTION ID" where a refusal has these words */
    atomic_int misleading;           /* refuses all with BY_EPERM and a text that has them for no reason */
    atomic_int hasty;                /* finds that it is asked too often, whatever it is asked */
    atomic_int late_us;              /* thinks so long about each request, or is so far away (microseconds) */
    struct by_guard *guard;          /* requests are taken under its key alone, or NULL */
    struct crash *crash;             /* when the controller ends, or NULL */
    uint8_t *staged, *active;
    size_t staged_bytes, active_bytes;
    struct by_agent *agent;
    void *memory;
};

/* Of late switches: those that thought about a request at the same time, at most (count). */
extern atomic_int fake_busy_most;

/* Starts a switch with 8192 bytes of payload and 256 ports, which takes tables of at most
 * `image_bytes_max`.
 */
struct controller_fake *fake_start(const char *name, uint32_t slots, uint32_t image_bytes_max);
void fake_stop(struct controller_fake *fake);

#endif

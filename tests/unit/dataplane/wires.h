/*
 * A switch with several workers between hosts that one test thread plays: memory ports of two rings
 * each, a thread for the switch's main worker, and hosts that send chunks of a star's trees, check
 * every result, and repair losses like real ones. Used by workers_test and by bench-workers.
 */
#ifndef BY_TESTS_UNIT_DATAPLANE_WIRES_H
#define BY_TESTS_UNIT_DATAPLANE_WIRES_H

#include <pthread.h>

#include "dataplane/state.h"
#include "tests/unit/firmware/star.h"

#define WIRES_TREES_MAX 64u

/* The i32 values of a chunk, at most (count). */
#define WIRES_COUNT_MAX 352u

/* One tree, as its hosts see it. */
struct wires_tree {
    uint32_t sent, done;         /* chunks below have been sent, and have reached all hosts */
    uint32_t got[BY_WINDOW_MAX]; /* of chunk seq: the hosts that have its result, as bits */
};

struct wires {
    struct by_shell *shell;
    struct star star;
    uint16_t count; /* values of a chunk */
    uint16_t gen;
    uint32_t flight;  /* chunks of a tree under way */
    uint32_t credits; /* hosts that send no data, but credits in shared datagrams, as bits */
    double loss;      /* of frames from the switch */
    uint64_t wrong;   /* results with wrong values */
    bool strays;      /* frames arrive at queues that are not those of their lanes */
    bool learned;     /* the table states no MAC addresses of hosts; they answer ARP */
    uint32_t rate; /* of each host's port (units of 1000 bytes per second), of which the job has half as its
                      share; 0: tables enforce no shares */
    uint64_t results, repairs;
    uint64_t late; /* results of earlier generations */
    struct by_prng prng;
    struct wires_tree tree[WIRES_TREES_MAX];
    pthread_t thread;
};

/* Opens a switch with `workers` workers for the star. `queues`: its ports have queues for each
 * worker, among which frames are steered by their source ports; else one, and an owner hands over.
 * The function fails the test if it cannot. */
void wires_open(struct wires *wires, const struct star *star, unsigned workers, bool queues,
                const struct by_fault *fault);
/* Starts the switch's main worker. */
void wires_start(struct wires *wires);
/* Loads the star's table with generation `gen` by the main worker, as the control channel would;
 * returns the time for which the workers stood still (ns). A new generation begins at chunk 0. */
uint64_t wires_load(struct wires *wires, uint16_t gen);
/* The two parts of wires_load. The first changes nothing of the hosts, so another thread may call
 * it while they run. */
uint64_t wires_push(const struct wires *wires, uint16_t gen);
void wires_renew(struct wires *wires, uint16_t gen);
/* Runs all hosts until each of the first `trees` trees has completed `chunks` chunks in all; false
 * after `seconds` without progress. */
bool wires_run(struct wires *wires, unsigned trees, uint32_t chunks, unsigned seconds);
/* One step of wires_run: sends what the windows allow, and takes some results. */
void wires_step(struct wires *wires, unsigned trees, uint32_t chunks);
/* For a bench, which plays the hosts itself: the ring in which frames for the switch wait at a
 * port, or those that it has sent, of a queue. */
struct rte_ring *wires_ring(unsigned port, unsigned queue, bool to_switch);
/* Calls `function` on the main worker. */
void wires_ask(const struct wires *wires, void (*function)(void *context), void *context);
/* Ends the switch's threads and closes it. */
void wires_stop(struct wires *wires);
void wires_close(struct wires *wires);

#endif

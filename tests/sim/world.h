/*
 * A deterministic discrete-event world: the real engines and endpoints of a fabric, joined by cables with
 * rate, latency, queues, loss, duplication, reordering and corruption. Virtual time; everything follows from
 * the seed. Knows nothing of calls: scenario.c does. Single-threaded.
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include "offload/base/fault.h"
#include "offload/endpoint/endpoint.h"
#include "offload/engine/engine.h"
#include "tests/sim/fabric.h"

struct world_config {
    uint64_t seed;
    struct by_fault fault; /* at the receive side of every switch; of every host too with host_faults */
    uint32_t corrupt;      /* parts of 2^32: one bit, or any of 32 neighbouring ones, of header or payload */
    int host_faults;
    int burst_node;           /* loses in bursts: */
    uint32_t burst_loss;      /* so much of what arrives, parts of 2^32; 0: no bursts */
    uint64_t burst_ns;        /* for so long, */
    uint64_t burst_period_ns; /* at the end of each such period */
    uint64_t hold_ns;   /* the longest time that a packet is held back when it is reordered or duplicated */
    uint32_t queue_max; /* packets waiting for a cable in one direction; beyond it they are lost; 0: never */
    uint32_t mark_at;   /* with so many waiting, what joins them is marked (ECN); 0: never */
    uint32_t poll_ns;   /* the longest time from the arrival of a packet to the step that takes it */
    uint32_t burst;     /* packets a step */
    uint64_t repair_interval_ns;
    struct by_endpoint_config endpoint; /* image, job and nonce are filled in */
};

struct world_counters {
    uint64_t events, sent, delivered, lost, duplicated, held, overflowed, marked;
    uint64_t waited; /* sum over all packets: those ahead of it in the queue for its cable */
    uint64_t corrupted, corrupted_headers; /* packets; those of them whose header was hit */
};

struct world;

/* Called before and after each step of a host, to post and to collect calls. 1 when it posted: the host steps
 * once more. */
typedef int (*world_host_step)(void *context, struct world *world, int node);

struct world *world_create(const struct fabric *fabric, const struct world_config *config,
                           world_host_step step, void *context);
void world_destroy(struct world *world);

uint64_t world_now(const struct world *world);
/* A step of `node` at `at_ns` or earlier. */
void world_wake(struct world *world, int node, uint64_t at_ns);
/* Runs until *done, nothing is left to do, or virtual time passes `until_ns`. */
void world_run(struct world *world, const int *done, uint64_t until_ns);
/* From now on the node takes and sends nothing. */
void world_kill(struct world *world, int node);
/* The node does not run until `until_ns`; what arrives waits. */
void world_freeze(struct world *world, int node, uint64_t until_ns);
/* Switches all faults off (to let an end be reached). */
void world_calm(struct world *world);
/* Installs the fabric's images anew (another gen, other trees): engines stage and commit, endpoints start
 * over. */
void world_reload(struct world *world, const struct fabric *fabric);
/* A switch loses its memory: until the next reload it knows no tree. */
void world_forget(struct world *world, int node);
/* The process of a host ends, if it has not been killed before, and another begins with the same tables:
 * engine and endpoints are new; what is on the cables, and what switches hold, stays. */
void world_restart(struct world *world, int node);

/* The endpoint of job index `job` on a host; NULL where there is none. */
struct by_endpoint *world_endpoint(struct world *world, int node, int job);
struct by_engine *world_engine(struct world *world, int node);
const struct world_counters *world_counters(const struct world *world);
/* Sums of the endpoints' and engines' counters. */
void world_sum_endpoints(const struct world *world, struct by_endpoint_counters *sum);
void world_sum_engines(const struct world *world, struct by_engine_counters *sum);

#endif

/*
 * A deterministic discrete-event world: the real engines and endpoints of a fabric, joined by
 * cables with rate, latency, queues, loss, duplication, reordering and corruption. Virtual time;
 * everything follows from the seed. Nodes are what their table images say, however these were made.
 * Knows nothing of calls: the caller's step posts them (tests/sim/scenario.c,
 * host-driver/tools/sim/run.c). Single-threaded.
 */
#ifndef BY_SIM_WORLD_H
#define BY_SIM_WORLD_H

#include "offload/base/fault.h"
#include "offload/base/prng.h"
#include "offload/endpoint/endpoint.h"
#include "offload/engine/engine.h"

/* Jobs in one world (count). */
#define BY_WORLD_JOBS_MAX 4u
/* Packets that one step takes at most (count). */
#define BY_WORLD_BURST_MAX 64u
/* What a packet takes on a cable beside its UDP payload (bytes): Ethernet, IP and UDP headers,
 * preamble, check sequence and gap. */
#define BY_WORLD_FRAME_BYTES 66u

struct by_world_node {
    uint8_t *image; /* checked; malloc'd, the world's from now on */
    size_t image_bytes;
    /* Time that adding a byte takes, as a fraction of picoseconds; add_den 0: none. A chunk with c
     * children that bring data costs c - 1 additions (docs/decisions/0020). */
    uint64_t add_num, add_den;
};

/* One direction of a cable. The time of a byte is a fraction of picoseconds. */
struct by_world_arc {
    uint32_t from, to; /* nodes */
    uint16_t from_port, to_port;
    uint64_t ps_num, ps_den;
    uint64_t latency_ps;
};

/* The arrays stay the caller's, but for the images in them. */
struct by_world_fabric {
    uint32_t node_count, arc_count, job_count;
    struct by_world_node *nodes;
    struct by_world_arc *arcs;
    uint16_t jobs[BY_WORLD_JOBS_MAX];
};

struct by_world;

/* Looks at a burst that a host's endpoint takes, before (done 0) and after (done 1) it does. */
typedef void by_world_watch(void *context, struct by_world *world, uint32_t node, uint32_t job,
                            const struct by_rx *rx, uint32_t count, int done);
/* Called before and after each step of a host, to post and to collect calls. 1 when it posted: the
 * host steps once more. */
typedef int by_world_host_step(void *context, struct by_world *world, uint32_t node);

struct by_world_config {
    uint64_t seed;
    struct by_fault fault; /* at the receive side of every switch; of every host too with host_faults */
    uint32_t corrupt;      /* parts of 2^32: one bit, or any of 32 neighbouring ones, of header or payload */
    int host_faults;
    int burst_node;           /* loses in bursts: */
    uint32_t burst_loss;      /* so much of what arrives, parts of 2^32; 0: no bursts */
    uint64_t burst_ns;        /* for so long, */
    uint64_t burst_period_ns; /* at the end of each such period */
    uint64_t hold_ns;   /* the longest time that a packet is held back when it is reordered or duplicated */
    uint32_t queue_max; /* packets waiting for a cable in one direction; beyond it they are lost; 0: any */
    uint64_t queue_bytes_max; /* the same in bytes */
    uint32_t mark_at;         /* with so many packets waiting, what joins them is marked (ECN); 0: never */
    uint64_t mark_bytes;      /* a packet that finds a longer queue is marked CE; 0: none */
    uint32_t batch;   /* frames that each packet stands for: it takes so many times its bytes of a cable, of a
                         queue and of a node's additions; 0: 1 */
    uint32_t poll_ns; /* the longest time from the arrival of a packet to the step that takes it */
    uint32_t burst;   /* packets a step */
    uint64_t repair_interval_ns;
    /* Room for tables that come later; 0: what the first ones need. */
    uint32_t image_bytes_max, entry_count_max, relay_count_max, slot_count_max, payload_max;
    by_world_watch *watch;              /* may be NULL */
    struct by_endpoint_config endpoint; /* image, job and nonce are filled in */
};

struct by_world_counters {
    uint64_t events, sent, delivered, lost, duplicated, held, overflowed, marked;
    uint64_t waited; /* sum over all packets: those ahead of it in the queue for its cable */
    uint64_t corrupted, corrupted_headers; /* packets; those of them whose header was hit */
    uint64_t told;                         /* messages between hosts about calls that go on */
};

/* What one direction of a cable has carried. */
struct by_world_use {
    uint64_t packets; /* frames, a train counts as many */
    uint64_t payload_bytes;
    uint64_t header_bytes; /* banyan's headers and BY_WORLD_FRAME_BYTES */
    uint64_t busy_ps;
    uint64_t queue_high; /* the most bytes that waited */
    uint64_t dropped, marked;
};

/* Aborts when memory is short. */
struct by_world *by_world_create(const struct by_world_fabric *fabric, const struct by_world_config *config,
                                 by_world_host_step *step, void *context);
void by_world_destroy(struct by_world *world);

uint64_t by_world_now(const struct by_world *world); /* ns */
uint64_t by_world_now_ps(const struct by_world *world);
/* A step of `node` at `at_ns` or earlier. */
void by_world_wake(struct by_world *world, uint32_t node, uint64_t at_ns);
/* Runs until *done, nothing is left to do, or virtual time passes `until_ns`. */
void by_world_run(struct by_world *world, const int *done, uint64_t until_ns);
/* From now on the node takes and sends nothing. */
void by_world_kill(struct by_world *world, uint32_t node);
/* The node does not run until `until_ns`; what arrives waits. */
void by_world_freeze(struct by_world *world, uint32_t node, uint64_t until_ns);
/* Switches all faults off (to let an end be reached). */
void by_world_calm(struct by_world *world);
/* Installs other images (another gen, other trees) on the same cables: engines stage and commit,
 * endpoints start over. */
void by_world_reload(struct by_world *world, const struct by_world_fabric *fabric);
/*
 * Installs other images under which calls go on; config.endpoint.resume is set. Tables come to the
 * nodes, and word of them to the hosts, within `spread_ns`, each at a moment of its own; messages
 * between hosts take as long, and get lost or doubled where the cables lose. May be called again
 * before all hosts have gone on.
 */
void by_world_resume(struct by_world *world, const struct by_world_fabric *fabric, uint64_t spread_ns);
/* A switch loses its memory: until the next reload it knows no tree. */
void by_world_forget(struct by_world *world, uint32_t node);
/* The process of a host ends, if it has not been killed before, and another begins with the same
 * tables: engine and endpoints are new; what is on the cables, and what switches hold, stays. */
void by_world_restart(struct by_world *world, uint32_t node);

/* The endpoint of job index `job` on a host; NULL where there is none. */
struct by_endpoint *by_world_endpoint(struct by_world *world, uint32_t node, uint32_t job);
/* NULL where a node has neither entry nor relay. */
struct by_engine *by_world_engine(struct by_world *world, uint32_t node);
const uint8_t *by_world_image(const struct by_world *world, uint32_t node);
const struct by_world_counters *by_world_counters(const struct by_world *world);
/* Of direction `arc` of the fabric. */
const struct by_world_use *by_world_use(const struct by_world *world, uint32_t arc);
/* Starts the uses of all directions, and the marks of slots, from zero. */
void by_world_use_reset(struct by_world *world);
/* The most slots that a node's chunks held at a time: from the first contribution to the result. */
uint32_t by_world_slots_high(const struct by_world *world, uint32_t node);
/* Sums of the endpoints' and engines' counters. */
void by_world_sum_endpoints(const struct by_world *world, struct by_endpoint_counters *sum);
void by_world_sum_engines(const struct by_world *world, struct by_engine_counters *sum);

#endif

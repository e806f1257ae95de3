/*
 * A deterministic discrete-event simulator: the real engines and endpoints of a fabric, connected
 * by cables with rate, latency, queues, loss, duplication, reordering and corruption. Time is
 * virtual; the seed determines everything. Table images define the nodes. The world does not post
 * calls; the caller's step does (tests/sim/scenario.c, host-driver/tools/sim/run.c).
 * Single-threaded.
 */
#ifndef BY_SIM_WORLD_H
#define BY_SIM_WORLD_H

#include "offload/base/fault.h"
#include "offload/base/prng.h"
#include "offload/endpoint/endpoint.h"
#include "offload/engine/engine.h"

/* Maximum number of jobs in one world. */
#define BY_WORLD_JOBS_MAX 4u
/* Maximum number of packets that one step receives. */
#define BY_WORLD_BURST_MAX 64u
/* Bytes of a packet on a cable besides its UDP payload: Ethernet, IP and UDP headers, preamble,
 * check sequence and gap. */
#define BY_WORLD_FRAME_BYTES 66u

struct by_world_node {
    uint8_t *image; /* validated, allocated with malloc; ownership passes to the world */
    size_t image_bytes;
    /* Time to add a byte, as a fraction in picoseconds; add_den 0: none. A chunk with c children
     * that contribute data costs c - 1 additions (docs/decisions/0020). */
    uint64_t add_num, add_den;
};

/* One direction of a cable. The time per byte is a fraction in picoseconds. */
struct by_world_arc {
    uint32_t from, to; /* nodes */
    uint16_t from_port, to_port;
    uint64_t ps_num, ps_den;
    uint64_t latency_ps;
    uint32_t loss; /* part of its packets that is lost, in 2^-32 */
};

/* Bytes of a packet of other traffic on a cable: a full Ethernet frame with preamble and gap. */
#define BY_WORLD_STREAM_BYTES 1538u

/* Other traffic in one direction of a cable (stream.c). */
struct by_world_stream {
    uint32_t arc;  /* of the fabric */
    uint32_t part; /* of the cable's rate, in 2^-32; 0: TCP, which always has data */
    uint64_t begin_ns;
    uint64_t trip_ns; /* TCP: time from the end of a segment on the cable to its acknowledgement */
    enum { BY_WORLD_NO_ECN, BY_WORLD_ECN, BY_WORLD_DCTCP } ecn; /* what it makes of marks */
};

/* The caller owns the arrays, but not the images in them. */
struct by_world_fabric {
    uint32_t node_count, arc_count, job_count;
    struct by_world_node *nodes;
    struct by_world_arc *arcs;
    uint16_t jobs[BY_WORLD_JOBS_MAX];
};

/* A standby generation of the first job, whose tables the switches have already. */
#define BY_WORLD_STANDBYS_MAX 3u
struct by_world_standby {
    uint8_t **images; /* of each host, NULL for a switch; ownership passes to the world */
    size_t *image_bytes;
    uint64_t replaces; /* bit t: it does not use what tree t of the first generation may lose */
};

struct by_world;

/* Observes a burst that a host's endpoint receives, before (done 0) and after (done 1). */
typedef void by_world_watch(void *context, struct by_world *world, uint32_t node, uint32_t job,
                            const struct by_rx *rx, uint32_t count, int done);
/* Called before and after each step of a host, to post and to collect calls. Returns 1 if it
 * posted: the host then steps once more. */
typedef int by_world_host_step(void *context, struct by_world *world, uint32_t node);

/* Called at each multiple of config.sample_ns, before the events of that time. */
typedef void by_world_sample(void *context, struct by_world *world, uint64_t at_ns);

struct by_world_config {
    uint64_t seed;
    by_world_sample *sample; /* may be NULL */
    uint64_t sample_ns;      /* > 0 if there is `sample` */
    /* at the receive side of every switch; with host_faults also of every host */
    struct by_fault fault;
    /* Mean length of the runs in which packets of a direction are lost (fault.loss, arc.loss stay
     * the lost parts); 0 or 1: each is lost by itself */
    uint32_t loss_run;
    /* parts of 2^32: one bit, or any of 32 adjacent bits, of header or payload */
    uint32_t corrupt;
    int host_faults;
    int burst_node; /* node with burst losses */
    /* lost share of received packets, parts of 2^32; 0: no bursts */
    uint32_t burst_loss;
    uint64_t burst_ns;        /* duration of a burst */
    uint64_t burst_period_ns; /* period of bursts; each burst is at its end */
    /* maximum delay of a reordered or duplicated packet */
    uint64_t hold_ns;
    /* maximum packets in the queue of a direction; further packets are lost; 0: unlimited */
    uint32_t queue_max;
    uint64_t queue_bytes_max; /* the same in bytes */
    /* bytes that may wait at all ports of a switch together; a port may use at most as much as is
     * free (dynamic thresholds; Choudhury, Hahne, IEEE/ACM ToN 1998); 0: unlimited */
    uint64_t shared_bytes_max;
    /* a packet that joins a queue of this many packets is marked (ECN); 0: never */
    uint32_t mark_at;
    uint64_t mark_bytes; /* a packet that finds a longer queue is marked CE; 0: none */
    /* Frames that each packet represents: multiplies its bytes on a cable and in a queue, and a
     * node's additions; 0: 1 */
    uint32_t batch;
    const struct by_world_stream *streams; /* read by by_world_create only */
    uint32_t stream_count;
    uint32_t poll_ns; /* maximum time from the arrival of a packet to the step that receives it */
    uint32_t burst;   /* packets per step */
    uint64_t repair_interval_ns;
    /* Capacity for later tables; 0: what the first ones need. */
    uint32_t image_bytes_max, entry_count_max, relay_count_max, slot_count_max, payload_max;
    by_world_watch *watch;              /* may be NULL */
    struct by_endpoint_config endpoint; /* image, job and nonce are filled in */
};

struct by_world_counters {
    uint64_t events, sent, delivered, lost, duplicated, held, overflowed, marked;
    /* sum over all packets: packets ahead of it in the queue of its cable */
    uint64_t waited;
    uint64_t corrupted, corrupted_headers; /* packets; number of them with a corrupted header */
    uint64_t told;                         /* messages between hosts about calls that continue */
    uint64_t moved, abandoned; /* attempts to move to a standby; those that ended without success */
    uint64_t rounds;           /* of the attempts that succeeded, at one host for each */
};

/* Traffic of one direction of a cable. */
struct by_world_use {
    uint64_t packets; /* frames; a batch counts as many */
    uint64_t payload_bytes;
    uint64_t header_bytes; /* banyan's headers and BY_WORLD_FRAME_BYTES */
    uint64_t busy_ps;
    uint64_t queue_high; /* maximum bytes in the queue */
    uint64_t lost, dropped, marked;
};

/* Creates a world; aborts if memory is short. */
struct by_world *by_world_create(const struct by_world_fabric *fabric, const struct by_world_config *config,
                                 by_world_host_step *step, void *context);
void by_world_destroy(struct by_world *world);

uint64_t by_world_now(const struct by_world *world); /* ns */
uint64_t by_world_now_ps(const struct by_world *world);
/* Schedules a step of `node` at `at_ns` or earlier. */
void by_world_wake(struct by_world *world, uint32_t node, uint64_t at_ns);
/* Runs until *done, until nothing is left to do, or until virtual time passes `until_ns`. */
void by_world_run(struct by_world *world, const int *done, uint64_t until_ns);
/* From now on the node receives and sends nothing. */
void by_world_kill(struct by_world *world, uint32_t node);
/* The node does not run until `until_ns`; arriving packets wait. */
void by_world_freeze(struct by_world *world, uint32_t node, uint64_t until_ns);
/* Disables all faults, so that a run can complete. */
void by_world_calm(struct by_world *world);
/* Installs other images (another generation, other trees) on the same cables: engines stage and
 * commit, endpoints restart. */
void by_world_reload(struct by_world *world, const struct by_world_fabric *fabric);
/*
 * Installs other images under which calls continue; requires config.endpoint.resume. Tables reach
 * the nodes, and notifications reach the hosts, within `spread_ns`, each at its own time. Messages
 * between hosts take as long, and are lost or duplicated where the cables lose packets. May be
 * called again before the calls of all hosts have continued.
 */
void by_world_resume(struct by_world *world, const struct by_world_fabric *fabric, uint64_t spread_ns);
/*
 * Lets the hosts of a world with one job move to standbys by themselves (PROTOCOL.md, "Standby
 * generations"), until by_world_resume supersedes them: when a chunk has waited for `patience_ns`,
 * and to the next when an attempt has taken `attempt_ns`, doubled for each attempt. Requires
 * config.endpoint.resume.
 */
void by_world_stand_by(struct by_world *world, const struct by_world_standby *standbys, uint32_t count,
                       uint64_t patience_ns, uint64_t attempt_ns);
/* The last move of a host to a standby (ns): when its calls stopped, and went on; 0: not yet. */
struct by_world_move {
    uint64_t frozen_ns, carried_ns;
};
struct by_world_move by_world_move(const struct by_world *world, uint32_t node);
/* A switch loses its memory: it has no trees until the next reload. */
void by_world_forget(struct by_world *world, uint32_t node);
/* The process of a host ends, if it has not been killed before, and another starts with the same
 * tables. Engine and endpoints are new; packets in flight and the state of switches remain. */
void by_world_restart(struct by_world *world, uint32_t node);

/* The endpoint of job index `job` on a host; NULL if there is none. */
struct by_endpoint *by_world_endpoint(struct by_world *world, uint32_t node, uint32_t job);
/* NULL for a node without entries and relays. */
struct by_engine *by_world_engine(struct by_world *world, uint32_t node);
const uint8_t *by_world_image(const struct by_world *world, uint32_t node);
const struct by_world_counters *by_world_counters(const struct by_world *world);
/* The traffic of direction `arc` of the fabric. */
const struct by_world_use *by_world_use(const struct by_world *world, uint32_t arc);
/* Returns the bytes that wait in the queue of direction `arc`. */
uint64_t by_world_queue(const struct by_world *world, uint32_t arc);
/* Returns the time (ps) for which direction `arc` has sent until `at_ns`, since the reset. */
uint64_t by_world_busy_ps(const struct by_world *world, uint32_t arc, uint64_t at_ns);
/* Returns the bytes on its cable that a stream has sent. They count as busy time, and not as
 * packets of by_world_use. */
uint64_t by_world_stream_bytes(const struct by_world *world, uint32_t stream);
/* Resets the traffic of all directions and the high-water marks of slots. */
void by_world_use_reset(struct by_world *world);
/* Maximum number of slots that a node's chunks occupied at a time, from the first contribution to
 * the result. */
uint32_t by_world_slots_high(const struct by_world *world, uint32_t node);
/* Sum the counters of all endpoints or engines. */
void by_world_sum_endpoints(const struct by_world *world, struct by_endpoint_counters *sum);
void by_world_sum_engines(const struct by_world *world, struct by_engine_counters *sum);

#endif

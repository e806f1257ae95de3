/*
 * Internals of the simulated world, shared by its sources: parcels (packets in flight), cables
 * (cable.c), nodes (node.c), and the world that holds them (world.c). Virtual time is in
 * picoseconds here: a chunk takes 27.3 ns at 300 GB/s. Single-threaded.
 */
#ifndef BY_SIM_INSIDE_H
#define BY_SIM_INSIDE_H

#include <stdbool.h>

#include "host-driver/sim/heap.h"
#include "host-driver/sim/world.h"

/* Parcels have two sizes: the small one holds packets without a payload and the short payloads of
 * WAIT and ERR; the large one holds all. */
#define BY_PARCEL_SMALL (BY_WIRE_HEADER_BYTES + BY_ERR_BYTES)
#define BY_PARCEL_LARGE (BY_WIRE_HEADER_BYTES + BY_PAYLOAD_MAX)

struct by_sim_parcel {
    struct by_sim_parcel *next;
    uint16_t bytes, udp_port, port;
    uint16_t room; /* capacity of data in bytes */
    uint32_t src_ip, dst_ip;
    uint8_t ecn;
    uint8_t held; /* as in by_rx */
    uint8_t data[];
};

struct by_parcels {
    struct by_sim_parcel *head, **tail;
    uint32_t count;
};

/* A packet that waits for its cable; its payload is still where the action points. */
struct by_departure {
    struct by_departure *next;
    struct by_tx tx;
    struct by_sim_parcel *relayed;
    uint32_t bytes;  /* on the cable */
    uint32_t stream; /* number of other traffic's stream, UINT32_MAX: a packet of banyan */
};

/* One direction of a cable, and the queue of the sending port. */
struct by_sim_direction {
    struct by_world_arc arc;
    uint32_t src_ip;
    struct by_departure *head, **tail;
    uint32_t count;
    uint64_t queue_bytes;
    uint64_t free_ps;
    int scheduled;
    int is_losing; /* within a run of losses */
    struct by_world_use use;
};

/* A segment of TCP that has not been lost. */
struct by_sim_ack {
    uint32_t number;
    bool marked;
};

/* Other traffic. Numbers of segments wrap. */
struct by_sim_stream {
    struct by_world_stream given;
    uint64_t sent_bytes;
    /* TCP: the next segment, the next one to be acknowledged, and the first one whose loss narrows
     * the window again */
    uint32_t next, expected, recover;
    uint32_t window, threshold; /* in 1/256 segments */
    /* DCTCP: since the last narrowing, up to the segment `round` */
    int32_t seen, seen_marked, alpha;
    uint32_t round;
    struct by_sim_ack *acks; /* a ring: segments on the cable and acknowledgements on their way */
    uint32_t ack_first, ack_count, ack_room;
};

/* One tree's chunks at one engine, as seen from outside: opened and closed, for the high-water mark
 * of slots. */
struct by_progress_mark {
    uint32_t opened;  /* highest seq contributed + 1 */
    uint32_t closed;  /* chunks whose result was sent */
    uint32_t last;    /* seq of the last such chunk */
    uint8_t children; /* 0: no entry here */
};

struct by_sim_node {
    uint8_t *image;
    size_t image_bytes;
    uint8_t kind;
    uint16_t id;
    uint32_t port_count;
    /* per port: index of the outgoing direction, UINT32_MAX: none */
    uint32_t *direction_of;
    uint64_t add_num, add_den;
    uint64_t queue_bytes;     /* of all its ports */
    uint64_t adds_ps;         /* end of the current additions */
    struct by_engine *engine; /* NULL without entries and relays */
    struct by_endpoint *endpoint[BY_WORLD_JOBS_MAX];
    /* Calls that continue in another generation (resume.c). Images: the next one, and the one that
     * the host was notified of; old images are retired. */
    uint8_t *coming_image, *told_image;
    size_t coming_bytes, told_bytes;
    struct by_resume *resume[BY_WORLD_JOBS_MAX];
    void *resume_memory[BY_WORLD_JOBS_MAX];
    uint16_t attempt[BY_WORLD_JOBS_MAX];
    uint8_t over[BY_WORLD_JOBS_MAX]; /* its calls have continued */
    uint32_t mark_count[BY_WORLD_JOBS_MAX];
    struct by_progress_mark *marks[BY_WORLD_JOBS_MAX]; /* per tree; NULL without an engine */
    uint32_t slots_now, slots_high;
    struct by_parcels arrived;   /* from cables */
    struct by_parcels to_engine; /* from this host's endpoints */
    struct by_parcels to_endpoint[BY_WORLD_JOBS_MAX];
    /* With standbys of the only job, endpoints 1 and following are those of their trees of
     * rounds. */
    struct by_sim_standby *standby;
    uint64_t poll_ps;   /* when the next step is due; UINT64_MAX: none */
    uint64_t frozen_ps; /* the node does not run before */
    int dead;
};

struct by_world {
    struct by_world_config config;
    by_world_host_step *step;
    void *context;
    struct by_prng prng, nonces;
    uint32_t run_loss; /* config.fault.loss, if packets are lost in runs */
    uint64_t now_ps;
    uint64_t sample_ps; /* time of the next sample */
    struct by_heap heap;
    struct by_sim_parcel *spare[2]; /* small, large */
    struct by_departure *spare_departure;
    uint32_t node_count, direction_count, job_count;
    uint32_t endpoint_count; /* of a host: jobs and standbys */
    uint16_t jobs[BY_WORLD_JOBS_MAX];
    struct by_sim_node *nodes;
    struct by_sim_direction *directions;
    struct by_sim_stream *streams;
    struct by_world_counters counters;
    uint64_t spread_ns; /* maximum time for the control plane to notify a node */
    /* memory of processes that have ended; departures may still point into it */
    void **retired;
    size_t retired_count;
};

enum by_sim_event_kind {
    BY_EVENT_POLL,
    BY_EVENT_ARRIVE,
    BY_EVENT_ADDED,
    BY_EVENT_DEPART,
    BY_EVENT_TABLE,
    BY_EVENT_FREEZE,
    BY_EVENT_TELL,
    BY_EVENT_REPEAT,
    BY_EVENT_STREAM
};

/* What happened to a packet at the queue of its cable. */
enum by_cable_fate { BY_FATE_QUEUED, BY_FATE_MARKED, BY_FATE_DROPPED };

/* world.c: functions that resume.c uses. */
void by_sim_retire(struct by_world *world, void *memory); /* frees it with the world */
void by_sim_engine_load(struct by_world *world, uint32_t index);
unsigned by_sim_isa(void);

/* resume.c: calls that continue. */
void by_sim_on_table(struct by_world *world, uint32_t index);
void by_sim_on_freeze(struct by_world *world, uint32_t index);
void by_sim_on_tell(struct by_world *world, uint32_t index, struct by_sim_parcel *parcel);
void by_sim_on_repeat(struct by_world *world, uint32_t index);

/* standby.c: hosts that move to standby generations by themselves. */
/* Returns the endpoint for a packet of job index `job`: that of the job, or of a tree of rounds. */
uint32_t by_sim_standby_endpoint(const struct by_sim_node *node, uint32_t job, const uint8_t *packet);
/* Begins, continues and ends attempts; returns 1 when the host's endpoints must be stepped
 * again. */
int by_sim_standby_step(struct by_world *world, uint32_t index);
/* Returns the time of the next step that is due without a packet (ns). */
uint64_t by_sim_standby_deadline(const struct by_sim_node *node);
/* The controller has announced another generation. */
void by_sim_standby_end(struct by_sim_node *node);
void by_sim_standby_free(struct by_sim_node *node);

/* cable.c: parcels and cables. */
void by_parcel_put(struct by_world *world, struct by_sim_parcel *parcel);
struct by_sim_parcel *by_parcel_copy(struct by_world *world, const struct by_sim_parcel *from);
/* Returns the bytes that an action puts on a cable. */
struct by_sim_parcel *by_parcel_make(struct by_world *world, const struct by_tx *tx);
void by_parcels_push(struct by_parcels *list, struct by_sim_parcel *parcel);
struct by_sim_parcel *by_parcels_pop(struct by_parcels *list);
void by_parcels_clear(struct by_world *world, struct by_parcels *list);
/* Queues an action of `node`, or a packet that it relays, for the cable of the action's port. */
void by_cable_send(struct by_world *world, uint32_t node, const struct by_tx *tx,
                   struct by_sim_parcel *relayed);
/* The same for a packet of stream number `stream`; with `ecn` it may be marked. */
enum by_cable_fate by_cable_send_stream(struct by_world *world, uint32_t direction, uint32_t stream, int ecn);
void by_cable_on_depart(struct by_world *world, uint32_t direction);

/* stream.c: other traffic. */
void by_streams_make(struct by_world *world);
void by_streams_free(struct by_world *world);
void by_stream_on_event(struct by_world *world, uint32_t index);
/* Called when a packet of the stream leaves its queue; its last byte is sent at `at_ps`. */
void by_stream_on_sent(struct by_world *world, uint32_t index, uint64_t at_ps);

/* node.c: nodes. */
void by_sim_node_on_poll(struct by_world *world, uint32_t index, uint64_t at_ps);
void by_sim_node_on_arrive(struct by_world *world, uint32_t index, struct by_sim_parcel *parcel);
/* Called after by_sim_node_on_arrive, when the node has added the packet. */
void by_sim_node_on_added(struct by_world *world, uint32_t index, struct by_sim_parcel *parcel);
/* Resets the marks of all trees and reads the image again. */
void by_sim_node_mark(struct by_world *world, uint32_t index);
int by_sim_job_index(const struct by_world *world, uint16_t job);
void by_world_wake_ps(struct by_world *world, uint32_t node, uint64_t at_ps);

/* Converts nanoseconds to picoseconds; saturates at UINT64_MAX. */
static inline uint64_t by_sim_ps(uint64_t ns)
{
    return ns < UINT64_MAX / 1000 ? ns * 1000 : UINT64_MAX;
}

#endif

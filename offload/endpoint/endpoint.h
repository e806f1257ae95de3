/*
 * The host's side of the protocol for one job. It cuts calls into chunks, distributes them over the
 * job's trees by their shares, keeps windows, retransmits after a timeout, and checks and writes
 * results. One endpoint belongs to one thread. Pure: time is an argument, and output packets are
 * actions in the caller's memory; payloads point into the caller's send buffers (zero copy).
 */
#ifndef BY_ENDPOINT_ENDPOINT_H
#define BY_ENDPOINT_ENDPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "offload/base/errors.h"
#include "offload/table/image.h"
#include "offload/wire/packet.h"

struct by_endpoint;

struct by_endpoint_config {
    const uint8_t *image; /* the host's checked table image; must outlive the endpoint */
    size_t image_bytes;
    uint16_t job;
    /* Maximum chunks in flight over all trees; 0 = sum of the windows. A tree with none in flight
     * may always send one. */
    uint32_t inflight_max;
    uint8_t fitted; /* inflight_max fits the rate and the round trip of the paths: losses change no window */
    /* Queues of the paths mark packets before they drop any: losses leave three quarters of the
     * window, unless many chunks are lost for long and none is marked. */
    uint8_t marked;
    /* Chunks that a tree sends at a time while others of it are in flight, at most a quarter of its
     * window; 0: as many as have room. For transports to which a packet alone costs more. */
    uint32_t batch;
    uint64_t rto_min_ns; /* minimum timeout; each timeout sends one packet of its tree; 0 = 50 us */
    uint64_t rto_max_ns; /* 0 = 200 ms */
    uint64_t stall_ns;   /* a call without progress for this long ends with BY_ETIMEDOUT; 0 = 10 s */
    /* The same while a node reports that only ranks are missing; less than stall_ns: as long. */
    uint64_t absent_ns;
    unsigned isa;
    /* A random number, different for each endpoint. It distinguishes the chunks of this run from
     * those that an earlier run left on the nodes under the same generation (PROTOCOL.md,
     * "Sessions"). */
    uint32_t nonce;
    /* 1: keeps the data that calls need to continue in other trees when a node dies (resume.h): a
     * copy of the last window of each tree at the end of a call, and 2 x payload_max + 96 bytes for
     * each slot. Set it on all ranks or on none. */
    uint8_t resume;
    /* 1: the endpoint has only the tree that carries rounds of levelling (rounds.h), and
     * by_endpoint_size returns 0 if the table has none; 0: it has all other trees. */
    uint8_t rounds;
    /* No wire is between this rank and the node that receives its packets: contributions are sent
     * as direct ones (packet.h), except in a keyed job. */
    uint8_t shared;
};

/*
 * A collective call. Counts are elements. All ranks post the same calls in the same order.
 *
 *   allreduce       send[count] -> recv[count]
 *   reduce          send[count] -> recv[count] at root (recv may be NULL elsewhere)
 *   broadcast       root's send[count] -> recv[count] of the others
 *                   (root's recv may be NULL; else it gets a copy)
 *   allgather       send[count] of each -> recv[rank_count * count]
 *   reduce-scatter  send[rank_count * count] -> recv[count]
 *   barrier         nothing
 *
 * With `offsets` the shards of allgather and reduce-scatter are of unequal size: shard r is the
 * elements [offsets[r], offsets[r + 1]) of all. So these are rank_count + 1 ascending numbers from
 * 0 to `count`, and `count` is then the number of all elements together, not per rank. A shard may
 * be empty.
 *
 * In place: allreduce, reduce, broadcast's root: recv == send; allgather: send == recv + rank *
 * count; reduce-scatter: recv == send + rank * count, or offsets[rank] (a result may overwrite only
 * the input that produced it). Any other overlap is refused.
 */
struct by_call {
    uint8_t collective; /* enum by_collective */
    uint8_t op;         /* enum by_op; ignored by collectives that do not reduce */
    uint8_t dtype;      /* enum by_dtype */
    uint8_t mode;       /* enum by_mode */
    uint16_t root;
    uint64_t count;
    const uint64_t *offsets; /* NULL: equal shards of `count`. In use until the call has ended */
    /* 0, or a number for the larger call of which this one is a part. Parts of different calls do
     * not match, even if they have the same size. */
    uint64_t whole;
    const void *send;
    void *recv;
    /* Memory of by_endpoint_scratch() bytes, aligned to 8, which the endpoint uses until the call
     * has ended. If that size is 0 it is unused and may be NULL. */
    void *scratch;
};

/* A call of another rank, decoded from its optag. */
struct by_call_said {
    uint8_t known; /* 0: only `own` is set */
    uint8_t own;   /* 1: this rank's own call */
    uint8_t collective;
    uint16_t root;   /* rank; for broadcast and reduce */
    uint32_t number; /* number of calls before it */
    uint64_t count;  /* elements, as in by_call */
    uint8_t unequal; /* it has shards of unequal size */
};

/* The end of a call, for error texts: which node failed, where, and what it waited for. */
struct by_call_status {
    int error;     /* 0, BY_EAGAIN while running, BY_ETIMEDOUT, BY_EMISMATCH, ... */
    uint16_t tree; /* the tree in which it failed */
    uint32_t seq;
    uint16_t node;         /* node that is suspected or that objected, or BY_NODE_NONE */
    uint8_t wait_state;    /* enum by_wait_state from the last WAIT for that chunk; 0: no WAIT arrived, the
                              parent itself is silent */
    uint16_t missing_node; /* a node (switch or host) that `node` waits for, or BY_NODE_NONE */
    uint64_t missing;      /* bitmap at `node`, of its children 64 missing_set to 64 missing_set + 63 */
    uint8_t missing_set;
    struct by_err err;                /* for BY_EMISMATCH */
    struct by_call_said first, other; /* the calls of err.first and err.other */
    /* The call ended before the ranks had agreed on a session. With BY_ESTATE: without a session,
     * `node` refused many attempts to begin one; later, it has gone on with another run's session.
     */
    uint8_t session;
};

#define BY_ENDPOINT_COUNTER_LIST(X)                                                                          \
    X(tx, "contributions sent")                                                                              \
    X(retx, "contributions sent again")                                                                      \
    X(rx, "packets given to the endpoint")                                                                   \
    X(result, "results accepted")                                                                            \
    X(duplicate, "results of chunks already done")                                                           \
    X(wait, "WAIT packets")                                                                                  \
    X(err, "ERR packets")                                                                                    \
    X(drop_format, "dropped: not a banyan packet, version or tag")                                           \
    X(drop_entry, "dropped: another job, tree or generation")                                                \
    X(drop_ingress, "dropped: not from the tree's parent")                                                   \
    X(drop_match, "dropped: count, operator, type or call differ")                                           \
    X(drop_psum, "dropped: payload checksum")                                                                \
    X(drop_key, "dropped: not the tag of the job's key")                                                     \
    X(drop_witness, "dropped: leaves missing or doubled in a result")                                        \
    X(probe, "PROBE received: a node missed this rank's value")                                              \
    X(gap, "GAP sent: requests for results that were lost")                                                  \
    X(asked, "GAP received: the parent lacks chunks of this rank")                                           \
    X(session, "sessions agreed upon by all ranks: 0 or 1")                                                  \
    X(copied, "values and inputs copied from other ranks after a node failed")                               \
    X(gone_on, "times that calls continued in the trees of another generation")

struct by_endpoint_counters {
#define X(name, help) uint64_t name;
    BY_ENDPOINT_COUNTER_LIST(X)
#undef X
};

/* Returns the bytes (64-byte aligned) for `config`; 0 when the image has no such job or this node
 * is not a rank of it. */
size_t by_endpoint_size(const struct by_endpoint_config *config);
int by_endpoint_init(struct by_endpoint **endpoint, void *memory, size_t bytes,
                     const struct by_endpoint_config *config);

/* Returns 1 when the image has trees for `collective` (enum by_collective) with `root`, which is
 * ignored for collectives without a root; else, and for unknown values, 0. */
int by_endpoint_serves(const struct by_endpoint *endpoint, unsigned collective, uint32_t root);

/* The same for a call, whose fields and counts must be in range: an empty shard needs no trees. */
int by_endpoint_serves_call(const struct by_endpoint *endpoint, const struct by_call *call);

/* Returns 1 when, according to the table, every node of those trees can compute the call. If the
 * table does not list abilities, or is wrong, a node's objection ends the call (BY_EUNSUPPORTED).
 * Uses collective, op, dtype and mode, which must be in range. */
int by_endpoint_can(const struct by_endpoint *endpoint, const struct by_call *call);

/* Returns the error with which a post of `call` would be refused, before its buffers are checked:
 * 0, BY_EINVAL or BY_EUNSUPPORTED, with the field in `*field`. */
int by_endpoint_refusal(const struct by_endpoint *endpoint, const struct by_call *call, const char **field);
/* Returns the data chunks of such a call, if not refused, that `tree` carries; 0 for a tree that
 * takes no part in it. The scales of a sum in mode EXACT are not counted. */
uint64_t by_endpoint_chunks(const struct by_endpoint *endpoint, const struct by_call *call, uint16_t tree);

/* Returns the bytes of scratch memory that `call` requires: for sums of floats in mode EXACT, on
 * more than one rank, the elements as integers (twice the size of f32) and 8 bytes for each 256 of
 * them; else 0. Uses collective, op, dtype, mode, count and offsets, which must be in range. */
uint64_t by_endpoint_scratch(const struct by_endpoint *endpoint, const struct by_call *call);

/*
 * Queues a call; `*id` names it until by_endpoint_test returns its end. Returns:
 *   BY_EINVAL        an argument is wrong; the field is in `*field` when that is not NULL
 *   BY_EUNSUPPORTED  operator x type
 *   BY_EAGAIN        BY_CALLS_MAX calls are outstanding, or the call posted that many calls ago has
 *                    not been collected
 *   BY_ESTATE        after a fatal error
 * An error that ends a call is fatal: it ends all other calls with BY_EABORTED. BY_EINVAL and
 * BY_EUNSUPPORTED of this function are not fatal. Before the first call's chunks the ranks agree
 * on a session; when they cannot, or another run begins on the same tables, the oldest call ends
 * with BY_ESTATE (see by_call_status.session). The endpoint uses the buffers until the call has
 * ended. A packet still queued in the shell may point into them a little longer, but no receiver
 * needs it then.
 */
int by_endpoint_post(struct by_endpoint *endpoint, const struct by_call *call, uint32_t *id,
                     const char **field);
/* Returns BY_EAGAIN while the call runs, else its result, once: 0 or an error, with `status` (may
 * be NULL) filled; the id is then free. */
int by_endpoint_test(struct by_endpoint *endpoint, uint32_t id, struct by_call_status *status);
/*
 * The next steps report to the other hosts, on every tree, that rank `rank` of this host, which has
 * several, has met this fate (enum by_err_fate); their calls then end with BY_EIO. Once: a packet
 * may be lost, so call it again after some steps. Nothing is reported before a session has begun.
 */
void by_endpoint_tell_lost(struct by_endpoint *endpoint, uint32_t rank, uint8_t fate);
/* Changes the time after which a call without progress ends. */
void by_endpoint_set_stall(struct by_endpoint *endpoint, uint64_t stall_ns);
/* Ends all calls with BY_EABORTED. */
void by_endpoint_abort(struct by_endpoint *endpoint);

/*
 * Handles all received packets (returns rx_count, because handling one sends nothing by itself),
 * then sends what windows and timers allow, up to tx_capacity (>= 4). `now_ns` is monotonic. Call
 * it again at once while *tx_count == tx_capacity.
 */
uint32_t by_endpoint_step(struct by_endpoint *endpoint, uint64_t now_ns, const struct by_rx *rx,
                          uint32_t rx_count, struct by_tx *tx, uint32_t tx_capacity, uint32_t *tx_count);
/* Returns the latest time for the next step if no packet arrives (monotonic ns), UINT64_MAX when no
 * timer runs. The time may be too early; the step then only finds the correct one. A post also
 * requires a step at once. */
uint64_t by_endpoint_deadline(const struct by_endpoint *endpoint);
/* Returns 1 when the oldest chunk of some tree has waited for `wait_ns` or more without progress.
 * `status` then names the suspect, as if a call ended because of that chunk. Scans all trees. */
int by_endpoint_suspects(const struct by_endpoint *endpoint, uint64_t now_ns, uint64_t wait_ns,
                         struct by_call_status *status);
/* Returns 1 when the oldest chunk of the tree at `place` in the table has waited for `wait_ns` or
 * more without progress, and no node has reported of late that only ranks are missing: a part of
 * the tree has failed, or is slow. Returns 0 for a place beyond the last tree. */
int by_endpoint_is_cut(const struct by_endpoint *endpoint, uint32_t place, uint64_t now_ns, uint64_t wait_ns);
/* Returns the number of chunks sent and not yet answered. */
uint32_t by_endpoint_inflight(const struct by_endpoint *endpoint);
uint16_t by_endpoint_rank(const struct by_endpoint *endpoint);
uint16_t by_endpoint_rank_count(const struct by_endpoint *endpoint);
const struct by_endpoint_counters *by_endpoint_counters(const struct by_endpoint *endpoint);

#endif

/*
 * The host's side of the protocol for one job: cuts calls into chunks, stripes them over the job's
 * trees by their shares, keeps windows, sends again after a timeout, checks and writes results. One
 * endpoint belongs to one thread. Pure: time is an argument, packets out are actions in the
 * caller's memory; payloads point into the caller's send buffers (zero copy).
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
    /* Chunks in flight over all trees; 0 = sum of the windows. A tree with none in flight may
     * always send one. */
    uint32_t inflight_max;
    uint64_t rto_min_ns; /* least timeout; each sends one packet of its tree; 0 = 50 us */
    uint64_t rto_max_ns; /* 0 = 200 ms */
    uint64_t stall_ns;   /* without any progress for this long a call ends with BY_ETIMEDOUT; 0 = 10 s */
    unsigned isa;
    /* Random, drawn anew for each endpoint: by it a run tells its own chunks from those that an
     * earlier run left on the nodes under the same generation (PROTOCOL.md, "Sessions"). */
    uint32_t nonce;
    /* Keeps what the calls need to go on in other trees when a node dies (resume.h): a copy of the
     * last window of each tree at the end of a call, and 2 x payload_max + 96 bytes for each slot.
     * All ranks or none. */
    uint8_t resume;
    /* No wire is between this rank and who takes its packets: contributions leave as direct ones
     * (packet.h), but in a keyed job. */
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
 * elements [offsets[r], offsets[r + 1]) of all, so rank_count + 1 ascending numbers from 0 to
 * `count`, which then is all elements together, not those of a rank. A shard may be empty.
 *
 * In place: allreduce, reduce, broadcast's root: recv == send; allgather: send == recv + rank *
 * count; reduce-scatter: recv == send + rank * count, or offsets[rank] (a result may only overwrite
 * the input that made it). Any other overlap is refused.
 */
struct by_call {
    uint8_t collective; /* enum by_collective */
    uint8_t op;         /* enum by_op; ignored where nothing is reduced */
    uint8_t dtype;      /* enum by_dtype */
    uint8_t mode;       /* enum by_mode */
    uint16_t root;
    uint64_t count;
    const uint64_t *offsets; /* NULL: equal shards of `count`. The endpoint's until the call has ended */
    const void *send;
    void *recv;
    /* by_endpoint_scratch() bytes, aligned to 8, the endpoint's until the call has ended; not used,
     * and may be NULL, where that is 0. */
    void *scratch;
};

/* A call as another rank describes it, decoded from its optag. */
struct by_call_said {
    uint8_t known; /* if 0, only `own` is set */
    uint8_t own;   /* 1: this rank's own call */
    uint8_t collective;
    uint16_t root;   /* rank; of broadcast and reduce */
    uint32_t number; /* of calls before it */
    uint64_t count;  /* elements, as in by_call */
    uint8_t unequal; /* shards */
};

/* How a call ended, for error texts: which node failed, where, and what it waited for. */
struct by_call_status {
    int error;     /* 0, BY_EAGAIN while running, BY_ETIMEDOUT, BY_EMISMATCH, ... */
    uint16_t tree; /* where it failed */
    uint32_t seq;
    uint16_t node;         /* node that is suspected or that objected, or BY_NODE_NONE */
    uint8_t wait_state;    /* enum by_wait_state from the last WAIT for that chunk, 0 = none was heard: the
                              parent itself is silent */
    uint16_t missing_node; /* a node (switch or host) that `node` waits for, or BY_NODE_NONE */
    uint64_t missing;      /* bitmap at `node` */
    struct by_err err;     /* BY_EMISMATCH */
    struct by_call_said first, other; /* the calls of err.first and err.other */
    /* It ended before the ranks had agreed on a session. With BY_ESTATE `node`, or (BY_NODE_NONE,
     * or not known better) one above or below it, still holds chunks of an earlier run of this
     * generation: the tables need a new one. */
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
    X(session, "sessions agreed upon by all ranks: 0 or 1")                                                  \
    X(copied, "values and inputs that other ranks gave, after a node had died")                              \
    X(gone_on, "times that calls went on in the trees of another generation")

struct by_endpoint_counters {
#define X(name, help) uint64_t name;
    BY_ENDPOINT_COUNTER_LIST(X)
#undef X
};

/* Bytes (64-byte aligned) for `config`; 0 when the image has no such job or this node is not a rank
 * of it. */
size_t by_endpoint_size(const struct by_endpoint_config *config);
int by_endpoint_init(struct by_endpoint **endpoint, void *memory, size_t bytes,
                     const struct by_endpoint_config *config);

/* 1 when the image has trees for `collective` (enum by_collective) with `root`, ignored where there
 * is none; else, and for unknown values, 0. */
int by_endpoint_serves(const struct by_endpoint *endpoint, unsigned collective, uint32_t root);

/* The same for a call, whose words and counts must be in range: an empty shard needs no trees. */
int by_endpoint_serves_call(const struct by_endpoint *endpoint, const struct by_call *call);

/* 1 when every node of those trees can compute it, as far as the table says; where it does not, or
 * is wrong, a node's objection ends the call (BY_EUNSUPPORTED). Looks at collective, op, dtype and
 * mode, which must be in range. */
int by_endpoint_can(const struct by_endpoint *endpoint, const struct by_call *call);

/* What a post of `call` would be refused for, before its buffers are looked at: 0, BY_EINVAL or
 * BY_EUNSUPPORTED, with the field in `*field`. */
int by_endpoint_refusal(const struct by_endpoint *endpoint, const struct by_call *call, const char **field);
/* Chunks of data of such a call, not refused, that `tree` carries; 0 for one that has no part in
 * it. The scales of a sum in mode EXACT are not among them. */
uint64_t by_endpoint_chunks(const struct by_endpoint *endpoint, const struct by_call *call, uint16_t tree);

/* Bytes of scratch that `call` needs: for sums of floats in mode EXACT, on more than one rank, the
 * elements as integers (twice a f32's size) and 8 bytes for each 256 of them; else 0. Looks at
 * collective, op, dtype, mode, count and offsets, which must be in range. */
uint64_t by_endpoint_scratch(const struct by_endpoint *endpoint, const struct by_call *call);

/*
 * Queues a call; `*id` names it until it is collected by by_endpoint_test with an end. BY_EINVAL
 * (with the field in `*field` when not NULL), BY_EUNSUPPORTED (operator x type), BY_EAGAIN
 * (BY_CALLS_MAX calls are outstanding, or the one posted so many calls ago has not been collected),
 * BY_ESTATE after a fatal error: every end with an error but BY_EINVAL and BY_EUNSUPPORTED of this
 * function is one, and ends all other calls with BY_EABORTED. Before the first call's chunks the
 * ranks call the roll: when an earlier run has used these tables, the oldest call ends with
 * BY_ESTATE (see by_call_status.session). Buffers stay the endpoint's until the call has ended; a
 * packet that is still queued in the shell may point into them a little longer, but nobody needs it
 * then.
 */
int by_endpoint_post(struct by_endpoint *endpoint, const struct by_call *call, uint32_t *id,
                     const char **field);
/* BY_EAGAIN while it runs, else the call's result, once: 0 or an error, with `status` (may be NULL)
 * filled; the id is then free. */
int by_endpoint_test(struct by_endpoint *endpoint, uint32_t id, struct by_call_status *status);
/* Ends all calls with BY_EABORTED. */
void by_endpoint_abort(struct by_endpoint *endpoint);

/*
 * Takes all packets (returns rx_count: taking one sends nothing by itself), then sends what windows
 * and timers allow, up to tx_capacity (>= 4). `now_ns` is monotonic. Call again at once while
 * *tx_count == tx_capacity.
 */
uint32_t by_endpoint_step(struct by_endpoint *endpoint, uint64_t now_ns, const struct by_rx *rx,
                          uint32_t rx_count, struct by_tx *tx, uint32_t tx_capacity, uint32_t *tx_count);
/* When to step at the latest if no packet comes (monotonic ns), UINT64_MAX when no timer runs. It
 * may be early: then the step does nothing but find the right time. A post wants a step at once,
 * too. */
uint64_t by_endpoint_deadline(const struct by_endpoint *endpoint);
/* 1 when the oldest chunk of some tree has waited for `wait_ns` or more without progress: `status`
 * says who is suspected, as a call's that ends for it would. It looks at all trees. */
int by_endpoint_suspects(const struct by_endpoint *endpoint, uint64_t now_ns, uint64_t wait_ns,
                         struct by_call_status *status);
/* Chunks sent and not yet answered. */
uint32_t by_endpoint_inflight(const struct by_endpoint *endpoint);
uint16_t by_endpoint_rank(const struct by_endpoint *endpoint);
uint16_t by_endpoint_rank_count(const struct by_endpoint *endpoint);
const struct by_endpoint_counters *by_endpoint_counters(const struct by_endpoint *endpoint);

#endif

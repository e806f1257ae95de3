/*
 * The node's side of the protocol: slots, banks and the state machine of offload/wire/PROTOCOL.md,
 * for every tree in which this node is interior or root, and relays for trees that it only
 * forwards. One engine belongs to one thread; calls on the same engine must not run concurrently.
 * Pure: time is an argument, and output packets are actions in the caller's memory.
 *
 *   by_engine_size -> memory -> by_engine_init
 *   -> by_engine_stage(image) -> by_engine_commit -> by_engine_step ...
 */
#ifndef BY_ENGINE_ENGINE_H
#define BY_ENGINE_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "offload/table/image.h"
#include "offload/wire/packet.h"

struct by_engine;

struct by_engine_config {
    uint32_t slot_count_max;  /* slots (two banks each) of all entries together */
    uint16_t payload_max;     /* bytes; a bank is up to twice this (f16, bf16 accumulate in f32) */
    uint32_t image_bytes_max; /* size of each of the two table banks */
    uint32_t entry_count_max;
    uint32_t relay_count_max;
    uint64_t repair_interval_ns; /* minimum time between two repairs (sending up again, WAIT) of one bank */
    unsigned isa;                /* enum by_isa, from by_isa_best() */
    uint8_t alike; /* 1: a keyless result for several children is the same packet for all (child 255), so that
                      it can be replicated without changes; 0: each packet names its child */
    uint32_t meter_count_max; /* meters of shares (by_engine_meters); 0: shares are not enforced here */
    void *payload; /* separate memory for the payloads, 64-byte aligned, of by_engine_payload_size() bytes;
                      NULL: they follow the rest. With separate memory a shell can share payloads but not
                      tables and keys */
    uint16_t headroom; /* bytes before each payload, a multiple of 64, into which a shell may write while it
                          sends the payload */
    uint32_t spare_count; /* further payload buffers: a chunk whose bank is still being sent starts in one of
                             them. 0: such a chunk is dropped, and retransmitted (drop_busy) */
    uint32_t tx_max;      /* the greatest tx_capacity of the shell: an entry, or a pair, may have two children
                             fewer.      0: BY_CHILDREN_MAX + 2 */
    /* A node with several workers (offload/wire/stripe.h) has an engine for each: the number of
     * this one and how many there are, at most BY_WORKERS_MAX. 0 of 0: the only one. */
    uint16_t worker, worker_count;
};

/* Returns the number of meters that `ports` ports with the shares of `jobs` jobs require. */
static inline uint32_t by_engine_meters(uint32_t ports, uint32_t jobs)
{
    return 2 * ports * (jobs + 1);
}

/* Returns the number of jobs whose shares at `ports` ports fit `meters` meters. */
static inline uint32_t by_engine_shares(uint32_t meters, uint32_t ports)
{
    uint32_t most = ports > 0 ? meters / 2 / ports : 0;

    return most > BY_SHARES_MAX ? BY_SHARES_MAX : most > 0 ? most - 1 : 0;
}

/* X(name, "help"): counts since init; of packets unless stated otherwise. */
#define BY_ENGINE_COUNTER_LIST(X)                                                                            \
    X(rx, "packets given to the engine")                                                                     \
    X(contrib, "contributions added to a slot")                                                              \
    X(contrib_nodata, "contributions without data")                                                          \
    X(result, "results accepted from the parent")                                                            \
    X(complete, "chunks completed at this node as root")                                                     \
    X(up, "partial sums sent to the parent")                                                                 \
    X(tx_result, "results sent to children")                                                                 \
    X(relay, "packets relayed")                                                                              \
    X(repair_result, "results sent again to one child")                                                      \
    X(repair_up, "partial sums sent again")                                                                  \
    X(wait, "WAIT packets sent or passed on")                                                                \
    X(probe, "PROBE packets sent to missing children")                                                       \
    X(err, "ERR packets sent or passed on")                                                                  \
    X(gap, "GAP packets sent: requests for chunks that were lost on a hop")                                  \
    X(duplicate, "contributions already in the slot")                                                        \
    X(drop_format, "dropped: not a banyan packet")                                                           \
    X(drop_version, "dropped: another protocol version")                                                     \
    X(drop_tag, "dropped: header checksum")                                                                  \
    X(drop_entry, "dropped: unknown job or tree")                                                            \
    X(drop_gen, "dropped: another generation")                                                               \
    X(drop_child, "dropped: child index")                                                                    \
    X(drop_ingress, "dropped: wrong port or address for that child or parent")                               \
    X(drop_count, "dropped: element count or payload size")                                                  \
    X(drop_leaves, "dropped: a number of leaves that the child does not have")                               \
    X(drop_psum, "dropped: payload checksum")                                                                \
    X(drop_key, "dropped: not the tag of the job's key")                                                     \
    X(drop_stale, "dropped: of a chunk already served")                                                      \
    X(drop_window, "dropped: beyond the window")                                                             \
    X(drop_busy, "dropped: the bank is still being sent, and no spare buffer is free")                       \
    X(drop_state, "dropped: not expected in this state")                                                     \
    X(drop_poison, "dropped: of a poisoned chunk")                                                           \
    X(drop_share, "dropped: of a job far beyond its share of a port")                                        \
    X(drop_room, "dropped: of a job beyond its share of a port, and the queue is full")                      \
    X(spare, "chunks started in a spare buffer, because their bank was still being sent")                    \
    X(hold, "held back: of a job beyond its share of a port that others use")                                \
    X(elsewhere, "packets ignored: another worker has their chunk")                                          \
    X(poison, "chunks poisoned by ranks that disagree")                                                      \
    X(alarm_memory, "chunks poisoned because the memory of a slot changed")                                  \
    X(alarm_lost_state, "results for a chunk that is still missing contributions here")

struct by_engine_counters {
#define X(name, help) uint64_t name;
    BY_ENGINE_COUNTER_LIST(X)
#undef X
};

/* Returns the bytes of the memory for `config` (alignment 64), without config->payload; 0 when a
 * value is out of range. */
size_t by_engine_size(const struct by_engine_config *config);
/* Returns the bytes of the separate memory for payloads; 0 when a value is out of range. */
size_t by_engine_payload_size(const struct by_engine_config *config);
/* Builds an engine with an empty table in `memory` (64-byte aligned, `bytes` >= by_engine_size).
 * Returns 0, BY_EINVAL or BY_ENOMEM. */
int by_engine_init(struct by_engine **engine, void *memory, size_t bytes,
                   const struct by_engine_config *config);

/*
 * Copies an image into the idle table bank and checks it against the config and against running
 * entries: an entry with the (job, tree, gen) of an active one must have the same shape (slots,
 * window, payload, children, parent), else BY_EBUSY. The active table remains unchanged. Returns 0,
 * or the error of by_image_check with `fault` (may be NULL) filled. Each call replaces the staged
 * image, even when it fails.
 */
int by_engine_stage(struct by_engine *engine, const uint8_t *image, size_t bytes,
                    struct by_image_fault *fault);
/* Activates the staged table, between two packets. Entries of both tables keep their slots; new
 * entries start VOID. Returns BY_ESTATE when nothing is staged. */
int by_engine_commit(struct by_engine *engine);
/* Discards the staged image. */
void by_engine_abort(struct by_engine *engine);
/* Returns the active image (valid until the next commit), or NULL before the first. */
const uint8_t *by_engine_image(const struct by_engine *engine, size_t *bytes);
/* Returns the staged image, or NULL. */
const uint8_t *by_engine_staged(const struct by_engine *engine, size_t *bytes);

/*
 * Handles packets in order until all are done or the actions of the next one might not fit. Returns
 * how many `rx` were consumed and writes *tx_count actions. If a step stops inside a datagram of
 * several packets (offload/wire/datagram.h), the next step must begin with that datagram.
 * tx_capacity must be >= by_engine_tx_least(). `now_ns` is monotonic, or always 0 when there is no
 * clock; only rate limits depend on it. rx_count <= 65535.
 */
uint32_t by_engine_step(struct by_engine *engine, uint64_t now_ns, const struct by_rx *rx, uint32_t rx_count,
                        struct by_tx *tx, uint32_t tx_capacity, uint32_t *tx_count);
/* Returns the least tx_capacity for the active table: BY_CHILDREN_MAX + 2, or two more than the
 * children of its largest entry, or pair. */
uint32_t by_engine_tx_least(const struct by_engine *engine);
/* Sets how many more packets the shell can hold (BY_TX_HOLD); initially 0. Packets beyond that are
 * dropped and charged to no share. The shell calls this before each step. */
void by_engine_allow(struct by_engine *engine, uint32_t held);
/*
 * Releases the payload of `ref` for `count` by_tx, after the packets were sent or dropped. If a
 * bank has references left when its next chunk starts, two windows later, the chunk takes a spare
 * buffer. A shell that keeps references to at most spare_count payloads therefore never causes a
 * drop, however late it releases them; without spare buffers it must release within a window.
 */
void by_engine_release_all(struct by_engine *engine, uint32_t ref, uint32_t count);
/* The same for one by_tx. */
static inline void by_engine_release(struct by_engine *engine, uint32_t ref)
{
    by_engine_release_all(engine, ref, 1);
}

const struct by_engine_counters *by_engine_counters(const struct by_engine *engine);
/* Continues the counters of `old` in `engine`, which replaces it. */
void by_engine_inherit(struct by_engine *engine, const struct by_engine *old);

/*
 * Returns the workers of this node that must get the datagram `rx`, as bits: those that have chunks
 * of it, as far as the active table shows. A datagram without an entry (a relay's, or an unknown
 * one) is left to this worker; where the table enforces shares, it goes to the worker of its lane
 * among BY_LANES. Each engine ignores the packets of others, so a wrong answer (while the engines
 * of a node activate a table one after the other) costs a retransmission.
 */
uint64_t by_engine_workers(const struct by_engine *engine, const struct by_rx *rx);

/* The use of a job's share, summed over all ports. Bytes are those on the cable, with gaps and
 * preambles. Counts begin when the job gets a share at this node. */
struct by_engine_share {
    uint16_t job;   /* 0: all jobs without a share, at ports that have a rate */
    uint32_t share; /* parts of BY_SHARE_ONE */
    uint64_t rx_bytes, tx_bytes;
    uint64_t held, dropped; /* packets */
};
/* Reads share `index` of the active table; index 0 is the one for jobs without a share. Returns 0,
 * or BY_ENOENT beyond the last. */
int by_engine_share(const struct by_engine *engine, uint32_t index, struct by_engine_share *out);

/* The state of one bank, for telemetry and `show`. */
enum by_bank_state { BY_BANK_VOID = 1, BY_BANK_AGG, BY_BANK_UP, BY_BANK_DONE, BY_BANK_POISON };
struct by_bank_view {
    uint32_t seq;
    uint8_t state;
    uint64_t have;
    uint64_t missing;
    uint16_t nleaf;
    uint32_t refs;
};
/* Reads bank 0 or 1 of slot `slot` (< window) of entry `entry` (an index) of the active image.
 * Returns 0, BY_ENOENT, or BY_EAGAIN where another worker has the bank. */
int by_engine_bank(const struct by_engine *engine, uint32_t entry, uint32_t slot, unsigned bank,
                   struct by_bank_view *view);
/* Reads the oldest incomplete chunk (AGG or UP) of an entry, to find missing contributors. Returns
 * 0, or BY_ENOENT when all are complete. */
int by_engine_oldest(const struct by_engine *engine, uint32_t entry, struct by_bank_view *view);
const char *by_bank_state_name(unsigned state);

#endif

/*
 * The node's side of the protocol: slots, banks and the state machine of offload/wire/PROTOCOL.md,
 * for every tree in which this node is interior or root, and relays for those that it only
 * forwards. One engine belongs to one thread; no function here may run concurrently with another on
 * the same engine. Pure: time is an argument, packets out are actions in the caller's memory.
 *
 *   by_engine_size -> memory -> by_engine_init -> by_engine_stage(image) -> by_engine_commit ->
 * by_engine_step ...
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
    uint32_t image_bytes_max; /* each of the two table banks */
    uint32_t entry_count_max;
    uint32_t relay_count_max;
    uint64_t repair_interval_ns; /* least time between two repairs (resend upwards, WAIT) of one bank */
    unsigned isa;                /* enum by_isa, from by_isa_best() */
    uint8_t alike; /* 1: a result for several children is the same packet for all (child 255), if it has no
                      key, so that who replicates it need not look into it; 0: each names its child */
    uint32_t meter_count_max; /* meters of shares (by_engine_meters); 0: shares are not kept here */
    void *payload; /* memory for the payloads alone, 64-byte aligned, of by_engine_payload_size() bytes, or
                      NULL: they lie behind the rest. So they can be shared, and tables and keys not */
};

/* Meters that `ports` ports with the shares of `jobs` jobs need. */
static inline uint32_t by_engine_meters(uint32_t ports, uint32_t jobs)
{
    return 2 * ports * (jobs + 1);
}

/* The most jobs whose shares of `ports` ports `meters` meters keep. */
static inline uint32_t by_engine_shares(uint32_t meters, uint32_t ports)
{
    uint32_t most = ports > 0 ? meters / 2 / ports : 0;

    return most > BY_SHARES_MAX ? BY_SHARES_MAX : most > 0 ? most - 1 : 0;
}

/* X(name, "help"): counts since init; packets unless said otherwise. */
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
    X(duplicate, "contributions already in the slot")                                                        \
    X(drop_format, "dropped: not a banyan packet")                                                           \
    X(drop_version, "dropped: another protocol version")                                                     \
    X(drop_tag, "dropped: header checksum")                                                                  \
    X(drop_entry, "dropped: no such job or tree here")                                                       \
    X(drop_gen, "dropped: another generation")                                                               \
    X(drop_child, "dropped: child index")                                                                    \
    X(drop_ingress, "dropped: wrong port or address for that child or parent")                               \
    X(drop_count, "dropped: element count or payload size")                                                  \
    X(drop_leaves, "dropped: a number of leaves that the child does not have")                               \
    X(drop_psum, "dropped: payload checksum")                                                                \
    X(drop_key, "dropped: not the tag of the job's key")                                                     \
    X(drop_stale, "dropped: of a chunk already served")                                                      \
    X(drop_window, "dropped: beyond the window")                                                             \
    X(drop_busy, "dropped: the bank is still being sent")                                                    \
    X(drop_state, "dropped: not expected in this state")                                                     \
    X(drop_poison, "dropped: of a poisoned chunk")                                                           \
    X(drop_share, "dropped: of a job far beyond its share of a port")                                        \
    X(drop_room, "dropped: of a job beyond its share of a port, and too many wait already")                  \
    X(hold, "held back: of a job beyond its share of a port that others use")                                \
    X(poison, "chunks poisoned by ranks that disagree")                                                      \
    X(alarm_memory, "chunks poisoned because a slot was not as this node had left it")                       \
    X(alarm_lost_state, "results for a chunk that is still missing contributions here")

struct by_engine_counters {
#define X(name, help) uint64_t name;
    BY_ENGINE_COUNTER_LIST(X)
#undef X
};

/* Bytes and alignment (64) of the memory for `config`, but for config->payload; 0 when a value is
 * out of range. */
size_t by_engine_size(const struct by_engine_config *config);
/* Bytes of the memory for payloads alone; 0 when a value is out of range. */
size_t by_engine_payload_size(const struct by_engine_config *config);
/* Builds an engine with an empty table in `memory` (64-byte aligned, `bytes` >= by_engine_size). 0,
 * BY_EINVAL or BY_ENOMEM. */
int by_engine_init(struct by_engine **engine, void *memory, size_t bytes,
                   const struct by_engine_config *config);

/*
 * Copies an image into the idle table bank and checks it against the config and against running
 * entries: an entry with the (job, tree, gen) of an active one must keep its shape (slots, window,
 * payload, children, parent), else BY_EBUSY. The active table goes on unchanged. 0, or what
 * by_image_check returns, with `fault` (may be NULL) filled. Staging again replaces what was
 * staged, also when it fails.
 */
int by_engine_stage(struct by_engine *engine, const uint8_t *image, size_t bytes,
                    struct by_image_fault *fault);
/* Makes the staged table the active one, between two packets. Entries that stay keep their slots;
 * new ones start VOID. BY_ESTATE when nothing is staged. */
int by_engine_commit(struct by_engine *engine);
/* Forgets what is staged. */
void by_engine_abort(struct by_engine *engine);
/* The active image (valid until the next commit), or NULL before the first. */
const uint8_t *by_engine_image(const struct by_engine *engine, size_t *bytes);
/* The staged image, or NULL. */
const uint8_t *by_engine_staged(const struct by_engine *engine, size_t *bytes);

/*
 * Handles packets in order until all are done or the next one's actions might not fit. Returns how
 * many `rx` were consumed; writes *tx_count actions. Of a datagram of several packets
 * (offload/wire/datagram.h) a part may be: then the next step must begin with it. tx_capacity must
 * be >= BY_CHILDREN_MAX + 2. `now_ns` is monotonic, and 0 always means that there is no clock; only
 * rate limits depend on it. rx_count <= 65535.
 */
uint32_t by_engine_step(struct by_engine *engine, uint64_t now_ns, const struct by_rx *rx, uint32_t rx_count,
                        struct by_tx *tx, uint32_t tx_capacity, uint32_t *tx_count);
/* So many packets more may be held (BY_TX_HOLD), 0 to begin with: those beyond are dropped, and
 * charged to nobody. A shell says it before each step. */
void by_engine_allow(struct by_engine *engine, uint32_t held);
/*
 * The shell no longer uses the payload behind `ref` for one by_tx: it was sent, or dropped. A bank
 * with references left cannot be claimed by its next chunk, two windows later (drop_busy): a shell
 * that frees late must free within a window.
 */
void by_engine_release(struct by_engine *engine, uint32_t ref);

const struct by_engine_counters *by_engine_counters(const struct by_engine *engine);
/* `engine` takes the place of `old`: its counters go on from those. */
void by_engine_inherit(struct by_engine *engine, const struct by_engine *old);

/* What became of a job's share, at all ports together; bytes are those on cables, with gaps and
 * preambles. Counts since the job has had a share here. */
struct by_engine_share {
    uint16_t job;   /* 0: all jobs without a share, by ports that have a rate */
    uint32_t share; /* parts of BY_SHARE_ONE */
    uint64_t rx_bytes, tx_bytes;
    uint64_t held, dropped; /* packets */
};
/* Share `index` of the active table, the first is that of job 0. 0 or BY_ENOENT: there is none. */
int by_engine_share(const struct by_engine *engine, uint32_t index, struct by_engine_share *out);

/* State of one bank, for people (telemetry, show). */
enum by_bank_state { BY_BANK_VOID = 1, BY_BANK_AGG, BY_BANK_UP, BY_BANK_DONE, BY_BANK_POISON };
struct by_bank_view {
    uint32_t seq;
    uint8_t state;
    uint64_t have;
    uint64_t missing;
    uint16_t nleaf;
    uint32_t refs;
};
/* The bank of slot `slot` (< window) and bank 0 or 1 of entry index `entry` of the active image. 0
 * or BY_ENOENT. */
int by_engine_bank(const struct by_engine *engine, uint32_t entry, uint32_t slot, unsigned bank,
                   struct by_bank_view *view);
/* The oldest chunk of an entry that is incomplete (AGG or UP), for "who is missing". 0 or BY_ENOENT
 * when there is none. */
int by_engine_oldest(const struct by_engine *engine, uint32_t entry, struct by_bank_view *view);
const char *by_bank_state_name(unsigned state);

#endif

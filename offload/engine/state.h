/*
 * What an engine holds, for the files of this folder only: banks, the two tables, and the step in
 * hand. Written by load.c (tables) and by contrib.c, result.c and repair.c (banks); send.c turns
 * banks into packets.
 *
 * Memory, in this order and all of it given by the shell: the engine; for each of the two tables
 * the image and the structures built from it; the bitmap for the check of slots; what waits, and
 * the lists of free places; the banks' headers; the banks' payloads.
 */
#ifndef BY_ENGINE_STATE_H
#define BY_ENGINE_STATE_H

#include "offload/base/assert.h"
#include "offload/engine/engine.h"
#include "offload/reduce/reduce.h"
#include "offload/wire/seal.h"

#define BY_LINE 64u /* bytes of a cache line */

enum by_bank_flag {
    BY_BANK_DATA = 0x01,   /* a contribution, or the result, had data */
    BY_BANK_BROKEN = 0x02, /* its header has changed: no chunk is summed here any more (repair.c) */
    BY_BANK_CE = 0x04,     /* congestion was seen below */
    BY_BANK_PASSED = 0x08, /* the parent's ERR went to the children since the last sending upwards */
    BY_BANK_HEARD = 0x20,  /* a missing child has said for whom it waits (place.c) */
    BY_BANK_RESENT = 0x10, /* a contribution or the result came only because somebody sent again */
};

/* Flags that only space repairs. */
#define BY_BANK_SPACING (BY_BANK_PASSED | BY_BANK_HEARD)

/* WAITs that one sending upwards may bring down (packets): each ancestor that waits says so once,
 * the nearest first, so that a tree of this height is heard up to its root; a bound against a
 * parent that babbles. */
#define BY_WAITS_MAX 15u
/* For how long what a child said of a deeper place counts (ns): leaves ask at least five times in
 * it. */
#define BY_PLACE_NS UINT64_C(1000000000)

/*
 * One bank of a slot: what is known of the chunk `seq`. The payload lies elsewhere
 * (by_bank_partial, by_bank_result), so that a walk over states touches one line a bank.
 */
struct by_bank {
    uint64_t have;    /* children that have contributed */
    uint64_t want;    /* those of them that need the value back */
    uint64_t told;    /* children that got a WAIT or ERR since tick_ns */
    uint64_t tick_ns; /* when the current repair interval began */
    uint32_t seq;
    uint32_t optag;
    uint32_t witness;
    uint32_t psum;      /* of the accumulators (their guard), then of the sum, then of the result */
    uint32_t refs : 24; /* packets that still point into the payload */
    uint32_t waits : 8; /* WAITs of the parent passed down since the last sending upwards */
    uint16_t count;
    uint16_t nleaf;
    uint16_t seal; /* by_bank_seal_of what else is here, but for what only spaces repairs */
    uint8_t state; /* enum by_bank_state; 0: of no entry yet */
    uint8_t flags; /* enum by_bank_flag */
    union {
        struct {
            uint8_t op;
            uint8_t dtype;
            uint8_t mode;
            uint8_t claimer; /* the child whose contribution op, dtype, mode, count and optag are from */
        };
        uint32_t claimed; /* the four, for the seal */
    };
};
BY_STATIC_ASSERT(sizeof(struct by_bank) == BY_LINE, "a bank's header is one cache line");

/*
 * What a bank's header is sealed with after each change: all of it folded onto 16 bits, but for
 * told, tick_ns, refs, waits and BY_BANK_SPACING. One flipped bit in what is covered, or in the
 * seal, is always seen; of larger damage about 2^-16 is not.
 */
static inline uint16_t by_bank_seal_of(const struct by_bank *bank)
{
    uint64_t children = bank->have ^ bank->want;
    uint32_t word = (uint32_t)children ^ (uint32_t)(children >> 32);

    word ^= bank->seq ^ bank->optag ^ bank->witness ^ bank->psum ^ bank->claimed;
    word ^= (uint32_t)bank->nleaf << 16 | bank->count;
    word ^= (uint32_t)(bank->flags & ~BY_BANK_SPACING) << 8 | bank->state;
    return (uint16_t)(word ^ word >> 16);
}

static inline void by_bank_seal(struct by_bank *bank)
{
    bank->seal = by_bank_seal_of(bank);
}

static inline int by_bank_is_sealed(const struct by_bank *bank)
{
    return bank->seal == by_bank_seal_of(bank);
}

/*
 * What waits of a pair of children in mode DET (pairs.c), for the even and the odd one: the place
 * of its payload, + 1 so that 0 is none, and its psum. The high bytes of `place` are a seal of the
 * rest.
 */
struct by_pair {
    uint32_t psum[2];
    uint32_t place[2];
};
#define BY_PAIR_PLACE 0x00ffffffu
BY_STATIC_ASSERT(4ull * BY_WINDOW_MAX * (BY_CHILDREN_MAX / 2) < BY_PAIR_PLACE, "a place fits 24 bits");

/* Where a neighbour is: port << 32 | IPv4 address; BY_PORT_LOCAL << 32 for this host's endpoint. */
static inline uint64_t by_address(uint16_t port, uint32_t ip)
{
    return (uint64_t)port << 32 | (port == BY_PORT_LOCAL ? 0 : ip);
}

struct by_neighbour {
    uint64_t address;
    uint16_t udp_port;
    uint16_t nleaf_least; /* of a child: leaves that a value of it holds, as far as the table tells */
    uint16_t nleaf_span;  /* so many more it may hold */
};

struct by_entry {
    uint32_t key; /* job << 16 | tree */
    uint16_t gen;
    uint8_t child_count;
    uint8_t parent_child;
    uint32_t slot_base;
    uint32_t first_child; /* in by_table.child */
    uint32_t window;
    uint32_t slots; /* from slot_base on: window, or for mode DET so many times that as there are pairs */
    uint16_t payload_max;
    uint8_t window_log2;
    uint8_t has_parent;
    uint16_t nleaf; /* leaves below */
    uint8_t stays;  /* staged: the active table has it too, its banks go on */
    uint64_t all;   /* bitmap of all children */
    struct by_neighbour parent;
    uint8_t cover; /* enum by_cover: of the job's tags */
    /* of a keyed job; those of the children are in by_table.keys */
    struct by_hop_keys parent_keys;
    struct by_siphash_key payload_key;
};

struct by_relay {
    uint32_t key; /* job << 16 | tree */
    uint32_t src_ip;
    uint32_t dst_ip;
    uint16_t port;
    uint16_t from; /* as in the image */
};

/*
 * A queue that would be, were a cable so fast (meter.c): what came, less what has drained since. In
 * 10^-9 bytes, so that a rate in bytes a second is one in units of a nanosecond, and nothing is
 * ever rounded.
 */
struct by_meter {
    uint64_t level;
    uint64_t last_ns; /* up to then it has drained */
    uint64_t rate;    /* bytes a second; 0: unknown, nothing is metered */
    uint64_t depth;   /* what it takes at a time, and nobody waits */
};
enum by_direction { BY_DIRECTION_IN, BY_DIRECTION_OUT };

/* One of the two table banks: an image and what was built from it. Cells are open-addressed hashes:
 * index + 1, 0 is free. */
struct by_table {
    uint8_t *image;
    size_t bytes; /* 0: empty */
    struct by_entry *entry;
    struct by_neighbour *child;
    struct by_hop_keys *keys; /* with each of `child`, in entries of keyed jobs */
    struct by_relay *relay;
    uint32_t *entry_cell;
    uint32_t *relay_cell;
    uint32_t entry_count;
    uint32_t relay_count;
    uint32_t entry_shift; /* 32 - log2(cells) */
    uint32_t relay_shift;
    uint32_t fan; /* the most actions that one packet can cause */
    uint32_t port_count;
    uint16_t node;
    uint32_t *own_ip; /* by port */
    /* Shares (meter.c). For each port and direction one meter of the port, then one for each job
     * with a share. */
    uint8_t metered;      /* 0: no port has a rate, or no job a share, or this node has no room for them */
    uint8_t *share_of;    /* by job: its place in `share`, 0: it has none */
    uint32_t share_count; /* the first is that of all jobs without */
    struct by_engine_share *share;
    struct by_meter *meter;
};

struct by_engine {
    struct by_engine_config config;
    struct by_table table[2];
    struct by_table *active;
    struct by_table *staged; /* NULL: nothing */
    uint64_t *slot_used;     /* a bit for each slot: scratch of the check */
    struct by_pair *pair;    /* two for each slot (by_pair_of) */
    uint32_t *place;         /* four for each slot (by_places_of) */
    struct by_bank *bank;    /* 2 * slot + bank */
    uint8_t *payload;
    size_t payload_half;                   /* bytes from a bank's partial sum to its result */
    size_t payload_stride;                 /* bytes from a bank's payload to the next one's */
    const struct by_reducer *reducer[256]; /* op << 4 | dtype */
    struct by_engine_counters counters;
    /* A datagram of several packets in which the last step stopped, and how far it came; or NULL.
     */
    const uint8_t *datagram;
    uint32_t datagram_at;
    uint32_t held_most; /* packets that the shell can keep yet */
};

/* The step in hand: who handles, when, and the actions so far. */
struct by_step {
    struct by_engine *engine;
    const struct by_table *table;
    uint64_t now_ns;
    struct by_tx *tx;
    uint32_t tx_count;
};

/* A packet whose entry and generation are known. */
struct by_packet {
    struct by_header header; /* flags hold CE also when only the IP header said so */
    const uint8_t *payload;
    const struct by_entry *entry; /* NULL: nothing is left to do */
    uint64_t address;             /* by_address() of the sender */
    uint32_t bank;
    uint32_t pairs; /* of children whose values mode DET adds in their order; else 1: in that of arrival */
    uint16_t bytes; /* of the payload */
    uint8_t direct; /* the payload holds as it is: no psum to check it by */
    uint8_t apart;  /* the payload is its maker's memory, which may change meanwhile */
};

/* Two payloads a bank: a partial sum (in accumulators, up to twice a payload), and the result where
 * it came from a parent. */
static inline uint8_t *by_bank_partial(const struct by_engine *engine, uint32_t bank)
{
    return engine->payload + bank * engine->payload_stride;
}

/*
 * The result of a node below the root has the second half: packets may still point to the partial
 * sum when it comes. The accumulators, that may need both halves, have been narrowed into the first
 * by then.
 */
static inline uint8_t *by_bank_result(const struct by_engine *engine, const struct by_entry *entry,
                                      uint32_t bank)
{
    return by_bank_partial(engine, bank) + (entry->has_parent ? engine->payload_half : 0);
}

/* Bytes of the bank's sum or result as a payload; 0 without data. */
static inline uint16_t by_bank_bytes(const struct by_bank *bank)
{
    return bank->flags & BY_BANK_DATA
               ? (uint16_t)(bank->count *
                            by_dtype_bytes(by_reduction_dtype(bank->mode, bank->op, bank->dtype)))
               : 0;
}

/* BY_ERR_BYTES behind the two halves: the objection that poisoned the bank. */
static inline uint8_t *by_bank_objection(const struct by_engine *engine, uint32_t bank)
{
    return by_bank_partial(engine, bank) + 2 * engine->payload_half;
}

static inline uint32_t by_bank_index(const struct by_entry *entry, uint32_t seq)
{
    return 2 * (entry->slot_base + (seq & (entry->window - 1))) + (seq >> entry->window_log2 & 1);
}

/*
 * Places for values that wait in mode DET: two in each bank behind those of an entry's chunks.
 * by_places_of() lists the free ones, as many as *by_places_free() says.
 */
static inline uint32_t by_place_count(const struct by_entry *entry)
{
    return 4 * (entry->slots - entry->window);
}

static inline uint32_t *by_places_of(const struct by_engine *engine, const struct by_entry *entry)
{
    return engine->place + 4 * (size_t)(entry->slot_base + entry->window);
}

static inline uint32_t *by_places_free(const struct by_engine *engine, const struct by_entry *entry)
{
    return engine->place + 4 * (size_t)entry->slot_base;
}

static inline uint8_t *by_place_at(const struct by_engine *engine, const struct by_entry *entry,
                                   uint32_t place)
{
    return by_bank_partial(engine, 2 * (entry->slot_base + entry->window) + place / 2) +
           (place % 2 ? engine->payload_half : 0);
}

/* What waits of pair `pair` > 0 of the chunk in `bank`; those of a chunk lie one behind the other.
 */
static inline struct by_pair *by_pair_of(const struct by_engine *engine, const struct by_entry *entry,
                                         uint32_t bank, uint32_t pair)
{
    uint32_t each = by_image_det_depth(entry->child_count) - 1;

    return &engine->pair[2 * (size_t)(entry->slot_base + entry->window) +
                         (size_t)(bank - 2 * entry->slot_base) * each + pair - 1];
}

/* Pairs of children whose values mode DET adds in their order; 1: all are added as they come. */
static inline uint32_t by_pair_count(const struct by_entry *entry, unsigned mode, unsigned op, unsigned dtype)
{
    if (mode != BY_MODE_DET || !by_reduction_is_ordered(op, dtype))
        return 1;
    return by_image_det_depth(entry->child_count);
}

static inline uint32_t by_cell(uint32_t key, uint32_t shift)
{
    return key * 0x9e3779b1u >> shift;
}

static inline uint32_t by_relay_key(uint32_t key, uint32_t src_ip, uint32_t dst_ip)
{
    return ((key * 0x85ebca6bu ^ src_ip) * 0xc2b2ae35u ^ dst_ip) * 0x27d4eb2fu;
}

/* load.c */
const struct by_entry *by_entry_find(const struct by_table *table, uint32_t key);
const struct by_relay *by_relay_find(const struct by_table *table, uint32_t key, uint32_t src_ip,
                                     uint32_t dst_ip);

/* meter.c: what a table needs of its image, or BY_ELIMIT with `fault`; then, when it becomes
 * active, what the one before knew. */
int by_meters_build(const struct by_engine_config *config, struct by_table *table,
                    struct by_image_fault *fault);
void by_meters_inherit(struct by_table *table, const struct by_table *before);
/* A packet of `bytes`, of job `job`, came by rx->port, and what it makes leaves by `out`. 1 when it
 * may go on; else it is held or dropped, and counted. */
int by_meter_admits(struct by_step *step, const struct by_rx *rx, uint32_t rx_index, uint32_t bytes,
                    uint16_t job, uint16_t out);
/* What has waited at this port is marked: much does. */
int by_meter_marks(struct by_step *step, uint32_t port);
/* Charges a packet of `bytes`, or all that a step sends itself, to the ports by which they leave.
 */
void by_meter_sent(struct by_step *step, uint16_t job, uint16_t out, uint32_t bytes);
void by_meter_step(struct by_step *step);

/* contrib.c, result.c, repair.c: one packet each; they count what they drop. */
void by_contrib_take(struct by_step *step, const struct by_packet *packet);
void by_result_take(struct by_step *step, const struct by_packet *packet);
void by_wait_take(struct by_step *step, const struct by_packet *packet);
void by_err_take(struct by_step *step, const struct by_packet *packet);
void by_probe_take(struct by_step *step, const struct by_packet *packet);

/* What became of a payload: added, or kept for later; dropped, as its psum does not hold; or the
 * memory that it was to be added to is not as it was left. */
enum by_added { BY_ADDED = 1, BY_ADDED_NOT, BY_ADDED_TO_DAMAGE };

/* pairs.c: mode DET, for packets with pairs > 1. */
/* Everything free, for a new entry. */
void by_pairs_start(struct by_engine *engine, const struct by_entry *entry);
/* The payload of a child >= 2: added, or kept. */
enum by_added by_pairs_take(struct by_step *step, const struct by_packet *packet,
                            const struct by_reducer *reducer);
/* The packet's child is in `have` now: adds what can be added since. 0 when memory has changed. */
int by_pairs_advance(struct by_step *step, const struct by_packet *packet, const struct by_reducer *reducer);
/* Forgets what waits for the chunk in `bank`. */
void by_pairs_clear(struct by_engine *engine, const struct by_entry *entry, uint32_t bank);
void by_pair_seal(struct by_pair *pair);

/* 1 when the packet comes from child header.child of its entry; else counts why not, and 0. */
int by_packet_is_from_child(struct by_step *step, const struct by_packet *packet);
int by_packet_is_from_parent(const struct by_packet *packet);

/* verify.c: 1 when the packet has the tag that its entry's job wants, from the child or parent that
 * it names; else counts why not, and 0. */
int by_packet_is_genuine(struct by_step *step, const uint8_t *header, const struct by_packet *packet);

/* repair.c: a contribution that is in the bank already; the start of poison; a contribution to a
 * poisoned bank; one beyond the window; one behind it. */
void by_duplicate_answer(struct by_step *step, const struct by_packet *packet);
void by_poison_begin(struct by_step *step, const struct by_packet *packet, unsigned reason);
/* The memory of this node has changed under the chunk: it has no value any more. */
void by_memory_alarm(struct by_step *step, const struct by_packet *packet);
/* A packet to a bank whose seal does not hold. */
void by_broken_answer(struct by_step *step, const struct by_packet *packet);
void by_poison_answer(struct by_step *step, const struct by_packet *packet);
void by_window_answer(struct by_step *step, const struct by_packet *packet);
void by_stale_answer(struct by_step *step, const struct by_packet *packet);

/* Begins a new repair interval of the bank if the last one is over; 1 when it did. */
int by_interval_begin(struct by_step *step, struct by_bank *bank);

/* place.c: to the packet's child, who is missing; a question to the first child that is; an answer
 * to the parent's question, and a child's answer to ours: 0 when the bank has no use for it. */
void by_place_tell(struct by_step *step, const struct by_packet *packet);
void by_place_ask(struct by_step *step, const struct by_packet *packet);
int by_place_asked(struct by_step *step, const struct by_packet *packet);
int by_place_hear(struct by_step *step, const struct by_packet *packet, const struct by_wait *wait);

/* send.c */
void by_send_up(struct by_step *step, const struct by_entry *entry, uint32_t bank, uint8_t flags);
void by_send_result(struct by_step *step, const struct by_entry *entry, uint32_t bank, unsigned child);
void by_send_results(struct by_step *step, const struct by_entry *entry, uint32_t bank);
/* `type` with `bytes` of `payload` and otherwise the words of `like`, to a child, to all children
 * in `children`, or to the parent. */
void by_send_to_children(struct by_step *step, const struct by_entry *entry, const struct by_header *like,
                         unsigned type, uint64_t children, const uint8_t *payload, unsigned bytes);
void by_send_to_parent(struct by_step *step, const struct by_entry *entry, const struct by_header *like,
                       unsigned type, const uint8_t *payload, unsigned bytes);

#endif

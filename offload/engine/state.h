/*
 * The state of an engine, for the files of this folder only: banks, the two tables, and the current
 * step. load.c writes the tables; contrib.c, result.c and repair.c write the banks; send.c turns
 * banks into packets.
 *
 * The shell provides all memory. It contains, in this order: the engine; for each of the two tables
 * the image and the structures built from it; the bitmap for the check of slots; the waiting pairs
 * and the lists of free places; the banks' headers; with spare buffers the assignment of buffers to
 * banks; the payloads.
 */
#ifndef BY_ENGINE_STATE_H
#define BY_ENGINE_STATE_H

#include "offload/base/assert.h"
#include "offload/engine/engine.h"
#include "offload/reduce/reduce.h"
#include "offload/wire/seal.h"
#include "offload/wire/stripe.h"
#include "offload/wire/wire_inline.h"

#define BY_LINE 64u /* bytes of a cache line */

enum by_bank_flag {
    BY_BANK_DATA = 0x01,   /* a contribution, or the result, had data */
    BY_BANK_BROKEN = 0x02, /* the bank's header was damaged: it sums no chunks any more (repair.c) */
    BY_BANK_CE = 0x04,     /* congestion was observed below */
    BY_BANK_PASSED = 0x08, /* the parent's ERR went to the children since the last sending up */
    BY_BANK_HEARD = 0x20,  /* a missing child has reported the place that it waits for (place.c) */
    BY_BANK_START = 0x40,  /* the chunk is of its session's first two windows */
    BY_BANK_RESENT = 0x10, /* a contribution or the result arrived only because of a retransmission */
};

/* Flags that only space repairs in time. */
#define BY_BANK_SPACING (BY_BANK_PASSED | BY_BANK_HEARD)

/* The maximum number of WAITs that one sending up may bring down (packets). Each waiting ancestor
 * sends one, the nearest first, so a tree of this height reports up to its root. Also protects
 * against a parent that sends WAITs endlessly. */
#define BY_WAITS_MAX 15u
/* How long a child's report of a deeper place remains valid (ns): leaves ask at least five times in
 * this period. */
#define BY_PLACE_NS UINT64_C(1000000000)

/*
 * One bank of a slot: the state of the chunk `seq`. The payload is stored separately
 * (by_bank_partial, by_bank_result), so that a scan of the states touches one cache line per bank.
 */
struct by_bank {
    uint64_t have; /* children that have contributed */
    uint64_t want; /* those of `have` that need the value back */
    uint64_t told; /* children that got a WAIT or ERR since `tick` */
    /* Times in ns, mod 2^32, of which only differences count. */
    uint32_t tick; /* when the current repair interval began: the last sending up, if the sum was sent */
    uint32_t down; /* when the result was sent to the children */
    uint32_t seq;
    uint32_t optag;
    uint32_t witness;
    uint32_t psum;      /* first of the accumulators (their guard), then of the sum, then of the result */
    uint32_t refs : 24; /* packets that still point into the payload */
    uint32_t waits : 8; /* WAITs of the parent passed down since the last sending up */
    /* nleaf is not beside count: a compiler would read both at once, and such a read waits until
     * the store to one of them has left the processor */
    uint16_t count;
    uint16_t seal; /* by_bank_seal_of the other fields, except those that only space repairs */
    uint16_t nleaf;
    uint8_t state; /* enum by_bank_state; 0: belongs to no entry yet */
    uint8_t flags; /* enum by_bank_flag */
    union {
        struct {
            uint8_t op;
            uint8_t dtype;
            uint8_t mode;
            uint8_t claimer; /* the child that provided op, dtype, mode, count and optag */
        };
        uint32_t claimed; /* these four bytes together, for the seal */
    };
};
BY_STATIC_ASSERT(sizeof(struct by_bank) == BY_LINE, "a bank's header is one cache line");

/* Returns op, dtype, mode and claimer of a contribution as the word `claimed`. */
static inline uint32_t by_bank_claim_of(const struct by_header *header)
{
    const union {
        uint8_t byte[4];
        uint32_t word;
    } claim = {.byte = {header->op, header->dtype, header->mode, header->child}};

    return claim.word;
}

/*
 * Computes the seal of a bank's header, which is renewed after each change: all fields folded to 16
 * bits, except told, tick, down, refs, waits and BY_BANK_SPACING. It detects every single flipped
 * bit in the covered fields or in the seal, and all but about 2^-16 of larger damage.
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
 * The waiting payloads of a pair of children in mode DET (pairs.c), for the even and the odd child:
 * the place of the payload + 1 (0: none), and its psum. The high bytes of `place` are a seal of the
 * rest.
 */
struct by_pair {
    uint32_t psum[2];
    uint32_t place[2];
};
#define BY_PAIR_PLACE 0x00ffffffu
BY_STATIC_ASSERT(4ull * BY_WINDOW_MAX * (BY_CHILDREN_MAX / 2) < BY_PAIR_PLACE, "a place fits 24 bits");

/* The address of a neighbour: port << 32 | IPv4 address; BY_PORT_LOCAL << 32 for this host's
 * endpoint. */
static inline uint64_t by_address(uint16_t port, uint32_t ip)
{
    return (uint64_t)port << 32 | (port == BY_PORT_LOCAL ? 0 : ip);
}

/*
 * The stream of a neighbour's packets: a child's contributions, or the parent's results (gap.c). It
 * only decides when chunks are requested again; no chunk's state depends on it. All zeros: nothing
 * has arrived since the table became active.
 */
struct by_hop_stream {
    uint32_t next;     /* one after the latest chunk that arrived */
    uint32_t hole;     /* no earlier chunk is missing; == next: none is */
    uint32_t asked;    /* chunks before this one have been requested, if they were missing */
    uint32_t asked_at; /* time of the last request (ns mod 2^32) */
    uint32_t patience; /* time after which it is repeated (ns); 0: a repair interval */
    uint32_t late;     /* a missing chunk counts as lost after this many later ones and one more */
};

struct by_neighbour {
    uint64_t address;
    uint16_t udp_port;
    uint16_t nleaf_least; /* of a child: fewest leaves that its value may hold, as far as the table shows */
    uint16_t nleaf_span;  /* how many more leaves it may hold */
    struct by_hop_stream stream;
};

struct by_entry {
    uint32_t key; /* job << 16 | tree */
    uint16_t gen;
    uint16_t child_count;
    uint8_t parent_child;
    uint8_t sets; /* of 64 children beyond the first 64: by_set_of() */
    uint32_t slot_base;
    uint32_t first_child; /* in by_table.child */
    uint32_t window;
    uint32_t slots; /* slots from slot_base on: window, or for mode DET window times the number of pairs;
                       those of the sets follow */
    uint16_t payload_max;
    uint8_t window_log2;
    uint8_t has_parent;
    uint16_t nleaf; /* leaves below */
    uint8_t stays;  /* staged: the active table has this entry too, and its banks continue */
    uint8_t joined; /* this is a pair's tree down: its packets belong to the entry before it */
    /* Children of the entry's own tree. At the root of a pair child_count and `all` also include
     * those of the tree down, whose number is one higher. */
    uint16_t own_count;
    uint64_t all;  /* bitmap of all children of the first set */
    uint64_t mine; /* this worker's parts of the sequence numbers, as bits (by_chunk_is_mine) */
    uint8_t lane_first, lane_span, lane_shift; /* offload/wire/stripe.h */
    struct by_neighbour parent;
    uint8_t cover; /* enum by_cover: coverage of the job's tags */
    /* of a keyed job; the children's keys are in by_table.keys */
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
 * The length of a hypothetical queue on a cable of rate `rate` (meter.c): arrivals minus what has
 * drained since. In 10^-9 bytes, so that a rate in bytes per second equals units per nanosecond and
 * nothing is ever rounded.
 */
struct by_meter {
    uint64_t level;
    uint64_t last_ns; /* time up to which it has drained */
    uint64_t rate;    /* bytes per second; 0: unknown, not metered */
    uint64_t depth;   /* amount accepted without waiting */
};
enum by_direction { BY_DIRECTION_IN, BY_DIRECTION_OUT };

/* One of the two table banks: an image and the structures built from it. Cells are open-addressed
 * hashes of index + 1; 0 is free. */
struct by_table {
    uint8_t *image;
    size_t bytes; /* 0: empty */
    struct by_entry *entry;
    struct by_neighbour *child;
    struct by_hop_keys *keys; /* the keys for each of `child`, in entries of keyed jobs */
    struct by_relay *relay;
    uint32_t *entry_cell;
    uint32_t *relay_cell;
    uint32_t entry_count;
    uint32_t relay_count;
    uint32_t entry_shift; /* 32 - log2(cells) */
    uint32_t relay_shift;
    uint32_t fan; /* the maximum number of actions that one packet can cause */
    uint32_t port_count;
    uint16_t node;
    uint32_t *own_ip; /* indexed by port */
    /* Shares (meter.c): for each port and direction one meter of the port, then one for each job
     * with a share. */
    uint8_t metered; /* 0: no port has a rate, no job has a share, or this node lacks memory for the meters */
    uint8_t *share_of;    /* indexed by job: its index in `share`; 0: no share */
    uint32_t share_count; /* the first is for all jobs without a share */
    struct by_engine_share *share;
    struct by_meter *meter;
    /* Amounts, in units of a meter's level: from which on waiting packets at a port are marked, and
     * the most that may wait for a meter. */
    uint64_t meter_mark, meter_held;
};

struct by_engine {
    struct by_engine_config config;
    struct by_table table[2];
    struct by_table *active;
    struct by_table *staged; /* NULL: nothing is staged */
    uint64_t *slot_used;     /* one bit for each slot: scratch memory of the check */
    struct by_pair *pair;    /* two for each slot (by_pair_of) */
    uint32_t *place;         /* four for each slot (by_places_of) */
    struct by_bank *bank;    /* 2 * slot + bank */
    /* With spare buffers (spare.c), else NULL: the buffer of each bank, the holder of each buffer,
     * and the free buffers. Without, bank and buffer have the same index. */
    uint32_t *buffer_of;
    uint32_t *holder;
    uint32_t *spare;
    uint32_t spare_free; /* buffers in `spare` */
    uint8_t *payload;
    size_t payload_half;                   /* bytes from a buffer's partial sum to its result, */
    size_t payload_objection;              /* and to its objection */
    size_t payload_stride;                 /* bytes from a buffer to the next one */
    const struct by_reducer *reducer[256]; /* op << 4 | dtype */
    struct by_engine_counters counters;
    /* The datagram of several packets in which the last step stopped, and the position in it; or
     * NULL. */
    const uint8_t *datagram;
    uint32_t datagram_at;
    uint32_t held_most; /* how many more packets the shell can hold */
};

/* The current step: engine, time, and the actions so far. */
struct by_step {
    struct by_engine *engine;
    const struct by_table *table;
    const struct by_entry *entry; /* of the last packet, or NULL: most follow one of the same */
    uint64_t now_ns;
    struct by_tx *tx;
    uint32_t tx_count;
    uint32_t bank;    /* of the last packet, which has been prefetched; UINT32_MAX: none yet */
    uint16_t pairs;   /* of the last packet */
    uint8_t has_like; /* whether one with a header like `like`, its header, has its entry, bank and pairs */
    union by_header_words like;
};

/* A packet with its entry and generation resolved. */
struct by_packet {
    struct by_header header; /* the flags include CE even if only the IP header had it */
    const uint8_t *payload;
    const struct by_entry *entry; /* NULL: the packet is finished */
    uint64_t address;             /* by_address() of the sender */
    uint32_t bank;
    uint32_t child; /* the number of the child that it names, among all of the entry */
    uint16_t pairs; /* number of pairs of children whose values mode DET adds in order; 1: values are added in
                       order of arrival */
    uint16_t bytes; /* of the payload */
    uint8_t direct; /* the payload is trusted: there is no psum to check it */
    uint8_t apart;  /* the payload is in its producer's memory, where it may change */
    uint8_t follows; /* the header is like that of the packet before */
};

/* The buffer of a bank, when there are spare ones. An index that memory damage has put out of range
 * is not used; the guards of the payloads detect all other damage. */
static inline uint32_t by_spare_buffer(const struct by_engine *engine, uint32_t bank)
{
    uint32_t buffer = engine->buffer_of[bank];

    return buffer < 2 * engine->config.slot_count_max + engine->config.spare_count ? buffer : bank;
}

/* Returns the index of a bank's buffer, which is also the reference to its payload (by_tx.ref). */
static inline uint32_t by_bank_buffer(const struct by_engine *engine, uint32_t bank)
{
    return engine->buffer_of ? by_spare_buffer(engine, bank) : bank;
}

/* A bank has two payloads: a partial sum (in accumulators, up to twice a payload), and the result
 * if it came from a parent. */
static inline uint8_t *by_bank_partial(const struct by_engine *engine, uint32_t bank)
{
    return engine->payload + by_bank_buffer(engine, bank) * engine->payload_stride;
}

/*
 * The result of a node below the root is stored in the second half, because packets may still point
 * to the partial sum when it arrives. The accumulators may need both halves, but have been narrowed
 * into the first by then.
 */
static inline uint8_t *by_bank_result(const struct by_engine *engine, const struct by_entry *entry,
                                      uint32_t bank)
{
    return by_bank_partial(engine, bank) + (entry->has_parent ? engine->payload_half : 0);
}

/* Returns the bytes of the bank's sum or result as a payload; 0 without data. */
static inline uint16_t by_bank_bytes(const struct by_bank *bank)
{
    return bank->flags & BY_BANK_DATA
               ? (uint16_t)(bank->count *
                            by_dtype_bytes(by_reduction_dtype(bank->mode, bank->op, bank->dtype)))
               : 0;
}

/* Returns the objection that poisoned the bank: BY_ERR_BYTES behind the two halves. */
static inline uint8_t *by_bank_objection(const struct by_engine *engine, uint32_t bank)
{
    return by_bank_partial(engine, bank) + engine->payload_objection;
}

static inline uint32_t by_bank_index(const struct by_entry *entry, uint32_t seq)
{
    return 2 * (entry->slot_base + (seq & (entry->window - 1))) + (seq >> entry->window_log2 & 1);
}

/*
 * Places for waiting values in mode DET: two in each bank behind those of an entry's chunks.
 * by_places_of() lists the free ones; *by_places_free() is their number.
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

/* Returns the waiting payloads of pair `pair` > 0 of the chunk in `bank`; the pairs of a chunk are
 * adjacent. */
static inline struct by_pair *by_pair_of(const struct by_engine *engine, const struct by_entry *entry,
                                         uint32_t bank, uint32_t pair)
{
    uint32_t each = by_image_det_depth(entry->own_count) - 1;

    return &engine->pair[2 * (size_t)(entry->slot_base + entry->window) +
                         (size_t)(bank - 2 * entry->slot_base) * each + pair - 1];
}

/* Returns the number of pairs of children whose values mode DET adds in order; 1: all are added on
 * arrival. */
static inline uint32_t by_pair_count(const struct by_entry *entry, unsigned mode, unsigned op, unsigned dtype)
{
    if (mode != BY_MODE_DET || !by_reduction_is_ordered(op, dtype))
        return 1;
    return by_image_det_depth(entry->own_count);
}

/* Returns nonzero at the root of a pair of trees. */
static inline int by_entry_is_pair(const struct by_entry *entry)
{
    return entry->own_count < entry->child_count;
}

/* Returns nonzero if the bit of a child in the entry's bank does not identify it in its tree. */
static inline int by_entry_is_apart(const struct by_entry *entry)
{
    return by_entry_is_pair(entry) || entry->sets > 0;
}

/* Writes how `child` of the entry knows the packet: its tree, and its bit in that tree. */
static inline void by_child_address(const struct by_entry *entry, unsigned child, struct by_header *header)
{
    int down = child >= entry->own_count;

    header->tree = (uint16_t)(entry->key + (uint32_t)down);
    header->child = (uint8_t)((down ? child - entry->own_count : child) % BY_CHILDREN_MAX);
}

/*
 * An entry of more than 64 children has further banks for each chunk, which hold only bitmaps:
 * have, want and told of 64 children each, under a seal of their own.
 */
static inline uint32_t by_set_index(const struct by_entry *entry, uint32_t bank, uint32_t set)
{
    return set == 0 ? bank : bank + 2 * (entry->slots + (set - 1) * entry->window);
}

/* Returns the bank with the bits of `child` for the chunk in `bank`. */
static inline struct by_bank *by_set_of(const struct by_engine *engine, const struct by_entry *entry,
                                        uint32_t bank, uint32_t child)
{
    return &engine->bank[by_set_index(entry, bank, child / BY_CHILDREN_MAX)];
}

static inline uint64_t by_child_bit(uint32_t child)
{
    return UINT64_C(1) << child % BY_CHILDREN_MAX;
}

/* Returns the bitmap of all children of a set. */
static inline uint64_t by_set_all(const struct by_entry *entry, uint32_t set)
{
    uint32_t count = entry->child_count - set * BY_CHILDREN_MAX;

    return count >= BY_CHILDREN_MAX ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

/* Whether chunk `seq` of the entry is this worker's: bit i of `mine` is for the chunks whose number
 * shifted by lane_shift is i, modulo BY_LANES. */
static inline int by_chunk_is_mine(const struct by_entry *entry, uint32_t seq)
{
    return (int)((entry->mine >> (seq >> entry->lane_shift) % BY_LANES) & 1);
}

/* The same for bank `at` of the entry's chunks: 2 * slot + bank. */
static inline int by_bank_is_mine(const struct by_entry *entry, uint32_t at)
{
    return by_chunk_is_mine(entry, at / 2 + (at & 1) * entry->window);
}

static inline uint32_t by_cell(uint32_t key, uint32_t shift)
{
    return key * 0x9e3779b1u >> shift;
}

static inline uint32_t by_relay_key(uint32_t key, uint32_t src_ip, uint32_t dst_ip)
{
    return ((key * 0x85ebca6bu ^ src_ip) * 0xc2b2ae35u ^ dst_ip) * 0x27d4eb2fu;
}

/* spare.c: assigns a buffer to each bank at the start. by_spare_take gives a bank that is still
 * being sent a spare buffer; returns 0 when none is free. */
void by_spares_start(struct by_engine *engine);
int by_spare_take(struct by_engine *engine, uint32_t bank);

/* worker.c: assigns the entries of a staged table to workers. An entry that stays keeps its
 * lanes. */
void by_lanes_assign(const struct by_engine *engine, struct by_table *table);
/* A worker's part of what is divided among all: from first / whole to end / whole. */
struct by_lane_part {
    uint32_t first, end, whole;
};
/* Computes this worker's part of each share of the table, from the lanes of the job's entries and
 * relays; the part of share 0, for the ports, is that of all lanes. The parts of all workers add up
 * to the whole. */
void by_lanes_part(const struct by_engine *engine, const struct by_table *table, struct by_lane_part *parts);
/* Whether `rx` is addressed to this node. */
int by_address_is_own(const struct by_table *table, const struct by_rx *rx);

/* load.c */
const struct by_entry *by_entry_find(const struct by_table *table, uint32_t key);
const struct by_relay *by_relay_find(const struct by_table *table, uint32_t key, uint32_t src_ip,
                                     uint32_t dst_ip);

/* meter.c: builds the meters of a table from its image, or returns BY_ELIMIT with `fault`;
 * by_meters_inherit then copies the levels of the previous table at activation. */
int by_meters_build(const struct by_engine *engine, struct by_table *table, struct by_image_fault *fault);
void by_meters_inherit(struct by_table *table, const struct by_table *before);
/* Checks a received packet of `bytes` bytes of job `job` that causes output by port `out`. Returns
 * 1 when it may be handled now; else it is held or dropped, and counted. */
int by_meter_admits(struct by_step *step, const struct by_rx *rx, uint32_t rx_index, uint32_t bytes,
                    uint16_t job, uint16_t out);
/* Returns 1 when packets that waited at this port must be marked, because many wait. */
int by_meter_marks(struct by_step *step, uint32_t port);
/* Charge a packet of `bytes` bytes, or all packets that a step sends itself, to their output
 * ports. */
void by_meter_sent(struct by_step *step, uint16_t job, uint16_t out, uint32_t bytes);
void by_meter_step(struct by_step *step);

/* contrib.c, result.c, repair.c: handle one packet each and count what they drop. by_contrib_take
 * has `count` packets at hand and returns how many it has handled: more than one if they belong to
 * one chunk. */
uint32_t by_contrib_take(struct by_step *step, const struct by_packet *packet, uint32_t count);
void by_result_take(struct by_step *step, const struct by_packet *packet);
void by_wait_take(struct by_step *step, const struct by_packet *packet);
void by_err_take(struct by_step *step, const struct by_packet *packet);
void by_probe_take(struct by_step *step, const struct by_packet *packet);
void by_gap_take(struct by_step *step, const struct by_packet *packet);

/* gap.c: enters an accepted packet, or a duplicate of one, in the stream of its child, or of the
 * parent, and requests what counts as lost. */
void by_stream_enter(struct by_step *step, const struct by_packet *packet);
/* Enters chunk `seq` if it is the next one of a stream without a hole; else returns 0. */
static inline int by_stream_follow(struct by_hop_stream *stream, uint32_t seq)
{
    if (__builtin_expect(stream->next != seq || stream->hole != seq, 0))
        return 0;
    stream->next = stream->hole = seq + 1;
    return 1;
}

/* The outcome for a payload: added or kept for later; dropped because of a wrong psum; or not added
 * because the memory of the sum has changed. */
enum by_added { BY_ADDED = 1, BY_ADDED_NOT, BY_ADDED_TO_DAMAGE };

/* pairs.c: mode DET, for packets with pairs > 1. */
/* Frees all places, for a new entry. */
void by_pairs_start(struct by_engine *engine, const struct by_entry *entry);
/*
 * Adds, in their order, all values that can be added when *count packets of a run have arrived:
 * theirs, and those that waited for them. *summed receives the children whose values need not wait.
 * Lowers *count to the packets before the first with a wrong psum, but not to 0: BY_ADDED_NOT means
 * that the psum of the only one is wrong, and that nothing has changed.
 */
enum by_added by_pairs_sum(struct by_step *step, const struct by_packet *packet, uint32_t *count,
                           const struct by_reducer *reducer, uint64_t *summed);
/* Checks the packet's value, and keeps it until its pair can be added. */
enum by_added by_pairs_keep(struct by_step *step, const struct by_packet *packet,
                            const struct by_reducer *reducer);
/* Discards the waiting payloads of the chunk in `bank`. */
void by_pairs_clear(struct by_engine *engine, const struct by_entry *entry, uint32_t bank);
void by_pair_seal(struct by_pair *pair);

/* verify.c: returns 1 when the packet comes from child header.child of its entry; else counts the
 * reason and returns 0. */
int by_packet_is_from_child(struct by_step *step, const struct by_packet *packet);
int by_packet_is_from_parent(const struct by_packet *packet);

/*
 * sets.c: the bitmaps of all children of an entry for the chunk in `bank`, and whether a chunk may
 * take it.
 *
 * Returns 1 when chunk `seq`, with these flags, may take the bank from the chunk that it holds.
 * Within a session that is the bank's next chunk, and only when the old one is no longer needed: no
 * correct leaf can be two windows ahead of a chunk that is still summed. The first chunks of a
 * session (START) take the bank from any older chunk, whatever its state: its session is over
 * (PROTOCOL.md, "Sessions").
 */
int by_bank_is_free(const struct by_bank *bank, const struct by_entry *entry, uint32_t seq, unsigned flags);
/* Begins a chunk that no child has contributed to. */
void by_sets_claim(struct by_engine *engine, const struct by_entry *entry, uint32_t bank);
/* Marks no child (0) or every child (UINT64_MAX) as told. */
void by_sets_tell(struct by_engine *engine, const struct by_entry *entry, uint32_t bank, uint64_t told);
/* Returns 1 if all children have contributed; if no child needs the value back; if the bank's seals
 * are right. */
int by_sets_complete(const struct by_engine *engine, const struct by_entry *entry, uint32_t bank);
int by_sets_want_nothing(const struct by_engine *engine, const struct by_entry *entry, uint32_t bank);
int by_sets_are_sealed(const struct by_engine *engine, const struct by_entry *entry, uint32_t bank);
/* Returns 1 if `child` is the only one told, or the lowest one that has contributed. */
int by_sets_told_only(const struct by_engine *engine, const struct by_entry *entry, uint32_t bank,
                      uint32_t child);
int by_sets_is_lowest(const struct by_engine *engine, const struct by_entry *entry, uint32_t bank,
                      uint32_t child);

/* verify.c: returns 1 when the packet has the tag that its entry's job requires, from the child or
 * parent that it names; else counts the reason and returns 0. */
int by_packet_is_genuine(struct by_step *step, const uint8_t *header, const struct by_packet *packet);

/* repair.c: answers a duplicate contribution; begins poison; answers a contribution to a poisoned
 * bank, one beyond the window, and one behind it. */
void by_duplicate_answer(struct by_step *step, const struct by_packet *packet);
void by_poison_begin(struct by_step *step, const struct by_packet *packet, unsigned reason);
/* Poisons a chunk after this node's memory has changed: the chunk has no value any more. */
void by_memory_alarm(struct by_step *step, const struct by_packet *packet);
/* Answers a packet to a bank with a wrong seal. */
void by_broken_answer(struct by_step *step, const struct by_packet *packet);
void by_poison_answer(struct by_step *step, const struct by_packet *packet);
void by_window_answer(struct by_step *step, const struct by_packet *packet);
void by_stale_answer(struct by_step *step, const struct by_packet *packet);

/* Returns 1 when a WAIT, ERR or GAP with a sound payload of `bytes` bytes is from the parent, 0
 * when it is from a child. Else counts the reason, and returns -1. */
int by_packet_origin(struct by_step *step, const struct by_packet *packet, unsigned bytes);
/* Returns 1 when the stored payload of a bank in UP or DONE, if any, still has its psum. */
int by_bank_holds(const struct by_engine *engine, const struct by_entry *entry, uint32_t bank);

/* Sends a bank's sum to the parent, or its result to a child, once more. */
void by_bank_repeat_up(struct by_step *step, const struct by_entry *entry, uint32_t bank);
void by_bank_repeat_result(struct by_step *step, const struct by_entry *entry, uint32_t bank, uint32_t child);

/* Begins a new repair interval of the bank if the last one is over; returns 1 if it did. */
int by_interval_begin(struct by_step *step, const struct by_entry *entry, uint32_t index);

/* place.c: reports the missing nodes to the packet's child; asks the first missing child; answers
 * the parent's question; and records a child's answer (0 when the bank does not need it). */
void by_place_tell(struct by_step *step, const struct by_packet *packet);
void by_place_ask(struct by_step *step, const struct by_packet *packet);
int by_place_asked(struct by_step *step, const struct by_packet *packet);
int by_place_hear(struct by_step *step, const struct by_packet *packet, const struct by_wait *wait);

/* send.c */
void by_send_up(struct by_step *step, const struct by_entry *entry, uint32_t bank, uint8_t flags);
void by_send_result(struct by_step *step, const struct by_entry *entry, uint32_t bank, unsigned child);
void by_send_results(struct by_step *step, const struct by_entry *entry, uint32_t bank);
/* Send a packet of `type` with `bytes` of `payload` and the other fields of `like` to one child, to
 * all children but `except`, or to the parent. */
#define BY_CHILD_NONE UINT32_MAX
void by_send_to_child(struct by_step *step, const struct by_entry *entry, const struct by_header *like,
                      unsigned type, uint32_t child, const uint8_t *payload, unsigned bytes);
void by_send_to_children(struct by_step *step, const struct by_entry *entry, const struct by_header *like,
                         unsigned type, uint32_t except, const uint8_t *payload, unsigned bytes);
void by_send_to_parent(struct by_step *step, const struct by_entry *entry, const struct by_header *like,
                       unsigned type, const uint8_t *payload, unsigned bytes);

#endif

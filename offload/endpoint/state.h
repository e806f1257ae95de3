/*
 * What an endpoint remembers, shared by the sources of this folder and by nobody else. A *lane* is
 * one tree as this rank uses it: its window of flights, its timer and its cursor over the calls. A
 * *flight* is one chunk of a window. A *group* is the set of lanes that serve a collective (and,
 * where one rank owns a shard or is the root, that rank). A *trace* is what a chunk was, for
 * resuming calls in other trees. Everything lies in one block of the caller's memory; links between
 * records are indices.
 */
#ifndef BY_ENDPOINT_STATE_H
#define BY_ENDPOINT_STATE_H

#include "offload/base/assert.h"
#include "offload/base/bytes.h"
#include "offload/endpoint/endpoint.h"
#include "offload/reduce/reduce.h"
#include "offload/wire/seal.h"

#define BY_LANE_NONE   0xffffu
#define BY_FLIGHT_NONE 0xffffu
#define BY_GROUP_NONE  0xffffffffu
/* The roll call that opens the session, behind the users' calls. */
#define BY_CALL_SESSION BY_CALLS_MAX

/* Answers to later transmissions of a lane that make an earlier one count as lost: the least
 * number, and how far it grows on a path that reorders (RFC 8985, section 3.3.2, has the same idea
 * in time). */
#define BY_LOSS_THRESHOLD     2u
#define BY_LOSS_THRESHOLD_MAX 32u
/* Flights that go again when the first answer after a timeout comes (count). */
#define BY_REVIVE_COUNT 8u
/* A lane's credit for one chunk, and the least that a lane gains at each turn: the bound on turns
 * without a chunk. */
#define BY_CREDIT_ONE 64u
/* Doublings of a timeout (count). */
#define BY_BACKOFF_MAX 16u

/* Congestion window (chunks over all lanes): at the start, at the least, and what a round trip
 * without a mark adds to it: the same for every job, whatever its windows, so that those that share
 * a cable come to the same share of it. */
#define BY_WINDOW_START 64u
#define BY_WINDOW_FLOOR 8u
#define BY_WINDOW_STEP  2u

/* Groups: two for all ranks, one for each rooted collective, then one for each rooted collective
 * and rank. */
enum by_group_index { BY_GROUP_ALLREDUCE, BY_GROUP_BARRIER, BY_GROUP_ANY, BY_GROUP_RANK = 6 };
#define BY_ROOTED_COUNT 4u /* reduce-scatter, allgather, broadcast, reduce */

struct by_ep_group {
    uint64_t share_total; /* 0: no lane */
    uint32_t share_max;
    uint32_t last_lane; /* takes the remainder of a split */
};

/* What all nodes of some trees can do, as struct by_image_leaf has it; all bits where tables do not
 * say. */
struct by_abilities {
    uint16_t ops, dtypes;
    uint8_t modes;
};

enum by_flight_flag {
    BY_FLIGHT_SENT = 0x01,    /* waits for its result; else the slot is free */
    BY_FLIGHT_RETX = 0x02,    /* was sent more than once: gives no round-trip time (Karn) */
    BY_FLIGHT_NODATA = 0x04,  /* contributes nothing */
    BY_FLIGHT_ACKONLY = 0x08, /* needs no value back */
    BY_FLIGHT_TIMED = 0x10,   /* was last sent because of a timeout, or revived after one */
    BY_FLIGHT_HELD = 0x20     /* a node that has this rank's value waits for others, it said since then */
};

struct by_flight {
    uint64_t sent_ns;    /* last transmission */
    uint64_t first_ns;   /* first transmission */
    const uint8_t *send; /* the input, NULL with NODATA */
    uint8_t *recv;       /* where the value goes; NULL: nowhere, or it is there already */
    uint32_t seq;
    uint32_t order; /* number of the last transmission on this lane */
    uint32_t psum;
    uint16_t bytes;
    uint16_t count;        /* elements */
    uint16_t older, newer; /* list of this lane's flights by transmission */
    uint8_t call;          /* index into calls */
    uint8_t flags;         /* enum by_flight_flag */
};

/* Who gets a chunk's value, and so who can give it to whom when a node has died (retain.c). */
enum by_chunk_kind {
    BY_CHUNK_ALL = 1, /* every rank */
    BY_CHUNK_FROM,    /* every rank, from its owner */
    BY_CHUNK_TO,      /* its owner alone */
    BY_CHUNK_EMPTY    /* there is none */
};

/*
 * What a chunk was that this rank has sent, of the last two windows: with the chunk that has taken
 * its slot a rank cannot know yet whether the others have the result of the one before. `held`: its
 * value, which is good when it is done; of a chunk that goes to another rank this rank's input.
 */
struct by_trace {
    const uint8_t *held; /* NULL: nothing that others could need */
    uint64_t at;         /* bytes [at, at + bytes) of the call's shard, as on the wire */
    uint32_t seq;
    uint32_t call, shard;
    uint16_t bytes, held_bytes;
    uint16_t owner;  /* rank; of FROM and TO */
    uint16_t added;  /* ranks whose inputs lie added up in `keep`, when the owner makes the sum itself */
    uint8_t kind;    /* enum by_chunk_kind; 0: no chunk yet */
    uint8_t session; /* of the roll call, which is behind no call */
    uint8_t kept;    /* the call has ended: `held` is a copy */
};

/* Bytes [from, to) of a call's shard that are done: made in trees of an earlier generation
 * (done.c). */
struct by_done {
    uint64_t from, to;
    uint32_t call, shard;
};

/* Where a lane stands in the sequence of calls: bytes [at, end) of `shard` of call number `call`
 * are not yet sent. */
struct by_ep_cursor {
    uint32_t call;
    uint32_t shard, shard_end;
    uint64_t at, end;
    uint8_t active;  /* there is a chunk to send */
    uint8_t word;    /* it is the call's word: empty, and behind no shard */
    uint8_t entered; /* `shard` and `shard_end` belong to `call` */
};

/* What a WAIT said about the oldest chunk. */
struct by_lane_wait {
    uint64_t heard_ns;
    uint32_t seq;
    uint8_t heard;
    struct by_wait wait;
};

struct by_ep_lane {
    /* from the image */
    uint16_t tree, parent_port, parent_node, parent_udp_port;
    uint32_t parent_ip;
    uint32_t share;
    uint16_t payload_max, collectives, owner;
    uint8_t parent_child;
    struct by_hop_keys keys;        /* shared with the parent, in a keyed job */
    uint32_t mask;                  /* window - 1 */
    uint32_t hop_first, hop_end;    /* records of this tree in HOP lie in this range */
    uint64_t before[BY_GROUP_RANK]; /* shares of the lanes before this one: allreduce, barrier, the four
                                       rooted collectives */
    /* the window */
    struct by_flight *flights;
    struct by_trace *traces; /* of two windows; NULL without config.resume */
    uint8_t *keep;           /* a place for each slot: what is held of ended calls, sums in the making */
    uint32_t base;           /* oldest chunk without a result (== next: none) */
    uint32_t next;           /* chunk to send next */
    uint32_t inflight;
    uint32_t order;        /* transmissions so far */
    uint32_t order_heard;  /* the latest one that a result answered for sure */
    uint32_t threshold;    /* answers to later ones that make a flight count as lost */
    uint32_t revive;       /* flights to send again after a timeout, */
    uint32_t revive_order; /* if their last transmission is before this one */
    uint16_t oldest, newest;
    struct by_ep_cursor cursor;
    uint32_t credit, quantum;
    uint16_t ready_next, urgent_next; /* rings of lanes that may send */
    uint8_t in_ready, in_urgent;
    /* the timer */
    uint64_t timer_ns;                /* runs since */
    uint64_t timer_tick;              /* filed in the wheel: when it will be looked at */
    uint16_t timer_next, timer_prior; /* in its list; the first one's prior is BY_LANE_NONE */
    uint16_t timer_list;              /* 0: not filed */
    uint64_t heard_ns;                /* the last result accepted: progress */
    uint8_t backoff;
    uint8_t probes;                 /* timeouts of the oldest chunk: odd ones send PROBE when it is old */
    uint32_t srtt, rttvar;          /* ns x 8 and ns x 4 (RFC 6298 in integers); srtt 0: no sample yet */
    uint32_t rtt_low, rtt_low_next; /* least round trip of this and the last epoch, ns */
    uint64_t rtt_epoch_ns;
    struct by_lane_wait wait;
    struct by_err hint; /* the last ERR that may heal; hint.reason == 0: none */
};

struct by_ep_ring {
    uint16_t head, tail; /* lane indices; BY_LANE_NONE: empty */
};

/* Timers of lanes: a list for each of the next ticks, then for each of coarser and coarser ones
 * (timer.c). */
#define BY_WHEEL_LEVELS 3u
#define BY_WHEEL_BITS   6u
#define BY_WHEEL_SLOTS  (1u << BY_WHEEL_BITS)
/* log2 of a tick in ns: 4.1 us, a small part of the least timeout; the levels span 262 us, 17 ms
 * and 1.07 s.
 */
#define BY_WHEEL_TICK 12u
struct by_wheel {
    uint64_t tick;                                       /* the last one that was looked at */
    uint64_t used[BY_WHEEL_LEVELS];                      /* bits: lists with a lane */
    uint16_t head[BY_WHEEL_LEVELS * BY_WHEEL_SLOTS + 1]; /* the last list: lanes whose tick has come */
};

enum by_session_phase { BY_SESSION_NONE, BY_SESSION_ASKED, BY_SESSION_AGREED };

enum by_call_phase { BY_CALL_FREE, BY_CALL_RUNNING, BY_CALL_ENDED };

/* A sum of floats in mode EXACT is two calls: its number is the second's (exact.c). */
enum by_call_part { BY_PART_ALL, BY_PART_SCALES, BY_PART_INTEGERS };

struct by_call_state {
    struct by_call call;
    uint32_t number;
    uint32_t optag;
    uint8_t phase;
    uint8_t part;            /* enum by_call_part */
    uint8_t gated;           /* waits for the scales */
    uint8_t op, dtype, mode; /* on the wire */
    uint8_t shift;           /* log2 of the wire element's bytes */
    uint8_t unit_bytes;      /* of one element of the user on the wire */
    uint64_t told_count;     /* what its optag says of its counts */
    uint64_t remaining;      /* chunks without a result, over all lanes */
    uint64_t weight_max;
    uint8_t word; /* none of its chunks are on the first lane, so that an empty one goes there */
    struct by_call_status status;
};

struct by_endpoint {
    struct by_endpoint_config config; /* with its defaults filled in */
    struct by_endpoint_counters counters;
    uint16_t gen, rank, rank_count, lane_count, tree_limit, node;
    uint8_t cover;                  /* enum by_cover: of the job's tags */
    const struct by_reducer *words; /* psum in this processor's vectors */
    struct by_siphash_key payload_key;
    uint32_t tag;     /* of this rank's leaf */
    uint32_t witness; /* of a whole result */
    uint32_t group_count;
    uint32_t first;                                /* the lane on which every call has a chunk */
    uint32_t orphans[BY_ROOTED_COUNT];             /* ranks without a group of their own */
    struct by_abilities able[BY_COLLECTIVE_COUNT]; /* of the trees that may have part in one */
    uint32_t inflight;
    uint32_t window; /* congestion window */
    uint32_t window_max;
    uint32_t window_floor;
    uint32_t window_goal;   /* below it the window doubles each round, from it on it grows by steps */
    uint32_t window_earned; /* results since the last step up */
    uint64_t window_cut_ns; /* no second cut before this */
    uint64_t deadline_ns;   /* no timer is looked at earlier */
    struct by_wheel wheel;
    uint64_t now_ns;
    uint32_t posted; /* number of the next call */
    int dead;        /* the error that ended this endpoint, or 0 */
    struct by_ep_ring ready, urgent;
    struct by_ep_lane *lanes;
    struct by_ep_group *groups;
    uint16_t *lane_of_tree;
    uint32_t *roll;        /* a nonce for each rank: before the answer this one's alone, then all */
    uint32_t session_salt; /* in all optags of calls, once agreed */
    uint8_t session_phase; /* enum by_session_phase */
    uint8_t frozen;        /* takes and sends nothing more: its calls are being carried over */
    uint8_t level;         /* and every rank has the results that this one has */
    uint8_t parting;       /* last words still to send */
    uint16_t parting_node; /* what they tell: who holds another run's chunks */
    struct by_done *done;  /* sorted by call, shard and place; no two touch */
    uint32_t done_count, done_room;
    struct by_call_state calls[BY_CALLS_MAX + 1];
};

BY_STATIC_ASSERT((BY_CALLS_MAX & (BY_CALLS_MAX - 1)) == 0, "a call's slot is its number masked");
BY_STATIC_ASSERT(BY_CALL_SESSION <= UINT8_MAX, "a flight names its call in 8 bits");
BY_STATIC_ASSERT(BY_WINDOW_MAX < BY_FLIGHT_NONE, "flights are linked by 16-bit indices");
BY_STATIC_ASSERT(BY_TREES_MAX < BY_LANE_NONE, "lanes are linked by 16-bit indices");

static inline struct by_call_state *by_call_at(struct by_endpoint *endpoint, uint32_t number)
{
    return &endpoint->calls[number & (BY_CALLS_MAX - 1)];
}

static inline struct by_trace *by_trace_at(const struct by_ep_lane *lane, uint32_t seq)
{
    return &lane->traces[seq & (2 * lane->mask + 1)];
}

/* This rank has the result of a chunk that it has sent. */
static inline int by_lane_is_done(const struct by_ep_lane *lane, uint32_t seq)
{
    const struct by_flight *flight = &lane->flights[seq & lane->mask];

    return (int32_t)(seq - lane->base) < 0 || !(flight->flags & BY_FLIGHT_SENT) || flight->seq != seq;
}

static inline struct by_flight *by_flight_at(const struct by_ep_lane *lane, uint32_t seq)
{
    return &lane->flights[seq & lane->mask];
}

/* Elements of a shard, and of all shards before it; a call without shards is one. */
static inline uint64_t by_call_shard_count(const struct by_call *call, uint32_t shard)
{
    return call->offsets != NULL ? call->offsets[shard + 1] - call->offsets[shard] : call->count;
}

static inline uint64_t by_call_shard_first(const struct by_call *call, uint32_t shard)
{
    return call->offsets != NULL ? call->offsets[shard] : shard * call->count;
}

/* The same on the wire, in bytes. */
static inline uint64_t by_shard_bytes(const struct by_call_state *state, uint32_t shard)
{
    return by_call_shard_count(&state->call, shard) * state->unit_bytes;
}

static inline uint64_t by_shard_at(const struct by_call_state *state, uint32_t shard)
{
    return by_call_shard_first(&state->call, shard) * state->unit_bytes;
}

/* Since when the lane's oldest chunk has waited without any progress of the lane (ns). */
static inline uint64_t by_lane_waits_since(const struct by_ep_lane *lane)
{
    uint64_t first_ns = by_flight_at(lane, lane->base)->first_ns;

    return first_ns > lane->heard_ns ? first_ns : lane->heard_ns;
}

/* A word sums nothing, so that no node on its way needs what the mode takes. */
static inline uint8_t by_flight_mode(const struct by_flight *flight, const struct by_call_state *call)
{
    return flight->count > 0 ? call->mode : BY_MODE_FAST;
}

/* share.c: which lanes serve what, and how a length is split over them. */
void by_share_init(struct by_endpoint *endpoint);
/* Index of the rooted collective in groups and `before`, or -1. */
int by_share_rooted(unsigned collective);
/* The group for `collective` and shard or root `rank`; BY_GROUP_NONE when no lane serves it. */
uint32_t by_share_group(const struct by_endpoint *endpoint, unsigned collective, uint32_t rank);
int by_share_member(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, uint32_t group);
/* The bytes [*start, *end) of `total` that `lane` carries as a member of `group`. */
void by_share_segment(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, uint32_t group,
                      uint64_t total, uint64_t *start, uint64_t *end);
/* floor(a * b / c) for b <= c, exact. */
uint64_t by_share_scale(uint64_t a, uint64_t b, uint64_t c);
/* Weight of `lane` in a call that uses `group` for `shards` shards: chunks relative to those of
 * other lanes.
 */
uint64_t by_share_weight(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, uint32_t group,
                         uint32_t shards);

/* able.c: what the nodes of the trees can compute, by LEAF records from `leaf_first` on. After
 * by_share_init.
 */
void by_able_init(struct by_endpoint *endpoint, uint32_t leaf_first);

/*
 * cursor.c: the walk of a lane over calls, shards and chunks. The first lane has at least one chunk
 * of every call, be it an empty one (the call's *word*): there ranks in different calls meet,
 * whatever lanes these use.
 */
/* Counts the call's chunks on all lanes and finds its greatest weight. */
void by_cursor_plan(struct by_endpoint *endpoint, struct by_call_state *call);
/* Moves to the next chunk if the cursor is not on one; 1 when there is one. */
int by_cursor_seek(struct by_endpoint *endpoint, struct by_ep_lane *lane);
/* Takes the chunk under the cursor: fills the flight's buffers, sizes and flags. The cursor must be
 * active.
 */
void by_cursor_take(struct by_endpoint *endpoint, struct by_ep_lane *lane, struct by_flight *flight);

/* The first of the call's shards, from *shard on, of which the lane carries bytes [*from, *to),
 * done or not. 1 when there is one. */
int by_cursor_segment(const struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                      const struct by_call_state *call, uint32_t *shard, uint64_t *from, uint64_t *to);

/* retain.c: what a chunk was, and what others may still need of it. All do nothing without
 * config.resume. */
/* Bytes that a lane of this window needs for each payload byte's worth: traces and places. */
size_t by_retain_traces(uint32_t window);
size_t by_retain_places(uint32_t window, uint32_t payload_max);
/* A chunk, lane->next, is about to go out for the first time. */
void by_retain_note(struct by_endpoint *endpoint, struct by_ep_lane *lane, const struct by_flight *flight,
                    uint32_t shard, uint64_t at);
/* The call's buffers go back to the user: copies what others may still need. */
void by_retain_save(struct by_endpoint *endpoint, const struct by_call_state *call);
/* What this rank can give of a chunk: the value, or its input to a chunk for its owner; NULL:
 * nothing. */
const uint8_t *by_retain_held(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, uint32_t seq,
                              uint32_t *bytes);
/* The place of a chunk. */
uint8_t *by_retain_at(const struct by_ep_lane *lane, uint32_t seq);

/* done.c: what earlier generations have done of the calls that run. */
void by_done_add(struct by_endpoint *endpoint, const struct by_done *done);
/* 0: nothing of that call is done, nor of any after it. */
int by_done_any(const struct by_endpoint *endpoint, uint32_t call);
/* The first bytes [*start, *stop) of [at, end) that are not done; 0: all are. */
int by_done_gap(const struct by_endpoint *endpoint, uint32_t call, uint32_t shard, uint64_t at, uint64_t end,
                uint64_t *start, uint64_t *stop);

/* session.c: the roll call before the first chunk of a call. */
/* Puts the roll call on the first lane, if none was; the endpoint has lanes. */
void by_session_begin(struct by_endpoint *endpoint);
/* The roll is complete: opens all lanes, or ends the endpoint, when it is of another run. */
void by_session_end(struct by_endpoint *endpoint);
/* `node` holds chunks of an earlier run: ends the endpoint. `err` as heard, or NULL. */
void by_session_refuse(struct by_endpoint *endpoint, uint16_t node, const struct by_err *err);
/* What an endpoint that was refused still has to say; at most BY_PARTING_COUNT packets. */
#define BY_PARTING_COUNT 2u
uint32_t by_session_part(struct by_endpoint *endpoint, struct by_tx *tx);

/* guess.c: what call a side of a disagreement is in; `own` is this rank's. */
void by_guess(const struct by_endpoint *endpoint, const struct by_call_state *own,
              const struct by_err_side *side, struct by_call_said *said);

/* exact.c: sums of floats in mode EXACT. */
/* 1 when `call`, of any words in range, is one. */
int by_exact_is_for(const struct by_call *call);
/* The call that agrees on its scales; where its integers lie in the scratch. */
struct by_call by_exact_scales(const struct by_endpoint *endpoint, const struct by_call *call);
uint8_t *by_exact_integers(const struct by_endpoint *endpoint, const struct by_call *call);
/* Makes what a chunk of either part sends, at flight->send. */
void by_exact_fill(struct by_endpoint *endpoint, const struct by_call_state *state,
                   const struct by_flight *flight);
/* Writes a result's integers as floats. */
void by_exact_deliver(const struct by_endpoint *endpoint, const struct by_call_state *state,
                      const struct by_flight *flight, const uint8_t *payload);

/* call.c: ends of calls. */
/* The last result of `call` is in. */
void by_call_finish(struct by_endpoint *endpoint, struct by_call_state *call);
/* Ends `call` with `error`, all others that run with BY_EABORTED, and the endpoint. `status` says
 * who and what. For the roll call it is the oldest call of the user that ends so. */
void by_call_fail(struct by_endpoint *endpoint, struct by_call_state *call, int error,
                  const struct by_call_status *status);

/* pace.c: round-trip times, timeouts, congestion window. */
void by_pace_init(struct by_endpoint *endpoint, uint64_t windows);
void by_pace_sample(struct by_ep_lane *lane, uint64_t now_ns, uint64_t rtt_ns);
void by_pace_accepted(struct by_endpoint *endpoint);
enum by_pace_event { BY_PACE_LOSS = 1, BY_PACE_MARK, BY_PACE_SILENCE };
void by_pace_cut(struct by_endpoint *endpoint, const struct by_ep_lane *lane, enum by_pace_event event);
/* The lane's current timeout, with its backoff. */
uint64_t by_pace_timeout(const struct by_endpoint *endpoint, const struct by_ep_lane *lane);

/* timer.c: when lanes want to be looked at; each call takes O(1), whatever the number of lanes. */
void by_timer_init(struct by_endpoint *endpoint);
/* When the lane's oldest chunk goes again, or its call ends for want of progress. The lane has
 * chunks in flight. */
uint64_t by_timer_due(const struct by_endpoint *endpoint, const struct by_ep_lane *lane);
/* The lane will be looked at when it is due, at most one tick later, perhaps earlier; so will the
 * endpoint.
 */
void by_timer_set(struct by_endpoint *endpoint, struct by_ep_lane *lane);
/* Takes a lane out whose time to be looked at has come; NULL: none. */
struct by_ep_lane *by_timer_pop(struct by_endpoint *endpoint);
/* When there may be one; UINT64_MAX: never. */
uint64_t by_timer_next(const struct by_endpoint *endpoint);

/* send.c: what goes out. */
void by_send_ready(struct by_endpoint *endpoint,
                   struct by_ep_lane *lane); /* files the lane in the rings that it belongs to */
void by_send_unlink(struct by_ep_lane *lane, struct by_flight *flight); /* from the list of transmissions */
/* A packet to the lane's parent with the job's tag. The payload is in tx->small already when it has
 * no other place; the header learns whether it is keyed. */
void by_send_fill(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, struct by_header *header,
                  uint16_t bytes, const uint8_t *payload, struct by_tx *tx);
uint32_t by_send_run(struct by_endpoint *endpoint, struct by_tx *tx, uint32_t capacity);

/* accept.c: what comes in. */
void by_accept(struct by_endpoint *endpoint, const struct by_rx *rx);
/* Writes a value, as it travels, to where the chunk wants it; `payload` may be NULL where it wants
 * none. */
void by_accept_deliver(const struct by_endpoint *endpoint, const struct by_flight *flight,
                       const uint8_t *payload);
/* The chunk is done: frees its flight, and ends its call with the last one. */
void by_accept_done(struct by_endpoint *endpoint, struct by_ep_lane *lane, struct by_flight *flight);

/* suspect.c: who is to blame. */
void by_suspect_hear(struct by_endpoint *endpoint, struct by_ep_lane *lane, uint32_t seq,
                     const struct by_wait *wait);
void by_suspect_hops(struct by_endpoint *endpoint,
                     struct by_ep_lane *lane); /* finds the lane's HOP records */
void by_suspect_fill(const struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                     struct by_call_status *status);
/* The parent of this host's own entry when that is the lane's parent, else the lane's parent;
 * BY_NODE_NONE for the root itself. */
uint16_t by_suspect_upper(const struct by_endpoint *endpoint, const struct by_ep_lane *lane);

#endif

/*
 * The state of an endpoint, shared only by the sources of this folder.
 *   lane    one tree as this rank uses it: its window of flights, its timer and its cursor over
 *           the calls
 *   flight  one chunk of a window
 *   group   the set of lanes that serve a collective (and, if one rank owns a shard or is the root,
 *           that rank)
 *   trace   a record of a sent chunk, for resuming calls in other trees
 * Everything is in one block of the caller's memory; links between records are indices.
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
/* The indices of the roll call and of the openings that begin the session, after the users'
 * calls. */
#define BY_CALL_SESSION BY_CALLS_MAX
#define BY_CALL_OPENING (BY_CALLS_MAX + 1u)

/* A transmission counts as lost after this many answers to later transmissions of its lane: the
 * initial number, and the limit to which it grows on a path that reorders (RFC 8985, section 3.3.2,
 * has the same idea in time). */
#define BY_LOSS_THRESHOLD     1u
#define BY_LOSS_THRESHOLD_MAX 32u
/* Flights retransmitted on the first answer after a timeout (count). */
#define BY_REVIVE_COUNT 8u
/* The credit that a lane needs to send a chunk. A lane's share of the turns is rounded down to a
 * multiple of 1 / BY_CREDIT_ONE. */
#define BY_CREDIT_ONE (1u << 16)
/* Maximum doublings of a timeout (count). */
#define BY_BACKOFF_MAX 30u

/* Congestion window (chunks over all lanes): its initial value, its minimum, and its increase per
 * round trip without a mark. They are the same for every job, whatever its windows, so that jobs
 * that share a cable converge to equal shares of it. */
#define BY_WINDOW_START 64u
#define BY_WINDOW_FLOOR 8u
#define BY_WINDOW_STEP  2u

/* Groups: three for all ranks, one for each rooted collective, then one for each rooted collective
 * and rank. */
enum by_group_index { BY_GROUP_ALLREDUCE, BY_GROUP_BARRIER, BY_GROUP_SHORT, BY_GROUP_ANY, BY_GROUP_RANK = 7 };
#define BY_ROOTED_COUNT 4u /* reduce-scatter, allgather, broadcast, reduce */

struct by_ep_group {
    uint64_t share_total; /* 0: no lane */
    uint32_t share_max;
    uint32_t last_lane; /* receives the remainder of a split */
};

/* Abilities that all nodes of some trees have, as in struct by_image_leaf; all bits are set if
 * tables do not list them. */
struct by_abilities {
    uint16_t ops, dtypes;
    uint8_t modes;
};

enum by_flight_flag {
    BY_FLIGHT_SENT = 0x01,    /* waits for its result; otherwise the slot is free */
    BY_FLIGHT_RETX = 0x02,    /* was sent more than once: gives no round-trip sample (Karn) */
    BY_FLIGHT_NODATA = 0x04,  /* contributes nothing */
    BY_FLIGHT_ACKONLY = 0x08, /* needs no value back */
    BY_FLIGHT_TIMED = 0x10,   /* last sent because of a timeout, or revived after one */
    BY_FLIGHT_HELD = 0x20, /* since then a node reported that it has this rank's value and waits for others */
    BY_FLIGHT_ASKED = 0x40 /* the parent lacks it: first in the lane's list, to be sent at once */
};

struct by_flight {
    uint64_t sent_ns;    /* last transmission */
    uint64_t first_ns;   /* first transmission */
    const uint8_t *send; /* the input; NULL with NODATA */
    uint8_t *recv;       /* destination of the value; NULL: none, or the value is there already */
    uint32_t seq;
    uint32_t order; /* number of the last transmission on this lane */
    uint32_t psum;
    uint16_t bytes;
    uint16_t count;        /* elements */
    uint16_t older, newer; /* list of this lane's flights in order of transmission */
    uint8_t call;          /* index into calls */
    uint8_t flags;         /* enum by_flight_flag */
};

/* Which ranks get a chunk's value, and so can copy it to others when a node has died (retain.c). */
enum by_chunk_kind {
    BY_CHUNK_ALL = 1, /* every rank */
    BY_CHUNK_FROM,    /* every rank, from the chunk's owner */
    BY_CHUNK_TO,      /* only the chunk's owner */
    BY_CHUNK_EMPTY    /* the chunk has no value */
};

/*
 * A record of a chunk that this rank has sent, for the last two windows: the chunk that reuses a
 * slot does not yet show whether the other ranks have the result of the slot's previous chunk.
 * `held`: the chunk's value, valid once the chunk is done; for a chunk whose value goes to another
 * rank, this rank's input.
 */
struct by_trace {
    const uint8_t *held; /* NULL: others cannot need it */
    uint64_t at;         /* bytes [at, at + bytes) of the call's shard, as on the wire */
    uint32_t seq;
    uint32_t call, shard;
    uint16_t bytes, held_bytes;
    uint16_t owner;  /* rank; for FROM and TO */
    uint16_t added;  /* number of ranks whose inputs the owner has summed in `keep` */
    uint8_t kind;    /* enum by_chunk_kind; 0: no chunk yet */
    uint8_t session; /* part of the roll call or of an opening, which belong to no call */
    uint8_t kept;    /* the call has ended: `held` is a copy */
};

/* Bytes [from, to) of a call's shard that trees of an earlier generation have done (done.c). */
struct by_done {
    uint64_t from, to;
    uint32_t call, shard;
};

/* A lane's position in the sequence of calls: bytes [at, end) of `shard` of call number `call` are
 * not yet sent. */
struct by_ep_cursor {
    uint32_t call;
    uint32_t shard, shard_end;
    uint64_t at, end;
    uint8_t active;  /* there is a chunk to send */
    uint8_t word;    /* the chunk is the call's word: empty, and after all shards */
    uint8_t entered; /* `shard` and `shard_end` belong to `call` */
};

/* The contents of a WAIT about the oldest chunk. */
struct by_lane_wait {
    uint64_t heard_ns;
    uint64_t absent_ns; /* the last time that only ranks were missing; 0: never */
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
    uint8_t half;            /* enum by_half: the other half of a pair is the next lane, or the one before */
    struct by_hop_keys keys; /* shared with the parent in a keyed job */
    uint32_t mask;           /* window - 1 */
    uint32_t hop_first, hop_end;    /* range of this tree's records in HOP */
    uint64_t before[BY_GROUP_RANK]; /* shares of the preceding lanes: allreduce, barrier, short calls, the
                                       four rooted collectives */
    uint32_t start;                 /* the session's first chunk, */
    uint8_t starts;                 /* from which on two windows claim banks of older sessions (START) */
    /* the window */
    struct by_flight *flights;
    struct by_trace *traces; /* two windows; NULL without config.resume */
    uint8_t *keep;           /* a place for each slot: retained data of ended calls, and partial sums */
    uint32_t base;           /* oldest chunk without a result (== next: none) */
    uint32_t next;           /* chunk to send next */
    uint32_t opened;         /* with config.batch: end of the chunks that may be sent */
    uint32_t inflight;
    uint32_t order;        /* transmissions so far */
    uint32_t order_heard;  /* the latest transmission that a result unambiguously answered */
    uint32_t heard;        /* seq of the last accepted result */
    uint32_t threshold;    /* answers to later transmissions after which a flight counts as lost */
    uint32_t revive;       /* flights to retransmit after a timeout, */
    uint32_t revive_order; /* if last sent before this transmission */
    uint16_t oldest, newest;
    struct by_ep_cursor cursor;
    uint32_t credit, quantum;
    uint16_t ready_next, urgent_next; /* rings of lanes that may send */
    uint8_t in_ready, in_urgent;
    /* the timer */
    uint64_t timer_ns;                /* start of the period */
    uint64_t timer_tick;              /* when the wheel will check it */
    uint16_t timer_next, timer_prior; /* links in its list; the first one's prior is BY_LANE_NONE */
    uint16_t timer_list;              /* 0: in no list */
    uint64_t heard_ns;                /* time of the last accepted result: progress */
    uint8_t backoff;
    uint8_t probes;                 /* timeouts of the oldest chunk: odd ones send PROBE when it is old */
    uint32_t srtt, rttvar;          /* ns x 8 and ns x 4 (RFC 6298 in integers); srtt 0: no sample yet */
    uint32_t interval;              /* usual time between answers, ns x 8 */
    uint32_t rtt_low, rtt_low_next; /* minimum round trip of this and the last epoch, ns */
    uint32_t rtt_near;              /* minimum of the recent round trips, ns */
    uint64_t rtt_epoch_ns;
    struct by_lane_wait wait;
    struct by_err hint; /* the last ERR that may be temporary; hint.reason == 0: none */
};

struct by_ep_ring {
    uint16_t head, tail; /* lane indices; BY_LANE_NONE: empty */
};

/* Timers of lanes: a list for each of the next ticks, then lists for coarser and coarser ticks
 * (timer.c). */
#define BY_WHEEL_LEVELS 3u
#define BY_WHEEL_BITS   6u
#define BY_WHEEL_SLOTS  (1u << BY_WHEEL_BITS)
/* log2 of a tick in ns: 4.1 us, a small part of the minimum timeout; the levels span 262 us, 17 ms
 * and 1.07 s. */
#define BY_WHEEL_TICK 12u
struct by_wheel {
    uint64_t tick;                                       /* the last tick that was processed */
    uint64_t used[BY_WHEEL_LEVELS];                      /* bits: lists with a lane */
    uint16_t head[BY_WHEEL_LEVELS * BY_WHEEL_SLOTS + 1]; /* the last list: lanes that are due */
};

enum by_session_phase { BY_SESSION_NONE, BY_SESSION_ASKED, BY_SESSION_OPENING, BY_SESSION_AGREED };

enum by_call_phase { BY_CALL_FREE, BY_CALL_RUNNING, BY_CALL_ENDED };

/* A sum of floats in mode EXACT is two calls; the user's number is the number of the second
 * (exact.c). */
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
    uint8_t unit_bytes;      /* bytes on the wire of one element of the user */
    uint64_t told_count;     /* count or shard layout that its optag contains */
    uint64_t remaining;      /* chunks without a result, on all lanes */
    uint64_t weight_max;
    uint8_t word; /* no chunk is on the first lane, which therefore carries an empty one */
    struct by_call_status status;
};

struct by_endpoint {
    struct by_endpoint_config config; /* with its defaults filled in */
    struct by_endpoint_counters counters;
    uint16_t gen, rank, rank_count, lane_count, tree_limit, node;
    uint8_t cover;                  /* enum by_cover: coverage of the job's tags */
    const struct by_reducer *words; /* for psum with this processor's vectors */
    struct by_siphash_key payload_key;
    uint32_t tag;     /* tag of this rank's leaf */
    uint32_t witness; /* witness of a complete result */
    uint32_t group_count;
    uint32_t first;                                /* the lane on which every call has a chunk */
    uint32_t orphans[BY_ROOTED_COUNT];             /* ranks without a group of their own */
    struct by_abilities able[BY_COLLECTIVE_COUNT]; /* of the trees that may take part in a call */
    uint8_t short_modes;                           /* of calls that the first lane can carry alone */
    uint32_t inflight;
    uint32_t window; /* congestion window */
    uint32_t window_max;
    uint32_t window_floor;
    uint32_t window_goal;   /* the window doubles each round trip up to here, then grows by steps */
    uint32_t window_earned; /* results since the last increase */
    uint64_t window_cut_ns; /* no second cut before this time */
    uint64_t silent_ns;     /* time of the last cut for silence, */
    uint32_t silent_goal;   /* and the goal before the first one, or 0: the silence was no loss */
    uint32_t loss_least;    /* losses cut the window to this, or less by marks */
    uint32_t loss_usual;    /* chunks lost in a period with half of loss_least */
    uint32_t loss_count, loss_results; /* in this period: chunks lost, results */
    uint32_t loss_patience;            /* periods without a trial of twice loss_least */
    uint8_t mark_seen;                 /* a packet was marked in this period */
    uint8_t doubt;                     /* config.marked: periods that contradict it (doubt_marks in pace.c) */
    uint64_t deadline_ns;              /* no timer is due earlier */
    struct by_wheel wheel;
    uint64_t now_ns;
    uint32_t posted; /* number of the next call */
    int dead;        /* the error that ended this endpoint, or 0 */
    struct by_ep_ring ready, urgent;
    struct by_ep_lane *lanes;
    struct by_ep_group *groups;
    uint16_t *lane_of_tree;
    uint32_t *roll;        /* a nonce for each rank: only this rank's before the answer, then all */
    uint32_t session_salt; /* XORed into all optags of calls, once agreed */
    uint8_t session_phase; /* enum by_session_phase */
    uint8_t frozen;        /* receives and sends nothing more: its calls are being carried over */
    uint8_t lost_fate;     /* enum by_err_fate of lost_rank, while lanes still report it; else 0 */
    uint16_t lost_lane;    /* the next lane that reports it */
    uint32_t lost_rank;    /* a rank of this host */
    uint8_t level;         /* every rank has the results that this rank has */
    uint8_t session_moves; /* how often the session has moved on to later chunks */
    struct by_done *done;  /* sorted by call, shard and place; intervals do not touch */
    uint32_t done_count, done_room;
    struct by_call_state calls[BY_CALLS_MAX + 2];
};

BY_STATIC_ASSERT((BY_CALLS_MAX & (BY_CALLS_MAX - 1)) == 0, "a call's slot is its number masked");
BY_STATIC_ASSERT(BY_CALL_OPENING <= UINT8_MAX, "a flight names its call in 8 bits");
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

/* Returns nonzero if this rank has the result of a chunk that it has sent. */
static inline int by_lane_is_done(const struct by_ep_lane *lane, uint32_t seq)
{
    const struct by_flight *flight = &lane->flights[seq & lane->mask];

    return (int32_t)(seq - lane->base) < 0 || !(flight->flags & BY_FLIGHT_SENT) || flight->seq != seq;
}

/* Returns the lane that defines which chunks a lane carries: that of the tree up for a tree
 * down. */
static inline const struct by_ep_lane *by_lane_lead(const struct by_ep_lane *lane)
{
    return lane->half == BY_HALF_DOWN ? lane - 1 : lane;
}

/* Returns nonzero if the root of a lane's pair is known to have the chunk complete: its value has
 * arrived on the tree down. */
static inline int by_lane_is_served(const struct by_ep_lane *lane, uint32_t seq)
{
    return lane->half == BY_HALF_UP && (int32_t)(lane[1].next - seq) > 0 && by_lane_is_done(lane + 1, seq);
}

static inline struct by_flight *by_flight_at(const struct by_ep_lane *lane, uint32_t seq)
{
    return &lane->flights[seq & lane->mask];
}

/* Return the elements of a shard, and of all shards before it; a call without shards counts as one
 * shard. */
static inline uint64_t by_call_shard_count(const struct by_call *call, uint32_t shard)
{
    return call->offsets != NULL ? call->offsets[shard + 1] - call->offsets[shard] : call->count;
}

static inline uint64_t by_call_shard_first(const struct by_call *call, uint32_t shard)
{
    return call->offsets != NULL ? call->offsets[shard] : shard * call->count;
}

/* The same in bytes on the wire. */
static inline uint64_t by_shard_bytes(const struct by_call_state *state, uint32_t shard)
{
    return by_call_shard_count(&state->call, shard) * state->unit_bytes;
}

static inline uint64_t by_shard_at(const struct by_call_state *state, uint32_t shard)
{
    return by_call_shard_first(&state->call, shard) * state->unit_bytes;
}

/* Returns the time since which the lane's oldest chunk has waited without progress of the lane
 * (ns). */
static inline uint64_t by_lane_waits_since(const struct by_ep_lane *lane)
{
    uint64_t first_ns = by_flight_at(lane, lane->base)->first_ns;

    return first_ns > lane->heard_ns ? first_ns : lane->heard_ns;
}

/* Returns the mode of a flight. A word sums nothing, so no node on its path needs the resources of
 * the call's mode. */
static inline uint8_t by_flight_mode(const struct by_flight *flight, const struct by_call_state *call)
{
    return flight->count > 0 ? call->mode : BY_MODE_FAST;
}

/* share.c: which lanes serve a call, and how a length is split over them. */
void by_share_init(struct by_endpoint *endpoint);
/* Returns the index of the rooted collective in groups and `before`, or -1. */
int by_share_rooted(unsigned collective);
/* Returns the group for `collective` and shard or root `rank`; BY_GROUP_NONE when no lane serves
 * it. */
uint32_t by_share_group(const struct by_endpoint *endpoint, unsigned collective, uint32_t rank);
/* The same for a call: the first lane alone carries what fits into one packet. */
uint32_t by_share_of_call(const struct by_endpoint *endpoint, const struct by_call_state *call,
                          uint32_t rank);
int by_share_member(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, uint32_t group);
/* Computes the bytes [*start, *end) of `total` that `lane` carries as a member of `group`. */
void by_share_segment(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, uint32_t group,
                      uint64_t total, uint64_t *start, uint64_t *end);
/* Returns floor(a * b / c) for b <= c, exact. */
uint64_t by_share_scale(uint64_t a, uint64_t b, uint64_t c);
/* Returns the weight of `lane` in a call that uses `group` for `shards` shards: its chunks relative
 * to other lanes. */
uint64_t by_share_weight(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, uint32_t group,
                         uint32_t shards);

/* able.c: the abilities of the trees, from the LEAF records from `leaf_first` on. Call it after
 * by_share_init. */
void by_able_init(struct by_endpoint *endpoint, uint32_t leaf_first);

/*
 * cursor.c: the path of a lane over calls, shards and chunks. The first lane has at least one chunk
 * of every call, if necessary an empty one (the call's *word*). There ranks in different calls
 * meet, whichever lanes their calls use.
 */
/* Counts the call's chunks on all lanes and finds its greatest weight. */
void by_cursor_plan(struct by_endpoint *endpoint, struct by_call_state *call);
/* Moves to the next chunk if the cursor is not on one; returns 1 when there is one. */
int by_cursor_seek(struct by_endpoint *endpoint, struct by_ep_lane *lane);
/* Consumes the chunk under the cursor: fills the flight's buffers, sizes and flags. The cursor must
 * be active. */
void by_cursor_take(struct by_endpoint *endpoint, struct by_ep_lane *lane, struct by_flight *flight);

/* Finds the first of the call's shards, from *shard on, of which the lane carries bytes [*from,
 * *to), done or not. Returns 1 when there is one. */
int by_cursor_segment(const struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                      const struct by_call_state *call, uint32_t *shard, uint64_t *from, uint64_t *to);

/* retain.c: records of chunks, and the data that other ranks may still need. Without config.resume
 * all these functions do nothing. */
/* Returns the bytes for the traces of a lane with this window; the next function returns the bytes
 * of its places. */
size_t by_retain_traces(uint32_t window);
size_t by_retain_places(uint32_t window, uint32_t payload_max);
/* Records chunk lane->next, which is about to be sent for the first time. */
void by_retain_note(struct by_endpoint *endpoint, struct by_ep_lane *lane, const struct by_flight *flight,
                    uint32_t shard, uint64_t at);
/* Copies the data that others may still need, before the call's buffers return to the user. */
void by_retain_save(struct by_endpoint *endpoint, const struct by_call_state *call);
/* Returns the data of a chunk that this rank can send to others: the value, or this rank's input
 * for the chunk's owner; NULL: none. */
const uint8_t *by_retain_held(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, uint32_t seq,
                              uint32_t *bytes);
/* Returns the place of a chunk. */
uint8_t *by_retain_at(const struct by_ep_lane *lane, uint32_t seq);

/* done.c: the parts of running calls that earlier generations have done. */
void by_done_add(struct by_endpoint *endpoint, const struct by_done *done);
/* Returns 0 when nothing of that call, or of any later one, is done. */
int by_done_any(const struct by_endpoint *endpoint, uint32_t call);
/* Finds the first bytes [*start, *stop) of [at, end) that are not done; returns 0 when all are
 * done. */
int by_done_gap(const struct by_endpoint *endpoint, uint32_t call, uint32_t shard, uint64_t at, uint64_t end,
                uint64_t *start, uint64_t *stop);

/* session.c: the roll call and the openings before the first chunk of a call. */
/* Puts the roll call on the first lane, if there was none; the endpoint must have lanes. */
void by_session_begin(struct by_endpoint *endpoint);
/* Called when all chunks of the roll call, or all openings, are done. */
void by_session_rolled(struct by_endpoint *endpoint);
void by_session_opened(struct by_endpoint *endpoint);
/* Evaluate an ERR for a chunk of a session that has not begun, and a node's question about a chunk
 * of one (PROBE): the session begins at a later chunk, or ends after too many attempts. */
void by_session_heed(struct by_endpoint *endpoint, struct by_ep_lane *lane, const struct by_header *header,
                     const struct by_err *err);
void by_session_follow(struct by_endpoint *endpoint, struct by_ep_lane *lane, const struct by_header *header);
/* Returns 1 when a flight is of the roll call or of an opening. */
static inline int by_flight_is_session(const struct by_flight *flight)
{
    return flight->call >= BY_CALL_SESSION;
}

/* guess.c: finds the call that a side of a disagreement is in; `own` is this rank's call. */
void by_guess(const struct by_endpoint *endpoint, const struct by_call_state *own,
              const struct by_err_side *side, struct by_call_said *said);

/* exact.c: sums of floats in mode EXACT. */
/* Returns 1 when `call`, with any fields in range, is such a sum. */
int by_exact_is_for(const struct by_call *call);
/* Returns the call that agrees on the scales; the next function returns the place of its integers
 * in the scratch. */
struct by_call by_exact_scales(const struct by_endpoint *endpoint, const struct by_call *call);
uint8_t *by_exact_integers(const struct by_endpoint *endpoint, const struct by_call *call);
/* Computes the data that a chunk of either part sends, at flight->send. */
void by_exact_fill(struct by_endpoint *endpoint, const struct by_call_state *state,
                   const struct by_flight *flight);
/* Writes a result's integers as floats. */
void by_exact_deliver(const struct by_endpoint *endpoint, const struct by_call_state *state,
                      const struct by_flight *flight, const uint8_t *payload);

/* call.c: ends of calls. */
/* Ends `call` successfully, after its last result. */
void by_call_finish(struct by_endpoint *endpoint, struct by_call_state *call);
/* Ends `call` with `error`, all other running calls with BY_EABORTED, and the endpoint. `status`
 * describes the failure. If `call` is the roll call, the user's oldest call ends this way
 * instead. */
void by_call_fail(struct by_endpoint *endpoint, struct by_call_state *call, int error,
                  const struct by_call_status *status);

/* pace.c: round-trip times, timeouts, congestion window. */
void by_pace_init(struct by_endpoint *endpoint, uint64_t windows);
void by_pace_sample(struct by_ep_lane *lane, uint64_t now_ns, uint64_t rtt_ns);
/* Widens the window after an answer; the lane's silence ends with it. */
void by_pace_accepted(struct by_endpoint *endpoint, struct by_ep_lane *lane);
/* Takes back the cuts for silence if a chunk that was sent once, before them at `sent_ns`, has its
 * result, and all queues mark: it was late, neither lost nor in a queue. */
void by_pace_late(struct by_endpoint *endpoint, uint64_t sent_ns);
enum by_pace_event { BY_PACE_LOSS = 1, BY_PACE_MARK, BY_PACE_SILENCE };
void by_pace_cut(struct by_endpoint *endpoint, const struct by_ep_lane *lane, enum by_pace_event event);
/* Counts the chunks of a lane that were not lost before, and cuts the window: also with 0 chunks,
 * where only lost ones are requested again. */
void by_pace_lost(struct by_endpoint *endpoint, const struct by_ep_lane *lane, uint32_t chunks);
/* Returns the lane's current timeout, including its backoff. */
uint64_t by_pace_timeout(const struct by_endpoint *endpoint, const struct by_ep_lane *lane);
/* Returns the time at which a lane with chunks in flight times out. */
uint64_t by_pace_due(const struct by_endpoint *endpoint, const struct by_ep_lane *lane);

/* timer.c: the times at which lanes must be checked; each function takes O(1), whatever the number
 * of lanes. */
void by_timer_init(struct by_endpoint *endpoint);
/* Returns the time when the lane's oldest chunk is sent again, or its call ends for lack of
 * progress. The lane must have chunks in flight. */
uint64_t by_timer_due(const struct by_endpoint *endpoint, const struct by_ep_lane *lane);
/* Schedules a check of the lane when it is due, at most one tick later, perhaps earlier; the
 * endpoint's deadline is updated too. */
void by_timer_set(struct by_endpoint *endpoint, struct by_ep_lane *lane);
/* Removes and returns a lane that is due for a check; NULL: none. */
struct by_ep_lane *by_timer_pop(struct by_endpoint *endpoint);
/* Returns the time of the next such check; UINT64_MAX: never. */
uint64_t by_timer_next(const struct by_endpoint *endpoint);

/* send.c: output. */
void by_send_ready(struct by_endpoint *endpoint,
                   struct by_ep_lane *lane); /* enters the lane in the rings it belongs to */
void by_send_unlink(struct by_ep_lane *lane, struct by_flight *flight); /* from the list of transmissions */
/* Marks a flight that the parent lacks: it is sent before anything else. Returns 0 if it was marked
 * already, else 1. */
uint32_t by_send_first(struct by_ep_lane *lane, struct by_flight *flight);
/* Builds a packet to the lane's parent with the job's tag. A payload without a place of its own is
 * already in tx->small. The header is updated with whether it is keyed. */
void by_send_fill(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, struct by_header *header,
                  uint16_t bytes, const uint8_t *payload, struct by_tx *tx);
uint32_t by_send_run(struct by_endpoint *endpoint, struct by_tx *tx, uint32_t capacity);

/* accept.c: input. */
void by_accept(struct by_endpoint *endpoint, const struct by_rx *rx);
/* Writes a value, as received, to the chunk's destination; `payload` may be NULL for a chunk that
 * needs none. */
void by_accept_deliver(const struct by_endpoint *endpoint, const struct by_flight *flight,
                       const uint8_t *payload);
/* Completes the chunk: frees its flight, and ends its call after the last one. */
void by_accept_done(struct by_endpoint *endpoint, struct by_ep_lane *lane, struct by_flight *flight);

/* suspect.c: finds the node that causes a stall. */
void by_suspect_hear(struct by_endpoint *endpoint, struct by_ep_lane *lane, uint32_t seq,
                     const struct by_wait *wait);
void by_suspect_hops(struct by_endpoint *endpoint,
                     struct by_ep_lane *lane); /* finds the lane's HOP records */
void by_suspect_fill(const struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                     struct by_call_status *status);
/* Returns the parent of this host's own entry if that entry is the lane's parent, else the lane's
 * parent; BY_NODE_NONE for the root itself. */
uint16_t by_suspect_upper(const struct by_endpoint *endpoint, const struct by_ep_lane *lane);
/* Whether a node has reported of late that the oldest chunk waits for ranks alone. */
int by_suspect_is_absence(const struct by_endpoint *endpoint, const struct by_ep_lane *lane);

#endif

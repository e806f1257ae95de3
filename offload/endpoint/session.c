/*
 * The session. Tables and the contents of banks outlive the processes of hosts. Before the first
 * chunk of a call the ranks therefore agree on a session, in two steps (PROTOCOL.md, "Sessions"):
 *
 * - the roll call, on the first lane: a small gathering in which each rank writes a nonce of its
 *   own;
 * - the openings: an empty chunk on every lane, salted with the roll. They complete only if all
 *   ranks have the same roll with their own nonces in it.
 *
 * If a node is at a later chunk, or an earlier run has left something behind, the session begins at
 * a later chunk. All ranks follow, because the nodes report the latest chunk at which one has
 * begun. Neighbours: cursor.c traverses these chunks like others, accept.c detects their
 * completion. Pure; the endpoint's thread.
 */
#include "offload/endpoint/state.h"

#define NONCE_BYTES 4u
/* The first chunks of sessions are multiples of this many windows apart. A new session begins at
 * least as far behind the chunks of an older one: more than the four windows that may be in flight
 * beyond the oldest chunk that a node holds. */
#define LEAP_WINDOWS 8u
/* Limit of attempts. Ranks that start together need two or three. */
#define MOVES_MAX 64u
/* The same where a node objects to a roll call: a damaged bank, for example, stays out of use. */
#define DAMAGE_MOVES_MAX 4u

/* Returns the number of lanes of a lane's tree or pair. */
static uint32_t halves(const struct by_ep_lane *lead)
{
    return lead->half == BY_HALF_UP ? 2 : 1;
}

static struct by_ep_lane *lead_of(struct by_ep_lane *lane)
{
    return lane->half == BY_HALF_DOWN ? lane - 1 : lane;
}

static uint32_t leap_of(const struct by_ep_lane *lane)
{
    return LEAP_WINDOWS * (lane->mask + 1);
}

/* Returns the last chunk at or before `seq` at which a session can begin: the first one of the
 * session of `seq`, if it is of that session's first two windows. */
static uint32_t first_of(const struct by_ep_lane *lane, uint32_t seq)
{
    uint32_t ahead = seq - lane->start;

    return lane->start + (ahead & ~(leap_of(lane) - 1));
}

/* Forgets what is in flight on a tree or pair, and continues at `seq`. */
static void move_lanes(struct by_endpoint *endpoint, struct by_ep_lane *lead, uint32_t seq)
{
    for (struct by_ep_lane *lane = lead; lane < lead + halves(lead); lane++) {
        while (lane->oldest != BY_FLIGHT_NONE) {
            struct by_flight *flight = &lane->flights[lane->oldest];

            by_send_unlink(lane, flight);
            flight->flags = 0;
            lane->inflight--;
            endpoint->inflight--;
        }
        lane->start = lane->base = lane->next = lane->opened = seq;
        lane->starts = 1;
        lane->order_heard = lane->order;
        lane->revive = 0;
        lane->backoff = 0;
        lane->wait = (struct by_lane_wait){0};
        lane->hint = (struct by_err){0};
        lane->cursor = (struct by_ep_cursor){0};
    }
}

/* Lets the lanes of a tree or pair send bytes [0, end) of the roll call, or their opening. */
static void aim(struct by_endpoint *endpoint, struct by_ep_lane *lead, uint64_t end, int word)
{
    for (struct by_ep_lane *lane = lead; lane < lead + halves(lead); lane++) {
        lane->cursor = (struct by_ep_cursor){.end = end, .active = 1, .word = (uint8_t)word};
        by_send_ready(endpoint, lane);
    }
}

static void call_roll(struct by_endpoint *endpoint)
{
    struct by_call_state *state = &endpoint->calls[BY_CALL_SESSION];
    struct by_ep_lane *first =
        &endpoint->lanes[endpoint->first]; /* the same tree at all ranks, because all are leaves of each */
    uint64_t bytes = (uint64_t)endpoint->rank_count * NONCE_BYTES;

    endpoint->session_phase = BY_SESSION_ASKED;
    by_zero(endpoint->roll, bytes);
    endpoint->roll[endpoint->rank] = endpoint->config.nonce;
    by_zero(state, sizeof(*state));
    state->call = (struct by_call){.collective = BY_COLLECTIVE_ALLREDUCE,
                                   .op = BY_OP_BOR,
                                   .dtype = BY_DTYPE_U8,
                                   .mode = BY_MODE_FAST,
                                   .count = bytes,
                                   .send = endpoint->roll,
                                   .recv = endpoint->roll};
    state->phase = BY_CALL_RUNNING;
    state->op = BY_OP_BOR;
    state->dtype = BY_DTYPE_U8;
    state->mode = BY_MODE_FAST;
    state->unit_bytes = 1;
    state->optag = by_optag(0, BY_COLLECTIVE_SESSION, 0, bytes);
    state->remaining = halves(first) * ((bytes + first->payload_max - 1) / first->payload_max);
    aim(endpoint, first, bytes, 0);
}

void by_session_begin(struct by_endpoint *endpoint)
{
    BY_ASSERT(endpoint->lane_count > 0);
    if (endpoint->session_phase != BY_SESSION_NONE)
        return;
    for (uint32_t l = 0; l < endpoint->lane_count; l++) {
        endpoint->lanes[l].start = endpoint->lanes[l].next;
        endpoint->lanes[l].starts = 1;
    }
    call_roll(endpoint);
}

/* Calls the roll again, from `seq`. Openings that were sent are of another roll; they are sent
 * again at later chunks. */
static void roll_again(struct by_endpoint *endpoint, uint32_t seq)
{
    struct by_ep_lane *first = &endpoint->lanes[endpoint->first];

    if (endpoint->session_phase == BY_SESSION_OPENING)
        for (uint32_t l = 0; l < endpoint->lane_count; l++) {
            struct by_ep_lane *lane = &endpoint->lanes[l];

            if (lane->half != BY_HALF_DOWN)
                move_lanes(endpoint, lane, lane->start + leap_of(lane));
        }
    move_lanes(endpoint, first, seq);
    call_roll(endpoint);
}

/* Opens a tree or pair at `seq`. */
static void open_again(struct by_endpoint *endpoint, struct by_ep_lane *lead, uint32_t seq)
{
    for (struct by_ep_lane *lane = lead; lane < lead + halves(lead); lane++)
        endpoint->calls[BY_CALL_OPENING].remaining += lane->next != lane->start && lane->inflight == 0;
    move_lanes(endpoint, lead, seq);
    aim(endpoint, lead, 1, 1);
}

/* Returns 0 after too many attempts. */
static int move(struct by_endpoint *endpoint, struct by_ep_lane *lead, uint32_t seq)
{
    if (endpoint->session_moves == MOVES_MAX)
        return 0;
    endpoint->session_moves++;
    if (lead == &endpoint->lanes[endpoint->first])
        roll_again(endpoint, seq);
    else if (endpoint->session_phase == BY_SESSION_OPENING)
        open_again(endpoint, lead, seq);
    else
        move_lanes(endpoint, lead, seq); /* opened after the roll call */
    return 1;
}

/* Ends the endpoint: nodes hold chunks that this run cannot pass. */
static void give_up(struct by_endpoint *endpoint, const struct by_ep_lane *lane, const struct by_err *err)
{
    struct by_call_status status = {.tree = lane->tree,
                                    .seq = lane->base,
                                    .node = err != NULL ? err->node : by_suspect_upper(endpoint, lane),
                                    .missing_node = BY_NODE_NONE};
    int error = BY_ESTATE;

    if (err != NULL) {
        status.err = *err;
        error = err->reason == BY_ERR_MEMORY        ? BY_ECHECKSUM
                : err->reason == BY_ERR_UNSUPPORTED ? BY_EUNSUPPORTED
                                                    : BY_ESTATE;
    }
    by_call_fail(endpoint, &endpoint->calls[BY_CALL_SESSION], error, &status);
}

/* Returns whether an objection is about this run: a node cannot compute its chunks, or its memory
 * has changed. Otherwise an earlier run has left it. A roll call has no salt, so there only
 * repetition shows it. */
static int is_final(const struct by_endpoint *endpoint, const struct by_err *err)
{
    if (err->reason != BY_ERR_MEMORY && err->reason != BY_ERR_UNSUPPORTED)
        return 0;
    if (endpoint->session_phase == BY_SESSION_OPENING &&
        err->other.optag == endpoint->calls[BY_CALL_OPENING].optag)
        return 1;
    return endpoint->session_moves >= DAMAGE_MOVES_MAX;
}

void by_session_heed(struct by_endpoint *endpoint, struct by_ep_lane *lane, const struct by_header *header,
                     const struct by_err *err)
{
    struct by_ep_lane *lead = lead_of(lane);
    uint32_t seq = lead->start + leap_of(lead);

    if (err->reason == BY_ERR_NO_ENTRY) {
        lane->hint = *err; /* the table may arrive later */
        lane->hint.seq = header->seq;
        return;
    }
    if (err->reason == BY_ERR_WINDOW) {
        /* Another rank has begun there, or it is a chunk of an older session. */
        seq = first_of(lead, err->expected_seq) + (header->flags & BY_FLAG_START ? 0 : 2 * leap_of(lead));
        if ((int32_t)(seq - lead->start) <= 0) {
            lane->hint = *err;
            lane->hint.seq = header->seq;
            return;
        }
    }
    if (is_final(endpoint, err) || !move(endpoint, lead, seq))
        give_up(endpoint, lane, err);
}

void by_session_follow(struct by_endpoint *endpoint, struct by_ep_lane *lane, const struct by_header *header)
{
    struct by_ep_lane *lead = lead_of(lane);
    uint32_t seq = first_of(lead, header->seq);

    if (!(header->flags & BY_FLAG_START) || (int32_t)(seq - lead->start) <= 0 ||
        (endpoint->session_phase != BY_SESSION_ASKED && endpoint->session_phase != BY_SESSION_OPENING))
        return;
    if (!move(endpoint, lead, seq))
        give_up(endpoint, lane, NULL);
}

void by_session_rolled(struct by_endpoint *endpoint)
{
    struct by_call_state *state = &endpoint->calls[BY_CALL_OPENING];
    struct by_ep_lane *first = &endpoint->lanes[endpoint->first];

    by_call_finish(endpoint, &endpoint->calls[BY_CALL_SESSION]);
    if (endpoint->roll[endpoint->rank] != endpoint->config.nonce) { /* the answer is of an earlier run */
        if (!move(endpoint, first, first->start + leap_of(first)))
            give_up(endpoint, first, NULL);
        return;
    }
    endpoint->session_phase = BY_SESSION_OPENING;
    by_zero(state, sizeof(*state));
    state->call.collective = BY_COLLECTIVE_BARRIER;
    state->phase = BY_CALL_RUNNING;
    state->op = BY_OP_BOR;
    state->dtype = BY_DTYPE_U8;
    state->mode = BY_MODE_FAST;
    /* the same roll called at another chunk is another session: an opening of each may be done */
    state->optag = by_optag(0, BY_COLLECTIVE_SESSION, 1, first->start);
    state->optag ^= by_session_salt(endpoint->roll, endpoint->rank_count);
    state->remaining = endpoint->lane_count;
    for (uint32_t l = 0; l < endpoint->lane_count; l++)
        if (endpoint->lanes[l].half != BY_HALF_DOWN)
            aim(endpoint, &endpoint->lanes[l], 1, 1);
}

void by_session_opened(struct by_endpoint *endpoint)
{
    by_call_finish(endpoint, &endpoint->calls[BY_CALL_OPENING]);
    endpoint->counters.session++;
    endpoint->session_phase = BY_SESSION_AGREED;
    endpoint->session_salt = by_session_salt(endpoint->roll, endpoint->rank_count);
    for (uint32_t c = 0; c < BY_CALLS_MAX; c++)
        endpoint->calls[c].optag ^= endpoint->session_salt;
    for (uint32_t l = 0; l < endpoint->lane_count; l++)
        endpoint->lanes[l].cursor = (struct by_ep_cursor){0};
    for (uint32_t l = 0; l < endpoint->lane_count; l++)
        if (by_cursor_seek(endpoint, &endpoint->lanes[l]))
            by_send_ready(endpoint, &endpoint->lanes[l]);
}

/*
 * Output, in this order: repairs, new chunks as windows allow, then retransmissions due to timers.
 * Two rings hold the lanes that have something to send, so no lane is checked in vain:
 *
 * - *urgent* lanes send whatever the congestion window is: a lane with a flight that its parent
 *   lacks or whose result counts as lost, or with nothing in flight, so that ranks with different
 *   windows cannot wait for each other on different trees;
 * - *ready* lanes take turns in proportion to their shares of the call.
 *
 * Pure; the endpoint's thread.
 */
#include "offload/endpoint/state.h"

#define ECT 2u /* ECN-capable transport, RFC 3168 */

/* ---- the list of a lane's flights by transmission ---- */

static uint16_t slot_of(const struct by_ep_lane *lane, const struct by_flight *flight)
{
    return (uint16_t)(flight->seq & lane->mask);
}

void by_send_unlink(struct by_ep_lane *lane, struct by_flight *flight)
{
    if (flight->older == BY_FLIGHT_NONE)
        lane->oldest = flight->newer;
    else
        lane->flights[flight->older].newer = flight->newer;
    if (flight->newer == BY_FLIGHT_NONE)
        lane->newest = flight->older;
    else
        lane->flights[flight->newer].older = flight->older;
}

static void link_newest(struct by_ep_lane *lane, struct by_flight *flight)
{
    flight->older = lane->newest;
    flight->newer = BY_FLIGHT_NONE;
    if (lane->newest == BY_FLIGHT_NONE)
        lane->oldest = slot_of(lane, flight);
    else
        lane->flights[lane->newest].newer = slot_of(lane, flight);
    lane->newest = slot_of(lane, flight);
}

uint32_t by_send_first(struct by_ep_lane *lane, struct by_flight *flight)
{
    if (flight->flags & BY_FLIGHT_ASKED)
        return 0;
    flight->flags |= BY_FLIGHT_ASKED;
    by_send_unlink(lane, flight);
    flight->older = BY_FLIGHT_NONE;
    flight->newer = lane->oldest;
    if (lane->oldest == BY_FLIGHT_NONE)
        lane->newest = slot_of(lane, flight);
    else
        lane->flights[lane->oldest].older = slot_of(lane, flight);
    lane->oldest = slot_of(lane, flight);
    return 1;
}

/* ---- rings of lanes ---- */

static struct by_ep_lane *ring_pop(struct by_endpoint *endpoint, struct by_ep_ring *ring, int urgent)
{
    struct by_ep_lane *lane;

    if (ring->head == BY_LANE_NONE)
        return NULL;
    lane = &endpoint->lanes[ring->head];
    if (urgent)
        lane->in_urgent = 0;
    else
        lane->in_ready = 0;
    ring->head = urgent ? lane->urgent_next : lane->ready_next;
    if (ring->head == BY_LANE_NONE)
        ring->tail = BY_LANE_NONE;
    return lane;
}

static void ring_push(struct by_endpoint *endpoint, struct by_ep_ring *ring, struct by_ep_lane *lane,
                      int urgent)
{
    uint16_t index = (uint16_t)(lane - endpoint->lanes);

    if (urgent ? lane->in_urgent : lane->in_ready)
        return;
    if (urgent) {
        lane->in_urgent = 1;
        lane->urgent_next = BY_LANE_NONE;
    } else {
        lane->in_ready = 1;
        lane->ready_next = BY_LANE_NONE;
    }
    if (ring->tail == BY_LANE_NONE)
        ring->head = index;
    else if (urgent)
        endpoint->lanes[ring->tail].urgent_next = index;
    else
        endpoint->lanes[ring->tail].ready_next = index;
    ring->tail = index;
}

/* Returns whether the oldest transmission counts as lost: enough later transmissions of its lane
 * have been answered. */
static int has_lost(const struct by_ep_lane *lane)
{
    return lane->oldest != BY_FLIGHT_NONE &&
           (int32_t)(lane->order_heard - lane->flights[lane->oldest].order) >= (int32_t)lane->threshold;
}

/* Returns whether the parent lacks a flight. */
static int is_asked(const struct by_ep_lane *lane)
{
    return lane->oldest != BY_FLIGHT_NONE && (lane->flights[lane->oldest].flags & BY_FLIGHT_ASKED) != 0;
}

/* Returns whether a flight may be revived: when the first answer after a timeout arrives, chunks
 * sent before the timeout may be lost as well. */
static int may_revive(const struct by_ep_lane *lane)
{
    return lane->revive > 0 && lane->oldest != BY_FLIGHT_NONE &&
           (int32_t)(lane->revive_order - lane->flights[lane->oldest].order) > 0;
}

/* Returns whether there is a next chunk and the result of its slot's previous chunk has been
 * accepted. */
static int has_next(const struct by_ep_lane *lane)
{
    return lane->cursor.active && !(by_flight_at(lane, lane->next)->flags & BY_FLIGHT_SENT);
}

/*
 * Returns whether the next chunk may be sent. With config.batch a lane whose window was full waits
 * until a batch less than its window is in flight. Otherwise each result would admit one chunk,
 * which crosses the path alone, as does its result (silly window syndrome, RFC 813). For the
 * protocol this is a window that is narrower by less than a batch.
 */
static int may_start(const struct by_endpoint *endpoint, struct by_ep_lane *lane)
{
    uint32_t window = lane->mask + 1u, room = window - lane->inflight;

    if (!has_next(lane))
        return 0;
    if (endpoint->config.batch == 0 || (int32_t)(lane->opened - lane->next) > 0)
        return 1;
    if (room < endpoint->config.batch && room < window / 4)
        return 0;
    lane->opened = lane->base + window;
    return 1;
}

void by_send_ready(struct by_endpoint *endpoint, struct by_ep_lane *lane)
{
    if (is_asked(lane) || has_lost(lane) || may_revive(lane) || (lane->inflight == 0 && has_next(lane)))
        ring_push(endpoint, &endpoint->urgent, lane, 1);
    if (may_start(endpoint, lane))
        ring_push(endpoint, &endpoint->ready, lane, 0);
}

/* ---- packets ---- */

void by_send_fill(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, struct by_header *header,
                  uint16_t bytes, const uint8_t *payload, struct by_tx *tx)
{
    tx->kind = BY_TX_SEND;
    tx->ecn = ECT;
    tx->direct = 0;
    tx->port = lane->parent_port;
    tx->udp_port = lane->parent_udp_port;
    tx->payload_bytes = bytes;
    tx->rx_index = 0;
    tx->dst_ip = lane->parent_ip;
    tx->ref = BY_REF_NONE;
    tx->payload = payload;
    if (endpoint->cover)
        header->flags |= BY_FLAG_KEYED;
    by_header_encode(header, tx->header);
    if (endpoint->cover)
        by_header_seal(tx->header, &lane->keys.out,
                       by_payload_digest(&endpoint->payload_key, endpoint->cover, header->type,
                                         payload ? payload : tx->small, bytes));
}

/* Returns whether payloads are sent without a psum: they cross no wire, and no tag covers them. */
static int leaves_unsummed(const struct by_endpoint *endpoint)
{
    return endpoint->config.shared && endpoint->cover == BY_COVER_NONE;
}

static void packet_build(const struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                         const struct by_flight *flight, unsigned type, struct by_tx *tx)
{
    const struct by_call_state *call = &endpoint->calls[flight->call];
    int data = type == BY_TYPE_CONTRIB && !(flight->flags & BY_FLIGHT_NODATA);
    struct by_header header = {.type = (uint8_t)type,
                               .child = lane->parent_child,
                               .op = call->op,
                               .dtype = call->dtype,
                               .mode = by_flight_mode(flight, call),
                               .job = endpoint->config.job,
                               .tree = lane->tree,
                               .gen = endpoint->gen,
                               .count = flight->count,
                               .nleaf = 1,
                               .seq = flight->seq,
                               .witness = endpoint->tag,
                               .psum = data ? flight->psum : 0,
                               .optag = call->optag};

    if (flight->flags & BY_FLIGHT_RETX)
        header.flags |= BY_FLAG_RETX;
    if (!data)
        header.flags |= BY_FLAG_NODATA;
    if (flight->flags & BY_FLIGHT_ACKONLY)
        header.flags |= BY_FLAG_ACKONLY;
    if (lane->starts && flight->seq - lane->start < 2 * (lane->mask + 1))
        header.flags |= BY_FLAG_START;
    by_send_fill(endpoint, lane, &header, data ? flight->bytes : 0, data ? flight->send : NULL, tx);
    tx->direct = data && leaves_unsummed(endpoint);
}

static void transmit(struct by_endpoint *endpoint, struct by_ep_lane *lane, struct by_flight *flight,
                     struct by_tx *tx)
{
    flight->order = ++lane->order;
    flight->sent_ns = endpoint->now_ns;
    link_newest(lane, flight);
    packet_build(endpoint, lane, flight, BY_TYPE_CONTRIB, tx);
}

static void send_next(struct by_endpoint *endpoint, struct by_ep_lane *lane, struct by_tx *tx)
{
    struct by_flight *flight = by_flight_at(lane, lane->next);

    BY_ASSERT(has_next(lane));
    BY_ASSERT(lane->next - lane->base <= lane->mask);
    by_cursor_take(endpoint, lane, flight);
    flight->seq = lane->next++;
    flight->flags |= BY_FLIGHT_SENT;
    flight->psum = flight->send != NULL && !leaves_unsummed(endpoint)
                       ? endpoint->words->psum(flight->send, flight->bytes)
                       : 0;
    flight->first_ns = endpoint->now_ns;
    transmit(endpoint, lane, flight, tx);
    endpoint->counters.tx++;
    endpoint->inflight++;
    if (lane->inflight++ == 0) {
        lane->timer_ns = endpoint->now_ns;
        by_timer_set(endpoint, lane);
    }
}

/*
 * Checks that a retransmission has the same value as before. If the first transmission was only
 * late, its value is in a sum already. If the user or a memory fault has changed the value since,
 * its psum would make every node drop it for ever. Without a psum a change cannot be detected, and
 * the current value is sent.
 */
static int input_holds(struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                       const struct by_flight *flight)
{
    struct by_call_status status = {.tree = lane->tree,
                                    .seq = flight->seq,
                                    .node = endpoint->node,
                                    .missing_node = BY_NODE_NONE,
                                    .err = {.node = endpoint->node, .seq = flight->seq}};

    if (flight->send == NULL || leaves_unsummed(endpoint) ||
        by_psum(flight->send, flight->bytes) == flight->psum)
        return 1;
    by_call_fail(endpoint, &endpoint->calls[flight->call], BY_ECHECKSUM, &status);
    return 0;
}

/* `timed`: because of a timeout, not because later chunks were answered. Returns 1 when there is a
 * packet; else the endpoint has ended. */
static int send_again(struct by_endpoint *endpoint, struct by_ep_lane *lane, struct by_flight *flight,
                      int timed, struct by_tx *tx)
{
    /* The value may have overwritten the input in place. Every node on the way has it already, so a
     * packet without it makes them answer. */
    if (by_lane_is_served(lane, flight->seq)) {
        flight->flags |= BY_FLIGHT_NODATA;
        flight->send = NULL;
    }
    if (!input_holds(endpoint, lane, flight))
        return 0;
    flight->flags = (uint8_t)((flight->flags & ~(BY_FLIGHT_TIMED | BY_FLIGHT_HELD | BY_FLIGHT_ASKED)) |
                              BY_FLIGHT_RETX | (timed ? BY_FLIGHT_TIMED : 0));
    by_send_unlink(lane, flight);
    transmit(endpoint, lane, flight, tx);
    endpoint->counters.retx++;
    return 1;
}

/*
 * Requests the results that count as lost: the oldest flight's, and those of the next chunks. What
 * the parent has not completed, it lacks or waits for itself; then it does not answer, and the
 * result is requested again. That is no further loss.
 */
static void ask_for_results(struct by_endpoint *endpoint, struct by_ep_lane *lane, struct by_tx *tx)
{
    uint32_t first = lane->flights[lane->oldest].seq;
    struct by_gap gap = {.seen = lane->heard};
    struct by_header header = {.type = BY_TYPE_GAP,
                               .child = lane->parent_child,
                               .job = endpoint->config.job,
                               .tree = lane->tree,
                               .gen = endpoint->gen,
                               .seq = first,
                               .op = BY_OP_BOR,
                               .dtype = BY_DTYPE_U8,
                               .mode = BY_MODE_FAST};
    uint32_t lost = 0;

    while (has_lost(lane) && lane->flights[lane->oldest].seq - first < BY_GAP_CHUNKS) {
        struct by_flight *flight = &lane->flights[lane->oldest];

        gap.missing |= (uint8_t)(1u << (flight->seq - first));
        lost += (flight->flags & BY_FLIGHT_RETX) == 0;
        flight->flags = (uint8_t)((flight->flags & ~(BY_FLIGHT_TIMED | BY_FLIGHT_HELD)) | BY_FLIGHT_RETX);
        flight->order = ++lane->order;
        by_send_unlink(lane, flight);
        link_newest(lane, flight);
    }
    by_pace_lost(endpoint, lane, lost);
    by_gap_encode(&gap, tx->small);
    header.psum = by_psum(tx->small, BY_GAP_BYTES);
    by_send_fill(endpoint, lane, &header, BY_GAP_BYTES, NULL, tx);
    endpoint->counters.gap++;
}

/* ---- turns ---- */

static uint32_t run_urgent(struct by_endpoint *endpoint, struct by_tx *tx, uint32_t capacity)
{
    uint32_t count = 0;

    while (count < capacity) {
        struct by_ep_lane *lane = ring_pop(endpoint, &endpoint->urgent, 1);

        if (lane == NULL)
            break;
        if (is_asked(lane)) {
            count += (uint32_t)send_again(endpoint, lane, &lane->flights[lane->oldest], 0, &tx[count]);
        } else if (has_lost(lane)) {
            ask_for_results(endpoint, lane, &tx[count++]);
        } else if (may_revive(lane)) {
            lane->revive--;
            count += (uint32_t)send_again(endpoint, lane, &lane->flights[lane->oldest], 1, &tx[count]);
        } else if (lane->inflight == 0 && has_next(lane)) {
            send_next(endpoint, lane, &tx[count++]);
        }
        if (endpoint->dead != 0)
            break;
        by_send_ready(endpoint, lane);
    }
    return count;
}

/* Gives all ready lanes the credit of the rounds in which none of them could send: small shares
 * would take up to BY_CREDIT_ONE rounds. */
static void skip_rounds(struct by_endpoint *endpoint)
{
    uint32_t rounds = BY_CREDIT_ONE;

    for (uint16_t l = endpoint->ready.head; l != BY_LANE_NONE; l = endpoint->lanes[l].ready_next) {
        const struct by_ep_lane *lane = &endpoint->lanes[l];
        uint32_t needed = (BY_CREDIT_ONE - lane->credit + lane->quantum - 1) / lane->quantum;

        rounds = needed < rounds ? needed : rounds;
    }
    for (uint16_t l = endpoint->ready.head; l != BY_LANE_NONE; l = endpoint->lanes[l].ready_next)
        endpoint->lanes[l].credit += (rounds - 1) * endpoint->lanes[l].quantum;
}

/* Each turn gives a lane its quantum of credit, at most BY_CREDIT_ONE; a chunk costs
 * BY_CREDIT_ONE. */
static uint32_t run_ready(struct by_endpoint *endpoint, struct by_tx *tx, uint32_t capacity)
{
    uint32_t count = 0;
    uint16_t first = BY_LANE_NONE; /* of the lanes whose turns passed since a chunk was sent */

    while (count < capacity && endpoint->inflight < endpoint->window) {
        struct by_ep_lane *lane;

        if (first != BY_LANE_NONE && endpoint->ready.head == first)
            skip_rounds(endpoint);
        lane = ring_pop(endpoint, &endpoint->ready, 0);
        if (lane == NULL)
            break;
        if (!may_start(endpoint, lane))
            continue; /* returns when a result opens its window */
        lane->credit += lane->quantum;
        if (lane->credit >= BY_CREDIT_ONE) {
            lane->credit -= BY_CREDIT_ONE;
            send_next(endpoint, lane, &tx[count++]);
            first = BY_LANE_NONE;
        } else if (first == BY_LANE_NONE) {
            first = (uint16_t)(lane - endpoint->lanes);
        }
        if (may_start(endpoint, lane))
            ring_push(endpoint, &endpoint->ready, lane, 0);
    }
    return count;
}

/* Asks for the state of the lane's oldest chunk, or, in an opening, whether the other ranks have
 * moved the session on: then a node is at a later roll call. */
static void ask(const struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                const struct by_flight *flight, struct by_tx *tx)
{
    struct by_flight about = *flight;

    if (endpoint->session_phase == BY_SESSION_OPENING)
        about.seq = lane->start;
    packet_build(endpoint, lane, &about, BY_TYPE_PROBE, tx);
}

/* Handles a lane's timeout: only its oldest chunk is sent again. */
static int timer_expire(struct by_endpoint *endpoint, struct by_ep_lane *lane, struct by_tx *tx)
{
    struct by_flight *flight = by_flight_at(lane, lane->base);
    uint64_t age = endpoint->now_ns - by_lane_waits_since(lane);

    if (age >= endpoint->config.stall_ns &&
        (age >= endpoint->config.absent_ns || !by_suspect_is_absence(endpoint, lane))) {
        struct by_call_status status = {.node = BY_NODE_NONE, .missing_node = BY_NODE_NONE};

        by_suspect_fill(endpoint, lane, &status);
        by_call_fail(endpoint, &endpoint->calls[flight->call], BY_ETIMEDOUT, &status);
        return 0;
    }
    /* Ranks open a session at different times; one small packet is in flight until they have. */
    if (lane->backoff > 1 && endpoint->session_phase == BY_SESSION_AGREED &&
        !(lane->wait.heard && lane->wait.seq == lane->base))
        by_pace_cut(endpoint, lane, BY_PACE_SILENCE);
    if (lane->backoff < BY_BACKOFF_MAX)
        lane->backoff++;
    lane->timer_ns = endpoint->now_ns;
    if (age >= endpoint->config.stall_ns / 4 && (lane->probes++ & 1u) == 0)
        ask(endpoint, lane, flight, tx);
    else
        return send_again(endpoint, lane, flight, 1, tx);
    return 1;
}

static uint32_t run_timers(struct by_endpoint *endpoint, struct by_tx *tx, uint32_t capacity)
{
    struct by_ep_lane *lane;
    uint32_t count = 0;

    if (endpoint->now_ns < endpoint->deadline_ns)
        return 0;
    while (count < capacity && (lane = by_timer_pop(endpoint)) != NULL) {
        if (lane->inflight == 0)
            continue;
        if (endpoint->now_ns >= by_timer_due(endpoint, lane)) {
            count += (uint32_t)timer_expire(endpoint, lane, &tx[count]);
            if (endpoint->dead != 0)
                return 0;
        }
        by_timer_set(endpoint, lane);
    }
    endpoint->deadline_ns = by_timer_next(endpoint);
    return count;
}

/* Objects to the first chunk that this host has not sent: no rank has its result. */
static void object(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, struct by_tx *tx)
{
    const struct by_err err = {.node = endpoint->node,
                               .reason = BY_ERR_RANK,
                               .seq = lane->next,
                               .expected_seq = endpoint->lost_rank,
                               .first = {.count = endpoint->lost_fate}};
    struct by_header header = {.type = BY_TYPE_ERR,
                               .flags = BY_FLAG_POISON,
                               .child = lane->parent_child,
                               .job = endpoint->config.job,
                               .tree = lane->tree,
                               .gen = endpoint->gen,
                               .seq = lane->next,
                               .op = BY_OP_BOR,
                               .dtype = BY_DTYPE_U8,
                               .mode = BY_MODE_FAST};

    by_err_encode(&err, tx->small);
    header.psum = by_psum(tx->small, BY_ERR_BYTES);
    by_send_fill(endpoint, lane, &header, BY_ERR_BYTES, NULL, tx);
}

/* Reports the lost rank of this host to the other hosts. */
static uint32_t run_lost(struct by_endpoint *endpoint, struct by_tx *tx, uint32_t capacity)
{
    uint32_t count = 0;

    while (count < capacity && endpoint->lost_fate != 0 && endpoint->lost_lane < endpoint->lane_count)
        object(endpoint, &endpoint->lanes[endpoint->lost_lane++], &tx[count++]);
    if (endpoint->lost_lane >= endpoint->lane_count)
        endpoint->lost_fate = 0;
    return count;
}

uint32_t by_send_run(struct by_endpoint *endpoint, struct by_tx *tx, uint32_t capacity)
{
    uint32_t count;

    if (endpoint->dead != 0 || endpoint->frozen)
        return 0;
    count = run_lost(endpoint, tx, capacity);
    count += run_timers(endpoint, tx + count, capacity - count);
    if (endpoint->dead == 0)
        count += run_urgent(endpoint, tx + count, capacity - count);
    if (endpoint->dead == 0)
        count += run_ready(endpoint, tx + count, capacity - count);
    return count;
}

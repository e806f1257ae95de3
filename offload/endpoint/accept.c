/*
 * Input: results are checked in full and written once; WAIT and ERR are evidence of failures. A
 * packet that fails a check is counted and dropped: the chunk stays in flight and its timer repairs
 * it. Pure; the endpoint's thread.
 *
 * The value is checked before it is copied, because with in-place buffers the input must survive
 * until the result is accepted: it may have to be sent again. A direct value (packet.h) is checked
 * while it is copied: only damaged memory can corrupt it, and that ends the call if the input is
 * gone.
 */
#include "offload/endpoint/state.h"

static struct by_ep_lane *lane_find(struct by_endpoint *endpoint, const struct by_header *header)
{
    uint16_t index;

    if (header->job != endpoint->config.job || header->gen != endpoint->gen ||
        header->tree >= endpoint->tree_limit)
        return NULL;
    index = endpoint->lane_of_tree[header->tree];
    return index == BY_LANE_NONE ? NULL : &endpoint->lanes[index];
}

static int from_parent(const struct by_ep_lane *lane, const struct by_header *header, const struct by_rx *rx)
{
    if (header->type == BY_TYPE_CONTRIB || rx->port != lane->parent_port)
        return 0;
    if (rx->port != BY_PORT_LOCAL && rx->src_ip != lane->parent_ip)
        return 0;
    return header->child == lane->parent_child || header->child == BY_WIRE_CHILD_ALL;
}

/* In a keyed job: returns whether the parent made the packet for this rank. In another job: the
 * packet must not claim to be keyed. */
static int is_genuine(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, const uint8_t *data,
                      const struct by_header *header, const uint8_t *payload, uint32_t bytes)
{
    if (endpoint->cover == BY_COVER_NONE || !(header->flags & BY_FLAG_KEYED))
        return endpoint->cover == BY_COVER_NONE && !(header->flags & BY_FLAG_KEYED);
    return by_header_is_sealed(
        data, &lane->keys.in,
        by_payload_digest(&endpoint->payload_key, endpoint->cover, header->type, payload, bytes));
}

/* Returns the flight that a packet refers to, or NULL when that chunk is not in flight. */
static struct by_flight *flight_find(const struct by_ep_lane *lane, uint32_t seq)
{
    struct by_flight *flight = by_flight_at(lane, seq);

    return flight->flags & BY_FLIGHT_SENT && flight->seq == seq ? flight : NULL;
}

/* Returns the counter of the reason why a result does not match its flight, or NULL when it
 * matches. Does not check the payload of a direct packet. */
static uint64_t *result_fault(struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                              const struct by_flight *flight, const struct by_header *header,
                              const uint8_t *payload, uint32_t bytes, int direct)
{
    const struct by_call_state *call = &endpoint->calls[flight->call];
    int data = (header->flags & BY_FLAG_NODATA) == 0;
    uint32_t times = lane->half == BY_HALF_NONE ? 1 : 2; /* each rank is a leaf of both trees of a pair */

    if (header->op != call->op || header->dtype != call->dtype ||
        header->mode != by_flight_mode(flight, call) || header->optag != call->optag ||
        header->count != flight->count || header->flags & (BY_FLAG_POISON | BY_FLAG_PARTIAL))
        return &endpoint->counters.drop_match;
    /* A rank that needs the value must receive it; other ranks may receive it all the same, from a
     * multicast. */
    if (bytes != (data ? flight->bytes : 0u) || (!data && !(flight->flags & BY_FLIGHT_ACKONLY)))
        return &endpoint->counters.drop_match;
    if (data && !direct && endpoint->words->psum(payload, bytes) != header->psum)
        return &endpoint->counters.drop_psum;
    if (header->nleaf != times * endpoint->rank_count || header->witness != times * endpoint->witness)
        return &endpoint->counters.drop_witness;
    return NULL;
}

/*
 * Ends the call for a result with a valid header and payload that lacks a leaf or contains one
 * twice. No cable causes that: some node's memory has changed, or it has lost its state, and it
 * would repeat the same answer. Or memory has changed a direct value that overwrote this rank's
 * input.
 */
static void fail_damaged(struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                         const struct by_header *header)
{
    struct by_call_status status = {.tree = lane->tree,
                                    .seq = header->seq,
                                    .node = lane->parent_node,
                                    .missing_node = BY_NODE_NONE,
                                    .err = {.node = BY_NODE_NONE, .seq = header->seq}};

    by_call_fail(endpoint, &endpoint->calls[by_flight_at(lane, header->seq)->call], BY_ECHECKSUM, &status);
}

void by_accept_deliver(const struct by_endpoint *endpoint, const struct by_flight *flight,
                       const uint8_t *payload)
{
    const struct by_call_state *call = &endpoint->calls[flight->call];

    if (flight->recv == NULL)
        return;
    /* A rank with a destination that needs no value back has the value itself: the source of a
     * broadcast or an allgather. */
    if (flight->flags & BY_FLIGHT_ACKONLY)
        by_copy(flight->recv, flight->send, flight->bytes);
    else if (call->part == BY_PART_INTEGERS)
        by_exact_deliver(endpoint, call, flight, payload);
    else
        by_copy(flight->recv, payload, flight->bytes);
}

/*
 * Copies a result from the memory of the node that made it, and checks it in the same pass. Returns
 * 0 when its psum is wrong. Then memory is damaged, at the node or here, because no cable was
 * between.
 */
static int copy_checked(const struct by_endpoint *endpoint, const struct by_flight *flight,
                        const struct by_header *header, const uint8_t *payload)
{
    const struct by_call_state *call = &endpoint->calls[flight->call];

    if (flight->recv != NULL && !(flight->flags & BY_FLIGHT_ACKONLY) && call->part != BY_PART_INTEGERS)
        return endpoint->words->psum_copy(flight->recv, payload, flight->bytes) == header->psum;
    if (endpoint->words->psum(payload, flight->bytes) != header->psum)
        return 0;
    by_accept_deliver(endpoint, flight, payload);
    return 1;
}

/* A chunk that was not lost anywhere, but late: the path reorders by at least this much. */
static void learn_order(struct by_ep_lane *lane, const struct by_flight *flight)
{
    int32_t late = (int32_t)(lane->order_heard - flight->order);

    if (late >= (int32_t)lane->threshold)
        lane->threshold = late < (int32_t)BY_LOSS_THRESHOLD_MAX ? (uint32_t)late + 1 : BY_LOSS_THRESHOLD_MAX;
}

/*
 * Evaluates the round trip, and what this answer shows about earlier transmissions. Only a chunk
 * that was sent once gives certain evidence. The answer to a retransmitted chunk may belong to an
 * earlier transmission of this rank or of another, and would declare chunks lost that are still on
 * their way.
 *
 * The RETX flag of the result shows whether something of a chunk was lost or only late. No timing
 * shows that, because round trips shrink when a burst of losses has emptied the queues. After a
 * timeout there may be no other evidence. Then an answer with RETX revives two flights, each of
 * which may revive two more, so a window that was lost as a whole is recovered after a few round
 * trips. This does not apply if a node has reported that it had this rank's value and waited for
 * others (WAIT): then the loss was theirs.
 */
static void heed_timing(struct by_endpoint *endpoint, struct by_ep_lane *lane, const struct by_flight *flight,
                        int resent)
{
    if (!(flight->flags & BY_FLIGHT_RETX)) {
        by_pace_late(endpoint, flight->sent_ns);
        /* an opening finds the path idle: as a lane's first sample it would be far too short */
        if (!resent && flight->call != BY_CALL_OPENING) {
            by_pace_sample(lane, endpoint->now_ns, endpoint->now_ns - flight->sent_ns);
            learn_order(lane, flight);
        }
        if ((int32_t)(flight->order - lane->order_heard) > 0)
            lane->order_heard = flight->order;
    } else if (flight->flags & BY_FLIGHT_TIMED) {
        if (resent && !(flight->flags & BY_FLIGHT_HELD)) {
            lane->revive = BY_REVIVE_COUNT;
            lane->revive_order = flight->order;
        }
    } else if (resent) {
        if (lane->threshold > BY_LOSS_THRESHOLD)
            lane->threshold--;
    } else if (lane->threshold < BY_LOSS_THRESHOLD_MAX) {
        lane->threshold++;
    }
}

void by_accept_done(struct by_endpoint *endpoint, struct by_ep_lane *lane, struct by_flight *flight)
{
    struct by_call_state *call = &endpoint->calls[flight->call];

    by_send_unlink(lane, flight);
    flight->flags = 0;
    lane->inflight--;
    endpoint->inflight--;
    while (lane->base != lane->next && !(by_flight_at(lane, lane->base)->flags & BY_FLIGHT_SENT))
        lane->base++;
    if (--call->remaining > 0)
        return;
    if (flight->call == BY_CALL_SESSION)
        by_session_rolled(endpoint);
    else if (flight->call == BY_CALL_OPENING)
        by_session_opened(endpoint);
    else
        by_call_finish(endpoint, call);
}

static void take_result(struct by_endpoint *endpoint, struct by_ep_lane *lane, const struct by_header *header,
                        const uint8_t *payload, uint32_t bytes, int direct)
{
    struct by_flight *flight = flight_find(lane, header->seq);
    uint64_t *fault;

    if (flight == NULL) {
        if ((int32_t)(header->seq - lane->next) < 0)
            endpoint->counters.duplicate++;
        else
            endpoint->counters.drop_match++;
        return;
    }
    fault = result_fault(endpoint, lane, flight, header, payload, bytes, direct);
    if (fault != NULL) {
        (*fault)++;
        if (fault == &endpoint->counters.drop_witness)
            fail_damaged(endpoint, lane, header);
        return;
    }
    if (direct && bytes > 0 && !copy_checked(endpoint, flight, header, payload)) {
        endpoint->counters.drop_psum++;
        if (flight->recv == flight->send) /* no input is left to send again */
            fail_damaged(endpoint, lane, header);
        return;
    }
    if (!direct || bytes == 0)
        by_accept_deliver(endpoint, flight, payload);
    heed_timing(endpoint, lane, flight, (header->flags & BY_FLAG_RETX) != 0);
    endpoint->counters.result++;
    by_pace_accepted(endpoint, lane);
    if (header->flags & BY_FLAG_CE)
        by_pace_cut(endpoint, lane, BY_PACE_MARK);
    lane->timer_ns = lane->heard_ns = endpoint->now_ns;
    lane->heard = header->seq;
    lane->backoff = 0;
    if (header->seq == lane->base)
        lane->probes = 0;
    by_accept_done(endpoint, lane, flight);
    if (endpoint->dead != 0)
        return;
    if (lane->inflight > 0)
        by_timer_set(endpoint, lane); /* without its backoff it is due earlier */
    by_send_ready(endpoint, lane);
}

static void take_wait(struct by_endpoint *endpoint, struct by_ep_lane *lane, const struct by_header *header,
                      const uint8_t *payload, uint32_t bytes)
{
    struct by_flight *flight = flight_find(lane, header->seq);
    struct by_wait wait;

    if (by_wait_decode(payload, bytes, &wait) != 0) {
        endpoint->counters.drop_format++;
        return;
    }
    endpoint->counters.wait++;
    if (flight != NULL && wait.state == BY_WAIT_CHILDREN)
        flight->flags |= BY_FLIGHT_HELD;
    by_suspect_hear(endpoint, lane, header->seq, &wait);
}

/* Handles GAP: the parent lacks chunks of this rank although it has chunk `seen`. Those that were
 * sent before that one are lost. It requests them until they arrive; each counts once as lost. */
static void take_gap(struct by_endpoint *endpoint, struct by_ep_lane *lane, const struct by_header *header,
                     const uint8_t *payload, uint32_t bytes)
{
    const struct by_flight *later;
    struct by_gap gap;
    uint32_t lost = 0;

    if (by_gap_decode(payload, bytes, &gap) != 0) {
        endpoint->counters.drop_format++;
        return;
    }
    endpoint->counters.asked++;
    later = by_flight_at(lane, gap.seen);
    for (unsigned i = 0; i < BY_GAP_CHUNKS; i++) {
        struct by_flight *flight = flight_find(lane, header->seq + i);

        if ((gap.missing >> i & 1) && flight != NULL &&
            (later->seq != gap.seen || flight->sent_ns <= later->sent_ns))
            lost += by_send_first(lane, flight);
    }
    by_pace_lost(endpoint, lane, lost);
    by_send_ready(endpoint, lane);
}

static void take_err(struct by_endpoint *endpoint, struct by_ep_lane *lane, const struct by_header *header,
                     const uint8_t *payload, uint32_t bytes)
{
    const struct by_flight *flight = flight_find(lane, header->seq);
    struct by_call_status status = {.tree = lane->tree, .seq = header->seq, .missing_node = BY_NODE_NONE};

    if (by_err_decode(payload, bytes, &status.err) != 0) {
        endpoint->counters.drop_format++;
        return;
    }
    endpoint->counters.err++;
    if (flight == NULL)
        return;
    status.node = status.err.node;
    if (by_flight_is_session(flight)) {
        by_session_heed(endpoint, lane, header, &status.err);
    } else if (status.err.reason == BY_ERR_MISMATCH) {
        by_guess(endpoint, &endpoint->calls[flight->call], &status.err.first, &status.first);
        by_guess(endpoint, &endpoint->calls[flight->call], &status.err.other, &status.other);
        by_call_fail(endpoint, &endpoint->calls[flight->call], BY_EMISMATCH, &status);
    } else if (status.err.reason == BY_ERR_MEMORY) {
        by_call_fail(endpoint, &endpoint->calls[flight->call], BY_ECHECKSUM, &status);
    } else if (status.err.reason == BY_ERR_RANK) {
        by_call_fail(endpoint, &endpoint->calls[flight->call], BY_EIO, &status);
    } else if (status.err.reason == BY_ERR_UNSUPPORTED) {
        by_call_fail(endpoint, &endpoint->calls[flight->call], BY_EUNSUPPORTED, &status);
    } else if (status.err.reason == BY_ERR_WINDOW &&
               (int32_t)(status.err.expected_seq - lane->next) >= (int32_t)(4 * (lane->mask + 1))) {
        /* the node has gone on with a later session */
        by_call_fail(endpoint, &endpoint->calls[flight->call], BY_ESTATE, &status);
    } else {
        /* The parent has no entry (yet), or another window; new tables may be on their way. Keep
         * the ERR in case the chunk times out. */
        lane->hint = status.err;
        lane->hint.seq = header->seq;
    }
}

void by_accept(struct by_endpoint *endpoint, const struct by_rx *rx)
{
    struct by_header header;
    struct by_ep_lane *lane;
    const uint8_t *payload;
    int32_t bytes = by_header_decode(rx->data, rx->bytes, &header, &payload);

    endpoint->counters.rx++;
    if (bytes < 0) {
        endpoint->counters.drop_format++;
        return;
    }
    if (rx->payload)
        payload = rx->payload;
    lane = lane_find(endpoint, &header);
    if (lane == NULL) {
        endpoint->counters.drop_entry++;
        return;
    }
    if (!from_parent(lane, &header, rx)) {
        endpoint->counters.drop_ingress++;
        return;
    }
    if (!is_genuine(endpoint, lane, rx->data, &header, payload, (uint32_t)bytes)) {
        endpoint->counters.drop_key++;
        return;
    }
    if (endpoint->dead != 0)
        return;
    if (endpoint->frozen) {
        endpoint->counters.drop_entry++; /* belongs to a past generation */
        return;
    }
    if (rx->ecn == 3)
        by_pace_cut(endpoint, lane, BY_PACE_MARK);
    if (header.type == BY_TYPE_PROBE) {
        endpoint->counters.probe++; /* no reply: only nodes answer; waiting nodes hear of this rank in time */
        by_session_follow(endpoint, lane, &header);
    } else if (header.type != BY_TYPE_RESULT && by_psum(payload, (uint32_t)bytes) != header.psum) {
        endpoint->counters.drop_psum++;
    } else if (header.type == BY_TYPE_RESULT) {
        take_result(endpoint, lane, &header, payload, (uint32_t)bytes, rx->direct);
    } else if (header.type == BY_TYPE_WAIT) {
        take_wait(endpoint, lane, &header, payload, (uint32_t)bytes);
    } else if (header.type == BY_TYPE_GAP) {
        take_gap(endpoint, lane, &header, payload, (uint32_t)bytes);
    } else {
        take_err(endpoint, lane, &header, payload, (uint32_t)bytes);
    }
}

/*
 * The session. Tables stay on switches across host processes, but every process counts its chunks
 * from 0. So before the first chunk of a call the ranks call the roll on the first lane: a small
 * gathering in which each rank writes a nonce of its own. A rank whose nonce does not return was
 * answered from the state of an earlier run, and ends. The other ranks salt all later optags with
 * the complete roll, so that no old chunk matches (PROTOCOL.md, "Sessions"). Neighbours: cursor.c
 * traverses the roll like any chunk, accept.c detects its completion. Pure; the endpoint's thread.
 */
#include "offload/endpoint/state.h"

#define NONCE_BYTES 4u

void by_session_begin(struct by_endpoint *endpoint)
{
    struct by_call_state *state = &endpoint->calls[BY_CALL_SESSION];
    struct by_ep_lane *lane =
        &endpoint->lanes[endpoint->first]; /* the same tree at all ranks, because all are leaves of each */
    uint64_t bytes = (uint64_t)endpoint->rank_count * NONCE_BYTES;

    BY_ASSERT(endpoint->lane_count > 0);
    if (endpoint->session_phase != BY_SESSION_NONE)
        return;
    endpoint->session_phase = BY_SESSION_ASKED;
    endpoint->roll[endpoint->rank] = endpoint->config.nonce;
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
    for (uint32_t half = 0; half < (lane->half == BY_HALF_UP ? 2u : 1u); half++) {
        state->remaining += (bytes + lane->payload_max - 1) / lane->payload_max;
        lane[half].cursor.at = 0;
        lane[half].cursor.end = bytes;
        lane[half].cursor.active = 1;
    }
}

void by_session_refuse(struct by_endpoint *endpoint, uint16_t node, const struct by_err *err)
{
    struct by_ep_lane *lane = &endpoint->lanes[endpoint->first];
    struct by_call_status status = {
        .tree = lane->tree, .seq = lane->base, .node = node, .missing_node = BY_NODE_NONE};

    if (err != NULL)
        status.err = *err;
    if (err == NULL || err->reason != BY_ERR_USED) { /* otherwise all nodes on the path know already */
        endpoint->parting = BY_PARTING_COUNT;
        endpoint->parting_node = node;
    }
    by_call_fail(endpoint, &endpoint->calls[BY_CALL_SESSION], BY_ESTATE, &status);
}

/*
 * Writes the ERR by which this rank's refusal reaches ranks that would otherwise wait for it: those
 * whose nodes are new with their processes, or whose own nonce returned. These are in the roll call
 * or at the chunk after it, so the ERR is sent for both.
 */
uint32_t by_session_part(struct by_endpoint *endpoint, struct by_tx *tx)
{
    const struct by_ep_lane *lane = &endpoint->lanes[endpoint->first];
    const struct by_call_state *roll = &endpoint->calls[BY_CALL_SESSION];
    uint32_t end = (uint32_t)((roll->call.count + lane->payload_max - 1) / lane->payload_max);
    uint32_t count = 0;

    for (uint32_t seq = lane->base < end ? lane->base : 0; endpoint->parting > 0; seq = end) {
        struct by_err err = {.node = endpoint->parting_node, .reason = BY_ERR_USED, .seq = seq};
        struct by_header header = {.type = BY_TYPE_ERR,
                                   .flags = BY_FLAG_POISON,
                                   .child = lane->parent_child,
                                   .job = endpoint->config.job,
                                   .tree = lane->tree,
                                   .gen = endpoint->gen,
                                   .op = roll->op,
                                   .dtype = roll->dtype,
                                   .mode = roll->mode,
                                   .seq = seq,
                                   .optag = roll->optag};

        endpoint->parting--;
        by_err_encode(&err, tx[count].small);
        header.psum = by_psum(tx[count].small, BY_ERR_BYTES);
        by_send_fill(endpoint, lane, &header, BY_ERR_BYTES, NULL, &tx[count]);
        count++;
    }
    return count;
}

void by_session_end(struct by_endpoint *endpoint)
{
    struct by_ep_lane *first = &endpoint->lanes[endpoint->first];

    by_call_finish(endpoint, &endpoint->calls[BY_CALL_SESSION]);
    if (endpoint->roll[endpoint->rank] != endpoint->config.nonce) {
        by_session_refuse(endpoint, by_suspect_upper(endpoint, first), NULL);
        return;
    }
    endpoint->counters.session++;
    endpoint->session_phase = BY_SESSION_AGREED;
    endpoint->session_salt = by_session_salt(endpoint->roll, endpoint->rank_count);
    for (uint32_t c = 0; c < BY_CALLS_MAX; c++)
        endpoint->calls[c].optag ^= endpoint->session_salt;
    for (uint32_t half = 0; half < (first->half == BY_HALF_UP ? 2u : 1u); half++)
        first[half].cursor = (struct by_ep_cursor){0};
    for (uint32_t l = 0; l < endpoint->lane_count; l++)
        if (by_cursor_seek(endpoint, &endpoint->lanes[l]))
            by_send_ready(endpoint, &endpoint->lanes[l]);
}

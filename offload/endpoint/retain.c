/*
 * What a chunk was, and what others may still need of it, for as long as they may: until the chunk
 * that takes its slot is done, which all ranks send only after they have its result. A call may end
 * before that, and its buffers belong to the user again; what others may need is copied then, a
 * window of each tree at the most. Neighbours: cursor.c notes chunks, call.c ends calls, resume.c
 * gives and takes. Pure; the endpoint's thread.
 *
 * A value is held by every rank that got it. Of a chunk that goes to its owner alone (reduce,
 * reduce-scatter) the others hold their inputs: when the owner has not got the value nobody has,
 * and it makes the sum anew.
 */
#include "offload/endpoint/state.h"

/* A place holds a payload, or its sum in the making: f16 and bf16 are added in f32. */
#define PLACE_WIDTH 2u
#define ALIGNMENT   64u

size_t by_retain_traces(uint32_t window)
{
    return (2u * (size_t)window * sizeof(struct by_trace) + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

size_t by_retain_places(uint32_t window, uint32_t payload_max)
{
    return ((size_t)window * PLACE_WIDTH * payload_max + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

uint8_t *by_retain_at(const struct by_ep_lane *lane, uint32_t seq)
{
    return lane->keep + (size_t)(seq & lane->mask) * PLACE_WIDTH * lane->payload_max;
}

static void note_kind(const struct by_call_state *state, const struct by_flight *flight, uint32_t shard,
                      struct by_trace *trace)
{
    const struct by_call *call = &state->call;

    switch ((enum by_collective)(flight->bytes == 0 ? BY_COLLECTIVE_BARRIER : call->collective)) {
    case BY_COLLECTIVE_ALLREDUCE:
        trace->kind = BY_CHUNK_ALL;
        break;
    case BY_COLLECTIVE_REDUCE:
    case BY_COLLECTIVE_REDUCE_SCATTER:
        trace->kind = BY_CHUNK_TO;
        trace->owner = call->collective == BY_COLLECTIVE_REDUCE ? call->root : (uint16_t)shard;
        break;
    case BY_COLLECTIVE_BROADCAST:
    case BY_COLLECTIVE_ALLGATHER:
        trace->kind = BY_CHUNK_FROM;
        trace->owner = call->collective == BY_COLLECTIVE_BROADCAST ? call->root : (uint16_t)shard;
        break;
    case BY_COLLECTIVE_BARRIER:
    default:
        trace->kind = BY_CHUNK_EMPTY;
        break;
    }
}

void by_retain_note(struct by_endpoint *endpoint, struct by_ep_lane *lane, const struct by_flight *flight,
                    uint32_t shard, uint64_t at)
{
    const struct by_call_state *call = &endpoint->calls[flight->call];
    struct by_trace *trace;
    int own;

    if (lane->traces == NULL)
        return;
    trace = by_trace_at(lane, lane->next);
    *trace = (struct by_trace){.at = at,
                               .seq = lane->next,
                               .call = call->number,
                               .shard = shard,
                               .bytes = flight->bytes,
                               .held_bytes = flight->bytes,
                               .session = flight->call == BY_CALL_SESSION};
    note_kind(call, flight, shard, trace);
    own = trace->owner == endpoint->rank;
    if (trace->kind == BY_CHUNK_ALL || (trace->kind == BY_CHUNK_FROM && !own)) {
        trace->held = flight->recv;
        if (call->part == BY_PART_INTEGERS)
            trace->held_bytes = (uint16_t)(flight->count * by_dtype_bytes(call->call.dtype));
    } else if (trace->kind == BY_CHUNK_FROM || (trace->kind == BY_CHUNK_TO && !own)) {
        trace->held = flight->send;
    }
}

/* Some rank has the chunk's result: this one, or it would not be making the sum itself. */
static int is_known(const struct by_ep_lane *lane, uint32_t seq)
{
    return by_lane_is_done(lane, seq) || by_trace_at(lane, seq)->added > 0;
}

void by_retain_save(struct by_endpoint *endpoint, const struct by_call_state *call)
{
    if (call == &endpoint->calls[BY_CALL_SESSION])
        return; /* the roll stays */
    for (uint32_t l = 0; l < endpoint->lane_count; l++) {
        struct by_ep_lane *lane = &endpoint->lanes[l];

        if (lane->traces == NULL)
            return;
        for (uint32_t ago = 1; ago <= 2 * (lane->mask + 1); ago++) {
            uint32_t seq = lane->next - ago;
            struct by_trace *trace = by_trace_at(lane, seq);

            if (trace->kind == 0 || trace->seq != seq || trace->session ||
                (int32_t)(trace->call - call->number) < 0)
                break;
            if (trace->call != call->number || trace->held == NULL || trace->kept)
                continue;
            if (ago > lane->mask + 1 && is_known(lane, seq + lane->mask + 1))
                continue; /* all ranks have it */
            by_copy(by_retain_at(lane, seq), trace->held, trace->held_bytes);
            trace->held = by_retain_at(lane, seq);
            trace->kept = 1;
        }
    }
}

const uint8_t *by_retain_held(const struct by_endpoint *endpoint, const struct by_ep_lane *lane, uint32_t seq,
                              uint32_t *bytes)
{
    const struct by_trace *trace = by_trace_at(lane, seq);
    int is_input = trace->kind == BY_CHUNK_TO && trace->owner != endpoint->rank;

    *bytes = trace->held_bytes;
    if (lane->next - seq - 1 >= 2 * (lane->mask + 1) || trace->kind == 0 || trace->seq != seq)
        return NULL;
    return is_input || by_lane_is_done(lane, seq) ? trace->held : NULL;
}

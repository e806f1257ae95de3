/*
 * Records of chunks, and data that other ranks may still need. A chunk is retained until the chunk
 * that reuses its slot is done, which every rank sends only after it has the result of the first. A
 * call may end before that, and its buffers then belong to the user again, so the data that others
 * may need is copied at that time: at most a window of each tree. Neighbours: cursor.c records
 * chunks, call.c ends calls, resume.c sends and receives the data. Pure; the endpoint's thread.
 *
 * Every rank that got a value holds it. For a chunk whose value goes only to its owner (reduce,
 * reduce-scatter) the other ranks hold their inputs: if the owner lacks the value no rank has it,
 * and the owner computes the sum again.
 */
#include "offload/endpoint/state.h"

/* A place holds a payload or a partial sum: f16 and bf16 are added in f32. */
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
                               .session = by_flight_is_session(flight)};
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

/* Returns whether some rank is known to have the chunk's result: this rank, or another one. In the
 * latter case only, this rank computes the sum itself. */
static int is_known(const struct by_ep_lane *lane, uint32_t seq)
{
    return by_lane_is_done(lane, seq) || by_trace_at(lane, seq)->added > 0;
}

void by_retain_save(struct by_endpoint *endpoint, const struct by_call_state *call)
{
    if (call >= &endpoint->calls[BY_CALL_SESSION])
        return; /* keep the roll call */
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

/*
 * The path of a lane over the calls: which bytes of which call are its next chunk. Every rank
 * follows the same path, so a sequence number denotes the same chunk everywhere without any
 * information on the wire. A chunk costs O(1); a shard costs two divisions. Bytes that trees of an
 * earlier generation have done are skipped (done.c). Pure; the endpoint's thread.
 */
#include "offload/endpoint/state.h"

/* A lane's part in one call: the group through which it serves the call, and for how many
 * shards. */
struct cursor_part {
    uint32_t group;
    uint32_t shards;
};
#define PARTS_MAX 2u

/* Finds the parts of `lane` in `call` (0 to PARTS_MAX). */
static uint32_t parts_of(const struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                         const struct by_call_state *state, struct cursor_part parts[PARTS_MAX])
{
    const struct by_call *call = &state->call;
    uint32_t count = 0;
    uint32_t rooted, group;

    if (!by_collective_is_sharded(call->collective)) {
        group = by_share_of_call(endpoint, state, call->root);
        if (group == BY_GROUP_NONE || !by_share_member(endpoint, lane, group))
            return 0;
        parts[0] = (struct cursor_part){group, 1};
        return 1;
    }
    rooted = (uint32_t)by_share_rooted(call->collective);
    if (lane->owner != BY_RANK_NONE && lane->collectives >> call->collective & 1u)
        parts[count++] = (struct cursor_part){BY_GROUP_RANK + rooted * endpoint->rank_count + lane->owner, 1};
    group = endpoint->groups[BY_GROUP_ANY + rooted].share_total > 0 ? BY_GROUP_ANY + rooted
                                                                    : (uint32_t)BY_GROUP_ALLREDUCE;
    if (endpoint->orphans[rooted] > 0 && by_share_member(endpoint, lane, group))
        parts[count++] = (struct cursor_part){group, endpoint->orphans[rooted]};
    return count;
}

/* Returns the chunks of a shard on a lane of its group. */
static uint64_t chunks_of(const struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                          const struct by_call_state *call, uint32_t group, uint32_t shard)
{
    uint64_t start, end;

    by_share_segment(endpoint, lane, group, by_shard_bytes(call, shard), &start, &end);
    return (end - start + lane->payload_max - 1) / lane->payload_max;
}

/* Returns the chunks of a part with shards of unequal size: those of its owner, or of each rank
 * without trees of its own. */
static uint64_t unequal_chunks(const struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                               const struct by_call_state *call, const struct cursor_part *part)
{
    uint64_t chunks = 0;

    if (part->group >= BY_GROUP_RANK)
        return chunks_of(endpoint, lane, call, part->group, lane->owner);
    for (uint32_t rank = 0; rank < endpoint->rank_count; rank++)
        if (by_share_group(endpoint, call->call.collective, rank) == part->group)
            chunks += chunks_of(endpoint, lane, call, part->group, rank);
    return chunks;
}

/* Returns the chunks of a call on a lane with these parts. */
static uint64_t lane_chunks(const struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                            const struct by_call_state *call, const struct cursor_part *parts, uint32_t count)
{
    uint64_t chunks = 0;

    for (uint32_t p = 0; p < count; p++) {
        if (call->call.collective == BY_COLLECTIVE_BARRIER)
            chunks += lane->before[parts[p].group] == 0;
        else if (call->call.offsets != NULL)
            chunks += unequal_chunks(endpoint, lane, call, &parts[p]);
        else
            chunks += parts[p].shards * chunks_of(endpoint, lane, call, parts[p].group, 0);
    }
    return chunks;
}

/* Returns the weight relative to other lanes: for equal shards the lane's share, which needs no
 * segments; else the count of chunks itself (no memory holds 2^58 of them). */
static uint64_t lane_weight(const struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                            const struct by_call_state *call, const struct cursor_part *parts, uint32_t count)
{
    uint64_t weight = 0;

    if (call->call.offsets != NULL)
        return lane_chunks(endpoint, lane, call, parts, count);
    for (uint32_t p = 0; p < count; p++)
        weight += by_share_weight(endpoint, lane, parts[p].group, parts[p].shards);
    return weight;
}

/* Computes the range [*first, *end) of shards of which the lane may carry bytes. */
static void shard_range(const struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                        const struct by_call_state *call, const struct cursor_part *parts, uint32_t count,
                        uint32_t *first, uint32_t *end)
{
    *first = 0;
    *end = count == 0 ? 0 : by_collective_is_sharded(call->call.collective) ? endpoint->rank_count : 1;
    if (count == 1 && parts[0].group >= BY_GROUP_RANK && by_collective_is_sharded(call->call.collective)) {
        *first = lane->owner;
        *end = lane->owner + 1u;
    }
}

/* Computes the bytes [*at, *end) of a shard that the lane carries; returns 1 when there are any. */
static int segment_of(const struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                      const struct by_call_state *call, uint32_t shard, uint64_t *at, uint64_t *end)
{
    uint32_t group = by_share_of_call(
        endpoint, call, by_collective_is_sharded(call->call.collective) ? shard : call->call.root);

    if (group == BY_GROUP_NONE || !by_share_member(endpoint, lane, group))
        return 0;
    if (call->call.collective == BY_COLLECTIVE_BARRIER) {
        *at = 0;
        *end = lane->before[group] == 0; /* one chunk without data, on the group's first lane */
    } else {
        by_share_segment(endpoint, lane, group, by_shard_bytes(call, shard), at, end);
    }
    return *at < *end;
}

int by_cursor_segment(const struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                      const struct by_call_state *call, uint32_t *shard, uint64_t *from, uint64_t *to)
{
    struct cursor_part parts[PARTS_MAX];
    uint32_t count = parts_of(endpoint, lane, call, parts);
    uint32_t first, end;

    shard_range(endpoint, lane, call, parts, count, &first, &end);
    if (*shard < first)
        *shard = first;
    for (; *shard < end; ++*shard)
        if (segment_of(endpoint, lane, call, *shard, from, to))
            return 1;
    return 0;
}

/* Returns the lane's remaining chunks of a call that began in trees of an earlier generation. */
static uint64_t chunks_left(const struct by_endpoint *endpoint, const struct by_ep_lane *lane,
                            const struct by_call_state *call)
{
    uint64_t chunks = 0, at, end, stop;

    for (uint32_t shard = 0; by_cursor_segment(endpoint, lane, call, &shard, &at, &end); shard++)
        for (; by_done_gap(endpoint, call->number, shard, at, end, &at, &stop); at = stop)
            chunks += (stop - at + lane->payload_max - 1) / lane->payload_max;
    return chunks;
}

uint64_t by_endpoint_chunks(const struct by_endpoint *endpoint, const struct by_call *call, uint16_t tree)
{
    unsigned wire =
        by_exact_is_for(call) ? by_reduction_dtype(call->mode, call->op, call->dtype) : call->dtype;
    struct by_call_state state = {.call = *call, .unit_bytes = (uint8_t)by_dtype_bytes(wire)};
    const struct by_ep_lane *lane;
    struct cursor_part parts[PARTS_MAX];

    if (endpoint->rank_count == 1 || tree >= endpoint->tree_limit ||
        endpoint->lane_of_tree[tree] == BY_LANE_NONE)
        return 0;
    lane = &endpoint->lanes[endpoint->lane_of_tree[tree]];
    return call->collective == BY_COLLECTIVE_BARRIER
               ? 0
               : lane_chunks(endpoint, lane, &state, parts, parts_of(endpoint, lane, &state, parts));
}

void by_cursor_plan(struct by_endpoint *endpoint, struct by_call_state *call)
{
    call->remaining = 0;
    call->weight_max = 1;
    call->word = 0;
    for (uint32_t l = 0; l < endpoint->lane_count; l++) {
        const struct by_ep_lane *lane = &endpoint->lanes[l];
        struct cursor_part parts[PARTS_MAX];
        uint32_t count = parts_of(endpoint, lane, call, parts);
        uint64_t weight = lane_weight(endpoint, lane, call, parts, count);
        uint64_t chunks = lane_chunks(endpoint, lane, call, parts, count);

        if (by_done_any(endpoint, call->number))
            chunks = chunks_left(endpoint, lane, call);
        if (by_lane_lead(lane) == &endpoint->lanes[endpoint->first] && chunks == 0)
            call->word++; /* on both trees of a pair */
        call->remaining += chunks;
        if (weight > call->weight_max)
            call->weight_max = weight;
    }
    call->remaining += call->word;
}

/* Enters the cursor's next call: sets the range of shards and the lane's pace in this call. */
static void enter_call(const struct by_endpoint *endpoint, struct by_ep_lane *lane,
                       const struct by_call_state *call)
{
    struct by_ep_cursor *cursor = &lane->cursor;
    struct cursor_part parts[PARTS_MAX];
    uint32_t count = parts_of(endpoint, lane, call, parts);
    uint64_t weight;

    cursor->entered = 1;
    shard_range(endpoint, lane, call, parts, count, &cursor->shard, &cursor->shard_end);
    if (call->word && by_lane_lead(lane) == &endpoint->lanes[endpoint->first]) {
        cursor->shard_end = 0;
        cursor->at = 0;
        cursor->end = 1;
        cursor->active = cursor->word = 1;
        lane->quantum = BY_CREDIT_ONE;
        return;
    }
    weight = lane_weight(endpoint, lane, call, parts, count);
    lane->quantum = (uint32_t)by_share_scale(BY_CREDIT_ONE, weight, call->weight_max);
    if (lane->quantum == 0)
        lane->quantum = 1;
}

/* Enters the cursor's shard; returns 1 when the lane has bytes of it to send. */
static int enter_shard(const struct by_endpoint *endpoint, struct by_ep_lane *lane,
                       const struct by_call_state *call)
{
    struct by_ep_cursor *cursor = &lane->cursor;
    uint64_t stop;

    return segment_of(endpoint, lane, call, cursor->shard, &cursor->at, &cursor->end) &&
           by_done_gap(endpoint, call->number, cursor->shard, cursor->at, cursor->end, &cursor->at, &stop);
}

int by_cursor_seek(struct by_endpoint *endpoint, struct by_ep_lane *lane)
{
    struct by_ep_cursor *cursor = &lane->cursor;

    if (endpoint->session_phase != BY_SESSION_AGREED)
        return cursor->active; /* the roll call and the openings precede all calls */
    while (!cursor->active && cursor->call != endpoint->posted) {
        struct by_call_state *call = by_call_at(endpoint, cursor->call);

        if (call->phase == BY_CALL_RUNNING) {
            BY_ASSERT(call->number == cursor->call);
            if (call->gated)
                return 0;
            if (!cursor->entered)
                enter_call(endpoint, lane, call);
            for (; cursor->shard < cursor->shard_end && !cursor->active; cursor->shard += !cursor->active)
                cursor->active = (uint8_t)enter_shard(endpoint, lane, call);
        }
        if (!cursor->active) {
            cursor->call++;
            cursor->entered = 0;
        }
    }
    return cursor->active;
}

/* Sets buffers and flags of the chunk under the cursor. */
static void aim_flight(const struct by_endpoint *endpoint, const struct by_call_state *state,
                       const struct by_ep_cursor *cursor, struct by_flight *flight)
{
    const struct by_call *call = &state->call;
    uint32_t shard = cursor->shard;
    uint64_t offset = cursor->at;
    const uint8_t *send =
        state->part == BY_PART_INTEGERS ? by_exact_integers(endpoint, call) : (const uint8_t *)call->send;
    uint8_t *recv = call->recv;
    uint64_t in_all = by_shard_at(state, shard) + offset; /* offset where one buffer holds all shards */
    int mine;

    flight->flags = 0;
    flight->send = NULL;
    flight->recv = NULL;
    if (cursor->word) {
        flight->flags = BY_FLIGHT_NODATA | BY_FLIGHT_ACKONLY;
        return;
    }
    switch ((enum by_collective)call->collective) {
    case BY_COLLECTIVE_ALLREDUCE:
        flight->send = send + offset;
        flight->recv = recv + offset;
        break;
    case BY_COLLECTIVE_REDUCE:
    case BY_COLLECTIVE_REDUCE_SCATTER:
        mine =
            call->collective == BY_COLLECTIVE_REDUCE ? call->root == endpoint->rank : shard == endpoint->rank;
        flight->send = send + (call->collective == BY_COLLECTIVE_REDUCE ? offset : in_all);
        flight->recv = mine ? recv + offset : NULL;
        flight->flags = mine ? 0 : BY_FLIGHT_ACKONLY;
        break;
    case BY_COLLECTIVE_BROADCAST:
    case BY_COLLECTIVE_ALLGATHER:
        mine = call->collective == BY_COLLECTIVE_BROADCAST ? call->root == endpoint->rank
                                                           : shard == endpoint->rank;
        flight->flags = mine ? BY_FLIGHT_ACKONLY : BY_FLIGHT_NODATA;
        flight->send = mine ? send + offset : NULL;
        if (recv != NULL)
            flight->recv = recv + (call->collective == BY_COLLECTIVE_BROADCAST ? offset : in_all);
        if (flight->recv == flight->send)
            flight->recv = NULL; /* in place: the value is there already */
        break;
    case BY_COLLECTIVE_BARRIER:
    default:
        flight->flags = BY_FLIGHT_NODATA | BY_FLIGHT_ACKONLY;
        break;
    }
    if (state->part == BY_PART_INTEGERS && flight->recv != NULL)
        flight->recv = recv + (offset >> state->shift) * by_dtype_bytes(call->dtype);
}

/*
 * Adapts a chunk to one tree of a pair. The tree up carries this rank's contribution and needs no
 * value back; the tree down carries none and brings the value. A source (ACKONLY) copies its own
 * value when the tree down answers.
 */
static void aim_half(enum by_half half, struct by_flight *flight)
{
    if (half == BY_HALF_UP) {
        flight->flags |= BY_FLIGHT_ACKONLY;
        flight->recv = NULL;
    } else if (half == BY_HALF_DOWN) {
        flight->flags |= BY_FLIGHT_NODATA;
        if (!(flight->flags & BY_FLIGHT_ACKONLY) || flight->recv == NULL)
            flight->send = NULL; /* its integers (mode EXACT) may not be there yet */
    }
}

void by_cursor_take(struct by_endpoint *endpoint, struct by_ep_lane *lane, struct by_flight *flight)
{
    struct by_ep_cursor *cursor = &lane->cursor;
    uint32_t index = endpoint->session_phase == BY_SESSION_AGREED    ? cursor->call & (BY_CALLS_MAX - 1)
                     : endpoint->session_phase == BY_SESSION_OPENING ? BY_CALL_OPENING
                                                                     : BY_CALL_SESSION;
    struct by_call_state *call = &endpoint->calls[index];
    uint64_t at = cursor->at, stop = cursor->end, bytes;
    int word = cursor->word;

    BY_ASSERT(cursor->active && call->phase == BY_CALL_RUNNING);
    if (!word)
        (void)by_done_gap(endpoint, call->number, cursor->shard, at, cursor->end, &at, &stop);
    bytes = stop - at;
    if (bytes > lane->payload_max)
        bytes = lane->payload_max;
    aim_flight(endpoint, call, cursor, flight);
    aim_half((enum by_half)lane->half, flight);
    cursor->at += bytes;
    if (call->call.collective == BY_COLLECTIVE_BARRIER || word)
        bytes = 0;
    cursor->word = 0;
    flight->bytes = (uint16_t)bytes;
    flight->count = (uint16_t)(bytes >> call->shift);
    flight->call = (uint8_t)index;
    if (call->part != BY_PART_ALL && lane->half != BY_HALF_DOWN)
        by_exact_fill(endpoint, call, flight);
    by_retain_note(endpoint, lane, flight, cursor->shard, at);
    if (word ||
        !by_done_gap(endpoint, call->number, cursor->shard, cursor->at, cursor->end, &cursor->at, &stop)) {
        cursor->active = 0;
        cursor->shard++;
        by_cursor_seek(endpoint, lane);
    }
}

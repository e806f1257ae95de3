/*
 * Calls: which calls a user may post, and how calls begin and end. A call is stored in the slot of
 * its number. The lanes' cursors find its chunks (cursor.c), and accept.c counts them down as
 * results are accepted. Pure; the endpoint's thread.
 */
#include "offload/endpoint/state.h"

#include "offload/reduce/exact.h"

static int refuse(const char **field, const char *name, int error)
{
    if (field != NULL)
        *field = name;
    return error;
}

static int are_offsets_sound(const struct by_endpoint *endpoint, const struct by_call *call)
{
    if (!by_collective_is_sharded(call->collective) || call->offsets[0] != 0)
        return 0;
    for (uint32_t rank = 0; rank < endpoint->rank_count; rank++)
        if (call->offsets[rank] > call->offsets[rank + 1])
            return 0;
    return call->offsets[endpoint->rank_count] == call->count;
}

/* Checks operator, type, mode, root and lengths. */
static int check_words(const struct by_endpoint *endpoint, const struct by_call *call, const char **field)
{
    if (call->collective == 0 || call->collective >= BY_COLLECTIVE_COUNT)
        return refuse(field, "collective", BY_EINVAL);
    if (call->collective == BY_COLLECTIVE_BARRIER)
        return call->offsets == NULL ? 0 : refuse(field, "offsets", BY_EINVAL);
    if (by_dtype_bytes(call->dtype) == 0)
        return refuse(field, "dtype", BY_EINVAL);
    if (by_collective_is_rooted(call->collective) && call->root >= endpoint->rank_count)
        return refuse(field, "root", BY_EINVAL);
    /* The elements of all ranks together must be addressable. */
    if (call->count > ((uint64_t)1 << 58) / endpoint->rank_count)
        return refuse(field, "count", BY_EINVAL);
    if (call->offsets != NULL && !are_offsets_sound(endpoint, call))
        return refuse(field, "offsets", BY_EINVAL);
    if (!by_collective_reduces(call->collective))
        return 0;
    if (call->op == 0 || call->op >= BY_OP_COUNT)
        return refuse(field, "op", BY_EINVAL);
    if (call->mode == 0 || call->mode >= BY_MODE_COUNT)
        return refuse(field, "mode", BY_EINVAL);
    if (by_reduction_dtype(call->mode, call->op, call->dtype) == 0)
        return refuse(field, "mode", BY_EUNSUPPORTED);
    if (by_exact_is_for(call) && by_dtype_bytes(call->dtype) == 2 &&
        endpoint->rank_count > BY_EXACT_HALF_RANKS_MAX)
        return refuse(field, "mode", BY_EUNSUPPORTED);
    if (by_reducer_get(endpoint->config.isa, call->op, call->dtype) == NULL)
        return refuse(field, "op", BY_EUNSUPPORTED);
    return 0;
}

/* Returns whether the two ranges overlap. */
static int overlaps(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return x < y + b_bytes && y < x + a_bytes;
}

/* Checks the buffers: present if they are needed, and either in place as by_call allows or
 * disjoint. */
static int check_buffers(const struct by_endpoint *endpoint, const struct by_call *call, const char **field)
{
    uint64_t shard = by_call_shard_count(call, endpoint->rank) * by_dtype_bytes(call->dtype);
    uint64_t at = by_call_shard_first(call, endpoint->rank) * by_dtype_bytes(call->dtype);
    uint64_t all = by_call_shard_first(call, endpoint->rank_count) * by_dtype_bytes(call->dtype);
    uint64_t send_bytes = call->collective == BY_COLLECTIVE_REDUCE_SCATTER ? all : shard;
    uint64_t recv_bytes = call->collective == BY_COLLECTIVE_ALLGATHER ? all : shard;
    uint64_t send_at = 0, recv_at = 0; /* in place when send + send_at == recv + recv_at */
    int sends = call->collective != BY_COLLECTIVE_BROADCAST || call->root == endpoint->rank;
    int receives = call->collective == BY_COLLECTIVE_REDUCE      ? call->root == endpoint->rank
                   : call->collective == BY_COLLECTIVE_BROADCAST ? call->root != endpoint->rank
                                                                 : 1;

    if (call->collective == BY_COLLECTIVE_BARRIER || call->count == 0)
        return 0;
    if (sends && send_bytes > 0 && call->send == NULL)
        return refuse(field, "send", BY_EINVAL);
    if (receives && recv_bytes > 0 && call->recv == NULL)
        return refuse(field, "recv", BY_EINVAL);
    if (call->collective == BY_COLLECTIVE_BROADCAST && sends)
        receives = call->recv != NULL; /* the root may request a copy */
    if (!sends || !receives || send_bytes == 0 || recv_bytes == 0)
        return 0;
    if (call->collective == BY_COLLECTIVE_REDUCE_SCATTER)
        send_at = at;
    if (call->collective == BY_COLLECTIVE_ALLGATHER)
        recv_at = at;
    if ((uintptr_t)call->send + send_at == (uintptr_t)call->recv + recv_at)
        return 0;
    if (overlaps(call->send, send_bytes, call->recv, recv_bytes))
        return refuse(field, "recv", BY_EINVAL);
    return 0;
}

/* Every shard, or the root, must have a group that serves it. */
int by_endpoint_serves(const struct by_endpoint *endpoint, unsigned collective, uint32_t root)
{
    uint32_t first = by_collective_is_sharded(collective) || !by_collective_is_rooted(collective) ? 0 : root;
    uint32_t end = by_collective_is_sharded(collective) ? endpoint->rank_count : first + 1;

    if (collective == 0 || collective >= BY_COLLECTIVE_COUNT || end > endpoint->rank_count)
        return 0;
    for (uint32_t rank = first; rank < end; rank++)
        if (by_share_group(endpoint, collective, rank) == BY_GROUP_NONE)
            return 0;
    return 1;
}

int by_endpoint_serves_call(const struct by_endpoint *endpoint, const struct by_call *call)
{
    if (call->offsets == NULL || !by_collective_is_sharded(call->collective))
        return by_endpoint_serves(endpoint, call->collective, call->root);
    for (uint32_t rank = 0; rank < endpoint->rank_count; rank++)
        if (by_call_shard_count(call, rank) > 0 &&
            by_share_group(endpoint, call->collective, rank) == BY_GROUP_NONE)
            return 0;
    return 1;
}

/* Returns the counts for a call's optag: the count, or with unequal shards a hash of their offsets
 * (FNV-1a of whole numbers), so that ranks that divide the same data differently are detected. The
 * hash of a part of a larger call includes that call. */
static uint64_t told_count(const struct by_endpoint *endpoint, const struct by_call *call)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    if (call->collective == BY_COLLECTIVE_BARRIER)
        return 0;
    if (call->offsets == NULL && call->whole == 0)
        return call->count;
    if (call->whole != 0)
        hash = ((hash ^ call->whole) * UINT64_C(0x100000001b3) ^ call->count) * UINT64_C(0x100000001b3);
    for (uint32_t rank = 1; call->offsets != NULL && rank <= endpoint->rank_count; rank++) {
        hash = (hash ^ call->offsets[rank]) * UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
    }
    return hash;
}

/* Completes a call in a job of one rank, which needs no network: the result is the input. */
static void finish_alone(struct by_endpoint *endpoint, struct by_call_state *state)
{
    const struct by_call *call = &state->call;

    if (call->collective != BY_COLLECTIVE_BARRIER && call->recv != NULL && call->send != NULL &&
        call->recv != call->send)
        by_copy(call->recv, call->send, by_shard_bytes(state, 0));
    by_call_finish(endpoint, state);
}

/* Opens call `number` on the wire as `call`; its optag contains the properties of `user`. */
static void call_open(struct by_endpoint *endpoint, uint32_t number, const struct by_call *call,
                      const struct by_call *user, enum by_call_part part)
{
    struct by_call_state *state = by_call_at(endpoint, number);
    unsigned element_bytes;

    by_zero(state, sizeof(*state));
    state->call = *call;
    state->number = number;
    state->phase = BY_CALL_RUNNING;
    state->part = (uint8_t)part;
    state->gated = part == BY_PART_INTEGERS;
    state->status =
        (struct by_call_status){.error = BY_EAGAIN, .node = BY_NODE_NONE, .missing_node = BY_NODE_NONE};
    if (!by_collective_is_rooted(call->collective))
        state->call.root = 0;
    if (call->collective == BY_COLLECTIVE_BARRIER) {
        state->call.count = 0;
        state->call.dtype = BY_DTYPE_U8;
    }
    state->told_count = told_count(endpoint, user);
    state->optag = by_optag(number, user->collective,
                            by_collective_is_rooted(user->collective) ? user->root : 0, state->told_count) ^
                   endpoint->session_salt;
    /* Collectives that only copy send bytes: the element types of ranks do not matter. */
    state->op = by_collective_reduces(call->collective) ? call->op : BY_OP_BOR;
    state->dtype = by_collective_reduces(call->collective) ? call->dtype : BY_DTYPE_U8;
    state->mode = by_collective_reduces(call->collective) ? call->mode : BY_MODE_FAST;
    element_bytes = by_dtype_bytes(
        part == BY_PART_INTEGERS ? by_reduction_dtype(call->mode, call->op, call->dtype) : state->dtype);
    state->unit_bytes =
        (uint8_t)(part == BY_PART_INTEGERS ? element_bytes : by_dtype_bytes(state->call.dtype));
    for (; element_bytes > 1; element_bytes >>= 1)
        state->shift++;
}

static void call_start(struct by_endpoint *endpoint, uint32_t number)
{
    struct by_call_state *state = by_call_at(endpoint, number);

    if (endpoint->rank_count == 1) {
        finish_alone(endpoint, state);
        return;
    }
    by_cursor_plan(endpoint, state);
    if (state->remaining == 0)
        by_call_finish(endpoint, state);
    else
        by_session_begin(endpoint);
}

static void seek_all(struct by_endpoint *endpoint)
{
    for (uint32_t l = 0; l < endpoint->lane_count; l++)
        if (by_cursor_seek(endpoint, &endpoint->lanes[l]))
            by_send_ready(endpoint, &endpoint->lanes[l]);
}

int by_endpoint_refusal(const struct by_endpoint *endpoint, const struct by_call *call, const char **field)
{
    int error = check_words(endpoint, call, field);

    if (error != 0 || endpoint->rank_count == 1)
        return error;
    if (!by_endpoint_serves_call(endpoint, call))
        return refuse(field, "collective", BY_EUNSUPPORTED);
    /* All ranks agree on the scales in these trees. */
    if (by_endpoint_scratch(endpoint, call) > 0 &&
        by_share_group(endpoint, BY_COLLECTIVE_ALLREDUCE, 0) == BY_GROUP_NONE)
        return refuse(field, "mode", BY_EUNSUPPORTED);
    if (!by_endpoint_can(endpoint, call))
        return refuse(field, "tree", BY_EUNSUPPORTED);
    return 0;
}

int by_endpoint_post(struct by_endpoint *endpoint, const struct by_call *call, uint32_t *id,
                     const char **field)
{
    uint32_t last = endpoint->posted;
    int exact = 0;
    int error;

    BY_ASSERT(call != NULL && id != NULL);
    if (field != NULL)
        *field = NULL;
    if (endpoint->dead != 0)
        return BY_ESTATE;
    error = by_endpoint_refusal(endpoint, call, field);
    if (error == 0)
        error = check_buffers(endpoint, call, field);
    if (error == 0)
        exact = by_endpoint_scratch(endpoint, call) > 0;
    if (exact && call->scratch == NULL)
        error = refuse(field, "scratch", BY_EINVAL);
    if (error != 0)
        return error;
    last += (uint32_t)exact;
    if (by_call_at(endpoint, endpoint->posted)->phase != BY_CALL_FREE ||
        by_call_at(endpoint, last)->phase != BY_CALL_FREE)
        return BY_EAGAIN;
    if (exact) {
        struct by_call scales = by_exact_scales(endpoint, call);

        call_open(endpoint, endpoint->posted, &scales, call, BY_PART_SCALES);
    }
    call_open(endpoint, last, call, call, exact ? BY_PART_INTEGERS : BY_PART_ALL);
    *id = last;
    for (; endpoint->posted != last + 1; endpoint->posted++)
        call_start(endpoint, endpoint->posted);
    seek_all(endpoint);
    return 0;
}

int by_endpoint_test(struct by_endpoint *endpoint, uint32_t id, struct by_call_status *status)
{
    struct by_call_state *state = by_call_at(endpoint, id);

    if (state->phase == BY_CALL_FREE || state->number != id) {
        if (status != NULL)
            *status = (struct by_call_status){
                .error = BY_ENOENT, .node = BY_NODE_NONE, .missing_node = BY_NODE_NONE};
        return BY_ENOENT;
    }
    if (status != NULL)
        *status = state->status;
    if (state->phase == BY_CALL_RUNNING)
        return BY_EAGAIN;
    state->phase = BY_CALL_FREE;
    return state->status.error;
}

void by_call_finish(struct by_endpoint *endpoint, struct by_call_state *call)
{
    BY_ASSERT(call->phase == BY_CALL_RUNNING && call->remaining == 0);
    by_retain_save(endpoint, call);
    call->phase = BY_CALL_ENDED;
    call->status.error = 0;
    if (call->part == BY_PART_SCALES) {
        call->phase = BY_CALL_FREE; /* not visible to the user */
        by_call_at(endpoint, call->number + 1)->gated = 0;
        seek_all(endpoint);
    }
}

/* Stops all sending: the buffers return to the user. */
static void endpoint_stop(struct by_endpoint *endpoint, int error)
{
    endpoint->dead = error;
    endpoint->inflight = 0;
    endpoint->deadline_ns = UINT64_MAX;
    endpoint->ready = (struct by_ep_ring){BY_LANE_NONE, BY_LANE_NONE};
    endpoint->urgent = endpoint->ready;
}

/* Returns the running call that was posted first, or NULL. */
static struct by_call_state *oldest_running(struct by_endpoint *endpoint)
{
    for (uint32_t number = endpoint->posted - BY_CALLS_MAX; number != endpoint->posted; number++) {
        struct by_call_state *call = by_call_at(endpoint, number);

        if (call->phase == BY_CALL_RUNNING && call->part != BY_PART_SCALES)
            return call;
    }
    return NULL;
}

void by_call_fail(struct by_endpoint *endpoint, struct by_call_state *call, int error,
                  const struct by_call_status *status)
{
    int session = call >= &endpoint->calls[BY_CALL_SESSION];

    if (session)
        call = oldest_running(endpoint);
    else if (call != NULL && call->part == BY_PART_SCALES)
        call = by_call_at(endpoint, call->number + 1); /* the user's call */
    for (uint32_t c = 0; c < BY_CALLS_MAX; c++) {
        struct by_call_state *other = &endpoint->calls[c];

        if (other->phase != BY_CALL_RUNNING)
            continue;
        other->phase = other->part == BY_PART_SCALES ? BY_CALL_FREE : BY_CALL_ENDED;
        other->status = *status;
        other->status.session = (uint8_t)session;
        other->status.error = other == call ? error : BY_EABORTED;
    }
    endpoint_stop(endpoint, error);
}

void by_endpoint_tell_lost(struct by_endpoint *endpoint, uint32_t rank, uint8_t fate)
{
    if (endpoint->session_phase != BY_SESSION_AGREED)
        return;
    endpoint->lost_rank = rank;
    endpoint->lost_fate = fate;
    endpoint->lost_lane = 0;
}

void by_endpoint_set_stall(struct by_endpoint *endpoint, uint64_t stall_ns)
{
    endpoint->config.stall_ns = stall_ns;
}

void by_endpoint_abort(struct by_endpoint *endpoint)
{
    struct by_call_status status = {.node = BY_NODE_NONE, .missing_node = BY_NODE_NONE};

    by_call_fail(endpoint, NULL, BY_EABORTED, &status);
}

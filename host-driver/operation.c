/*
 * Operations: turns a user's description into a validated call in a request. Neighbour: request.c
 * posts it and waits for it. Thread: the communicator's.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "host-driver/comm.h"
#include "host-driver/error.h"
#include "host-driver/fallback/exchange.h"
#include "offload/wire/types.h"

#define COUNT_MAX (UINT64_MAX / 16) /* the bytes of this many elements fit 64 bits */

/* ---- checks ---- */

/* Requirements of a collective: bytes of its buffers in units of count, and whether it reduces. */
struct operation_shape {
    uint64_t send_bytes, recv_bytes;
    uint64_t send_at; /* in place: send == recv + this */
    uint64_t recv_at; /* or: recv == send + this */
    int reduces;
};

static struct operation_shape shape_of(const struct banyan_comm *comm, const struct by_call *call)
{
    uint32_t rank = comm->rank;
    uint64_t element = by_dtype_bytes(call->dtype);
    uint64_t own = call->offsets != NULL ? call->offsets[rank + 1] - call->offsets[rank] : call->count;
    uint64_t at = call->offsets != NULL ? call->offsets[rank] : rank * call->count;
    uint64_t all = call->offsets != NULL ? call->count : comm->rank_count * call->count;
    struct operation_shape shape = {.send_bytes = own * element, .recv_bytes = own * element};

    switch ((enum by_collective)call->collective) {
    case BY_COLLECTIVE_ALLREDUCE:
    case BY_COLLECTIVE_REDUCE:
        shape.reduces = 1;
        break;
    case BY_COLLECTIVE_REDUCE_SCATTER:
        shape.send_bytes = all * element;
        shape.recv_at = at * element;
        shape.reduces = 1;
        break;
    case BY_COLLECTIVE_ALLGATHER:
        shape.recv_bytes = all * element;
        shape.send_at = at * element;
        break;
    case BY_COLLECTIVE_BROADCAST:
    case BY_COLLECTIVE_BARRIER:
    default:
        break;
    }
    return shape;
}

static const char *in_place(const struct by_call *call)
{
    switch ((enum by_collective)call->collective) {
    case BY_COLLECTIVE_ALLGATHER:
        return call->offsets != NULL ? "send == recv + the counts of the ranks before this one"
                                     : "send == recv + rank * count";
    case BY_COLLECTIVE_REDUCE_SCATTER:
        return call->offsets != NULL ? "recv == send + the counts of the ranks before this one"
                                     : "recv == send + rank * count";
    case BY_COLLECTIVE_ALLREDUCE:
    case BY_COLLECTIVE_BROADCAST:
    case BY_COLLECTIVE_REDUCE:
    case BY_COLLECTIVE_BARRIER:
    default:
        return "send == recv";
    }
}

static int check_buffers(const char *name, const struct banyan_comm *comm, const struct by_call *call,
                         const struct operation_shape *shape)
{
    uintptr_t send = (uintptr_t)call->send;
    uintptr_t recv = (uintptr_t)call->recv;

    if (call->count == 0)
        return 0;
    if (call->collective == BY_COLLECTIVE_BROADCAST)
        return send != 0 || recv != 0 ? 0 : by_fail(BY_EINVAL, "%s: buffer is NULL", name);
    if (send == 0 && shape->send_bytes > 0)
        return by_fail(BY_EINVAL, "%s: send is NULL", name);
    if (recv == 0 && shape->recv_bytes > 0 &&
        (call->collective != BY_COLLECTIVE_REDUCE || call->root == comm->rank))
        return by_fail(BY_EINVAL, "%s: recv is NULL", name);
    if (call->collective == BY_COLLECTIVE_REDUCE && call->root != comm->rank)
        return 0;
    if (shape->send_bytes == 0 || shape->recv_bytes == 0)
        return 0;
    if (send == recv + shape->send_at && recv == send + shape->recv_at)
        return 0;
    if ((shape->send_at > 0 && send == recv + shape->send_at) ||
        (shape->recv_at > 0 && recv == send + shape->recv_at))
        return 0;
    if (send < recv + shape->recv_bytes && recv < send + shape->send_bytes)
        return by_fail(BY_EINVAL, "%s: send and recv overlap; in place requires %s", name, in_place(call));
    return 0;
}

/* Validates everything except the buffers. */
static int check_words(const char *name, const struct banyan_comm *comm, const struct by_call *call,
                       struct operation_shape *shape)
{
    if (by_dtype_bytes(call->dtype) == 0)
        return by_fail(BY_EINVAL, "%s: type %u is unknown; see banyan_dtype_t", name, call->dtype);
    if (call->root >= comm->rank_count)
        return by_fail(BY_EINVAL, "%s: root %u is not a rank; the job has %u", name, call->root,
                       comm->rank_count);
    if (call->count > (call->offsets != NULL ? COUNT_MAX : COUNT_MAX / comm->rank_count))
        return by_fail(BY_ELIMIT, "%s: %llu elements do not fit an address space", name,
                       (unsigned long long)call->count);
    *shape = shape_of(comm, call);
    if (shape->reduces && (call->op == 0 || call->op >= BY_OP_COUNT))
        return by_fail(BY_EINVAL, "%s: operator %u is unknown; see banyan_op_t", name, call->op);
    if (shape->reduces && !banyan_supports((banyan_op_t)call->op, (banyan_dtype_t)call->dtype))
        return by_fail(BY_EUNSUPPORTED, "%s: %s is not defined on %s", name, by_op_name(call->op),
                       by_dtype_name(call->dtype));
    return 0;
}

static int check_call(const char *name, const struct banyan_comm *comm, const struct by_call *call)
{
    struct operation_shape shape;
    int error = check_words(name, comm, call, &shape);

    return error != 0 ? error : check_buffers(name, comm, call, &shape);
}

/* ---- the operations ---- */

static banyan_status_t make(const char *name, struct banyan_comm *comm, const struct by_call *call,
                            struct banyan_request **out)
{
    struct banyan_request *request;
    int error;

    if (comm == NULL || comm->magic != BY_COMM_MAGIC)
        return by_fail(BY_EINVAL, "%s: %s", name,
                       comm == NULL ? "comm is NULL" : "comm is not a communicator");
    if (out == NULL)
        return by_fail(BY_EINVAL, "%s: request is NULL", name);
    error = check_call(name, comm, call);
    if (error != 0)
        return (banyan_status_t)error;
    request = by_request_take(comm);
    if (request == NULL)
        return by_fail(BY_ENOMEM, "%s: no memory for a request", name);
    request->call = *call;
    request->call.mode = comm->context->mode;
    request->state = BY_REQUEST_READY;
    request->posted = 0;
    request->result = 0;
    *out = request;
    return BANYAN_OK;
}

/* Narrows a value; a value that does not fit becomes 255, which every check refuses. */
static uint8_t narrow(unsigned value)
{
    return value < 255 ? (uint8_t)value : 255;
}

static uint16_t narrow_root(uint32_t root)
{
    return root < UINT16_MAX ? (uint16_t)root : UINT16_MAX;
}

banyan_status_t banyan_allreduce_init(struct banyan_comm *comm, const void *send, void *recv, uint64_t count,
                                      banyan_dtype_t dtype, banyan_op_t op, struct banyan_request **request)
{
    struct by_call call = {.collective = BY_COLLECTIVE_ALLREDUCE,
                           .op = narrow(op),
                           .dtype = narrow(dtype),
                           .count = count,
                           .send = send,
                           .recv = recv};

    return make("banyan_allreduce", comm, &call, request);
}

banyan_status_t banyan_reduce_scatter_init(struct banyan_comm *comm, const void *send, void *recv,
                                           uint64_t count, banyan_dtype_t dtype, banyan_op_t op,
                                           struct banyan_request **request)
{
    struct by_call call = {.collective = BY_COLLECTIVE_REDUCE_SCATTER,
                           .op = narrow(op),
                           .dtype = narrow(dtype),
                           .count = count,
                           .send = send,
                           .recv = recv};

    return make("banyan_reduce_scatter", comm, &call, request);
}

banyan_status_t banyan_allgather_init(struct banyan_comm *comm, const void *send, void *recv, uint64_t count,
                                      banyan_dtype_t dtype, struct banyan_request **request)
{
    struct by_call call = {.collective = BY_COLLECTIVE_ALLGATHER,
                           .op = BY_OP_BOR,
                           .dtype = narrow(dtype),
                           .count = count,
                           .send = send,
                           .recv = recv};

    return make("banyan_allgather", comm, &call, request);
}

/*
 * Turns the counts of all ranks into offsets, which the request will own. Equal counts need no
 * offsets: the call is then the one with equal shares, also for ranks that post that one.
 */
static int take_counts(const char *name, const struct banyan_comm *comm, const uint64_t *counts,
                       struct by_call *call, uint64_t **offsets)
{
    uint32_t n = comm->rank_count;
    uint64_t *sums;
    bool equal = true;

    if (counts == NULL)
        return by_fail(BY_EINVAL, "%s: counts is NULL; it must contain a count for each of the %u ranks",
                       name, n);
    for (uint32_t rank = 1; rank < n && equal; rank++)
        equal = counts[rank] == counts[0];
    call->count = counts[0];
    *offsets = NULL;
    if (equal)
        return 0;
    sums = calloc((size_t)n + 1, sizeof(*sums));
    if (sums == NULL)
        return by_fail(BY_ENOMEM, "%s: no memory for the counts of %u ranks", name, n);
    for (uint32_t rank = 0; rank < n; rank++) {
        if (counts[rank] > COUNT_MAX - sums[rank]) {
            free(sums);
            return by_fail(BY_ELIMIT, "%s: the counts up to rank %u do not fit an address space", name, rank);
        }
        sums[rank + 1] = sums[rank] + counts[rank];
    }
    call->count = sums[n];
    call->offsets = *offsets = sums;
    return 0;
}

static banyan_status_t make_unequal(const char *name, struct banyan_comm *comm, const uint64_t *counts,
                                    struct by_call *call, struct banyan_request **request)
{
    uint64_t *offsets = NULL;
    banyan_status_t status;

    if (comm != NULL && comm->magic == BY_COMM_MAGIC)
        status = (banyan_status_t)take_counts(name, comm, counts, call, &offsets);
    else
        status = BANYAN_OK; /* make() reports this error */
    if (status == BANYAN_OK)
        status = make(name, comm, call, request);
    if (status == BANYAN_OK)
        (*request)->offsets = offsets;
    else
        free(offsets);
    return status;
}

banyan_status_t banyan_allgatherv_init(struct banyan_comm *comm, const void *send, void *recv,
                                       const uint64_t *counts, banyan_dtype_t dtype,
                                       struct banyan_request **request)
{
    struct by_call call = {.collective = BY_COLLECTIVE_ALLGATHER,
                           .op = BY_OP_BOR,
                           .dtype = narrow(dtype),
                           .send = send,
                           .recv = recv};

    return make_unequal("banyan_allgatherv", comm, counts, &call, request);
}

banyan_status_t banyan_reduce_scatterv_init(struct banyan_comm *comm, const void *send, void *recv,
                                            const uint64_t *counts, banyan_dtype_t dtype, banyan_op_t op,
                                            struct banyan_request **request)
{
    struct by_call call = {.collective = BY_COLLECTIVE_REDUCE_SCATTER,
                           .op = narrow(op),
                           .dtype = narrow(dtype),
                           .send = send,
                           .recv = recv};

    return make_unequal("banyan_reduce_scatterv", comm, counts, &call, request);
}

banyan_status_t banyan_broadcast_init(struct banyan_comm *comm, void *buffer, uint64_t count,
                                      banyan_dtype_t dtype, uint32_t root, struct banyan_request **request)
{
    int is_root = comm != NULL && comm->magic == BY_COMM_MAGIC && root == comm->rank;
    struct by_call call = {.collective = BY_COLLECTIVE_BROADCAST,
                           .op = BY_OP_BOR,
                           .dtype = narrow(dtype),
                           .root = narrow_root(root),
                           .count = count,
                           .send = is_root ? buffer : NULL,
                           .recv = is_root ? NULL : buffer};

    return make("banyan_broadcast", comm, &call, request);
}

banyan_status_t banyan_reduce_init(struct banyan_comm *comm, const void *send, void *recv, uint64_t count,
                                   banyan_dtype_t dtype, banyan_op_t op, uint32_t root,
                                   struct banyan_request **request)
{
    int is_root = comm != NULL && comm->magic == BY_COMM_MAGIC && root == comm->rank;
    struct by_call call = {.collective = BY_COLLECTIVE_REDUCE,
                           .op = narrow(op),
                           .dtype = narrow(dtype),
                           .root = narrow_root(root),
                           .count = count,
                           .send = send,
                           .recv = is_root ? recv : NULL};

    return make("banyan_reduce", comm, &call, request);
}

banyan_status_t banyan_barrier_init(struct banyan_comm *comm, struct banyan_request **request)
{
    struct by_call call = {.collective = BY_COLLECTIVE_BARRIER, .op = BY_OP_BOR, .dtype = BY_DTYPE_U8};

    return make("banyan_barrier", comm, &call, request);
}

/* ---- queries ---- */

int by_operation_call(const char *name, const struct banyan_comm *comm, const struct banyan_query *query,
                      struct by_call *call, uint64_t **offsets)
{
    bool barrier = query->collective == BANYAN_BARRIER;
    bool rooted = query->collective == BANYAN_BROADCAST || query->collective == BANYAN_REDUCE ||
                  query->collective == BANYAN_SCATTER || query->collective == BANYAN_GATHER;
    struct operation_shape shape = {0};
    int error = 0;

    *offsets = NULL;
    *call = (struct by_call){.collective = narrow(query->collective),
                             .op = narrow(query->op),
                             .dtype = barrier ? BY_DTYPE_U8 : narrow(query->dtype),
                             .mode = narrow(query->mode != 0 ? query->mode : comm->context->mode),
                             .root = rooted ? narrow_root(query->root) : 0,
                             .count = barrier ? 0 : query->count};
    if (call->collective == 0 ||
        (call->collective >= BY_COLLECTIVE_COUNT && !by_exchange_is(call->collective)))
        return by_fail(BY_EINVAL, "%s: collective %d is unknown; see banyan_collective_t", name,
                       (int)query->collective);
    if (call->mode >= BY_MODE_COUNT)
        return by_fail(BY_EINVAL, "%s: mode %d is unknown; see banyan_mode_t", name, (int)query->mode);
    if (query->counts != NULL && !by_collective_is_sharded(call->collective))
        return by_fail(BY_EINVAL, "%s: %s has no shares; counts must be NULL", name, by_call_name(call));
    if (query->counts != NULL)
        error = take_counts(name, comm, query->counts, call, offsets);
    if (error == 0)
        error = check_words(name, comm, call, &shape);
    if (error != 0) {
        free(*offsets);
        *offsets = NULL;
    } else if (!shape.reduces) {
        call->op = BY_OP_BOR;
    }
    return error;
}

/* Collectives of NCCL over libbanyan; see coll.h. Each communicator is used under its lock. */
#include "host-driver/plugin/nccl/coll.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <banyan/banyan.h>

#include "host-driver/plugin/nccl/admit.h"
#include "host-driver/plugin/nccl/core.h"
#include "host-driver/plugin/nccl/meet.h"

#define RANKS_MAX    1000
#define REQUESTS_MAX 64 /* as many as libbanyan runs */

struct coll_request {
    struct banyan_request *request; /* NULL: an operation without data, which is complete */
    bool used;
    unsigned generation;
    size_t bytes; /* what `test` reports */
};

struct coll_comm {
    void *handle;
    struct banyan_context *context;
    struct banyan_comm *comm;
    uint32_t rank, ranks;
    int failed;
    uint64_t *counts; /* [ranks], for the operation that is being made */
    struct by_nccl_memories memories;
    struct coll_request requests[REQUESTS_MAX];
};

/* What all open communicators can compute, per operator: bits banyan_dtype_t. NCCL asks for it
 * without naming a communicator. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint16_t reduces[BANYAN_MAX + 1];
static unsigned open_count;

static banyan_dtype_t dtype_of(int type)
{
    static const uint8_t dtypes[BY_NCCL_TYPES] = {
        [BY_NCCL_I8] = BANYAN_I8,    [BY_NCCL_U8] = BANYAN_U8,   [BY_NCCL_I32] = BANYAN_I32,
        [BY_NCCL_U32] = BANYAN_U32,  [BY_NCCL_I64] = BANYAN_I64, [BY_NCCL_U64] = BANYAN_U64,
        [BY_NCCL_F16] = BANYAN_F16,  [BY_NCCL_F32] = BANYAN_F32, [BY_NCCL_F64] = BANYAN_F64,
        [BY_NCCL_BF16] = BANYAN_BF16};

    return type >= 0 && type < BY_NCCL_TYPES ? (banyan_dtype_t)dtypes[type] : 0;
}

static banyan_op_t op_of(int op)
{
    static const uint8_t ops[BY_NCCL_OPS] = {[BY_NCCL_SUM] = BANYAN_SUM,
                                             [BY_NCCL_PROD] = BANYAN_PROD,
                                             [BY_NCCL_MAX] = BANYAN_MAX,
                                             [BY_NCCL_MIN] = BANYAN_MIN};

    return op >= 0 && op < BY_NCCL_OPS ? (banyan_op_t)ops[op] : 0;
}

static int result_of(banyan_status_t status)
{
    switch ((int)status) {
    case BANYAN_OK:
        return BY_NCCL_OK;
    case BANYAN_EINVAL:
        return BY_NCCL_ARGUMENT;
    case BANYAN_EMISMATCH:
    case BANYAN_EUNSUPPORTED:
    case BANYAN_ELIMIT:
        return BY_NCCL_USAGE;
    case BANYAN_ETIMEDOUT:
    case BANYAN_EIO:
    case BANYAN_EABORTED:
        return BY_NCCL_REMOTE;
    case BANYAN_ENOMEM:
    case BANYAN_EPERM:
        return BY_NCCL_SYSTEM;
    default:
        return BY_NCCL_INTERNAL;
    }
}

/* ---- communicators ---- */

int by_nccl_coll_listen(int device, void *handle, void **listener)
{
    return by_nccl_listen_for(device, BY_NCCL_FOR_COLLECTIVES, handle, listener);
}

int by_nccl_coll_close_listener(void *handle)
{
    struct by_nccl_listener *listener = by_nccl_remove(handle, BY_NCCL_COLL_LISTENER);

    if (listener == NULL)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "close: %p is not an open listener of collectives", handle);
    by_nccl_listener_free(listener);
    return BY_NCCL_OK;
}

static void free_comm(void *object)
{
    struct coll_comm *coll = object;

    if (coll->comm != NULL)
        banyan_comm_destroy(coll->comm); /* frees its requests */
    if (coll->context != NULL)
        banyan_finalize(coll->context);
    by_nccl_memories_free(&coll->memories);
    free(coll->counts);
    free(coll);
}

/* The line that each communicator prints: rank 0 to the user, all ranks to NCCL's log. */
static void announce(uint32_t rank, const char *text)
{
    unsigned level = by_nccl_settings().log;

    by_nccl_log(BY_NCCL_LOG_INFO, "CollNet %s", text);
    if (level >= 2 || (level == 1 && rank == 0))
        fprintf(stderr, "banyan: rank %u: CollNet %s\n", rank, text);
}

static int make_comm(const struct by_nccl_admission *admission, uint32_t ranks, uint32_t rank, void **handle)
{
    struct coll_comm *coll = calloc(1, sizeof(*coll));

    if (coll == NULL) {
        banyan_comm_destroy(admission->comm);
        banyan_finalize(admission->context);
        return by_nccl_fail(BY_NCCL_SYSTEM, "insufficient memory for a communicator");
    }
    coll->context = admission->context;
    coll->comm = admission->comm;
    coll->rank = rank;
    coll->ranks = ranks;
    coll->counts = calloc(ranks, sizeof(*coll->counts));
    if (coll->counts != NULL)
        coll->handle = by_nccl_add(BY_NCCL_COLL, coll, free_comm);
    if (coll->handle == NULL) {
        free_comm(coll);
        return by_nccl_fail(BY_NCCL_SYSTEM, "the plugin has no place for another communicator");
    }
    pthread_mutex_lock(&lock);
    for (unsigned op = 0; op <= BANYAN_MAX; op++)
        reduces[op] = open_count == 0 ? admission->reduces[op] : reduces[op] & admission->reduces[op];
    open_count++;
    pthread_mutex_unlock(&lock);
    *handle = coll->handle;
    return BY_NCCL_OK;
}

int by_nccl_coll_connect(void *handles[], int ranks, int rank, void *number, void **coll)
{
    struct by_nccl_admission admission;
    struct by_nccl_listener *listener;
    int result;

    if (handles == NULL || coll == NULL || ranks < 2 || ranks > RANKS_MAX || rank < 0 || rank >= ranks)
        return by_nccl_fail(BY_NCCL_ARGUMENT,
                            "rank %d of %d ranks cannot connect; 2 to %d ranks are supported", rank, ranks,
                            RANKS_MAX);
    *coll = NULL;
    listener = by_nccl_enter(number, BY_NCCL_COLL_LISTENER);
    if (listener == NULL)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "connect: %p is not an open listener of collectives", number);
    by_nccl_admit(handles, (uint32_t)ranks, (uint32_t)rank, listener, &admission);
    by_nccl_leave(number);
    announce((uint32_t)rank, admission.text);
    result = admission.comm != NULL ? make_comm(&admission, (uint32_t)ranks, (uint32_t)rank, coll)
                                    : BY_NCCL_SYSTEM;
    /* NCCL does not close the listener of a communicator that failed */
    if (result != BY_NCCL_OK)
        by_nccl_coll_close_listener(number);
    return result;
}

int by_nccl_coll_close(void *handle)
{
    struct coll_comm *coll = by_nccl_remove(handle, BY_NCCL_COLL);

    if (coll == NULL)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "close: %p is not an open communicator", handle);
    free_comm(coll);
    pthread_mutex_lock(&lock);
    open_count--;
    pthread_mutex_unlock(&lock);
    return BY_NCCL_OK;
}

int by_nccl_coll_supports(int type, int op, int *supported)
{
    banyan_dtype_t dtype = dtype_of(type);
    banyan_op_t reducer = op_of(op);

    if (supported == NULL)
        return BY_NCCL_ARGUMENT;
    *supported = 0;
    if (dtype == 0 || reducer == 0)
        return BY_NCCL_OK;
    pthread_mutex_lock(&lock);
    *supported = open_count > 0 ? reduces[reducer] >> dtype & 1 : banyan_supports(reducer, dtype);
    pthread_mutex_unlock(&lock);
    return BY_NCCL_OK;
}

/* ---- memory ---- */

/* The communicator with its lock held, or NULL and a line in the log. */
static struct coll_comm *enter(void *handle, const char *what)
{
    struct coll_comm *coll = by_nccl_enter(handle, BY_NCCL_COLL);

    if (coll == NULL)
        by_nccl_fail(BY_NCCL_ARGUMENT, "%s: %p is not an open communicator", what, handle);
    return coll;
}

int by_nccl_coll_add_memory(void *handle, void *data, size_t bytes, int kind, void **memory)
{
    struct coll_comm *coll = enter(handle, "registration");
    int result;

    if (coll == NULL)
        return BY_NCCL_ARGUMENT;
    result = by_nccl_memory_add(&coll->memories, data, bytes, kind, memory);
    by_nccl_leave(handle);
    return result;
}

int by_nccl_coll_remove_memory(void *handle, void *memory)
{
    struct coll_comm *coll = enter(handle, "registration");
    int result;

    if (coll == NULL)
        return BY_NCCL_ARGUMENT;
    result = by_nccl_memory_remove(&coll->memories, memory);
    by_nccl_leave(handle);
    return result;
}

static int check_memory(const struct coll_comm *coll, void *memory, const void *data, size_t bytes)
{
    if (by_nccl_memory_holds(&coll->memories, memory, data, bytes))
        return BY_NCCL_OK;
    return by_nccl_fail(BY_NCCL_ARGUMENT,
                        "%zu bytes at %p are not in the registered buffer %p of this communicator", bytes,
                        data, memory);
}

/* ---- operations ---- */

/* A place for a request; NULL if all are in use. */
static struct coll_request *free_place(struct coll_comm *coll)
{
    for (unsigned i = 0; i < REQUESTS_MAX; i++)
        if (!coll->requests[i].used)
            return &coll->requests[i];
    return NULL;
}

static void number_of(struct coll_comm *coll, struct coll_request *place, size_t bytes, void **request)
{
    place->used = true;
    place->bytes = bytes;
    place->generation = (place->generation + 1) & 0xfffu;
    *request = by_nccl_ticket_make(coll->handle, (unsigned)(place - coll->requests), place->generation);
}

static int fail(struct coll_comm *coll, banyan_status_t status)
{
    int result = result_of(status);

    if (banyan_comm_async_error(coll->comm) != BANYAN_OK)
        coll->failed = result;
    return by_nccl_fail(result, "%s", banyan_last_error());
}

/* Posts what an _init function of libbanyan has made, or reports its error. */
static int post(struct coll_comm *coll, struct coll_request *place, banyan_status_t made, size_t bytes,
                void **request)
{
    banyan_status_t status;

    if (made != BANYAN_OK)
        return fail(coll, made);
    status = banyan_post(place->request);
    if (status == BANYAN_OK) {
        number_of(coll, place, bytes, request);
        return BY_NCCL_OK;
    }
    if (status != BANYAN_EAGAIN)
        fail(coll, status);
    banyan_free(place->request);
    place->request = NULL;
    return status == BANYAN_EAGAIN ? BY_NCCL_OK : result_of(status);
}

/* Type and operator in libbanyan's terms, and the size of an element. */
struct kind {
    banyan_dtype_t dtype;
    banyan_op_t op;
    size_t bytes;
};

static int translate(int type, int op, struct kind *kind)
{
    kind->dtype = dtype_of(type);
    kind->op = op_of(op);
    kind->bytes = banyan_dtype_size(kind->dtype);
    if (kind->dtype == 0 || kind->op == 0 || !banyan_supports(kind->op, kind->dtype))
        return by_nccl_fail(BY_NCCL_ARGUMENT, "operator %d on type %d is not supported", op, type);
    return BY_NCCL_OK;
}

static int allreduce(struct coll_comm *coll, const void *send, void *recv, size_t count,
                     const struct kind *kind, void **request)
{
    struct coll_request *place = free_place(coll);

    if (place == NULL)
        return BY_NCCL_OK;
    place->request = NULL;
    if (count == 0) {
        number_of(coll, place, 0, request);
        return BY_NCCL_OK;
    }
    return post(coll, place,
                banyan_allreduce_init(coll->comm, send, recv, count, kind->dtype, kind->op, &place->request),
                count * kind->bytes, request);
}

int by_nccl_coll_allreduce(void *handle, void *send, void *recv, size_t count, int type, int op,
                           void *send_memory, void *recv_memory, void **request)
{
    struct coll_comm *coll = enter(handle, "allreduce");
    struct kind kind = {0};
    int result;

    if (coll == NULL)
        return BY_NCCL_ARGUMENT;
    *request = NULL;
    result = coll->failed != 0 ? coll->failed : translate(type, op, &kind);
    if (result == BY_NCCL_OK && count > SIZE_MAX / 8)
        result = by_nccl_fail(BY_NCCL_ARGUMENT, "an allreduce of %zu elements is not possible", count);
    if (result == BY_NCCL_OK)
        result = check_memory(coll, send_memory, send, count * kind.bytes);
    if (result == BY_NCCL_OK)
        result = check_memory(coll, recv_memory, recv, count * kind.bytes);
    if (result == BY_NCCL_OK)
        result = allreduce(coll, send, recv, count, &kind, request);
    by_nccl_leave(handle);
    return result;
}

/* The part of the window that lies in each rank's share, in elements; own part in bytes. */
static int cut_window(struct coll_comm *coll, size_t rank_bytes, size_t offset, size_t bytes, size_t element,
                      size_t *own_bytes)
{
    if (rank_bytes > SIZE_MAX / coll->ranks || offset > rank_bytes * coll->ranks ||
        bytes > rank_bytes * coll->ranks - offset || offset % element != 0 || bytes % element != 0 ||
        rank_bytes % element != 0)
        return by_nccl_fail(
            BY_NCCL_ARGUMENT,
            "a window of %zu bytes at %zu does not lie in %u shares of %zu bytes, or does not "
            "consist of elements of %zu",
            bytes, offset, coll->ranks, rank_bytes, element);
    for (uint32_t rank = 0; rank < coll->ranks; rank++) {
        size_t start = rank * rank_bytes, end = start + rank_bytes;

        if (start < offset)
            start = offset;
        if (end > offset + bytes)
            end = offset + bytes;
        coll->counts[rank] = start < end ? (end - start) / element : 0;
    }
    *own_bytes = (size_t)coll->counts[coll->rank] * element;
    return BY_NCCL_OK;
}

static int allgather(struct coll_comm *coll, const void *send, const struct by_nccl_piece *recv,
                     size_t rank_bytes, size_t offset, size_t bytes, void *send_memory, void **request)
{
    size_t own = 0;
    int result = cut_window(coll, rank_bytes, offset, bytes, 1, &own);
    struct coll_request *place = free_place(coll);

    if (result == BY_NCCL_OK && recv->bytes < bytes)
        result = by_nccl_fail(BY_NCCL_ARGUMENT, "an allgather of %zu bytes has a buffer of %zu", bytes,
                              recv->bytes);
    if (result == BY_NCCL_OK)
        result = check_memory(coll, send_memory, send, own);
    if (result == BY_NCCL_OK)
        result = check_memory(coll, recv->memory, recv->data, bytes);
    if (result != BY_NCCL_OK || place == NULL)
        return result;
    place->request = NULL;
    if (bytes == 0) {
        number_of(coll, place, 0, request);
        return BY_NCCL_OK;
    }
    return post(
        coll, place,
        banyan_allgatherv_init(coll->comm, send, recv->data, coll->counts, BANYAN_U8, &place->request), bytes,
        request);
}

int by_nccl_coll_allgather(void *handle, void *send, const struct by_nccl_piece *recv, size_t rank_bytes,
                           size_t window_offset, size_t window_bytes, void *send_memory, void **request)
{
    struct coll_comm *coll = enter(handle, "allgather");
    int result;

    if (coll == NULL)
        return BY_NCCL_ARGUMENT;
    *request = NULL;
    result = coll->failed != 0
                 ? coll->failed
                 : allgather(coll, send, recv, rank_bytes, window_offset, window_bytes, send_memory, request);
    by_nccl_leave(handle);
    return result;
}

static int reduce_scatter(struct coll_comm *coll, const struct by_nccl_piece *send, void *recv,
                          size_t rank_bytes, size_t offset, size_t bytes, const struct kind *kind,
                          void *recv_memory, void **request)
{
    size_t own = 0;
    int result = cut_window(coll, rank_bytes, offset, bytes, kind->bytes, &own);
    struct coll_request *place = free_place(coll);

    if (result == BY_NCCL_OK && send->bytes < bytes)
        result = by_nccl_fail(BY_NCCL_ARGUMENT, "a reduce-scatter of %zu bytes has a buffer of %zu", bytes,
                              send->bytes);
    if (result == BY_NCCL_OK)
        result = check_memory(coll, send->memory, send->data, bytes);
    if (result == BY_NCCL_OK)
        result = check_memory(coll, recv_memory, recv, own);
    if (result != BY_NCCL_OK || place == NULL)
        return result;
    place->request = NULL;
    if (bytes == 0) {
        number_of(coll, place, 0, request);
        return BY_NCCL_OK;
    }
    return post(coll, place,
                banyan_reduce_scatterv_init(coll->comm, send->data, recv, coll->counts, kind->dtype, kind->op,
                                            &place->request),
                own, request);
}

int by_nccl_coll_reduce_scatter(void *handle, const struct by_nccl_piece *send, void *recv, size_t rank_bytes,
                                size_t window_offset, size_t window_bytes, int type, int op,
                                void *recv_memory, void **request)
{
    struct coll_comm *coll = enter(handle, "reduce-scatter");
    struct kind kind = {0};
    int result;

    if (coll == NULL)
        return BY_NCCL_ARGUMENT;
    *request = NULL;
    result = coll->failed != 0 ? coll->failed : translate(type, op, &kind);
    if (result == BY_NCCL_OK)
        result = reduce_scatter(coll, send, recv, rank_bytes, window_offset, window_bytes, &kind, recv_memory,
                                request);
    by_nccl_leave(handle);
    return result;
}

int by_nccl_coll_test(void *number, int *done, int *bytes)
{
    struct by_nccl_ticket ticket;
    struct coll_request *place;
    struct coll_comm *coll = NULL;
    banyan_status_t status = BANYAN_OK;
    int result = BY_NCCL_OK, ended = 1;

    if (done == NULL)
        return BY_NCCL_ARGUMENT;
    *done = 0;
    if (by_nccl_ticket_read(number, &ticket) && ticket.index < REQUESTS_MAX && ticket.kind == BY_NCCL_COLL)
        coll = by_nccl_enter(ticket.owner, BY_NCCL_COLL);
    if (coll == NULL)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "test: %p is not a request of an open communicator", number);
    place = &coll->requests[ticket.index];
    if (!place->used || place->generation != ticket.generation) {
        by_nccl_leave(ticket.owner);
        return by_nccl_fail(BY_NCCL_ARGUMENT, "test: request %p has been completed before", number);
    }
    if (place->request != NULL)
        status = banyan_test(place->request, &ended);
    if (status != BANYAN_OK) {
        result = fail(coll, status);
    } else if (ended) {
        if (place->request != NULL)
            banyan_free(place->request);
        place->request = NULL;
        place->used = false;
        *done = 1;
        if (bytes != NULL)
            *bytes = (int)place->bytes;
    }
    by_nccl_leave(ticket.owner);
    return result;
}

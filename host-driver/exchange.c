/*
 * All-to-all, scatter and gather: turns a user's description into a validated call in a request, as
 * operation.c does for the collectives that have trees. Thread: the communicator's.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/comm.h"
#include "host-driver/error.h"
#include "host-driver/fallback/exchange.h"
#include "offload/wire/types.h"

#define ELEMENTS_MAX (UINT64_MAX / 16) /* the bytes of this many elements fit 64 bits */

/* Sizes and places of one side, as the user gives them; NULL: that side has equal shares. */
struct exchange_side {
    const uint64_t *counts, *offsets;
};

/* One operation before its checks. `unequal`: the form with v. */
struct exchange_wanted {
    const char *name;
    struct by_call call;
    bool unequal;
    struct exchange_side send, recv;
    uint64_t count; /* of scatterv and gatherv: of the own share */
};

/* Whether this rank sends (or receives) shares of all ranks, not only its own. */
static bool has_all(const struct banyan_comm *comm, const struct by_call *call, bool sends)
{
    return call->collective == BANYAN_ALLTOALL ||
           (call->root == comm->rank && sends == (call->collective == BANYAN_SCATTER));
}

/* Whether this rank sends (or receives) anything. */
static bool takes_part(const struct banyan_comm *comm, const struct by_call *call, bool sends)
{
    return has_all(comm, call, sends) || sends == (call->collective == BANYAN_GATHER);
}

/* Copies one side's counts and offsets into the call's numbers; without offsets each share follows
 * the one before it. */
static int take_side(const struct exchange_wanted *wanted, const struct exchange_side *side, uint32_t n,
                     const char *which, uint64_t *counts, uint64_t *at)
{
    uint64_t next = 0;

    if (side->counts == NULL)
        return by_fail(BY_EINVAL, "%s: %scounts is NULL; it must contain a count for each of the %u ranks",
                       wanted->name, which, n);
    for (uint32_t rank = 0; rank < n; rank++) {
        uint64_t first = side->offsets != NULL ? side->offsets[rank] : next;

        if (side->counts[rank] > ELEMENTS_MAX || first > ELEMENTS_MAX - side->counts[rank])
            return by_fail(BY_ELIMIT, "%s: %scounts and offsets up to rank %u do not fit an address space",
                           wanted->name, which, rank);
        counts[rank] = side->counts[rank];
        at[rank] = first;
        next = first + side->counts[rank];
    }
    return 0;
}

/* Fills the numbers of a call with unequal shares. */
static int take_numbers(const struct banyan_comm *comm, const struct exchange_wanted *wanted,
                        uint64_t *numbers)
{
    const struct by_call *call = &wanted->call;
    uint32_t n = comm->rank_count;
    uint64_t *counts = numbers + (size_t)BY_SEND_COUNT * n, *got = numbers + (size_t)BY_RECV_COUNT * n;
    bool all = call->collective == BANYAN_ALLTOALL;
    int error = 0;

    if (has_all(comm, call, true))
        error =
            take_side(wanted, &wanted->send, n, all ? "send_" : "", counts, numbers + (size_t)BY_SEND_AT * n);
    else if (takes_part(comm, call, true))
        counts[call->root] = wanted->count;
    if (error == 0 && has_all(comm, call, false))
        error =
            take_side(wanted, &wanted->recv, n, all ? "recv_" : "", got, numbers + (size_t)BY_RECV_AT * n);
    else if (error == 0 && takes_part(comm, call, false))
        got[call->root] = wanted->count;
    if (error == 0 && counts[comm->rank] != got[comm->rank] && (all || comm->rank == call->root))
        return by_fail(
            BY_EINVAL,
            "%s: rank %u sends %llu elements to itself but expects %llu from itself; the two counts "
            "must be equal",
            wanted->name, comm->rank, (unsigned long long)counts[comm->rank],
            (unsigned long long)got[comm->rank]);
    if (error == 0 && !all && comm->rank != call->root && wanted->count > ELEMENTS_MAX)
        return by_fail(BY_ELIMIT, "%s: %llu elements do not fit an address space", wanted->name,
                       (unsigned long long)wanted->count);
    return error;
}

static uint64_t extent_of(const struct banyan_comm *comm, const struct by_call *call, bool sends)
{
    enum by_exchange_numbers count = sends ? BY_SEND_COUNT : BY_RECV_COUNT,
                             at = sends ? BY_SEND_AT : BY_RECV_AT;
    uint32_t n = comm->rank_count;
    uint64_t extent = 0;

    if (!takes_part(comm, call, sends))
        return 0;
    if (!has_all(comm, call, sends))
        return by_exchange_number(call, n, count, call->root) * by_dtype_bytes(call->dtype);
    for (uint32_t rank = 0; rank < n; rank++) {
        uint64_t size = by_exchange_number(call, n, count, rank);
        uint64_t end = size > 0 ? by_exchange_number(call, n, at, rank) + size : 0;

        extent = end > extent ? end : extent;
    }
    return extent * by_dtype_bytes(call->dtype);
}

/* Whether the buffers are in place: all-to-all in one buffer, or the root's own share in its place
 * among those of all. */
static bool is_in_place(const struct banyan_comm *comm, const struct by_call *call)
{
    uint32_t n = comm->rank_count, size = by_dtype_bytes(call->dtype);
    size_t bytes = n * sizeof(uint64_t);
    const uint64_t *numbers = call->offsets;

    if (call->collective == BANYAN_ALLTOALL)
        return call->send == call->recv &&
               (numbers == NULL || memcmp(numbers, numbers + 2 * (size_t)n, 2 * bytes) == 0);
    return (uintptr_t)call->send + by_exchange_number(call, n, BY_SEND_AT, comm->rank) * size ==
           (uintptr_t)call->recv + by_exchange_number(call, n, BY_RECV_AT, comm->rank) * size;
}

static const char *in_place(const struct by_call *call)
{
    switch (call->collective) {
    case BANYAN_SCATTER:
        return "recv == the root's share in send";
    case BANYAN_GATHER:
        return "send == the root's share in recv";
    default:
        return "send == recv, with equal counts and offsets of both";
    }
}

static int check_buffers(const struct banyan_comm *comm, const char *name, const struct by_call *call)
{
    uintptr_t send = (uintptr_t)call->send, recv = (uintptr_t)call->recv;
    uint64_t sent = extent_of(comm, call, true), received = extent_of(comm, call, false);

    if (sent > 0 && send == 0)
        return by_fail(BY_EINVAL, "%s: send is NULL", name);
    if (received > 0 && recv == 0)
        return by_fail(BY_EINVAL, "%s: recv is NULL", name);
    if (sent == 0 || received == 0 || is_in_place(comm, call))
        return 0;
    if (send < recv + received && recv < send + sent)
        return by_fail(BY_EINVAL, "%s: send and recv overlap; in place requires %s", name, in_place(call));
    return 0;
}

static int check_words(const struct banyan_comm *comm, const char *name, const struct by_call *call)
{
    if (by_dtype_bytes(call->dtype) == 0)
        return by_fail(BY_EINVAL, "%s: type %u is unknown; see banyan_dtype_t", name, call->dtype);
    if (call->root >= comm->rank_count)
        return by_fail(BY_EINVAL, "%s: root %u is not a rank; the job has %u", name, call->root,
                       comm->rank_count);
    if (call->count > ELEMENTS_MAX / comm->rank_count)
        return by_fail(BY_ELIMIT, "%s: %llu elements do not fit an address space", name,
                       (unsigned long long)call->count);
    return 0;
}

static banyan_status_t make(struct banyan_comm *comm, struct exchange_wanted *wanted,
                            struct banyan_request **out)
{
    struct banyan_request *request;
    uint64_t *numbers = NULL;
    int error;

    if (!by_comm_is(comm, wanted->name))
        return BANYAN_EINVAL;
    if (out == NULL)
        return by_fail(BY_EINVAL, "%s: request is NULL", wanted->name);
    error = check_words(comm, wanted->name, &wanted->call);
    if (error == 0 && wanted->unequal) {
        numbers = calloc(4 * (size_t)comm->rank_count, sizeof(*numbers));
        error = numbers == NULL ? by_fail(BY_ENOMEM, "%s: no memory for the counts of %u ranks", wanted->name,
                                          comm->rank_count)
                                : take_numbers(comm, wanted, numbers);
        wanted->call.offsets = numbers;
    }
    if (error == 0)
        error = check_buffers(comm, wanted->name, &wanted->call);
    request = error == 0 ? by_request_take(comm) : NULL;
    if (request == NULL) {
        free(numbers);
        return error != 0 ? (banyan_status_t)error
                          : by_fail(BY_ENOMEM, "%s: no memory for a request", wanted->name);
    }
    request->call = wanted->call;
    request->call.mode = comm->context->mode;
    request->offsets = numbers;
    request->state = BY_REQUEST_READY;
    request->posted = 0;
    request->result = 0;
    *out = request;
    return BANYAN_OK;
}

/* A value that does not fit becomes the largest one, which every check refuses. */
static struct by_call call_of(banyan_collective_t collective, const void *send, void *recv, uint64_t count,
                              banyan_dtype_t dtype, uint32_t root)
{
    return (struct by_call){.collective = (uint8_t)collective,
                            .op = BY_OP_BOR,
                            .dtype = (unsigned)dtype < UINT8_MAX ? (uint8_t)dtype : UINT8_MAX,
                            .root = root < UINT16_MAX ? (uint16_t)root : UINT16_MAX,
                            .count = count,
                            .send = send,
                            .recv = recv};
}

banyan_status_t banyan_alltoall_init(struct banyan_comm *comm, const void *send, void *recv, uint64_t count,
                                     banyan_dtype_t dtype, struct banyan_request **request)
{
    struct exchange_wanted wanted = {.name = "banyan_alltoall",
                                     .call = call_of(BANYAN_ALLTOALL, send, recv, count, dtype, 0)};

    return make(comm, &wanted, request);
}

banyan_status_t banyan_alltoallv_init(struct banyan_comm *comm, const void *send, const uint64_t *send_counts,
                                      const uint64_t *send_offsets, void *recv, const uint64_t *recv_counts,
                                      const uint64_t *recv_offsets, banyan_dtype_t dtype,
                                      struct banyan_request **request)
{
    struct exchange_wanted wanted = {.name = "banyan_alltoallv",
                                     .call = call_of(BANYAN_ALLTOALL, send, recv, 0, dtype, 0),
                                     .unequal = true,
                                     .send = {send_counts, send_offsets},
                                     .recv = {recv_counts, recv_offsets}};

    return make(comm, &wanted, request);
}

banyan_status_t banyan_scatter_init(struct banyan_comm *comm, const void *send, void *recv, uint64_t count,
                                    banyan_dtype_t dtype, uint32_t root, struct banyan_request **request)
{
    struct exchange_wanted wanted = {.name = "banyan_scatter",
                                     .call = call_of(BANYAN_SCATTER, send, recv, count, dtype, root)};

    return make(comm, &wanted, request);
}

banyan_status_t banyan_scatterv_init(struct banyan_comm *comm, const void *send, const uint64_t *counts,
                                     const uint64_t *offsets, void *recv, uint64_t count,
                                     banyan_dtype_t dtype, uint32_t root, struct banyan_request **request)
{
    struct exchange_wanted wanted = {.name = "banyan_scatterv",
                                     .call = call_of(BANYAN_SCATTER, send, recv, 0, dtype, root),
                                     .unequal = true,
                                     .send = {counts, offsets},
                                     .count = count};

    return make(comm, &wanted, request);
}

banyan_status_t banyan_gather_init(struct banyan_comm *comm, const void *send, void *recv, uint64_t count,
                                   banyan_dtype_t dtype, uint32_t root, struct banyan_request **request)
{
    struct exchange_wanted wanted = {.name = "banyan_gather",
                                     .call = call_of(BANYAN_GATHER, send, recv, count, dtype, root)};

    return make(comm, &wanted, request);
}

banyan_status_t banyan_gatherv_init(struct banyan_comm *comm, const void *send, uint64_t count, void *recv,
                                    const uint64_t *counts, const uint64_t *offsets, banyan_dtype_t dtype,
                                    uint32_t root, struct banyan_request **request)
{
    struct exchange_wanted wanted = {.name = "banyan_gatherv",
                                     .call = call_of(BANYAN_GATHER, send, recv, 0, dtype, root),
                                     .unequal = true,
                                     .recv = {counts, offsets},
                                     .count = count};

    return make(comm, &wanted, request);
}

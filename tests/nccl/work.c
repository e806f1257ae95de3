/* One rank's part of a test of CollNet; see work.h. */
#include "tests/nccl/work.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE_S 60
#define AT_ONCE    100 /* more than the plugin admits */

static const size_t type_bytes[BY_NCCL_TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

static int fault(struct nccl_work *work, const char *what, size_t a, size_t b)
{
    if (work->fault[0] == 0)
        snprintf(work->fault, sizeof(work->fault), "rank %d: %s (%zu, %zu): %.120s", work->rank, what, a, b,
                 nccl_log_last());
    return -1;
}

/* ---- elements: small whole numbers, which every type represents ---- */

/* The bits of a whole number from 0 to 2047 in a float of `fraction` bits below the first. */
static uint64_t float_of(unsigned value, unsigned fraction, unsigned bias)
{
    unsigned exponent = 0;

    if (value == 0)
        return 0;
    while (value >> (exponent + 1) != 0)
        exponent++;
    return (uint64_t)(exponent + bias) << fraction |
           (((uint64_t)value << fraction >> exponent) & ((UINT64_C(1) << fraction) - 1));
}

static void put(int type, char *data, size_t index, unsigned value)
{
    uint64_t bits = value;

    if (type == BY_NCCL_F16)
        bits = float_of(value, 10, 15);
    else if (type == BY_NCCL_BF16)
        bits = float_of(value, 7, 127);
    else if (type == BY_NCCL_F32)
        bits = float_of(value, 23, 127);
    else if (type == BY_NCCL_F64)
        bits = float_of(value, 52, 1023);
    memcpy(data + index * type_bytes[type], &bits, type_bytes[type]);
}

static unsigned input(int rank, size_t index, unsigned salt)
{
    return 1 + (unsigned)((index * 7 + (size_t)rank * 3 + salt) % 2);
}

static unsigned expected(int ranks, size_t index, unsigned salt, int op)
{
    unsigned value = input(0, index, salt);

    for (int rank = 1; rank < ranks; rank++) {
        unsigned other = input(rank, index, salt);

        if (op == BY_NCCL_SUM)
            value += other;
        else if (op == BY_NCCL_PROD)
            value *= other;
        else if (op == BY_NCCL_MAX)
            value = other > value ? other : value;
        else
            value = other < value ? other : value;
    }
    return value;
}

/* ---- connecting ---- */

int nccl_work_open(struct nccl_work *work)
{
    uint8_t mine[BY_NCCL_HANDLE_BYTES];
    uint8_t *all = malloc((size_t)work->ranks * sizeof(mine));
    void **handles = malloc((size_t)work->ranks * sizeof(*handles));
    void *listener;
    int result = nccl_coll_listen(work->driver, mine, &listener);

    if (result == BY_NCCL_OK) {
        work->share(work->context, mine, all, sizeof(mine));
        for (int i = 0; i < work->ranks; i++)
            handles[i] = all + (size_t)i * sizeof(mine);
        result = nccl_coll_connect(work->driver, handles, work->ranks, work->rank, listener, &work->coll);
        if (result == BY_NCCL_OK)
            result = nccl_coll_close_listener(work->driver, listener);
    }
    free(handles);
    free(all);
    return result;
}

int nccl_work_close(struct nccl_work *work)
{
    return nccl_coll_close(work->driver, work->coll);
}

int nccl_work_finish(struct nccl_work *work, void *request, int *bytes)
{
    double until = nccl_now() + PATIENCE_S;
    int done = 0;

    while (!done) {
        int result = nccl_coll_test(work->driver, request, &done, bytes);

        if (result != BY_NCCL_OK)
            return result;
        if (!done && nccl_now() > until)
            return -1;
        if (!done) /* there are fewer processors than ranks */
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    return BY_NCCL_OK;
}

/* ---- operations ---- */

struct buffers {
    char *send, *recv, *want;
    void *send_memory, *recv_memory;
    size_t bytes;
};

static int open_buffers(struct nccl_work *work, struct buffers *buffers, size_t bytes)
{
    buffers->bytes = bytes;
    buffers->send = calloc(1, bytes + 64);
    buffers->recv = calloc(1, bytes + 64);
    buffers->want = calloc(1, bytes + 64);
    if (nccl_coll_add_memory(work->driver, work->coll, buffers->send, bytes, BY_NCCL_MEMORY_HOST,
                             &buffers->send_memory) != BY_NCCL_OK ||
        nccl_coll_add_memory(work->driver, work->coll, buffers->recv, bytes, BY_NCCL_MEMORY_HOST,
                             &buffers->recv_memory) != BY_NCCL_OK)
        return fault(work, "registration", bytes, 0);
    return 0;
}

static void close_buffers(struct nccl_work *work, struct buffers *buffers)
{
    nccl_coll_remove_memory(work->driver, work->coll, buffers->send_memory);
    nccl_coll_remove_memory(work->driver, work->coll, buffers->recv_memory);
    free(buffers->send);
    free(buffers->recv);
    free(buffers->want);
}

/* Ends an operation and compares `bytes` of its result; `reported` is what `test` must report. */
static int compare(struct nccl_work *work, void *request, const char *got, const char *want, size_t bytes,
                   size_t reported)
{
    int size = -1;

    if (nccl_work_finish(work, request, &size) != BY_NCCL_OK)
        return fault(work, "an operation failed", bytes, 0);
    if ((size_t)size != reported)
        return fault(work, "a wrong size is reported", (size_t)size, reported);
    if (memcmp(got, want, bytes) != 0)
        return fault(work, "wrong data", bytes, 0);
    work->operations++;
    return 0;
}

static int allreduce(struct nccl_work *work, struct buffers *buffers, int type, int op, size_t count,
                     int in_place)
{
    char *recv = in_place ? buffers->send : buffers->recv;
    void *memory = in_place ? buffers->send_memory : buffers->recv_memory;
    void *request = NULL;
    int result;

    for (size_t i = 0; i < count; i++) {
        put(type, buffers->send, i, input(work->rank, i, (unsigned)op));
        put(type, buffers->want, i, expected(work->ranks, i, (unsigned)op, op));
    }
    result = nccl_coll_allreduce(work->driver, work->coll, buffers->send, recv, count, type, op,
                                 buffers->send_memory, memory, &request);
    if (result != BY_NCCL_OK || request == NULL)
        return fault(work, "an allreduce is refused", count, (size_t)type);
    return compare(work, request, recv, buffers->want, count * type_bytes[type], count * type_bytes[type]);
}

static int all_types(struct nccl_work *work, struct buffers *buffers)
{
    int supported;

    for (int type = 0; type < BY_NCCL_TYPES; type++)
        for (int op = 0; op < BY_NCCL_OPS; op++) {
            if (nccl_coll_supports(work->driver, type, op, &supported) != BY_NCCL_OK || !supported)
                return fault(work, "a type is not supported", (size_t)type, (size_t)op);
            if (allreduce(work, buffers, type, op, 777, op == BY_NCCL_MAX) != 0)
                return -1;
        }
    for (int type = BY_NCCL_TYPES; type < BY_NCCL_TYPES + 2; type++)
        if (nccl_coll_supports(work->driver, type, BY_NCCL_SUM, &supported) != BY_NCCL_OK || supported)
            return fault(work, "an unknown type is supported", (size_t)type, 0);
    if (nccl_coll_supports(work->driver, BY_NCCL_F32, BY_NCCL_OPS, &supported) != BY_NCCL_OK || supported)
        return fault(work, "an average is supported", 0, 0);
    return 0;
}

static int all_sizes(struct nccl_work *work, struct buffers *buffers)
{
    static const size_t counts[] = {0, 1, 2, 3, 255, 256, 1023, 4097, 65536};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        if (counts[i] * 4 <= buffers->bytes &&
            allreduce(work, buffers, BY_NCCL_F32, BY_NCCL_SUM, counts[i], 0) != 0)
            return -1;
    return allreduce(work, buffers, BY_NCCL_F32, BY_NCCL_SUM, buffers->bytes / 4, 0);
}

/* This rank's part of a window of shares: its offset in the window, and its bytes. */
static size_t own_part(const struct nccl_work *work, size_t share, size_t offset, size_t bytes, size_t *at)
{
    size_t start = (size_t)work->rank * share, end = start + share;

    start = start < offset ? offset : start;
    end = end > offset + bytes ? offset + bytes : end;
    *at = start < end ? start - offset : 0;
    return start < end ? end - start : 0;
}

static int window(struct nccl_work *work, struct buffers *buffers, size_t share, size_t offset, size_t bytes)
{
    struct by_nccl_piece recv = {buffers->recv_memory, buffers->recv, bytes};
    struct by_nccl_piece send = {buffers->send_memory, buffers->send, bytes};
    size_t at, own = own_part(work, share, offset, bytes, &at);
    void *request = NULL;

    memset(buffers->recv, 0, bytes);
    for (size_t i = 0; i < bytes; i++) /* byte i of the window */
        buffers->want[i] = (char)((offset + i) * 31 + (offset + i) / 255);
    memcpy(buffers->send, buffers->want + at, own);
    if (nccl_coll_allgather(work->driver, work->coll, buffers->send, 1, &recv, share, offset, bytes,
                            buffers->send_memory, &request) != BY_NCCL_OK ||
        request == NULL)
        return fault(work, "an allgather is refused", offset, bytes);
    if (compare(work, request, buffers->recv, buffers->want, bytes, bytes) != 0)
        return -1;
    request = NULL;
    for (size_t i = 0; i < bytes / 4; i++) {
        put(BY_NCCL_I32, buffers->send, i, input(work->rank, i, 5));
        put(BY_NCCL_I32, buffers->want, i, expected(work->ranks, i, 5, BY_NCCL_SUM));
    }
    if (nccl_coll_reduce_scatter(work->driver, work->coll, 1, &send, buffers->recv, share, offset, bytes,
                                 BY_NCCL_I32, BY_NCCL_SUM, buffers->recv_memory, &request) != BY_NCCL_OK ||
        request == NULL)
        return fault(work, "a reduce-scatter is refused", offset, bytes);
    return compare(work, request, buffers->recv, buffers->want + at, own, own);
}

/* NCCL divides a large operation into windows, which begin and end anywhere. */
static int all_windows(struct nccl_work *work, struct buffers *buffers)
{
    size_t share = buffers->bytes / (size_t)work->ranks / 64 * 64, all = share * (size_t)work->ranks;

    if (window(work, buffers, share, 0, all) != 0 || window(work, buffers, share, 0, 0) != 0 ||
        window(work, buffers, share, share, share) != 0 ||
        window(work, buffers, share, share / 64 * 4, 64) != 0 ||
        window(work, buffers, share, all - 4, 4) != 0)
        return -1;
    for (size_t offset = 0, bytes = share / 5 / 4 * 4 + 4; offset + bytes <= all; offset += bytes)
        if (window(work, buffers, share, offset, bytes) != 0)
            return -1;
    return 0;
}

/* Posts until the plugin has no room, ends one, and posts again. */
static int many_at_once(struct nccl_work *work, struct buffers *buffers)
{
    void *requests[AT_ONCE];
    unsigned posted = 0, done = 0, waited = 0;
    size_t bytes = buffers->bytes / AT_ONCE / 8 * 8;

    for (size_t i = 0; i < buffers->bytes / 8; i++) {
        put(BY_NCCL_U64, buffers->send, i, input(work->rank, i, 9));
        put(BY_NCCL_U64, buffers->want, i, expected(work->ranks, i, 9, BY_NCCL_SUM));
    }
    memset(buffers->recv, 0, buffers->bytes);
    while (done < AT_ONCE) {
        if (posted < AT_ONCE) {
            if (nccl_coll_allreduce(work->driver, work->coll, buffers->send + posted * bytes,
                                    buffers->recv + posted * bytes, bytes / 8, BY_NCCL_U64, BY_NCCL_SUM,
                                    buffers->send_memory, buffers->recv_memory,
                                    &requests[posted]) != BY_NCCL_OK)
                return fault(work, "an allreduce is refused", posted, done);
            if (requests[posted] != NULL) {
                posted++;
                continue;
            }
            waited++;
        }
        if (compare(work, requests[done], buffers->recv + done * bytes, buffers->want + done * bytes, bytes,
                    bytes) != 0)
            return -1;
        done++;
    }
    return waited > 0 ? 0 : fault(work, "the plugin admits any number of operations", posted, done);
}

/* Keeps the buffers of a run that failed up to the end of the program: operations may be in flight,
 * which use them. */
static void keep_buffers(const struct buffers *buffers)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct kept {
        struct buffers buffers;
        struct kept *next;
    };
    static struct kept *kept;
    struct kept *one = calloc(1, sizeof(*one));

    if (one == NULL)
        return;
    one->buffers = *buffers;
    pthread_mutex_lock(&lock);
    one->next = kept;
    kept = one;
    pthread_mutex_unlock(&lock);
}

int nccl_work_run(struct nccl_work *work)
{
    struct buffers buffers;
    int error;

    work->operations = 0;
    work->fault[0] = 0;
    error = open_buffers(work, &buffers, work->largest);
    if (error == 0)
        error = all_types(work, &buffers);
    if (error == 0)
        error = all_sizes(work, &buffers);
    if (error == 0)
        error = all_windows(work, &buffers);
    if (error == 0)
        error = many_at_once(work, &buffers);
    if (error == 0)
        close_buffers(work, &buffers);
    else
        keep_buffers(&buffers);
    return error;
}

/* NCCL's part in tests of CollNet; see coll.h. */
#include "tests/nccl/coll.h"

#include <stdio.h>
#include <stdlib.h>

#define COLL(version) ((const struct by_nccl_coll_##version *)driver->coll)

/* A member that is alike in all versions. */
#define CALL(member, ...)                                                                                    \
    do {                                                                                                     \
        switch (driver->version) {                                                                           \
        case 8:                                                                                              \
            return COLL(v8)->member(__VA_ARGS__);                                                            \
        case 9:                                                                                              \
        case 10:                                                                                             \
            return COLL(v9)->member(__VA_ARGS__);                                                            \
        case 11:                                                                                             \
            return COLL(v11)->member(__VA_ARGS__);                                                           \
        default:                                                                                             \
            return COLL(v12)->member(__VA_ARGS__);                                                           \
        }                                                                                                    \
    } while (0)

int nccl_coll_init(struct nccl_driver *driver)
{
    if (driver->coll == NULL) {
        fprintf(stderr, "the plugin lacks a table of collectives\n");
        exit(1);
    }
    switch (driver->version) {
    case 8:
        return COLL(v8)->init(nccl_logger);
    case 9:
    case 10:
        return COLL(v9)->init(nccl_logger);
    case 11:
        return COLL(v11)->init(&driver->coll_context, 7, nccl_logger);
    default:
        return COLL(v12)->init(&driver->coll_context, 7, nccl_logger);
    }
}

void nccl_coll_finish(struct nccl_driver *driver)
{
    if (driver->version == 11)
        COLL(v11)->finish(driver->coll_context);
    if (driver->version == 12)
        COLL(v12)->finish(driver->coll_context);
}

int nccl_coll_devices(struct nccl_driver *driver, int *count)
{
    CALL(devices, count);
}

int nccl_coll_listen(struct nccl_driver *driver, void *handle, void **listener)
{
    switch (driver->version) {
    case 8:
        return COLL(v8)->listen(0, handle, listener);
    case 9:
    case 10:
        return COLL(v9)->listen(0, handle, listener);
    case 11:
        return COLL(v11)->listen(driver->coll_context, 0, handle, listener);
    default:
        return COLL(v12)->listen(driver->coll_context, 0, handle, listener);
    }
}

int nccl_coll_connect(struct nccl_driver *driver, void *handles[], int ranks, int rank, void *listener,
                      void **coll)
{
    CALL(connect, handles, ranks, rank, listener, coll);
}

int nccl_coll_supports(struct nccl_driver *driver, int type, int op, int *supported)
{
    CALL(supports, type, op, supported);
}

int nccl_coll_add_memory(struct nccl_driver *driver, void *coll, void *data, size_t bytes, int kind,
                         void **memory)
{
    CALL(add_memory, coll, data, bytes, kind, memory);
}

int nccl_coll_remove_memory(struct nccl_driver *driver, void *coll, void *memory)
{
    CALL(remove_memory, coll, memory);
}

int nccl_coll_allreduce(struct nccl_driver *driver, void *coll, void *send, void *recv, size_t count,
                        int type, int op, void *send_memory, void *recv_memory, void **request)
{
    if (driver->version == 8)
        return COLL(v8)->allreduce(coll, send, recv, (int)count, type, op, send_memory, recv_memory, request);
    if (driver->version <= 10)
        return COLL(v9)->allreduce(coll, send, recv, count, type, op, send_memory, recv_memory, request);
    if (driver->version == 11)
        return COLL(v11)->allreduce(coll, send, recv, count, type, op, send_memory, recv_memory, request);
    return COLL(v12)->allreduce(coll, send, recv, count, type, op, send_memory, recv_memory, request);
}

int nccl_coll_allgather(struct nccl_driver *driver, void *coll, void *send, int pieces,
                        const struct by_nccl_piece *recv, size_t rank_bytes, size_t offset, size_t bytes,
                        void *send_memory, void **request)
{
    struct by_nccl_piece_v8 small = {recv->memory, recv->data, (uint32_t)recv->bytes};
    struct by_nccl_piece piece = *recv;

    switch (driver->version) {
    case 8:
        return COLL(v8)->allgather(coll, send, pieces, &small, rank_bytes, offset, bytes, send_memory,
                                   request);
    case 9:
    case 10:
        return COLL(v9)->allgather(coll, send, pieces, &piece, rank_bytes, offset, bytes, send_memory,
                                   request);
    case 11:
        return COLL(v11)->allgather(coll, send, pieces, &piece, rank_bytes, offset, bytes, send_memory,
                                    request);
    default:
        return COLL(v12)->allgather(coll, send, pieces, &piece, rank_bytes, offset, bytes, send_memory,
                                    request);
    }
}

int nccl_coll_reduce_scatter(struct nccl_driver *driver, void *coll, int pieces,
                             const struct by_nccl_piece *send, void *recv, size_t rank_bytes, size_t offset,
                             size_t bytes, int type, int op, void *recv_memory, void **request)
{
    struct by_nccl_piece_v8 small = {send->memory, send->data, (uint32_t)send->bytes};
    struct by_nccl_piece piece = *send;

    if (driver->version == 8)
        return COLL(v8)->reduce_scatter(coll, pieces, &small, recv, rank_bytes, offset, bytes, type, op,
                                        recv_memory, request);
    switch (driver->version) {
    case 9:
    case 10:
        return COLL(v9)->reduce_scatter(coll, pieces, &piece, recv, rank_bytes, offset, bytes, type, op,
                                        recv_memory, request);
    case 11:
        return COLL(v11)->reduce_scatter(coll, pieces, &piece, recv, rank_bytes, offset, bytes, type, op,
                                         recv_memory, request);
    default:
        return COLL(v12)->reduce_scatter(coll, pieces, &piece, recv, rank_bytes, offset, bytes, type, op,
                                         recv_memory, request);
    }
}

int nccl_coll_test(struct nccl_driver *driver, void *request, int *done, int *bytes)
{
    CALL(test, request, done, bytes);
}

int nccl_coll_close(struct nccl_driver *driver, void *coll)
{
    CALL(close, coll);
}

int nccl_coll_close_listener(struct nccl_driver *driver, void *listener)
{
    CALL(close_listener, listener);
}

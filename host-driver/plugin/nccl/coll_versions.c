/*
 * The exported tables of the collectives, ncclCollNetPlugin_v8 to _v12: NCCL's arguments in the
 * form of each version become calls of coll.h. NCCL loads them only from a library that has a table
 * of messages too. Any thread.
 */
#include "host-driver/plugin/nccl/coll.h"
#include "host-driver/plugin/nccl/core.h"
#include "host-driver/plugin/nccl/device.h"
#include "host-driver/plugin/nccl/versions.h"

static int init_v11(void **context, uint64_t comm_id, by_nccl_logger logger)
{
    (void)comm_id;
    if (context != NULL)
        *context = &by_nccl_context;
    return by_nccl_init(logger);
}

/* One device at most: a job is joined once on a host. Which interfaces the job uses is in its
 * table. */
static int devices(int *count)
{
    if (count == NULL)
        return BY_NCCL_ARGUMENT;
    *count = by_nccl_settings().coll != BY_NCCL_COLL_OFF && by_nccl_device_count() > 0;
    if (*count == 0)
        by_nccl_log(BY_NCCL_LOG_INFO, "CollNet not used: BANYAN_NCCL_COLLNET is off");
    return BY_NCCL_OK;
}

static int listen_v11(void *context, int device, void *handle, void **listener)
{
    (void)context;
    return by_nccl_coll_listen(device, handle, listener);
}

static int allreduce_v9(void *coll, void *send, void *recv, size_t count, int type, int op, void *send_memory,
                        void *recv_memory, void **request)
{
    if (request == NULL)
        return BY_NCCL_ARGUMENT;
    return by_nccl_coll_allreduce(coll, send, recv, count, type, op, send_memory, recv_memory, request);
}

static int allreduce_v8(void *coll, void *send, void *recv, int count, int type, int op, void *send_memory,
                        void *recv_memory, void **request)
{
    if (count < 0)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "an allreduce of %d elements is not possible", count);
    return allreduce_v9(coll, send, recv, (size_t)count, type, op, send_memory, recv_memory, request);
}

static int check_pieces(int pieces, const void *piece, void *const *request)
{
    if (pieces == 1 && piece != NULL && request != NULL)
        return BY_NCCL_OK;
    return by_nccl_fail(BY_NCCL_ARGUMENT, "a buffer in %d pieces is not supported; the limit is 1", pieces);
}

static int allgather_v9(void *coll, void *send, int pieces, struct by_nccl_piece *recv, size_t rank_bytes,
                        size_t window_offset, size_t window_bytes, void *send_memory, void **request)
{
    int result = check_pieces(pieces, recv, request);

    return result != BY_NCCL_OK ? result
                                : by_nccl_coll_allgather(coll, send, recv, rank_bytes, window_offset,
                                                         window_bytes, send_memory, request);
}

static int allgather_v8(void *coll, void *send, int pieces, struct by_nccl_piece_v8 *recv, size_t rank_bytes,
                        size_t window_offset, size_t window_bytes, void *send_memory, void **request)
{
    int result = check_pieces(pieces, recv, request);
    struct by_nccl_piece piece;

    if (result != BY_NCCL_OK)
        return result;
    piece = (struct by_nccl_piece){recv->memory, recv->data, recv->bytes};
    return by_nccl_coll_allgather(coll, send, &piece, rank_bytes, window_offset, window_bytes, send_memory,
                                  request);
}

static int reduce_scatter_v9(void *coll, int pieces, struct by_nccl_piece *send, void *recv,
                             size_t rank_bytes, size_t window_offset, size_t window_bytes, int type, int op,
                             void *recv_memory, void **request)
{
    int result = check_pieces(pieces, send, request);

    return result != BY_NCCL_OK ? result
                                : by_nccl_coll_reduce_scatter(coll, send, recv, rank_bytes, window_offset,
                                                              window_bytes, type, op, recv_memory, request);
}

static int reduce_scatter_v8(void *coll, int pieces, struct by_nccl_piece_v8 *send, void *recv,
                             size_t rank_bytes, size_t window_offset, size_t window_bytes, int type, int op,
                             void *recv_memory, void **request)
{
    int result = check_pieces(pieces, send, request);
    struct by_nccl_piece piece;

    if (result != BY_NCCL_OK)
        return result;
    piece = (struct by_nccl_piece){send->memory, send->data, send->bytes};
    return by_nccl_coll_reduce_scatter(coll, &piece, recv, rank_bytes, window_offset, window_bytes, type, op,
                                       recv_memory, request);
}

/* Host memory needs no flush: the request is complete, which NULL means. */
static int flush(void *coll, void *data, int bytes, void *memory, void **request)
{
    (void)coll;
    (void)data;
    (void)bytes;
    (void)memory;
    if (request == NULL)
        return BY_NCCL_ARGUMENT;
    *request = NULL;
    return BY_NCCL_OK;
}

/* What is the same function in all versions, by its name. */
#define COMMON                                                                                               \
    .name = BY_NCCL_NAME, .devices = devices, .connect = by_nccl_coll_connect,                               \
    .supports = by_nccl_coll_supports, .add_memory = by_nccl_coll_add_memory,                                \
    .add_dma_memory = by_nccl_refuse_dma, .remove_memory = by_nccl_coll_remove_memory, .flush = flush,       \
    .test = by_nccl_coll_test, .close = by_nccl_coll_close, .close_listener = by_nccl_coll_close_listener
#define COMMON_V9                                                                                            \
    COMMON, .allreduce = allreduce_v9, .allgather = allgather_v9, .reduce_scatter = reduce_scatter_v9

const struct by_nccl_coll_v8 ncclCollNetPlugin_v8 = {
    COMMON,
    .init = by_nccl_init,
    .properties = by_nccl_props_v8,
    .listen = by_nccl_coll_listen,
    .allreduce = allreduce_v8,
    .allgather = allgather_v8,
    .reduce_scatter = reduce_scatter_v8,
};

const struct by_nccl_coll_v9 ncclCollNetPlugin_v9 = {
    COMMON_V9,
    .init = by_nccl_init,
    .properties = by_nccl_props_v9,
    .listen = by_nccl_coll_listen,
};

const struct by_nccl_coll_v9 ncclCollNetPlugin_v10 = {
    COMMON_V9,
    .init = by_nccl_init,
    .properties = by_nccl_props_v9,
    .listen = by_nccl_coll_listen,
};

const struct by_nccl_coll_v11 ncclCollNetPlugin_v11 = {
    COMMON_V9,
    .init = init_v11,
    .properties = by_nccl_props_v11,
    .listen = listen_v11,
    .finish = by_nccl_finish,
};

const struct by_nccl_coll_v12 ncclCollNetPlugin_v12 = {
    COMMON_V9,
    .init = init_v11,
    .properties = by_nccl_props_v12,
    .listen = listen_v11,
    .finish = by_nccl_finish,
};

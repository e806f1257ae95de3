/* The blocking forms: init, post, wait, free. Threads as for requests. */
#include <banyan/banyan.h>

static banyan_status_t finish(banyan_status_t status, struct banyan_request *request)
{
    if (status != BANYAN_OK)
        return status;
    status = banyan_post(request);
    if (status == BANYAN_OK)
        status = banyan_wait(request);
    banyan_free(request);
    return status;
}

banyan_status_t banyan_allreduce(struct banyan_comm *comm, const void *send, void *recv, uint64_t count,
                                 banyan_dtype_t dtype, banyan_op_t op)
{
    struct banyan_request *request = 0;
    banyan_status_t status = banyan_allreduce_init(comm, send, recv, count, dtype, op, &request);

    return finish(status, request);
}

banyan_status_t banyan_reduce_scatter(struct banyan_comm *comm, const void *send, void *recv, uint64_t count,
                                      banyan_dtype_t dtype, banyan_op_t op)
{
    struct banyan_request *request = 0;
    banyan_status_t status = banyan_reduce_scatter_init(comm, send, recv, count, dtype, op, &request);

    return finish(status, request);
}

banyan_status_t banyan_allgather(struct banyan_comm *comm, const void *send, void *recv, uint64_t count,
                                 banyan_dtype_t dtype)
{
    struct banyan_request *request = 0;
    banyan_status_t status = banyan_allgather_init(comm, send, recv, count, dtype, &request);

    return finish(status, request);
}

banyan_status_t banyan_allgatherv(struct banyan_comm *comm, const void *send, void *recv,
                                  const uint64_t *counts, banyan_dtype_t dtype)
{
    struct banyan_request *request = 0;
    banyan_status_t status = banyan_allgatherv_init(comm, send, recv, counts, dtype, &request);

    return finish(status, request);
}

banyan_status_t banyan_reduce_scatterv(struct banyan_comm *comm, const void *send, void *recv,
                                       const uint64_t *counts, banyan_dtype_t dtype, banyan_op_t op)
{
    struct banyan_request *request = 0;
    banyan_status_t status = banyan_reduce_scatterv_init(comm, send, recv, counts, dtype, op, &request);

    return finish(status, request);
}

banyan_status_t banyan_broadcast(struct banyan_comm *comm, void *buffer, uint64_t count, banyan_dtype_t dtype,
                                 uint32_t root)
{
    struct banyan_request *request = 0;
    banyan_status_t status = banyan_broadcast_init(comm, buffer, count, dtype, root, &request);

    return finish(status, request);
}

banyan_status_t banyan_reduce(struct banyan_comm *comm, const void *send, void *recv, uint64_t count,
                              banyan_dtype_t dtype, banyan_op_t op, uint32_t root)
{
    struct banyan_request *request = 0;
    banyan_status_t status = banyan_reduce_init(comm, send, recv, count, dtype, op, root, &request);

    return finish(status, request);
}

banyan_status_t banyan_barrier(struct banyan_comm *comm)
{
    struct banyan_request *request = 0;
    banyan_status_t status = banyan_barrier_init(comm, &request);

    return finish(status, request);
}

banyan_status_t banyan_alltoall(struct banyan_comm *comm, const void *send, void *recv, uint64_t count,
                                banyan_dtype_t dtype)
{
    struct banyan_request *request = 0;
    banyan_status_t status = banyan_alltoall_init(comm, send, recv, count, dtype, &request);

    return finish(status, request);
}

banyan_status_t banyan_alltoallv(struct banyan_comm *comm, const void *send, const uint64_t *send_counts,
                                 const uint64_t *send_offsets, void *recv, const uint64_t *recv_counts,
                                 const uint64_t *recv_offsets, banyan_dtype_t dtype)
{
    struct banyan_request *request = 0;
    banyan_status_t status = banyan_alltoallv_init(comm, send, send_counts, send_offsets, recv, recv_counts,
                                                   recv_offsets, dtype, &request);

    return finish(status, request);
}

banyan_status_t banyan_scatter(struct banyan_comm *comm, const void *send, void *recv, uint64_t count,
                               banyan_dtype_t dtype, uint32_t root)
{
    struct banyan_request *request = 0;
    banyan_status_t status = banyan_scatter_init(comm, send, recv, count, dtype, root, &request);

    return finish(status, request);
}

banyan_status_t banyan_scatterv(struct banyan_comm *comm, const void *send, const uint64_t *counts,
                                const uint64_t *offsets, void *recv, uint64_t count, banyan_dtype_t dtype,
                                uint32_t root)
{
    struct banyan_request *request = 0;
    banyan_status_t status =
        banyan_scatterv_init(comm, send, counts, offsets, recv, count, dtype, root, &request);

    return finish(status, request);
}

banyan_status_t banyan_gather(struct banyan_comm *comm, const void *send, void *recv, uint64_t count,
                              banyan_dtype_t dtype, uint32_t root)
{
    struct banyan_request *request = 0;
    banyan_status_t status = banyan_gather_init(comm, send, recv, count, dtype, root, &request);

    return finish(status, request);
}

banyan_status_t banyan_gatherv(struct banyan_comm *comm, const void *send, uint64_t count, void *recv,
                               const uint64_t *counts, const uint64_t *offsets, banyan_dtype_t dtype,
                               uint32_t root)
{
    struct banyan_request *request = 0;
    banyan_status_t status =
        banyan_gatherv_init(comm, send, count, recv, counts, offsets, dtype, root, &request);

    return finish(status, request);
}

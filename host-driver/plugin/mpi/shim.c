/* Translates MPI's collectives to libbanyan's; see shim.h. */
#include "host-driver/plugin/mpi/shim.h"

#include <limits.h>
#include <stdint.h>

#include "host-driver/plugin/mpi/near.h"
#include "host-driver/plugin/mpi/types.h"

#define ELEMENTS_MAX (INT64_MAX / 32) /* so that their bytes, at most 16 per element, fit as well */

/* Whether the memory of one host carries the call faster than MPI, if its ranks are there. */
static int suits(const struct by_shim_comm *comm, banyan_collective_t collective, uint64_t bytes)
{
    return !comm->lane->is_near || by_shim_near_suits(collective, comm->size, bytes)
               ? 1
               : by_shim_left(comm, BY_MPI_WITHIN);
}

/* Decides from facts that all ranks share whether a call is offloaded. `bytes`: total data. */
static int admitted(const struct by_shim_comm *comm, banyan_collective_t collective, uint64_t bytes)
{
    if (!(comm->lane->serves >> collective & 1))
        return by_shim_left(comm, BY_MPI_TABLE);
    if (bytes == 0)
        return by_shim_left(comm, BY_MPI_EMPTY);
    if (bytes < by_shim_least())
        return by_shim_left(comm, BY_MPI_SMALL);
    return suits(comm, collective, bytes);
}

/* For a reduction of `count` elements at each rank: finds the type and operator, or the reason
 * against offload. */
static int reducible(const struct by_shim_comm *comm, banyan_collective_t collective,
                     struct by_shim_work *work, int64_t count, MPI_Datatype type, MPI_Op op)
{
    struct by_mpi_call *call = &work->flight.call;
    struct by_shim_reduction known;
    enum by_shim_found found;

    if (count < 0)
        return 0; /* MPI reports it to the user */
    if (count > ELEMENTS_MAX)
        return by_shim_left(comm, BY_MPI_LARGE);
    found = by_shim_find(type, op, &known);
    if (found == BY_SHIM_NO_TYPE)
        return by_shim_left(comm, BY_MPI_TYPE);
    if (found == BY_SHIM_NO_OP || !by_mpi_reduces(comm->lane, known.op, known.dtype))
        return by_shim_left(comm, BY_MPI_OPERATOR);
    work->shape = known.shape;
    work->form = known.shape.form == BY_MPI_AS_IS ? BY_SHIM_IN_PLACE : BY_SHIM_SHAPED;
    call->op = known.op;
    call->collective = collective;
    call->dtype = known.dtype;
    call->count = (uint64_t)count * known.each;
    return admitted(comm, collective, call->count * banyan_dtype_size(known.dtype));
}

/* Prepares a reduction of elements that are used as they are or travel as others. */
static int prepare_shaped(struct by_shim_work *work)
{
    return by_shim_prepare(work, (work->sent + work->got) * by_mpi_wire_bytes(&work->shape));
}

int by_shim_allreduce(const struct by_shim_comm *comm, const void *send, void *recv, MPI_Count count,
                      MPI_Datatype type, MPI_Op op, struct by_shim_work *work)
{
    *work = (struct by_shim_work){.flight.lane = comm->lane,
                                  .send = send == MPI_IN_PLACE ? recv : send,
                                  .recv = recv,
                                  .sent = (uint64_t)count,
                                  .got = (uint64_t)count};
    return reducible(comm, BANYAN_ALLREDUCE, work, count, type, op) && prepare_shaped(work);
}

int by_shim_reduce(const struct by_shim_comm *comm, const void *send, void *recv, MPI_Count count,
                   MPI_Datatype type, MPI_Op op, int root, struct by_shim_work *work)
{
    int is_root = root == comm->rank;

    *work = (struct by_shim_work){.flight.lane = comm->lane,
                                  .send = send == MPI_IN_PLACE ? recv : send,
                                  .recv = is_root ? recv : NULL,
                                  .sent = (uint64_t)count,
                                  .got = is_root ? (uint64_t)count : 0,
                                  .flight.call.root = (uint32_t)root};
    if (root < 0 || root >= comm->size)
        return 0;
    return reducible(comm, BANYAN_REDUCE, work, count, type, op) && prepare_shaped(work);
}

/* A reduce-scatter of `sent` elements, of which `own` for this rank; `own_bytes` as libbanyan has
 * them. */
static int prepare_scatter(struct by_shim_work *work, const void *send, void *recv, uint64_t sent,
                           uint64_t own, uint64_t own_bytes)
{
    work->send = send == MPI_IN_PLACE ? recv : send;
    work->recv = recv;
    work->sent = sent;
    work->got = own;
    if (work->form == BY_SHIM_SHAPED || send != MPI_IN_PLACE)
        return prepare_shaped(work);
    /* MPI requires the result at the start of the input, which still holds another rank's share
     * that must be sent. */
    work->form = BY_SHIM_MOVED;
    work->got = own_bytes;
    return by_shim_prepare(work, own_bytes);
}

int by_shim_reduce_scatter_block(const struct by_shim_comm *comm, const void *send, void *recv,
                                 MPI_Count count, MPI_Datatype type, MPI_Op op, struct by_shim_work *work)
{
    struct by_mpi_call *call = &work->flight.call;

    *work = (struct by_shim_work){.flight.lane = comm->lane};
    if (count > ELEMENTS_MAX / comm->size)
        return by_shim_left(comm, BY_MPI_LARGE);
    if (!reducible(comm, BANYAN_REDUCE_SCATTER, work, count * comm->size, type, op))
        return 0;
    call->count /= (uint64_t)comm->size;
    return prepare_scatter(work, send, recv, (uint64_t)count * (uint64_t)comm->size, (uint64_t)count,
                           call->count * banyan_dtype_size(call->dtype));
}

int by_shim_reduce_scatter(const struct by_shim_comm *comm, const void *send, void *recv,
                           struct by_shim_counts counts, MPI_Datatype type, MPI_Op op,
                           struct by_shim_work *work)
{
    struct by_mpi_call *call = &work->flight.call;
    int64_t sum = 0;

    *work = (struct by_shim_work){.flight.lane = comm->lane};
    for (int r = 0; r < comm->size; r++) {
        int64_t count = by_shim_count_at(counts, r);

        if (count < 0)
            return 0; /* MPI reports it to the user */
        if (count > ELEMENTS_MAX - sum)
            return by_shim_left(comm, BY_MPI_LARGE);
        sum += count;
    }
    if (!reducible(comm, BANYAN_REDUCE_SCATTER, work, sum, type, op))
        return 0;
    for (int r = 0; r < comm->size; r++)
        comm->counts[r] = (uint64_t)by_shim_count_at(counts, r) * (call->count / (uint64_t)sum);
    call->counts = comm->counts;
    return prepare_scatter(work, send, recv, (uint64_t)sum, (uint64_t)by_shim_count_at(counts, comm->rank),
                           comm->counts[comm->rank] * banyan_dtype_size(call->dtype));
}

int by_shim_barrier(const struct by_shim_comm *comm, struct by_shim_work *work)
{
    *work = (struct by_shim_work){
        .flight.lane = comm->lane, .form = BY_SHIM_IN_PLACE, .flight.call.collective = BANYAN_BARRIER};
    if (!(comm->lane->serves >> BANYAN_BARRIER & 1))
        return by_shim_left(comm, BY_MPI_TABLE);
    return suits(comm, BANYAN_BARRIER, 0) && by_shim_prepare(work, 0);
}

/* ---- copies of bytes, independent of types ---- */

/* Returns the bytes in `count` elements; -1 if MPI must decide. */
static int64_t carried(int64_t count, MPI_Datatype type)
{
    MPI_Count size;

    if (count < 0 || type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size < 0)
        return -1;
    return size > 0 && count > INT64_MAX / size ? INT64_MAX : count * size;
}

int by_shim_bcast(const struct by_shim_comm *comm, void *buffer, MPI_Count count, MPI_Datatype type, int root,
                  struct by_shim_work *work)
{
    struct by_mpi_call *call = &work->flight.call;
    int64_t bytes = carried(count, type);

    *work = (struct by_shim_work){.flight.lane = comm->lane,
                                  .form = BY_SHIM_IN_PLACE,
                                  .recv = buffer,
                                  .got = (uint64_t)count,
                                  .type = type,
                                  .is_root = root == comm->rank};
    if (bytes < 0 || root < 0 || root >= comm->size)
        return 0;
    if (bytes > INT_MAX)
        return by_shim_left(comm, BY_MPI_LARGE);
    if (!admitted(comm, BANYAN_BROADCAST, (uint64_t)bytes))
        return 0;
    *call = (struct by_mpi_call){.collective = BANYAN_BROADCAST,
                                 .dtype = BANYAN_U8,
                                 .op = BANYAN_BOR,
                                 .root = (uint32_t)root,
                                 .count = (uint64_t)bytes};
    if (!by_shim_type_is_dense(type)) /* else its elements may not be contiguous */
        work->form = BY_SHIM_PACKED;
    return by_shim_prepare(work, (size_t)bytes);
}

/* Whether the blocks follow each other in the order of ranks. */
static int in_order(const struct by_shim_comm *comm, const struct by_shim_gathering *g)
{
    int64_t sum = 0;

    for (int r = 0; r < comm->size; sum += by_shim_count_of(g, r++))
        if (by_shim_place_at(g, r) != sum)
            return 0;
    return 1;
}

static int gather(const struct by_shim_comm *comm, struct by_shim_work *work)
{
    struct by_mpi_call *call = &work->flight.call;
    struct by_shim_gathering *g = &work->gathering;
    int64_t count = by_shim_count_before(g, comm->size, ELEMENTS_MAX), bytes;
    int is_unequal = g->counts.narrow != NULL || g->counts.wide != NULL;
    MPI_Aint least;

    g->rank = comm->rank;
    g->ranks = comm->size;
    g->size = carried(1, g->recv_type);
    if (count < 0 || g->size < 0 || PMPI_Type_get_extent(g->recv_type, &least, &g->extent) != MPI_SUCCESS)
        return 0;
    if (g->size > 0 && count > INT_MAX / g->size)
        return by_shim_left(comm, BY_MPI_LARGE);
    bytes = count * g->size;
    if (!admitted(comm, BANYAN_ALLGATHER, (uint64_t)bytes))
        return 0;
    /* Ranks may use different types for the same block, so only bytes are comparable. */
    for (int r = 0; is_unequal && r < comm->size; r++)
        comm->counts[r] = (uint64_t)(by_shim_count_of(g, r) * g->size);
    *call = (struct by_mpi_call){.collective = BANYAN_ALLGATHER,
                                 .dtype = BANYAN_U8,
                                 .op = BANYAN_BOR,
                                 .count = (uint64_t)(g->recv_count * g->size),
                                 .counts = is_unequal ? comm->counts : NULL};
    work->form = BY_SHIM_GATHERED;
    if (by_shim_type_is_dense(g->recv_type) && in_order(comm, g) &&
        (g->send == MPI_IN_PLACE || by_shim_type_is_dense(g->send_type))) {
        work->form = BY_SHIM_IN_PLACE;
        work->send = g->send == MPI_IN_PLACE ? by_shim_place_of(g, comm->rank) : g->send;
        work->recv = g->recv;
    }
    return by_shim_prepare(work, (size_t)bytes);
}

int by_shim_allgather(const struct by_shim_comm *comm, const void *send, MPI_Count send_count,
                      MPI_Datatype send_type, void *recv, MPI_Count recv_count, MPI_Datatype recv_type,
                      struct by_shim_work *work)
{
    *work = (struct by_shim_work){.flight.lane = comm->lane,
                                  .gathering = {.send = send,
                                                .send_count = send_count,
                                                .send_type = send_type,
                                                .recv = recv,
                                                .recv_count = recv_count,
                                                .recv_type = recv_type}};
    return gather(comm, work);
}

int by_shim_allgatherv(const struct by_shim_comm *comm, const void *send, MPI_Count send_count,
                       MPI_Datatype send_type, void *recv, struct by_shim_counts counts,
                       struct by_shim_places places, MPI_Datatype recv_type, struct by_shim_work *work)
{
    *work = (struct by_shim_work){.flight.lane = comm->lane,
                                  .gathering = {.send = send,
                                                .send_count = send_count,
                                                .send_type = send_type,
                                                .recv = recv,
                                                .recv_type = recv_type,
                                                .counts = counts,
                                                .places = places}};
    return gather(comm, work);
}

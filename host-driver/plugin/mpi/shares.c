/*
 * All-to-all, scatter and gather of MPI in libbanyan's terms; see shim.h. Ranks may describe one
 * share with different types, so only its bytes are comparable, and libbanyan gets bytes.
 */
#include <limits.h>
#include <stdint.h>

#include "host-driver/plugin/mpi/near.h"
#include "host-driver/plugin/mpi/shim.h"
#include "host-driver/plugin/mpi/timing.h"
#include "host-driver/plugin/mpi/types.h"

#define SEND 0
#define RECV 1

/* Fills size and extent of a side. Returns whether its elements are understood. */
static int measure(struct by_shim_side *side)
{
    MPI_Count size = 0;
    MPI_Aint least;

    if (side->blocks == 0)
        return 1;
    if (side->types == NULL &&
        (side->type == MPI_DATATYPE_NULL || PMPI_Type_size_x(side->type, &size) != MPI_SUCCESS || size < 0 ||
         PMPI_Type_get_extent(side->type, &least, &side->extent) != MPI_SUCCESS))
        return 0;
    side->size = size;
    for (int r = 0; r < side->blocks; r++) {
        int64_t count = by_shim_side_count(side, r);

        if (side->types != NULL && count > 0 &&
            (side->types[r] == MPI_DATATYPE_NULL || PMPI_Type_size_x(side->types[r], &size) != MPI_SUCCESS))
            return 0;
        if (count < 0 || (size > 0 && count > INT64_MAX / 2 / side->blocks / size))
            return 0; /* MPI reports it to the user */
    }
    return 1;
}

/* Whether libbanyan can use the user's buffer. */
static int is_plain(const struct by_shim_side *side)
{
    for (int r = 0; r < side->blocks; r++)
        if (by_shim_side_place(side, r) < 0 || (side->types != NULL && by_shim_side_count(side, r) > 0 &&
                                                !by_shim_type_is_dense(side->types[r])))
            return 0;
    return side->blocks == 0 || side->types != NULL || by_shim_type_is_dense(side->type);
}

/* Writes the bytes of each block, and where it begins, for a side with blocks of all ranks. */
static void list(const struct by_shim_side *side, int is_packed, uint64_t *counts, uint64_t *places)
{
    uint64_t next = 0;

    for (int r = 0; r < side->blocks; r++) {
        counts[r] = (uint64_t)by_shim_side_block(side, r);
        places[r] = is_packed ? next : (uint64_t)by_shim_side_place(side, r);
        next += counts[r];
    }
}

/* Decides, and prepares. The equal forms decide by sizes, which all ranks know; those with v must
 * not, as ranks have shares of different sizes. */
static int prepare(const struct by_shim_comm *comm, struct by_shim_work *work, banyan_collective_t collective,
                   int is_unequal)
{
    struct by_mpi_call *call = &work->flight.call;
    struct by_shim_side *side = work->side;
    const struct by_shim_side *some = side[SEND].blocks > 0 ? &side[SEND] : &side[RECV];
    int64_t bytes;
    int is_packed;

    if (!measure(&side[SEND]) || !measure(&side[RECV]))
        return 0;
    bytes = by_shim_side_count(some, 0) * some->size;
    if (!is_unequal && bytes == 0)
        return by_shim_left(comm, BY_MPI_EMPTY);
    if (!is_unequal && bytes > INT_MAX)
        return by_shim_left(comm, BY_MPI_LARGE);
    if (!is_unequal && (uint64_t)bytes * (uint64_t)comm->size < by_shim_least())
        return by_shim_left(comm, BY_MPI_SMALL);
    /* its memory carries shares of equal size only */
    if (comm->lane->is_near &&
        (is_unequal || !by_shim_near_suits(collective, comm->size, (uint64_t)bytes * (uint64_t)comm->size)))
        return by_shim_left(comm, BY_MPI_WITHIN);
    if (!comm->lane->is_near && by_shim_is_slower(collective, is_unequal, (uint64_t)bytes))
        return by_shim_left(comm, BY_MPI_SLOWER);
    call->collective = collective;
    call->op = BANYAN_BOR;
    call->dtype = BANYAN_U8;
    call->is_unequal = is_unequal;
    is_packed = !is_plain(&side[SEND]) || !is_plain(&side[RECV]);
    for (int i = SEND; i <= RECV && is_unequal; i++) {
        uint64_t *numbers = comm->counts + 2 * (size_t)i * (size_t)comm->size;

        if (side[i].blocks == 1) {
            call->count = (uint64_t)(by_shim_side_count(&side[i], 0) * side[i].size);
        } else if (side[i].blocks > 1) {
            list(&side[i], is_packed, numbers, numbers + comm->size);
            call->shares[2 * i] = numbers;
            call->shares[2 * i + 1] = numbers + comm->size;
        }
    }
    if (!is_unequal)
        call->count = (uint64_t)bytes;
    work->form = is_packed ? BY_SHIM_SHARES : BY_SHIM_IN_PLACE;
    work->send = side[SEND].buffer;
    work->recv = side[RECV].buffer;
    return by_shim_prepare(work, by_shim_side_bytes(&side[SEND]) + by_shim_side_bytes(&side[RECV]));
}

/* Returns the block of rank `rank` alone. */
static struct by_shim_side block_of(const struct by_shim_side *side, int rank)
{
    struct by_shim_side measured = *side;
    MPI_Aint least;

    if (side->type != MPI_DATATYPE_NULL)
        PMPI_Type_get_extent(side->type, &least, &measured.extent);
    return (struct by_shim_side){.buffer = (char *)side->buffer + by_shim_side_place(&measured, rank),
                                 .count = by_shim_side_count(side, rank),
                                 .type = side->type,
                                 .blocks = 1,
                                 .is_kept = 1};
}

int by_shim_alltoall(const struct by_shim_comm *comm, struct by_shim_side send, struct by_shim_side recv,
                     struct by_shim_work *work)
{
    int is_unequal = recv.counts.narrow != NULL || recv.counts.wide != NULL;

    if (send.buffer == MPI_IN_PLACE)
        send = recv;
    send.blocks = recv.blocks = comm->size;
    *work = (struct by_shim_work){.flight.lane = comm->lane, .side = {send, recv}};
    return prepare(comm, work, BANYAN_ALLTOALL, is_unequal);
}

/* Completes the sides of a call with a root, which has the shares of all ranks. Returns whether the
 * root is a rank; if not, MPI reports it to the user. */
static int set_root(const struct by_shim_comm *comm, int root, struct by_shim_side *all,
                    struct by_shim_side *own)
{
    if (root < 0 || root >= comm->size)
        return 0;
    all->blocks = root == comm->rank ? comm->size : 0;
    if (root == comm->rank && own->buffer == MPI_IN_PLACE)
        *own = block_of(all, root);
    own->blocks = 1;
    return 1;
}

int by_shim_scatter(const struct by_shim_comm *comm, struct by_shim_side send, struct by_shim_side recv,
                    int root, int is_unequal, struct by_shim_work *work)
{
    if (!set_root(comm, root, &send, &recv))
        return 0;
    *work = (struct by_shim_work){
        .flight.lane = comm->lane, .flight.call.root = (uint32_t)root, .side = {send, recv}};
    return prepare(comm, work, BANYAN_SCATTER, is_unequal);
}

int by_shim_gather(const struct by_shim_comm *comm, struct by_shim_side send, struct by_shim_side recv,
                   int root, int is_unequal, struct by_shim_work *work)
{
    if (!set_root(comm, root, &recv, &send))
        return 0;
    *work = (struct by_shim_work){
        .flight.lane = comm->lane, .flight.call.root = (uint32_t)root, .side = {send, recv}};
    return prepare(comm, work, BANYAN_GATHER, is_unequal);
}

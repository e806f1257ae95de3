/* MPICH's argument checks; see preload.h. */
#include <dlfcn.h>
#include <limits.h>

#include "host-driver/plugin/mpi/preload.h"

#define REAL_LIST                                                                                            \
    X(Allgather)                                                                                             \
    X(Allreduce)                                                                                             \
    X(Bcast)

static struct {
#define X(name) __typeof__(MPI_##name) *name;
    REAL_LIST
#undef X
} real;

void by_preload_look_checks(void)
{
#define X(name) *(void **)&real.name = dlsym(RTLD_NEXT, "PMPI_" #name);
    REAL_LIST
#undef X
}

static MPI_Comm alone = MPI_COMM_NULL;

MPI_Comm by_preload_alone(void)
{
    MPI_Group self;

    if (alone == MPI_COMM_NULL && PMPI_Comm_group(MPI_COMM_SELF, &self) == MPI_SUCCESS) {
        if (PMPI_Comm_create(MPI_COMM_SELF, self, &alone) == MPI_SUCCESS)
            PMPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN);
        PMPI_Group_free(&self);
    }
    return alone;
}

/* 0 for NULL, MPI_IN_PLACE and an uncommitted type. A broadcast without other ranks moves
 * nothing. */
int by_preload_is_buffer(const void *buffer, MPI_Count count, MPI_Datatype type)
{
    if (buffer == MPI_IN_PLACE)
        return 0;
    return by_preload_alone() == MPI_COMM_NULL || count < 0 || count > INT_MAX ||
           real.Bcast((void *)buffer, (int)count, type, 0, alone) == MPI_SUCCESS;
}

/* Checks both buffers of a reduction on a rank that receives a result. MPICH would copy one to the
 * other here, so its check is used only if they are the same. */
int by_preload_are_buffers(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op)
{
    if (!by_preload_is_buffer(recv, count, type) ||
        (send != MPI_IN_PLACE && !by_preload_is_buffer(send, count, type)))
        return 0;
    return send != recv || count > INT_MAX ||
           real.Allreduce(send, recv, (int)count, type, op, alone) == MPI_SUCCESS;
}

/* Like are_buffers, for an allgather; `own` is the destination of this rank's block. */
int by_preload_are_blocks(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *own,
                          MPI_Count recv_count, MPI_Datatype recv_type)
{
    if (!by_preload_is_buffer(own, recv_count, recv_type) ||
        (send != MPI_IN_PLACE && !by_preload_is_buffer(send, send_count, send_type)))
        return 0;
    return send != own || send_count > INT_MAX || recv_count > INT_MAX ||
           real.Allgather(send, (int)send_count, send_type, own, (int)recv_count, recv_type, alone) ==
               MPI_SUCCESS;
}

/* Returns element `index` of a buffer; the buffer itself if its type or the communicator is
 * invalid. */
void *by_preload_place(void *recv, MPI_Aint index, MPI_Datatype type)
{
    MPI_Aint least, extent;

    if (recv == NULL || recv == MPI_IN_PLACE || type == MPI_DATATYPE_NULL ||
        PMPI_Type_get_extent(type, &least, &extent) != MPI_SUCCESS)
        return recv;
    return (char *)recv + index * extent;
}

int by_preload_rank(MPI_Comm comm)
{
    int rank = 0;

    PMPI_Comm_rank(comm, &rank);
    return rank;
}

/* Like are_buffers, for a reduction to one rank. */
int by_preload_are_rooted(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                          int root, MPI_Comm comm)
{
    return root == by_preload_rank(comm) ? by_preload_are_buffers(send, recv, count, type, op)
                                         : by_preload_is_buffer(send, count, type);
}

/* Both sides of an all-to-all. */
int by_preload_are_sides(const void *send, MPI_Count send_count, MPI_Datatype send_type, const void *recv,
                         MPI_Count recv_count, MPI_Datatype recv_type)
{
    return by_preload_is_buffer(recv, recv_count, recv_type) &&
           (send == MPI_IN_PLACE || (send != recv && by_preload_is_buffer(send, send_count, send_type)));
}

/* One side of an all-to-all with a type for each block. */
int by_preload_are_typed(const struct by_shim_comm *at, struct by_shim_side side)
{
    for (int r = 0; at != NULL && r < at->size; r++)
        if (by_shim_side_count(&side, r) > 0 &&
            !by_preload_is_buffer((char *)side.buffer + by_shim_side_place(&side, r),
                                  by_shim_side_count(&side, r), side.types[r]))
            return 0;
    return 1;
}

/* What only the root of a gather or scatter has. */
int by_preload_is_root_side(const void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm)
{
    return root != by_preload_rank(comm) || by_preload_is_buffer(buffer, count, type);
}

/* What each rank has; the root may have it in place. */
int by_preload_is_own_side(const void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm)
{
    return (root == by_preload_rank(comm) && buffer == MPI_IN_PLACE) ||
           by_preload_is_buffer(buffer, count, type);
}

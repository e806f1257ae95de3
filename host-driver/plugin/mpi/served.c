/* Communicators of the same ranks; see served.h. */
#include "host-driver/plugin/mpi/served.h"

#include <mpi.h>

/* Whether ranks call their communicators one after another, so that all of them have opened the
 * same ones before a blocking call. */
static int is_in_order(void)
{
    int level = MPI_THREAD_MULTIPLE;

    return PMPI_Query_thread(&level) == MPI_SUCCESS && level != MPI_THREAD_MULTIPLE;
}

struct by_mpi_served *by_shim_served(struct by_shim_comm *comm)
{
    struct by_mpi_served *served;

    if (comm->is_near >= 0 || comm->member == NULL || (!comm->is_noted && !is_in_order()))
        return NULL;
    served = by_mpi_served_of(comm->member, (uint32_t)comm->size);
    if (served == NULL)
        by_shim_out_of_memory("the communicators of the same ranks");
    else if (!comm->is_noted)
        served->alive++;
    comm->is_noted = served != NULL;
    return served;
}

void by_shim_served_leave(const struct by_shim_comm *comm)
{
    struct by_mpi_served *served =
        comm->is_noted ? by_mpi_served_of(comm->member, (uint32_t)comm->size) : NULL;

    if (served == NULL)
        return;
    served->alive--;
    served->freed++;
}

/*
 * What the communicators of the same ranks in the same order have done (kept.h), for those on
 * several hosts. Nothing is noted if several threads may call: then ranks call their communicators
 * in different orders. Compiled once for each MPI. Neighbour: comms.c.
 */
#ifndef BY_PLUGIN_MPI_SERVED_H
#define BY_PLUGIN_MPI_SERVED_H

#include "host-driver/plugin/mpi/comms.h"
#include "host-driver/plugin/mpi/kept.h"

/* Notes the communicator, if it is not, and returns what those of its ranks have done; NULL:
 * nothing is noted. comm->member is known. */
struct by_mpi_served *by_shim_served(struct by_shim_comm *comm);
/* The communicator is freed. */
void by_shim_served_leave(const struct by_shim_comm *comm);

#endif

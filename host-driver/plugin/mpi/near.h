/*
 * Communicators whose ranks all run on one host: which these are, and which of their calls the
 * memory of the host carries faster than MPI does. Compiled once for each MPI. Neighbours: comms.c
 * opens them, shim.c decides for each call.
 */
#ifndef BY_PLUGIN_MPI_NEAR_H
#define BY_PLUGIN_MPI_NEAR_H

#include <stdint.h>

#include <mpi.h>

#include <banyan/banyan.h>

/* Returns the communicator's ranks of MPI_COMM_WORLD, in its order, in memory of malloc; NULL: one
 * is not in it, or no memory. */
uint32_t *by_shim_members(MPI_Comm comm, int size);
/* Whether all these ranks can share memory; `space` has by_mpi_facts.space by rank of
 * MPI_COMM_WORLD. Alike on all of them. */
int by_shim_are_near(const uint32_t *member, int size, const uint64_t *space);
/* Whether a call of so many bytes is carried faster by banyan than by this MPI. */
int by_shim_near_suits(banyan_collective_t collective, int ranks, uint64_t bytes);

#endif

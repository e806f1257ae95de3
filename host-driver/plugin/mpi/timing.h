/*
 * All-to-all, scatter and gather: whether MPI or libbanyan is faster, for each size of a share.
 * With BANYAN_SMALL=auto both are timed when the ranks join, and all ranks get the same figures.
 * Compiled once for each MPI; uses its public interface only. Neighbours: comms.c times, shares.c
 * asks.
 */
#ifndef BY_PLUGIN_MPI_TIMING_H
#define BY_PLUGIN_MPI_TIMING_H

#include "host-driver/plugin/mpi/comms.h"

/* Times both over MPI_COMM_WORLD, whose lane is open; collective. An error of libbanyan is in
 * facts->status and text afterwards. `text` becomes one sentence about the choice. Returns 0 if MPI
 * fails. */
int by_shim_time(const struct by_shim_gather *on, struct by_mpi_facts *facts, char text[BY_MPI_TEXT_MAX]);
/* Whether MPI is faster for shares of `bytes`; if not all ranks know their sizes, those of the
 * largest size that was timed decide. 0 if nothing was timed. Equal on all ranks. */
int by_shim_is_slower(banyan_collective_t collective, int is_unequal, uint64_t bytes);

#endif

/*
 * Jobs of communicators that are requested by calls that must not wait for other ranks
 * (sequencer.h): the communicator's number, which rank 0 broadcasts, and the thread that opens the
 * job. Also lanes that no call has used yet. Compiled once for each MPI; uses its public interface
 * only. Neighbour: comms.c, which decides.
 */
#ifndef BY_PLUGIN_MPI_REQUESTED_H
#define BY_PLUGIN_MPI_REQUESTED_H

#include "host-driver/plugin/mpi/comms.h"
#include "host-driver/plugin/mpi/sequencer.h"

/* Creates a lane for the communicator, for by_mpi_lane_free; NULL: no memory, and the program ends.
 * One on several hosts is kept when its communicator is freed. */
struct by_mpi_lane *by_shim_lane_new(const struct by_shim_comm *comm);

/* Rank 0 gives the communicator a number, in the same call as all its ranks. 1; 0: MPI could not
 * broadcast it. */
int by_shim_requested_announce(struct by_shim_comm *comm, const struct by_shim_gather *on);
/* Begins to open the job if the number has arrived; a call that may wait for all ranks (not is_now)
 * waits for it. `first`: the facts of rank 0. */
void by_shim_requested_begin(struct by_shim_comm *comm, const struct by_mpi_facts *first, int is_now);
/* Decides for a call while the job is opened. Unless MPI executes the call, the request has ended
 * with *status and `text`, and comm->lane is that of the job, or NULL. */
enum by_mpi_way by_shim_requested_call(struct by_shim_comm *comm, int is_now, int *status,
                                       char text[BY_MPI_TEXT_MAX]);
/* The communicator ends, or MPI does, while its job may be requested. */
void by_shim_requested_forget(struct by_shim_comm *comm);
/* MPI ends: ends all requests. */
void by_shim_requested_end(void);

#endif

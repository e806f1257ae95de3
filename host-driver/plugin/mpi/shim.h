/*
 * Translates MPI's collectives to libbanyan's with MPI's public interface only. Compiled once for
 * each MPI, and used by its preload library or its component. Every function of a call returns 1 if
 * libbanyan executes it, with `work` prepared (work.h), or 0 if MPI must execute it; by_shim_ready
 * has returned 1 for `comm`. The decision
 * depends only on facts that all ranks share (the communicator, the operation, bytes, the root),
 * never on a rank's own buffers or datatypes, so all ranks decide alike.
 */
#ifndef BY_PLUGIN_MPI_SHIM_H
#define BY_PLUGIN_MPI_SHIM_H

#include <mpi.h>

#include "host-driver/plugin/mpi/comms.h"
#include "host-driver/plugin/mpi/work.h"

int by_shim_allreduce(const struct by_shim_comm *comm, const void *send, void *recv, MPI_Count count,
                      MPI_Datatype type, MPI_Op op, struct by_shim_work *work);
int by_shim_reduce(const struct by_shim_comm *comm, const void *send, void *recv, MPI_Count count,
                   MPI_Datatype type, MPI_Op op, int root, struct by_shim_work *work);
int by_shim_reduce_scatter_block(const struct by_shim_comm *comm, const void *send, void *recv,
                                 MPI_Count count, MPI_Datatype type, MPI_Op op, struct by_shim_work *work);
int by_shim_reduce_scatter(const struct by_shim_comm *comm, const void *send, void *recv,
                           struct by_shim_counts counts, MPI_Datatype type, MPI_Op op,
                           struct by_shim_work *work);
int by_shim_bcast(const struct by_shim_comm *comm, void *buffer, MPI_Count count, MPI_Datatype type, int root,
                  struct by_shim_work *work);
int by_shim_allgather(const struct by_shim_comm *comm, const void *send, MPI_Count send_count,
                      MPI_Datatype send_type, void *recv, MPI_Count recv_count, MPI_Datatype recv_type,
                      struct by_shim_work *work);
int by_shim_allgatherv(const struct by_shim_comm *comm, const void *send, MPI_Count send_count,
                       MPI_Datatype send_type, void *recv, struct by_shim_counts counts,
                       struct by_shim_places places, MPI_Datatype recv_type, struct by_shim_work *work);
/* Exchanges: by_shim_exchanges has returned 1. `blocks` and what follows it are set here. */
int by_shim_alltoall(const struct by_shim_comm *comm, struct by_shim_side send, struct by_shim_side recv,
                     struct by_shim_work *work);
int by_shim_scatter(const struct by_shim_comm *comm, struct by_shim_side send, struct by_shim_side recv,
                    int root, int is_unequal, struct by_shim_work *work);
int by_shim_gather(const struct by_shim_comm *comm, struct by_shim_side send, struct by_shim_side recv,
                   int root, int is_unequal, struct by_shim_work *work);
int by_shim_barrier(const struct by_shim_comm *comm, struct by_shim_work *work);

#endif

/*
 * Translates MPI's collectives to libbanyan's with MPI's public interface only. Compiled once for
 * each MPI, and used by its preload library or its component. Every function of a call returns 1 if
 * libbanyan executes it, with `work` prepared (work.h), or 0 if MPI must execute it. The decision
 * depends only on facts that all ranks share (the communicator, the operation, bytes, the root),
 * never on a rank's own buffers or datatypes, so all ranks decide alike.
 */
#ifndef BY_PLUGIN_MPI_SHIM_H
#define BY_PLUGIN_MPI_SHIM_H

#include <mpi.h>

#include "host-driver/plugin/mpi/work.h"

/* MPI's own allgather of `bytes` of each rank over the communicator of `on`; returns an MPI error
 * code. */
struct by_shim_gather {
    int (*gather)(const struct by_shim_gather *on, const void *mine, void *all, int bytes);
    MPI_Comm comm;
    void *module; /* of Open MPI; else NULL */
};

/* 1 if calls over this communicator, which matches MPI_COMM_WORLD, are offloaded. Agrees as
 * by_shim_join, if that has not been called. */
int by_shim_ready(const struct by_shim_gather *on);

/* Like by_shim_ready, for a call that must not wait for other ranks: 0 if the ranks have not agreed
 * yet, or if the program has another communicator of all ranks, since libbanyan requires one order
 * of calls over all communicators, and MPI requires it of blocking calls only. */
int by_shim_ready_now(void);
/* Counts a call over such a communicator that MPI executes for `reason`. */
void by_shim_pass(enum by_mpi_reason reason);
/* All ranks join the job and agree over `on`, once; rank 0 prints the outcome. */
void by_shim_join(const struct by_shim_gather *on);
/* The program creates a communicator, other than MPI_COMM_WORLD, whose calls are offloaded. */
void by_shim_twin(void);

int by_shim_allreduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                      struct by_shim_work *work);
int by_shim_reduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                   struct by_shim_work *work);
int by_shim_reduce_scatter_block(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                                 struct by_shim_work *work);
int by_shim_reduce_scatter(const void *send, void *recv, struct by_shim_counts counts, MPI_Datatype type,
                           MPI_Op op, struct by_shim_work *work);
int by_shim_bcast(void *buffer, MPI_Count count, MPI_Datatype type, int root, struct by_shim_work *work);
int by_shim_allgather(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                      MPI_Count recv_count, MPI_Datatype recv_type, struct by_shim_work *work);
int by_shim_allgatherv(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                       struct by_shim_counts counts, struct by_shim_places places, MPI_Datatype recv_type,
                       struct by_shim_work *work);
int by_shim_barrier(struct by_shim_work *work);

#endif

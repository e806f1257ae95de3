/*
 * Translates MPI's collectives to libbanyan's with MPI's public interface only. Compiled once for
 * each MPI, and used by its preload library or its component. Every function returns 1 if it has
 * executed the call, with MPI's return value in *code, or 0 if MPI must execute it. The decision
 * depends only on facts that all ranks share (the communicator, the operation, bytes, the root),
 * never on a rank's own buffers or datatypes, so all ranks decide alike.
 */
#ifndef BY_PLUGIN_MPI_SHIM_H
#define BY_PLUGIN_MPI_SHIM_H

#include <mpi.h>

/* MPI's own allgather of `bytes` of each rank over the communicator of `on`; returns an MPI error
 * code. */
struct by_shim_gather {
    int (*gather)(const struct by_shim_gather *on, const void *mine, void *all, int bytes);
    MPI_Comm comm;
    void *module; /* of Open MPI; else NULL */
};

/* 1 if calls over this communicator, which matches MPI_COMM_WORLD, are offloaded. On the first call
 * all ranks join and agree over `on`, and rank 0 prints the outcome. */
int by_shim_ready(const struct by_shim_gather *on);

/* One value per rank, in one of two integer widths; the other pointer is NULL. */
struct by_shim_counts {
    const int *narrow;
    const MPI_Count *wide;
};
struct by_shim_places {
    const int *narrow;
    const MPI_Aint *wide;
};

int by_shim_allreduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int *code);
int by_shim_reduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                   int *code);
int by_shim_reduce_scatter_block(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                                 int *code);
int by_shim_reduce_scatter(const void *send, void *recv, struct by_shim_counts counts, MPI_Datatype type,
                           MPI_Op op, int *code);
int by_shim_bcast(void *buffer, MPI_Count count, MPI_Datatype type, int root, int *code);
int by_shim_allgather(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                      MPI_Count recv_count, MPI_Datatype recv_type, int *code);
int by_shim_allgatherv(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *recv,
                       struct by_shim_counts counts, struct by_shim_places places, MPI_Datatype recv_type,
                       int *code);
int by_shim_barrier(int *code);

#endif

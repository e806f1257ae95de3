/*
 * MPI's collectives as libbanyan's, in terms of MPI's public interface alone: compiled once for
 * each MPI, and used by its preload or its component. Every function says whether it took the call:
 * 1, and *code is what the MPI function returns; 0, MPI must carry it out. That decision rests only
 * on what all ranks share (the communicator, the operation, bytes, the root), never on a rank's own
 * buffers or datatypes, so all ranks come to the same.
 */
#ifndef BY_PLUGIN_MPI_SHIM_H
#define BY_PLUGIN_MPI_SHIM_H

#include <mpi.h>

/* MPI's own allgather of `bytes` of each rank over the communicator that `on` stands for: an MPI
 * error code.
 */
struct by_shim_gather {
    int (*gather)(const struct by_shim_gather *on, const void *mine, void *all, int bytes);
    MPI_Comm comm;
    void *module; /* of Open MPI; else NULL */
};

/* 1 when calls over this communicator, which fits MPI_COMM_WORLD, are offloaded. At the first call
 * all ranks join and agree, over `on`, and rank 0 says the outcome. */
int by_shim_ready(const struct by_shim_gather *on);

/* One for each rank, of either width; the other is NULL. */
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

/*
 * The parts of the preload library for MPICH: preload.c overrides the collectives and the functions
 * that make communicators, preload_checks.c has MPICH check their arguments, preload_requests.c
 * holds the requests of calls under way. Each looks up MPICH's own functions that it calls.
 */
#ifndef BY_PLUGIN_MPI_PRELOAD_H
#define BY_PLUGIN_MPI_PRELOAD_H

#include <mpi.h>

#include "host-driver/plugin/mpi/shim.h"

#define PUBLIC __attribute__((visibility("default")))

/* ---- preload_checks.c: on a communicator with only this process, MPICH's functions refuse the
 * same arguments and send nothing. Calls with refused arguments go to MPICH, so that the user gets
 * MPICH's error message. Each returns whether MPICH accepts the arguments. */

void by_preload_look_checks(void);
/* Returns that communicator; MPI_COMM_NULL if it cannot be made. Its errors are returned. */
MPI_Comm by_preload_alone(void);
/* 0 for NULL, MPI_IN_PLACE and an uncommitted type. */
int by_preload_is_buffer(const void *buffer, MPI_Count count, MPI_Datatype type);
/* Both buffers of a reduction on a rank that receives a result. */
int by_preload_are_buffers(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op);
/* Of an allgather; `own` is the destination of this rank's block. */
int by_preload_are_blocks(const void *send, MPI_Count send_count, MPI_Datatype send_type, void *own,
                          MPI_Count recv_count, MPI_Datatype recv_type);
/* Of a reduction to one rank. */
int by_preload_are_rooted(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                          int root, MPI_Comm comm);
/* Both sides of an all-to-all. */
int by_preload_are_sides(const void *send, MPI_Count send_count, MPI_Datatype send_type, const void *recv,
                         MPI_Count recv_count, MPI_Datatype recv_type);
/* One side of an all-to-all with a type for each block. */
int by_preload_are_typed(const struct by_shim_comm *at, struct by_shim_side side);
/* What only the root of a gather or scatter has. */
int by_preload_is_root_side(const void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm);
/* What each rank has; the root may have it in place. */
int by_preload_is_own_side(const void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm);
/* Returns element `index` of a buffer; the buffer itself if its type is invalid. */
void *by_preload_place(void *recv, MPI_Aint index, MPI_Datatype type);
int by_preload_rank(MPI_Comm comm);

/* ---- preload_requests.c */

void by_preload_look_requests(void);
/* Applies the communicator's error handler; returns the code. */
int by_preload_end(MPI_Comm comm, int code);
/* Starts a prepared call, and makes its request. Returns MPI's code. */
int by_preload_begin(const struct by_shim_work *work, MPI_Request *request);
/* Makes a persistent request of a prepared call. */
int by_preload_stand(const struct by_shim_work *work, MPI_Comm comm, MPI_Request *request);

#endif

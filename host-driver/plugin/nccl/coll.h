/*
 * Collectives of NCCL over libbanyan (CollNet): what every version of the interface calls, through
 * the adapters in coll_versions.c. A communicator of NCCL has one rank on each host; it becomes a
 * communicator of libbanyan if all ranks agree (admit.h). NCCL has no way back after `connect`, so
 * the decision is made there, within BANYAN_TIMEOUT, alike on all ranks.
 *
 * All functions return a result of abi.h. Any thread; see core.h.
 */
#ifndef BY_PLUGIN_NCCL_COLL_H
#define BY_PLUGIN_NCCL_COLL_H

#include <stddef.h>

#include "host-driver/plugin/nccl/abi.h"

int by_nccl_coll_listen(int device, void *handle, void **listener);

/* Waits for the other ranks, at most about BANYAN_TIMEOUT for each round of the agreement. With an
 * error the listener is closed, and NCCL uses its own algorithms. */
int by_nccl_coll_connect(void *handles[], int ranks, int rank, void *listener, void **coll);

int by_nccl_coll_close_listener(void *listener);
int by_nccl_coll_close(void *coll);

/* 1 in *supported if the job's mode defines the operator on the type, and the trees of every open
 * communicator can compute it. */
int by_nccl_coll_supports(int type, int op, int *supported);

int by_nccl_coll_add_memory(void *coll, void *data, size_t bytes, int kind, void **memory);
int by_nccl_coll_remove_memory(void *coll, void *memory);

/* *request is NULL, with BY_NCCL_OK, if as many operations run as libbanyan permits: call again. */
int by_nccl_coll_allreduce(void *coll, void *send, void *recv, size_t count, int type, int op,
                           void *send_memory, void *recv_memory, void **request);

/*
 * A window of the concatenation of all ranks' shares, which have `rank_bytes` each. Allgather:
 * `send` is this rank's part of the window, `recv` the whole window. Reduce-scatter: `send` is the
 * whole window, `recv` this rank's part.
 */
int by_nccl_coll_allgather(void *coll, void *send, const struct by_nccl_piece *recv, size_t rank_bytes,
                           size_t window_offset, size_t window_bytes, void *send_memory, void **request);
int by_nccl_coll_reduce_scatter(void *coll, const struct by_nccl_piece *send, void *recv, size_t rank_bytes,
                                size_t window_offset, size_t window_bytes, int type, int op,
                                void *recv_memory, void **request);

int by_nccl_coll_test(void *request, int *done, int *bytes);

#endif

/*
 * NCCL's part in tests of CollNet: calls any version of the collectives through one set of
 * functions, on a driver that is open (driver.h).
 */
#ifndef BY_TESTS_NCCL_COLL_H
#define BY_TESTS_NCCL_COLL_H

#include "tests/nccl/driver.h"

/* Initialises the collectives of the driver's version; a result of abi.h. */
int nccl_coll_init(struct nccl_driver *driver);
void nccl_coll_finish(struct nccl_driver *driver);

int nccl_coll_devices(struct nccl_driver *driver, int *count);
int nccl_coll_listen(struct nccl_driver *driver, void *handle, void **listener);
int nccl_coll_connect(struct nccl_driver *driver, void *handles[], int ranks, int rank, void *listener,
                      void **coll);
int nccl_coll_supports(struct nccl_driver *driver, int type, int op, int *supported);
int nccl_coll_add_memory(struct nccl_driver *driver, void *coll, void *data, size_t bytes, int kind,
                         void **memory);
int nccl_coll_remove_memory(struct nccl_driver *driver, void *coll, void *memory);
int nccl_coll_allreduce(struct nccl_driver *driver, void *coll, void *send, void *recv, size_t count,
                        int type, int op, void *send_memory, void *recv_memory, void **request);
int nccl_coll_allgather(struct nccl_driver *driver, void *coll, void *send, int pieces,
                        const struct by_nccl_piece *recv, size_t rank_bytes, size_t offset, size_t bytes,
                        void *send_memory, void **request);
int nccl_coll_reduce_scatter(struct nccl_driver *driver, void *coll, int pieces,
                             const struct by_nccl_piece *send, void *recv, size_t rank_bytes, size_t offset,
                             size_t bytes, int type, int op, void *recv_memory, void **request);
int nccl_coll_test(struct nccl_driver *driver, void *request, int *done, int *bytes);
int nccl_coll_close(struct nccl_driver *driver, void *coll);
int nccl_coll_close_listener(struct nccl_driver *driver, void *listener);

#endif

/*
 * All-to-all, scatter and gather: the part of libbanyan's interface in which each message has one
 * receiver. Included by banyan.h, which describes requests, errors and threads.
 */
#ifndef BANYAN_EXCHANGE_H
#define BANYAN_EXCHANGE_H

#include <banyan/banyan.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Operations in which each message has one receiver. What banyan.h says of operations holds. They
 * run between the hosts, never along trees: the ranks must be connected, as they are without a
 * table, where the table lacks trees for some collective, or if BANYAN_FALLBACK or BANYAN_SMALL is
 * set. Ranks of one host that share one memory (BANYAN_NEAR) use it for shares of equal size, also
 * without connections. Otherwise small shares travel by way of other ranks in ceil(log2 n) rounds,
 * large ones directly, whichever the ranks' measurements predict to be faster. Buffers in GPU
 * memory are not supported.
 *
 * - alltoall: element block s of recv[n * count] at rank r is block r of send[n * count] at rank s.
 *   In place: send == recv.
 * - scatter: rank r receives block r of send[n * count] at root in recv[count]. Other ranks do not
 *   use send; it may be NULL there. In place, at root: recv == send + root * count.
 * - gather: root receives send[count] of rank r in block r of recv[n * count]. Other ranks do not
 *   use recv; it may be NULL there. In place, at root: send == recv + root * count.
 *
 * The forms with v have blocks of unequal size: the block of rank r has counts[r] elements and
 * starts at element offsets[r]; with offsets NULL it starts after the blocks of the ranks before
 * it. Counts and offsets have n elements and are copied. Those of scatterv and gatherv are used at
 * root only, where counts[root] must equal `count`; of alltoallv, what rank s sends to rank r must
 * be what r expects from s. Otherwise the operation fails at both with BANYAN_EMISMATCH. In place
 * as above, with the root's block at its offset; of alltoallv with equal counts and offsets on both
 * sides. Messages of the forms with v always travel directly. In a job of more than 128 ranks the
 * first message between two ranks may open their connection, for which both must be in the
 * operation. A rank that may open no more files ends it with BANYAN_ELIMIT.
 */
BANYAN_API banyan_status_t banyan_alltoall_init(struct banyan_comm *comm, const void *send, void *recv,
                                                uint64_t count, banyan_dtype_t dtype,
                                                struct banyan_request **request);
BANYAN_API banyan_status_t banyan_alltoallv_init(struct banyan_comm *comm, const void *send,
                                                 const uint64_t *send_counts, const uint64_t *send_offsets,
                                                 void *recv, const uint64_t *recv_counts,
                                                 const uint64_t *recv_offsets, banyan_dtype_t dtype,
                                                 struct banyan_request **request);
BANYAN_API banyan_status_t banyan_scatter_init(struct banyan_comm *comm, const void *send, void *recv,
                                               uint64_t count, banyan_dtype_t dtype, uint32_t root,
                                               struct banyan_request **request);
BANYAN_API banyan_status_t banyan_scatterv_init(struct banyan_comm *comm, const void *send,
                                                const uint64_t *counts, const uint64_t *offsets, void *recv,
                                                uint64_t count, banyan_dtype_t dtype, uint32_t root,
                                                struct banyan_request **request);
BANYAN_API banyan_status_t banyan_gather_init(struct banyan_comm *comm, const void *send, void *recv,
                                              uint64_t count, banyan_dtype_t dtype, uint32_t root,
                                              struct banyan_request **request);
BANYAN_API banyan_status_t banyan_gatherv_init(struct banyan_comm *comm, const void *send, uint64_t count,
                                               void *recv, const uint64_t *counts, const uint64_t *offsets,
                                               banyan_dtype_t dtype, uint32_t root,
                                               struct banyan_request **request);

/*
 * Blocking forms: init, post, wait and free in one call. Errors: the errors of all four.
 */
BANYAN_API banyan_status_t banyan_alltoall(struct banyan_comm *comm, const void *send, void *recv,
                                           uint64_t count, banyan_dtype_t dtype);
BANYAN_API banyan_status_t banyan_alltoallv(struct banyan_comm *comm, const void *send,
                                            const uint64_t *send_counts, const uint64_t *send_offsets,
                                            void *recv, const uint64_t *recv_counts,
                                            const uint64_t *recv_offsets, banyan_dtype_t dtype);
BANYAN_API banyan_status_t banyan_scatter(struct banyan_comm *comm, const void *send, void *recv,
                                          uint64_t count, banyan_dtype_t dtype, uint32_t root);
BANYAN_API banyan_status_t banyan_scatterv(struct banyan_comm *comm, const void *send, const uint64_t *counts,
                                           const uint64_t *offsets, void *recv, uint64_t count,
                                           banyan_dtype_t dtype, uint32_t root);
BANYAN_API banyan_status_t banyan_gather(struct banyan_comm *comm, const void *send, void *recv,
                                         uint64_t count, banyan_dtype_t dtype, uint32_t root);
BANYAN_API banyan_status_t banyan_gatherv(struct banyan_comm *comm, const void *send, uint64_t count,
                                          void *recv, const uint64_t *counts, const uint64_t *offsets,
                                          banyan_dtype_t dtype, uint32_t root);

#ifdef __cplusplus
}
#endif

#endif

/*
 * Exchanges of the ranks of a job while a communicator opens: each rank gives some bytes, and has
 * those of all ranks afterwards. Over the program's own allgather if it supplies one
 * (banyan_bootstrap), or else over connections to rank 0 (host-driver/fallback/peers.h). Blocking,
 * with a deadline; collective. One thread.
 */
#ifndef BY_HOST_BOOTSTRAP_GATHER_H
#define BY_HOST_BOOTSTRAP_GATHER_H

#include "host-driver/bootstrap/bootstrap.h"

struct by_gather {
    struct by_bootstrap *bootstrap;
    uint32_t rank, rank_count;
    struct by_peers peers; /* unused with the program's allgather */
    bool met;
};

/* `key` must be equal at all ranks, and separates exchanges. The caller calls by_gather_close, also
 * after an error. 0, or an error with its text. */
int by_gather_open(struct by_gather *gather, struct by_bootstrap *bootstrap, uint32_t key,
                   uint64_t deadline_ns);
/* all[rank_count * bytes], in rank order. */
int by_gather_run(struct by_gather *gather, const void *mine, void *all, size_t bytes, uint64_t deadline_ns);
void by_gather_close(struct by_gather *gather);

#endif

/*
 * The ranks of this process: one, or with --in-process all of them. One thread drives them all: it
 * posts an operation on every rank, then waits for it on every rank.
 */
#ifndef BY_PERF_WORLD_H
#define BY_PERF_WORLD_H

#include <banyan/banyan.h>

#include "host-driver/tools/perf/options.h"

#define PERF_PIPELINE 4u /* operations in flight with -z 0 */

struct perf_rank {
    struct banyan_context *context;
    struct banyan_comm *comm;
    uint32_t rank;
    uint8_t *send, *recv;
    uint64_t given, combined; /* for perf_world_sum and perf_world_max */
    struct banyan_request *request[PERF_PIPELINE];
};

struct perf_world {
    struct banyan_fabric *fabric; /* or NULL */
    struct perf_rank *ranks;
    uint32_t local_count; /* ranks in this process */
    uint32_t size;        /* ranks of the job */
    uint64_t buffer_bytes;
    uint64_t *counts; /* one per rank */
};

/* One operation as all ranks post it. Counts as in banyan.h. */
struct perf_call {
    unsigned collective;
    banyan_dtype_t dtype;
    banyan_op_t op;
    uint32_t root;
    uint64_t count;
    /* NULL, or offsets in units of `count` elements: rank r has [offsets[r], offsets[r + 1]) */
    const uint64_t *offsets;
    bool in_place;
};

/* Elements of a rank's share (or of the whole call, if it has no shares), and elements before the
 * share. */
static inline uint64_t perf_share_count(const struct perf_call *call, uint32_t rank)
{
    return call->offsets != NULL ? (call->offsets[rank + 1] - call->offsets[rank]) * call->count
                                 : call->count;
}

static inline uint64_t perf_share_first(const struct perf_call *call, uint32_t rank)
{
    return (call->offsets != NULL ? call->offsets[rank] : rank) * call->count;
}

/* Opens contexts and communicators, with buffers of `bytes` for each rank. Returns PERF_RIGHT, or
 * prints the error on stderr. */
enum perf_exit perf_world_open(struct perf_world *world, const struct perf_options *options, uint64_t bytes);
void perf_world_close(struct perf_world *world);
/* Aborts running operations; for signal handlers. */
void perf_world_abort(struct perf_world *world);

/* Describe `call` for every local rank, `depth` (<= PERF_PIPELINE) times; post one; wait for one;
 * free. After a failure the text is banyan_last_error() and *failed the rank. */
banyan_status_t perf_world_init(struct perf_world *world, const struct perf_call *call, uint32_t depth,
                                uint32_t *failed);
banyan_status_t perf_world_post(struct perf_world *world, uint32_t which, uint32_t *failed);
banyan_status_t perf_world_wait(struct perf_world *world, uint32_t which, uint32_t *failed);
void perf_world_free(struct perf_world *world);
/* Posts once and waits. */
banyan_status_t perf_world_run(struct perf_world *world, const struct perf_call *call, uint32_t *failed);

banyan_status_t perf_world_barrier(struct perf_world *world, uint32_t *failed);
/* Reduce one value of each rank over all ranks of the job, by an allreduce of one element; `local`
 * holds the values of the local ranks. */
banyan_status_t perf_world_sum(struct perf_world *world, const uint64_t *local, uint64_t *sum,
                               uint32_t *failed);
banyan_status_t perf_world_max(struct perf_world *world, const double *local, double *max, uint32_t *failed);

#endif

/* Times each collective over the trees, to compare them with calls between hosts. See hosts.h. */
#include <stdlib.h>

#include "host-driver/clock.h"
#include "host-driver/comm.h"
#include "host-driver/error.h"
#include "host-driver/hosts.h"
#include "offload/wire/types.h"

/* Sizes for timing: one byte per rank and MEASURED_SHARD bytes per rank; MEASURED_ROUNDS
 * repetitions. */
#define MEASURED_SHARD  (16u << 10)
#define MEASURED_ROUNDS 6u

/* Runs one operation of `bytes` in total, in place in `buffer`; the root, if any, is rank 0. */
static banyan_status_t run_over_trees(struct banyan_comm *comm, unsigned collective, uint8_t *buffer,
                                      uint64_t bytes)
{
    uint64_t shard = bytes / comm->rank_count;
    uint8_t *own = buffer + comm->rank * shard;

    switch ((enum by_collective)collective) {
    case BY_COLLECTIVE_ALLREDUCE:
        return banyan_allreduce(comm, buffer, buffer, bytes, BANYAN_U8, BANYAN_BOR);
    case BY_COLLECTIVE_REDUCE_SCATTER:
        return banyan_reduce_scatter(comm, buffer, own, shard, BANYAN_U8, BANYAN_BOR);
    case BY_COLLECTIVE_ALLGATHER:
        return banyan_allgather(comm, own, buffer, shard, BANYAN_U8);
    case BY_COLLECTIVE_BROADCAST:
        return banyan_broadcast(comm, buffer, bytes, BANYAN_U8, 0);
    case BY_COLLECTIVE_REDUCE:
        return banyan_reduce(comm, buffer, buffer, bytes, BANYAN_U8, BANYAN_BOR, 0);
    case BY_COLLECTIVE_BARRIER:
    default:
        return banyan_barrier(comm);
    }
}

/* Returns the minimum of several durations. */
static int time_trees(struct banyan_comm *comm, unsigned collective, uint8_t *buffer, uint64_t bytes,
                      uint64_t *best_ns)
{
    *best_ns = UINT64_MAX;
    for (unsigned i = 0; i < MEASURED_ROUNDS; i++) {
        uint64_t begin_ns = by_clock_ns(), took_ns;
        banyan_status_t status = run_over_trees(comm, collective, buffer, bytes);

        if (status != BANYAN_OK)
            return status;
        took_ns = by_clock_ns() - begin_ns;
        *best_ns = took_ns < *best_ns ? took_ns : *best_ns;
    }
    return 0;
}

/* Derives latency and gap from two sizes; a barrier has only one. */
static int measure_trees(struct banyan_comm *comm, unsigned collective, uint8_t *buffer,
                         struct by_tree_time *time)
{
    uint64_t least = comm->rank_count, small_ns = 0, large_ns = 0;
    int error = time_trees(comm, collective, buffer, least, &small_ns);

    if (error == 0 && collective != BY_COLLECTIVE_BARRIER)
        error = time_trees(comm, collective, buffer, least * MEASURED_SHARD, &large_ns);
    if (error != 0)
        return error;
    time->latency_ns = small_ns > 0 ? small_ns : 1;
    if (collective != BY_COLLECTIVE_BARRIER)
        time->gap_ps =
            (large_ns > small_ns ? large_ns - small_ns : 1) * 1000u / (least * (MEASURED_SHARD - 1)) + 1;
    return 0;
}

int by_hosts_measure(struct banyan_comm *comm)
{
    struct by_tree_time tree[BY_COLLECTIVE_COUNT] = {{0}};
    uint64_t numbers[2 * BY_COLLECTIVE_COUNT];
    uint8_t *buffer;
    int error = 0;

    if (!comm->hosts.by_time || comm->hosts.fallback == NULL || comm->progress.endpoint == NULL)
        return 0;
    buffer = calloc(comm->rank_count, MEASURED_SHARD);
    if (buffer == NULL)
        return by_fail(BY_ENOMEM, "no memory to measure the trees: %u bytes for each of %u ranks",
                       MEASURED_SHARD, comm->rank_count);
    for (unsigned c = BY_COLLECTIVE_ALLREDUCE; c < BY_COLLECTIVE_COUNT && error == 0; c++)
        if (by_hosts_has_trees(comm, c))
            error = measure_trees(comm, c, buffer, &tree[c]);
    free(buffer);
    for (unsigned c = 0; c < BY_COLLECTIVE_COUNT; c++) {
        numbers[2 * c] = tree[c].latency_ns;
        numbers[2 * c + 1] = tree[c].gap_ps;
    }
    /* The slowest rank's numbers, so that all ranks decide alike. */
    if (error == 0)
        error = banyan_allreduce(comm, numbers, numbers, 2 * BY_COLLECTIVE_COUNT, BANYAN_U64, BANYAN_MAX);
    for (unsigned c = 0; c < BY_COLLECTIVE_COUNT && error == 0; c++)
        comm->hosts.tree[c] = (struct by_tree_time){numbers[2 * c], numbers[2 * c + 1]};
    return error;
}

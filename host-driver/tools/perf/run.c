/*
 * One operation of one size, out of place and in place: fill, warm up, time, check every element on
 * every rank. Ranks synchronise with banyan's own barrier. The time is the slowest rank's and wrong
 * elements are summed over all ranks, by banyan's own allreduce. Out of place the result of the
 * last timed operation is checked; in place, where repetition changes the data, one more operation
 * on fresh data is checked. One thread.
 */
#include "host-driver/tools/perf/run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "host-driver/clock.h"
#include "host-driver/tools/perf/oracle.h"
#include "offload/base/crc32c.h"
#include "offload/wire/types.h"

/* initial value of recv, to detect elements that were never written */
#define POISON 0xa5

static struct perf_oracle oracle_of(const struct perf_world *world, const struct perf_options *options,
                                    const struct perf_call *call, uint32_t salt)
{
    bool reduces = by_collective_reduces(call->collective);

    return (struct perf_oracle){.op = (uint8_t)(reduces ? call->op : BY_OP_MAX),
                                .dtype = (uint8_t)call->dtype,
                                .mode = (uint8_t)banyan_comm_mode(world->ranks[0].comm),
                                .random_data = options->random_data,
                                .ranks = world->size,
                                .salt = salt};
}

/* Writes each local rank's input where the operation reads it, and poison everywhere else. */
static void fill(struct perf_world *world, const struct perf_call *call, const struct perf_oracle *oracle)
{
    uint64_t element = banyan_dtype_size(call->dtype);

    for (uint32_t i = 0; i < world->local_count; i++) {
        struct perf_rank *rank = &world->ranks[i];
        uint8_t *into = call->in_place ? rank->recv : rank->send;
        uint64_t count = call->count, all = perf_share_first(call, world->size);

        memset(rank->recv, POISON, world->buffer_bytes);
        if (call->collective == BY_COLLECTIVE_BARRIER)
            continue;
        if (call->collective == BY_COLLECTIVE_BROADCAST) {
            if (rank->rank == call->root)
                perf_oracle_fill(oracle, rank->rank, 0, count, rank->recv);
            continue;
        }
        if (call->collective == BY_COLLECTIVE_REDUCE_SCATTER)
            count = all;
        if (call->collective == BY_COLLECTIVE_ALLGATHER)
            count = perf_share_count(call, rank->rank);
        if (call->collective == BY_COLLECTIVE_ALLGATHER && call->in_place)
            into += perf_share_first(call, rank->rank) * element;
        perf_oracle_fill(oracle, rank->rank, 0, count, into);
    }
}

/* Counts the wrong elements at one rank. */
static uint64_t check_rank(const struct perf_world *world, const struct perf_rank *rank,
                           const struct perf_call *call, const struct perf_oracle *oracle)
{
    uint64_t element = banyan_dtype_size(call->dtype);
    uint64_t first = perf_share_first(call, rank->rank);
    uint64_t wrong = 0;

    switch ((enum by_collective)call->collective) {
    case BY_COLLECTIVE_ALLREDUCE:
        return perf_oracle_wrong_sum(oracle, 0, call->count, rank->recv);
    case BY_COLLECTIVE_REDUCE:
        return rank->rank == call->root ? perf_oracle_wrong_sum(oracle, 0, call->count, rank->recv) : 0;
    case BY_COLLECTIVE_REDUCE_SCATTER:
        return perf_oracle_wrong_sum(oracle, first, perf_share_count(call, rank->rank),
                                     rank->recv + (call->in_place ? first * element : 0));
    case BY_COLLECTIVE_ALLGATHER:
        for (uint32_t from = 0; from < world->size; from++)
            wrong += perf_oracle_wrong_copy(oracle, from, 0, perf_share_count(call, from),
                                            rank->recv + perf_share_first(call, from) * element);
        return wrong;
    case BY_COLLECTIVE_BROADCAST:
        return perf_oracle_wrong_copy(oracle, call->root, 0, call->count, rank->recv);
    case BY_COLLECTIVE_BARRIER:
    default:
        return 0;
    }
}

/* Returns the bytes that an operation leaves at a rank. */
static const uint8_t *result_at(const struct perf_world *world, const struct perf_rank *rank,
                                const struct perf_call *call, uint64_t *bytes)
{
    uint64_t element = banyan_dtype_size(call->dtype);

    *bytes = perf_share_count(call, rank->rank) * element;
    if (call->collective == BY_COLLECTIVE_ALLGATHER)
        *bytes = perf_share_first(call, world->size) * element;
    if (call->collective == BY_COLLECTIVE_BARRIER ||
        (call->collective == BY_COLLECTIVE_REDUCE && rank->rank != call->root))
        *bytes = 0;
    if (call->collective == BY_COLLECTIVE_REDUCE_SCATTER && call->in_place)
        return rank->recv + perf_share_first(call, rank->rank) * element;
    return rank->recv;
}

/* Computes 64 bits from all results: the sum over ranks of each rank's hash, mixed with its number.
 * The multiplier is that of FNV-1a. */
static banyan_status_t digest(struct perf_world *world, const struct perf_call *call, uint64_t *sum,
                              uint32_t *failed)
{
    uint64_t *local = calloc(world->local_count, sizeof(*local));
    banyan_status_t status;

    if (local == NULL)
        return BANYAN_ENOMEM;
    for (uint32_t i = 0; i < world->local_count; i++) {
        uint64_t bytes, word, hash = 0xcbf29ce484222325u + world->ranks[i].rank;
        const uint8_t *at = result_at(world, &world->ranks[i], call, &bytes);

        for (; bytes > 0; at += sizeof(word)) {
            size_t size = bytes < sizeof(word) ? bytes : sizeof(word);

            word = 0;
            memcpy(&word, at, size);
            hash = (hash ^ word) * 0x100000001b3u;
            hash ^= hash >> 29;
            bytes -= size;
        }
        local[i] = hash;
    }
    status = perf_world_sum(world, local, sum, failed);
    free(local);
    return status;
}

/* All ranks must hold the same bits after an allreduce. If a checksum differs, counts the whole
 * result as wrong. */
static banyan_status_t check_same_bits(struct perf_world *world, const struct perf_call *call,
                                       uint64_t *wrong, uint32_t *failed)
{
    double *crc = calloc(world->local_count, 2 * sizeof(*crc));
    double most, least = 0;
    banyan_status_t status;

    if (crc == NULL)
        return BANYAN_ENOMEM;
    for (uint32_t i = 0; i < world->local_count; i++) {
        crc[i] = by_crc32c(0, world->ranks[i].recv, call->count * banyan_dtype_size(call->dtype));
        crc[world->local_count + i] = -crc[i];
    }
    status = perf_world_max(world, crc, &most, failed);
    if (status == BANYAN_OK)
        status = perf_world_max(world, crc + world->local_count, &least, failed);
    if (status == BANYAN_OK && most != -least)
        *wrong += call->count;
    free(crc);
    return status;
}

static banyan_status_t check(struct perf_world *world, const struct perf_call *call,
                             const struct perf_oracle *oracle, struct perf_half *half, uint32_t *failed)
{
    uint64_t *local = calloc(world->local_count, sizeof(*local));
    banyan_status_t status;

    if (local == NULL)
        return BANYAN_ENOMEM;
    for (uint32_t i = 0; i < world->local_count; i++)
        local[i] = check_rank(world, &world->ranks[i], call, oracle);
    status = perf_world_sum(world, local, &half->wrong, failed);
    free(local);
    if (status == BANYAN_OK)
        status = digest(world, call, &half->digest, failed);
    if (status == BANYAN_OK && call->collective == BY_COLLECTIVE_ALLREDUCE && call->count > 0)
        status = check_same_bits(world, call, &half->wrong, failed);
    return status;
}

/* Posts `operations` in sequence, at most `depth` at a time, and waits for all. */
static banyan_status_t repeat(struct perf_world *world, uint32_t operations, uint32_t depth, uint32_t *failed)
{
    banyan_status_t status = BANYAN_OK;

    for (uint32_t i = 0; status == BANYAN_OK && i < operations + depth; i++) {
        if (i >= depth && i - depth < operations)
            status = perf_world_wait(world, i % depth, failed);
        if (status == BANYAN_OK && i < operations)
            status = perf_world_post(world, i % depth, failed);
    }
    return status;
}

void perf_ports_read(const struct banyan_comm *comm, struct perf_ports *ports)
{
    const char *name;
    uint64_t value;

    memset(ports, 0, sizeof(*ports));
    for (uint32_t i = 0; banyan_comm_counter(comm, i, &name, &value) == BANYAN_OK; i++) {
        const char *port = name + 5;
        const char *field;
        size_t bytes;

        if (strncmp(name, "port/", 5) != 0 || (field = strrchr(port, '/')) == NULL)
            continue;
        bytes = (size_t)(field - port);
        if (ports->count == 0 || strlen(ports->port[ports->count - 1].name) != bytes ||
            strncmp(ports->port[ports->count - 1].name, port, bytes) != 0) {
            if (ports->count == PERF_PORTS_MAX || bytes >= sizeof(ports->port[0].name))
                continue;
            memcpy(ports->port[ports->count++].name, port, bytes);
        }
        if (strcmp(field, "/rx_packets") == 0)
            ports->port[ports->count - 1].rx_packets = value;
        else if (strcmp(field, "/rx_bytes") == 0)
            ports->port[ports->count - 1].rx_bytes = value;
        else if (strcmp(field, "/tx_packets") == 0)
            ports->port[ports->count - 1].tx_packets = value;
        else if (strcmp(field, "/tx_bytes") == 0)
            ports->port[ports->count - 1].tx_bytes = value;
    }
}

static void ports_since(struct perf_ports *now, const struct perf_ports *then)
{
    for (uint32_t i = 0; i < now->count && i < then->count; i++) {
        now->port[i].rx_packets -= then->port[i].rx_packets;
        now->port[i].rx_bytes -= then->port[i].rx_bytes;
        now->port[i].tx_packets -= then->port[i].tx_packets;
        now->port[i].tx_bytes -= then->port[i].tx_bytes;
    }
}

static double bus_factor(unsigned collective, uint32_t n)
{
    switch ((enum by_collective)collective) {
    case BY_COLLECTIVE_ALLREDUCE:
        return 2.0 * (n - 1) / n;
    case BY_COLLECTIVE_REDUCE_SCATTER:
    case BY_COLLECTIVE_ALLGATHER:
        return (n - 1.0) / n;
    case BY_COLLECTIVE_BROADCAST:
    case BY_COLLECTIVE_REDUCE:
    case BY_COLLECTIVE_BARRIER:
    default:
        return 1;
    }
}

/* Returns the processor time of this process so far (us). */
static double cpu_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Runs the warm-up, then the timed operations; `time_us` is the slowest rank's. */
static banyan_status_t measure(struct perf_world *world, const struct perf_options *options,
                               const struct perf_call *call, struct perf_half *half, uint32_t *failed)
{
    uint32_t depth = options->blocking || call->in_place ? 1 : PERF_PIPELINE;
    double *local = calloc(world->local_count, sizeof(*local));
    struct perf_ports before;
    banyan_status_t status;
    uint64_t start;
    double elapsed;

    if (local == NULL)
        return BANYAN_ENOMEM;
    status = perf_world_init(world, call, depth, failed);
    if (status == BANYAN_OK)
        status = repeat(world, options->warmup, 1, failed);
    if (status == BANYAN_OK)
        perf_world_free(world);
    if (status == BANYAN_OK)
        status = perf_world_barrier(world, failed);
    if (status == BANYAN_OK)
        status = perf_world_init(world, call, depth, failed);
    perf_ports_read(world->ranks[0].comm, &before);
    half->cpu_us = -cpu_us();
    start = by_clock_ns();
    if (status == BANYAN_OK)
        status = repeat(world, options->iterations, depth, failed);
    elapsed = (double)(by_clock_ns() - start) / 1e3 / options->iterations;
    half->cpu_us = (half->cpu_us + cpu_us()) / options->iterations;
    perf_ports_read(world->ranks[0].comm, &half->ports);
    ports_since(&half->ports, &before);
    if (status == BANYAN_OK)
        perf_world_free(world);
    for (uint32_t i = 0; i < world->local_count; i++)
        local[i] = elapsed; /* NOLINT(clang-analyzer-unix.Malloc): a process has at least one rank */
    if (status == BANYAN_OK)
        status = perf_world_max(world, local, &half->time_us, failed);
    free(local);
    return status;
}

static banyan_status_t run_half(struct perf_world *world, const struct perf_options *options, uint32_t salt,
                                const struct perf_result *result, const struct perf_call *call,
                                struct perf_half *half, uint32_t *failed)
{
    struct perf_oracle oracle = oracle_of(world, options, call, salt);
    banyan_status_t status;

    fill(world, call, &oracle);
    status = measure(world, options, call, half, failed);
    if (status == BANYAN_OK && call->in_place && call->collective != BY_COLLECTIVE_BARRIER &&
        !options->unchecked) {
        oracle.salt++;
        fill(world, call, &oracle);
        status = perf_world_run(world, call, failed);
    }
    if (status == BANYAN_OK && !options->unchecked)
        status = check(world, call, &oracle, half, failed);
    if (half->time_us > 0)
        half->algbw = (double)result->bytes / half->time_us / 1e3;
    half->busbw = half->algbw * bus_factor(call->collective, world->size);
    return status;
}

banyan_status_t perf_run(struct perf_world *world, const struct perf_options *options, uint32_t salt,
                         struct perf_result *result, uint32_t *failed)
{
    struct perf_call call = result->call;
    banyan_status_t status;

    result->operations = options->iterations;
    result->unchecked = options->unchecked;
    result->optimum = options->optimum[call.collective];
    call.in_place = false;
    status = run_half(world, options, salt * 4, result, &call, &result->out_of_place, failed);
    call.in_place = true;
    if (status == BANYAN_OK)
        status = run_half(world, options, salt * 4 + 2, result, &call, &result->in_place, failed);
    return status;
}

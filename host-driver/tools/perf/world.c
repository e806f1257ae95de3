/* The ranks of this process, and operations on all of them; see world.h. One thread. */
#include "host-driver/tools/perf/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum perf_exit exit_of(banyan_status_t status)
{
    switch (status) {
    case BANYAN_OK:
        return PERF_RIGHT;
    case BANYAN_EINVAL:
    case BANYAN_EFORMAT:
    case BANYAN_ECHECKSUM:
    case BANYAN_EVERSION:
        return PERF_USAGE;
    case BANYAN_ENOMEM:
    case BANYAN_ELIMIT:
    case BANYAN_ENOENT:
    case BANYAN_EEXIST:
    case BANYAN_EBUSY:
    case BANYAN_EAGAIN:
    case BANYAN_ETIMEDOUT:
    case BANYAN_EMISMATCH:
    case BANYAN_EUNSUPPORTED:
    case BANYAN_EPERM:
    case BANYAN_EIO:
    case BANYAN_ESTATE:
    case BANYAN_EABORTED:
    case BANYAN_ERANGE:
    default:
        return PERF_ENVIRONMENT;
    }
}

static banyan_status_t open_rank(struct perf_world *world, struct perf_rank *rank,
                                 const struct perf_options *options, const char *host)
{
    struct banyan_config config;
    banyan_status_t status;

    banyan_config_init(&config);
    config.table = options->table;
    config.transport = options->transport;
    config.fabric = world->fabric;
    config.host = host;
    config.mode = options->mode;
    status = banyan_init(&config, &rank->context);
    if (status == BANYAN_OK)
        status = banyan_comm_create(rank->context, options->job, &rank->comm);
    if (status == BANYAN_OK)
        rank->rank = banyan_comm_rank(rank->comm);
    return status;
}

static banyan_status_t open_ranks(struct perf_world *world, const struct perf_options *options)
{
    banyan_status_t status = BANYAN_OK;
    uint32_t count = 1;

    if (options->folder != NULL) {
        status = banyan_fabric_open(options->folder, &world->fabric);
        if (status != BANYAN_OK)
            return status;
        for (count = 0; banyan_fabric_host(world->fabric, count) != NULL; count++)
            ;
    }
    world->ranks = calloc(count > 0 ? count : 1, sizeof(*world->ranks));
    if (world->ranks == NULL)
        return BANYAN_ENOMEM;
    for (uint32_t i = 0; status == BANYAN_OK && i < count; i++) {
        world->local_count = i + 1;
        status = open_rank(world, &world->ranks[i], options,
                           world->fabric != NULL ? banyan_fabric_host(world->fabric, i) : NULL);
    }
    if (status == BANYAN_OK && count > 0)
        world->size = banyan_comm_size(world->ranks[0].comm);
    return status;
}

static uint8_t *take_buffer(struct banyan_comm *comm, uint64_t bytes)
{
    void *buffer;

    if (banyan_alloc(comm, bytes, &buffer) != BANYAN_OK)
        return NULL;
    memset(buffer, 0, bytes); /* avoids page faults during timing */
    return buffer;
}

enum perf_exit perf_world_open(struct perf_world *world, const struct perf_options *options, uint64_t bytes)
{
    banyan_status_t status;

    memset(world, 0, sizeof(*world));
    world->buffer_bytes = bytes;
    status = open_ranks(world, options);
    if (status != BANYAN_OK) {
        fprintf(stderr, "banyan-perf: %s\n",
                banyan_last_error()[0] != 0 ? banyan_last_error() : banyan_strerror(status));
        return exit_of(status);
    }
    if (world->size == 0 || (world->fabric != NULL && world->local_count != world->size)) {
        fprintf(stderr,
                "banyan-perf: %s has %u hosts, but its tables specify %u ranks; the job must use all hosts\n",
                options->folder, world->local_count, world->size);
        return PERF_USAGE;
    }
    world->counts = calloc(world->size, sizeof(*world->counts));
    for (uint32_t i = 0; i < world->local_count; i++) {
        world->ranks[i].send = take_buffer(world->ranks[i].comm, bytes);
        world->ranks[i].recv = take_buffer(world->ranks[i].comm, bytes);
        if (world->counts == NULL || world->ranks[i].send == NULL || world->ranks[i].recv == NULL) {
            fprintf(stderr, "banyan-perf: no memory for two buffers of %llu bytes; choose a smaller -e\n",
                    (unsigned long long)bytes);
            return PERF_ENVIRONMENT;
        }
    }
    return PERF_RIGHT;
}

void perf_world_close(struct perf_world *world)
{
    for (uint32_t i = 0; i < world->local_count; i++) {
        if (world->ranks[i].comm != NULL)
            banyan_comm_destroy(world->ranks[i].comm);
        if (world->ranks[i].context != NULL)
            banyan_finalize(world->ranks[i].context);
    }
    free(world->ranks);
    free(world->counts);
    if (world->fabric != NULL)
        banyan_fabric_close(world->fabric);
    memset(world, 0, sizeof(*world));
}

void perf_world_abort(struct perf_world *world)
{
    for (uint32_t i = 0; i < world->local_count; i++)
        if (world->ranks[i].comm != NULL)
            banyan_abort(world->ranks[i].comm);
}

static banyan_status_t init_unequal(const struct perf_world *world, const struct perf_rank *rank,
                                    const struct perf_call *call, const uint8_t *send, uint8_t *recv,
                                    struct banyan_request **request)
{
    for (uint32_t r = 0; r < world->size; r++)
        world->counts[r] = perf_share_count(call, r);
    return call->collective == BY_COLLECTIVE_ALLGATHER
               ? banyan_allgatherv_init(rank->comm, send, recv, world->counts, call->dtype, request)
               : banyan_reduce_scatterv_init(rank->comm, send, recv, world->counts, call->dtype, call->op,
                                             request);
}

/* Places in-place data in one buffer, as each collective requires. */
static banyan_status_t init_one(const struct perf_world *world, const struct perf_rank *rank,
                                const struct perf_call *call, struct banyan_request **request)
{
    uint64_t part = perf_share_first(call, rank->rank) * banyan_dtype_size(call->dtype);
    uint8_t *send = rank->send;
    uint8_t *recv = rank->recv;

    switch ((enum by_collective)call->collective) {
    case BY_COLLECTIVE_ALLREDUCE:
        return banyan_allreduce_init(rank->comm, call->in_place ? recv : send, recv, call->count, call->dtype,
                                     call->op, request);
    case BY_COLLECTIVE_REDUCE_SCATTER:
        if (call->offsets != NULL)
            return init_unequal(world, rank, call, call->in_place ? recv : send,
                                call->in_place ? recv + part : recv, request);
        return banyan_reduce_scatter_init(rank->comm, call->in_place ? recv : send,
                                          call->in_place ? recv + part : recv, call->count, call->dtype,
                                          call->op, request);
    case BY_COLLECTIVE_ALLGATHER:
        if (call->offsets != NULL)
            return init_unequal(world, rank, call, call->in_place ? recv + part : send, recv, request);
        return banyan_allgather_init(rank->comm, call->in_place ? recv + part : send, recv, call->count,
                                     call->dtype, request);
    case BY_COLLECTIVE_BROADCAST:
        return banyan_broadcast_init(rank->comm, recv, call->count, call->dtype, call->root, request);
    case BY_COLLECTIVE_REDUCE:
        return banyan_reduce_init(rank->comm, call->in_place ? recv : send, recv, call->count, call->dtype,
                                  call->op, call->root, request);
    case BY_COLLECTIVE_BARRIER:
    default:
        return banyan_barrier_init(rank->comm, request);
    }
}

banyan_status_t perf_world_init(struct perf_world *world, const struct perf_call *call, uint32_t depth,
                                uint32_t *failed)
{
    for (uint32_t i = 0; i < world->local_count; i++) {
        for (uint32_t d = 0; d < depth; d++) {
            banyan_status_t status = init_one(world, &world->ranks[i], call, &world->ranks[i].request[d]);

            if (status != BANYAN_OK) {
                *failed = world->ranks[i].rank;
                return status;
            }
        }
    }
    return BANYAN_OK;
}

banyan_status_t perf_world_post(struct perf_world *world, uint32_t which, uint32_t *failed)
{
    for (uint32_t i = 0; i < world->local_count; i++) {
        banyan_status_t status = banyan_post(world->ranks[i].request[which]);

        if (status != BANYAN_OK) {
            *failed = world->ranks[i].rank;
            return status;
        }
    }
    return BANYAN_OK;
}

banyan_status_t perf_world_wait(struct perf_world *world, uint32_t which, uint32_t *failed)
{
    for (uint32_t i = 0; i < world->local_count; i++) {
        banyan_status_t status = banyan_wait(world->ranks[i].request[which]);

        if (status != BANYAN_OK) {
            *failed = world->ranks[i].rank;
            return status;
        }
    }
    return BANYAN_OK;
}

void perf_world_free(struct perf_world *world)
{
    for (uint32_t i = 0; i < world->local_count; i++) {
        for (uint32_t d = 0; d < PERF_PIPELINE; d++) {
            if (world->ranks[i].request[d] != NULL)
                banyan_free(world->ranks[i].request[d]);
            world->ranks[i].request[d] = NULL;
        }
    }
}

banyan_status_t perf_world_run(struct perf_world *world, const struct perf_call *call, uint32_t *failed)
{
    banyan_status_t status = perf_world_init(world, call, 1, failed);

    if (status == BANYAN_OK)
        status = perf_world_post(world, 0, failed);
    if (status == BANYAN_OK)
        status = perf_world_wait(world, 0, failed);
    if (status == BANYAN_OK)
        perf_world_free(world);
    return status;
}

banyan_status_t perf_world_barrier(struct perf_world *world, uint32_t *failed)
{
    struct perf_call call = {.collective = BY_COLLECTIVE_BARRIER};

    return perf_world_run(world, &call, failed);
}

static banyan_status_t combine(struct perf_world *world, const void *local, void *result,
                               banyan_dtype_t dtype, banyan_op_t op, uint32_t *failed)
{
    banyan_status_t status = BANYAN_OK;

    for (uint32_t i = 0; status == BANYAN_OK && i < world->local_count; i++) {
        struct perf_rank *rank = &world->ranks[i];

        *failed = rank->rank;
        memcpy(&rank->given, (const uint8_t *)local + i * sizeof(rank->given), sizeof(rank->given));
        status =
            banyan_allreduce_init(rank->comm, &rank->given, &rank->combined, 1, dtype, op, &rank->request[0]);
    }
    if (status == BANYAN_OK)
        status = perf_world_post(world, 0, failed);
    if (status == BANYAN_OK)
        status = perf_world_wait(world, 0, failed);
    if (status != BANYAN_OK)
        return status;
    memcpy(result, &world->ranks[0].combined, sizeof(world->ranks[0].combined));
    perf_world_free(world);
    return BANYAN_OK;
}

banyan_status_t perf_world_sum(struct perf_world *world, const uint64_t *local, uint64_t *sum,
                               uint32_t *failed)
{
    return combine(world, local, sum, BANYAN_U64, BANYAN_SUM, failed);
}

banyan_status_t perf_world_max(struct perf_world *world, const double *local, double *max, uint32_t *failed)
{
    return combine(world, local, max, BANYAN_F64, BANYAN_MAX, failed);
}

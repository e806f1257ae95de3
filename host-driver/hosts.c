/* Calls between hosts: when, and how they are announced; see hosts.h. */
#include "host-driver/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/clock.h"
#include "host-driver/comm.h"
#include "host-driver/error.h"
#include "host-driver/fallback/work.h"

#define MEASURED_BYTES  (64u << 10)
#define MEASURED_ROUNDS 8u

static int read_way(const struct by_settings *settings, enum by_way *way)
{
    const char *text = settings->value[BY_SETTING_FALLBACK];

    *way = strcmp(text, "circulant") == 0 ? BY_WAY_CIRCULANT
           : strcmp(text, "ring") == 0    ? BY_WAY_RING
           : strcmp(text, "rhd") == 0     ? BY_WAY_CUBE
                                          : 0;
    if (*way != 0 || strcmp(text, "off") == 0)
        return 0;
    return by_fail(BY_EINVAL, "BANYAN_FALLBACK is '%s' (%s); it takes circulant, ring, rhd or off", text,
                   settings->origin[BY_SETTING_FALLBACK]);
}

/* Whether the table has trees for the collective, with any root. */
static bool has_trees(const struct banyan_comm *comm, unsigned collective)
{
    bool rooted = collective == BY_COLLECTIVE_BROADCAST || collective == BY_COLLECTIVE_REDUCE;

    if (comm->progress.endpoint == NULL)
        return false;
    for (uint32_t root = 0; root < (rooted ? comm->job.rank_count : 1); root++)
        if (!by_endpoint_serves(comm->progress.endpoint, collective, root))
            return false;
    return true;
}

static bool has_all_trees(const struct banyan_comm *comm)
{
    for (unsigned collective = BY_COLLECTIVE_ALLREDUCE; collective < BY_COLLECTIVE_COUNT; collective++)
        if (!has_trees(comm, collective))
            return false;
    return true;
}

/* Reads the settings; *wanted: this communicator's calls may run between hosts. */
static int settle(struct banyan_comm *comm, bool *wanted)
{
    const struct banyan_context *context = comm->context;
    const char *small = context->settings.value[BY_SETTING_SMALL];
    struct by_hosts *hosts = &comm->hosts;
    int error = read_way(&context->settings, &hosts->way);

    hosts->by_time = strcmp(small, "auto") == 0;
    if (error == 0 && !hosts->by_time)
        error = by_settings_number(&context->settings, BY_SETTING_SMALL, UINT32_MAX, &hosts->small_bytes);
    if (error != 0)
        return error;
    if (comm->image == NULL && hosts->way == 0)
        return by_fail(BY_EINVAL, "there is neither a table image nor, since BANYAN_FALLBACK is off, a way "
                                  "between hosts");
    *wanted = context->bootstrap.source != BY_SOURCE_NONE && hosts->way != 0 && context->fabric == NULL &&
              (comm->image == NULL || hosts->by_time || hosts->small_bytes > 0 || !has_all_trees(comm));
    return 0;
}

/* Whoever brought the ranks together knows them by the numbers that the table gives them. */
static int check_meeting(const struct banyan_comm *comm)
{
    const struct by_meeting *meeting = &comm->context->bootstrap.meeting;

    if (comm->image == NULL ||
        (meeting->rank == comm->job.rank && meeting->rank_count == comm->job.rank_count))
        return 0;
    return by_fail(BY_EMISMATCH,
                   "%s%u of %s%u, but the table of %s says rank %u of %u in job %u; start the ranks in the "
                   "tables' order",
                   meeting->ip_count > 0 ? "the launcher says rank " : "RANK ", meeting->rank,
                   meeting->ip_count > 0 ? "" : "WORLD_SIZE ", meeting->rank_count, comm->header.name,
                   comm->job.rank, comm->job.rank_count, comm->job.job);
}

int by_hosts_open(struct banyan_comm *comm)
{
    struct banyan_context *context = comm->context;
    struct by_fallback_config config = {.meeting = &context->bootstrap.meeting,
                                        .stall_ns = context->stall_ns};
    bool wanted = false;
    int error = settle(comm, &wanted);

    if (error != 0 || !wanted)
        return error;
    error = by_bootstrap_join(&context->bootstrap, by_clock_ns() + context->stall_ns);
    if (error == 0)
        error = check_meeting(comm);
    if (error != 0)
        return error;
    config.way = comm->hosts.way;
    /* The communicators of a job meet one after another, at the same place. */
    config.key = (uint32_t)comm->job.job << 16 ^ atomic_fetch_add(&context->meeting_count, 1);
    error = by_fallback_open(&config, &comm->hosts.fallback);
    comm->hosts.ready = error == 0;
    return error;
}

int by_hosts_expect(struct banyan_comm *comm)
{
    int error = settle(comm, &comm->hosts.ready);

    return error == 0 && comm->hosts.ready && comm->context->bootstrap.joined ? check_meeting(comm) : error;
}

void by_hosts_close(struct banyan_comm *comm)
{
    by_fallback_close(comm->hosts.fallback);
    comm->hosts.fallback = NULL;
    comm->hosts.ready = false;
}

/* The least of `rounds` times of an allreduce of `bytes` over the trees; 0 bytes: of a barrier. */
static int time_trees(struct banyan_comm *comm, uint8_t *buffer, uint64_t bytes, unsigned rounds,
                      uint64_t *best_ns)
{
    *best_ns = UINT64_MAX;
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t begin_ns = by_clock_ns();
        banyan_status_t status = bytes > 0
                                     ? banyan_allreduce(comm, buffer, buffer, bytes, BANYAN_U8, BANYAN_BOR)
                                     : banyan_barrier(comm);

        if (status != BANYAN_OK)
            return status;
        if (by_clock_ns() - begin_ns < *best_ns)
            *best_ns = by_clock_ns() - begin_ns;
    }
    return 0;
}

int by_hosts_measure(struct banyan_comm *comm)
{
    uint64_t small_ns = 0, large_ns = 0, numbers[2];
    uint8_t *buffer;
    int error;

    if (!comm->hosts.by_time || comm->hosts.fallback == NULL || !has_trees(comm, BY_COLLECTIVE_ALLREDUCE))
        return 0;
    buffer = calloc(1, MEASURED_BYTES);
    if (buffer == NULL)
        return by_fail(BY_ENOMEM, "no memory to measure the trees: %u bytes", MEASURED_BYTES);
    error = time_trees(comm, buffer, 0, MEASURED_ROUNDS, &small_ns);
    if (error == 0)
        error = time_trees(comm, buffer, MEASURED_BYTES, MEASURED_ROUNDS, &large_ns);
    free(buffer);
    numbers[0] = small_ns > 0 ? small_ns : 1;
    numbers[1] = (large_ns > small_ns ? large_ns - small_ns : 1) * 1000u / MEASURED_BYTES + 1;
    /* The slowest rank's, so that all decide alike. */
    if (error == 0)
        error = banyan_allreduce(comm, numbers, numbers, 2, BANYAN_U64, BANYAN_MAX);
    if (error != 0)
        return error;
    comm->hosts.tree_latency_ns = numbers[0];
    comm->hosts.tree_gap_ps = numbers[1];
    return 0;
}

/* With the numbers of both, all of which all ranks share. */
static bool is_sooner(const struct banyan_comm *comm, const struct by_call *call, uint64_t bytes)
{
    const struct by_hosts *hosts = &comm->hosts;
    unsigned __int128 trees_ps =
        (unsigned __int128)hosts->tree_latency_ns * 1000u + (unsigned __int128)bytes * hosts->tree_gap_ps;

    return hosts->tree_latency_ns > 0 &&
           (unsigned __int128)by_work_predict_ns(by_fallback_team(hosts->fallback), call, NULL) * 1000u <
               trees_ps;
}

bool by_hosts_serve(const struct banyan_comm *comm, const struct by_call *call, enum by_hosts_why *why)
{
    bool sharded =
        call->collective == BY_COLLECTIVE_ALLGATHER || call->collective == BY_COLLECTIVE_REDUCE_SCATTER;
    uint64_t bytes = call->count * by_dtype_bytes(call->dtype);
    enum by_hosts_why reason = BY_HOSTS_TREES;

    if (sharded && call->offsets == NULL)
        bytes *= comm->job.rank_count;
    if (comm->progress.endpoint == NULL)
        reason = BY_HOSTS_NO_TABLE;
    else if (!by_endpoint_serves_call(comm->progress.endpoint, call))
        reason = BY_HOSTS_NO_TREES;
    else if (comm->hosts.ready && by_work_supports(call) && comm->hosts.small_bytes > 0 &&
             bytes <= comm->hosts.small_bytes)
        reason = BY_HOSTS_SMALL;
    else if (comm->hosts.fallback != NULL && by_work_supports(call) && is_sooner(comm, call, bytes))
        reason = BY_HOSTS_SOONER;
    if (why != NULL)
        *why = reason;
    return comm->hosts.ready && reason != BY_HOSTS_TREES;
}

void by_hosts_announce(const struct banyan_comm *comm)
{
    const struct by_settings *settings = &comm->context->settings;
    const struct by_team *team = by_fallback_team(comm->hosts.fallback);
    char why[320] = "";
    size_t used = 0;

    if (comm->image == NULL)
        snprintf(why, sizeof(why), "%s; all collectives",
                 strcmp(settings->value[BY_SETTING_OFFLOAD], "off") == 0 ? "BANYAN_OFFLOAD is off"
                                                                         : "BANYAN_TABLE names no table");
    for (unsigned collective = BY_COLLECTIVE_ALLREDUCE;
         comm->image != NULL && collective < BY_COLLECTIVE_COUNT; collective++)
        if (!has_trees(comm, collective) && used < sizeof(why) - 60)
            used += (size_t)snprintf(why + used, sizeof(why) - used, "%s%s",
                                     used == 0 ? "the table has not all trees; " : ", ",
                                     by_collective_name(collective));
    if (comm->hosts.tree_latency_ns > 0)
        used += (size_t)snprintf(why + used, sizeof(why) - used,
                                 "%swhat is sooner done so than over the trees, which take %.1f us and %.3f "
                                 "ns a byte (BANYAN_SMALL)",
                                 used == 0 ? "" : ", and ", (double)comm->hosts.tree_latency_ns / 1e3,
                                 (double)comm->hosts.tree_gap_ps / 1e3);
    if (comm->image != NULL && comm->hosts.small_bytes > 0)
        snprintf(why + used, sizeof(why) - used, "%sat most %llu bytes (BANYAN_SMALL)",
                 used == 0 ? "" : ", and ", (unsigned long long)comm->hosts.small_bytes);
    fprintf(stderr,
            "banyan: job %u rank %u of %u (%s): not offloaded: %s run between hosts over tcp, by %s "
            "schedules; a message takes %.1f us and %.3f ns a byte\n",
            comm->job.job, comm->job.rank, comm->job.rank_count, comm->header.name, why,
            by_way_name(team->way), (double)team->latency_ns / 1e3, (double)team->gap_ps / 1e3);
}

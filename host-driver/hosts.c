/* Calls between hosts: when, and how they are announced; see hosts.h. */
#include "host-driver/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/clock.h"
#include "host-driver/comm.h"
#include "host-driver/error.h"
#include "host-driver/fallback/work.h"

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

int by_hosts_open(struct banyan_comm *comm)
{
    struct banyan_context *context = comm->context;
    const struct by_meeting *meeting = &context->bootstrap.meeting;
    struct by_fallback_config config = {.meeting = meeting, .stall_ns = context->stall_ns};
    uint64_t small;
    int error = read_way(&context->settings, &config.way);

    if (error == 0)
        error = by_settings_number(&context->settings, BY_SETTING_SMALL, UINT32_MAX, &small);
    if (error != 0)
        return error;
    if (context->image == NULL && config.way == 0)
        return by_fail(BY_EINVAL, "there is neither a table image nor, since BANYAN_FALLBACK is off, a way "
                                  "between hosts");
    if (context->bootstrap.source == BY_SOURCE_NONE || config.way == 0 || context->fabric != NULL ||
        (context->image != NULL && small == 0 && has_all_trees(comm)))
        return 0;
    error = by_bootstrap_join(&context->bootstrap, by_clock_ns() + context->stall_ns);
    if (error != 0)
        return error;
    if (context->image != NULL &&
        (meeting->rank != comm->job.rank || meeting->rank_count != comm->job.rank_count))
        return by_fail(
            BY_EMISMATCH,
            "%s%u of %s%u, but the table of %s says rank %u of %u in job %u; start the ranks in the "
            "tables' order",
            meeting->ip_count > 0 ? "the launcher says rank " : "RANK ", meeting->rank,
            meeting->ip_count > 0 ? "" : "WORLD_SIZE ", meeting->rank_count, context->header.name,
            comm->job.rank, comm->job.rank_count, comm->job.job);
    comm->hosts.small_bytes = small;
    /* The communicators of a job meet one after another, at the same place. */
    config.key = (uint32_t)comm->job.job << 16 ^ atomic_fetch_add(&context->meeting_count, 1);
    return by_fallback_open(&config, &comm->hosts.fallback);
}

void by_hosts_close(struct banyan_comm *comm)
{
    by_fallback_close(comm->hosts.fallback);
    comm->hosts.fallback = NULL;
}

bool by_hosts_serve(const struct banyan_comm *comm, const struct by_call *call)
{
    bool sharded =
        call->collective == BY_COLLECTIVE_ALLGATHER || call->collective == BY_COLLECTIVE_REDUCE_SCATTER;
    uint64_t bytes = call->count * by_dtype_bytes(call->dtype);

    if (comm->hosts.fallback == NULL)
        return false;
    if (comm->progress.endpoint == NULL || !by_endpoint_serves_call(comm->progress.endpoint, call))
        return true;
    if (sharded && call->offsets == NULL)
        bytes *= comm->job.rank_count;
    return comm->hosts.small_bytes > 0 && by_work_supports(call) && bytes <= comm->hosts.small_bytes;
}

void by_hosts_announce(const struct banyan_comm *comm)
{
    const struct by_settings *settings = &comm->context->settings;
    const struct by_team *team = by_fallback_team(comm->hosts.fallback);
    char why[200] = "";
    size_t used = 0;

    if (comm->context->image == NULL)
        snprintf(why, sizeof(why), "%s; all collectives",
                 strcmp(settings->value[BY_SETTING_OFFLOAD], "off") == 0 ? "BANYAN_OFFLOAD is off"
                                                                         : "BANYAN_TABLE names no table");
    for (unsigned collective = BY_COLLECTIVE_ALLREDUCE;
         comm->context->image != NULL && collective < BY_COLLECTIVE_COUNT; collective++)
        if (!has_trees(comm, collective) && used < sizeof(why) - 60)
            used += (size_t)snprintf(why + used, sizeof(why) - used, "%s%s",
                                     used == 0 ? "the table has not all trees; " : ", ",
                                     by_collective_name(collective));
    if (comm->context->image != NULL && comm->hosts.small_bytes > 0)
        snprintf(why + used, sizeof(why) - used, "%sat most %llu bytes (BANYAN_SMALL)",
                 used == 0 ? "" : ", and ", (unsigned long long)comm->hosts.small_bytes);
    fprintf(stderr,
            "banyan: job %u rank %u of %u (%s): not offloaded: %s run between hosts over tcp, by %s "
            "schedules; a message takes %.1f us and %.3f ns a byte\n",
            comm->job.job, comm->job.rank, comm->job.rank_count, comm->context->header.name, why,
            by_way_name(team->way), (double)team->latency_ns / 1e3, (double)team->gap_ps / 1e3);
}

/* Totals of the reports of ranks. See latency.h. */
#include "control/service/daemon/latency.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/service/daemon/jobs.h"

/* The last report of a rank. */
struct latency_rank {
    uint64_t nonce; /* of its process */
    struct by_latency last[BY_COLLECTIVE_COUNT];
};

struct by_job_latency {
    uint32_t rank_count;
    struct by_latency total[BY_COLLECTIVE_COUNT];
    struct latency_rank *ranks;
};

static struct by_job_latency *open_latency(uint32_t rank_count)
{
    struct by_job_latency *latency = by_alloc(1, sizeof(*latency));

    latency->rank_count = rank_count;
    latency->ranks = by_alloc(rank_count, sizeof(*latency->ranks));
    return latency;
}

void by_latency_take(struct by_daemon *daemon, const struct by_daemon_event *event)
{
    struct by_job *job = by_jobs_find(daemon, event->job);
    struct latency_rank *rank;

    if (job == NULL || event->bytes != BY_LATENCY_ALL_BYTES)
        return;
    if (job->latency == NULL)
        job->latency = open_latency(by_job_rank_count(&job->spec, daemon->topology));
    if (event->rank >= job->latency->rank_count)
        return;
    rank = &job->latency->ranks[event->rank];
    if (rank->nonce != event->number) {
        memset(rank, 0, sizeof(*rank));
        rank->nonce = event->number;
    }
    for (uint32_t i = 1; i < BY_COLLECTIVE_COUNT; i++) {
        struct by_latency now;

        by_latency_get(event->data + (size_t)(i - 1) * BY_LATENCY_BYTES, &now);
        by_latency_add_since(&job->latency->total[i], &rank->last[i], &now);
        rank->last[i] = now;
    }
}

const struct by_latency *by_latency_of(const struct by_job *job, uint32_t collective)
{
    return job->latency != NULL ? &job->latency->total[collective] : NULL;
}

void by_latency_free(struct by_job_latency *latency)
{
    if (latency != NULL)
        free(latency->ranks);
    free(latency);
}

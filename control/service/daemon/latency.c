/* Totals of the reports of ranks. See latency.h. */
#include "control/service/daemon/latency.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/unit.h"
#include "control/service/daemon/jobs.h"

/* The last report of a rank. */
struct latency_rank {
    uint64_t nonce; /* of its process */
    struct by_latency last[BY_COLLECTIVE_COUNT];
};

struct by_job_latency {
    uint32_t rank_count;
    struct by_latency total[BY_COLLECTIVE_COUNT];
    struct by_latency before[BY_COLLECTIVE_COUNT]; /* the total at the last by_latency_step */
    struct by_latency recent[BY_COLLECTIVE_COUNT]; /* what the period before it added */
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

void by_latency_step(struct by_job *job)
{
    if (job->latency == NULL)
        return;
    for (uint32_t i = 1; i < BY_COLLECTIVE_COUNT; i++) {
        job->latency->recent[i] = (struct by_latency){0};
        by_latency_add_since(&job->latency->recent[i], &job->latency->before[i], &job->latency->total[i]);
        job->latency->before[i] = job->latency->total[i];
    }
}

const struct by_latency *by_latency_recent(const struct by_job *job, uint32_t collective)
{
    return job->latency != NULL ? &job->latency->recent[collective] : NULL;
}

uint64_t by_latency_optimum(const struct by_job *job, uint32_t collective)
{
    uint64_t least = 0;

    for (uint32_t i = 0; job->tables != NULL && i < job->tables->plan_count && i < job->spec.want_count;
         i++) {
        const struct by_plan *plan = job->tables->plans[i];
        struct by_fraction bytes;
        uint64_t rate;

        if (job->spec.wants[i].collective != collective || plan == NULL ||
            by_unit_bytes(plan->unit, plan->optimum, &bytes) != 0 || bytes.num <= 0)
            continue;
        rate = (uint64_t)(bytes.num / bytes.den);
        if (least == 0 || rate < least)
            least = rate;
    }
    return least;
}

uint16_t by_latency_permille(const struct by_job *job)
{
    double least = 0, spent = 0;

    for (uint32_t i = 1; i < BY_COLLECTIVE_COUNT; i++) {
        const struct by_latency *recent = by_latency_recent(job, i);
        uint64_t optimum = by_latency_optimum(job, i);

        if (recent == NULL || optimum == 0 || recent->duration_ns == 0 || recent->bytes == 0)
            continue;
        least += (double)recent->bytes / (double)optimum;
        spent += (double)recent->duration_ns / 1e9;
    }
    if (spent <= 0)
        return UINT16_MAX;
    return least >= 60 * spent ? 60000 : (uint16_t)(1000 * least / spent);
}

void by_latency_free(struct by_job_latency *latency)
{
    if (latency != NULL)
        free(latency->ranks);
    free(latency);
}

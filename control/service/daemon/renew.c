/* Renewal of keyed jobs. See renew.h. The loop's thread. */
#include "control/service/daemon/renew.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/service/daemon/recovery.h"
#include "offload/wire/seal.h"

/* Records the counters at the start of a generation. If the generation is older than this daemon,
 * its start is unknown, and all chunks that the switches have counted are assigned to it. */
static void mark(struct by_daemon *daemon, struct by_job *job)
{
    if (job->renew_from == NULL)
        job->renew_from = by_alloc(daemon->switch_count, sizeof(*job->renew_from));
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        job->renew_from[i] = daemon->renews ? daemon->switches[i].chunks : 0;
    job->renew_gen = job->tables->gen;
}

/* Returns a switch that has counted enough chunks, or NULL. */
static const struct by_daemon_switch *find_due(struct by_daemon *daemon, struct by_job *job)
{
    for (uint32_t i = 0; i < daemon->switch_count; i++) {
        uint64_t chunks = daemon->switches[i].chunks;

        if (chunks < job->renew_from[i])
            job->renew_from[i] = 0; /* the switch restarted */
        if (chunks - job->renew_from[i] >= daemon->options.renew_after)
            return &daemon->switches[i];
    }
    return NULL;
}

void by_renew_tick(struct by_daemon *daemon)
{
    if (daemon->options.lower.cover == BY_COVER_NONE)
        return;
    for (uint32_t i = 0; i < daemon->job_count; i++) {
        struct by_job *job = daemon->jobs[i];
        const struct by_daemon_switch *due;
        char text[200];

        if (job->tables == NULL || job->state != BY_JOB_RUNNING)
            continue;
        if (job->renew_gen != job->tables->gen)
            mark(daemon, job);
        due = find_due(daemon, job);
        if (due == NULL)
            continue;
        snprintf(text, sizeof(text),
                 "%" PRIu64 " chunks have passed switch %s in generation %u: its keys are renewed",
                 due->chunks - job->renew_from[due - daemon->switches], due->name, job->tables->gen);
        by_recovery_renew(daemon, job->spec.job, text);
    }
    daemon->renews = true;
}

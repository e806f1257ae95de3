/* Jobs of communicators; see groups.h. */
#include "control/service/daemon/groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/members.h"
#include "offload/base/errors.h"

/* Whether bit `rank` of the set is there and set. */
static bool has(const uint8_t *ranks, uint32_t bytes, uint32_t rank)
{
    return rank / 8 < bytes && (ranks[rank / 8] >> rank % 8 & 1);
}

/* Writes the hosts into spec->member. */
static int take_ranks(struct by_daemon *daemon, const struct by_job *parent, uint32_t node,
                      const uint8_t *ranks, uint32_t bytes, struct by_job_spec *spec,
                      struct by_problem *problem)
{
    const struct by_topology *topology = daemon->topology;
    uint32_t count = by_job_rank_count(&parent->spec, topology), taken = 0;

    spec->member = by_alloc(topology->node_count, sizeof(*spec->member));
    for (uint32_t n = 0, rank = 0; n < topology->node_count; n++) {
        if (!by_members_have(topology, parent->spec.member, n))
            continue;
        spec->member[n] = has(ranks, bytes, rank++);
        taken += spec->member[n];
    }
    for (uint32_t rank = count; rank < bytes * 8; rank++)
        if (has(ranks, bytes, rank))
            return by_problem_say(problem, BY_EINVAL,
                                  "a communicator has rank %u of job %u, which has %u ranks", rank,
                                  parent->spec.job, count);
    if (taken < 2)
        return by_problem_say(problem, BY_EINVAL, "a communicator has %u hosts; a job requires at least 2",
                              taken);
    if (!spec->member[node])
        return by_problem_say(problem, BY_EPERM, "%s requests a job for a communicator without itself",
                              topology->nodes[node].name);
    return 0;
}

static int make_spec(struct by_daemon *daemon, uint16_t number, uint32_t node, const uint8_t *ranks,
                     uint32_t bytes, struct by_job_spec *spec, struct by_problem *problem)
{
    const struct by_job *parent = by_jobs_find(daemon, number);
    uint32_t count = by_jobs_groups(daemon), limit = daemon->options.communicators;

    *spec = (struct by_job_spec){.is_group = true, .share = {0, 1}, .want_count = 1};
    spec->wants[0] = (struct by_job_want){.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1};
    snprintf(spec->name, sizeof(spec->name), "communicator of job %u", number);
    if (limit == 0)
        return by_problem_say(problem, BY_EPERM,
                              "banyand was started with --communicators 0: hosts create no jobs");
    if (count >= limit)
        return by_problem_say(problem, BY_ELIMIT,
                              "%u jobs of communicators exist, the limit of banyand: free communicators, or "
                              "raise --communicators",
                              count);
    if (parent == NULL)
        return by_problem_say(problem, BY_ENOENT,
                              "banyand has no job %u; create the job of the program with banyan job create",
                              number);
    return take_ranks(daemon, parent, node, ranks, bytes, spec, problem);
}

void by_groups_create(struct by_daemon *daemon, uint16_t parent, uint32_t node, const uint8_t *ranks,
                      uint32_t bytes, by_jobs_reply_fn *reply, void *context)
{
    struct by_job_spec spec;
    struct by_problem problem = {0};
    int error = make_spec(daemon, parent, node, ranks, bytes, &spec, &problem);

    if (error == 0) {
        by_jobs_create(daemon, &spec, reply, context);
        return;
    }
    by_job_spec_free(&spec);
    reply(daemon, context, error, NULL, problem.text);
}

void by_groups_refused(struct by_daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->job_count; i++) {
        struct by_job *job = daemon->jobs[i];

        if (job->lone_ms != 0 && daemon->now_ms - job->lone_ms >= BY_GROUPS_SPARE_MS)
            job->is_seen = true;
    }
}

/* The end of a job failed, for example because a switch does not answer: it is tried again. */
static void on_ended(struct by_daemon *daemon, void *context, int error, const struct by_job *ended,
                     const char *text)
{
    struct by_job *job = by_jobs_find(daemon, (uint16_t)(uintptr_t)context);

    (void)ended;
    (void)text;
    if (error != 0 && job != NULL) {
        job->is_leaving = false;
        job->lone_ms = 0;
    }
}

static void end(struct by_daemon *daemon, struct by_job *job)
{
    job->is_leaving = true;
    by_jobs_end(daemon, job->spec.job, on_ended, (void *)(uintptr_t)job->spec.job);
}

/* Whether the job may be ended now, apart from its hosts. */
static bool may_end(const struct by_job *job)
{
    return job->spec.is_group && !job->is_leaving &&
           (job->state == BY_JOB_RUNNING || job->state == BY_JOB_FAILED);
}

void by_groups_left(struct by_daemon *daemon, uint16_t number)
{
    struct by_job *job = by_jobs_find(daemon, number);

    if (job != NULL && may_end(job))
        end(daemon, job);
}

void by_groups_tick(struct by_daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->job_count; i++) {
        struct by_job *job = daemon->jobs[i];

        if (!may_end(job))
            continue;
        if (job->is_used) {
            job->is_seen = true;
            job->lone_ms = 0;
        } else if (job->lone_ms == 0) {
            job->lone_ms = daemon->now_ms;
        } else if (daemon->now_ms - job->lone_ms >=
                   (job->is_seen ? BY_GROUPS_LONE_MS : BY_GROUPS_UNSEEN_MS)) {
            end(daemon, job);
            return; /* the list may have changed */
        }
    }
}

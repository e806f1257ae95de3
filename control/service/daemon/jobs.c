/* Requests and their changes. See jobs.h; neighbours: changes.c does the work, http_jobs.c makes
 * requests. */
#include "control/service/daemon/jobs.h"

#include "control/service/daemon/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/service/daemon/ahead_plans.h"
#include "control/service/daemon/latency.h"
#include "control/service/daemon/news.h"
#include "offload/base/errors.h"
#include "offload/base/limits.h"

/* Heartbeats after which a switch with the wrong table gets the right one again (count): an answer
 * from before the push may still arrive. */
#define STRAY_BEATS 3u

struct jobs_request {
    bool create; /* false: end */
    bool failed; /* end: the job had failed before */
    uint16_t job;
    struct by_job_spec spec;
    by_jobs_reply_fn *reply;
    void *context;
};

struct by_jobs {
    uint32_t count;
    struct jobs_request waiting[BY_JOBS_REQUESTS_MAX];
    struct jobs_request current; /* the request whose change is under way */
};

struct by_job *by_jobs_find(struct by_daemon *daemon, uint16_t job)
{
    for (uint32_t i = 0; i < daemon->job_count; i++)
        if (daemon->jobs[i]->spec.job == job)
            return daemon->jobs[i];
    return NULL;
}

uint32_t by_jobs_groups(const struct by_daemon *daemon)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < daemon->job_count; i++)
        count += daemon->jobs[i]->spec.is_group;
    for (uint32_t i = 0; i < daemon->requests->count; i++)
        count += daemon->requests->waiting[i].create && daemon->requests->waiting[i].spec.is_group;
    return count;
}

void by_jobs_insert(struct by_daemon *daemon, struct by_job *job)
{
    uint32_t at = daemon->job_count++;

    for (; at > 0 && daemon->jobs[at - 1]->spec.job > job->spec.job; at--)
        daemon->jobs[at] = daemon->jobs[at - 1];
    daemon->jobs[at] = job;
}

void by_jobs_remove(struct by_daemon *daemon, struct by_job *job)
{
    uint32_t at = 0;

    while (at < daemon->job_count && daemon->jobs[at] != job)
        at++;
    if (at == daemon->job_count)
        return;
    memmove(&daemon->jobs[at], &daemon->jobs[at + 1], (daemon->job_count - at - 1) * sizeof(daemon->jobs[0]));
    daemon->job_count--;
    daemon->gen_seen[job->spec.job] = job->gen_last;
    by_job_tables_free(job->tables);
    by_job_tables_free(job->left);
    by_job_spec_free(&job->spec);
    free(job->renew_from);
    by_latency_free(job->latency);
    by_ahead_free(job->ahead);
    free(job);
}

static void answer(struct by_daemon *daemon, struct jobs_request *request, int error,
                   const struct by_job *job, const char *text)
{
    if (error != 0)
        by_news_tell(daemon->news, BY_NEWS_BAD, "%s", text);
    if (request->reply != NULL)
        request->reply(daemon, request->context, error, job, text);
    request->reply = NULL;
}

/* A job whose end failed goes on. */
static void keep(struct by_job *job, const struct jobs_request *request)
{
    job->state = request->failed ? BY_JOB_FAILED : BY_JOB_RUNNING;
    job->is_kept = true;
}

/* A recovery needs the room of the current request's change: ends it, and starts the request again
 * after the recovery. */
static void repeat_later(struct by_daemon *daemon, struct by_change *change, struct by_job *job)
{
    struct by_jobs *jobs = daemon->requests;

    by_change_free(change);
    daemon->change = NULL;
    if (jobs->current.create) {
        jobs->current.spec = job->spec;
        job->spec.member = NULL;
        by_jobs_remove(daemon, job);
    } else {
        keep(job, &jobs->current);
    }
    memmove(&jobs->waiting[1], &jobs->waiting[0], jobs->count++ * sizeof(jobs->waiting[0]));
    jobs->waiting[0] = jobs->current;
    jobs->current.reply = NULL;
}

/* Ends the change of the current request and reports the result. */
static void finish(struct by_daemon *daemon, struct by_change *change, int error, const char *text)
{
    struct jobs_request *request = &daemon->requests->current;
    struct by_job *job = by_jobs_find(daemon, request->job);
    char copy[500];

    if (error == BY_EABORTED && job != NULL && !daemon->ending &&
        daemon->requests->count < BY_JOBS_REQUESTS_MAX) {
        repeat_later(daemon, change, job);
        return;
    }
    snprintf(copy, sizeof(copy), "%s", text);
    by_change_free(change);
    daemon->change = NULL;
    if (request->create && error != 0 && job != NULL) {
        by_jobs_remove(daemon, job);
        job = NULL;
    } else if (request->create && job != NULL) {
        job->state = BY_JOB_RUNNING;
        by_news_tell(daemon->news, BY_NEWS_GOOD, "job %u runs, generation %u%s%s", job->spec.job,
                     job->tables->gen, job->tables->note[0] ? ": " : "", job->tables->note);
    } else if (error == 0 && job != NULL) {
        by_news_tell(daemon->news, BY_NEWS_PLAIN, "job %u has ended", job->spec.job);
        by_jobs_remove(daemon, job);
        job = NULL;
    } else if (job != NULL) {
        keep(job, request);
    }
    answer(daemon, request, error, job, copy);
}

static void on_pushed(struct by_daemon *daemon, struct by_change *change)
{
    if (change->error == 0)
        by_change_adopt(daemon, change);
    finish(daemon, change, change->error, change->problem.text);
}

static void on_planned(struct by_daemon *daemon, struct by_change *change)
{
    struct jobs_request *request = &daemon->requests->current;
    struct by_change_job *entry = by_change_find(change, request->job);

    if (request->create && entry->error != 0)
        finish(daemon, change, entry->error, entry->problem.text);
    else if (change->error != 0)
        finish(daemon, change, change->error, change->problem.text);
    else
        by_change_push(daemon, change, on_pushed);
}

static void start_create(struct by_daemon *daemon, struct jobs_request *request)
{
    struct by_job *job = by_alloc(1, sizeof(*job));
    struct by_change *change;

    job->spec = request->spec;
    request->spec.member = NULL;
    job->state = BY_JOB_STARTING;
    job->is_seen = job->spec.is_group; /* the host that requested it */
    job->gen_last = daemon->gen_seen[job->spec.job];
    by_jobs_insert(daemon, job);
    change = by_change_new(daemon);
    by_change_touch(change, job, false);
    by_change_plan(daemon, change, on_planned);
}

static void start_end(struct by_daemon *daemon, struct jobs_request *request, struct by_job *job)
{
    struct by_change *change = by_change_new(daemon);

    request->failed = job->state == BY_JOB_FAILED;
    job->state = BY_JOB_ENDING;
    by_change_leave(change, job);
    by_change_plan(daemon, change, on_planned);
}

static void start_request(struct by_daemon *daemon)
{
    struct by_jobs *jobs = daemon->requests;
    struct by_job *job;
    char text[120];

    jobs->current = jobs->waiting[0];
    memmove(&jobs->waiting[0], &jobs->waiting[1], --jobs->count * sizeof(jobs->waiting[0]));
    job = by_jobs_find(daemon, jobs->current.job);
    if (jobs->current.create && job == NULL && daemon->job_count < BY_DAEMON_JOBS_MAX) {
        start_create(daemon, &jobs->current);
    } else if (jobs->current.create) {
        snprintf(text, sizeof(text),
                 job != NULL ? "job %u exists already: end it first, or choose another number"
                             : "job %u: the limit of jobs is reached: end one first",
                 jobs->current.job);
        by_job_spec_free(&jobs->current.spec);
        answer(daemon, &jobs->current, job != NULL ? BY_EEXIST : BY_ELIMIT, NULL, text);
    } else if (job != NULL) {
        start_end(daemon, &jobs->current, job);
    } else {
        snprintf(text, sizeof(text), "there is no job %u", jobs->current.job);
        answer(daemon, &jobs->current, BY_ENOENT, NULL, text);
    }
}

static void on_restored(struct by_daemon *daemon, struct by_change *change)
{
    if (change->error != 0)
        by_daemon_say("cannot restore tables: %s", change->problem.text);
    else
        by_change_adopt(daemon, change);
    by_change_free(change);
    daemon->change = NULL;
}

static void on_restore_planned(struct by_daemon *daemon, struct by_change *change)
{
    if (change->error == 0) {
        by_change_push(daemon, change, on_restored);
        return;
    }
    by_daemon_say("cannot restore tables: %s", change->problem.text);
    by_change_free(change);
    daemon->change = NULL;
}

/* Pushes the right table to switches that have another one. */
static void restore(struct by_daemon *daemon)
{
    bool stray = false;

    for (uint32_t i = 0; i < daemon->switch_count; i++) {
        struct by_daemon_switch *device = &daemon->switches[i];

        /* A push may just have brought the right table, which no answer shows yet. */
        if (device->state == BY_SWITCH_UP && device->stray_beats >= STRAY_BEATS &&
            device->hello.table_hash != device->image.hash) {
            char text[200];

            by_daemon_say("switch %s has table %016llx instead of %016llx: pushing the right one again",
                          device->name, (unsigned long long)device->hello.table_hash,
                          (unsigned long long)device->image.hash);
            snprintf(text, sizeof(text), "switch %s has a wrong table: pushing the right one again",
                     device->name);
            by_news_keep(daemon->news, BY_NEWS_BAD, text);
            device->stray_beats = 0;
            stray = true;
        }
    }
    if (stray)
        by_change_plan(daemon, by_change_new(daemon), on_restore_planned);
}

void by_jobs_step(struct by_daemon *daemon)
{
    if (daemon->change != NULL || daemon->start != NULL)
        return;
    while (daemon->requests->count > 0 && daemon->change == NULL)
        start_request(daemon);
    if (daemon->change == NULL)
        restore(daemon);
}

static void add_request(struct by_daemon *daemon, struct jobs_request *request)
{
    struct by_jobs *jobs = daemon->requests;

    if (jobs->count == BY_JOBS_REQUESTS_MAX) {
        char text[80];

        snprintf(text, sizeof(text),
                 "%u requests for jobs are waiting, the limit of banyand: repeat it later", jobs->count);
        by_job_spec_free(&request->spec);
        answer(daemon, request, BY_EBUSY, NULL, text);
        return;
    }
    jobs->waiting[jobs->count++] = *request;
    by_jobs_step(daemon);
}

/* Returns the lowest number that no job and no queued request has. */
static uint16_t find_number(struct by_daemon *daemon)
{
    for (uint16_t number = 1; number < BY_JOBS_MAX; number++) {
        bool taken = by_jobs_find(daemon, number) != NULL;

        for (uint32_t i = 0; i < daemon->requests->count; i++)
            taken |= daemon->requests->waiting[i].create && daemon->requests->waiting[i].job == number;
        if (!taken)
            return number;
    }
    return BY_JOBS_MAX - 1; /* unreachable: there are fewer jobs than numbers */
}

void by_jobs_create(struct by_daemon *daemon, struct by_job_spec *spec, by_jobs_reply_fn *reply,
                    void *context)
{
    struct jobs_request request = {.create = true, .spec = *spec, .reply = reply, .context = context};

    spec->member = NULL;
    if (request.spec.job == 0)
        request.spec.job = find_number(daemon);
    request.job = request.spec.job;
    add_request(daemon, &request);
}

void by_jobs_end(struct by_daemon *daemon, uint16_t job, by_jobs_reply_fn *reply, void *context)
{
    struct jobs_request request = {.job = job, .reply = reply, .context = context};

    add_request(daemon, &request);
}

void by_jobs_close(struct by_daemon *daemon)
{
    for (uint32_t i = 0; i < daemon->requests->count; i++)
        by_job_spec_free(&daemon->requests->waiting[i].spec);
    while (daemon->job_count > 0)
        by_jobs_remove(daemon, daemon->jobs[0]);
    free(daemon->requests);
}

struct by_jobs *by_jobs_open(void)
{
    return by_alloc(1, sizeof(struct by_jobs));
}

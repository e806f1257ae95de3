/*
 * Plans for failures that have not happened. See ahead.h. The process writes records to a pipe: a
 * head for the part that it begins with, then, for each plan of the job, a head and the text. If it
 * crashes or takes too long, the part that it began with gets no plan.
 */
#include "control/service/daemon/ahead.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/service/daemon/jobs.h"
#include "control/service/daemon/news.h"
#include "offload/base/errors.h"

/* What is read from the pipe at once (bytes). */
#define READ_BYTES ((size_t)256 << 10)
/* A plan that takes this many times its time limit has hung (count). */
#define HUNG 2u

/* The head of a record. */
struct ahead_head {
    uint32_t part, want; /* BEGIN: the process begins with the part */
    uint64_t bytes;
};
#define BEGIN UINT32_MAX

/* The process, and what has come from it. */
struct by_ahead {
    struct by_watcher watcher;
    pid_t child;
    uint16_t job, gen;
    uint64_t heard_ms;
    uint32_t part;                /* with which it has begun, or BEGIN */
    struct by_fabric_text *texts; /* of this part, so far */
    uint32_t want_count, made;
    size_t used, room;
    uint8_t *bytes; /* not handled yet */
};

/* ---- the process ---- */

struct ahead_work {
    const struct by_topology *topology;
    const struct by_job *job;
    uint32_t limit_ms;
};

static bool put(FILE *out, struct ahead_head head, const char *text)
{
    return fwrite(&head, sizeof(head), 1, out) == 1 &&
           (head.bytes == 0 || fwrite(text, head.bytes, 1, out) == 1) && fflush(out) == 0;
}

/* Plans one part. A part without a plan gets no records. Returns false if the pipe is closed. */
static bool plan_part(const struct ahead_work *work, uint32_t part, const struct by_fabric_loss *loss,
                      FILE *out)
{
    const struct by_job_spec *spec = &work->job->spec;
    struct by_fabric_text *texts = by_alloc(spec->want_count, sizeof(*texts));
    struct by_problem ignored = {0};
    bool right = put(out, (struct ahead_head){part, BEGIN, 0}, "");

    if (right &&
        by_fabric_texts(work->topology, spec, loss, work->job->tables, work->limit_ms, texts, &ignored) == 0)
        for (uint32_t i = 0; i < spec->want_count && right; i++)
            right = put(out, (struct ahead_head){part, i, texts[i].bytes}, texts[i].text);
    by_ahead_free_texts(texts, spec->want_count);
    return right;
}

static int plan_parts(void *context, FILE *out)
{
    const struct ahead_work *work = context;
    const struct by_topology *topology = work->topology;
    uint32_t nodes = topology->node_count;
    bool right = true;

    for (uint32_t part = 0; part < nodes + topology->link_count && right; part++) {
        struct by_fabric_loss one, loss;

        if ((part < nodes && !by_site_is_switch(topology, part)) ||
            by_ahead_part(work->job->ahead, part) != NULL)
            continue;
        by_fabric_loss_init(&one, topology);
        if (part < nodes)
            one.nodes[part] = true;
        else
            one.links[part - nodes] = true;
        by_fabric_loss_copy(&loss, &one, topology);
        if (by_fabric_is_hit(topology, work->job->tables, &loss))
            right = plan_part(work, part, &loss, out);
        by_fabric_loss_free(&one);
        by_fabric_loss_free(&loss);
    }
    return right ? 0 : BY_EIO;
}

/* ---- its records ---- */

/* Ends the part with which it had begun: with its plans if they are complete, else with none. */
static void end_part(struct by_ahead *ahead, struct by_job *job)
{
    bool whole = ahead->texts != NULL;

    for (uint32_t i = 0; i < ahead->want_count && whole; i++)
        whole = ahead->texts[i].text != NULL;
    if (!whole) {
        by_ahead_free_texts(ahead->texts, ahead->want_count);
        ahead->texts = NULL;
    }
    if (ahead->part != BEGIN)
        by_ahead_add(&job->ahead, ahead->part, ahead->texts, ahead->want_count);
    ahead->made += whole;
    ahead->texts = NULL;
    ahead->part = BEGIN;
}

static void take(struct by_ahead *ahead, struct by_job *job, const struct ahead_head *head,
                 const uint8_t *text)
{
    if (head->want == BEGIN) {
        end_part(ahead, job);
        ahead->part = head->part;
        ahead->texts = by_alloc(ahead->want_count, sizeof(*ahead->texts));
    } else if (head->want < ahead->want_count && ahead->texts != NULL && head->part == ahead->part &&
               ahead->texts[head->want].text == NULL) {
        ahead->texts[head->want] =
            (struct by_fabric_text){by_copy_part((const char *)text, head->bytes), head->bytes};
    }
}

/* Handles all complete records. Returns false if one cannot be right. */
static bool take_all(struct by_ahead *ahead, struct by_job *job)
{
    size_t at = 0;
    struct ahead_head head = {0};

    while (ahead->used - at >= sizeof(head)) {
        memcpy(&head, ahead->bytes + at, sizeof(head));
        if (ahead->used - at - sizeof(head) < head.bytes)
            break;
        take(ahead, job, &head, ahead->bytes + at + sizeof(head));
        at += sizeof(head) + head.bytes;
    }
    memmove(ahead->bytes, ahead->bytes + at, ahead->used - at);
    ahead->used -= at;
    return head.bytes <= BY_AHEAD_BYTES_MAX;
}

/* Waits for a process that has been killed: not at once, since it may need long to end on a busy
 * machine. Returns whether it has ended. */
static bool reap(struct by_daemon *daemon, int flags)
{
    if (daemon->ahead_killed != 0 && waitpid(daemon->ahead_killed, NULL, flags) == 0)
        return false;
    daemon->ahead_killed = 0;
    return true;
}

/* Forgets the process, and kills it unless it has ended. Returns whether it ended by itself without
 * an error. */
static bool forget(struct by_daemon *daemon, bool ended)
{
    struct by_ahead *ahead = daemon->ahead;
    int status = -1;

    if (ended) {
        while (waitpid(ahead->child, &status, 0) < 0 && errno == EINTR)
            ;
    } else {
        kill(ahead->child, SIGKILL);
        daemon->ahead_killed = ahead->child;
    }
    by_daemon_unwatch(daemon, &ahead->watcher);
    close(ahead->watcher.fd);
    by_ahead_free_texts(ahead->texts, ahead->want_count);
    free(ahead->bytes);
    free(ahead);
    daemon->ahead = NULL;
    return ended && status == 0;
}

void by_ahead_stop(struct by_daemon *daemon)
{
    if (daemon->ahead != NULL)
        forget(daemon, false);
}

void by_ahead_close(struct by_daemon *daemon)
{
    by_ahead_stop(daemon);
    reap(daemon, 0);
}

/* The process has closed its end. If it failed at a part, the others follow at the next heartbeat;
 * if it failed before all, there are no plans for this generation. */
static void finish(struct by_daemon *daemon, struct by_job *job)
{
    struct by_ahead *ahead = daemon->ahead;
    bool begun = ahead->part != BEGIN;
    uint16_t gen = ahead->gen;
    uint32_t made;

    end_part(ahead, job);
    made = ahead->made;
    if (!forget(daemon, true) && begun)
        return;
    if (job->ahead == NULL)
        job->ahead = by_alloc(1, sizeof(*job->ahead));
    job->ahead->gen = gen;
    if (made > 0)
        by_news_tell(daemon->news, BY_NEWS_PLAIN, "job %u: plans for %u single failures are made",
                     job->spec.job, made);
}

/* Returns the job that the process plans for, or NULL if it has ended or has other tables. Another
 * job of its number would have a later generation. */
static struct by_job *job_of(struct by_daemon *daemon)
{
    struct by_job *job = daemon->ahead != NULL ? by_jobs_find(daemon, daemon->ahead->job) : NULL;

    return job != NULL && job->tables != NULL && job->tables->gen == daemon->ahead->gen ? job : NULL;
}

static size_t bytes_of_all(const struct by_daemon *daemon)
{
    size_t sum = 0;

    for (uint32_t i = 0; i < daemon->job_count; i++)
        sum += daemon->jobs[i]->ahead != NULL ? daemon->jobs[i]->ahead->bytes : 0;
    return sum;
}

static void on_bytes(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    struct by_ahead *ahead = daemon->ahead;
    struct by_job *job = job_of(daemon);
    ssize_t count;

    (void)events;
    if (daemon->change != NULL) { /* the worker reads the plans of jobs */
        by_ahead_stop(daemon);
        return;
    }
    if (ahead->room - ahead->used < READ_BYTES) {
        ahead->room = 2 * ahead->room + READ_BYTES;
        ahead->bytes = by_realloc(ahead->bytes, ahead->room, 1);
    }
    count = read(watcher->fd, ahead->bytes + ahead->used, READ_BYTES);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    ahead->heard_ms = daemon->now_ms;
    if (job == NULL) {
        by_ahead_stop(daemon);
    } else if (count > 0) {
        ahead->used += (size_t)count;
        if (!take_all(ahead, job))
            by_ahead_stop(daemon);
    } else {
        finish(daemon, job);
    }
}

/* ---- when ---- */

/* Whether nothing is lost, under way or requested. */
static bool is_quiet(const struct by_daemon *daemon)
{
    const bool *nodes, *links;

    if (daemon->ending || daemon->change != NULL || daemon->start != NULL || daemon->recover == NULL ||
        !by_recover_is_quiet(daemon->recover))
        return false;
    nodes = by_recover_lost_nodes(daemon->recover);
    links = by_recover_lost_links(daemon->recover);
    for (uint32_t n = 0; n < daemon->topology->node_count; n++)
        if (daemon->loss.nodes[n] || nodes[n])
            return false;
    for (uint32_t l = 0; l < daemon->topology->link_count; l++)
        if (daemon->loss.links[l] || links[l])
            return false;
    return true;
}

static void start(struct by_daemon *daemon, struct by_job *job)
{
    struct ahead_work work = {
        .topology = daemon->topology, .job = job, .limit_ms = daemon->options.plan_limit_s * 1000};
    struct by_ahead *ahead = by_alloc(1, sizeof(*ahead));
    struct by_problem ignored = {0};

    *ahead = (struct by_ahead){.job = job->spec.job,
                               .gen = job->tables->gen,
                               .heard_ms = daemon->now_ms,
                               .part = BEGIN,
                               .want_count = job->spec.want_count};
    ahead->watcher.ready = on_bytes;
    if (by_apart_start(plan_parts, &work, &ahead->child, &ahead->watcher.fd, &ignored) != 0) {
        free(ahead); /* again at the next heartbeat */
        return;
    }
    daemon->ahead = ahead;
    if (by_daemon_watch(daemon, &ahead->watcher, EPOLLIN) != 0)
        by_ahead_stop(daemon);
}

void by_ahead_tick(struct by_daemon *daemon)
{
    struct by_ahead *ahead = daemon->ahead;
    struct by_job *job = job_of(daemon);
    bool full = bytes_of_all(daemon) >= BY_AHEAD_BYTES_MAX;

    if (ahead != NULL && (job == NULL || full || !is_quiet(daemon))) {
        by_ahead_stop(daemon);
    } else if (ahead != NULL) {
        if (daemon->now_ms - ahead->heard_ms < HUNG * daemon->options.plan_limit_s * UINT64_C(1000))
            return;
        by_ahead_free_texts(ahead->texts, ahead->want_count);
        ahead->texts = NULL;
        end_part(ahead, job); /* it gets no plan */
        by_ahead_stop(daemon);
    } else if (reap(daemon, WNOHANG) && !full && is_quiet(daemon)) {
        for (uint32_t i = 0; i < daemon->job_count && daemon->ahead == NULL; i++) {
            job = daemon->jobs[i];
            if (job->state == BY_JOB_RUNNING && job->tables != NULL &&
                (job->ahead == NULL || job->ahead->gen != job->tables->gen))
                start(daemon, job);
        }
    }
}

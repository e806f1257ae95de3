/*
 * What planning costs is paid once: plans, repaired plans and verdicts are kept by their input,
 * over all runs. They are functions of it, so a run is the same with and without them. The separate
 * process of a plan (by_apart_run) becomes a call that takes virtual time; that of plans for
 * failures (by_ahead_tick) becomes one that takes none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/planner/planner.h"
#include "control/planner/replan/replan.h"
#include "control/service/daemon/ahead.h"
#include "control/service/daemon/apart.h"
#include "control/verify/verify.h"
#include "offload/base/errors.h"
#include "tests/world/world.h"

#define TABLE 4096u

struct plan_memo {
    struct plan_memo *next;
    char *key;
    size_t key_bytes;
    int error;
    struct by_problem problem;
    char *text; /* a plan */
    size_t bytes;
    struct by_verify_report report;
};

static struct plan_memo *memos[TABLE];

int __wrap_by_plan_make(const struct by_topology *topology, const struct by_plan_options *options,
                        struct by_plan **plan, struct by_problem *problem);
int __real_by_plan_make(const struct by_topology *topology, const struct by_plan_options *options,
                        struct by_plan **plan, struct by_problem *problem);
int __wrap_by_replan(const struct by_topology *before, const struct by_plan *from,
                     const struct by_topology *topology, bool in_network, double time_limit_s,
                     struct by_plan **plan, struct by_replan_report *report, struct by_problem *problem);
int __real_by_replan(const struct by_topology *before, const struct by_plan *from,
                     const struct by_topology *topology, bool in_network, double time_limit_s,
                     struct by_plan **plan, struct by_replan_report *report, struct by_problem *problem);
int __wrap_by_verify_text(const struct by_topology *topology, const char *text, size_t bytes,
                          struct by_verify_report *report, struct by_problem *problem);
int __real_by_verify_text(const struct by_topology *topology, const char *text, size_t bytes,
                          struct by_verify_report *report, struct by_problem *problem);
int __wrap_by_topology_read(const char *path, struct by_topology **topology, struct by_problem *problem);
int __wrap_by_apart_run(const struct by_apart *apart, by_apart_fn *run, void *context, char **bytes,
                        size_t *size, struct by_problem *problem);

void __wrap_by_ahead_tick(struct by_daemon *daemon);

/* Finds the memo of a key, which it takes over; *found tells whether it was there. */
static struct plan_memo *memo_of(char *key, size_t bytes, bool *found)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    struct plan_memo *memo;

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (uint8_t)key[i]) * UINT64_C(0x100000001b3);
    for (memo = memos[hash % TABLE]; memo != NULL; memo = memo->next)
        if (memo->key_bytes == bytes && memcmp(memo->key, key, bytes) == 0)
            break;
    *found = memo != NULL;
    if (memo != NULL) {
        free(key);
        return memo;
    }
    memo = by_alloc(1, sizeof(*memo));
    memo->key = key;
    memo->key_bytes = bytes;
    memo->next = memos[hash % TABLE];
    memos[hash % TABLE] = memo;
    return memo;
}

static void keep(struct plan_memo *memo, struct by_plan *plan, const struct by_topology *topology)
{
    FILE *stream = by_text_open(&memo->text, &memo->bytes);

    by_plan_write(plan, topology, stream);
    fclose(stream);
    by_plan_free(plan);
}

static int give(const struct plan_memo *memo, const struct by_topology *topology, struct by_plan **plan,
                struct by_problem *problem)
{
    *problem = memo->problem;
    return memo->error != 0 ? memo->error : by_plan_parse(memo->text, memo->bytes, topology, plan, problem);
}

int __wrap_by_plan_make(const struct by_topology *topology, const struct by_plan_options *options,
                        struct by_plan **plan, struct by_problem *problem)
{
    char *key = NULL;
    size_t bytes = 0;
    FILE *stream = by_text_open(&key, &bytes);
    struct plan_memo *memo;
    bool found;

    by_topology_write(topology, stream);
    fprintf(stream, "plan %u %lld ", options->collective, (long long)options->root);
    for (uint32_t i = 0; options->member != NULL && i < topology->node_count; i++)
        fputc(options->member[i] ? '1' : '0', stream);
    fclose(stream);
    memo = memo_of(key, bytes, &found);
    if (!found) {
        struct by_plan *made = NULL;

        memo->error = __real_by_plan_make(topology, options, &made, &memo->problem);
        if (memo->error == 0)
            keep(memo, made, topology);
    }
    return give(memo, topology, plan, problem);
}

int __wrap_by_replan(const struct by_topology *before, const struct by_plan *from,
                     const struct by_topology *topology, bool in_network, double time_limit_s,
                     struct by_plan **plan, struct by_replan_report *report, struct by_problem *problem)
{
    char *key = NULL;
    size_t bytes = 0;
    FILE *stream = by_text_open(&key, &bytes);
    struct plan_memo *memo;
    bool found;

    fputs("replan ", stream);
    by_topology_write(before, stream);
    by_plan_write(from, before, stream);
    by_topology_write(topology, stream);
    fclose(stream);
    *report = (struct by_replan_report){0};
    memo = memo_of(key, bytes, &found);
    if (!found) {
        struct by_plan *made = NULL;

        memo->error =
            __real_by_replan(before, from, topology, in_network, time_limit_s, &made, report, &memo->problem);
        if (memo->error == 0)
            keep(memo, made, topology);
    }
    return give(memo, topology, plan, problem);
}

int __wrap_by_verify_text(const struct by_topology *topology, const char *text, size_t bytes,
                          struct by_verify_report *report, struct by_problem *problem)
{
    char *key = NULL;
    size_t count = 0;
    FILE *stream = by_text_open(&key, &count);
    struct plan_memo *memo;
    bool found;

    fputs("verify ", stream);
    by_topology_write(topology, stream);
    fwrite(text, 1, bytes, stream);
    fclose(stream);
    memo = memo_of(key, count, &found);
    if (!found)
        memo->error = __real_by_verify_text(topology, text, bytes, &memo->report, &memo->problem);
    *report = memo->report;
    *problem = memo->problem;
    return memo->error;
}

int __wrap_by_topology_read(const char *path, struct by_topology **topology, struct by_problem *problem)
{
    (void)path;
    return by_topology_parse(world.json, strlen(world.json), topology, problem);
}

int __wrap_by_apart_run(const struct by_apart *apart, by_apart_fn *run, void *context, char **bytes,
                        size_t *size, struct by_problem *problem)
{
    FILE *stream;
    int error;

    (void)apart;
    *bytes = NULL;
    *size = 0;
    vm_call();
    vm_block(vm_time() + VM_MS + vm_draw(20 * VM_MS));
    if (vm_self()->zombie)
        return by_problem_say(problem, BY_EABORTED, "cancelled, because banyand ends");
    stream = by_text_open(bytes, size);
    error = run(context, stream, problem);
    fclose(stream);
    if (error != 0) {
        free(*bytes);
        *bytes = NULL;
    }
    return error;
}

/* Plans a job for the loss of a switch, or of a link (node_count + its number). */
static void plan_ahead(const struct by_daemon *daemon, struct by_job *job, uint32_t part)
{
    const struct by_topology *topology = daemon->topology;
    struct by_fabric_text *texts = by_alloc(job->spec.want_count, sizeof(*texts));
    struct by_fabric_loss one, loss;
    struct by_problem ignored = {0};

    by_fabric_loss_init(&one, topology);
    (part < topology->node_count ? &one.nodes[part] : &one.links[part - topology->node_count])[0] = true;
    by_fabric_loss_copy(&loss, &one, topology);
    if (by_fabric_texts(topology, &job->spec, &loss, job->tables, 0, texts, &ignored) != 0) {
        for (uint32_t i = 0; i < job->spec.want_count; i++)
            free(texts[i].text);
        free(texts);
        texts = NULL;
    }
    by_ahead_add(&job->ahead, part, texts, job->spec.want_count);
    by_fabric_loss_free(&one);
    by_fabric_loss_free(&loss);
}

/* Jobs with even numbers get no such plans, as where a failure comes before them. */
void __wrap_by_ahead_tick(struct by_daemon *daemon)
{
    const struct by_topology *topology = daemon->topology;

    for (uint32_t i = 0; i < daemon->job_count; i++) {
        struct by_job *job = daemon->jobs[i];

        if (daemon->change != NULL || job->state != BY_JOB_RUNNING || job->tables == NULL ||
            job->ahead != NULL || job->spec.job % 2 == 0)
            continue;
        for (uint32_t part = 0; part < topology->node_count + topology->link_count; part++)
            if (part >= topology->node_count || !topology->nodes[part].compute)
                plan_ahead(daemon, job, part);
    }
}

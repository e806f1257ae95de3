/* The text form of jobs. See job.h. */
#include "control/service/daemon/job.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/fabric/members.h"
#include "offload/base/errors.h"
#include "offload/base/limits.h"
#include "offload/wire/types.h"

void by_job_spec_free(struct by_job_spec *spec)
{
    free(spec->member);
    spec->member = NULL;
}

void by_job_tables_free(struct by_job_tables *tables)
{
    if (tables == NULL)
        return;
    for (uint32_t i = 0; i < tables->standby_count; i++)
        by_job_tables_free(tables->standbys[i]);
    for (uint32_t i = 0; i < tables->plan_count; i++)
        by_plan_free(tables->plans[i]);
    by_lowering_free(tables->lowering);
    free(tables->plans);
    free(tables->lost_links);
    free(tables->slot_base);
    free(tables->need);
    free(tables->uses_link);
    free(tables->replaces);
    free(tables);
}

const char *by_job_state_name(enum by_job_state state)
{
    static const char *const names[] = {[BY_JOB_STARTING] = "starting",
                                        [BY_JOB_RUNNING] = "running",
                                        [BY_JOB_RECOVERING] = "recovering",
                                        [BY_JOB_FAILED] = "failed",
                                        [BY_JOB_ENDING] = "ending"};

    return names[state];
}

uint32_t by_job_rank_count(const struct by_job_spec *spec, const struct by_topology *topology)
{
    return by_members_count(topology, spec->member);
}

int64_t by_job_node(const struct by_job_spec *spec, const struct by_topology *topology, uint32_t rank)
{
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (by_members_have(topology, spec->member, i) && rank-- == 0)
            return i;
    return -1;
}

/* Finds the node of a root, which must be a rank. */
static int find_root(const struct by_job_spec *spec, const char *name, size_t bytes,
                     const struct by_topology *topology, int64_t *root, struct by_problem *problem)
{
    char text[BY_NAME_MAX + 2]; /* a longer name is that of no node */

    if (name == NULL) {
        *root = by_job_node(spec, topology, 0);
        return 0;
    }
    snprintf(text, sizeof(text), "%.*s", (int)(bytes < sizeof(text) ? bytes : sizeof(text) - 1), name);
    *root = by_topology_find(topology, text);
    if (*root >= 0 && by_members_have(topology, spec->member, (uint32_t)*root))
        return 0;
    return by_problem_say(problem, BY_EINVAL, "root '%s' is not a rank of the job: name one of its hosts",
                          text);
}

int by_job_want(struct by_job_spec *spec, const char *text, size_t bytes, const struct by_topology *topology,
                struct by_problem *problem)
{
    const char *at = memchr(text, '@', bytes);
    size_t length = at ? (size_t)(at - text) : bytes;
    struct by_job_want want = {.root = -1};
    char name[32];
    int error = 0;

    snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name) - 1), text);
    want.collective = by_collective_from_name(name);
    if (want.collective == 0)
        return by_problem_say(problem, BY_EINVAL,
                              "no collective named '%s'; available: allreduce, reduce-scatter, allgather, "
                              "broadcast, reduce, barrier",
                              name);
    if (by_collective_is_rooted(want.collective))
        error = find_root(spec, at ? at + 1 : NULL, bytes - length - 1, topology, &want.root, problem);
    else if (at)
        error = by_problem_say(problem, BY_EINVAL, "%s has no root: remove the @ and what follows it", name);
    if (error != 0)
        return error;
    /* Ranks always synchronize with allreduce; its trees also carry barriers. */
    if (spec->want_count == 0)
        spec->wants[spec->want_count++] =
            (struct by_job_want){.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1};
    if (want.collective == BY_COLLECTIVE_BARRIER)
        return 0;
    for (uint32_t i = 0; i < spec->want_count; i++)
        if (spec->wants[i].collective == want.collective && spec->wants[i].root == want.root)
            return 0;
    if (spec->want_count == BY_JOB_PLANS_MAX)
        return by_problem_say(problem, BY_ELIMIT,
                              "more than %u plans: list fewer roots; the trees of allreduce serve the others",
                              BY_JOB_PLANS_MAX);
    spec->wants[spec->want_count++] = want;
    return 0;
}

/* Parses the ranks after the colon. */
static int parse_ranks(const char *text, const struct by_topology *topology, struct by_job_spec *spec,
                       struct by_problem *problem)
{
    struct by_problem inner = {0};
    int error = text[0] == '@' ? by_members_read(text + 1, topology, &spec->member, &inner)
                               : by_members_parse(text, strlen(text), topology, &spec->member, &inner);

    return error == 0 ? 0 : by_problem_say(problem, error, "job %u: ranks: %s", spec->job, inner.text);
}

int by_job_wants(struct by_job_spec *spec, const char *text, const struct by_topology *topology,
                 struct by_problem *problem)
{
    int error = 0;

    for (const char *at = text; error == 0 && *at != 0 && *at != ':';) {
        size_t bytes = strcspn(at, ",:");

        if (bytes == 3 && memcmp(at, "all", 3) == 0)
            for (unsigned i = 1; i < BY_COLLECTIVE_COUNT && error == 0; i++)
                error = by_job_want(spec, by_collective_name(i), strlen(by_collective_name(i)), topology,
                                    problem);
        else
            error = by_job_want(spec, at, bytes, topology, problem);
        at += bytes + (at[bytes] == ',');
    }
    if (error == 0 && spec->want_count == 0)
        error = by_problem_say(problem, BY_EINVAL, "no collective: name at least one");
    return error;
}

int by_job_parse(const char *text, const struct by_topology *topology, struct by_job_spec *spec,
                 struct by_problem *problem)
{
    char *end;
    unsigned long job = strtoul(text, &end, 10);
    const char *colon = strchr(text, ':');
    int error = 0;

    *spec = (struct by_job_spec){.share = {0, 1}};
    if (text[0] < '0' || text[0] > '9' || *end != '=' || end[1] == 0)
        return by_problem_say(problem, BY_EINVAL,
                              "job '%.60s': write NUMBER=COLLECTIVES[:RANKS], such as 1=allreduce,broadcast "
                              "or 2=all:host0,host1",
                              text);
    if (job == 0 || job >= BY_JOBS_MAX)
        return by_problem_say(problem, BY_ELIMIT, "job %lu: a job's number is between 1 and %u", job,
                              BY_JOBS_MAX - 1);
    spec->job = (uint16_t)job;
    if (colon != NULL)
        error = parse_ranks(colon + 1, topology, spec, problem);
    if (error == 0)
        error = by_job_wants(spec, end + 1, topology, problem);
    if (error != 0)
        by_job_spec_free(spec);
    return error;
}

int by_job_image(const struct by_job *job, uint32_t node, uint8_t **bytes, size_t *size,
                 struct by_problem *problem)
{
    *bytes = NULL;
    *size = 0;
    if (job->tables == NULL)
        return by_problem_say(problem, BY_ESTATE, "job %u has no tables: it is %s", job->spec.job,
                              by_job_state_name(job->state));
    return by_lowering_image(job->tables->lowering, node, bytes, size, problem);
}

/*
 * The lab's plans: one for each requested collective. They are verified, lowered for every job, and
 * written beside the logs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/lab/lab.h"
#include "control/planner/planner.h"
#include "control/tables/dump.h"
#include "control/tables/file.h"
#include "control/verify/verify.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Returns the node of a rank. */
static int64_t node_of_rank(const struct by_topology *topology, uint32_t rank)
{
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (topology->nodes[i].compute && rank-- == 0)
            return i;
    return -1;
}

/* Checks a plan with the independent verifier, through the same file that a user would check. */
static int verify(struct lab *lab, struct lab_plan *entry)
{
    static const char *const words[] = {
        [BY_VERDICT_OPTIMAL] = "OPTIMAL", [BY_VERDICT_VALID] = "VALID", [BY_VERDICT_INVALID] = "INVALID"};
    const char *name = by_collective_name(entry->collective);
    struct by_verify_report report = {0};
    struct by_problem problem = {0};
    char path[LAB_PATH + 64];
    struct by_output output;

    snprintf(path, sizeof(path), "%s/%s.plan", lab->folder, name);
    if (!by_cli_create(&output, path) ||
        by_cli_finish(&output, by_plan_write(entry->plan, lab->topology, output.stream) == 0) != BY_EXIT_DONE)
        return BY_EXIT_ENVIRONMENT;
    if (by_verify_file(lab->topology, path, &report, &problem) != 0)
        return by_cli_refuse(path, &problem);
    if (report.verdict == BY_VERDICT_INVALID)
        return by_cli_fail(BY_EXIT_NO, "%s: the plan is INVALID: %s", path, report.reason);
    entry->verdict = words[report.verdict];
    return 0;
}

static int make_plan(struct lab *lab, unsigned collective)
{
    struct by_plan_options options = {.collective = collective, .root = -1, .in_network = true};
    struct lab_plan *entry = &lab->plans[lab->plan_count];
    struct by_problem problem = {0};
    int error;

    if (lab_stopping)
        return BY_EXIT_ENVIRONMENT;
    if (by_collective_is_rooted(collective))
        options.root = node_of_rank(lab->topology, lab->options.root);
    if (by_collective_is_sharded(collective))
        options.shares = lab->shares;
    lab_progress(lab, "planning %s", by_collective_name(collective));
    error = by_plan_make(lab->topology, &options, &entry->plan, &problem);
    lab_progress(lab, NULL);
    if (error != 0)
        return by_cli_refuse(lab->options.topology, &problem);
    entry->collective = collective;
    lab->plan_count++;
    return verify(lab, entry);
}

static int lower(struct lab *lab)
{
    const struct by_plan *plans[BY_COLLECTIVE_COUNT];
    struct by_lower_job jobs[LAB_JOBS_MAX];
    struct by_problem problem = {0};

    for (uint32_t i = 0; i < lab->plan_count; i++)
        plans[i] = lab->plans[i].plan;
    for (uint32_t i = 0; i < lab->options.jobs; i++)
        jobs[i] =
            (struct by_lower_job){.job = (uint16_t)(i + 1), .plan_count = lab->plan_count, .plans = plans};
    if (by_lower(lab->topology, jobs, lab->options.jobs, &lab->options.lower, &lab->lowering, &problem) != 0)
        return by_cli_refuse(lab->options.topology, &problem);
    return 0;
}

static int write_tables(struct lab *lab)
{
    for (uint32_t i = 0; i < lab->topology->node_count; i++) {
        const char *name = lab->topology->nodes[i].name;
        struct by_problem problem = {0};
        char path[LAB_PATH + 64];
        uint8_t *bytes;
        size_t size;
        struct by_output output;
        int error;
        if (strchr(name, '/') != NULL || name[0] == '.')
            return by_cli_fail(BY_EXIT_USAGE, "%s: node '%s': its name cannot be a file's name: rename it",
                               lab->options.topology, name);
        error = by_lowering_image(lab->lowering, i, &bytes, &size, &problem);
        if (error != 0)
            return by_cli_refuse(lab->options.topology, &problem);
        snprintf(path, sizeof(path), "%s/%s.txt", lab->folder, name);
        if (by_output_open(&output, path, 0666) == 0) {
            by_dump_text(bytes, size, output.stream);
            by_output_close(&output, true);
        }
        snprintf(path, sizeof(path), "%s/%s.table", lab->folder, name);
        error = by_image_file_write(path, bytes, size, &problem);
        free(bytes);
        if (error != 0) {
            by_cli_refuse(path, &problem);
            return BY_EXIT_ENVIRONMENT;
        }
    }
    return 0;
}

int lab_plan(struct lab *lab)
{
    /*
     * An allreduce plan is always made, because ranks synchronise by allreduce and barrier in every
     * run.
     */
    int status = make_plan(lab, BY_COLLECTIVE_ALLREDUCE);

    for (unsigned i = 1; i < BY_COLLECTIVE_COUNT && status == 0; i++)
        if (lab->options.collective[i] && by_collective_way(i) != BY_DATA_BOTH)
            status = make_plan(lab, i);
    if (status == 0)
        status = lower(lab);
    if (status == 0)
        status = write_tables(lab);
    return status;
}

void lab_plan_free(struct lab *lab)
{
    for (uint32_t i = 0; i < lab->plan_count; i++)
        by_plan_free(lab->plans[i].plan);
    by_lowering_free(lab->lowering);
    lab->plan_count = 0;
    lab->lowering = NULL;
}

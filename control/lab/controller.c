/*
 * The lab's controller. With --controller, a banyand loads and maintains the tables; without it, a
 * single push loads them. banyand runs in the lab's own namespace. It communicates with the
 * switches over their UNIX sockets, and hosts reach it over another one. Its state and its log are
 * in the lab's folder. All waits have timeouts.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/cli/http.h"
#include "control/lab/lab.h"

#define ARGUMENTS_MAX (32 + 2 * LAB_JOBS_MAX)
/* Timeout for a request about a job (seconds). */
#define ASK_S 10u

static struct lab_process *find(struct lab *lab)
{
    for (uint32_t i = 0; i < lab->process_count; i++)
        if (lab->processes[i].job == LAB_CONTROLLER)
            return &lab->processes[i];
    return NULL;
}

/* Handles the line "banyand: ready, ...". */
static void controller_line(struct lab *lab, struct lab_process *process, const char *line)
{
    (void)lab;
    if (process->job == LAB_CONTROLLER && strstr(line, ": ready") != NULL)
        process->ready = true;
}

/* Writes the collectives of the plans in the form of `--job`, for job `job`. */
static void job_text(const struct lab *lab, uint32_t job, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "%u=", job);

    for (uint32_t i = 0; i < lab->plan_count && used + 100 < bytes; i++) {
        const struct by_plan *plan = lab->plans[i].plan;

        used += (size_t)snprintf(text + used, bytes - used, "%s%s%s%s", i ? "," : "",
                                 by_collective_name(plan->collective), plan->root >= 0 ? "@" : "",
                                 plan->root >= 0 ? lab_name(lab, (uint32_t)plan->root) : "");
    }
}

static int start(struct lab *lab)
{
    char *argv[ARGUMENTS_MAX], topology[LAB_PATH + 64], sockets[LAB_PATH], state[LAB_PATH + 64],
        log[LAB_PATH + 64], members[LAB_PATH + 64], served[LAB_PATH + 64], mtu[16], keyed[64],
        jobs[LAB_JOBS_MAX][1024];
    struct by_output output;
    int count = 0;

    snprintf(topology, sizeof(topology), "%s/topology.json", lab->folder);
    if (!by_cli_create(&output, topology) ||
        by_cli_finish(&output, by_topology_write(lab->topology, output.stream) == 0) != BY_EXIT_DONE)
        return BY_EXIT_ENVIRONMENT;
    snprintf(sockets, sizeof(sockets), "%s", lab->folder);
    snprintf(state, sizeof(state), "%s", lab->folder);
    snprintf(log, sizeof(log), "%s/banyand.log", lab->folder);
    snprintf(members, sizeof(members), "unix:%s/members.sock", lab->folder);
    snprintf(served, sizeof(served), "%s/banyand.socket", lab->folder);
    snprintf(lab->controller, sizeof(lab->controller), "unix:%s", served);
    snprintf(keyed, sizeof(keyed), "--keyed=%.40s",
             lab->options.keys.cover ? lab->options.keys.cover : "header");
    argv[count++] = "banyand";
    argv[count++] = topology;
    if (lab->options.site != NULL) {
        argv[count++] = "--site";
        argv[count++] = (char *)(uintptr_t)lab->options.site;
    }
    argv[count++] = "--sockets";
    argv[count++] = sockets;
    argv[count++] = "--state";
    argv[count++] = state;
    argv[count++] = "--members";
    argv[count++] = members;
    argv[count++] = "--socket";
    argv[count++] = served;
    argv[count++] = "--http";
    argv[count++] = "0";
    if (lab->options.lower.mtu != 0) {
        snprintf(mtu, sizeof(mtu), "%u", lab->options.lower.mtu);
        argv[count++] = "--mtu";
        argv[count++] = mtu;
    }
    if (lab->options.keys.keyed)
        argv[count++] = keyed;
    if (lab->options.lower.det)
        argv[count++] = "--det";
    for (uint32_t job = 1; job <= lab->options.jobs; job++) {
        job_text(lab, job, jobs[job - 1], sizeof(jobs[0]));
        argv[count++] = "--job";
        argv[count++] = jobs[job - 1];
    }
    argv[count] = NULL;
    return lab_process_start(lab, LAB_NODE_NONE, LAB_CONTROLLER, argv, NULL, log, true) != NULL
               ? 0
               : BY_EXIT_ENVIRONMENT;
}

int lab_controller_fail(struct lab *lab, const char *what)
{
    char log[LAB_PATH + 64], text[512], end[32];
    struct lab_process *process = find(lab);

    snprintf(log, sizeof(log), "%.480s/banyand.log", lab->folder);
    lab_last_line(log, text, sizeof(text));
    lab_progress(lab, NULL);
    return by_cli_fail(BY_EXIT_ENVIRONMENT, "lab: banyand %s (%s): %s", what,
                       process ? lab_process_end(process, end) : "never started",
                       text[0] ? text : "it printed no output");
}

/* Returns 1 if the job runs, 0 if it does not run yet, or an exit status below 0. */
static int job_runs(struct lab *lab, uint32_t job)
{
    struct by_cli_answer answer;
    struct by_problem problem = {0};
    json_t *object;
    const char *state;
    char path[32];
    int runs = 0;

    snprintf(path, sizeof(path), "/v1/jobs/%u", job);
    if (by_cli_ask(lab->controller, "GET", path, NULL, ASK_S, &answer, &problem) != 0) {
        lab_progress(lab, NULL);
        by_cli_fail(0, "lab: %s", problem.text);
        return -1;
    }
    object = json_loadb(answer.body, answer.bytes, 0, NULL);
    state = json_string_value(json_object_get(object, "state"));
    if (state != NULL && strcmp(state, "running") == 0)
        runs = 1;
    else if (answer.status == 404 || (state != NULL && strcmp(state, "failed") == 0))
        runs = -1; /* the job was refused, or can never run */
    json_decref(object);
    free(answer.body);
    return runs;
}

int lab_controller_up(struct lab *lab)
{
    double deadline = lab_now() + LAB_READY_MS / 1e3;
    struct lab_process *process;
    int status;

    status = start(lab);
    process = find(lab);
    lab_progress(lab, "the controller loads tables");
    for (uint32_t job = 1; status == 0 && job <= lab->options.jobs;) {
        int runs = process->ready ? job_runs(lab, job) : 0;

        if (runs < 0)
            return lab_controller_fail(lab, "has not made the job");
        if (runs > 0) {
            job++;
            continue;
        }
        lab_process_poll(lab, 20, controller_line);
        if (process->ended)
            return lab_controller_fail(lab, "ended while it started");
        if (lab_now() > deadline)
            return lab_controller_fail(lab, "has not made the jobs within 180 seconds");
        if (lab_stopping)
            status = BY_EXIT_ENVIRONMENT;
    }
    return status;
}

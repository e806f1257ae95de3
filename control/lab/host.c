/*
 * The lab's hosts: one banyan-perf, or program of the user, for each host and job, or with
 * --in-process one for each job.
 * Watches them until all have ended or must be stopped, and collects their reports. All waits have
 * timeouts: --timeout for operations, --limit for the run.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/base/fraction.h"
#include "control/fabric/unit.h"
#include "control/lab/lab.h"
#include "offload/wire/types.h"

/*
 * Time that the other hosts get after the first failure, in addition to an operation's timeout, to
 * report their own errors (seconds).
 */
#define GRACE_S       10
#define ARGUMENTS_MAX 192

void lab_last_line(const char *path, char *text, size_t bytes)
{
    FILE *stream = fopen(path, "r");
    char line[1024];

    text[0] = 0;
    while (stream != NULL && fgets(line, sizeof(line), stream) != NULL) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] != 0)
            snprintf(text, bytes, "%.500s", line);
    }
    if (stream != NULL)
        fclose(stream);
}

/* Whether the calls use the shares that were planned. */
static bool is_as_planned(const struct lab *lab, unsigned collective)
{
    return lab->options.counts == NULL || !by_collective_is_sharded(collective);
}

/* Writes the proved optima in GB/s, for the column %opt: "allreduce=10,allgather=40/3". */
static void optimum_text(const struct lab *lab, char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = 0;
    for (uint32_t i = 0; i < lab->plan_count; i++) {
        struct by_fraction optimum;
        char fraction[BY_FRACTION_TEXT_BYTES];

        if (!is_as_planned(lab, lab->plans[i].collective) ||
            by_unit_gigabytes(lab->topology->unit, lab->plans[i].plan->optimum, &optimum) != 0)
            continue;
        used += (size_t)snprintf(text + used, bytes - used, "%s%s=%s", used ? "," : "",
                                 by_collective_name(lab->plans[i].collective),
                                 by_fraction_text(optimum, fraction));
    }
}

/*
 * Adds the options of banyan-perf that are the same with and without --in-process; returns their
 * count.
 */
static int perf_arguments(const struct lab *lab, char *argv[], char numbers[4][16], char *optimum,
                          char *report)
{
    const struct lab_options *options = &lab->options;
    const char *const fixed[] = {"-c",     options->collectives, "-b",       options->bytes,
                                 "-e",     options->bytes,       "-d",       options->dtype,
                                 "-o",     options->op,          "-m",       by_mode_name(options->mode),
                                 "--data", options->data,        "--report", report};
    int count = 0;

    argv[count++] = "banyan-perf";
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        argv[count++] = (char *)(uintptr_t)fixed[i];
    snprintf(numbers[0], 16, "%u", options->iterations);
    snprintf(numbers[1], 16, "%u", options->warmup);
    snprintf(numbers[2], 16, "%u", options->root);
    snprintf(numbers[3], 16, "%u", options->stall_s);
    argv[count++] = "-n";
    argv[count++] = numbers[0];
    argv[count++] = "-w";
    argv[count++] = numbers[1];
    argv[count++] = "-r";
    argv[count++] = numbers[2];
    argv[count++] = "-T";
    argv[count++] = numbers[3];
    if (lab->counts != NULL) {
        argv[count++] = "--counts";
        argv[count++] = lab->counts;
    }
    if (optimum[0] != 0) {
        argv[count++] = "--optimum";
        argv[count++] = optimum;
    }
    return count;
}

static int fault_arguments(const struct lab *lab, char *argv[], int count, char *seed, size_t seed_bytes,
                           uint32_t node)
{
    const struct lab_options *options = &lab->options;

    if (!lab_has_faults(&lab->options))
        return count;
    snprintf(seed, seed_bytes, "%llu", (options->seed ? strtoull(options->seed, NULL, 10) : 1ull) + node);
    argv[count++] = "--loss";
    argv[count++] = (char *)(uintptr_t)(options->loss ? options->loss : "0");
    argv[count++] = "--dup";
    argv[count++] = (char *)(uintptr_t)(options->dup ? options->dup : "0");
    argv[count++] = "--reorder";
    argv[count++] = (char *)(uintptr_t)(options->reorder ? options->reorder : "0");
    argv[count++] = "--seed";
    argv[count++] = seed;
    return count;
}

static void host_files(const struct lab *lab, uint32_t node, uint32_t job, char log[LAB_PATH + 64],
                       char report[LAB_PATH + 64])
{
    snprintf(log, LAB_PATH + 64, "%.480s/%.47s.job%u.log", lab->folder, lab_name(lab, node), job);
    snprintf(report, LAB_PATH + 64, "%.480s/%.47s.job%u.json", lab->folder, lab_name(lab, node), job);
}

/* Starts the user's program. Its settings are in the environment, its stderr is shown with its
 * stdout. */
static struct lab_process *start_command(struct lab *lab, uint32_t node, uint32_t local, uint32_t job,
                                         const char *table, char *environment[], uint32_t set)
{
    const struct lab_options *options = &lab->options;
    char texts[6][LAB_PATH + 96], outside[LAB_OUTSIDE_VARIABLES][48];
    struct lab_process *process;

    snprintf(texts[0], sizeof(texts[0]), "BANYAN_JOB=%u", job);
    snprintf(texts[1], sizeof(texts[1]), "BANYAN_TRANSPORT=%s", lab_transport(options));
    snprintf(texts[2], sizeof(texts[2]), "BANYAN_MODE=%s", by_mode_name(options->mode));
    snprintf(texts[3], sizeof(texts[3]), "BANYAN_TIMEOUT=%u", options->stall_s);
    snprintf(texts[4], sizeof(texts[4]), "BANYAN_NODE=%.47s", lab_name(lab, node));
    snprintf(texts[5], sizeof(texts[5]), "BANYAN_TABLE=%s", table);
    for (uint32_t i = 0; i < (options->controller ? 5 : 6); i++)
        environment[set++] = texts[i];
    set += lab_outside_environment(lab, node, local, job, outside, environment + set);
    environment[set] = NULL;
    process = lab_process_start(lab, node, job, options->command, environment, NULL, true);
    if (process != NULL)
        process->local = local;
    return process;
}

/* Starts the user's program of a lab with a schedule. */
static struct lab_process *start_scheduled(struct lab *lab, uint32_t node, uint32_t local, uint32_t job)
{
    char texts[3][LAB_PATH + 96], outside[LAB_OUTSIDE_VARIABLES][48];
    char *environment[4 + LAB_OUTSIDE_VARIABLES] = {texts[0], texts[1], texts[2]};

    snprintf(texts[0], sizeof(texts[0]), "BANYAN_SCHEDULE=%.480s/moves.json", lab->folder);
    snprintf(texts[1], sizeof(texts[1]), "BANYAN_TIMEOUT=%u", lab->options.stall_s);
    snprintf(texts[2], sizeof(texts[2]), "BANYAN_NODE=%.47s", lab_name(lab, node));
    lab_outside_environment(lab, node, local, job, outside, environment + 3);
    return lab_process_start(lab, node, job, lab->options.command, environment, NULL, true);
}

struct lab_process *lab_host_start(struct lab *lab, uint32_t node, uint32_t local, uint32_t job)
{
    char *argv[ARGUMENTS_MAX], numbers[4][16], optimum[512], log[LAB_PATH + 64], report[LAB_PATH + 64],
        seed[24];
    char table[LAB_PATH + 64], job_text[16], sockets[LAB_PATH + 64], controller[LAB_PATH + 96], name[64];
    char segments[] = "BANYAN_SEGMENTS=on", ring[] = "BANYAN_RING=on";
    char no_huge[] = "BANYAN_DPDK_OPTIONS=--no-huge";
    char *environment[15 + LAB_OUTSIDE_VARIABLES] = {NULL};
    uint32_t set = 0;
    bool switches;
    int count;

    if (lab->series != NULL)
        return start_scheduled(lab, node, local, job);
    switches = lab->topology->node_count > lab->lowering->map.rank_count;
    host_files(lab, node, job, log, report);
    optimum_text(lab, optimum, sizeof(optimum));
    count = perf_arguments(lab, argv, numbers, optimum, report);
    if (!switches)
        count = fault_arguments(lab, argv, count, seed, sizeof(seed), node);
    snprintf(table, sizeof(table), "%.480s/%.47s.table", lab->folder, lab_name(lab, node));
    snprintf(job_text, sizeof(job_text), "%u", job);
    if (!lab->options.controller) {
        argv[count++] = "--table";
        argv[count++] = table;
    }
    argv[count++] = "--job";
    argv[count++] = job_text;
    argv[count++] = "--transport";
    argv[count++] = (char *)(uintptr_t)lab_transport(&lab->options);
    argv[count] = NULL;
    snprintf(sockets, sizeof(sockets), "BANYAN_SHM=%.480s", lab->folder);
    snprintf(name, sizeof(name), "BANYAN_NODE=%.47s", lab_name(lab, node));
    snprintf(controller, sizeof(controller), "BANYAN_CONTROLLER=unix:%.480s/members.sock", lab->folder);
    if (lab_has_shm(&lab->options))
        environment[set++] = sockets;
    else if (lab_has_gso(&lab->options))
        environment[set++] = segments;
    if (!lab_has_shm(&lab->options) && lab_has_gso(&lab->options) && lab->options.cut)
        environment[set++] = ring;
    /* Many hosts on one machine would compete for its hugepages. */
    if (strcmp(lab_transport(&lab->options), "dpdk") == 0)
        environment[set++] = no_huge;
    if (lab->options.controller) { /* banyand sends the host its table */
        environment[set++] = controller;
        environment[set++] = name;
    }
    if (lab->options.command != NULL)
        return start_command(lab, node, local, job, table, environment, set);
    return lab_process_start(lab, node, job, argv, environment, log, true);
}

/* Starts all hosts and switches of one job in one process. */
struct lab_process *lab_host_start_all(struct lab *lab, uint32_t job)
{
    char *argv[ARGUMENTS_MAX], numbers[4][16], optimum[512], log[LAB_PATH + 64], report[LAB_PATH + 64],
        seed[24], text[16];
    int count;

    host_files(lab, 0, job, log, report);
    optimum_text(lab, optimum, sizeof(optimum));
    count = perf_arguments(lab, argv, numbers, optimum, report);
    count = fault_arguments(lab, argv, count, seed, sizeof(seed), 0);
    snprintf(text, sizeof(text), "%u", job);
    argv[count++] = "--job";
    argv[count++] = text;
    argv[count++] = "--in-process";
    argv[count++] = lab->folder;
    argv[count] = NULL;
    return lab_process_start(lab, 0, job, argv, NULL, log, true);
}

/* The host, and with several processes on it the number there: "host2.1: ". */
static void print_name(const struct lab *lab, const struct lab_process *process)
{
    printf("%s", lab_name(lab, process->node));
    if (lab->options.ranks_each != NULL)
        printf(".%u", process->local);
    printf(": ");
}

/* Prints a line of a host's output. Of banyan-perf only rank 0 of each job has output: the results
 * table. */
static void host_line(struct lab *lab, struct lab_process *process, const char *line)
{
    if (!lab_is_host(process) || lab->options.json)
        return;
    lab_progress(lab, NULL);
    if (lab->options.jobs > 1)
        printf("job %u: ", process->job);
    if (lab->options.command != NULL)
        print_name(lab, process);
    printf("%s\n", line);
    fflush(stdout);
}

/* Stores and prints the reason for a host's failure, from its log. */
static void note_failure(struct lab *lab, const struct lab_process *process)
{
    char log[LAB_PATH + 64], report[LAB_PATH + 64], text[512], end[32], line[700];

    host_files(lab, process->node, process->job, log, report);
    lab_last_line(log, text, sizeof(text));
    if (lab->options.command != NULL)
        snprintf(text, sizeof(text), "%.100s failed; its output is above", lab->options.command[0]);
    snprintf(line, sizeof(line), "host %s (%s): %.500s", lab_name(lab, process->node),
             lab_process_end(process, end), text[0] ? text : "it printed no output");
    lab_progress(lab, NULL);
    fprintf(stderr, "banyan: lab: %s\n", line);
    if (lab->error[0] == 0)
        snprintf(lab->error, sizeof(lab->error), "%s", line);
}

/* Whether a host ended abnormally: banyan-perf neither with right nor with wrong results. */
static bool has_failed(const struct lab *lab, const struct lab_process *process)
{
    int most = lab->options.command != NULL ? BY_EXIT_DONE : BY_EXIT_NO;

    return process->ended && !(WIFEXITED(process->status) && WEXITSTATUS(process->status) <= most);
}

static void kill_one(struct lab *lab)
{
    for (uint32_t i = 0; i < lab->process_count; i++) {
        struct lab_process *process = &lab->processes[i];
        if (process->job != 0 || strcmp(lab_name(lab, process->node), lab->options.kill_node) != 0)
            continue;
        process->expected = true;
        kill(process->pid, SIGKILL);
        lab_progress(lab, NULL);
        if (!lab->options.json)
            printf("# %s is killed after %.1f s\n", lab->options.kill_node, lab_now() - lab->seconds);
        fflush(stdout); /* the line states when it happens */
    }
}

static bool is_time_to_kill(const struct lab *lab, double seconds)
{
    return lab->options.kill_file != NULL ? access(lab->options.kill_file, F_OK) == 0
                                          : seconds >= lab->options.kill_seconds;
}

/* Watches the hosts until all have ended or must be stopped. */
void lab_host_watch(struct lab *lab)
{
    double start = lab_now(), first_failure = 0;
    bool killed = lab->options.kill_node == NULL, told = false;

    lab->seconds = start;
    for (;;) {
        uint32_t left = 0, failed = 0, all = 0;
        double now = lab_now();
        lab_process_poll(lab, 100, host_line);
        for (uint32_t i = 0; i < lab->process_count; i++) {
            all += lab_is_host(&lab->processes[i]);
            left += lab_is_host(&lab->processes[i]) && !lab->processes[i].ended;
            failed += lab_is_host(&lab->processes[i]) && has_failed(lab, &lab->processes[i]);
        }
        if (left == 0)
            break;
        lab_progress(lab, "running, %.0f s, %u of %u hosts have finished", now - start, all - left, all);
        if (!killed && is_time_to_kill(lab, now - start)) {
            killed = true;
            kill_one(lab);
        }
        if (!told && lab_switch_dead(lab) != NULL) {
            told = true;
            lab_switch_fail(lab, lab_switch_dead(lab), "ended during the run");
        }
        if (lab_wires_dead(lab))
            break;
        if (failed > 0 && first_failure == 0)
            first_failure = now;
        if (first_failure > 0 && now - first_failure > lab->options.stall_s + GRACE_S)
            break;
        if (lab_stopping)
            break;
        if (now - start > lab->options.limit_s) {
            lab_progress(lab, NULL);
            by_cli_fail(0, "lab: the run did not end within %u s (--limit)", lab->options.limit_s);
            snprintf(lab->error, sizeof(lab->error), "the run did not end within %u s", lab->options.limit_s);
            break;
        }
    }
    lab->seconds = lab_now() - start;
}

void lab_host_reports(struct lab *lab)
{
    for (uint32_t job = 1; job <= lab->options.jobs; job++) {
        lab->reports[job - 1] = json_array();
        for (uint32_t node = 0; node < lab->topology->node_count; node++) {
            char log[LAB_PATH + 64], path[LAB_PATH + 64];
            json_t *report;
            /* With --in-process, rank 0 reports for all, under the name of node 0. */
            if (lab->options.in_process ? node > 0 : !lab->topology->nodes[node].compute)
                continue;
            host_files(lab, node, job, log, path);
            report = json_load_file(path, 0, NULL);
            json_array_append_new(lab->reports[job - 1], report ? report : json_null());
        }
    }
}

int lab_host_end(struct lab *lab)
{
    int status = 0;

    for (uint32_t job = 1; job <= lab->options.jobs; job++)
        lab_process_stop(lab, job, 3000);
    /* Reads what is left in the pipes of the hosts that have ended. */
    lab_process_poll(lab, 0, host_line);
    for (uint32_t i = 0; i < lab->process_count; i++) {
        if (!lab_is_host(&lab->processes[i]) || !has_failed(lab, &lab->processes[i]))
            continue;
        status = BY_EXIT_ENVIRONMENT;
        /* Hosts that the lab ended have no error to report. */
        if (!lab_stopping && !lab->processes[i].expected)
            note_failure(lab, &lab->processes[i]);
    }
    return status;
}

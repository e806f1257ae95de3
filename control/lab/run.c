/*
 * The sequence of a run: namespaces, switches, tables, hosts; then everything is undone in the
 * opposite order. Every failure leads to lab_run_undo, which undoes what exists. Neighbours: net.c,
 * switch.c and host.c do the parts.
 */
#include <stdlib.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/lab/lab.h"

int lab_run_fabric(struct lab *lab)
{
    uint32_t n = lab->topology->node_count;
    int status;

    lab->processes =
        by_alloc((size_t)n * (1 + lab->options.jobs * LAB_EACH_MAX) + 1, sizeof(*lab->processes));
    status = lab_net_up(lab);
    for (uint32_t i = 0; i < n && status == 0; i++)
        if (by_site_is_switch(lab->topology, i) && lab_switch_start(lab, i) == NULL)
            status = BY_EXIT_ENVIRONMENT;
    if (status == 0 && lab->process_count > 0)
        status = lab_switch_await(lab);
    if (status == 0 && lab->process_count > 0)
        status = lab->options.controller ? lab_controller_up(lab) : lab_switch_push(lab);
    return status;
}

/* Starts a host's processes of a job. Returns 0 or an exit status. */
static int start_host(struct lab *lab, uint32_t node, uint32_t job)
{
    uint32_t ranks = lab->topology->nodes[node].compute ? lab_ranks_on(lab, node) : 0;

    for (uint32_t local = 0; local < ranks; local++)
        if (lab_host_start(lab, node, local, job) == NULL)
            return BY_EXIT_ENVIRONMENT;
    return 0;
}

int lab_run_namespaces(struct lab *lab)
{
    int status = lab_run_fabric(lab);

    if (status == 0 && lab->topology->node_count > lab->lowering->map.rank_count)
        lab->before = lab_switch_counters(lab);
    lab->switch_seconds = -lab_process_seconds(lab, 0);
    lab->kernel_seconds = -lab_process_kernel_seconds();
    for (uint32_t job = 1; job <= lab->options.jobs && status == 0; job++)
        for (uint32_t node = 0; node < lab->topology->node_count && status == 0; node++)
            status = start_host(lab, node, job);
    if (status != 0)
        return status;
    lab_host_watch(lab);
    lab->switch_seconds += lab_process_seconds(lab, 0);
    lab->kernel_seconds += lab_process_kernel_seconds();
    status = lab_host_end(lab);
    if (lab_stopping)
        return BY_EXIT_ENVIRONMENT;
    if (lab->before != NULL)
        lab->after = lab_switch_counters(lab);
    if (lab->options.command == NULL)
        lab_host_reports(lab);
    return status != 0 || lab->error[0] != 0 ? BY_EXIT_ENVIRONMENT : 0;
}

int lab_run_in_process(struct lab *lab)
{
    int status = 0;

    lab->processes = by_alloc(lab->options.jobs, sizeof(*lab->processes));
    /* The jobs run one after the other, because each job's process contains the whole fabric. */
    for (uint32_t job = 1; job <= lab->options.jobs && status == 0; job++) {
        if (lab_host_start_all(lab, job) == NULL)
            return BY_EXIT_ENVIRONMENT;
        lab_host_watch(lab);
        status = lab_host_end(lab);
    }
    lab_host_reports(lab);
    return status != 0 || lab_stopping || lab->error[0] != 0 ? BY_EXIT_ENVIRONMENT : 0;
}

void lab_run_undo(struct lab *lab)
{
    lab_progress(lab, NULL);
    if (lab->processes != NULL) {
        for (uint32_t job = lab->options.jobs; job > 0; job--)
            lab_process_stop(lab, job, 2000);
        lab_process_stop(lab, LAB_CONTROLLER, 5000);
        lab_process_stop(lab, LAB_WIRES, 1000);
        lab_process_stop(lab, 0, 5000);
        for (uint32_t i = 0; i < lab->process_count; i++)
            if (lab->processes[i].out >= 0)
                close(lab->processes[i].out);
        free(lab->processes);
        lab->processes = NULL;
        lab->process_count = 0;
    }
    lab_net_down(lab);
    lab_state_close(lab);
}

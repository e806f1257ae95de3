/*
 * The lab's switches: starts them with the requested faults, waits until they are ready, loads
 * their tables, and reads their counters. All waits have timeouts.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/lab/lab.h"
#include "control/service/controller/push.h"
#include "control/tables/file.h"

#define ARGUMENTS_MAX 192
/* Longest wait for carriers (seconds). */
#define CARRIERS_S     3
#define SWITCH_PROGRAM "banyan-switchd"

/* Returns the program that runs on a switch. */
static const char *program_of(const struct lab *lab, uint32_t node)
{
    const char *name = lab_name(lab, node);
    size_t length = strlen(name);

    for (uint32_t i = 0; i < lab->options.program_count; i++)
        if (strncmp(lab->options.program[i], name, length) == 0 && lab->options.program[i][length] == '=')
            return lab->options.program[i] + length + 1;
    return SWITCH_PROGRAM;
}

/*
 * Returns the slots of a switch: what the tables need. With a controller there are more, for
 * further jobs and for trees on other paths.
 */
static uint32_t slots_of(const struct lab *lab)
{
    uint32_t slots = lab->lowering->slots ? lab->lowering->slots : 1;

    if (!lab->options.controller)
        return slots;
    return slots < BY_LOWER_SLOTS / 4 ? 4 * slots : slots < BY_LOWER_SLOTS ? BY_LOWER_SLOTS : slots;
}

void lab_switch_address(const struct lab *lab, uint32_t node, char address[LAB_PATH + 64])
{
    snprintf(address, LAB_PATH + 64, "unix:%.480s/%.47s.sock", lab->folder, lab_name(lab, node));
}

struct lab_process *lab_switch_start(struct lab *lab, uint32_t node)
{
    const struct lab_options *options = &lab->options;
    char *argv[ARGUMENTS_MAX], names[BY_PORTS_MAX][LAB_PATH + 64], control[LAB_PATH + 64], log[LAB_PATH + 64],
        slots[16], payload[16], seed[24], workers[16];
    int count = 0;

    lab_switch_address(lab, node, control);
    snprintf(log, sizeof(log), "%.480s/%.47s.log", lab->folder, lab_name(lab, node));
    snprintf(slots, sizeof(slots), "%u", slots_of(lab));
    snprintf(payload, sizeof(payload), "%u", lab->lowering->payload_max);
    /* Every switch has its own random sequence of faults. */
    snprintf(seed, sizeof(seed), "%llu", (options->seed ? strtoull(options->seed, NULL, 10) : 1ull) + node);
    argv[count++] = (char *)(uintptr_t)program_of(lab, node);
    argv[count++] = "--name";
    argv[count++] = lab->topology->nodes[node].name;
    for (uint32_t port = 0; port < lab->lowering->map.port_count[node]; port++) {
        uint32_t link = by_address_link(&lab->lowering->map, node, port);
        uint32_t peer = by_address_peer(lab->topology, link, node);

        if (lab_has_shm(options) && lab->topology->nodes[peer].compute) {
            char ip[BY_ADDRESS_TEXT];

            by_address_of(lab->topology, link, peer, ip);
            snprintf(names[port], sizeof(names[port]), "%.480s/%s", lab->folder, ip);
            argv[count++] = "--shm";
        } else if (by_address_vlan(lab->topology, link) != 0) {
            /* The switch writes and strips the tags itself; on interfaces the kernel does. */
            char cable[16];
            bool jumbo = lab->lowering->mtu > BY_LOWER_MTU;

            lab_net_cable(lab, link, node, cable);
            snprintf(names[port], sizeof(names[port]),
                     "net_af_packet%u,iface=%s,qpairs=1,framesz=%u,blocksz=%u", port, cable,
                     jumbo ? 16384u : 2048u, jumbo ? 16384u : 4096u);
            argv[count++] = "--vdev";
        } else {
            by_address_interface(&lab->lowering->map, link, node, names[port]);
            argv[count++] = "--iface";
        }
        argv[count++] = names[port];
    }
    argv[count++] = "--control";
    argv[count++] = control;
    if (strcmp(lab_driver(options), "auto") != 0) { /* auto: the board chooses its own driver */
        argv[count++] = "--driver";
        argv[count++] = (char *)(uintptr_t)lab_driver(options);
    }
    /* Many switches on one machine would compete for its hugepages. */
    argv[count++] = "--no-huge";
    argv[count++] = "--slots";
    argv[count++] = slots;
    argv[count++] = "--payload-max";
    argv[count++] = payload;
    /* All switches and hosts share this machine's cores. Other programs have one anyway. */
    if (options->cores > 0 || strcmp(argv[0], SWITCH_PROGRAM) == 0) {
        snprintf(workers, sizeof(workers), "%u", options->cores > 0 ? options->cores : 1);
        argv[count++] = "--workers";
        argv[count++] = workers;
    }
    if (lab_has_faults(&lab->options)) {
        argv[count++] = "--loss";
        argv[count++] = (char *)(uintptr_t)(options->loss ? options->loss : "0");
        argv[count++] = "--dup";
        argv[count++] = (char *)(uintptr_t)(options->dup ? options->dup : "0");
        argv[count++] = "--reorder";
        argv[count++] = (char *)(uintptr_t)(options->reorder ? options->reorder : "0");
        argv[count++] = "--seed";
        argv[count++] = seed;
    }
    argv[count] = NULL;
    return lab_process_start(lab, node, 0, argv, NULL, log, true);
}

static void switch_line(struct lab *lab, struct lab_process *process, const char *line)
{
    (void)lab;
    if (process->job == 0 && strstr(line, ": ready") != NULL)
        process->ready = true;
}

struct lab_process *lab_switch_dead(struct lab *lab)
{
    for (uint32_t i = 0; i < lab->process_count; i++)
        if (lab->processes[i].job == 0 && lab->processes[i].ended && !lab->processes[i].expected)
            return &lab->processes[i];
    return NULL;
}

int lab_switch_fail(const struct lab *lab, const struct lab_process *process, const char *what)
{
    char log[LAB_PATH + 64], text[512], end[32];

    snprintf(log, sizeof(log), "%.480s/%.47s.log", lab->folder, lab_name(lab, process->node));
    lab_last_line(log, text, sizeof(text));
    lab_progress(lab, NULL);
    return by_cli_fail(BY_EXIT_ENVIRONMENT, "lab: switch %s %s (%s): %s", lab_name(lab, process->node), what,
                       lab_process_end(process, end), text[0] ? text : "it printed no output");
}

/*
 * Reads a switch's counters, which the caller frees. Returns NULL if the switch does not report
 * them.
 */
static by_CountersReply *counters_of(const struct lab *lab, uint32_t node, struct by_problem *problem)
{
    const struct by_session_options access = {.timeout_ms = LAB_CALL_MS};
    by_CountersReply *counters = by_alloc(1, sizeof(*counters));
    struct by_session *session = NULL;
    char address[LAB_PATH + 64];

    lab_switch_address(lab, node, address);
    if (by_session_open(address, &access, &session, problem) != 0 ||
        by_session_counters(session, counters, problem) != 0) {
        free(counters);
        counters = NULL;
    }
    by_session_close(session);
    return counters;
}

/* Whether a switch reports a port without a carrier. */
static bool is_cut_off(const struct lab *lab, uint32_t node)
{
    struct by_problem ignored = {0};
    by_CountersReply *counters = counters_of(lab, node, &ignored);
    bool down = false;

    for (pb_size_t i = 0; counters != NULL && i < counters->ports_count; i++)
        down = down || counters->ports[i].down;
    free(counters);
    return down;
}

/*
 * Waits for the carriers: the kernel may report them late, and a controller would plan around such
 * a link.
 */
static void await_carriers(const struct lab *lab)
{
    double deadline = lab_now() + CARRIERS_S;

    for (uint32_t i = 0; i < lab->topology->node_count; i++)
        while (by_site_is_switch(lab->topology, i) && is_cut_off(lab, i) && lab_now() < deadline)
            usleep(20000);
}

int lab_switch_await(struct lab *lab)
{
    double deadline = lab_now() + LAB_READY_MS / 1e3;

    for (;;) {
        uint32_t ready = 0;
        struct lab_process *missing = NULL, *dead;
        lab_process_poll(lab, 50, switch_line);
        for (uint32_t i = 0; i < lab->process_count; i++) {
            ready += lab->processes[i].ready;
            if (!lab->processes[i].ready)
                missing = &lab->processes[i];
        }
        lab_progress(lab, "%u of %u switches are ready", ready, lab->process_count);
        dead = lab_switch_dead(lab);
        if (dead != NULL)
            return lab_switch_fail(lab, dead, "ended while it started");
        if (missing == NULL) {
            await_carriers(lab);
            return 0;
        }
        if (lab_stopping)
            return BY_EXIT_ENVIRONMENT;
        if (lab_now() > deadline)
            return lab_switch_fail(lab, missing, "is not ready after 180 seconds");
    }
}

int lab_switch_push(struct lab *lab)
{
    uint32_t n = lab->topology->node_count, count = 0;
    struct by_push_target *targets = by_alloc(n, sizeof(*targets));
    char(*addresses)[LAB_PATH + 64] = by_alloc(n, sizeof(*addresses));
    struct by_problem problem = {0};
    int status = 0;

    lab_progress(lab, "loading tables");
    for (uint32_t i = 0; i < n && status == 0; i++) {
        char path[LAB_PATH + 64];
        uint8_t *bytes;
        if (!by_site_is_switch(lab->topology, i))
            continue;
        snprintf(path, sizeof(path), "%.480s/%.47s.table", lab->folder, lab_name(lab, i));
        lab_switch_address(lab, i, addresses[count]);
        if (by_image_file_read(path, &bytes, &targets[count].bytes, &problem) != 0)
            status = by_cli_refuse(path, &problem);
        targets[count].name = lab_name(lab, i);
        targets[count].address = addresses[count];
        if (status == 0)
            targets[count++].image = bytes;
    }
    if (status == 0 &&
        by_push(targets, count, &(struct by_session_options){.timeout_ms = LAB_CALL_MS}, &problem) != 0) {
        lab_progress(lab, NULL);
        status = by_cli_fail(BY_EXIT_ENVIRONMENT, "lab: %s", problem.text);
    }
    for (uint32_t i = 0; i < count; i++)
        free((uint8_t *)(uintptr_t)targets[i].image);
    free(targets);
    free(addresses);
    return status;
}

by_CountersReply **lab_switch_counters(struct lab *lab)
{
    by_CountersReply **all = by_alloc(lab->topology->node_count, sizeof(by_CountersReply *));

    for (uint32_t i = 0; i < lab->process_count; i++) {
        const struct lab_process *process = &lab->processes[i];
        struct by_problem problem = {0};

        if (process->job != 0 || process->ended)
            continue;
        all[process->node] = counters_of(lab, process->node, &problem);
        if (all[process->node] == NULL) {
            lab_progress(lab, NULL);
            by_cli_fail(0, "lab: switch %s: %s", lab_name(lab, process->node), problem.text);
        }
    }
    return all;
}

/*
 * The lab: a fabric of any topology file in network namespaces, real switches, one process for each
 * host. Shared by the files lab*.c: lab.c (the command), lab_options.c, lab_plan.c (plans and
 * tables), lab_state.c (what must be undone), lab_controller.c (a banyand), lab_net.c (namespaces
 * and cables), lab_process.c (children), lab_switch.c, lab_host.c, lab_run.c (the sequence),
 * lab_report.c (what is printed). Single-threaded; children are processes.
 */
#ifndef BY_LAB_LAB_H
#define BY_LAB_LAB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "control/cli/cli.h"
#include "control/cli/number.h"
#include "control/plan/plan.h"
#include "control/service/controller/session.h"
#include "control/tables/lower.h"
#include "offload/wire/types.h"

#define LAB_JOBS_MAX 8u
/* Switches that run another program than banyan-switchd (count). */
#define LAB_PROGRAMS_MAX 64u
#define LAB_PATH         512u
/* In place of a job: the controller; of a node: in this program's own namespace. */
#define LAB_CONTROLLER UINT32_MAX
#define LAB_NODE_NONE  UINT32_MAX
/* How long a switch may take until it is ready, and a control call (milliseconds). */
#define LAB_READY_MS 60000u
#define LAB_CALL_MS  10000u

struct lab_options {
    const char *topology;
    const char *ranks;  /* NULL: all compute nodes */
    const char *shares; /* a file of shards of unequal size, for plans and calls; NULL: equal */
    uint32_t count_count;
    const char *counts; /* the parts of each rank, for calls alone; NULL: those of `shares` */
    bool collective[BY_COLLECTIVE_COUNT];
    const char *collectives; /* as given, for banyan-perf */
    const char *bytes, *dtype, *op, *data, *transport, *driver;
    unsigned mode;                           /* enum by_mode */
    const char *loss, *dup, *reorder, *seed; /* NULL: no fault injection */
    const char *report;
    const char *kill_node; /* NULL, or a node that is killed during the run */
    double kill_seconds;
    const char *program[LAB_PROGRAMS_MAX]; /* NODE=PROGRAM: what runs on that switch instead of ours */
    uint32_t program_count;
    uint32_t iterations, warmup, root, jobs;
    uint32_t stall_s; /* an operation without progress fails after this */
    uint32_t limit_s; /* the whole run of the hosts */
    struct by_lower_options lower;
    struct by_cli_keys keys;
    bool cut;        /* links carry frames of the MTU alone, also where nodes give trains (--segments cut) */
    bool controller; /* a banyand loads the tables, and keeps them */
    bool in_process, json, keep, quiet, all;
    const char *id; /* lab down */
};

/* A child: a switch, or a host's process of one job. */
struct lab_process {
    pid_t pid; /* 0: never started */
    uint32_t node;
    uint32_t job;      /* 0: a switch; LAB_CONTROLLER */
    int out;           /* its stdout, or -1 */
    bool ready, ended; /* switches say that they are ready */
    bool expected;     /* its end is our doing */
    int status;        /* as from waitpid, once ended */
    char line[512];    /* stdout's unfinished line */
    size_t line_bytes;
};

struct lab_plan {
    unsigned collective;
    struct by_plan *plan;
    const char *verdict;
};

struct lab {
    struct lab_options options;
    struct by_topology *topology;
    int64_t *shares; /* of --shares, by node; or NULL */
    char *counts;    /* parts of each rank for banyan-perf, "3,1,0,2"; or NULL */
    struct by_lowering *lowering;
    uint32_t plan_count;
    struct lab_plan plans[BY_COLLECTIVE_COUNT];
    char id[32];
    char folder[LAB_PATH];
    bool has_folder, detached;
    char controller[LAB_PATH + 96]; /* where banyand listens: unix:PATH */
    char programs[LAB_PATH];        /* where banyan-switchd and banyan-perf are */
    char (*ns)[80];                 /* namespace of each node; "" where there is none */
    uint32_t process_count;
    struct lab_process *processes;
    by_CountersReply **before, **after; /* of each switch, by node; NULL where there is none */
    json_t *reports[LAB_JOBS_MAX];      /* an array by rank for each job (in process: of one) */
    char error[1024];                   /* why hosts failed, "" when they did not */
    double seconds;                     /* the hosts' run */
    double switch_seconds;              /* processor time of all switches in it */
    double kernel_seconds;              /* and of the kernel's threads that serve interrupts (ksoftirqd) */
};

/* Set by SIGINT, SIGTERM, SIGHUP: everything that waits looks at it, and ends. */
extern volatile int lab_stopping;
/* Seconds on a monotonic clock. */
double lab_now(void);

/* Options of up, run and down. -1 after --help, 0, or BY_EXIT_USAGE. argv[0] is the verb. */
int lab_options_read(int argc, char **argv, struct lab_options *options);

/* Plans, verifies, lowers; writes plan files and tables into the folder. An exit status, 0 when
 * done. */
int lab_plan(struct lab *lab);
void lab_plan_free(struct lab *lab);

/* A folder of its own, with a state file from which a later `down` can undo everything. */
int lab_state_open(struct lab *lab);
/* Notes what is about to exist: "ns NAME" or "process PID START NAME". 0 or BY_EXIT_ENVIRONMENT. */
int lab_state_note(struct lab *lab, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Start time of a process in clock ticks since boot, 0 when there is none: tells a process from a
 * later one of the same number. */
unsigned long long lab_state_started(pid_t pid);
/* Removes the folder. */
void lab_state_close(struct lab *lab);
/* Undoes labs whose owner is gone (and, with an id or `all`, those left up). Returns how many;
 * `quiet` says nothing. */
int lab_state_sweep(const char *id, bool all, bool quiet);

/* Namespaces, cables, addresses. 0 or BY_EXIT_ENVIRONMENT after an error was printed. */
int lab_net_up(struct lab *lab);
void lab_net_delete(const char *ns);
void lab_net_down(struct lab *lab);

/* Where the other programs are. 0 or BY_EXIT_ENVIRONMENT. */
int lab_process_find(struct lab *lab);
/* Starts `argv[0]` (a program of ours) in a node's namespace. Output: `log` holds stderr; stdout
 * goes to a pipe, or to `log` as well. `environment` are NAME=VALUE, NULL-terminated, or NULL. NULL
 * after an error was printed. */
struct lab_process *lab_process_start(struct lab *lab, uint32_t node, uint32_t job, char *const *argv,
                                      char *const *environment, const char *log, bool pipe_out);
/* Waits up to `ms` for output and ends; handles both. Lines of stdout go to `line` (may be NULL).
 */
void lab_process_poll(struct lab *lab, int ms,
                      void (*line)(struct lab *, struct lab_process *, const char *));
/* Ends all of job `job` (0: switches): SIGTERM, and SIGKILL after `grace_ms`. */
void lab_process_stop(struct lab *lab, uint32_t job, uint32_t grace_ms);
/* Processor time so far, in seconds: of all switches, and of the kernel's own threads for
 * interrupts. */
double lab_process_switch_seconds(const struct lab *lab);
double lab_process_kernel_seconds(void);
/* "exit status 3", "signal 9" */
const char *lab_process_end(const struct lab_process *process, char text[32]);

/* A host of a job: neither a switch nor the controller. */
static inline bool lab_is_host(const struct lab_process *process)
{
    return process->job != 0 && process->job != LAB_CONTROLLER;
}
/* A node's name. */
static inline const char *lab_name(const struct lab *lab, uint32_t node)
{
    return lab->topology->nodes[node].name;
}
static inline bool lab_has_faults(const struct lab_options *options)
{
    return options->loss != NULL || options->dup != NULL || options->reorder != NULL;
}
/* What moves the hosts' packets: two processes cannot share an interface's AF_XDP queue. */
static inline const char *lab_transport(const struct lab_options *options)
{
    return options->jobs > 1 && strcmp(options->transport, "auto") == 0 ? "udp" : options->transport;
}
/* Hosts share memory with their switches. */
static inline bool lab_has_shm(const struct lab_options *options)
{
    return strcmp(options->transport, "shm") == 0;
}
/* Nodes give trains of frames to their links, which carry them whole, or cut them before they do.
 */
static inline bool lab_has_gso(const struct lab_options *options)
{
    if (strcmp(options->driver, "auto") != 0)
        return strcmp(options->driver, "gso") == 0 || strcmp(options->driver, "ring") == 0;
    return strcmp(lab_transport(options), "udp") == 0;
}

/* What drives the switches' ports. */
static inline const char *lab_driver(const struct lab_options *options)
{
    if (strcmp(options->driver, "auto") != 0 || !lab_has_gso(options))
        return options->driver;
    return options->cut ? "ring" : "gso";
}

/* The control address of a switch. */
void lab_switch_address(const struct lab *lab, uint32_t node, char address[LAB_PATH + 64]);
/* Switches. NULL or BY_EXIT_ENVIRONMENT after an error was printed. */
struct lab_process *lab_switch_start(struct lab *lab, uint32_t node);
/* Until all are ready, and have a carrier at every port. */
int lab_switch_await(struct lab *lab);
int lab_switch_push(struct lab *lab);
/* The first switch that ended by itself, or NULL. */
struct lab_process *lab_switch_dead(struct lab *lab);
/* Prints what a switch did and its last words; returns BY_EXIT_ENVIRONMENT. */
int lab_switch_fail(const struct lab *lab, const struct lab_process *process, const char *what);
/* Counters of every switch that lives, by node; the caller frees each and all. */
by_CountersReply **lab_switch_counters(struct lab *lab);

/* Starts banyand, and waits until it has made all jobs. 0 or BY_EXIT_ENVIRONMENT
 * after an error was printed. */
int lab_controller_up(struct lab *lab);
/* Prints what became of it, and its last words; returns BY_EXIT_ENVIRONMENT. */
int lab_controller_fail(struct lab *lab, const char *what);

/* Hosts: one process of a job; or all of a job in one process. NULL after an error was printed. */
struct lab_process *lab_host_start(struct lab *lab, uint32_t node, uint32_t job);
struct lab_process *lab_host_start_all(struct lab *lab, uint32_t job);
/* Looks after the hosts until all have ended, or will not. */
void lab_host_watch(struct lab *lab);
/* Ends those that are left and prints why hosts failed: BY_EXIT_ENVIRONMENT when one did, else 0.
 */
int lab_host_end(struct lab *lab);
void lab_host_reports(struct lab *lab);
/* The last line of a log that says something, for an error. */
void lab_last_line(const char *path, char *text, size_t bytes);

/* Runs a lab that has its plans. An exit status. */
int lab_run_namespaces(struct lab *lab);
int lab_run_in_process(struct lab *lab);
/* Namespaces and switches with tables; part of run, and all of up. */
int lab_run_fabric(struct lab *lab);
/* Undoes everything that exists, in whatever state. */
void lab_run_undo(struct lab *lab);

/* A line that is written over, on a terminal; nothing elsewhere. NULL erases it. */
void lab_progress(const struct lab *lab, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The plans' lines, before the run. */
void lab_report_plans(const struct lab *lab);
/* After the run: links, summary, JSON. Returns the exit status that the results deserve. */
int lab_report(struct lab *lab);

#endif

/*
 * The lab: a fabric of any topology file in network namespaces, with real switches and one process
 * for each host and job. Single-threaded; children are processes. Files:
 * - lab.c: the command;
 * - options.c: the command line;
 * - plan.c: plans and tables;
 * - state.c: what must be undone;
 * - net.c: namespaces and cables; outside.c: a second network for users' programs;
 * - process.c: child processes;
 * - switch.c, host.c, controller.c: the children of each kind;
 * - run.c: the sequence of a run;
 * - report.c: the output;
 * - ways.h: a lab without plans, in which TCP takes the paths of a schedule: series.c reads the
 *   schedule and runs it, routes.c makes the network, wire.c limits the rates of its links.
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
#include "control/cli/lowering.h"
#include "control/plan/plan.h"
#include "control/service/controller/session.h"
#include "control/tables/lower.h"
#include "offload/wire/types.h"

#define LAB_JOBS_MAX  8u
#define LAB_RANKS_MAX 512u /* processes of a job */
#define LAB_EACH_MAX  64u  /* processes of a job on one host */
/* Most switches that run another program than banyan-switchd (count). */
#define LAB_PROGRAMS_MAX 64u
#define LAB_PATH         512u
/* Special values: for a job, the controller and the wires; for a node, this program's own
 * namespace. */
#define LAB_CONTROLLER UINT32_MAX
#define LAB_WIRES      (UINT32_MAX - 1)
#define LAB_NODE_NONE  UINT32_MAX
/* Timeout for a switch to become ready, and for a control call (milliseconds). */
#define LAB_READY_MS 180000u
#define LAB_CALL_MS  10000u

struct lab_options {
    const char *verb; /* up, run or down */
    const char *topology;
    const char *site;
    const char *ranks;  /* NULL: all compute nodes */
    const char *shares; /* file of unequal shards, for plans and calls; NULL: equal */
    uint32_t count_count;
    const char *counts; /* parts of each rank, for calls only; NULL: those of `shares` */
    bool collective[BY_COLLECTIVE_COUNT];
    const char *collectives; /* as on the command line, for banyan-perf */
    const char *bytes, *dtype, *op, *data, *transport, *driver;
    uint32_t cores;                          /* workers of each switch; 0: one */
    uint64_t size;                           /* `bytes` as a number */
    unsigned mode;                           /* enum by_mode */
    const char *loss, *dup, *reorder, *seed; /* NULL: no fault injection */
    const char *report;
    /* the user's program for the hosts, with its arguments; NULL: banyan-perf */
    char *const *command;
    const char *ranks_each; /* processes on each host, "2" or "3,1,2,2"; NULL: one */
    uint32_t ranks_each_count, ranks_each_sum;
    const char *kill_node; /* a node that is killed during the run, or NULL */
    double kill_seconds;
    const char *kill_file; /* the switch is killed when this file exists; NULL: after kill_seconds */
    /* NODE=PROGRAM: the program of that switch instead of banyan-switchd */
    const char *program[LAB_PROGRAMS_MAX];
    uint32_t program_count;
    uint32_t iterations, warmup, root, jobs;
    uint32_t stall_s; /* timeout of an operation without progress */
    uint32_t limit_s; /* time limit for the whole run of the hosts */
    struct by_lower_options lower;
    struct by_cli_keys keys;
    bool cut;           /* links carry frames of at most the MTU; GSO batches are cut (--segments cut) */
    bool controller;    /* a banyand loads and maintains the tables */
    const char *series; /* file of a periodic schedule, whose paths are routes; NULL: plans and tables */
    uint64_t rate;      /* of a link of bandwidth 1 (bytes per second); 0: no limit */
    bool in_process, json, keep, quiet, all;
    const char *id; /* argument of `lab down` */
};

/* A child: a switch, a host's process of one job, the controller, or the wires. */
struct lab_process {
    pid_t pid; /* 0: not started */
    uint32_t node;
    uint32_t local;    /* number among the processes of its host and job */
    uint32_t job;      /* 0: a switch; or LAB_CONTROLLER or LAB_WIRES */
    int out;           /* its stdout, or -1 */
    bool ready, ended; /* ready: a switch has, or the wires have, reported that they are ready */
    bool expected;     /* the lab ended it */
    int status;        /* as from waitpid, if `ended` */
    char line[512];    /* incomplete line of its stdout */
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
    int64_t *shares; /* from --shares, by node; or NULL */
    char *counts;    /* parts of each rank for banyan-perf, "3,1,0,2"; or NULL */
    struct by_lowering *lowering;
    uint32_t plan_count;
    struct lab_plan plans[BY_COLLECTIVE_COUNT];
    char id[32];
    char folder[LAB_PATH];
    bool has_folder, detached;
    char controller[LAB_PATH + 96]; /* address of banyand: unix:PATH */
    char programs[LAB_PATH];        /* folder of banyan-switchd and banyan-perf */
    char (*ns)[80];                 /* namespace of each node, or "" */
    char outside[80];               /* that of the second network, or "" */
    char wires[80];                 /* that of the wires, or "" */
    struct lab_series *series;      /* of --series, or NULL */
    uint32_t process_count;
    struct lab_process *processes;
    by_CountersReply **before, **after; /* counters of each switch, by node; NULL if not available */
    json_t *reports[LAB_JOBS_MAX];      /* for each job an array by rank (in process: of one element) */
    char error[1024];                   /* why hosts failed, or "" */
    double seconds;                     /* duration of the hosts' run */
    double switch_seconds;              /* processor time of all switches during the run */
    double kernel_seconds; /* processor time of the kernel's interrupt threads (ksoftirqd) during the run */
};

/* Set by SIGINT, SIGTERM and SIGHUP. Every function that waits checks it and returns. */
extern volatile int lab_stopping;
/* Returns seconds of a monotonic clock. */
double lab_now(void);

/* Parses the verb and the options. Returns 0, -1 after --help, or BY_EXIT_USAGE. */
int lab_options_read(int argc, char **argv, struct lab_options *options);

/*
 * Plans, verifies and lowers; writes plan files and tables into the folder. Returns 0 or an exit
 * status.
 */
int lab_plan(struct lab *lab);
void lab_plan_free(struct lab *lab);

/*
 * Reads the schedule of --series, verifies it, gives each path an address and writes moves.json
 * into the folder. Returns 0 or an exit status.
 */
int lab_series_read(struct lab *lab);
void lab_series_free(struct lab *lab);
/* Whether the wires have ended during the run; then prints why. */
bool lab_wires_dead(struct lab *lab);

/* Creates the lab's folder with a state file, from which a later `down` can undo everything. */
int lab_state_open(struct lab *lab);
/*
 * Records what is about to be created: "ns NAME" or "process PID START NAME". Returns 0 or
 * BY_EXIT_ENVIRONMENT.
 */
int lab_state_note(struct lab *lab, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * Returns the start time of a process in clock ticks since boot, or 0 if there is no such process.
 * PID and start time together identify a process even if the PID is reused.
 */
unsigned long long lab_state_started(pid_t pid);
/* Removes the folder. */
void lab_state_close(struct lab *lab);
/*
 * Undoes labs whose owner process has ended, and with an id or `all` those that were left up.
 * Returns their number; with `quiet` prints nothing.
 */
int lab_state_sweep(const char *id, bool all, bool quiet);

/*
 * Creates namespaces, cables and addresses. Returns 0, or BY_EXIT_ENVIRONMENT after it printed an
 * error.
 */
int lab_net_up(struct lab *lab);
/* Creates the nodes' namespaces only. Returns as lab_net_up. */
int lab_net_namespaces(struct lab *lab);
void lab_net_delete(const char *ns);
/* Moves this process into a namespace. Returns 0, or -1 with errno. */
int lab_net_enter(const char *ns);
/* Calls `work`, which enters the namespace of `node`, in a child. Returns as lab_net_up. */
int lab_net_inside(const struct lab *lab, uint32_t node, int (*work)(const struct lab *lab, uint32_t node));
/* Writes a setting of the kernel, a file of /proc/sys, if the kernel has it. */
void lab_net_setting(const char *path, const char *value);
/* Sets an offload of an interface; `fd` is a socket in its namespace, `command` an ETHTOOL_S*. */
void lab_net_offload(int fd, const char *interface, uint32_t command, bool on);
/* Passes `batch` to `ip -batch -`, or `ip -6 -batch -`, in namespace `ns` or the current one.
 * Returns as lab_net_up. */
int lab_net_ip(const char *ns, bool ipv6, const char *batch, size_t bytes);
/* Joins the hosts by a second network. Returns as lab_net_up; lab_net_down removes it. */
int lab_outside_up(struct lab *lab);
#define LAB_OUTSIDE_VARIABLES 8u
/* Writes RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and the interface
 * on it, for process `local` of a host. Returns the number of variables. */
uint32_t lab_outside_environment(const struct lab *lab, uint32_t node, uint32_t local, uint32_t job,
                                 char texts[LAB_OUTSIDE_VARIABLES][48], char *environment[]);
/* Returns the processes of a job on the compute node `node`. */
uint32_t lab_ranks_on(const struct lab *lab, uint32_t node);
/* Refuses --ranks-per-host with numbers for more or fewer hosts than the topology has. Returns 0 or
 * BY_EXIT_USAGE. */
int lab_ranks_check(const struct lab *lab);
/* Writes the name of a cable's interface at a node; where the link has a VLAN, the interface that
 * the site names is that of the VLAN. */
void lab_net_cable(const struct lab *lab, uint32_t link, uint32_t node, char name[16]);
void lab_net_down(struct lab *lab);

/* Finds the folder of the other programs. Returns 0 or BY_EXIT_ENVIRONMENT. */
int lab_process_find(struct lab *lab);
/*
 * Starts `argv[0]` in a node's namespace: a path, a program of banyan, or one of PATH. stderr goes
 * to `log`, or with stdout if that is NULL; stdout goes to a pipe or to `log`. `environment` is a
 * NULL-terminated array of NAME=VALUE, or NULL. Returns NULL after it printed an error.
 */
struct lab_process *lab_process_start(struct lab *lab, uint32_t node, uint32_t job, char *const *argv,
                                      char *const *environment, const char *log, bool pipe_out);
/*
 * Starts a copy of this process in its own namespace, which ends with the status that `call`
 * returns. Its stdout goes to a pipe. Returns NULL after it printed an error.
 */
struct lab_process *lab_process_fork(struct lab *lab, uint32_t job, const char *name, const char *log,
                                     int (*call)(struct lab *));
/*
 * Waits up to `ms` for output and ends of children, and handles both. `line` receives the lines of
 * stdout; it may be NULL.
 */
void lab_process_poll(struct lab *lab, int ms,
                      void (*line)(struct lab *, struct lab_process *, const char *));
/*
 * Ends all processes of job `job` (0: switches): with SIGTERM, and with SIGKILL after `grace_ms`.
 */
void lab_process_stop(struct lab *lab, uint32_t job, uint32_t grace_ms);
/*
 * Return the processor time so far in seconds: of the processes of a job (0: switches), and of the
 * kernel's interrupt threads.
 */
double lab_process_seconds(const struct lab *lab, uint32_t job);
double lab_process_kernel_seconds(void);
/* Writes "exit status 3" or "signal 9", and returns `text`. */
const char *lab_process_end(const struct lab_process *process, char text[32]);

/* Whether the process is a host of a job: neither a switch nor the controller nor the wires. */
static inline bool lab_is_host(const struct lab_process *process)
{
    return process->job != 0 && process->job != LAB_CONTROLLER && process->job != LAB_WIRES;
}
/* Returns a node's name. */
static inline const char *lab_name(const struct lab *lab, uint32_t node)
{
    return lab->topology->nodes[node].name;
}
static inline bool lab_has_faults(const struct lab_options *options)
{
    return options->loss != NULL || options->dup != NULL || options->reorder != NULL;
}
/*
 * Returns the hosts' transport. With several jobs, auto means UDP: two processes cannot share an
 * interface's AF_XDP queue.
 */
static inline const char *lab_transport(const struct lab_options *options)
{
    return options->jobs > 1 && strcmp(options->transport, "auto") == 0 ? "udp" : options->transport;
}
/* Whether hosts share memory with their switches. */
static inline bool lab_has_shm(const struct lab_options *options)
{
    return strcmp(options->transport, "shm") == 0;
}
/* Whether nodes pass GSO batches to their links, which carry them whole or cut them into frames. */
static inline bool lab_has_gso(const struct lab_options *options)
{
    if (strcmp(options->driver, "auto") != 0)
        return strcmp(options->driver, "gso") == 0 || strcmp(options->driver, "ring") == 0;
    return strcmp(lab_transport(options), "udp") == 0;
}

/* Returns the driver of the switches' ports. */
static inline const char *lab_driver(const struct lab_options *options)
{
    if (strcmp(options->driver, "auto") != 0 || !lab_has_gso(options))
        return options->driver;
    return options->cut ? "ring" : "gso";
}

/* Writes the control address of a switch. */
void lab_switch_address(const struct lab *lab, uint32_t node, char address[LAB_PATH + 64]);
/* Starts a switch. Returns NULL after it printed an error. */
struct lab_process *lab_switch_start(struct lab *lab, uint32_t node);
/* Waits until all switches are ready and have a carrier at every port. */
int lab_switch_await(struct lab *lab);
int lab_switch_push(struct lab *lab);
/* Returns the first switch that ended unexpectedly, or NULL. */
struct lab_process *lab_switch_dead(struct lab *lab);
/* Prints `what` a switch did and the last line of its log; returns BY_EXIT_ENVIRONMENT. */
int lab_switch_fail(const struct lab *lab, const struct lab_process *process, const char *what);
/*
 * Reads the counters of all running switches, by node. The caller frees each element and the array.
 */
by_CountersReply **lab_switch_counters(struct lab *lab);

/*
 * Starts banyand and waits until it has created all jobs. Returns 0, or BY_EXIT_ENVIRONMENT after
 * it printed an error.
 */
int lab_controller_up(struct lab *lab);
/* Prints `what` happened to banyand and the last line of its log; returns BY_EXIT_ENVIRONMENT. */
int lab_controller_fail(struct lab *lab, const char *what);

/*
 * Start hosts: one process of a job, or all hosts of a job in one process. Return NULL after they
 * printed an error.
 */
struct lab_process *lab_host_start(struct lab *lab, uint32_t node, uint32_t local, uint32_t job);
struct lab_process *lab_host_start_all(struct lab *lab, uint32_t job);
/* Watches the hosts until all have ended or must be stopped. */
void lab_host_watch(struct lab *lab);
/*
 * Ends the remaining hosts and prints why hosts failed. Returns BY_EXIT_ENVIRONMENT if one failed,
 * else 0.
 */
int lab_host_end(struct lab *lab);
void lab_host_reports(struct lab *lab);
/* Reads the last non-empty line of a log, for error messages. */
void lab_last_line(const char *path, char *text, size_t bytes);

/* Runs a lab whose plans are made. Returns an exit status. */
int lab_run_namespaces(struct lab *lab);
int lab_run_in_process(struct lab *lab);
/* The same with --series. */
int lab_run_series(struct lab *lab);
/* Creates the namespaces and starts switches with tables: a part of `run`, and all of `up`. */
int lab_run_fabric(struct lab *lab);
/* Undoes everything that exists, in any state of the lab. */
void lab_run_undo(struct lab *lab);

/*
 * Prints a status line that the next one overwrites, if the output is a terminal; otherwise
 * nothing. NULL erases it.
 */
void lab_progress(const struct lab *lab, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the lines about the plans, before the run. */
void lab_report_plans(const struct lab *lab);
/* Prints links, summary and JSON after the run. Returns the exit status for the results. */
int lab_report(struct lab *lab);

#endif

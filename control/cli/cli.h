/* The banyan command: one file for each subcommand, one table in main.c. */
#ifndef BY_CLI_CLI_H
#define BY_CLI_CLI_H

#include "control/fabric/topology.h"
#include "offload/linux/output.h"

/* Exit statuses, as in banyan(1). */
enum by_exit { BY_EXIT_DONE = 0, BY_EXIT_NO = 1, BY_EXIT_USAGE = 2, BY_EXIT_ENVIRONMENT = 3 };

/* A subcommand: argv[0] is its own name ("plan"). Returns an enum by_exit. Parses its options with
 * getopt_long after optind = 0. */
typedef int by_command_fn(int argc, char **argv);

by_command_fn by_command_topo, by_command_plan, by_command_verify, by_command_tables, by_command_push,
    by_command_show, by_command_diff, by_command_lab, by_command_plot, by_command_info, by_command_compare,
    by_command_export, by_command_circulant, by_command_sim, by_command_keys, by_command_bound,
    by_command_steady, by_command_explain, by_command_doctor, by_command_top, by_command_job;

/* Prints `banyan: file:line:col: text` (or without line and column when line is 0) to stderr;
 * returns BY_EXIT_USAGE. */
int by_cli_refuse(const char *file, const struct by_problem *problem);
/* The same for what the planner refused with `error`: BY_EXIT_ENVIRONMENT where its time limit
 * passed. */
int by_cli_refuse_work(const char *file, int error, const struct by_problem *problem);
/* Prints `banyan: <formatted>` to stderr; returns `status`. */
int by_cli_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Opens `path` ("-": standard output) for writing; false after an error was printed. */
bool by_cli_create(struct by_output *output, const char *path);
/* Closes it: BY_EXIT_DONE, or BY_EXIT_ENVIRONMENT after an error was printed, when `right` is false
 * or the file could not be written; then a file that had the name before is as it was. */
int by_cli_finish(struct by_output *output, bool right);
/* Reads a topology, or says why not. NULL after an error was printed. */
struct by_topology *by_cli_topology(const char *path);

/* Becomes the program beside this one; argv[0] is what its errors begin with. Returns
 * BY_EXIT_ENVIRONMENT, said aloud, if that fails. */
int by_cli_become(const char *program, char *const argv[]);

/* The ending of a noun that is counted. */
static inline const char *by_plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

#endif

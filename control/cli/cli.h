/*
 * Shared declarations of the banyan command. Each subcommand has its own file; main.c has the table
 * of subcommands.
 */
#ifndef BY_CLI_CLI_H
#define BY_CLI_CLI_H

#include "control/fabric/topology.h"
#include "offload/linux/options.h"
#include "offload/linux/output.h"

/* Exit statuses (banyan(1)). */
enum by_exit { BY_EXIT_DONE = 0, BY_EXIT_NO = 1, BY_EXIT_USAGE = 2, BY_EXIT_ENVIRONMENT = 3 };

/*
 * A subcommand: argv[0] is its name ("plan"). Reads its options from a table
 * (offload/linux/options.h). Returns an enum by_exit.
 */
typedef int by_command_fn(int argc, char **argv);

by_command_fn by_command_topo, by_command_plan, by_command_verify, by_command_tables, by_command_push,
    by_command_show, by_command_diff, by_command_lab, by_command_plot, by_command_info, by_command_compare,
    by_command_export, by_command_circulant, by_command_sim, by_command_keys, by_command_bound,
    by_command_steady, by_command_explain, by_command_doctor, by_command_top, by_command_job,
    by_command_discover;

/*
 * Prints `banyan: file:line:col: text` (without line and column if line is 0) to stderr; returns
 * BY_EXIT_USAGE.
 */
int by_cli_refuse(const char *file, const struct by_problem *problem);
/*
 * Prints the planner's error in the same form; returns BY_EXIT_ENVIRONMENT if its time limit
 * passed, else BY_EXIT_USAGE.
 */
int by_cli_refuse_work(const char *file, int error, const struct by_problem *problem);
/* Prints `banyan: <formatted>` to stderr; returns `status`. */
int by_cli_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Opens `path` ("-": standard output) for writing. Returns false after it printed an error. */
bool by_cli_create(struct by_output *output, const char *path);
/*
 * Closes the output. If `right` is false or writing failed, it discards the output, so an existing
 * file of that name stays unchanged. Returns BY_EXIT_DONE, or BY_EXIT_ENVIRONMENT after it printed
 * an error.
 */
int by_cli_finish(struct by_output *output, bool right);
/* Reads a topology. Returns NULL after it printed an error. */
struct by_topology *by_cli_topology(const char *path);
/* Reads a topology and, unless `site` is NULL, the file of a site for it. Returns NULL after it
 * printed an error. */
struct by_topology *by_cli_topology_site(const char *path, const char *site);

/* From now on, the first SIGINT or SIGTERM ends all searches with their results so far
 * (by_plan_late); the second one ends the program. */
void by_cli_end_by_signal(void);

/*
 * Replaces this process by a program in the same directory; argv[0] is the prefix of its error
 * messages. Returns only on failure: BY_EXIT_ENVIRONMENT after it printed an error.
 */
int by_cli_become(const char *program, char *const argv[]);

/* Returns the plural ending of a noun for this count. */
static inline const char *by_plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

#endif

/* `banyan plan --protect`: what remains after each single failure, and what backup trees cost. One
 * thread for each call. */
#ifndef BY_CLI_PLAN_PROTECT_H
#define BY_CLI_PLAN_PROTECT_H

#include <stdio.h>

#include "control/planner/replan/protect.h"
#include "control/tables/runs.h"
#include "offload/linux/options.h"

struct by_cli_protect {
    struct by_protect_request request; /* neither links nor switches: --protect was not given */
    const char *folder;                /* --backups: NULL: none */
    struct by_protect *result;
    struct by_runs runs; /* of all trees together on tables */
};

/* Read the values of --protect and --protect-part. */
int by_cli_protect_read(struct by_cli_protect *protect, const char *text, struct by_option_why *why);
int by_cli_protect_read_part(struct by_cli_protect *protect, const char *text, struct by_option_why *why);
/*
 * Finds a set of trees for each failure, verifies each on the fabric that remains, and writes them
 * to the folder. `file` is the topology's name in messages. Returns -1 to continue, else the exit
 * status.
 */
int by_cli_protect(struct by_cli_protect *protect, const char *file, const struct by_topology *topology,
                   const struct by_plan_options *options, const struct by_plan *plan);
void by_cli_protect_end(struct by_cli_protect *protect);
/* Print the result: as lines, and as a JSON member followed by a comma. They print nothing without
 * a result. `runs`: of the plan alone. */
void by_cli_protect_people(FILE *stream, const struct by_cli_protect *protect, const struct by_runs *runs);
void by_cli_protect_json(FILE *stream, const struct by_cli_protect *protect);

#endif

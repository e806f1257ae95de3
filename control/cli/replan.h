/* `banyan plan --from`: adapts a previous plan to failures. Single-threaded. */
#ifndef BY_CLI_REPLAN_H
#define BY_CLI_REPLAN_H

#include <stdio.h>

#include "control/planner/replan/replan.h"

#define BY_CLI_LOST_MAX 64u

struct by_cli_from {
    const char *plan;  /* file of the previous plan; NULL: --from was not given */
    const char *write; /* file for the remaining fabric; NULL: none */
    uint32_t link_count, node_count;
    const char *links[BY_CLI_LOST_MAX]; /* "A,B" */
    const char *nodes[BY_CLI_LOST_MAX];
};

/*
 * Makes `*plan` from the previous one, and replaces `*topology` by the fabric that remains. Returns
 * -1 to continue, else the exit status.
 */
int by_cli_replan(const struct by_cli_from *from, const char *path, unsigned collective, bool in_network,
                  double time_limit_s, struct by_topology **topology, struct by_plan **plan,
                  struct by_replan_report *report);
/*
 * Print what changed: as text, and as a JSON member followed by a comma. They print nothing if
 * `from` has no plan.
 */
void by_cli_replan_people(FILE *stream, const struct by_cli_from *from,
                          const struct by_replan_report *report);
void by_cli_replan_json(FILE *stream, const struct by_cli_from *from, const struct by_replan_report *report);

#endif

/* `banyan plan --from`: planning again from a previous plan. Single-threaded. */
#ifndef BY_CLI_REPLAN_H
#define BY_CLI_REPLAN_H

#include <stdio.h>

#include "control/planner/replan/replan.h"

#define BY_CLI_LOST_MAX 64u

struct by_cli_from {
    const char *plan;  /* the previous plan's file; NULL when nothing is planned again */
    const char *write; /* where to write the fabric without what is lost; NULL for nowhere */
    uint32_t link_count, node_count;
    const char *links[BY_CLI_LOST_MAX]; /* "A,B" */
    const char *nodes[BY_CLI_LOST_MAX];
};

/*
 * Makes `*plan` from the previous one. `*topology` is replaced by the fabric without what is lost.
 * -1 to go on, else the exit status.
 */
int by_cli_replan(const struct by_cli_from *from, const char *path, unsigned collective, bool in_network,
                  struct by_topology **topology, struct by_plan **plan, struct by_replan_report *report);
/* What changed, for people, and as a member of a JSON object with a comma behind it. Nothing when
 * `from` has no plan. */
void by_cli_replan_people(FILE *stream, const struct by_cli_from *from,
                          const struct by_replan_report *report);
void by_cli_replan_json(FILE *stream, const struct by_cli_from *from, const struct by_replan_report *report);

#endif

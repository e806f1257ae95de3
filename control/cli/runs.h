/* Prints whether a plan can run on tables. One thread for each call. */
#ifndef BY_CLI_RUNS_H
#define BY_CLI_RUNS_H

#include <stdio.h>

#include "control/tables/runs.h"

/* The text after "runs on tables: " of `plan` and `verify`, without a line end. */
void by_cli_runs_people(FILE *stream, const struct by_runs *runs);
/* Why schedules of messages (banyan-series(5)) do not run on tables. */
#define BY_CLI_ROUTES_RUN_NOT                                                                                \
    "a table has no routes for single receivers; hosts execute it, from `banyan export --format hosts`"
/* "runs": {...}, without a comma before or after. */
void by_cli_runs_json(FILE *stream, const struct by_runs *runs);

#endif

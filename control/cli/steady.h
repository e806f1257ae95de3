/*
 * Prints the results of `banyan steady`, as text and as JSON. Neighbour: steady.c. Single-threaded.
 */
#ifndef BY_CLI_STEADY_H
#define BY_CLI_STEADY_H

#include "control/study/series/run.h"
#include "control/study/series/series.h"
#include "control/verify/series.h"

struct by_cli_steady {
    const struct by_topology *topology;
    const struct by_series *series;
    struct by_series_verdict verdict;
    bool has_run; /* the schedule was executed */
    struct by_series_report run;
    bool fixed; /* a period was given */
    mpq_t loss; /* fixed: largest possible loss of throughput */
    double seconds;
};

void by_cli_steady_people(const struct by_cli_steady *result, FILE *out);
void by_cli_steady_json(const struct by_cli_steady *result, FILE *out);

#endif

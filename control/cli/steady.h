/* What `banyan steady` tells, for people and as JSON. Neighbour: steady.c. Single-threaded. */
#ifndef BY_CLI_STEADY_H
#define BY_CLI_STEADY_H

#include "control/study/series/run.h"
#include "control/study/series/series.h"
#include "control/verify/series.h"

struct by_cli_steady {
    const struct by_topology *topology;
    const struct by_series *series;
    struct by_series_verdict verdict;
    bool has_run; /* whether it was executed */
    struct by_series_report run;
    bool fixed; /* in a given period */
    mpq_t loss; /* then: what it may lose at most */
    double seconds;
};

void by_cli_steady_people(const struct by_cli_steady *result, FILE *out);
void by_cli_steady_json(const struct by_cli_steady *result, FILE *out);

#endif

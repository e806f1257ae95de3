/* The output of banyan-perf: the table, JSON, and the report file of each rank. One thread. */
#ifndef BY_PERF_REPORT_H
#define BY_PERF_REPORT_H

#include <stdio.h>

#include "host-driver/tools/perf/run.h"

struct perf_results {
    struct perf_result *result;
    uint32_t count, capacity;
    const char *error; /* NULL, or the reason why the run ended early */
};

/* Print the table's heading, one result, and the trailer. */
void perf_print_heading(const struct perf_world *world, const struct perf_options *options);
void perf_print_result(const struct perf_result *result);
void perf_print_trailer(const struct perf_results *results);
/* Prints one JSON object for rank `rank`: its results and, with `counters`, the counters of ports,
 * endpoint, engine and cables. */
void perf_print_json(FILE *stream, const struct perf_world *world, const struct perf_rank *rank,
                     const struct perf_results *results, bool counters);
/* Prints all BANYAN_* settings, as text or as JSON. PERF_USAGE if they cannot be read, with an
 * error on stderr. */
enum perf_exit perf_print_settings(bool json);
/* Prints a JSON string. */
void perf_print_text(FILE *stream, const char *text);
/* Returns the sum of wrong elements over all results. */
uint64_t perf_wrong(const struct perf_results *results);

#endif

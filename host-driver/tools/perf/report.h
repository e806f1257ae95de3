/* What banyan-perf prints: the table, JSON for programs, and the report file of each rank. One
 * thread. */
#ifndef BY_PERF_REPORT_H
#define BY_PERF_REPORT_H

#include <stdio.h>

#include "host-driver/tools/perf/run.h"

struct perf_results {
    struct perf_result *result;
    uint32_t count, capacity;
    const char *error; /* NULL, or why the run ended early */
};

/* The table's heading, a line for a result, the trailer. */
void perf_print_heading(const struct perf_world *world, const struct perf_options *options);
void perf_print_result(const struct perf_result *result);
void perf_print_trailer(const struct perf_results *results);
/* One JSON object of the rank `rank`: results, and with `counters` those of ports, endpoint, engine
 * and cables too. */
void perf_print_json(FILE *stream, const struct perf_world *world, const struct perf_rank *rank,
                     const struct perf_results *results, bool counters);
/* All BANYAN_* settings, for people or as JSON. PERF_USAGE when they cannot be read, reported. */
enum perf_exit perf_print_settings(bool json);
/* A JSON string. */
void perf_print_text(FILE *stream, const char *text);
/* Sum of wrong elements over all results. */
uint64_t perf_wrong(const struct perf_results *results);

#endif

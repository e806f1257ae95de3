/* Predicts the path of operations without sending anything. One thread. */
#ifndef BY_PERF_EXPLAIN_H
#define BY_PERF_EXPLAIN_H

#include "host-driver/tools/perf/options.h"

/* Prints the prediction for every operation that the options select, as text or as JSON. Errors go
 * to stderr. */
enum perf_exit perf_explain(const struct perf_options *options);

#endif

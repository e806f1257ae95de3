/* What operations would do, without a word to the network. One thread. */
#ifndef BY_PERF_EXPLAIN_H
#define BY_PERF_EXPLAIN_H

#include "host-driver/tools/perf/options.h"

/* Says so of every operation that the options name, for people or as JSON. What fails is on stderr.
 */
enum perf_exit perf_explain(const struct perf_options *options);

#endif

/* The options of banyan-perf. Read once, constant afterwards. */
#ifndef BY_PERF_OPTIONS_H
#define BY_PERF_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "offload/wire/types.h"
#include <banyan/banyan.h>

struct perf_options {
    bool collective[BY_COLLECTIVE_COUNT];
    bool op[BY_OP_COUNT]; /* [0]: "all" was given, so pairs that are not defined are skipped; so of types */
    bool dtype[BY_DTYPE_COUNT];
    double optimum[BY_COLLECTIVE_COUNT]; /* GB/s of algbw; 0 = not known */
    uint64_t bytes_min, bytes_max;
    uint64_t step_factor; /* > 1, or 0: step_bytes */
    uint64_t step_bytes;
    uint32_t iterations, warmup;
    uint32_t root;
    /* element offsets of the ranks' shares in allgather and reduce-scatter: rank r has
     * [offsets[r], offsets[r + 1]); NULL: equal shares */
    uint64_t *offsets;
    uint32_t share_count; /* number of ranks in `offsets` */
    bool blocking;        /* -z 1: each operation ends before the next is posted */
    /* floats of any fraction, checked with an error bound, instead of values that are exact in
     * any order */
    bool random_data;
    bool unchecked; /* results are not checked */
    bool json;
    bool settings;            /* print the settings and exit */
    bool explain;             /* print the predicted path of each operation and exit */
    double alpha_us, beta_ns; /* cost of a message between hosts, and of each byte; 0: unknown */
    uint32_t job;
    const char *report;
    const char *folder; /* --in-process */
    const char *table;
    const char *transport;
    const char *mode;                                  /* NULL: BANYAN_MODE */
    const char *loss, *dup, *reorder, *seed, *timeout; /* settings given as options, or NULL */
};

/* Exit codes of the program. */
enum perf_exit { PERF_RIGHT = 0, PERF_WRONG = 1, PERF_USAGE = 2, PERF_ENVIRONMENT = 3 };

/* Reads the command line. Returns -1 to continue, else the exit status. */
int perf_options_read(struct perf_options *options, int argc, char **argv);

/* Whether each listed operator and each listed type has a defined pair in `mode`; prints an error
 * if not. */
bool perf_options_defined(const struct perf_options *options, banyan_mode_t mode);

/* Returns the size after `bytes`. */
uint64_t perf_next_size(const struct perf_options *options, uint64_t bytes);
/* Frees the memory of the options. */
void perf_options_free(struct perf_options *options);

#endif

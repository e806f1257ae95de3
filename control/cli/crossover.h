/*
 * Which of several algorithms is the fastest for which size of data, by a latency-bandwidth model
 * (Hockney 1994): time = hops x latency + size / rate. Exact fractions. One thread for each table.
 */
#ifndef BY_CLI_CROSSOVER_H
#define BY_CLI_CROSSOVER_H

#include "control/base/fraction.h"

/* An algorithm. */
struct by_crossover_line {
    const char *name;
    uint64_t hops; /* one after the other before the last data arrive */
    struct by_fraction rate;
};

/* The fastest algorithm from a size on, up to that of the next one. */
struct by_crossover {
    uint32_t line;
    struct by_fraction from; /* in units of rate x latency */
};

/*
 * Writes the fastest lines in the order of sizes, the first from 0 on, into `found` (room for
 * `count`). Returns their number, or BY_ERANGE if a size exceeds 63 bits. Equal ones: the first.
 */
int by_crossovers(const struct by_crossover_line *lines, uint32_t count, struct by_crossover *found);

#endif

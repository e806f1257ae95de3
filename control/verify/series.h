/*
 * An independent check of periodic schedules: it shares only the struct and the file reader with
 * the code that makes them (control/study/steady). It computes costs from the topology, follows
 * every lane separately, adds up slots and processors, and recomputes the upper bound from the
 * prices of the file. All arithmetic is rational. Each call runs in one thread.
 */
#ifndef BY_VERIFY_SERIES_H
#define BY_VERIFY_SERIES_H

#include "control/study/series/series.h"
#include "control/verify/verify.h"

struct by_series_verdict {
    enum by_verdict verdict; /* OPTIMAL: no schedule at all, periodic or not, has more throughput */
    struct by_verify_number throughput; /* operations per unit of time */
    struct by_verify_number bound;      /* upper bound, by the prices */
    struct by_verify_number ratio;      /* throughput / bound */
    uint32_t lane_count, slot_count;
    char reason[400]; /* INVALID: the first violation */
};

void by_series_check(const struct by_series *series, const struct by_topology *topology,
                     struct by_series_verdict *verdict);

#endif

/*
 * An independent check of periodic schedules: it shares nothing with what makes them
 * (control/study/steady) but the struct and the reader of the file. Costs come from the topology,
 * every lane is followed by itself, slots and processors are added up, and what no schedule exceeds
 * is computed anew from the prices of the file. All in rationals. One thread for each call.
 */
#ifndef BY_VERIFY_SERIES_H
#define BY_VERIFY_SERIES_H

#include "control/study/series/series.h"
#include "control/verify/verify.h"

struct by_series_verdict {
    enum by_verdict verdict; /* OPTIMAL: no schedule at all, periodic or not, has more throughput */
    struct by_verify_number throughput; /* operations in a unit of time */
    struct by_verify_number bound;      /* by the prices */
    struct by_verify_number ratio;      /* throughput / bound */
    uint32_t lane_count, slot_count;
    char reason[400]; /* INVALID: the first violation */
};

void by_series_check(const struct by_series *series, const struct by_topology *topology,
                     struct by_series_verdict *verdict);

#endif

/*
 * Executes a periodic schedule from start to end (LMR sections 3.4 and 4.5), in three phases:
 * - initialisation: most tasks have no input yet;
 * - steady state: every period is alike;
 * - clean-up: no operation begins any more, and those in progress are completed.
 *
 * One thread for each call.
 */
#ifndef BY_STUDY_SERIES_RUN_H
#define BY_STUDY_SERIES_RUN_H

#include "control/study/series/series.h"

/* Most periods that one run executes. */
#define BY_SERIES_PERIODS_MAX 1000000u

struct by_series_report {
    uint32_t periods;       /* executed */
    uint32_t start_periods; /* up to the first complete operation, including its period */
    uint32_t full_periods;  /* periods in which every task worked */
    uint32_t clean_periods; /* after the last operation began */
    mpz_t operations;       /* complete at the end of the run */
    mpz_t waiting;          /* most messages that waited at a node between two periods */
    mpq_t throughput;       /* operations divided by the whole time */
    mpq_t ratio;            /* relative to the schedule's throughput; LMR: at least 1 - stages / periods */
};

void by_series_report_init(struct by_series_report *report);
void by_series_report_clear(struct by_series_report *report);
/*
 * Executes `periods` periods.
 *
 * At the start of a period each task checks whether its inputs arrived in earlier periods. If so,
 * it works in its slots; otherwise it is idle for this period. Returns 0, or BY_EINVAL with
 * `problem` filled if the schedule cannot be executed:
 * - a link does not exist;
 * - two links use one port at the same time;
 * - the work does not fit into the period;
 * - no task produces an input of a task.
 */
int by_series_run(const struct by_series *series, const struct by_topology *topology, uint32_t periods,
                  struct by_series_report *report, struct by_problem *problem);

#endif

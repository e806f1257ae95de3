/*
 * Executes a periodic schedule from rest to rest (LMR sections 3.4 and 4.5): at first most tasks
 * have nothing to work on (initialisation), then every period is alike, at last no operation begins
 * any more and what is on its way is finished (clean-up). One thread for each call.
 */
#ifndef BY_STUDY_SERIES_RUN_H
#define BY_STUDY_SERIES_RUN_H

#include "control/study/series/series.h"

/* Periods that one run executes at most. */
#define BY_SERIES_PERIODS_MAX 1000000u

struct by_series_report {
    uint32_t periods;       /* executed */
    uint32_t start_periods; /* until an operation is complete for the first time, that period included */
    uint32_t full_periods;  /* in which every task worked */
    uint32_t clean_periods; /* after the last operation began */
    mpz_t operations;       /* complete at the end */
    mpz_t waiting;          /* the most messages that waited at a node between two periods */
    mpq_t throughput;       /* operations over the whole time */
    mpq_t ratio;            /* to the schedule's throughput; LMR: at least 1 - stages / periods */
};

void by_series_report_init(struct by_series_report *report);
void by_series_report_clear(struct by_series_report *report);
/*
 * Runs `periods` periods. At the start of a period each task looks whether what it needs for the
 * period has arrived in earlier ones; if so it works, in the slots that it has, else it rests. 0;
 * BY_EINVAL with `problem` filled when the schedule cannot be executed: a link that does not exist,
 * two links at one port at a time, work that does not fit the period, a task whose input nothing
 * brings.
 */
int by_series_run(const struct by_series *series, const struct by_topology *topology, uint32_t periods,
                  struct by_series_report *report, struct by_problem *problem);

#endif

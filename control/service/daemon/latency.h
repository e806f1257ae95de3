/* Durations and bytes of operations, as the ranks of a job report them, for the metrics. Each
 * report counts from the start of a process; the totals of the job survive the processes. The
 * loop's thread. */
#ifndef BY_SERVICE_DAEMON_LATENCY_H
#define BY_SERVICE_DAEMON_LATENCY_H

#include "control/service/daemon/daemon.h"
#include "offload/wire/latency.h"

/* Takes a report (BY_EVENT_MEASURED): BY_LATENCY_ALL_BYTES of `data`. */
void by_latency_take(struct by_daemon *daemon, const struct by_daemon_event *event);
/* Returns the total of a collective; NULL before the first report. */
const struct by_latency *by_latency_of(const struct by_job *job, uint32_t collective);
/* Ends a period of measurement: what was reported since the last call is now recent. */
void by_latency_step(struct by_job *job);
/* Returns the recent operations of a collective; NULL before the first report. */
const struct by_latency *by_latency_recent(const struct by_job *job, uint32_t collective);
/*
 * Returns how close the job's recent operations came to the proven optimum, in permille: the time
 * that they would take at the optimum, over the time that they took. UINT16_MAX without such
 * operations.
 */
uint16_t by_latency_permille(const struct by_job *job);
/* Returns the proven optimum of a collective of the job in bytes per second; with several roots,
 * the lowest. 0: unknown. */
uint64_t by_latency_optimum(const struct by_job *job, uint32_t collective);
void by_latency_free(struct by_job_latency *latency);

#endif

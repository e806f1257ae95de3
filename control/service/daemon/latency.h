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
void by_latency_free(struct by_job_latency *latency);

#endif

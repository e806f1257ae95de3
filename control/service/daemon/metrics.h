/* The state of the daemon as Prometheus text (GET /metrics). docs/operate.md explains the metrics.
 * The loop's thread. */
#ifndef BY_SERVICE_DAEMON_METRICS_H
#define BY_SERVICE_DAEMON_METRICS_H

#include <stdio.h>

#include "control/service/daemon/daemon.h"

/* Writes metrics in base units: seconds, bytes, counts. */
void by_metrics_write(struct by_daemon *daemon, FILE *stream);

#endif

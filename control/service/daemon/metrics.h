/* The state of the daemon as Prometheus text (GET /metrics). docs/operate.md explains the metrics.
 * The loop's thread. */
#ifndef BY_SERVICE_DAEMON_METRICS_H
#define BY_SERVICE_DAEMON_METRICS_H

#include <stdio.h>

#include "control/service/daemon/daemon.h"

/* The content type of the text. */
#define BY_METRICS_TYPE "text/plain; version=0.0.4"

/* Writes metrics in base units: seconds, bytes, counts. */
void by_metrics_write(struct by_daemon *daemon, FILE *stream);
/* Writes those of a follower: that it is one, of which leader ("": none is known), and whether the
 * store answered the last look. Any thread. */
void by_metrics_follower(const char *leader, bool store_answers, FILE *stream);

#endif

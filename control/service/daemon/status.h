/* The state of the daemon, as JSON for programs (GET /v1/status) and as Prometheus text (GET
 * /metrics). The loop's thread. */
#ifndef BY_SERVICE_DAEMON_STATUS_H
#define BY_SERVICE_DAEMON_STATUS_H

#include <jansson.h>
#include <stdio.h>

#include "control/service/daemon/daemon.h"

/* Returns the whole state; the caller owns the reference. docs/man/banyand.1 lists the members. */
json_t *by_status_json(struct by_daemon *daemon);
/* Returns one job, as in its member "jobs". */
json_t *by_status_job(struct by_daemon *daemon, const struct by_job *job);
/* Writes metrics in base units: seconds, bytes, counts. */
void by_status_metrics(struct by_daemon *daemon, FILE *stream);

#endif

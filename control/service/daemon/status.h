/* The state of the daemon as JSON for programs (GET /v1/status), and parts of it for the metrics.
 * The loop's thread. */
#ifndef BY_SERVICE_DAEMON_STATUS_H
#define BY_SERVICE_DAEMON_STATUS_H

#include <jansson.h>

#include "control/service/daemon/daemon.h"

/* Returns the whole state; the caller owns the reference. docs/man/banyand.1 lists the members. */
json_t *by_status_json(struct by_daemon *daemon);
/* Returns a text of another program as JSON. A message may have been cut inside a UTF-8 character,
 * which JSON cannot contain: then every byte of other characters than ASCII becomes '?'. */
json_t *by_status_text(const char *text);
/* Returns one job, as in its member "jobs". */
json_t *by_status_job(struct by_daemon *daemon, const struct by_job *job);
/* Returns an object with collective and root of a job's operation, and sets *plan: the job's, or
 * NULL if it has none yet. */
json_t *by_status_want(const struct by_daemon *daemon, const struct by_job *job, uint32_t index,
                       const struct by_plan **plan);
/* Returns the bytes per second that a link carries from one of its ends; -1 if the unit of the
 * topology does not define them, or without a link (UINT32_MAX). */
double by_status_capacity(const struct by_topology *topology, uint32_t link, uint32_t from);
/* Returns the slots and entries that jobs hold at a node. */
struct by_lower_need by_status_held(const struct by_daemon *daemon, uint32_t node);
/* Returns the entries that wait at a switch: job, tree, chunk, and the nodes that they wait for. */
json_t *by_status_waits(const struct by_daemon *daemon, const struct by_daemon_switch *device);
/* Returns the number of entries that wait under the switch's table. */
uint32_t by_status_waiting(const struct by_daemon_switch *device);

#endif

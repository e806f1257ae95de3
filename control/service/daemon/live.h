/*
 * What the live page draws, as JSON: the fabric with the positions of its nodes (GET /v1/fabric),
 * its present state (GET /v1/live), and the last hour (GET /v1/history). Every user of the machine
 * may read these, so they contain no keys, nonces, election ids or hashes of tables. Nodes
 * and links are numbered by their order in the topology, as in arrays of all answers. Neighbours:
 * http.c serves them; status.c is for programs. The loop's thread.
 */
#ifndef BY_SERVICE_DAEMON_LIVE_H
#define BY_SERVICE_DAEMON_LIVE_H

#include <jansson.h>

#include "control/service/daemon/daemon.h"

/* Maximum number of lines of news, of missing ranks of a job, and of waiting trees in the state
 * (count). The history has all lines that are kept. */
#define BY_LIVE_NEWS_MAX    32u
#define BY_LIVE_MISSING_MAX 16u
#define BY_LIVE_WAITS_MAX   32u

/* Return an object that the caller owns, or NULL without memory. docs/man/banyand.1 lists the
 * members. */
json_t *by_live_fabric(const struct by_daemon *daemon);
json_t *by_live_state(const struct by_daemon *daemon);
json_t *by_live_history(const struct by_daemon *daemon);
/* Returns the last hour of one link; NULL if there is no such link or its loads are not kept. */
json_t *by_live_history_link(const struct by_daemon *daemon, uint32_t link);

#endif

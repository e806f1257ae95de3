/*
 * The paths of a job through the fabric: which parts its trees use, and whether it has others.
 * Neighbours: recovery.c and switches.c decide by them whether a silent part has failed. The loop's
 * thread.
 */
#ifndef BY_SERVICE_DAEMON_PATHS_H
#define BY_SERVICE_DAEMON_PATHS_H

#include "control/service/daemon/daemon.h"

/* Whether the trees of the job use the node or link. False for a job without tables. */
bool by_paths_use(const struct by_daemon *daemon, const struct by_job *job, bool is_link, uint32_t what);
/* Whether all ranks of the job are connected without the node and without what is lost. */
bool by_paths_without(const struct by_daemon *daemon, const struct by_job *job, uint32_t node);
/* Whether jobs use the node and none of them has a path without it. */
bool by_paths_need(const struct by_daemon *daemon, uint32_t node);

#endif

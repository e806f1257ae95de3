/*
 * Plans for failures that have not happened. While the fabric is whole and nothing else is to do, a
 * separate process of low priority plans each running job for each single switch and link
 * that its trees use. When such a part fails, the plan of the job is there (ahead_plans.h): it is
 * verified, lowered and pushed (changes.c). The process ends when a change begins, and goes on
 * afterwards with what is missing. The loop's thread.
 */
#ifndef BY_SERVICE_DAEMON_AHEAD_H
#define BY_SERVICE_DAEMON_AHEAD_H

#include "control/service/daemon/ahead_plans.h"
#include "control/service/daemon/daemon.h"

/* The texts of all plans of all jobs (bytes); no more are made beyond it. */
#define BY_AHEAD_BYTES_MAX ((size_t)64 << 20)

/* Starts the process if there is something to plan. Called at each heartbeat. */
void by_ahead_tick(struct by_daemon *daemon);
/* Kills the process, if it runs, without waiting for it. Its complete plans stay. */
void by_ahead_stop(struct by_daemon *daemon);
/* The same at the end of the daemon; waits for the process. */
void by_ahead_close(struct by_daemon *daemon);

#endif

/*
 * Jobs that hosts create for communicators: each is for some of the hosts of another job, and ends
 * when no host is connected for it any more. Neighbours: members.c takes the requests, jobs.c makes
 * and ends the jobs. The loop's thread.
 */
#ifndef BY_SERVICE_DAEMON_GROUPS_H
#define BY_SERVICE_DAEMON_GROUPS_H

#include "control/service/daemon/jobs.h"

/* Default limit of such jobs at the same time (count). */
#define BY_GROUPS_DEFAULT 64u
/* Time without a host after which such a job ends (milliseconds): longer than a host needs to
 * connect again. If no host has connected since banyand started, hosts may be computing, and
 * connect in their next call: their job ends after a day, or after SPARE if a request for a job is
 * refused, perhaps for want of what it holds. */
#define BY_GROUPS_LONE_MS   2000u
#define BY_GROUPS_SPARE_MS  120000u
#define BY_GROUPS_UNSEEN_MS 86400000u

/*
 * Requests a job for the ranks of job `parent` in `ranks`, a set of `bytes` bytes as in GROUP
 * (offload/wire/member.h), by the host at `node`. The reply comes when its tables are active, or
 * with the reason against it; it may come before the call returns.
 */
void by_groups_create(struct by_daemon *daemon, uint16_t parent, uint32_t node, const uint8_t *ranks,
                      uint32_t bytes, by_jobs_reply_fn *reply, void *context);
/* Such a request was refused: the next tick ends jobs that no host has used since the start, if
 * SPARE is over. */
void by_groups_refused(struct by_daemon *daemon);
/* The last host has left such a job regularly: ends the job. Ignores other jobs. */
void by_groups_left(struct by_daemon *daemon, uint16_t job);
/* Ends the jobs that no host has used for a while, after by_members_tick. */
void by_groups_tick(struct by_daemon *daemon);

#endif

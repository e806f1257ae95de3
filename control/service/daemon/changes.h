/* What banyand does with a change of the tables (change.h). The loop's thread; planning and pushing
 * run on the worker. */
#ifndef BY_SERVICE_DAEMON_CHANGES_H
#define BY_SERVICE_DAEMON_CHANGES_H

#include "control/service/daemon/daemon.h"

/* A change that keeps all jobs that have tables and have not failed, on what is lost now. */
struct by_change *by_change_new(struct by_daemon *daemon);
/* Has a job planned anew, of the generation after its last. It is added when the change lacks it.
 */
void by_change_touch(struct by_change *change, struct by_job *job, bool repair);
/* Leaves a job out: it ends. */
void by_change_leave(struct by_change *change, const struct by_job *job);
/* The entry of a job, or NULL. */
struct by_change_job *by_change_find(const struct by_change *change, uint16_t job);

/* Plans, on the worker; then `planned` on the loop's thread: change->error is 0 or says why nothing
 * can be pushed; jobs have errors of their own. */
void by_change_plan(struct by_daemon *daemon, struct by_change *change, by_change_fn *planned);
/* Pushes to the switches that are up and whose table is another, on the worker; then `pushed`. */
void by_change_push(struct by_daemon *daemon, struct by_change *change, by_change_fn *pushed);
/* Makes the tables those of the jobs and switches, and frees those before. After a push without
 * error. */
void by_change_adopt(struct by_daemon *daemon, struct by_change *change);
/* With all that was not adopted. */
void by_change_free(struct by_change *change);

#endif

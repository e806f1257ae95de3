/* Operations on a change of the tables (change.h). The loop's thread; planning and pushing run on
 * the worker. */
#ifndef BY_SERVICE_DAEMON_CHANGES_H
#define BY_SERVICE_DAEMON_CHANGES_H

#include "control/service/daemon/daemon.h"

/* Makes a change that keeps all jobs that have tables and have not failed, and avoids the parts
 * that are lost now. */
struct by_change *by_change_new(struct by_daemon *daemon);
/* Plans a job again, with the generation after its last. Adds the job if the change lacks it. */
void by_change_touch(struct by_change *change, struct by_job *job, bool repair);
/* Chooses at most `count` standbys for the tables of a job, with this generation and the next. */
void by_change_stand(struct by_change *change, const struct by_job *job, uint16_t gen, uint32_t count);
/* Copies the parts that plans must avoid: those that are lost, and blackholes that are not trusted
 * yet. The caller frees it. */
void by_change_loss(const struct by_daemon *daemon, struct by_fabric_loss *loss);
/* Removes a job, which ends. */
void by_change_leave(struct by_change *change, const struct by_job *job);
/* Returns the entry of a job, or NULL. */
struct by_change_job *by_change_find(const struct by_change *change, uint16_t job);

/* Plans on the worker, then calls `planned` on the loop's thread. change->error is 0, or the reason
 * why nothing can be pushed; jobs have their own errors. */
void by_change_plan(struct by_daemon *daemon, struct by_change *change, by_change_fn *planned);
/* Pushes, on the worker, to switches that are up and have another table; then calls `pushed`. */
void by_change_push(struct by_daemon *daemon, struct by_change *change, by_change_fn *pushed);
/* Whether the push goes to the switch. */
bool by_change_has_target(const struct by_change *change, uint32_t node);
/* Ends a push that is under way, because a switch to which it goes is down: it fails soon, and
 * `settled` is false. */
void by_change_stop(struct by_change *change);
/* Ends the plans that a change of another module waits for, because recovery needs its room: its
 * jobs get BY_EABORTED. Does nothing during a push. */
void by_change_yield(struct by_change *change);
/* Moves the new tables to jobs and switches and frees the old ones. Call it after a push without
 * error. */
void by_change_adopt(struct by_daemon *daemon, struct by_change *change);
/* Frees the change and everything that was not adopted. */
void by_change_free(struct by_change *change);

#endif

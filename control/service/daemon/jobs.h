/*
 * Creation and end of jobs. Requests are queued, since only one change can be under way. A request
 * is answered when the tables are active on all switches, or with an error text. The loop's thread.
 */
#ifndef BY_SERVICE_DAEMON_JOBS_H
#define BY_SERVICE_DAEMON_JOBS_H

#include "control/service/daemon/daemon.h"

/* Maximum number of queued requests (count): more than a program that splits into as many groups as
 * it may, and ends them, makes. */
#define BY_JOBS_REQUESTS_MAX 256u

/* Reports the result of a request: `error` 0 and the job (NULL when it has ended), or `text`. */
typedef void by_jobs_reply_fn(struct by_daemon *daemon, void *context, int error, const struct by_job *job,
                              const char *text);

/* Queue a request. by_jobs_create takes over spec->member; a spec with job 0 gets the lowest free
 * number. The reply may come before the call returns. */
void by_jobs_create(struct by_daemon *daemon, struct by_job_spec *spec, by_jobs_reply_fn *reply,
                    void *context);
void by_jobs_end(struct by_daemon *daemon, uint16_t job, by_jobs_reply_fn *reply, void *context);
/* Returns the job of that number, or NULL. */
struct by_job *by_jobs_find(struct by_daemon *daemon, uint16_t job);
/* Returns the number of jobs of communicators, requested ones included. */
uint32_t by_jobs_groups(const struct by_daemon *daemon);
/* Adds a job in order of numbers; removes and frees a job. */
void by_jobs_insert(struct by_daemon *daemon, struct by_job *job);
void by_jobs_remove(struct by_daemon *daemon, struct by_job *job);

/* Starts the next work unless a change is under way: the next request, else a push to switches that
 * have the wrong table, as after a push that failed half-way. */
void by_jobs_step(struct by_daemon *daemon);
struct by_jobs *by_jobs_open(void);
void by_jobs_close(struct by_daemon *daemon);

#endif

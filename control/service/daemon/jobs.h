/*
 * Making and ending jobs: requests wait for their turn, since one change is on its way at a time,
 * and are answered when the tables are active on all switches, or with the text of why not. The
 * loop's thread.
 */
#ifndef BY_SERVICE_DAEMON_JOBS_H
#define BY_SERVICE_DAEMON_JOBS_H

#include "control/service/daemon/daemon.h"

/* Requests that wait (count). */
#define BY_JOBS_REQUESTS_MAX 32u

/* How a request came out: `error` 0 and the job (NULL when it has ended), or `text`. */
typedef void by_jobs_reply_fn(struct by_daemon *daemon, void *context, int error, const struct by_job *job,
                              const char *text);

/* Takes over spec->member. A spec whose job is 0 gets the lowest free number. The reply may come
 * before this returns. */
void by_jobs_create(struct by_daemon *daemon, struct by_job_spec *spec, by_jobs_reply_fn *reply,
                    void *context);
void by_jobs_end(struct by_daemon *daemon, uint16_t job, by_jobs_reply_fn *reply, void *context);
/* The job of that number, or NULL. */
struct by_job *by_jobs_find(struct by_daemon *daemon, uint16_t job);
/* Adds a job in its place, takes one out and frees it. */
void by_jobs_insert(struct by_daemon *daemon, struct by_job *job);
void by_jobs_remove(struct by_daemon *daemon, struct by_job *job);

/* Looks for something to do when no change is on its way: the next request; else switches whose
 * table is not what it shall be, as after a push that failed half-way. */
void by_jobs_step(struct by_daemon *daemon);
struct by_jobs *by_jobs_open(void);
void by_jobs_close(struct by_daemon *daemon);

#endif

/*
 * Work in a separate, forked process. It ends at a time limit or together with banyand, even in an
 * endless loop, and its crashes and its memory do not affect banyand. Neighbours: fabric.c makes
 * plans in it. The worker's thread.
 */
#ifndef BY_SERVICE_DAEMON_APART_H
#define BY_SERVICE_DAEMON_APART_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "control/fabric/topology.h"

struct by_apart {
    uint32_t limit_ms; /* after that it is killed */
    int stop_fd;       /* it is killed as soon as this is readable; -1: never */
    int yield_fd;      /* the same, because other work precedes it; 0: never */
};

/* The work: writes its result to `out`. Returns 0, or a negative BY_E* with `problem`. */
typedef int by_apart_fn(void *context, FILE *out, struct by_problem *problem);

/*
 * Runs `run(context)` in a copy of this process. *bytes is its output; the caller frees it. All its
 * other changes are lost. Returns 0, the error of `run`, BY_ETIMEDOUT (the limit), BY_EABORTED
 * (`stop_fd`), or BY_EIO (fork failed, or the process crashed) with `problem`; the caller adds the
 * purpose to its text.
 */
int by_apart_run(const struct by_apart *apart, by_apart_fn *run, void *context, char **bytes, size_t *size,
                 struct by_problem *problem);

/* Writes results to `out` one after the other. Returns 0, or a negative BY_E*. */
typedef int by_apart_stream_fn(void *context, FILE *out);

/*
 * Starts `run(context)` in a copy of this process, at a low priority, and does not wait: *fd
 * reads what it writes, without blocking, until it ends. The caller closes *fd and waits for
 * *child, which exits with 0 if `run` returned 0. The process ends with the calling thread. Returns
 * 0, or BY_EIO with `problem`.
 */
int by_apart_start(by_apart_stream_fn *run, void *context, pid_t *child, int *fd, struct by_problem *problem);

#endif

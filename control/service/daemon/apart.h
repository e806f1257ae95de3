/*
 * Work in a process of its own, forked for it: it ends by a time limit or when banyand ends,
 * whatever it does then, and its faults and its memory are not banyand's. Neighbours: fabric.c has
 * plans made so. The worker's thread.
 */
#ifndef BY_SERVICE_DAEMON_APART_H
#define BY_SERVICE_DAEMON_APART_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "control/fabric/topology.h"

struct by_apart {
    uint32_t limit_ms; /* after that it is ended */
    int stop_fd;       /* it is ended as soon as this is readable; -1: nothing ends it earlier */
};

/* The work: writes its result to `out`. 0, or a negative BY_E* with `problem`. */
typedef int by_apart_fn(void *context, FILE *out, struct by_problem *problem);

/*
 * Runs `run(context)` in a copy of this process; *bytes, the caller's to free, is what it has
 * written. What else it changes is lost. 0, or what `run` returned; BY_ETIMEDOUT (the limit),
 * BY_EABORTED (`stop_fd`), or BY_EIO (no process, or it has died) with `problem`, whose text the
 * caller completes by what was to be done.
 */
int by_apart_run(const struct by_apart *apart, by_apart_fn *run, void *context, char **bytes, size_t *size,
                 struct by_problem *problem);

#endif

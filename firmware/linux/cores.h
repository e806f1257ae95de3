/* The cores of banyan-switchd: --cores and --workers, and those that this process may use. Start-up
 * only. */
#ifndef BY_FIRMWARE_LINUX_CORES_H
#define BY_FIRMWARE_LINUX_CORES_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "offload/wire/stripe.h"

struct by_switchd_cores {
    unsigned workers;
    bool pinned;             /* worker i runs on cpu[i] only; else on any core of this process */
    int cpu[BY_WORKERS_MAX]; /* valid if pinned */
};

/*
 * Chooses the workers from --cores (a number, a list such as 2-5,8, or NULL: all but one) and
 * --workers (0: one for each core). `may` are the cores of this process. 0, or BY_EINVAL or
 * BY_ELIMIT, reported.
 */
int by_switchd_cores_choose(struct by_switchd_cores *cores, const char *text, uint32_t workers,
                            const cpu_set_t *may);

#endif

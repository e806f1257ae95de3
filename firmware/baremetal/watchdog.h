/*
 * Detects a hung loop. A timer's interrupt, the only one that is ever taken, checks several times
 * within the limit whether the loop has called by_watchdog_beat. If it has not during all that
 * time, the image reports where it hangs and resets the machine. Checks are counted instead of
 * time, so that a machine that was stopped as a whole (by a debugger, or an emulator without
 * processor time) is not mistaken for a hung one.
 */
#ifndef BY_BAREMETAL_WATCHDOG_H
#define BY_BAREMETAL_WATCHDOG_H

#include <stdint.h>

/* Starts the checks: more than `limit_ms` without a beat count as a hang; 0: no checks. */
void by_watchdog_open(uint64_t limit_ms);
/* Signals that the loop runs. */
void by_watchdog_beat(void);

/* Called by start.S when the interrupt arrives while `at` runs, called from `link`. */
void by_watchdog_look(uint64_t at, uint64_t link);

#endif

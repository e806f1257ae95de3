/*
 * Who notices that the loop stands still: a timer's interrupt, the only one that is ever taken,
 * looks several times within the limit whether the loop has beaten. Where it has not, all that
 * time, the image says where it stands and has the machine reset. Looks are counted and not time,
 * so that a machine that was stopped as a whole (a debugger, an emulator that got no processor) is
 * not taken for one that hangs.
 */
#ifndef BY_BAREMETAL_WATCHDOG_H
#define BY_BAREMETAL_WATCHDOG_H

#include <stdint.h>

/* Begins to look: `limit_ms` without a beat are too long; 0: never looks. */
void by_watchdog_open(uint64_t limit_ms);
/* The loop turns. */
void by_watchdog_beat(void);

/* start.S: an interrupt came while `at` ran, called from `link`. */
void by_watchdog_look(uint64_t at, uint64_t link);

#endif

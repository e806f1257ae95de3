/*
 * Who notices that the loop stands still: a timer's interrupt, the only one that is ever taken, looks several
 * times within the limit whether the loop has beaten. Where it has not, all that time, the image says where
 * it stands and has the machine reset. Looks are counted and not time, so that a machine that was stopped as
 * a whole (a debugger, an emulator that got no processor) is not taken for one that hangs.
 */
#ifndef BY_BAREMETAL_WATCHDOG_H
#define BY_BAREMETAL_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

/* The end of RAM that is no part of the memory plan (bytes): a note for the next life. */
#define BY_WATCHDOG_NOTE_BYTES 64u

/* What the last life left behind when the watchdog ended it. */
struct by_watchdog_end {
    uint64_t at; /* where the loop stood */
    uint64_t limit_ms;
};

/* Whether the watchdog ended the life before this one; told once. Before by_watchdog_open. */
bool by_watchdog_ended(struct by_watchdog_end *end);
/* Begins to look: `limit_ms` without a beat are too long; 0: never looks. `is_at_el2`: the machine started
 * there (reset.h). */
void by_watchdog_open(uint64_t limit_ms, bool is_at_el2);
/* The loop turns. */
void by_watchdog_beat(void);
/* Before a sleep: every interrupt ends it, and none is taken. */
void by_watchdog_pause(void);
/* After it: acknowledges what is pending, when the devices that raised it have been quieted, and looks on. */
void by_watchdog_resume(void);

/* start.S: an interrupt came while `at` ran, called from `link`. */
void by_watchdog_look(uint64_t at, uint64_t link);

#endif

/*
 * The end of a life that cannot go on: a note for the next one, and the machine starts anew. Not at
 * full speed: each life that ends so soon after the one before waits longer before it lets the next
 * one begin.
 */
#ifndef BY_BAREMETAL_RESET_H
#define BY_BAREMETAL_RESET_H

#include <stdbool.h>

#include "firmware/baremetal/note.h"

/* First of all: a life begins. `is_at_el2`: the machine started at EL2. Returns whether the last
 * life left a note, and the note. */
bool by_reset_open(bool is_at_el2, struct by_note *last);
/* A life that cannot go on halts instead (setting halt), so that somebody can look at it. */
void by_reset_halt_instead(void);
/* Counts this end, leaves the note (`ends` is filled in here), says what comes unless the log is
 * what failed
 * (`is_said` false), waits, and asks the firmware
 * for a reset (PSCI 1.1, section 5.11: SYSTEM_RESET, by SMC where the machine started at EL2, else
 * by HVC); where there is none, or it does not do it, halts. */
_Noreturn void by_reset_after(struct by_note *note, bool is_said);
/* At once: for who cannot even wait. */
_Noreturn void by_reset(void);
/* No more: the processor sleeps for good. */
_Noreturn void by_reset_halt(void);

#endif

/*
 * Ends a boot that cannot continue: writes a note for the next boot and resets the machine. To
 * limit the rate of resets, the wait before the next boot grows with each boot that ends soon after
 * its start.
 */
#ifndef BY_BAREMETAL_RESET_H
#define BY_BAREMETAL_RESET_H

#include <stdbool.h>

#include "firmware/baremetal/note.h"

/* Records the start of a boot; call it first. `is_at_el2`: the machine started at EL2. Returns
 * whether the previous boot left a note, and the note. */
bool by_reset_open(bool is_at_el2, struct by_note *last);
/* Makes a boot that cannot continue halt instead (setting halt), for inspection. */
void by_reset_halt_instead(void);
/* Counts this end, writes the note (filling in `ends`), logs what follows unless the log itself
 * failed (`is_said` false), waits, and requests a reset from the firmware (PSCI 1.1, section 5.11:
 * SYSTEM_RESET, by SMC where the machine started at EL2, else by HVC). Halts if there is no
 * firmware or the reset fails. */
_Noreturn void by_reset_after(struct by_note *note, bool is_said);
/* Resets at once, for callers that cannot wait. */
_Noreturn void by_reset(void);
/* Halts: the processor sleeps for ever. */
_Noreturn void by_reset_halt(void);

#endif

/* The end of an image that cannot go on: what happened, on the log; then rest, or a reset. */
#ifndef BY_BAREMETAL_FAULT_H
#define BY_BAREMETAL_FAULT_H

#include <stdint.h>

/* What start.S saves: its layout is known there. */
struct by_fault_frame {
    uint64_t x[31];
    uint64_t sp;
};

/* Reports exception `vector` (0-15) with all registers, and has the machine reset (reset.h). */
_Noreturn void by_fault(const struct by_fault_frame *frame, uint64_t vector);
/* Reports that the switch cannot start, and halts; or, when it runs, that it cannot go on, and has
 * the machine reset. */
_Noreturn void by_fault_say(const char *text);
/* The switch has started. */
void by_fault_running(void);
/* Makes a fault of the given kind on purpose, so that a test sees what comes of it: "null", "code",
 * "stack", "assert" and "say" are reported, "twice" cannot be, "hang" stands still for the
 * watchdog. Halts on any other kind. */
_Noreturn void by_fault_provoke(const char *kind);

#endif

/* The end of an image that cannot continue: a report on the log, then a halt or a reset. */
#ifndef BY_BAREMETAL_FAULT_H
#define BY_BAREMETAL_FAULT_H

#include <stdint.h>

/* The registers that start.S saves, which depends on this layout. */
struct by_fault_frame {
    uint64_t x[31];
    uint64_t sp;
};

/* Reports exception `vector` (0-15) with all registers, and resets the machine (reset.h). */
_Noreturn void by_fault(const struct by_fault_frame *frame, uint64_t vector);
/* Reports that the switch cannot start, and halts. Once the switch runs, reports that it cannot
 * continue, and resets the machine. */
_Noreturn void by_fault_say(const char *text);
/* Records that the switch has started. */
void by_fault_running(void);
/* Causes a fault of the given kind, for tests: "null", "code", "stack", "assert" and "say" are
 * reported, "twice" cannot be, "hang" loops until the watchdog acts. Halts on any other kind. */
_Noreturn void by_fault_provoke(const char *kind);

#endif

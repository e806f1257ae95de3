/* The end of an image that cannot go on: what happened, on the log, and rest. */
#ifndef BY_BAREMETAL_FAULT_H
#define BY_BAREMETAL_FAULT_H

#include <stdint.h>

/* What start.S saves: its layout is known there. */
struct by_fault_frame {
    uint64_t x[31];
    uint64_t sp;
};

/* Reports exception `vector` (0-15) with all registers, and halts. */
_Noreturn void by_fault(const struct by_fault_frame *frame, uint64_t vector);
/* Reports that the switch cannot start or go on, and halts. */
_Noreturn void by_fault_say(const char *text);
/* Makes a fault of the given kind on purpose, so that a test sees it reported: "null", "code", "stack" or
 * "assert"; returns when it knows no such kind. */
void by_fault_provoke(const char *kind);
/* Stands still on purpose, so that a test sees the watchdog end it. */
_Noreturn void by_fault_hang(void);

#endif

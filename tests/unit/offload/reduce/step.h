/*
 * Runs a function one instruction at a time and lets the caller change memory between instructions.
 * Each method has its own file: step_ptrace.c (another process of this machine), step_remote.c (a
 * process that qemu emulates) and step_trap.c (this program itself, on a machine without an
 * operating system). The build selects one (STEPPER).
 */
#ifndef BY_TESTS_REDUCE_STEP_H
#define BY_TESTS_REDUCE_STEP_H

#include <stddef.h>

#define STEP_LIMIT (1u << 20) /* instructions of one run; far more than a kernel needs */

/* Returns zeroed memory shared by the caller and by `run`, which gets its address; NULL with errno
 * if stepping is not possible. `run` sees the caller's other memory as it is now. */
void *step_begin(size_t bytes, void (*run)(void *memory));
/* Calls run(memory) once, and change(memory) before each of its instructions. Returns the number of
 * instructions, including some before and after `run`; 0 if it reached STEP_LIMIT or ended. */
unsigned step_run(void (*change)(void *memory));
void step_end(void);

#endif

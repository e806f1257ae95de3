/*
 * Runs a function one instruction at a time and lets its caller change memory in between. Each way
 * to do so is a file: step_ptrace.c (another process of this machine), step_remote.c (a process
 * that qemu emulates) and step_trap.c (this very program, on a machine without an operating
 * system). The build takes one (STEPPER).
 */
#ifndef BY_TESTS_REDUCE_STEP_H
#define BY_TESTS_REDUCE_STEP_H

#include <stddef.h>

#define STEP_LIMIT (1u << 20) /* instructions of one run: far more than a kernel takes */

/* Returns zeroed memory that `run`, which gets its address, and the caller share; NULL with errno
 * where nothing can be stepped. `run` sees the caller's other memory as it is now. */
void *step_begin(size_t bytes, void (*run)(void *memory));
/* Calls run(memory) once, and change(memory) before each of its instructions. Returns the number of
 * instructions, which includes some before and after `run`; 0 if it reached STEP_LIMIT or ended. */
unsigned step_run(void (*change)(void *memory));
void step_end(void);

#endif

/*
 * The memory plan: what the image leaves of RAM, given out once at the start, for good, and then
 * closed. There is no malloc and no free.
 */
#ifndef BY_BAREMETAL_MEMORY_H
#define BY_BAREMETAL_MEMORY_H

#include <stddef.h>

void by_memory_open(void);
/* `bytes` of zeros for `what`, aligned to 64; halts with the numbers when they are not there. */
void *by_memory_take(const char *what, size_t bytes);
/* Bytes that are left. */
size_t by_memory_left(void);
/* Nothing can be taken from now on: a late take halts. Logs the plan. */
void by_memory_seal(void);

#endif

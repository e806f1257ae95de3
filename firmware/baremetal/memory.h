/*
 * The memory plan: the RAM that the image leaves free is allocated permanently at the start; then
 * the plan is closed. There is no malloc and no free.
 */
#ifndef BY_BAREMETAL_MEMORY_H
#define BY_BAREMETAL_MEMORY_H

#include <stddef.h>

void by_memory_open(void);
/* Allocates `bytes` zeroed bytes for `what`, aligned to 64; halts with the numbers when they are
 * not available. */
void *by_memory_take(const char *what, size_t bytes);
/* Returns the remaining bytes. */
size_t by_memory_left(void);
/* Closes and logs the plan: a later allocation halts. */
void by_memory_seal(void);

#endif

/* The part of <string.h> that the agent, nanopb and the compiler require, implemented in
 * firmware/baremetal/string.c. There is no C library. */
#ifndef BY_BAREMETAL_STRING_H
#define BY_BAREMETAL_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);

#endif

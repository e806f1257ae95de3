/*
 * Combines two partial results of a reduce. Each result is rounded once, as where it leaves a node
 * of a tree (offload/reduce/reduce.h). No state; any thread.
 */
#ifndef BY_HOST_SCHEDULE_COMBINE_H
#define BY_HOST_SCHEDULE_COMBINE_H

#include <stdint.h>

/* Bytes of `scratch`, aligned to 64. */
#define BY_COMBINE_BYTES 16384u

/* to = left op right, of `count` elements. `to` may be `left` or `right`. */
void by_combine(unsigned op, unsigned dtype, void *to, const void *left, const void *right, uint64_t count,
                void *scratch);

#endif

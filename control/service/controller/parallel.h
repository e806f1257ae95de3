/* Runs the same work for many objects in parallel, when each object mostly waits for input, such as
 * the switches of a push. Any thread. */
#ifndef BY_SERVICE_CONTROLLER_PARALLEL_H
#define BY_SERVICE_CONTROLLER_PARALLEL_H

#include <stdint.h>

/* Works on one object, `index` < count. Must not touch data of other indices. */
typedef void by_parallel_fn(void *context, uint32_t index);

/*
 * Calls `work` for each index below `count`, in at most `most` threads including the caller's, and
 * returns when all are done. If the system provides fewer threads, these do all the work. Only the
 * caller's thread receives signals.
 */
void by_parallel(uint32_t count, uint32_t most, by_parallel_fn *work, void *context);

#endif

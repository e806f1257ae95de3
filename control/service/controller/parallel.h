/*
 * The same work for many objects at a time, where each mostly waits for somebody else: switches of
 * a push. Any thread.
 */
#ifndef BY_SERVICE_CONTROLLER_PARALLEL_H
#define BY_SERVICE_CONTROLLER_PARALLEL_H

#include <stdint.h>

/* Of one object: `index` below the count. Must touch nothing that other indices do. */
typedef void by_parallel_fn(void *context, uint32_t index);

/*
 * Calls `work` for each index below `count`, in at most `most` threads of which one is the
 * caller's, and returns when all are done. Where the system gives fewer threads, fewer do it.
 * Signals stay with the caller.
 */
void by_parallel(uint32_t count, uint32_t most, by_parallel_fn *work, void *context);

#endif

/*
 * A machine for drivers of the bare-metal image: one arena of memory, which the processor sees
 * through a cache and devices see directly, and two virtio devices, a network port and a console.
 * Whenever a driver accesses a register, a barrier or a cache, random cache lines are written back
 * or read again, as a cache may do at any time. So if a driver fails to clean or drop a line, the
 * test sees wrong bytes. Single-threaded.
 */
#ifndef BY_TEST_BAREMETAL_MODEL_H
#define BY_TEST_BAREMETAL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_NET, MODEL_CONSOLE, MODEL_DEVICES };

/* Starts again. `is_coherent`: devices see the cache, and drivers need not clean or drop lines. */
void model_start(uint64_t seed, bool is_coherent);
/* Resets the machine: contents that are only in the cache are lost. */
void model_reset(void);
/* Return how often a driver has cleaned or dropped lines since then. */
unsigned model_cleans(void);
unsigned model_drops(void);

/* A device writes `bytes` into the next buffers of its queue. Returns false if there are none. */
bool model_give(unsigned device, unsigned queue, const uint8_t *data, size_t bytes);
/* A device takes the next chain of its queue. Returns its bytes, at most `room`; 0 if there is
 * none. */
size_t model_take(unsigned device, unsigned queue, uint8_t *data, size_t room);
/* Returns whether a device would raise an interrupt after its next operation on the queue. */
bool model_is_alerted(unsigned device, unsigned queue);

#endif

/*
 * A machine for drivers of the bare-metal image: one arena of memory, which the processor sees
 * through a cache and devices see as it is, and two virtio devices, a network port and a console.
 * Whenever a driver touches a register, a barrier or a cache, lines of the cache are at random
 * written back or read anew, as a cache may do at any time. So what a driver forgets to clean or to
 * drop is seen as wrong bytes. Single-threaded.
 */
#ifndef BY_TEST_BAREMETAL_MODEL_H
#define BY_TEST_BAREMETAL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_NET, MODEL_CONSOLE, MODEL_DEVICES };

/* Begins anew. `is_coherent`: devices see the cache, and nothing is asked of a driver. */
void model_start(uint64_t seed, bool is_coherent);
/* The machine is reset: what was in the cache alone is lost. */
void model_reset(void);
/* How often a driver cleaned or dropped something since then. */
unsigned model_cleans(void);
unsigned model_drops(void);

/* A device writes `bytes` into the next buffers that its queue offers; false when there are none.
 */
bool model_give(unsigned device, unsigned queue, const uint8_t *data, size_t bytes);
/* A device takes the next chain of its queue: its bytes, at most `room`; 0 when there is none. */
size_t model_take(unsigned device, unsigned queue, uint8_t *data, size_t room);
/* Whether a device would raise an interrupt when it has done something of the queue. */
bool model_is_alerted(unsigned device, unsigned queue);

#endif

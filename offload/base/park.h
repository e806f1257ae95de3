/*
 * Frames that wait until they are due, for shells that delay packets at the engine's request
 * (BY_TX_HOLD). A heap in the caller's memory. Pure; used by the thread of the loop.
 */
#ifndef BY_BASE_PARK_H
#define BY_BASE_PARK_H

#include <stdint.h>

/* A frame, in the shell's representation, and the port on which it was received. */
struct by_parked {
    uint64_t due_ns;
    uint64_t order; /* among frames with equal due time, the lowest order is first */
    void *frame;
    uint16_t port;
};

struct by_park {
    struct by_parked *at;
    uint32_t count, most;
    uint64_t next; /* order of the next frame */
};

static inline void by_park_open(struct by_park *park, struct by_parked *memory, uint32_t most)
{
    park->at = memory;
    park->count = 0;
    park->most = most;
    park->next = 0;
}

/* Adds a frame. Returns 1, or 0 when the heap is full; the frame then remains the caller's. */
int by_park_put(struct by_park *park, uint64_t due_ns, void *frame, uint16_t port);
/* Removes the next frame if it is due. Returns 1, else 0. */
int by_park_take(struct by_park *park, uint64_t now_ns, struct by_parked *out);

/* Returns the time when the next frame is due; UINT64_MAX when none waits. */
static inline uint64_t by_park_due(const struct by_park *park)
{
    return park->count > 0 ? park->at[0].due_ns : UINT64_MAX;
}

#endif

/*
 * Frames that wait until they are due, for shells that hold back what the engine says (BY_TX_HOLD):
 * a heap in the caller's memory. One thread, that of the loop; pure.
 */
#ifndef BY_BASE_PARK_H
#define BY_BASE_PARK_H

#include <stdint.h>

/* A frame, as its shell names it, and the port that it came from. */
struct by_parked {
    uint64_t due_ns;
    uint64_t order; /* of those with one due time the first comes first */
    void *frame;
    uint16_t port;
};

struct by_park {
    struct by_parked *at;
    uint32_t count, most;
    uint64_t next; /* order of the next one */
};

static inline void by_park_open(struct by_park *park, struct by_parked *memory, uint32_t most)
{
    park->at = memory;
    park->count = 0;
    park->most = most;
    park->next = 0;
}

/* 1, or 0: there is no more room, and the frame stays the caller's. */
int by_park_put(struct by_park *park, uint64_t due_ns, void *frame, uint16_t port);
/* Takes the next frame, if it is due: 1, else 0. */
int by_park_take(struct by_park *park, uint64_t now_ns, struct by_parked *out);

/* When the next one is due; UINT64_MAX: none waits. */
static inline uint64_t by_park_due(const struct by_park *park)
{
    return park->count > 0 ? park->at[0].due_ns : UINT64_MAX;
}

#endif

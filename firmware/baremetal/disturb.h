/* Fault injection at receive, for tests: carries out the verdicts of offload/base/fault.h on frame
 * buffers.
 */
#ifndef BY_BAREMETAL_DISTURB_H
#define BY_BAREMETAL_DISTURB_H

#include "firmware/baremetal/pool.h"
#include "offload/base/fault.h"

/* Frames held back at a time (count); a further one passes. */
#define BY_DISTURB_MAX 64u
/* Frames that overtake a held one: 1 to this (count). */
#define BY_DISTURB_DISTANCE 16u
/* A held frame goes on after this time even if no other comes (ns). */
#define BY_DISTURB_NS 1000000u

/* A frame and the port that it came from. */
struct by_disturbed {
    uint16_t buffer;
    uint16_t port;
    uint16_t distance; /* frames that have yet to overtake it */
    uint64_t due_ns;
};

struct by_disturb {
    struct by_fault fault;
    uint32_t count;
    struct by_disturbed held[BY_DISTURB_MAX];
};

/* Draws for one frame, and takes it; writes what goes on (0 to 3 frames) to `out`. */
uint32_t by_disturb_pass(struct by_disturb *disturb, struct by_pool *pool, uint64_t now_ns, uint16_t buffer,
                         uint16_t port, struct by_disturbed out[3], unsigned *verdict);
/* One held frame whose time is over: 1 and `out`, else 0. */
uint32_t by_disturb_due(struct by_disturb *disturb, uint64_t now_ns, struct by_disturbed *out);

#endif

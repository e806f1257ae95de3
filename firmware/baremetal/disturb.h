/* Fault injection at receive, for tests: applies the verdicts of offload/base/fault.h to frame
 * buffers. */
#ifndef BY_BAREMETAL_DISTURB_H
#define BY_BAREMETAL_DISTURB_H

#include "firmware/baremetal/pool.h"
#include "offload/base/fault.h"

/* Maximum frames held back (count); further ones pass. */
#define BY_DISTURB_MAX 64u
/* Maximum frames that overtake a held one (count): the number is 1 to this. */
#define BY_DISTURB_DISTANCE 16u
/* A held frame is passed on after this time even if no other arrives (ns). */
#define BY_DISTURB_NS 1000000u

/* A frame and the port on which it arrived. */
struct by_disturbed {
    uint16_t buffer;
    uint16_t port;
    uint16_t distance; /* frames that still have to overtake it */
    uint64_t due_ns;
};

struct by_disturb {
    struct by_fault fault;
    uint32_t count;
    struct by_disturbed held[BY_DISTURB_MAX];
};

/* Draws a verdict for one frame and takes ownership of it; writes the frames that pass now (0 to 3)
 * to `out`. */
uint32_t by_disturb_pass(struct by_disturb *disturb, struct by_pool *pool, uint64_t now_ns, uint16_t buffer,
                         uint16_t port, struct by_disturbed out[3], unsigned *verdict);
/* Passes on one held frame whose time is over: returns 1 and `out`, else 0. */
uint32_t by_disturb_due(struct by_disturb *disturb, uint64_t now_ns, struct by_disturbed *out);

#endif

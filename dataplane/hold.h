/*
 * Fault injection at receive: carries out the verdicts of offload/base/fault.h on frames. A frame
 * is dropped, doubled, or held back until a drawn number of later frames has overtaken it. One
 * thread: the loop's.
 */
#ifndef BY_DATAPLANE_HOLD_H
#define BY_DATAPLANE_HOLD_H

#include <stdint.h>

#include <rte_mbuf.h>

#include "offload/base/fault.h"

/* Frames held back at a time (count); a further one passes. */
#define BY_HOLD_MAX 64u
/* Later frames that overtake a held one: 1 to this (count). */
#define BY_HOLD_DISTANCE 16u
/* A held frame is passed on after this time even if no other comes (ns). */
#define BY_HOLD_NS 1000000u

/* A frame and the port that it came from. */
struct by_held {
    struct rte_mbuf *frame;
    uint16_t port;
    uint16_t distance; /* frames that have yet to overtake it */
    uint64_t due_ns;
};

struct by_hold {
    struct by_fault fault;
    uint32_t count;
    struct by_held held[BY_HOLD_MAX];
};

/*
 * Draws for one frame; writes what goes on (0 to 3 frames: the frame, its double, one that was
 * held) to `out`, and the verdict to `verdict` (enum by_fault_verdict) for counting. Takes the
 * frame.
 */
unsigned by_hold_pass(struct by_hold *hold, uint64_t now_ns, struct rte_mbuf *frame, uint16_t port,
                      struct by_held out[3], unsigned *verdict);
/* One held frame whose time is over: 1 and `out`, else 0. */
unsigned by_hold_due(struct by_hold *hold, uint64_t now_ns, struct by_held *out);
/* Frees everything held. */
void by_hold_clear(struct by_hold *hold);

#endif

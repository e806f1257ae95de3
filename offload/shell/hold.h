/*
 * Fault injection at receive: applies the decisions of offload/base/fault.h to frames. A frame is
 * dropped, duplicated, or held back until a random number of later frames has overtaken it. Frames
 * are in the platform's representation. Pure; one thread.
 */
#ifndef BY_SHELL_HOLD_H
#define BY_SHELL_HOLD_H

#include <stdint.h>

#include "offload/base/fault.h"

/* Maximum number of frames held back at a time; a further one passes. */
#define BY_HOLD_MAX 64u
/* Number of later frames that overtake a held one: 1 to this. */
#define BY_HOLD_DISTANCE 16u
/* A held frame is released after this time even if no other arrives (ns). */
#define BY_HOLD_NS 1000000u

/* A frame and its receiving port. */
struct by_held {
    void *frame;
    uint16_t port;
    uint16_t distance; /* frames that must still overtake it */
    uint64_t due_ns;
};

struct by_hold {
    struct by_fault fault;
    uint32_t count;
    struct by_held held[BY_HOLD_MAX];
};

/*
 * Decides for one frame. Writes the frames to process now (0 to 3: the frame, its duplicate, a held
 * one) to `out`, and returns their count. `verdict` receives the decision: after BY_FAULT_DROP the
 * caller frees the frame, after BY_FAULT_DUPLICATE it adds a reference to it.
 */
uint32_t by_hold_pass(struct by_hold *hold, uint64_t now_ns, void *frame, uint16_t port,
                      struct by_held out[3], enum by_fault_verdict *verdict);
/* Returns 1 and a held frame whose time is over, else 0. */
uint32_t by_hold_due(struct by_hold *hold, uint64_t now_ns, struct by_held *out);

#endif

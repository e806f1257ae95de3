/*
 * Finds classes of similar nodes by refinement colouring (Weisfeiler and Leman, 1968). The initial
 * colour of a node is its kind, capability, level and the first part of its name. Each round
 * separates nodes whose neighbours differ, bandwidths included. Regular fabrics converge after a
 * few rounds to a few classes; irregular ones split further and further, so the caller sets a
 * limit.
 *
 * Classes are compared by 64-bit hashes, so they are for drawing only. Single-threaded.
 */
#ifndef BY_VIEW_PLOT_CLASSES_H
#define BY_VIEW_PLOT_CLASSES_H

#include "control/view/plot/fabric.h"

struct by_classes {
    uint32_t *of; /* by node: its class; classes are numbered by their first node */
    uint32_t count;
    uint32_t rounds; /* rounds that were executed */
};

/*
 * Refines for up to `rounds_max` rounds, until nothing changes or there would be more than
 * `count_max` classes (round 0 may have more). `levels` is by node, from by_layout_levels. The
 * caller frees `of`.
 */
void by_classes_find(const struct by_fabric *fabric, const uint32_t *levels, uint32_t rounds_max,
                     uint32_t count_max, struct by_classes *classes);
/*
 * Returns the bytes of a name without its trailing digits: gpu17 -> 3; the whole name if it is only
 * digits.
 */
uint32_t by_stem_bytes(const char *name);

#endif

/*
 * Which nodes of a fabric are alike: refinement colouring (Weisfeiler and Leman, 1968). Nodes begin
 * with the colour of their kind, capability, level and the first part of their name; each round
 * tells nodes apart whose neighbours, bandwidths included, differ. Regular fabrics settle after a
 * few rounds in a handful of classes; irregular ones fall into more and more, so the caller says
 * when to stop. For drawing: classes are told apart by 64-bit hashes. Single-threaded.
 */
#ifndef BY_VIEW_PLOT_CLASSES_H
#define BY_VIEW_PLOT_CLASSES_H

#include "control/view/plot/fabric.h"

struct by_classes {
    uint32_t *of; /* by node: its class, numbered from 0 by first node */
    uint32_t count;
    uint32_t rounds; /* that were made */
};

/* Refines for up to `rounds_max` rounds, until nothing changes or there would be more than
 * `count_max` classes (round 0 may have more). `levels` is by node, from by_layout_levels. The
 * caller frees `of`. */
void by_classes_find(const struct by_fabric *fabric, const uint32_t *levels, uint32_t rounds_max,
                     uint32_t count_max, struct by_classes *classes);
/* Bytes of a name without its trailing digits: gpu17 -> 3. The whole name when it is all digits. */
uint32_t by_stem_bytes(const char *name);

#endif

/*
 * Groups of switches, each joined to nearly all others of its group and to few outside, as in a
 * dragonfly. Pictures draw them as groups. Neighbours: layout.h, summary.h. Single-threaded.
 */
#ifndef BY_VIEW_PLOT_CLIQUE_H
#define BY_VIEW_PLOT_CLIQUE_H

#include "control/view/plot/fabric.h"

/*
 * Finds the groups of the highest switches. `clique` (by node) receives the number of the group
 * that contains the node or a switch above it; groups are numbered from 0 in the order of the file.
 * Returns the number of groups, or 0 (with `clique` unset) if the highest switches do not form at
 * least three groups. `levels` is by node, from by_layout_levels.
 */
uint32_t by_clique_find(const struct by_fabric *fabric, const uint32_t *levels, uint32_t *clique);

#endif

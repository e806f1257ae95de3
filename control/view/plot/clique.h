/*
 * Groups of switches, each of which is joined to nearly all others of its group and to few of the
 * rest, as in a dragonfly. Pictures draw them as groups. Neighbours: layout.h, summary.h.
 * Single-threaded.
 */
#ifndef BY_VIEW_PLOT_CLIQUE_H
#define BY_VIEW_PLOT_CLIQUE_H

#include "control/view/plot/fabric.h"

/*
 * Finds the groups of the highest switches: `clique` (by node) receives the number of the group
 * that the node is in or hangs below, from 0 in the order of the file. Returns how many there are;
 * 0 (and `clique` unset) where the highest switches do not fall into at least three groups.
 * `levels` is by node, from by_layout_levels.
 */
uint32_t by_clique_find(const struct by_fabric *fabric, const uint32_t *levels, uint32_t *clique);

#endif

/*
 * Lower trees at the same rate. Packing decides piece by piece, so that some trees of the whole
 * come out far higher than they must. Afterwards, branches of high trees are hung nearer to their
 * roots: over links that have room, and where none has, by exchange with another tree, which takes
 * over the place that the branch leaves; links then carry exactly what they carried before.
 * Neighbours: forest.c, which calls this for every set of trees that it makes; height_move.c, which
 * finds the places. One thread for each call.
 */
#ifndef BY_PLANNER_PACK_HEIGHT_H
#define BY_PLANNER_PACK_HEIGHT_H

#include "control/planner/pack/forest.h"

/*
 * Lowers the trees of `list` from number `first` on, which `forest` describes: weights are
 * multiples of its weight, loads are within its capacities and stay so. Nothing else changes:
 * roots, weights, nodes, rate. The work is limited, by the size of the plan and by how far the
 * heights are from what distances allow; it ends at the forest's deadline, too. `packed` receives
 * the heights as they were, where anything is tried.
 */
void by_height_lower(const struct by_forest *forest, struct by_tree_list *list, uint32_t first,
                     struct by_heights *packed);

#endif

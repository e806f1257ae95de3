/*
 * Lowers trees at the same rate. Packing decides piece by piece, so some trees of the whole are far
 * higher than necessary. Afterwards, branches of high trees are moved nearer to their roots, over
 * links with spare capacity. Where there is none, two trees exchange places for the branch; links
 * then carry exactly what they carried before. Neighbours: forest.c, which calls this for every set
 * of trees that it makes; height_move.c, which finds the places. Each call runs in one thread.
 */
#ifndef BY_PLANNER_PACK_HEIGHT_H
#define BY_PLANNER_PACK_HEIGHT_H

#include "control/planner/pack/forest.h"

/*
 * Lowers the trees of `list` from number `first` on, which `forest` describes: weights are
 * multiples of its weight, and loads stay within its capacities. Roots, weights, nodes and rate do
 * not change. The work is limited by the size of the plan and by the excess of the heights over
 * what distances allow; it also ends at the forest's deadline. If anything is tried, `packed`
 * receives the heights before the change.
 */
void by_height_lower(const struct by_forest *forest, struct by_tree_list *list, uint32_t first,
                     struct by_heights *packed);

#endif

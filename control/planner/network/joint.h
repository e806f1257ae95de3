/*
 * Allreduce on a fabric with a cut node: a compute node, or a switch that branches in both
 * directions, without which the fabric falls into parts. Every tree contains that node or passes
 * it. Trees of the parts, each with the node as one of the nodes to join, are therefore combined
 * into trees of the whole; the slowest part determines the rate. Equal parts are planned once.
 * Neighbours: allreduce.c, which plans the parts. Each call runs in one thread.
 */
#ifndef BY_PLANNER_NETWORK_JOINT_H
#define BY_PLANNER_NETWORK_JOINT_H

#include "control/planner/network/allreduce.h"
#include "control/planner/network/packing.h"
#include "control/planner/planner.h"

/*
 * For a symmetric fabric on which no switch is capable in one direction only and none has a limit
 * of additions; `both` is its graph. Appends trees that are used in both directions to the empty
 * list, and fills `packed` (packing.h), with rates in units of capacity. If no node divides the
 * fabric, appends nothing and sets the rate to 0. Returns 0, or the error of planning a part.
 */
int by_joint_pack(const struct by_graph *both, const struct by_plan_options *options,
                  struct by_tree_list *list, struct by_packed *packed, struct by_problem *problem);

#endif

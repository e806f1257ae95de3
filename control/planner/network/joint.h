/*
 * Allreduce on a fabric that hangs together at one node: a switch that branches both ways, or a
 * compute node, without which it falls into parts. Every tree has that node or passes it, so trees
 * of the parts, each with the node as one of those to be joined, make the trees of the whole, and
 * the slowest part says how fast they can be. Parts that are alike are planned once. Neighbours:
 * allreduce.c, whose planner plans the parts. One thread for each call.
 */
#ifndef BY_PLANNER_NETWORK_JOINT_H
#define BY_PLANNER_NETWORK_JOINT_H

#include "control/planner/network/allreduce.h"
#include "control/planner/network/packing.h"
#include "control/planner/planner.h"

/*
 * For a symmetric fabric on which no switch does half and none has a limit of additions; `both` is
 * its graph. Appends trees that are used both ways to the empty list, and fills `packed`
 * (packing.h), rates in units of capacity; nothing is appended, and the rate is 0, where no node
 * takes the fabric apart. 0, or what planning a part returns.
 */
int by_joint_pack(const struct by_graph *both, const struct by_plan_options *options,
                  struct by_tree_list *list, struct by_packed *packed, struct by_problem *problem);

#endif

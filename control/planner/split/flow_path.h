/*
 * Maps logical capacity to physical paths. For each piece of a laminar family, the joins of its
 * switches are repeated link by link. They are spread evenly over parallel links, in the same order
 * at both ends, so that rails stay rails. Paths that leave one piece are continued in the next. The
 * result is paths between nodes that remain, each with an amount: the `routing` table of ForestColl
 * (appendix E.2), stored as paths. Each call runs in one thread.
 */
#ifndef BY_PLANNER_SPLIT_FLOW_PATH_H
#define BY_PLANNER_SPLIT_FLOW_PATH_H

#include "control/plan/paths.h"
#include "control/planner/pack/merge.h"
#include "control/planner/split/split.h"

struct by_flow_path_joins {
    uint32_t count;
    const struct by_join *joins; /* in local node numbers of the group's piece */
};

/*
 * Makes the flow paths of all groups; `joins` is by group number, with count 0 where nothing was
 * removed. Their ids are path numbers in `paths`, to which the paths are added. Returns the flow
 * paths and their count in `*count`; the caller frees them.
 */
struct by_merge_flow_path *by_flow_path_make(struct by_laminar *laminar,
                                             const struct by_flow_path_joins *joins,
                                             const struct by_merge_group *groups, struct by_paths *paths,
                                             uint32_t *count);

#endif

/*
 * Where logical capacity runs physically: for each piece of a nest the joins of its switches are
 * done link by link (spread evenly over parallel links, in the same order at both ends, so that
 * rails stay rails), and what leaves one piece is continued in the next. The result is paths
 * between nodes that stay, each with an amount. ForestColl's `routing` table (appendix E.2), kept
 * as paths. One thread for each call.
 */
#ifndef BY_PLANNER_SPLIT_STRAND_H
#define BY_PLANNER_SPLIT_STRAND_H

#include "control/plan/paths.h"
#include "control/planner/pack/merge.h"
#include "control/planner/split/split.h"

struct by_flow_path_joins {
    uint32_t count;
    const struct by_join *joins; /* in the local numbers of the group's piece */
};

/*
 * Makes the strands of all groups; `joins` is by group number, with count 0 where nothing was
 * removed. Their ids are numbers of paths, added to `paths`. Returns the strands, their count in
 * `*count`; the caller frees them.
 */
struct by_merge_flow_path *by_flow_path_make(struct by_laminar *laminar,
                                             const struct by_flow_path_joins *joins,
                                             const struct by_merge_group *groups, struct by_paths *paths,
                                             uint32_t *count);

#endif

/*
 * Checks exported schedules by executing them on symbols: every rank must end with the right data,
 * each contribution exactly once, and nothing may wait in a circle. Reads files only; knows nothing
 * of plans, so that it judges anybody's schedules. One thread for each call.
 */
#ifndef BY_STUDY_EXPORT_CHECK_H
#define BY_STUDY_EXPORT_CHECK_H

#include "control/fabric/topology.h"

struct by_check_report {
    const char *format; /* "MSCCL" or "ForestColl" */
    unsigned collective;
    uint32_t rank_count;
    uint64_t chunk_count; /* of the whole data */
    uint64_t step_count;  /* steps, or sends of all trees */
    uint32_t unit_count;  /* thread blocks, or trees */
    uint32_t blocks_max;  /* MSCCL: thread blocks of the GPU that has most */
    bool in_place, out_of_place;
    bool has_rate;
    struct by_fraction rate; /* of trees on a topology: total data size over time, in its unit */
};

/*
 * `topology` may be NULL; with one, the ranks must be as many as its compute nodes, and the paths
 * of trees must exist in it. `slots`: how many messages a sender may be ahead of its receiver
 * (MSCCL), at least 1. 0; BY_EINVAL when the schedule is wrong, with the first fault in `problem`;
 * BY_EFORMAT or BY_EIO when there is none to check.
 */
int by_check_file(const char *path, const struct by_topology *topology, uint32_t slots,
                  struct by_check_report *report, struct by_problem *problem);
int by_check_text(const char *text, size_t bytes, const struct by_topology *topology, uint32_t slots,
                  struct by_check_report *report, struct by_problem *problem);

#endif

/*
 * Checks exported schedules by symbolic execution: every rank must end with the right data, with
 * each contribution exactly once, and no steps may wait in a circle. The check uses only the file,
 * not the plan, so it can check schedules from any source. One thread for each call.
 */
#ifndef BY_STUDY_EXPORT_CHECK_H
#define BY_STUDY_EXPORT_CHECK_H

#include "control/fabric/topology.h"

struct by_check_report {
    const char *format; /* "MSCCL" or "ForestColl" */
    unsigned collective;
    uint32_t rank_count;
    uint64_t chunk_count; /* chunks of the whole data */
    uint64_t step_count;  /* steps, or sends of all trees */
    uint32_t unit_count;  /* thread blocks, or trees */
    uint32_t blocks_max;  /* MSCCL: most thread blocks of any GPU */
    bool in_place, out_of_place;
    bool has_rate;
    /* messages of which each waits for the one before: the longest chain (count) */
    uint32_t depth;
    uint32_t path_hops; /* links of the longest path of a message of trees; 0 for MSCCL */
    /* Trees on a topology: total data size divided by time, in the topology's unit. */
    struct by_fraction rate;
};

/* What one rank sends to another: chunks over one connection. */
struct by_check_send {
    uint32_t from, to; /* ranks */
    uint64_t chunks;
};

/* The messages of an MSCCL schedule. The caller frees `sends`. */
struct by_check_sends {
    uint32_t count;
    struct by_check_send *sends;
};

/*
 * Checks a file. `topology` may be NULL; otherwise the number of ranks must be that of its compute
 * nodes, and the paths of trees must exist in it. `slots`: how many messages a sender may be ahead
 * of its receiver (MSCCL), at least 1. Returns 0; BY_EINVAL if the schedule is wrong, with the
 * first fault in `problem`; BY_EFORMAT or BY_EIO if the file holds no schedule that can be checked.
 */
int by_check_file(const char *path, const struct by_topology *topology, uint32_t slots,
                  struct by_check_report *report, struct by_problem *problem);
/* The same; also lists the messages of an MSCCL schedule, none for trees. */
int by_check_messages(const char *path, const struct by_topology *topology, uint32_t slots,
                      struct by_check_report *report, struct by_check_sends *sends,
                      struct by_problem *problem);
int by_check_text(const char *text, size_t bytes, const struct by_topology *topology, uint32_t slots,
                  struct by_check_report *report, struct by_problem *problem);

#endif

/*
 * Plans as schedules in the formats of others: ForestColl's tree XML, and MSCCL XML. What is
 * exported are trees among compute nodes, so plans whose switches multicast or aggregate are
 * refused. See docs/exchange.md. One thread for each call.
 */
#ifndef BY_STUDY_EXPORT_EXPORT_H
#define BY_STUDY_EXPORT_EXPORT_H

#include "control/plan/plan.h"

struct by_export_options {
    const char *name; /* of the schedule */
    int64_t
        min_bytes; /* MSCCL: the sizes that the schedule is for; always written, or MSCCL ignores the file */
    int64_t max_bytes;
};

/*
 * Writes a plan to `stream` (a FILE *). 0; BY_EUNSUPPORTED when the format cannot say it, BY_ELIMIT
 * or BY_ERANGE when it grows beyond the format's limits, each with `problem` filled; BY_EIO.
 */
int by_export_forestcoll(const struct by_plan *plan, const struct by_topology *topology,
                         const struct by_export_options *options, void *stream, struct by_problem *problem);
int by_export_msccl(const struct by_plan *plan, const struct by_topology *topology,
                    const struct by_export_options *options, void *stream, struct by_problem *problem);

#endif

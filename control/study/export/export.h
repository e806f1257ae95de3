/*
 * Exports plans as schedules in foreign formats: ForestColl's tree XML, and MSCCL XML. Both formats
 * hold trees among compute nodes, so plans whose switches multicast or aggregate are refused. See
 * docs/exchange.md. One thread for each call.
 */
#ifndef BY_STUDY_EXPORT_EXPORT_H
#define BY_STUDY_EXPORT_EXPORT_H

#include "control/plan/plan.h"

struct by_export_options {
    const char *name; /* name of the schedule */
    int64_t
        /*
         * MSCCL: the range of sizes for which the schedule is valid. Always written, because MSCCL
         * ignores a file without it.
         */
        min_bytes;
    int64_t max_bytes;
};

/*
 * Write a plan to `stream` (a FILE *). Return 0; or with `problem` filled BY_EUNSUPPORTED if the
 * format cannot represent the plan, BY_ELIMIT or BY_ERANGE if the schedule exceeds the format's
 * limits; or BY_EIO.
 */
int by_export_forestcoll(const struct by_plan *plan, const struct by_topology *topology,
                         const struct by_export_options *options, void *stream, struct by_problem *problem);
int by_export_msccl(const struct by_plan *plan, const struct by_topology *topology,
                    const struct by_export_options *options, void *stream, struct by_problem *problem);

#endif

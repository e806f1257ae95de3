/* Exported schedules for tests. */
#ifndef TESTS_EXPORT_MAKE_H
#define TESTS_EXPORT_MAKE_H

#include "control/study/baseline/baseline.h"
#include "control/study/export/check.h"
#include "control/study/export/export.h"
#include "tests/unit/control/planner/rig.h"

/* The plan of an algorithm on a fabric, without switches that do more than forward; the last
 * compute node is the root where there is one. NULL when the algorithm does not do this collective.
 */
struct by_plan *make_plan(const struct by_topology *topology, enum by_algorithm algorithm,
                          unsigned collective);
/* Its export ("msccl" or "forestcoll") as text, which the caller frees; NULL with `problem` filled
 * when it is refused. */
char *make_export(const struct by_plan *plan, const struct by_topology *topology, const char *format,
                  struct by_problem *problem);

#endif

/* Exported schedules for tests. */
#ifndef TESTS_EXPORT_MAKE_H
#define TESTS_EXPORT_MAKE_H

#include "control/study/baseline/baseline.h"
#include "control/study/export/check.h"
#include "control/study/export/export.h"
#include "tests/unit/control/planner/rig.h"

/* Makes an algorithm's plan on a fabric whose switches only forward. The last compute node is the
 * root, if there is one. Returns NULL if the algorithm does not support the collective. */
struct by_plan *make_plan(const struct by_topology *topology, enum by_algorithm algorithm,
                          unsigned collective);
/* Returns its export ("msccl" or "forestcoll") as text, which the caller frees; NULL, with
 * `problem` filled, if it is refused. */
char *make_export(const struct by_plan *plan, const struct by_topology *topology, const char *format,
                  struct by_problem *problem);

#endif

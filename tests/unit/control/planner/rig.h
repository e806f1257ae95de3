/* Shared by the planner's tests: presets by text, planning, and checking of each plan by the
 * independent verifier. */
#ifndef TESTS_PLAN_RIG_H
#define TESTS_PLAN_RIG_H

#include "control/plan/plan.h"
#include "control/verify/verify.h"
#include "offload/wire/types.h"

/* Return a topology from JSON text, or from a preset's name and parameters ("4", "10", in the
 * preset's order, terminated by NULL). */
struct by_topology *rig_parse(const char *json);
struct by_topology *rig_preset_list(const char *name, const char *capable, const char *const *parameters);
#define rig_preset(name, capable, ...) rig_preset_list((name), (capable), (const char *const[]){__VA_ARGS__})
/* Makes a plan, or fails the test with the problem's text. `root` is -1 if there is none. */
struct by_plan *rig_plan(const struct by_topology *topology, unsigned collective, int64_t root,
                         int64_t fixed_k, bool in_network);
/* Returns the text of the plan's file; the caller frees it. */
char *rig_text(const struct by_plan *plan, const struct by_topology *topology);
/* Requires `verdict` from the verifier for the plan. */
void rig_verify(const struct by_plan *plan, const struct by_topology *topology, enum by_verdict verdict);
/* Combines rig_plan and rig_verify. */
struct by_plan *rig_verified(const struct by_topology *topology, unsigned collective, int64_t root,
                             int64_t fixed_k, bool in_network, enum by_verdict verdict);
/* Requires that `value` is num / den. */
void rig_assert_fraction(struct by_fraction value, int64_t num, int64_t den);

#endif

/*
 * One small fabric: all its bounds and rates against everything tried (oracle.h, campaign/cuts.h),
 * and the trees against the verifier. Pure functions: any thread.
 */
#ifndef TESTS_BOUND_COMPARE_H
#define TESTS_BOUND_COMPARE_H

#include "control/fabric/topology.h"

#define COMPARE_TEXT_BYTES 400

/* What differs goes to `text`; true when nothing does. With `trees` the rate is compared with the
 * program over all trees, too. `*rate` (may be NULL) receives the rate. */
bool compare_bounds(const struct by_topology *topology, bool trees, struct by_fraction *rate,
                    char text[COMPARE_TEXT_BYTES]);

#endif

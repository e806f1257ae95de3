/*
 * Compares all bounds and rates of a small fabric with exhaustive enumeration (oracle.h,
 * campaign/cuts.h), and its trees with the verifier. Pure functions: any thread.
 */
#ifndef TESTS_BOUND_COMPARE_H
#define TESTS_BOUND_COMPARE_H

#include "control/fabric/topology.h"

#define COMPARE_TEXT_BYTES 400

/* Returns true if there is no difference; otherwise describes it in `text`. With `trees` also
 * compares the rate with the program over all trees. `*rate` (may be NULL) receives the rate. */
bool compare_bounds(const struct by_topology *topology, bool trees, struct by_fraction *rate,
                    char text[COMPARE_TEXT_BYTES]);

#endif

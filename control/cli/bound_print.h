/* Prints the results of `banyan bound`, as text or as one JSON object. One thread for each call. */
#ifndef BY_CLI_BOUND_PRINT_H
#define BY_CLI_BOUND_PRINT_H

#include "control/study/bound/bound.h"

void by_bound_print_people(const struct by_bound *bound, const struct by_topology *topology);
void by_bound_print_json(const struct by_bound *bound, const struct by_topology *topology);

#endif

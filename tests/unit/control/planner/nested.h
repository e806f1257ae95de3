/* Random fabrics of alike parts: a small random part, copied several times under random switches,
 * and all of it copied again, with the nodes in random order. */
#ifndef TESTS_PLAN_NESTED_H
#define TESTS_PLAN_NESTED_H

#include "control/fabric/topology.h"
#include "offload/base/prng.h"

/* Makes a fabric of at most about 100 nodes; the caller frees it. */
struct by_topology *nested_fabric(struct by_prng *prng);

#endif

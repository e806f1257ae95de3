/* Sums of the ranks of a host, in the order of the ranks. Pure; any thread. */
#ifndef BY_HOST_LOCAL_SUM_H
#define BY_HOST_LOCAL_SUM_H

#include <stdint.h>

#define BY_MATES_SUM_MAX 1000u /* inputs: the ranks of a job */

/* out = in[0] op in[1] op ..., for `count` elements of at least one input. The order is fixed, so
 * equal inputs give equal bits. An input must not overlap `out`. The pair must be supported
 * (by_reducer_get). */
void by_mates_sum(unsigned op, unsigned dtype, void *out, const void *const *in, uint32_t inputs,
                  uint64_t count);

#endif

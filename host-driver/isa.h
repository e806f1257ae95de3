/*
 * The instruction set of this host's kernels. CPUID, by which offload/reduce finds it, is
 * intercepted in virtual machines and takes 1 to 20 us there, longer than a short call, so the
 * result is kept. Neighbours: offload/reduce detects. Any thread.
 */
#ifndef BY_HOST_ISA_H
#define BY_HOST_ISA_H

#include "offload/reduce/reduce.h"

/* Returns the best set (enum by_isa) that this build and the running processor support. */
unsigned by_host_isa(void);
/* Returns the kernels for this operator and element type (enum by_op, enum by_dtype) in that set;
 * NULL if they have none. */
const struct by_reducer *by_host_reducer(unsigned op, unsigned dtype);

#endif

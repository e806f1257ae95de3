/* The kernels in portable C for the baseline processor. Pure; any thread. */
#define BY_KERNEL_TABLE by_kernels_scalar
#define BY_EXACT_TABLE  by_exact_scalar
#include "offload/reduce/kernels.inc.h"

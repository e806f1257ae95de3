/* The kernels for the baseline processor: portable C, with minima by SSE4.1 where the baseline has
 * it. Pure; any thread. */
#if defined(__SSE4_1__) && !defined(BY_VECTOR_BYTES)
#define _MM_MALLOC_H_INCLUDED /* gcc's intrinsics would include stdlib.h for _mm_malloc */
#include <smmintrin.h>
#define BY_KERNEL_INTEGERS        __m128i
#define BY_KERNEL_INTRINSIC(name) _mm_##name
#endif

#define BY_KERNEL_TABLE by_kernels_scalar
#define BY_EXACT_TABLE  by_exact_scalar
#include "offload/reduce/kernels.inc.h"

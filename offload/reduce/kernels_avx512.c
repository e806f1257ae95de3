/* The kernels for x86-64 with AVX-512 F, BW, DQ and VL; isa.c checks the processor before they are
 * called. Pure; any thread. */
#define _MM_MALLOC_H_INCLUDED /* gcc's intrinsics would include stdlib.h for _mm_malloc */
#include <immintrin.h>
#include <stdint.h>

#define BY_KERNEL_TABLE           by_kernels_avx512
#define BY_EXACT_TABLE            by_exact_avx512
#define BY_VECTOR_BYTES           64
#define BY_KERNEL_F16_BLOCKS      1
#define BY_KERNEL_INTEGERS        __m512i
#define BY_KERNEL_INTRINSIC(name) _mm512_##name
#define UNORDERED_F32(x, y)       ((by_words)_mm512_movm_epi32(_mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q)))
#define UNORDERED_F64(x, y)       ((by_words)_mm512_movm_epi64(_mm512_cmp_pd_mask(x, y, _CMP_UNORD_Q)))

/* The instruction orders -0 before +0, but prefers a number to a NaN: x if both are ordered, else
 * the NaN of operators. */
#define RANGE(size, x, y, which, nan)                                                                        \
    ((by_words)_mm512_mask_mov_p##size(_mm512_range_p##size(x, y, which),                                    \
                                       _mm512_cmp_p##size##_mask(x, y, _CMP_UNORD_Q), nan))
#define LEAST_F32(x, y) RANGE(s, x, y, 4, _mm512_set1_ps(__builtin_nanf("")))
#define LEAST_F64(x, y) RANGE(d, x, y, 4, _mm512_set1_pd(__builtin_nan("")))
#define MOST_F32(x, y)  RANGE(s, x, y, 5, _mm512_set1_ps(__builtin_nanf("")))
#define MOST_F64(x, y)  RANGE(d, x, y, 5, _mm512_set1_pd(__builtin_nan("")))

#define F64_FROM_F32(at) ((vector_F64)_mm512_cvtps_pd(_mm256_loadu_ps((const float *)(at))))

/* The instruction selects rounding to nearest even, independent of MXCSR. */
static inline void f16_narrow_block(void *half, const void *wide)
{
    for (unsigned i = 0; i < 2; i++) {
        __m512 sixteen = _mm512_loadu_ps((const float *)wide + 16 * i);

        _mm256_storeu_si256((__m256i *)half + i, _mm512_cvtps_ph(sixteen, _MM_FROUND_TO_NEAREST_INT));
    }
}

#define f16_widen_vectors(wide, in)                                                                          \
    for (unsigned v = 0; v < 2; v++) {                                                                       \
        (wide)[v] = (vector_F32)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(in) + v));              \
        BY_HOLD((wide)[v]);                                                                                  \
    }

#include "offload/reduce/kernels.inc.h"

/* The kernels for x86-64 with AVX2 and F16C; isa.c checks the processor before they are called.
 * Pure; any thread. */
#define _MM_MALLOC_H_INCLUDED /* gcc's intrinsics would include stdlib.h for _mm_malloc */
#include <immintrin.h>
#include <stdint.h>

#define BY_KERNEL_TABLE           by_kernels_avx2
#define BY_EXACT_TABLE            by_exact_avx2
#define BY_VECTOR_BYTES           32
#define BY_KERNEL_F16_BLOCKS      1
#define BY_KERNEL_INTEGERS        __m256i
#define BY_KERNEL_INTRINSIC(name) _mm256_##name
#define UNORDERED_F32(x, y)       ((by_words)_mm256_cmp_ps(x, y, _CMP_UNORD_Q))
#define UNORDERED_F64(x, y)       ((by_words)_mm256_cmp_pd(x, y, _CMP_UNORD_Q))

/* The instructions return y if the operands are equal or unordered. Both orders differ then alone,
 * and equal operands differ in bits only if they are zeros: OR gives -0, AND gives +0. */
#define IN_BOTH_ORDERS(size, x, y, which, join, nan)                                                         \
    ((by_words)_mm256_blendv_p##size(                                                                        \
        _mm256_##join##_p##size(_mm256_##which##_p##size(x, y), _mm256_##which##_p##size(y, x)), nan,        \
        _mm256_cmp_p##size(x, y, _CMP_UNORD_Q)))
#define LEAST_F32(x, y) IN_BOTH_ORDERS(s, x, y, min, or, _mm256_set1_ps(__builtin_nanf("")))
#define LEAST_F64(x, y) IN_BOTH_ORDERS(d, x, y, min, or, _mm256_set1_pd(__builtin_nan("")))
#define MOST_F32(x, y)  IN_BOTH_ORDERS(s, x, y, max, and, _mm256_set1_ps(__builtin_nanf("")))
#define MOST_F64(x, y)  IN_BOTH_ORDERS(d, x, y, max, and, _mm256_set1_pd(__builtin_nan("")))

#define F64_FROM_F32(at) ((vector_F64)_mm256_cvtps_pd(_mm_loadu_ps((const float *)(at))))
#define PACK_U16(to, low, high)                                                                              \
    _mm256_storeu_si256((__m256i *)(to), _mm256_permute4x64_epi64(                                           \
                                             _mm256_packus_epi32((__m256i)(low), (__m256i)(high)), 0xd8))

/* The instruction selects rounding to nearest even, independent of MXCSR. */
static inline void f16_narrow_block(void *half, const void *wide)
{
    for (unsigned i = 0; i < 4; i++) {
        __m256 eight = _mm256_loadu_ps((const float *)wide + 8 * i);

        _mm_storeu_si128((__m128i *)half + i, _mm256_cvtps_ph(eight, _MM_FROUND_TO_NEAREST_INT));
    }
}

#define f16_widen_vectors(wide, in)                                                                          \
    for (unsigned v = 0; v < 4; v++) {                                                                       \
        (wide)[v] = (vector_F32)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(in) + v));                 \
        BY_HOLD((wide)[v]);                                                                                  \
    }

#include "offload/reduce/kernels.inc.h"

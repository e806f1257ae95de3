/*
 * For builds that run in Bochs 2.7: its VCVTPS2PH rounds values halfway between two f16 upwards,
 * while processors round them to even. Both directed roundings are correct, so these functions
 * choose the even value themselves. Included before each source (avx512.sh).
 */
#ifndef TESTS_AVX512_BOCHS_H
#define TESTS_AVX512_BOCHS_H
#ifdef __F16C__

#define _MM_MALLOC_H_INCLUDED /* like the kernels */
#include <immintrin.h>

/* Narrows eight f32 to f16. A value is halfway if twice the value is the sum of both neighbours. */
__attribute__((unused)) static inline __m128i bochs_narrow_8(__m256 x)
{
    __m128i low = _mm256_cvtps_ph(x, _MM_FROUND_TO_ZERO),
            near = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
    __m256 sum = _mm256_add_ps(_mm256_cvtph_ps(low), _mm256_cvtph_ps(near));
    __m256i tie = _mm256_castps_si256(_mm256_cmp_ps(sum, _mm256_add_ps(x, x), _CMP_EQ_OQ));
    __m128i take = _mm_packs_epi32(_mm256_castsi256_si128(tie), _mm256_extractf128_si256(tie, 1));

    take = _mm_and_si128(take, _mm_cmpeq_epi16(_mm_and_si128(low, _mm_set1_epi16(1)), _mm_setzero_si128()));
    return _mm_blendv_epi8(near, low, take);
}

#ifdef __AVX512F__
__attribute__((unused)) static inline __m256i bochs_narrow_16(__m512 x)
{
    __m256i low = _mm512_cvtps_ph(x, _MM_FROUND_TO_ZERO),
            near = _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
    __m512 sum = _mm512_add_ps(_mm512_cvtph_ps(low), _mm512_cvtph_ps(near));
    __mmask16 take = _mm512_cmp_ps_mask(sum, _mm512_add_ps(x, x), _CMP_EQ_OQ);

    take &= _mm256_testn_epi16_mask(low, _mm256_set1_epi16(1));
    return _mm256_mask_mov_epi16(near, take, low);
}
#undef _mm512_cvtps_ph
#define _mm512_cvtps_ph(x, rounding) bochs_narrow_16(x)
#endif

#undef _mm256_cvtps_ph
#define _mm256_cvtps_ph(x, rounding) bochs_narrow_8(x)

#endif
#endif

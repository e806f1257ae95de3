/* The kernels for AArch64, whose baseline includes NEON: only the conversion of f16 differs from
 * the scalar kernels. Pure; any thread. */
#include <arm_neon.h>
#include <stdint.h>

#define BY_KERNEL_TABLE      by_kernels_neon
#define BY_EXACT_TABLE       by_exact_neon
#define BY_KERNEL_F16_BLOCKS 1

static inline void f16_narrow_block(void *half, const void *wide)
{
    for (unsigned i = 0; i < 32; i += 4) {
        uint8x16_t raw = vld1q_u8((const uint8_t *)wide + 4 * i);

        vst1_u8((uint8_t *)half + 2 * i, vreinterpret_u8_f16(vcvt_f16_f32(vreinterpretq_f32_u8(raw))));
    }
}

#define f16_widen_vectors(wide, in)                                                                          \
    for (unsigned v = 0; v < 8; v++) {                                                                       \
        uint8x8_t half = vld1_u8((const uint8_t *)(in) + 8 * v);                                             \
        BY_HOLD(half);                                                                                       \
        (wide)[v] = (vector_F32)vcvt_f32_f16(vreinterpret_f16_u8(half));                                     \
    }

#include "offload/reduce/kernels.inc.h"

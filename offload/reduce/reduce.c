/* Selects the kernels by instruction set, operator and element type. Tables only; no state. Pure;
 * any thread. */
#include "offload/reduce/reduce.h"
#include "offload/reduce/kernels.h"

static const struct by_reducer (*const tables[BY_ISA_COUNT])[BY_DTYPE_COUNT] = {
    [BY_ISA_SCALAR] = by_kernels_scalar,
#if defined(__x86_64__)
    [BY_ISA_AVX2] = by_kernels_avx2,
    [BY_ISA_AVX512] = by_kernels_avx512,
#elif defined(__aarch64__)
    [BY_ISA_NEON] = by_kernels_neon,
#endif
};

static const struct by_exact *const exact_tables[BY_ISA_COUNT] = {
    [BY_ISA_SCALAR] = by_exact_scalar,
#if defined(__x86_64__)
    [BY_ISA_AVX2] = by_exact_avx2,
    [BY_ISA_AVX512] = by_exact_avx512,
#elif defined(__aarch64__)
    [BY_ISA_NEON] = by_exact_neon,
#endif
};

/* An instruction set of this build: `isa`, or the scalar one. Both tables have the same. */
static unsigned isa_built(unsigned isa)
{
    return isa < BY_ISA_COUNT && tables[isa] ? isa : BY_ISA_SCALAR;
}

const struct by_reducer *by_reducer_get(unsigned isa, unsigned op, unsigned dtype)
{
    const struct by_reducer *reducer;

    if (op >= BY_OP_COUNT || dtype >= BY_DTYPE_COUNT)
        return NULL;
    reducer = &tables[isa_built(isa)][op][dtype];
    return reducer->accumulate ? reducer : NULL;
}

int by_reduction_is_ordered(unsigned op, unsigned dtype)
{
    return (op == BY_OP_SUM || op == BY_OP_PROD) && (dtype == BY_DTYPE_F16 || dtype == BY_DTYPE_BF16 ||
                                                     dtype == BY_DTYPE_F32 || dtype == BY_DTYPE_F64);
}

const struct by_exact *by_exact_get(unsigned isa, unsigned dtype)
{
    const struct by_exact *exact;

    if (dtype >= BY_DTYPE_COUNT)
        return NULL;
    exact = &exact_tables[isa_built(isa)][dtype];
    return exact->scale ? exact : NULL;
}

unsigned by_reduction_dtype(unsigned mode, unsigned op, unsigned dtype)
{
    if (mode == BY_MODE_FAST || mode == BY_MODE_DET ||
        (mode == BY_MODE_EXACT && !by_reduction_is_ordered(op, dtype)))
        return dtype;
    if (mode != BY_MODE_EXACT || op != BY_OP_SUM)
        return 0;
    return dtype == BY_DTYPE_F16 || dtype == BY_DTYPE_BF16 ? BY_DTYPE_I32 : BY_DTYPE_I64;
}

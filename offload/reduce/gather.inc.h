/*
 * Several inputs in one pass: included by kernels.inc.h. A slot whose chunk begins has no value
 * yet, so the inputs that are there can be combined in registers and written once, and the psum of
 * each input is computed on the way. If one psum is wrong, nothing is lost: the slot still has no
 * value. Pure; any thread.
 *
 * Inputs are combined in their order, so that the result has the bits of one load and a number of
 * accumulations. NaNs of sums and products are settled at the end: such a value stays a NaN.
 */

/* Vectors of one input at a time (count): 128 bytes at most, which is what tail_* support. */
#define GATHER_STEP (BY_VECTOR_BYTES == 64 ? 2u : 4u)

/* Reads a block of halves into registers; returns the sum of its words. */
WIDEN_LINKAGE by_words take_block(by_words held[BLOCK_VECTORS / 2], const void *in)
{
    by_words sum = {0};

    for (size_t k = 0; k < BLOCK_VECTORS / 2; k++) {
        held[k] = ((const by_words_at *)in)[k];
        BY_HOLD(held[k]);
        sum += held[k];
    }
    return sum;
}

/* x op y; sums and products of floats without the NaN rule. */
#define GATHER_SUM_F32(x, y)              ((x) + (y))
#define GATHER_SUM_F64(x, y)              ((x) + (y))
#define GATHER_PROD_F32(x, y)             ((x) * (y))
#define GATHER_PROD_F64(x, y)             ((x) * (y))
#define GATHER_MIN_F32                    vector_MIN_F32
#define GATHER_MIN_F64                    vector_MIN_F64
#define GATHER_MAX_F32                    vector_MAX_F32
#define GATHER_MAX_F64                    vector_MAX_F64
#define GATHER_BY_INTEGER(OP, NAME, x, y) vector_##OP##_##NAME(x, y)
#define GATHER_BY_FLOAT(OP, NAME, x, y)   GATHER_##OP##_##NAME(x, y)

/* All ones in each lane where a sum or product is a NaN. */
#define GATHER_NAN_SUM_INTEGER(NAME, x, y)                                                                   \
    (by_words)                                                                                               \
    {                                                                                                        \
        0                                                                                                    \
    }
#define GATHER_NAN_PROD_INTEGER                 GATHER_NAN_SUM_INTEGER
#define GATHER_NAN_MIN_INTEGER                  GATHER_NAN_SUM_INTEGER
#define GATHER_NAN_MAX_INTEGER                  GATHER_NAN_SUM_INTEGER
#define GATHER_NAN_BAND_INTEGER                 GATHER_NAN_SUM_INTEGER
#define GATHER_NAN_BOR_INTEGER                  GATHER_NAN_SUM_INTEGER
#define GATHER_NAN_BXOR_INTEGER                 GATHER_NAN_SUM_INTEGER
#define GATHER_NAN_SUM_FLOAT(NAME, x, y)        UNORDERED_##NAME(x, y)
#define GATHER_NAN_PROD_FLOAT                   GATHER_NAN_SUM_FLOAT
#define GATHER_NAN_MIN_FLOAT                    GATHER_NAN_SUM_INTEGER
#define GATHER_NAN_MAX_FLOAT                    GATHER_NAN_SUM_INTEGER
#define GATHER_SETTLE_INTEGER(NAME, acc, count) 0u
#define GATHER_SETTLE_FLOAT(NAME, acc, count)   settle_##NAME(acc, count)

#define GATHER_HEAD(OP, NAME)                                                                                \
    static uint32_t gather_##OP##_##NAME(void *restrict acc, const void *const *in, uint32_t inputs,         \
                                         uint32_t count, uint32_t *restrict psums)

/* The words of each input in vectors, of the result, and where the result is a NaN. */
#define GATHER_BEGIN                                                                                         \
    by_words found[BY_GATHER_MAX], after[2] = {{0}, {0}}, unordered = {0};                                   \
    uint32_t guard = 0;                                                                                      \
    for (uint32_t k = 0; k < inputs; k++) {                                                                  \
        found[k] = (by_words){0};                                                                            \
        psums[k] = 0;                                                                                        \
    }

/* Two vectors of the result go to `to`. */
#define GATHER_PUT(OP, NAME, FAMILY, to, x, y)                                                               \
    do {                                                                                                     \
        after[0] += (by_words)(x);                                                                           \
        after[1] += (by_words)(y);                                                                           \
        unordered |= GATHER_NAN_##OP##_##FAMILY(NAME, x, y);                                                 \
        ((vector_at_##NAME *)(to))[0] = (x);                                                                 \
        ((vector_at_##NAME *)(to))[1] = (y);                                                                 \
    } while (0)

/* The rest of the psums, and the guard; `done` elements were in vectors. */
#define GATHER_END(NAME, FAMILY, done)                                                                       \
    for (uint32_t k = 0; k < inputs; k++)                                                                    \
        psums[k] += by_words_total(found[k]);                                                                \
    if (__builtin_expect(by_words_total(unordered) != 0, 0))                                                 \
        return guard + GATHER_SETTLE_##FAMILY(NAME, acc, done);                                              \
    return guard + by_words_total(after[0] + after[1]);

/* GATHER_STEP vectors of one input at `from` go to y, and their words to the input's sum. */
#define GATHER_TAKE(NAME, y, from, sum)                                                                      \
    do {                                                                                                     \
        const vector_at_##NAME *from_ = (const vector_at_##NAME *)(from);                                    \
        for (unsigned j = 0; j < GATHER_STEP; j++) {                                                         \
            (y)[j] = from_[j];                                                                               \
            BY_HOLD((y)[j]);                                                                                 \
        }                                                                                                    \
        for (unsigned j = 0; j < GATHER_STEP; j += 2)                                                        \
            (sum) += (by_words)(y)[j] + (by_words)(y)[j + 1];                                                \
    } while (0)

#define GATHER_SAME(OP, NAME, FAMILY)                                                                        \
    GATHER_HEAD(OP, NAME)                                                                                    \
    {                                                                                                        \
        const size_t bytes = (size_t)count * sizeof(value_##NAME);                                           \
        uint8_t *to = acc;                                                                                   \
        size_t at = 0;                                                                                       \
        GATHER_BEGIN                                                                                         \
        for (; bytes - at >= GATHER_STEP * BY_VECTOR_BYTES; at += GATHER_STEP * BY_VECTOR_BYTES) {           \
            vector_##NAME x[GATHER_STEP], y[GATHER_STEP];                                                    \
            GATHER_TAKE(NAME, x, (const uint8_t *)in[0] + at, found[0]);                                     \
            for (uint32_t k = 1; k < inputs; k++) {                                                          \
                GATHER_TAKE(NAME, y, (const uint8_t *)in[k] + at, found[k]);                                 \
                for (unsigned j = 0; j < GATHER_STEP; j++)                                                   \
                    x[j] = GATHER_BY_##FAMILY(OP, NAME, x[j], y[j]);                                         \
            }                                                                                                \
            for (unsigned j = 0; j < GATHER_STEP; j += 2)                                                    \
                GATHER_PUT(OP, NAME, FAMILY, to + at + j * BY_VECTOR_BYTES, x[j], x[j + 1]);                 \
        }                                                                                                    \
        if (at < bytes) {                                                                                    \
            value_##NAME rest[GATHER_STEP * BY_VECTOR_BYTES / sizeof(value_##NAME)];                         \
            psums[0] = psum_copy(to + at, (const uint8_t *)in[0] + at, bytes - at);                          \
            for (uint32_t k = 1; k < inputs; k++) {                                                          \
                psums[k] = psum_copy(rest, (const uint8_t *)in[k] + at, bytes - at);                         \
                tail_##OP##_##NAME(to + at, rest, (bytes - at) / sizeof(value_##NAME));                      \
            }                                                                                                \
            guard = psum(to + at, bytes - at);                                                               \
        }                                                                                                    \
        GATHER_END(NAME, FAMILY, at / sizeof(value_##NAME))                                                  \
    }

/* Halves: BLOCK elements at a time become vectors of f32. */
#define GATHER_WIDE(OP, NAME)                                                                                \
    GATHER_HEAD(OP, NAME)                                                                                    \
    {                                                                                                        \
        at_F32 *to = acc;                                                                                    \
        size_t i = 0;                                                                                        \
        GATHER_BEGIN                                                                                         \
        for (; count - i >= BLOCK; i += BLOCK) {                                                             \
            vector_F32 x[BLOCK_VECTORS], y[BLOCK_VECTORS];                                                   \
            by_words held[BLOCK_VECTORS / 2];                                                                \
            found[0] += take_block(held, (const at_##NAME *)in[0] + i);                                      \
            WIDEN_VECTORS_##NAME(x, held);                                                                   \
            for (uint32_t k = 1; k < inputs; k++) {                                                          \
                found[k] += take_block(held, (const at_##NAME *)in[k] + i);                                  \
                WIDEN_VECTORS_##NAME(y, held);                                                               \
                for (unsigned j = 0; j < BLOCK_VECTORS; j++)                                                 \
                    x[j] = GATHER_BY_FLOAT(OP, F32, x[j], y[j]);                                             \
            }                                                                                                \
            for (unsigned j = 0; j < BLOCK_VECTORS; j += 2)                                                  \
                GATHER_PUT(OP, F32, FLOAT, (uint8_t *)(to + i) + j * BY_VECTOR_BYTES, x[j], x[j + 1]);       \
        }                                                                                                    \
        if (i < count) {                                                                                     \
            float rest[BLOCK];                                                                               \
            psums[0] = rest_##NAME(to + i, (const at_##NAME *)in[0] + i, count - i);                         \
            for (uint32_t k = 1; k < inputs; k++) {                                                          \
                psums[k] = rest_##NAME(rest, (const at_##NAME *)in[k] + i, count - i);                       \
                tail_##OP##_F32(to + i, rest, count - i);                                                    \
            }                                                                                                \
            guard = psum(to + i, (count - i) * 4);                                                           \
        }                                                                                                    \
        GATHER_END(F32, FLOAT, i)                                                                            \
    }

#define GATHER_I8(OP)   GATHER_SAME(OP, I8, INTEGER)
#define GATHER_U8(OP)   GATHER_SAME(OP, U8, INTEGER)
#define GATHER_I32(OP)  GATHER_SAME(OP, I32, INTEGER)
#define GATHER_U32(OP)  GATHER_SAME(OP, U32, INTEGER)
#define GATHER_I64(OP)  GATHER_SAME(OP, I64, INTEGER)
#define GATHER_U64(OP)  GATHER_SAME(OP, U64, INTEGER)
#define GATHER_F32(OP)  GATHER_SAME(OP, F32, FLOAT)
#define GATHER_F64(OP)  GATHER_SAME(OP, F64, FLOAT)
#define GATHER_F16(OP)  GATHER_WIDE(OP, F16)
#define GATHER_BF16(OP) GATHER_WIDE(OP, BF16)

#if BY_GATHERS
#define GATHER(OP, NAME)        GATHER_##NAME(OP)
#define X(NAME, C, FAMILY, ACC) BY_KERNEL_OPS_##FAMILY(GATHER, NAME)
BY_KERNEL_TYPE_LIST(X)
#undef X
#endif

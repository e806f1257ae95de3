/*
 * A slot and several terms in one pass: included by kernels.inc.h. A term is an input, or a pair of
 * inputs that are combined before they meet the sum; so this is the order of mode DET, for any part
 * of a chunk's values. The psum of each input, and the guard of the slot, are computed on the way.
 * Pure; any thread.
 *
 * In a pair both orders give the same bits, and NaNs of a sum or product are settled at the end, so
 * only the order of terms matters.
 */

#define TERMS_HEAD(OP, NAME)                                                                                 \
    static uint32_t add_terms_##OP##_##NAME(void *restrict acc, struct by_terms *restrict terms,             \
                                            uint32_t count)

/* The inputs from `first` on follow the slot's value, or in[0] that takes its place. */
#define TERMS_BEGIN                                                                                          \
    const uint32_t inputs = terms->inputs, pairs = terms->pairs, first = !terms->begun;                      \
    uint32_t guard = 0, *const lead = terms->begun ? &terms->before : &terms->psum[0];                       \
    terms->before = 0;                                                                                       \
    for (uint32_t k = 0; k < inputs; k++)                                                                    \
        terms->psum[k] = 0;

#if BY_VECTOR_BYTES >= 16 && !defined(__OPTIMIZE_SIZE__)

/* The words of each input in vectors, of what comes first, of the result, and where it is a NaN. */
#define TERMS_BEGIN_VECTORS                                                                                  \
    TERMS_BEGIN                                                                                              \
    by_words found[BY_GATHER_MAX], before = {0}, after[2] = {{0}, {0}}, unordered = {0};                     \
    for (uint32_t k = first; k < inputs; k++)                                                                \
        found[k] = (by_words){0};

/* The rest of the psums, and the guard; `done` elements were in vectors. A single value is no
 * result of an operator. */
#define TERMS_END(NAME, done)                                                                                \
    *lead += by_words_total(before);                                                                         \
    for (uint32_t k = first; k < inputs; k++)                                                                \
        terms->psum[k] += by_words_total(found[k]);                                                          \
    if (__builtin_expect(by_words_total(unordered) != 0, 0) && first < inputs)                               \
        return guard + settle_##NAME(acc, done);                                                             \
    return guard + by_words_total(after[0] + after[1]);

/* The elements behind the vectors: `left` at `to`, those of input k by TAKE(rest, k). */
#define TERMS_REST(OP, NAME, to, left, TAKE)                                                                 \
    do {                                                                                                     \
        value_##NAME rest[4 * BLOCK / sizeof(value_##NAME)], more[sizeof(rest) / sizeof(*rest)];             \
        *lead = first ? TAKE(to, 0) : psum(to, (left) * sizeof(value_##NAME));                               \
        for (uint32_t k = first; k < inputs; k++) {                                                          \
            terms->psum[k] = TAKE(rest, k);                                                                  \
            if (pairs >> k & 1) {                                                                            \
                k++;                                                                                         \
                terms->psum[k] = TAKE(more, k);                                                              \
                for (size_t j = 0; j < (left); j++)                                                          \
                    rest[j] = OP##_##NAME(rest[j], more[j]);                                                 \
            }                                                                                                \
            tail_##OP##_##NAME(to, rest, left);                                                              \
        }                                                                                                    \
        guard = psum(to, (left) * sizeof(value_##NAME));                                                     \
    } while (0)

#define TERMS_SAME(OP, NAME)                                                                                 \
    TERMS_HEAD(OP, NAME)                                                                                     \
    {                                                                                                        \
        const size_t bytes = (size_t)count * sizeof(value_##NAME);                                           \
        const uint8_t *head = terms->begun ? acc : terms->in[0];                                             \
        uint8_t *to = acc;                                                                                   \
        size_t at = 0;                                                                                       \
        TERMS_BEGIN_VECTORS                                                                                  \
        for (; bytes - at >= GATHER_STEP * BY_VECTOR_BYTES; at += GATHER_STEP * BY_VECTOR_BYTES) {           \
            vector_##NAME x[GATHER_STEP], y[GATHER_STEP], z[GATHER_STEP];                                    \
            GATHER_TAKE(NAME, x, head + at, before);                                                         \
            for (uint32_t k = first; k < inputs; k++) {                                                      \
                GATHER_TAKE(NAME, y, (const uint8_t *)terms->in[k] + at, found[k]);                          \
                if (pairs >> k & 1) {                                                                        \
                    k++;                                                                                     \
                    GATHER_TAKE(NAME, z, (const uint8_t *)terms->in[k] + at, found[k]);                      \
                    for (unsigned j = 0; j < GATHER_STEP; j++)                                               \
                        y[j] = GATHER_BY_FLOAT(OP, NAME, y[j], z[j]);                                        \
                }                                                                                            \
                for (unsigned j = 0; j < GATHER_STEP; j++)                                                   \
                    x[j] = GATHER_BY_FLOAT(OP, NAME, x[j], y[j]);                                            \
            }                                                                                                \
            for (unsigned j = 0; j < GATHER_STEP; j += 2)                                                    \
                GATHER_PUT(OP, NAME, FLOAT, to + at + j * BY_VECTOR_BYTES, x[j], x[j + 1]);                  \
        }                                                                                                    \
        if (at < bytes)                                                                                      \
            TERMS_REST(OP, NAME, to + at, (bytes - at) / sizeof(value_##NAME), TERMS_TAKE_SAME);             \
        TERMS_END(NAME, at / sizeof(value_##NAME))                                                           \
    }
#define TERMS_TAKE_SAME(into, k) psum_copy(into, (const uint8_t *)terms->in[k] + at, bytes - at)

/* Halves: BLOCK elements at a time become vectors of f32. */
#define TERMS_WIDE(OP, NAME)                                                                                 \
    TERMS_HEAD(OP, NAME)                                                                                     \
    {                                                                                                        \
        at_F32 *to = acc;                                                                                    \
        size_t i = 0;                                                                                        \
        TERMS_BEGIN_VECTORS                                                                                  \
        for (; count - i >= BLOCK; i += BLOCK) {                                                             \
            vector_F32 x[BLOCK_VECTORS], y[BLOCK_VECTORS], z[BLOCK_VECTORS];                                 \
            by_words held[BLOCK_VECTORS / 2];                                                                \
            if (first) {                                                                                     \
                before += take_block(held, (const at_##NAME *)terms->in[0] + i);                             \
                WIDEN_VECTORS_##NAME(x, held);                                                               \
            } else {                                                                                         \
                for (unsigned j = 0; j < BLOCK_VECTORS; j++) {                                               \
                    x[j] = ((const vector_at_F32 *)(to + i))[j];                                             \
                    BY_HOLD(x[j]);                                                                           \
                    before += (by_words)x[j];                                                                \
                }                                                                                            \
            }                                                                                                \
            for (uint32_t k = first; k < inputs; k++) {                                                      \
                found[k] += take_block(held, (const at_##NAME *)terms->in[k] + i);                           \
                WIDEN_VECTORS_##NAME(y, held);                                                               \
                if (pairs >> k & 1) {                                                                        \
                    k++;                                                                                     \
                    found[k] += take_block(held, (const at_##NAME *)terms->in[k] + i);                       \
                    WIDEN_VECTORS_##NAME(z, held);                                                           \
                    for (unsigned j = 0; j < BLOCK_VECTORS; j++)                                             \
                        y[j] = GATHER_BY_FLOAT(OP, F32, y[j], z[j]);                                         \
                }                                                                                            \
                for (unsigned j = 0; j < BLOCK_VECTORS; j++)                                                 \
                    x[j] = GATHER_BY_FLOAT(OP, F32, x[j], y[j]);                                             \
            }                                                                                                \
            for (unsigned j = 0; j < BLOCK_VECTORS; j += 2)                                                  \
                GATHER_PUT(OP, F32, FLOAT, (uint8_t *)(to + i) + j * BY_VECTOR_BYTES, x[j], x[j + 1]);       \
        }                                                                                                    \
        if (i < count)                                                                                       \
            TERMS_REST(OP, F32, to + i, count - i, TERMS_TAKE_##NAME);                                       \
        TERMS_END(F32, i)                                                                                    \
    }
#define TERMS_TAKE_F16(into, k)  rest_F16(into, (const at_F16 *)terms->in[k] + i, count - i)
#define TERMS_TAKE_BF16(into, k) rest_BF16(into, (const at_BF16 *)terms->in[k] + i, count - i)

#define TERMS_F32(OP)  TERMS_SAME(OP, F32)
#define TERMS_F64(OP)  TERMS_SAME(OP, F64)
#define TERMS_F16(OP)  TERMS_WIDE(OP, F16)
#define TERMS_BF16(OP) TERMS_WIDE(OP, BF16)

#else
/* One piece at a time in local arrays, by one loop for all types: in builds for size, code and
 * stack must be small. */
#define PIECE_BYTES 128u /* of a slot */

/* A whole block of bf16, in the order of a slot. */
static uint32_t take_block_BF16(at_F32 *to, const void *from)
{
    value_BF16 held[BLOCK];
    uint32_t sum = psum_copy(held, from, sizeof(held));

    for (size_t i = 0; i < BLOCK; i++)
        to[i / 2 + i % 2 * (BLOCK / 2)] = by_f32_from_bits(by_bf16_widen(held[i]));
    return sum;
}

/* Copies part of an input in the form of a slot; returns its psum. */
static uint32_t take_piece(unsigned dtype, void *to, const void *from, size_t count)
{
    if (dtype == BY_DTYPE_F16)
        return rest_F16(to, from, count);
    if (dtype == BY_DTYPE_BF16)
        return count == BLOCK ? take_block_BF16(to, from) : rest_BF16(to, from, count);
    return psum_copy(to, from, count * (dtype == BY_DTYPE_F64 ? 8 : 4));
}

static void add_piece(unsigned op, unsigned dtype, void *to, const void *from, size_t count)
{
    if (dtype == BY_DTYPE_F64) {
        if (op == BY_OP_SUM)
            tail_SUM_F64(to, from, count);
        else
            tail_PROD_F64(to, from, count);
    } else if (op == BY_OP_SUM) {
        tail_SUM_F32(to, from, count);
    } else {
        tail_PROD_F32(to, from, count);
    }
}

static __attribute__((noinline)) uint32_t add_pieces(unsigned op, unsigned dtype, uint8_t *acc,
                                                     struct by_terms *terms, uint32_t count)
{
    const uint32_t wide = dtype == BY_DTYPE_F64 ? 8 : 4, bytes = by_dtype_bytes(dtype);
    uint8_t one[PIECE_BYTES], other[PIECE_BYTES];

    TERMS_BEGIN
    for (uint32_t i = 0, part; i < count; i += part, acc += part * wide) {
        part = count - i < PIECE_BYTES / wide ? count - i : PIECE_BYTES / wide;
        *lead += first ? take_piece(dtype, acc, (const uint8_t *)terms->in[0] + i * bytes, part)
                       : psum(acc, part * wide);
        for (uint32_t k = first; k < inputs; k++) {
            terms->psum[k] += take_piece(dtype, one, (const uint8_t *)terms->in[k] + i * bytes, part);
            if (pairs >> k & 1) {
                k++;
                terms->psum[k] += take_piece(dtype, other, (const uint8_t *)terms->in[k] + i * bytes, part);
                add_piece(op, dtype, one, other, part);
            }
            add_piece(op, dtype, acc, one, part);
        }
        guard += psum(acc, part * wide);
    }
    return guard;
}

#define TERMS_PIECES(OP, NAME)                                                                               \
    TERMS_HEAD(OP, NAME)                                                                                     \
    {                                                                                                        \
        return add_pieces(BY_OP_##OP, BY_DTYPE_##NAME, acc, terms, count);                                   \
    }
#define TERMS_F32(OP)  TERMS_PIECES(OP, F32)
#define TERMS_F64(OP)  TERMS_PIECES(OP, F64)
#define TERMS_F16(OP)  TERMS_PIECES(OP, F16)
#define TERMS_BF16(OP) TERMS_PIECES(OP, BF16)
#endif

#define TERMS(OP)                                                                                            \
    TERMS_F16(OP)                                                                                            \
    TERMS_BF16(OP)                                                                                           \
    TERMS_F32(OP)                                                                                            \
    TERMS_F64(OP)
TERMS(SUM)
TERMS(PROD)

/*
 * Sums and products of floats in explicit vectors: included by kernels.inc.h. They are most of what
 * a network adds, and compilers lose a third of the speed in the plain loop: it loads a slot's
 * words twice, and compares and blends each result for the NaN rule. Here a slot is loaded once,
 * and one comparison for two vectors detects a NaN among their results. In that rare case the whole
 * slot is processed again. Pure; any thread.
 */

/* Replaces each NaN of `count` elements by the one that operators produce, and returns the
 * guard. */
#define SETTLE(NAME, NAN)                                                                                    \
    __attribute__((noinline, cold)) static uint32_t settle_##NAME(void *acc, size_t count)                   \
    {                                                                                                        \
        at_##NAME *a = acc;                                                                                  \
        for (size_t i = 0; i < count; i++)                                                                   \
            if (a[i] != a[i])                                                                                \
                a[i] = NAN;                                                                                  \
        return by_words_sum(acc, count * sizeof(value_##NAME));                                              \
    }
SETTLE(F32, __builtin_nanf(""))
SETTLE(F64, __builtin_nan(""))

/* The state of a loop besides the slot: two parallel sums of each kind, because adds depend on one
 * another. */
struct sums_tally {
    by_words before[2], after[2], unordered;
};

/* Two vectors of a slot at `at` become x SIGN b. Each b is used once, so it may be an input. */
#define STEP(SIGN, NAME, at, b0, b1, tally)                                                                  \
    do {                                                                                                     \
        vector_##NAME x0 = *(const vector_at_##NAME *)(at);                                                  \
        vector_##NAME x1 = *(const vector_at_##NAME *)((at) + BY_VECTOR_BYTES);                              \
        vector_##NAME y0, y1;                                                                                \
        BY_HOLD(x0);                                                                                         \
        BY_HOLD(x1);                                                                                         \
        y0 = x0 SIGN(b0);                                                                                    \
        y1 = x1 SIGN(b1);                                                                                    \
        BY_HOLD(y0);                                                                                         \
        BY_HOLD(y1);                                                                                         \
        (tally)->before[0] += (by_words)x0;                                                                  \
        (tally)->before[1] += (by_words)x1;                                                                  \
        (tally)->after[0] += (by_words)y0;                                                                   \
        (tally)->after[1] += (by_words)y1;                                                                   \
        (tally)->unordered |= UNORDERED_##NAME(y0, y1);                                                      \
        *(vector_at_##NAME *)(at) = y0;                                                                      \
        *(vector_at_##NAME *)((at) + BY_VECTOR_BYTES) = y1;                                                  \
    } while (0)

/* Returns the guard of the first `count` elements, after their loop. */
#define SETTLED(NAME, acc, count, tally)                                                                     \
    (__builtin_expect(by_words_total((tally)->unordered) != 0, 0)                                            \
         ? settle_##NAME(acc, count)                                                                         \
         : by_words_total((tally)->after[0] + (tally)->after[1]))

#define ACCUMULATE_ARITHMETIC(OP, SIGN, NAME)                                                                \
    ACCUMULATE_HEAD(OP, NAME)                                                                                \
    {                                                                                                        \
        const size_t each = 2 * BY_VECTOR_BYTES / sizeof(value_##NAME);                                      \
        uint8_t *at = acc;                                                                                   \
        const uint8_t *from = in;                                                                            \
        struct sums_tally tally = {.unordered = {0}};                                                        \
        struct tail tail = {0, 0};                                                                           \
        for (size_t steps = count / each; steps > 0; steps--) {                                              \
            vector_##NAME b0 = *(const vector_at_##NAME *)from;                                              \
            vector_##NAME b1 = *(const vector_at_##NAME *)(from + BY_VECTOR_BYTES);                          \
            STEP(SIGN, NAME, at, b0, b1, &tally);                                                            \
            at += 2 * BY_VECTOR_BYTES;                                                                       \
            from += 2 * BY_VECTOR_BYTES;                                                                     \
        }                                                                                                    \
        if (count % each != 0)                                                                               \
            tail = tail_##OP##_##NAME(at, from, count % each);                                               \
        return guard_swap(guard, by_words_total(tally.before[0] + tally.before[1]) + tail.before,            \
                          SETTLED(NAME, acc, count / each * each, &tally) + tail.after);                     \
    }

/* Adds a pair in registers and then to the slot. The value that waited in memory is checked on the
 * way. */
#define ACCUMULATE_PAIR_HEAD(OP, NAME)                                                                       \
    static int accumulate_pair_##OP##_##NAME(void *restrict acc, const void *restrict a,                     \
                                             const void *restrict b, uint32_t psum, uint32_t count,          \
                                             uint32_t *guard)

#define ACCUMULATE_PAIR_ARITHMETIC(OP, SIGN, NAME)                                                           \
    ACCUMULATE_PAIR_HEAD(OP, NAME)                                                                           \
    {                                                                                                        \
        const size_t each = 2 * BY_VECTOR_BYTES / sizeof(value_##NAME), rest = count % each;                 \
        uint8_t *at = acc;                                                                                   \
        const uint8_t *first = a, *second = b;                                                               \
        by_words waited[2] = {{0}, {0}};                                                                     \
        struct sums_tally tally = {.unordered = {0}};                                                        \
        struct tail tail = {0, 0};                                                                           \
        uint32_t found = 0;                                                                                  \
        for (size_t steps = count / each; steps > 0; steps--) {                                              \
            vector_##NAME a0 = *(const vector_at_##NAME *)first;                                             \
            vector_##NAME a1 = *(const vector_at_##NAME *)(first + BY_VECTOR_BYTES);                         \
            vector_##NAME b0 = *(const vector_at_##NAME *)second;                                            \
            vector_##NAME b1 = *(const vector_at_##NAME *)(second + BY_VECTOR_BYTES);                        \
            BY_HOLD(a0);                                                                                     \
            BY_HOLD(a1);                                                                                     \
            BY_HOLD(b0);                                                                                     \
            BY_HOLD(b1);                                                                                     \
            waited[0] += (by_words)a0 + (by_words)b0;                                                        \
            waited[1] += (by_words)a1 + (by_words)b1;                                                        \
            STEP(SIGN, NAME, at, a0 SIGN b0, a1 SIGN b1, &tally);                                            \
            at += 2 * BY_VECTOR_BYTES;                                                                       \
            first += 2 * BY_VECTOR_BYTES;                                                                    \
            second += 2 * BY_VECTOR_BYTES;                                                                   \
        }                                                                                                    \
        if (rest != 0) {                                                                                     \
            value_##NAME pair[2 * BY_VECTOR_BYTES / sizeof(value_##NAME)];                                   \
            value_##NAME more[2 * BY_VECTOR_BYTES / sizeof(value_##NAME)];                                   \
            found = psum_copy(pair, first, rest * sizeof(value_##NAME)) +                                    \
                    psum_copy(more, second, rest * sizeof(value_##NAME));                                    \
            for (size_t i = 0; i < rest; i++)                                                                \
                pair[i] = pair[i] SIGN more[i];                                                              \
            tail = tail_##OP##_##NAME(at, pair, rest);                                                       \
        }                                                                                                    \
        return guard_swap(guard, by_words_total(tally.before[0] + tally.before[1]) + tail.before,            \
                          SETTLED(NAME, acc, count / each * each, &tally) + tail.after) &&                   \
               found + by_words_total(waited[0] + waited[1]) == psum;                                        \
    }

/*
 * Halves: BLOCK elements at a time are widened into vectors of f32, which are combined with those
 * of the slot. bf16 in a slot has its own order (kernels.inc.h), so that a shift and a mask suffice
 * to widen it.
 */
#define ACCUMULATE_HALF_ARITHMETIC(OP, SIGN, NAME)                                                           \
    ACCUMULATE_HEAD(OP, NAME)                                                                                \
    {                                                                                                        \
        uint8_t *at = acc;                                                                                   \
        const at_##NAME *from = in;                                                                          \
        size_t i = 0;                                                                                        \
        struct sums_tally tally = {.unordered = {0}};                                                        \
        struct tail tail = {0, 0};                                                                           \
        for (; count - i >= BLOCK; i += BLOCK) {                                                             \
            vector_F32 wide[BLOCK_VECTORS];                                                                  \
            WIDEN_VECTORS_##NAME(wide, from + i);                                                            \
            for (size_t k = 0; k < BLOCK_VECTORS; k += 2)                                                    \
                STEP(SIGN, F32, at + k * BY_VECTOR_BYTES, wide[k], wide[k + 1], &tally);                     \
            at += BLOCK * 4;                                                                                 \
        }                                                                                                    \
        if (i < count) {                                                                                     \
            float rest[BLOCK];                                                                               \
            rest_##NAME(rest, from + i, count - i);                                                          \
            tail = tail_##OP##_F32(at, rest, count - i);                                                     \
        }                                                                                                    \
        return guard_swap(guard, by_words_total(tally.before[0] + tally.before[1]) + tail.before,            \
                          SETTLED(F32, acc, i, &tally) + tail.after);                                        \
    }

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

#define ACCUMULATE_PAIR_HALF_ARITHMETIC(OP, SIGN, NAME)                                                      \
    ACCUMULATE_PAIR_HEAD(OP, NAME)                                                                           \
    {                                                                                                        \
        uint8_t *at = acc;                                                                                   \
        const at_##NAME *first = a, *second = b;                                                             \
        size_t i = 0;                                                                                        \
        struct sums_tally tally = {.unordered = {0}};                                                        \
        struct tail tail = {0, 0};                                                                           \
        by_words waited = {0};                                                                               \
        uint32_t found = 0;                                                                                  \
        for (; count - i >= BLOCK; i += BLOCK) {                                                             \
            vector_F32 wide[BLOCK_VECTORS], more[BLOCK_VECTORS];                                             \
            by_words held[BLOCK_VECTORS / 2], held_more[BLOCK_VECTORS / 2];                                  \
            waited += take_block(held, first + i) + take_block(held_more, second + i);                       \
            WIDEN_VECTORS_##NAME(wide, held);                                                                \
            WIDEN_VECTORS_##NAME(more, held_more);                                                           \
            for (size_t k = 0; k < BLOCK_VECTORS; k += 2)                                                    \
                STEP(SIGN, F32, at + k * BY_VECTOR_BYTES, wide[k] SIGN more[k],                              \
                     wide[k + 1] SIGN more[k + 1], &tally);                                                  \
            at += BLOCK * 4;                                                                                 \
        }                                                                                                    \
        if (i < count) {                                                                                     \
            float pair[BLOCK], more[BLOCK];                                                                  \
            found = rest_##NAME(pair, first + i, count - i) + rest_##NAME(more, second + i, count - i);      \
            for (size_t j = 0; j < count - i; j++)                                                           \
                pair[j] = pair[j] SIGN more[j];                                                              \
            tail = tail_##OP##_F32(at, pair, count - i);                                                     \
        }                                                                                                    \
        return guard_swap(guard, by_words_total(tally.before[0] + tally.before[1]) + tail.before,            \
                          SETTLED(F32, acc, i, &tally) + tail.after) &&                                      \
               found + by_words_total(waited) == psum;                                                       \
    }

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

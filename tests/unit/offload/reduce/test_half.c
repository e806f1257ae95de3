/* f16 and bf16, on each instruction set: widening of all patterns, narrowing at each tie and on
 * both sides of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "offload/reduce/half.h"
#include "tests/unit/offload/reduce/check.h"
#include "tests/unit/offload/reduce/oracle.h"

#define PATTERNS 65536u

static uint16_t halves[PATTERNS];
static uint32_t wide[3 * PATTERNS];
static uint32_t slot[3 * PATTERNS];

static int f16_is_nan(uint32_t bits)
{
    return (bits & 0x7fffu) > 0x7c00u;
}

static void f16_widens_exactly_over_all_patterns(void **state)
{
    (void)state;
    isa_print();
    for (uint32_t i = 0; i < PATTERNS; i++)
        halves[i] = (uint16_t)i;
    FOR_EACH_ISA(isa)
    {
        const struct by_reducer *reducer = by_reducer_get(isa, BY_OP_SUM, BY_DTYPE_F16);

        memset(slot, 0xa5, sizeof(slot));
        reducer->load(slot, halves, PATTERNS);
        for (uint32_t i = 0; i < PATTERNS; i++) {
            if (f16_is_nan(i))
                assert_int_equal(slot[i], (i & 0x8000u) << 16 | 0x7fc00000u | (i & 0x3ffu) << 13);
            else
                assert_true((double)by_f32_from_bits(slot[i]) == oracle_f16_value((uint16_t)i));
            assert_int_equal(slot[i] >> 31, i >> 15);
        }
    }
}

static void every_f16_and_bf16_survives_a_round_trip(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < PATTERNS; i++)
        halves[i] = (uint16_t)i;
    FOR_EACH_ISA(isa)
    {
        static const unsigned dtypes[] = {BY_DTYPE_F16, BY_DTYPE_BF16};

        for (size_t k = 0; k < 2; k++) {
            const struct by_reducer *reducer = by_reducer_get(isa, BY_OP_SUM, dtypes[k]);
            uint32_t infinity = k == 0 ? 0x7c00u : 0x7f80u, quiet = k == 0 ? 0x0200u : 0x0040u;
            uint32_t psum;

            psum = reducer->load(slot, halves, PATTERNS);
            assert_true(reducer->store(slot, PATTERNS, &psum));
            assert_int_equal(psum, oracle_psum(slot, 2 * PATTERNS));
            for (uint32_t i = 0; i < PATTERNS; i++)
                assert_int_equal(element_get(slot, 2, i), (i & 0x7fffu) > infinity ? (i | quiet) : i);
        }
    }
}

/* Narrows the `count` elements of `wide` with each instruction set and compares with the oracle. */
static void narrowing_check(unsigned dtype, uint32_t count, uint16_t (*expected)(uint32_t))
{
    FOR_EACH_ISA(isa)
    {
        uint32_t guard = by_psum(wide, (size_t)count * 4);

        for (uint32_t i = 0; i < count; i++)
            slot[slot_place(dtype, i, count)] = wide[i];
        assert_true(by_reducer_get(isa, BY_OP_SUM, dtype)->store(slot, count, &guard));
        for (uint32_t i = 0; i < count; i++) {
            unsigned half = (unsigned)element_get(slot, 2, i);

            if (half != expected(wide[i]))
                fail_msg("%s: f32 %08x narrowed to %s gives %04x, not %04x", by_isa_name(isa), wide[i],
                         by_dtype_name(dtype), half, expected(wide[i]));
        }
    }
}

static void f16_rounds_to_nearest_even_at_every_tie(void **state)
{
    uint32_t count = 0;

    (void)state;
    for (uint32_t sign = 0; sign < 2; sign++)
        for (uint32_t i = 0; i < 0x7c00u; i++) {
            /* Halfway to the next larger magnitude. Above the largest finite value this is
             * 65520. */
            double low = oracle_f16_value((uint16_t)i);
            double high = i == 0x7bffu ? 65536.0 : oracle_f16_value((uint16_t)(i + 1));
            uint32_t tie = by_f32_bits((float)((low + high) / 2)) | sign << 31;

            wide[count++] = tie - 1;
            wide[count++] = tie;
            wide[count++] = tie + 1;
        }
    narrowing_check(BY_DTYPE_F16, count, oracle_f16_from_f32);
}

static void bf16_rounds_to_nearest_even_at_every_tie(void **state)
{
    uint32_t count = 0;

    (void)state;
    for (uint32_t i = 0; i < PATTERNS; i++) {
        wide[count++] = i << 16 | 0x7fffu;
        wide[count++] = i << 16 | 0x8000u;
        wide[count++] = i << 16 | 0x8001u;
    }
    narrowing_check(BY_DTYPE_BF16, count, oracle_bf16_from_f32);
}

static void narrowing_matches_the_oracle_on_random_bits(void **state)
{
    struct by_prng prng = {seed_get()};

    (void)state;
    seed_print("reduce-half", prng.state);
    for (uint32_t i = 0; i < 3 * PATTERNS; i++) {
        wide[i] = (uint32_t)by_prng_next(&prng);
        if (i % 2) /* into the range of f16, subnormals included */
            wide[i] = (wide[i] & 0x807fffffu) | (uint32_t)(100 + by_prng_below(&prng, 45)) << 23;
    }
    narrowing_check(BY_DTYPE_F16, 3 * PATTERNS, oracle_f16_from_f32);
    narrowing_check(BY_DTYPE_BF16, 3 * PATTERNS, oracle_bf16_from_f32);
}

static void narrowing_keeps_to_written_values(void **state)
{
    static const struct {
        unsigned dtype;
        uint32_t from;
        uint16_t to;
    } cases[] = {
        {BY_DTYPE_F16, 0x3f800000, 0x3c00},  /* 1 */
        {BY_DTYPE_F16, 0x477fe000, 0x7bff},  /* 65504, the largest */
        {BY_DTYPE_F16, 0x477fefff, 0x7bff},  /* just under 65520 */
        {BY_DTYPE_F16, 0x477ff000, 0x7c00},  /* 65520 ties to infinity */
        {BY_DTYPE_F16, 0xff7fffff, 0xfc00},  /* the most negative f32 */
        {BY_DTYPE_F16, 0x38800000, 0x0400},  /* 2^-14, the minimum normal */
        {BY_DTYPE_F16, 0x387fe000, 0x0400},  /* 2^-14 - 2^-26: a tie that becomes normal */
        {BY_DTYPE_F16, 0x33800000, 0x0001},  /* 2^-24, the minimum subnormal */
        {BY_DTYPE_F16, 0x33000000, 0x0000},  /* 2^-25 ties to zero */
        {BY_DTYPE_F16, 0x33000001, 0x0001},  /* above this tie */
        {BY_DTYPE_F16, 0xb3000000, 0x8000},  /* -2^-25 ties to -0 */
        {BY_DTYPE_F16, 0x80000001, 0x8000},  /* a subnormal f32 */
        {BY_DTYPE_F16, 0x80000000, 0x8000},  /* -0 */
        {BY_DTYPE_F16, 0x7f800000, 0x7c00},  /* infinity */
        {BY_DTYPE_F16, 0x7fc00000, 0x7e00},  /* NaN */
        {BY_DTYPE_F16, 0xff800001, 0xfe00},  /* a signalling NaN becomes quiet, never infinity */
        {BY_DTYPE_BF16, 0x3f800000, 0x3f80}, /* 1 */
        {BY_DTYPE_BF16, 0x3f808000, 0x3f80}, /* a tie to even, down */
        {BY_DTYPE_BF16, 0x3f818000, 0x3f82}, /* a tie to even, up */
        {BY_DTYPE_BF16, 0x7f7f8000, 0x7f80}, /* overflow to infinity */
        {BY_DTYPE_BF16, 0x7f7f7fff, 0x7f7f}, /* just below */
        {BY_DTYPE_BF16, 0x00008000, 0x0000}, /* a tie of a subnormal */
        {BY_DTYPE_BF16, 0x00018000, 0x0002}, /* another tie, up */
        {BY_DTYPE_BF16, 0x80000000, 0x8000}, /* -0 */
        {BY_DTYPE_BF16, 0x7f800001, 0x7fc0}, /* a signalling NaN becomes quiet, never infinity */
        {BY_DTYPE_BF16, 0xffffffff, 0xffff}, /* no carry out of the NaN's fraction */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        FOR_EACH_ISA(isa)
        {
            uint32_t guard, block[64]; /* enough for each vector loop, and an odd count for the remainder */

            for (uint32_t count = 1; count <= 63; count += 62) {
                for (uint32_t k = 0; k < count; k++)
                    block[k] = cases[i].from;
                guard = by_psum(block, (size_t)count * 4);
                assert_true(by_reducer_get(isa, BY_OP_SUM, cases[i].dtype)->store(block, count, &guard));
                for (uint32_t k = 0; k < count; k++)
                    assert_int_equal(element_get(block, 2, k), cases[i].to);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f16_widens_exactly_over_all_patterns),
        cmocka_unit_test(every_f16_and_bf16_survives_a_round_trip),
        cmocka_unit_test(f16_rounds_to_nearest_even_at_every_tie),
        cmocka_unit_test(bf16_rounds_to_nearest_even_at_every_tie),
        cmocka_unit_test(narrowing_matches_the_oracle_on_random_bits),
        cmocka_unit_test(narrowing_keeps_to_written_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

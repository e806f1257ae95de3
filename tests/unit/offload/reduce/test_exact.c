/*
 * Mode EXACT: sums of blocks against exact sums (wide.h), in every order, with the error bound and
 * the rules for zeros, subnormals, infinities and NaNs of docs/arithmetic.md.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "offload/reduce/exact.h"
#include "tests/unit/offload/reduce/check.h"
#include "tests/unit/offload/reduce/oracle.h"
#include "tests/unit/offload/reduce/wide.h"

#define COUNT     BY_EXACT_BLOCK
#define RANKS_MAX 300u

/* ---- one block ---- */

static uint64_t input[RANKS_MAX][COUNT]; /* as bits */

struct exact_block {
    uint32_t words[BY_EXACT_WORDS];
    uint8_t sums[COUNT * 8];
    uint64_t result[COUNT];
};

/* Runs the three steps over `ranks`, with contributions added in an order drawn from `prng`. */
static void run_block(unsigned isa, const struct wide_format *f, unsigned ranks, unsigned count,
                      struct by_prng *prng, struct exact_block *block)
{
    const struct by_exact *exact = by_exact_get(isa, f->dtype);
    unsigned size = oracle_element_bytes(f->dtype), order[RANKS_MAX];
    static uint8_t raw[COUNT * 8 + 8], wide[COUNT * 8 + 8];

    memset(block, 0, sizeof(*block));
    for (unsigned r = 0; r < ranks; r++) {
        uint32_t words[BY_EXACT_WORDS];

        for (unsigned i = 0; i < count; i++)
            element_put(raw + 1, size, i, input[r][i]);
        exact->scale(raw + 1, count, words);
        for (unsigned w = 0; w < BY_EXACT_WORDS; w++)
            block->words[w] = words[w] > block->words[w] ? words[w] : block->words[w];
        order[r] = r;
    }
    for (unsigned r = ranks; r > 1; r--) {
        unsigned j = (unsigned)by_prng_below(prng, r), t = order[r - 1];

        order[r - 1] = order[j];
        order[j] = t;
    }
    for (unsigned r = 0; r < ranks; r++) {
        for (unsigned i = 0; i < count; i++)
            element_put(raw + 1, size, i, input[order[r]][i]);
        exact->quantise(raw + 1, count, block->words, ranks, wide + 1);
        for (unsigned i = 0; i < count; i++)
            element_put(block->sums, exact->wide_bytes, i,
                        element_get(block->sums, exact->wide_bytes, i) +
                            element_get(wide + 1, exact->wide_bytes, i));
    }
    memset(raw, 0xa5, sizeof(raw));
    exact->restore(block->sums, count, block->words, ranks, raw + 1);
    assert_int_equal(raw[0], 0xa5);
    assert_int_equal(raw[1 + count * size], 0xa5);
    for (unsigned i = 0; i < count; i++)
        block->result[i] = element_get(raw + 1, size, i);
}

static unsigned log2_up(unsigned ranks)
{
    unsigned h = 1;

    while ((1u << h) < ranks)
        h++;
    return h;
}

/* Returns a finite element with an exponent at most `span` below `greatest`, which is drawn for the
 * block. */
static uint64_t element_draw(const struct wide_format *f, struct by_prng *prng, unsigned greatest,
                             unsigned span)
{
    unsigned width = 8 * oracle_element_bytes(f->dtype);
    unsigned down = (unsigned)by_prng_below(prng, span + 1);
    uint64_t e = greatest > down ? greatest - down : 0;
    uint64_t m = by_prng_next(prng) & (((uint64_t)1 << f->mant) - 1);

    if (by_prng_below(prng, 16) == 0)
        m = by_prng_below(prng, 2) ? 0 : ((uint64_t)1 << f->mant) - 1;
    return by_prng_below(prng, 2) << (width - 1) | e << f->mant | m;
}

static const unsigned rank_counts[] = {2, 3, 4, 5, 8, 9, 64, 256};

static unsigned draw_block(const struct wide_format *f, struct by_prng *prng, unsigned ranks, unsigned span)
{
    unsigned greatest = (unsigned)by_prng_below(prng, f->exponents);

    for (unsigned r = 0; r < ranks; r++)
        for (unsigned i = 0; i < COUNT; i++)
            input[r][i] = element_draw(f, prng, greatest, span);
    return greatest;
}

static struct reduce_wide exact_sum(const struct wide_format *f, unsigned ranks, unsigned i)
{
    struct reduce_wide sum = {{0}};

    for (unsigned r = 0; r < ranks; r++)
        wide_add_element(&sum, f, input[r][i], 0);
    return sum;
}

/*
 * If all elements of a block lie within so many powers of two of the greatest one that each is a
 * whole number of quanta, the result is the exact sum, rounded once. Elements below the minimum
 * exponent of a format are included.
 */
static void sums_within_the_span_are_the_exact_sum_rounded_once(void **state)
{
    struct by_prng prng = {seed_get()};
    uint64_t seed = prng.state;
    static struct exact_block block;

    (void)state;
    isa_print();
    FOR_EACH_ISA(isa)
    for (unsigned k = 0; k < FORMATS; k++)
        for (unsigned c = 0; c < sizeof(rank_counts) / sizeof(rank_counts[0]); c++) {
            const struct wide_format *f = &formats[k];
            unsigned ranks = rank_counts[c], h = log2_up(ranks);
            unsigned left = f->top - f->mant - 1;

            if (left < h)
                continue; /* f64 of many ranks: no element is certain to be whole quanta */
            draw_block(f, &prng, ranks, left - h);
            run_block(isa, f, ranks, COUNT, &prng, &block);
            for (unsigned i = 0; i < COUNT; i++) {
                struct reduce_wide sum = exact_sum(f, ranks, i);
                uint64_t right = wide_round(f, &sum);

                if (block.result[i] != right) {
                    seed_print("reduce-exact", seed);
                    fail_msg("%s %s of %u ranks, element %u: %llx, not %llx", by_isa_name(isa),
                             by_dtype_name(f->dtype), ranks, i, (unsigned long long)block.result[i],
                             (unsigned long long)right);
                }
            }
        }
}

/*
 * The bound of docs/arithmetic.md: |result - exact| <= n/2 quanta + half a unit in the last place
 * of the result. No float can test this directly. So the test rounds exact - n/2 quanta and exact +
 * n/2 quanta, and the result must lie between the two.
 */
static void sums_of_any_span_keep_to_the_bound(void **state)
{
    struct by_prng prng = {seed_get() + 1};
    uint64_t seed = prng.state - 1;
    static struct exact_block block;

    (void)state;
    FOR_EACH_ISA(isa)
    for (unsigned k = 0; k < FORMATS; k++)
        for (unsigned c = 0; c < sizeof(rank_counts) / sizeof(rank_counts[0]); c++) {
            const struct wide_format *f = &formats[k];
            unsigned ranks = rank_counts[c], h = log2_up(ranks), width = 8 * oracle_element_bytes(f->dtype);
            unsigned left = f->top - f->mant - 1;
            uint32_t top;

            draw_block(f, &prng, ranks, f->exponents);
            run_block(isa, f, ranks, COUNT, &prng, &block);
            top = block.words[0] + h < left + 1 ? left + 1 - h : block.words[0];
            for (unsigned i = 0; i < COUNT; i++) {
                struct reduce_wide low = exact_sum(f, ranks, i), high = low;
                /* Place of a quantum above 2^-1074; that of half a quantum is one lower, unless
                 * this is 0. */
                unsigned quantum = top + h + 1074 - (f->bias + f->top - 1);
                int64_t least, most, got, keys[3];
                uint64_t bits[3];

                wide_add(&low, quantum ? ranks : (ranks + 1) / 2, quantum ? quantum - 1 : 0, 1);
                wide_add(&high, quantum ? ranks : (ranks + 1) / 2, quantum ? quantum - 1 : 0, 0);
                bits[0] = wide_round(f, &low);
                bits[1] = wide_round(f, &high);
                bits[2] = block.result[i];
                for (unsigned b = 0; b < 3; b++) { /* maps bits to integers in the order of the numbers */
                    int negative = (int)(bits[b] >> (width - 1) & 1);
                    int64_t magnitude = (int64_t)(bits[b] & ~((uint64_t)1 << (width - 1)));

                    keys[b] = negative ? -magnitude : magnitude;
                }
                least = keys[0];
                most = keys[1];
                got = keys[2];
                if (got < least || got > most) {
                    seed_print("reduce-exact", seed);
                    fail_msg("%s %s of %u ranks, element %u: %llx is not between %llx and %llx",
                             by_isa_name(isa), by_dtype_name(f->dtype), ranks, i, (unsigned long long)bits[2],
                             (unsigned long long)bits[0], (unsigned long long)bits[1]);
                }
            }
        }
}

/* One element of the block is special at some ranks. The other elements follow IEEE 754. */
static void infinities_and_nans_stay_in_their_element(void **state)
{
    struct by_prng prng = {3};
    static struct exact_block block;

    (void)state;
    FOR_EACH_ISA(isa)
    for (unsigned k = 0; k < FORMATS; k++)
        for (unsigned ranks = 2; ranks <= 64; ranks += 31) {
            const struct wide_format *f = &formats[k];
            unsigned width = 8 * oracle_element_bytes(f->dtype);
            uint64_t infinity = (uint64_t)f->exponents << f->mant, sign = (uint64_t)1 << (width - 1);
            uint64_t quiet = infinity | (uint64_t)1 << (f->mant - 1);
            uint64_t one = (uint64_t)f->bias << f->mant;

            for (unsigned r = 0; r < ranks; r++)
                for (unsigned i = 0; i < COUNT; i++)
                    input[r][i] = one | (by_prng_below(&prng, 2) ? sign : 0);
            input[0][1] = infinity;
            input[0][2] = infinity | sign;
            input[1][3] = infinity | 1; /* signalling */
            input[0][4] = infinity;
            input[1][4] = infinity | sign;
            for (unsigned r = 0; r < ranks; r++) {
                input[r][5] = infinity;
                input[r][6] = infinity | sign;
                input[r][7] = quiet | sign;
                input[r][8] = one;
                input[r][9] = one | sign;
            }
            run_block(isa, f, ranks, COUNT, &prng, &block);
            assert_int_equal(block.words[1], 1);
            assert_int_equal(block.result[1], infinity);
            assert_int_equal(block.result[2], infinity | sign);
            assert_int_equal(block.result[3], quiet);
            assert_int_equal(block.result[4], quiet);
            assert_int_equal(block.result[5], infinity);
            assert_int_equal(block.result[6], infinity | sign);
            assert_int_equal(block.result[7], quiet);
            for (unsigned i = 8; i < COUNT; i++) { /* +-1 are whole quanta of these blocks too */
                struct reduce_wide sum = exact_sum(f, ranks, i);

                assert_int_equal(block.result[i], wide_round(f, &sum));
            }
        }
}

static void zeros_and_subnormals_are_exact(void **state)
{
    struct by_prng prng = {4};
    static struct exact_block block;

    (void)state;
    FOR_EACH_ISA(isa)
    for (unsigned k = 0; k < FORMATS; k++) {
        const struct wide_format *f = &formats[k];
        uint64_t sign = (uint64_t)1 << (8 * oracle_element_bytes(f->dtype) - 1);

        for (unsigned r = 0; r < 5; r++)
            for (unsigned i = 0; i < COUNT; i++)
                input[r][i] = (by_prng_next(&prng) & (((uint64_t)1 << f->mant) - 1)) | (i & 1 ? sign : 0);
        for (unsigned r = 0; r < 5; r++) {
            input[r][0] = sign; /* -0 at all ranks: the sum is +0 */
            input[r][1] = r == 4 ? 4 | sign : 1;
        }
        run_block(isa, f, 5, COUNT, &prng, &block);
        assert_int_equal(block.result[0], 0);
        assert_int_equal(block.result[1], 0);
        for (unsigned i = 2; i < COUNT; i++) {
            struct reduce_wide sum = exact_sum(f, 5, i);

            assert_int_equal(block.result[i], wide_round(f, &sum));
        }
    }
}

/* Intermediate overflow that later cancels gives a finite result. Only a sum that is too large is
 * an infinity. */
static void only_the_sum_itself_can_overflow(void **state)
{
    struct by_prng prng = {5};
    static struct exact_block block;

    (void)state;
    FOR_EACH_ISA(isa)
    for (unsigned k = 0; k < FORMATS; k++) {
        const struct wide_format *f = &formats[k];
        uint64_t sign = (uint64_t)1 << (8 * oracle_element_bytes(f->dtype) - 1);
        uint64_t infinity = (uint64_t)f->exponents << f->mant, greatest = infinity - 1;

        for (unsigned i = 0; i < COUNT; i++) {
            input[0][i] = greatest;
            input[1][i] = greatest | (i & 1 ? sign : 0);
            input[2][i] = greatest | sign;
        }
        run_block(isa, f, 3, COUNT, &prng, &block);
        for (unsigned i = 0; i < COUNT; i++)
            assert_int_equal(block.result[i], i & 1 ? greatest | sign : greatest);
        for (unsigned i = 0; i < COUNT; i++)
            input[2][i] = greatest;
        run_block(isa, f, 3, COUNT, &prng, &block);
        assert_int_equal(block.result[0], infinity);
        assert_int_equal(block.result[1], greatest);
    }
}

/* All instruction sets give the same bits, on blocks of every length with arbitrary contents. */
static void all_instruction_sets_give_the_same_bits(void **state)
{
    struct by_prng prng = {seed_get() + 2};
    static struct exact_block scalar, other;

    (void)state;
    for (unsigned k = 0; k < FORMATS; k++)
        for (unsigned count = 1; count <= COUNT; count += count < 40 ? 1 : 27) {
            struct by_prng one = {count}, two = {count};

            for (unsigned r = 0; r < 7; r++)
                for (unsigned i = 0; i < count; i++) {
                    input[r][i] = by_prng_next(&prng);
                    if (k == 3 && i == 0)
                        input[r][i] &= ~((uint64_t)1 << 62);
                    if (k < 3)
                        input[r][i] &= ((uint64_t)1 << (8 * oracle_element_bytes(formats[k].dtype))) - 1;
                }
            run_block(BY_ISA_SCALAR, &formats[k], 7, count, &one, &scalar);
            FOR_EACH_ISA(isa)
            {
                run_block(isa, &formats[k], 7, count, &two, &other);
                assert_memory_equal(&scalar, &other, sizeof(scalar));
            }
        }
}

static void what_is_summed_in_which_type(void **state)
{
    (void)state;
    assert_null(by_exact_get(BY_ISA_SCALAR, BY_DTYPE_I32));
    for (unsigned isa = 0; isa <= BY_ISA_COUNT; isa++) {
        assert_null(by_exact_get(isa, BY_DTYPE_COUNT));
        assert_null(by_exact_get(isa, BY_DTYPE_COUNT + 1));
    }
    assert_ptr_equal(by_exact_get(BY_ISA_COUNT, BY_DTYPE_F32), by_exact_get(BY_ISA_SCALAR, BY_DTYPE_F32));
    assert_int_equal(by_reduction_dtype(BY_MODE_EXACT, BY_OP_SUM, BY_DTYPE_F32), BY_DTYPE_I64);
    assert_int_equal(by_reduction_dtype(BY_MODE_EXACT, BY_OP_SUM, BY_DTYPE_F64), BY_DTYPE_I64);
    assert_int_equal(by_reduction_dtype(BY_MODE_EXACT, BY_OP_SUM, BY_DTYPE_F16), BY_DTYPE_I32);
    assert_int_equal(by_reduction_dtype(BY_MODE_EXACT, BY_OP_SUM, BY_DTYPE_BF16), BY_DTYPE_I32);
    assert_int_equal(by_reduction_dtype(BY_MODE_EXACT, BY_OP_MAX, BY_DTYPE_F32), BY_DTYPE_F32);
    assert_int_equal(by_reduction_dtype(BY_MODE_EXACT, BY_OP_SUM, BY_DTYPE_U8), BY_DTYPE_U8);
    assert_int_equal(by_reduction_dtype(BY_MODE_EXACT, BY_OP_PROD, BY_DTYPE_F32), 0);
    assert_int_equal(by_reduction_dtype(BY_MODE_DET, BY_OP_PROD, BY_DTYPE_F32), BY_DTYPE_F32);
    assert_int_equal(by_reduction_dtype(0, BY_OP_SUM, BY_DTYPE_F32), 0);
    assert_int_equal(by_reduction_dtype(BY_MODE_COUNT, BY_OP_SUM, BY_DTYPE_I32), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_within_the_span_are_the_exact_sum_rounded_once),
        cmocka_unit_test(sums_of_any_span_keep_to_the_bound),
        cmocka_unit_test(infinities_and_nans_stay_in_their_element),
        cmocka_unit_test(zeros_and_subnormals_are_exact),
        cmocka_unit_test(only_the_sum_itself_can_overflow),
        cmocka_unit_test(all_instruction_sets_give_the_same_bits),
        cmocka_unit_test(what_is_summed_in_which_type),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

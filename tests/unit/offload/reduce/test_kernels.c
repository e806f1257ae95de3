/* Each operator on each element type, on each instruction set of this processor, against
 * oracle.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/offload/reduce/check.h"
#include "tests/unit/offload/reduce/oracle.h"

/* Counts of elements on both sides of each loop's boundaries, and of full packets: f32 (352) and
 * the largest payload. */
static const uint32_t counts[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 65, 351, 352, 2048};
#define COUNTS    (sizeof(counts) / sizeof(counts[0]))
#define COUNT_MAX 2048u
#define GUARD     64u
#define ROUNDS    3u  /* contributions: one load, then accumulates */
#define TERMS_MAX 64u /* as many as a node of mode DET has children */

/* Each defined pair of `op` and `dtype`. */
#define FOR_EACH_PAIR(op, dtype)                                                                             \
    for (unsigned op = 1; op < BY_OP_COUNT; op++)                                                            \
        for (unsigned dtype = 1; dtype < BY_DTYPE_COUNT; dtype++)                                            \
            if (oracle_defined(op, dtype))

/* Half of all elements are random bits. The others have values at which arithmetic is special. */
static uint64_t element_draw(struct by_prng *prng, unsigned dtype)
{
    static const uint32_t singles[] = {0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000,
                                       0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
                                       0xffc12345, 0x7f800001, 0xff812345, 0x3f800000, 0xbf800000,
                                       0x4b800000, 0x33800000, 0x20000000};
    uint64_t random = by_prng_next(prng);
    uint32_t single = singles[by_prng_below(prng, sizeof(singles) / sizeof(singles[0]))];

    if (random & 1)
        return by_prng_next(prng);
    switch (dtype) {
    case BY_DTYPE_F32:
        return single;
    case BY_DTYPE_BF16:
        return single >> 16 | (single & 1);
    case BY_DTYPE_F16:
        return (single & 0x80000000u) >> 16 | (single >> 13 & 0x7fffu) | (single & 1);
    case BY_DTYPE_F64:
        return (uint64_t)(single & 0x80000000u) << 32 | (uint64_t)(single & 0x7fffffffu) << 29 |
               ((single & 0x7f800000u) == 0x7f800000u ? 0x7ff0000000000000u : 0) | (single & 1);
    default: /* integers near zero and near both ends */
        return (random & 2 ? (uint64_t)1 << by_prng_below(prng, 64) : 0) + by_prng_below(prng, 3) - 1;
    }
}

/* Returns `count` elements at `offset` in an exact allocation, so that the address sanitizer
 * detects reads past the end. */
static uint8_t *contribution_draw(struct by_prng *prng, unsigned dtype, uint32_t count, size_t offset)
{
    unsigned size = oracle_element_bytes(dtype);
    uint8_t *data = malloc(offset + (size_t)count * size + (count == 0));

    assert_non_null(data);
    for (uint32_t i = 0; i < count; i++)
        element_put(data + offset, size, i, element_draw(prng, dtype));
    return data;
}

static void guard_check(const uint8_t *acc, size_t span)
{
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal(acc[span + i], 0xa5);
}

/* Makes ROUNDS contributions of `count` elements, and compares each step with the oracle. Returns 0
 * or the number of the failed step. */
static int slot_run(unsigned isa, unsigned op, unsigned dtype, uint32_t count, size_t offset,
                    struct by_prng *prng)
{
    static uint8_t acc[COUNT_MAX * 8 + GUARD];
    static uint64_t expected[COUNT_MAX];
    const struct by_reducer *reducer = by_reducer_get(isa, op, dtype);
    size_t bytes = (size_t)count * reducer->element_bytes;
    uint32_t guard = 0;
    int wrong = 0;

    memset(acc, 0xa5, sizeof(acc));
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint8_t *data = contribution_draw(prng, dtype, count, offset);

        if (round == 0)
            guard = reducer->load(acc, data + offset, count);
        else
            wrong |= !reducer->accumulate(acc, data + offset, count, &guard);
        wrong |= guard != oracle_psum(acc, (size_t)count * reducer->acc_bytes);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t in = element_get(data + offset, reducer->element_bytes, i);

            expected[i] = round == 0 ? oracle_load(dtype, in) : oracle_apply(op, dtype, expected[i], in);
            wrong |= element_get(acc, reducer->acc_bytes, slot_place(dtype, i, count)) != expected[i];
        }
        guard_check(acc, (size_t)count * reducer->acc_bytes);
        free(data);
        if (wrong)
            return (int)round + 1;
    }
    wrong |= !reducer->store(acc, count, &guard);
    for (uint32_t i = 0; i < count; i++)
        wrong |= element_get(acc, reducer->element_bytes, i) != oracle_store(dtype, expected[i]);
    guard_check(acc, (size_t)count * reducer->acc_bytes);
    return wrong || guard != oracle_psum(acc, bytes) ? (int)ROUNDS + 1 : 0;
}

static void every_pair_matches_the_oracle(void **state)
{
    struct by_prng prng = {seed_get()};
    uint64_t seed = prng.state;

    (void)state;
    isa_print();
    FOR_EACH_ISA(isa)
    FOR_EACH_PAIR(op, dtype)
    for (size_t i = 0; i < COUNTS; i++)
        for (size_t offset = 0; offset < 4; offset++) {
            int step = slot_run(isa, op, dtype, counts[i], offset, &prng);

            if (step != 0) {
                seed_print("reduce-kernels", seed);
                fail_msg("%s %s %s: %u elements at offset %zu differ after step %d", by_isa_name(isa),
                         by_op_name(op), by_dtype_name(dtype), counts[i], offset, step);
            }
        }
}

/* f32: NaNs of both kinds and signs, infinities, zeros, the smallest and largest subnormals and
 * normals, ones. */
static const uint32_t special[] = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff,
                                   0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
                                   0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7fffffff, 0xffffffff,
                                   0x3f800000, 0xbf800000, 0x3f800001, 0x4b000001, 0xcb000001};
#define SPECIAL (sizeof(special) / sizeof(special[0]))

/* Returns the corresponding value of `dtype` for types of floats; for integers the bits
 * themselves. */
static uint64_t special_as(unsigned dtype, uint32_t single)
{
    uint64_t sign = single >> 31, e = single >> 23 & 0xff, m = single & 0x7fffff;

    switch (dtype) {
    case BY_DTYPE_F16:
        e = e == 0xff ? 31 : e == 0xfe ? 30 : e > 15 ? (e < 127 ? e - 112 : e % 16 + 8) : e;
        return sign << 15 | (e & 31) << 10 | (m == 0 ? 0 : m == 0x7fffff ? 0x3ff : (m & 0x3fe) | 1) | m >> 13;
    case BY_DTYPE_BF16:
        return single >> 16 | (m != 0 && m >> 16 == 0);
    case BY_DTYPE_F64:
        e = e == 0xff ? 0x7ff : e == 0xfe ? 0x7fe : e == 0 ? 0 : e == 1 ? 1 : e + 896;
        return sign << 63 | e << 52 | (m == 0x7fffff ? UINT64_C(0xfffffffffffff) : m << 29 | (m & 1));
    default:
        return (uint64_t)single << 32 | single;
    }
}

/* Each special value with each other, in vectors and in the remainder. */
static void every_pair_of_special_values_matches_the_oracle(void **state)
{
    static uint8_t a[SPECIAL * SPECIAL * 8], b[SPECIAL * SPECIAL * 8], acc[SPECIAL * SPECIAL * 8];
    uint32_t count = SPECIAL * SPECIAL;

    (void)state;
    FOR_EACH_ISA(isa)
    FOR_EACH_PAIR(op, dtype)
    {
        const struct by_reducer *reducer = by_reducer_get(isa, op, dtype);
        unsigned size = reducer->element_bytes;
        uint32_t guard;

        for (uint32_t i = 0; i < count; i++) {
            element_put(a, size, i, special_as(dtype, special[i / SPECIAL]));
            element_put(b, size, i, special_as(dtype, special[i % SPECIAL]));
        }
        guard = reducer->load(acc, a, count);
        assert_true(reducer->accumulate(acc, b, count, &guard));
        assert_true(reducer->store(acc, count, &guard));
        for (uint32_t i = 0; i < count; i++) {
            uint64_t x = element_get(a, size, i), y = element_get(b, size, i);
            uint64_t right = oracle_store(dtype, oracle_apply(op, dtype, oracle_load(dtype, x), y));

            if (element_get(acc, size, i) != right)
                fail_msg("%s: %s of %s %llx and %llx: %llx, not %llx", by_isa_name(isa), by_op_name(op),
                         by_dtype_name(dtype), (unsigned long long)x, (unsigned long long)y,
                         (unsigned long long)element_get(acc, size, i), (unsigned long long)right);
        }
    }
}

static void all_instruction_sets_give_the_same_bits(void **state)
{
    static uint64_t in[2][COUNT_MAX], scalar[COUNT_MAX], other[COUNT_MAX];
    struct by_prng prng = {seed_get()};
    uint64_t seed = prng.state;

    (void)state;
    FOR_EACH_PAIR(op, dtype)
    for (unsigned round = 0; round < 8; round++) {
        const struct by_reducer *reference = by_reducer_get(BY_ISA_SCALAR, op, dtype);
        uint32_t count = COUNT_MAX - (uint32_t)by_prng_below(&prng, 40);

        for (uint32_t i = 0; i < COUNT_MAX; i++) {
            in[0][i] = by_prng_next(&prng);
            in[1][i] = by_prng_next(&prng);
        }
        uint32_t guard = reference->load(scalar, in[0], count);

        assert_true(reference->accumulate(scalar, in[1], count, &guard));
        FOR_EACH_ISA(isa)
        {
            const struct by_reducer *reducer = by_reducer_get(isa, op, dtype);
            uint64_t copy[COUNT_MAX];
            size_t bytes = (size_t)count * reducer->acc_bytes;
            uint32_t mine = reducer->load(other, in[0], count), theirs = guard;

            memcpy(copy, scalar, bytes);
            if (!reducer->accumulate(other, in[1], count, &mine) || mine != theirs ||
                memcmp(scalar, other, bytes) != 0 || !reducer->store(other, count, &mine) ||
                !reference->store(copy, count, &theirs) || mine != theirs ||
                memcmp(copy, other, (size_t)count * reducer->element_bytes) != 0) {
                seed_print("reduce-kernels", seed);
                fail_msg("%s %s %s differs from scalar", by_isa_name(isa), by_op_name(op),
                         by_dtype_name(dtype));
            }
        }
    }
}

/* Values that are added in several calls of add_terms, and what they add up to. */
struct terms_case {
    unsigned op, dtype;
    uint32_t count; /* elements */
    size_t offset;  /* of each input in its allocation */
    uint32_t inputs;
    uint64_t pairs; /* bit k: inputs k and k + 1 are one term */
    uint8_t *in[TERMS_MAX];
    uint8_t right[COUNT_MAX * 8 + GUARD];
    uint32_t right_guard;
};

/* Draws the inputs, and adds them one pair after another by the scalar kernels. */
static void terms_draw(struct terms_case *with, struct by_prng *prng)
{
    static uint8_t pair[COUNT_MAX * 8];
    const struct by_reducer *scalar = by_reducer_get(BY_ISA_SCALAR, with->op, with->dtype);
    const struct by_reducer *fold =
        by_reducer_get(BY_ISA_SCALAR, with->op, scalar->acc_bytes == 4 ? BY_DTYPE_F32 : with->dtype);

    with->inputs = 1 + (uint32_t)by_prng_below(prng, by_prng_below(prng, 4) == 0 ? TERMS_MAX : 12);
    with->pairs = 0;
    memset(with->right, 0xa5, sizeof(with->right));
    for (uint32_t k = 0; k < with->inputs; k++)
        with->in[k] = contribution_draw(prng, with->dtype, with->count, with->offset);
    for (uint32_t k = 0; k < with->inputs; k++) {
        uint32_t pair_guard = scalar->load(pair, with->in[k] + with->offset, with->count);
        int alone = 1;

        if (k + 1 < with->inputs && by_prng_below(prng, 4) > 0) {
            with->pairs |= UINT64_C(1) << k++;
            alone = 0;
            assert_true(scalar->accumulate(pair, with->in[k] + with->offset, with->count, &pair_guard));
        }
        if (k == (alone ? 0u : 1u)) {
            memcpy(with->right, pair, (size_t)with->count * scalar->acc_bytes);
            with->right_guard = pair_guard;
        } else {
            assert_true(fold->accumulate(with->right, pair, with->count, &with->right_guard));
        }
    }
}

/* Returns 1 if add_terms gives the same bits, in calls of random lengths, together with the guards
 * and psums, and writes nothing behind the slot. */
static int terms_run(unsigned isa, const struct terms_case *with, struct by_prng *prng)
{
    static uint8_t acc[COUNT_MAX * 8 + GUARD];
    const struct by_reducer *reducer = by_reducer_get(isa, with->op, with->dtype);
    uint32_t guard = 0;
    int same = 1;

    memset(acc, 0xa5, sizeof(acc));
    for (uint32_t k = 0, first; k < with->inputs;) {
        uint32_t most = 2 + (uint32_t)by_prng_below(prng, BY_GATHER_MAX - 1);
        struct by_terms terms = {.begun = k > 0};
        uint32_t before;

        for (first = k; k < with->inputs && terms.inputs + 1 + (with->pairs >> k & 1) <= most;) {
            terms.pairs |= (uint8_t)((with->pairs >> k & 1) << terms.inputs);
            for (unsigned both = 1 + (with->pairs >> k & 1); both > 0; both--)
                terms.in[terms.inputs++] = with->in[k++] + with->offset;
        }
        before = guard;
        guard = reducer->add_terms(acc, &terms, with->count);
        same &= first == 0 || terms.before == before;
        same &= guard == oracle_psum(acc, (size_t)with->count * reducer->acc_bytes);
        for (uint32_t i = 0; i < terms.inputs; i++)
            same &= terms.psum[i] == oracle_psum(with->in[first + i] + with->offset,
                                                 (size_t)with->count * reducer->element_bytes);
    }
    return same && guard == with->right_guard && memcmp(acc, with->right, sizeof(acc)) == 0;
}

static void terms_in_one_pass_have_the_bits_of_pairs_that_are_added_one_by_one(void **state)
{
    static struct terms_case with;
    struct by_prng prng = {seed_get()};
    uint64_t seed = prng.state;

    (void)state;
    FOR_EACH_PAIR(op, dtype)
    for (size_t i = 0; i < 3 * COUNTS; i++) {
        with.op = op;
        with.dtype = dtype;
        with.count = counts[i % COUNTS];
        with.offset = i % 4;
        if (!by_reduction_is_ordered(op, dtype))
            continue;
        terms_draw(&with, &prng);
        FOR_EACH_ISA(isa)
        if (!terms_run(isa, &with, &prng)) {
            seed_print("reduce-kernels", seed);
            fail_msg("%s %s %s: %u terms of %u elements at offset %zu", by_isa_name(isa), by_op_name(op),
                     by_dtype_name(dtype), with.inputs, with.count, with.offset);
        }
        for (uint32_t k = 0; k < with.inputs; k++)
            free(with.in[k]);
    }
    FOR_EACH_ISA(isa)
    FOR_EACH_PAIR(op, dtype)
    assert_int_equal(by_reducer_get(isa, op, dtype)->add_terms != NULL, by_reduction_is_ordered(op, dtype));
}

/* What changed in memory is visible in the psums of the inputs, and in the guard that the slot
 * had. */
static void terms_show_each_flipped_bit_of_an_input_and_of_the_slot(void **state)
{
    struct by_prng prng = {seed_get()};

    (void)state;
    FOR_EACH_ISA(isa)
    FOR_EACH_PAIR(op, dtype)
    for (unsigned run = 0; by_reduction_is_ordered(op, dtype) && run < 40; run++) {
        const struct by_reducer *reducer = by_reducer_get(isa, op, dtype);
        uint32_t count = counts[1 + run % (COUNTS - 1)], which = run % 4;
        struct by_terms terms = {.inputs = 3, .pairs = 2, .begun = 1};
        static uint8_t acc[COUNT_MAX * 8];
        size_t bytes = (size_t)count * reducer->element_bytes, span = (size_t)count * reducer->acc_bytes;
        uint8_t *in[3], *flipped;
        uint32_t psum[3], guard;
        size_t bit;

        for (unsigned k = 0; k < 3; k++) {
            terms.in[k] = in[k] = contribution_draw(&prng, dtype, count, 0);
            psum[k] = oracle_psum(in[k], bytes);
        }
        guard = reducer->load(acc, in[0], count);
        bit = by_prng_below(&prng, 8 * (which < 3 ? bytes : span));
        flipped = (which < 3 ? in[which] : acc) + bit / 8;
        *flipped ^= (uint8_t)(1u << bit % 8);
        reducer->add_terms(acc, &terms, count);
        assert_int_equal(terms.before != guard, which == 3);
        for (unsigned k = 0; k < 3; k++) {
            assert_int_equal(terms.psum[k] != psum[k], which == k);
            free(in[k]);
        }
    }
}

/* Returns 1 if gather gives the bits, the guard and the psums of a load and accumulations by the
 * scalar kernels, and writes nothing behind the slot. */
static int gather_run(unsigned isa, unsigned op, unsigned dtype, uint32_t count, uint32_t inputs,
                      size_t offset, struct by_prng *prng)
{
    static uint8_t right[COUNT_MAX * 8 + GUARD], acc[COUNT_MAX * 8 + GUARD];
    const struct by_reducer *reducer = by_reducer_get(isa, op, dtype);
    const struct by_reducer *scalar = by_reducer_get(BY_ISA_SCALAR, op, dtype);
    uint8_t *drawn[BY_GATHER_MAX];
    const void *in[BY_GATHER_MAX];
    uint32_t psums[BY_GATHER_MAX], guard;
    int same;

    for (uint32_t i = 0; i < inputs; i++) {
        drawn[i] = contribution_draw(prng, dtype, count, offset);
        in[i] = drawn[i] + offset;
    }
    memset(right, 0xa5, sizeof(right));
    memset(acc, 0xa5, sizeof(acc));
    guard = scalar->load(right, in[0], count);
    for (uint32_t i = 1; i < inputs; i++)
        assert_true(scalar->accumulate(right, in[i], count, &guard));
    same = reducer->gather(acc, in, inputs, count, psums) == guard && memcmp(acc, right, sizeof(acc)) == 0;
    for (uint32_t i = 0; i < inputs; i++) {
        same &= psums[i] == oracle_psum(in[i], (size_t)count * reducer->element_bytes);
        free(drawn[i]);
    }
    return same;
}

static void a_gather_has_the_bits_of_a_load_and_accumulations(void **state)
{
    struct by_prng prng = {seed_get()};
    uint64_t seed = prng.state;

    (void)state;
    if (!BY_GATHERS)
        skip();
    FOR_EACH_ISA(isa)
    FOR_EACH_PAIR(op, dtype)
    for (size_t i = 0; i < COUNTS; i++)
        for (uint32_t inputs = 2; inputs <= BY_GATHER_MAX; inputs++)
            if (!gather_run(isa, op, dtype, counts[i], inputs, (i + inputs) % 4, &prng)) {
                seed_print("reduce-kernels", seed);
                fail_msg("%s %s %s: %u inputs of %u elements", by_isa_name(isa), by_op_name(op),
                         by_dtype_name(dtype), inputs, counts[i]);
            }
}

static void undefined_pairs_and_unknown_values_have_no_kernels(void **state)
{
    (void)state;
    for (unsigned isa = 0; isa <= BY_ISA_COUNT; isa++)
        for (unsigned op = 0; op <= BY_OP_COUNT + 1; op++)
            for (unsigned dtype = 0; dtype <= BY_DTYPE_COUNT + 1; dtype++) {
                const struct by_reducer *reducer = by_reducer_get(isa, op, dtype);
                int known = op > 0 && op < BY_OP_COUNT && dtype > 0 && dtype < BY_DTYPE_COUNT;

                if (!known || !oracle_defined(op, dtype)) {
                    assert_null(reducer);
                    continue;
                }
                assert_non_null(reducer);
                assert_int_equal(reducer->element_bytes, by_dtype_bytes(dtype));
                assert_int_equal(reducer->acc_bytes, oracle_acc_bytes(dtype));
            }
    assert_null(by_reducer_get(BY_ISA_SCALAR, BY_OP_BAND, BY_DTYPE_F32));
    assert_null(by_reducer_get(BY_ISA_SCALAR, UINT32_MAX, UINT32_MAX));
}

static void written_values_hold_on_every_instruction_set(void **state)
{
    static const struct {
        unsigned op, dtype;
        uint64_t a, b, expected;
    } cases[] = {
        {BY_OP_SUM, BY_DTYPE_I8, 0x7f, 0x01, 0x80},
        {BY_OP_SUM, BY_DTYPE_U8, 0xff, 0x02, 0x01},
        {BY_OP_PROD, BY_DTYPE_I8, 0x80, 0xff, 0x80},
        {BY_OP_SUM, BY_DTYPE_I32, 0x7fffffff, 0x7fffffff, 0xfffffffe},
        {BY_OP_PROD, BY_DTYPE_I32, 0x80000000, 0xffffffff, 0x80000000},
        {BY_OP_PROD, BY_DTYPE_U32, 0xffffffff, 0xffffffff, 1},
        {BY_OP_SUM, BY_DTYPE_I64, INT64_MAX, 1, (uint64_t)1 << 63},
        {BY_OP_PROD, BY_DTYPE_I64, (uint64_t)1 << 63, UINT64_MAX, (uint64_t)1 << 63},
        {BY_OP_PROD, BY_DTYPE_U64, 0x100000001, 0x100000001, 0x200000001},
        {BY_OP_MIN, BY_DTYPE_I8, 0x80, 0x7f, 0x80},
        {BY_OP_MIN, BY_DTYPE_U8, 0x80, 0x7f, 0x7f},
        {BY_OP_MAX, BY_DTYPE_I64, (uint64_t)1 << 63, 0, 0},
        {BY_OP_MAX, BY_DTYPE_U64, (uint64_t)1 << 63, 0, (uint64_t)1 << 63},
        {BY_OP_BXOR, BY_DTYPE_U8, 0xf0, 0xff, 0x0f},
        /* -0 is below +0 as either operand; sums follow IEEE 754 */
        {BY_OP_MIN, BY_DTYPE_F32, 0x00000000, 0x80000000, 0x80000000},
        {BY_OP_MIN, BY_DTYPE_F32, 0x80000000, 0x00000000, 0x80000000},
        {BY_OP_MAX, BY_DTYPE_F32, 0x00000000, 0x80000000, 0x00000000},
        {BY_OP_MAX, BY_DTYPE_F32, 0x80000000, 0x00000000, 0x00000000},
        {BY_OP_MIN, BY_DTYPE_F16, 0x0000, 0x8000, 0x8000},
        {BY_OP_MAX, BY_DTYPE_BF16, 0x8000, 0x0000, 0x0000},
        {BY_OP_MIN, BY_DTYPE_F64, 0, (uint64_t)1 << 63, (uint64_t)1 << 63},
        {BY_OP_SUM, BY_DTYPE_F32, 0x80000000, 0x80000000, 0x80000000},
        {BY_OP_SUM, BY_DTYPE_F32, 0x3f800000, 0xbf800000, 0x00000000},
        /* infinities, subnormals */
        {BY_OP_MIN, BY_DTYPE_F32, 0xff800000, 0xff7fffff, 0xff800000},
        {BY_OP_MAX, BY_DTYPE_F32, 0x00000001, 0x80000001, 0x00000001},
        {BY_OP_SUM, BY_DTYPE_F32, 0x00000001, 0x00000001, 0x00000002},
        {BY_OP_SUM, BY_DTYPE_F32, 0x7f7fffff, 0x7f7fffff, 0x7f800000},
        {BY_OP_SUM, BY_DTYPE_F16, 0x0001, 0x0001, 0x0002},
        {BY_OP_SUM, BY_DTYPE_F16, 0x7bff, 0x7bff, 0x7c00},
        {BY_OP_PROD, BY_DTYPE_F16, 0x0001, 0x3800, 0x0000},
        /* every operation that makes a NaN, with either operand, makes the same NaN */
        {BY_OP_SUM, BY_DTYPE_F32, 0x7f800000, 0xff800000, 0x7fc00000},
        {BY_OP_SUM, BY_DTYPE_F32, 0xffc12345, 0x3f800000, 0x7fc00000},
        {BY_OP_SUM, BY_DTYPE_F32, 0x3f800000, 0x7f800001, 0x7fc00000},
        {BY_OP_PROD, BY_DTYPE_F32, 0x7f800000, 0x00000000, 0x7fc00000},
        {BY_OP_MIN, BY_DTYPE_F32, 0xffc12345, 0xff800000, 0x7fc00000},
        {BY_OP_MIN, BY_DTYPE_F32, 0xff800000, 0xffc12345, 0x7fc00000},
        {BY_OP_MAX, BY_DTYPE_F32, 0x7f800000, 0x7f800001, 0x7fc00000},
        {BY_OP_MAX, BY_DTYPE_F32, 0xffc00001, 0xffc00001, 0x7fc00000},
        {BY_OP_MAX, BY_DTYPE_F64, 0x7ff0000000000001, 0, 0x7ff8000000000000},
        {BY_OP_SUM, BY_DTYPE_F64, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000},
        {BY_OP_SUM, BY_DTYPE_F16, 0x7c00, 0xfc00, 0x7e00},
        {BY_OP_MIN, BY_DTYPE_F16, 0xfe01, 0x0000, 0x7e00},
        {BY_OP_SUM, BY_DTYPE_BF16, 0x7f80, 0xff80, 0x7fc0},
        {BY_OP_MAX, BY_DTYPE_BF16, 0x0000, 0xff81, 0x7fc0},
    };
    uint8_t a[8 * 67], b[8 * 67], acc[8 * 68];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        FOR_EACH_ISA(isa)
        {
            const struct by_reducer *reducer = by_reducer_get(isa, cases[i].op, cases[i].dtype);

            uint32_t guard;

            for (uint32_t k = 0; k < 67; k++) { /* in vectors and in the remainder */
                element_put(a, reducer->element_bytes, k, cases[i].a);
                element_put(b, reducer->element_bytes, k, cases[i].b);
            }
            guard = reducer->load(acc, a, 67);
            assert_true(reducer->accumulate(acc, b, 67, &guard));
            assert_true(reducer->store(acc, 67, &guard));
            for (uint32_t k = 0; k < 67; k++)
                if (element_get(acc, reducer->element_bytes, k) != cases[i].expected)
                    fail_msg("%s: case %zu, element %u: %llx", by_isa_name(isa), i, k,
                             (unsigned long long)element_get(acc, reducer->element_bytes, k));
        }
}

static void half_sums_are_rounded_only_when_they_leave(void **state)
{
    /* 2048 + 1 is a tie in f16 and would stay 2048 forever; f32 keeps each 1. */
    FOR_EACH_ISA(isa)
    {
        const struct by_reducer *reducer = by_reducer_get(isa, BY_OP_SUM, BY_DTYPE_F16);
        uint16_t first = 0x6800, one = 0x3c00;
        uint32_t acc, guard = reducer->load(&acc, &first, 1);

        for (unsigned i = 0; i < 8; i++)
            assert_true(reducer->accumulate(&acc, &one, 1, &guard));
        assert_true(reducer->store(&acc, 1, &guard));
        assert_int_equal(guard, 0x6804);
        assert_int_equal(acc & 0xffff, 0x6804); /* 2056 */
    }
    (void)state;
}

/* Each bit of a slot, in vectors and in the remainder, with each kernel that reads it. */
static void a_flipped_bit_of_a_slot_is_seen_by_the_next_kernel(void **state)
{
    static uint8_t acc[8 * 71], in[8 * 71];
    struct by_prng prng = {11};
    uint32_t count = 71;

    (void)state;
    FOR_EACH_ISA(isa)
    FOR_EACH_PAIR(op, dtype)
    {
        const struct by_reducer *reducer = by_reducer_get(isa, op, dtype);
        size_t bits = (size_t)count * reducer->acc_bytes * 8;

        for (size_t i = 0; i < sizeof(in); i++)
            in[i] = (uint8_t)by_prng_next(&prng);
        for (size_t bit = by_prng_below(&prng, 5); bit < bits; bit += 1 + by_prng_below(&prng, 9)) {
            uint32_t guard = reducer->load(acc, in, count);

            assert_true(reducer->accumulate(acc, in, count, &guard));
            acc[bit / 8] ^= (uint8_t)(1u << bit % 8);
            if (bit & 1)
                assert_false(reducer->accumulate(acc, in, count, &guard));
            else
                assert_false(reducer->store(acc, count, &guard));
        }
    }
}

static void instruction_sets_have_names_and_the_best_is_usable(void **state)
{
    (void)state;
    assert_true(by_isa_usable(by_isa_best()));
    assert_true(by_isa_usable(BY_ISA_SCALAR));
    assert_false(by_isa_usable(0));
    assert_false(by_isa_usable(BY_ISA_COUNT));
    assert_false(by_isa_usable(BY_ISA_AVX2) && by_isa_usable(BY_ISA_NEON));
    assert_string_equal(by_isa_name(BY_ISA_SCALAR), "scalar");
    assert_string_equal(by_isa_name(BY_ISA_AVX512), "avx512");
    assert_string_equal(by_isa_name(0), "?");
    assert_string_equal(by_isa_name(BY_ISA_COUNT), "?");
}

static void an_instruction_set_of_another_build_gives_the_scalar_kernels(void **state)
{
    unsigned foreign = by_isa_usable(BY_ISA_NEON) ? BY_ISA_AVX2 : BY_ISA_NEON;
    const struct by_reducer *scalar = by_reducer_get(BY_ISA_SCALAR, BY_OP_SUM, BY_DTYPE_F32);

    (void)state;
    assert_ptr_equal(by_reducer_get(foreign, BY_OP_SUM, BY_DTYPE_F32), scalar);
    assert_ptr_equal(by_reducer_get(0, BY_OP_SUM, BY_DTYPE_F32), scalar);
    assert_ptr_equal(by_reducer_get(BY_ISA_COUNT, BY_OP_SUM, BY_DTYPE_F32), scalar);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_matches_the_oracle),
        cmocka_unit_test(every_pair_of_special_values_matches_the_oracle),
        cmocka_unit_test(all_instruction_sets_give_the_same_bits),
        cmocka_unit_test(terms_in_one_pass_have_the_bits_of_pairs_that_are_added_one_by_one),
        cmocka_unit_test(terms_show_each_flipped_bit_of_an_input_and_of_the_slot),
        cmocka_unit_test(a_gather_has_the_bits_of_a_load_and_accumulations),
        cmocka_unit_test(undefined_pairs_and_unknown_values_have_no_kernels),
        cmocka_unit_test(written_values_hold_on_every_instruction_set),
        cmocka_unit_test(half_sums_are_rounded_only_when_they_leave),
        cmocka_unit_test(a_flipped_bit_of_a_slot_is_seen_by_the_next_kernel),
        cmocka_unit_test(instruction_sets_have_names_and_the_best_is_usable),
        cmocka_unit_test(an_instruction_set_of_another_build_gives_the_scalar_kernels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

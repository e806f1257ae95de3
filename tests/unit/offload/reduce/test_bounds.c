/*
 * The error bounds of docs/arithmetic.md for modes FAST and DET: sums along random trees, computed
 * by the kernels as nodes do (offload/engine/contrib.c), against exact sums. The comparison itself
 * is exact: with e in units of 2^-p, |error| <= e / (1 - e) S + N w is tested as |error| 2^p <= e
 * (S + |error|) + N w 2^p.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/offload/reduce/check.h"
#include "tests/unit/offload/reduce/oracle.h"
#include "tests/unit/offload/reduce/wide.h"

#define COUNT     48u /* elements: vectors, blocks and a remainder */
#define RANKS_MAX 64u
#define FAN_MAX   9u

/* A partial sum: elements as on the wire, and the maximum numbers of additions and roundings of its
 * leaves. */
struct partial {
    uint8_t bytes[COUNT * 8];
    unsigned additions; /* d */
    unsigned roundings; /* H */
};

static uint64_t input[RANKS_MAX][COUNT]; /* bits */
static struct partial parts[RANKS_MAX];

static int is_half(const struct wide_format *f)
{
    return f->dtype == BY_DTYPE_F16 || f->dtype == BY_DTYPE_BF16;
}

/* Adds `count` children in the given order. In mode DET, adds pairs of them, as many in one pass as
 * fit. */
static void add_node(unsigned isa, const struct wide_format *f, const struct partial *child[], unsigned count,
                     int det, struct partial *sum)
{
    const struct by_reducer *reducer = by_reducer_get(isa, BY_OP_SUM, f->dtype);
    size_t bytes = (size_t)COUNT * reducer->element_bytes;
    static uint8_t acc[COUNT * 8];
    struct by_terms terms = {.inputs = 0};
    uint32_t guard = 0;

    sum->additions = sum->roundings = 0;
    for (unsigned c = 0; c < count; c++) {
        if (det) {
            terms.pairs |= (uint8_t)((c + 1 < count && c % 2 == 0) << terms.inputs);
            terms.in[terms.inputs++] = child[c]->bytes;
            if (terms.inputs == BY_GATHER_MAX || c + 1 == count) {
                guard = reducer->add_terms(acc, &terms, COUNT);
                terms = (struct by_terms){.begun = 1};
            }
        } else if (c == 0) {
            guard = reducer->load(acc, child[0]->bytes, COUNT);
        } else {
            assert_true(reducer->accumulate(acc, child[c]->bytes, COUNT, &guard));
        }
        if (child[c]->additions > sum->additions)
            sum->additions = child[c]->additions;
        if (child[c]->roundings > sum->roundings)
            sum->roundings = child[c]->roundings;
    }
    assert_true(reducer->store(acc, COUNT, &guard));
    memcpy(sum->bytes, acc, bytes);
    sum->additions += det ? (count + 1) / 2 : count - 1;
    sum->roundings++;
}

/* Fails if element i of `sum`, the root's of `nodes`, exceeds the bound. Returns about error /
 * bound. */
static double check_element(const struct wide_format *f, unsigned ranks, unsigned nodes,
                            const struct partial *sum, unsigned i)
{
    unsigned p = f->dtype == BY_DTYPE_F64 ? 53 : 24, size = oracle_element_bytes(f->dtype);
    uint32_t e = sum->additions;
    struct reduce_wide error = {{0}}, magnitudes = {{0}}, left, right;
    double ratio[2];

    if (is_half(f))
        e += sum->roundings << (f->dtype == BY_DTYPE_F16 ? 13 : 16);
    for (unsigned r = 0; r < ranks; r++) {
        uint64_t sign = (uint64_t)1 << (8 * size - 1);

        wide_add_element(&error, f, input[r][i], 0);
        wide_add_element(&magnitudes, f, input[r][i] & ~sign, 0);
    }
    wide_add_element(&error, f, element_get(sum->bytes, size, i), 1);
    error = wide_magnitude(&error);
    left = wide_shifted(&error, p);
    right = wide_sum(&magnitudes, &error);
    right = wide_times(&right, e);
    if (is_half(f))
        wide_add(&right, nodes, p + 1074 - (f->dtype == BY_DTYPE_F16 ? 25 : 134), 0);
    if (wide_compare(&left, &right) > 0)
        fail_msg("%s of %u ranks, d %u, H %u, %u nodes, element %u: beyond the bound",
                 by_dtype_name(f->dtype), ranks, sum->additions, sum->roundings, nodes, i);
    for (unsigned k = 0; k < 2; k++) {
        const struct reduce_wide *w = k ? &right : &left;
        unsigned top = LIMBS - 1;

        while (top > 1 && right.limb[top] == 0)
            top--;
        ratio[k] = (double)w->limb[top] * 0x1p64 + (double)w->limb[top - 1];
    }
    return ratio[1] > 0 ? ratio[0] / ratio[1] : 0;
}

/* Merges random parts, as nodes with 2 to FAN_MAX children would, until one is left. Returns the
 * maximum ratio of error and bound. */
static double run_tree(unsigned isa, const struct wide_format *f, unsigned ranks, int det,
                       struct by_prng *prng)
{
    unsigned left = ranks, nodes = 0, size = oracle_element_bytes(f->dtype);
    double worst = 0;

    for (unsigned r = 0; r < ranks; r++) {
        parts[r].additions = parts[r].roundings = 0;
        for (unsigned i = 0; i < COUNT; i++)
            element_put(parts[r].bytes, size, i, input[r][i]);
    }
    while (left > 1) {
        unsigned fan = 2 + (unsigned)by_prng_below(prng, FAN_MAX - 1);
        const struct partial *child[FAN_MAX];
        struct partial sum;

        fan = fan < left ? fan : left;
        for (unsigned c = 0; c < fan; c++) { /* moves random parts to the end of the list */
            unsigned pick = (unsigned)by_prng_below(prng, left - c);
            struct partial taken = parts[pick];

            parts[pick] = parts[left - 1 - c];
            parts[left - 1 - c] = taken;
            child[c] = &parts[left - 1 - c];
        }
        add_node(isa, f, child, fan, det, &sum);
        nodes++;
        left -= fan;
        parts[left++] = sum;
    }
    for (unsigned i = 0; i < COUNT; i++) {
        double ratio = check_element(f, ranks, nodes, &parts[0], i);

        worst = ratio > worst ? ratio : worst;
    }
    return worst;
}

static void sums_on_any_tree_keep_to_the_bound(void **state)
{
    struct by_prng prng = {seed_get()};
    uint64_t seed = prng.state;

    (void)state;
    isa_print();
    seed_print("reduce-bounds", seed);
    FOR_EACH_ISA(isa)
    for (unsigned k = 0; k < FORMATS; k++)
        for (unsigned round = 0; round < 60; round++) {
            const struct wide_format *f = &formats[k];
            unsigned ranks = 2 + (unsigned)by_prng_below(&prng, RANKS_MAX - 1);
            unsigned width = 8 * oracle_element_bytes(f->dtype);
            unsigned greatest = f->exponents - 8 - (unsigned)by_prng_below(&prng, f->exponents - 8);
            unsigned span = (unsigned)by_prng_below(&prng, 24) + 1;

            for (unsigned r = 0; r < ranks; r++)
                for (unsigned i = 0; i < COUNT; i++) {
                    unsigned down = (unsigned)by_prng_below(&prng, span);
                    uint64_t m = by_prng_next(&prng) & (((uint64_t)1 << f->mant) - 1);

                    input[r][i] = by_prng_below(&prng, 2) << (width - 1) |
                                  (uint64_t)(greatest > down ? greatest - down : 0) << f->mant | m;
                    if (r > 0 && by_prng_below(&prng, 8) == 0) /* cancels the previous rank's value */
                        input[r][i] = input[r - 1][i] ^ (uint64_t)1 << (width - 1);
                }
            run_tree(isa, f, ranks, (int)(round & 1), &prng);
        }
}

/* One, then units that each addition loses: the error is their sum, and the bound is only slightly
 * larger. */
static void the_bound_of_additions_is_sharp(void **state)
{
    const struct partial *child[FAN_MAX];

    (void)state;
    FOR_EACH_ISA(isa)
    for (unsigned k = 2; k < FORMATS; k++) {
        const struct wide_format *f = &formats[k];
        unsigned size = oracle_element_bytes(f->dtype);
        uint64_t one = (uint64_t)f->bias << f->mant, unit = (uint64_t)(f->bias - f->mant - 1) << f->mant;
        struct partial sum;

        for (unsigned r = 0; r < FAN_MAX; r++) {
            for (unsigned i = 0; i < COUNT; i++) {
                input[r][i] = r ? unit : one;
                element_put(parts[r].bytes, size, i, input[r][i]);
            }
            parts[r].additions = parts[r].roundings = 0;
            child[r] = &parts[r];
        }
        add_node(isa, f, child, FAN_MAX, 0, &sum);
        assert_int_equal(sum.additions, FAN_MAX - 1);
        assert_true(check_element(f, FAN_MAX, 1, &sum, 7) > 0.999);
    }
}

/* The same for the roundings of 16-bit floats: a chain of nodes, each of which loses the value that
 * it adds. */
static void the_bound_of_roundings_is_sharp(void **state)
{
    (void)state;
    FOR_EACH_ISA(isa)
    for (unsigned k = 0; k < 2; k++) {
        const struct wide_format *f = &formats[k];
        uint64_t one = (uint64_t)f->bias << f->mant, unit = (uint64_t)(f->bias - f->mant - 1) << f->mant;
        const struct partial *child[2];
        struct partial sum;

        for (unsigned r = 0; r < 5; r++) {
            for (unsigned i = 0; i < COUNT; i++) {
                input[r][i] = r ? unit : one;
                element_put(parts[r].bytes, 2, i, input[r][i]);
            }
            parts[r].additions = parts[r].roundings = 0;
        }
        for (unsigned r = 1; r < 5; r++) {
            child[0] = &parts[0];
            child[1] = &parts[r];
            add_node(isa, f, child, 2, 0, &sum);
            parts[0] = sum;
        }
        assert_int_equal(parts[0].roundings, 4);
        assert_true(check_element(f, 5, 4, &parts[0], COUNT - 1) > 0.95);
        /* On a single node the same values are rounded once. */
        for (unsigned i = 0; i < COUNT; i++)
            element_put(parts[0].bytes, 2, i, one);
        parts[0].additions = parts[0].roundings = 0;
        child[0] = &parts[0];
        child[1] = &parts[1];
        {
            const struct partial *star[5] = {&parts[0], &parts[1], &parts[2], &parts[3], &parts[4]};

            add_node(isa, f, star, 5, 0, &sum);
        }
        assert_int_equal(element_get(sum.bytes, 2, 0), one + 2); /* 1 + 4 v = 1 + 2 units in the last place */
        check_element(f, 5, 1, &sum, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_on_any_tree_keep_to_the_bound),
        cmocka_unit_test(the_bound_of_additions_is_sharp),
        cmocka_unit_test(the_bound_of_roundings_is_sharp),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Elements of MPI without a type in libbanyan: conversion keeps values, and the order of pairs is
 * that of MPI_MINLOC and MPI_MAXLOC. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host-driver/plugin/mpi/convert.h"

static void truth_values_of_every_width_become_0_and_1(void **state)
{
    static const uint8_t widths[] = {1, 2, 4, 8};

    (void)state;
    for (unsigned w = 0; w < sizeof(widths); w++) {
        struct by_mpi_shape shape = {.form = BY_MPI_TRUTH, .bytes = widths[w], .stride = widths[w]};
        uint8_t in[5 * 8] = {0}, wire[5], out[5 * 8];

        in[1 * widths[w]] = 1;
        in[2 * widths[w] + widths[w] - 1] = 0x80; /* the last byte counts, too */
        by_mpi_encode(&shape, in, 5, wire);
        assert_memory_equal(wire, ((uint8_t[]){0, 1, 1, 0, 0}), 5);
        memset(out, 0x55, sizeof(out));
        by_mpi_decode(&shape, wire, 5, out);
        for (unsigned i = 0; i < 5; i++) {
            uint64_t value = wire[i];

            assert_memory_equal(out + i * widths[w], &value, widths[w]); /* little-endian machines */
        }
        if (widths[w] < 8)
            assert_int_equal(out[5 * widths[w]], 0x55);
    }
}

static void sixteen_bits_are_widened_with_their_sign_and_narrowed_modulo_65536(void **state)
{
    struct by_mpi_shape shape = {.form = BY_MPI_WIDE, .bytes = 2, .stride = 2, .is_signed = 1};
    const int16_t in[] = {0, -1, INT16_MIN, INT16_MAX};
    uint16_t unsigned_out[4];
    int16_t out[4];
    int32_t wire[4];

    (void)state;
    assert_int_equal(by_mpi_wire_bytes(&shape), 4);
    by_mpi_encode(&shape, in, 4, wire);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(wire[i], in[i]);
    wire[3] += 1; /* an overflow */
    by_mpi_decode(&shape, wire, 4, out);
    assert_int_equal(out[2], INT16_MIN);
    assert_int_equal(out[3], INT16_MIN);
    shape.is_signed = 0;
    by_mpi_encode(&shape, in, 4, wire);
    assert_int_equal(wire[1], 65535);
    by_mpi_decode(&shape, wire, 4, unsigned_out);
    assert_memory_equal(unsigned_out, in, sizeof(in));
}

struct c_float_int {
    float value;
    int index;
};
struct c_short_int {
    short value;
    int index;
};

/* Compares the order of the numbers of all pairs with MPI's definition. */
static void check_pairs(struct by_mpi_shape shape, const void *elements, const double *values,
                        const int *indices, unsigned count)
{
    const uint8_t *in = elements;

    for (int greatest = 0; greatest < 2; greatest++) {
        shape.is_greatest = (uint8_t)greatest;
        for (unsigned i = 0; i < count; i++)
            for (unsigned j = 0; j < count; j++) {
                uint64_t a, b;
                uint8_t out[16];
                int value_wins = greatest ? values[i] > values[j] : values[i] < values[j];
                int equal = values[i] <= values[j] && values[i] >= values[j];
                int wins = value_wins || (equal && indices[i] < indices[j]);

                by_mpi_encode(&shape, in + i * shape.stride, 1, &a);
                by_mpi_encode(&shape, in + j * shape.stride, 1, &b);
                if (wins)
                    assert_true(greatest ? a > b : a < b);
                if (equal && indices[i] == indices[j])
                    assert_true(a == b);
                memcpy(out, in + i * shape.stride, shape.stride);
                memset(out, 0x55, shape.bytes);
                memset(out + shape.index_at, 0x55, sizeof(int));
                by_mpi_decode(&shape, &a, 1, out);
                by_mpi_encode(&shape, out, 1, &b);
                assert_true(a == b);
                assert_memory_equal(out + shape.index_at, &indices[i], sizeof(int));
            }
    }
}

static const int some[] = {0, 1, -1, INT_MAX, INT_MIN, 7};

static void pairs_have_the_order_of_their_values_and_then_of_their_indices(void **state)
{
    static const float reals[] = {0, -0.0f, 1.5f, -1.5f, 3e38f, -3e38f, 1e-44f, -1e-44f};
    struct c_float_int floats[8 * 6];
    struct c_short_int shorts[6 * 6];
    int ints[6 * 6][2], indices[48];
    double values[48];

    (void)state;
    memset(floats, 0, sizeof(floats));
    memset(shorts, 0, sizeof(shorts));
    for (unsigned i = 0; i < 48; i++) {
        floats[i] = (struct c_float_int){reals[i / 6], some[i % 6]};
        values[i] = (double)reals[i / 6];
        indices[i] = some[i % 6];
    }
    check_pairs((struct by_mpi_shape){.form = BY_MPI_PAIR,
                                      .bytes = 4,
                                      .is_real = 1,
                                      .index_at = offsetof(struct c_float_int, index),
                                      .stride = sizeof(struct c_float_int)},
                floats, values, indices, 48);
    for (unsigned i = 0; i < 36; i++) {
        ints[i][0] = some[i / 6];
        ints[i][1] = some[i % 6];
        values[i] = ints[i][0];
    }
    check_pairs(
        (struct by_mpi_shape){.form = BY_MPI_PAIR, .bytes = 4, .is_signed = 1, .index_at = 4, .stride = 8},
        ints, values, indices, 36);
    for (unsigned i = 0; i < 36; i++) {
        shorts[i].value = (short)some[i / 6];
        shorts[i].index = some[i % 6];
        values[i] = shorts[i].value;
    }
    check_pairs((struct by_mpi_shape){.form = BY_MPI_PAIR,
                                      .bytes = 2,
                                      .is_signed = 1,
                                      .index_at = offsetof(struct c_short_int, index),
                                      .stride = sizeof(struct c_short_int)},
                shorts, values, indices, 36);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truth_values_of_every_width_become_0_and_1),
        cmocka_unit_test(sixteen_bits_are_widened_with_their_sign_and_narrowed_modulo_65536),
        cmocka_unit_test(pairs_have_the_order_of_their_values_and_then_of_their_indices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

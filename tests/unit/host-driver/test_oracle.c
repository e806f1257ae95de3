/* The oracle of banyan-perf: it must detect errors, since otherwise its approval proves nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/tools/perf/oracle.h"
#include "offload/wire/types.h"
#include "tests/unit/host-driver/rig.h"

#define COUNT 3000u /* more than two blocks */
#define RANKS 5u

static uint8_t buffer[RANKS][COUNT * 8];
static uint8_t result[COUNT * 8];

static void a_flipped_bit_anywhere_is_one_wrong_element(void **state)
{
    static const uint32_t places[] = {0, 1, 1023, 1024, COUNT - 1};

    (void)state;
    for (unsigned dtype = 1; dtype < BY_DTYPE_COUNT; dtype++) {
        struct perf_oracle oracle = {.op = BY_OP_MAX, .dtype = (uint8_t)dtype, .ranks = 1, .salt = 9};
        unsigned bytes = by_dtype_bytes(dtype);

        perf_oracle_fill(&oracle, 0, 17, COUNT, result);
        assert_int_equal(perf_oracle_wrong_copy(&oracle, 0, 17, COUNT, result), 0);
        assert_int_equal(perf_oracle_wrong_sum(&oracle, 17, COUNT, result), 0);
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
            result[places[i] * bytes + bytes - 1] ^= 0x41;
            assert_int_equal(perf_oracle_wrong_copy(&oracle, 0, 17, COUNT, result), 1);
            assert_int_equal(perf_oracle_wrong_sum(&oracle, 17, COUNT, result), 1);
            result[places[i] * bytes + bytes - 1] ^= 0x41;
        }
    }
}

static void another_rank_another_place_and_another_salt_give_other_data(void **state)
{
    struct perf_oracle oracle = {.op = BY_OP_SUM, .dtype = BY_DTYPE_I32, .ranks = RANKS, .salt = 1};

    (void)state;
    perf_oracle_fill(&oracle, 2, 0, COUNT, result);
    assert_true(perf_oracle_wrong_copy(&oracle, 3, 0, COUNT, result) > COUNT * 99 / 100);
    assert_true(perf_oracle_wrong_copy(&oracle, 2, 1, COUNT, result) > COUNT * 99 / 100);
    oracle.salt = 2;
    assert_true(perf_oracle_wrong_copy(&oracle, 2, 0, COUNT, result) > COUNT * 99 / 100);
}

/* Computes sums of i32 and f32 here, in two orders. */
static void sums_by_hand_are_right_in_any_order_and_a_missing_rank_is_seen(void **state)
{
    struct perf_oracle oracle = {.op = BY_OP_SUM, .dtype = BY_DTYPE_F32, .ranks = RANKS, .salt = 5};
    float *sum = (float *)(void *)result;

    (void)state;
    for (uint32_t r = 0; r < RANKS; r++)
        perf_oracle_fill(&oracle, r, 0, COUNT, buffer[r]);
    for (int backwards = 0; backwards < 2; backwards++) {
        memset(result, 0, sizeof(result));
        for (uint32_t r = 0; r < RANKS; r++)
            for (uint32_t i = 0; i < COUNT; i++)
                sum[i] += ((float *)(void *)buffer[backwards ? RANKS - 1 - r : r])[i];
        assert_int_equal(perf_oracle_wrong_sum(&oracle, 0, COUNT, result), 0);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        sum[i] -= ((float *)(void *)buffer[3])[i];
    assert_true(perf_oracle_wrong_sum(&oracle, 0, COUNT, result) > COUNT * 9 / 10);
}

static void integer_sums_and_products_wrap(void **state)
{
    static const uint8_t ops[] = {BY_OP_SUM, BY_OP_PROD};

    (void)state;
    for (size_t o = 0; o < 2; o++) {
        struct perf_oracle oracle = {.op = ops[o], .dtype = BY_DTYPE_U8, .ranks = RANKS, .salt = 5};

        for (uint32_t r = 0; r < RANKS; r++)
            perf_oracle_fill(&oracle, r, 0, COUNT, buffer[r]);
        for (uint32_t i = 0; i < COUNT; i++) {
            result[i] = buffer[0][i];
            for (uint32_t r = 1; r < RANKS; r++)
                result[i] =
                    (uint8_t)(ops[o] == BY_OP_SUM ? result[i] + buffer[r][i] : result[i] * buffer[r][i]);
        }
        assert_int_equal(perf_oracle_wrong_sum(&oracle, 0, COUNT, result), 0);
        result[7]++;
        assert_int_equal(perf_oracle_wrong_sum(&oracle, 0, COUNT, result), 1);
    }
}

static void signed_and_unsigned_minima_differ(void **state)
{
    struct perf_oracle oracle = {.op = BY_OP_MIN, .dtype = BY_DTYPE_I8, .ranks = 2, .salt = 5};

    (void)state;
    perf_oracle_fill(&oracle, 0, 0, COUNT, buffer[0]);
    perf_oracle_fill(&oracle, 1, 0, COUNT, buffer[1]);
    for (uint32_t i = 0; i < COUNT; i++)
        result[i] = (uint8_t)((int8_t)buffer[0][i] < (int8_t)buffer[1][i] ? buffer[0][i] : buffer[1][i]);
    assert_int_equal(perf_oracle_wrong_sum(&oracle, 0, COUNT, result), 0);
    oracle.dtype = BY_DTYPE_U8;
    assert_true(perf_oracle_wrong_sum(&oracle, 0, COUNT, result) > COUNT / 4);
}

static void random_sums_may_differ_by_the_bound_and_no_more(void **state)
{
    struct perf_oracle oracle = {
        .op = BY_OP_SUM, .dtype = BY_DTYPE_F32, .random_data = true, .ranks = RANKS, .salt = 5};
    float *sum = (float *)(void *)result;

    (void)state;
    memset(result, 0, sizeof(result));
    for (uint32_t r = 0; r < RANKS; r++) {
        perf_oracle_fill(&oracle, r, 0, COUNT, buffer[r]);
        for (uint32_t i = 0; i < COUNT; i++)
            sum[i] += ((float *)(void *)buffer[r])[i];
    }
    assert_int_equal(perf_oracle_wrong_sum(&oracle, 0, COUNT, result), 0);
    sum[11] += 1e-5f;
    assert_int_equal(perf_oracle_wrong_sum(&oracle, 0, COUNT, result), 1);
    sum[12] = NAN;
    assert_int_equal(perf_oracle_wrong_sum(&oracle, 0, COUNT, result), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flipped_bit_anywhere_is_one_wrong_element),
        cmocka_unit_test(another_rank_another_place_and_another_salt_give_other_data),
        cmocka_unit_test(sums_by_hand_are_right_in_any_order_and_a_missing_rank_is_seen),
        cmocka_unit_test(integer_sums_and_products_wrap),
        cmocka_unit_test(signed_and_unsigned_minima_differ),
        cmocka_unit_test(random_sums_may_differ_by_the_bound_and_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

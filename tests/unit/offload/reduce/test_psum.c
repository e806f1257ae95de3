/* psum and psum_copy against a sum byte by byte, at each alignment and length at a loop's
 * boundary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/offload/reduce/check.h"
#include "tests/unit/offload/reduce/oracle.h"

static const size_t long_lengths[] = {703, 704, 1023, 1024, 1407, 1408, 1409, 8191, 8192};
#define LONG_COUNT  (sizeof(long_lengths) / sizeof(long_lengths[0]))
#define SHORT_COUNT 301

static size_t length_at(size_t index)
{
    return index < SHORT_COUNT ? index : long_lengths[index - SHORT_COUNT];
}

/* Returns an exact allocation, so that the address sanitizer detects reads past its end. */
static uint8_t *random_bytes(struct by_prng *prng, size_t bytes)
{
    uint8_t *data = malloc(bytes + 1);

    assert_non_null(data);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)by_prng_next(prng);
    return data;
}

static void psum_is_the_sum_of_little_endian_words(void **state)
{
    struct by_prng prng = {seed_get()};
    uint64_t seed = prng.state;

    (void)state;
    for (size_t i = 0; i < SHORT_COUNT + LONG_COUNT; i++)
        for (size_t offset = 0; offset < 16; offset++) {
            size_t bytes = length_at(i);
            uint8_t *data = random_bytes(&prng, offset + bytes);

            if (by_psum(data + offset, bytes) != oracle_psum(data + offset, bytes)) {
                seed_print("reduce-psum", seed);
                fail_msg("psum of %zu bytes at offset %zu", bytes, offset);
            }
            free(data);
        }
}

static void psum_copy_copies_and_sums_and_writes_no_further(void **state)
{
    struct by_prng prng = {seed_get()};
    uint64_t seed = prng.state;

    (void)state;
    for (size_t i = 0; i < SHORT_COUNT + LONG_COUNT; i++)
        for (size_t offset = 0; offset < 4; offset++) {
            size_t bytes = length_at(i), shift = 3 * offset;
            uint8_t *data = random_bytes(&prng, offset + bytes);
            uint8_t *copy = malloc(shift + bytes + 16);
            uint32_t sum;

            assert_non_null(copy);
            memset(copy, 0xa5, shift + bytes + 16);
            sum = by_psum_copy(copy + shift, data + offset, bytes);
            if (sum != oracle_psum(data + offset, bytes) || memcmp(copy + shift, data + offset, bytes) != 0) {
                seed_print("reduce-psum", seed);
                fail_msg("psum_copy of %zu bytes at offset %zu", bytes, offset);
            }
            for (size_t k = 0; k < shift; k++)
                assert_int_equal(copy[k], 0xa5);
            for (size_t k = 0; k < 16; k++)
                assert_int_equal(copy[shift + bytes + k], 0xa5);
            free(copy);
            free(data);
        }
}

static void psum_wraps_and_pads_with_zeros(void **state)
{
    static const struct {
        size_t bytes;
        uint8_t fill;
        uint32_t expected;
    } cases[] = {
        {0, 0xff, 0},          {1, 0xff, 0x000000ff},  {2, 0xff, 0x0000ffff}, {3, 0xff, 0x00ffffff},
        {4, 0xff, 0xffffffff}, {8, 0xff, 0xfffffffe},  {9, 0xff, 0x000000fd}, {1408, 0xff, (uint32_t)-352},
        {1408, 0x00, 0},       {64, 0x80, 0x08080800},
    };
    uint8_t data[1408];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(data, cases[i].fill, sizeof(data));
        assert_int_equal(by_psum(data, cases[i].bytes), cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(psum_is_the_sum_of_little_endian_words),
        cmocka_unit_test(psum_copy_copies_and_sums_and_writes_no_further),
        cmocka_unit_test(psum_wraps_and_pads_with_zeros),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Fractions are read and computed exactly, or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "control/base/fraction.h"
#include "offload/base/errors.h"

static void texts_are_read_exactly_or_refused(void **state)
{
    static const struct {
        const char *text;
        int result;
        int64_t num, den;
    } cases[] = {
        {"12", 0, 12, 1},
        {"0", 0, 0, 1},
        {"12.5", 0, 25, 2},
        {"0.1", 0, 1, 10},
        {"1.25e3", 0, 1250, 1},
        {"1e-2", 0, 1, 100},
        {"5E+1", 0, 50, 1},
        {"25/2", 0, 25, 2},
        {"50/4", 0, 25, 2},
        {"9223372036854775807", 0, INT64_MAX, 1},
        {"1/9223372036854775807", 0, 1, INT64_MAX},
        {"0e999", 0, 0, 1},
        {"9223372036854775808", BY_ERANGE, 0, 0},
        {"1e19", BY_ERANGE, 0, 0},
        {"1e-19", BY_ERANGE, 0, 0},
        {"1e999999999999", BY_ERANGE, 0, 0},
        {"123456789012345678901234567890123456789012345678901234567890", BY_ERANGE, 0, 0},
        {"", BY_EFORMAT, 0, 0},
        {"abc", BY_EFORMAT, 0, 0},
        {"-1", BY_EFORMAT, 0, 0},
        {"+1", BY_EFORMAT, 0, 0},
        {" 1", BY_EFORMAT, 0, 0},
        {"1 ", BY_EFORMAT, 0, 0},
        {"1.", BY_EFORMAT, 0, 0},
        {".5", BY_EFORMAT, 0, 0},
        {"1e", BY_EFORMAT, 0, 0},
        {"1e3x", BY_EFORMAT, 0, 0},
        {"3/0", BY_EFORMAT, 0, 0},
        {"3/", BY_EFORMAT, 0, 0},
        {"3/4/5", BY_EFORMAT, 0, 0},
        {"3/-4", BY_EFORMAT, 0, 0},
        {"1/2.5", BY_EFORMAT, 0, 0},
        {"0x10", BY_EFORMAT, 0, 0},
        {"inf", BY_EFORMAT, 0, 0},
        {"nan", BY_EFORMAT, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_fraction value = {-1, -1};

        print_message("'%s'\n", cases[i].text);
        assert_int_equal(by_fraction_parse(cases[i].text, strlen(cases[i].text), &value), cases[i].result);
        if (cases[i].result == 0) {
            assert_int_equal(value.num, cases[i].num);
            assert_int_equal(value.den, cases[i].den);
        }
    }
}

static void arithmetic_is_exact_and_says_when_it_cannot_be(void **state)
{
    struct by_fraction half = {1, 2}, third = {1, 3}, huge = {INT64_MAX, 1}, tiny = {1, INT64_MAX}, result;

    (void)state;
    assert_int_equal(by_fraction_add(half, third, &result), 0);
    assert_true(result.num == 5 && result.den == 6);
    assert_int_equal(by_fraction_subtract(half, third, &result), 0);
    assert_true(result.num == 1 && result.den == 6);
    assert_int_equal(by_fraction_subtract(third, half, &result), BY_ERANGE);
    assert_int_equal(by_fraction_multiply(half, third, &result), 0);
    assert_true(result.num == 1 && result.den == 6);
    assert_int_equal(by_fraction_divide(half, third, &result), 0);
    assert_true(result.num == 3 && result.den == 2);
    assert_int_equal(by_fraction_multiply(huge, huge, &result), BY_ERANGE);
    assert_int_equal(by_fraction_multiply(tiny, half, &result), BY_ERANGE);
    assert_int_equal(by_fraction_add(huge, half, &result), BY_ERANGE);
    assert_int_equal(by_fraction_multiply(huge, tiny, &result), 0);
    assert_true(result.num == 1 && result.den == 1);
    assert_int_equal(by_fraction_compare(third, half), -1);
    assert_int_equal(by_fraction_compare(huge, huge), 0);
    assert_int_equal(by_fraction_compare(huge, tiny), 1);
}

static void large_parts_are_printed_as_strings_of_digits(void **state)
{
    char text[BY_FRACTION_JSON_BYTES], plain[BY_FRACTION_TEXT_BYTES];

    (void)state;
    assert_string_equal(by_fraction_json((struct by_fraction){15, 166}, text), "{\"num\": 15, \"den\": 166}");
    assert_string_equal(by_fraction_json((struct by_fraction){(int64_t)1 << 53, 1}, text),
                        "{\"num\": 9007199254740992, \"den\": 1}");
    assert_string_equal(by_fraction_json((struct by_fraction){((int64_t)1 << 53) + 1, INT64_MAX}, text),
                        "{\"num\": \"9007199254740993\", \"den\": \"9223372036854775807\"}");
    assert_string_equal(by_fraction_text((struct by_fraction){25, 2}, plain), "25/2");
    assert_string_equal(by_fraction_text((struct by_fraction){25, 1}, plain), "25");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_read_exactly_or_refused),
        cmocka_unit_test(arithmetic_is_exact_and_says_when_it_cannot_be),
        cmocka_unit_test(large_parts_are_printed_as_strings_of_digits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

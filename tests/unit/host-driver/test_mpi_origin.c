/* Which calls come from a library itself: comparisons that functions of the C library call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <search.h>

#include "host-driver/plugin/mpi/origin.h"

static const void *caller;

static int compare(const void *a, const void *b)
{
    caller = __builtin_return_address(0);
    return *(const int *)a - *(const int *)b;
}

static int judge(const char *name)
{
    return by_mpi_is_apart((const void *)(uintptr_t)lfind, caller, name);
}

/* A search calls the comparison itself. */
static void test_in_the_function(void **state)
{
    int numbers[] = {1, 2, 3}, two = 2;

    (void)state;
    assert_non_null(bsearch(&two, numbers, 3, sizeof(two), compare));
    for (int i = 0; i < 2; i++) /* the second result is a kept one */
        assert_int_equal(judge("BSearch"), 0);
}

/* A linear search calls it from another function than the one looked for. */
static void test_in_another_function(void **state)
{
    int numbers[] = {1, 2};
    size_t count = 1;

    (void)state;
    assert_non_null(lfind(&numbers[0], numbers, &count, sizeof(numbers[0]), compare));
    for (int i = 0; i < 2; i++)
        assert_int_equal(judge("bsearch"), 1);
}

static void test_outside(void **state)
{
    int one = 1, two = 2;

    (void)state;
    assert_int_equal(compare(&two, &one), 1); /* from this program */
    for (int i = 0; i < 2; i++)
        assert_int_equal(judge("bsearch"), 0);
}

static void test_unknown(void **state)
{
    (void)state;
    assert_int_equal(by_mpi_is_apart(&caller, (const char *)caller + 1, "bsearch"), -1); /* no function */
    assert_int_equal(by_mpi_is_apart(NULL, (const char *)caller + 2, "bsearch"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_the_function),
        cmocka_unit_test(test_in_another_function),
        cmocka_unit_test(test_outside),
        cmocka_unit_test(test_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The part of cmocka that the tests of offload/reduce use, for a machine without its library: runs
 * each test; the first failure ends the program with status 1. Names and prototypes are cmocka's.
 * Single-threaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void stop(const char *what, const char *file, int line)
{
    printf("%s:%d: %s\n", file, line, what);
    fflush(stdout);
    exit(1);
}

void _fail(const char *file, int line)
{
    stop("fail", file, line);
}

void _assert_true(LargestIntegralType result, const char *expression, const char *file, int line)
{
    if (!result)
        stop(expression, file, line);
}

void _assert_int_equal(LargestIntegralType a, LargestIntegralType b, const char *file, int line)
{
    if (a != b)
        stop("integers differ", file, line);
}

void _assert_string_equal(const char *a, const char *b, const char *file, int line)
{
    if (strcmp(a, b) != 0)
        stop("strings differ", file, line);
}

void _assert_memory_equal(const void *a, const void *b, size_t size, const char *file, int line)
{
    if (memcmp(a, b, size) != 0)
        stop("memory differs", file, line);
}

void print_error(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vprintf(format, list);
    va_end(list);
}

void print_message(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vprintf(format, list);
    va_end(list);
}

int _cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t count,
                            CMFixtureFunction setup, CMFixtureFunction teardown)
{
    void *state = NULL;

    (void)group;
    if (setup || teardown)
        stop("no fixtures here", __FILE__, __LINE__);
    for (size_t i = 0; i < count; i++) {
        tests[i].test_func(&state);
        printf("ok: %s\n", tests[i].name);
        fflush(stdout);
    }
    return 0;
}

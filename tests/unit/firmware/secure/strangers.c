/* Few log lines about many strangers: each stranger is counted in a line. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/secure/strangers.h"

#define SECOND_NS UINT64_C(1000000000)

/* Returns the number of strangers that a line counts besides its own. */
static uint64_t count_of(const char *more)
{
    return strncmp(more, ", and ", 6) == 0 ? strtoull(more + 6, NULL, 10) : 0;
}

static void the_first_few_have_a_line_each(void **state)
{
    struct by_strangers strangers;
    char more[BY_STRANGERS_MORE_MAX];

    (void)state;
    by_strangers_start(&strangers);
    for (unsigned i = 0; i < BY_STRANGERS_BURST; i++) {
        assert_true(by_strangers_come(&strangers, SECOND_NS, more));
        assert_string_equal(more, "");
    }
    assert_false(by_strangers_come(&strangers, SECOND_NS, more));
}

static void of_two_thousand_a_second_a_line_a_second_tells(void **state)
{
    struct by_strangers strangers;
    char more[BY_STRANGERS_MORE_MAX];
    uint64_t now_ns = 7 * SECOND_NS, lines = 0, told = 0;

    (void)state;
    by_strangers_start(&strangers);
    for (unsigned i = 0; i < 10000; i++, now_ns += SECOND_NS / 2000) {
        assert_false(by_strangers_rest(&strangers, now_ns, more)); /* they still arrive */
        if (!by_strangers_come(&strangers, now_ns, more))
            continue;
        lines++;
        told += 1 + count_of(more);
        if (lines == BY_STRANGERS_BURST + 1)
            assert_string_equal(more, ", and 1990 more in the last 1 s");
    }
    assert_int_equal(lines, BY_STRANGERS_BURST + 4); /* in five seconds */
    assert_false(by_strangers_rest(&strangers, now_ns + SECOND_NS, more));
    assert_true(by_strangers_rest(&strangers, now_ns + 3 * SECOND_NS, more));
    assert_int_equal(told + count_of(more), 10000);
    assert_false(by_strangers_rest(&strangers, now_ns + 9 * SECOND_NS, more));
}

static void after_a_rest_each_has_a_line_again(void **state)
{
    struct by_strangers strangers;
    char more[BY_STRANGERS_MORE_MAX];

    (void)state;
    by_strangers_start(&strangers);
    for (unsigned i = 0; i < BY_STRANGERS_BURST + 3; i++)
        by_strangers_come(&strangers, SECOND_NS, more);
    assert_true(by_strangers_come(&strangers, 30 * SECOND_NS, more)); /* no query in between */
    assert_string_equal(more, ", and 3 more in the last 29 s");
    assert_true(by_strangers_come(&strangers, 30 * SECOND_NS, more));
    assert_string_equal(more, "");
}

static void those_without_a_line_are_told_of_after_the_whole_rest(void **state)
{
    struct by_strangers strangers;
    char more[BY_STRANGERS_MORE_MAX];

    (void)state;
    by_strangers_start(&strangers);
    for (unsigned i = 0; i < BY_STRANGERS_BURST + 2; i++)
        by_strangers_come(&strangers, SECOND_NS, more);
    assert_false(by_strangers_rest(&strangers, SECOND_NS + BY_STRANGERS_REST_NS - 1, more));
    assert_true(by_strangers_rest(&strangers, SECOND_NS + BY_STRANGERS_REST_NS, more));
    assert_int_equal(count_of(more), 2);
    assert_false(by_strangers_rest(&strangers, SECOND_NS + 2 * BY_STRANGERS_REST_NS, more));
}

static void the_longest_fits(void **state)
{
    struct by_strangers strangers;
    char more[BY_STRANGERS_MORE_MAX];

    (void)state;
    by_strangers_start(&strangers);
    strangers.more = UINT64_MAX;
    strangers.since_ns = 1;
    strangers.last_ns = 1;
    assert_true(by_strangers_rest(&strangers, UINT64_MAX, more));
    assert_string_equal(more, ", and 18446744073709551615 more in the last 18446744074 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_few_have_a_line_each),
        cmocka_unit_test(of_two_thousand_a_second_a_line_a_second_tells),
        cmocka_unit_test(after_a_rest_each_has_a_line_again),
        cmocka_unit_test(those_without_a_line_are_told_of_after_the_whole_rest),
        cmocka_unit_test(the_longest_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

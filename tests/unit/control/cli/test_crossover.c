/* The sizes of data at which one algorithm overtakes another. Single-threaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control/cli/crossover.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"

static void the_fastest_lines_are_found_in_the_order_of_sizes(void **state)
{
    /* 2 hops at 1; 4 at 2: equal at 4; 10 at 4: equal to the second at 24; the others never win */
    static const struct by_crossover_line lines[] = {{"slow", 3, {1, 1}},   {"wide", 10, {4, 1}},
                                                     {"low", 2, {1, 1}},    {"late", 9, {2, 1}},
                                                     {"middle", 4, {2, 1}}, {"same", 10, {4, 1}}};
    struct by_crossover found[6];

    (void)state;
    assert_int_equal(by_crossovers(lines, 6, found), 3);
    assert_int_equal(found[0].line, 2);
    assert_int_equal(found[0].from.num, 0);
    assert_int_equal(found[1].line, 4);
    assert_int_equal(found[1].from.num, 4);
    assert_int_equal(found[1].from.den, 1);
    assert_int_equal(found[2].line, 1);
    assert_int_equal(found[2].from.num, 24);
}

static void one_line_or_none_has_no_crossover(void **state)
{
    static const struct by_crossover_line line = {"only", 7, {3, 2}};
    struct by_crossover found[1];

    (void)state;
    assert_int_equal(by_crossovers(&line, 0, found), 0);
    assert_int_equal(by_crossovers(&line, 1, found), 1);
    assert_int_equal(found[0].line, 0);
}

static void a_size_beyond_63_bits_is_an_error(void **state)
{
    static const struct by_crossover_line lines[] = {{"a", 1, {INT64_MAX - 1, 3}}, {"b", 2, {INT64_MAX, 3}}};
    struct by_crossover found[2];

    (void)state;
    assert_int_equal(by_crossovers(lines, 2, found), BY_ERANGE);
}

/* For random lines the table names a fastest line at every size. */
static void no_line_is_faster_at_any_size(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct by_prng prng = {seed};
        struct by_crossover_line lines[8];
        struct by_crossover found[8];
        int count;

        for (unsigned i = 0; i < 8; i++)
            lines[i] = (struct by_crossover_line){
                "x", 1 + by_prng_below(&prng, 30), {(int64_t)(1 + by_prng_below(&prng, 40)), 3}};
        count = by_crossovers(lines, 8, found);
        assert_true(count > 0);
        for (int64_t size = 0; size < 4000; size += 7) {
            int at = 0;

            while (at + 1 < count &&
                   by_fraction_compare(found[at + 1].from, (struct by_fraction){size, 1}) <= 0)
                at++;
            for (unsigned i = 0; i < 8; i++) {
                const struct by_crossover_line *best = &lines[found[at].line];

                /* hops + 3 size / num, times both numerators */
                assert_true(((int64_t)best->hops * best->rate.num + size * best->rate.den) *
                                lines[i].rate.num * lines[i].rate.den * best->rate.den <=
                            ((int64_t)lines[i].hops * lines[i].rate.num + size * lines[i].rate.den) *
                                best->rate.num * lines[i].rate.den * best->rate.den);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_lines_are_found_in_the_order_of_sizes),
        cmocka_unit_test(one_line_or_none_has_no_crossover),
        cmocka_unit_test(a_size_beyond_63_bits_is_an_error),
        cmocka_unit_test(no_line_is_faster_at_any_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Units of bandwidth: each is converted exactly, and no other unit is accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/fabric/unit.h"
#include "offload/base/errors.h"

static void assert_fraction(struct by_fraction value, int64_t num, int64_t den)
{
    if (by_fraction_compare(value, (struct by_fraction){num, den}) != 0)
        fail_msg("%lld/%lld instead of %lld/%lld", (long long)value.num, (long long)value.den, (long long)num,
                 (long long)den);
}

static void rates_are_converted_exactly(void **state)
{
    static const struct {
        const char *unit;
        struct by_fraction rate, bytes, gigabytes;
    } rows[] = {{"GB/s", {40, 7}, {40000000000, 7}, {40, 7}},
                {"GB/s", {25, 2}, {12500000000, 1}, {25, 2}},
                {"MB/s", {5, 1}, {5000000, 1}, {1, 200}},
                {"TB/s", {1, 3}, {1000000000000, 3}, {1000, 3}},
                {"B/s", {1, 3}, {1, 3}, {1, 3000000000}},
                {"GiB/s", {1, 1}, {1073741824, 1}, {16777216, 15625000}},
                {"Gbit/s", {100, 1}, {12500000000, 1}, {25, 2}},
                {"Gb/s", {100, 1}, {12500000000, 1}, {25, 2}},
                {"Gbps", {100, 1}, {12500000000, 1}, {25, 2}},
                {"kbit/s", {8, 3}, {1000, 3}, {1, 3000000}},
                {"bit/s", {1, 1}, {1, 8}, {1, 8000000000}}};
    struct by_fraction result;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        print_message("%s\n", rows[i].unit);
        assert_int_equal(by_unit_bytes(rows[i].unit, rows[i].rate, &result), 0);
        assert_fraction(result, rows[i].bytes.num, rows[i].bytes.den);
        assert_int_equal(by_unit_gigabytes(rows[i].unit, rows[i].rate, &result), 0);
        assert_fraction(result, rows[i].gigabytes.num, rows[i].gigabytes.den);
    }
    assert_int_equal(by_unit_bytes("messages", (struct by_fraction){1, 1}, &result), BY_EUNSUPPORTED);
    assert_int_equal(by_unit_gigabytes("bananas", (struct by_fraction){1, 1}, &result), BY_EUNSUPPORTED);
    assert_int_equal(by_unit_bytes("TB/s", (struct by_fraction){INT64_MAX, 1}, &result), BY_ERANGE);
}

/* Reads a fabric of two hosts and one link in this unit. */
static int read_with(const char *unit, struct by_topology **topology, struct by_problem *problem)
{
    char text[400];

    snprintf(text, sizeof(text),
             "{\"name\": \"pair\", \"unit\": \"%s\",\n\"nodes\": [{\"name\": \"a\", \"kind\": \"compute\"}, "
             "{\"name\": \"b\", \"kind\": \"compute\"}], \"links\": [{\"between\": [\"a\", \"b\"], "
             "\"bandwidth\": \"5/3\"}]}",
             unit);
    return by_topology_parse(text, strlen(text), topology, problem);
}

static void a_fabric_has_a_unit_of_the_list(void **state)
{
    char list[400], *rest = list, *unit;
    unsigned counted = 0;

    (void)state;
    snprintf(list, sizeof(list), "%s", by_unit_list());
    while ((unit = strsep(&rest, ",")) != NULL) {
        struct by_topology *topology;
        struct by_problem problem = {0};
        struct by_fraction expected = {0, 1};

        unit += *unit == ' ';
        assert_true(by_unit_is_known(unit));
        assert_int_equal(read_with(unit, &topology, &problem), 0);
        if (by_unit_has_bytes(unit))
            assert_int_equal(by_unit_bytes(unit, (struct by_fraction){5, 3}, &expected), 0);
        assert_fraction(by_unit_arc_bytes(topology, 0), expected.num, expected.den);
        counted += by_unit_has_bytes(unit);
        by_topology_free(topology);
    }
    assert_int_equal(counted, 24);
}

static void other_units_are_refused_with_the_list(void **state)
{
    static const char *const units[] = {"bananas", "gb/s", "GB/s ", "GB", "Gbit", "messages/s", "KB/s"};

    (void)state;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        struct by_topology *topology;
        struct by_problem problem = {0};

        print_message("'%s'\n", units[i]);
        assert_true(read_with(units[i], &topology, &problem) < 0);
        assert_null(topology);
        assert_int_equal(problem.line, 1);
        assert_non_null(strstr(problem.text, units[i]));
        assert_non_null(strstr(problem.text, by_unit_list()));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_converted_exactly),
        cmocka_unit_test(a_fabric_has_a_unit_of_the_list),
        cmocka_unit_test(other_units_are_refused_with_the_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

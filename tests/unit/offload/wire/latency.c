/* Histograms of durations: classes, differences, and their bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "offload/wire/latency.h"

static void a_duration_is_in_the_first_class_whose_limit_it_does_not_exceed(void **state)
{
    static const struct {
        uint64_t duration_ns;
        uint32_t class_index;
    } cases[] = {{0, 0},          {1, 0},     {10000, 0},           {10001, 1},
                 {40000, 1},      {40001, 2}, {10000ull << 20, 10}, {(10000ull << 20) + 1, 11},
                 {UINT64_MAX, 11}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_latency latency = {0};

        by_latency_add(&latency, 100, cases[i].duration_ns);
        for (uint32_t j = 0; j < BY_LATENCY_CLASSES; j++)
            assert_int_equal(latency.of_class[j], j == cases[i].class_index);
        assert_int_equal(latency.operations, 1);
        assert_int_equal(latency.bytes, 100);
        assert_true(latency.duration_ns == cases[i].duration_ns);
    }
}

static void a_later_report_adds_only_what_is_new(void **state)
{
    struct by_latency total = {0}, before = {0}, now;

    (void)state;
    by_latency_add(&before, 8, 5);
    now = before;
    by_latency_add_since(&total, &(struct by_latency){0}, &before);
    by_latency_add(&now, 16, 70000);
    by_latency_add_since(&total, &before, &now);
    by_latency_add_since(&total, &now, &now);
    assert_memory_equal(&total, &now, sizeof(total));
}

static void the_bytes_give_the_same_histogram(void **state)
{
    uint8_t bytes[BY_LATENCY_BYTES];
    struct by_latency latency, read;

    (void)state;
    for (size_t i = 0; i < sizeof(latency); i++)
        ((uint8_t *)&latency)[i] = (uint8_t)(i + 1);
    by_latency_put(&latency, bytes);
    by_latency_get(bytes, &read);
    assert_memory_equal(&latency, &read, sizeof(latency));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_duration_is_in_the_first_class_whose_limit_it_does_not_exceed),
        cmocka_unit_test(a_later_report_adds_only_what_is_new),
        cmocka_unit_test(the_bytes_give_the_same_histogram),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Measured rates of links: which end's counter is used, restarts, silence, large counters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control/service/daemon/rates.h"

static uint64_t rate_of(const struct by_rates *rates, uint32_t link, unsigned direction, uint64_t now_ms)
{
    uint64_t rate;

    assert_true(by_rates_get(rates, link, direction, now_ms, &rate));
    return rate;
}

static void a_rate_is_what_a_counter_adds_in_a_period(void **state)
{
    struct by_rates *rates = by_rates_open(2);
    uint64_t rate = 1;

    (void)state;
    assert_false(by_rates_get(rates, 1, 0, 1000, &rate));
    assert_int_equal(rate, 0);
    by_rates_take(rates, 1, 0, 1000, 5000, 70);
    assert_false(by_rates_get(rates, 1, 0, 1000, &rate)); /* one value is no rate */
    by_rates_take(rates, 1, 0, 1100, 6000, 70);
    assert_false(by_rates_get(rates, 1, 0, 1100, &rate)); /* the period is too short */
    by_rates_take(rates, 1, 0, 1500, 55000, 1070);
    assert_int_equal(rate_of(rates, 1, 0, 1500), 100000);
    assert_int_equal(rate_of(rates, 1, 1, 1500), 2000); /* what it receives, since the other end is silent */
    assert_false(by_rates_get(rates, 0, 0, 1500, &rate));
    by_rates_close(rates);
}

static void the_sending_end_is_used_where_both_report(void **state)
{
    struct by_rates *rates = by_rates_open(1);

    (void)state;
    for (uint64_t i = 0; i < 2; i++) {
        by_rates_take(rates, 0, 0, 1000 * i, 800 * i, 11 * i);
        by_rates_take(rates, 0, 1, 1000 * i, 22 * i, 700 * i); /* a part was lost on the way */
    }
    assert_int_equal(rate_of(rates, 0, 0, 1000), 800);
    assert_int_equal(rate_of(rates, 0, 1, 1000), 22);
    by_rates_close(rates);
}

static void a_restarted_or_silent_end_has_no_rate_until_it_is_measured_again(void **state)
{
    struct by_rates *rates = by_rates_open(1);
    uint64_t rate;

    (void)state;
    by_rates_take(rates, 0, 0, 0, 0, 0);
    by_rates_take(rates, 0, 0, 500, 1000, 0);
    assert_int_equal(rate_of(rates, 0, 0, 500), 2000);
    assert_int_equal(rate_of(rates, 0, 0, 500 + BY_RATES_STALE_MS), 2000);
    assert_false(by_rates_get(rates, 0, 0, 501 + BY_RATES_STALE_MS, &rate));
    by_rates_take(rates, 0, 0, 1000, 10, 0); /* it has restarted */
    assert_false(by_rates_get(rates, 0, 0, 1000, &rate));
    by_rates_take(rates, 0, 0, 1500, 110, 0);
    assert_int_equal(rate_of(rates, 0, 0, 1500), 200);
    by_rates_take(rates, 0, 0, 60000, 1000000, 0); /* no mean over the silence */
    assert_false(by_rates_get(rates, 0, 0, 60000, &rate));
    by_rates_close(rates);
}

static void periods_have_a_least_and_a_greatest_length(void **state)
{
    struct by_rates *rates = by_rates_open(3);
    uint64_t rate;

    (void)state;
    for (uint32_t link = 0; link < 3; link++)
        by_rates_take(rates, link, 0, 1000, 0, 0);
    by_rates_take(rates, 0, 0, 999 + BY_RATES_SPAN_MS, 900, 0);
    assert_false(by_rates_get(rates, 0, 0, 999 + BY_RATES_SPAN_MS, &rate));
    by_rates_take(rates, 0, 0, 1000 + BY_RATES_SPAN_MS, 900, 0);
    assert_int_equal(rate_of(rates, 0, 0, 1000 + BY_RATES_SPAN_MS), 2000);
    by_rates_take(rates, 1, 0, 1000 + BY_RATES_STALE_MS, 900, 0);
    assert_int_equal(rate_of(rates, 1, 0, 1000 + BY_RATES_STALE_MS), 300);
    by_rates_take(rates, 2, 0, 1001 + BY_RATES_STALE_MS, 900, 0);
    assert_false(by_rates_get(rates, 2, 0, 1001 + BY_RATES_STALE_MS, &rate));
    by_rates_close(rates);
}

/* The counters of one direction go back alone. */
static void a_restart_is_seen_in_either_counter(void **state)
{
    struct by_rates *rates = by_rates_open(2);
    uint64_t rate;

    (void)state;
    for (uint32_t link = 0; link < 2; link++)
        by_rates_take(rates, link, 0, 1000, 500, 500);
    by_rates_take(rates, 0, 0, 2000, 499, 600);
    by_rates_take(rates, 1, 0, 2000, 600, 499);
    for (uint32_t link = 0; link < 2; link++)
        for (unsigned direction = 0; direction < 2; direction++)
            assert_false(by_rates_get(rates, link, direction, 2000, &rate));
    by_rates_take(rates, 0, 0, 3000, 499, 600); /* idle is no restart */
    assert_int_equal(rate_of(rates, 0, 0, 3000), 0);
    by_rates_close(rates);
}

static void large_counters_do_not_overflow(void **state)
{
    struct by_rates *rates = by_rates_open(1);

    (void)state;
    by_rates_take(rates, 0, 0, 0, 0, 0);
    by_rates_take(rates, 0, 0, 1000, UINT64_MAX - 999, 0);
    assert_true(rate_of(rates, 0, 0, 1000) >= UINT64_MAX - 2000);
    by_rates_close(rates);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rate_is_what_a_counter_adds_in_a_period),
        cmocka_unit_test(the_sending_end_is_used_where_both_report),
        cmocka_unit_test(a_restarted_or_silent_end_has_no_rate_until_it_is_measured_again),
        cmocka_unit_test(periods_have_a_least_and_a_greatest_length),
        cmocka_unit_test(a_restart_is_seen_in_either_counter),
        cmocka_unit_test(large_counters_do_not_overflow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The assignment of chunks to workers: all chunks of a bank have one lane, lanes are dealt evenly,
 * and the numbers are those that PROTOCOL.md states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "offload/base/limits.h"
#include "offload/wire/stripe.h"

static void all_chunks_of_a_bank_have_one_lane(void **state)
{
    static const uint32_t starts[] = {0, 1, 12345, UINT32_MAX - 5000};

    (void)state;
    for (uint32_t window = 1; window <= BY_WINDOW_MAX; window *= 2)
        for (uint32_t shift = 0; shift <= by_lane_shift(window, 1); shift++) {
            uint32_t span = by_lane_span(window, shift);

            assert_true(span >= 1 && span <= BY_LANES && (span & (span - 1)) == 0);
            for (unsigned i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
                for (uint32_t n = 0; n < 2 * BY_WINDOW_MAX; n++) {
                    uint32_t seq = starts[i] + n; /* also across the end of the numbers */

                    assert_int_equal(by_lane(63, span, shift, seq),
                                     by_lane(63, span, shift, seq + 2 * window));
                }
        }
}

/* Each worker gets a lane where there are as many banks; lanes are as long as that allows. */
static void lanes_of_small_windows_are_short(void **state)
{
    static const struct {
        uint32_t window, workers, shift, span;
    } cases[] = {
        {1, 1, 1, 1},    {1, 2, 0, 2},    {1, 32, 0, 2},   {2, 2, 1, 2},     {2, 4, 0, 4},
        {4, 2, 2, 2},    {4, 3, 1, 4},    {4, 8, 0, 8},    {8, 2, 3, 2},     {8, 4, 2, 4},
        {64, 16, 3, 16}, {64, 32, 2, 32}, {256, 2, 3, 64}, {256, 32, 3, 64}, {4096, 32, 3, 64},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t shift = by_lane_shift(cases[i].window, cases[i].workers);

        assert_int_equal(shift, cases[i].shift);
        assert_int_equal(by_lane_span(cases[i].window, shift), cases[i].span);
    }
}

static void the_chunks_of_one_tree_are_spread_over_all_lanes(void **state)
{
    uint32_t count[BY_LANES] = {0};

    (void)state;
    for (uint32_t seq = 0; seq < BY_LANES * BY_LANE_CHUNKS; seq++) {
        uint32_t lane = by_lane(17, by_lane_span(256, BY_LANE_SHIFT), BY_LANE_SHIFT, seq);

        assert_true(lane < BY_LANES);
        assert_int_equal(lane, by_lane(17, BY_LANES, BY_LANE_SHIFT, seq / BY_LANE_CHUNKS * BY_LANE_CHUNKS));
        count[lane]++;
    }
    for (uint32_t lane = 0; lane < BY_LANES; lane++)
        assert_int_equal(count[lane], BY_LANE_CHUNKS);
}

static void lanes_are_dealt_evenly(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= BY_WORKERS_MAX; workers++) {
        uint32_t count[BY_WORKERS_MAX] = {0};

        for (uint32_t lane = 0; lane < BY_LANES; lane++)
            count[by_lane_worker(lane, workers)]++;
        for (uint32_t worker = 0; worker < workers; worker++)
            assert_in_range(count[worker], BY_LANES / workers, BY_LANES / workers + 1);
    }
}

static void trees_begin_in_different_lanes(void **state)
{
    uint32_t trees[BY_LANES] = {0}, jobs[BY_LANES] = {0};

    (void)state;
    for (uint32_t i = 0; i < 16 * BY_LANES; i++) {
        trees[by_lane_first(1u << 16 | i)]++;
        jobs[by_lane_first(i << 16)]++;
    }
    for (uint32_t lane = 0; lane < BY_LANES; lane++) {
        assert_in_range(trees[lane], 8, 32);
        assert_in_range(jobs[lane], 8, 32);
    }
}

static void the_numbers_are_those_of_the_protocol(void **state)
{
    (void)state;
    assert_int_equal(by_lane_first(0), 0);
    assert_int_equal(by_lane_first(1u << 16 | 0), 5);
    assert_int_equal(by_lane_first(1u << 16 | 3), 45);
    assert_int_equal(by_lane(39, 32, 3, 8 * 31), 6);
    assert_int_equal(by_lane(39, 32, 3, 8 * 32 + 7), 39);
    assert_int_equal(by_lane_worker(39, 4), 3);
    assert_int_equal(by_lane(39, 4, 1, 7), 42);
}

/* A card that looks at the low bits of the source port finds the worker wherever the number of
 * workers divides the span. */
static void a_source_port_names_the_lane(void **state)
{
    const uint32_t tree = 3u << 16 | 9;

    (void)state;
    assert_int_equal(by_tree_port(tree), 0xf300); /* 0xc000 + (3 * 31 + 9) % 128 * 128 */
    assert_int_equal(by_lane_first(tree), 38);
    assert_int_equal(by_lane_port(tree, 8 * 25 + 7), 0xf340 + 63);
    assert_int_equal(by_lane_port(tree, 8 * 26), 0xf340);
    assert_int_equal(by_source_port(tree, 8 * 26, BY_UDP_PORT), 0xf340);
    assert_int_equal(by_source_port(tree, 8 * 26, BY_UDP_PORT + 1), 0xf300); /* to a host */
    for (uint32_t window = 8; window <= 256; window *= 2)
        for (uint32_t workers = 1; workers <= by_lane_span(window, BY_LANE_SHIFT); workers *= 2)
            for (uint32_t seq = 0; seq < 4096; seq += 3) {
                uint32_t shift = by_lane_shift(window, workers);
                uint32_t lane = by_lane(by_lane_first(tree), by_lane_span(window, shift), shift, seq);

                assert_int_equal(by_lane_worker(by_lane_port(tree, seq) % BY_LANE_PORT, workers),
                                 by_lane_worker(lane, workers));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_chunks_of_a_bank_have_one_lane),
        cmocka_unit_test(lanes_of_small_windows_are_short),
        cmocka_unit_test(the_chunks_of_one_tree_are_spread_over_all_lanes),
        cmocka_unit_test(lanes_are_dealt_evenly),
        cmocka_unit_test(trees_begin_in_different_lanes),
        cmocka_unit_test(the_numbers_are_those_of_the_protocol),
        cmocka_unit_test(a_source_port_names_the_lane),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

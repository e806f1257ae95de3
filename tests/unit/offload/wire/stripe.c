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
    for (uint32_t window = 1; window <= BY_WINDOW_MAX; window *= 2) {
        uint32_t span = by_lane_span(window);

        assert_true(span >= 1 && span <= BY_LANES && (span & (span - 1)) == 0);
        for (unsigned i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
            for (uint32_t n = 0; n < 2 * BY_WINDOW_MAX; n++) {
                uint32_t seq = starts[i] + n; /* also across the end of the numbers */

                assert_int_equal(by_lane(63, span, seq), by_lane(63, span, seq + 2 * window));
            }
    }
}

static void the_chunks_of_one_tree_are_spread_over_all_lanes(void **state)
{
    uint32_t count[BY_LANES] = {0};

    (void)state;
    for (uint32_t seq = 0; seq < BY_LANES * BY_LANE_CHUNKS; seq++) {
        uint32_t lane = by_lane(17, by_lane_span(256), seq);

        assert_true(lane < BY_LANES);
        assert_int_equal(lane, by_lane(17, BY_LANES, seq / BY_LANE_CHUNKS * BY_LANE_CHUNKS));
        count[lane]++;
    }
    for (uint32_t lane = 0; lane < BY_LANES; lane++)
        assert_int_equal(count[lane], BY_LANE_CHUNKS);
    assert_int_equal(by_lane_span(4), 1); /* too small */
    assert_int_equal(by_lane_span(8), 2);
    assert_int_equal(by_lane_span(128), 32);
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
    assert_int_equal(by_lane(39, 32, 8 * 31), 6);
    assert_int_equal(by_lane(39, 32, 8 * 32 + 7), 39);
    assert_int_equal(by_lane_worker(39, 4), 3);
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
        for (uint32_t workers = 1; workers <= by_lane_span(window); workers *= 2)
            for (uint32_t seq = 0; seq < 4096; seq += 3) {
                uint32_t lane = by_lane(by_lane_first(tree), by_lane_span(window), seq);

                assert_int_equal(by_lane_worker(by_lane_port(tree, seq) % BY_LANE_PORT, workers),
                                 by_lane_worker(lane, workers));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_chunks_of_a_bank_have_one_lane),
        cmocka_unit_test(the_chunks_of_one_tree_are_spread_over_all_lanes),
        cmocka_unit_test(lanes_are_dealt_evenly),
        cmocka_unit_test(trees_begin_in_different_lanes),
        cmocka_unit_test(the_numbers_are_those_of_the_protocol),
        cmocka_unit_test(a_source_port_names_the_lane),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

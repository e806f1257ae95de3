/*
 * The schedules between hosts, against the paper's table, the straightforward construction and the
 * conditions for correctness. Each collective based on them is also executed on all its ranks in
 * memory. check.c describes the range of `make circulant-check`.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-driver/circulant/circulant.h"
#include "tests/unit/host-driver/circulant/conditions.h"
#include "tests/unit/host-driver/circulant/execute.h"
#include "tests/unit/host-driver/circulant/naive.h"

#define EXECUTED_MAX 130u /* maximum number of ranks of the collectives executed with every root */

static struct by_circulant graph_of(uint32_t rank_count)
{
    struct by_circulant circulant;

    assert_true(by_circulant_init(&circulant, rank_count));
    return circulant;
}

static void skips_halve_the_ranks(void **state)
{
    static const uint32_t counts[] = {1, 2, 3, 4, 5, 20, 31, 32, 33, 1000000, (1u << 30) - 1, 1u << 30};

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct by_circulant c = graph_of(counts[i]);

        assert_int_equal(c.skip[c.phase], counts[i]);
        assert_int_equal(c.skip[0], 1);
        assert_true((UINT64_C(1) << c.phase) >= counts[i] &&
                    (UINT64_C(1) << c.phase) < 2 * (uint64_t)counts[i]);
        for (uint32_t k = 0; k < c.phase; k++)
            assert_int_equal(c.skip[k], (c.skip[k + 1] + 1) / 2);
    }
}

static void counts_of_ranks_out_of_range_are_refused(void **state)
{
    struct by_circulant circulant;

    (void)state;
    assert_false(by_circulant_init(&circulant, 0));
    assert_false(by_circulant_init(&circulant, BY_CIRCULANT_RANKS_MAX + 1));
    assert_false(by_circulant_init(&circulant, UINT32_MAX));
}

/* Table 1 of the 2022 paper: p = 20, all ranks. */
static void twenty_ranks_have_the_schedules_of_the_paper(void **state)
{
    static const int8_t receive[5][20] = {
        {-5, 0, -5, -4, -3, -5, -2, -5, -4, -3, -5, -1, -5, -4, -3, -5, -2, -5, -4, -3},
        {-3, -3, 1, -5, -4, -3, -3, -2, -5, -4, -3, -3, -1, -5, -4, -3, -3, -2, -5, -4},
        {-4, -4, -3, 2, 0, -4, -4, -3, -2, -2, -4, -4, -3, -1, -1, -4, -4, -3, -2, -2},
        {-2, -2, -2, -2, -2, 3, 0, 1, 2, 0, -2, -2, -2, -2, -2, -1, -1, -1, -1, -1},
        {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 4, 0, 1, 2, 0, 3, 0, 1, 2, 0}};
    static const int8_t send[5][20] = {
        {0, -5, -4, -3, -5, -2, -5, -4, -3, -5, -1, -5, -4, -3, -5, -2, -5, -4, -3, -5},
        {1, -5, -4, -3, -3, -2, -5, -4, -3, -3, -1, -5, -4, -3, -3, -2, -5, -4, -3, -3},
        {2, 0, -4, -4, -3, -2, -2, -4, -4, -3, -1, -1, -4, -4, -3, -2, -2, -4, -4, -3},
        {3, 0, 1, 2, 0, -2, -2, -2, -2, -2, -1, -1, -1, -1, -1, -2, -2, -2, -2, -2},
        {4, 0, 1, 2, 0, 3, 0, 1, 2, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}};
    static const uint32_t baseblock[20] = {5, 0, 1, 2, 0, 3, 0, 1, 2, 0, 4, 0, 1, 2, 0, 3, 0, 1, 2, 0};
    struct by_circulant c = graph_of(20);

    (void)state;
    assert_int_equal(c.phase, 5);
    for (uint32_t rank = 0; rank < 20; rank++) {
        struct by_circulant_schedule schedule;

        by_circulant_schedule(&c, rank, &schedule);
        assert_int_equal(by_circulant_baseblock(&c, rank), baseblock[rank]);
        for (uint32_t k = 0; k < 5; k++) {
            assert_int_equal(schedule.receive[k], receive[k][rank]);
            assert_int_equal(schedule.send[k], send[k][rank]);
        }
    }
}

static void compare_with_naive(const struct by_circulant *c, uint32_t rank)
{
    struct by_circulant_schedule fast, slow;

    by_circulant_schedule(c, rank, &fast);
    if (!by_naive_receive(c, rank, c->phase, slow.receive) || !by_naive_send(c, rank, slow.send))
        fail_msg("p = %u, rank %u: the straightforward construction finds no block", c->rank_count, rank);
    for (uint32_t k = 0; k < c->phase; k++)
        if (fast.receive[k] != slow.receive[k] || fast.send[k] != slow.send[k])
            fail_msg("p = %u, rank %u, round %u: receives %d and sends %d, not %d and %d; banyan circulant "
                     "-p %u -r %u",
                     c->rank_count, rank, k, fast.receive[k], fast.send[k], slow.receive[k], slow.send[k],
                     c->rank_count, rank);
}

static void schedules_are_those_of_the_straightforward_construction(void **state)
{
    uint64_t draw = 1;

    (void)state;
    for (uint32_t p = 2; p <= 400; p++) {
        struct by_circulant c = graph_of(p);

        for (uint32_t rank = 0; rank < p; rank++)
            compare_with_naive(&c, rank);
    }
    for (uint32_t i = 0; i < 5000; i++) {
        struct by_circulant c;

        draw = draw * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        c = graph_of(2 + (uint32_t)(draw >> 34 & ((1u << (2 + i % 29)) - 1)) % (BY_CIRCULANT_RANKS_MAX - 1));
        compare_with_naive(&c, (uint32_t)((draw * 7) >> 32) % c.rank_count);
    }
}

static void the_conditions_hold_for_every_rank(void **state)
{
    struct by_conditions conditions = {0};

    (void)state;
    for (uint32_t p = 1; p <= 20000; p += p < 1500 ? 1 : 149)
        if (!by_conditions_all(&conditions, p))
            fail_msg("%s", conditions.fault);
    by_conditions_free(&conditions);
}

/* A quick version of `make circulant-check`: some ranks of every count. */
static void the_conditions_hold_for_every_count_of_ranks(void **state)
{
    struct by_conditions conditions = {0};

    (void)state;
    for (uint32_t p = 2; p <= 20000; p++)
        if (!by_conditions_some(&conditions, p, 8, p))
            fail_msg("%s", conditions.fault);
}

static void the_conditions_hold_near_powers_of_two(void **state)
{
    struct by_conditions conditions = {0};

    (void)state;
    for (uint32_t bit = 15; bit <= 30; bit++)
        for (int near = -3; near <= 3 && (1 << bit) + near <= 1 << 30; near++)
            if (!by_conditions_some(&conditions, (1u << bit) + (uint32_t)near, 64, bit))
                fail_msg("%s", conditions.fault);
}

static void run(bool (*execute)(struct by_execution *, uint32_t, uint32_t, uint32_t), uint32_t rank_count,
                uint32_t root, uint32_t block_count)
{
    struct by_execution execution = {0};

    if (!execute(&execution, rank_count, root, block_count))
        fail_msg("%u ranks, root %u, %u blocks: %s", rank_count, root, block_count, execution.fault);
}

static void run_rooted(bool (*execute)(struct by_execution *, uint32_t, uint32_t, uint32_t))
{
    for (uint32_t p = 1; p <= EXECUTED_MAX; p++)
        for (uint32_t n = 1; n <= 10; n++)
            run(execute, p, p * n % (p > 1 ? p - 1 : 1), n);
    for (uint32_t p = 1; p <= 24; p++)
        for (uint32_t root = 0; root < p; root++)
            run(execute, p, root, 1 + root % 9);
    for (uint32_t p = EXECUTED_MAX + 1; p <= 20000; p += 1231)
        run(execute, p, p / 3, 1 + p % 40);
}

static void a_broadcast_reaches_all_in_the_least_rounds(void **state)
{
    (void)state;
    run_rooted(by_execute_broadcast);
}

static void a_reduction_adds_each_value_once(void **state)
{
    (void)state;
    run_rooted(by_execute_reduce);
}

static void an_irregular_allgather_brings_every_block_of_all_to_all(void **state)
{
    (void)state;
    for (uint32_t p = 1; p <= 40; p++)
        for (uint32_t n = 1; n <= 9; n++)
            run(by_execute_allgather, p, 0, n);
}

static void a_reduce_scatter_adds_each_value_of_each_shard_once(void **state)
{
    (void)state;
    for (uint32_t p = 1; p <= 40; p++)
        for (uint32_t n = 1; n <= 9; n++)
            run(by_execute_reduce_scatter, p, 0, n);
}

static void small_shards_are_gathered_in_one_phase(void **state)
{
    (void)state;
    for (uint32_t p = 1; p <= 300; p++)
        run(by_execute_gather, p, 0, 1);
}

static void a_census_adds_each_value_once(void **state)
{
    (void)state;
    for (uint32_t p = 1; p <= 500; p++)
        run(by_execute_census, p, 0, 1);
}

static void messages_with_one_receiver_reach_it(void **state)
{
    struct by_conditions conditions = {0};

    (void)state;
    for (uint32_t p = 1; p <= 600; p++)
        if (!by_conditions_exchange(&conditions, p))
            fail_msg("%s", conditions.fault);
    for (uint32_t p = 1023; p <= 1025; p++)
        if (!by_conditions_exchange(&conditions, p))
            fail_msg("%s", conditions.fault);
}

/* Of a power of two, half of the messages move in each round. */
static void an_all_to_all_moves_half_of_the_shares_in_each_round(void **state)
{
    (void)state;
    for (uint32_t q = 0; q <= 12; q++) {
        struct by_circulant c = graph_of(1u << q);

        assert_int_equal(by_circulant_moves(&c), (uint64_t)q << q >> 1);
    }
}

/* Returns nanoseconds times n, to avoid rounding: (n - 1 + q) * (latency * n + gap * bytes). */
static unsigned __int128 cost_of(uint32_t q, uint32_t n, uint64_t bytes, uint64_t latency_ns, uint64_t gap_ps)
{
    return (unsigned __int128)(n - 1 + q) *
           ((unsigned __int128)latency_ns * 1000 * n + (unsigned __int128)gap_ps * bytes);
}

/* The formula's n is the real optimum rounded down, so the best integer is n or n + 1. */
static void the_count_of_blocks_is_the_best_one(void **state)
{
    static const uint64_t sizes[] = {1, 100, 1460, 65536, 1000000, 16777216};

    (void)state;
    for (uint32_t p = 2; p < 3000; p = p * 3 / 2 + 1) {
        struct by_circulant c = graph_of(p);

        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            uint32_t chosen = by_circulant_block_count(&c, sizes[i], 20000, 800, 4096);

            for (uint32_t n = 1; n <= 4096; n++)
                assert_true(cost_of(c.phase, chosen, sizes[i], 20000, 800) * n <=
                                cost_of(c.phase, n, sizes[i], 20000, 800) * chosen ||
                            cost_of(c.phase, chosen + 1, sizes[i], 20000, 800) * n <=
                                cost_of(c.phase, n, sizes[i], 20000, 800) * (chosen + 1));
        }
    }
}

static void the_count_of_blocks_keeps_its_limits(void **state)
{
    struct by_circulant c = graph_of(1000), two = graph_of(2), one = graph_of(1);

    (void)state;
    assert_int_equal(by_circulant_block_count(&c, 0, 1000, 1000, 64), 1);
    assert_int_equal(by_circulant_block_count(&c, UINT64_MAX, 0, UINT64_MAX, 64), 64);
    assert_int_equal(by_circulant_block_count(&c, UINT64_MAX, UINT64_MAX, 1, 64), 1);
    assert_int_equal(by_circulant_block_count(&two, 1u << 30, 1, 1000, 64), 1);
    assert_int_equal(by_circulant_block_count(&one, 1u << 30, 1, 1000, 64), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skips_halve_the_ranks),
        cmocka_unit_test(counts_of_ranks_out_of_range_are_refused),
        cmocka_unit_test(twenty_ranks_have_the_schedules_of_the_paper),
        cmocka_unit_test(schedules_are_those_of_the_straightforward_construction),
        cmocka_unit_test(the_conditions_hold_for_every_rank),
        cmocka_unit_test(the_conditions_hold_for_every_count_of_ranks),
        cmocka_unit_test(the_conditions_hold_near_powers_of_two),
        cmocka_unit_test(a_broadcast_reaches_all_in_the_least_rounds),
        cmocka_unit_test(a_reduction_adds_each_value_once),
        cmocka_unit_test(an_irregular_allgather_brings_every_block_of_all_to_all),
        cmocka_unit_test(a_reduce_scatter_adds_each_value_of_each_shard_once),
        cmocka_unit_test(small_shards_are_gathered_in_one_phase),
        cmocka_unit_test(a_census_adds_each_value_once),
        cmocka_unit_test(messages_with_one_receiver_reach_it),
        cmocka_unit_test(an_all_to_all_moves_half_of_the_shares_in_each_round),
        cmocka_unit_test(the_count_of_blocks_is_the_best_one),
        cmocka_unit_test(the_count_of_blocks_keeps_its_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which lane of a freed communicator another one takes over, and when lanes are given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host-driver/plugin/mpi/kept.h"

#define LANES (BY_MPI_KEPT_MAX + 3)

static struct by_mpi_lane lane[LANES];
static uint32_t some[] = {0, 2, 3}, others[] = {0, 3, 2};

static int make_lanes(void **state)
{
    (void)state;
    by_mpi_kept_clear();
    memset(lane, 0, sizeof(lane));
    for (uint64_t i = 0; i < LANES; i++) {
        lane[i].id = 100 - i; /* the last have the least numbers */
        lane[i].member = some;
        lane[i].size = 3;
    }
    return 0;
}

static int forget_lanes(void **state)
{
    (void)state;
    by_mpi_kept_clear();
    return 0;
}

static void put(uint32_t count)
{
    for (uint64_t i = 0; i < count; i++)
        by_mpi_kept_put(&lane[i], 1000 + i);
}

static void beyond_the_limit_the_oldest_are_given_back(void **state)
{
    (void)state;
    put(LANES);
    for (uint32_t i = 0; i < LANES - BY_MPI_KEPT_MAX; i++)
        assert_ptr_equal(by_mpi_kept_oldest(2000, 0), &lane[i]);
    assert_null(by_mpi_kept_oldest(2000, 0));
    assert_ptr_equal(by_mpi_kept_oldest(2000, 1), &lane[LANES - BY_MPI_KEPT_MAX]);
}

static void a_lane_is_given_back_after_a_while(void **state)
{
    (void)state;
    put(2);
    assert_null(by_mpi_kept_oldest(999 + BY_MPI_KEPT_NS, 0));
    assert_ptr_equal(by_mpi_kept_oldest(1000 + BY_MPI_KEPT_NS, 0), &lane[0]);
    assert_null(by_mpi_kept_oldest(1000 + BY_MPI_KEPT_NS, 0));
    assert_ptr_equal(by_mpi_kept_oldest(1001 + BY_MPI_KEPT_NS, 0), &lane[1]);
    assert_null(by_mpi_kept_oldest(UINT64_MAX, 1));
}

static void a_lane_that_returns_keeps_its_age(void **state)
{
    struct by_mpi_lane *taken[BY_MPI_OFFER_MAX];

    (void)state;
    put(2);
    assert_int_equal(by_mpi_kept_take(some, 3, taken), 2);
    by_mpi_kept_put(taken[0], 5000);
    by_mpi_kept_put(taken[1], 5000);
    assert_ptr_equal(by_mpi_kept_oldest(1000 + BY_MPI_KEPT_NS, 0), &lane[0]);
}

static void only_the_same_ranks_in_the_same_order_get_a_lane(void **state)
{
    struct by_mpi_lane *taken[BY_MPI_OFFER_MAX];

    (void)state;
    lane[1].member = others;
    lane[2].size = 2;
    put(3);
    assert_int_equal(by_mpi_kept_take(others, 3, taken), 1);
    assert_ptr_equal(taken[0], &lane[1]);
    assert_int_equal(by_mpi_kept_take(others, 3, taken), 0);
    assert_int_equal(by_mpi_kept_take(some, 3, taken), 1);
    assert_ptr_equal(taken[0], &lane[0]);
    assert_int_equal(by_mpi_kept_take(some, 2, taken), 1);
    assert_ptr_equal(taken[0], &lane[2]);
}

static void the_least_numbers_are_offered(void **state)
{
    struct by_mpi_lane *taken[BY_MPI_OFFER_MAX];

    (void)state;
    put(BY_MPI_OFFER_MAX + 2);
    assert_int_equal(by_mpi_kept_take(some, 3, taken), BY_MPI_OFFER_MAX);
    for (uint32_t i = 0; i < BY_MPI_OFFER_MAX; i++)
        assert_ptr_equal(taken[i], &lane[BY_MPI_OFFER_MAX + 1 - i]);
    assert_int_equal(by_mpi_kept_take(some, 3, taken), 2);
}

static void ranks_choose_a_lane_that_all_have(void **state)
{
    static const struct {
        struct by_mpi_offer all[3];
        uint64_t chosen;
        int few;
    } cases[] = {
        {{{{5, 7}, 1}, {{5, 7}, 1}, {{5, 7}, 1}}, 5, 1},
        {{{{5, 7}, 1}, {{7}, 1}, {{5, 7, 9}, 1}}, 7, 1},
        {{{{5, 7}, 1}, {{7, 9}, 1}, {{5, 9}, 1}}, 0, 1},
        {{{{5}, 1}, {{0}, 1}, {{5}, 1}}, 0, 1},
        {{{{0}, 1}, {{5}, 1}, {{5}, 1}}, 0, 1},
        {{{{0}, 1}, {{0}, 1}, {{0}, 1}}, 0, 1},
        {{{{1, 2, 3, 4}, 1}, {{4, 5, 6, 7}, 1}, {{2, 4}, 1}}, 4, 1},
        {{{{5}, 4}, {{5}, 1}, {{5}, 4}}, 5, 1},
        {{{{5}, 1}, {{0}, 5}, {{0}, 1}}, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int few = -1;

        assert_int_equal(by_mpi_offer_choose(cases[i].all, 3, &few), cases[i].chosen);
        assert_int_equal(few, cases[i].few);
    }
}

static void what_ranks_have_done_is_noted_by_their_order(void **state)
{
    (void)state;
    by_mpi_served_of(some, 3)->calls = 7;
    by_mpi_served_of(others, 3)->calls = 8;
    by_mpi_served_of(some, 2)->jobs = 1;
    assert_int_equal(by_mpi_served_of(some, 3)->calls, 7);
    assert_int_equal(by_mpi_served_of(some, 3)->jobs, 0);
    assert_int_equal(by_mpi_served_of(others, 3)->calls, 8);
    assert_int_equal(by_mpi_served_of(some, 2)->jobs, 1);
    by_mpi_kept_clear();
    assert_int_equal(by_mpi_served_of(some, 3)->calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(beyond_the_limit_the_oldest_are_given_back, make_lanes, forget_lanes),
        cmocka_unit_test_setup_teardown(a_lane_is_given_back_after_a_while, make_lanes, forget_lanes),
        cmocka_unit_test_setup_teardown(a_lane_that_returns_keeps_its_age, make_lanes, forget_lanes),
        cmocka_unit_test_setup_teardown(only_the_same_ranks_in_the_same_order_get_a_lane, make_lanes,
                                        forget_lanes),
        cmocka_unit_test_setup_teardown(the_least_numbers_are_offered, make_lanes, forget_lanes),
        cmocka_unit_test_setup_teardown(ranks_choose_a_lane_that_all_have, make_lanes, forget_lanes),
        cmocka_unit_test_setup_teardown(what_ranks_have_done_is_noted_by_their_order, make_lanes,
                                        forget_lanes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

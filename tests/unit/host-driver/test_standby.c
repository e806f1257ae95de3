/*
 * Ranks that move to standby generations by themselves when switches fail, while the controller is
 * away or does nothing: results are exact to the bit, and calls keep their requests. The
 * controller's later attempt supersedes a move. A failed round prints its seed: BANYAN_TEST_SEED=N
 * replays it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "host-driver/comm.h"
#include "tests/unit/host-driver/hub.h"
#include "tests/unit/host-driver/hub_calls.h"
#include "tests/unit/host-driver/rig.h"

/* Number of ranks whose calls are in a generation. */
static int in_gen(uint16_t gen)
{
    int count = 0;

    for (int r = 0; r < HUB_HOSTS; r++)
        count += hub.comm[r]->job.gen == gen;
    return count;
}

/* Number of trees of rounds that the ranks have open. */
static unsigned open_count(void)
{
    unsigned count = 0;

    for (int r = 0; r < HUB_HOSTS; r++)
        count += hub.comm[r]->progress.side_count;
    return count;
}

/* Number of ranks that have reported that no standby serves. */
static int stuck_count(void)
{
    int count = 0;

    for (size_t p = 0; p < sizeof(hub.peers) / sizeof(hub.peers[0]); p++)
        count += hub.peers[p].fd >= 0 && hub.peers[p].stuck > 0;
    return count;
}

/* Opens the ranks with standbys, of which the first replaces the trees with a bit and the second
 * tree 0. Posts a call. */
static void open_with(uint64_t seed, uint8_t replaces, bool inner, unsigned which)
{
    hub_open_standbys(&hub, seed, inner);
    hub_join(&hub);
    hub_post(HUB_ALLREDUCE);
    hub_until(hub_members(&hub) == HUB_HOSTS);
    hub_standby(&hub, 2, 1, replaces);
    hub_standby(&hub, 3, 1, 1);
    hub_until(open_count() == 2 * HUB_HOSTS);
    hub_check(HUB_ALLREDUCE);
    hub_post(which);
}

static void open_with_standbys(uint64_t seed, unsigned which)
{
    open_with(seed, 3, false, which);
}

static void in_mid_call_a_switch_dies_and_the_ranks_move_without_a_controller(void **state)
{
    (void)state;
    for (unsigned which = 0; which < HUB_CALLS; which++) {
        open_with_standbys(which, which);
        for (size_t p = 0; p < sizeof(hub.peers) / sizeof(hub.peers[0]); p++)
            assert_true(hub.peers[p].fd < 0 || hub.peers[p].hello_rank == BY_MEMBER_RANK_STANDBY);
        hub_run_for(60);
        hub_stop(&hub);
        hub_kill(&hub, 0);
        hub_until(in_gen(2) == HUB_HOSTS);
        hub_check(which);
        for (int r = 0; r < HUB_HOSTS; r++)
            assert_int_equal(hub_counter(&hub, r, "endpoint/gone_on"), 1);
        /* The next call runs there too, and a controller that comes back gets a report. */
        hub_post(which);
        hub_start(&hub);
        hub_until(hub_carried(&hub, 2) == HUB_HOSTS);
        hub_check(which);
        hub_close(&hub);
    }
}

/* The root of the standby's trees is a host, which has their table only when it has moved. */
static void a_host_becomes_the_root_of_the_trees(void **state)
{
    (void)state;
    for (unsigned which = 0; which < HUB_CALLS; which++) {
        open_with(which, 3, true, which);
        hub_run_for(60);
        hub_stop(&hub);
        hub_kill(&hub, 0);
        hub_until(in_gen(2) == HUB_HOSTS);
        hub_check(which);
        assert_true(hub_counter(&hub, 0, "engine/complete") > 0);
        hub_close(&hub);
    }
}

static void the_standby_replaces_every_tree_that_stopped(void **state)
{
    (void)state;
    open_with(1, 2, false, HUB_ALLREDUCE); /* the first does not replace the tree that stops */
    hub_run_for(60);
    hub_kill(&hub, 0);
    hub_until(in_gen(3) == HUB_HOSTS);
    hub_until(hub_carried(&hub, 3) == HUB_HOSTS);
    hub_check(HUB_ALLREDUCE);
    assert_int_equal(open_count(), 0); /* the earlier standby has been left */
    hub_close(&hub);
}

static void a_standby_that_fails_as_well_is_followed_by_the_next(void **state)
{
    uint64_t killed_ns;

    (void)state;
    open_with_standbys(1, HUB_IN_PLACE);
    hub_run_for(60);
    hub_kill(&hub, 0);
    hub_kill(&hub, 2); /* over which generation 2 is */
    hub_until(in_gen(3) == HUB_HOSTS);
    hub_check(HUB_IN_PLACE);
    hub_close(&hub);
    /* The same after the first move. */
    open_with_standbys(2, HUB_IN_PLACE);
    hub_run_for(60);
    hub_kill(&hub, 0);
    hub_until(in_gen(2) == HUB_HOSTS);
    hub_kill(&hub, 2);
    killed_ns = by_comm_now(hub.comm[0]);
    hub_until(in_gen(3) > 0);
    assert_true(by_comm_now(hub.comm[0]) - killed_ns > 900000000); /* the next one may be no better */
    hub_until(in_gen(3) == HUB_HOSTS);
    hub_check(HUB_IN_PLACE);
    hub_close(&hub);
}

static void ranks_that_no_standby_serves_report_it(void **state)
{
    (void)state;
    open_with_standbys(1, HUB_ALLREDUCE);
    hub_run_for(60);
    hub_kill(&hub, 0);
    hub_kill(&hub, 1);
    hub_until(in_gen(2) == HUB_HOSTS);
    assert_int_equal(stuck_count(), 0);
    hub_push(&hub, 4); /* without generation 2; generation 3 requires switch 1 */
    hub_until(stuck_count() == HUB_HOSTS);
    hub_close(&hub);
}

static void a_controller_supersedes_a_move(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        open_with_standbys(seed, HUB_ALLREDUCE);
        hub_run_for(60);
        hub_kill(&hub, 0);
        for (uint64_t i = seed * 300; i > 0; i--) /* before, in and after the move */
            hub_turn_all();
        hub_freeze(&hub, 4, true);
        hub_push(&hub, 4);
        hub_go(&hub, 4);
        hub_until(hub_carried(&hub, 4) == HUB_HOSTS);
        assert_int_equal(in_gen(4), HUB_HOSTS);
        assert_int_equal(open_count(), 0);
        hub_check(HUB_ALLREDUCE);
        hub_close(&hub);
    }
}

static void standbys_end_with_their_base(void **state)
{
    (void)state;
    open_with_standbys(1, HUB_ALLREDUCE);
    hub_standby(&hub, 1, 1, 0);
    hub_until(open_count() == 0);
    hub_standby(&hub, 3, 2, 1); /* of another base */
    for (int i = 0; i < 1000; i++)
        hub_turn_all();
    assert_int_equal(open_count(), 0);
    hub_check(HUB_ALLREDUCE);
    hub_close(&hub);
}

/* A rank that computes is no fault: the others wait, and none moves. */
static void a_rank_that_is_late_moves_none(void **state)
{
    int32_t late = 5, sum[HUB_HOSTS];
    int done = 0;

    (void)state;
    open_with_standbys(1, HUB_ALLREDUCE);
    hub_check(HUB_ALLREDUCE);
    for (int r = 0; r < HUB_HOSTS; r++)
        assert_int_equal(
            banyan_allreduce_init(hub.comm[r], &late, &sum[r], 1, BANYAN_I32, BANYAN_SUM, &hub_request[r]),
            BANYAN_OK);
    for (int r = 1; r < HUB_HOSTS; r++)
        assert_int_equal(banyan_post(hub_request[r]), BANYAN_OK);
    for (uint64_t begin_ns = by_comm_now(hub.comm[1]); by_comm_now(hub.comm[1]) - begin_ns < 300000000;) {
        hub_turn(&hub);
        for (int r = 1; r < HUB_HOSTS; r++) {
            assert_int_equal(banyan_test(hub_request[r], &done), BANYAN_OK);
            by_comm_progress(hub.comm[r], by_comm_now(hub.comm[r]) + 1000000);
        }
    }
    assert_int_equal(in_gen(1), HUB_HOSTS);
    assert_int_equal(banyan_post(hub_request[0]), BANYAN_OK);
    hub_until(hub_turn_all() == HUB_HOSTS);
    for (int r = 0; r < HUB_HOSTS; r++) {
        assert_int_equal(sum[r], HUB_HOSTS * late);
        assert_int_equal(banyan_free(hub_request[r]), BANYAN_OK);
    }
    hub_close(&hub);
}

/* Two failures at any time, and perhaps a controller. */
static void one_round(uint64_t seed)
{
    struct by_prng prng = {seed};
    unsigned which = (unsigned)by_prng_below(&prng, HUB_CALLS);
    bool second = by_prng_below(&prng, 2) == 1, controlled = by_prng_below(&prng, 3) == 0;

    open_with_standbys(seed, which);
    hub.loss = controlled ? (unsigned)by_prng_below(&prng, 4) : 0;
    hub_run_for(by_prng_below(&prng, 100));
    hub_kill(&hub, 0);
    for (uint64_t i = by_prng_below(&prng, 4000); i > 0; i--)
        hub_turn_all();
    if (second)
        hub_kill(&hub, controlled ? 0 : 2);
    for (uint64_t i = by_prng_below(&prng, 2000); i > 0; i--)
        hub_turn_all();
    for (uint64_t reminded_ns = 0; controlled && hub_carried(&hub, 4) < HUB_HOSTS; hub_turn_all()) {
        if (reminded_ns == 0)
            hub_push(&hub, 4);
        if (by_clock_ns() - reminded_ns > 20000000u) {
            reminded_ns = by_clock_ns();
            hub_freeze(&hub, 4, true);
            hub_go(&hub, 4);
        }
    }
    hub_check(which);
    hub_post(which);
    hub_check(which);
    hub_close(&hub);
}

static void rounds_with_random_faults_end_right(void **state)
{
    (void)state;
    hub_random(one_round);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_mid_call_a_switch_dies_and_the_ranks_move_without_a_controller),
        cmocka_unit_test(a_host_becomes_the_root_of_the_trees),
        cmocka_unit_test(the_standby_replaces_every_tree_that_stopped),
        cmocka_unit_test(a_standby_that_fails_as_well_is_followed_by_the_next),
        cmocka_unit_test(ranks_that_no_standby_serves_report_it),
        cmocka_unit_test(a_controller_supersedes_a_move),
        cmocka_unit_test(standbys_end_with_their_base),
        cmocka_unit_test(a_rank_that_is_late_moves_none),
        cmocka_unit_test(rounds_with_random_faults_end_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

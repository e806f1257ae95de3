/*
 * Checks timeouts and cuts of the window (pace.c), and the timer wheel against its specification:
 * after any sequence of settings and time steps each lane is examined within a tick of its
 * deadline, and examined too early at most once for each level of the wheel.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/prng.h"
#include "offload/endpoint/state.h"

#define LANES 300
#define TICK  (UINT64_C(1) << BY_WHEEL_TICK)
#define SEED  UINT64_C(20261121)

/* An endpoint that consists only of lanes, each with one chunk in flight. */
struct timer_bench {
    struct by_endpoint endpoint;
    struct by_ep_lane lanes[LANES];
    struct by_flight flights[LANES];
    uint64_t due_ns[LANES];
};

static struct timer_bench *bench_open(void)
{
    struct timer_bench *b = calloc(1, sizeof(*b));

    b->endpoint.lanes = b->lanes;
    b->endpoint.lane_count = LANES;
    b->endpoint.config.rto_max_ns = UINT64_MAX / 4;
    b->endpoint.config.rto_min_ns = 1;
    b->endpoint.config.stall_ns = UINT64_MAX / 4;
    b->endpoint.now_ns = 1000000000;
    for (int l = 0; l < LANES; l++) {
        b->lanes[l].flights = &b->flights[l];
        b->lanes[l].inflight = 1;
        b->lanes[l].srtt = 4; /* a timeout of 1 ns: timer_ns is the deadline */
    }
    by_timer_init(&b->endpoint);
    return b;
}

static void set(struct timer_bench *b, int lane, uint64_t due_ns)
{
    b->lanes[lane].timer_ns = due_ns - by_pace_timeout(&b->endpoint, &b->lanes[lane]);
    assert_true(by_timer_due(&b->endpoint, &b->lanes[lane]) == due_ns);
    b->due_ns[lane] = due_ns;
    by_timer_set(&b->endpoint, &b->lanes[lane]);
}

/* Examines all lanes whose timers have expired, like send.c; lanes that are due time out. Returns
 * the number of lanes examined. */
static uint32_t look(struct timer_bench *b)
{
    struct by_endpoint *e = &b->endpoint;
    struct by_ep_lane *lane;
    uint32_t looked = 0;

    while ((lane = by_timer_pop(e)) != NULL) {
        int l = (int)(lane - b->lanes);

        looked++;
        if (b->due_ns[l] == 0)
            continue;
        if (e->now_ns >= b->due_ns[l])
            b->due_ns[l] = 0;
        else
            by_timer_set(e, lane);
    }
    e->deadline_ns = by_timer_next(e);
    return looked;
}

static void check(const struct timer_bench *b, uint64_t step)
{
    for (int l = 0; l < LANES; l++) {
        if (b->due_ns[l] == 0)
            continue;
        if (b->due_ns[l] + TICK <= b->endpoint.now_ns)
            fail_msg("seed %" PRIu64 ", step %" PRIu64 ": lane %d was due at %" PRIu64 ", it is %" PRIu64,
                     SEED, step, l, b->due_ns[l], b->endpoint.now_ns);
        if (b->endpoint.deadline_ns > b->due_ns[l] + TICK)
            fail_msg("seed %" PRIu64 ", step %" PRIu64 ": lane %d is due at %" PRIu64
                     ", the deadline is %" PRIu64,
                     SEED, step, l, b->due_ns[l], b->endpoint.deadline_ns);
    }
}

static uint64_t draw_span(struct by_prng *prng)
{
    return by_prng_next(prng) >> (28 + by_prng_below(prng, 36)); /* up to 68 s, of all magnitudes */
}

static void every_timer_is_looked_at_within_a_tick_of_its_time(void **state)
{
    struct timer_bench *b = bench_open();
    struct by_prng prng = {SEED};

    (void)state;
    for (uint64_t step = 0; step < 60000; step++) {
        int lane = (int)by_prng_below(&prng, LANES);
        uint64_t now_ns = b->endpoint.now_ns;

        switch (by_prng_below(&prng, 8)) {
        case 0:
            b->due_ns[lane] = 0; /* all answered: the timer may stay in the wheel */
            break;
        case 1:
            b->endpoint.now_ns += draw_span(&prng);
            break;
        case 2: /* like a shell */
            if (b->endpoint.deadline_ns != UINT64_MAX && b->endpoint.deadline_ns > now_ns)
                b->endpoint.now_ns = b->endpoint.deadline_ns;
            break;
        default:
            set(b, lane, now_ns + 1 + draw_span(&prng));
            break;
        }
        if (b->endpoint.now_ns >= b->endpoint.deadline_ns)
            look(b);
        check(b, step);
    }
    free(b);
}

static void a_timer_is_never_looked_at_in_vain_more_often_than_there_are_levels(void **state)
{
    (void)state;
    for (uint64_t span = 1; span < UINT64_C(1000000000); span += span / 3 + 1) {
        struct timer_bench *b = bench_open();
        uint32_t looked = 0;

        set(b, 7, b->endpoint.now_ns + span);
        while (b->due_ns[7] != 0) {
            assert_true(b->endpoint.deadline_ns > b->endpoint.now_ns);
            b->endpoint.now_ns = b->endpoint.deadline_ns;
            looked += look(b);
        }
        assert_in_range(looked, 1, BY_WHEEL_LEVELS);
        free(b);
    }
}

/* The usual life of a timer: each result moves it on, and it does not expire. */
static void a_timer_that_moves_on_is_touched_once_in_its_time(void **state)
{
    struct timer_bench *b = bench_open();
    uint32_t looked = 0;

    (void)state;
    for (int i = 0; i < 100000; i++) { /* a result each microsecond, a timeout of 50 us */
        b->endpoint.now_ns += 1000;
        set(b, 0, b->endpoint.now_ns + 50000);
        if (b->endpoint.now_ns >= b->endpoint.deadline_ns)
            looked += look(b);
        check(b, (uint64_t)i);
    }
    assert_in_range(looked, 1, 100000 / 40);
    free(b);
}

static void lanes_in_any_number_share_a_tick(void **state)
{
    struct timer_bench *b = bench_open();

    (void)state;
    for (int l = 0; l < LANES; l++)
        set(b, l, b->endpoint.now_ns + 300000);
    b->endpoint.now_ns += 300000 + TICK;
    assert_in_range(look(b), LANES, 2 * LANES);
    for (int l = 0; l < LANES; l++)
        assert_true(b->due_ns[l] == 0);
    assert_true(by_timer_next(&b->endpoint) == UINT64_MAX);
    free(b);
}

/* Returns when lane 0 times out (ns after its timer began). */
static int64_t due_after(struct timer_bench *b)
{
    return (int64_t)(by_pace_due(&b->endpoint, &b->lanes[0]) - b->lanes[0].timer_ns);
}

/* A lane with round trips of 60 us under load and 5 us at the least, an answer each 4 us, and a
 * minimum timeout of 100 us. */
static void a_lane_that_has_sent_its_last_chunk_times_out_when_its_answers_cease(void **state)
{
    struct timer_bench *b = bench_open();
    struct by_ep_lane *lane = &b->lanes[0];

    (void)state;
    b->endpoint.session_phase = BY_SESSION_AGREED;
    b->endpoint.config.rto_min_ns = 100000;
    lane->srtt = 60000 << 3;
    lane->rttvar = 8000;
    lane->rtt_low = 5000;
    lane->interval = 4000 << 3;
    lane->cursor.active = 1;
    assert_int_equal(due_after(b), 128000);
    lane->cursor.active = 0;
    assert_int_equal(due_after(b), 128000); /* the window may not fit the path */
    b->endpoint.config.fitted = 1;
    assert_int_equal(due_after(b), 3 * 5000 + 2 * 4000);
    lane->backoff = 1; /* the first repair may have been lost as well */
    assert_int_equal(due_after(b), 23000);
    lane->backoff = 3;
    assert_int_equal(due_after(b), 4 * 23000);
    lane->cursor.active = 1;
    assert_int_equal(due_after(b), 8 * 128000);
    lane->cursor.active = 0;
    lane->rtt_low = 500000; /* never later than without this rule */
    assert_int_equal(due_after(b), 8 * 128000);
    lane->srtt = 0; /* no sample yet: 10 ms */
    lane->backoff = 0;
    assert_int_equal(due_after(b), 10000000);
    free(b);
}

/* Answers that are further apart than three minimum round trips: one of many trees on a slow
 * link. */
static void a_lane_with_rare_answers_waits_for_them(void **state)
{
    struct timer_bench *b = bench_open();
    struct by_ep_lane *lane = &b->lanes[0];

    (void)state;
    b->endpoint.session_phase = BY_SESSION_AGREED;
    b->endpoint.config.rto_min_ns = 1000000;
    b->endpoint.config.fitted = 1;
    lane->rtt_low = 2000;
    for (int i = 0; i < 100; i++) {
        lane->timer_ns = b->endpoint.now_ns;
        b->endpoint.now_ns += 30000;
        by_pace_accepted(&b->endpoint, lane);
    }
    assert_in_range(due_after(b), 6000 + 59900, 6000 + 60000);
    /* A wait for other ranks is no property of the lane: it counts as 5 ms at the most. */
    b->endpoint.now_ns = lane->timer_ns + 100000000;
    by_pace_accepted(&b->endpoint, lane);
    assert_in_range(lane->interval, 7 * 29900 + 5000000, 7 * 30100 + 5000000);
    free(b);
}

/* Losses on a path with round trips of 50 us at the least. */
static void a_loss_cuts_only_where_all_recent_round_trips_have_grown(void **state)
{
    struct timer_bench *b = bench_open();
    struct by_ep_lane *lane = &b->lanes[0];

    (void)state;
    lane->srtt = 0;
    b->endpoint.window = b->endpoint.window_goal = b->endpoint.window_max = 100;
    b->endpoint.window_floor = BY_WINDOW_FLOOR;
    b->endpoint.loss_least = BY_WINDOW_START / 2;
    by_pace_sample(lane, b->endpoint.now_ns, 50000);
    /* Nine of ten chunks wait for repairs of other ranks. */
    for (int i = 0; i < 100; i++)
        by_pace_sample(lane, b->endpoint.now_ns, i % 10 == 9 ? 55000 : 200000);
    assert_true(lane->srtt >> 3 > 100000);
    by_pace_cut(&b->endpoint, lane, BY_PACE_LOSS);
    assert_int_equal(b->endpoint.window, 100);
    /* A queue delays all of them. */
    for (int i = 0; i < 100; i++)
        by_pace_sample(lane, b->endpoint.now_ns, 200000);
    assert_int_equal(lane->rtt_near, 200000);
    b->endpoint.now_ns += 1000000;
    by_pace_cut(&b->endpoint, lane, BY_PACE_LOSS);
    assert_int_equal(b->endpoint.window, 100 - (100 - 32 + 3) / 4);
    for (int i = 0; i < 100; i++) {
        b->endpoint.now_ns += 1000000;
        by_pace_cut(&b->endpoint, lane, BY_PACE_LOSS);
    }
    assert_int_equal(b->endpoint.window, BY_WINDOW_START / 2);
    for (int i = 0; i < 100; i++) {
        b->endpoint.now_ns += 1000000;
        by_pace_cut(&b->endpoint, lane, BY_PACE_MARK);
    }
    assert_int_equal(b->endpoint.window, BY_WINDOW_FLOOR);
    free(b);
}

/* Where queues mark before they drop, a loss is no sign of a queue: it leaves a quarter of the
 * maximum for repairs. A mark cuts as ever. */
static void only_marks_cut_far_where_all_queues_mark(void **state)
{
    struct timer_bench *b = bench_open();
    struct by_ep_lane *lane = &b->lanes[0];

    (void)state;
    b->endpoint.config.marked = 1;
    by_pace_init(&b->endpoint, 1024);
    lane->rtt_low = 50000;
    lane->rtt_near = 200000;
    lane->srtt = 200000 << 3;
    b->endpoint.window = b->endpoint.window_goal = 800;
    for (int i = 0; i < 100; i++) {
        b->endpoint.now_ns += 1000000;
        by_pace_lost(&b->endpoint, lane, 1);
    }
    assert_int_equal(b->endpoint.window, 768);
    b->endpoint.now_ns += 1000000;
    by_pace_cut(&b->endpoint, lane, BY_PACE_MARK);
    assert_int_equal(b->endpoint.window, 768 - 97);
    b->endpoint.now_ns += 1000000;
    by_pace_lost(&b->endpoint, lane, 1);
    assert_int_equal(b->endpoint.window, 768 - 97);
    free(b);
}

/* In a tree whose root is on this host a chunk waits for ranks that send later, not in a queue. */
static void waits_at_a_root_of_this_host_cut_nothing(void **state)
{
    struct timer_bench *b = bench_open();
    struct by_ep_lane *lane = &b->lanes[0];

    (void)state;
    by_pace_init(&b->endpoint, 1024);
    lane->parent_port = BY_PORT_LOCAL;
    lane->rtt_low = 1;
    lane->rtt_near = 20000;
    lane->srtt = 20000 << 3;
    b->endpoint.window = b->endpoint.window_goal = 800;
    b->endpoint.now_ns += 1000000;
    by_pace_lost(&b->endpoint, lane, 1);
    assert_int_equal(b->endpoint.window, 800);
    lane->parent_port = 0;
    b->endpoint.now_ns += 1000000;
    by_pace_lost(&b->endpoint, lane, 1);
    assert_true(b->endpoint.window < 800);
    free(b);
}

/* A period of 512 results in a full window, in which so many chunks are lost; all round trips have
 * grown. Returns the least window of losses after it. */
static uint32_t period_with_losses(struct timer_bench *b, uint32_t losses)
{
    for (uint32_t i = 0; i < 512; i++) {
        b->endpoint.now_ns += 1000000;
        b->lanes[0].timer_ns = b->endpoint.now_ns;
        b->endpoint.inflight = b->endpoint.window;
        if (losses > 0 && i % (512 / losses) == 0)
            by_pace_lost(&b->endpoint, &b->lanes[0], 1);
        by_pace_accepted(&b->endpoint, &b->lanes[0]);
    }
    return b->endpoint.loss_least;
}

static struct timer_bench *bench_with_a_queue(void)
{
    struct timer_bench *b = bench_open();

    by_pace_init(&b->endpoint, 1024);
    b->lanes[0].rtt_low = 50000;
    b->lanes[0].rtt_near = 200000;
    b->lanes[0].srtt = 200000 << 3;
    return b;
}

/* Losses by chance are the same part of the chunks in any window, so they do not keep it small. */
static void losses_that_do_not_follow_the_window_raise_its_least(void **state)
{
    struct timer_bench *b = bench_with_a_queue();
    uint32_t least = 0;

    (void)state;
    for (int period = 0; period < 12; period++)
        least = period_with_losses(b, 16 + (uint32_t)period % 4);
    assert_int_equal(least, 4 * BY_WINDOW_START);
    assert_int_equal(period_with_losses(b, 0), 4 * BY_WINDOW_START);
    assert_true(period_with_losses(b, 64) < 4 * BY_WINDOW_START); /* the path has become worse */
    free(b);
}

/* A full queue loses more from a wider window: one period in 17 tries it. */
static void losses_that_follow_the_window_keep_it_small(void **state)
{
    struct timer_bench *b = bench_with_a_queue();
    uint32_t wide = 0;

    (void)state;
    for (int period = 0; period < 170; period++) {
        uint32_t least = period_with_losses(b, b->endpoint.loss_least > BY_WINDOW_START / 2 ? 50 : 16);

        assert_true(least == BY_WINDOW_START / 2 || least == BY_WINDOW_START);
        wide += least == BY_WINDOW_START;
    }
    assert_in_range(wide, 5, 10);
    for (int period = 0; period < 100; period++) /* so much is lost that no wider one is tried */
        assert_int_equal(period_with_losses(b, 64), BY_WINDOW_START / 2);
    free(b);
}

/* A queue that drops many packets and marks none is not believed to mark: losses cut after four
 * periods, for as long as it lasts, 64 periods more, or until a mark arrives. */
static void losses_cut_again_where_a_queue_drops_without_marks(void **state)
{
    struct timer_bench *b = bench_with_a_queue();
    struct by_endpoint *endpoint = &b->endpoint;

    (void)state;
    endpoint->config.marked = 1;
    endpoint->window = endpoint->window_goal = endpoint->window_max;
    for (int period = 0; period < 100; period++) /* as chance does */
        period_with_losses(b, 64);
    assert_in_range(endpoint->window, 768, 1024);
    for (int period = 0; period < 4; period++) {
        assert_in_range(endpoint->window, 768, 1024);
        period_with_losses(b, 128);
    }
    period_with_losses(b, 128);
    assert_in_range(endpoint->window, 1, endpoint->window_max / 2);
    for (int period = 0; period < 60; period++)
        period_with_losses(b, 64);
    assert_in_range(endpoint->window, 1, endpoint->window_max / 2);
    for (int period = 0; period < 200; period++)
        period_with_losses(b, 64);
    assert_in_range(endpoint->window, endpoint->window_max / 2, endpoint->window_max);
    for (int period = 0; period < 5; period++)
        period_with_losses(b, 128);
    assert_int_equal(endpoint->doubt, 4);
    by_pace_cut(endpoint, &b->lanes[0], BY_PACE_MARK);
    period_with_losses(b, 128);
    assert_int_equal(endpoint->doubt, 0);
    free(b);
}

/* A period in which the network marks every result, and so many chunks are lost. */
static void marked_period(struct timer_bench *b, uint32_t losses)
{
    for (uint32_t i = 0; i < 512; i++) {
        b->endpoint.now_ns += 1000000;
        by_pace_cut(&b->endpoint, &b->lanes[0], BY_PACE_MARK);
        b->endpoint.now_ns += 1000000;
        if (i % (512 / losses) == 0)
            by_pace_lost(&b->endpoint, &b->lanes[0], 1);
        b->endpoint.inflight = b->endpoint.window;
        by_pace_accepted(&b->endpoint, &b->lanes[0]);
    }
}

/* Marks cut to fewer chunks than losses, and no comparison of losses raises the window again. */
static void a_window_that_marks_have_cut_stays_so_whatever_is_lost(void **state)
{
    struct timer_bench *b = bench_with_a_queue();

    (void)state;
    for (int period = 0; period < 20; period++) {
        marked_period(b, 16); /* as many as chance: no trial */
        assert_in_range(b->endpoint.window, BY_WINDOW_FLOOR, BY_WINDOW_FLOOR + 1);
        assert_int_equal(b->endpoint.loss_least, BY_WINDOW_START / 2);
    }
    while (period_with_losses(b, 16) < 4 * BY_WINDOW_START)
        ;
    for (int period = 0; period < 4; period++) {
        marked_period(b, 64); /* the path has become worse: a smaller one, and no wider window */
        assert_in_range(b->endpoint.window, BY_WINDOW_FLOOR, BY_WINDOW_FLOOR + 1);
    }
    assert_int_equal(b->endpoint.loss_least, BY_WINDOW_START / 2);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lane_that_has_sent_its_last_chunk_times_out_when_its_answers_cease),
        cmocka_unit_test(a_lane_with_rare_answers_waits_for_them),
        cmocka_unit_test(a_loss_cuts_only_where_all_recent_round_trips_have_grown),
        cmocka_unit_test(only_marks_cut_far_where_all_queues_mark),
        cmocka_unit_test(waits_at_a_root_of_this_host_cut_nothing),
        cmocka_unit_test(losses_that_do_not_follow_the_window_raise_its_least),
        cmocka_unit_test(losses_that_follow_the_window_keep_it_small),
        cmocka_unit_test(losses_cut_again_where_a_queue_drops_without_marks),
        cmocka_unit_test(a_window_that_marks_have_cut_stays_so_whatever_is_lost),
        cmocka_unit_test(every_timer_is_looked_at_within_a_tick_of_its_time),
        cmocka_unit_test(a_timer_is_never_looked_at_in_vain_more_often_than_there_are_levels),
        cmocka_unit_test(a_timer_that_moves_on_is_touched_once_in_its_time),
        cmocka_unit_test(lanes_in_any_number_share_a_tick),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

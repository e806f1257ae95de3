/* Windows of trees, and the congestion window. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "offload/endpoint/state.h"
#include "tests/unit/offload/endpoint/rig.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static void a_chunk_is_sent_only_when_the_one_a_window_before_is_answered(void **state)
{
    static const uint16_t windows[] = {1, 2, 4, 64};

    (void)state;
    for (unsigned w = 0; w < sizeof(windows) / sizeof(windows[0]); w++) {
        uint32_t window = windows[w];
        struct rig_tree tree = {.window = windows[w]};
        struct endpoint_rig *rig = rig_start(&tree, 1, 4 * window, NULL);
        struct by_header first;

        assert_int_equal(rig_step(rig), window);
        first = rig->sent[0];
        for (uint32_t seq = 1; seq < window; seq++) { /* all but the first: the window stays closed */
            struct by_header h = rig_contrib(&first, seq);

            rig_answer(rig, &h, RIG_BYTES, 0);
            assert_false(rig_sent(rig, BY_TYPE_CONTRIB, window));
        }
        rig_answer(rig, &first, RIG_BYTES, 0);
        assert_int_equal(by_endpoint_inflight(rig->endpoint), window);
        assert_true(rig_sent(rig, BY_TYPE_CONTRIB, window));
        assert_true(rig_sent(rig, BY_TYPE_CONTRIB, 2 * window - 1));
        assert_false(rig_sent(rig, BY_TYPE_CONTRIB, 2 * window));
        rig_stop(rig);
    }
}

/* Windows of 16: a batch is at most 4. */
static void a_full_window_waits_for_room_for_a_batch(void **state)
{
    static const uint32_t batches[] = {3, 64};

    (void)state;
    for (unsigned b = 0; b < 2; b++) {
        struct rig_tree tree = {.window = 16};
        struct by_endpoint_config config = {.batch = batches[b]};
        struct endpoint_rig *rig = rig_start(&tree, 1, 16 + 9, &config);
        uint32_t batch = b == 0 ? 3 : 4, sent = 16;
        struct by_header first;

        assert_int_equal(rig_step(rig), 16);
        first = rig->sent[0];
        for (uint32_t seq = 0; seq < 16 + 9; seq++) {
            struct by_header h = rig_contrib(&first, seq);
            /* The last batch is what is left. */
            uint32_t room = 16 - (sent - seq - 1);
            uint32_t expected = room < batch ? 0 : sent + room > 16 + 9 ? 16 + 9 - sent : room;

            assert_int_equal(rig_answer(rig, &h, RIG_BYTES, 0), expected);
            sent += expected;
        }
        assert_int_equal(sent, 16 + 9);
        assert_int_equal(by_endpoint_inflight(rig->endpoint), 0);
        rig_stop(rig);
    }
}

static void windows_run_across_call_boundaries(void **state)
{
    struct rig_tree tree = {.window = 8};
    struct endpoint_rig *rig = rig_start(&tree, 1, 3, NULL);
    struct by_call call = {.collective = BY_COLLECTIVE_BARRIER};
    uint32_t id;

    (void)state;
    for (int c = 0; c < 10; c++)
        assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, NULL), 0);
    assert_int_equal(rig_step(rig), 8);
    assert_int_equal(rig->sent[2].optag, by_optag(0, BY_COLLECTIVE_ALLREDUCE, 0, 3 * RIG_BYTES));
    assert_int_equal(rig->sent[3].optag, by_optag(1, BY_COLLECTIVE_BARRIER, 0, 0));
    assert_int_equal(rig->sent[7].optag, by_optag(5, BY_COLLECTIVE_BARRIER, 0, 0));
    rig_stop(rig);
}

static void no_more_is_in_flight_than_the_limit_over_all_trees(void **state)
{
    struct rig_tree trees[2] = {{.window = 64}, {.window = 64}};
    struct by_endpoint_config config = {.inflight_max = 10};
    struct endpoint_rig *rig = rig_start(trees, 2, 100, &config);

    (void)state;
    assert_int_equal(rig_step(rig), 10);
    assert_int_equal(by_endpoint_inflight(rig->endpoint), 10);
    assert_int_equal(rig_answer(rig, &rig->sent[0], RIG_BYTES, 0), 1);
    assert_int_equal(by_endpoint_inflight(rig->endpoint), 10);
    rig_stop(rig);
}

static void a_tree_with_nothing_in_flight_may_always_send(void **state)
{
    struct rig_tree trees[3] = {{.window = 64}, {.window = 64}, {.window = 64}};
    struct by_endpoint_config config = {.inflight_max = 1};
    struct endpoint_rig *rig = rig_start(trees, 3, 30, &config);
    unsigned seen = 0;

    (void)state;
    assert_int_equal(rig_step(rig), 3); /* otherwise two ranks could wait for each other on different trees */
    for (unsigned i = 0; i < 3; i++)
        seen |= 1u << rig->sent[i].tree;
    assert_int_equal(seen, 7);
    rig_stop(rig);
}

static void the_congestion_window_opens_and_yields_to_marks_but_little_to_chance_loss(void **state)
{
    struct rig_tree tree = {.window = 1024};
    struct endpoint_rig *rig = rig_start(&tree, 1, 4096, NULL);
    struct by_header first;
    uint32_t opened, seq = 0;

    (void)state;
    assert_int_equal(rig_step(rig), BY_WINDOW_START);
    first = rig->sent[0];
    for (int round = 0; round < 6; round++) {
        uint32_t flying = by_endpoint_inflight(rig->endpoint);

        rig->now_ns += 20 * US;
        for (uint32_t end = seq + flying; seq < end; seq++) {
            struct by_header h = rig_contrib(&first, seq);

            rig_answer(rig, &h, RIG_BYTES, 0);
        }
    }
    opened = rig->endpoint->window;
    assert_in_range(opened, 512, 1024);
    /* One loss: later chunks overtake the chunk `seq`. */
    rig->now_ns += 20 * US;
    for (uint32_t i = 1; i < 8; i++) {
        struct by_header h = rig_contrib(&first, seq + i);

        rig_answer(rig, &h, RIG_BYTES, 0);
    }
    assert_int_equal(by_endpoint_counters(rig->endpoint)->gap, 1);
    assert_in_range(rig->endpoint->window, opened - opened / 32, opened);
    /* A congestion mark. */
    opened = rig->endpoint->window;
    rig->now_ns += 40 * US;
    {
        struct by_header h = rig_contrib(&first, seq + 8), result = rig_result(rig, &h, rig_data, RIG_BYTES);

        result.flags |= BY_FLAG_CE;
        rig_give(rig, &result, rig_data, RIG_BYTES);
        assert_in_range(rig->endpoint->window, opened - opened / 8 - 1, opened - opened / 8 + 1);
        opened = rig->endpoint->window;
        h = rig_contrib(&first, seq + 9); /* a second mark in the same round trip has no effect */
        result = rig_result(rig, &h, rig_data, RIG_BYTES);
        result.flags |= BY_FLAG_CE;
        rig_give(rig, &result, rig_data, RIG_BYTES);
        assert_true(rig->endpoint->window >= opened);
    }
    for (int i = 0; i < 200; i++) {
        rig->now_ns += 40 * US;
        by_pace_cut(rig->endpoint, &rig->endpoint->lanes[0], BY_PACE_MARK);
        rig->endpoint->now_ns = rig->now_ns;
    }
    assert_int_equal(rig->endpoint->window, BY_WINDOW_FLOOR);
    rig_stop(rig);
}

/* Answers chunks from `seq` on until the window has its maximum; returns the next one. */
static uint32_t open_window(struct endpoint_rig *rig, const struct by_header *first, uint32_t seq)
{
    while (rig->endpoint->window < rig->endpoint->window_max) {
        struct by_header h = rig_contrib(first, seq++);

        rig->now_ns += US;
        rig_answer(rig, &h, RIG_BYTES, 0);
    }
    return seq;
}

/* Until the window is closed. */
static void be_silent(struct endpoint_rig *rig)
{
    for (int i = 0; i < 20 && rig->endpoint->window > BY_WINDOW_FLOOR; i++) {
        rig->now_ns += 5 * MS;
        rig_step(rig);
    }
    assert_int_equal(rig->endpoint->window, BY_WINDOW_FLOOR);
}

static void results_that_were_only_late_take_a_silence_back(void **state)
{
    struct rig_tree tree = {.window = 256};
    struct by_endpoint_config config = {.marked = 1};
    struct endpoint_rig *rig = rig_start(&tree, 1, 4000, &config);
    struct by_header first, h;
    uint32_t seq;

    (void)state;
    rig_step(rig);
    first = rig->sent[0];
    seq = open_window(rig, &first, 0);
    /* The oldest chunk was sent again: its result shows nothing. A later one's does. */
    be_silent(rig);
    assert_int_equal(rig->endpoint->window_goal, 256 - 64);
    h = rig_contrib(&first, seq);
    rig_answer(rig, &h, RIG_BYTES, 0);
    assert_int_equal(rig->endpoint->window_goal, 256 - 64);
    h = rig_contrib(&first, seq + 1);
    rig_answer(rig, &h, RIG_BYTES, 0);
    assert_int_equal(rig->endpoint->window_goal, 256);
    seq = open_window(rig, &first, seq + 2);
    /* A queue that does not mark may have delayed it. */
    be_silent(rig);
    rig->endpoint->config.marked = 0;
    h = rig_contrib(&first, seq + 1);
    rig_answer(rig, &h, RIG_BYTES, 0);
    assert_int_equal(rig->endpoint->window_goal, 256 - 64);
    rig->endpoint->config.marked = 1;
    h = rig_contrib(&first, seq + 2);
    rig_answer(rig, &h, RIG_BYTES, 0);
    assert_int_equal(rig->endpoint->window_goal, 256);
    h = rig_contrib(&first, seq);
    rig_answer(rig, &h, RIG_BYTES, 0);
    seq = open_window(rig, &first, seq + 3);
    /* What is sent after the silence shows nothing either, nor does anything after another cut. */
    be_silent(rig);
    rig->endpoint->silent_ns = 0;
    h = rig_contrib(&first, seq + 1);
    rig_answer(rig, &h, RIG_BYTES, 0);
    assert_int_equal(rig->endpoint->window_goal, 256 - 64);
    rig->endpoint->silent_ns = rig->now_ns;
    rig->endpoint->window_cut_ns = 0;
    by_pace_cut(rig->endpoint, &rig->endpoint->lanes[0], BY_PACE_MARK);
    h = rig_contrib(&first, seq + 2);
    rig_answer(rig, &h, RIG_BYTES, 0);
    assert_int_equal(rig->endpoint->window_goal, BY_WINDOW_FLOOR);
    rig_stop(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chunk_is_sent_only_when_the_one_a_window_before_is_answered),
        cmocka_unit_test(a_full_window_waits_for_room_for_a_batch),
        cmocka_unit_test(windows_run_across_call_boundaries),
        cmocka_unit_test(no_more_is_in_flight_than_the_limit_over_all_trees),
        cmocka_unit_test(a_tree_with_nothing_in_flight_may_always_send),
        cmocka_unit_test(the_congestion_window_opens_and_yields_to_marks_but_little_to_chance_loss),
        cmocka_unit_test(results_that_were_only_late_take_a_silence_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

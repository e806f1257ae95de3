/* When packets are sent: repair, timers and backoff. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/endpoint/state.h"
#include "tests/unit/offload/endpoint/rig.h"

#define US   UINT64_C(1000)
#define MS   UINT64_C(1000000)
#define TICK (UINT64_C(1) << BY_WHEEL_TICK)

static void a_small_transmit_array_takes_the_work_in_pieces(void **state)
{
    struct rig_tree tree = {.window = 64};
    struct endpoint_rig *rig = rig_start(&tree, 1, 20, NULL);
    struct by_tx tx[8];
    uint32_t count, total = 0;

    (void)state;
    do {
        by_endpoint_step(rig->endpoint, rig->now_ns, NULL, 0, tx, 8, &count);
        total += count;
    } while (count == 8);
    assert_int_equal(total, 20);
    rig_stop(rig);
}

static void payloads_point_into_the_users_buffer(void **state)
{
    struct rig_tree tree = {.window = 64};
    struct endpoint_rig *rig = rig_start(&tree, 1, 5, NULL);

    (void)state;
    assert_int_equal(rig_step(rig), 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_ptr_equal(rig->tx[i].payload, rig_data + i * RIG_BYTES);
        assert_int_equal(rig->tx[i].ref, BY_REF_NONE);
        assert_int_equal(rig->sent[i].psum, by_psum(rig_data + i * RIG_BYTES, RIG_BYTES));
        assert_int_equal(rig->sent[i].nleaf, 1);
        assert_int_equal(rig->sent[i].witness, by_leaf_tag(1, 0));
        assert_int_equal(rig->sent[i].gen, 7);
    }
    rig_stop(rig);
}

static void what_crosses_no_wire_leaves_without_a_psum(void **state)
{
    struct rig_tree tree = {.window = 64};
    struct by_endpoint_config config = {.shared = 1};
    struct endpoint_rig *rig = rig_start(&tree, 1, 5, &config);

    (void)state;
    memset(rig_data, 3, 5 * RIG_BYTES);
    assert_int_equal(rig_step(rig), 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(rig->tx[i].direct, 1);
        assert_int_equal(rig->sent[i].psum, 0);
    }
    rig->now_ns += 10 * MS + TICK;
    assert_int_equal(rig_step(rig), 1); /* a retransmission has no psum either */
    assert_int_equal(rig->tx[0].direct, 1);
    assert_true(rig->sent[0].flags & BY_FLAG_RETX);
    rig_stop(rig);
}

static void a_result_that_a_later_one_overtook_is_requested_at_once(void **state)
{
    struct rig_tree tree = {.window = 8};
    struct endpoint_rig *rig = rig_start(&tree, 1, 64, NULL);
    struct by_header first, h;
    struct by_gap gap;

    (void)state;
    assert_int_equal(rig_step(rig), 8);
    first = rig->sent[0];
    rig->now_ns += 10 * US;
    h = rig_contrib(&first, 1);
    assert_int_equal(rig_answer(rig, &h, RIG_BYTES, 0), 1);
    assert_int_equal(rig->sent[0].type, BY_TYPE_GAP);
    assert_int_equal(rig->sent[0].seq, 0);
    assert_int_equal(by_gap_decode(rig->tx[0].small, rig->tx[0].payload_bytes, &gap), 0);
    assert_int_equal(gap.seen, 1);
    assert_int_equal(gap.missing, 1);
    assert_int_equal(by_endpoint_counters(rig->endpoint)->gap, 1);
    assert_int_equal(by_endpoint_counters(rig->endpoint)->retx, 0);
    for (uint32_t seq = 2; seq < 8; seq++) { /* no second request: these were sent before the first */
        h = rig_contrib(&first, seq);
        assert_int_equal(rig_answer(rig, &h, RIG_BYTES, 0), 0);
    }
    rig_stop(rig);
}

static void a_request_that_was_answered_in_part_ends_in_a_timeout(void **state)
{
    struct rig_tree tree = {.window = 8};
    struct endpoint_rig *rig = rig_start(&tree, 1, 64, NULL);
    struct by_header first, h;

    (void)state;
    rig_step(rig);
    first = rig->sent[0];
    rig->now_ns += 10 * US;
    for (uint32_t seq = 2; seq < 8; seq++) { /* 0 and 1 are missing */
        h = rig_contrib(&first, seq);
        rig_answer(rig, &h, RIG_BYTES, 0);
    }
    assert_int_equal(by_endpoint_counters(rig->endpoint)->gap, 1);
    rig->now_ns += 10 * US;
    rig_answer(rig, &first, RIG_BYTES, 0); /* the result of 0; that of 1 is lost. Seq 8 may be sent now */
    assert_int_equal(rig->sent_count, 1);
    assert_true(rig_sent(rig, BY_TYPE_CONTRIB, 8));
    rig->now_ns += 10 * US;
    h = rig_contrib(&first, 8);
    assert_int_equal(rig_answer(rig, &h, RIG_BYTES, 0), 0); /* only one later answer */
    do
        rig->now_ns = by_endpoint_deadline(rig->endpoint);
    while (rig_step(rig) == 0);                     /* a deadline may be early */
    assert_true(rig_sent(rig, BY_TYPE_CONTRIB, 1)); /* no further chunk can overtake it: the timer sends it */
    assert_int_equal(by_endpoint_counters(rig->endpoint)->retx, 1);
    rig_stop(rig);
}

/* Gives the endpoint the request of its parent for the chunks `missing` from `seq` on. */
static void give_gap(struct endpoint_rig *rig, const struct by_header *contrib, uint32_t seq, uint32_t seen,
                     uint8_t missing)
{
    struct by_gap gap = {.seen = seen, .missing = missing};
    struct by_header header = *contrib;
    uint8_t payload[BY_GAP_BYTES];

    by_gap_encode(&gap, payload);
    header.type = BY_TYPE_GAP;
    header.flags = 0;
    header.seq = seq;
    header.psum = by_psum(payload, sizeof(payload));
    rig_give(rig, &header, payload, sizeof(payload));
}

static void chunks_that_the_parent_lacks_are_sent_at_once(void **state)
{
    struct rig_tree tree = {.window = 8};
    struct endpoint_rig *rig = rig_start(&tree, 1, 64, NULL);
    struct by_header first;

    (void)state;
    rig_step(rig);
    first = rig->sent[0];
    rig->now_ns += 10 * US;
    give_gap(rig, &first, 1, 6, 5); /* 1 and 3 */
    assert_int_equal(rig->sent_count, 2);
    assert_true(rig_sent(rig, BY_TYPE_CONTRIB, 1));
    assert_true(rig_sent(rig, BY_TYPE_CONTRIB, 3));
    assert_true(rig->sent[0].flags & BY_FLAG_RETX);
    rig->now_ns += 10 * US;
    give_gap(rig, &first, 1, 6, 1); /* sent since chunk 6: it is on its way */
    assert_int_equal(rig->sent_count, 0);
    give_gap(rig, &first, 1, 3, 1); /* the repair of 3, which left with it, has arrived */
    assert_int_equal(rig->sent_count, 1);
    give_gap(rig, &first, 40, 41, 255); /* not sent yet */
    assert_int_equal(rig->sent_count, 0);
    assert_int_equal(by_endpoint_counters(rig->endpoint)->asked, 4);
    rig_stop(rig);
}

/* The parent requests a chunk until it arrives, and a rank requests a result until the parent has
 * it: losses are counted as chunks, however often they are requested. */
static void a_chunk_that_is_requested_again_is_lost_once(void **state)
{
    const struct by_endpoint_config config = {.inflight_max = 8};
    struct rig_tree tree = {.window = 32};
    struct endpoint_rig *rig = rig_start(&tree, 1, 64, &config);
    struct by_header first, h;

    (void)state;
    rig_step(rig);
    first = rig->sent[0];
    rig->now_ns += 10 * US;
    give_gap(rig, &first, 1, 6, 5); /* 1 and 3 */
    assert_int_equal(rig->endpoint->loss_count, 2);
    give_gap(rig, &first, 1, 7, 5);
    give_gap(rig, &first, 1, 7, 5);
    give_gap(rig, &first, 40, 41, 255); /* not sent yet */
    assert_int_equal(by_endpoint_counters(rig->endpoint)->asked, 4);
    assert_int_equal(rig->endpoint->loss_count, 2);
    for (uint32_t seq = 1; seq < 32; seq++) { /* the result of 0 does not come */
        h = rig_contrib(&first, seq);
        rig_answer(rig, &h, RIG_BYTES, 0);
    }
    assert_true(by_endpoint_counters(rig->endpoint)->gap > 1);
    assert_int_equal(rig->endpoint->loss_count, 3);
    rig_stop(rig);
}

static void a_path_that_reorders_makes_repairs_patient(void **state)
{
    struct rig_tree tree = {.window = 16};
    struct endpoint_rig *rig = rig_start(&tree, 1, 4000, NULL);
    struct by_header first;
    uint32_t early = 0, late;

    (void)state;
    rig_step(rig);
    first = rig->sent[0];
    for (uint32_t round = 0; round < 200;
         round++) { /* in each window three results arrive after the first chunk's */
        uint32_t base = 16 * round;

        rig->now_ns += 10 * US;
        for (uint32_t i = 1; i < 13; i++) {
            struct by_header h = rig_contrib(&first, base + i);

            rig_answer(rig, &h, RIG_BYTES, 0);
        }
        for (uint32_t i = 0; i < 16; i += i == 0 ? 13 : 1) {
            struct by_header h = rig_contrib(&first, base + i);

            rig_answer(rig, &h, RIG_BYTES, 0);
        }
        if (round == 19)
            early = (uint32_t)by_endpoint_counters(rig->endpoint)->gap;
    }
    late = (uint32_t)by_endpoint_counters(rig->endpoint)->gap;
    assert_in_range(early, 8, 20);
    assert_true(late - early <= 5);
    rig_stop(rig);
}

/* Lets timers expire: each must send the oldest chunk again, after the next of these pauses. */
static void expect_pauses(struct endpoint_rig *rig, const uint64_t *pauses, unsigned count)
{
    uint64_t sent_ns;
    uint32_t wakes;

    for (unsigned i = 0; i < count; i++) {
        sent_ns = rig->now_ns;
        for (wakes = 1; wakes < 10; wakes++) {
            rig->now_ns = by_endpoint_deadline(rig->endpoint) - 1;
            assert_int_equal(rig_step(rig), 0);
            rig->now_ns = by_endpoint_deadline(rig->endpoint);
            if (rig_step(rig) > 0)
                break;
        }
        assert_in_range(rig->now_ns, sent_ns + pauses[i], sent_ns + pauses[i] + TICK);
        assert_true(wakes <= BY_WHEEL_LEVELS); /* number of checks before the timer was due */
        assert_int_equal(rig->sent_count, 1);  /* only the oldest chunk */
        assert_int_equal(rig->sent[0].seq, 0);
        assert_int_equal(rig->sent[0].flags, BY_FLAG_RETX);
    }
}

/* With a controller, which counts the frames that vanish, the first pauses stay short. */
static void a_silent_tree_shows_the_controller_where_its_packets_vanish(void **state)
{
    struct rig_tree tree = {.window = 8};
    struct by_endpoint_config config = {.stall_ns = 100000 * MS, .resume = 1};
    struct endpoint_rig *rig = rig_start(&tree, 1, 8, &config);
    uint64_t pauses[30];

    (void)state;
    for (unsigned i = 0; i < 25; i++)
        pauses[i] = 10 * MS;
    for (unsigned i = 25; i < 30; i++)
        pauses[i] = 2 * pauses[i - 1] < 200 * MS ? 2 * pauses[i - 1] : 200 * MS;
    assert_int_equal(rig_step(rig), 8);
    expect_pauses(rig, pauses, sizeof(pauses) / sizeof(pauses[0]));
    rig_stop(rig);
}

static void a_silent_tree_is_asked_again_with_growing_pauses_up_to_the_bound(void **state)
{
    struct rig_tree tree = {.window = 8};
    struct by_endpoint_config config = {.rto_min_ns = 2 * MS, .rto_max_ns = 50 * MS, .stall_ns = 100000 * MS};
    struct endpoint_rig *rig = rig_start(&tree, 1, 8, &config);
    static const uint64_t pauses[] = {10 * MS, 20 * MS, 40 * MS, 50 * MS, 50 * MS, 50 * MS};

    (void)state;
    assert_int_equal(rig_step(rig), 8);
    expect_pauses(rig, pauses, sizeof(pauses) / sizeof(pauses[0]));
    rig->now_ns += 1 * MS;
    rig_answer(rig, &rig->sent[0], RIG_BYTES, 0);
    assert_int_equal(rig->sent_count, 7); /* progress: short timeouts again, and the rest is resent */
    for (uint32_t seq = 1; seq < 8; seq++)
        assert_true(rig_sent(rig, BY_TYPE_CONTRIB, seq));
    assert_true(by_endpoint_deadline(rig->endpoint) <= rig->now_ns + 10 * MS);
    rig_stop(rig);
}

/* Loses the whole window of 32, lets the timer send the oldest chunk again, and answers that: with
 * BY_FLAG_RETX if `resent`, after a WAIT in `wait_state` (0: none). Returns the number of chunks
 * that are sent again. */
static uint32_t go_again(unsigned wait_state, int resent)
{
    struct rig_tree tree = {.window = 32};
    struct endpoint_rig *rig = rig_start(&tree, 1, 32, NULL);
    struct by_wait wait = {.node = 0, .state = (uint8_t)wait_state, .missing = 1};
    struct by_header contrib, header;
    uint8_t payload[BY_WAIT_BYTES], sum[RIG_BYTES] = {0};
    uint32_t count;

    rig_step(rig);
    rig->now_ns += 10 * MS + TICK;
    assert_int_equal(rig_step(rig), 1);
    contrib = rig->sent[0];
    if (wait_state != 0) {
        by_wait_encode(&wait, payload);
        header = contrib;
        header.type = BY_TYPE_WAIT;
        header.flags = 0;
        header.psum = by_psum(payload, sizeof(payload));
        assert_int_equal(rig_give(rig, &header, payload, sizeof(payload)), 0);
        assert_int_equal(rig->endpoint->counters.wait, 1);
    }
    header = rig_result(rig, &contrib, sum, RIG_BYTES);
    header.flags = resent ? BY_FLAG_RETX : 0;
    count = rig_give(rig, &header, sum, RIG_BYTES);
    assert_int_equal(rig->endpoint->counters.result, 1);
    rig_stop(rig);
    return count;
}

static void after_a_timeout_more_goes_again_only_if_it_was_this_ranks_loss(void **state)
{
    (void)state;
    assert_int_equal(go_again(0, 1), BY_REVIVE_COUNT);
    assert_int_equal(go_again(BY_WAIT_PARENT, 1), BY_REVIVE_COUNT); /* the loss may be above the parent */
    assert_int_equal(go_again(BY_WAIT_CHILDREN, 1), 0);             /* another rank's loss */
    assert_int_equal(go_again(0, 0), 0);                            /* nothing was lost, everything is late */
}

static void waiting_for_other_ranks_does_not_lengthen_the_timeout_for_long(void **state)
{
    struct rig_tree tree = {.window = 1};
    struct endpoint_rig *rig = rig_start(&tree, 1, 4000, NULL);
    struct by_header contrib;

    (void)state;
    rig_step(rig);
    for (int i = 0; i < 200; i++) {
        contrib = rig->sent[0];
        rig->now_ns += 100 * US;
        assert_int_equal(rig_answer(rig, &contrib, RIG_BYTES, 0), 1);
    }
    for (int i = 0; i < 6; i++) { /* less than the epoch of the minimum round-trip time */
        contrib = rig->sent[0];
        rig->now_ns += 150 * MS; /* another rank is late each time */
        assert_int_equal(rig_answer(rig, &contrib, RIG_BYTES, 0), 1);
        assert_true(by_pace_timeout(rig->endpoint, &rig->endpoint->lanes[0]) <= 30 * MS);
    }
    rig_stop(rig);
}

static void round_trips_set_the_timeout(void **state)
{
    struct rig_tree tree = {.window = 4};
    struct by_endpoint_config config = {.rto_min_ns = 16 * US};
    struct endpoint_rig *rig = rig_start(&tree, 1, 2000, &config);
    struct by_header first;

    (void)state;
    rig_step(rig);
    first = rig->sent[0];
    for (uint32_t seq = 0; seq < 1000; seq += 4) {
        rig->now_ns += 100 * US;
        for (uint32_t i = 0; i < 4; i++) {
            struct by_header h = rig_contrib(&first, seq + i);

            rig_answer(rig, &h, RIG_BYTES, 0);
        }
    }
    /* A constant 100 us: the variance has decayed, and the timeout is about two round trips. */
    assert_in_range(by_pace_timeout(rig->endpoint, &rig->endpoint->lanes[0]), 190 * US, 230 * US);
    rig_stop(rig);
}

static void a_retransmitted_chunk_gives_no_round_trip_time(void **state)
{
    struct rig_tree tree = {.window = 1};
    struct endpoint_rig *rig = rig_start(&tree, 1, 4, NULL);

    (void)state;
    rig_step(rig);
    rig->now_ns += 10 * MS + TICK;
    assert_int_equal(rig_step(rig), 1);
    rig->now_ns += 5;
    rig_answer(rig, &rig->sent[0], RIG_BYTES,
               0); /* 5 ns after the repair: this answers the first transmission */
    assert_int_equal(rig->endpoint->lanes[0].srtt, 0);
    rig_stop(rig);
}

/* A retransmission sends the same data, or the call ends. Otherwise one sum could contain two
 * versions of an input. */
static void a_send_buffer_that_changed_is_not_sent_again(void **state)
{
    struct rig_tree tree = {.window = 1};
    struct endpoint_rig *rig = rig_start(&tree, 1, 4, NULL);
    struct by_call_status status;

    (void)state;
    rig_step(rig);
    rig_data[RIG_BYTES - 1] ^= 4;
    rig->now_ns += 10 * MS + TICK;
    assert_int_equal(rig_step(rig), 0);
    assert_int_equal(by_endpoint_test(rig->endpoint, 0, &status), BY_ECHECKSUM);
    assert_int_equal(status.node, rig->endpoint->node);
    assert_int_equal(by_endpoint_counters(rig->endpoint)->retx, 0);
    rig_data[RIG_BYTES - 1] ^= 4;
    rig_stop(rig);
}

static void a_chunk_that_another_rank_had_to_send_again_gives_no_round_trip_time(void **state)
{
    struct rig_tree tree = {.window = 1};
    struct endpoint_rig *rig = rig_start(&tree, 1, 4, NULL);
    struct by_header contrib;

    (void)state;
    rig_step(rig);
    rig->now_ns += 5 * MS;
    contrib = rig->sent[0];
    contrib.flags |= BY_FLAG_RETX;
    rig_answer(rig, &contrib, RIG_BYTES, 0);
    assert_int_equal(rig->endpoint->counters.result, 1);
    assert_int_equal(rig->endpoint->lanes[0].srtt, 0);
    rig_stop(rig);
}

static void sequence_numbers_wrap(void **state)
{
    struct rig_tree tree = {.window = 4};
    struct endpoint_rig *rig = rig_start(&tree, 1, 40, NULL);
    uint32_t base = 0xfffffff8u; /* a multiple of twice the window before the wrap */
    struct by_header first;

    (void)state;
    rig->endpoint->lanes[0].base = rig->endpoint->lanes[0].next = base;
    assert_int_equal(rig_step(rig), 4);
    first = rig->sent[0];
    for (uint32_t i = 0; i < 40; i++) {
        struct by_header h = rig_contrib(&first, base + i);

        rig_answer(rig, &h, RIG_BYTES, 0);
    }
    assert_int_equal(by_endpoint_counters(rig->endpoint)->result, 40);
    assert_int_equal(by_endpoint_inflight(rig->endpoint), 0);
    rig_stop(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_transmit_array_takes_the_work_in_pieces),
        cmocka_unit_test(payloads_point_into_the_users_buffer),
        cmocka_unit_test(what_crosses_no_wire_leaves_without_a_psum),
        cmocka_unit_test(a_result_that_a_later_one_overtook_is_requested_at_once),
        cmocka_unit_test(a_request_that_was_answered_in_part_ends_in_a_timeout),
        cmocka_unit_test(chunks_that_the_parent_lacks_are_sent_at_once),
        cmocka_unit_test(a_chunk_that_is_requested_again_is_lost_once),
        cmocka_unit_test(a_path_that_reorders_makes_repairs_patient),
        cmocka_unit_test(a_silent_tree_shows_the_controller_where_its_packets_vanish),
        cmocka_unit_test(a_silent_tree_is_asked_again_with_growing_pauses_up_to_the_bound),
        cmocka_unit_test(after_a_timeout_more_goes_again_only_if_it_was_this_ranks_loss),
        cmocka_unit_test(waiting_for_other_ranks_does_not_lengthen_the_timeout_for_long),
        cmocka_unit_test(round_trips_set_the_timeout),
        cmocka_unit_test(a_retransmitted_chunk_gives_no_round_trip_time),
        cmocka_unit_test(a_send_buffer_that_changed_is_not_sent_again),
        cmocka_unit_test(a_chunk_that_another_rank_had_to_send_again_gives_no_round_trip_time),
        cmocka_unit_test(sequence_numbers_wrap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

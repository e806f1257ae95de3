/* The roll call and the openings before a run's first chunk: what the endpoint sends, which answers
 * it accepts, and how it passes what an earlier run has left on the same tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/endpoint/state.h"
#include "tests/unit/offload/endpoint/rig.h"

#define RANKS  3
#define BYTES  64
#define NONCE  0x5eed1234u
#define STALL  UINT64_C(1000000000)
#define WINDOW 8
#define LEAP   (8 * WINDOW)

static uint8_t data[64 * BYTES];
static uint32_t ids[2];

static void post(struct endpoint_rig *rig, unsigned collective, uint64_t count, uint32_t *id)
{
    struct by_call call = {.collective = (uint8_t)collective,
                           .op = BY_OP_SUM,
                           .dtype = BY_DTYPE_U8,
                           .mode = BY_MODE_FAST,
                           .count = count,
                           .send = data,
                           .recv = data};

    assert_int_equal(by_endpoint_post(rig->endpoint, &call, id, NULL), 0);
}

/* Starts a rig that has posted an allreduce of eight chunks over two trees, and a barrier. Nothing
 * is sent yet. */
static struct endpoint_rig *start(int ranks)
{
    struct rig_tree trees[2] = {{.window = WINDOW}, {.window = WINDOW}};
    struct by_endpoint_config config = {.nonce = NONCE, .stall_ns = STALL};
    struct endpoint_rig *rig = malloc(sizeof(*rig));

    rig_open_first(rig, ranks, trees, 2, &config);
    post(rig, BY_COLLECTIVE_ALLREDUCE, 8 * BYTES, &ids[0]);
    post(rig, BY_COLLECTIVE_BARRIER, 0, &ids[1]);
    return rig;
}

/* Answers the only packet of the roll call, `contrib`, with `roll`. */
static uint32_t answer(struct endpoint_rig *rig, const struct by_header *contrib, const uint32_t *roll)
{
    struct by_header result = rig_result(rig, contrib, roll, contrib->count);

    return rig_give(rig, &result, roll, contrib->count);
}

static struct by_call_status end_of(struct endpoint_rig *rig, uint32_t id, int error)
{
    struct by_call_status status;

    assert_int_equal(by_endpoint_test(rig->endpoint, id, &status), error);
    return status;
}

/* The last step sent the roll call's only chunk, as chunk `seq`, with this rank's nonce alone. */
static void expect_roll(const struct endpoint_rig *rig, uint32_t seq)
{
    uint32_t roll[RANKS];

    assert_int_equal(rig->sent_count, 1);
    assert_int_equal(rig->sent[0].type, BY_TYPE_CONTRIB);
    assert_int_equal(rig->sent[0].flags & BY_FLAG_START, BY_FLAG_START);
    assert_int_equal(rig->sent[0].tree, rig->endpoint->lanes[0].tree);
    assert_int_equal(rig->sent[0].seq, seq);
    assert_int_equal(rig->sent[0].count, sizeof(roll));
    assert_int_equal(rig->sent[0].optag, by_optag(0, BY_COLLECTIVE_SESSION, 0, sizeof(roll)));
    memcpy(roll, rig->tx[0].payload, sizeof(roll));
    assert_int_equal(roll[0], NONCE);
    assert_int_equal(roll[1] | roll[2], 0);
}

/* The openings of a session whose roll call, one chunk, is at `start` of the first tree. */
static uint32_t optag_of_openings(const uint32_t *roll, uint32_t start)
{
    return by_optag(0, BY_COLLECTIVE_SESSION, 1, start) ^ by_session_salt(roll, RANKS);
}

/* The last step sent the openings of both trees, as these chunks; returns them. */
static void expect_openings(const struct endpoint_rig *rig, const uint32_t *roll, uint32_t first,
                            uint32_t second, struct by_header opening[2])
{
    assert_int_equal(rig->sent_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t t = rig->sent[i].tree != rig->endpoint->lanes[0].tree;

        opening[t] = rig->sent[i];
        assert_int_equal(opening[t].flags, BY_FLAG_START | BY_FLAG_NODATA | BY_FLAG_ACKONLY);
        assert_int_equal(opening[t].optag, optag_of_openings(roll, first - 1));
        assert_int_equal(opening[t].seq, t == 0 ? first : second);
        assert_int_equal(opening[t].count, 0);
    }
}

/* Answers an opening; returns the number of packets that follow. */
static uint32_t open_tree(struct endpoint_rig *rig, const struct by_header *opening)
{
    struct by_header result = rig_result(rig, opening, NULL, 0);

    return rig_give(rig, &result, NULL, 0);
}

/* Sends the endpoint an ERR in answer to `packet`; returns the number of packets that follow. */
static uint32_t complain(struct endpoint_rig *rig, const struct by_header *packet, unsigned reason,
                         uint32_t expected, unsigned flags)
{
    struct by_err err = {.reason = (uint8_t)reason, .seq = packet->seq, .expected_seq = expected};
    struct by_header header = *packet;
    uint8_t payload[BY_ERR_BYTES];

    err.node = 0;
    by_err_encode(&err, payload);
    header.type = BY_TYPE_ERR;
    header.flags = (uint8_t)flags;
    header.psum = by_psum(payload, BY_ERR_BYTES);
    return rig_give(rig, &header, payload, BY_ERR_BYTES);
}

/* Asks the endpoint for chunk `seq` of the tree of `packet`. */
static uint32_t probe(struct endpoint_rig *rig, const struct by_header *packet, uint32_t seq, unsigned flags)
{
    struct by_header header = *packet;

    header.type = BY_TYPE_PROBE;
    header.flags = (uint8_t)flags;
    header.seq = seq;
    header.psum = 0;
    return rig_give(rig, &header, NULL, 0);
}

static void the_roll_call_goes_first_and_alone(void **state)
{
    struct endpoint_rig *rig = start(RANKS);

    (void)state;
    assert_int_equal(rig_step(rig), 1);
    expect_roll(rig, 0);
    assert_int_equal(rig_step(rig), 0);
    rig_stop(rig);
}

static void a_roll_with_our_nonce_opens_all_trees_and_then_the_calls_under_its_salt(void **state)
{
    struct endpoint_rig *rig = start(RANKS);
    const uint32_t roll[RANKS] = {NONCE, 7, 8};
    uint32_t salt = by_session_salt(roll, RANKS), later;
    struct by_header opening[2];
    unsigned first_tree = 0;

    (void)state;
    rig_step(rig);
    assert_int_equal(answer(rig, &rig->sent[0], roll), 2);
    expect_openings(rig, roll, 1, 0, opening);
    assert_int_equal(open_tree(rig, &opening[1]), 0);
    assert_int_equal(by_endpoint_counters(rig->endpoint)->session, 0);
    assert_int_equal(open_tree(rig, &opening[0]), 8 + 1);
    for (unsigned i = 0; i < 8 + 1; i++) {
        int barrier = rig->sent[i].count == 0;
        int first = rig->sent[i].tree == rig->endpoint->lanes[0].tree;

        first_tree += (unsigned)first;
        assert_true(rig->sent[i].seq > (first ? 1 : 0));
        assert_int_equal(rig->sent[i].flags & BY_FLAG_START, BY_FLAG_START);
        assert_int_equal(rig->sent[i].optag,
                         salt ^ (barrier ? by_optag(1, BY_COLLECTIVE_BARRIER, 0, 0)
                                         : by_optag(0, BY_COLLECTIVE_ALLREDUCE, 0, 8 * BYTES)));
    }
    assert_int_equal(first_tree, 4 + 1);
    assert_int_equal(by_endpoint_counters(rig->endpoint)->session, 1);
    post(rig, BY_COLLECTIVE_BARRIER, 0, &later); /* posted later: the same salt, no second roll call */
    rig_step(rig);
    assert_int_equal(rig->sent_count, 1);
    assert_int_equal(rig->sent[0].optag, salt ^ by_optag(2, BY_COLLECTIVE_BARRIER, 0, 0));
    rig_stop(rig);
}

static void only_the_first_two_windows_claim_banks_of_older_sessions(void **state)
{
    struct rig_tree tree = {.window = WINDOW};
    struct by_endpoint_config config = {.nonce = NONCE, .stall_ns = STALL};
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    const uint32_t roll[RANKS] = {NONCE, 7, 8};
    struct by_header sent[24];
    uint32_t id, count, done = 0;

    (void)state;
    rig_open_first(rig, RANKS, &tree, 1, &config);
    post(rig, BY_COLLECTIVE_ALLREDUCE, 24 * BYTES, &id);
    rig_step(rig);
    answer(rig, &rig->sent[0], roll);
    count = open_tree(rig, &rig->sent[0]);
    memcpy(sent, rig->sent, count * sizeof(sent[0]));
    for (; done < count; done++) {
        struct by_header result = rig_result(rig, &sent[done], data, BYTES);

        assert_int_equal(sent[done].seq, done + 2);
        assert_int_equal(sent[done].flags, sent[done].seq < 2 * WINDOW ? BY_FLAG_START : 0);
        rig_give(rig, &result, data, BYTES);
        assert_true(count + rig->sent_count <= 24);
        memcpy(sent + count, rig->sent, rig->sent_count * sizeof(sent[0]));
        count += rig->sent_count;
    }
    assert_int_equal(done, 24);
    end_of(rig, id, 0);
    rig_stop(rig);
}

/* Ranks start at different times. */
static void a_wait_for_the_roll_call_narrows_no_window(void **state)
{
    struct rig_tree tree = {.window = 256};
    struct by_endpoint_config config = {.nonce = NONCE, .stall_ns = UINT64_C(1000000000)};
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    uint32_t id, asked = 0;

    (void)state;
    rig_open_first(rig, RANKS, &tree, 1, &config);
    post(rig, BY_COLLECTIVE_ALLREDUCE, 24 * BYTES, &id);
    rig_step(rig);
    for (int i = 0; i < 20; i++) {
        rig->now_ns += UINT64_C(20000000);
        asked += rig_step(rig);
    }
    assert_true(asked > 3);
    assert_int_equal(rig->endpoint->window, BY_WINDOW_START);
    assert_int_equal(rig->endpoint->window_goal, 256);
    rig_stop(rig);
}

static void rolls_that_differ_anywhere_give_other_tags(void **state)
{
    const uint32_t one[RANKS] = {NONCE, 7, 8}, other[RANKS] = {NONCE, 7, 9}, turned[RANKS] = {NONCE, 8, 7};

    (void)state;
    assert_int_not_equal(by_session_salt(one, RANKS), by_session_salt(other, RANKS));
    assert_int_not_equal(by_session_salt(one, RANKS), by_session_salt(turned, RANKS));
    assert_int_not_equal(by_session_salt(one, RANKS), by_session_salt(one, RANKS - 1));
}

static void a_roll_with_another_nonce_in_our_place_is_called_again_at_later_chunks(void **state)
{
    struct endpoint_rig *rig = start(RANKS);
    const uint32_t old[RANKS] = {NONCE + 1, NONCE, 8}, roll[RANKS] = {NONCE, 7, 8};
    struct by_header opening[2];

    (void)state;
    rig_step(rig);
    assert_int_equal(answer(rig, &rig->sent[0], old), 1);
    expect_roll(rig, LEAP);
    answer(rig, &rig->sent[0], roll);
    expect_openings(rig, roll, LEAP + 1, 0, opening);
    open_tree(rig, &opening[1]);
    assert_int_equal(open_tree(rig, &opening[0]), 8 + 1);
    rig_stop(rig);
}

static void a_nonce_is_compared_in_all_its_bits(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 32; bit++) {
        struct endpoint_rig *rig = start(RANKS);
        const uint32_t old[RANKS] = {NONCE ^ UINT32_C(1) << bit, 7, 8};

        rig_step(rig);
        assert_int_equal(answer(rig, &rig->sent[0], old), 1);
        expect_roll(rig, LEAP);
        rig_stop(rig);
    }
}

/* A node reports the chunk in its bank: that of another rank's roll call, which this rank joins, or
 * that of an older session, which it passes. */
static void a_switch_that_is_at_a_later_chunk_moves_the_roll_call(void **state)
{
    struct endpoint_rig *rig = start(RANKS);

    (void)state;
    rig_step(rig);
    assert_int_equal(complain(rig, &rig->sent[0], BY_ERR_WINDOW, LEAP + 1, BY_FLAG_START), 1);
    expect_roll(rig, LEAP);
    assert_int_equal(complain(rig, &rig->sent[0], BY_ERR_WINDOW, LEAP + 5 * WINDOW, 0), 1);
    expect_roll(rig, 3 * LEAP);
    assert_int_equal(complain(rig, &rig->sent[0], BY_ERR_WINDOW, 2 * LEAP, BY_FLAG_START), 0); /* behind */
    rig_stop(rig);
}

static void a_poisoned_roll_call_moves_whatever_the_reason(void **state)
{
    static const unsigned reasons[] = {BY_ERR_MISMATCH, BY_ERR_UNSUPPORTED, BY_ERR_MEMORY};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct endpoint_rig *rig = start(RANKS);

        rig_step(rig);
        assert_int_equal(complain(rig, &rig->sent[0], reasons[i], 0, BY_FLAG_POISON), 1);
        expect_roll(rig, LEAP);
        rig_stop(rig);
    }
}

static void a_question_about_a_later_session_moves_the_roll_call(void **state)
{
    const uint32_t roll[RANKS] = {NONCE, 7, 8};

    (void)state;
    for (int rolled = 0; rolled < 2; rolled++) {
        struct endpoint_rig *rig = start(RANKS);
        struct by_header contrib, opening[2];

        rig_step(rig);
        contrib = rig->sent[0];
        if (rolled)
            answer(rig, &contrib, roll);
        assert_int_equal(probe(rig, &contrib, LEAP + 1, 0), 0);
        assert_int_equal(probe(rig, &contrib, LEAP + 1, BY_FLAG_START), 1);
        expect_roll(rig, LEAP);
        assert_int_equal(probe(rig, &contrib, LEAP + 1, BY_FLAG_START), 0);
        answer(rig, &rig->sent[0], roll);
        /* what was sent on the other tree was of another roll */
        expect_openings(rig, roll, LEAP + 1, rolled ? LEAP : 0, opening);
        rig_stop(rig);
    }
}

static void an_opening_moves_without_the_roll_call(void **state)
{
    struct endpoint_rig *rig = start(RANKS);
    const uint32_t roll[RANKS] = {NONCE, 7, 8};
    struct by_header opening[2];

    (void)state;
    rig_step(rig);
    answer(rig, &rig->sent[0], roll);
    expect_openings(rig, roll, 1, 0, opening);
    assert_int_equal(complain(rig, &opening[1], BY_ERR_MISMATCH, 0, BY_FLAG_POISON), 1);
    assert_int_equal(rig->sent[0].seq, LEAP);
    opening[1] = rig->sent[0];
    assert_int_equal(open_tree(rig, &opening[1]), 0);
    assert_int_equal(probe(rig, &opening[1], 2 * LEAP, BY_FLAG_START), 1); /* done here, but not elsewhere */
    assert_int_equal(rig->sent[0].seq, 2 * LEAP);
    opening[1] = rig->sent[0];
    assert_int_equal(open_tree(rig, &opening[0]), 0);
    assert_int_equal(open_tree(rig, &opening[1]), 8 + 1);
    for (unsigned i = 0; i < 8 + 1; i++)
        assert_true(rig->sent[i].tree != opening[1].tree || rig->sent[i].seq > 2 * LEAP);
    rig_stop(rig);
}

static void a_run_that_cannot_begin_ends_after_many_attempts(void **state)
{
    struct endpoint_rig *rig = start(RANKS);
    struct by_call_status status;
    unsigned attempts = 1;

    (void)state;
    rig_step(rig);
    while (complain(rig, &rig->sent[0], BY_ERR_MISMATCH, 0, BY_FLAG_POISON) == 1)
        attempts++;
    assert_int_equal(attempts, 65);
    status = end_of(rig, ids[0], BY_ESTATE);
    assert_int_equal(status.session, 1);
    assert_int_equal(status.node, 0); /* the switch */
    end_of(rig, ids[1], BY_EABORTED);
    assert_int_equal(rig_step(rig), 0);
    rig_stop(rig);
}

static void a_run_ends_when_a_later_one_has_begun(void **state)
{
    struct endpoint_rig *rig = start(RANKS);
    const uint32_t roll[RANKS] = {NONCE, 7, 8};
    struct by_header opening[2], contrib;

    (void)state;
    rig_step(rig);
    answer(rig, &rig->sent[0], roll);
    expect_openings(rig, roll, 1, 0, opening);
    open_tree(rig, &opening[1]);
    open_tree(rig, &opening[0]);
    contrib = rig->sent[0];
    probe(rig, &contrib, LEAP, BY_FLAG_START);                           /* it does not follow any more */
    complain(rig, &contrib, BY_ERR_WINDOW, contrib.seq + 2 * WINDOW, 0); /* may be temporary */
    end_of(rig, ids[0], BY_EAGAIN);
    complain(rig, &contrib, BY_ERR_WINDOW, contrib.seq + LEAP, 0);
    assert_int_equal(end_of(rig, ids[0], BY_ESTATE).session, 0);
    end_of(rig, ids[1], BY_EABORTED);
    rig_stop(rig);
}

static void a_complaint_about_another_chunk_changes_nothing(void **state)
{
    struct endpoint_rig *rig = start(RANKS);
    const uint32_t roll[RANKS] = {NONCE, 7, 8};
    struct by_header contrib, other;

    (void)state;
    rig_step(rig);
    contrib = other = rig->sent[0];
    other.seq = 1;
    assert_int_equal(complain(rig, &other, BY_ERR_WINDOW, LEAP, BY_FLAG_START), 0);
    assert_int_equal(complain(rig, &contrib, BY_ERR_NO_ENTRY, 0, 0), 0); /* the table may arrive later */
    assert_int_equal(answer(rig, &contrib, roll), 2);
    assert_int_equal(complain(rig, &contrib, BY_ERR_WINDOW, LEAP, BY_FLAG_START),
                     0); /* late: it was answered */
    end_of(rig, ids[0], BY_EAGAIN);
    rig_stop(rig);
}

static void a_lost_roll_call_is_sent_again(void **state)
{
    struct endpoint_rig *rig = start(RANKS);
    const uint32_t roll[RANKS] = {NONCE, 7, 8};

    (void)state;
    rig_step(rig);
    rig->now_ns = by_endpoint_deadline(rig->endpoint);
    assert_int_equal(rig_step(rig), 1);
    assert_int_equal(rig->sent[0].type, BY_TYPE_CONTRIB);
    assert_int_equal(rig->sent[0].flags & BY_FLAG_RETX, BY_FLAG_RETX);
    assert_int_equal(answer(rig, &rig->sent[0], roll) > 0, 1);
    rig_stop(rig);
}

static void an_unanswered_roll_call_ends_in_time_and_says_what_it_was(void **state)
{
    struct endpoint_rig *rig = start(RANKS);
    struct by_call_status status;
    uint64_t began = rig->now_ns;

    (void)state;
    rig_step(rig);
    while (by_endpoint_test(rig->endpoint, ids[0], &status) == BY_EAGAIN) {
        rig->now_ns = by_endpoint_deadline(rig->endpoint);
        rig_step(rig);
    }
    assert_int_equal(status.error, BY_ETIMEDOUT);
    assert_int_equal(status.session, 1);
    assert_in_range(rig->now_ns, began + STALL, began + STALL + (UINT64_C(1) << BY_WHEEL_TICK));
    rig_stop(rig);
}

static void a_roll_of_many_ranks_takes_several_chunks(void **state)
{
    enum { MANY = 40 }; /* 160 bytes in chunks of 64 */
    struct endpoint_rig *rig = start(MANY);
    uint32_t roll[MANY];
    struct by_header sent[3];

    (void)state;
    for (uint32_t r = 0; r < MANY; r++)
        roll[r] = r == 0 ? NONCE : r;
    assert_int_equal(rig_step(rig), 3);
    memcpy(sent, rig->sent, sizeof(sent));
    for (uint32_t c = 0; c < 3; c++) {
        struct by_header result = rig_result(rig, &sent[c], roll + c * 16, sent[c].count);
        uint32_t count = rig_give(rig, &result, roll + c * 16, sent[c].count);

        assert_int_equal(sent[c].seq, c);
        assert_int_equal(count, c < 2 ? 0 : 2);
    }
    for (uint32_t c = 0; c < 2; c++)
        assert_int_equal(rig->sent[c].optag,
                         by_optag(0, BY_COLLECTIVE_SESSION, 1, 0) ^ by_session_salt(roll, MANY));
    rig_stop(rig);
}

static void a_rank_alone_needs_no_session(void **state)
{
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    struct rig_tree tree = {.window = 4};
    uint32_t id;

    (void)state;
    rig_open_first(rig, 1, &tree, 1, NULL);
    post(rig, BY_COLLECTIVE_ALLREDUCE, BYTES, &id);
    end_of(rig, id, 0);
    assert_int_equal(rig_step(rig), 0);
    rig_stop(rig);
}

static int fill(void **state)
{
    (void)state;
    memset(data, 0x11, sizeof(data));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_roll_call_goes_first_and_alone, fill),
        cmocka_unit_test_setup(a_roll_with_our_nonce_opens_all_trees_and_then_the_calls_under_its_salt, fill),
        cmocka_unit_test_setup(only_the_first_two_windows_claim_banks_of_older_sessions, fill),
        cmocka_unit_test_setup(a_wait_for_the_roll_call_narrows_no_window, fill),
        cmocka_unit_test_setup(rolls_that_differ_anywhere_give_other_tags, fill),
        cmocka_unit_test_setup(a_roll_with_another_nonce_in_our_place_is_called_again_at_later_chunks, fill),
        cmocka_unit_test_setup(a_nonce_is_compared_in_all_its_bits, fill),
        cmocka_unit_test_setup(a_switch_that_is_at_a_later_chunk_moves_the_roll_call, fill),
        cmocka_unit_test_setup(a_poisoned_roll_call_moves_whatever_the_reason, fill),
        cmocka_unit_test_setup(a_question_about_a_later_session_moves_the_roll_call, fill),
        cmocka_unit_test_setup(an_opening_moves_without_the_roll_call, fill),
        cmocka_unit_test_setup(a_run_that_cannot_begin_ends_after_many_attempts, fill),
        cmocka_unit_test_setup(a_run_ends_when_a_later_one_has_begun, fill),
        cmocka_unit_test_setup(a_complaint_about_another_chunk_changes_nothing, fill),
        cmocka_unit_test_setup(a_lost_roll_call_is_sent_again, fill),
        cmocka_unit_test_setup(an_unanswered_roll_call_ends_in_time_and_says_what_it_was, fill),
        cmocka_unit_test_setup(a_roll_of_many_ranks_takes_several_chunks, fill),
        cmocka_unit_test_setup(a_rank_alone_needs_no_session, fill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

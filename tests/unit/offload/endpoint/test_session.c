/* The roll call before a run's first chunk: what the endpoint sends, which answers it accepts, and
 * how a run on used tables ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/endpoint/state.h"
#include "tests/unit/offload/endpoint/rig.h"

#define RANKS 3
#define BYTES 64
#define NONCE 0x5eed1234u
#define STALL UINT64_C(1000000000)

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
    struct rig_tree trees[2] = {{.window = 8}, {.window = 8}};
    struct by_endpoint_config config = {.nonce = NONCE, .stall_ns = STALL};
    struct endpoint_rig *rig = malloc(sizeof(*rig));

    rig_open_first(rig, ranks, trees, 2, &config);
    post(rig, BY_COLLECTIVE_ALLREDUCE, 8 * BYTES, &ids[0]);
    post(rig, BY_COLLECTIVE_BARRIER, 0, &ids[1]);
    return rig;
}

static void stop(struct endpoint_rig *rig)
{
    rig_close(rig);
    free(rig);
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

/* The last step sent the final packets: ERR for chunk `seq` of the roll call and for the chunk
 * after it. */
static void expect_parting(const struct endpoint_rig *rig, uint32_t seq)
{
    for (uint32_t i = 0; i < 2; i++) {
        const struct by_header *header = &rig->sent[i];
        struct by_err err;

        assert_int_equal(header->type, BY_TYPE_ERR);
        assert_int_equal(header->tree, rig->endpoint->lanes[0].tree);
        assert_int_equal(header->seq, i == 0 ? seq : 1);
        assert_null(rig->tx[i].payload);
        assert_int_equal(rig->tx[i].payload_bytes, BY_ERR_BYTES);
        assert_int_equal(header->psum, by_psum(rig->tx[i].small, BY_ERR_BYTES));
        assert_int_equal(by_err_decode(rig->tx[i].small, BY_ERR_BYTES, &err), 0);
        assert_int_equal(err.reason, BY_ERR_USED);
        assert_int_equal(err.node, 0);
        assert_int_equal(err.seq, header->seq);
    }
}

static void expect_refusal(struct endpoint_rig *rig)
{
    struct by_call call = {.collective = BY_COLLECTIVE_BARRIER};
    struct by_call_status status = end_of(rig, ids[0], BY_ESTATE);
    uint32_t id;

    assert_int_equal(status.session, 1);
    assert_int_equal(status.node, 0); /* the switch */
    end_of(rig, ids[1], BY_EABORTED);
    assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, NULL), BY_ESTATE);
    rig->now_ns += 10 * STALL;
    assert_int_equal(rig_step(rig), 0);
    assert_true(by_endpoint_deadline(rig->endpoint) == UINT64_MAX);
    for (unsigned i = 0; i < sizeof(data); i++)
        assert_int_equal(data[i], 0x11);
}

static void the_roll_call_goes_first_and_alone(void **state)
{
    struct endpoint_rig *rig = start(RANKS);
    uint32_t roll[RANKS];

    (void)state;
    assert_int_equal(rig_step(rig), 1);
    assert_int_equal(rig->sent[0].type, BY_TYPE_CONTRIB);
    assert_int_equal(rig->sent[0].tree, rig->endpoint->lanes[0].tree);
    assert_int_equal(rig->sent[0].seq, 0);
    assert_int_equal(rig->sent[0].count, sizeof(roll));
    assert_int_equal(rig->sent[0].optag, by_optag(0, BY_COLLECTIVE_SESSION, 0, sizeof(roll)));
    memcpy(roll, rig->tx[0].payload, sizeof(roll));
    assert_int_equal(roll[0], NONCE);
    assert_int_equal(roll[1] | roll[2], 0);
    assert_int_equal(rig_step(rig), 0);
    stop(rig);
}

static void a_roll_with_our_nonce_opens_all_trees_under_its_salt(void **state)
{
    struct endpoint_rig *rig = start(RANKS);
    const uint32_t roll[RANKS] = {NONCE, 7, 8};
    uint32_t salt = by_session_salt(roll, RANKS), later;
    unsigned first_tree = 0;

    (void)state;
    rig_step(rig);
    assert_int_equal(answer(rig, &rig->sent[0], roll), 8 + 1);
    for (unsigned i = 0; i < 8 + 1; i++) {
        int barrier = rig->sent[i].count == 0;

        first_tree += rig->sent[i].tree == rig->endpoint->lanes[0].tree;
        assert_true(rig->sent[i].tree != rig->endpoint->lanes[0].tree || rig->sent[i].seq > 0);
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
    stop(rig);
}

static void rolls_that_differ_anywhere_give_other_tags(void **state)
{
    const uint32_t one[RANKS] = {NONCE, 7, 8}, other[RANKS] = {NONCE, 7, 9}, turned[RANKS] = {NONCE, 8, 7};

    (void)state;
    assert_int_not_equal(by_session_salt(one, RANKS), by_session_salt(other, RANKS));
    assert_int_not_equal(by_session_salt(one, RANKS), by_session_salt(turned, RANKS));
    assert_int_not_equal(by_session_salt(one, RANKS), by_session_salt(one, RANKS - 1));
}

static void a_roll_with_another_nonce_in_our_place_ends_the_run(void **state)
{
    struct endpoint_rig *rig = start(RANKS);
    const uint32_t old[RANKS] = {NONCE + 1, NONCE, 8};

    (void)state;
    rig_step(rig);
    assert_int_equal(answer(rig, &rig->sent[0], old), 2);
    expect_parting(rig, 0);
    expect_refusal(rig);
    stop(rig);
}

static void a_nonce_is_compared_in_all_its_bits(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 32; bit++) {
        struct endpoint_rig *rig = start(RANKS);
        const uint32_t old[RANKS] = {NONCE ^ UINT32_C(1) << bit, 7, 8};

        rig_step(rig);
        assert_int_equal(answer(rig, &rig->sent[0], old), 2);
        assert_int_equal(by_endpoint_counters(rig->endpoint)->session, 0);
        stop(rig);
    }
}

static uint32_t complain(struct endpoint_rig *rig, unsigned reason, uint32_t seq)
{
    struct by_err err = {.reason = (uint8_t)reason, .seq = seq, .expected_seq = 64};
    struct by_header header = rig->sent[0];
    uint8_t payload[BY_ERR_BYTES];

    err.node = 0;
    by_err_encode(&err, payload);
    header.type = BY_TYPE_ERR;
    header.flags = 0;
    header.seq = seq;
    header.psum = by_psum(payload, BY_ERR_BYTES);
    return rig_give(rig, &header, payload, BY_ERR_BYTES);
}

static void a_switch_that_is_at_a_later_chunk_ends_the_run(void **state)
{
    struct endpoint_rig *rig = start(RANKS);

    (void)state;
    rig_step(rig);
    assert_int_equal(complain(rig, BY_ERR_WINDOW, 0), 2);
    expect_parting(rig, 0);
    expect_refusal(rig);
    stop(rig);
}

static void a_rank_that_hears_of_another_ones_refusal_ends_in_silence(void **state)
{
    for (int agreed = 0; agreed < 2; agreed++) {
        struct endpoint_rig *rig = start(RANKS);
        const uint32_t roll[RANKS] = {NONCE, 7, 8};

        (void)state;
        rig_step(rig);
        if (agreed)
            answer(rig, &rig->sent[0], roll);
        assert_int_equal(complain(rig, BY_ERR_USED, (uint32_t)agreed), 0);
        expect_refusal(rig);
        stop(rig);
    }
}

static void a_complaint_about_another_chunk_does_not(void **state)
{
    struct endpoint_rig *rig = start(RANKS);
    const uint32_t roll[RANKS] = {NONCE, 7, 8};
    struct by_header contrib;

    (void)state;
    rig_step(rig);
    contrib = rig->sent[0];
    complain(rig, BY_ERR_WINDOW, 1);
    end_of(rig, ids[0], BY_EAGAIN);
    rig->sent[0] = contrib;
    complain(rig, BY_ERR_NO_ENTRY, 0); /* the table may arrive later */
    end_of(rig, ids[0], BY_EAGAIN);
    assert_int_equal(answer(rig, &contrib, roll), 8 + 1);
    rig->sent[0] = contrib;
    complain(rig, BY_ERR_WINDOW, 0); /* late: the chunk was answered before */
    end_of(rig, ids[0], BY_EAGAIN);
    stop(rig);
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
    stop(rig);
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
    stop(rig);
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
        assert_int_equal(count, c < 2 ? 0 : 8 + 1);
    }
    assert_int_equal(rig->endpoint->session_salt, by_session_salt(roll, MANY));
    stop(rig);
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
    stop(rig);
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
        cmocka_unit_test_setup(a_roll_with_our_nonce_opens_all_trees_under_its_salt, fill),
        cmocka_unit_test_setup(rolls_that_differ_anywhere_give_other_tags, fill),
        cmocka_unit_test_setup(a_roll_with_another_nonce_in_our_place_ends_the_run, fill),
        cmocka_unit_test_setup(a_nonce_is_compared_in_all_its_bits, fill),
        cmocka_unit_test_setup(a_switch_that_is_at_a_later_chunk_ends_the_run, fill),
        cmocka_unit_test_setup(a_rank_that_hears_of_another_ones_refusal_ends_in_silence, fill),
        cmocka_unit_test_setup(a_complaint_about_another_chunk_does_not, fill),
        cmocka_unit_test_setup(a_lost_roll_call_is_sent_again, fill),
        cmocka_unit_test_setup(an_unanswered_roll_call_ends_in_time_and_says_what_it_was, fill),
        cmocka_unit_test_setup(a_roll_of_many_ranks_takes_several_chunks, fill),
        cmocka_unit_test_setup(a_rank_alone_needs_no_session, fill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The search for the call that another rank's optag stands for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "offload/endpoint/state.h"
#include "tests/unit/offload/endpoint/rig.h"

#define RANKS 5
#define SALT  0x12345678u
#define COUNT 48

static uint8_t data[4096];

struct guess_row {
    uint32_t ahead; /* calls ahead of this rank's */
    unsigned collective;
    uint16_t root;
    uint64_t count;
    uint16_t chunk_count; /* elements on the wire */
    int known;
};

/* A rank whose third call is an allreduce of COUNT f32. Its second call, which is not complete, is
 * a broadcast of 7. */
static struct endpoint_rig *start(void)
{
    struct rig_tree tree = {.window = 16};
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    struct by_call call = {
        .op = BY_OP_SUM, .dtype = BY_DTYPE_F32, .mode = BY_MODE_FAST, .send = data, .recv = data};
    uint32_t id;

    rig_open(rig, RANKS, &tree, 1, NULL);
    rig->endpoint->session_salt = SALT;
    for (unsigned c = 0; c < 3; c++) {
        call.collective = c == 2   ? BY_COLLECTIVE_ALLREDUCE
                          : c == 1 ? BY_COLLECTIVE_BROADCAST
                                   : BY_COLLECTIVE_BARRIER;
        call.count = c == 2 ? COUNT : c == 1 ? 7 : 0;
        assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, NULL), 0);
    }
    assert_int_equal(rig_step(rig) > 0, 1);
    return rig;
}

static void the_other_call_is_found_by_number_collective_root_and_count(void **state)
{
    static const struct guess_row rows[] = {
        {0, BY_COLLECTIVE_ALLREDUCE, 0, COUNT, 16, 1},
        {0, BY_COLLECTIVE_BARRIER, 0, 0, 0, 1},
        {0, BY_COLLECTIVE_BROADCAST, 4, COUNT, 64, 1},
        {0, BY_COLLECTIVE_REDUCE, 3, COUNT, 16, 1},
        {0, BY_COLLECTIVE_ALLGATHER, 0, COUNT, 64, 1},
        {1, BY_COLLECTIVE_ALLREDUCE, 0, COUNT, 16, 1},
        {8, BY_COLLECTIVE_REDUCE_SCATTER, 0, COUNT, 16, 1},
        {(uint32_t)-8, BY_COLLECTIVE_ALLREDUCE, 0, COUNT, 16, 1},
        {0, BY_COLLECTIVE_ALLREDUCE, 0, 13, 13, 1},            /* a call of one chunk */
        {0, BY_COLLECTIVE_BROADCAST, 0, 11, 44, 1},            /* a call of one chunk, copied as bytes */
        {0, BY_COLLECTIVE_BROADCAST, 1, 7, 28, 1},             /* the count of an earlier call */
        {0, BY_COLLECTIVE_ALLREDUCE, 0, COUNT * RANKS, 16, 1}, /* this rank's count as a shard */
        {0, BY_COLLECTIVE_ALLREDUCE, 0, 100001, 16, 0},        /* several chunks of an unknown count */
        {9, BY_COLLECTIVE_ALLREDUCE, 0, COUNT, 16, 0},         /* too far ahead */
    };

    (void)state;
    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct endpoint_rig *rig = start();
        const struct by_call_state *own = by_call_at(rig->endpoint, 2);
        struct by_err_side side = {.op = BY_OP_SUM, .dtype = BY_DTYPE_F32, .mode = BY_MODE_FAST};
        struct by_call_said said = {0};

        side.count = rows[r].chunk_count;
        side.optag = SALT ^ by_optag(2 + rows[r].ahead, rows[r].collective, rows[r].root, rows[r].count);
        by_guess(rig->endpoint, own, &side, &said);
        if (said.known != rows[r].known)
            fail_msg("row %u: known %d", r, said.known);
        assert_int_equal(said.own, r == 0);
        if (said.known) {
            assert_int_equal(said.number, 2 + rows[r].ahead);
            assert_int_equal(said.collective, rows[r].collective);
            assert_int_equal(said.root, rows[r].root);
            assert_int_equal(said.count, rows[r].count);
        }
        rig_close(rig);
        free(rig);
    }
}

/* An optag has a hash for unequal shards, and for a part of a larger call. */
static void shards_are_known_if_this_rank_has_such_a_call_itself(void **state)
{
    static const uint64_t offsets[RANKS + 1] = {0, 3, 4, 9, 9, 20};

    (void)state;
    for (int unequal = 0; unequal < 2; unequal++)
        for (int other = 0; other < 2; other++) {
            struct endpoint_rig *rig = start();
            struct by_call_state *part = by_call_at(rig->endpoint, 1);
            struct by_err_side side = {.op = BY_OP_SUM, .dtype = BY_DTYPE_F32, .mode = BY_MODE_FAST};
            struct by_call_said said = {0};

            part->call.offsets = unequal ? offsets : NULL;
            part->call.whole = unequal ? 0 : 77;
            part->call.count = 20;
            part->told_count = UINT64_C(0xfedcba9876543210);
            side.optag =
                SALT ^ by_optag(2, BY_COLLECTIVE_ALLGATHER, 0, other ? (uint64_t)COUNT : part->told_count);
            by_guess(rig->endpoint, by_call_at(rig->endpoint, 2), &side, &said);
            assert_int_equal(said.known, 1);
            assert_int_equal(said.unequal, unequal && !other);
            assert_true(said.count == (other ? COUNT : 20));
            part->call.offsets = NULL;
            rig_close(rig);
            free(rig);
        }
}

static void the_first_1024_ranks_are_tried_as_roots(void **state)
{
    (void)state;
    for (uint16_t root = 1023; root < 1025; root++) {
        struct endpoint_rig *rig = start();
        struct by_err_side side = {.op = BY_OP_SUM, .dtype = BY_DTYPE_F32, .mode = BY_MODE_FAST};
        struct by_call_said said = {0};
        uint16_t ranks = rig->endpoint->rank_count;

        rig->endpoint->rank_count = 1500;
        side.optag = SALT ^ by_optag(2, BY_COLLECTIVE_BROADCAST, root, COUNT);
        by_guess(rig->endpoint, by_call_at(rig->endpoint, 2), &side, &said);
        assert_int_equal(said.known, root < 1024);
        if (said.known)
            assert_int_equal(said.root, root);
        rig->endpoint->rank_count = ranks;
        rig_close(rig);
        free(rig);
    }
}

/* A call's word has no mode of its own, so that its mode need not be this rank's. */
static void the_word_of_the_own_call_is_the_own_call(void **state)
{
    struct endpoint_rig *rig = start();
    const struct by_call_state *own = by_call_at(rig->endpoint, 2);

    (void)state;
    for (uint16_t count = 0; count < 2; count++) {
        struct by_err_side side = {
            .op = own->op, .dtype = own->dtype, .mode = BY_MODE_DET, .count = count, .optag = own->optag};
        struct by_call_said said = {0};

        by_guess(rig->endpoint, own, &side, &said);
        assert_int_equal(said.known, 1);
        assert_int_equal(said.own, count == 0);
    }
    rig_close(rig);
    free(rig);
}

static void a_mismatch_ends_the_call_with_both_sides(void **state)
{
    struct endpoint_rig *rig = start();
    struct by_header header = rig->sent[rig->sent_count - 1];
    struct by_err err = {.node = 3, .reason = BY_ERR_MISMATCH, .agree = 5};
    struct by_call_status status;
    uint8_t payload[BY_ERR_BYTES];

    (void)state;
    assert_int_equal(header.optag, SALT ^ by_optag(2, BY_COLLECTIVE_ALLREDUCE, 0, COUNT));
    err.seq = header.seq;
    err.first = (struct by_err_side){header.op, header.dtype, header.mode, 0, header.count, header.optag};
    err.other.optag = SALT ^ by_optag(2, BY_COLLECTIVE_BARRIER, 0, 0);
    by_err_encode(&err, payload);
    header.type = BY_TYPE_ERR;
    header.flags = BY_FLAG_POISON;
    header.psum = by_psum(payload, BY_ERR_BYTES);
    rig_give(rig, &header, payload, BY_ERR_BYTES);
    assert_int_equal(by_endpoint_test(rig->endpoint, 2, &status), BY_EMISMATCH);
    assert_int_equal(status.first.own, 1);
    assert_int_equal(status.first.collective, BY_COLLECTIVE_ALLREDUCE);
    assert_int_equal(status.other.own, 0);
    assert_int_equal(status.other.collective, BY_COLLECTIVE_BARRIER);
    assert_true(status.err.agree == 5);
    rig_close(rig);
    free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_other_call_is_found_by_number_collective_root_and_count),
        cmocka_unit_test(shards_are_known_if_this_rank_has_such_a_call_itself),
        cmocka_unit_test(the_first_1024_ranks_are_tried_as_roots),
        cmocka_unit_test(the_word_of_the_own_call_is_the_own_call),
        cmocka_unit_test(a_mismatch_ends_the_call_with_both_sides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

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
        cmocka_unit_test(a_mismatch_ends_the_call_with_both_sides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Questions and arguments that programs rarely have: a call that is late, one that is unknown, one
 * that the table's nodes cannot compute; and leaves that no checked image has. */
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
#define MS    UINT64_C(1000000)

static const struct rig_tree tree = {.window = 4};
static struct endpoint_rig rig;
static float send[64], recv[64];

static struct by_call sum_of(uint64_t count)
{
    return (struct by_call){.collective = BY_COLLECTIVE_ALLREDUCE,
                            .op = BY_OP_SUM,
                            .dtype = BY_DTYPE_F32,
                            .mode = BY_MODE_FAST,
                            .count = count,
                            .send = send,
                            .recv = recv};
}

static void a_late_call_is_reported_before_it_ends(void **state)
{
    struct by_call call = sum_of(4);
    struct by_call_status status = {0};
    struct by_header contrib;
    uint32_t id;

    (void)state;
    rig_open(&rig, RANKS, &tree, 1, NULL);
    assert_int_equal(by_endpoint_suspects(rig.endpoint, rig.now_ns + 1000 * MS, 1, &status), 0); /* no call */
    assert_int_equal(by_endpoint_post(rig.endpoint, &call, &id, NULL), 0);
    rig_step(&rig);
    contrib = rig.sent[0];
    assert_int_equal(by_endpoint_suspects(rig.endpoint, rig.now_ns + 9 * MS, 10 * MS, &status), 0);
    assert_int_equal(by_endpoint_suspects(rig.endpoint, rig.now_ns - 1, 10 * MS, &status), 0);
    assert_int_equal(by_endpoint_suspects(rig.endpoint, rig.now_ns + 10 * MS, 10 * MS, &status), 1);
    assert_int_equal(status.node, 0); /* the switch, which is silent */
    assert_int_equal(status.wait_state, 0);
    assert_int_equal(status.missing_node, BY_NODE_NONE);
    rig_answer(&rig, &contrib, 16, 0);
    assert_int_equal(by_endpoint_test(rig.endpoint, id, NULL), 0);
    assert_int_equal(by_endpoint_suspects(rig.endpoint, rig.now_ns + 1000 * MS, 1, &status), 0);
    assert_int_equal(by_endpoint_post(rig.endpoint, &call, &id, NULL), 0);
    rig_step(&rig);
    by_endpoint_abort(rig.endpoint);
    assert_int_equal(by_endpoint_suspects(rig.endpoint, rig.now_ns + 1000 * MS, 1, &status), 0);
    rig_close(&rig);
}

/* A WAIT reports the missing child: one that the table lists, none, or one that it does not list,
 * which is a rank at the switch itself. */
static void a_wait_names_the_child_that_the_table_has(void **state)
{
    static const struct {
        uint64_t missing;
        uint8_t wait;
        uint16_t node;
    } rows[] = {{2, BY_WAIT_CHILDREN, 2},
                {0, BY_WAIT_CHILDREN, BY_NODE_NONE},
                {UINT64_C(1) << 40, BY_WAIT_CHILDREN, 0},
                {0, BY_WAIT_PARENT, BY_NODE_NONE}};
    struct by_call call = sum_of(4);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_wait wait = {.state = rows[i].wait, .missing = rows[i].missing};
        struct by_call_status status = {0};
        uint8_t payload[BY_WAIT_BYTES];
        struct by_header header;
        uint32_t id;

        rig_open(&rig, RANKS, &tree, 1, NULL);
        assert_int_equal(by_endpoint_post(rig.endpoint, &call, &id, NULL), 0);
        rig_step(&rig);
        by_wait_encode(&wait, payload);
        header = rig.sent[0];
        header.type = BY_TYPE_WAIT;
        header.flags = 0;
        header.psum = by_psum(payload, BY_WAIT_BYTES);
        rig_give(&rig, &header, payload, BY_WAIT_BYTES);
        assert_int_equal(by_endpoint_counters(rig.endpoint)->wait, 1);
        assert_int_equal(by_endpoint_suspects(rig.endpoint, rig.now_ns + 10 * MS, 10 * MS, &status), 1);
        assert_int_equal(status.node, 0);
        assert_int_equal(status.wait_state, rows[i].wait);
        assert_int_equal(status.missing_node, rows[i].node);
        rig_close(&rig);
    }
}

static void a_call_that_is_not_outstanding_is_unknown(void **state)
{
    struct by_call call = sum_of(4);
    struct by_call_status status = {0};
    struct by_header contrib;
    uint32_t id;

    (void)state;
    rig_open(&rig, RANKS, &tree, 1, NULL);
    assert_int_equal(by_endpoint_test(rig.endpoint, 0, NULL), BY_ENOENT);
    assert_int_equal(by_endpoint_post(rig.endpoint, &call, &id, NULL), 0);
    assert_int_equal(by_endpoint_test(rig.endpoint, id + BY_CALLS_MAX, &status), BY_ENOENT);
    assert_int_equal(status.error, BY_ENOENT);
    assert_int_equal(status.node, BY_NODE_NONE);
    assert_int_equal(by_endpoint_test(rig.endpoint, id, NULL), BY_EAGAIN);
    rig_step(&rig);
    contrib = rig.sent[0];
    rig_answer(&rig, &contrib, 16, 0);
    assert_int_equal(by_endpoint_test(rig.endpoint, id, NULL), 0);
    assert_int_equal(by_endpoint_test(rig.endpoint, id, &status), BY_ENOENT); /* collected */
    rig_close(&rig);
}

static void a_caller_without_a_status_gets_the_error_alone(void **state)
{
    struct by_call call = sum_of(4);
    uint32_t id;

    (void)state;
    rig_open(&rig, RANKS, &tree, 1, NULL);
    call.mode = BY_MODE_COUNT;
    assert_int_equal(by_endpoint_post(rig.endpoint, &call, &id, NULL), BY_EINVAL);
    assert_int_equal(by_endpoint_serves(rig.endpoint, 0, 0), 0);
    assert_int_equal(by_endpoint_serves(rig.endpoint, BY_COLLECTIVE_COUNT, 0), 0);
    assert_int_equal(by_endpoint_serves(rig.endpoint, BY_COLLECTIVE_BROADCAST, RANKS - 1), 1);
    assert_int_equal(by_endpoint_serves(rig.endpoint, BY_COLLECTIVE_BROADCAST, RANKS), 0);
    rig_close(&rig);
}

/* The slot of the second half of a sum in mode EXACT is in use. */
static void two_slots_are_needed_for_the_two_parts_of_an_exact_sum(void **state)
{
    struct by_call call = sum_of(4), exact = sum_of(4);
    static uint64_t scratch[64];
    uint32_t id;

    (void)state;
    rig_open(&rig, RANKS, &tree, 1, NULL);
    exact.mode = BY_MODE_EXACT;
    exact.scratch = scratch;
    assert_in_range(by_endpoint_scratch(rig.endpoint, &exact), 1, sizeof(scratch));
    for (unsigned i = 0; i < BY_CALLS_MAX - 1; i++)
        assert_int_equal(by_endpoint_post(rig.endpoint, &call, &id, NULL), 0);
    assert_int_equal(by_endpoint_post(rig.endpoint, &exact, &id, NULL), BY_EAGAIN);
    assert_int_equal(by_endpoint_post(rig.endpoint, &call, &id, NULL), 0);
    assert_int_equal(by_endpoint_post(rig.endpoint, &call, &id, NULL), BY_EAGAIN);
    rig_close(&rig);
}

static void ranks_that_divide_data_differently_have_different_tags(void **state)
{
    static const uint64_t even[RANKS + 1] = {0, 2, 4, 6}, uneven[RANKS + 1] = {0, 1, 4, 6};
    const struct {
        const uint64_t *offsets;
        uint64_t whole, count;
    } calls[] = {{NULL, 0, 2}, {even, 0, 6}, {uneven, 0, 6}, {NULL, 1, 2}, {NULL, 1, 3},
                 {NULL, 5, 2}, {NULL, 6, 2}, {even, 1, 6},   {even, 5, 6}};
    uint32_t tags[sizeof(calls) / sizeof(calls[0])];

    (void)state;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        struct by_call call = sum_of(calls[i].count);
        uint32_t id;

        call.collective = BY_COLLECTIVE_ALLGATHER;
        call.offsets = calls[i].offsets;
        call.whole = calls[i].whole;
        rig_open(&rig, RANKS, &tree, 1, NULL);
        assert_int_equal(by_endpoint_serves_call(rig.endpoint, &call), 1);
        assert_int_equal(by_endpoint_post(rig.endpoint, &call, &id, NULL), 0);
        rig_step(&rig);
        tags[i] = rig.sent[0].optag;
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(tags[j], tags[i]);
        rig_close(&rig);
    }
}

static void a_job_of_one_rank_copies_where_there_is_a_buffer(void **state)
{
    struct by_call call = sum_of(4);
    uint32_t id;

    (void)state;
    rig_open(&rig, 1, &tree, 1, NULL);
    assert_int_equal(by_endpoint_can(rig.endpoint, &call), 1);
    assert_int_equal(by_endpoint_chunks(rig.endpoint, &call, 0), 0);
    send[3] = 5;
    recv[3] = 0;
    assert_int_equal(by_endpoint_post(rig.endpoint, &call, &id, NULL), 0);
    assert_int_equal(by_endpoint_test(rig.endpoint, id, NULL), 0);
    assert_true(recv[3] == 5);
    call.collective = BY_COLLECTIVE_BROADCAST; /* the root needs no copy */
    call.recv = NULL;
    assert_int_equal(by_endpoint_post(rig.endpoint, &call, &id, NULL), 0);
    assert_int_equal(by_endpoint_test(rig.endpoint, id, NULL), 0);
    call = sum_of(4); /* in place */
    call.send = recv;
    assert_int_equal(by_endpoint_post(rig.endpoint, &call, &id, NULL), 0);
    assert_int_equal(by_endpoint_test(rig.endpoint, id, NULL), 0);
    call = sum_of(0);
    call.send = call.recv = NULL;
    assert_int_equal(by_endpoint_post(rig.endpoint, &call, &id, NULL), 0);
    assert_int_equal(by_endpoint_test(rig.endpoint, id, NULL), 0);
    rig_close(&rig);
}

static void chunks_are_counted_for_trees_that_take_part(void **state)
{
    struct by_call call = sum_of(64); /* 256 bytes: 4 chunks of 64 */

    (void)state;
    rig_open(&rig, RANKS, &tree, 1, NULL);
    assert_int_equal(by_endpoint_chunks(rig.endpoint, &call, 0), 4);
    assert_int_equal(by_endpoint_chunks(rig.endpoint, &call, 1), 0);
    call.mode = BY_MODE_EXACT; /* as integers of twice the size */
    assert_int_equal(by_endpoint_chunks(rig.endpoint, &call, 0), 8);
    call.collective = BY_COLLECTIVE_BARRIER;
    assert_int_equal(by_endpoint_chunks(rig.endpoint, &call, 0), 0); /* a word without data */
    rig_close(&rig);
}

static void a_tree_of_one_rank_carries_its_shard_alone(void **state)
{
    static const struct rig_tree owned[RANKS] = {{.owner = 1}, {.owner = 2}, {.owner = 3}};
    struct by_call call = sum_of(32); /* a shard of 128 bytes: 2 chunks */

    (void)state;
    call.collective = BY_COLLECTIVE_ALLGATHER;
    rig_open(&rig, RANKS, owned, RANKS, NULL);
    for (uint32_t t = 0; t < RANKS; t++)
        assert_int_equal(by_endpoint_chunks(rig.endpoint, &call, t), 2);
    rig_close(&rig);
}

/* What the nodes of the tree can do is narrowed in the table; each lacks something else. */
static void what_the_table_denies_is_refused_before_anything_is_sent(void **state)
{
    static const struct {
        uint16_t ops, dtypes;
        uint8_t modes, op, dtype, mode;
        int can;
    } rows[] = {
        {0xfe, 0x7fe, 0x0e, BY_OP_SUM, BY_DTYPE_F32, BY_MODE_DET, 1},
        {0xfe, 0x7fe, 0x02, BY_OP_SUM, BY_DTYPE_F32, BY_MODE_DET, 0},
        {0xfe, 0x7fe, 0x02, BY_OP_SUM, BY_DTYPE_I32, BY_MODE_DET, 1}, /* integers have no order */
        {(uint16_t) ~(1u << BY_OP_SUM), 0x7fe, 0x0e, BY_OP_SUM, BY_DTYPE_F32, BY_MODE_FAST, 0},
        {0xfe, (uint16_t) ~(1u << BY_DTYPE_F32), 0x0e, BY_OP_SUM, BY_DTYPE_F32, BY_MODE_FAST, 0},
        {(uint16_t) ~(1u << BY_OP_MAX), 0x7fe, 0x0e, BY_OP_SUM, BY_DTYPE_F32, BY_MODE_EXACT, 0},
        {0xfe, (uint16_t) ~(1u << BY_DTYPE_U32), 0x0e, BY_OP_SUM, BY_DTYPE_F32, BY_MODE_EXACT, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_endpoint_config config = {.job = 1, .isa = by_isa_best()};
        struct by_call call = sum_of(4);
        struct by_endpoint *endpoint;
        struct by_image_leaf leaf;
        const char *field = NULL;
        size_t bytes;
        void *memory;

        rig_open(&rig, RANKS, &tree, 1, NULL);
        by_image_leaf(rig.image, 0, &leaf);
        leaf.ops = rows[i].ops;
        leaf.dtypes = rows[i].dtypes;
        leaf.modes = rows[i].modes;
        by_image_put_leaf(rig.image, 0, &leaf);
        config.image = rig.image;
        bytes = by_endpoint_size(&config);
        memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
        assert_int_equal(by_endpoint_init(&endpoint, memory, bytes, &config), 0);
        call.op = rows[i].op;
        call.dtype = rows[i].dtype;
        call.mode = rows[i].mode;
        assert_int_equal(by_endpoint_can(endpoint, &call), rows[i].can);
        assert_int_equal(by_endpoint_refusal(endpoint, &call, &field), rows[i].can ? 0 : BY_EUNSUPPORTED);
        if (!rows[i].can)
            assert_string_equal(field, "tree");
        free(memory);
        rig_close(&rig);
    }
}

/* An endpoint also holds against an image that was never checked. */
static void a_leaf_that_no_checked_image_has_is_refused(void **state)
{
    struct by_image_leaf leaf, sound;

    (void)state;
    rig_open(&rig, RANKS, &tree, 1, NULL);
    by_image_leaf(rig.image, 0, &sound);
    for (unsigned i = 0; i < 12; i++) {
        struct by_endpoint_config config = {.job = 1, .image = rig.image, .rto_min_ns = MS, .rto_max_ns = 1};

        leaf = sound;
        leaf.window = i == 1    ? 0
                      : i == 2  ? 2 * BY_WINDOW_MAX
                      : i == 3  ? 3
                      : i == 10 ? BY_WINDOW_MAX
                                : leaf.window;
        leaf.payload_max = i == 4    ? 0
                           : i == 5  ? BY_PAYLOAD_MAX + 8
                           : i == 6  ? 12
                           : i == 11 ? BY_PAYLOAD_MAX
                                     : leaf.payload_max;
        leaf.tree = i == 7 ? BY_TREES_MAX : leaf.tree;
        leaf.share = i == 8 ? 0 : leaf.share;
        leaf.owner = i == 9 ? RANKS : leaf.owner;
        by_image_put_leaf(rig.image, 0, &leaf);
        assert_int_equal(by_endpoint_size(&config) > 0, i == 0 || i >= 10); /* the last are the limits */
    }
    rig_close(&rig);
}

static void timeouts_in_the_wrong_order_are_put_right(void **state)
{
    struct by_endpoint_config config = {.rto_min_ns = 50 * MS, .rto_max_ns = 20 * MS};

    (void)state;
    rig_open(&rig, RANKS, &tree, 1, &config);
    assert_int_equal(rig.endpoint->config.rto_min_ns, 20 * MS);
    assert_int_equal(rig.endpoint->config.rto_max_ns, 20 * MS);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_call_is_reported_before_it_ends),
        cmocka_unit_test(a_wait_names_the_child_that_the_table_has),
        cmocka_unit_test(a_call_that_is_not_outstanding_is_unknown),
        cmocka_unit_test(a_caller_without_a_status_gets_the_error_alone),
        cmocka_unit_test(two_slots_are_needed_for_the_two_parts_of_an_exact_sum),
        cmocka_unit_test(ranks_that_divide_data_differently_have_different_tags),
        cmocka_unit_test(a_job_of_one_rank_copies_where_there_is_a_buffer),
        cmocka_unit_test(chunks_are_counted_for_trees_that_take_part),
        cmocka_unit_test(a_tree_of_one_rank_carries_its_shard_alone),
        cmocka_unit_test(what_the_table_denies_is_refused_before_anything_is_sent),
        cmocka_unit_test(a_leaf_that_no_checked_image_has_is_refused),
        cmocka_unit_test(timeouts_in_the_wrong_order_are_put_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which calls may be posted, how calls end, and what an image must contain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/endpoint/endpoint.h"
#include "tests/unit/offload/endpoint/rig.h"

#define RANKS 3
#define COUNT 8

/* Elements are f32. Places are offsets into one buffer, so that rows can describe overlaps. */
static float space[256];
#define NOWHERE 0xffff
#define SHARD   (COUNT)

struct post_row {
    uint8_t collective, op, dtype, mode;
    uint16_t root;
    uint64_t count;
    uint16_t send, recv; /* offsets in `space` (elements) */
    int error;
    const char *field;
};

#define AR BY_COLLECTIVE_ALLREDUCE
#define RS BY_COLLECTIVE_REDUCE_SCATTER
#define AG BY_COLLECTIVE_ALLGATHER
#define BC BY_COLLECTIVE_BROADCAST
#define RE BY_COLLECTIVE_REDUCE
#define BA BY_COLLECTIVE_BARRIER
#define F  BY_DTYPE_F32, BY_MODE_FAST

static void check_rows(const struct post_row *rows, unsigned count)
{
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    struct rig_tree tree = {.window = 64};

    for (unsigned r = 0; r < count; r++) {
        const char *field = "unset";
        struct by_call call = {.collective = rows[r].collective,
                               .op = rows[r].op,
                               .dtype = rows[r].dtype,
                               .mode = rows[r].mode,
                               .root = rows[r].root,
                               .count = rows[r].count,
                               .send = rows[r].send == NOWHERE ? NULL : space + rows[r].send,
                               .recv = rows[r].recv == NOWHERE ? NULL : space + rows[r].recv};
        uint32_t id;

        rig_open(rig, RANKS, &tree, 1, NULL);
        if (by_endpoint_post(rig->endpoint, &call, &id, &field) != rows[r].error)
            fail_msg("row %u: not %s", r, by_error_name(rows[r].error));
        if (rows[r].field == NULL)
            assert_null(field);
        else
            assert_string_equal(field, rows[r].field);
        assert_int_equal(rig_step(rig) > 0, rows[r].error == 0);
        rig_close(rig);
    }
    free(rig);
}

static void arguments_out_of_range_are_refused_by_name(void **state)
{
    static const struct post_row rows[] = {
        {0, BY_OP_SUM, F, 0, COUNT, 0, 64, BY_EINVAL, "collective"},
        {BY_COLLECTIVE_COUNT, BY_OP_SUM, F, 0, COUNT, 0, 64, BY_EINVAL, "collective"},
        {AR, 0, F, 0, COUNT, 0, 64, BY_EINVAL, "op"},
        {AR, BY_OP_COUNT, F, 0, COUNT, 0, 64, BY_EINVAL, "op"},
        {AR, BY_OP_SUM, 0, BY_MODE_FAST, 0, COUNT, 0, 64, BY_EINVAL, "dtype"},
        {AR, BY_OP_SUM, BY_DTYPE_COUNT, BY_MODE_FAST, 0, COUNT, 0, 64, BY_EINVAL, "dtype"},
        {AR, BY_OP_SUM, BY_DTYPE_F32, 0, 0, COUNT, 0, 64, BY_EINVAL, "mode"},
        {AR, BY_OP_SUM, BY_DTYPE_F32, BY_MODE_EXACT, 0, COUNT, 0, 64, BY_EINVAL, "scratch"},
        {AR, BY_OP_PROD, BY_DTYPE_F32, BY_MODE_EXACT, 0, COUNT, 0, 64, BY_EUNSUPPORTED, "mode"},
        {AR, BY_OP_BXOR, F, 0, COUNT, 0, 64, BY_EUNSUPPORTED, "op"},
        {BC, BY_OP_SUM, F, RANKS, COUNT, 0, 64, BY_EINVAL, "root"},
        {RE, BY_OP_SUM, F, RANKS, COUNT, 0, 64, BY_EINVAL, "root"},
        {AR, BY_OP_SUM, F, 0, UINT64_MAX / 4, 0, 64, BY_EINVAL, "count"},
        {AG, BY_OP_SUM, F, 0, UINT64_MAX / 8, 0, 64, BY_EINVAL, "count"},
        {AR, BY_OP_SUM, F, 0, COUNT, NOWHERE, 64, BY_EINVAL, "send"},
        {AR, BY_OP_SUM, F, 0, COUNT, 0, NOWHERE, BY_EINVAL, "recv"},
        {AG, 0, BY_DTYPE_F32, 0, 0, COUNT, NOWHERE, 64, BY_EINVAL, "send"},
    };

    (void)state;
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void shards_that_do_not_follow_each_other_are_refused(void **state)
{
    static const struct {
        uint8_t collective;
        uint64_t count, offsets[RANKS + 1];
        const char *field; /* NULL: the arguments are valid */
    } cases[] = {
        {AG, 8, {0, 1, 4, 8}, NULL},      {RS, 8, {0, 0, 8, 8}, NULL},
        {AG, 8, {1, 2, 4, 8}, "offsets"}, {AG, 8, {0, 5, 4, 8}, "offsets"},
        {RS, 9, {0, 1, 4, 8}, "offsets"}, {AR, 8, {0, 1, 4, 8}, "offsets"},
        {BA, 0, {0, 0, 0, 0}, "offsets"}, {AG, UINT64_MAX, {0, 1, 2, UINT64_MAX}, "count"},
    };
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    struct rig_tree tree = {.window = 64};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_call call = {.collective = cases[i].collective,
                               .op = BY_OP_SUM,
                               .dtype = BY_DTYPE_F32,
                               .mode = BY_MODE_FAST,
                               .count = cases[i].count,
                               .offsets = cases[i].offsets,
                               .send = space,
                               .recv = space + 100};
        const char *field = "unset";
        uint32_t id;

        rig_open(rig, RANKS, &tree, 1, NULL);
        assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, &field),
                         cases[i].field != NULL ? BY_EINVAL : 0);
        if (cases[i].field != NULL)
            assert_string_equal(field, cases[i].field);
        rig_close(rig);
    }
    free(rig);
}

/* The only tree is that of rank 1. A call in which all other shards are empty needs no other
 * tree. */
static void an_empty_shard_needs_no_tree(void **state)
{
    static const uint64_t of_one[RANKS + 1] = {0, 0, 8, 8}, of_two[RANKS + 1] = {0, 0, 7, 8};
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    struct rig_tree tree = {.collectives = 1u << AG, .owner = 2}; /* counted from 1 */
    struct by_call call = {.collective = AG,
                           .op = BY_OP_BOR,
                           .dtype = BY_DTYPE_F32,
                           .mode = BY_MODE_FAST,
                           .count = 8,
                           .offsets = of_two,
                           .recv = space};
    const char *field;
    uint32_t id;

    (void)state;
    rig_open(rig, RANKS, &tree, 1, NULL);
    assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, &field), BY_EUNSUPPORTED);
    assert_string_equal(field, "collective");
    call.offsets = of_one; /* rank 0, this rank, contributes nothing and needs no buffer */
    assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, &field), 0);
    assert_int_equal(by_endpoint_chunks(rig->endpoint, &call, 0), 1);
    rig_close(rig);
    free(rig);
}

static void what_a_collective_does_not_need_may_be_left_out(void **state)
{
    static const struct post_row rows[] = {
        {BA, 0, 0, 0, 99, 5, NOWHERE, NOWHERE, 0, NULL},         /* barrier: no buffers */
        {BC, 0, BY_DTYPE_F32, 0, 0, COUNT, 0, NOWHERE, 0, NULL}, /* the root's receive buffer only */
        {BC, 0, BY_DTYPE_F32, 0, 1, COUNT, NOWHERE, 0, 0, NULL}, /* another rank's send buffer only */
        {BC, 0, BY_DTYPE_F32, 0, 1, COUNT, NOWHERE, NOWHERE, BY_EINVAL, "recv"},
        {BC, 0, BY_DTYPE_F32, 0, 0, COUNT, NOWHERE, 0, BY_EINVAL, "send"},
        {RE, BY_OP_SUM, F, 1, COUNT, 0, NOWHERE, 0, NULL}, /* only the root receives */
        {RE, BY_OP_SUM, F, 0, COUNT, 0, NOWHERE, BY_EINVAL, "recv"},
        {AR, BY_OP_SUM, F, 77, 0, NOWHERE, NOWHERE, 0, NULL}, /* count 0: no buffers; the root is ignored */
        {AG, 0, BY_DTYPE_I8, 0, 0, COUNT, 0, 64, 0, NULL},    /* no reduction: neither operator nor mode */
    };

    (void)state;
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void buffers_are_in_place_as_stated_or_apart(void **state)
{
    static const struct post_row rows[] = {
        /* rank 0 of 3: its shard lies at the start of the vector */
        {AR, BY_OP_SUM, F, 0, COUNT, 0, 0, 0, NULL},
        {AR, BY_OP_SUM, F, 0, COUNT, 0, COUNT, 0, NULL},
        {AR, BY_OP_SUM, F, 0, COUNT, 0, COUNT - 1, BY_EINVAL, "recv"},
        {AR, BY_OP_SUM, F, 0, COUNT, 1, 0, BY_EINVAL, "recv"},
        {RE, BY_OP_SUM, F, 0, COUNT, 0, 0, 0, NULL},
        {RE, BY_OP_SUM, F, 0, COUNT, 0, 4, BY_EINVAL, "recv"},
        {RE, BY_OP_SUM, F, 1, COUNT, 0, 4, 0, NULL}, /* this rank does not receive */
        {AG, 0, BY_DTYPE_F32, 0, 0, COUNT, 0, 0, 0, NULL},
        {AG, 0, BY_DTYPE_F32, 0, 0, COUNT, SHARD, 0, BY_EINVAL, "recv"}, /* rank 1's place */
        {AG, 0, BY_DTYPE_F32, 0, 0, COUNT, 3 * SHARD, 0, 0, NULL},
        {RS, BY_OP_SUM, F, 0, COUNT, 0, 0, 0, NULL},
        {RS, BY_OP_SUM, F, 0, COUNT, 0, SHARD, BY_EINVAL, "recv"},
        {RS, BY_OP_SUM, F, 0, COUNT, 0, 3 * SHARD, 0, NULL},
        {BC, 0, BY_DTYPE_F32, 0, 0, COUNT, 0, 0, 0, NULL},
        {BC, 0, BY_DTYPE_F32, 0, 0, COUNT, 0, 1, BY_EINVAL, "recv"},
    };

    (void)state;
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void a_collective_that_no_tree_serves_is_unsupported(void **state)
{
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    struct rig_tree trees[2] = {{.collectives = 1u << AG, .owner = 1}, {.collectives = 1u << BC, .owner = 2}};
    struct by_call call = {
        .collective = AR, .op = BY_OP_SUM, .dtype = BY_DTYPE_F32, .mode = BY_MODE_FAST, .count = 1};
    const char *field;
    uint32_t id;

    (void)state;
    call.send = space;
    call.recv = space + 8;
    rig_open(rig, RANKS, trees, 2, NULL);
    assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, &field), BY_EUNSUPPORTED);
    assert_string_equal(field, "collective");
    call.collective = AG; /* shard 0 has a tree, shard 1 has none */
    assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, &field), BY_EUNSUPPORTED);
    call.collective = BC;
    call.root = 1;
    assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, &field), 0);
    rig_close(rig);
    free(rig);
}

/* The step sends `count` packets. Exactly one of them is empty: for chunk `seq` of tree `tree`. */
static struct by_header expect_word(struct endpoint_rig *rig, uint32_t count, uint16_t tree, uint32_t seq)
{
    struct by_header word = {0};
    uint32_t words = 0;

    assert_int_equal(rig_step(rig), count);
    for (uint32_t i = 0; i < count; i++) {
        if (rig->sent[i].count > 0)
            continue;
        word = rig->sent[i];
        words++;
    }
    assert_int_equal(words, 1);
    assert_int_equal(word.tree, tree);
    assert_int_equal(word.seq, seq);
    assert_int_equal(word.flags, BY_FLAG_NODATA | BY_FLAG_ACKONLY);
    assert_int_equal(word.mode, BY_MODE_FAST);
    return word;
}

static void an_empty_call_is_a_word_without_data(void **state)
{
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    struct rig_tree tree = {0};
    struct by_call call = {.collective = AR, .op = BY_OP_SUM, .dtype = BY_DTYPE_F32, .mode = BY_MODE_DET};
    struct by_header word;
    uint32_t id;

    (void)state;
    rig_open(rig, RANKS, &tree, 1, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        call.collective = i == 0 ? AR : BA;
        assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, NULL), 0);
        word = expect_word(rig, 1, 0, i);
        assert_int_equal(by_endpoint_test(rig->endpoint, id, NULL), BY_EAGAIN);
        rig_answer(rig, &word, 0, 0);
        assert_int_equal(by_endpoint_test(rig->endpoint, id, NULL), 0);
    }
    rig_close(rig);
    free(rig);
}

/* The packet without data lets ranks detect that they are in calls on different trees. */
static void a_call_that_does_not_use_the_first_tree_of_allreduce_leaves_its_word_there(void **state)
{
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    struct rig_tree trees[3] = {{.collectives = 1u << BC, .owner = 2},
                                {.collectives = 1u << AR | 1u << BA},
                                {.collectives = 1u << BC, .owner = 1}};
    struct by_call call = {
        .collective = BC, .op = BY_OP_SUM, .dtype = BY_DTYPE_U8, .mode = BY_MODE_FAST, .count = 100};
    struct by_header word;
    uint32_t id;

    (void)state;
    call.send = call.recv = space;
    rig_open(rig, RANKS, trees, 3, NULL);
    assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, NULL), 0);
    word = expect_word(rig, 3, 1, 0);
    assert_int_equal(word.optag, by_optag(id, BC, 0, 100));
    for (uint32_t i = 0; i < 3; i++)
        if (rig->sent[i].count > 0)
            assert_int_equal(rig->sent[i].tree, 2);
    call.collective = AR; /* the call's data use that tree: no extra packet */
    assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, NULL), 0);
    assert_int_equal(rig_step(rig), 2);
    assert_int_equal(rig->sent[0].tree, 1);
    assert_int_equal(rig->sent[0].seq, 1);
    rig_close(rig);
    free(rig);
}

static void a_job_of_one_rank_needs_no_network(void **state)
{
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    struct rig_tree tree = {0};
    float send[COUNT] = {1, 2, 3}, recv[COUNT] = {0};
    struct by_call call = {.op = BY_OP_SUM, .dtype = BY_DTYPE_F32, .mode = BY_MODE_FAST, .count = COUNT};
    uint32_t id;

    (void)state;
    rig_open(rig, 1, &tree, 1, NULL);
    for (unsigned collective = 1; collective < BY_COLLECTIVE_COUNT; collective++) {
        memset(recv, 0, sizeof(recv));
        call.collective = (uint8_t)collective;
        call.send = send;
        call.recv = recv;
        assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, NULL), 0);
        assert_int_equal(by_endpoint_test(rig->endpoint, id, NULL), 0);
        if (collective != BA)
            assert_memory_equal(send, recv, sizeof(send));
    }
    assert_int_equal(rig_step(rig), 0);
    rig_close(rig);
    free(rig);
}

static void at_most_64_calls_are_outstanding(void **state)
{
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    struct rig_tree tree = {.window = 64};
    struct by_call call = {.collective = BA};
    uint32_t ids[BY_CALLS_MAX], id;

    (void)state;
    rig_open(rig, RANKS, &tree, 1, NULL);
    for (unsigned c = 0; c < BY_CALLS_MAX; c++)
        assert_int_equal(by_endpoint_post(rig->endpoint, &call, &ids[c], NULL), 0);
    assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, NULL), BY_EAGAIN);
    assert_int_equal(rig_step(rig), BY_CALLS_MAX);
    assert_int_equal(rig->sent[0].seq, 0);
    rig_answer(rig, &rig->sent[0], 0, 0);
    assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, NULL),
                     BY_EAGAIN); /* complete, but not tested yet */
    assert_int_equal(by_endpoint_test(rig->endpoint, ids[0], NULL), 0);
    assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, NULL), 0);
    assert_int_equal(by_endpoint_test(rig->endpoint, ids[0], NULL), BY_ENOENT);
    rig_close(rig);
    free(rig);
}

static void each_call_has_its_own_tag_and_agreeing_ranks_the_same(void **state)
{
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    struct rig_tree tree = {.window = 64};
    struct by_call call = {.collective = BA};
    uint32_t id;

    (void)state;
    rig_open(rig, RANKS, &tree, 1, NULL);
    for (int c = 0; c < 3; c++)
        assert_int_equal(by_endpoint_post(rig->endpoint, &call, &id, NULL), 0);
    assert_int_equal(rig_step(rig), 3);
    for (uint32_t c = 0; c < 3; c++) {
        assert_int_equal(rig->sent[c].seq, c);
        assert_int_equal(rig->sent[c].optag, by_optag(c, BA, 0, 0));
    }
    rig_close(rig);
    free(rig);
}

static void an_abort_ends_every_call_and_the_endpoint(void **state)
{
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    struct rig_tree tree = {0};
    struct by_call call = {.collective = BA};
    struct by_call_status status;
    uint32_t ids[2];

    (void)state;
    rig_open(rig, RANKS, &tree, 1, NULL);
    for (int c = 0; c < 2; c++)
        assert_int_equal(by_endpoint_post(rig->endpoint, &call, &ids[c], NULL), 0);
    rig_step(rig);
    by_endpoint_abort(rig->endpoint);
    for (int c = 0; c < 2; c++) {
        assert_int_equal(by_endpoint_test(rig->endpoint, ids[c], &status), BY_EABORTED);
        assert_int_equal(status.error, BY_EABORTED);
    }
    assert_int_equal(by_endpoint_post(rig->endpoint, &call, &ids[0], NULL), BY_ESTATE);
    assert_int_equal(by_endpoint_inflight(rig->endpoint), 0);
    assert_true(by_endpoint_deadline(rig->endpoint) == UINT64_MAX);
    rig->now_ns += UINT64_C(100000000000);
    assert_int_equal(rig_step(rig), 0);
    rig_close(rig);
    free(rig);
}

static void memory_and_image_must_suffice(void **state)
{
    struct endpoint_rig *rig = malloc(sizeof(*rig));
    struct rig_tree tree = {0};
    struct by_endpoint_config config = {0};
    struct by_endpoint *endpoint;
    size_t bytes;
    void *memory;
    uint8_t *image;

    (void)state;
    rig_open(rig, RANKS, &tree, 1, NULL);
    config.image = rig->image;
    config.job = 1;
    bytes = by_endpoint_size(&config);
    memory = aligned_alloc(64, bytes);
    assert_int_equal(by_endpoint_init(&endpoint, memory, bytes - 1, &config), BY_ENOMEM);
    assert_int_equal(by_endpoint_init(&endpoint, memory, bytes, &config), 0);
    assert_int_equal(by_endpoint_rank(endpoint), 0);
    assert_int_equal(by_endpoint_rank_count(endpoint), RANKS);
    config.job = 2; /* no such job */
    assert_int_equal(by_endpoint_size(&config), 0);
    assert_int_equal(by_endpoint_init(&endpoint, memory, bytes, &config), BY_ENOENT);
    image = fabric_image(&rig->fabric, 0, &config.image_bytes); /* the switch is not a rank */
    config.image = image;
    config.job = 1;
    assert_int_equal(by_endpoint_size(&config), 0);
    free(image);
    free(memory);
    rig_close(rig);
    free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_out_of_range_are_refused_by_name),
        cmocka_unit_test(shards_that_do_not_follow_each_other_are_refused),
        cmocka_unit_test(an_empty_shard_needs_no_tree),
        cmocka_unit_test(what_a_collective_does_not_need_may_be_left_out),
        cmocka_unit_test(buffers_are_in_place_as_stated_or_apart),
        cmocka_unit_test(a_collective_that_no_tree_serves_is_unsupported),
        cmocka_unit_test(an_empty_call_is_a_word_without_data),
        cmocka_unit_test(a_call_that_does_not_use_the_first_tree_of_allreduce_leaves_its_word_there),
        cmocka_unit_test(a_job_of_one_rank_needs_no_network),
        cmocka_unit_test(at_most_64_calls_are_outstanding),
        cmocka_unit_test(each_call_has_its_own_tag_and_agreeing_ranks_the_same),
        cmocka_unit_test(an_abort_ends_every_call_and_the_endpoint),
        cmocka_unit_test(memory_and_image_must_suffice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Queries about an operation: the library must predict what a post does, that is, whether the
 * operation runs over trees, between hosts, or nowhere, and why.
 */
#include <stdio.h>
#include <string.h>

#include "offload/wire/types.h"
#include "tests/unit/host-driver/rig.h"

#define RANKS 3

static struct fabric fabric;
static struct host_driver_rig rig;

static struct banyan_query asked(banyan_collective_t collective, uint64_t count)
{
    struct banyan_query query;

    banyan_query_init(&query);
    query.collective = collective;
    query.count = count;
    return query;
}

/* The reason in the answer must contain `words`. */
static void must_say(const struct banyan_query *query, banyan_path_t path, const char *words)
{
    if (query->path != path || strstr(query->reason, words) == NULL)
        fail_msg("path %d, '%s' does not say '%s'", (int)query->path, query->reason, words);
}

/* Two trees of allreduce, the second with a third of the data, and one for rank 1's shard of
 * allgather. */
static void make_fabric(void)
{
    static const uint16_t collectives[] = {1u << BY_COLLECTIVE_ALLREDUCE, 1u << BY_COLLECTIVE_ALLREDUCE,
                                           1u << BY_COLLECTIVE_ALLGATHER};
    int job;

    memset(&fabric, 0, sizeof(fabric));
    fabric_star(&fabric, RANKS, 10000, 1000);
    fabric.job_count = 0;
    job = fabric_job_add(&fabric, 1, 1);
    for (int t = 0; t < 3; t++) {
        struct fabric_tree *tree = fabric_tree_add(&fabric, job, 0, 0, NULL);

        assert_non_null(tree);
        tree->payload_max = 256;
        tree->share = t == 0 ? 2 : 1;
        tree->collectives = collectives[t];
        tree->owner = t == 2 ? 1 : BY_RANK_NONE;
    }
}

static void an_operation_is_traced_to_the_trees_that_carry_it(void **state)
{
    struct banyan_query query = asked(BANYAN_ALLREDUCE, 3 * 64 * 10);

    (void)state;
    make_fabric();
    rig_open(&rig, &fabric, 0);
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_int_equal(banyan_comm_query(rig.comm[r], &query), BANYAN_OK);
        must_say(&query, BANYAN_TREES, "has trees for it");
        assert_int_equal(query.rank, r);
        assert_int_equal(query.rank_count, RANKS);
        assert_int_equal(query.tree_count, 2);
        assert_int_equal(query.packet_count, 30);
        assert_int_equal(query.packet_bytes, 256);
        assert_string_equal(query.trees, "tree 0 by leaf0: 20, tree 1 by leaf0: 10");
    }
    rig_close(&rig);
}

static void shares_of_unequal_size_are_traced_too(void **state)
{
    static const uint64_t counts[RANKS] = {0, 640, 64};
    struct banyan_query query = asked(BANYAN_ALLGATHER, 0);

    (void)state;
    make_fabric();
    rig_open(&rig, &fabric, 0);
    query.counts = counts;
    assert_int_equal(banyan_comm_query(rig.comm[2], &query), BANYAN_OK);
    assert_int_equal(query.tree_count, 3);
    assert_string_equal(query.trees, "tree 0 by leaf0: 1, tree 1 by leaf0: 1, tree 2 by leaf0: 10");
    rig_close(&rig);
}

/* The number of data packets that rank 0 sends in an allreduce must be the predicted one. */
static void what_is_foretold_is_sent(void **state)
{
    struct banyan_query query = asked(BANYAN_ALLREDUCE, 1000);
    struct banyan_request *request[RIG_RANKS_MAX];
    static float data[RANKS][1000];
    uint64_t sent = 0, value;
    const char *name;

    (void)state;
    make_fabric();
    rig_open(&rig, &fabric, 0);
    assert_int_equal(banyan_comm_query(rig.comm[0], &query), BANYAN_OK);
    for (uint32_t r = 0; r < RANKS; r++)
        assert_int_equal(
            banyan_allreduce_init(rig.comm[r], data[r], data[r], 1000, BANYAN_F32, BANYAN_SUM, &request[r]),
            BANYAN_OK);
    rig_finish(&rig, request);
    for (uint32_t i = 0; banyan_comm_counter(rig.comm[0], i, &name, &value) == BANYAN_OK; i++)
        if (strcmp(name, "endpoint/tx") == 0)
            sent = value;
    assert_int_equal(sent, query.packet_count + 1 + 3); /* plus the roll call and an opening on each tree */
    rig_close(&rig);
}

static void what_cannot_run_is_said_with_the_error_of_its_post(void **state)
{
    struct banyan_query query = asked(BANYAN_ALLREDUCE, 10);
    struct banyan_request *request;
    float in = 0, out;

    (void)state;
    make_fabric();
    fabric.jobs[0].tree_count = 3;
    fabric.jobs[0].trees[0].collectives = fabric.jobs[0].trees[1].collectives = 1u << BY_COLLECTIVE_BROADCAST;
    rig_open(&rig, &fabric, 0);
    assert_int_equal(banyan_finalize(NULL), BANYAN_EINVAL);
    assert_int_equal(banyan_comm_query(rig.comm[0], &query), BANYAN_OK);
    must_say(&query, BANYAN_NOWHERE, "holds no trees for it");
    assert_int_equal(query.status, BANYAN_EUNSUPPORTED);
    /* A query is not a failure: the last error is still the earlier one. */
    assert_non_null(strstr(banyan_last_error(), "context is NULL"));
    assert_int_equal(banyan_allreduce_init(rig.comm[0], &in, &out, 1, BANYAN_F32, BANYAN_SUM, &request),
                     BANYAN_OK);
    assert_int_equal(banyan_post(request), BANYAN_EUNSUPPORTED);
    assert_string_equal(banyan_last_error(), query.reason);
    query = asked(BANYAN_BROADCAST, 10);
    assert_int_equal(banyan_comm_query(rig.comm[0], &query), BANYAN_OK);
    must_say(&query, BANYAN_TREES, "has trees");
    rig_close(&rig);
}

static void a_mode_without_such_an_operation_is_said(void **state)
{
    struct banyan_query query = asked(BANYAN_ALLREDUCE, 10);

    (void)state;
    make_fabric();
    rig_open(&rig, &fabric, 0);
    query.op = BANYAN_PROD;
    query.mode = BANYAN_EXACT;
    assert_int_equal(banyan_comm_query(rig.comm[0], &query), BANYAN_OK);
    must_say(&query, BANYAN_NOWHERE, "mode exact does not support prod of f32");
    query.op = BANYAN_SUM;
    assert_int_equal(banyan_comm_query(rig.comm[0], &query), BANYAN_OK);
    must_say(&query, BANYAN_TREES, "has trees");
    rig_close(&rig);
}

/* Everything except these. */
static void make_able(struct fabric_tree *tree, unsigned modes, unsigned ops, unsigned dtypes)
{
    tree->modes = (uint8_t)(0x0e & ~modes);
    tree->ops = (uint16_t)(0xfe & ~ops);
    tree->dtypes = (uint16_t)(0x7fe & ~dtypes);
}

/* The prediction has the text of the post. The communicator remains usable, as nothing was sent. */
static void what_nodes_of_the_trees_cannot_compute_is_known_before(void **state)
{
    static const struct {
        banyan_op_t op;
        banyan_dtype_t dtype;
        banyan_mode_t mode;
        const char *says; /* the expected words; NULL: it runs */
    } cases[] = {
        {BANYAN_SUM, BANYAN_F32, BANYAN_DET, "have no slots for sum of f32 in mode det"},
        {BANYAN_PROD, BANYAN_F64, BANYAN_DET, "have no slots for prod of f64 in mode det"},
        {BANYAN_MAX, BANYAN_F32, BANYAN_DET, NULL},
        {BANYAN_SUM, BANYAN_I64, BANYAN_DET, NULL},
        {BANYAN_SUM, BANYAN_F32, BANYAN_FAST, NULL},
        {BANYAN_SUM, BANYAN_F32, BANYAN_EXACT, NULL},
        {BANYAN_BXOR, BANYAN_U32, BANYAN_FAST, "cannot compute bxor of u32"},
        {BANYAN_SUM, BANYAN_I32, BANYAN_FAST, "cannot compute sum of i32"},
        {BANYAN_SUM, BANYAN_F16, BANYAN_EXACT, "cannot compute sum of f16"}, /* computed as i32 */
        {BANYAN_SUM, BANYAN_F16, BANYAN_FAST, NULL},
    };
    struct banyan_request *request[RIG_RANKS_MAX];
    static double data[RANKS][64];

    (void)state;
    make_fabric();
    make_able(&fabric.jobs[0].trees[0], 1u << BY_MODE_DET, 1u << BY_OP_BXOR, 0);
    make_able(&fabric.jobs[0].trees[1], 0, 0, 1u << BY_DTYPE_I32);
    rig_open(&rig, &fabric, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct banyan_query query = asked(BANYAN_ALLREDUCE, 64);

        query.op = cases[i].op;
        query.dtype = cases[i].dtype;
        query.mode = cases[i].mode;
        assert_int_equal(banyan_comm_query(rig.comm[1], &query), BANYAN_OK);
        must_say(&query, cases[i].says != NULL ? BANYAN_NOWHERE : BANYAN_TREES,
                 cases[i].says != NULL ? cases[i].says : "has trees");
        for (uint32_t r = 0; r < RANKS; r++) {
            assert_int_equal(banyan_allreduce_init(rig.comm[r], data[r], data[r], 64, cases[i].dtype,
                                                   cases[i].op, &request[r]),
                             BANYAN_OK);
            assert_int_equal(banyan_request_mode(request[r], cases[i].mode), BANYAN_OK);
            if (cases[i].says == NULL)
                continue;
            assert_int_equal(banyan_post(request[r]), BANYAN_EUNSUPPORTED);
            assert_non_null(strstr(banyan_last_error(), cases[i].says));
            assert_int_equal(banyan_free(request[r]), BANYAN_OK);
        }
        if (cases[i].says == NULL)
            rig_finish(&rig, request);
    }
    rig_close(&rig);
}

/* A collective depends only on its own trees and on the first tree, which all calls use. */
static void each_collective_asks_its_own_trees(void **state)
{
    struct banyan_query query = asked(BANYAN_REDUCE_SCATTER, 64);

    (void)state;
    make_fabric();
    fabric.jobs[0].trees[1].collectives = 1u << BY_COLLECTIVE_REDUCE_SCATTER;
    make_able(&fabric.jobs[0].trees[1], 0, 1u << BY_OP_MAX, 0);
    make_able(&fabric.jobs[0].trees[2], 0, 1u << BY_OP_MIN, 0);
    rig_open(&rig, &fabric, 0);
    query.op = BANYAN_MAX;
    assert_int_equal(banyan_comm_query(rig.comm[0], &query), BANYAN_OK);
    must_say(&query, BANYAN_NOWHERE, "cannot compute max of f32");
    query.op = BANYAN_MIN;
    assert_int_equal(banyan_comm_query(rig.comm[0], &query), BANYAN_OK);
    must_say(&query, BANYAN_TREES, "has trees");
    query.collective = BANYAN_ALLREDUCE;
    query.op = BANYAN_MAX;
    assert_int_equal(banyan_comm_query(rig.comm[0], &query), BANYAN_OK);
    must_say(&query, BANYAN_TREES, "has trees");
    rig_close(&rig);
    make_able(&fabric.jobs[0].trees[0], 0, 1u << BY_OP_MIN, 0);
    rig_open(&rig, &fabric, 0);
    query.collective = BANYAN_REDUCE_SCATTER;
    query.op = BANYAN_MIN;
    assert_int_equal(banyan_comm_query(rig.comm[0], &query), BANYAN_OK);
    must_say(&query, BANYAN_NOWHERE, "cannot compute min of f32");
    query.collective = BANYAN_ALLGATHER; /* copied, not reduced */
    assert_int_equal(banyan_comm_query(rig.comm[0], &query), BANYAN_OK);
    must_say(&query, BANYAN_TREES, "has trees");
    rig_close(&rig);
}

static void wrong_questions_are_refused(void **state)
{
    static const uint64_t counts[RANKS] = {1, 2, 3};
    struct banyan_query query = asked(BANYAN_ALLREDUCE, 10);

    (void)state;
    make_fabric();
    rig_open(&rig, &fabric, 0);
    banyan_query_init(NULL);
    expect(banyan_comm_query(NULL, &query), BANYAN_EINVAL, "comm is NULL");
    expect(banyan_comm_query(rig.comm[0], NULL), BANYAN_EINVAL, "query is NULL");
    expect(banyan_context_query(NULL, 0, &query), BANYAN_EINVAL, "context is NULL");
    query.size = 8;
    expect(banyan_comm_query(rig.comm[0], &query), BANYAN_EVERSION, "call banyan_query_init");
    query = asked((banyan_collective_t)9, 1);
    expect(banyan_comm_query(rig.comm[0], &query), BANYAN_EINVAL, "collective 9 is unknown");
    query = asked(BANYAN_REDUCE, 1);
    query.root = RANKS;
    expect(banyan_comm_query(rig.comm[0], &query), BANYAN_EINVAL, "root 3 is not a rank");
    query = asked(BANYAN_ALLREDUCE, 1);
    query.counts = counts;
    expect(banyan_comm_query(rig.comm[0], &query), BANYAN_EINVAL, "allreduce has no shares");
    query = asked(BANYAN_ALLREDUCE, 1);
    query.op = BANYAN_BOR;
    expect(banyan_comm_query(rig.comm[0], &query), BANYAN_EUNSUPPORTED, "bor is not defined on f32");
    query = asked(BANYAN_ALLREDUCE, 1);
    query.mode = (banyan_mode_t)7;
    expect(banyan_comm_query(rig.comm[0], &query), BANYAN_EINVAL, "mode 7 is unknown");
    query = asked(BANYAN_ALLREDUCE, 1);
    expect(banyan_context_query(rig.context[0], 5, &query), BANYAN_ENOENT, "5");
    assert_int_equal(banyan_context_query(rig.context[0], 0, &query), BANYAN_OK);
    must_say(&query, BANYAN_TREES, "has trees");
    rig_close(&rig);
}

static void hosts_without_a_table_or_for_small_operations_are_said(void **state)
{
    static const char *const meeting[][2] = {
        {"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "9"}};
    struct banyan_query query = asked(BANYAN_ALLREDUCE, 256);
    struct banyan_context *context;
    char folder[64], table[96];

    (void)state;
    make_fabric();
    rig_write(&fabric, folder);
    snprintf(table, sizeof(table), "%s/h1.table", folder);
    for (size_t i = 0; i < 4; i++)
        rig_set(meeting[i][0], meeting[i][1]);
    assert_int_equal(banyan_init(NULL, &context), BANYAN_OK);
    assert_int_equal(banyan_context_query(context, 0, &query), BANYAN_OK);
    must_say(&query, BANYAN_HOSTS, "this rank has no table; circulant schedules");
    assert_int_equal(banyan_finalize(context), BANYAN_OK);
    rig_set("BANYAN_TABLE", table);
    rig_set("BANYAN_SMALL", "1024");
    assert_int_equal(banyan_init(NULL, &context), BANYAN_OK);
    assert_int_equal(banyan_context_query(context, 0, &query), BANYAN_OK);
    must_say(&query, BANYAN_HOSTS, "at most 1024 bytes (BANYAN_SMALL)");
    query.count = 257;
    assert_int_equal(banyan_context_query(context, 0, &query), BANYAN_OK);
    must_say(&query, BANYAN_TREES, "has trees");
    assert_int_equal(banyan_finalize(context), BANYAN_OK);
    rig_set("BANYAN_TABLE", NULL);
    rig_set("BANYAN_SMALL", NULL);
    for (size_t i = 0; i < 4; i++)
        rig_set(meeting[i][0], NULL);
    rig_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_is_traced_to_the_trees_that_carry_it),
        cmocka_unit_test(shares_of_unequal_size_are_traced_too),
        cmocka_unit_test(what_is_foretold_is_sent),
        cmocka_unit_test(what_cannot_run_is_said_with_the_error_of_its_post),
        cmocka_unit_test(a_mode_without_such_an_operation_is_said),
        cmocka_unit_test(what_nodes_of_the_trees_cannot_compute_is_known_before),
        cmocka_unit_test(each_collective_asks_its_own_trees),
        cmocka_unit_test(wrong_questions_are_refused),
        cmocka_unit_test(hosts_without_a_table_or_for_small_operations_are_said),
    };

    rig_set("BANYAN_LOG", "0");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

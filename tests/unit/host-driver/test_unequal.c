/*
 * Unequal shards over trees: allgatherv and reduce_scatterv on tables planned for each rank and on
 * tables for allreduce only, in place and out of place, in every mode, with lost packets.
 * banyan-perf's oracle checks every element. Also the errors when ranks disagree or misuse the
 * functions.
 */
#include <stdio.h>
#include <string.h>

#include "host-driver/tools/perf/run.h"
#include "tests/unit/host-driver/rig.h"

#define RANKS 4

static struct fabric fabric;
static struct host_driver_rig rig;

/* The shards of each rank, as prefix sums: one much larger; empty ones first, in the middle and
 * last; all at one rank. */
static const uint64_t parts[][RANKS + 1] = {
    {0, 3, 4, 6, 7}, {0, 0, 5, 5, 6}, {0, 1, 1, 1, 2}, {0, 0, 0, 9, 9}, {0, 7, 7, 7, 7}, {0, 2, 4, 6, 8},
};
#define SPLITS (sizeof(parts) / sizeof(parts[0]))

/* Makes a star whose trees have owners: one tree for each rank and collective. Trees of allreduce
 * serve `orphan` instead. */
static void make_owned(int orphan)
{
    int job;

    memset(&fabric, 0, sizeof(fabric));
    fabric_star(&fabric, RANKS, 10000, 1000);
    fabric.job_count = 0;
    job = fabric_job_add(&fabric, 1, 1);
    for (int t = 0; t <= RANKS; t++) {
        struct fabric_tree *tree = fabric_tree_add(&fabric, job, 0, 0, NULL);

        assert_non_null(tree);
        tree->window = 8;
        tree->payload_max = 256;
        tree->owner = t == RANKS || t == orphan ? BY_RANK_NONE : (uint16_t)t;
        tree->collectives = tree->owner == BY_RANK_NONE
                                ? 1u << BY_COLLECTIVE_ALLREDUCE | 1u << BY_COLLECTIVE_BARRIER
                                : 1u << BY_COLLECTIVE_ALLGATHER | 1u << BY_COLLECTIVE_REDUCE_SCATTER;
    }
}

/* Runs both collectives with one split. Returns the text of an error, or NULL. */
static const char *run_split(struct perf_world *world, const struct perf_options *options,
                             const uint64_t *offsets, banyan_dtype_t dtype, uint64_t count, uint32_t salt)
{
    static char failure[200];

    for (unsigned c = BY_COLLECTIVE_REDUCE_SCATTER; c <= BY_COLLECTIVE_ALLGATHER; c++) {
        struct perf_result result = {
            .call = {.collective = c, .dtype = dtype, .op = BANYAN_SUM, .count = count, .offsets = offsets}};
        uint32_t failed;

        if (perf_run(world, options, salt, &result, &failed) != BANYAN_OK)
            return banyan_last_error();
        snprintf(failure, sizeof(failure), "%s of %s, %llu a part: %llu wrong", by_collective_name(c),
                 banyan_dtype_name(dtype), (unsigned long long)count,
                 (unsigned long long)(result.out_of_place.wrong + result.in_place.wrong));
        if (result.out_of_place.wrong + result.in_place.wrong > 0)
            return failure;
    }
    return NULL;
}

static void check_folder(const char *mode, const char *what)
{
    struct perf_options options = {.iterations = 2, .warmup = 1, .mode = mode};
    static const banyan_dtype_t dtypes[] = {BANYAN_F32, BANYAN_I8, BANYAN_BF16, BANYAN_F64};
    static const uint64_t counts[] = {1, 37, 1000};
    struct perf_world world;
    char folder[64];
    uint32_t salt = 1;

    rig_write(&fabric, folder);
    options.folder = folder;
    assert_int_equal(perf_world_open(&world, &options, 9u * 1000 * 8), PERF_RIGHT);
    for (size_t s = 0; s < SPLITS; s++)
        for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++)
            for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
                const char *said = run_split(&world, &options, parts[s], dtypes[d], counts[c], salt++);

                if (said != NULL)
                    fail_msg("%s, mode %s, split %zu: %s", what, mode, s, said);
            }
    perf_world_close(&world);
    rig_remove(folder);
}

static void shares_of_any_size_are_right_over_trees_of_allreduce(void **state)
{
    (void)state;
    rig_star(&fabric, RANKS, 8);
    check_folder("fast", "one tree");
    check_folder("exact", "one tree");
}

static void shares_of_any_size_are_right_over_trees_of_their_ranks(void **state)
{
    (void)state;
    make_owned(-1);
    check_folder("fast", "trees of ranks");
    check_folder("exact", "trees of ranks");
    make_owned(1);
    check_folder("fast", "trees of ranks, but one");
}

static void shares_are_right_when_packets_are_lost_doubled_and_overtaken(void **state)
{
    static const char *const settings[] = {"BANYAN_LOSS", "BANYAN_DUP", "BANYAN_REORDER"};

    (void)state;
    make_owned(2);
    for (size_t i = 0; i < 3; i++)
        rig_set(settings[i], "0.03");
    check_folder("fast", "with faults");
    for (size_t i = 0; i < 3; i++)
        rig_set(settings[i], NULL);
}

/* Ranks post the same request again, and two requests at a time. */
static void a_request_of_unequal_shares_is_repeated(void **state)
{
    static const uint64_t counts[RANKS] = {3, 0, 1, 2};
    struct banyan_request *request[RIG_RANKS_MAX];
    int32_t send[RANKS][6], recv[RANKS][6];

    (void)state;
    rig_star(&fabric, RANKS, 8);
    rig_open(&rig, &fabric, 0);
    for (uint32_t r = 0; r < RANKS; r++)
        assert_int_equal(banyan_reduce_scatterv_init(rig.comm[r], send[r], counts[r] > 0 ? recv[r] : NULL,
                                                     counts, BANYAN_I32, BANYAN_SUM, &request[r]),
                         BANYAN_OK);
    for (int turn = 0; turn < 20; turn++) {
        for (uint32_t r = 0; r < RANKS; r++) {
            for (int i = 0; i < 6; i++)
                send[r][i] = turn * 100 + i * 10 + (int)r;
            assert_int_equal(banyan_post(request[r]), BANYAN_OK);
        }
        for (uint32_t r = 0, first = 0; r < RANKS; first += (uint32_t)counts[r++]) {
            assert_int_equal(banyan_wait(request[r]), BANYAN_OK);
            for (uint32_t i = 0; i < counts[r]; i++)
                assert_int_equal(recv[r][i], RANKS * (turn * 100 + (int)(first + i) * 10) + 6);
        }
    }
    rig_close(&rig);
}

/* The same total size with different shards: every chunk might fit, but the data would be wrong. */
static void ranks_with_other_counts_are_told(void **state)
{
    static const uint64_t counts[2][2] = {{96, 32}, {32, 96}};
    struct banyan_request *request[2];
    static float in[2][128], out[2][128];

    (void)state;
    rig_star(&fabric, 2, 8);
    rig_open(&rig, &fabric, 0);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(
            banyan_allgatherv_init(rig.comm[r], in[r], out[r], counts[r], BANYAN_F32, &request[r]), 0);
        assert_int_equal(banyan_post(request[r]), BANYAN_OK);
    }
    for (int r = 0; r < 2; r++) {
        assert_int_equal(banyan_wait(request[r]), BANYAN_EMISMATCH);
        if (strstr(banyan_last_error(), "allgather of 128 elements in unequal shares") == NULL)
            fail_msg("'%s' does not say what this rank is in", banyan_last_error());
    }
    rig_close(&rig);
}

static void equal_counts_are_the_operation_without(void **state)
{
    static const uint64_t counts[2] = {5, 5};
    struct banyan_request *request[2];
    float in[2][5] = {{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}}, out[2][10];

    (void)state;
    rig_star(&fabric, 2, 8);
    rig_open(&rig, &fabric, 0);
    assert_int_equal(banyan_allgatherv_init(rig.comm[0], in[0], out[0], counts, BANYAN_F32, &request[0]), 0);
    assert_int_equal(banyan_allgather_init(rig.comm[1], in[1], out[1], 5, BANYAN_F32, &request[1]), 0);
    rig_finish(&rig, request);
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < 10; i++)
            assert_true(out[r][i] == (float)(i + 1));
    rig_close(&rig);
}

static void misuse_is_refused_by_name(void **state)
{
    static const uint64_t counts[2] = {1, 3}, huge[2] = {1, UINT64_MAX / 2}, none[2] = {0, 0};
    struct banyan_request *request;
    float data[8], other[8];

    (void)state;
    rig_star(&fabric, 2, 8);
    rig_open(&rig, &fabric, 0);
    expect(banyan_allgatherv(NULL, data, other, counts, BANYAN_F32), BANYAN_EINVAL, "comm is NULL");
    expect(banyan_allgatherv(rig.comm[1], data, other, NULL, BANYAN_F32), BANYAN_EINVAL,
           "counts is NULL; it must contain a count for each of the 2 ranks");
    expect(banyan_allgatherv(rig.comm[1], data, other, huge, BANYAN_F32), BANYAN_ELIMIT, "address space");
    expect(banyan_allgatherv(rig.comm[1], NULL, other, counts, BANYAN_F32), BANYAN_EINVAL, "send is NULL");
    expect(banyan_allgatherv(rig.comm[1], data + 2, data, counts, BANYAN_F32), BANYAN_EINVAL,
           "in place requires send == recv + the counts of the ranks before this one");
    expect(banyan_reduce_scatterv(rig.comm[1], data, data + 2, counts, BANYAN_F32, BANYAN_SUM), BANYAN_EINVAL,
           "in place requires recv == send + the counts");
    expect(banyan_reduce_scatterv(rig.comm[1], data, other, counts, BANYAN_F32, BANYAN_BOR),
           BANYAN_EUNSUPPORTED, "bor is not defined on f32");
    expect(banyan_reduce_scatterv_init(rig.comm[1], data, other, counts, BANYAN_F32, BANYAN_SUM, NULL),
           BANYAN_EINVAL, "request is NULL");
    assert_int_equal(banyan_allgatherv(rig.comm[1], NULL, NULL, none, BANYAN_F32), BANYAN_OK);
    assert_int_equal(banyan_allgatherv_init(rig.comm[1], data + 1, data, counts, BANYAN_F32, &request),
                     BANYAN_OK);
    assert_int_equal(banyan_free(request), BANYAN_OK);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_of_any_size_are_right_over_trees_of_allreduce),
        cmocka_unit_test(shares_of_any_size_are_right_over_trees_of_their_ranks),
        cmocka_unit_test(shares_are_right_when_packets_are_lost_doubled_and_overtaken),
        cmocka_unit_test(a_request_of_unequal_shares_is_repeated),
        cmocka_unit_test(ranks_with_other_counts_are_told),
        cmocka_unit_test(equal_counts_are_the_operation_without),
        cmocka_unit_test(misuse_is_refused_by_name),
    };

    rig_set("BANYAN_LOG", "0");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Collectives over the fabric in memory: all six, on several topologies, with and without faults;
 * and the messages when they fail. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-driver/tools/perf/run.h"
#include "tests/unit/host-driver/rig.h"

static struct fabric fabric;
static struct host_driver_rig rig;

static void set_faults(const char *probability, const char *seed)
{
    rig_set("BANYAN_LOSS", probability);
    rig_set("BANYAN_DUP", probability);
    rig_set("BANYAN_REORDER", probability);
    rig_set("BANYAN_SEED", seed);
}

/* Runs all six collectives with banyan-perf's own code, which checks every element on every rank.
 * Returns the text of a failure, or NULL. */
static const char *run_all(const char *folder, uint64_t bytes)
{
    static char failure[300];
    struct perf_options options = {.iterations = 2, .warmup = 1, .blocking = true, .folder = folder};
    struct perf_world world;
    const char *said = NULL;

    if (perf_world_open(&world, &options, bytes) != PERF_RIGHT)
        return "the world cannot be opened";
    for (unsigned c = 1; said == NULL && c < BY_COLLECTIVE_COUNT; c++) {
        struct perf_result result = {
            .call = {.collective = c, .dtype = BANYAN_I32, .op = BANYAN_SUM, .root = 1}};
        uint32_t failed;

        result.call.count = c == BY_COLLECTIVE_ALLGATHER || c == BY_COLLECTIVE_REDUCE_SCATTER
                                ? bytes / 4 / world.size
                                : bytes / 4;
        if (perf_run(&world, &options, c, &result, &failed) != BANYAN_OK) {
            said = banyan_last_error();
        } else if (result.out_of_place.wrong + result.in_place.wrong > 0) {
            snprintf(failure, sizeof(failure), "%s: %" PRIu64 " wrong", by_collective_name(c),
                     result.out_of_place.wrong + result.in_place.wrong);
            said = failure;
        }
    }
    perf_world_close(&world);
    return said;
}

static void check_shape(const char *name)
{
    char folder[64];
    const char *said;

    rig_write(&fabric, folder);
    said = run_all(folder, 40000);
    if (said != NULL)
        fail_msg("%s: %s", name, said);
    for (int seed = 1; seed <= 8; seed++) {
        char text[16];

        snprintf(text, sizeof(text), "%d", seed);
        set_faults("0.03", text);
        said = run_all(folder, 20000);
        if (said != NULL)
            fail_msg("%s with faults, BANYAN_SEED=%d (LOSS, DUP, REORDER 0.03): %s", name, seed, said);
    }
    set_faults(NULL, NULL);
    rig_remove(folder);
}

static void add_tree(int root, int through_hosts, uint16_t window)
{
    int job = fabric.job_count > 0 ? 0 : fabric_job_add(&fabric, 1, 1);
    struct fabric_tree *tree = fabric_tree_add(&fabric, job, root, through_hosts, NULL);

    assert_non_null(tree);
    tree->window = window;
    tree->payload_max = 256;
}

static int find(const char *name)
{
    for (int n = 0; n < fabric.node_count; n++)
        if (strncmp(fabric.nodes[n].name, name, strlen(name)) == 0)
            return n;
    fail_msg("no node %s", name);
    return -1;
}

static int first_switch(void)
{
    for (int n = 0; n < fabric.node_count; n++)
        if (fabric.nodes[n].kind == BY_NODE_SWITCH && !fabric.nodes[n].plain)
            return n;
    fail_msg("no switch");
    return -1;
}

static void collectives_on_a_star_are_right_with_and_without_faults(void **state)
{
    (void)state;
    rig_star(&fabric, 4, 8);
    check_shape("star of 4");
}

static void collectives_through_several_levels_are_right(void **state)
{
    (void)state;
    memset(&fabric, 0, sizeof(fabric));
    fabric_leafspine(&fabric, 1, 2, 2, 10000, 1000, 0);
    fabric.job_count = 0;
    add_tree(first_switch(), 0, 4);
    check_shape("leaf-spine");
}

static void collectives_over_hosts_as_inner_nodes_are_right(void **state)
{
    (void)state;
    memset(&fabric, 0, sizeof(fabric));
    fabric_ring(&fabric, 4, 10000, 1000);
    fabric.job_count = 0;
    add_tree(find("h0"), 1, 8);
    add_tree(find("h2"), 1, 8);
    check_shape("ring of hosts");
}

static void collectives_through_switches_that_only_forward_are_right(void **state)
{
    (void)state;
    memset(&fabric, 0, sizeof(fabric));
    fabric_leafspine(&fabric, 1, 2, 2, 10000, 1000, 1);
    fabric.job_count = 0;
    add_tree(first_switch(), 0, 4);
    check_shape("leaf-spine with a plain spine");
}

static void an_allreduce_on_a_star_sends_the_data_of_each_host_once(void **state)
{
    struct banyan_request *request[RIG_RANKS_MAX];
    struct banyan_link link;
    static int32_t data[4][16384];
    uint64_t bytes = sizeof(data[0]);

    (void)state;
    rig_star(&fabric, 4, 16);
    rig_open(&rig, &fabric, 0);
    for (uint32_t r = 0; r < 4; r++) {
        for (int i = 0; i < 16384; i++)
            data[r][i] = i + (int)r;
        assert_int_equal(
            banyan_allreduce_init(rig.comm[r], data[r], data[r], 16384, BANYAN_I32, BANYAN_SUM, &request[r]),
            BANYAN_OK);
    }
    rig_finish(&rig, request);
    for (uint32_t r = 0; r < 4; r++)
        for (int i = 0; i < 16384; i++)
            assert_int_equal(data[r][i], 4 * i + 6);
    for (uint32_t i = 0; banyan_fabric_link(rig.fabric, i, &link) == BANYAN_OK; i++) {
        uint64_t roll = 4 * 4;              /* a nonce for each rank, in one packet */
        uint64_t packets = bytes / 256 + 2; /* with the roll, and the opening of the session */

        assert_int_equal(link.packets, packets);
        assert_int_equal(link.bytes, bytes + roll + packets * 82);
    }
    rig_close(&rig);
}

/* The ranks accumulate sums over several posts of the same requests. */
static void a_request_may_be_posted_again_and_again(void **state)
{
    struct banyan_request *request[RIG_RANKS_MAX];
    int32_t in[2], out[2];

    (void)state;
    rig_star(&fabric, 2, 2);
    rig_open(&rig, &fabric, 0);
    for (uint32_t r = 0; r < 2; r++)
        assert_int_equal(
            banyan_allreduce_init(rig.comm[r], &in[r], &out[r], 1, BANYAN_I32, BANYAN_SUM, &request[r]), 0);
    for (int round = 0; round < 1000; round++) {
        for (uint32_t r = 0; r < 2; r++) {
            in[r] = round * 10 + (int)r;
            assert_int_equal(banyan_post(request[r]), BANYAN_OK);
        }
        for (uint32_t r = 0; r < 2; r++) {
            int done = 0;

            while (!done)
                assert_int_equal(banyan_test(request[r], &done), BANYAN_OK);
            assert_int_equal(out[r], round * 20 + 1);
        }
    }
    rig_close(&rig); /* frees the requests too */
}

static void the_same_seed_gives_the_same_run(void **state)
{
    uint64_t counts[2][64];
    uint32_t counters = 0;

    (void)state;
    rig_star(&fabric, 3, 4);
    set_faults("0.05", "11");
    for (int run = 0; run < 2; run++) {
        struct banyan_request *request[RIG_RANKS_MAX];
        static float data[3][3000];

        rig_open(&rig, &fabric, 0);
        for (uint32_t r = 0; r < 3; r++)
            assert_int_equal(banyan_allreduce_init(rig.comm[r], data[r], data[r], 3000, BANYAN_F32,
                                                   BANYAN_SUM, &request[r]),
                             BANYAN_OK);
        rig_finish(&rig, request);
        for (counters = 0; counters < 64; counters++)
            if (banyan_comm_counter(rig.comm[0], counters, NULL, &counts[run][counters]) != BANYAN_OK)
                break;
        rig_close(&rig);
    }
    set_faults(NULL, NULL);
    assert_true(counters > 10 && counters < 64);
    assert_memory_equal(counts[0], counts[1], counters * sizeof(counts[0][0]));
}

static void a_rank_that_does_not_come_is_named_in_the_error(void **state)
{
    struct banyan_request *request[3];
    float data[3] = {1, 2, 3};
    float out[3];

    (void)state;
    rig_star(&fabric, 3, 4);
    rig_open(&rig, &fabric, 0);
    for (uint32_t r = 0; r < 3; r++)
        assert_int_equal(
            banyan_allreduce_init(rig.comm[r], &data[r], &out[r], 1, BANYAN_F32, BANYAN_SUM, &request[r]), 0);
    assert_int_equal(banyan_post(request[0]), BANYAN_OK);
    assert_int_equal(banyan_post(request[1]), BANYAN_OK);
    assert_int_equal(banyan_wait(request[0]), BANYAN_ETIMEDOUT);
    if (strstr(banyan_last_error(), "h2 (rank 2) has not contributed") == NULL)
        fail_msg("'%s' does not name rank 2", banyan_last_error());
    assert_int_equal(banyan_comm_async_error(rig.comm[0]), BANYAN_ETIMEDOUT);
    assert_int_equal(banyan_post(request[0]), BANYAN_ESTATE);
    assert_non_null(strstr(banyan_last_error(), "has failed"));
    rig_close(&rig);
}

static void ranks_in_different_operations_are_told_which(void **state)
{
    struct banyan_request *request[2];
    float in[2][8] = {{0}};
    float out[2][8];

    (void)state;
    rig_star(&fabric, 2, 4);
    rig_open(&rig, &fabric, 0);
    assert_int_equal(
        banyan_allreduce_init(rig.comm[0], in[0], out[0], 8, BANYAN_F32, BANYAN_SUM, &request[0]), 0);
    assert_int_equal(
        banyan_allreduce_init(rig.comm[1], in[1], out[1], 8, BANYAN_F32, BANYAN_MAX, &request[1]), 0);
    assert_int_equal(banyan_post(request[0]), BANYAN_OK);
    assert_int_equal(banyan_post(request[1]), BANYAN_OK);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(banyan_wait(request[r]), BANYAN_EMISMATCH);
        if (strstr(banyan_last_error(), "sum") == NULL || strstr(banyan_last_error(), "max") == NULL ||
            strstr(banyan_last_error(), "rank") == NULL)
            fail_msg("'%s' does not name both operators and ranks", banyan_last_error());
    }
    rig_close(&rig);
}

static void an_abort_ends_what_runs(void **state)
{
    struct banyan_request *request;
    float in = 1;
    float out;

    (void)state;
    rig_star(&fabric, 2, 4);
    rig_open(&rig, &fabric, 0);
    assert_int_equal(banyan_allreduce_init(rig.comm[0], &in, &out, 1, BANYAN_F32, BANYAN_SUM, &request),
                     BANYAN_OK);
    assert_int_equal(banyan_post(request), BANYAN_OK);
    assert_int_equal(banyan_comm_async_error(rig.comm[0]), BANYAN_OK);
    assert_int_equal(banyan_abort(rig.comm[0]), BANYAN_OK);
    assert_int_equal(banyan_wait(request), BANYAN_EABORTED);
    assert_int_equal(banyan_comm_async_error(rig.comm[0]), BANYAN_EABORTED);
    assert_int_equal(banyan_post(request), BANYAN_ESTATE);
    rig_close(&rig);
}

static void operations_of_no_elements_end_at_once(void **state)
{
    struct banyan_request *request;
    int done = 0;

    (void)state;
    rig_star(&fabric, 2, 4);
    rig_open(&rig, &fabric, 0);
    assert_int_equal(banyan_allreduce_init(rig.comm[0], NULL, NULL, 0, BANYAN_F32, BANYAN_SUM, &request),
                     BANYAN_OK);
    assert_int_equal(banyan_post(request), BANYAN_OK);
    assert_int_equal(banyan_test(request, &done), BANYAN_OK);
    assert_int_equal(done, 1);
    rig_close(&rig);
}

static void a_folder_without_tables_or_with_one_missing_is_refused(void **state)
{
    struct banyan_fabric *opened;
    char folder[64], path[128];

    (void)state;
    assert_int_equal(banyan_fabric_open("/nonexistent", &opened), BANYAN_ENOENT);
    assert_non_null(strstr(banyan_last_error(), "/nonexistent"));
    rig_star(&fabric, 3, 4);
    rig_write(&fabric, folder);
    snprintf(path, sizeof(path), "%s/h1.table", folder);
    assert_int_equal(remove(path), 0);
    assert_int_equal(banyan_fabric_open(folder, &opened), BANYAN_ENOENT);
    assert_non_null(strstr(banyan_last_error(), "is a table missing?"));
    rig_remove(folder);
    assert_int_equal(banyan_fabric_open("/tmp/../tmp/..", &opened), BANYAN_ENOENT);
}

static void a_damaged_table_is_refused_with_its_path(void **state)
{
    struct banyan_fabric *opened;
    char folder[64], path[128];
    FILE *file;

    (void)state;
    rig_star(&fabric, 2, 4);
    rig_write(&fabric, folder);
    snprintf(path, sizeof(path), "%s/h1.table", folder);
    file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, 200, SEEK_SET);
    fputc(0x5a, file);
    fclose(file);
    assert_true(banyan_fabric_open(folder, &opened) != BANYAN_OK);
    assert_non_null(strstr(banyan_last_error(), "h1.table"));
    assert_int_equal(truncate(path, 100), 0);
    assert_true(banyan_fabric_open(folder, &opened) != BANYAN_OK);
    assert_non_null(strstr(banyan_last_error(), "h1.table"));
    rig_remove(folder);
}

static void two_jobs_share_the_switches(void **state)
{
    struct banyan_comm *comm[2][2];
    struct banyan_request *request[2][2];
    int32_t in[2][2], out[2][2];

    (void)state;
    rig_star(&fabric, 2, 4);
    {
        int job = fabric_job_add(&fabric, 2, 1);
        struct fabric_tree *tree = fabric_tree_add(&fabric, job, first_switch(), 0, NULL);

        assert_non_null(tree);
        tree->window = 4;
        tree->payload_max = 256;
    }
    rig_open(&rig, &fabric, 1);
    for (int r = 0; r < 2; r++) {
        comm[0][r] = rig.comm[r];
        assert_int_equal(banyan_comm_create(rig.context[r], 2, &comm[1][r]), BANYAN_OK);
    }
    for (int j = 0; j < 2; j++) {
        for (int r = 0; r < 2; r++) {
            in[j][r] = 100 * j + r;
            assert_int_equal(banyan_allreduce_init(comm[j][r], &in[j][r], &out[j][r], 1, BANYAN_I32,
                                                   BANYAN_SUM, &request[j][r]),
                             0);
            assert_int_equal(banyan_post(request[j][r]), BANYAN_OK);
        }
    }
    for (int j = 0; j < 2; j++) {
        for (int r = 0; r < 2; r++) {
            assert_int_equal(banyan_wait(request[j][r]), BANYAN_OK);
            assert_int_equal(out[j][r], 200 * j + 1);
        }
    }
    for (int r = 0; r < 2; r++)
        assert_int_equal(banyan_comm_destroy(comm[1][r]), BANYAN_OK);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_on_a_star_are_right_with_and_without_faults),
        cmocka_unit_test(collectives_through_several_levels_are_right),
        cmocka_unit_test(collectives_over_hosts_as_inner_nodes_are_right),
        cmocka_unit_test(collectives_through_switches_that_only_forward_are_right),
        cmocka_unit_test(an_allreduce_on_a_star_sends_the_data_of_each_host_once),
        cmocka_unit_test(a_request_may_be_posted_again_and_again),
        cmocka_unit_test(the_same_seed_gives_the_same_run),
        cmocka_unit_test(a_rank_that_does_not_come_is_named_in_the_error),
        cmocka_unit_test(ranks_in_different_operations_are_told_which),
        cmocka_unit_test(an_abort_ends_what_runs),
        cmocka_unit_test(operations_of_no_elements_end_at_once),
        cmocka_unit_test(a_folder_without_tables_or_with_one_missing_is_refused),
        cmocka_unit_test(a_damaged_table_is_refused_with_its_path),
        cmocka_unit_test(two_jobs_share_the_switches),
    };

    setenv("HOME", "/nonexistent", 1);
    rig_set("BANYAN_LOG", "0");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

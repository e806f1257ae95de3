/* Misuse of the public interface: every wrong argument and every wrong order gets an error that
 * names it, without damage. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/host-driver/rig.h"

#define RANKS 2

static struct host_driver_rig rig;
static float send[64], recv[64];

static int open_star(void **state)
{
    static struct fabric fabric;

    (void)state;
    rig_set("BANYAN_LOG", "0");
    rig_star(&fabric, RANKS, 4);
    rig_open(&rig, &fabric, 0);
    return 0;
}

static int close_star(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static void null_arguments_are_named(void **state)
{
    struct banyan_request *request;
    struct banyan_context *context;
    struct banyan_comm *comm;
    int done;

    (void)state;
    expect(banyan_init(NULL, NULL), BANYAN_EINVAL, "context is NULL");
    expect(banyan_finalize(NULL), BANYAN_EINVAL, "context is NULL");
    expect(banyan_comm_create(NULL, 0, &comm), BANYAN_EINVAL, "context is NULL");
    expect(banyan_comm_create(rig.context[0], 0, NULL), BANYAN_EINVAL, "comm is NULL");
    expect(banyan_comm_destroy(NULL), BANYAN_EINVAL, "comm is NULL");
    expect(banyan_abort(NULL), BANYAN_EINVAL, "comm is NULL");
    expect(banyan_comm_async_error(NULL), BANYAN_EINVAL, "comm is NULL");
    expect(banyan_comm_counter(NULL, 0, NULL, NULL), BANYAN_EINVAL, "comm is NULL");
    expect(banyan_fabric_open(NULL, &rig.fabric), BANYAN_EINVAL, "folder is NULL");
    expect(banyan_fabric_open("/tmp", NULL), BANYAN_EINVAL, "fabric is NULL");
    expect(banyan_fabric_close(NULL), BANYAN_EINVAL, "fabric is NULL");
    expect(banyan_fabric_link(rig.fabric, 0, NULL), BANYAN_EINVAL, "link is NULL");
    assert_null(banyan_fabric_host(NULL, 0));
    assert_null(banyan_comm_transport(NULL));
    assert_int_equal(banyan_comm_rank(NULL), 0);
    assert_int_equal(banyan_comm_size(NULL), 0);
    banyan_config_init(NULL);
    expect(banyan_barrier_init(NULL, &request), BANYAN_EINVAL, "comm is NULL");
    expect(banyan_barrier_init(rig.comm[0], NULL), BANYAN_EINVAL, "request is NULL");
    expect(banyan_allreduce(rig.comm[0], NULL, recv, 4, BANYAN_F32, BANYAN_SUM), BANYAN_EINVAL,
           "send is NULL");
    expect(banyan_allreduce(rig.comm[0], send, NULL, 4, BANYAN_F32, BANYAN_SUM), BANYAN_EINVAL,
           "recv is NULL");
    expect(banyan_broadcast(rig.comm[0], NULL, 4, BANYAN_F32, 0), BANYAN_EINVAL, "buffer is NULL");
    expect(banyan_reduce(rig.comm[0], send, NULL, 4, BANYAN_F32, BANYAN_SUM, 0), BANYAN_EINVAL,
           "recv is NULL");
    expect(banyan_post(NULL), BANYAN_EINVAL, "request is NULL");
    expect(banyan_wait(NULL), BANYAN_EINVAL, "request is NULL");
    expect(banyan_test(NULL, &done), BANYAN_EINVAL, "request is NULL");
    expect(banyan_wait_for(NULL, 1, &done), BANYAN_EINVAL, "request is NULL");
    assert_int_equal(banyan_comm_serves(NULL, BANYAN_ALLREDUCE, 0), 0);
    expect(banyan_free(NULL), BANYAN_EINVAL, "request is NULL");
    context = NULL;
    assert_null(context);
}

static void operators_and_types_that_do_not_exist_or_fit_are_refused(void **state)
{
    struct banyan_request *request;

    (void)state;
    expect(banyan_allreduce_init(rig.comm[0], send, recv, 4, (banyan_dtype_t)0, BANYAN_SUM, &request),
           BANYAN_EINVAL, "type 0 is unknown");
    expect(banyan_allreduce_init(rig.comm[0], send, recv, 4, (banyan_dtype_t)4711, BANYAN_SUM, &request),
           BANYAN_EINVAL, "unknown");
    expect(banyan_allreduce_init(rig.comm[0], send, recv, 4, BANYAN_F32, (banyan_op_t)0, &request),
           BANYAN_EINVAL, "operator 0 is unknown");
    expect(banyan_allreduce_init(rig.comm[0], send, recv, 4, BANYAN_F32, (banyan_op_t)99, &request),
           BANYAN_EINVAL, "operator 99 is unknown");
    expect(banyan_allreduce_init(rig.comm[0], send, recv, 4, BANYAN_F32, BANYAN_BXOR, &request),
           BANYAN_EUNSUPPORTED, "bxor is not defined on f32");
    assert_int_equal(banyan_supports(BANYAN_BXOR, BANYAN_F32), 0);
    assert_int_equal(banyan_supports(BANYAN_BXOR, BANYAN_I32), 1);
    assert_int_equal(banyan_supports(BANYAN_SUM, BANYAN_BF16), 1);
    assert_int_equal(banyan_supports((banyan_op_t)0, BANYAN_F32), 0);
    assert_int_equal(banyan_supports((banyan_op_t)200, (banyan_dtype_t)200), 0);
    assert_int_equal(banyan_dtype_size(BANYAN_BF16), 2);
    assert_int_equal(banyan_dtype_size((banyan_dtype_t)77), 0);
    assert_string_equal(banyan_op_name(BANYAN_BXOR), "bxor");
    assert_string_equal(banyan_dtype_name((banyan_dtype_t)77), "?");
}

static void a_root_that_is_no_rank_is_refused(void **state)
{
    (void)state;
    expect(banyan_broadcast(rig.comm[0], send, 4, BANYAN_F32, RANKS), BANYAN_EINVAL,
           "root 2 is not a rank; the job has 2");
    expect(banyan_reduce(rig.comm[0], send, recv, 4, BANYAN_F32, BANYAN_SUM, 65536), BANYAN_EINVAL,
           "not a rank");
}

static void counts_beyond_the_address_space_are_refused(void **state)
{
    (void)state;
    expect(banyan_allgather(rig.comm[0], send, recv, UINT64_MAX / 4, BANYAN_F32), BANYAN_ELIMIT,
           "address space");
    expect(banyan_allreduce(rig.comm[0], send, recv, UINT64_MAX, BANYAN_F64, BANYAN_SUM), BANYAN_ELIMIT,
           "address space");
}

static void buffers_may_overlap_only_in_place(void **state)
{
    struct banyan_request *request;
    struct banyan_comm *one = rig.comm[1];

    (void)state;
    expect(banyan_allreduce_init(one, send, send + 1, 8, BANYAN_F32, BANYAN_SUM, &request), BANYAN_EINVAL,
           "overlap");
    expect(banyan_allgather_init(one, send, send, 8, BANYAN_F32, &request), BANYAN_EINVAL,
           "send == recv + rank * count");
    expect(banyan_reduce_scatter_init(one, send, send, 8, BANYAN_F32, BANYAN_SUM, &request), BANYAN_EINVAL,
           "recv == send + rank * count");
    assert_int_equal(banyan_allreduce_init(one, send, send, 8, BANYAN_F32, BANYAN_SUM, &request), BANYAN_OK);
    assert_int_equal(banyan_free(request), BANYAN_OK);
    assert_int_equal(banyan_allreduce_init(one, send, send + 8, 8, BANYAN_F32, BANYAN_SUM, &request),
                     BANYAN_OK);
    assert_int_equal(banyan_free(request), BANYAN_OK);
    assert_int_equal(banyan_allgather_init(one, send + 8, send, 8, BANYAN_F32, &request), BANYAN_OK);
    assert_int_equal(banyan_free(request), BANYAN_OK);
    assert_int_equal(banyan_reduce_scatter_init(one, send, send + 8, 8, BANYAN_F32, BANYAN_SUM, &request),
                     BANYAN_OK);
    assert_int_equal(banyan_free(request), BANYAN_OK);
}

static void a_request_is_freed_once(void **state)
{
    struct banyan_request *request, *other;
    int done;

    (void)state;
    assert_int_equal(banyan_barrier_init(rig.comm[0], &request), BANYAN_OK);
    assert_int_equal(banyan_barrier_init(rig.comm[0], &other), BANYAN_OK);
    assert_int_equal(banyan_free(request), BANYAN_OK);
    expect(banyan_free(request), BANYAN_EINVAL, "freed already");
    expect(banyan_post(request), BANYAN_EINVAL, "freed already");
    expect(banyan_wait(request), BANYAN_EINVAL, "freed already");
    expect(banyan_test(request, &done), BANYAN_EINVAL, "freed already");
    assert_int_equal(banyan_free(other), BANYAN_OK);
}

static void a_request_is_posted_before_it_is_waited_for_and_once_at_a_time(void **state)
{
    struct banyan_request *request[RANKS];
    int done = 7;

    (void)state;
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(banyan_barrier_init(rig.comm[r], &request[r]), BANYAN_OK);
    expect(banyan_wait(request[0]), BANYAN_ESTATE, "never posted");
    expect(banyan_test(request[0], &done), BANYAN_ESTATE, "never posted");
    assert_int_equal(done, 0);
    expect(banyan_test(request[0], NULL), BANYAN_EINVAL, "done is NULL");
    assert_int_equal(banyan_post(request[0]), BANYAN_OK);
    expect(banyan_post(request[0]), BANYAN_EBUSY, "still runs");
    expect(banyan_free(request[0]), BANYAN_EBUSY, "still runs");
    assert_int_equal(banyan_test(request[0], &done), BANYAN_OK);
    assert_int_equal(done, 0);
    assert_int_equal(banyan_post(request[1]), BANYAN_OK);
    assert_int_equal(banyan_wait(request[0]), BANYAN_OK);
    assert_int_equal(banyan_wait(request[0]), BANYAN_OK);
    assert_int_equal(banyan_test(request[0], &done), BANYAN_OK);
    assert_int_equal(done, 1);
    assert_int_equal(banyan_wait(request[1]), BANYAN_OK);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(banyan_free(request[r]), BANYAN_OK);
}

static void a_wait_ends_when_its_time_is_over(void **state)
{
    struct banyan_request *request[RANKS];
    int done = 7;

    (void)state;
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(banyan_barrier_init(rig.comm[r], &request[r]), BANYAN_OK);
    expect(banyan_wait_for(request[0], 1000, &done), BANYAN_ESTATE, "never posted");
    expect(banyan_wait_for(request[0], 1000, NULL), BANYAN_EINVAL, "done is NULL");
    assert_int_equal(banyan_post(request[0]), BANYAN_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(banyan_wait_for(request[0], 1000, &done), BANYAN_OK);
        assert_int_equal(done, 0);
    }
    assert_int_equal(banyan_post(request[1]), BANYAN_OK);
    assert_int_equal(banyan_wait_for(request[0], UINT64_MAX, &done), BANYAN_OK);
    assert_int_equal(done, 1);
    assert_int_equal(banyan_wait_for(request[0], 0, &done), BANYAN_OK);
    assert_int_equal(done, 1);
    assert_int_equal(banyan_wait(request[1]), BANYAN_OK);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(banyan_free(request[r]), BANYAN_OK);
}

static void what_a_table_serves_can_be_asked(void **state)
{
    (void)state;
    for (int c = BANYAN_ALLREDUCE; c <= BANYAN_BARRIER; c++)
        for (uint32_t root = 0; root < RANKS; root++)
            assert_int_equal(banyan_comm_serves(rig.comm[0], (banyan_collective_t)c, root), 1);
    assert_int_equal(banyan_comm_serves(rig.comm[0], BANYAN_REDUCE, RANKS), 0);
    assert_int_equal(banyan_comm_serves(rig.comm[0], (banyan_collective_t)0, 0), 0);
    assert_int_equal(banyan_comm_serves(rig.comm[0], (banyan_collective_t)7, 0), 0);
}

static void a_folder_of_tables_holds_one_for_this_host(void **state)
{
    char path[256], folder[64], name[65] = "";
    struct banyan_context *context;
    struct banyan_config config;
    struct fabric fabric;

    (void)state;
    rig_star(&fabric, RANKS, 4);
    rig_write(&fabric, folder);
    banyan_config_init(&config);
    config.table = folder;
    assert_int_equal(gethostname(name, sizeof(name) - 1), 0);
    name[strcspn(name, ".")] = 0;
    expect(banyan_init(&config, &context), BANYAN_ENOENT, name);
    snprintf(path, sizeof(path), "%s/%s.table", folder, name);
    assert_int_equal(symlink("h0.table", path), 0);
    assert_int_equal(banyan_init(&config, &context), BANYAN_OK);
    assert_int_equal(banyan_finalize(context), BANYAN_OK);
    assert_int_equal(unlink(path), 0);
    rig_remove(folder);
}

static void more_posts_than_the_limit_are_refused_until_one_ends(void **state)
{
    struct banyan_request *request[RANKS][65];

    (void)state;
    for (int r = 0; r < RANKS; r++) {
        for (int i = 0; i < 65; i++)
            assert_int_equal(banyan_barrier_init(rig.comm[r], &request[r][i]), BANYAN_OK);
        for (int i = 0; i < 64; i++)
            assert_int_equal(banyan_post(request[r][i]), BANYAN_OK);
        expect(banyan_post(request[r][64]), BANYAN_EAGAIN, "64 operations are running");
    }
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < 64; i++)
            assert_int_equal(banyan_wait(request[r][i]), BANYAN_OK);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(banyan_post(request[r][64]), BANYAN_OK);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(banyan_wait(request[r][64]), BANYAN_OK);
        for (int i = 0; i < 65; i++)
            assert_int_equal(banyan_free(request[r][i]), BANYAN_OK);
    }
}

static void what_is_in_use_is_not_freed(void **state)
{
    (void)state;
    expect(banyan_finalize(rig.context[0]), BANYAN_EBUSY, "1 communicators exist");
    expect(banyan_fabric_close(rig.fabric), BANYAN_EBUSY, "still uses the fabric");
}

static void a_config_of_another_size_is_refused(void **state)
{
    struct banyan_context *context;
    struct banyan_config config;

    (void)state;
    memset(&config, 0, sizeof(config));
    expect(banyan_init(&config, &context), BANYAN_EVERSION, "call banyan_config_init");
    banyan_config_init(&config);
    config.transport = "pigeon";
    expect(banyan_init(&config, &context), BANYAN_EINVAL, "transport 'pigeon' is unknown");
    config.transport = NULL;
    expect(banyan_init(&config, &context), BANYAN_EINVAL, "set BANYAN_TABLE");
    config.table = "/nonexistent/h0.table";
    expect(banyan_init(&config, &context), BANYAN_ENOENT, "/nonexistent/h0.table");
    config.table = "/proc/self/exe";
    expect(banyan_init(&config, &context), BANYAN_EFORMAT, "/proc/self/exe");
    config.fabric = rig.fabric;
    expect(banyan_init(&config, &context), BANYAN_EINVAL, "config.host is NULL");
    config.host = "nobody";
    expect(banyan_init(&config, &context), BANYAN_ENOENT, "no host 'nobody'");
}

static void a_job_that_is_not_in_the_table_is_refused_with_those_that_are(void **state)
{
    struct banyan_comm *comm;

    (void)state;
    expect(banyan_comm_create(rig.context[0], 9, &comm), BANYAN_ENOENT, "no job 9; it has: 1");
    expect(banyan_comm_create(rig.context[0], 1, &comm), BANYAN_EBUSY, "has a communicator");
}

static void objects_of_another_kind_are_not_taken(void **state)
{
    uint64_t nothing[64] = {0};

    (void)state;
    expect(banyan_comm_destroy((struct banyan_comm *)nothing), BANYAN_EINVAL, "not a communicator");
    expect(banyan_finalize((struct banyan_context *)nothing), BANYAN_EINVAL, "not a context");
    expect(banyan_post((struct banyan_request *)nothing), BANYAN_EINVAL, "not a request");
}

static void versions_and_texts_are_there(void **state)
{
    (void)state;
    assert_int_equal(banyan_version(), BANYAN_VERSION);
    for (int s = 0; s >= -18; s--)
        assert_string_not_equal(banyan_strerror((banyan_status_t)s), "unknown error");
    assert_string_equal(banyan_strerror((banyan_status_t)-99), "unknown error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_arguments_are_named),
        cmocka_unit_test(operators_and_types_that_do_not_exist_or_fit_are_refused),
        cmocka_unit_test(a_root_that_is_no_rank_is_refused),
        cmocka_unit_test(counts_beyond_the_address_space_are_refused),
        cmocka_unit_test(buffers_may_overlap_only_in_place),
        cmocka_unit_test(a_request_is_freed_once),
        cmocka_unit_test(a_request_is_posted_before_it_is_waited_for_and_once_at_a_time),
        cmocka_unit_test(a_wait_ends_when_its_time_is_over),
        cmocka_unit_test(what_a_table_serves_can_be_asked),
        cmocka_unit_test(a_folder_of_tables_holds_one_for_this_host),
        cmocka_unit_test(more_posts_than_the_limit_are_refused_until_one_ends),
        cmocka_unit_test(what_is_in_use_is_not_freed),
        cmocka_unit_test(a_config_of_another_size_is_refused),
        cmocka_unit_test(a_job_that_is_not_in_the_table_is_refused_with_those_that_are),
        cmocka_unit_test(objects_of_another_kind_are_not_taken),
        cmocka_unit_test(versions_and_texts_are_there),
    };

    return cmocka_run_group_tests(tests, open_star, close_star);
}

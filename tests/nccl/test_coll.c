/*
 * CollNet of the NCCL plugin: ranks are threads, which libbanyan connects on the loopback
 * interface. All operations in every version of the interface; ranks that agree, or do not, alike;
 * ranks that are missing or end; wrong use. tests/lab/lab-nccl.sh has ranks on real switches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/nccl/work.h"
#include "tests/open_files.h"

#define RANKS 3

static struct nccl_driver driver;

/* ---- ranks as threads ---- */

struct coll_table {
    pthread_barrier_t barrier;
    char data[RANKS][BY_NCCL_HANDLE_BYTES];
};

struct coll_thread {
    pthread_t thread;
    struct nccl_work work;
    struct coll_table *table;
    int present; /* else it only shares its handle */
    int leaves;  /* after the connection */
    int result;
    char log[512];
};

static void share(void *context, const void *mine, void *all, size_t bytes)
{
    struct coll_thread *thread = context;

    memcpy(thread->table->data[thread->work.rank], mine, bytes);
    pthread_barrier_wait(&thread->table->barrier);
    for (int i = 0; i < RANKS; i++)
        memcpy((char *)all + (size_t)i * bytes, thread->table->data[i], bytes);
    pthread_barrier_wait(&thread->table->barrier);
}

static void *run_rank(void *argument)
{
    struct coll_thread *thread = argument;
    char all[RANKS * BY_NCCL_HANDLE_BYTES];
    uint8_t mine[BY_NCCL_HANDLE_BYTES];
    void *listener;

    if (!thread->present) {
        thread->result = nccl_coll_listen(thread->work.driver, mine, &listener);
        share(thread, mine, all, sizeof(mine));
        nccl_coll_close_listener(thread->work.driver, listener);
        return NULL;
    }
    thread->result = nccl_work_open(&thread->work);
    if (thread->result == BY_NCCL_OK && !thread->leaves)
        thread->result = nccl_work_run(&thread->work);
    memcpy(thread->log, nccl_log_last(), sizeof(thread->log) - 1);
    if (thread->work.coll != NULL && nccl_work_close(&thread->work) != BY_NCCL_OK)
        thread->result = -2;
    return NULL;
}

static struct coll_table table;

static void start_ranks(struct coll_thread *threads, int present, int leaves)
{
    pthread_barrier_init(&table.barrier, NULL, RANKS);
    memset(threads, 0, RANKS * sizeof(*threads));
    for (int i = 0; i < RANKS; i++) {
        threads[i].table = &table;
        threads[i].present = i < present;
        threads[i].leaves = i >= leaves;
        threads[i].work = (struct nccl_work){.driver = &driver,
                                             .rank = i,
                                             .ranks = RANKS,
                                             .share = share,
                                             .context = &threads[i],
                                             .largest = 300000};
        assert_int_equal(pthread_create(&threads[i].thread, NULL, run_rank, &threads[i]), 0);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i].thread, NULL);
    pthread_barrier_destroy(&table.barrier);
}

static void open_version(int version, const char *mode, const char *timeout)
{
    setenv("BANYAN_NCCL_INTERFACE", "lo", 1);
    setenv("BANYAN_NCCL_COLLNET", mode, 1);
    setenv("BANYAN_TIMEOUT", timeout, 1);
    setenv("BANYAN_LOG", "0", 1);
    unsetenv("BANYAN_TABLE");
    assert_int_equal(nccl_driver_open(&driver, version), BY_NCCL_OK);
    assert_int_equal(nccl_coll_init(&driver), BY_NCCL_OK);
}

static void close_version(void)
{
    nccl_coll_finish(&driver);
    nccl_driver_close(&driver);
}

/* ---- tests ---- */

static void all_operations_are_right_in_every_version(void **state)
{
    struct coll_thread threads[RANKS];

    (void)state;
    for (int version = NCCL_VERSION_FIRST; version <= NCCL_VERSION_LAST; version++) {
        unsigned files;
        int count;

        open_version(version, "on", "20");
        assert_int_equal(nccl_coll_devices(&driver, &count), BY_NCCL_OK);
        assert_int_equal(count, 1);
        files = open_files();
        start_ranks(threads, RANKS, RANKS);
        for (int i = 0; i < RANKS; i++) {
            assert_string_equal(threads[i].work.fault, "");
            assert_int_equal(threads[i].result, BY_NCCL_OK);
            assert_int_equal(threads[i].work.operations, threads[0].work.operations);
        }
        assert_true(threads[0].work.operations > 180);
        assert_int_equal(open_files(), files);
        close_version();
    }
}

static void ranks_without_a_table_agree_not_to_use_it(void **state)
{
    struct coll_thread threads[RANKS];
    unsigned files;

    (void)state;
    open_version(12, "auto", "20");
    files = open_files();
    start_ranks(threads, RANKS, RANKS);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(threads[i].result, BY_NCCL_SYSTEM);
        assert_non_null(strstr(threads[i].log, "CollNet not used: rank 0"));
        assert_non_null(strstr(threads[i].log, "no trees"));
    }
    assert_int_equal(open_files(), files);
    close_version();
}

static void a_missing_rank_is_named_within_the_timeout(void **state)
{
    struct coll_thread threads[RANKS];

    (void)state;
    open_version(11, "on", "1");
    start_ranks(threads, RANKS - 1, RANKS);
    for (int i = 0; i < RANKS - 1; i++)
        assert_int_equal(threads[i].result, BY_NCCL_SYSTEM);
    assert_non_null(strstr(threads[0].log, "CollNet not used: rank 2 has not connected"));
    assert_non_null(strstr(threads[1].log, "CollNet not used"));
    close_version();
}

static void a_rank_that_leaves_ends_the_operations_of_the_others(void **state)
{
    struct coll_thread threads[RANKS];

    (void)state;
    open_version(9, "on", "2");
    start_ranks(threads, RANKS, RANKS - 1);
    for (int i = 0; i < RANKS - 1; i++) {
        assert_int_equal(threads[i].result, -1);
        assert_non_null(strstr(threads[i].work.fault, "an operation failed"));
    }
    assert_int_equal(threads[RANKS - 1].result, BY_NCCL_OK);
    close_version();
}

static void off_offers_no_device(void **state)
{
    int count = -1;

    (void)state;
    open_version(8, "off", "2");
    assert_int_equal(nccl_coll_devices(&driver, &count), BY_NCCL_OK);
    assert_int_equal(count, 0);
    assert_non_null(strstr(nccl_log_last(), "CollNet not used: BANYAN_NCCL_COLLNET is off"));
    close_version();
}

static void check_wrong_use(struct nccl_work *work)
{
    struct by_nccl_piece piece = {NULL, NULL, 64};
    char data[64];
    void *memory, *request = NULL, *coll = work->coll;
    int done;

    assert_int_equal(nccl_coll_add_memory(&driver, coll, data, 64, BY_NCCL_MEMORY_CUDA, &memory),
                     BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_coll_add_memory(&driver, coll, data, 64, BY_NCCL_MEMORY_HOST, &memory), BY_NCCL_OK);
    piece.memory = memory;
    piece.data = data;
    /* type, operator, registration, bounds */
    assert_int_equal(
        nccl_coll_allreduce(&driver, coll, data, data, 4, BY_NCCL_TYPES, 0, memory, memory, &request),
        BY_NCCL_ARGUMENT);
    assert_int_equal(
        nccl_coll_allreduce(&driver, coll, data, data, 4, 2, BY_NCCL_OPS, memory, memory, &request),
        BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_coll_allreduce(&driver, coll, data, data, 17, 2, 0, memory, memory, &request),
                     BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_coll_allreduce(&driver, coll, data, data, 4, 2, 0, NULL, memory, &request),
                     BY_NCCL_ARGUMENT);
    /* windows and pieces */
    assert_int_equal(nccl_coll_allgather(&driver, coll, data, 1, &piece, 16, 40, 16, memory, &request),
                     BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_coll_allgather(&driver, coll, data, 1, &piece, 32, 0, 96, memory, &request),
                     BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_coll_allgather(&driver, coll, data, 2, &piece, 16, 0, 48, memory, &request),
                     BY_NCCL_ARGUMENT);
    assert_int_equal(
        nccl_coll_reduce_scatter(&driver, coll, 1, &piece, data, 16, 2, 8, BY_NCCL_F32, 0, memory, &request),
        BY_NCCL_ARGUMENT);
    assert_null(request);
    assert_int_equal(nccl_coll_test(&driver, coll, &done, NULL), BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_coll_test(&driver, NULL, &done, NULL), BY_NCCL_ARGUMENT);
    assert_int_equal(driver.test(coll, &done, NULL), BY_NCCL_ARGUMENT);
    assert_int_equal(driver.close_sender(coll), BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_coll_close_listener(&driver, coll), BY_NCCL_ARGUMENT);
}

static pthread_barrier_t both;

static void *use_wrongly(void *argument)
{
    struct coll_thread *thread = argument;

    thread->result = nccl_work_open(&thread->work);
    if (thread->result == BY_NCCL_OK && thread->work.rank == 0)
        check_wrong_use(&thread->work);
    pthread_barrier_wait(&both);
    if (thread->result == BY_NCCL_OK)
        thread->result = nccl_work_close(&thread->work);
    return NULL;
}

static void wrong_use_is_refused(void **state)
{
    struct coll_thread threads[RANKS];
    void *coll;

    (void)state;
    open_version(10, "on", "20");
    pthread_barrier_init(&table.barrier, NULL, RANKS);
    pthread_barrier_init(&both, NULL, RANKS);
    memset(threads, 0, sizeof(threads));
    for (int i = 0; i < RANKS; i++) {
        threads[i].table = &table;
        threads[i].work = (struct nccl_work){
            .driver = &driver, .rank = i, .ranks = RANKS, .share = share, .context = &threads[i]};
    }
    /* rank 0 is this thread, in which asserts end the test */
    for (int i = 1; i < RANKS; i++)
        assert_int_equal(pthread_create(&threads[i].thread, NULL, use_wrongly, &threads[i]), 0);
    use_wrongly(&threads[0]);
    for (int i = 1; i < RANKS; i++)
        pthread_join(threads[i].thread, NULL);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(threads[i].result, BY_NCCL_OK);
    assert_int_equal(nccl_coll_close(&driver, threads[0].work.coll), BY_NCCL_ARGUMENT);
    assert_int_equal(nccl_coll_connect(&driver, NULL, RANKS, 0, NULL, &coll), BY_NCCL_ARGUMENT);
    close_version();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_operations_are_right_in_every_version),
        cmocka_unit_test(ranks_without_a_table_agree_not_to_use_it),
        cmocka_unit_test(a_missing_rank_is_named_within_the_timeout),
        cmocka_unit_test(a_rank_that_leaves_ends_the_operations_of_the_others),
        cmocka_unit_test(off_offers_no_device),
        cmocka_unit_test(wrong_use_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The tuner of the NCCL plugin, loaded as NCCL loads it: it replaces the predicted times of CollNet
 * in every version of the interface, and nothing else; wrong settings and wrong use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/plugin/nccl/tuner_abi.h"
#include "tests/nccl/driver.h"

#define ALGORITHMS 7
#define PROTOCOLS  3
#define RING       1
#define ALLGATHER  2

static struct nccl_driver driver;

static const void *table_of(int version)
{
    char name[] = "ncclTunerPlugin_v0";
    const void *found;

    name[sizeof(name) - 2] = (char)('0' + version);
    found = dlsym(driver.library, name);
    assert_non_null(found);
    return found;
}

static int init(int version, size_t nodes, void **context)
{
    switch (version) {
    case 2:
        return ((const struct by_nccl_tuner_v2 *)table_of(2))->init(nodes, nodes, nccl_logger, context);
    case 5:
        return ((const struct by_nccl_tuner_v5 *)table_of(5))
            ->init(context, 7, nodes, nodes, nccl_logger, NULL, NULL);
    default: /* 3 and 4 are alike here */
        return ((const struct by_nccl_tuner_v3 *)table_of(version))->init(nodes, nodes, nccl_logger, context);
    }
}

static int predict(int version, void *context, int collective, size_t bytes, int operations, float *times,
                   int algorithms)
{
    int channels = 0;

    if (version == 3)
        return ((const struct by_nccl_tuner_v3 *)table_of(3))
            ->predict(context, collective, bytes, operations, (float **)times, algorithms, PROTOCOLS,
                      &channels);
    if (version == 4)
        return ((const struct by_nccl_tuner_v4 *)table_of(4))
            ->predict(context, collective, bytes, operations, (float **)times, algorithms, PROTOCOLS, 0,
                      &channels);
    return ((const struct by_nccl_tuner_v5 *)table_of(5))
        ->predict(context, collective, bytes, operations, (float **)times, algorithms, PROTOCOLS, 1,
                  &channels);
}

static int finish(int version, void *context)
{
    return version == 5
               ? ((const struct by_nccl_tuner_v5 *)table_of(5))->finish(context)
               : ((const struct by_nccl_tuner_v3 *)table_of(version == 2 ? 3 : version))->finish(context);
}

/* NCCL's table of an allreduce: the ring, and both forms of CollNet with `collnet` or more. */
static void fill(float times[ALGORITHMS][PROTOCOLS], float ring, float collnet)
{
    for (int i = 0; i < ALGORITHMS; i++)
        for (int k = 0; k < PROTOCOLS; k++)
            times[i][k] = BY_NCCL_IGNORED;
    times[RING][BY_NCCL_SIMPLE] = ring;
    if (collnet < 0)
        return;
    times[BY_NCCL_COLLNET_DIRECT][BY_NCCL_SIMPLE] = collnet + 5;
    times[BY_NCCL_COLLNET_CHAIN][BY_NCCL_SIMPLE] = collnet;
}

/* The algorithm that NCCL takes. */
static int least(float times[ALGORITHMS][PROTOCOLS])
{
    float best = BY_NCCL_IGNORED;
    int at = -1;

    for (int i = 0; i < ALGORITHMS; i++)
        for (int k = 0; k < PROTOCOLS; k++)
            if (times[i][k] >= 0 && (at < 0 || times[i][k] < best)) {
                best = times[i][k];
                at = i;
            }
    return at;
}

static void set_rate(const char *rate)
{
    setenv("BANYAN_NCCL_INTERFACE", "lo", 1);
    setenv("BANYAN_NCCL_COLLNET", "auto", 1);
    unsetenv("BANYAN_TABLE");
    if (rate != NULL)
        setenv("BANYAN_NCCL_RATE", rate, 1);
    else
        unsetenv("BANYAN_NCCL_RATE");
}

/* ---- tests ---- */

static void collnet_gets_the_time_of_the_plan(void **state)
{
    float times[ALGORITHMS][PROTOCOLS];
    void *context;

    (void)state;
    set_rate("10,30"); /* 10 GB/s: 0.1 ns a byte */
    for (int version = 3; version <= 5; version++) {
        assert_int_equal(init(version, 4, &context), BY_NCCL_OK);
        /* 10 MB take 1000 us and the latency: less than the ring, and than NCCL predicted */
        fill(times, 1500, 9000);
        assert_int_equal(predict(version, context, BY_NCCL_ALLREDUCE, 10000000, 1, times[0], ALGORITHMS),
                         BY_NCCL_OK);
        assert_float_equal(times[BY_NCCL_COLLNET_CHAIN][BY_NCCL_SIMPLE], 1030, 0.01);
        assert_float_equal(times[BY_NCCL_COLLNET_DIRECT][BY_NCCL_SIMPLE], 1035, 0.01);
        assert_float_equal(times[RING][BY_NCCL_SIMPLE], 1500, 0);
        assert_int_equal(least(times), BY_NCCL_COLLNET_CHAIN);
        /* a small one stays with the ring, although NCCL predicted less for CollNet */
        fill(times, 20, 10);
        assert_int_equal(predict(version, context, BY_NCCL_ALLREDUCE, 1000, 1, times[0], ALGORITHMS),
                         BY_NCCL_OK);
        assert_int_equal(least(times), RING);
        /* each operation of a group has the latency */
        fill(times, 1500, 0);
        assert_int_equal(predict(version, context, BY_NCCL_ALLREDUCE, 10000000, 4, times[0], ALGORITHMS),
                         BY_NCCL_OK);
        assert_float_equal(times[BY_NCCL_COLLNET_CHAIN][BY_NCCL_SIMPLE], 1120, 0.01);
        assert_int_equal(finish(version, context), BY_NCCL_OK);
    }
}

static void what_nccl_ignores_stays_ignored(void **state)
{
    float times[ALGORITHMS][PROTOCOLS], before[ALGORITHMS][PROTOCOLS];
    void *context;

    (void)state;
    set_rate("10,30");
    for (int version = 3; version <= 5; version++) {
        assert_int_equal(init(version, 4, &context), BY_NCCL_OK);
        fill(times, 1500, BY_NCCL_IGNORED); /* without CollNet */
        memcpy(before, times, sizeof(times));
        assert_int_equal(predict(version, context, BY_NCCL_ALLREDUCE, 10000000, 1, times[0], ALGORITHMS),
                         BY_NCCL_OK);
        assert_memory_equal(before, times, sizeof(times));
        fill(times, 1500, 9000);
        times[BY_NCCL_COLLNET_CHAIN][BY_NCCL_SIMPLE] = BY_NCCL_IGNORED; /* one form only */
        assert_int_equal(predict(version, context, BY_NCCL_ALLREDUCE, 10000000, 1, times[0], ALGORITHMS),
                         BY_NCCL_OK);
        assert_float_equal(times[BY_NCCL_COLLNET_DIRECT][BY_NCCL_SIMPLE], 1030, 0.01);
        assert_float_equal(times[BY_NCCL_COLLNET_CHAIN][BY_NCCL_SIMPLE], BY_NCCL_IGNORED, 0);
        fill(times, 1500, 9000); /* other collectives are NCCL's */
        memcpy(before, times, sizeof(times));
        assert_int_equal(predict(version, context, ALLGATHER, 10000000, 1, times[0], ALGORITHMS), BY_NCCL_OK);
        assert_memory_equal(before, times, sizeof(times));
        assert_int_equal(finish(version, context), BY_NCCL_OK);
    }
}

static void without_a_rate_nothing_changes(void **state)
{
    float times[ALGORITHMS][PROTOCOLS], before[ALGORITHMS][PROTOCOLS];
    const struct by_nccl_tuner_v2 *two = table_of(2);
    int algorithm = -1, protocol = -1;
    void *context;

    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        set_rate(turn == 0 ? NULL : "10,30");
        if (turn == 1)
            setenv("BANYAN_NCCL_COLLNET", "off", 1);
        for (int version = 3; version <= 5; version++) {
            assert_int_equal(init(version, 4, &context), BY_NCCL_OK);
            fill(times, 1500, 9000);
            memcpy(before, times, sizeof(times));
            assert_int_equal(predict(version, context, BY_NCCL_ALLREDUCE, 10000000, 1, times[0], ALGORITHMS),
                             BY_NCCL_OK);
            assert_memory_equal(before, times, sizeof(times));
            assert_int_equal(finish(version, context), BY_NCCL_OK);
        }
        assert_int_equal(init(2, 4, &context), BY_NCCL_OK);
        assert_int_equal(
            two->choose(context, BY_NCCL_ALLREDUCE, 1u << 30, 1, 0, 1, &algorithm, &protocol, NULL),
            BY_NCCL_OK);
        assert_int_equal(algorithm, -1);
        assert_int_equal(two->finish(context), BY_NCCL_OK);
    }
}

static void version_2_takes_collnet_where_no_ring_is_faster(void **state)
{
    /* 4 nodes: a ring takes 1.5 times the bytes' time, so 30 us are worth 60 us of data: 600 KB */
    static const struct {
        size_t nodes, bytes;
        int has_collnet, collective, algorithm;
    } cases[] = {
        {4, 590000, 1, BY_NCCL_ALLREDUCE, -1},
        {4, 610000, 1, BY_NCCL_ALLREDUCE, BY_NCCL_COLLNET_DIRECT},
        {4, 610000, 0, BY_NCCL_ALLREDUCE, -1},
        {4, 610000, 1, ALLGATHER, -1},
        {2, 1u << 30, 1, BY_NCCL_ALLREDUCE, -1},
        {1, 1u << 30, 1, BY_NCCL_ALLREDUCE, -1},
        {64, 400000, 1, BY_NCCL_ALLREDUCE, BY_NCCL_COLLNET_DIRECT},
        {4, 0, 1, BY_NCCL_ALLREDUCE, -1},
    };
    const struct by_nccl_tuner_v2 *two = table_of(2);

    (void)state;
    set_rate("10,30");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int algorithm = -1, protocol = -1;
        void *context;

        assert_int_equal(init(2, cases[i].nodes, &context), BY_NCCL_OK);
        assert_int_equal(two->choose(context, cases[i].collective, cases[i].bytes, cases[i].has_collnet, 0, 1,
                                     &algorithm, &protocol, NULL),
                         BY_NCCL_OK);
        assert_int_equal(algorithm, cases[i].algorithm);
        assert_int_equal(protocol, cases[i].algorithm < 0 ? -1 : BY_NCCL_SIMPLE);
        assert_int_equal(two->finish(context), BY_NCCL_OK);
    }
}

static void wrong_settings_are_named(void **state)
{
    static const char *const wrong[] = {"x",      "10",    "10,",   "10,x",       ",30",   "-1,30", "0,30",
                                        "10,30,", "10;30", "1e9,3", "10,2000000", "nan,1", " 10,30"};
    void *context;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        set_rate(wrong[i]);
        for (int version = 2; version <= 5; version++)
            assert_int_equal(init(version, 4, &context), BY_NCCL_USAGE);
        assert_non_null(strstr(nccl_log_last(), "BANYAN_NCCL_RATE is"));
        assert_non_null(strstr(nccl_log_last(), "such as 12.5,30"));
    }
}

static void wrong_use_is_refused(void **state)
{
    float times[ALGORITHMS][PROTOCOLS];
    void *context;

    (void)state;
    set_rate("10,30");
    for (int version = 3; version <= 5; version++) {
        void *closed;

        assert_int_equal(init(version, 0, &context), BY_NCCL_ARGUMENT);
        assert_int_equal(init(version, 4, NULL), BY_NCCL_ARGUMENT);
        assert_int_equal(init(version, 4, &context), BY_NCCL_OK);
        closed = context;
        assert_int_equal(predict(version, context, BY_NCCL_ALLREDUCE, 8, 1, NULL, ALGORITHMS),
                         BY_NCCL_ARGUMENT);
        fill(times, 1500, 9000);
        assert_int_equal(predict(version, context, BY_NCCL_ALLREDUCE, 8, 1, times[0], 3), BY_NCCL_ARGUMENT);
        assert_int_equal(finish(version, context), BY_NCCL_OK);
        assert_int_equal(predict(version, closed, BY_NCCL_ALLREDUCE, 8, 1, times[0], ALGORITHMS),
                         BY_NCCL_ARGUMENT);
        assert_int_equal(finish(version, closed), BY_NCCL_ARGUMENT);
        assert_int_equal(finish(version, NULL), BY_NCCL_ARGUMENT);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(collnet_gets_the_time_of_the_plan),
        cmocka_unit_test(what_nccl_ignores_stays_ignored),
        cmocka_unit_test(without_a_rate_nothing_changes),
        cmocka_unit_test(version_2_takes_collnet_where_no_ring_is_faster),
        cmocka_unit_test(wrong_settings_are_named),
        cmocka_unit_test(wrong_use_is_refused),
    };
    int failed;

    set_rate(NULL);
    if (nccl_driver_open(&driver, NCCL_VERSION_LAST) != BY_NCCL_OK)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    nccl_driver_close(&driver);
    return failed;
}

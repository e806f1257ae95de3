/* The command line of banyan-perf: what it accepts, and what it refuses, with its exit status. */
#include <stdlib.h>
#include <string.h>

#include "host-driver/tools/perf/options.h"
#include "tests/unit/host-driver/rig.h"

#define ARGUMENTS_MAX 8

static struct perf_options options;

/* Parses one command line of words separated by blanks. */
static int read_line(const char *line)
{
    char copy[256];
    char *argv[ARGUMENTS_MAX + 2] = {(char *)"banyan-perf"};
    char *rest = NULL;
    int argc = 1;

    assert_true(strlen(line) < sizeof(copy));
    memcpy(copy, line, strlen(line) + 1);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL && argc <= ARGUMENTS_MAX;
         word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    return perf_options_read(&options, argc, argv);
}

static void sizes_are_binary_and_bounded(void **state)
{
    static const struct {
        const char *line;
        uint64_t bytes;
    } cases[] = {{"-b 0", 0},           {"-b 17", 17},         {"-b 4K", 4096},         {"-b 4kb", 4096},
                 {"-b 16M", 16u << 20}, {"-b 2G", 2ull << 30}, {"-b 1024G", 1ull << 40}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(read_line(cases[i].line), -1);
        assert_true(options.bytes_min == cases[i].bytes);
        assert_true(options.bytes_max == cases[i].bytes);
    }
}

static void bad_usage_is_refused(void **state)
{
    static const char *const lines[] = {"-b",
                                        "-b x",
                                        "-b -1",
                                        "-b 4T",
                                        "-b 1025G",
                                        "-b 99999999999999999999",
                                        "-b 4K -e 1K",
                                        "-c allreduc",
                                        "-c ,",
                                        "-o sum,mul",
                                        "-d float",
                                        "-f 1",
                                        "-n 0",
                                        "-n 1.5",
                                        "-w -1",
                                        "-z 2",
                                        "-r x",
                                        "--data some",
                                        "--optimum allreduce",
                                        "--optimum allreduce=0",
                                        "--optimum allreduce=1/0",
                                        "--optimum allreduce=4x",
                                        "--optimum sum=4",
                                        "--job 0",
                                        "--counts 1,2,",
                                        "--counts 1,,2",
                                        "--counts 0,0",
                                        "--counts 1,-2",
                                        "--counts 1;2",
                                        "--counts 1000000001",
                                        "--check 2",
                                        "--alpha 0",
                                        "--beta x",
                                        "--nothing",
                                        "word"};

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (read_line(lines[i]) != PERF_USAGE)
            fail_msg("'%s' is not refused", lines[i]);
        perf_options_free(&options);
    }
}

static void lists_name_what_runs(void **state)
{
    (void)state;
    assert_int_equal(read_line("-c allreduce,barrier -o min,max -d f16,u64"), -1);
    assert_true(options.collective[BY_COLLECTIVE_ALLREDUCE] && options.collective[BY_COLLECTIVE_BARRIER]);
    assert_false(options.collective[BY_COLLECTIVE_BROADCAST]);
    assert_true(options.op[BY_OP_MIN] && options.op[BY_OP_MAX] && !options.op[BY_OP_SUM]);
    assert_true(options.dtype[BY_DTYPE_F16] && options.dtype[BY_DTYPE_U64] && !options.dtype[BY_DTYPE_F32]);
    assert_int_equal(read_line("-c all -o all -d all"), -1);
    for (unsigned c = 1; c < BY_COLLECTIVE_COUNT; c++)
        assert_true(options.collective[c]);
    for (unsigned o = 1; o < BY_OP_COUNT; o++)
        assert_true(options.op[o]);
}

static void an_optimum_may_be_a_fraction(void **state)
{
    (void)state;
    assert_int_equal(read_line("--optimum allreduce=40/8,reduce=2.5"), -1);
    assert_true(options.optimum[BY_COLLECTIVE_ALLREDUCE] == 5);
    assert_true(options.optimum[BY_COLLECTIVE_REDUCE] == 2.5);
    assert_true(options.optimum[BY_COLLECTIVE_BROADCAST] == 0);
}

static void counts_become_sums_over_the_ranks_before(void **state)
{
    static const uint64_t sums[] = {0, 3, 3, 13, 14};

    (void)state;
    assert_int_equal(read_line("--counts 9 --counts 3,0,10,1"), -1);
    assert_int_equal(options.share_count, 4);
    assert_memory_equal(options.offsets, sums, sizeof(sums));
    perf_options_free(&options);
    assert_null(options.offsets);
}

static void results_are_checked_unless_it_is_said(void **state)
{
    (void)state;
    assert_int_equal(read_line("-n 3"), -1);
    assert_false(options.unchecked);
    assert_int_equal(read_line("--check 0"), -1);
    assert_true(options.unchecked);
}

static void faults_and_the_timeout_become_settings(void **state)
{
    (void)state;
    assert_int_equal(read_line("--loss 0.25 -T 3"), -1);
    assert_string_equal(getenv("BANYAN_LOSS"), "0.25");
    assert_string_equal(getenv("BANYAN_TIMEOUT"), "3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_binary_and_bounded),
        cmocka_unit_test(bad_usage_is_refused),
        cmocka_unit_test(lists_name_what_runs),
        cmocka_unit_test(an_optimum_may_be_a_fraction),
        cmocka_unit_test(counts_become_sums_over_the_ranks_before),
        cmocka_unit_test(results_are_checked_unless_it_is_said),
        cmocka_unit_test(faults_and_the_timeout_become_settings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

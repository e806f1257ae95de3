/* --cores and --workers: what is chosen, and the refusals, each with object, limit and remedy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "firmware/linux/cores.h"
#include "offload/base/errors.h"

static struct by_switchd_cores cores;

/* Chooses for a process that may use the first `count` cores from `first` on; what is said goes to
 * `said`. */
static int choose(const char *text, uint32_t workers, int first, int count, char said[512])
{
    int result, saved = dup(2), end[2];
    ssize_t bytes;
    cpu_set_t may;

    CPU_ZERO(&may);
    for (int cpu = first; cpu < first + count; cpu++)
        CPU_SET((size_t)cpu, &may);
    assert_int_equal(pipe(end), 0);
    dup2(end[1], 2);
    result = by_switchd_cores_choose(&cores, text, workers, &may);
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    close(end[1]);
    bytes = read(end[0], said, 511);
    close(end[0]);
    said[bytes > 0 ? bytes : 0] = 0;
    return result;
}

static void cores_are_chosen(void **state)
{
    static const struct {
        const char *text;
        uint32_t asked;
        int first, count;
        unsigned workers;
        int pinned, last; /* the core of the last worker */
    } rows[] = {
        {NULL, 0, 0, 1, 1, 0, 0},   {NULL, 0, 0, 2, 1, 0, 0},    {NULL, 0, 4, 8, 7, 0, 0},
        {NULL, 0, 0, 99, 32, 0, 0}, {NULL, 6, 0, 2, 6, 0, 0},    {"2", 0, 0, 2, 2, 0, 0},
        {"8", 3, 0, 2, 3, 0, 0},    {"2-5,8", 0, 0, 9, 5, 1, 8}, {"3,", 0, 0, 4, 1, 1, 3},
        {"3-3", 0, 0, 4, 1, 1, 3},  {"0,1", 5, 0, 2, 5, 1, 0},
    };
    char said[512];

    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(choose(rows[i].text, rows[i].asked, rows[i].first, rows[i].count, said), 0);
        assert_string_equal(said, "");
        assert_int_equal(cores.workers, rows[i].workers);
        assert_int_equal(cores.pinned, rows[i].pinned);
        if (cores.pinned)
            assert_int_equal(cores.cpu[cores.workers - 1], rows[i].last);
    }
}

static void what_cannot_be_chosen_is_refused(void **state)
{
    static const struct {
        const char *text;
        int error;
        const char *says;
    } rows[] = {
        {"3", BY_ELIMIT, "this process may use 2; --cores 2 uses them, --workers 3 lets workers share them"},
        {"0", BY_ELIMIT, "a switch uses 1 to 32 cores"},
        {"33", BY_ELIMIT, "a switch uses 1 to 32 cores"},
        {"0,9", BY_ELIMIT, "core 9 is not available to this process, which may use 0-1"},
        {"0-4", BY_ELIMIT, "core 2 is not available"},
        {"0,9999", BY_ELIMIT, "core 9999 is not available"},
        {"1,0,1", BY_EINVAL, "core 1 is given twice; --workers runs several workers on one core"},
        {"", BY_EINVAL, "it must be a number of cores, or a list of them such as 2-5,8"},
        {"-1", BY_EINVAL, "it must be a number"},
        {"1-0", BY_EINVAL, "it must be a number"},
        {"1-", BY_EINVAL, "it must be a number"},
        {"0,,1", BY_EINVAL, "it must be a number"},
        {"two", BY_EINVAL, "it must be a number"},
        {"1x", BY_EINVAL, "it must be a number"},
        {"99999999999999999999", BY_EINVAL, "it must be a number"},
    };
    char said[512];

    (void)state;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(choose(rows[i].text, 0, 0, 2, said), rows[i].error);
        assert_non_null(strstr(said, rows[i].says));
        assert_non_null(strstr(said, "--cores"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cores_are_chosen),
                                       cmocka_unit_test(what_cannot_be_chosen_is_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Work in another process: its result, and the ways in which it can end. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/fabric/build.h"
#include "control/service/daemon/apart.h"
#include "offload/base/errors.h"

#define BYTES (UINT32_C(3) << 20) /* many times the capacity of a pipe */

static int write_much(void *context, FILE *out, struct by_problem *problem)
{
    uint32_t *changed = context;

    (void)problem;
    ++*changed;
    for (uint32_t i = 0; i < BYTES; i++)
        putc((int)(i * 7 & 255), out);
    return 0;
}

static int refuse(void *context, FILE *out, struct by_problem *problem)
{
    (void)context;
    fputs("half a result", out);
    return by_problem_say(problem, BY_ELIMIT, "too many of them");
}

/* Never ends by itself, nor by a signal that can be ignored. */
static int spin(void *context, FILE *out, struct by_problem *problem)
{
    volatile uint64_t *turns = context;

    (void)out;
    (void)problem;
    while (turns != NULL)
        ++*turns;
    return 0;
}

static int crash(void *context, FILE *out, struct by_problem *problem)
{
    (void)context;
    (void)out;
    (void)problem;
    return raise(SIGABRT);
}

/* Counts the open descriptors, except those of stdio and its own pipe. */
static int count_descriptors(void *context, FILE *out, struct by_problem *problem)
{
    int count = 0;

    (void)context;
    (void)problem;
    for (int fd = STDERR_FILENO + 1; fd < 256; fd++) {
        struct stat status;

        count += fstat(fd, &status) == 0 && !S_ISFIFO(status.st_mode);
    }
    fprintf(out, "%d", count);
    return 0;
}

static void no_child_is_left(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void a_result_comes_back_whole_and_nothing_else_does(void **state)
{
    const struct by_apart apart = {.limit_ms = 60000, .stop_fd = -1};
    struct by_problem problem = {0};
    uint32_t changed = 0;
    char *bytes;
    size_t size;

    (void)state;
    assert_int_equal(by_apart_run(&apart, write_much, &changed, &bytes, &size, &problem), 0);
    assert_int_equal(size, BYTES);
    for (uint32_t i = 0; i < BYTES; i++)
        if ((uint8_t)bytes[i] != (i * 7 & 255))
            fail_msg("byte %u", i);
    assert_int_equal(changed, 0);
    free(bytes);
    assert_int_equal(by_apart_run(&apart, refuse, NULL, &bytes, &size, &problem), BY_ELIMIT);
    assert_string_equal(problem.text, "too many of them");
    assert_null(bytes);
    no_child_is_left();
}

static void it_ends_by_its_limit_or_when_it_is_stopped(void **state)
{
    int stop_fd = eventfd(0, EFD_CLOEXEC);
    struct by_apart apart = {.limit_ms = 50, .stop_fd = stop_fd};
    struct by_problem problem = {0};
    uint64_t turns = 0;
    char *bytes;
    size_t size;

    (void)state;
    assert_true(stop_fd >= 0);
    assert_int_equal(by_apart_run(&apart, spin, &turns, &bytes, &size, &problem), BY_ETIMEDOUT);
    assert_null(bytes);
    assert_string_equal(problem.text, "not complete within 0 s");
    no_child_is_left();
    apart.limit_ms = 3600000;
    assert_int_equal(eventfd_write(stop_fd, 1), 0);
    assert_int_equal(by_apart_run(&apart, spin, &turns, &bytes, &size, &problem), BY_EABORTED);
    assert_null(bytes);
    assert_string_equal(problem.text, "cancelled, because banyand ends");
    no_child_is_left();
    apart.stop_fd = -1;
    apart.yield_fd = stop_fd;
    assert_int_equal(by_apart_run(&apart, spin, &turns, &bytes, &size, &problem), BY_EABORTED);
    assert_string_equal(problem.text, "cancelled, because running jobs need plans first");
    no_child_is_left();
    close(stop_fd);
}

static void its_death_is_an_error_and_says_by_what(void **state)
{
    const struct by_apart apart = {.limit_ms = 60000, .stop_fd = -1};
    struct by_problem problem = {0};
    char *bytes;
    size_t size;

    (void)state;
    assert_int_equal(by_apart_run(&apart, crash, NULL, &bytes, &size, &problem), BY_EIO);
    assert_non_null(strstr(problem.text, "signal 6"));
    assert_null(bytes);
    no_child_is_left();
}

static void it_holds_no_descriptor_of_ours(void **state)
{
    const struct by_apart apart = {.limit_ms = 60000, .stop_fd = -1};
    int held[3] = {eventfd(0, 0), eventfd(0, 0), eventfd(0, 0)};
    struct by_problem problem = {0};
    char *bytes;
    size_t size;

    (void)state;
    assert_int_equal(by_apart_run(&apart, count_descriptors, NULL, &bytes, &size, &problem), 0);
    assert_int_equal(size, 1);
    assert_int_equal(bytes[0], '0');
    free(bytes);
    for (unsigned i = 0; i < 3; i++)
        close(held[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_comes_back_whole_and_nothing_else_does),
        cmocka_unit_test(it_ends_by_its_limit_or_when_it_is_stopped),
        cmocka_unit_test(its_death_is_an_error_and_says_by_what),
        cmocka_unit_test(it_holds_no_descriptor_of_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

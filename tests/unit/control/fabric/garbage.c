/* Implements garbage.h. */
#include "tests/unit/control/fabric/garbage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINES 1000000
/* Limits of a reader: address space (`ulimit -v`), and processor time. Sanitizers map terabytes of
 * shadow memory, so only their own limits apply, and take several times as long. */
#define SPACE_MIB_MAX 768
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SPACE_LIMITED 0
#define SECONDS_MAX   40
#else
#define SPACE_LIMITED 1
#define SECONDS_MAX   10
#endif

static char path[] = "/tmp/banyan-garbage-XXXXXX";

void garbage_refuse(garbage_read *reader, const char *file, const char *what, char *text, size_t bytes)
{
    struct rusage used;
    int ends[2], status;
    ssize_t got;
    pid_t child;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit space = {(rlim_t)SPACE_MIB_MAX << 20, (rlim_t)SPACE_MIB_MAX << 20};
        struct rlimit seconds = {SECONDS_MAX, SECONDS_MAX};
        struct by_problem problem = {0};

        if ((SPACE_LIMITED && setrlimit(RLIMIT_AS, &space) != 0) || setrlimit(RLIMIT_CPU, &seconds) != 0)
            _exit(4);
        if (reader(file, &problem) == 0)
            _exit(5);
        if (write(ends[1], problem.text, strlen(problem.text)) < 0)
            _exit(6);
        _exit(0);
    }
    close(ends[1]);
    got = read(ends[0], text, bytes - 1);
    text[got > 0 ? got : 0] = 0;
    close(ends[0]);
    assert_int_equal(wait4(child, &status, 0, &used), child);
    print_message("%-44s %4ld.%02ld s, %4ld MiB: %.110s\n", what, (long)used.ru_utime.tv_sec,
                  (long)used.ru_utime.tv_usec / 10000, used.ru_maxrss >> 10, text);
    if (!WIFEXITED(status))
        fail_msg("%s: the reader was stopped by signal %d", what, WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

void garbage_refuse_all(garbage_read *reader, const struct garbage *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        FILE *file = fopen(path, "we");
        char text[500];

        assert_non_null(file);
        fputs(cases[i].head, file);
        for (int line = 0; line < LINES; line++)
            fprintf(file, cases[i].line, line, line); /* NOLINT(clang-diagnostic-format-nonliteral) */
        fputs(cases[i].tail, file);
        assert_int_equal(fclose(file), 0);
        garbage_refuse(reader, path, cases[i].what, text, sizeof(text));
        if (!strstr(text, cases[i].says))
            fail_msg("%s: '%s' does not say '%s'", cases[i].what, text, cases[i].says);
    }
}

int garbage_setup(void **state)
{
    int file = mkstemp(path);

    (void)state;
    return file < 0 ? -1 : close(file);
}

int garbage_teardown(void **state)
{
    (void)state;
    return unlink(path);
}

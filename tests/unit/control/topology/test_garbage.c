/*
 * Files that are long and wrong: each is refused, within a limit of address space and of processor time that
 * the kernel enforces on a process of its own. Prints what each took.
 */
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

#include "control/topology/topology.h"

#define LINES 1000000
/* What a reader may take: address space (`ulimit -v`), and processor time. */
#define SPACE_MIB_MAX 768
#define SECONDS_MAX   10

/* Sanitizers map terabytes of shadow memory: only their own limits hold there. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SPACE_LIMITED 0
#else
#define SPACE_LIMITED 1
#endif

static char path[] = "/tmp/banyan-garbage-XXXXXX";

/* Runs the reader on `path` in a limited process; the text of its refusal goes to `text`. */
static void refuse_within_limits(const char *file, const char *what, char *text, size_t bytes)
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
        struct by_topology *topology = NULL;
        struct by_problem problem = {0};

        if ((SPACE_LIMITED && setrlimit(RLIMIT_AS, &space) != 0) || setrlimit(RLIMIT_CPU, &seconds) != 0)
            _exit(4);
        if (by_topology_read(file, &topology, &problem) == 0)
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

struct garbage {
    const char *what;
    const char *head;
    const char *line; /* %d is its number, twice at most */
    const char *tail;
    const char *says;
};

static void a_million_lines_of_garbage_are_refused_in_bounded_time_and_memory(void **state)
{
#define TOPOLOGY "{\"name\": \"t\", \"nodes\": [\n"
#define TWO      "{\"name\": \"a\", \"kind\": \"compute\"}, {\"name\": \"b\", \"kind\": \"compute\"}"
    static const struct garbage cases[] = {
        {"words", "", "garbage of line %d\n", "", "not valid JSON"},
        {"open brackets", "", "[\n", "", "not valid JSON"},
        {"open objects", "", "{\"a\":\n", "", "not valid JSON"},
        {"an open string", "{\"name\": \"", "never closed %d\n", "", "not valid JSON"},
        {"numbers in an array", "[", "%d,\n", "0]", "must be an object"},
        {"numbers for nodes", TOPOLOGY, "%d,\n", "0], \"links\": []}", "limit is 65535"},
        {"keys that nobody knows", "{", "\"key%d\": 0,\n", "\"name\": \"t\"}", "'key0'"},
        {"too many nodes", TOPOLOGY, "{\"name\": \"n%d\", \"kind\": \"compute\"},\n", "0], \"links\": []}",
         "limit is 65535"},
        {"too many links", TOPOLOGY TWO "], \"links\": [\n",
         "{\"between\": [\"a\", \"b\"], \"bandwidth\": 1},\n", "0]}", "values"},
        {"numbers of forty digits", TOPOLOGY TWO "], \"links\": [\n", "%040d,\n", "0]}", "not valid JSON"},
        {"a name of a million lines", "{\"name\": \"", "line %d\\n", "\", \"nodes\": []}", "limit is 255"},
        {"blank lines", "", "   \n", "{}", "no \"name\""},
        {"a syntax error in the last line", "[", "\"%d\",\n", "", "not valid JSON"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        FILE *file = fopen(path, "we");
        char text[500];

        assert_non_null(file);
        fputs(cases[i].head, file);
        for (int line = 0; line < LINES; line++)
            fprintf(file, cases[i].line, line); /* NOLINT(clang-diagnostic-format-nonliteral) */
        fputs(cases[i].tail, file);
        assert_int_equal(fclose(file), 0);
        refuse_within_limits(path, cases[i].what, text, sizeof(text));
        if (!strstr(text, cases[i].says))
            fail_msg("%s: '%s' does not say '%s'", cases[i].what, text, cases[i].says);
    }
}

static void a_file_without_end_is_refused(void **state)
{
    char text[500];

    (void)state;
    refuse_within_limits("/dev/zero", "zeros without end", text, sizeof(text));
    assert_non_null(strstr(text, "larger than 64 MiB"));
    refuse_within_limits("/dev/null", "nothing", text, sizeof(text));
    assert_non_null(strstr(text, "empty"));
    refuse_within_limits("/", "a folder", text, sizeof(text));
    assert_non_null(strstr(text, "cannot read"));
}

static int make_file(void **state)
{
    int file = mkstemp(path);

    (void)state;
    return file < 0 ? -1 : close(file);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_million_lines_of_garbage_are_refused_in_bounded_time_and_memory),
        cmocka_unit_test(a_file_without_end_is_refused),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}

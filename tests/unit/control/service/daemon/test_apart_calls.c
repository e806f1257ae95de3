/* Work in another process, call by call: how long it is waited for, what is read, what becomes of a
 * process that fails, and what a process of low priority is. The calls of the kernel are replaced,
 * except where the process itself is tested. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/service/daemon/apart.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/descriptors.h"
#include "tests/unit/control/service/daemon/record.h"

enum { CHILD = 77, STOP = 900, YIELD = 901 };

/* What precedes the result in the pipe. */
struct apart_calls_head {
    int error;
    struct by_problem problem;
};

static struct {
    bool real;     /* nothing is replaced but writes */
    ssize_t write; /* most bytes of each write, or its result if it is not positive */
    int pipe_error, fork_error;
    uint64_t now_ms;
    unsigned polls;
    uint64_t lasts_ms;             /* each poll */
    unsigned stops_at, yields_at;  /* the poll with which it must end, from 1 */
    unsigned fails_at, nothing_at; /* polls that fail, or report nothing */
    unsigned ready_from;           /* polls from this one on report data */
    const uint8_t *data;
    size_t size, at, piece; /* of each read */
    unsigned interrupted;   /* calls of waitpid */
    int status;
    bool killed;
} rig;

/* ---- the kernel ---- */

int __wrap_pipe2(int ends[2], int flags);
int __real_pipe2(int ends[2], int flags);
pid_t __wrap_fork(void);
pid_t __real_fork(void);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
ssize_t __wrap_read(int fd, void *bytes, size_t size);
ssize_t __real_read(int fd, void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __real_write(int fd, const void *bytes, size_t size);
int __wrap_kill(pid_t pid, int signal);
pid_t __wrap_waitpid(pid_t pid, int *status, int flags);
pid_t __real_waitpid(pid_t pid, int *status, int flags);

int __wrap_pipe2(int ends[2], int flags)
{
    assert_int_equal(flags, O_CLOEXEC);
    if (rig.pipe_error == 0)
        return __real_pipe2(ends, flags);
    errno = rig.pipe_error;
    return -1;
}

pid_t __wrap_fork(void)
{
    if (rig.real)
        return __real_fork();
    if (rig.fork_error == 0)
        return CHILD;
    errno = rig.fork_error;
    return -1;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    assert_int_equal(clock, CLOCK_MONOTONIC);
    *now = (struct timespec){.tv_sec = (time_t)(rig.now_ms / 1000),
                             .tv_nsec = (long)(rig.now_ms % 1000) * 1000000 + 999999};
    return 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    assert_int_equal(count, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(fds[i].events, POLLIN);
        fds[i].revents = 0;
    }
    record("%d %d wait %d\n", fds[0].fd, fds[1].fd, timeout_ms);
    rig.polls++;
    rig.now_ms += rig.lasts_ms;
    if (rig.polls == rig.fails_at) {
        fds[0].revents = fds[1].revents = fds[2].revents = POLLIN; /* not valid then */
        errno = EINTR;
        return -1;
    }
    if (rig.polls == rig.nothing_at)
        return 0;
    fds[0].revents = rig.polls == rig.stops_at ? POLLIN : 0;
    fds[1].revents = rig.polls == rig.yields_at ? POLLIN : 0;
    fds[2].revents = rig.polls >= rig.ready_from ? POLLIN : 0;
    return 1;
}

ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
    size_t count = rig.size - rig.at;

    if (rig.real)
        return __real_read(fd, bytes, size);
    assert_true(size >= 4096);
    if (rig.piece > 0 && rig.polls % 2 == 0) { /* every second one is interrupted */
        errno = EINTR;
        return -1;
    }
    count = rig.piece > 0 && count > rig.piece ? rig.piece : count;
    count = count > size ? size : count;
    if (count > 0)
        memcpy(bytes, rig.data + rig.at, count);
    rig.at += count;
    return (ssize_t)count;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
    return rig.write <= 0 ? rig.write
                          : __real_write(fd, bytes, size < (size_t)rig.write ? size : (size_t)rig.write);
}

int __wrap_kill(pid_t pid, int signal)
{
    assert_true(pid == CHILD && signal == SIGKILL);
    assert_false(rig.killed);
    rig.killed = true;
    return 0;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int flags)
{
    if (rig.real)
        return __real_waitpid(pid, status, flags);
    assert_true(pid == CHILD && flags == 0);
    if (rig.interrupted > 0) {
        rig.interrupted--;
        errno = EINTR;
        return -1;
    }
    record("waited\n");
    *status = rig.killed ? SIGKILL : rig.status;
    return CHILD;
}

/* ---- the work ---- */

static int never(void *context, FILE *out, struct by_problem *problem)
{
    (void)context;
    (void)out;
    (void)problem;
    return 0;
}

static void prepare(void)
{
    memset(&rig, 0, sizeof(rig));
    record_clear();
    rig.now_ms = 5000;
    rig.ready_from = 1;
}

/* Runs it with a limit of 2.5 s. Returns the text of the problem. */
static const char *runs(const struct by_apart *apart, int expected, const char *result)
{
    static struct by_problem problem;
    unsigned descriptors = count_descriptors();
    char *bytes = (char *)&rig;
    size_t size = 1;

    problem.text[0] = 0;
    assert_int_equal(by_apart_run(apart, never, NULL, &bytes, &size, &problem), expected);
    assert_int_equal(count_descriptors(), descriptors);
    assert_int_equal(size, result != NULL ? strlen(result) : 0);
    if (result != NULL)
        assert_memory_equal(bytes, result, size);
    else
        assert_null(bytes);
    free(result != NULL ? bytes : NULL);
    return problem.text;
}

static const struct by_apart limited = {.limit_ms = 2500, .stop_fd = STOP, .yield_fd = YIELD};

/* Sets what comes through the pipe: a head and a result. */
static void give(uint8_t *memory, int error, const char *text, const char *result)
{
    struct apart_calls_head head = {.error = error};
    size_t bytes = strlen(result);

    snprintf(head.problem.text, sizeof(head.problem.text), "%s", text);
    memcpy(memory, &head, sizeof(head));
    for (size_t i = 0; i < bytes; i++)
        memory[sizeof(head) + i] = (uint8_t)result[i];
    rig.data = memory;
    rig.size = sizeof(head) + bytes;
    rig.at = 0;
}

static uint8_t memory[sizeof(struct apart_calls_head) + 1000];

/* ---- tests ---- */

static void a_result_may_come_in_pieces(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 400; piece = 2 * piece + 1) {
        prepare();
        give(memory, 0, "", "the result");
        rig.piece = piece;
        rig.fails_at = 3;
        rig.nothing_at = 5;
        rig.interrupted = 2;
        assert_string_equal(runs(&limited, 0, "the result"), "");
        assert_int_equal(rig.interrupted, 0);
        assert_false(rig.killed);
    }
    prepare();
    give(memory, 0, "a note", "");
    assert_string_equal(runs(&limited, 0, ""), "a note");
    record_expect("900 901 wait 2500\n900 901 wait 2500\nwaited\n"); /* the data, and their end */
}

static void it_is_waited_for_until_the_limit(void **state)
{
    (void)state;
    prepare();
    rig.ready_from = 9;
    rig.lasts_ms = 1000;
    assert_string_equal(runs(&(struct by_apart){.limit_ms = 2500, .stop_fd = -1}, BY_ETIMEDOUT, NULL),
                        "not complete within 2 s");
    record_expect("-1 -1 wait 2500\n-1 -1 wait 1500\n-1 -1 wait 500\nwaited\n");
    assert_true(rig.killed);
    prepare(); /* to the millisecond */
    rig.ready_from = 9;
    rig.lasts_ms = 2499;
    runs(&limited, BY_ETIMEDOUT, NULL);
    record_expect("900 901 wait 2500\n900 901 wait 1\nwaited\n");
    prepare();
    rig.ready_from = 9;
    rig.lasts_ms = 2500;
    runs(&limited, BY_ETIMEDOUT, NULL);
    record_expect("900 901 wait 2500\nwaited\n");
}

static void it_is_ended_when_banyand_ends_or_other_plans_come_first(void **state)
{
    (void)state;
    prepare();
    give(memory, 0, "", "the result");
    rig.stops_at = 1;
    assert_string_equal(runs(&limited, BY_EABORTED, NULL), "cancelled, because banyand ends");
    assert_true(rig.killed);
    record_expect("900 901 wait 2500\nwaited\n");
    prepare();
    give(memory, 0, "", "the result");
    rig.yields_at = 2;
    assert_string_equal(runs(&limited, BY_EABORTED, NULL),
                        "cancelled, because running jobs need plans first");
    assert_true(rig.killed);
}

static void a_process_that_fails_has_no_result(void **state)
{
    (void)state;
    prepare();
    give(memory, BY_ELIMIT, "too many", "half a result");
    assert_string_equal(runs(&limited, BY_ELIMIT, NULL), "too many");
    prepare();
    give(memory, 0, "", "the result");
    rig.status = 1 << 8;
    assert_string_equal(runs(&limited, BY_EIO, NULL), "its process failed");
    prepare();
    give(memory, 0, "", "the result");
    rig.status = SIGSEGV;
    assert_string_equal(runs(&limited, BY_EIO, NULL),
                        "its process was ended by signal 11 (Segmentation fault)");
    prepare();
    give(memory, 0, "", "");
    rig.size--;
    assert_string_equal(runs(&limited, BY_EIO, NULL), "its process failed");
    prepare();
    assert_string_equal(runs(&limited, BY_EIO, NULL), "its process failed");
}

static void without_a_pipe_or_a_process_nothing_is_left_open(void **state)
{
    struct by_problem problem = {0};
    unsigned descriptors = count_descriptors();
    pid_t child;
    int fd;

    (void)state;
    prepare();
    rig.pipe_error = EMFILE;
    assert_string_equal(runs(&limited, BY_EIO, NULL), "cannot create a pipe: Too many open files");
    assert_int_equal(by_apart_start(NULL, NULL, &child, &fd, &problem), BY_EIO);
    assert_string_equal(problem.text, "cannot create a pipe: Too many open files");
    prepare();
    rig.fork_error = EAGAIN;
    assert_string_equal(runs(&limited, BY_EIO, NULL),
                        "cannot start a process: Resource temporarily unavailable");
    record_expect("");
    assert_int_equal(by_apart_start(NULL, NULL, &child, &fd, &problem), BY_EIO);
    assert_string_equal(problem.text, "cannot start a process: Resource temporarily unavailable");
    assert_int_equal(count_descriptors(), descriptors);
}

static int tell(void *context, FILE *out, struct by_problem *problem)
{
    (void)context;
    (void)problem;
    fprintf(out, "the result");
    return 0;
}

static void a_process_may_write_its_result_in_pieces(void **state)
{
    (void)state;
    for (ssize_t piece = -1; piece < 9; piece++) {
        struct by_problem problem = {0};
        char *bytes = NULL;
        size_t size = 0;
        int error;

        prepare();
        rig.real = true;
        rig.write = piece;
        error = by_apart_run(&limited, tell, NULL, &bytes, &size, &problem);
        assert_int_equal(error, piece > 0 ? 0 : BY_EIO);
        assert_int_equal(size, piece > 0 ? 10 : 0);
        if (piece > 0)
            assert_memory_equal(bytes, "the result", size);
        else
            assert_string_equal(problem.text, "its process failed");
        free(bytes);
    }
}

/* ---- a process of low priority ---- */

/* Writes its priority and the number of its descriptors. */
static int describe(void *context, FILE *out)
{
    fprintf(out, "%d %u", getpriority(PRIO_PROCESS, 0), count_descriptors());
    return *(const int *)context;
}

static void a_process_of_low_priority_is_read_without_waiting(void **state)
{
    unsigned before = count_descriptors(), stdio = 0;
    int results[] = {0, BY_EIO}, held = dup(STDERR_FILENO), low;

    (void)state;
    prepare();
    rig.real = true;
    setpriority(PRIO_PROCESS, 0, 0); /* fails without privileges: then it may have less than the child */
    low = getpriority(PRIO_PROCESS, 0) > 10 ? getpriority(PRIO_PROCESS, 0) : 10;
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        stdio += fcntl(fd, F_GETFD) != -1;
    for (unsigned i = 0; i < 2; i++) {
        char text[40] = "", expected[40];
        struct by_problem problem = {0};
        int fd = -1, status = -1;
        size_t used = 0;
        ssize_t got;
        pid_t child;

        assert_int_equal(by_apart_start(describe, &results[i], &child, &fd, &problem), 0);
        assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        while ((got = read(fd, text + used, sizeof(text) - 1 - used)) != 0)
            used += got > 0 ? (size_t)got : 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, results[i] == 0 ? 0 : 1 << 8);
        snprintf(expected, sizeof(expected), "%d %u", low, stdio + 1); /* its end of the pipe */
        assert_string_equal(text, expected);
        close(fd);
    }
    close(held);
    assert_int_equal(count_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_may_come_in_pieces),
        cmocka_unit_test(it_is_waited_for_until_the_limit),
        cmocka_unit_test(it_is_ended_when_banyand_ends_or_other_plans_come_first),
        cmocka_unit_test(a_process_that_fails_has_no_result),
        cmocka_unit_test(without_a_pipe_or_a_process_nothing_is_left_open),
        cmocka_unit_test(a_process_may_write_its_result_in_pieces),
        cmocka_unit_test(a_process_of_low_priority_is_read_without_waiting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Work in a separate process. See apart.h. */
#include "control/service/daemon/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "offload/base/errors.h"

/* The head of the data on the pipe; the result follows. */
struct head {
    int error;
    struct by_problem problem;
};

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool write_all(int fd, const void *bytes, size_t count)
{
    const char *at = bytes;

    while (count > 0) {
        ssize_t written = write(fd, at, count);

        if (written <= 0)
            return false;
        at += written;
        count -= (size_t)written;
    }
    return true;
}

/* In a child, which must not outlive the thread that made it, and must not inherit listening
 * sockets: keeps only `fd`. */
static void become_child(int fd, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
    close_range(STDERR_FILENO + 1, (unsigned)fd - 1, 0);
    close_range((unsigned)fd + 1, UINT_MAX, 0);
}

static _Noreturn void be_child(int fd, pid_t parent, by_apart_fn *run, void *context)
{
    struct head head = {0};
    char *bytes = NULL;
    size_t size = 0;
    FILE *out;

    become_child(fd, parent);
    out = by_text_open(&bytes, &size);
    head.error = run(context, out, &head.problem);
    fclose(out);
    _exit(write_all(fd, &head, sizeof(head)) && write_all(fd, bytes, head.error == 0 ? size : 0) ? 0 : 1);
}

/* The data received through the pipe. */
struct received {
    char *bytes;
    size_t size, room;
};

/* Reads until the child closes its end. Returns 0, BY_ETIMEDOUT or BY_EABORTED. */
static int receive(const struct by_apart *apart, int fd, struct received *received,
                   struct by_problem *problem)
{
    uint64_t end = now_ms() + apart->limit_ms, now;
    struct pollfd fds[3] = {{.fd = apart->stop_fd, .events = POLLIN},
                            {.fd = apart->yield_fd > 0 ? apart->yield_fd : -1, .events = POLLIN},
                            {.fd = fd, .events = POLLIN}};
    ssize_t count = 1;

    while (count != 0) {
        now = now_ms();
        if (now >= end)
            return by_problem_say(problem, BY_ETIMEDOUT, "not complete within %u s", apart->limit_ms / 1000);
        if (poll(fds, 3, (int)(end - now)) < 0)
            continue;
        if (fds[0].revents != 0)
            return by_problem_say(problem, BY_EABORTED, "cancelled, because banyand ends");
        if (fds[1].revents != 0)
            return by_problem_say(problem, BY_EABORTED, "cancelled, because running jobs need plans first");
        if (fds[2].revents == 0)
            continue;
        if (received->room - received->size < 4096) {
            received->room = 2 * received->room + 65536;
            received->bytes = by_realloc(received->bytes, received->room, 1);
        }
        count = read(fd, received->bytes + received->size, received->room - received->size);
        received->size += count > 0 ? (size_t)count : 0;
    }
    return 0;
}

/* Splits the data into head and result. */
static int take(const struct received *received, int status, char **bytes, size_t *size,
                struct by_problem *problem)
{
    struct head head;

    if (status != 0 || received->size < sizeof(head))
        return WIFSIGNALED(status)
                   ? by_problem_say(problem, BY_EIO, "its process was ended by signal %d (%s)",
                                    WTERMSIG(status), strsignal(WTERMSIG(status)))
                   : by_problem_say(problem, BY_EIO, "its process failed");
    memcpy(&head, received->bytes, sizeof(head));
    *problem = head.problem;
    if (head.error != 0)
        return head.error;
    *size = received->size - sizeof(head);
    *bytes = by_alloc(*size + 1, 1);
    memcpy(*bytes, received->bytes + sizeof(head), *size);
    return 0;
}

int by_apart_run(const struct by_apart *apart, by_apart_fn *run, void *context, char **bytes, size_t *size,
                 struct by_problem *problem)
{
    struct received received = {0};
    pid_t parent = getpid(), child;
    int ends[2], status = 0, error;

    *bytes = NULL;
    *size = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return by_problem_say(problem, BY_EIO, "cannot create a pipe: %s", strerror(errno));
    child = fork();
    if (child == 0)
        be_child(ends[1], parent, run, context);
    error = child < 0 ? by_problem_say(problem, BY_EIO, "cannot start a process: %s", strerror(errno)) : 0;
    close(ends[1]);
    if (error == 0) {
        error = receive(apart, ends[0], &received, problem);
        if (error != 0)
            kill(child, SIGKILL);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        if (error == 0)
            error = take(&received, status, bytes, size, problem);
    }
    close(ends[0]);
    free(received.bytes);
    return error;
}

/* The priority of background work: a tenth of the usual share of a processor. */
#define NICE_LOW 10

int by_apart_start(by_apart_stream_fn *run, void *context, pid_t *child, int *fd, struct by_problem *problem)
{
    pid_t parent = getpid();
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return by_problem_say(problem, BY_EIO, "cannot create a pipe: %s", strerror(errno));
    *child = fork();
    if (*child == 0) {
        FILE *out;
        int error;

        become_child(ends[1], parent);
        setpriority(PRIO_PROCESS, 0, NICE_LOW);
        out = fdopen(ends[1], "w");
        error = out != NULL ? run(context, out) : BY_EIO;
        _exit(out != NULL && fclose(out) == 0 && error == 0 ? 0 : 1);
    }
    close(ends[1]);
    if (*child < 0) {
        close(ends[0]);
        return by_problem_say(problem, BY_EIO, "cannot start a process: %s", strerror(errno));
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *fd = ends[0];
    return 0;
}

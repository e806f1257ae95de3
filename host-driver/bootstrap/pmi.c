/*
 * A client of the PMI-1 protocol, as implemented by hydra (MPICH, Intel MPI) and others: lines of
 * text over the socket PMI_FD. A process may initialise it only once, so the state belongs to the
 * process, and finalize is sent when the process exits. If a process exits without it, the launcher
 * treats it as crashed and ends the others. See bootstrap.h.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-driver/bootstrap/bootstrap.h"
#include "host-driver/clock.h"
#include "host-driver/error.h"

#define NAME_MAX_BYTES 256u
#define FAREWELL_NS    UINT64_C(1000000000)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int fd;
    pid_t owner; /* only this process may use it, not a forked child */
    uint32_t rank, rank_count;
    char space[NAME_MAX_BYTES]; /* name of the job's key-value store */
    char buffer[BY_PMI_LINE_MAX + 1];
    size_t have, taken; /* bytes in `buffer`, and bytes of them in the last line */
    bool joined, broken;
} pmi;

/* ---- lines */

static int wait_for(short events, uint64_t deadline_ns)
{
    for (;;) {
        uint64_t now_ns = by_clock_ns();
        struct pollfd one = {.fd = pmi.fd, .events = events};
        uint64_t left_ms = deadline_ns > now_ns ? (deadline_ns - now_ns + 999999u) / 1000000u : 0;
        int ready = poll(&one, 1, left_ms < 60000 ? (int)left_ms : 60000);

        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return BY_EIO;
        if (ready == 0 && by_clock_ns() >= deadline_ns)
            return BY_ETIMEDOUT;
    }
}

static int say(uint64_t deadline_ns, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int say(uint64_t deadline_ns, const char *format, ...)
{
    char line[BY_PMI_LINE_MAX];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof(line))
        return BY_ELIMIT;
    for (int at = 0; at < length;) {
        int error = wait_for(POLLOUT, deadline_ns);
        ssize_t wrote;

        if (error != 0)
            return error;
        wrote = write(pmi.fd, line + at, (size_t)(length - at));
        if (wrote < 0 && errno != EINTR && errno != EAGAIN)
            return BY_EIO;
        at += wrote > 0 ? (int)wrote : 0;
    }
    return 0;
}

/* Returns the next line, which is valid until the next call. */
static int hear(struct by_pmi_line *line, uint64_t deadline_ns)
{
    memmove(pmi.buffer, pmi.buffer + pmi.taken, pmi.have - pmi.taken);
    pmi.have -= pmi.taken;
    pmi.taken = 0;
    for (;;) {
        char *end = memchr(pmi.buffer, '\n', pmi.have);
        ssize_t got;
        int error;

        if (end != NULL) {
            pmi.taken = (size_t)(end - pmi.buffer) + 1;
            return by_pmi_parse(pmi.buffer, pmi.taken - 1, line);
        }
        if (pmi.have == BY_PMI_LINE_MAX)
            return BY_EFORMAT;
        error = wait_for(POLLIN, deadline_ns);
        if (error != 0)
            return error;
        got = read(pmi.fd, pmi.buffer + pmi.have, BY_PMI_LINE_MAX - pmi.have);
        if (got == 0)
            errno = EPIPE;
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
            return BY_EIO;
        pmi.have += got > 0 ? (size_t)got : 0;
    }
}

/* After a failure answers can no longer be matched with requests, so nothing more is sent. */
static int fail(int error, const char *what)
{
    pmi.broken = true;
    switch (error) {
    case BY_ETIMEDOUT:
        return by_fail(error,
                       "PMI-1: the launcher did not answer %s within BANYAN_TIMEOUT; have all %u ranks been "
                       "started, and do all of them use banyan?",
                       what, pmi.rank_count);
    case BY_EIO:
        return by_fail(error, "PMI-1: the connection to the launcher failed during %s: %s", what,
                       strerror(errno));
    default:
        return by_fail(BY_EFORMAT, "PMI-1: the launcher refused %s, or its answer is malformed", what);
    }
}

/* Reads one line, which must be `wanted`. */
static int expect(struct by_pmi_line *line, const char *wanted, const char *what, uint64_t deadline_ns)
{
    int error = hear(line, deadline_ns);

    if (error == 0 && !by_pmi_is(line, wanted))
        error = BY_EFORMAT;
    return error == 0 ? 0 : fail(error, what);
}

/* ---- the process */

static void leave(void)
{
    struct by_pmi_line line;
    uint64_t deadline_ns = by_clock_ns() + FAREWELL_NS;

    if (pmi.joined && !pmi.broken && pmi.owner == getpid() && say(deadline_ns, "cmd=finalize\n") == 0)
        hear(&line, deadline_ns);
}

static int read_number(const char *name, long low, long high, long *value)
{
    const char *text = getenv(name);
    char *end = NULL;

    errno = 0;
    *value = text != NULL ? strtol(text, &end, 10) : -1;
    if (text == NULL || text[0] < '0' || text[0] > '9' || *end != 0 || errno != 0 || *value < low ||
        *value > high)
        return by_fail(BY_EINVAL, "PMI-1: %s is %s%s%s; a launcher sets it to a number from %ld to %ld", name,
                       text != NULL ? "'" : "", text != NULL ? text : "not set", text != NULL ? "'" : "", low,
                       high);
    return 0;
}

static int read_environment(void)
{
    long fd = -1, rank = 0, count = 1;
    int error = read_number("PMI_FD", 0, INT_MAX, &fd);

    if (error == 0)
        error = read_number("PMI_SIZE", 1, BY_PEERS_MAX, &count);
    if (error == 0)
        error = read_number("PMI_RANK", 0, count - 1, &rank);
    pmi.fd = (int)fd;
    pmi.rank = (uint32_t)rank;
    pmi.rank_count = (uint32_t)count;
    return error;
}

static int greet(uint64_t deadline_ns)
{
    struct by_pmi_line line;
    const char *space;
    int error = say(deadline_ns, "cmd=init pmi_version=1 pmi_subversion=1\n");

    if (error != 0)
        return fail(error, "init");
    error = expect(&line, "response_to_init", "init", deadline_ns);
    if (error == 0 && say(deadline_ns, "cmd=get_my_kvsname\n") != 0)
        error = fail(BY_EIO, "get_my_kvsname");
    if (error == 0)
        error = expect(&line, "my_kvsname", "get_my_kvsname", deadline_ns);
    if (error != 0)
        return error;
    space = by_pmi_value(&line, "kvsname");
    if (space == NULL || strlen(space) >= sizeof(pmi.space))
        return fail(BY_EFORMAT, "get_my_kvsname");
    memcpy(pmi.space, space, strlen(space) + 1);
    return 0;
}

int by_pmi_join(uint32_t *rank, uint32_t *rank_count, uint64_t deadline_ns)
{
    int error = 0;

    pthread_mutex_lock(&lock);
    if (!pmi.joined && dlsym(RTLD_DEFAULT, "MPI_Init") != NULL)
        error = by_fail(BY_EBUSY, "PMI-1: PMI_FD belongs to the MPI library of this process; give "
                                  "banyan_init a bootstrap with MPI's rank, size and allgather, or set RANK, "
                                  "WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
    if (error == 0 && pmi.broken)
        error = by_fail(BY_ESTATE, "PMI-1: the connection to the launcher failed earlier");
    if (error == 0 && !pmi.joined) {
        error = read_environment();
        if (error == 0)
            error = greet(deadline_ns);
        if (error == 0) {
            pmi.joined = true;
            pmi.owner = getpid();
            atexit(leave);
        }
    }
    *rank = pmi.rank;
    *rank_count = pmi.rank_count;
    pthread_mutex_unlock(&lock);
    return error;
}

static int share(const char *key, char *text, size_t bytes, uint64_t deadline_ns)
{
    struct by_pmi_line line;
    const char *value;
    int error = 0;

    if (pmi.rank == 0) {
        error = say(deadline_ns, "cmd=put kvsname=%s key=%s value=%s\n", pmi.space, key, text);
        error = error != 0 ? fail(error, "put") : expect(&line, "put_result", "put", deadline_ns);
    }
    if (error == 0 && say(deadline_ns, "cmd=barrier_in\n") != 0)
        error = fail(BY_EIO, "a barrier");
    if (error == 0)
        error = expect(&line, "barrier_out", "a barrier", deadline_ns);
    if (error != 0 || pmi.rank == 0)
        return error;
    error = say(deadline_ns, "cmd=get kvsname=%s key=%s\n", pmi.space, key);
    error = error != 0 ? fail(error, "get") : expect(&line, "get_result", "get", deadline_ns);
    if (error != 0)
        return error;
    value = by_pmi_value(&line, "value");
    if (value == NULL || strlen(value) >= bytes)
        return fail(BY_EFORMAT, "get");
    memcpy(text, value, strlen(value) + 1);
    return 0;
}

int by_pmi_share(const char *key, char *text, size_t bytes, uint64_t deadline_ns)
{
    int error;

    pthread_mutex_lock(&lock);
    error = pmi.broken ? by_fail(BY_ESTATE, "PMI-1: the connection to the launcher failed earlier")
                       : share(key, text, bytes, deadline_ns);
    pthread_mutex_unlock(&lock);
    return error;
}

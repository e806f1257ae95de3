/*
 * The time for which controllers that connect over TLS occupy the thread that moves packets. The
 * switch's server, with a real agent behind it, is served in a loop as in the shell, while
 * controllers connect at once, send one request and leave. Prints the processor time of that thread
 * in the longest turn and in all turns (us), and that of the whole process. The controllers are
 * another process, whose time is not counted.
 *
 *   bench-handshakes [CONTROLLERS [ROUNDS]]
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/service/controller/session.h"
#include "firmware/linux/server.h"
#include "offload/base/errors.h"
#include "tests/unit/firmware/agent/rig.h"
#include "tests/unit/firmware/secure/keys.h"

#define CONTROLLERS_MAX 64
#define TIMEOUT_MS      20000u

static double time_us(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* One controller, from its connection to its answer; returns the exit status. */
static int control(const char *address, const char *keys)
{
    const struct by_session_options options = {.timeout_ms = TIMEOUT_MS, .keys = keys};
    struct by_problem problem = {0};
    struct by_session *session;
    by_CountersReply *reply = calloc(1, sizeof *reply);
    int error = reply ? by_session_open(address, &options, &session, &problem) : BY_ENOMEM;

    if (error == 0) {
        error = by_session_counters(session, reply, &problem);
        by_session_close(session);
    }
    free(reply);
    if (error != 0)
        fprintf(stderr, "%s\n", problem.text);
    return error != 0;
}

/* Starts all controllers at once, each a process; returns the ID of their parent process. */
static pid_t start(int count, const char *address, const char *keys)
{
    pid_t parent = fork();
    int bad = 0, status;

    if (parent != 0)
        return parent;
    for (int i = 0; i < count; i++)
        if (fork() == 0)
            _exit(control(address, keys));
    while (wait(&status) > 0)
        bad += status != 0;
    _exit(bad);
}

static unsigned free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &bytes) != 0)
        abort();
    close(fd);
    return ntohs(at.sin_port);
}

static int measure(struct by_server *server, int count, const char *address, const char *keys)
{
    double longest = 0, all = 0, before = time_us(CLOCK_PROCESS_CPUTIME_ID);
    pid_t parent = start(count, address, keys);
    int status;

    while (waitpid(parent, &status, WNOHANG) == 0) {
        double began = time_us(CLOCK_THREAD_CPUTIME_ID), took;

        by_server_serve(server);
        took = time_us(CLOCK_THREAD_CPUTIME_ID) - began;
        longest = took > longest ? took : longest;
        all += took > 20 ? took : 0; /* turns with work */
        usleep(50);
    }
    printf("%d controllers: longest turn %.0f us, turns above 20 us together %.0f us, process %.0f us%s\n",
           count, longest, all, time_us(CLOCK_PROCESS_CPUTIME_ID) - before,
           status == 0 ? "" : ", NOT ALL CAME");
    return status == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 20, rounds = argc > 2 ? atoi(argv[2]) : 5, status = 0;
    char address[64], ours[KEYS_PATH], theirs[KEYS_PATH];
    const char *addresses[] = {address};
    struct by_server *server;
    struct rig_bench *bench;
    void *state = NULL;

    if (count < 1 || count > CONTROLLERS_MAX || make_bench(&state) != 0)
        return 2;
    bench = state;
    keys_open();
    keys_issue("a", "switch0", BY_KEYS_SWITCH, 30);
    keys_issue("a", "operator", BY_KEYS_CONTROLLER, 30);
    snprintf(address, sizeof address, "tls:127.0.0.1:%u", free_port());
    if (by_server_open(&server, addresses, 1, keys_path("a/switch0", ours)) != 0)
        status = 2;
    if (status == 0)
        by_server_attach(server, bench->agent);
    for (int i = 0; i < rounds && status == 0; i++)
        status = measure(server, count, address, keys_path("a/operator", theirs));
    if (status != 2)
        by_server_close(server);
    keys_close();
    free_bench(&state);
    return status;
}

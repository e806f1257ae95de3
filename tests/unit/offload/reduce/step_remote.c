/*
 * Steps a second copy of this program in qemu's user-mode emulation, by gdb's remote protocol. This
 * copy runs in such an emulation too. BY_TEST_QEMU names the emulator. The stepped copy waits in
 * SIGUSR1 between two runs; the emulator does not deliver that signal to it. Single-threaded.
 */
#include "tests/unit/offload/reduce/step.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMORY_FD  "BY_TEST_STEP_MEMORY" /* set: this is the copy to step, and this is its descriptor */
#define WAIT_MS    60000                 /* for an answer */
#define CONNECT_MS 10                    /* between two attempts */
#define CONNECTS   6000u
#define USR1       30u /* as gdb numbers signals */
#define TRAP       5u

static void *shared;
static size_t shared_bytes;
static pid_t child;
static int line = -1; /* to the emulator */

static _Noreturn void live(int fd, size_t bytes, void (*run)(void *))
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED)
        _exit(1);
    for (;;) {
        raise(SIGUSR1);
        run(memory);
    }
}

/* Sends a packet. Returns the signal in the answer, which reports a stop; 0 if there is another
 * answer or none. */
static unsigned command(char letter)
{
    char packet[8], answer[512];
    size_t bytes = 0;
    unsigned stop;

    snprintf(packet, sizeof(packet), "+$%c#%02x", letter, (unsigned)letter);
    if (send(line, packet, 6, MSG_NOSIGNAL) != 6)
        return 0;
    while (bytes < sizeof(answer) - 1) {
        struct pollfd ready = {line, POLLIN, 0};
        ssize_t got;
        char *begin;

        if (poll(&ready, 1, WAIT_MS) <= 0)
            return 0;
        got = recv(line, answer + bytes, sizeof(answer) - 1 - bytes, 0);
        if (got <= 0)
            return 0;
        bytes += (size_t)got;
        answer[bytes] = 0;
        begin = strchr(answer, '$');
        if (begin && strchr(begin, '#') && strchr(begin, '#') + 3 <= answer + bytes)
            return sscanf(begin, "$T%2x", &stop) == 1 || sscanf(begin, "$S%2x", &stop) == 1 ? stop : 0;
    }
    return 0;
}

static int connect_to(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
    line = socket(AF_UNIX, SOCK_STREAM, 0);
    for (unsigned i = 0; line >= 0 && i < CONNECTS; i++) {
        if (connect(line, (struct sockaddr *)&to, sizeof(to)) == 0)
            return 0;
        if (waitpid(child, NULL, WNOHANG) != 0)
            return -1;
        poll(NULL, 0, CONNECT_MS);
    }
    return -1;
}

static void start_copy(const char *qemu, const char *path, int fd)
{
    char self[4096] = "", number[16];

    if (readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0)
        _exit(1);
    snprintf(number, sizeof(number), "%d", fd);
    setenv(MEMORY_FD, number, 1);
    execlp(qemu, qemu, "-g", path, self, (char *)NULL);
    _exit(1);
}

void *step_begin(size_t bytes, void (*run)(void *memory))
{
    char folder[] = "/tmp/step-XXXXXX", path[sizeof(folder) + 8];
    const char *qemu = getenv("BY_TEST_QEMU"), *descriptor = getenv(MEMORY_FD);
    unsigned stop = 0;
    int fd;

    if (descriptor)
        live(atoi(descriptor), bytes, run);
    fd = memfd_create("step", 0);
    if (!qemu || fd < 0 || ftruncate(fd, (off_t)bytes) != 0 || !mkdtemp(folder))
        return NULL;
    snprintf(path, sizeof(path), "%s/gdb", folder);
    shared_bytes = bytes;
    shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared != MAP_FAILED) {
        child = fork();
        if (child == 0)
            start_copy(qemu, path, fd);
        if (child > 0 && connect_to(path) == 0)
            stop = command('c');
    }
    close(fd);
    unlink(path);
    rmdir(folder);
    errno = ECHILD;
    return stop == USR1 ? shared : NULL;
}

unsigned step_run(void (*change)(void *memory))
{
    for (unsigned steps = 1; steps < STEP_LIMIT; steps++) {
        unsigned stop;

        change(shared);
        stop = command('s');
        if (stop == USR1)
            return steps;
        if (stop != TRAP)
            return 0;
    }
    return 0;
}

void step_end(void)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(line);
    munmap(shared, shared_bytes);
}

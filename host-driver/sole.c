/* One program of a job at a time on a host; see sole.h. The name is that of a listening UNIX socket
 * in the abstract namespace, which belongs to the network namespace, as the addresses do. */
#include "host-driver/sole.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "host-driver/error.h"

#define COMMAND_MAX 64u
#define WAITS_MAX   50 /* during one second */

static socklen_t name_make(uint16_t job, uint32_t ip, uint16_t udp_port, struct sockaddr_un *name)
{
    int length;

    memset(name, 0, sizeof(*name));
    name->sun_family = AF_UNIX;
    /* the first byte remains 0: abstract */
    length = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "banyan/job/%u/%u.%u.%u.%u:%u", job,
                      ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255, udp_port);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Returns the process that listens at `name`; 0: unknown. */
static pid_t listener_of(const struct sockaddr_un *name, socklen_t bytes)
{
    struct ucred owner = {0};
    socklen_t size = sizeof(owner);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return 0;
    if (connect(fd, (const struct sockaddr *)name, bytes) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size) != 0)
        owner.pid = 0;
    close(fd);
    return owner.pid;
}

/* Reads the name of a process's program. Returns 0 if the process has ended. */
static int command_of(pid_t pid, char command[COMMAND_MAX])
{
    char path[64];
    size_t bytes;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    bytes = fread(command, 1, COMMAND_MAX - 1, file);
    fclose(file);
    command[bytes] = 0;
    command[strcspn(command, "\n")] = 0;
    return bytes > 0;
}

static int refuse(uint16_t job, pid_t pid)
{
    char command[COMMAND_MAX];

    if (pid == 0)
        return by_fail(BY_EBUSY,
                       "job %u is in use by another process of this host; a host runs one program of a "
                       "job at a time",
                       job);
    if (pid == getpid())
        return by_fail(BY_EBUSY, "job %u is in use by another communicator of this process; destroy it first",
                       job);
    if (!command_of(pid, command))
        return by_fail(BY_EBUSY,
                       "job %u is in use by processes that process %d of this host has started; end them",
                       job, (int)pid);
    return by_fail(
        BY_EBUSY,
        "job %u is in use by process %d (%s) of this host; a host runs one program of a job at a time: "
        "wait for it, end it, or use another job",
        job, (int)pid, command);
}

int by_sole_begin(uint16_t job, uint32_t ip, uint16_t udp_port, int *fd)
{
    struct sockaddr_un name;
    socklen_t bytes = name_make(job, ip, udp_port, &name);
    pid_t other = -1;
    int number = 0;

    *fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    for (int waits = 0; *fd >= 0 && waits < WAITS_MAX; waits++) {
        if (bind(*fd, (const struct sockaddr *)&name, bytes) == 0 && listen(*fd, SOMAXCONN) == 0)
            return 0;
        number = errno;
        if (number != EADDRINUSE)
            break;
        /* asked once, because the other process accepts no connections */
        if (waits == 0)
            other = listener_of(&name, bytes);
        if (other == getpid())
            break;
        /* a process that was killed may still be ending */
        nanosleep(&(struct timespec){.tv_nsec = 1000000000 / WAITS_MAX}, NULL);
    }
    if (*fd >= 0)
        close(*fd);
    else
        number = errno;
    *fd = -1;
    if (number == EADDRINUSE)
        return refuse(job, other);
    return by_fail(BY_EIO, "the name of job %u cannot be taken on this host: %s", job, strerror(number));
}

/* One datagram to the socket that systemd names; see notify.h. */
#include "offload/linux/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void by_notify(const char *state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    int fd;

    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof address.sun_path)
        return;
    memcpy(address.sun_path, path, strlen(path));
    if (path[0] == '@')
        address.sun_path[0] = 0; /* the abstract namespace */
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address,
           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
    close(fd);
}

uint32_t by_notify_watchdog_ms(void)
{
    const char *microseconds = getenv("WATCHDOG_USEC"), *process = getenv("WATCHDOG_PID");

    if (!microseconds || (process && strtol(process, NULL, 10) != (long)getpid()))
        return 0;
    return (uint32_t)(strtoul(microseconds, NULL, 10) / 1000);
}

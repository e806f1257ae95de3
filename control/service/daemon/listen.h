/* Listening sockets of banyand, for hosts (members.c) and for commands (http.c). Non-blocking. Any
 * thread. */
#ifndef BY_SERVICE_DAEMON_LISTEN_H
#define BY_SERVICE_DAEMON_LISTEN_H

#include <stdbool.h>

/* Opens a UNIX socket at `path` that only its owner can use (mode 0600). Removes the socket that a
 * killed process has left there. Returns a descriptor, or -1 with errno: EADDRINUSE when a program
 * listens there. */
int by_listen_unix(const char *path);
/* Opens a TCP socket at "[HOST]:PORT"; without HOST at every address. `*loopback`: other machines
 * cannot reach it. Returns a descriptor, or -1 with errno: EINVAL without such an address. */
int by_listen_tcp(const char *text, bool *loopback);

#endif

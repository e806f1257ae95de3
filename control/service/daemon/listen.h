/* Listening sockets of banyand, for hosts (members.c) and for commands (http.c). Non-blocking; any
 * thread. */
#ifndef BY_SERVICE_DAEMON_LISTEN_H
#define BY_SERVICE_DAEMON_LISTEN_H

#include <stdbool.h>

/* A UNIX socket at `path` that its owner alone may use (mode 0600). What one that was killed has
 * left there is removed. A descriptor, or -1 with errno: EADDRINUSE when somebody listens there. */
int by_listen_unix(const char *path);
/* At "[HOST]:PORT"; no HOST is every address. `*loopback`: nobody beyond this machine reaches it. A
 * descriptor, or -1 with errno. */
int by_listen_tcp(const char *text, bool *loopback);

#endif

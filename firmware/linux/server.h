/*
 * The sockets of the control channel: listeners on UNIX, TCP and TLS addresses, and their clients.
 * Bytes pass to the agent's channel step and back; nothing here blocks. One thread: the one that
 * runs the shell, which calls by_server_serve when the server's descriptor is readable. TLS
 * handshakes run in a separate thread (firmware/secure/acceptor.h).
 */
#ifndef BY_FIRMWARE_LINUX_SERVER_H
#define BY_FIRMWARE_LINUX_SERVER_H

#include "firmware/agent/agent.h"

struct by_carrier;
struct by_server;

/*
 * Opens `count` listeners:
 *   unix:PATH
 *   tcp:ADDRESS:PORT  only loopback addresses, because every client may load tables
 *   tls:ADDRESS:PORT  clients must present a controller's certificate from the authority of the
 *                     folder `keys` (firmware/secure/tls.h)
 * Returns 0; BY_EFORMAT (an invalid address) and BY_EEXIST (in use) are the user's errors, others
 * the environment's; all are reported.
 */
int by_server_open(struct by_server **server, const char *const *addresses, unsigned count, const char *keys);
/* Returns an epoll descriptor that is readable when by_server_serve has work. */
int by_server_fd(const struct by_server *server);
/* Sets the agent that answers; no clients are accepted before. */
void by_server_attach(struct by_server *server, struct by_agent *agent);
/* Notifies clients that have requested it when one of these carriers changes; they must outlive the
 * server's last by_server_serve. */
void by_server_watch(struct by_server *server, struct by_carrier *carrier);
/* Accepts, reads, answers and writes as far as possible without blocking. */
void by_server_serve(void *server);
/* Closes everything and removes the sockets' files. */
void by_server_close(struct by_server *server);

#endif

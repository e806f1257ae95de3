/*
 * The sockets of the control channel: listeners on UNIX, TCP and TLS addresses, and the clients
 * that came. Bytes go to the agent's channel step and back; nothing here blocks. One thread: the
 * one that runs the shell, which calls by_server_serve when the server's descriptor is readable.
 * Handshakes of TLS have a thread beside it (firmware/secure/acceptor.h).
 */
#ifndef BY_FIRMWARE_LINUX_SERVER_H
#define BY_FIRMWARE_LINUX_SERVER_H

#include "firmware/agent/agent.h"

struct by_server;

/*
 * Opens `count` listeners: "unix:PATH", "tcp:ADDRESS:PORT" (loopback addresses: whoever reaches it
 * may load tables) or "tls:ADDRESS:PORT", whose clients must show a controller's certificate by the
 * authority of the folder `keys` (firmware/secure/tls.h). 0; BY_EFORMAT (an address that is none)
 * and BY_EXIST (in use) are the user's, the rest the environment's; reported.
 */
int by_server_open(struct by_server **server, const char *const *addresses, unsigned count, const char *keys);
/* An epoll descriptor that is readable when there is something to do. */
int by_server_fd(const struct by_server *server);
/* The agent that answers; before it is set nobody is accepted. */
void by_server_attach(struct by_server *server, struct by_agent *agent);
/* Accepts, reads, answers, writes: what can be done without waiting. */
void by_server_serve(void *server);
/* Closes everything and removes the sockets' files. */
void by_server_close(struct by_server *server);

#endif

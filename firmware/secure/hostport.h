/*
 * Hosts and ports as text, in the same format at all ends of control channels. Neighbours:
 * control/service/controller/dial.c and host-driver/line.c connect, firmware/linux/server.c and
 * control/service/daemon/listen.c listen. Pure; any thread.
 */
#ifndef BY_SECURE_HOSTPORT_H
#define BY_SECURE_HOSTPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct by_hostport {
    char host[256]; /* "": all addresses of this machine; only for listeners */
    char port[16];
};

/* Reads "HOST:PORT", "[HOST]:PORT" for a host with colons (RFC 3986, section 3.2.2), or ":PORT";
 * `length` bytes. Returns 0, or BY_EINVAL if there is no port or something is too long. Only
 * getaddrinfo() checks whether the host exists. */
int by_hostport_read(const char *text, size_t length, struct by_hostport *hostport);
/* Returns whether only this machine can reach the address. */
bool by_hostport_is_loopback(const struct sockaddr *address);

#endif

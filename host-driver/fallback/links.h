/*
 * Connections that a mesh opens when the first message to a rank needs them, over one connection
 * for each pair. The sender connects; a receiver that waits for a connection connects too after a
 * while, which shows whether the sender has ended. If both connect at once, the connection of the
 * lower rank is kept. Connections for notices are opened by the first question. Neighbours: mesh.c
 * and notice.c. Non-blocking; the thread of the mesh.
 */
#ifndef BY_HOST_FALLBACK_LINKS_H
#define BY_HOST_FALLBACK_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "host-driver/fallback/pipe.h"

struct by_host_mesh;
struct by_mesh_fault;

#define BY_HELLO_BYTES 32u

/* Purpose of a connection. */
enum by_mesh_channel { BY_CHANNEL_DATA = 1, BY_CHANNEL_CONTROL };

/* The first bytes of a connection, from the rank that has opened it. */
struct by_hello {
    uint32_t rank;
    uint32_t channel;
    struct by_pipe_offer offer; /* of memory for the data, or zeros */
};

void by_hello_encode(const struct by_hello *hello, uint32_t key, uint8_t bytes[BY_HELLO_BYTES]);
/* Returns false unless the bytes are a greeting of a job with this key. */
bool by_hello_decode(const uint8_t bytes[BY_HELLO_BYTES], uint32_t key, struct by_hello *hello);

/* What a descriptor in the epoll set of the mesh is for. */
enum by_watched { BY_WATCH_NOTICES, BY_WATCH_DATA, BY_WATCH_DOOR, BY_WATCH_DIAL_DATA, BY_WATCH_DIAL_CONTROL };

/* Adds a descriptor to the epoll set, or changes what it waits for. 0, or BY_EIO with errno. */
int by_watch_set(const struct by_host_mesh *mesh, int fd, uint32_t events, enum by_watched what,
                 uint32_t rank);

/* Prepares for connections on demand: from now on the mesh owns `listener`, the socket at which
 * other ranks connect to this one. 0, or an error with its text. */
int by_links_open(struct by_host_mesh *mesh, const uint16_t *port, int listener);
void by_links_close(struct by_host_mesh *mesh);
/* Begins the connections that the messages under way need. */
void by_links_need(struct by_host_mesh *mesh, struct by_mesh_fault *fault);
/* Begins a connection for notices; does nothing if there is one. */
void by_links_ask(struct by_host_mesh *mesh, uint32_t peer);
/* Returns the connection for notices to that rank, or one that the rank has yet to accept: it reads
 * notices there after it has. -1: there is none. */
int by_links_notices(const struct by_host_mesh *mesh, uint32_t peer);
/* Handles an event of the epoll set, other than BY_WATCH_NOTICES. */
void by_links_hear(struct by_host_mesh *mesh, enum by_watched what, uint32_t rank,
                   struct by_mesh_fault *fault);

#endif

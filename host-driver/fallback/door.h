/*
 * A listener and its new connections. Connections are accepted as they arrive and returned in the
 * order in which their greetings complete, so a connection that sends no greeting (from a foreign
 * or a stopped process) does not block the others. Neighbours: peers.c and mesh.c interpret the
 * greetings. One thread, with a deadline.
 */
#ifndef BY_HOST_FALLBACK_DOOR_H
#define BY_HOST_FALLBACK_DOOR_H

#include <stdint.h>

/* Connections without a greeting; when all are taken, the oldest is closed for the next one. */
#define BY_DOOR_GUESTS   64u
#define BY_DOOR_GREETING 32u /* maximum size in bytes */

struct by_guest {
    int fd;
    uint32_t have;
    uint64_t came_ns;
    uint8_t greeting[BY_DOOR_GREETING];
};

struct by_door {
    int listener;
    uint32_t bytes; /* of a greeting */
    /* epoll descriptor to which connections without a greeting are added, with these data; or -1 */
    int watch;
    uint64_t watched;
    uint32_t count;
    struct by_guest guest[BY_DOOR_GUESTS]; /* in order of arrival */
};

/* The caller keeps ownership of the listener. */
void by_door_open(struct by_door *door, int listener, uint32_t bytes);
/* Returns the next connection with a complete greeting, and the greeting. A socket, or BY_ETIMEDOUT
 * or BY_EIO with errno. */
int by_door_next(struct by_door *door, uint8_t *greeting, uint64_t deadline_ns);
/* The same without waiting, and BY_EAGAIN in place of BY_ETIMEDOUT. */
int by_door_look(struct by_door *door, uint8_t *greeting);
/* Closes all connections that were not returned. */
void by_door_close(struct by_door *door);

#endif

/*
 * A listener and who has come to it: connections are taken in as they come, and given away in the
 * order in which their greetings are complete, so that one which says nothing, a stranger's or a
 * stopped process's, holds up nobody. Neighbours: peers.c and mesh.c, which know what greetings
 * mean. One thread, with a deadline.
 */
#ifndef BY_HOST_FALLBACK_DOOR_H
#define BY_HOST_FALLBACK_DOOR_H

#include <stdint.h>

#define BY_DOOR_GUESTS   64u /* without a greeting; then the one that came first must go for the next */
#define BY_DOOR_GREETING 20u /* bytes at most */

struct by_guest {
    int fd;
    uint32_t have;
    uint64_t came_ns;
    uint8_t greeting[BY_DOOR_GREETING];
};

struct by_door {
    int listener;
    uint32_t bytes; /* of a greeting */
    uint32_t count;
    struct by_guest guest[BY_DOOR_GUESTS]; /* in the order in which they came */
};

/* The listener stays the caller's. */
void by_door_open(struct by_door *door, int listener, uint32_t bytes);
/* The next connection that has greeted, and its greeting. A socket, or BY_ETIMEDOUT or BY_EIO with
 * errno. */
int by_door_next(struct by_door *door, uint8_t *greeting, uint64_t deadline_ns);
/* Closes all connections that were not given away. */
void by_door_close(struct by_door *door);

#endif

/*
 * Communicators of some ranks of another one. Their hosts get a job of their own from the
 * controller (BY_MEMBER_GROUP), which ends when they have left. Neighbours: comm_open.c opens the
 * communicator; ranks.c exchanges what its ranks must know of each other. Thread: the new
 * communicator's.
 */
#ifndef BY_HOST_GROUP_H
#define BY_HOST_GROUP_H

#include <stdint.h>

#include "host-driver/bootstrap/bootstrap.h"
#include "offload/wire/member.h"

struct banyan_comm;

#define BY_GROUP_TEXT 240u

/* State while the communicator opens. */
struct by_group {
    struct by_bootstrap bootstrap; /* the allgather of its ranks */
    uint16_t parent;               /* the parent's job */
    uint16_t seat;                 /* this rank's host in that job */
    int error;                     /* why this rank cannot take part, with `text`; or 0 */
    char text[BY_GROUP_TEXT];
    uint8_t hosts[BY_MEMBER_GROUP_BYTES]; /* ranks of the parent's job; known after the first exchange */
    uint32_t host_bytes;
};

#endif

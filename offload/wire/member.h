/*
 * What a host and the controller say to each other: frames on a stream (PROTOCOL.md, "Members"). A
 * host that is told of a fault goes on in other trees, and gives its word to the other ranks
 * through the controller. Neighbours: host-driver/member.c, control/service/daemon/members.c. Pure;
 * any thread.
 */
#ifndef BY_WIRE_MEMBER_H
#define BY_WIRE_MEMBER_H

#include <stddef.h>
#include <stdint.h>

#include "offload/base/limits.h"

#define BY_MEMBER_VERSION 2u
/* Of every frame: length of what follows it (4), version (1), type (1), job, rank and generation (2
 * each). */
#define BY_MEMBER_HEAD_BYTES 12u
/* Of what comes before a frame's data, at most. */
#define BY_MEMBER_FIXED_MAX (BY_MEMBER_HEAD_BYTES + 8u)
/* Of what one rank says to another (bytes): a report of all trees with the longest windows. */
#define BY_MEMBER_SAY_MAX (8u << 20)
/* Of what a host's port has counted: frames sent, frames received (8 bytes each). */
#define BY_MEMBER_PORT_BYTES 16u
/* Of the text of a failure (bytes). */
#define BY_MEMBER_TEXT_MAX 480u

/* Who sends a frame. */
enum by_member_side { BY_MEMBER_HOST = 1, BY_MEMBER_CONTROLLER };

/* X(NAME, value, side, bytes of fields, least and most bytes of data) */
#define BY_MEMBER_LIST(X)                                                                                    \
    X(HELLO, 1, HOST, 8, 1, BY_NAME_MAX)                                                                     \
    X(ALIVE, 2, HOST, 8, 0, BY_MEMBER_PORT_BYTES *BY_PORTS_MAX)                                              \
    X(SUSPECT, 3, HOST, 6, 0, 0)                                                                             \
    X(SAY, 4, HOST, 2, 1, BY_MEMBER_SAY_MAX)                                                                 \
    X(CARRIED, 5, HOST, 0, 0, 0)                                                                             \
    X(BYE, 6, HOST, 0, 0, 0)                                                                                 \
    X(WELCOME, 17, CONTROLLER, 0, 0, BY_IMAGE_BYTES_MAX)                                                     \
    X(FREEZE, 18, CONTROLLER, 0, 0, BY_IMAGE_BYTES_MAX)                                                      \
    X(HEARD, 19, CONTROLLER, 2, 1, BY_MEMBER_SAY_MAX)                                                        \
    X(GO, 20, CONTROLLER, 0, 0, 0)                                                                           \
    X(FAIL, 21, CONTROLLER, 4, 0, BY_MEMBER_TEXT_MAX)

enum by_member_type {
#define X(name, value, side, fields, least, most) BY_MEMBER_##name = (value),
    BY_MEMBER_LIST(X)
#undef X
};

struct by_member_frame {
    uint8_t type; /* enum by_member_type */
    uint16_t job, rank;
    uint16_t gen;  /* HELLO: of the host's table, 0: it has none; FREEZE, GO and what answers: the attempt */
    uint16_t peer; /* SAY: to which rank; HEARD: from which; SUSPECT: which node */
    int32_t code;  /* SUSPECT, FAIL: enum by_error */
    uint64_t number; /* HELLO: the process's nonce; ALIVE: chunks done */
    const uint8_t
        *data; /* HELLO: the node's name; ALIVE: what its ports have counted, in order; SAY, HEARD: a message
                  of resume.h; WELCOME, FREEZE: a table image, or nothing where the host has it; FAIL: why */
    uint32_t bytes;
};

/* Writes all of a frame but its data, which follow: bytes written. The frame must be a sound one.
 */
size_t by_member_put(const struct by_member_frame *frame, uint8_t fixed[BY_MEMBER_FIXED_MAX]);
/*
 * Reads one frame of `side` from the start of a stream; `data` points into it. 0 and `*used` bytes;
 * BY_EAGAIN while it is incomplete, `*used` being how many bytes are wanted in all; BY_EVERSION;
 * BY_EFORMAT when it is no frame of that side; BY_ELIMIT when it is longer than its type can be,
 * `*used` being how long that is.
 */
int by_member_get(const uint8_t *bytes, size_t size, enum by_member_side side, struct by_member_frame *frame,
                  size_t *used);
/* "HELLO"; "?" for what is none. */
const char *by_member_name(unsigned type);

#endif

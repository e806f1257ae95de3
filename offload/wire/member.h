/*
 * The protocol between a host and the controller: frames on a stream (PROTOCOL.md, "Members").
 * After a fault a host continues in other trees, and exchanges messages with the other ranks
 * through the controller. Neighbours: host-driver/member.c, control/service/daemon/members.c. Pure;
 * any thread.
 */
#ifndef BY_WIRE_MEMBER_H
#define BY_WIRE_MEMBER_H

#include <stddef.h>
#include <stdint.h>

#include "offload/base/limits.h"
#include "offload/wire/latency.h"

#define BY_MEMBER_VERSION 3u
/* Size of the head of every frame: length of the rest (4), version (1), type (1), job, rank and
 * generation (2 each). */
#define BY_MEMBER_HEAD_BYTES 12u
/* Maximum size of everything before the data of a frame. */
#define BY_MEMBER_FIXED_MAX (BY_MEMBER_HEAD_BYTES + 8u)
/* Maximum size of a message between two ranks (bytes): a report of all trees with the longest
 * windows. */
#define BY_MEMBER_SAY_MAX (8u << 20)
/* Size of the counters of one host port: frames sent, frames received (8 bytes each). */
#define BY_MEMBER_PORT_BYTES 16u
/* Maximum size of the set of hosts in a GROUP (bytes): one bit for each. */
#define BY_MEMBER_GROUP_BYTES 512u
/* Maximum size of the text of a failure (bytes). */
#define BY_MEMBER_TEXT_MAX 480u
/* Maximum size of the set of trees in a STANDBY (bytes): one bit for each. */
#define BY_MEMBER_MASK_MAX (BY_TREES_MAX / 8u)
/* The rank in the HELLO of a host that accepts STANDBY. */
#define BY_MEMBER_RANK_STANDBY 0xfffeu

/* The sender of a frame. */
enum by_member_side { BY_MEMBER_HOST = 1, BY_MEMBER_CONTROLLER };

/* X(NAME, value, side, bytes of fields, least and most bytes of data) */
#define BY_MEMBER_LIST(X)                                                                                    \
    X(HELLO, 1, HOST, 8, 1, BY_NAME_MAX)                                                                     \
    X(ALIVE, 2, HOST, 8, 0, BY_MEMBER_PORT_BYTES *BY_PORTS_MAX)                                              \
    X(SUSPECT, 3, HOST, 6, 0, 0)                                                                             \
    X(SAY, 4, HOST, 2, 1, BY_MEMBER_SAY_MAX)                                                                 \
    X(CARRIED, 5, HOST, 0, 0, 0)                                                                             \
    X(BYE, 6, HOST, 0, 0, 0)                                                                                 \
    X(MEASURED, 7, HOST, 8, BY_LATENCY_ALL_BYTES, BY_LATENCY_ALL_BYTES)                                      \
    X(GROUP, 8, HOST, 8, 3, BY_NAME_MAX + 1 + BY_MEMBER_GROUP_BYTES)                                         \
    X(WELCOME, 17, CONTROLLER, 0, 0, BY_IMAGE_BYTES_MAX)                                                     \
    X(FREEZE, 18, CONTROLLER, 0, 0, BY_IMAGE_BYTES_MAX)                                                      \
    X(HEARD, 19, CONTROLLER, 2, 1, BY_MEMBER_SAY_MAX)                                                        \
    X(GO, 20, CONTROLLER, 0, 0, 0)                                                                           \
    X(FAIL, 21, CONTROLLER, 4, 0, BY_MEMBER_TEXT_MAX)                                                        \
    X(STANDBY, 22, CONTROLLER, 4, 0, BY_MEMBER_MASK_MAX + BY_IMAGE_BYTES_MAX)

enum by_member_type {
#define X(name, value, side, fields, least, most) BY_MEMBER_##name = (value),
    BY_MEMBER_LIST(X)
#undef X
};

struct by_member_frame {
    uint8_t type; /* enum by_member_type */
    uint16_t job, rank;
    uint16_t gen;        /* HELLO: of the host's table, 0: none; FREEZE, GO and replies: attempt */
    uint16_t peer;       /* SAY: the receiving rank; HEARD: the sending rank; SUSPECT: the suspected node */
    uint16_t base;       /* STANDBY: the generation beside which it stands by */
    uint16_t mask_bytes; /* STANDBY: of the set of trees; at most `bytes` */
    int32_t code;        /* SUSPECT, FAIL: enum by_error */
    uint64_t number;     /* HELLO, GROUP, MEASURED: nonce of the process; ALIVE: chunks done */
    /*
     * The data, by type:
     *   HELLO            the node's name
     *   GROUP            the node's name, a zero byte, and a set of hosts: rank k of `job` is bit
     *                    k % 8 of byte k / 8
     *   ALIVE            the counters of its ports, in order
     *   MEASURED         the histograms of its operations, by collective (latency.h)
     *   SAY, HEARD       a message of resume.h
     *   WELCOME, FREEZE  a table image, or nothing if the host has it
     *   FAIL             the reason
     *   STANDBY          a set of trees: tree number t of the table of `base` is bit t % 8 of byte
     *                    t / 8; then a table image. Nothing: there are no standbys of `base`
     */
    const uint8_t *data;
    uint32_t bytes;
};

/* Writes everything of a frame but its data, which follow. Returns the bytes written. The frame
 * must be valid. */
size_t by_member_put(const struct by_member_frame *frame, uint8_t fixed[BY_MEMBER_FIXED_MAX]);
/*
 * Reads one frame of `side` from the start of a stream; `data` points into the stream. Returns 0
 * and the bytes read in `*used`, or:
 *   BY_EAGAIN    the frame is incomplete; `*used` is the number of bytes required in all
 *   BY_EVERSION  another protocol version
 *   BY_EFORMAT   not a frame of that side
 *   BY_ELIMIT    longer than its type allows; `*used` is the type's maximum length
 */
int by_member_get(const uint8_t *bytes, size_t size, enum by_member_side side, struct by_member_frame *frame,
                  size_t *used);
/* Returns the name of a type, such as "HELLO"; "?" for an unknown one. */
const char *by_member_name(unsigned type);

#endif

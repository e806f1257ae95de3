/*
 * A connection of a schedule: data in one direction, from the sender of a path to its receiver, and
 * notes back. Non-blocking; one thread. Neighbour: schedule.c decides what moves.
 */
#ifndef BY_HOST_SCHEDULE_CONNECTION_H
#define BY_HOST_SCHEDULE_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BY_CONNECTION_HEAD_BYTES 24u

enum by_connection_kind {
    BY_CONNECTION_DATA = 1,
    /* a note: the receiver has begun all operations before number `operation`, and admits
     * `elements` messages in all */
    BY_CONNECTION_READY
};

/* A note, or the head of a message with data. */
struct by_connection_head {
    enum by_connection_kind kind;
    uint32_t operation;
    uint32_t index;    /* of data: number of the step on this way */
    uint32_t tag;      /* of data: hash of the call */
    uint64_t elements; /* of data: of the whole item in this operation */
};

/* Bytes on their way out or in, after a head. */
struct by_connection_stream {
    bool active;
    uint8_t head[BY_CONNECTION_HEAD_BYTES];
    uint32_t head_done;
    uint8_t *body; /* the caller's; only read if it is sent */
    size_t body_bytes, body_done;
};

/* What a receiver grants its sender. */
struct by_connection_credit {
    uint32_t operation; /* all before it have begun */
    uint64_t messages;  /* since the connection was opened */
};

struct by_schedule_connection {
    int fd; /* or -1 */
    uint32_t peer;
    bool sends; /* this end sends the data */
    bool gone;  /* the other end has closed it */
    struct by_connection_stream out, in;
    /* at the receiver, of the note READY: what the caller grants, and what has been sent */
    struct by_connection_credit ready, sent;
    uint64_t tx_bytes, rx_bytes;
};

enum by_connection_news {
    BY_CONNECTION_NOTHING,
    BY_CONNECTION_HEAD,
    BY_CONNECTION_BODY,
    BY_CONNECTION_CLOSED
};

/* Takes a connected socket. */
void by_connection_open(struct by_schedule_connection *connection, int fd, uint32_t peer, bool sends);
void by_connection_close(struct by_schedule_connection *connection);
/* Begins a message with data; nothing else of this way may be under way. `body` must stay valid
 * until by_connection_push returns true. */
void by_connection_send(struct by_schedule_connection *connection, const struct by_connection_head *head,
                        const void *body, size_t bytes);
/* Moves what the connection accepts; a receiver sends the note READY if `ready` has changed. True:
 * a message with data has been passed to the kernel. */
bool by_connection_push(struct by_schedule_connection *connection);
/* Whether bytes are left to be pushed. */
bool by_connection_is_full(const struct by_schedule_connection *connection);
/* Reads. HEAD: `head` is a note or announces data, for which the caller calls by_connection_take
 * before it pulls again. BODY: the data have arrived. */
enum by_connection_news by_connection_pull(struct by_schedule_connection *connection,
                                           struct by_connection_head *head);
/* Sets where the announced data go. */
void by_connection_take(struct by_schedule_connection *connection, void *body, size_t bytes);

#endif

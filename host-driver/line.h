/*
 * A non-blocking connection to the controller that carries frames (offload/wire/member.h), over TLS
 * if the address is `tls:` (firmware/secure/tls.h). It reconnects when it breaks, at growing
 * intervals while the controller does not answer. Neighbour: member.c interprets the frames.
 * Thread: the communicator's.
 */
#ifndef BY_HOST_LINE_H
#define BY_HOST_LINE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "firmware/secure/tls.h"
#include "offload/wire/member.h"

/* Interval between attempts to connect: initial and maximal (ns). */
#define BY_LINE_PAUSE_NS     UINT64_C(50000000)
#define BY_LINE_PAUSE_MAX_NS UINT64_C(200000000)

/* Maximum of received bytes that wait to be processed: one frame of the largest size plus one read.
 * The kernel holds the rest, so that flow control slows a fast sender. */
#define BY_LINE_READ_BYTES ((size_t)64 << 10)
#define BY_LINE_IN_MAX     (BY_MEMBER_FIXED_MAX + (size_t)BY_IMAGE_BYTES_MAX + BY_LINE_READ_BYTES)

/* Maximum number of addresses (count). */
#define BY_LINE_ADDRESSES_MAX 8u

/* Waiting bytes: [at, used) of `room`. */
struct by_line_queue {
    uint8_t *bytes;
    size_t at, used, room;
};

struct by_line_address {
    struct sockaddr_storage socket;
    socklen_t bytes;
    bool tls;
};

struct by_host_line {
    char where[512];    /* the addresses as given */
    uint32_t count, at; /* at: the address in use; after a failure the next one */
    struct by_line_address addresses[BY_LINE_ADDRESSES_MAX];
    struct by_tls_identity *identity; /* for tls: addresses, or NULL */
    struct by_tls *tls;
    int fd;         /* or -1 */
    bool connected; /* connected; over TLS the handshake may still run */
    bool up;        /* frames can be sent */
    bool full;      /* more bytes may have arrived than were read */
    uint64_t begun_ns, retry_ns, pause_ns;
    uint64_t asked_ns; /* an answer is expected since; 0: none is */
    struct by_line_queue in, out;
    char why[BY_TLS_TEXT_MAX]; /* reason why it is not up; "" at first */
};

enum by_line_event { BY_LINE_NOTHING, BY_LINE_UP, BY_LINE_MOVED };

/* Parses "unix:PATH", "tcp:HOST:PORT" or "tls:HOST:PORT", or several of them with commas between,
 * and resolves each HOST; does not connect yet. Several banyands may share a fabric, of which only
 * one accepts hosts. `keys` is the folder of this host's keys, "" if it has none. 0, or an error
 * with its text. */
int by_host_line_open(struct by_host_line *line, const char *addresses, const char *keys);
/* Frees everything; the line may also be zeroed memory. */
void by_host_line_close(struct by_host_line *line);
/* Connects when it is time, receives and sends what it can. UP: a new connection; frames queued
 * before were discarded, and the controller has no state of this host yet. */
enum by_line_event by_host_line_step(struct by_host_line *line, uint64_t now_ns);
/* Closes the connection; it reconnects later. */
void by_host_line_drop(struct by_host_line *line, uint64_t now_ns, const char *why);
/* Queues a frame; ignored while the line is down. */
void by_host_line_put(struct by_host_line *line, const struct by_member_frame *frame, uint64_t now_ns);
/* Reports that the controller has been asked and answers at once. If it does not, and there are
 * several addresses, the line breaks and the next address follows. */
void by_host_line_ask(struct by_host_line *line, uint64_t now_ns);
/* Returns the next frame, whose data are valid until the next call of any function here. 0 or
 * BY_EAGAIN. A frame that a controller does not send, or that is too long, breaks the line. */
int by_host_line_get(struct by_host_line *line, struct by_member_frame *frame, uint64_t now_ns);
/* Latest time of the next step, apart from events that poll reports (ns). */
uint64_t by_host_line_deadline(const struct by_host_line *line);
/* Fills the descriptors to poll; returns 0 or 1. */
uint32_t by_host_line_fds(const struct by_host_line *line, struct pollfd *fds);

#endif

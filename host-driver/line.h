/*
 * A connection to the controller that carries frames (offload/wire/member.h), over TLS when the
 * address says so (firmware/secure/tls.h): never blocks, is opened again when it breaks, ever more
 * slowly while nobody answers. Neighbour: member.c, which knows what frames mean. The
 * communicator's thread.
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

/* Between two attempts to connect: at first, and at most (ns). */
#define BY_LINE_PAUSE_NS     UINT64_C(50000000)
#define BY_LINE_PAUSE_MAX_NS UINT64_C(200000000)

/* Bytes of what has come that wait to be taken, at most: of a frame as long as there are, and of
 * what comes in a read. The rest stays with the kernel, so that who sends more than we take waits.
 */
#define BY_LINE_READ_BYTES ((size_t)64 << 10)
#define BY_LINE_IN_MAX     (BY_MEMBER_FIXED_MAX + (size_t)BY_IMAGE_BYTES_MAX + BY_LINE_READ_BYTES)

/* Bytes that wait: [at, used) of `room`. */
struct by_line_queue {
    uint8_t *bytes;
    size_t at, used, room;
};

struct by_host_line {
    char where[256]; /* as it was given */
    struct sockaddr_storage address;
    socklen_t address_bytes;
    struct by_tls_identity *identity; /* NULL: bytes go as they are */
    struct by_tls *tls;
    int fd;         /* or -1 */
    bool connected; /* and each end is to show who it is, over TLS */
    bool up;        /* frames can go */
    bool full;      /* more may have come than was read */
    uint64_t begun_ns, retry_ns, pause_ns;
    struct by_line_queue in, out;
    char why[BY_TLS_TEXT_MAX]; /* it is not up; "" at first */
};

enum by_line_event { BY_LINE_NOTHING, BY_LINE_UP, BY_LINE_MOVED };

/* Reads "unix:PATH", "tcp:HOST:PORT" or "tls:HOST:PORT" and looks HOST up; connects to nobody yet.
 * `keys` is the folder of this host's keys, "" when it has none. 0, or an error with its text. */
int by_host_line_open(struct by_host_line *line, const char *address, const char *keys);
/* After it nothing is held; the line may be zeroed memory, too. */
void by_host_line_close(struct by_host_line *line);
/* Connects, when it is time to, receives and sends what can be. UP: what was queued before is
 * forgotten, and the other side knows nothing of us yet. */
enum by_line_event by_host_line_step(struct by_host_line *line, uint64_t now_ns);
/* Ends the connection, which is then opened again. */
void by_host_line_drop(struct by_host_line *line, uint64_t now_ns, const char *why);
/* Queues a frame; passed over while the line is down. */
void by_host_line_put(struct by_host_line *line, const struct by_member_frame *frame, uint64_t now_ns);
/* The next frame, its data valid until the next call of any function here. 0 or BY_EAGAIN; what is
 * no frame of a controller, or is longer than such a one can be, breaks the line. */
int by_host_line_get(struct by_host_line *line, struct by_member_frame *frame, uint64_t now_ns);
/* When there is something to do at the latest, but for what poll tells (ns). */
uint64_t by_host_line_deadline(const struct by_host_line *line);
/* What to poll; 0 or 1 entries. */
uint32_t by_host_line_fds(const struct by_host_line *line, struct pollfd *fds);

#endif

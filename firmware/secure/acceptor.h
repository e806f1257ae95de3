/*
 * Takes connections over TLS in a thread of its own: accepts them, goes through their handshakes,
 * and hands over the streams whose other ends have shown who they are. A handshake costs about a
 * millisecond of a processor, and whoever comes may let it last: the loops that move packets
 * (firmware/linux/server.c) or keep jobs running (control/service/daemon/members.c) see neither.
 * Functions are the owner's, one thread's; the thread is started by open and ended by close.
 *
 * So many may be at it at a time. When that many are, whoever has been at it for longer than
 * BY_GREETER_GRACE_MS makes room for who comes; until then those who come wait at the listener.
 */
#ifndef BY_SECURE_ACCEPTOR_H
#define BY_SECURE_ACCEPTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "firmware/secure/tls.h"

/* Handshakes at a time, and listeners (count). */
#define BY_ACCEPTOR_HANDSHAKES_MAX 64u
#define BY_ACCEPTOR_LISTENERS_MAX  8u
/* A handshake must have ended after so long at most; who is at it may stay for so long though
 * others wait (ms). */
#define BY_ACCEPTOR_DEADLINE_MS 5000u
#define BY_ACCEPTOR_GRACE_MS    300u
/* Longest text (bytes, its end included): where it came from, and what by_tls_text says. */
#define BY_ACCEPTOR_TEXT_MAX (BY_TLS_TEXT_MAX + 64u)

struct by_acceptor;

struct by_acceptor_options {
    struct by_tls_identity *identity; /* stays the caller's, until after close */
    unsigned handshakes;              /* at a time: 1 to BY_GREETER_HANDSHAKES_MAX */
    uint32_t deadline_ms;             /* BY_GREETER_DEADLINE_MS, or less */
    uint32_t per_second, burst;       /* that are accepted, in the long run and at once: at least 1 */
    int niceness;                     /* how much nicer the thread is than who opens it: 0 to 19 */
};

/* Who came. */
struct by_greeted {
    struct by_tls *tls; /* the caller's now, with `fd`; NULL: it was refused, `text` says why */
    int fd;             /* or -1 */
    char text[BY_ACCEPTOR_TEXT_MAX];
};

/* Starts the thread, which accepts nobody yet. 0, BY_ENOMEM or BY_EIO, with errno. */
int by_acceptor_open(struct by_acceptor **acceptor, const struct by_acceptor_options *options);
/* Ends the thread, and whatever was not taken. NULL is allowed. */
void by_acceptor_close(struct by_acceptor *acceptor);
/* Accepts at this listening, non-blocking socket, which stays the caller's until after close. 0 or
 * BY_ELIMIT.
 */
int by_acceptor_listen(struct by_acceptor *acceptor, int fd);
/* Readable while there is somebody to take. */
int by_acceptor_fd(const struct by_acceptor *acceptor);
/* Takes one of those who came; false when there is none. */
bool by_acceptor_take(struct by_acceptor *acceptor, struct by_greeted *who);

#endif

/*
 * Accepts TLS connections in a thread of its own: accepts them, performs their handshakes, and
 * passes on the streams whose other ends have authenticated. A handshake costs about a millisecond
 * of processor time, and a client can prolong it at will. This thread keeps both away from the
 * loops that move packets (firmware/linux/server.c) or keep jobs running
 * (control/service/daemon/members.c). The functions are for one thread, the owner's; open starts
 * the acceptor's thread and close ends it.
 *
 * The number of concurrent handshakes is limited. At the limit, a handshake that has run for longer
 * than BY_ACCEPTOR_GRACE_MS makes room for a new connection; until then new connections wait at the
 * listener.
 */
#ifndef BY_SECURE_ACCEPTOR_H
#define BY_SECURE_ACCEPTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "firmware/secure/tls.h"

/* Maximum concurrent handshakes, and listeners (count). */
#define BY_ACCEPTOR_HANDSHAKES_MAX 64u
#define BY_ACCEPTOR_LISTENERS_MAX  8u
/* Maximum duration of a handshake, and the duration that is granted even if others wait (ms). */
#define BY_ACCEPTOR_DEADLINE_MS 5000u
#define BY_ACCEPTOR_GRACE_MS    300u
/* Longest text (bytes, with its terminating zero): the origin of the connection, and the text of
 * by_tls_text. */
#define BY_ACCEPTOR_TEXT_MAX (BY_TLS_TEXT_MAX + 64u)

struct by_acceptor;

struct by_acceptor_options {
    struct by_tls_identity *identity; /* remains the caller's and must outlive the acceptor */
    unsigned handshakes;              /* concurrent: 1 to BY_ACCEPTOR_HANDSHAKES_MAX */
    uint32_t deadline_ms;             /* BY_ACCEPTOR_DEADLINE_MS, or less */
    uint32_t per_second, burst;       /* limit on accepting: long-run rate and burst, at least 1 */
    int niceness;                     /* how much nicer the thread is than its opener: 0 to 19 */
};

/* The result of a connection. */
struct by_greeted {
    struct by_tls *tls; /* the caller's now, with `fd`; NULL: refused for the reason in `text` */
    int fd;             /* or -1 */
    char text[BY_ACCEPTOR_TEXT_MAX];
};

/* Starts the thread, which has no listeners yet. Returns 0, BY_ENOMEM or BY_EIO, with errno. */
int by_acceptor_open(struct by_acceptor **acceptor, const struct by_acceptor_options *options);
/* Ends the thread and all connections that were not taken. NULL is allowed. */
void by_acceptor_close(struct by_acceptor *acceptor);
/* Adds a listening, non-blocking socket, which remains the caller's and must outlive the acceptor.
 * Returns 0 or BY_ELIMIT. */
int by_acceptor_listen(struct by_acceptor *acceptor, int fd);
/* Returns a descriptor that is readable while there are results to take. */
int by_acceptor_fd(const struct by_acceptor *acceptor);
/* Takes one result; returns false when there is none. */
bool by_acceptor_take(struct by_acceptor *acceptor, struct by_greeted *who);

#endif

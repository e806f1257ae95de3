/*
 * Private and mutually authenticated control channels: TLS 1.3 over a connected stream. Each end
 * shows a certificate of the same authority, and neither continues without the other's. All ends
 * are implemented here, so that there is one place to audit: a switch's (firmware/linux/server.c),
 * the controller's towards switches (control/service/controller/session.c) and towards hosts
 * (control/service/daemon/members.c), and a host's (host-driver/line.c). Nothing blocks: calls that
 * would wait on a socket return BY_EAGAIN and report the event they wait for. Uses OpenSSL 3.
 * Threads may share an open identity; a stream belongs to one thread at a time.
 *
 * A folder of keys, as created by `banyan keys`: ca.pem (the authority's certificate), cert.pem and
 * key.pem (the owner's). The purpose of a certificate limits its role: a switch's cannot write
 * tables, a controller's cannot act as a switch, a host's can only join jobs.
 */
#ifndef BY_SECURE_TLS_H
#define BY_SECURE_TLS_H

#include <stddef.h>
#include <stdint.h>

/* Longest text of an error (bytes, with its terminating zero). */
#define BY_TLS_TEXT_MAX 320u

/* The local end and its peer: a switch or a controller of the control channel, a host that joins
 * its controller, a controller that accepts hosts. */
enum by_tls_end { BY_TLS_SWITCH, BY_TLS_CONTROLLER, BY_TLS_HOST, BY_TLS_HOSTS };

/* Purposes of certificates: extended key usages (RFC 5280, section 4.2.1.12). A host's is defined
 * by banyan (ITU-T X.667: a UUID as an arc), so that software that accepts certificates of
 * controllers or switches cannot confuse it with one. */
#define BY_TLS_USE_SWITCH     "1.3.6.1.5.5.7.3.1" /* serverAuth */
#define BY_TLS_USE_CONTROLLER "1.3.6.1.5.5.7.3.2" /* clientAuth */
#define BY_TLS_USE_HOST       "2.25.55857662582793274090038902012406458572"

struct by_tls_identity;
struct by_tls;

/*
 * Reads the folder's three files. Returns 0; BY_ENOENT (a file is missing), BY_EPERM (others may
 * read the key), BY_EFORMAT (wrong contents, or key and certificate do not match), BY_ENOMEM,
 * BY_EVERSION (there is no OpenSSL 3); `text` then names the file and the remedy.
 */
int by_tls_identity_open(const char *folder, enum by_tls_end end, struct by_tls_identity **identity,
                         char text[BY_TLS_TEXT_MAX]);
void by_tls_identity_close(struct by_tls_identity *identity);

/* Creates a stream over `fd`, connected and non-blocking, which remains the caller's. Returns NULL
 * if out of memory. */
struct by_tls *by_tls_open(struct by_tls_identity *identity, int fd);
/* Sends a closing message if that does not block; then frees the stream. NULL is allowed. */
void by_tls_close(struct by_tls *tls);

/*
 * Continues the handshake. Returns 0 once it is done; BY_EAGAIN; BY_EPERM when the other end is not
 * authorised; BY_EIO when it has closed or uses another protocol; by_tls_text() then returns
 * details.
 */
int by_tls_handshake(struct by_tls *tls);

/* Like recv and send, after the handshake. Return bytes (at least 1), 0 when the other end has
 * closed (only receive), BY_EAGAIN, or BY_EPERM and BY_EIO with by_tls_text(). */
int64_t by_tls_receive(struct by_tls *tls, void *data, size_t bytes);
int64_t by_tls_send(struct by_tls *tls, const void *data, size_t bytes);

/* Calls by_tls_receive into `into`, or by_tls_send from `from`. If `tls` is NULL, transfers plain
 * bytes over the non-blocking socket; BY_EIO then has errno. */
int64_t by_tls_move(struct by_tls *tls, int fd, void *into, const void *from, size_t bytes);

/* Returns the event that a call with BY_EAGAIN waits for: POLLIN or POLLOUT. */
short by_tls_events(const struct by_tls *tls);
/* Returns the name in the other end's certificate, "" before the handshake is done. */
const char *by_tls_peer(const struct by_tls *tls);
/* Returns the text of the last error: cause and remedy. */
const char *by_tls_text(const struct by_tls *tls);

#endif

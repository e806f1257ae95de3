/*
 * Control channels made private and mutual: TLS 1.3 over a connected stream, where each end shows a
 * certificate of the same authority and neither goes on without the other's. All ends live here, so
 * that there is one place to audit: a switch's (firmware/linux/server.c), the controller's towards
 * switches (control/service/controller/session.c) and towards hosts
 * (control/service/daemon/members.c), and a host's (host-driver/line.c). Nothing blocks: calls on a
 * socket that would wait return BY_EAGAIN and say for what. Made by OpenSSL 3. An identity may be
 * shared by threads once it is open; a stream belongs to one thread at a time.
 *
 * A folder of keys, as `banyan keys` makes it: ca.pem (the authority's certificate), cert.pem and
 * key.pem (one's own). What a certificate is for says who may be what: a switch's cannot write
 * tables, a controller's cannot pass for a switch, a host's is good for joining jobs and nothing
 * else.
 */
#ifndef BY_SECURE_TLS_H
#define BY_SECURE_TLS_H

#include <stddef.h>
#include <stdint.h>

/* Longest text of an error (bytes, its end included). */
#define BY_TLS_TEXT_MAX 320u

/* Who one is, and towards whom: a switch or a controller of the control channel, a host that joins
 * its controller, a controller that takes hosts in. */
enum by_tls_end { BY_TLS_SWITCH, BY_TLS_CONTROLLER, BY_TLS_HOST, BY_TLS_HOSTS };

/* What certificates are for: extended key usages (RFC 5280, section 4.2.1.12). A host's is of our
 * own making (ITU-T X.667: a UUID as an arc), so that whoever takes controllers' or switches'
 * cannot take it for one. */
#define BY_TLS_USE_SWITCH     "1.3.6.1.5.5.7.3.1" /* serverAuth */
#define BY_TLS_USE_CONTROLLER "1.3.6.1.5.5.7.3.2" /* clientAuth */
#define BY_TLS_USE_HOST       "2.25.55857662582793274090038902012406458572"

struct by_tls_identity;
struct by_tls;

/*
 * Reads the folder's three files. 0; BY_ENOENT (a file is missing), BY_EPERM (others may read the
 * key), BY_EFORMAT (not what it should be, or key and certificate are no pair), BY_ENOMEM,
 * BY_EVERSION (there is no OpenSSL 3); `text` then names the file and what to do.
 */
int by_tls_identity_open(const char *folder, enum by_tls_end end, struct by_tls_identity **identity,
                         char text[BY_TLS_TEXT_MAX]);
void by_tls_identity_close(struct by_tls_identity *identity);

/* A stream over `fd`, connected and non-blocking, which stays the caller's. NULL without memory. */
struct by_tls *by_tls_open(struct by_tls_identity *identity, int fd);
/* Says good-bye if that does not wait; then forgets the stream. NULL is allowed. */
void by_tls_close(struct by_tls *tls);

/*
 * Goes on with the handshake. 0 once it is done; BY_EAGAIN; BY_EPERM when the other end is not who
 * it must be; BY_EIO when it is gone or speaks something else; by_tls_text() then says more.
 */
int by_tls_handshake(struct by_tls *tls);

/* As recv and send, after the handshake: bytes (at least 1), 0 when the other end has closed
 * (receive alone), BY_EAGAIN, or BY_EPERM and BY_EIO with by_tls_text(). */
int64_t by_tls_receive(struct by_tls *tls, void *data, size_t bytes);
int64_t by_tls_send(struct by_tls *tls, const void *data, size_t bytes);

/* by_tls_receive into `into`, or by_tls_send out of `from`; where `tls` is NULL, the same over the
 * non-blocking socket as it is: BY_EIO then comes with errno. */
int64_t by_tls_move(struct by_tls *tls, int fd, void *into, const void *from, size_t bytes);

/* What a call that returned BY_EAGAIN waits for: POLLIN or POLLOUT. */
short by_tls_events(const struct by_tls *tls);
/* The name in the other end's certificate, "" before the handshake is done. */
const char *by_tls_peer(const struct by_tls *tls);
/* What the last error was, for people: cause and remedy. */
const char *by_tls_text(const struct by_tls *tls);

#endif

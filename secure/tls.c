/*
 * TLS 1.3 through OpenSSL: see tls.h. Tickets, renegotiation and compression are off: a connection lives as
 * long as its controller. In TLS 1.3 a controller learns with its first read that the switch has refused its
 * certificate, so errors of reads are explained as those of the handshake are.
 */
#include "secure/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "offload/base/errors.h"
#include "offload/base/limits.h"

#define PATH_BYTES 1024u

struct by_tls_identity {
    SSL_CTX *context;
    BIO_METHOD *socket; /* how bytes move */
    enum by_tls_end end;
};

struct by_tls {
    SSL *ssl;
    enum by_tls_end end;
    short events;
    char peer[BY_NAME_MAX + 1];
    char text[BY_TLS_TEXT_MAX];
};

/* OpenSSL's own socket calls write(), which ends a process with SIGPIPE when the peer is gone; this one
 * sends. */
static int socket_write(BIO *bio, const char *data, int bytes)
{
    ssize_t count = send((int)(intptr_t)BIO_get_data(bio), data, (size_t)bytes, MSG_NOSIGNAL);

    BIO_clear_retry_flags(bio);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)count;
}

static int socket_read(BIO *bio, char *data, int bytes)
{
    ssize_t count = recv((int)(intptr_t)BIO_get_data(bio), data, (size_t)bytes, 0);

    BIO_clear_retry_flags(bio);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    return (int)count;
}

static long socket_control(BIO *bio, int command, long number, void *data)
{
    (void)bio;
    (void)number;
    (void)data;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *make_socket(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");

    if (method && (!BIO_meth_set_write(method, socket_write) || !BIO_meth_set_read(method, socket_read) ||
                   !BIO_meth_set_ctrl(method, socket_control))) {
        BIO_meth_free(method);
        method = NULL;
    }
    return method;
}

/* The newest reason that OpenSSL has, and none left behind. */
static const char *reason(void)
{
    unsigned long error = ERR_peek_last_error();
    const char *text = ERR_reason_error_string(error);

    if (error != 0 && ERR_SYSTEM_ERROR(error))
        text = strerror(ERR_GET_REASON(error));
    ERR_clear_error();
    return text ? text : "no reason is known";
}

static int read_files(struct by_tls_identity *identity, const char *folder, char text[BY_TLS_TEXT_MAX])
{
    static const char *const files[] = {"ca.pem", "cert.pem", "key.pem"};
    SSL_CTX *context = identity->context;
    char path[PATH_BYTES];

    for (unsigned i = 0; i < 3; i++) {
        struct stat status;
        int done;

        snprintf(path, sizeof path, "%.1000s/%s", folder, files[i]);
        if (stat(path, &status) != 0) {
            snprintf(text, BY_TLS_TEXT_MAX, "%.200s: %s: make keys with `banyan keys`", path,
                     strerror(errno));
            return BY_ENOENT;
        }
        if (i == 2 && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
            snprintf(text, BY_TLS_TEXT_MAX, "%.200s: others may read this key: chmod 600 it", path);
            return BY_EPERM;
        }
        done = i == 0   ? SSL_CTX_load_verify_file(context, path)
               : i == 1 ? SSL_CTX_use_certificate_file(context, path, SSL_FILETYPE_PEM)
                        : SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM);
        if (done != 1) {
            snprintf(text, BY_TLS_TEXT_MAX, "%.200s: %s: make keys with `banyan keys`", path, reason());
            return BY_EFORMAT;
        }
    }
    return 0;
}

int by_tls_identity_open(const char *folder, enum by_tls_end end, struct by_tls_identity **out,
                         char text[BY_TLS_TEXT_MAX])
{
    struct by_tls_identity *identity = calloc(1, sizeof *identity);
    int result = 0;

    text[0] = 0;
    if (identity) {
        identity->context = SSL_CTX_new(TLS_method());
        identity->socket = make_socket();
    }
    if (!identity || !identity->context || !identity->socket) {
        by_tls_identity_close(identity);
        snprintf(text, BY_TLS_TEXT_MAX, "no memory for TLS");
        return BY_ENOMEM;
    }
    identity->end = end;
    SSL_CTX_set_min_proto_version(identity->context, TLS1_3_VERSION);
    SSL_CTX_set_num_tickets(identity->context, 0);
    SSL_CTX_set_mode(identity->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(identity->context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(identity->context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    /* Each end asks for the other's purpose, which OpenSSL checks by the certificate's extended key usage. */
    SSL_CTX_set_purpose(identity->context,
                        end == BY_TLS_SWITCH ? X509_PURPOSE_SSL_CLIENT : X509_PURPOSE_SSL_SERVER);
    result = read_files(identity, folder, text);
    if (result != 0) {
        by_tls_identity_close(identity);
        return result;
    }
    *out = identity;
    return 0;
}

void by_tls_identity_close(struct by_tls_identity *identity)
{
    if (!identity)
        return;
    SSL_CTX_free(identity->context);
    BIO_meth_free(identity->socket);
    free(identity);
}

struct by_tls *by_tls_open(struct by_tls_identity *identity, int fd)
{
    struct by_tls *tls = calloc(1, sizeof *tls);
    BIO *bio = BIO_new(identity->socket);

    if (tls)
        tls->ssl = SSL_new(identity->context);
    if (!tls || !bio || !tls->ssl) {
        BIO_free(bio);
        if (tls)
            SSL_free(tls->ssl);
        free(tls);
        ERR_clear_error();
        return NULL;
    }
    BIO_set_data(bio, (void *)(intptr_t)fd);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    tls->end = identity->end;
    if (tls->end == BY_TLS_SWITCH)
        SSL_set_accept_state(tls->ssl);
    else
        SSL_set_connect_state(tls->ssl);
    return tls;
}

void by_tls_close(struct by_tls *tls)
{
    if (!tls)
        return;
    SSL_shutdown(tls->ssl);
    SSL_free(tls->ssl);
    ERR_clear_error();
    free(tls);
}

/* Whom a certificate names: its first DNS name. */
static void note_peer(struct by_tls *tls)
{
    X509 *certificate = SSL_get0_peer_certificate(tls->ssl);
    GENERAL_NAMES *names =
        certificate ? X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL) : NULL;

    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        int bytes = name->type == GEN_DNS ? ASN1_STRING_length(name->d.dNSName) : 0;

        if (bytes <= 0 || (size_t)bytes >= sizeof tls->peer)
            continue;
        memcpy(tls->peer, ASN1_STRING_get0_data(name->d.dNSName), (size_t)bytes);
        tls->peer[bytes] = 0;
        break;
    }
    GENERAL_NAMES_free(names);
}

/* What to do about a certificate of the other end that was not accepted. */
static const char *remedy(long verdict)
{
    switch (verdict) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return "renew it with `banyan keys --renew`, or look at the clock";
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return "look at the clocks of both ends";
    case X509_V_ERR_INVALID_PURPOSE:
        return "it is a switch's where a controller's is due, or the other way round";
    default:
        return "both ends need keys of one authority, made with `banyan keys`";
    }
}

/* Explains the failure of a call that returned `code`. */
static int explain(struct by_tls *tls, int code)
{
    int saved = errno;
    const char *other = tls->end == BY_TLS_SWITCH ? "the controller" : "the switch";
    long verdict = SSL_get_verify_result(tls->ssl);
    unsigned long last = ERR_peek_last_error();

    switch (SSL_get_error(tls->ssl, code)) {
    case SSL_ERROR_WANT_READ:
        tls->events = POLLIN;
        return BY_EAGAIN;
    case SSL_ERROR_WANT_WRITE:
        tls->events = POLLOUT;
        return BY_EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        snprintf(tls->text, sizeof tls->text, "%s is gone: %s", other,
                 saved ? strerror(saved) : "it closed the connection");
        ERR_clear_error();
        return BY_EIO;
    default:
        break;
    }
    if (verdict != X509_V_OK) {
        snprintf(tls->text, sizeof tls->text, "%s's certificate is refused: %s: %s", other,
                 X509_verify_cert_error_string(verdict), remedy(verdict));
        ERR_clear_error();
        return BY_EPERM;
    }
    if (ERR_GET_LIB(last) == ERR_LIB_SSL && ERR_GET_REASON(last) > SSL_AD_REASON_OFFSET) {
        snprintf(tls->text, sizeof tls->text, "%s refused our certificate (%s): %s", other, reason(),
                 remedy(X509_V_OK));
        return BY_EPERM;
    }
    snprintf(tls->text, sizeof tls->text, "%s does not speak TLS 1.3 as it must (%s): use tls: at both ends",
             other, reason());
    return BY_EIO;
}

int by_tls_handshake(struct by_tls *tls)
{
    int code, result;

    if (SSL_is_init_finished(tls->ssl))
        return 0;
    errno = 0;
    ERR_clear_error();
    code = SSL_do_handshake(tls->ssl);
    if (code == 1) {
        note_peer(tls);
        return 0;
    }
    result = explain(tls, code);
    if (result == 0) {
        snprintf(tls->text, sizeof tls->text, "the connection was closed during the handshake");
        result = BY_EIO;
    }
    return result;
}

int64_t by_tls_receive(struct by_tls *tls, void *data, size_t bytes)
{
    size_t count = 0;
    int code;

    errno = 0;
    ERR_clear_error();
    code = SSL_read_ex(tls->ssl, data, bytes, &count);
    return code == 1 ? (int64_t)count : explain(tls, code);
}

int64_t by_tls_send(struct by_tls *tls, const void *data, size_t bytes)
{
    size_t count = 0;
    int code, result;

    errno = 0;
    ERR_clear_error();
    code = SSL_write_ex(tls->ssl, data, bytes, &count);
    if (code == 1)
        return (int64_t)count;
    result = explain(tls, code);
    return result != 0 ? result : BY_EIO;
}

short by_tls_events(const struct by_tls *tls)
{
    return tls->events;
}

const char *by_tls_peer(const struct by_tls *tls)
{
    return tls->peer;
}

const char *by_tls_text(const struct by_tls *tls)
{
    return tls->text;
}

/*
 * TLS 1.3 through OpenSSL: see tls.h. Tickets, renegotiation and compression are off: a connection
 * lasts as long as its controller. In TLS 1.3 a controller learns only with its first read that the
 * switch has refused its certificate, so errors of reads are explained like those of the handshake.
 */
#include "firmware/secure/tls.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "firmware/secure/openssl.h"
#include "offload/base/errors.h"
#include "offload/base/limits.h"

#define PATH_BYTES 1024u

struct by_tls_identity {
    SSL_CTX *context;
    BIO_METHOD *socket; /* transport of bytes */
    const struct tls_end *end;
};

struct by_tls {
    SSL *ssl;
    const struct tls_end *end;
    short events;
    char peer[BY_NAME_MAX + 1];
    char text[BY_TLS_TEXT_MAX];
};

/* Valid once an identity exists. */
static const struct by_openssl *lib(void)
{
    const char *why;

    return by_openssl(&why);
}

/* OpenSSL's own socket calls write(), which ends a process with SIGPIPE when the peer is gone; this
 * function uses send. */
static int socket_write(BIO *bio, const char *data, int bytes)
{
    ssize_t count = send((int)(intptr_t)lib()->BIO_get_data(bio), data, (size_t)bytes, MSG_NOSIGNAL);

    lib()->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        lib()->BIO_set_flags(bio, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY);
    return (int)count;
}

static int socket_read(BIO *bio, char *data, int bytes)
{
    ssize_t count = recv((int)(intptr_t)lib()->BIO_get_data(bio), data, (size_t)bytes, 0);

    lib()->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        lib()->BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
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
    BIO_METHOD *method = lib()->BIO_meth_new(BIO_TYPE_SOURCE_SINK, "stream");

    if (method &&
        (!lib()->BIO_meth_set_write(method, socket_write) || !lib()->BIO_meth_set_read(method, socket_read) ||
         !lib()->BIO_meth_set_ctrl(method, socket_control))) {
        lib()->BIO_meth_free(method);
        method = NULL;
    }
    return method;
}

/* Returns OpenSSL's newest error and clears its error queue. */
static const char *reason(void)
{
    unsigned long error = lib()->ERR_peek_last_error();
    const char *text = lib()->ERR_reason_error_string(error);

    if (error != 0 && ERR_SYSTEM_ERROR(error))
        text = strerror(ERR_GET_REASON(error));
    lib()->ERR_clear_error();
    return text ? text : "unknown reason";
}

/* Returns whether a valid certificate also has the required purpose. */
static int check_use(int good, X509_STORE_CTX *store, const char *use)
{
    X509 *certificate = lib()->X509_STORE_CTX_get_current_cert(store);
    EXTENDED_KEY_USAGE *uses;
    bool found = false;

    if (!good || lib()->X509_STORE_CTX_get_error_depth(store) != 0)
        return good;
    uses = lib()->X509_get_ext_d2i(certificate, NID_ext_key_usage, NULL, NULL);
    for (int i = 0; i < lib()->OPENSSL_sk_num((const OPENSSL_STACK *)uses); i++) {
        char text[80];

        lib()->OBJ_obj2txt(text, sizeof text, lib()->OPENSSL_sk_value((const OPENSSL_STACK *)uses, i), 1);
        found |= strcmp(text, use) == 0;
    }
    lib()->EXTENDED_KEY_USAGE_free(uses);
    if (!found)
        lib()->X509_STORE_CTX_set_error(store, X509_V_ERR_INVALID_PURPOSE);
    return found;
}

static int check_switch(int good, X509_STORE_CTX *store)
{
    return check_use(good, store, BY_TLS_USE_SWITCH);
}

static int check_controller(int good, X509_STORE_CTX *store)
{
    return check_use(good, store, BY_TLS_USE_CONTROLLER);
}

static int check_host(int good, X509_STORE_CTX *store)
{
    return check_use(good, store, BY_TLS_USE_HOST);
}

/* The requirements of an end on the other one; `purpose` is OpenSSL's own that corresponds. */
static const struct tls_end {
    bool accepts;
    const char *other; /* name of the other end in texts */
    int (*check)(int good, X509_STORE_CTX *store);
    int purpose;
} ends[] = {
    [BY_TLS_SWITCH] = {true, "the controller", check_controller, X509_PURPOSE_SSL_CLIENT},
    [BY_TLS_CONTROLLER] = {false, "the switch", check_switch, X509_PURPOSE_SSL_SERVER},
    [BY_TLS_HOST] = {false, "the controller", check_controller, X509_PURPOSE_SSL_CLIENT},
    [BY_TLS_HOSTS] = {true, "the host", check_host, X509_PURPOSE_ANY},
};

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
            snprintf(text, BY_TLS_TEXT_MAX, "%.200s: other users may read this key: chmod 600 it", path);
            return BY_EPERM;
        }
        done = i == 0   ? lib()->SSL_CTX_load_verify_file(context, path)
               : i == 1 ? lib()->SSL_CTX_use_certificate_file(context, path, SSL_FILETYPE_PEM)
                        : lib()->SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM);
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
    SSL_CTX *context;
    const char *why;
    int result;

    text[0] = 0;
    if (by_openssl(&why) == NULL) {
        free(identity);
        snprintf(text, BY_TLS_TEXT_MAX, "%s", why);
        return BY_EVERSION;
    }
    if (identity) {
        identity->end = &ends[end];
        identity->context = lib()->SSL_CTX_new(lib()->TLS_method());
        identity->socket = make_socket();
    }
    if (!identity || !identity->context || !identity->socket) {
        by_tls_identity_close(identity);
        snprintf(text, BY_TLS_TEXT_MAX, "no memory for TLS");
        return BY_ENOMEM;
    }
    context = identity->context;
    lib()->SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, NULL);
    lib()->SSL_CTX_set_num_tickets(context, 0);
    lib()->SSL_CTX_ctrl(context, SSL_CTRL_MODE,
                        SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, NULL);
    lib()->SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    lib()->SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                              identity->end->check);
    /* Each end requires the other's purpose, in place of those of servers and clients of other
     * protocols. */
    lib()->SSL_CTX_set_purpose(context, identity->end->purpose);
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
    lib()->SSL_CTX_free(identity->context);
    lib()->BIO_meth_free(identity->socket);
    free(identity);
}

struct by_tls *by_tls_open(struct by_tls_identity *identity, int fd)
{
    struct by_tls *tls = calloc(1, sizeof *tls);
    BIO *bio = lib()->BIO_new(identity->socket);

    if (tls)
        tls->ssl = lib()->SSL_new(identity->context);
    if (!tls || !bio || !tls->ssl) {
        lib()->BIO_free(bio);
        if (tls)
            lib()->SSL_free(tls->ssl);
        free(tls);
        lib()->ERR_clear_error();
        return NULL;
    }
    lib()->BIO_set_data(bio, (void *)(intptr_t)fd);
    lib()->BIO_set_init(bio, 1);
    lib()->SSL_set_bio(tls->ssl, bio, bio);
    tls->end = identity->end;
    if (tls->end->accepts)
        lib()->SSL_set_accept_state(tls->ssl);
    else
        lib()->SSL_set_connect_state(tls->ssl);
    return tls;
}

void by_tls_close(struct by_tls *tls)
{
    if (!tls)
        return;
    lib()->SSL_shutdown(tls->ssl);
    lib()->SSL_free(tls->ssl);
    lib()->ERR_clear_error();
    free(tls);
}

/* Stores the name in the peer's certificate: its first DNS name. */
static void note_peer(struct by_tls *tls)
{
    X509 *certificate = lib()->SSL_get0_peer_certificate(tls->ssl);
    GENERAL_NAMES *names =
        certificate ? lib()->X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL) : NULL;

    for (int i = 0; i < lib()->OPENSSL_sk_num((const OPENSSL_STACK *)names); i++) {
        const GENERAL_NAME *name = lib()->OPENSSL_sk_value((const OPENSSL_STACK *)names, i);
        int bytes = name->type == GEN_DNS ? lib()->ASN1_STRING_length(name->d.dNSName) : 0;

        if (bytes <= 0 || (size_t)bytes >= sizeof tls->peer)
            continue;
        memcpy(tls->peer, lib()->ASN1_STRING_get0_data(name->d.dNSName), (size_t)bytes);
        tls->peer[bytes] = 0;
        break;
    }
    lib()->GENERAL_NAMES_free(names);
}

/* Returns the remedy for a certificate of the other end that was refused. */
static const char *remedy(long verdict)
{
    switch (verdict) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return "renew it with `banyan keys --renew`, or check the clock";
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return "check the clocks of both ends";
    case X509_V_ERR_INVALID_PURPOSE:
        return "it is for another role: `banyan keys` makes certificates of switches, controllers and hosts";
    default:
        return "both ends need keys of the same authority, made with `banyan keys`";
    }
}

/* Stores the explanation for the failure of a call that returned `code`. */
static int explain(struct by_tls *tls, int code)
{
    int saved = errno;
    const char *other = tls->end->other;
    long verdict = lib()->SSL_get_verify_result(tls->ssl);
    unsigned long last = lib()->ERR_peek_last_error();

    switch (lib()->SSL_get_error(tls->ssl, code)) {
    case SSL_ERROR_WANT_READ:
        tls->events = POLLIN;
        return BY_EAGAIN;
    case SSL_ERROR_WANT_WRITE:
        tls->events = POLLOUT;
        return BY_EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        snprintf(tls->text, sizeof tls->text, "the connection to %s is lost: %s", other,
                 saved ? strerror(saved) : "the other end closed it");
        lib()->ERR_clear_error();
        return BY_EIO;
    default:
        break;
    }
    if (verdict != X509_V_OK) {
        snprintf(tls->text, sizeof tls->text, "%s's certificate is refused: %s: %s", other,
                 lib()->X509_verify_cert_error_string(verdict), remedy(verdict));
        lib()->ERR_clear_error();
        return BY_EPERM;
    }
    if (ERR_GET_LIB(last) == ERR_LIB_SSL && ERR_GET_REASON(last) > SSL_AD_REASON_OFFSET) {
        snprintf(tls->text, sizeof tls->text, "%s refused our certificate (%s): %s", other, reason(),
                 remedy(X509_V_OK));
        return BY_EPERM;
    }
    snprintf(tls->text, sizeof tls->text, "%s does not use TLS 1.3 (%s): use tls: at both ends", other,
             reason());
    return BY_EIO;
}

int by_tls_handshake(struct by_tls *tls)
{
    int code, result;

    if (lib()->SSL_is_init_finished(tls->ssl))
        return 0;
    errno = 0;
    lib()->ERR_clear_error();
    code = lib()->SSL_do_handshake(tls->ssl);
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
    lib()->ERR_clear_error();
    code = lib()->SSL_read_ex(tls->ssl, data, bytes, &count);
    return code == 1 ? (int64_t)count : explain(tls, code);
}

int64_t by_tls_send(struct by_tls *tls, const void *data, size_t bytes)
{
    size_t count = 0;
    int code, result;

    errno = 0;
    lib()->ERR_clear_error();
    code = lib()->SSL_write_ex(tls->ssl, data, bytes, &count);
    if (code == 1)
        return (int64_t)count;
    result = explain(tls, code);
    return result != 0 ? result : BY_EIO;
}

int64_t by_tls_move(struct by_tls *tls, int fd, void *into, const void *from, size_t bytes)
{
    ssize_t count;

    if (tls)
        return from ? by_tls_send(tls, from, bytes) : by_tls_receive(tls, into, bytes);
    do
        count = from ? send(fd, from, bytes, MSG_NOSIGNAL) : recv(fd, into, bytes, 0);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? BY_EAGAIN : BY_EIO;
    return count;
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

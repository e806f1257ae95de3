/*
 * The functions of OpenSSL 3 that tls.c calls, as one table. Programs that link OpenSSL use
 * openssl.c beside this file. libbanyan does not require OpenSSL of programs that link it, and
 * loads the same functions when TLS is requested (host-driver/openssl.c). A program contains one of
 * the two. Any thread.
 */
#ifndef BY_SECURE_OPENSSL_H
#define BY_SECURE_OPENSSL_H

#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* X(name): every function, once; for macros of OpenSSL's headers, the functions that they call. */
#define BY_OPENSSL_LIST(X)                                                                                   \
    X(ASN1_STRING_get0_data)                                                                                 \
    X(ASN1_STRING_length)                                                                                    \
    X(BIO_clear_flags)                                                                                       \
    X(BIO_free)                                                                                              \
    X(BIO_get_data)                                                                                          \
    X(BIO_meth_free)                                                                                         \
    X(BIO_meth_new)                                                                                          \
    X(BIO_meth_set_ctrl)                                                                                     \
    X(BIO_meth_set_read)                                                                                     \
    X(BIO_meth_set_write)                                                                                    \
    X(BIO_new)                                                                                               \
    X(BIO_set_data)                                                                                          \
    X(BIO_set_flags)                                                                                         \
    X(BIO_set_init)                                                                                          \
    X(ERR_clear_error)                                                                                       \
    X(ERR_peek_last_error)                                                                                   \
    X(ERR_reason_error_string)                                                                               \
    X(EXTENDED_KEY_USAGE_free)                                                                               \
    X(GENERAL_NAMES_free)                                                                                    \
    X(OBJ_obj2txt)                                                                                           \
    X(OPENSSL_sk_num)                                                                                        \
    X(OPENSSL_sk_value)                                                                                      \
    X(SSL_CTX_ctrl)                                                                                          \
    X(SSL_CTX_free)                                                                                          \
    X(SSL_CTX_load_verify_file)                                                                              \
    X(SSL_CTX_new)                                                                                           \
    X(SSL_CTX_set_num_tickets)                                                                               \
    X(SSL_CTX_set_purpose)                                                                                   \
    X(SSL_CTX_set_verify)                                                                                    \
    X(SSL_CTX_use_PrivateKey_file)                                                                           \
    X(SSL_CTX_use_certificate_file)                                                                          \
    X(SSL_do_handshake)                                                                                      \
    X(SSL_free)                                                                                              \
    X(SSL_get0_peer_certificate)                                                                             \
    X(SSL_get_error)                                                                                         \
    X(SSL_get_verify_result)                                                                                 \
    X(SSL_is_init_finished)                                                                                  \
    X(SSL_new)                                                                                               \
    X(SSL_read_ex)                                                                                           \
    X(SSL_set_accept_state)                                                                                  \
    X(SSL_set_bio)                                                                                           \
    X(SSL_set_connect_state)                                                                                 \
    X(SSL_shutdown)                                                                                          \
    X(SSL_write_ex)                                                                                          \
    X(TLS_method)                                                                                            \
    X(X509_STORE_CTX_get_current_cert)                                                                       \
    X(X509_STORE_CTX_get_error_depth)                                                                        \
    X(X509_STORE_CTX_set_error)                                                                              \
    X(X509_get_ext_d2i)                                                                                      \
    X(X509_verify_cert_error_string)

struct by_openssl {
#define X(name) __typeof__(&name) name;
    BY_OPENSSL_LIST(X)
#undef X
};

/* Returns the table; NULL when there is no OpenSSL 3, with the libraries that were tried in
 * *why. */
const struct by_openssl *by_openssl(const char **why);

#endif

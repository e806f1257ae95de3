/* The table for programs that link OpenSSL; see openssl.h. */
#include "firmware/secure/openssl.h"

static const struct by_openssl linked = {
#define X(name) .name = name,
    BY_OPENSSL_LIST(X)
#undef X
};

const struct by_openssl *by_openssl(const char **why)
{
    *why = NULL;
    return &linked;
}

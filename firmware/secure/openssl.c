/* The table for programs that link OpenSSL; see openssl.h. */
#include "firmware/secure/openssl.h"

#include <pthread.h>

static const struct by_openssl linked = {
#define X(name) .name = name,
    BY_OPENSSL_LIST(X)
#undef X
};

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Without a handler of exit() that releases what other threads still use: without memory a thread
 * ends the program. */
static void start(void)
{
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

const struct by_openssl *by_openssl(const char **why)
{
    pthread_once(&once, start);
    *why = NULL;
    return &linked;
}

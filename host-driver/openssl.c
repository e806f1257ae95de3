/*
 * OpenSSL for libbanyan: loaded when a controller is reached over TLS, so that there is no link
 * dependency, and never unloaded. See firmware/secure/openssl.h. Any thread.
 */
#include "firmware/secure/openssl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

/* The soname of OpenSSL 3, which also loads libcrypto. */
#define LIBRARY "libssl.so.3"

static struct by_openssl loaded;
static const char *missing;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    /* The functions of libcrypto are found through libssl, which depends on it. */
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        missing = LIBRARY " cannot be loaded: install OpenSSL 3";
        return;
    }
#define X(name)                                                                                              \
    loaded.name = (__typeof__(loaded.name))dlsym(library, #name);                                            \
    if (loaded.name == NULL)                                                                                 \
        missing = LIBRARY " has no " #name ": install OpenSSL 3";
    BY_OPENSSL_LIST(X)
#undef X
}

const struct by_openssl *by_openssl(const char **why)
{
    pthread_once(&once, load);
    *why = missing;
    return missing == NULL ? &loaded : NULL;
}

/* OpenSSL at the end of a program: out of memory, it ends while other threads use TLS. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "firmware/secure/openssl.h"

static SSL_CTX *context_new(void)
{
    const char *why;
    const struct by_openssl *lib = by_openssl(&why);

    return lib != NULL ? lib->SSL_CTX_new(lib->TLS_method()) : NULL;
}

/* Handlers of exit() run in the reverse order: one of OpenSSL's would have run before. */
static void use_again(void)
{
    _exit(context_new() != NULL ? 3 : 4);
}

static void tls_is_usable_while_a_program_ends(void **state)
{
    pid_t child = fork();
    int status = 0;

    (void)state;
    if (child == 0) {
        atexit(use_again);
        exit(context_new() != NULL ? 3 : 5);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tls_is_usable_while_a_program_ends)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

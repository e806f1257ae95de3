/*
 * The search for CUDA's driver library. The test counts calls of dlopen, since each reads the
 * linker's cache and folders, which would slow down a small collective.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>

#include "host-driver/gpu/driver.h"

typedef void *(open_fn)(const char *name, int flags);

static unsigned searches;
static char fake[512];

/* Replaces the C library's function. Finds no library of CUDA's name. */
void *dlopen(const char *name, int flags)
{
    (void)name;
    (void)flags;
    searches++;
    return NULL;
}

static void the_driver_is_looked_for_again_only_when_a_library_was_loaded(void **state)
{
    open_fn *really = (open_fn *)dlsym(RTLD_NEXT, "dlopen");
    void *library;

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(by_gpu_find(""), 0);
    assert_int_equal(searches, 1);
    assert_non_null(really);
    library = really(fake, RTLD_NOW);
    assert_non_null(library);
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(by_gpu_find(""), 0);
    assert_int_equal(searches, 2);
    dlclose(library);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_driver_is_looked_for_again_only_when_a_library_was_loaded)};
    char folder[400];

    (void)argc;
    snprintf(folder, sizeof(folder), "%s", argv[0]);
    snprintf(fake, sizeof(fake), "%s/../lib/libfake-cuda.so", dirname(folder));
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* See printed.h. */
#include "tests/unit/control/service/daemon/printed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static int memory = -1, kept = -1; /* descriptors; -1 outside */

void printed_begin(void)
{
    assert_int_equal(memory, -1);
    fflush(stderr);
    memory = memfd_create("printed", MFD_CLOEXEC);
    kept = dup(STDERR_FILENO);
    assert_true(memory >= 0 && kept >= 0);
    dup2(memory, STDERR_FILENO);
}

void printed_read(char *text, size_t room)
{
    ssize_t got;

    fflush(stderr);
    got = pread(memory, text, room - 1, 0);
    assert_true(got >= 0);
    text[got] = 0;
}

void printed_end(char *text, size_t room)
{
    if (text != NULL)
        printed_read(text, room);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(memory);
    memory = kept = -1;
}

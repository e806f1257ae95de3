/* See record.h. */
#include "tests/unit/control/service/daemon/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

char recorded[16384];

void record(const char *format, ...)
{
    size_t used = strlen(recorded);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(recorded + used, sizeof(recorded) - used, format, arguments);
    va_end(arguments);
}

void record_clear(void)
{
    recorded[0] = 0;
}

void record_expect(const char *lines)
{
    assert_string_equal(recorded, lines);
    record_clear();
}

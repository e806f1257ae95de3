/* In place of the daemon's log: what it logs is recorded, after "said: ". See record.h. */
#include "control/service/daemon/say.h"
#include "tests/unit/control/service/daemon/record.h"

#include <stdarg.h>
#include <stdio.h>

void by_daemon_say(const char *format, ...)
{
    char text[2000];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    record("said: %s\n", text);
}

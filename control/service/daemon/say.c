/* Log lines of banyand. See say.h. */
#include "control/service/daemon/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

void by_daemon_say(const char *format, ...)
{
    struct timespec now;
    struct tm parts;
    char text[700], when[32];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(when, sizeof(when), "%H:%M:%S", localtime_r(&now.tv_sec, &parts));
    fprintf(stderr, "banyand: %s.%03ld %s\n", when, now.tv_nsec / 1000000, text);
}

/*
 * Messages on stderr. stdout is reserved for the one line that reports that the switch is ready, so
 * that a script can wait for it. Any thread: a line is formatted on the stack and written at once.
 */
#include "dataplane/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const char *say_name;

void by_say_name(const char *name)
{
    say_name = name;
}

void by_say(const char *format, ...)
{
    char line[1024];
    int used =
        snprintf(line, sizeof line, "banyan-switchd: %s%s", say_name ? say_name : "", say_name ? ": " : "");
    va_list arguments;

    va_start(arguments, format);
    used += vsnprintf(line + used, sizeof line - (size_t)used - 1, format, arguments);
    va_end(arguments);
    if (used > (int)sizeof line - 2)
        used = (int)sizeof line - 2;
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)used) < 0)
        return;
}

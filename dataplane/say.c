/*
 * Messages on stderr, or where the program takes them. stdout is reserved for the one line that
 * reports that the switch is ready, so that a script can wait for it. Any thread: a line is
 * formatted on the stack and written at once.
 */
#include "dataplane/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const char *say_name;
static void (*say_take)(const char *line);

void by_say_name(const char *name)
{
    say_name = name;
}

void by_say_to(void (*take)(const char *line))
{
    say_take = take;
}

void by_say(const char *format, ...)
{
    char line[1024];
    int used = 0;
    va_list arguments;

    if (!say_take)
        used = snprintf(line, sizeof line, "banyan-switchd: %s%s", say_name ? say_name : "",
                        say_name ? ": " : "");
    va_start(arguments, format);
    used += vsnprintf(line + used, sizeof line - (size_t)used - 1, format, arguments);
    va_end(arguments);
    if (used > (int)sizeof line - 2)
        used = (int)sizeof line - 2;
    if (say_take) {
        say_take(line);
        return;
    }
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)used) < 0)
        return;
}

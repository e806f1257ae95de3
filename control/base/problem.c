/* Fills in a problem. See problem.h. */
#include "control/base/problem.h"

#include <stdarg.h>
#include <stdio.h>

int by_problem_set(struct by_problem *problem, int error, struct by_place place, const char *format, ...)
{
    va_list arguments;

    problem->line = place.line;
    problem->column = place.column;
    va_start(arguments, format);
    vsnprintf(problem->text, sizeof(problem->text), format, arguments);
    va_end(arguments);
    return error;
}

int by_problem_say(struct by_problem *problem, int error, const char *format, ...)
{
    va_list arguments;

    problem->line = problem->column = 0;
    va_start(arguments, format);
    vsnprintf(problem->text, sizeof(problem->text), format, arguments);
    va_end(arguments);
    return error;
}

/*
 * Messages to the user: lines on stderr that start with the program's and the switch's name. Any
 * thread; one line is one write.
 */
#ifndef BY_DATAPLANE_SAY_H
#define BY_DATAPLANE_SAY_H

/* Sets the name at the start of each line; `name` must outlive the process's last by_say. */
void by_say_name(const char *name);
/* Passes each line to `take`, without the names at its start, in place of printing it; NULL: prints
 * again. For a program in which the dataplane is a part (a host). Only while no other thread calls
 * by_say. */
void by_say_to(void (*take)(const char *line));
/* Prints one line; `format` has no newline. */
void by_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

/*
 * Messages to the user: lines on stderr that start with the program's and the switch's name. Any
 * thread; one line is one write.
 */
#ifndef BY_DATAPLANE_SAY_H
#define BY_DATAPLANE_SAY_H

/* Sets the name at the start of each line; `name` must outlive the process's last by_say. */
void by_say_name(const char *name);
/* Prints one line; `format` has no newline. */
void by_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

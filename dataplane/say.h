/*
 * What the switch says to people: lines on stderr that begin with the program and the switch's
 * name. Any thread; one line is one write.
 */
#ifndef BY_DATAPLANE_SAY_H
#define BY_DATAPLANE_SAY_H

/* Sets the name in front of each line; `name` must outlive the process' last by_say. */
void by_say_name(const char *name);
/* One line, without the newline. */
void by_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

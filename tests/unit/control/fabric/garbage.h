/*
 * Runs readers under limits: one process per file, with limits of address space and processor time
 * that the kernel enforces.
 */
#ifndef TESTS_TOPOLOGY_GARBAGE_H
#define TESTS_TOPOLOGY_GARBAGE_H

#include "control/fabric/build.h"

/* Reads a file. Returns 0 if it accepts the file, otherwise fills `problem`. */
typedef int garbage_read(const char *path, struct by_problem *problem);

/* Runs the reader on a file that it must refuse. The message goes to `text`. Prints the resources
 * that the reader used. */
void garbage_refuse(garbage_read *read, const char *file, const char *what, char *text, size_t bytes);

/* A million lines between a head and a tail. */
struct garbage {
    const char *what;
    const char *head;
    const char *line; /* may contain %d, the line's number, up to twice */
    const char *tail;
    const char *says; /* text that the message must contain */
};
/* Requires the reader to refuse each case. */
void garbage_refuse_all(garbage_read *read, const struct garbage *cases, size_t count);

/* For cmocka: create and remove the file that garbage_refuse_all writes. */
int garbage_setup(void **state);
int garbage_teardown(void **state);

#endif

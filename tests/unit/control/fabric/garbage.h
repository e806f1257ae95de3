/*
 * Readers under limits: a process of its own for each file, with a limit of address space and of
 * processor time that the kernel enforces.
 */
#ifndef TESTS_TOPOLOGY_GARBAGE_H
#define TESTS_TOPOLOGY_GARBAGE_H

#include "control/fabric/build.h"

/* Reads a file; 0 when it takes it, else `problem` is filled. */
typedef int garbage_read(const char *path, struct by_problem *problem);

/* Runs the reader on a file that it must refuse; the text of its refusal goes to `text`. Prints
 * what it took.
 */
void garbage_refuse(garbage_read *read, const char *file, const char *what, char *text, size_t bytes);

/* A million lines between a head and a tail. */
struct garbage {
    const char *what;
    const char *head;
    const char *line; /* %d is its number, twice at most */
    const char *tail;
    const char *says; /* what the refusal must say */
};
/* Has the reader refuse each of them. */
void garbage_refuse_all(garbage_read *read, const struct garbage *cases, size_t count);

/* For cmocka: makes and removes the file that garbage_refuse_all writes. */
int garbage_setup(void **state);
int garbage_teardown(void **state);

#endif

/*
 * Reads XML from untrusted sources, in bounded time and memory: element by element, with positions
 * for errors. Document types, and therefore entities, are not supported; depth and size are
 * limited. Neighbours: fabric/import, and the checker of exported schedules. Each call runs in one
 * thread.
 */
#ifndef BY_BASE_XML_H
#define BY_BASE_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/base/problem.h"

/* Nesting depth of elements (count). */
#define BY_XML_DEPTH_MAX 64u

struct by_xml_element {
    const char *name;
    const char *const *attributes; /* name, value, name, value, ..., NULL */
    struct by_place place;
    uint32_t depth; /* 0 for the outermost */
};

/* Callbacks at an element's start and end. A result other than 0 ends the reading; `problem` must
 * then be filled. The element is valid during the call. */
struct by_xml_handler {
    int (*start)(void *context, const struct by_xml_element *element, struct by_problem *problem);
    int (*end)(void *context, const char *name, struct by_place place, struct by_problem *problem);
    void *context;
};

/* Reads a file ("-" is standard input) of at most `bytes_max` bytes. Returns 0, a handler's result,
 * BY_EIO, BY_ELIMIT, or BY_EFORMAT, with `problem` filled. */
int by_xml_read(const char *path, size_t bytes_max, const struct by_xml_handler *handler,
                struct by_problem *problem);
/* The same from memory. */
int by_xml_parse(const char *text, size_t bytes, const struct by_xml_handler *handler,
                 struct by_problem *problem);
/* The value of an attribute, or NULL. */
const char *by_xml_text(const struct by_xml_element *element, const char *name);
/* A decimal integer between `low` and `high`; 0, or BY_EINVAL with `problem` naming element,
 * attribute, limit and place. */
int by_xml_integer(const struct by_xml_element *element, const char *name, int64_t low, int64_t high,
                   int64_t *value, struct by_problem *problem);

#endif

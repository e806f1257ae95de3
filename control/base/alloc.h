/*
 * Memory of the controller's programs. They run on a host with an operating system. There a failed
 * allocation of this size means that the machine is no longer usable, so the program ends with one
 * clear message instead of propagating an error that no caller can handle. Any thread.
 */
#ifndef BY_BASE_ALLOC_H
#define BY_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Zeroed memory for `count` objects of `bytes` each, at least one byte; never NULL. Release with
 * free(). */
static inline void *by_alloc(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes ? bytes : 1);

    if (!memory) {
        fprintf(stderr, "banyan: out of memory (%zu x %zu bytes)\n", count, bytes);
        exit(3);
    }
    return memory;
}

/* Like realloc for `count` objects of `bytes` each; never NULL. New memory is not zeroed. */
static inline void *by_realloc(void *memory, size_t count, size_t bytes)
{
    void *grown = NULL;

    if (bytes == 0 || count <= SIZE_MAX / bytes)
        grown = realloc(memory, count > 0 && bytes > 0 ? count * bytes : 1);
    if (!grown) {
        fprintf(stderr, "banyan: out of memory (%zu x %zu bytes)\n", count, bytes);
        exit(3);
    }
    return grown;
}

/* A copy of the first `bytes` of `text`, NUL-terminated; never NULL. Release with free(). */
static inline char *by_copy_part(const char *text, size_t bytes)
{
    return memcpy(by_alloc(bytes + 1, 1), text, bytes);
}

/* A copy of `text`; never NULL. Release with free(). */
static inline char *by_copy_text(const char *text)
{
    return by_copy_part(text, strlen(text));
}

/* Makes the libraries for JSON and large numbers allocate like by_alloc. For the start of a
 * program, before they are used. */
void by_alloc_libraries(void);

/* Returns a stream into a growing text; never NULL. The text is whole after fclose(),
 * NUL-terminated, and released with free(). (open_memstream cuts the text where memory ends, and
 * reports no error.) */
FILE *by_text_open(char **text, size_t *bytes);

/* Ensures room for one more object in a growing array: doubles `*room` when `count` has reached it.
 */
#define BY_GROW(array, count, room)                                                                          \
    do {                                                                                                     \
        if ((count) == (room)) {                                                                             \
            (room) = (room) ? (room)*2 : 8;                                                                  \
            (array) = by_realloc((array), (room), sizeof(*(array)));                                         \
        }                                                                                                    \
    } while (0)

#endif

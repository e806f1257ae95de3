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
#include <sys/mman.h>

/* From this size on, tables are in huge pages (bytes). */
#define BY_TABLE_BYTES ((size_t)1 << 20)
#define BY_HUGE_PAGE   ((size_t)2 << 20)

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

/*
 * Like by_realloc(NULL, ...), for a table that is filled at once: a large one takes a few page
 * faults instead of one for each 4 KiB, which would cost more than filling it.
 */
static inline void *by_alloc_table(size_t count, size_t bytes)
{
    size_t size = bytes > 0 && count <= (SIZE_MAX - BY_HUGE_PAGE) / bytes ? count * bytes : 0;
    void *memory = NULL;

    if (size < BY_TABLE_BYTES)
        return by_realloc(NULL, count, bytes);
    size = (size + BY_HUGE_PAGE - 1) / BY_HUGE_PAGE * BY_HUGE_PAGE;
    memory = aligned_alloc(BY_HUGE_PAGE, size);
    if (!memory)
        return by_realloc(NULL, count, bytes);
    madvise(memory, size, MADV_HUGEPAGE); /* advice only */
    return memory;
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

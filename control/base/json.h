/*
 * A pull parser of JSON text. Plan files hold millions of numbers, so no tree of objects is built.
 * The parser is strict (RFC 8259, valid UTF-8, no NUL characters in strings). It keeps the first
 * mistake; from then on every call behaves as if the text had ended, so callers may check once, at
 * the end. Neighbours: the readers of fabric/, plan/ and verify/. Each parser belongs to one
 * thread.
 */
#ifndef BY_BASE_JSON_H
#define BY_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "control/base/problem.h"

struct by_json {
    const char *text;
    size_t bytes;
    size_t at;
    uint32_t depth;
    bool failed;
    char mistake[80]; /* what is wrong at `at`, once failed */
    char *buffer;     /* a string with escapes, decoded */
    size_t buffer_bytes;
    size_t seen; /* the offset whose place was asked for last: most are asked for in order */
    struct by_place seen_place;
};

void by_json_open(struct by_json *json, const char *text, size_t bytes);
void by_json_close(struct by_json *json);
/* The kind of the next value: '{', '[', '"', '0' (a number), 't', 'f', 'n'; 0 at the end or after a
 * mistake.
 */
char by_json_peek(struct by_json *json);
/*
 * Loops over members or elements; `*first` is true before the first call:
 *
 *     for (bool first = true; by_json_member(json, &first, &key, &key_bytes);)
 *         ... read or skip the value ...
 *
 * A value of another kind is a mistake.
 */
bool by_json_member(struct by_json *json, bool *first, const char **key, size_t *key_bytes);
bool by_json_element(struct by_json *json, bool *first);
/* A string without its quotes; valid until the next call that reads a string. */
bool by_json_string(struct by_json *json, const char **text, size_t *bytes);
/* Reads an integer that fits 64 bits. A number that does not fit, or is not an integer, is not
 * consumed: returns false without recording a mistake. */
bool by_json_integer(struct by_json *json, int64_t *value);
/* Reads a number as its own text, which stays exact: "12.5", "-1e3". */
bool by_json_number(struct by_json *json, const char **text, size_t *bytes);
/* Skips any value. */
void by_json_skip(struct by_json *json);
/* Returns 0 if the whole text was one valid value, read or skipped; else fills `problem` and
 * returns BY_EFORMAT. */
int by_json_finish(struct by_json *json, struct by_problem *problem);
/* Line and column (in bytes) of offset `at`. Counts from the previous offset asked for, if that is
 * before. */
struct by_place by_json_place(struct by_json *json, size_t at);
/* Records the first semantic mistake, with the current position: fills `problem` and sets `*error`
 * to BY_EFORMAT, unless an error is already set. Returns false. */
bool by_json_refuse(struct by_json *json, struct by_problem *problem, int *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Whether a key equals `wanted`. */
static inline bool by_json_is(const char *key, size_t bytes, const char *wanted)
{
    return strlen(wanted) == bytes && memcmp(key, wanted, bytes) == 0;
}

/* Whether `text` is an object with "format" as its first member, whose value begins with `name`. */
bool by_json_has_format(const char *text, size_t bytes, const char *name);

/* Reads a whole file of at most `bytes_max` bytes; the caller frees the text. Returns 0, or BY_EIO
 * or BY_ELIMIT with `problem` filled. */
int by_text_read(const char *path, size_t bytes_max, char **text, size_t *bytes, struct by_problem *problem);

#endif

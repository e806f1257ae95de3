/*
 * A pull parser of JSON text: plan files hold millions of numbers, which must not become a tree of
 * objects each. Strict (RFC 8259, UTF-8 checked, no zero characters in strings). The first mistake
 * is kept; from then on every call answers as if the text had ended, so that callers may ask once,
 * at the end. Neighbours: the readers of plan/ and verify/; read.c, which wants places for every
 * value, uses locate.h. One thread for each parser.
 */
#ifndef BY_BASE_JSON_H
#define BY_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
};

void by_json_open(struct by_json *json, const char *text, size_t bytes);
void by_json_close(struct by_json *json);
/* The kind of the next value: '{', '[', '"', '0' (a number), 't', 'f', 'n'; 0 at the end or after a
 * mistake.
 */
char by_json_peek(struct by_json *json);
/*
 * Loops over members or elements; `*first` is true before the first call:
 *     for (bool first = true; by_json_member(json, &first, &key, &key_bytes);) ... read or skip the
 * value ... When the value is of another kind, that is a mistake.
 */
bool by_json_member(struct by_json *json, bool *first, const char **key, size_t *key_bytes);
bool by_json_element(struct by_json *json, bool *first);
/* A string without its quotes; valid until the next call that reads a string. */
bool by_json_string(struct by_json *json, const char **text, size_t *bytes);
/* An integer that fits 64 bits. A number that does not, or is no integer, is left alone: returns
 * false without making it a mistake. */
bool by_json_integer(struct by_json *json, int64_t *value);
/* Passes over any value. */
void by_json_skip(struct by_json *json);
/* Whether the whole text was one right value, read or skipped; else fills `problem` (BY_EFORMAT).
 */
int by_json_finish(struct by_json *json, struct by_problem *problem);
/* Line and column of offset `at`. */
struct by_place by_json_place(const struct by_json *json, size_t at);
/* Keeps the first mistake of meaning, with the place where reading stands: fills `problem` and sets
 * `*error` to BY_EFORMAT, unless there is one already. Returns false. */
bool by_json_refuse(struct by_json *json, struct by_problem *problem, int *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Whether a key is `wanted`. */
bool by_json_is(const char *key, size_t bytes, const char *wanted);

/* Whether `text` is an object whose first member is "format", with a value that begins with `name`.
 */
bool by_json_has_format(const char *text, size_t bytes, const char *name);

/* The whole of a file, at most `bytes_max`; the caller frees. 0, BY_EIO or BY_ELIMIT with `problem`
 * filled.
 */
int by_text_read(const char *path, size_t bytes_max, char **text, size_t *bytes, struct by_problem *problem);

#endif

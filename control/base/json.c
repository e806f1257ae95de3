/* A pull parser of JSON text. See json.h. */
#include "control/base/json.h"

#include <endian.h>
#include <errno.h>
#include <stdarg.h>

#include "control/base/alloc.h"
#include "offload/base/errors.h"

/* Nesting depth of containers (count). */
#define DEPTH_MAX 64u

void by_json_open(struct by_json *json, const char *text, size_t bytes)
{
    *json = (struct by_json){.text = text, .bytes = bytes};
}

void by_json_close(struct by_json *json)
{
    free(json->buffer);
    json->buffer = NULL;
}

static bool fail(struct by_json *json, const char *mistake)
{
    if (!json->failed)
        snprintf(json->mistake, sizeof(json->mistake), "%s", mistake);
    json->failed = true;
    return false;
}

static void skip_space(struct by_json *json)
{
    while (json->at < json->bytes && (json->text[json->at] == ' ' || json->text[json->at] == '\n' ||
                                      json->text[json->at] == '\t' || json->text[json->at] == '\r'))
        json->at++;
}

/* Returns the next character that is not white space, 0 at the end. */
static inline char look(struct by_json *json)
{
    if (json->failed)
        return 0;
    if (json->at < json->bytes && (unsigned char)json->text[json->at] > ' ')
        return json->text[json->at];
    skip_space(json);
    return json->at < json->bytes ? json->text[json->at] : 0;
}

char by_json_peek(struct by_json *json)
{
    char c = look(json);

    if (c == '{' || c == '[' || c == '"' || c == 't' || c == 'f' || c == 'n')
        return c;
    if (c == '-' || (c >= '0' && c <= '9'))
        return '0';
    fail(json, json->at < json->bytes ? "a value is expected" : "the text ends too early");
    return 0;
}

/* Consumes `open`, or the comma before another part; false at `close` and after a mistake. */
static bool next_part(struct by_json *json, bool *first, char open, char close)
{
    char c = look(json);

    if (*first) {
        if (c != open || json->depth == DEPTH_MAX)
            return fail(json, c != open   ? (open == '{' ? "an object is expected" : "an array is expected")
                              : c == '\0' ? "the text ends too early"
                                          : "the text is nested too deep");
        json->at++;
        json->depth++;
        *first = false;
        if (look(json) != close)
            return !json->failed;
    } else if (c == ',') {
        json->at++;
        return true;
    } else if (c != close) {
        return fail(json, close == '}' ? "',' or '}' is expected" : "',' or ']' is expected");
    }
    json->at++;
    json->depth--;
    return false;
}

bool by_json_element(struct by_json *json, bool *first)
{
    return next_part(json, first, '[', ']');
}

bool by_json_member(struct by_json *json, bool *first, const char **key, size_t *key_bytes)
{
    if (!next_part(json, first, '{', '}'))
        return false;
    if (look(json) != '"')
        return fail(json, "a key in quotes is expected");
    if (!by_json_string(json, key, key_bytes))
        return false;
    if (look(json) != ':')
        return fail(json, "':' is expected");
    json->at++;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the value of four hexadecimal digits at `at`, -1 if they are not digits. */
static int32_t hex_code(const struct by_json *json, size_t at)
{
    int32_t code = 0;

    if (at + 4 > json->bytes)
        return -1;
    for (size_t i = at; i < at + 4; i++) {
        int digit = hex_digit(json->text[i]);

        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

static size_t put_utf8(char *to, uint32_t code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xc0 | code >> 6);
        to[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xe0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 0x3f));
        to[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 0x3f));
    to[2] = (char)(0x80 | (code >> 6 & 0x3f));
    to[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* Returns the length in bytes of the UTF-8 character at `at`, 0 if it is invalid. */
static size_t utf8_length(const struct by_json *json, size_t at)
{
    const unsigned char *c = (const unsigned char *)json->text + at;
    size_t left = json->bytes - at, length = c[0] < 0x80 ? 1 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
    uint32_t code = c[0] & (0xffu >> (length + 1));

    if (length == 1)
        return 1;
    if (c[0] < 0xc2 || c[0] > 0xf4 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((c[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (c[i] & 0x3f);
    }
    if ((length == 3 && code < 0x800) || (length == 4 && (code < 0x10000 || code > 0x10ffff)) ||
        (code >= 0xd800 && code < 0xe000))
        return 0;
    return length;
}

#define EACH UINT64_C(0x0101010101010101)
#define HIGH (EACH << 7)

static uint64_t little64(const char *text)
{
    uint64_t value;

    memcpy(&value, text, sizeof(value));
    return le64toh(value);
}

/* Marks bytes of 0. Only the lowest mark is right: a byte of 0 borrows from those above it. */
static uint64_t zeros(uint64_t bytes)
{
    return (bytes - EACH) & ~bytes & HIGH;
}

/* Returns the offset of the first character from `at` on that ends a string, or is not ASCII, or
 * needs an escape; eight at a time. */
static size_t skip_plain(const struct by_json *json, size_t at)
{
    for (; json->bytes - at >= 8; at += 8) {
        uint64_t text = little64(json->text + at);
        uint64_t found = zeros(text ^ EACH * '"') | zeros(text ^ EACH * '\\') |
                         ((text - EACH * ' ') & ~text & HIGH) | (text & HIGH);

        if (found)
            return at + (size_t)__builtin_ctzll(found) / 8;
    }
    while (at < json->bytes && (unsigned char)json->text[at] >= ' ' && json->text[at] != '"' &&
           json->text[at] != '\\' && (unsigned char)json->text[at] < 0x80)
        at++;
    return at;
}

/* Decodes the escape at `at` (after the backslash) into `to`; returns the offset after it, 0 on a
 * mistake. */
static size_t read_escape(const struct by_json *json, size_t at, char *to, size_t *length)
{
    static const char from[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
    const char *found;
    int32_t code, low;

    if (at >= json->bytes)
        return 0;
    found = json->text[at] ? strchr(from, json->text[at]) : NULL;
    if (found) {
        to[0] = meaning[found - from];
        *length = 1;
        return at + 1;
    }
    if (json->text[at] != 'u' || (code = hex_code(json, at + 1)) <= 0)
        return 0;
    at += 5;
    if (code >= 0xdc00 && code < 0xe000)
        return 0;
    if (code >= 0xd800 && code < 0xdc00) {
        if (at + 6 > json->bytes || json->text[at] != '\\' || json->text[at + 1] != 'u')
            return 0;
        low = hex_code(json, at + 2);
        if (low < 0xdc00 || low >= 0xe000)
            return 0;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        at += 6;
    }
    *length = put_utf8(to, (uint32_t)code);
    return at;
}

/* Reads a string with escapes, from `start` (after the quote); `at` is the offset of the first
 * backslash. */
static bool read_escaped(struct by_json *json, size_t start, size_t at, const char **text, size_t *bytes)
{
    size_t length = at - start;

    if (json->buffer_bytes < json->bytes - start) { /* decoding an escape never lengthens the text */
        json->buffer_bytes = json->bytes - start;
        json->buffer = by_realloc(json->buffer, json->buffer_bytes, 1);
    }
    memcpy(json->buffer, json->text + start, length);
    while (at < json->bytes && json->text[at] != '"') {
        size_t part = 1, next;

        if ((unsigned char)json->text[at] < ' ')
            break;
        if (json->text[at] == '\\') {
            next = read_escape(json, at + 1, json->buffer + length, &part);
        } else {
            part = utf8_length(json, at);
            memcpy(json->buffer + length, json->text + at, part);
            next = part ? at + part : 0;
        }
        if (next == 0) {
            json->at = at;
            return fail(json, "invalid character in a string");
        }
        length += part;
        at = next;
    }
    json->at = at;
    if (at >= json->bytes || json->text[at] != '"')
        return fail(json, at >= json->bytes ? "the text ends within a string"
                                            : "a control character in a string must be escaped");
    json->at++;
    *text = json->buffer;
    *bytes = length;
    return true;
}

bool by_json_string(struct by_json *json, const char **text, size_t *bytes)
{
    size_t start, at;

    if (by_json_peek(json) != '"')
        return fail(json, "a string is expected");
    start = json->at + 1;
    for (at = skip_plain(json, start); at < json->bytes && json->text[at] != '"';) {
        unsigned char c = (unsigned char)json->text[at];
        size_t length = c < 0x80 ? 1 : utf8_length(json, at);

        if (c == '\\')
            return read_escaped(json, start, at, text, bytes);
        if (c < ' ' || length == 0) {
            json->at = at;
            return fail(json, c < ' ' ? "a control character in a string must be escaped"
                                      : "the text is not UTF-8");
        }
        at = skip_plain(json, at + length);
    }
    if (at >= json->bytes) {
        json->at = at;
        return fail(json, "the text ends within a string");
    }
    json->at = at + 1;
    *text = json->text + start;
    *bytes = at - start;
    return true;
}

bool by_json_integer(struct by_json *json, int64_t *value)
{
    size_t at;
    bool negative;
    uint64_t number = 0;
    uint32_t digits = 0;

    if (by_json_peek(json) != '0')
        return false;
    at = json->at;
    negative = json->text[at] == '-';
    at += negative;
    while (at < json->bytes && json->text[at] >= '0' && json->text[at] <= '9' && digits < 19) {
        number = number * 10 + (uint64_t)(json->text[at++] - '0');
        digits++;
    }
    if (digits == 0 || number > INT64_MAX || (digits > 1 && json->text[at - digits] == '0'))
        return false;
    if (at < json->bytes && ((json->text[at] >= '0' && json->text[at] <= '9') || json->text[at] == '.' ||
                             json->text[at] == 'e' || json->text[at] == 'E'))
        return false;
    json->at = at;
    *value = negative ? -(int64_t)number : (int64_t)number;
    return true;
}

static size_t skip_digits(const struct by_json *json, size_t at)
{
    while (at < json->bytes && json->text[at] >= '0' && json->text[at] <= '9')
        at++;
    return at;
}

static void skip_number(struct by_json *json)
{
    size_t at = json->at + (json->text[json->at] == '-'), next = skip_digits(json, at);
    bool right = next > at && (next == at + 1 || json->text[at] != '0');

    at = next;
    if (right && at < json->bytes && json->text[at] == '.') {
        next = skip_digits(json, at + 1);
        right = next > at + 1;
        at = next;
    }
    if (right && at < json->bytes && (json->text[at] | 0x20) == 'e') {
        at++;
        at += at < json->bytes && (json->text[at] == '+' || json->text[at] == '-');
        next = skip_digits(json, at);
        right = next > at;
        at = next;
    }
    json->at = at;
    if (!right)
        fail(json, "invalid number");
}

bool by_json_number(struct by_json *json, const char **text, size_t *bytes)
{
    if (by_json_peek(json) != '0')
        return fail(json, "a number is expected");
    *text = json->text + json->at;
    skip_number(json);
    *bytes = (size_t)(json->text + json->at - *text);
    return !json->failed;
}

static void skip_word(struct by_json *json, const char *word)
{
    size_t bytes = strlen(word);

    if (json->bytes - json->at < bytes || memcmp(json->text + json->at, word, bytes) != 0)
        fail(json, "a value is expected");
    else
        json->at += bytes;
}

void by_json_skip(struct by_json *json)
{
    bool first = true;
    const char *text;
    size_t bytes;

    switch (by_json_peek(json)) {
    case '{':
        while (by_json_member(json, &first, &text, &bytes))
            by_json_skip(json);
        break;
    case '[':
        while (by_json_element(json, &first))
            by_json_skip(json);
        break;
    case '"':
        by_json_string(json, &text, &bytes);
        break;
    case '0':
        skip_number(json);
        break;
    case 't':
        skip_word(json, "true");
        break;
    case 'f':
        skip_word(json, "false");
        break;
    case 'n':
        skip_word(json, "null");
        break;
    default:
        break;
    }
}

struct by_place by_json_place(struct by_json *json, size_t at)
{
    const char *newline;
    size_t end = at < json->bytes ? at : json->bytes;

    if (json->seen > end || json->seen_place.line == 0) {
        json->seen = 0;
        json->seen_place = (struct by_place){1, 1};
    }
    while (json->seen < end && (newline = memchr(json->text + json->seen, '\n', end - json->seen))) {
        json->seen = (size_t)(newline - json->text) + 1;
        json->seen_place = (struct by_place){json->seen_place.line + 1, 1};
    }
    json->seen_place.column += (int)(end - json->seen);
    json->seen = end;
    return json->seen_place;
}

int by_json_finish(struct by_json *json, struct by_problem *problem)
{
    if (!json->failed) {
        skip_space(json);
        if (json->at < json->bytes)
            fail(json, "unexpected text after the first value");
    }
    if (!json->failed)
        return 0;
    return by_problem_set(problem, BY_EFORMAT, by_json_place(json, json->at), "not valid JSON: %s",
                          json->mistake);
}

bool by_json_has_format(const char *text, size_t bytes, const char *name)
{
    struct by_json json;
    const char *key, *value;
    size_t key_bytes, value_bytes;
    bool first = true, has;

    by_json_open(&json, text, bytes);
    has = by_json_peek(&json) == '{' && by_json_member(&json, &first, &key, &key_bytes) &&
          by_json_is(key, key_bytes, "format") && by_json_peek(&json) == '"' &&
          by_json_string(&json, &value, &value_bytes) && value_bytes >= strlen(name) &&
          memcmp(value, name, strlen(name)) == 0;
    by_json_close(&json);
    return has;
}

int by_text_read(const char *path, size_t bytes_max, char **text, size_t *bytes, struct by_problem *problem)
{
    FILE *file = fopen(path, "rb");
    size_t room = 1 << 16;
    int error = 0;

    *text = NULL;
    *bytes = 0;
    if (!file)
        return by_problem_set(problem, BY_EIO, (struct by_place){0, 0}, "cannot open '%.200s': %s", path,
                              strerror(errno));
    *text = by_alloc(room, 1);
    while (!feof(file) && !ferror(file) && *bytes <= bytes_max) {
        if (*bytes == room)
            *text = by_realloc(*text, room *= 2, 1);
        *bytes += fread(*text + *bytes, 1, room - *bytes, file);
    }
    if (ferror(file))
        error = by_problem_set(problem, BY_EIO, (struct by_place){0, 0}, "cannot read '%.200s': %s", path,
                               strerror(errno));
    else if (*bytes > bytes_max)
        error = by_problem_set(problem, BY_ELIMIT, (struct by_place){0, 0}, "the file is larger than %zu MiB",
                               bytes_max >> 20);
    fclose(file);
    if (error) {
        free(*text);
        *text = NULL;
    }
    return error;
}

bool by_json_refuse(struct by_json *json, struct by_problem *problem, int *error, const char *format, ...)
{
    char text[sizeof(problem->text)];
    va_list arguments;

    if (*error || json->failed)
        return false;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    *error = by_problem_set(problem, BY_EFORMAT, by_json_place(json, json->at), "%s", text);
    return false;
}

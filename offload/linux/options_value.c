/* Values of options: parses, checks and stores them. See options.h. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/linux/options_row.h"

/* Longest word that "did you mean" compares (characters). */
#define WORD_MAX 32u

int by_option_refuse(struct by_option_why *why, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why->text, sizeof(why->text), format, arguments);
    va_end(arguments);
    return -1;
}

static unsigned least_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Letters to insert, to remove, to replace or to swap with their neighbour (count). */
static unsigned distance(const char *a, const char *b)
{
    unsigned at[WORD_MAX + 1][WORD_MAX + 1], rows = (unsigned)strlen(a), columns = (unsigned)strlen(b);

    for (unsigned i = 0; i <= rows; i++)
        for (unsigned j = 0; j <= columns; j++) {
            if (i == 0 || j == 0) {
                at[i][j] = i + j;
                continue;
            }
            at[i][j] =
                least_of(least_of(at[i - 1][j], at[i][j - 1]) + 1, at[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                at[i][j] = least_of(at[i][j], at[i - 2][j - 2] + 1);
        }
    return at[rows][columns];
}

void by_option_guess_add(struct by_option_guess *guess, const char *word)
{
    size_t bytes = strlen(guess->typed);
    unsigned far;

    if (bytes < 2 || bytes > WORD_MAX || strlen(word) > WORD_MAX)
        return;
    far = strncmp(word, guess->typed, bytes) == 0 ? 1 : distance(guess->typed, word);
    if (far > (bytes + 1) / 3 || (guess->best != NULL && far >= guess->distance))
        return;
    guess->best = word;
    guess->distance = far;
}

static const char *word_of(const struct by_option *row, uint64_t number)
{
    return row->words != NULL ? row->words[number] : row->word((unsigned)number);
}

void by_option_words(const struct by_option *row, char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = 0;
    for (uint64_t i = row->least; i <= row->most && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s",
                                 i == row->least  ? ""
                                 : i == row->most ? " or "
                                                  : ", ",
                                 word_of(row, i));
}

/* Writes bytes with the largest suffix that divides them. */
static void size_text(uint64_t value, char text[24])
{
    static const char suffixes[] = {0, 'K', 'M', 'G', 0};
    unsigned i = 0;

    for (; value != 0 && value % 1024 == 0 && suffixes[i + 1] != 0; value /= 1024)
        i++;
    snprintf(text, 24, "%" PRIu64 "%.1s", value, &suffixes[i]);
}

void by_option_limits(const struct by_option *row, char *text, size_t bytes)
{
    char low[24], high[24];

    if (row->power)
        snprintf(text, bytes, "a power of two up to %" PRIu64, row->most);
    else if (row->kind == BY_OPTION_SIZE) {
        size_text(row->least, low);
        size_text(row->most, high);
        snprintf(text, bytes, "%s to %s", low, high);
    } else
        snprintf(text, bytes, "%" PRIu64 " to %" PRIu64, row->least, row->most);
}

static void store(void *object, struct by_option_field field, uint64_t value)
{
    char *to = (char *)object + field.at;
    uint8_t byte = (uint8_t)value;
    uint16_t half = (uint16_t)value;
    uint32_t word = (uint32_t)value;

    switch (field.bytes) {
    case 1:
        memcpy(to, &byte, 1);
        break;
    case 2:
        memcpy(to, &half, 2);
        break;
    case 4:
        memcpy(to, &word, 4);
        break;
    case 8:
        memcpy(to, &value, 8);
        break;
    default:
        break;
    }
}

/* Parses decimal digits without sign or blanks. Returns false for none, or beyond 64 bits. */
static bool read_digits(const char **text, uint64_t *value)
{
    const char *at = *text;

    for (*value = 0; *at >= '0' && *at <= '9'; at++) {
        unsigned digit = (unsigned)(*at - '0');

        if (*value > (UINT64_MAX - digit) / 10)
            return false;
        *value = *value * 10 + digit;
    }
    if (at == *text)
        return false;
    *text = at;
    return true;
}

static int read_number(const struct by_option *row, const char *text, uint64_t *value,
                       struct by_option_why *why)
{
    char limits[96];
    bool right;

    if (row->zero != NULL && strcmp(text, row->zero) == 0) {
        *value = 0;
        return 0;
    }
    right = read_digits(&text, value);
    if (right && row->kind == BY_OPTION_SIZE && *text != 0) {
        static const char letters[] = "KMG";
        const char *found = strchr(letters, *text >= 'a' ? *text - 'a' + 'A' : *text);
        unsigned shift = found != NULL ? 10 * (unsigned)(found - letters + 1) : 0;

        text += found != NULL ? 1 : 0;
        text += *text == 'B' || *text == 'b';
        right = *value <= UINT64_MAX >> shift;
        *value <<= shift;
    }
    if (right && *text == 0 && *value >= row->least && *value <= row->most &&
        (!row->power || (*value & (*value - 1)) == 0))
        return 0;
    by_option_limits(row, limits, sizeof(limits));
    return by_option_refuse(why, "it must be %s%s%s%s",
                            row->power                    ? ""
                            : row->kind == BY_OPTION_SIZE ? "bytes from "
                                                          : "a whole number from ",
                            limits, row->kind == BY_OPTION_SIZE ? ", where K, M and G are binary" : "",
                            row->zero == NULL                ? ""
                            : strcmp(row->zero, "auto") == 0 ? ", or auto"
                                                             : ", or 0");
}

/* The part of "e-3", with its letter, that divides a number by 1,000; 0 when `text` is nothing
 * such. */
static uint64_t read_exponent(const char *text)
{
    uint64_t power = 1;
    unsigned long places;
    char *end;

    if ((text[0] != 'e' && text[0] != 'E') || text[1] != '-' || text[2] < '0' || text[2] > '9')
        return 0;
    places = strtoul(text + 2, &end, 10);
    if (*end != 0)
        return 0;
    for (; places > 0 && power < 10000000000u; places--) /* further places change nothing */
        power *= 10;
    return power;
}

int by_option_chance(const char *text, uint64_t *parts, struct by_option_why *why)
{
    uint64_t digits = 0, scale = 1;
    bool point = false, some = false;

    for (; *text == '.' || (*text >= '0' && *text <= '9'); text++) {
        if (*text == '.' && point)
            break;
        point = point || *text == '.';
        if (*text == '.')
            continue;
        some = true;
        if (scale >= 1000000000u)
            continue; /* further digits change nothing */
        if (digits >= 1000000000u)
            break;
        digits = digits * 10 + (uint64_t)(*text - '0');
        scale *= point ? 10 : 1;
    }
    if (some && *text != 0) {
        uint64_t power = read_exponent(text);

        scale *= power;
        some = power > 0;
    }
    if (!some || digits > scale)
        return by_option_refuse(why, "it must be a probability from 0 to 1, such as 0.01 or 1e-2");
    *parts = digits == scale ? UINT32_MAX : (uint64_t)(((unsigned __int128)digits << 32) / scale);
    return 0;
}

static int read_decimal(const struct by_option *row, const char *text, double *value,
                        struct by_option_why *why)
{
    char *end;

    *value = strtod(text, &end);
    if (text[0] >= '0' && text[0] <= '9' && text[strspn(text, "0123456789.eE+-")] == 0 && *end == 0 &&
        isfinite(*value) && *value > 0 && *value <= (double)row->most)
        return 0;
    return by_option_refuse(why, "it must be a number above 0 and up to %" PRIu64, row->most);
}

static int read_word(const struct by_option *row, const char *text, size_t bytes, uint64_t *number,
                     struct by_option_why *why)
{
    struct by_option_guess guess = {0};
    char typed[64], words[240];

    snprintf(typed, sizeof(typed), "%.*s", (int)bytes, text);
    guess.typed = typed;
    for (*number = row->least; *number <= row->most; (*number)++) {
        const char *word = word_of(row, *number);

        if (strlen(word) == bytes && memcmp(word, text, bytes) == 0)
            return 0;
        by_option_guess_add(&guess, word);
    }
    by_option_words(row, words, sizeof(words));
    if (row->kind == BY_OPTION_LIST)
        return by_option_refuse(why, "'%s' is unknown; it must be all, %s%s%s%s", typed, words,
                                guess.best ? "; did you mean " : "", guess.best ? guess.best : "",
                                guess.best ? "?" : "");
    return by_option_refuse(why, "it must be %s%s%s%s", words, guess.best ? "; did you mean " : "",
                            guess.best ? guess.best : "", guess.best ? "?" : "");
}

static int read_list(const struct by_option *row, void *object, const char *text, struct by_option_why *why)
{
    bool set[BY_OPTIONS_MAX] = {false};
    uint64_t number;

    set[0] = strcmp(text, "all") == 0;
    for (number = row->least; set[0] && number <= row->most; number++)
        set[number] = true;
    for (const char *at = text; !set[0]; at++) {
        size_t bytes = strcspn(at, ",");

        if (read_word(row, at, bytes, &number, why) != 0)
            return -1;
        set[number] = true;
        at += bytes;
        if (*at == 0)
            break;
    }
    if (row->value.bytes != 0)
        memcpy((char *)object + row->value.at, set, (size_t)row->most + 1);
    return 0;
}

int by_option_value(const struct by_option *row, void *object, const char *text, struct by_option_why *why)
{
    uint64_t value = 1;
    double decimal;
    int status = 0;

    switch (row->kind) {
    case BY_OPTION_FLAG:
        value = row->least != 0 ? row->least : 1;
        break;
    case BY_OPTION_NUMBER:
    case BY_OPTION_SIZE:
        status = read_number(row, text, &value, why);
        value *= row->scale != 0 ? row->scale : 1;
        break;
    case BY_OPTION_CHANCE:
        status = by_option_chance(text, &value, why);
        break;
    case BY_OPTION_CHOICE:
        value = row->most;
        status = text != NULL ? read_word(row, text, strlen(text), &value, why) : 0;
        break;
    case BY_OPTION_DECIMAL:
        status = read_decimal(row, text, &decimal, why);
        if (status == 0 && row->value.bytes == sizeof(decimal))
            memcpy((char *)object + row->value.at, &decimal, sizeof(decimal));
        return status;
    case BY_OPTION_LIST:
        return read_list(row, object, text, why);
    case BY_OPTION_TEXT:
    case BY_OPTION_HEADING:
    case BY_OPTION_NOTE:
        break;
    }
    if (status == 0)
        store(object, row->value, value);
    return status;
}

/* Exact fractions: arithmetic, reading and printing. See fraction.h. */
#include "control/base/fraction.h"

#include <stdio.h>

#include "offload/base/assert.h"
#include <string.h>

#include "offload/base/errors.h"

/* The largest integer that every JSON reader represents exactly. */
#define JSON_INTEGER_MAX ((int64_t)1 << 53)

int64_t by_gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

int by_fraction_set(__int128 num, __int128 den, struct by_fraction *result)
{
    __int128 a = num, b = den;

    BY_ASSERT(den > 0);
    if (num < 0)
        return BY_ERANGE;
    while (b) {
        __int128 rest = a % b;

        a = b;
        b = rest;
    }
    num /= a;
    den /= a;
    if (num > INT64_MAX || den > INT64_MAX)
        return BY_ERANGE;
    result->num = (int64_t)num;
    result->den = (int64_t)den;
    return 0;
}

int by_fraction_add(struct by_fraction a, struct by_fraction b, struct by_fraction *result)
{
    int64_t shared = by_gcd(a.den, b.den);
    __int128 num, x = (__int128)a.num * (b.den / shared), y = (__int128)b.num * (a.den / shared);

    if (__builtin_add_overflow(x, y, &num))
        return BY_ERANGE;
    return by_fraction_set(num, (__int128)a.den * (b.den / shared), result);
}

int by_fraction_subtract(struct by_fraction a, struct by_fraction b, struct by_fraction *result)
{
    int64_t shared = by_gcd(a.den, b.den);
    __int128 num = (__int128)a.num * (b.den / shared) - (__int128)b.num * (a.den / shared);

    return by_fraction_set(num, (__int128)a.den * (b.den / shared), result);
}

int by_fraction_multiply(struct by_fraction a, struct by_fraction b, struct by_fraction *result)
{
    return by_fraction_set((__int128)a.num * b.num, (__int128)a.den * b.den, result);
}

int by_fraction_divide(struct by_fraction a, struct by_fraction b, struct by_fraction *result)
{
    BY_ASSERT(b.num > 0);
    return by_fraction_set((__int128)a.num * b.den, (__int128)a.den * b.num, result);
}

int by_fraction_compare(struct by_fraction a, struct by_fraction b)
{
    __int128 x = (__int128)a.num * b.den, y = (__int128)b.num * a.den;

    return (x > y) - (x < y);
}

double by_fraction_value(struct by_fraction a)
{
    return (double)a.num / (double)a.den;
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Appends one decimal digit; BY_ERANGE beyond what later steps can hold. */
static int append_digit(__int128 *value, char c)
{
    *value = *value * 10 + (c - '0');
    return *value > ((__int128)1 << 100) ? BY_ERANGE : 0;
}

/* Multiplies `value` by 10^power within 100 bits. */
static int scale_ten(__int128 *value, unsigned power)
{
    for (unsigned i = 0; i < power && *value; i++) {
        *value *= 10;
        if (*value > ((__int128)1 << 100))
            return BY_ERANGE;
    }
    return 0;
}

int by_fraction_parse(const char *text, size_t bytes, struct by_fraction *result)
{
    __int128 num = 0, den = 1;
    size_t at = 0;
    int places = 0, error = 0;

    if (bytes == 0 || !digit(text[0]))
        return BY_EFORMAT;
    for (; at < bytes && digit(text[at]); at++)
        error = error ? error : append_digit(&num, text[at]);
    if (at < bytes && text[at] == '/') {
        size_t first = ++at;

        for (den = 0; at < bytes && digit(text[at]); at++)
            error = error ? error : append_digit(&den, text[at]);
        if (at == first || at != bytes || (den == 0 && !error))
            return BY_EFORMAT;
        return error ? error : by_fraction_set(num, den, result);
    }
    if (at < bytes && text[at] == '.') {
        size_t first = ++at;

        for (; at < bytes && digit(text[at]); at++, places++)
            error = error ? error : append_digit(&num, text[at]);
        if (at == first)
            return BY_EFORMAT;
    }
    if (at < bytes && (text[at] == 'e' || text[at] == 'E')) {
        bool negative = false;
        int power = 0;
        size_t first;

        at++;
        if (at < bytes && (text[at] == '+' || text[at] == '-'))
            negative = text[at++] == '-';
        for (first = at; at < bytes && digit(text[at]); at++)
            power = power < 1000 ? power * 10 + (text[at] - '0') : power;
        if (at == first)
            return BY_EFORMAT;
        places -= negative ? -power : power;
    }
    if (at != bytes)
        return BY_EFORMAT;
    if (!error)
        error = places > 0 ? scale_ten(&den, (unsigned)places) : scale_ten(&num, (unsigned)-places);
    return error ? error : by_fraction_set(num, den, result);
}

int by_fraction_parse_part(const char *text, struct by_fraction *part)
{
    size_t bytes = strlen(text);
    bool percent = bytes > 0 && text[bytes - 1] == '%';
    int error = by_fraction_parse(text, bytes - percent, part);

    return error || !percent ? error : by_fraction_divide(*part, (struct by_fraction){100, 1}, part);
}

char *by_fraction_text(struct by_fraction a, char text[BY_FRACTION_TEXT_BYTES])
{
    if (a.den == 1)
        snprintf(text, BY_FRACTION_TEXT_BYTES, "%lld", (long long)a.num);
    else
        snprintf(text, BY_FRACTION_TEXT_BYTES, "%lld/%lld", (long long)a.num, (long long)a.den);
    return text;
}

char *by_fraction_json(struct by_fraction a, char text[BY_FRACTION_JSON_BYTES])
{
    const char *num_quote = a.num > JSON_INTEGER_MAX ? "\"" : "",
               *den_quote = a.den > JSON_INTEGER_MAX ? "\"" : "";

    snprintf(text, BY_FRACTION_JSON_BYTES, "{\"num\": %s%lld%s, \"den\": %s%lld%s}", num_quote,
             (long long)a.num, num_quote, den_quote, (long long)a.den, den_quote);
    return text;
}

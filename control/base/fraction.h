/* Exact fractions in 64 bits. Every operation reports results that cannot be represented; nothing
 * is rounded. Neighbours: the planner and the commands. Pure functions: any thread. */
#ifndef BY_BASE_FRACTION_H
#define BY_BASE_FRACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An exact non-negative fraction in lowest terms; den > 0. */
struct by_fraction {
    int64_t num;
    int64_t den;
};

/* Greatest common divisor; 0 only for (0, 0). Arguments must not be negative. */
int64_t by_gcd(int64_t a, int64_t b);

/* num/den in lowest terms; num >= 0 and den > 0. BY_ERANGE when a part exceeds 63 bits. */
int by_fraction_set(__int128 num, __int128 den, struct by_fraction *result);
/* Arithmetic; BY_ERANGE when the result exceeds 63 bits; subtraction also when it would be
 * negative. */
int by_fraction_add(struct by_fraction a, struct by_fraction b, struct by_fraction *result);
int by_fraction_subtract(struct by_fraction a, struct by_fraction b, struct by_fraction *result);
int by_fraction_multiply(struct by_fraction a, struct by_fraction b, struct by_fraction *result);
/* b must not be zero. */
int by_fraction_divide(struct by_fraction a, struct by_fraction b, struct by_fraction *result);
/* -1, 0, 1 as a < b, a == b, a > b. */
int by_fraction_compare(struct by_fraction a, struct by_fraction b);
/* For printing only. */
double by_fraction_value(struct by_fraction a);

/*
 * Reads "12", "12.5", "1.25e3" or "25/2" (decimal digits only, no sign) from `bytes` bytes of text,
 * exactly. BY_EFORMAT when the text is none of these (a denominator of zero included), BY_ERANGE
 * when the value does not fit.
 */
int by_fraction_parse(const char *text, size_t bytes, struct by_fraction *result);
/* Reads a part of a whole, such as "5%", "0.05" or "1/20"; otherwise as by_fraction_parse. */
int by_fraction_parse_part(const char *text, struct by_fraction *part);
/* Writes "12" or "25/2" into `text`; returns it. */
#define BY_FRACTION_TEXT_BYTES 44
char *by_fraction_text(struct by_fraction a, char text[BY_FRACTION_TEXT_BYTES]);
/* Writes {"num": 1, "den": 2} into `text`, parts beyond 2^53 as strings; returns it. */
#define BY_FRACTION_JSON_BYTES 72
char *by_fraction_json(struct by_fraction a, char text[BY_FRACTION_JSON_BYTES]);

#endif

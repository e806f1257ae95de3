/*
 * Finds the position of each value in a JSON text. The JSON library reports positions of syntax
 * errors only, but errors in the contents of a file need them as well. Decimals are read from their
 * own text, so that they stay exact. The positions are meaningful for valid JSON only.
 */
#ifndef BY_BASE_LOCATE_H
#define BY_BASE_LOCATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/base/problem.h"

/* Byte offsets of all values in document order: a container first, then its contents; keys are not
 * values. */
struct by_locations {
    const char *json;
    size_t bytes;
    size_t *offsets;
    size_t count;
    size_t seen; /* the offset up to which `place` has counted lines: lookups are mostly in order */
    struct by_place place;
};

/* Finds the values. Returns false when there are more than `count_max`: such a text is not worth
 * parsing. Also accepts invalid JSON. Free after success and failure. */
bool by_locations_find(const char *json, size_t bytes, size_t count_max, struct by_locations *locations);
void by_locations_free(struct by_locations *locations);
/* Line and column of value number `index`. */
struct by_place by_locations_place(struct by_locations *locations, size_t index);
/* Returns the start of the text of value number `index`, which must be a number, and sets its
 * length. */
const char *by_locations_number(const struct by_locations *locations, size_t index, size_t *bytes);

#endif

/*
 * Where each value of a JSON text stands. The JSON library reports positions for syntax errors
 * only; errors in what a file says deserve them too, and decimals are read from their own text so
 * that they stay exact. The places mean something for valid JSON only.
 */
#ifndef BY_BASE_LOCATE_H
#define BY_BASE_LOCATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/base/problem.h"

/* Byte offsets of all values in document order: a container first, then what it contains; keys are
 * not values. */
struct by_locations {
    const char *json;
    size_t bytes;
    size_t *offsets;
    size_t count;
    size_t seen; /* the offset up to which `place` has counted lines: places are mostly asked for in order */
    struct by_place place;
};

/* False when there are more than `count_max`: then the text is not worth parsing. Also of text that
 * is no JSON; to be freed either way. */
bool by_locations_find(const char *json, size_t bytes, size_t count_max, struct by_locations *locations);
void by_locations_free(struct by_locations *locations);
/* Line and column of value number `index`. */
struct by_place by_locations_place(struct by_locations *locations, size_t index);
/* The text of value number `index`, which must be a number: returns its start and sets its length.
 */
const char *by_locations_number(const struct by_locations *locations, size_t index, size_t *bytes);

#endif

/*
 * A table image for people and for programs: one line for each record, and JSON. Also the
 * difference of two images. The images must have been accepted by by_image_check. Any thread.
 */
#ifndef BY_TABLES_DUMP_H
#define BY_TABLES_DUMP_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "offload/table/image.h"

/* The whole image, section by section. */
void by_dump_text(const uint8_t *image, size_t bytes, FILE *stream);
/* The same as a new object, which the caller releases. */
json_t *by_dump_json(const uint8_t *image, size_t bytes);
/* Writes "- line" for what only `a` has and "+ line" for what only `b` has; returns how many lines.
 * `stream` may be NULL, to count. */
uint32_t by_dump_diff(const uint8_t *a, const uint8_t *b, FILE *stream);

#endif

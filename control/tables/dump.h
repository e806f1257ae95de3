/*
 * Prints table images as text (one line for each record) and as JSON, and compares two images. The
 * images must have passed by_image_check. Any thread.
 */
#ifndef BY_TABLES_DUMP_H
#define BY_TABLES_DUMP_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "offload/table/image.h"

#include "control/tables/address.h"

/* Writes the whole image, section by section. */
void by_dump_text(const uint8_t *image, size_t bytes, FILE *stream);
/* Returns the image as a new JSON object, which the caller releases. */
json_t *by_dump_json(const uint8_t *image, size_t bytes);
/*
 * Writes "- line" for records only in `a` and "+ line" for records only in `b`; returns the number
 * of lines. If `stream` is NULL it only counts.
 */
uint32_t by_dump_diff(const uint8_t *a, const uint8_t *b, FILE *stream);

/* Writes an address of an image as text and returns `text`; without an image, one of IPv4. */
char *by_dump_ip(const uint8_t *image, uint32_t ip, char text[BY_ADDRESS_TEXT]);
/* Returns the protocol by which the MAC address of such an address is learned. */
static inline const char *by_dump_asks(uint32_t ip)
{
    return by_ipv6_is(ip) ? "neighbour discovery" : "ARP";
}

#endif

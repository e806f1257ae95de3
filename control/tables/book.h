/*
 * The IPv6 addresses of an image: those that its other records use. Private to tables/; emit.c
 * calls it for an image that is complete but for them.
 */
#ifndef BY_TABLES_BOOK_H
#define BY_TABLES_BOOK_H

#include "offload/table/image.h"

/* Adds the addresses of `book` whose numbers the image uses, behind its last section, and returns
 * the image, which may have moved; `*size` is its new length. */
uint8_t *by_emit_addresses(uint8_t *image, const struct by_ipv6_book *book, size_t *size);

#endif

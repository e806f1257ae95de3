/*
 * The carrier over IPv6: Ethernet II / IPv6 (RFC 8200, no extension headers) / UDP. Inside a node
 * an address is a number of 32 bits (PROTOCOL.md, "Framing"): an IPv4 address is itself, and an
 * IPv6 address has a number of 0.0.0.0/8, which no host can have (RFC 1122, section 3.2.1.3). A
 * book, part of the table, gives each number its address. Neighbours: frame.h, discovery.h, fold.h.
 * Pure; any thread.
 */
#ifndef BY_WIRE_IPV6_H
#define BY_WIRE_IPV6_H

#include "offload/wire/frame.h"

#define BY_IPV6_BYTES 16u /* of an address */
/* Headers of a frame, and how many bytes more than those over IPv4 they are. */
#define BY_IPV6_HEADER_BYTES 62u
#define BY_IPV6_EXTRA_BYTES  (BY_IPV6_HEADER_BYTES - BY_FRAME_HEADER_BYTES)
/* The smallest MTU of a link (RFC 8200, section 5). */
#define BY_IPV6_MTU_MIN 1280u
/* Bytes of a record of a book: a number, then its address. */
#define BY_IPV6_RECORD_BYTES (4u + BY_IPV6_BYTES)
/* Largest number of an IPv6 address. */
#define BY_IPV6_NUMBER_MAX 0xffffffu

/* Numbers and their addresses; both ascend, so each is found from the other by bisection. */
struct by_ipv6_book {
    const uint8_t *records; /* of BY_IPV6_RECORD_BYTES */
    uint32_t count;
};

/* Returns nonzero if an address of a table is the number of an IPv6 address. */
static inline int by_ipv6_is(uint32_t ip)
{
    return ip != 0 && ip <= BY_IPV6_NUMBER_MAX;
}

/* Returns the number of an address, or 0 if the book does not have it. */
uint32_t by_ipv6_number(const struct by_ipv6_book *book, const uint8_t address[BY_IPV6_BYTES]);
/* Returns the address of a number, or NULL if the book does not have it. */
const uint8_t *by_ipv6_address(const struct by_ipv6_book *book, uint32_t number);

/* The reason why an address cannot be an end of a link. */
enum by_ipv6_kind {
    BY_IPV6_UNICAST = 0, /* it can */
    BY_IPV6_UNSPECIFIED,
    BY_IPV6_LOOPBACK,
    BY_IPV6_MAPPED, /* an IPv4 address (RFC 4291, section 2.5.5) */
    BY_IPV6_LINK_LOCAL,
    BY_IPV6_MULTICAST,
};
enum by_ipv6_kind by_ipv6_kind(const uint8_t address[BY_IPV6_BYTES]);

/* Parses `bytes` bytes at `data` as an IPv6/UDP frame with valid lengths. Returns 0 and fills
 * `frame`, where an address that the book does not have is 0; else BY_EFORMAT. The UDP checksum is
 * not checked, because psum covers the payload and the tag covers the header: it may be zero (RFC
 * 6935), or left to a link. */
int by_ipv6_parse(const struct by_ipv6_book *book, const uint8_t *data, size_t bytes, struct by_frame *frame);

/* Writes the headers of a frame whose addresses are numbers: hop limit 64, UDP checksum 0. Returns
 * 0, or BY_ENOENT if the book does not have one of them. */
int by_ipv6_build(const struct by_ipv6_book *book, const struct by_frame *frame,
                  uint8_t headers[BY_IPV6_HEADER_BYTES]);

#endif

/*
 * Frames over IPv6 in the form that shells handle. At the edge of a port a received frame is folded
 * into one over IPv4 whose addresses are numbers (ipv6.h), and a frame to such a number is unfolded
 * before it leaves; neighbour discovery is folded into ARP. So the packet loop, its relays, the
 * hand-over between workers and the states of neighbours exist once, and ports without IPv6 pay
 * nothing. Neighbours: ports call it beside the tags of VLANs. Pure; any thread.
 */
#ifndef BY_WIRE_FOLD_H
#define BY_WIRE_FOLD_H

#include "offload/wire/discovery.h"

/* The last station that has asked at a port from an address that the book does not have: hosts ask
 * from their link-local address too. The answer follows the request immediately. */
struct by_fold_asker {
    uint8_t mac[BY_MAC_BYTES];
    uint8_t address[BY_IPV6_BYTES];
};

/* Folds a received frame of `*bytes` bytes in place. Returns the offset at which it now begins, and
 * sets `*bytes`; a frame that is neither a UDP datagram over IPv6 nor a message of neighbour
 * discovery stays as it is. */
uint32_t by_fold(const struct by_ipv6_book *book, struct by_fold_asker *asker, uint8_t *data,
                 uint32_t *bytes);

/* Unfolds the headers of a frame of at least BY_FRAME_HEADER_BYTES bytes. Returns the bytes of
 * `headers` that replace the first BY_FRAME_HEADER_BYTES of the frame; 0: the frame is not folded
 * and stays as it is; BY_ENOENT: the book does not have one of its addresses. */
int32_t by_unfold(const struct by_ipv6_book *book, const struct by_fold_asker *asker, const uint8_t *frame,
                  uint8_t headers[BY_DISCOVERY_BYTES]);

#endif

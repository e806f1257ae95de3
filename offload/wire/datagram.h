/*
 * Several packets in one datagram. Packets without a payload (credits, acknowledgements) of one
 * tree may share a datagram, so that they cost only one frame. Receivers split datagrams with these
 * functions, and senders observe the limits given here. Pure; any thread. PROTOCOL.md, "Carrier".
 */
#ifndef BY_WIRE_DATAGRAM_H
#define BY_WIRE_DATAGRAM_H

#include <stdint.h>

#include "offload/wire/wire.h"

/* Maximum packets of one datagram (count). */
#define BY_DATAGRAM_PACKETS_MAX 16u

/* Returns the size of the first packet of a datagram of `bytes` bytes. That is the whole datagram,
 * unless the first packet has no payload and another header follows that has none either and
 * belongs to the same job and tree. Damaged bytes yield packets whose tags do not match. A datagram
 * of more than BY_DATAGRAM_PACKETS_MAX packets counts as one malformed packet, which bounds the
 * work that a frame can cause. */
static inline uint16_t by_datagram_first(const uint8_t *data, uint16_t bytes)
{
    const uint8_t *next = data + BY_WIRE_HEADER_BYTES;

    if (bytes < 2 * BY_WIRE_HEADER_BYTES || !(data[2] & BY_FLAG_NODATA) ||
        bytes > BY_DATAGRAM_PACKETS_MAX * BY_WIRE_HEADER_BYTES)
        return bytes;
    for (unsigned i = 4; i < 8; i++)
        if (data[i] != next[i])
            return bytes;
    return next[0] == data[0] && (next[2] & BY_FLAG_NODATA) ? BY_WIRE_HEADER_BYTES : bytes;
}

/* Returns nonzero if the packet may share a datagram: it has no payload. */
static inline int by_datagram_joins(const uint8_t header[BY_WIRE_HEADER_BYTES])
{
    return (header[2] & BY_FLAG_NODATA) != 0;
}

/* Returns how many packets without a payload fit a datagram where chunks have `payload_max`
 * bytes. */
static inline unsigned by_datagram_room(uint32_t payload_max)
{
    uint32_t count = 1 + payload_max / BY_WIRE_HEADER_BYTES;

    return count < BY_DATAGRAM_PACKETS_MAX ? count : BY_DATAGRAM_PACKETS_MAX;
}

#endif

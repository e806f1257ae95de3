/*
 * Several packets in one datagram: those without a payload (credits, acknowledgements) of one tree
 * may follow one another, so that a frame is paid for once. Whoever takes a datagram apart asks
 * here; whoever puts one together keeps to the limits here. Pure; any thread. PROTOCOL.md,
 * "Carrier".
 */
#ifndef BY_WIRE_DATAGRAM_H
#define BY_WIRE_DATAGRAM_H

#include <stdint.h>

#include "offload/wire/wire.h"

/* Packets of one datagram at most (count). */
#define BY_DATAGRAM_PACKETS_MAX 16u

/* Bytes of the first packet of a datagram of `bytes`: all of it, unless it is without a payload and
 * another header follows that is as well, and of the same job and tree. Of damaged bytes it makes
 * packets whose tags do not hold. A datagram of more than BY_DATAGRAM_PACKETS_MAX packets is one
 * malformed packet, so that what a frame can cause has a bound. */
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

/* May a packet without a payload share a datagram? */
static inline int by_datagram_joins(const uint8_t header[BY_WIRE_HEADER_BYTES])
{
    return (header[2] & BY_FLAG_NODATA) != 0;
}

/* Packets without a payload that a datagram takes where chunks have `payload_max` bytes. */
static inline unsigned by_datagram_room(uint32_t payload_max)
{
    uint32_t count = 1 + payload_max / BY_WIRE_HEADER_BYTES;

    return count < BY_DATAGRAM_PACKETS_MAX ? count : BY_DATAGRAM_PACKETS_MAX;
}

#endif

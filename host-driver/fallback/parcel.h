/*
 * What a datagram between two hosts holds: a header of fixed size, then a part of the sender's
 * bytes, or, in an acknowledgement, a map of the parcels that have come out of order. The header
 * has a checksum of its own; the bytes behind it have UDP's, as those of TCP have TCP's. Pure; any
 * thread.
 */
#ifndef BY_HOST_FALLBACK_PARCEL_H
#define BY_HOST_FALLBACK_PARCEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Magic, nonce, rank, kind, flags, seq, order, ack, room, bytes, CRC32C of what is before it. */
#define BY_PARCEL_HEADER_BYTES 32u
#define BY_PARCEL_BYTES_MAX    8940u /* behind the header: an MTU of 9000 */
/* Bytes of the map in an acknowledgement; bit i of it is parcel ack + 1 + i, the low bits of a byte
 * first. */
#define BY_PARCEL_MAP_BYTES 64u

enum by_parcel_kind { BY_PARCEL_DATA = 1, BY_PARCEL_ACK };

struct by_parcel {
    uint32_t nonce; /* the receiver's, of this job: who has it belongs to the job */
    uint16_t rank;  /* the sender's */
    uint8_t kind;
    bool push;      /* data: the sender can send no more until it hears from us */
    uint32_t seq;   /* data: its number; the bytes of all numbers in order are what was written */
    uint32_t order; /* data: a number of its own for each transmission; ack: the newest that has come */
    uint32_t ack;   /* all numbers before it have come */
    uint16_t room;  /* numbers from `ack` on that the sender may take */
    uint16_t bytes; /* behind the header; data: never 0 */
    const uint8_t *payload;
};

/* Writes the header. */
void by_parcel_write(const struct by_parcel *parcel, uint8_t *header);
/* Reads a datagram; `payload` points into it. 0, or BY_EFORMAT: it is none of ours, or was damaged.
 */
int by_parcel_read(const uint8_t *datagram, size_t bytes, struct by_parcel *parcel);

#endif

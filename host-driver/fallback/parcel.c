/* Parcels as bytes; see parcel.h. */
#include "host-driver/fallback/parcel.h"

#include "offload/base/bytes.h"
#include "offload/base/crc32c.h"
#include "offload/base/errors.h"

#define MAGIC     UINT32_C(0x62797531) /* "byu1" */
#define CRC_AT    (BY_PARCEL_HEADER_BYTES - 4u)
#define FLAG_PUSH 1u

void by_parcel_write(const struct by_parcel *parcel, uint8_t *header)
{
    by_put32(header, MAGIC);
    by_put32(header + 4, parcel->nonce);
    by_put16(header + 8, parcel->rank);
    header[10] = parcel->kind;
    header[11] = parcel->push ? FLAG_PUSH : 0;
    by_put32(header + 12, parcel->seq);
    by_put32(header + 16, parcel->order);
    by_put32(header + 20, parcel->ack);
    by_put16(header + 24, parcel->room);
    by_put16(header + 26, parcel->bytes);
    by_put32(header + CRC_AT, by_crc32c(0, header, CRC_AT));
}

int by_parcel_read(const uint8_t *datagram, size_t bytes, struct by_parcel *parcel)
{
    size_t most;

    if (bytes < BY_PARCEL_HEADER_BYTES || by_get32(datagram) != MAGIC ||
        by_get32(datagram + CRC_AT) != by_crc32c(0, datagram, CRC_AT))
        return BY_EFORMAT;
    *parcel = (struct by_parcel){.nonce = by_get32(datagram + 4),
                                 .rank = by_get16(datagram + 8),
                                 .kind = datagram[10],
                                 .push = (datagram[11] & FLAG_PUSH) != 0,
                                 .seq = by_get32(datagram + 12),
                                 .order = by_get32(datagram + 16),
                                 .ack = by_get32(datagram + 20),
                                 .room = by_get16(datagram + 24),
                                 .bytes = by_get16(datagram + 26),
                                 .payload = datagram + BY_PARCEL_HEADER_BYTES};
    if (datagram[11] > FLAG_PUSH || (parcel->kind != BY_PARCEL_DATA && parcel->kind != BY_PARCEL_ACK))
        return BY_EFORMAT;
    most = parcel->kind == BY_PARCEL_DATA ? BY_PARCEL_BYTES_MAX : BY_PARCEL_MAP_BYTES;
    if (parcel->bytes != bytes - BY_PARCEL_HEADER_BYTES || parcel->bytes > most ||
        (parcel->kind == BY_PARCEL_DATA && parcel->bytes == 0))
        return BY_EFORMAT;
    return 0;
}

/* Frames over IPv6, and the numbers of addresses; see ipv6.h. Pure; any thread. */
#include "offload/wire/ipv6.h"

#include "offload/base/bytes.h"
#include "offload/base/errors.h"

enum {
    ETHERNET_BYTES = 14,
    IPV6_HEAD_BYTES = 40,
    UDP_BYTES = 8,
    TYPE_IPV6 = 0x86dd,
    VERSION = 6,
    NEXT_UDP = 17,
    HOP_LIMIT = 64,
    AT_CLASS = 14, /* version, traffic class, flow label: 32 bits */
    AT_PAYLOAD = 18,
    AT_NEXT = 20,
    AT_HOPS = 21,
    AT_SRC = 22,
    AT_DST = 38,
    AT_UDP = 54,
    CLASS_SHIFT = 20, /* of the traffic class in its 32 bits; ECN is its two low bits (RFC 3168) */
    /* Largest UDP datagram: the same packet fits a datagram of IPv4. */
    DATAGRAM_MAX = 65535 - 20,
};

/* Compares two addresses as numbers. */
static int compare(const uint8_t *a, const uint8_t *b)
{
    uint64_t left = by_get64(a), right = by_get64(b);

    if (left == right) {
        left = by_get64(a + 8);
        right = by_get64(b + 8);
    }
    return left < right ? -1 : left > right;
}

uint32_t by_ipv6_number(const struct by_ipv6_book *book, const uint8_t address[BY_IPV6_BYTES])
{
    uint32_t begin = 0, end = book->count;

    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        const uint8_t *record = book->records + (size_t)middle * BY_IPV6_RECORD_BYTES;
        int order = compare(record + 4, address);

        if (order == 0)
            return by_get32(record);
        if (order < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return 0;
}

const uint8_t *by_ipv6_address(const struct by_ipv6_book *book, uint32_t number)
{
    uint32_t begin = 0, end = book->count;

    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        const uint8_t *record = book->records + (size_t)middle * BY_IPV6_RECORD_BYTES;

        if (by_get32(record) == number)
            return record + 4;
        if (by_get32(record) < number)
            begin = middle + 1;
        else
            end = middle;
    }
    return NULL;
}

enum by_ipv6_kind by_ipv6_kind(const uint8_t address[BY_IPV6_BYTES])
{
    uint64_t high = by_get64(address), low = by_get64(address + 8);

    if (address[0] == 0xff)
        return BY_IPV6_MULTICAST;
    if (by_get16(address) >> 6 == 0xfe80 >> 6)
        return BY_IPV6_LINK_LOCAL;
    if (high == 0 && low <= 1)
        return low == 0 ? BY_IPV6_UNSPECIFIED : BY_IPV6_LOOPBACK;
    if (high == 0 && (low >> 32 == 0xffff || low >> 32 == 0))
        return BY_IPV6_MAPPED;
    return BY_IPV6_UNICAST;
}

int by_ipv6_parse(const struct by_ipv6_book *book, const uint8_t *data, size_t bytes, struct by_frame *frame)
{
    uint32_t class, payload;

    if (bytes < BY_IPV6_HEADER_BYTES || by_get16(data + BY_FRAME_AT_TYPE) != TYPE_IPV6)
        return BY_EFORMAT;
    class = by_get32(data + AT_CLASS);
    payload = by_get16(data + AT_PAYLOAD);
    if (class >> 28 != VERSION || data[AT_NEXT] != NEXT_UDP || payload < UDP_BYTES ||
        payload > DATAGRAM_MAX || payload > bytes - ETHERNET_BYTES - IPV6_HEAD_BYTES ||
        by_get16(data + AT_UDP + 4) != payload)
        return BY_EFORMAT;
    by_copy(frame->dst_mac, data, BY_MAC_BYTES);
    by_copy(frame->src_mac, data + BY_MAC_BYTES, BY_MAC_BYTES);
    frame->src_ip = by_ipv6_number(book, data + AT_SRC);
    frame->dst_ip = by_ipv6_number(book, data + AT_DST);
    frame->src_port = by_get16(data + AT_UDP);
    frame->dst_port = by_get16(data + AT_UDP + 2);
    frame->ecn = class >> CLASS_SHIFT & 3;
    frame->data = data + BY_IPV6_HEADER_BYTES;
    frame->bytes = (uint16_t)(payload - UDP_BYTES);
    return 0;
}

int by_ipv6_build(const struct by_ipv6_book *book, const struct by_frame *frame,
                  uint8_t headers[BY_IPV6_HEADER_BYTES])
{
    const uint8_t *src = by_ipv6_address(book, frame->src_ip), *dst = by_ipv6_address(book, frame->dst_ip);

    if (src == NULL || dst == NULL)
        return BY_ENOENT;
    by_copy(headers, frame->dst_mac, BY_MAC_BYTES);
    by_copy(headers + BY_MAC_BYTES, frame->src_mac, BY_MAC_BYTES);
    by_put16(headers + BY_FRAME_AT_TYPE, TYPE_IPV6);
    by_put32(headers + AT_CLASS, (uint32_t)VERSION << 28 | (frame->ecn & 3u) << CLASS_SHIFT);
    by_put16(headers + AT_PAYLOAD, (uint16_t)(UDP_BYTES + frame->bytes));
    headers[AT_NEXT] = NEXT_UDP;
    headers[AT_HOPS] = HOP_LIMIT;
    by_copy(headers + AT_SRC, src, BY_IPV6_BYTES);
    by_copy(headers + AT_DST, dst, BY_IPV6_BYTES);
    by_put16(headers + AT_UDP, frame->src_port);
    by_put16(headers + AT_UDP + 2, frame->dst_port);
    by_put16(headers + AT_UDP + 4, (uint16_t)(UDP_BYTES + frame->bytes));
    by_put16(headers + AT_UDP + 6, 0);
    return 0;
}

/*
 * Ethernet II (RFC 894), IPv4 (RFC 791), UDP (RFC 768), ARP (RFC 826): the parse of a frame that came, the
 * headers of one to send, and the reply to an ARP request. Pure; any thread.
 */
#include "offload/wire/frame.h"

#include "offload/base/bytes.h"
#include "offload/base/errors.h"

enum {
    ETHERNET_BYTES = 14,
    IP_BYTES = 20,
    UDP_BYTES = 8,
    ARP_BYTES = 28,
    TYPE_IPV4 = 0x0800,
    TYPE_ARP = 0x0806,
    PROTOCOL_UDP = 17,
    IP_DONT_FRAGMENT = 0x4000,
    IP_FRAGMENT_MASK = 0x3fff, /* more fragments, offset */
    TTL = 64,
};

/* A sum of 16-bit words in one's complement (RFC 1071): added up in any width, then folded. */
static uint16_t fold(uint64_t sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

/* The Internet checksum of the 20 bytes of an IP header: 0 when a received one is sound. */
static uint16_t ip_checksum(const uint8_t *ip)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < IP_BYTES; i += 4)
        sum += by_get32(ip + i);
    return (uint16_t)~fold(sum);
}

int by_frame_parse(const uint8_t *data, size_t bytes, struct by_frame *frame)
{
    const uint8_t *ip, *udp;
    uint16_t total;

    if (bytes < BY_FRAME_HEADER_BYTES || by_get16(data + 12) != TYPE_IPV4)
        return BY_EFORMAT;
    ip = data + ETHERNET_BYTES;
    udp = ip + IP_BYTES;
    total = by_get16(ip + 2);
    if (ip[0] != 0x45 || ip[9] != PROTOCOL_UDP || total < IP_BYTES + UDP_BYTES ||
        total > bytes - ETHERNET_BYTES || (by_get16(ip + 6) & IP_FRAGMENT_MASK) != 0 ||
        by_get16(udp + 4) != total - IP_BYTES)
        return BY_EFORMAT;
    if (ip_checksum(ip) != 0)
        return BY_ECHECKSUM;
    by_copy(frame->dst_mac, data, BY_MAC_BYTES);
    by_copy(frame->src_mac, data + BY_MAC_BYTES, BY_MAC_BYTES);
    frame->src_ip = by_get32(ip + 12);
    frame->dst_ip = by_get32(ip + 16);
    frame->src_port = by_get16(udp);
    frame->dst_port = by_get16(udp + 2);
    frame->ecn = ip[1] & 3;
    frame->data = udp + UDP_BYTES;
    frame->bytes = (uint16_t)(total - IP_BYTES - UDP_BYTES);
    return 0;
}

void by_frame_build(const struct by_frame *frame, uint8_t headers[BY_FRAME_HEADER_BYTES])
{
    uint8_t *ip = headers + ETHERNET_BYTES;
    uint8_t *udp = ip + IP_BYTES;
    uint32_t total = IP_BYTES + UDP_BYTES + (uint32_t)frame->bytes;
    uint64_t sum;

    by_copy(headers, frame->dst_mac, BY_MAC_BYTES);
    by_copy(headers + BY_MAC_BYTES, frame->src_mac, BY_MAC_BYTES);
    by_put16(headers + 12, TYPE_IPV4);
    ip[0] = 0x45;
    ip[1] = frame->ecn & 3;
    by_put16(ip + 2, (uint16_t)total);
    by_put16(ip + 4, 0); /* the identification of a datagram that is never cut (RFC 6864) */
    by_put16(ip + 6, IP_DONT_FRAGMENT);
    ip[8] = TTL;
    ip[9] = PROTOCOL_UDP;
    /* Of the fields, not of what was just stored: narrow stores that are read again at once wait for each
     * other. */
    sum = (uint64_t)(0x4500u | (frame->ecn & 3u)) + total + IP_DONT_FRAGMENT + (TTL << 8 | PROTOCOL_UDP) +
          frame->src_ip + frame->dst_ip;
    by_put16(ip + 10, (uint16_t)~fold(sum));
    by_put32(ip + 12, frame->src_ip);
    by_put32(ip + 16, frame->dst_ip);
    by_put16(udp, frame->src_port);
    by_put16(udp + 2, frame->dst_port);
    by_put16(udp + 4, (uint16_t)(UDP_BYTES + frame->bytes));
    by_put16(udp + 6, 0);
}

size_t by_arp_reply(const uint8_t *data, size_t bytes, uint32_t ip, const uint8_t mac[BY_MAC_BYTES],
                    uint8_t reply[BY_FRAME_HEADER_BYTES])
{
    /* Ethernet, IPv4, address lengths 6 and 4; then the operation. */
    static const uint8_t kind[6] = {0, 1, 8, 0, 6, 4};
    const uint8_t *arp;
    uint8_t *out = reply + ETHERNET_BYTES;

    if (bytes < ETHERNET_BYTES + ARP_BYTES || by_get16(data + 12) != TYPE_ARP)
        return 0;
    arp = data + ETHERNET_BYTES;
    if (!by_equal(arp, kind, sizeof(kind)) || by_get16(arp + 6) != 1 || by_get32(arp + 24) != ip)
        return 0;
    by_copy(reply, arp + 8, BY_MAC_BYTES);
    by_copy(reply + BY_MAC_BYTES, mac, BY_MAC_BYTES);
    by_put16(reply + 12, TYPE_ARP);
    by_copy(out, kind, sizeof(kind));
    by_put16(out + 6, 2);
    by_copy(out + 8, mac, BY_MAC_BYTES);
    by_put32(out + 14, ip);
    by_copy(out + 18, arp + 8, BY_MAC_BYTES + 4u); /* the asker's MAC and IP */
    return ETHERNET_BYTES + ARP_BYTES;
}

/*
 * Ethernet II (RFC 894), IPv4 (RFC 791), UDP (RFC 768), ARP (RFC 826): parsing received frames,
 * building the headers of frames to send, and replying to ARP requests. Pure; any thread.
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
    TYPE_VLAN = 0x8100,
    VLAN_BITS = 0x0fff, /* of a tag; the others are priority and drop eligibility */
    PROTOCOL_UDP = 17,
    IP_DONT_FRAGMENT = 0x4000,
    TTL = 64,
};

/* Folds a sum of 16-bit words in one's complement (RFC 1071), below 2^48, to 16 bits; the sum may
 * have been formed with wider words. */
static uint16_t fold(uint64_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)(sum + (sum >> 16));
}

/*
 * The headers are read and written as words of 8 bytes. That needs few steps, and avoids wide loads
 * of data that was just stored narrow. Word 1 begins with the last 4 bytes of the source MAC, word
 * 3 with the IP checksum, word 4 with the low half of the destination IP.
 */
enum { AT_WORD1 = 8, AT_WORD2 = 16, AT_WORD3 = 24, AT_WORD4 = 32 };

/* A MAC address as two words, so that a copy is two moves. */
struct mac {
    uint32_t head;
    uint16_t tail;
} __attribute__((may_alias, packed));

static void copy_mac(uint8_t *to, const uint8_t *from)
{
    *(struct mac *)to = *(const struct mac *)from;
}

int by_frame_parse(const uint8_t *data, size_t bytes, struct by_frame *frame)
{
    uint64_t word1, word2, word3, word4;
    uint32_t total;

    if (bytes < BY_FRAME_HEADER_BYTES)
        return BY_EFORMAT;
    word1 = by_get64(data + AT_WORD1); /* source MAC, type, version and length, class */
    word2 = by_get64(data + AT_WORD2); /* total, identification, fragment, TTL, protocol */
    word3 = by_get64(data + AT_WORD3); /* checksum, source, destination */
    word4 = by_get64(data + AT_WORD4); /* destination, ports, UDP length */
    total = (uint32_t)(word2 >> 48);
    if ((word1 >> 8 & 0xffffff) != (TYPE_IPV4 << 8 | BY_IP_HEAD) || (word2 & 0xff) != PROTOCOL_UDP ||
        total < IP_BYTES + UDP_BYTES || total > bytes - ETHERNET_BYTES ||
        (word2 >> 16 & BY_IP_FRAGMENT_BITS) != 0 || (word4 & 0xffff) != total - IP_BYTES)
        return BY_EFORMAT;
    /* The sum of a valid header is all ones (RFC 1071). */
    if (fold((word1 & 0xffff) + (word2 >> 32) + (uint32_t)word2 + (word3 >> 32) + (uint32_t)word3 +
             (word4 >> 48)) != 0xffff)
        return BY_ECHECKSUM;
    copy_mac(frame->dst_mac, data);
    copy_mac(frame->src_mac, data + BY_MAC_BYTES);
    frame->src_ip = (uint32_t)(word3 >> 16);
    frame->dst_ip = (uint32_t)(word3 << 16 | word4 >> 48);
    frame->src_port = (uint16_t)(word4 >> 32);
    frame->dst_port = (uint16_t)(word4 >> 16);
    frame->ecn = word1 & 3;
    frame->data = data + BY_FRAME_HEADER_BYTES;
    frame->bytes = (uint16_t)(total - IP_BYTES - UDP_BYTES);
    return 0;
}

void by_frame_mark(uint8_t *frame, uint8_t ecn)
{
    uint32_t before = by_get16(frame + BY_FRAME_AT_IP), after = (before & ~3u) | (ecn & 3u);
    uint64_t sum = (uint64_t)(~by_get16(frame + BY_FRAME_AT_CHECKSUM) & 0xffff) + (~before & 0xffff) + after;

    by_put16(frame + BY_FRAME_AT_IP, (uint16_t)after);
    by_put16(frame + BY_FRAME_AT_CHECKSUM, (uint16_t)~fold(sum));
}

void by_frame_build(const struct by_frame *frame, uint8_t headers[BY_FRAME_HEADER_BYTES])
{
    uint32_t class = TYPE_IPV4 << 16 | BY_IP_HEAD << 8 | (frame->ecn & 3u);
    uint64_t total = IP_BYTES + UDP_BYTES + (uint64_t)frame->bytes;
    uint64_t life = TTL << 8 | PROTOCOL_UDP;
    uint64_t sum = fold((class & 0xffff) + total + IP_DONT_FRAGMENT + life + frame->src_ip + frame->dst_ip);

    copy_mac(headers, frame->dst_mac);
    copy_mac(headers + BY_MAC_BYTES, frame->src_mac);
    by_put32(headers + BY_FRAME_AT_TYPE, class);
    /* The identification of a datagram that is never fragmented is 0 (RFC 6864). */
    by_put64(headers + AT_WORD2, total << 48 | IP_DONT_FRAGMENT << 16 | life);
    by_put64(headers + AT_WORD3, (~sum & 0xffff) << 48 | (uint64_t)frame->src_ip << 16 | frame->dst_ip >> 16);
    by_put64(headers + AT_WORD4, (uint64_t)frame->dst_ip << 48 | (uint64_t)frame->src_port << 32 |
                                     (uint64_t)frame->dst_port << 16 | (UDP_BYTES + (uint64_t)frame->bytes));
    by_put16(headers + BY_FRAME_AT_UDP_CHECKSUM, 0);
}

uint16_t by_frame_vlan(const uint8_t *data, size_t bytes)
{
    uint16_t vlan;

    if (bytes < ETHERNET_BYTES + BY_FRAME_TAG_BYTES || by_get16(data + BY_FRAME_AT_TYPE) != TYPE_VLAN)
        return 0;
    vlan = by_get16(data + BY_FRAME_AT_TYPE + 2) & VLAN_BITS;
    return vlan != 0 ? vlan : BY_FRAME_VLAN_NONE;
}

/* The MAC addresses are moved as words, which may overlap. */
void by_frame_tag(uint8_t *frame, uint16_t vlan)
{
    uint64_t first = by_get64(frame);
    uint32_t second = by_get32(frame + 8);

    by_put64(frame - BY_FRAME_TAG_BYTES, first);
    by_put32(frame + 8 - BY_FRAME_TAG_BYTES, second);
    by_put32(frame + BY_FRAME_AT_TYPE - BY_FRAME_TAG_BYTES, (uint32_t)TYPE_VLAN << 16 | vlan);
}

void by_frame_untag(uint8_t *frame)
{
    uint64_t first = by_get64(frame);
    uint32_t second = by_get32(frame + 8);

    by_put64(frame + BY_FRAME_TAG_BYTES, first);
    by_put32(frame + 8 + BY_FRAME_TAG_BYTES, second);
}

/* Ethernet, IPv4, address lengths 6 and 4; the operation follows. */
static const uint8_t arp_kind[6] = {0, 1, 8, 0, 6, 4};

enum { ARP_REQUEST = 1, ARP_REPLY = 2 };

/* Writes an ARP frame. The target's MAC address, which a request asks for, may be NULL. */
static void put_arp(uint8_t *frame, const uint8_t *to, uint16_t operation, const uint8_t *own_mac,
                    uint32_t own_ip, const uint8_t *target_mac, uint32_t target_ip)
{
    uint8_t *arp = frame + ETHERNET_BYTES;

    by_copy(frame, to, BY_MAC_BYTES);
    by_copy(frame + BY_MAC_BYTES, own_mac, BY_MAC_BYTES);
    by_put16(frame + BY_FRAME_AT_TYPE, TYPE_ARP);
    by_copy(arp, arp_kind, sizeof(arp_kind));
    by_put16(arp + 6, operation);
    by_copy(arp + 8, own_mac, BY_MAC_BYTES);
    by_put32(arp + 14, own_ip);
    by_zero(arp + 18, BY_MAC_BYTES);
    if (target_mac != NULL)
        by_copy(arp + 18, target_mac, BY_MAC_BYTES);
    by_put32(arp + 24, target_ip);
}

int by_arp_parse(const uint8_t *data, size_t bytes, struct by_arp *arp)
{
    const uint8_t *packet = data + ETHERNET_BYTES;
    uint16_t operation;

    if (bytes < ETHERNET_BYTES + ARP_BYTES || by_get16(data + BY_FRAME_AT_TYPE) != TYPE_ARP ||
        !by_equal(packet, arp_kind, sizeof(arp_kind)))
        return BY_EFORMAT;
    operation = by_get16(packet + 6);
    by_copy(arp->src_mac, packet + 8, BY_MAC_BYTES);
    if ((operation != ARP_REQUEST && operation != ARP_REPLY) || (arp->src_mac[0] & 1) != 0 ||
        (by_get32(arp->src_mac) | by_get16(arp->src_mac + 4)) == 0)
        return BY_EFORMAT;
    arp->is_request = operation == ARP_REQUEST;
    arp->src_ip = by_get32(packet + 14);
    arp->dst_ip = by_get32(packet + 24);
    return 0;
}

void by_arp_request(const uint8_t own_mac[BY_MAC_BYTES], uint32_t own_ip, const uint8_t *to_mac, uint32_t ip,
                    uint8_t request[BY_FRAME_HEADER_BYTES])
{
    static const uint8_t all[BY_MAC_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

    put_arp(request, to_mac != NULL ? to_mac : all, ARP_REQUEST, own_mac, own_ip, NULL, ip);
}

size_t by_arp_reply(const uint8_t *data, size_t bytes, uint32_t ip, const uint8_t mac[BY_MAC_BYTES],
                    uint8_t reply[BY_FRAME_HEADER_BYTES])
{
    struct by_arp arp;

    if (by_arp_parse(data, bytes, &arp) != 0 || !arp.is_request || arp.dst_ip != ip)
        return 0;
    put_arp(reply, arp.src_mac, ARP_REPLY, mac, ip, arp.src_mac, arp.src_ip);
    return ETHERNET_BYTES + ARP_BYTES;
}

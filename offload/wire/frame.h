/*
 * The carrier: Ethernet II / IPv4 (no options, no fragments) / UDP, for shells that see whole
 * frames. A frame is parsed into addresses and the UDP payload, and 42 bytes of headers are built
 * for one to send. Pure; any thread.
 */
#ifndef BY_WIRE_FRAME_H
#define BY_WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define BY_FRAME_HEADER_BYTES 42u
#define BY_MAC_BYTES          6u

/* Where fields lie in a frame, from its Ethernet header on (bytes). */
enum by_frame_at {
    BY_FRAME_AT_TYPE = 12, /* of Ethernet */
    BY_FRAME_AT_IP = 14,   /* version and length: 0x45 without options */
    BY_FRAME_AT_CLASS = 15,
    BY_FRAME_AT_PROTOCOL = 23,
    BY_FRAME_AT_CHECKSUM = 24, /* of IPv4 */
    BY_FRAME_AT_RECEIVER = 30, /* destination address */
    BY_FRAME_AT_UDP = 34,
    BY_FRAME_AT_PORT = 36, /* destination port */
    BY_FRAME_AT_UDP_CHECKSUM = 40
};
#define BY_IP_HEAD 0x45u /* the first byte of an IPv4 header without options */
#define BY_IP_FRAGMENT_BITS                                                                                  \
    0x3fffu /* more-fragments and offset: only the first fragment has a UDP header                           \
             */

struct by_frame {
    uint8_t src_mac[BY_MAC_BYTES];
    uint8_t dst_mac[BY_MAC_BYTES];
    uint32_t src_ip; /* IPv4 addresses in host order: 10.0.0.1 is 0x0a000001 */
    uint32_t dst_ip;
    uint16_t src_port;
    uint16_t dst_port;
    uint8_t ecn;         /* two bits: 3 is CE */
    const uint8_t *data; /* the UDP payload, inside the frame given */
    uint16_t bytes;
};

/* 0 and `frame` when `bytes` at `data` are an IPv4/UDP frame with sound lengths and IP checksum
 * (the UDP checksum is not checked: psum covers the payload); BY_EFORMAT or BY_ECHECKSUM else.
 * Padding after the datagram is ignored. */
int by_frame_parse(const uint8_t *data, size_t bytes, struct by_frame *frame);

/* Writes the 42 bytes of headers for a UDP payload of frame->bytes (frame->data is ignored): TTL
 * 64, DF, UDP checksum 0 (legal on IPv4, RFC 768; psum and the header's tag protect us). */
void by_frame_build(const struct by_frame *frame, uint8_t headers[BY_FRAME_HEADER_BYTES]);

/* The UDP source port of a node's packets, entropy for ECMP and RSS: of the dynamic range, by
 * `tree` (job << 16 | tree). */
static inline uint16_t by_frame_source_port(uint32_t tree)
{
    return (uint16_t)(0xc000u | (((tree >> 16) * 31u + (tree & 0xffff)) & 0x3fffu));
}

/* If the frame is an ARP request (RFC 826) for `ip`, writes the 42-byte reply from `mac` and
 * returns 42; else 0. */
size_t by_arp_reply(const uint8_t *data, size_t bytes, uint32_t ip, const uint8_t mac[BY_MAC_BYTES],
                    uint8_t reply[BY_FRAME_HEADER_BYTES]);

/* Changes the two bits of ECN in a sound frame's IP header, and its checksum by as much (RFC 1624).
 */
void by_frame_mark(uint8_t *frame, uint8_t ecn);

#endif

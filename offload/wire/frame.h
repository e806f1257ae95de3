/*
 * The carrier: Ethernet II / IPv4 (no options, no fragments) / UDP, for shells that handle whole
 * frames. The functions parse a received frame into addresses and UDP payload, and build the 42
 * bytes of headers of a frame to send. Pure; any thread.
 */
#ifndef BY_WIRE_FRAME_H
#define BY_WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BY_FRAME_HEADER_BYTES 42u
#define BY_MAC_BYTES          6u

/* Offsets of fields in a frame, from the start of its Ethernet header (bytes). */
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
/* More-fragments flag and offset: only the first fragment has a UDP header. */
#define BY_IP_FRAGMENT_BITS 0x3fffu

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

/* Parses `bytes` bytes at `data` as an IPv4/UDP frame with valid lengths and IP checksum. Returns 0
 * and fills `frame`; else BY_EFORMAT or BY_ECHECKSUM. The UDP checksum is not checked, because psum
 * covers the payload. Padding after the datagram is ignored. */
int by_frame_parse(const uint8_t *data, size_t bytes, struct by_frame *frame);

/* Writes the 42 bytes of headers for a UDP payload of frame->bytes (frame->data is ignored): TTL
 * 64, DF, UDP checksum 0 (legal on IPv4, RFC 768; psum and the header's tag protect the packet). */
void by_frame_build(const struct by_frame *frame, uint8_t headers[BY_FRAME_HEADER_BYTES]);

/* Bytes of a tag of IEEE 802.1Q, between the MAC addresses and the type. */
#define BY_FRAME_TAG_BYTES 4u
/* `by_frame_vlan` of a frame whose tag names no VLAN (a priority tag). */
#define BY_FRAME_VLAN_NONE 0xffffu

/* Returns the VLAN of a frame, or 0 if it has no tag. */
uint16_t by_frame_vlan(const uint8_t *data, size_t bytes);
/* Inserts a tag: the frame then begins BY_FRAME_TAG_BYTES before `frame`, where the caller has
 * room. The rest stays in place. */
void by_frame_tag(uint8_t *frame, uint16_t vlan);
/* Removes the tag: the frame then begins BY_FRAME_TAG_BYTES after `frame`. */
void by_frame_untag(uint8_t *frame);

/* An ARP packet (RFC 826) for Ethernet and IPv4. */
struct by_arp {
    bool is_request; /* else a reply */
    uint8_t src_mac[BY_MAC_BYTES];
    uint32_t src_ip, dst_ip; /* host order; dst_ip is the address that a request asks for */
};

/* Parses a frame as an ARP request or reply from one station. Returns 0, or BY_EFORMAT. */
int by_arp_parse(const uint8_t *data, size_t bytes, struct by_arp *arp);
/* Writes the 42-byte request of a node at `own_mac` and `own_ip` for the MAC address of `ip`, to
 * `to_mac`, or to all stations if that is NULL. */
void by_arp_request(const uint8_t own_mac[BY_MAC_BYTES], uint32_t own_ip, const uint8_t *to_mac, uint32_t ip,
                    uint8_t request[BY_FRAME_HEADER_BYTES]);
/* If the frame is an ARP request (RFC 826) for `ip`, writes the 42-byte reply from `mac` and
 * returns 42; else 0. */
size_t by_arp_reply(const uint8_t *data, size_t bytes, uint32_t ip, const uint8_t mac[BY_MAC_BYTES],
                    uint8_t reply[BY_FRAME_HEADER_BYTES]);

/* Changes the two ECN bits in the IP header of a valid frame, and updates its checksum (RFC
 * 1624). */
void by_frame_mark(uint8_t *frame, uint8_t ecn);

#endif

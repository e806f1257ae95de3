/*
 * Neighbour Discovery (RFC 4861) as far as a node needs it: the solicitation and the advertisement
 * of one address, in Ethernet frames. Neighbour: fold.h, through which the states that ARP has are
 * those of IPv6 as well. Pure; any thread.
 */
#ifndef BY_WIRE_DISCOVERY_H
#define BY_WIRE_DISCOVERY_H

#include "offload/wire/ipv6.h"

/* Bytes of a frame with a solicitation or advertisement and the option of one MAC address. */
#define BY_DISCOVERY_BYTES 86u

struct by_discovery_message {
    bool is_solicitation;          /* else an advertisement */
    uint8_t src_mac[BY_MAC_BYTES]; /* of the sender: of its option, else of the frame */
    uint8_t src[BY_IPV6_BYTES];    /* the sender; unspecified: it checks whether its address is unique */
    uint8_t target[BY_IPV6_BYTES]; /* the address asked for, or advertised */
};

/* Parses a frame as a valid solicitation or advertisement (RFC 4861, sections 7.1.1 and 7.1.2, with
 * the checksum). Returns 0, or BY_EFORMAT or BY_ECHECKSUM. */
int by_discovery_parse(const uint8_t *data, size_t bytes, struct by_discovery_message *message);

/* Writes the solicitation of a node at `own_mac` and `own` for the MAC address of `target`, to
 * `to_mac`, or to the group of the address if that is NULL. */
void by_discovery_solicit(const uint8_t own_mac[BY_MAC_BYTES], const uint8_t own[BY_IPV6_BYTES],
                          const uint8_t *to_mac, const uint8_t target[BY_IPV6_BYTES],
                          uint8_t frame[BY_DISCOVERY_BYTES]);
/* Writes the advertisement of `own` at `own_mac` for `to` at `to_mac`; to all nodes if `to` is
 * unspecified. */
void by_discovery_advertise(const uint8_t own_mac[BY_MAC_BYTES], const uint8_t own[BY_IPV6_BYTES],
                            const uint8_t to_mac[BY_MAC_BYTES], const uint8_t to[BY_IPV6_BYTES],
                            uint8_t frame[BY_DISCOVERY_BYTES]);

#endif

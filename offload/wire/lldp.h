/*
 * LLDP frames (IEEE 802.1AB-2016): which node and port are at the other end of a cable. A node
 * sends them only when it is asked to (control.proto's Interfaces, `banyan discover`); it never
 * forwards them. Any thread.
 */
#ifndef BY_WIRE_LLDP_H
#define BY_WIRE_LLDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "offload/base/limits.h"
#include "offload/wire/frame.h"

#define BY_LLDP_ETHERTYPE 0x88ccu
/* Longest frame that by_lldp_encode writes (bytes): Ethernet header, names of BY_NAME_MAX bytes. */
#define BY_LLDP_BYTES_MAX 256u
/* Time for which a receiver keeps what a frame states (s). Frames are sent on request only, so a
 * moved cable must not be remembered for long. */
#define BY_LLDP_TTL_S 20u

/* What a frame states about its sender. Texts are printable ASCII and cut to BY_NAME_MAX bytes;
 * a MAC address as a text is 02:42:ac:11:00:02. */
struct by_lldp {
    uint8_t source[BY_MAC_BYTES];      /* of the Ethernet header */
    char node[BY_NAME_MAX + 1];        /* the system's name; the chassis' identifier if it has none */
    char port[BY_NAME_MAX + 1];        /* the port's identifier */
    char description[BY_NAME_MAX + 1]; /* the port's description, or "" */
    uint16_t ttl_s;                    /* 0: the sender leaves this port */
    bool forwards;                     /* it is a bridge or a router */
};

/* Writes a frame that states node, port, forwards and ttl_s, from the MAC address `source`; the
 * description is that of the port. Returns its bytes, at least 60. */
size_t by_lldp_encode(const struct by_lldp *lldp, uint8_t frame[BY_LLDP_BYTES_MAX]);
/* Reads a frame. False if it is not LLDP, or malformed: the three mandatory elements must come
 * first, and every element must lie within the frame. Elements of other kinds are skipped. */
bool by_lldp_parse(const uint8_t *frame, size_t bytes, struct by_lldp *lldp);

#endif

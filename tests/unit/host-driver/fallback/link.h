/*
 * Two ends of a pair (host-driver/fallback/pair.h) and a simulated network between them, in virtual
 * time: it loses, doubles, delays and damages packets as a seed says, and has a queue of limited
 * length in front of a link of limited speed. Each end writes random bytes and checks those that it
 * reads.
 */
#ifndef TESTS_UNIT_HOST_FALLBACK_LINK_H
#define TESTS_UNIT_HOST_FALLBACK_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "host-driver/fallback/pair.h"
#include "offload/base/prng.h"

#define LINK_PACKETS_MAX 4096u
#define LINK_BYTES       1000u /* of a parcel */

struct link_packet {
    uint64_t at_ns;
    uint32_t to, bytes;
    uint8_t data[BY_PARCEL_HEADER_BYTES + LINK_BYTES];
};

struct link_end {
    struct by_host_pair pair;
    void *memory;
    uint64_t want, written, read; /* bytes to write; those written; those of the other end that were read */
    uint64_t free_ns;             /* when its link has sent what waits for it */
};

struct fallback_link {
    uint64_t seed, now_ns;
    struct by_prng prng;
    /* Of 1000 packets; what a packet takes there; on the link; and how many wait for it at most. */
    uint32_t loss, doubled, late, damaged;
    uint64_t latency_ns, packet_ns;
    uint32_t queue;
    bool deaf[2]; /* an end that does not read */
    struct link_end end[2];
    struct link_packet *packet;
    uint32_t count;
    uint64_t dropped;
};

/* Ends with rings of `slots` and windows of `window` parcels; no faults, 50 us, 1 us a packet, a
 * long queue.
 */
void link_open(struct fallback_link *link, uint64_t seed, uint32_t slots, uint32_t window);
void link_close(struct fallback_link *link);
/* Runs until all bytes are read and acknowledged, or so long. True: they are. Fails the test when
 * bytes are wrong. */
bool link_run(struct fallback_link *link, uint64_t limit_ns);
/* What an end has to send goes on the wire, or with `lost` nowhere; returns how many packets. */
uint32_t link_send(struct fallback_link *link, uint32_t from, bool lost);

#endif

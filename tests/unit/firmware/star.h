/*
 * A star for tests of the switch: one switch, hosts on ports 0..count-1, job 1, one tree (or
 * several) with the switch as root. Makes the switch's table image, and the packets that its hosts
 * send. Used by unit tests and by the lab's switch-probe.
 */
#ifndef BY_TESTS_UNIT_FIRMWARE_STAR_H
#define BY_TESTS_UNIT_FIRMWARE_STAR_H

#include <stddef.h>
#include <stdint.h>

#include "offload/wire/frame.h"
#include "offload/wire/wire.h"

#define STAR_JOB       1u
#define STAR_GEN       7u
#define STAR_HOSTS_MAX 32u
/* UDP port of the host to which a packet is relayed. */
#define STAR_RELAYED_PORT 50000u

struct star {
    uint16_t hosts;
    uint16_t trees;
    uint16_t window;
    uint16_t payload_max;
    uint16_t mtu;
    uint64_t cookie;
};

/* Addresses: link i joins host i (even address) to port i of the switch (odd). */
uint32_t star_host_ip(unsigned host);
uint32_t star_port_ip(unsigned port);
void star_mac(uint32_t ip, uint8_t mac[6]);

/* Returns the switch's image. The caller frees it. */
uint8_t *star_image(const struct star *star, size_t *bytes);

/* Writes the ports of a star to an image whose header is complete. */
void star_put_ports(const struct star *star, uint8_t *image);
/* An image with one relay, from host 0 through the switch to host 1, in memory that the caller
 * frees. The job gets `share` of the link from host 0, which carries `rate` x 1000 bytes/s. */
uint8_t *star_relay_image(uint32_t share, uint32_t rate, size_t *bytes);
/* Writes the frame of a contribution that host 0 sends to host 1; returns its bytes. */
size_t star_relayed(const struct star *star, uint8_t *frame);

/* Host `host`'s contribution of `count` i32 values: value k is 1000 * host + seq + k. Writes a
 * banyan packet; returns its bytes. */
size_t star_contribution(const struct star *star, unsigned host, uint16_t tree, uint32_t seq, uint16_t count,
                         uint8_t *packet);
/* Returns the sum of element k over all hosts. */
int32_t star_sum(const struct star *star, uint32_t seq, unsigned k);
/* Puts 42 bytes of headers before a packet of `bytes` that host `host` sends to its switch port.
 * Returns the size of the frame (bytes). */
size_t star_frame(unsigned host, const uint8_t *packet, size_t bytes, uint8_t *frame);
/* Renews the header's checksum (tag) after a test has changed a field. */
void star_retag(uint8_t *packet);

#endif

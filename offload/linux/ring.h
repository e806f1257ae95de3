/*
 * Receives the frames of an interface in memory that the kernel writes. A program at the
 * interface's ingress (tcx, since Linux 6.6) copies each frame into a ring and consumes it before
 * the kernel's network stack. This costs one copy and no system call per frame, and a wake-up only
 * for a reader that has announced its sleep. Neighbours: dataplane/gso.c (ports
 * of the switch), host-driver/udp.c (hosts). Linux only; one thread for each ring.
 */
#ifndef BY_LINUX_RING_H
#define BY_LINUX_RING_H

#include <stdbool.h>
#include <stdint.h>

struct by_ring;

struct by_ring_config {
    const char *interface;
    uint32_t mtu;
    uint32_t frames;     /* minimum capacity, which becomes a power of two (count) */
    bool all;            /* every frame of the interface; else only UDP to `ip` or `ipv6` and `udp_port` */
    uint32_t ip;         /* host order */
    const uint8_t *ipv6; /* an IPv6 address, in place of `ip`; or NULL */
    uint16_t udp_port;   /* host order */
};

/* Opens a ring. Returns 0, or -errno with the failed call in `*step`. Requires root; -EOPNOTSUPP or
 * -EINVAL: the kernel has no tcx. */
int by_ring_open(struct by_ring **ring, const struct by_ring_config *config, const char **step);
/* Closes the ring; the interface's frames go to the kernel again. */
void by_ring_close(struct by_ring *ring);
/* Returns a descriptor for poll, which is readable if by_ring_doze has returned
 * false, and with `all` once a frame has arrived since it returned true. */
int by_ring_fd(const struct by_ring *ring);
/* Announces that the reader is about to sleep. Returns true, and the next frame wakes it; or
 * false, because frames are waiting. With `all` the reader sleeps on by_ring_fd, else on the
 * socket of `ip` and `udp_port`, which then receives that frame as well. by_ring_take ends the
 * announcement. */
bool by_ring_doze(struct by_ring *ring);
/* Returns the ring's capacity in frames (count). */
uint32_t by_ring_frames(const struct by_ring *ring);

/* Returns the next frame from its Ethernet header on, with its size in `*bytes`; NULL when there is
 * none. It stays valid until by_ring_return. `*bytes` is 0 for a frame longer than the MTU allows,
 * which is cut. */
const uint8_t *by_ring_take(struct by_ring *ring, uint32_t *bytes);
/* Returns all taken frames to the kernel. */
void by_ring_return(struct by_ring *ring);
/* Returns whether at least half of the ring holds frames that have not been taken: a switch marks
 * the next ones (ECN) before the ring drops any. */
bool by_ring_is_half_full(const struct by_ring *ring);
/* Returns the number of frames lost for lack of room since the last call. */
uint64_t by_ring_lost(struct by_ring *ring);

#endif

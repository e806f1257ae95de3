/*
 * Frames of an interface, in memory that the kernel writes: a program at the interface's entrance
 * (tcx, since Linux 6.6) copies each into a ring (BPF ring buffer) and ends its way there, before
 * the kernel's stack sees it. One copy and no system call for a frame, and a wake-up only for a
 * reader that has said that it sleeps. Neighbours: dataplane/gso.c (ports of the switch),
 * host-driver/udp.c (hosts). Linux alone; one thread for each ring.
 */
#ifndef BY_LINUX_RING_H
#define BY_LINUX_RING_H

#include <stdbool.h>
#include <stdint.h>

struct by_ring;

struct by_ring_config {
    const char *interface;
    uint32_t mtu;
    uint32_t frames;   /* that wait at most: at least so many, as memory comes in powers of two */
    bool all;          /* every frame of the interface; else IPv4/UDP to `ip` and `udp_port` alone */
    uint32_t ip;       /* host order */
    uint16_t udp_port; /* host order */
};

/* 0; or -errno and `*step`, the call that failed. Takes root; -EOPNOTSUPP or -EINVAL: the kernel
 * has no tcx.
 */
int by_ring_open(struct by_ring **ring, const struct by_ring_config *config, const char **step);
/* What the ring took is the kernel's again from here on. */
void by_ring_close(struct by_ring *ring);
/* Readable when frames wait. */
int by_ring_fd(const struct by_ring *ring);
/* The reader is about to sleep: true, and the next frame wakes it; or false, since frames are
 * there. With `all` it sleeps on by_ring_fd, else on the socket of `ip` and `udp_port`, to which
 * that frame goes as well. by_ring_take takes it back. */
bool by_ring_doze(struct by_ring *ring);
/* Frames that it holds (count). */
uint32_t by_ring_frames(const struct by_ring *ring);

/* The next frame, from its Ethernet header on, and its bytes; NULL when there is none. It stays
 * until by_ring_return. `*bytes` 0: one that is longer than the MTU allows, without its end. */
const uint8_t *by_ring_take(struct by_ring *ring, uint32_t *bytes);
/* Gives all frames that were taken back to the kernel. */
void by_ring_return(struct by_ring *ring);
/* Frames that came and found no room, since the last call. */
uint64_t by_ring_lost(struct by_ring *ring);

#endif

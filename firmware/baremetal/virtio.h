/*
 * Virtio devices behind MMIO windows (virtio 1.2, section 4.2), split virtqueues (section 2.7):
 * finding a device, agreeing on features, rings. What is in the buffers is the business of net.c,
 * line.c and console.c, and so are the caches around them; around the rings they are kept here
 * (cache.h). Rings are polled; their interrupts are asked for only before a sleep.
 */
#ifndef BY_BAREMETAL_VIRTIO_H
#define BY_BAREMETAL_VIRTIO_H

#include <stdbool.h>
#include <stdint.h>

enum { BY_VIRTIO_NET = 1, BY_VIRTIO_CONSOLE = 3, BY_VIRTIO_ENTROPY = 4 };

/* Entries of a ring (count, a power of two): what QEMU's devices offer. */
#define BY_RING_MAX 256u

struct by_virtio {
    uint64_t base;
    uint32_t interrupt;
};

struct by_ring_descriptor {
    uint64_t address;
    uint32_t bytes;
    uint16_t flags;
    uint16_t next;
};

struct by_ring_available {
    uint16_t flags;
    uint16_t index;
    uint16_t ring[BY_RING_MAX];
};

struct by_ring_used {
    uint16_t flags;
    uint16_t index;
    struct {
        uint32_t id;
        uint32_t bytes;
    } ring[BY_RING_MAX];
};

enum { BY_RING_NEXT = 1, BY_RING_DEVICE_WRITES = 2 };

/* A virtqueue. The caller fills descriptors, and knows which are free. */
struct by_virtio_ring {
    struct by_virtio device;
    uint32_t queue;
    uint16_t size;
    uint16_t available; /* our index, not yet published */
    uint16_t published;
    uint16_t seen; /* of the used ring */
    struct by_ring_descriptor *descriptor;
    struct by_ring_available *out;
    volatile struct by_ring_used *in;
};

/* The `index`-th device of kind `id` in the order of addresses; false when there are no more. */
bool by_virtio_find(uint32_t id, uint32_t index, struct by_virtio *device);
/* Resets it and agrees on version 1 and those of `wanted` that it has; returns them. Halts when it
 * cannot do version 1. */
uint64_t by_virtio_start(const struct by_virtio *device, uint64_t wanted);
/* Sets up queue `queue` with up to BY_RING_MAX entries; memory from the plan. */
void by_virtio_ring(const struct by_virtio *device, uint32_t queue, struct by_virtio_ring *ring);
/* The device may begin. */
void by_virtio_run(const struct by_virtio *device);
uint8_t by_virtio_config8(const struct by_virtio *device, uint32_t offset);
/* Takes back the device's interrupt. */
void by_virtio_quiet(const struct by_virtio *device);

/* Offers the chain that begins with descriptor `head`; the device sees it after
 * by_virtio_ring_publish. */
void by_virtio_ring_offer(struct by_virtio_ring *ring, uint16_t head);
/* Shows what was offered, and wakes the device if it asks for that. */
void by_virtio_ring_publish(struct by_virtio_ring *ring);
/* The next chain that the device is done with: its head, and the bytes that it wrote. False when
 * there is none. */
bool by_virtio_ring_take(struct by_virtio_ring *ring, uint16_t *head, uint32_t *bytes);
/* Asks for an interrupt at the next used chain, or for none. True when one is there already. */
bool by_virtio_ring_alert(struct by_virtio_ring *ring, bool wanted);

#endif

/*
 * Virtio devices behind MMIO windows (virtio 1.2, section 4.2) with split virtqueues (section 2.7):
 * finding a device, negotiating features, rings. net.c, line.c and console.c handle the contents of
 * the buffers and their caches; this file maintains the caches of the rings (cache.h). Rings are
 * polled; their interrupts are enabled only before a sleep.
 */
#ifndef BY_BAREMETAL_VIRTIO_H
#define BY_BAREMETAL_VIRTIO_H

#include <stdbool.h>
#include <stdint.h>

enum { BY_VIRTIO_NET = 1, BY_VIRTIO_CONSOLE = 3, BY_VIRTIO_ENTROPY = 4 };

/* Maximum entries of a ring (count, a power of two): the number that QEMU's devices offer. */
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

/* A virtqueue. The caller fills descriptors and tracks the free ones. */
struct by_virtio_ring {
    struct by_virtio device;
    uint32_t queue;
    uint16_t size;
    uint16_t available; /* the driver's index, not yet published */
    uint16_t published;
    uint16_t seen; /* position in the used ring */
    struct by_ring_descriptor *descriptor;
    struct by_ring_available *out;
    volatile struct by_ring_used *in;
};

/* Finds the `index`-th device of kind `id` in the order of addresses; returns false when there are
 * no more. */
bool by_virtio_find(uint32_t id, uint32_t index, struct by_virtio *device);
/* Resets the device and negotiates version 1 and the supported features of `wanted`; returns those.
 * Halts when it does not support version 1. */
uint64_t by_virtio_start(const struct by_virtio *device, uint64_t wanted);
/* Sets up queue `queue` with up to BY_RING_MAX entries; memory from the plan. */
void by_virtio_ring(const struct by_virtio *device, uint32_t queue, struct by_virtio_ring *ring);
/* Starts the device. */
void by_virtio_run(const struct by_virtio *device);
uint8_t by_virtio_config8(const struct by_virtio *device, uint32_t offset);
/* Acknowledges the device's interrupt. */
void by_virtio_quiet(const struct by_virtio *device);

/* Adds the chain that begins with descriptor `head`; the device sees it after
 * by_virtio_ring_publish. */
void by_virtio_ring_offer(struct by_virtio_ring *ring, uint16_t head);
/* Publishes the added chains, and notifies the device if it requests that. */
void by_virtio_ring_publish(struct by_virtio_ring *ring);
/* Returns the next finished chain: its head, and the bytes that the device wrote. Returns false
 * when there is none. */
bool by_virtio_ring_take(struct by_virtio_ring *ring, uint16_t *head, uint32_t *bytes);
/* Enables or disables the interrupt for the next used chain. Returns true when a chain is there
 * already. */
bool by_virtio_ring_alert(struct by_virtio_ring *ring, bool wanted);

#endif

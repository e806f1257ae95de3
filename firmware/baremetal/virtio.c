/* Virtio over MMIO; see virtio.h. */
#include "firmware/baremetal/virtio.h"

#include <stddef.h>

#include "firmware/baremetal/cache.h"
#include "firmware/baremetal/fault.h"
#include "firmware/baremetal/hal.h"
#include "firmware/baremetal/interrupt.h"
#include "firmware/baremetal/memory.h"
#include "firmware/baremetal/processor.h"

enum {
    MAGIC = 0x000,
    VERSION = 0x004,
    DEVICE_ID = 0x008,
    DEVICE_FEATURES = 0x010,
    DEVICE_FEATURES_HALF = 0x014,
    DRIVER_FEATURES = 0x020,
    DRIVER_FEATURES_HALF = 0x024,
    QUEUE = 0x030,
    QUEUE_SIZE_MAX = 0x034,
    QUEUE_SIZE = 0x038,
    QUEUE_READY = 0x044,
    NOTIFY = 0x050,
    INTERRUPT_STATUS = 0x060,
    INTERRUPT_ACKNOWLEDGE = 0x064,
    STATUS = 0x070,
    QUEUE_DESCRIPTORS = 0x080,
    QUEUE_AVAILABLE = 0x090,
    QUEUE_USED = 0x0a0,
    CONFIG = 0x100,
};
enum { ACKNOWLEDGE = 1, DRIVER = 2, DRIVER_OK = 4, FEATURES_OK = 8 };
#define MAGIC_VALUE  0x74726976u
#define VERSION_1    (UINT64_C(1) << 32)
#define NO_INTERRUPT 1u
#define NO_NOTIFY    1u
#define DESCRIPTORS  (BY_RING_MAX * sizeof(struct by_ring_descriptor))

bool by_virtio_find(uint32_t id, uint32_t index, struct by_virtio *device)
{
    for (uint32_t i = 0; i < by_hal.virtio_count; i++) {
        uint64_t base = by_hal.virtio + (uint64_t)i * by_hal.virtio_step;

        if (by_read32(base + MAGIC) != MAGIC_VALUE || by_read32(base + DEVICE_ID) != id)
            continue;
        if (by_read32(base + VERSION) != 2)
            by_fault_say(
                "a virtio device is a legacy device: give QEMU -global virtio-mmio.force-legacy=false");
        if (index-- == 0) {
            *device = (struct by_virtio){.base = base, .interrupt = by_hal.virtio_interrupt + i};
            return true;
        }
    }
    return false;
}

static uint64_t features(const struct by_virtio *device)
{
    uint64_t all;

    by_write32(device->base + DEVICE_FEATURES_HALF, 1);
    all = (uint64_t)by_read32(device->base + DEVICE_FEATURES) << 32;
    by_write32(device->base + DEVICE_FEATURES_HALF, 0);
    return all | by_read32(device->base + DEVICE_FEATURES);
}

uint64_t by_virtio_start(const struct by_virtio *device, uint64_t wanted)
{
    uint64_t agreed;

    by_write32(device->base + STATUS, 0);
    by_write32(device->base + STATUS, ACKNOWLEDGE | DRIVER);
    agreed = features(device) & (wanted | VERSION_1);
    by_write32(device->base + DRIVER_FEATURES_HALF, 1);
    by_write32(device->base + DRIVER_FEATURES, (uint32_t)(agreed >> 32));
    by_write32(device->base + DRIVER_FEATURES_HALF, 0);
    by_write32(device->base + DRIVER_FEATURES, (uint32_t)agreed);
    by_write32(device->base + STATUS, ACKNOWLEDGE | DRIVER | FEATURES_OK);
    if (!(agreed & VERSION_1) || !(by_read32(device->base + STATUS) & FEATURES_OK))
        by_fault_say("a virtio device does not support version 1");
    by_interrupt_enable(device->interrupt);
    return agreed & wanted;
}

static void put_address(uint64_t at, const volatile void *memory)
{
    by_write32(at, (uint32_t)(uintptr_t)memory);
    by_write32(at + 4, (uint32_t)((uint64_t)(uintptr_t)memory >> 32));
}

void by_virtio_ring(const struct by_virtio *device, uint32_t queue, struct by_virtio_ring *ring)
{
    uint32_t most;

    by_write32(device->base + QUEUE, queue);
    most = by_read32(device->base + QUEUE_SIZE_MAX);
    if (most == 0)
        by_fault_say("a virtio device lacks a queue");
    *ring = (struct by_virtio_ring){.device = *device,
                                    .queue = queue,
                                    .size = (uint16_t)(most < BY_RING_MAX ? most : BY_RING_MAX),
                                    .descriptor = by_memory_take("a ring", DESCRIPTORS),
                                    .out = by_memory_take("a ring", sizeof(struct by_ring_available)),
                                    .in = by_memory_take("a ring", sizeof(struct by_ring_used))};
    ring->out->flags = NO_INTERRUPT;
    by_cache_clean(ring->out, sizeof *ring->out);
    by_cache_drop(ring->in, sizeof *ring->in);
    by_write32(device->base + QUEUE_SIZE, ring->size);
    put_address(device->base + QUEUE_DESCRIPTORS, ring->descriptor);
    put_address(device->base + QUEUE_AVAILABLE, ring->out);
    put_address(device->base + QUEUE_USED, ring->in);
    by_barrier();
    by_write32(device->base + QUEUE_READY, 1);
}

void by_virtio_run(const struct by_virtio *device)
{
    by_write32(device->base + STATUS, ACKNOWLEDGE | DRIVER | FEATURES_OK | DRIVER_OK);
}

uint8_t by_virtio_config8(const struct by_virtio *device, uint32_t offset)
{
    return *(volatile uint8_t *)(uintptr_t)(device->base + CONFIG + offset);
}

void by_virtio_quiet(const struct by_virtio *device)
{
    uint32_t status = by_read32(device->base + INTERRUPT_STATUS);

    if (status)
        by_write32(device->base + INTERRUPT_ACKNOWLEDGE, status);
}

void by_virtio_ring_offer(struct by_virtio_ring *ring, uint16_t head)
{
    uint16_t *entry = &ring->out->ring[ring->available++ & (ring->size - 1)];
    const struct by_ring_descriptor *descriptor = &ring->descriptor[head];

    *entry = head;
    by_cache_clean(entry, sizeof *entry);
    by_cache_clean(descriptor, sizeof *descriptor);
    while (descriptor->flags & BY_RING_NEXT) {
        descriptor = &ring->descriptor[descriptor->next];
        by_cache_clean(descriptor, sizeof *descriptor);
    }
}

/* Discards cached data, so that the device's index at the head of its ring is read from memory. */
static void look(const struct by_virtio_ring *ring)
{
    by_cache_drop(ring->in, offsetof(struct by_ring_used, ring));
}

void by_virtio_ring_publish(struct by_virtio_ring *ring)
{
    if (ring->published == ring->available)
        return;
    by_barrier(); /* descriptors and entries before the index */
    *(volatile uint16_t *)&ring->out->index = ring->available;
    by_cache_clean(ring->out, offsetof(struct by_ring_available, ring));
    ring->published = ring->available;
    by_barrier(); /* the index before the flag is read */
    look(ring);
    if (!(ring->in->flags & NO_NOTIFY))
        by_write32(ring->device.base + NOTIFY, ring->queue);
}

bool by_virtio_ring_take(struct by_virtio_ring *ring, uint16_t *head, uint32_t *bytes)
{
    uint16_t at = ring->seen & (ring->size - 1);

    look(ring);
    if (ring->in->index == ring->seen)
        return false;
    by_barrier(); /* the index before the entry and the buffer */
    by_cache_drop(&ring->in->ring[at], sizeof ring->in->ring[at]);
    *head = (uint16_t)ring->in->ring[at].id;
    *bytes = ring->in->ring[at].bytes;
    ring->seen++;
    if (*head >= ring->size)
        by_fault_say("a virtio device returned a buffer that was not offered");
    return true;
}

bool by_virtio_ring_alert(struct by_virtio_ring *ring, bool wanted)
{
    *(volatile uint16_t *)&ring->out->flags = wanted ? 0 : NO_INTERRUPT;
    by_cache_clean(ring->out, offsetof(struct by_ring_available, ring));
    by_barrier();
    look(ring);
    return ring->in->index != ring->seen;
}

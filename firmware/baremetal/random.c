/* Reads random bytes from a virtio entropy device; see random.h. */
#include "firmware/baremetal/random.h"

#include "firmware/baremetal/cache.h"
#include "firmware/baremetal/clock.h"
#include "firmware/baremetal/virtio.h"
#include "offload/base/bytes.h"

/* Timeout of the device (ns). */
#define WAIT_NS 1000000000u

static BY_CACHE_ALIGNED uint8_t drawn[BY_CACHE_LINE];
static struct by_virtio_ring ring;

bool by_random_draw(uint8_t bytes[BY_RANDOM_BYTES])
{
    uint64_t begin = by_clock_ns();
    struct by_virtio device;
    uint32_t got = 0;
    uint16_t head;

    by_zero(bytes, BY_RANDOM_BYTES);
    if (!by_virtio_find(BY_VIRTIO_ENTROPY, 0, &device))
        return false;
    by_virtio_start(&device, 0);
    by_virtio_ring(&device, 0, &ring);
    by_virtio_run(&device);
    /* A device may return fewer bytes than requested, at least one. */
    for (uint32_t have = 0; have < BY_RANDOM_BYTES; have += got) {
        by_cache_drop(drawn, sizeof drawn);
        ring.descriptor[0] = (struct by_ring_descriptor){
            .address = (uintptr_t)drawn, .bytes = BY_RANDOM_BYTES - have, .flags = BY_RING_DEVICE_WRITES};
        by_virtio_ring_offer(&ring, 0);
        by_virtio_ring_publish(&ring);
        while (!by_virtio_ring_take(&ring, &head, &got))
            if (by_clock_ns() - begin > WAIT_NS)
                return false;
        if (got == 0 || got > BY_RANDOM_BYTES - have)
            return false;
        by_cache_drop(drawn, sizeof drawn);
        by_copy(bytes + have, drawn, got);
    }
    by_virtio_quiet(&device);
    return true;
}

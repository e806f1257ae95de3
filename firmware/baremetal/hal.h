/*
 * What a board tells the image that runs on it without an operating system: where its memory and
 * devices are, and how much a switch on it holds. Numbers only: a board is one const struct
 * (boards/NAME/board.c), the limits in it come from boards/NAME/board.json through the build. All
 * addresses are physical; the image maps them one to one.
 */
#ifndef BY_BAREMETAL_HAL_H
#define BY_BAREMETAL_HAL_H

#include <stdbool.h>
#include <stdint.h>

/* [start, end), multiples of 4096. */
struct by_hal_range {
    uint64_t start, end;
};

struct by_hal_limits {
    uint32_t ports;
    uint32_t slots;
    uint32_t payload_max; /* bytes */
    uint32_t entries;
    uint32_t relays;
    uint32_t image_bytes;
};

struct by_hal {
    const char *board;
    struct by_hal_range ram;            /* the image lies in it; the rest after it is the image's to use */
    const struct by_hal_range *devices; /* mapped without caching; what is neither here nor RAM faults */
    uint32_t device_count;
    uint64_t uart;            /* a PL011 for the log */
    uint64_t gic_distributor; /* a GICv2 */
    uint64_t gic_cpu;
    uint32_t timer_interrupt; /* of the virtual timer */
    /* virtio-mmio windows: network ports in the order of addresses, and the control channel's
     * console. */
    uint64_t virtio;
    uint32_t virtio_step; /* bytes from one to the next */
    uint32_t virtio_count;
    uint32_t virtio_interrupt; /* of the first; the next has the next number */
    uint64_t settings;         /* QEMU's fw_cfg, or 0: no settings */
    /* All virtio devices see the processor's caches: their nodes in the device tree are
     * dma-coherent. */
    bool is_coherent;
    uint32_t watchdog_interrupt; /* of the physical timer, or 0: no watchdog */
    bool has_psci;               /* firmware that resets the machine when it is asked to */
    struct by_hal_range flash;   /* for tables, of which the image may have all; empty: none */
    struct by_hal_limits limits;
};

/* The board of this image. */
extern const struct by_hal by_hal;

#endif

/*
 * The description of a board for the image that runs on it without an operating system: the
 * addresses of its memory and devices, and the capacity of a switch on it. Only numbers: a board is
 * one const struct (boards/NAME/board.c), whose limits the build takes from boards/NAME/board.json.
 * All addresses are physical; the image maps them one to one.
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
    struct by_hal_range ram;            /* contains the image, which uses the rest after it */
    const struct by_hal_range *devices; /* mapped without caching; accesses outside these and RAM fault */
    uint32_t device_count;
    uint64_t uart;            /* a PL011 for the log */
    uint64_t gic_distributor; /* a GICv2 */
    uint64_t gic_cpu;
    uint32_t timer_interrupt; /* interrupt of the virtual timer */
    /* Virtio-mmio windows: network ports in the order of addresses, and the console of the control
     * channel. */
    uint64_t virtio;
    uint32_t virtio_step; /* distance of two windows (bytes) */
    uint32_t virtio_count;
    uint32_t virtio_interrupt; /* interrupt of the first window; the others follow */
    uint64_t settings;         /* QEMU's fw_cfg, or 0: no settings */
    /* All virtio devices are coherent with the processor's caches: their nodes in the device tree
     * are dma-coherent. */
    bool is_coherent;
    uint32_t watchdog_interrupt; /* interrupt of the physical timer, or 0: no watchdog */
    bool has_psci;               /* firmware that can reset the machine */
    struct by_hal_range flash;   /* for tables, used exclusively by the image; empty: none */
    struct by_hal_limits limits;
};

/* The board of this image. */
extern const struct by_hal by_hal;

#endif

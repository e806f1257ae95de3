/* QEMU's arm64 machine "virt" (hw/arm/virt.c: base_memmap, a15irqmap), with 256 MiB, its default
 * GICv2, and virtio-mmio devices of the modern kind. The limits are those of board.json. */
#include "firmware/baremetal/hal.h"

static const struct by_hal_range devices[] = {
    {0x04000000, 0x04800000}, /* the second flash bank: as much of it as tables may need */
    {0x08000000, 0x08020000}, /* interrupt controller */
    {0x09000000, 0x09001000}, /* UART */
    {0x09020000, 0x09021000}, /* fw_cfg */
    {0x0a000000, 0x0a004000}, /* virtio-mmio */
};

const struct by_hal by_hal = {
    .board = "qemu-virt-arm64",
    .ram = {0x40000000, 0x50000000},
    .devices = devices,
    .device_count = sizeof devices / sizeof devices[0],
    .uart = 0x09000000,
    .gic_distributor = 0x08000000,
    .gic_cpu = 0x08010000,
    .timer_interrupt = 27,
    .virtio = 0x0a000000,
    .virtio_step = 0x200,
    .virtio_count = 32,
    .virtio_interrupt = 48,
    .settings = 0x09020000,
    .flash = {0x04000000, 0x04800000},
    .is_coherent = true,
    .watchdog_interrupt = 30,
    .has_psci = true,
    .limits = {.ports = BOARD_ports,
               .slots = BOARD_slots,
               .payload_max = BOARD_payload_max,
               .entries = BOARD_entries,
               .relays = BOARD_relays,
               .image_bytes = BOARD_image_bytes},
};

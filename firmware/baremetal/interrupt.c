/* A GICv2 (Arm IHI 0048), for processor 0: one priority for devices and one above it. */
#include "firmware/baremetal/interrupt.h"

#include "firmware/baremetal/hal.h"
#include "firmware/baremetal/processor.h"

enum {
    DISTRIBUTOR_CONTROL = 0x000,
    SET_ENABLE = 0x100,
    PRIORITY = 0x400,
    TARGETS = 0x800,
    CPU_CONTROL = 0x00,
    CPU_MASK = 0x04,
    ACKNOWLEDGE = 0x0c,
    END = 0x10,
};
#define PRIORITY_URGENT 0x40u
#define PRIORITY_OURS   0x80u
#define PRIORITY_ALL    0xffu
#define FIRST_SHARED    32u
#define NUMBER_MASK     0x3ffu
#define NONE_FROM       1020u
/* Interrupts acknowledged in one go (count): one that a device keeps raising waits for the next sleep. */
#define CLEAR_MAX 64u

void by_interrupt_open(void)
{
    by_write32(by_hal.gic_distributor + DISTRIBUTOR_CONTROL, 1);
    by_write32(by_hal.gic_cpu + CPU_MASK, PRIORITY_ALL);
    by_write32(by_hal.gic_cpu + CPU_CONTROL, 1);
}

static void write_byte(uint64_t base, uint32_t number, uint8_t value)
{
    uint64_t word = base + (number & ~3u);
    uint32_t shift = 8 * (number & 3);

    by_write32(word, (by_read32(word) & ~(0xffu << shift)) | (uint32_t)value << shift);
}

static void enable(uint32_t number, uint8_t priority)
{
    write_byte(by_hal.gic_distributor + PRIORITY, number, priority);
    if (number >= FIRST_SHARED)
        write_byte(by_hal.gic_distributor + TARGETS, number, 1);
    by_write32(by_hal.gic_distributor + SET_ENABLE + number / 32 * 4, 1u << (number % 32));
}

void by_interrupt_enable(uint32_t number)
{
    enable(number, PRIORITY_OURS);
}

void by_interrupt_enable_urgent(uint32_t number)
{
    enable(number, PRIORITY_URGENT);
}

/* What is at the mask's priority, or below, is not shown. */
void by_interrupt_admit(bool all)
{
    by_write32(by_hal.gic_cpu + CPU_MASK, all ? PRIORITY_ALL : PRIORITY_OURS);
}

uint32_t by_interrupt_take(void)
{
    return by_read32(by_hal.gic_cpu + ACKNOWLEDGE);
}

void by_interrupt_end(uint32_t number)
{
    by_write32(by_hal.gic_cpu + END, number);
}

void by_interrupt_clear(void)
{
    for (uint32_t i = 0; i < CLEAR_MAX; i++) {
        uint32_t number = by_interrupt_take();

        if ((number & NUMBER_MASK) >= NONE_FROM)
            return;
        by_interrupt_end(number);
    }
}

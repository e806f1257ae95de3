/* A GICv2 (Arm IHI 0048), for processor 0: one priority for devices and a higher one for urgent
 * interrupts. */
#include "firmware/baremetal/interrupt.h"

#include "firmware/baremetal/hal.h"
#include "firmware/baremetal/processor.h"

enum {
    DISTRIBUTOR_CONTROL = 0x000,
    SET_ENABLE = 0x100,
    CLEAR_PENDING = 0x280,
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
#define WORDS           32u

/* The interrupts of devices, one bit each. */
static uint32_t devices[WORDS];

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
    devices[number / 32 % WORDS] |= 1u << (number % 32);
    enable(number, PRIORITY_OURS);
}

void by_interrupt_enable_urgent(uint32_t number)
{
    enable(number, PRIORITY_URGENT);
}

/* Sets the mask so that only interrupts above its priority are signalled. */
static inline void unmask(void)
{
    by_write32(by_hal.gic_cpu + CPU_MASK, PRIORITY_OURS);
    (void)by_read32(by_hal.gic_cpu + CPU_MASK); /* the write has taken effect */
    __asm__ volatile("msr daifclr, #2" ::: "memory");
}

void by_interrupt_unmask(void)
{
    unmask();
}

/* A pending interrupt ends WFI, masked or not. There must be no branch between masking and
 * unmasking; a test checks the instructions. */
void by_interrupt_sleep(void)
{
    __asm__ volatile("msr daifset, #2" ::: "memory");
    by_write32(by_hal.gic_cpu + CPU_MASK, PRIORITY_ALL);
    by_wait_for_interrupt();
    unmask();
}

void by_interrupt_clear(void)
{
    for (uint32_t i = 0; i < WORDS; i++)
        if (devices[i])
            by_write32(by_hal.gic_distributor + CLEAR_PENDING + 4 * i, devices[i]);
}

uint32_t by_interrupt_take(void)
{
    return by_read32(by_hal.gic_cpu + ACKNOWLEDGE);
}

uint32_t by_interrupt_number(uint32_t taken)
{
    return taken & NUMBER_MASK;
}

void by_interrupt_end(uint32_t taken)
{
    if (by_interrupt_number(taken) < NONE_FROM)
        by_write32(by_hal.gic_cpu + END, taken);
}

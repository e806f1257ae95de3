/* Implements model.h. Replaces memory.c, cache.c, fault.c, interrupt.c, clock.c and a board. */
#include "tests/unit/firmware/baremetal/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/baremetal/cache.h"
#include "firmware/baremetal/clock.h"
#include "firmware/baremetal/fault.h"
#include "firmware/baremetal/hal.h"
#include "firmware/baremetal/interrupt.h"
#include "firmware/baremetal/memory.h"
#include "firmware/baremetal/processor.h"
#include "firmware/baremetal/virtio.h"
#include "offload/base/prng.h"

#define ARENA_BYTES 0x200000u
#define LINE        BY_CACHE_LINE
#define WINDOW      0x200u
#define QUEUES_MAX  12u

/* What the processor sees, what is in memory, and the value of each line when it was last read from
 * or written to memory. */
static uint8_t arena[ARENA_BYTES] __attribute__((aligned(4096)));
static uint8_t memory[ARENA_BYTES], synced[ARENA_BYTES];
static size_t taken;
static bool coherent;
static unsigned cleans, drops;
static struct by_prng prng;
static uint64_t calm; /* a line is written back or read again with a chance of 1 in this number */

/* The devices' register windows. Drivers read their configuration as memory. */
static uint8_t window[MODEL_DEVICES * WINDOW] __attribute__((aligned(8)));
struct model_queue {
    uint32_t size;
    uint64_t descriptors, available, used;
    uint16_t seen, done;
};
static struct device {
    uint32_t feature_half, queue;
    struct model_queue queues[QUEUES_MAX];
} devices[MODEL_DEVICES];

const struct by_hal by_hal = {.ram = {(uint64_t)(uintptr_t)arena, (uint64_t)(uintptr_t)arena + ARENA_BYTES},
                              .virtio = (uint64_t)(uintptr_t)window,
                              .virtio_step = WINDOW,
                              .virtio_count = MODEL_DEVICES};

static bool is_dirty(size_t at)
{
    return memcmp(arena + at, synced + at, LINE) != 0;
}

static void write_back(size_t at)
{
    memcpy(memory + at, arena + at, LINE);
    memcpy(synced + at, arena + at, LINE);
}

static void read_anew(size_t at)
{
    memcpy(arena + at, memory + at, LINE);
    memcpy(synced + at, memory + at, LINE);
}

/* Acts as a cache may do at any time. */
static void stir(void)
{
    for (size_t i = 0; i < taken / LINE / 16 + 1 && !coherent; i++) {
        size_t at = (size_t)by_prng_next(&prng) % (taken / LINE + 1) * LINE;

        if (by_prng_next(&prng) % calm != 0)
            continue;
        if (is_dirty(at))
            write_back(at);
        else
            read_anew(at);
    }
}

void model_start(uint64_t seed, bool is_coherent)
{
    /* The initial contents of memory are undefined. */
    memset(arena, 0x5a, sizeof arena);
    memset(memory, 0x5a, sizeof memory);
    memset(synced, 0x5a, sizeof synced);
    memset(devices, 0, sizeof devices);
    memset(window, 0, sizeof window);
    window[MODEL_NET * WINDOW + 0x106] = 1;     /* link up */
    window[MODEL_CONSOLE * WINDOW + 0x104] = 5; /* number of ports */
    taken = 0;
    coherent = is_coherent;
    cleans = drops = 0;
    prng.state = seed;
    calm = (uint64_t)2 << seed % 4 * 4;
}

unsigned model_cleans(void)
{
    return cleans;
}

unsigned model_drops(void)
{
    return drops;
}

void *by_memory_take(const char *what, size_t bytes)
{
    void *place = arena + taken;

    (void)what;
    taken += (bytes + LINE - 1) / LINE * LINE;
    assert_true(taken < ARENA_BYTES);
    return memset(place, 0, bytes);
}

/* Cleans or drops the lines of a piece of the arena. */
static void each_line(const volatile void *at, size_t bytes, bool is_drop)
{
    size_t begin = (size_t)((const volatile uint8_t *)at - arena);

    assert_true(begin + bytes <= ARENA_BYTES);
    stir();
    for (size_t line = begin / LINE * LINE; line < begin + bytes && !coherent; line += LINE) {
        if (is_dirty(line))
            write_back(line);
        if (is_drop)
            read_anew(line);
    }
    stir();
}

void by_cache_clean(const volatile void *at, size_t bytes)
{
    cleans++;
    each_line(at, bytes, false);
}

void by_cache_drop(const volatile void *at, size_t bytes)
{
    drops++;
    each_line(at, bytes, true);
}

void by_cache_keep(const volatile void *at, size_t bytes)
{
    size_t begin = (size_t)((const volatile uint8_t *)at - arena);

    assert_true(begin + bytes <= ARENA_BYTES);
    for (size_t line = begin / LINE * LINE; line < begin + bytes; line += LINE)
        write_back(line);
}

void model_reset(void)
{
    memcpy(arena, memory, sizeof arena);
    memcpy(synced, memory, sizeof synced);
}

void by_fault_say(const char *text)
{
    fprintf(stderr, "the driver halts: %s\n", text);
    abort();
}

void by_interrupt_enable(uint32_t number)
{
    (void)number;
}

uint64_t by_clock_ns(void)
{
    static uint64_t now;

    return now += 1000000;
}

void by_barrier(void)
{
    stir();
}

/* ---- registers (virtio 1.2, section 4.2.2) */
uint32_t by_read32(uint64_t address)
{
    uint64_t offset = address - by_hal.virtio;
    const struct device *device = &devices[offset / WINDOW];

    stir();
    assert_true(offset < sizeof window);
    switch (offset % WINDOW) {
    case 0x000:
        return 0x74726976;
    case 0x004:
        return 2;
    case 0x008:
        return offset / WINDOW == MODEL_NET ? BY_VIRTIO_NET : BY_VIRTIO_CONSOLE;
    case 0x010:
        return device->feature_half ? 1 : offset / WINDOW == MODEL_NET ? 1u << 16 : 1u << 1;
    case 0x034:
        return 64;
    case 0x070:
        return 15;
    default:
        return 0;
    }
}

void by_write32(uint64_t address, uint32_t value)
{
    uint64_t offset = address - by_hal.virtio;
    struct device *device = &devices[offset / WINDOW];
    struct model_queue *queue = &device->queues[device->queue];

    stir();
    assert_true(offset < sizeof window);
    switch (offset % WINDOW) {
    case 0x014:
        device->feature_half = value;
        break;
    case 0x030:
        assert_true(value < QUEUES_MAX);
        device->queue = value;
        break;
    case 0x038:
        queue->size = value;
        break;
    case 0x080:
    case 0x084:
        queue->descriptors |= (uint64_t)value << (offset & 4) * 8;
        break;
    case 0x090:
    case 0x094:
        queue->available |= (uint64_t)value << (offset & 4) * 8;
        break;
    case 0x0a0:
    case 0x0a4:
        queue->used |= (uint64_t)value << (offset & 4) * 8;
        break;
    default:
        break;
    }
}

/* ---- devices, which see only memory */
static uint8_t *seen_by_device(uint64_t address, size_t bytes)
{
    size_t at = (size_t)(address - (uintptr_t)arena);

    assert_true(at + bytes <= taken);
    return (coherent ? arena : memory) + at;
}

/* Finds the head of the next available chain. Returns false if there is none. */
static bool next_chain(const struct model_queue *queue, uint16_t *head)
{
    const struct by_ring_available *available =
        (const void *)seen_by_device(queue->available, sizeof *available);

    if (queue->size == 0 || available->index == queue->seen)
        return false;
    *head = available->ring[queue->seen % queue->size];
    assert_true(*head < queue->size);
    return true;
}

static struct by_ring_descriptor descriptor_of(const struct model_queue *queue, uint16_t index)
{
    struct by_ring_descriptor descriptor;

    memcpy(&descriptor, seen_by_device(queue->descriptors + index * sizeof descriptor, sizeof descriptor),
           sizeof descriptor);
    return descriptor;
}

static void finish_chain(struct model_queue *queue, uint16_t head, uint32_t bytes)
{
    struct by_ring_used *used = (void *)seen_by_device(queue->used, sizeof *used);

    queue->seen++;
    used->ring[queue->done % queue->size].id = head;
    used->ring[queue->done % queue->size].bytes = bytes;
    used->index = ++queue->done;
}

bool model_give(unsigned device, unsigned number, const uint8_t *data, size_t bytes)
{
    struct model_queue *queue = &devices[device].queues[number];
    struct by_ring_descriptor descriptor;
    uint16_t head;

    stir();
    if (!next_chain(queue, &head))
        return false;
    descriptor = descriptor_of(queue, head);
    assert_int_equal(descriptor.flags, BY_RING_DEVICE_WRITES);
    assert_true(descriptor.bytes >= bytes);
    memcpy(seen_by_device(descriptor.address, bytes), data, bytes);
    stir();
    finish_chain(queue, head, (uint32_t)bytes);
    stir();
    return true;
}

bool model_is_alerted(unsigned device, unsigned number)
{
    const struct model_queue *queue = &devices[device].queues[number];

    return (seen_by_device(queue->available, 2)[0] & 1) == 0;
}

size_t model_take(unsigned device, unsigned number, uint8_t *data, size_t room)
{
    struct model_queue *queue = &devices[device].queues[number];
    struct by_ring_descriptor descriptor;
    uint16_t head, at;
    size_t have = 0;

    stir();
    if (!next_chain(queue, &head))
        return 0;
    for (at = head;; at = descriptor.next) {
        descriptor = descriptor_of(queue, at);
        assert_false(descriptor.flags & BY_RING_DEVICE_WRITES);
        assert_true(have + descriptor.bytes <= room);
        memcpy(data + have, seen_by_device(descriptor.address, descriptor.bytes), descriptor.bytes);
        have += descriptor.bytes;
        if (!(descriptor.flags & BY_RING_NEXT))
            break;
        assert_true(descriptor.next < queue->size);
    }
    finish_chain(queue, head, 0);
    stir();
    return have;
}

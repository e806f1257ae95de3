/*
 * The identity map: 4 KiB pages and 2 MiB blocks in three levels of tables (Arm ARM, section D8.3),
 * built with the MMU off. Therefore this file is compiled with strict alignment, and uses only
 * hal.h and the linker's symbols.
 */
#include "firmware/baremetal/mmu.h"

#include <stddef.h>
#include <stdint.h>

#include "firmware/baremetal/hal.h"

/* Tables (count): one of level 1, one of level 2 for each GiB in use, one of level 3 for each 2 MiB
 * that is divided into pages. If they do not suffice, the start stops in the loop below. */
#define TABLES_MAX 24u
#define ENTRIES    512u
#define PAGE       4096u
#define BLOCK      0x200000u

enum {
    VALID = 1,
    TABLE = 2, /* at levels 1 and 2 */
    LEAF = 2,  /* at level 3 */
    USED = 1 << 10,
    INNER_SHAREABLE = 3 << 8,
    READ_ONLY = 2 << 6,
    UNCACHED = 1 << 2, /* attribute 1 of MAIR */
};
#define NO_RUN_KERNEL (UINT64_C(1) << 53)
#define NO_RUN_USER   (UINT64_C(1) << 54)

#define OF_CODE   (VALID | USED | INNER_SHAREABLE | READ_ONLY | NO_RUN_USER)
#define OF_CONST  (OF_CODE | NO_RUN_KERNEL)
#define OF_DATA   (VALID | USED | INNER_SHAREABLE | NO_RUN_USER | NO_RUN_KERNEL)
#define OF_DEVICE (VALID | USED | UNCACHED | NO_RUN_USER | NO_RUN_KERNEL)

/* Attribute 0: write-back memory; 1: a device, nGnRE. */
#define MAIR UINT64_C(0x04ff)
/* 39 bits of address, walks through write-back memory, 4 KiB, nothing above, 40 bits of physical
 * address. */
#define TCR                                                                                                  \
    (UINT64_C(25) | UINT64_C(1) << 8 | UINT64_C(1) << 10 | UINT64_C(3) << 12 | UINT64_C(1) << 23 |           \
     UINT64_C(2) << 32)
/* MMU, data and instruction caches, stack alignment checks. */
#define SCTLR (UINT64_C(0x30d00800) | 1u << 0 | 1u << 2 | 1u << 3 | 1u << 12)

extern char by_code_start[], by_code_end[], by_const_end[], by_guard_start[], by_stack_start[],
    by_image_end[];

static uint64_t tables[TABLES_MAX][ENTRIES] __attribute__((aligned(4096)));
static uint32_t table_count;

static uint64_t *new_table(void)
{
    while (table_count == TABLES_MAX)
        __asm__ volatile("wfi"); /* cannot be reported: the UART is not mapped yet */
    return tables[table_count++];
}

/* Returns the table below an entry, creating it if necessary. */
static uint64_t *below(uint64_t *entry)
{
    if (!(*entry & VALID))
        *entry = (uint64_t)(uintptr_t)new_table() | TABLE | VALID;
    return (uint64_t *)(uintptr_t)(*entry & 0x0000fffffffff000u);
}

static void map(uint64_t start, uint64_t end, uint64_t attributes)
{
    while (start < end) {
        uint64_t *second = below(&tables[0][start >> 30]);
        uint64_t *entry = &second[start >> 21 & (ENTRIES - 1)];

        if (start % BLOCK == 0 && end - start >= BLOCK) {
            *entry = start | attributes;
            start += BLOCK;
        } else {
            below(entry)[start >> 12 & (ENTRIES - 1)] = start | attributes | LEAF;
            start += PAGE;
        }
    }
}

void by_mmu_start(void)
{
    table_count = 1;
    for (uint32_t i = 0; i < by_hal.device_count; i++)
        map(by_hal.devices[i].start, by_hal.devices[i].end, OF_DEVICE);
    map((uintptr_t)by_code_start, (uintptr_t)by_code_end, OF_CODE);
    map((uintptr_t)by_code_end, (uintptr_t)by_const_end, OF_CONST);
    map((uintptr_t)by_const_end, (uintptr_t)by_guard_start, OF_DATA);
    map((uintptr_t)by_stack_start, by_hal.ram.end, OF_DATA);
    __asm__ volatile("msr mair_el1, %0\n\t"
                     "msr tcr_el1, %1\n\t"
                     "msr ttbr0_el1, %2\n\t"
                     "dsb sy\n\t"
                     "ic iallu\n\t"
                     "tlbi vmalle1\n\t"
                     "dsb sy\n\t"
                     "isb\n\t"
                     "msr sctlr_el1, %3\n\t"
                     "isb"
                     :
                     : "r"(MAIR), "r"(TCR), "r"((uint64_t)(uintptr_t)tables), "r"(SCTLR)
                     : "memory");
}

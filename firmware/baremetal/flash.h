/*
 * NOR flash with the Intel command set (JEDEC JEP137: command sets 1 and 3), as a pair of 16-bit
 * chips on a 32-bit bus: what QEMU's virt has, and boards with such a pair. Erasing and writing are
 * begun here and go on by themselves; while they do, nothing can be read. Nothing here waits for
 * the chips but by_flash_open: who began something looks again and again, and is told in the end,
 * also of chips that never finish. Neighbour: store.c.
 */
#ifndef BY_BAREMETAL_FLASH_H
#define BY_BAREMETAL_FLASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is written at once (bytes): begins at a multiple of it. */
#define BY_FLASH_PAGE 256u

/* What is under way. */
enum by_flash_job { BY_FLASH_NOTHING, BY_FLASH_UNLOCK, BY_FLASH_ERASE, BY_FLASH_LOAD, BY_FLASH_WRITE };

struct by_flash {
    uint64_t base;
    uint32_t bytes;
    uint32_t sector_bytes;       /* what is erased at once */
    uint64_t erase_ns, write_ns; /* the longest that a sector and a page may take */
    enum by_flash_job job;
    uint32_t at;         /* where */
    const uint8_t *page; /* what is written */
    uint64_t begin_ns;
};

enum by_flash_state {
    BY_FLASH_READY,
    BY_FLASH_BUSY,
    BY_FLASH_FAILED, /* the chips say so, or what was written is not what is read */
    BY_FLASH_DEAD    /* busy for longer than they may be: they take no more commands */
};

/* Finds the board's flash (by_hal.flash). False when there is none, or none that this file knows,
 * which is said on the log. Chips that are at work since before the start are waited for, 20 s at
 * most. */
bool by_flash_open(struct by_flash *flash);
/* Copies `bytes` from offset `at`, a multiple of 4, to memory. Nothing may be under way. */
void by_flash_read(const struct by_flash *flash, uint32_t at, uint8_t *to, size_t bytes);
/* Begin, when nothing is under way: all bytes of the sector at `at` become 0xff; the BY_FLASH_PAGE
 * bytes at `page`, which must stay until this is over, are written to erased flash. */
void by_flash_erase(struct by_flash *flash, uint32_t at);
void by_flash_write(struct by_flash *flash, uint32_t at, const uint8_t *page);
/* A look at what was begun, and its next piece: some hundred accesses at most. Once it does not say
 * busy, it is over. */
enum by_flash_state by_flash_step(struct by_flash *flash);

#endif

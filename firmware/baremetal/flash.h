/*
 * NOR flash with the Intel command set (JEDEC JEP137: command sets 1 and 3), as a pair of 16-bit
 * chips on a 32-bit bus, as in QEMU's virt machine and on boards with such a pair. Functions here
 * start erasing and writing, which then continue in the chips; meanwhile the flash cannot be read.
 * Only by_flash_open waits for the chips. Callers poll an operation until it ends, which also
 * happens for chips that never finish. Neighbour: store.c.
 */
#ifndef BY_BAREMETAL_FLASH_H
#define BY_BAREMETAL_FLASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Unit of writing (bytes); offsets are multiples of it. */
#define BY_FLASH_PAGE 256u

/* The operation in progress. */
enum by_flash_job { BY_FLASH_NOTHING, BY_FLASH_UNLOCK, BY_FLASH_ERASE, BY_FLASH_LOAD, BY_FLASH_WRITE };

struct by_flash {
    uint64_t base;
    uint32_t bytes;
    uint32_t sector_bytes;       /* unit of erasing */
    uint64_t erase_ns, write_ns; /* maximum times for a sector and a page */
    enum by_flash_job job;
    uint32_t at;         /* offset of the operation */
    const uint8_t *page; /* data to write */
    uint64_t begin_ns;
};

enum by_flash_state {
    BY_FLASH_READY,
    BY_FLASH_BUSY,
    BY_FLASH_FAILED, /* the chips report an error, or the data read back differs */
    BY_FLASH_DEAD    /* busy for longer than the maximum; they accept no more commands */
};

/* Finds the board's flash (by_hal.flash). Returns false when there is none or it is not supported,
 * which is logged. Waits for chips that have been busy since before the start, 20 s at most. */
bool by_flash_open(struct by_flash *flash);
/* Copies `bytes` bytes from offset `at`, a multiple of 4, to memory. No operation may be in
 * progress. */
void by_flash_read(const struct by_flash *flash, uint32_t at, uint8_t *to, size_t bytes);
/* Start an operation; none may be in progress. Erase sets all bytes of the sector at `at` to 0xff.
 * Write writes the BY_FLASH_PAGE bytes at `page` to erased flash; they must remain valid until the
 * end. */
void by_flash_erase(struct by_flash *flash, uint32_t at);
void by_flash_write(struct by_flash *flash, uint32_t at, const uint8_t *page);
/* Polls the operation and continues it: some hundred accesses at most. Any result but BUSY means
 * that it has ended. */
enum by_flash_state by_flash_step(struct by_flash *flash);

#endif

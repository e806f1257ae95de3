/*
 * NOR flash with the Intel command set (JEDEC JEP137: command sets 1 and 3), as a pair of 16-bit chips on a
 * 32-bit bus: what QEMU's virt has, and boards with such a pair. Erasing and writing are begun here and go on
 * by themselves; while they do, nothing can be read. Neighbour: store.c.
 */
#ifndef BY_BAREMETAL_FLASH_H
#define BY_BAREMETAL_FLASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is written at once (bytes): begins at a multiple of it. */
#define BY_FLASH_PAGE 256u

struct by_flash {
    uint64_t base;
    uint32_t bytes;
    uint32_t sector_bytes; /* what is erased at once */
};

enum by_flash_state { BY_FLASH_READY, BY_FLASH_BUSY, BY_FLASH_FAILED };

/* Finds the board's flash (by_hal.flash). False when there is none, or none that this file knows. */
bool by_flash_open(struct by_flash *flash);
/* Copies `bytes` from offset `at`, a multiple of 4, to memory. Nothing may be under way. */
void by_flash_read(const struct by_flash *flash, uint32_t at, uint8_t *to, size_t bytes);
/* Begin: all bytes of the sector at `at` become 0xff; BY_FLASH_PAGE bytes are written to erased flash. */
void by_flash_erase(const struct by_flash *flash, uint32_t at);
void by_flash_write(const struct by_flash *flash, uint32_t at, const uint8_t *page);
/* How what was begun is coming on, in the part of the flash at `at`. Once it does not say busy, it is over.
 */
enum by_flash_state by_flash_look(const struct by_flash *flash, uint32_t at);

#endif

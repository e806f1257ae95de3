/*
 * A pair of Intel NOR chips for the image's flash code: their contents, their commands, and all
 * failures at each operation (unlock, erase or write). A chip can report a failure, report success
 * after half of the operation, never finish, or lose power. Replaces a board, the clock and the
 * log. Single-threaded.
 */
#ifndef BY_TEST_BAREMETAL_CHIP_H
#define BY_TEST_BAREMETAL_CHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHIP_BYTES        0x8000u
#define CHIP_SECTOR_BYTES 1024u

/* CHIP_CUT...: power is lost before, during or after an operation. */
enum chip_trouble { CHIP_FINE, CHIP_FAILS, CHIP_LIES, CHIP_HANGS, CHIP_CUT_BEFORE, CHIP_CUT, CHIP_CUT_AFTER };

/* Makes two new chips, erased and with power. `seed` determines interrupted operations. */
void chip_new(uint64_t seed);
/* Restores power: no operation is in progress, all sectors are locked, and no failures are set. */
void chip_power_up(void);
/* Sets a failure of the `work`-th operation from now (0: the next one) and, with `is_lasting`, of
 * all later ones. */
void chip_trouble(enum chip_trouble trouble, unsigned work, bool is_lasting);
/* Returns whether the chips have lost power. */
bool chip_is_off(void);
/* Return the operations, and the reads and writes of all kinds, since chip_new (counts). */
unsigned chip_works(void);
unsigned chip_accesses(void);
/* Resets the machine but not the chips: an operation is in progress for `looks` more status
 * reads. */
void chip_is_at_work(unsigned looks);
/* Buffers are not available at the next `times` requests. */
void chip_keep_waiting(unsigned times);
/* Changes the byte at a place of the query; of both chips, or of the second one only. */
void chip_say(unsigned place, uint8_t value, bool both);
/* Returns the last logged message. */
const char *chip_log(void);

#endif

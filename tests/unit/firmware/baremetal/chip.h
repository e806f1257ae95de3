/*
 * A pair of Intel NOR chips for the image's flash code: what it may hold, what it does with
 * commands, and all that can go wrong with it, at any of its works (unlocking, erasing or writing
 * something): it can report a failure, say that all is well and have done it by halves, never
 * finish, or lose its power. Takes the place of a board, the clock and the log. Single-threaded.
 */
#ifndef BY_TEST_BAREMETAL_CHIP_H
#define BY_TEST_BAREMETAL_CHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHIP_BYTES        0x8000u
#define CHIP_SECTOR_BYTES 1024u

/* When power is lost: before a work, in its midst, after it. */
enum chip_trouble { CHIP_FINE, CHIP_FAILS, CHIP_LIES, CHIP_HANGS, CHIP_CUT_BEFORE, CHIP_CUT, CHIP_CUT_AFTER };

/* Two new chips, erased, and with power; what is torn is torn by `seed`. */
void chip_new(uint64_t seed);
/* They get power again: nothing is under way, all sectors are locked, and nothing goes wrong any
 * more. */
void chip_power_up(void);
/* From now on the `work`-th work (0: the next one) meets trouble; with `is_lasting` all after it,
 * too. */
void chip_trouble(enum chip_trouble trouble, unsigned work, bool is_lasting);
/* Whether they have lost power. */
bool chip_is_off(void);
/* Works, and reads and writes of any kind, since chip_new (counts). */
unsigned chip_works(void);
unsigned chip_accesses(void);
/* The machine is reset, and the chips are not: a work is under way, for `looks` more looks. */
void chip_is_at_work(unsigned looks);
/* So often buffers are not free when they are asked for. */
void chip_keep_waiting(unsigned times);
/* What they say of themselves at a place of the query, from now on; the second chip alone, or both.
 */
void chip_say(unsigned place, uint8_t value, bool both);
/* What was logged last. */
const char *chip_log(void);

#endif

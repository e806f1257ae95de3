/* Implements chip.h: a pair of NOR chips. Commands as in JEDEC JEP137, sets 1 and 3; the query as
 * in JESD68.01. */
#include "tests/unit/firmware/baremetal/chip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/baremetal/clock.h"
#include "firmware/baremetal/hal.h"
#include "firmware/baremetal/log.h"
#include "firmware/baremetal/memory.h"
#include "firmware/baremetal/processor.h"
#include "offload/base/prng.h"

#define BASE         UINT64_C(0x04000000)
#define BUFFER_WORDS 64u
#define QUERY_WORDS  0x60u
/* Status reads until an operation is complete (count), and the clock's advance at each (ns). */
#define LOOKS   3u
#define TICK_NS 1000000u
#define READY   0x00800080u
#define FAILED  0x00b000b0u /* ready; erase and write have failed */

enum mode { ARRAY, STATUS, QUERY, LOCKING, ERASING, COUNTING, LOADING, CONFIRMING };

const struct by_hal by_hal = {.flash = {BASE, BASE + CHIP_BYTES}};

static uint8_t array[CHIP_BYTES];
static bool unlocked[CHIP_BYTES / CHIP_SECTOR_BYTES];
static uint8_t query[QUERY_WORDS][2];
static enum mode mode;
static uint32_t status, place, loaded, buffer[BUFFER_WORDS];
static unsigned works, accesses, busy, waits, trouble_at;
static bool off, lasting;
static enum chip_trouble trouble;
static struct by_prng prng;
static uint64_t now_ns;
static char said[256];

void chip_new(uint64_t seed)
{
    static const struct {
        uint8_t place, value;
    } answers[] = {{0x10, 'Q'}, {0x11, 'R'}, {0x12, 'Y'}, {0x13, 1}, {0x20, 7},  {0x21, 10}, {0x24, 4},
                   {0x25, 4},   {0x27, 14},  {0x2a, 7},   {0x2c, 1}, {0x2d, 31}, {0x2f, 2}};

    memset(array, 0xff, sizeof array);
    memset(query, 0, sizeof query);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        query[answers[i].place][0] = query[answers[i].place][1] = answers[i].value;
    prng.state = seed;
    works = accesses = 0;
    said[0] = 0;
    chip_power_up();
}

void chip_power_up(void)
{
    memset(unlocked, 0, sizeof unlocked);
    mode = ARRAY;
    status = READY;
    busy = waits = 0;
    off = lasting = false;
    trouble = CHIP_FINE;
}

void chip_trouble(enum chip_trouble what, unsigned work, bool is_lasting)
{
    trouble = what;
    trouble_at = works + work;
    lasting = is_lasting;
}

bool chip_is_off(void)
{
    return off;
}

unsigned chip_works(void)
{
    return works;
}

unsigned chip_accesses(void)
{
    return accesses;
}

void chip_is_at_work(unsigned looks)
{
    mode = STATUS;
    status = 0;
    busy = looks;
}

void chip_keep_waiting(unsigned times)
{
    waits = times;
}

void chip_say(unsigned at, uint8_t value, bool both)
{
    query[at][1] = value;
    if (both)
        query[at][0] = value;
}

const char *chip_log(void)
{
    return said;
}

/* Each bit gets its new value or keeps the old one, at random. */
static void tear(uint8_t *now, uint8_t wanted)
{
    for (unsigned bit = 0; bit < 8; bit++)
        if (by_prng_next(&prng) % 2)
            *now = (uint8_t)((*now & ~(1u << bit)) | (wanted & 1u << bit));
}

static void change(uint8_t *now, uint8_t wanted, bool is_torn)
{
    if (is_torn)
        tear(now, wanted);
    else
        *now = wanted;
}

static void unlock(bool is_torn)
{
    if (!is_torn)
        unlocked[place / CHIP_SECTOR_BYTES] = true;
}

static void erase(bool is_torn)
{
    uint8_t *sector = array + place / CHIP_SECTOR_BYTES * CHIP_SECTOR_BYTES;

    for (unsigned i = 0; i < CHIP_SECTOR_BYTES; i++)
        change(sector + i, 0xff, is_torn);
}

/* Writing can only clear bits. */
static void program(bool is_torn)
{
    for (uint32_t i = 0; i < BUFFER_WORDS; i++)
        for (uint32_t k = 0; k < 4; k++) {
            uint8_t *now = &array[place + 4 * i + k];

            change(now, (uint8_t)(*now & buffer[i] >> 8 * k), is_torn);
        }
}

/* Executes an operation at once; only the status shows that it takes time. */
static void work(void (*what)(bool is_torn), bool is_allowed)
{
    bool is_hit = trouble != CHIP_FINE && (works == trouble_at || (lasting && works > trouble_at));
    enum chip_trouble now = is_hit ? trouble : CHIP_FINE;

    works++;
    mode = STATUS;
    busy = now == CHIP_HANGS ? UINT32_MAX : LOOKS;
    if (!is_allowed) {
        status = FAILED;
        return;
    }
    status = now == CHIP_FAILS ? FAILED : READY;
    if (now != CHIP_CUT_BEFORE)
        what(now == CHIP_FAILS || now == CHIP_LIES || now == CHIP_HANGS || now == CHIP_CUT);
    off = now == CHIP_CUT_BEFORE || now == CHIP_CUT || now == CHIP_CUT_AFTER;
}

static void command(uint32_t at, uint32_t value)
{
    switch (value) {
    case 0xff:
        mode = ARRAY;
        break;
    case 0x70:
        mode = STATUS;
        break;
    case 0x98:
        mode = QUERY;
        break;
    case 0x50:
        status = READY;
        mode = ARRAY;
        break;
    case 0x60:
        mode = LOCKING;
        break;
    case 0x20:
        mode = ERASING;
        break;
    case 0xe8:
        place = at;
        mode = waits > 0 ? STATUS : COUNTING;
        status = waits > 0 ? 0 : READY;
        waits -= waits > 0;
        break;
    default:
        fail_msg("the chips get %#x at %#x, which is no command", value, at);
    }
}

void by_write32(uint64_t address, uint32_t value)
{
    uint32_t at = (uint32_t)(address - BASE);

    assert_true(address >= BASE && at < CHIP_BYTES && at % 4 == 0);
    accesses++;
    if (off || busy > 0)
        return; /* busy chips accept none of the commands used here */
    if (mode != LOADING)
        assert_int_equal(value & 0xffff, value >> 16);
    switch (mode) {
    case LOCKING:
        assert_int_equal(value & 0xffff, 0xd0);
        place = at;
        work(unlock, true);
        return;
    case ERASING:
        assert_int_equal(value & 0xffff, 0xd0);
        place = at;
        work(erase, unlocked[at / CHIP_SECTOR_BYTES]);
        return;
    case COUNTING:
        assert_int_equal(value & 0xffff, BUFFER_WORDS - 1);
        assert_int_equal(at, place);
        loaded = 0;
        mode = LOADING;
        return;
    case LOADING:
        assert_int_equal(at, place + 4 * loaded);
        buffer[loaded++] = value;
        mode = loaded == BUFFER_WORDS ? CONFIRMING : LOADING;
        return;
    case CONFIRMING:
        assert_int_equal(value & 0xffff, 0xd0);
        work(program, unlocked[place / CHIP_SECTOR_BYTES]);
        return;
    case ARRAY:
    case STATUS:
    case QUERY:
    default:
        command(at, value & 0xffff);
    }
}

uint32_t by_read32(uint64_t address)
{
    uint32_t at = (uint32_t)(address - BASE), word;

    assert_true(address >= BASE && at < CHIP_BYTES && at % 4 == 0);
    accesses++;
    if (off)
        return 0;
    if (busy > 0) {
        busy -= busy != UINT32_MAX;
        status |= busy == 0 ? READY : 0;
        return 0;
    }
    if (mode == QUERY)
        return at / 4 < QUERY_WORDS ? query[at / 4][0] | (uint32_t)query[at / 4][1] << 16 : 0;
    if (mode != ARRAY)
        return status;
    memcpy(&word, array + at, sizeof word);
    return word;
}

/* ---- the rest of the machine */
uint64_t by_clock_ns(void)
{
    return now_ns += TICK_NS;
}

void *by_memory_take(const char *what, size_t bytes)
{
    static uint8_t memory[8][CHIP_BYTES] __attribute__((aligned(64)));
    static unsigned next;
    uint8_t *place_taken = memory[next++ % 8];

    (void)what;
    assert_true(bytes <= CHIP_BYTES);
    return memset(place_taken, 0, bytes);
}

void by_log_say(const char *text, const char *more)
{
    snprintf(said, sizeof said, "%s%s", text, more ? more : "");
}

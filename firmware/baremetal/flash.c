/* A pair of Intel NOR chips; see flash.h. */
#include "firmware/baremetal/flash.h"

#include "firmware/baremetal/clock.h"
#include "firmware/baremetal/hal.h"
#include "firmware/baremetal/log.h"
#include "firmware/baremetal/processor.h"

/* Each command is sent to both chips, each answer contains both. */
#define BOTH(value) ((uint32_t)(value)*0x00010001u)
enum {
    READ_ARRAY = 0xff,
    READ_STATUS = 0x70,
    QUERY = 0x98,
    CLEAR = 0x50,
    LOCK = 0x60,
    ERASE = 0x20,
    WRITE_BUFFER = 0xe8,
    CONFIRM = 0xd0,
    READY = 0x80,
    ERRORS = 0x3a, /* errors of erasing, writing and voltage; locked */
};
/* Offsets in the answer to a query, in words of the bus (JEDEC JESD68.01, CFI). */
enum {
    AT_QUERY = 0x55,
    AT_QRY = 0x10,
    AT_COMMAND_SET = 0x13,
    AT_WRITE_TYPICAL = 0x20, /* for a buffer: 2^n us */
    AT_ERASE_TYPICAL = 0x21, /* for a sector: 2^n ms */
    AT_WRITE_MOST = 0x24,    /* maximum: 2^n times as long */
    AT_ERASE_MOST = 0x25,
    AT_SIZE = 0x27,
    AT_BUFFER = 0x2a,
    AT_REGIONS = 0x2c,
    AT_SECTOR = 0x2f
};
#define BYTE_MAX 0xffu
/* Bounds on the maximum times that the chips state (ns). Data sheets of such chips state some
 * seconds for a sector and some milliseconds for a buffer. */
#define ERASE_LEAST_NS UINT64_C(1000000000)
#define ERASE_MOST_NS  UINT64_C(20000000000)
#define WRITE_LEAST_NS UINT64_C(10000000)
#define WRITE_MOST_NS  UINT64_C(1000000000)

static void tell(const struct by_flash *flash, uint32_t at, uint32_t command)
{
    by_write32(flash->base + at, BOTH(command));
}

static bool is_ready(uint32_t status)
{
    return (status & BOTH(READY)) == BOTH(READY);
}

/* Returns a byte of the query's answer; more than a byte when the chips differ. */
static uint32_t ask(const struct by_flash *flash, uint32_t word)
{
    uint32_t value = by_read32(flash->base + 4u * word);

    return (value & 0xffff) == value >> 16 ? value & 0xffff : 0xffff;
}

/* Returns whether chips answer a query; if so, they remain in query mode. */
static bool is_asked(const struct by_flash *flash)
{
    tell(flash, 4 * AT_QUERY, QUERY);
    return ask(flash, AT_QRY) == 'Q' && ask(flash, AT_QRY + 1) == 'R' && ask(flash, AT_QRY + 2) == 'Y';
}

/* Waits for an operation that the previous boot began. A reset of the machine need not reset the
 * chips; while busy they answer only with their status. */
static void settle(const struct by_flash *flash)
{
    uint64_t begin_ns = by_clock_ns();

    by_log_say("flash: waiting for an operation from before the start", NULL);
    tell(flash, 0, READ_STATUS);
    while (!is_ready(by_read32(flash->base)) && by_clock_ns() - begin_ns < ERASE_MOST_NS)
        ;
    tell(flash, 0, CLEAR);
}

/* Returns the maximum time that the chips state: 2^`typical` units, times 2^`most`. */
static uint64_t longest(const struct by_flash *flash, uint32_t typical, uint32_t most, uint64_t unit_ns,
                        uint64_t ns_min, uint64_t ns_max)
{
    uint32_t power = ask(flash, typical);
    uint64_t ns;

    if (power == 0)
        return ns_max; /* not stated */
    power += ask(flash, most);
    ns = power < 32 ? unit_ns << power : ns_max;
    return ns < ns_min ? ns_min : ns > ns_max ? ns_max : ns;
}

/* Reads the chips' description; returns false for chips that this file does not support. With
 * sectors of several sizes two copies of a table could share one. */
static bool read_query(struct by_flash *flash)
{
    uint32_t set = ask(flash, AT_COMMAND_SET), size = ask(flash, AT_SIZE), buffer = ask(flash, AT_BUFFER);
    uint32_t low = ask(flash, AT_SECTOR), high = ask(flash, AT_SECTOR + 1);

    if ((set != 1 && set != 3) || size > 28 || ask(flash, AT_REGIONS) != 1 || buffer > 15 ||
        2u << buffer < BY_FLASH_PAGE || low > BYTE_MAX || high > BYTE_MAX)
        return false;
    flash->sector_bytes = 2 * 256 * (low | high << 8);
    flash->bytes = (uint32_t)(by_hal.flash.end - by_hal.flash.start);
    if (2u << size < flash->bytes)
        flash->bytes = 2u << size;
    flash->erase_ns = longest(flash, AT_ERASE_TYPICAL, AT_ERASE_MOST, 1000000, ERASE_LEAST_NS, ERASE_MOST_NS);
    flash->write_ns = longest(flash, AT_WRITE_TYPICAL, AT_WRITE_MOST, 1000, WRITE_LEAST_NS, WRITE_MOST_NS);
    return flash->sector_bytes >= BY_FLASH_PAGE;
}

bool by_flash_open(struct by_flash *flash)
{
    bool is_known;

    if (by_hal.flash.start == by_hal.flash.end)
        return false;
    *flash = (struct by_flash){.base = by_hal.flash.start};
    if (!is_asked(flash)) {
        settle(flash);
        is_known = is_asked(flash) && read_query(flash);
    } else {
        is_known = read_query(flash);
    }
    tell(flash, 0, READ_ARRAY);
    if (!is_known)
        by_log_say("flash: no supported chips: tables are not stored", NULL);
    return is_known;
}

void by_flash_read(const struct by_flash *flash, uint32_t at, uint8_t *to, size_t bytes)
{
    uint32_t word = 0;

    for (size_t i = 0; i < bytes; i++) {
        if (i % 4 == 0)
            word = by_read32(flash->base + at + i);
        to[i] = (uint8_t)(word >> 8 * (i % 4));
    }
}

static void begin(struct by_flash *flash, enum by_flash_job job, uint32_t at, const uint8_t *page)
{
    tell(flash, at, CLEAR);
    flash->job = job;
    flash->at = at;
    flash->page = page;
    flash->begin_ns = by_clock_ns();
}

/* These chips are locked after power-on, and some take a while to unlock. */
void by_flash_erase(struct by_flash *flash, uint32_t at)
{
    begin(flash, BY_FLASH_UNLOCK, at, NULL);
    tell(flash, at, LOCK);
    tell(flash, at, CONFIRM);
}

void by_flash_write(struct by_flash *flash, uint32_t at, const uint8_t *page)
{
    begin(flash, BY_FLASH_LOAD, at, page);
}

static uint32_t page_word(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Fills the chips' buffers and starts the write. Only for chips that have reported free buffers:
 * others would interpret the words as commands. */
static void load(const struct by_flash *flash)
{
    tell(flash, flash->at, BY_FLASH_PAGE / 4 - 1);
    for (uint32_t i = 0; i < BY_FLASH_PAGE; i += 4)
        by_write32(flash->base + flash->at + i, page_word(flash->page + i));
    tell(flash, flash->at, CONFIRM);
}

static bool is_written(const struct by_flash *flash)
{
    for (uint32_t i = 0; i < BY_FLASH_PAGE; i += 4)
        if (by_read32(flash->base + flash->at + i) != page_word(flash->page + i))
            return false;
    return true;
}

/* Ends the operation and returns its result. */
static enum by_flash_state finish(struct by_flash *flash, uint32_t status)
{
    enum by_flash_job job = flash->job;

    tell(flash, flash->at, CLEAR);
    tell(flash, flash->at, READ_ARRAY);
    flash->job = BY_FLASH_NOTHING;
    if (!is_ready(status))
        return BY_FLASH_DEAD;
    if (status & BOTH(ERRORS) || (job == BY_FLASH_WRITE && !is_written(flash)))
        return BY_FLASH_FAILED;
    return BY_FLASH_READY;
}

enum by_flash_state by_flash_step(struct by_flash *flash)
{
    uint64_t now_ns =
        by_clock_ns(); /* before the status is read, so that the duration of the read does not count */
    bool is_write = flash->job == BY_FLASH_LOAD || flash->job == BY_FLASH_WRITE;
    uint32_t status;

    if (flash->job == BY_FLASH_LOAD)
        tell(flash, flash->at, WRITE_BUFFER);
    status = by_read32(flash->base + flash->at);
    if (!is_ready(status) && now_ns - flash->begin_ns <= (is_write ? flash->write_ns : flash->erase_ns))
        return BY_FLASH_BUSY;
    if (!is_ready(status) || status & BOTH(ERRORS) || flash->job == BY_FLASH_ERASE ||
        flash->job == BY_FLASH_WRITE)
        return finish(flash, status);
    if (flash->job == BY_FLASH_UNLOCK) {
        tell(flash, flash->at, ERASE);
        tell(flash, flash->at, CONFIRM);
        flash->job = BY_FLASH_ERASE;
    } else {
        load(flash);
        flash->job = BY_FLASH_WRITE;
    }
    flash->begin_ns = now_ns;
    return BY_FLASH_BUSY;
}

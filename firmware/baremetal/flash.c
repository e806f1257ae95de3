/* A pair of Intel NOR chips; see flash.h. */
#include "firmware/baremetal/flash.h"

#include "firmware/baremetal/clock.h"
#include "firmware/baremetal/hal.h"
#include "firmware/baremetal/processor.h"

/* Each command goes to both chips, each answer comes from both. */
#define BOTH(value) ((uint32_t)(value)*0x00010001u)
enum {
    READ_ARRAY = 0xff,
    QUERY = 0x98,
    CLEAR = 0x50,
    LOCK = 0x60,
    ERASE = 0x20,
    WRITE_BUFFER = 0xe8,
    CONFIRM = 0xd0,
    READY = 0x80,
    ERRORS = 0x3a, /* of erasing, of writing, of voltage, locked */
};
/* Places in the answer to a query, in words of the bus. */
enum {
    AT_QUERY = 0x55,
    AT_QRY = 0x10,
    AT_COMMAND_SET = 0x13,
    AT_SIZE = 0x27,
    AT_BUFFER = 0x2a,
    AT_SECTOR = 0x2f
};
/* How long the chips may take to be ready for a page (ns). */
#define WAIT_NS 1000000u

static void tell(const struct by_flash *flash, uint32_t at, uint32_t command)
{
    by_write32(flash->base + at, BOTH(command));
}

/* A byte of the query's answer; 0xffff when the chips do not agree. */
static uint32_t ask(const struct by_flash *flash, uint32_t word)
{
    uint32_t value = by_read32(flash->base + 4u * word);

    return (value & 0xffff) == value >> 16 ? value & 0xffff : 0xffff;
}

bool by_flash_open(struct by_flash *flash)
{
    uint32_t size, buffer, set;
    bool is_known;

    if (by_hal.flash.start == by_hal.flash.end)
        return false;
    *flash = (struct by_flash){.base = by_hal.flash.start};
    tell(flash, 4 * AT_QUERY, QUERY);
    is_known = ask(flash, AT_QRY) == 'Q' && ask(flash, AT_QRY + 1) == 'R' && ask(flash, AT_QRY + 2) == 'Y';
    set = ask(flash, AT_COMMAND_SET);
    size = ask(flash, AT_SIZE);
    buffer = ask(flash, AT_BUFFER);
    flash->sector_bytes = 2 * 256 * (ask(flash, AT_SECTOR) | ask(flash, AT_SECTOR + 1) << 8);
    tell(flash, 0, READ_ARRAY);
    if (!is_known || (set != 1 && set != 3) || size > 28 || 2u << (buffer & 15) < BY_FLASH_PAGE ||
        flash->sector_bytes < BY_FLASH_PAGE)
        return false;
    flash->bytes = (uint32_t)(by_hal.flash.end - by_hal.flash.start);
    if (2u << size < flash->bytes)
        flash->bytes = 2u << size;
    return true;
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

void by_flash_erase(const struct by_flash *flash, uint32_t at)
{
    tell(flash, at, CLEAR);
    tell(flash, at, LOCK); /* chips of this kind are locked when they get power */
    tell(flash, at, CONFIRM);
    tell(flash, at, ERASE);
    tell(flash, at, CONFIRM);
}

void by_flash_write(const struct by_flash *flash, uint32_t at, const uint8_t *page)
{
    uint64_t begin = by_clock_ns();

    tell(flash, at, CLEAR);
    do
        tell(flash, at, WRITE_BUFFER);
    while ((by_read32(flash->base + at) & BOTH(READY)) != BOTH(READY) && by_clock_ns() - begin < WAIT_NS);
    tell(flash, at, BY_FLASH_PAGE / 4 - 1);
    for (uint32_t i = 0; i < BY_FLASH_PAGE; i += 4)
        by_write32(flash->base + at + i, (uint32_t)page[i] | (uint32_t)page[i + 1] << 8 |
                                             (uint32_t)page[i + 2] << 16 | (uint32_t)page[i + 3] << 24);
    tell(flash, at, CONFIRM);
}

enum by_flash_state by_flash_look(const struct by_flash *flash, uint32_t at)
{
    uint32_t status = by_read32(flash->base + at);

    if ((status & BOTH(READY)) != BOTH(READY))
        return BY_FLASH_BUSY;
    tell(flash, at, CLEAR);
    tell(flash, at, READ_ARRAY);
    return status & BOTH(ERRORS) ? BY_FLASH_FAILED : BY_FLASH_READY;
}

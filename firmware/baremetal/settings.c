/*
 * Settings from QEMU's fw_cfg device (docs/specs/fw_cfg in QEMU's tree): a directory of named
 * files, read byte by byte. The switch uses opt/banyan/NAME. Start-up only.
 */
#include "firmware/baremetal/settings.h"

#include "firmware/baremetal/fault.h"
#include "firmware/baremetal/hal.h"
#include "firmware/baremetal/log.h"
#include "firmware/baremetal/text_equal.h"

enum { DATA = 0, SELECTOR = 8, KEY_SIGNATURE = 0, KEY_DIRECTORY = 0x19, NAME_BYTES = 56 };
/* Maximum files searched (count). */
#define FILES_MAX 256u
#define PREFIX    "opt/banyan/"

static uint8_t next_byte(void)
{
    return *(volatile uint8_t *)(uintptr_t)(by_hal.settings + DATA);
}

static uint32_t next_number(unsigned bytes)
{
    uint32_t value = 0;

    while (bytes--)
        value = value << 8 | next_byte();
    return value;
}

static void select_key(uint16_t key)
{
    *(volatile uint16_t *)(uintptr_t)(by_hal.settings + SELECTOR) = __builtin_bswap16(key);
}

static int is_there(void)
{
    if (by_hal.settings == 0)
        return 0;
    select_key(KEY_SIGNATURE);
    return next_number(4) == 0x51454d55; /* "QEMU" */
}

int by_setting_text(const char *name, char *text, size_t bytes)
{
    char wanted[NAME_BYTES], found[NAME_BYTES];
    struct by_text builder;
    uint32_t count, size, key;

    if (!is_there())
        return 0;
    by_text_start(&builder, wanted, sizeof wanted);
    by_text_add(&builder, PREFIX);
    by_text_add(&builder, name);
    select_key(KEY_DIRECTORY);
    count = next_number(4);
    for (uint32_t i = 0; i < count && i < FILES_MAX; i++) {
        size = next_number(4);
        key = next_number(2);
        (void)next_number(2);
        for (unsigned k = 0; k < NAME_BYTES; k++)
            found[k] = (char)next_byte();
        found[NAME_BYTES - 1] = 0;
        if (!by_text_equal(found, wanted))
            continue;
        select_key((uint16_t)key);
        if (size > bytes - 1)
            size = (uint32_t)(bytes - 1);
        for (uint32_t k = 0; k < size; k++)
            text[k] = (char)next_byte();
        text[size] = 0;
        return 1;
    }
    return 0;
}

uint64_t by_setting_number(const char *name, uint64_t otherwise, uint64_t most)
{
    char text[24];
    uint64_t value = 0;
    int is_number = 1;
    struct by_log log;
    struct by_text *line;

    if (!by_setting_text(name, text, sizeof text))
        return otherwise;
    for (const char *c = text; *c && is_number; c++) {
        is_number = *c >= '0' && *c <= '9' && value <= (UINT64_MAX - 9) / 10;
        value = value * 10 + (uint64_t)(*c - '0');
    }
    if (is_number && text[0] && value <= most)
        return value;
    line = by_log_start(&log);
    by_text_add(line, "setting " PREFIX);
    by_text_add(line, name);
    by_text_add(line, " is '");
    by_text_add(line, text);
    by_text_add(line, "': it must be a number up to ");
    by_text_number(line, most);
    by_log_end(&log);
    by_fault_say("invalid setting");
}

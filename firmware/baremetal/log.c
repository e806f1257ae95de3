/* Lines on a PL011 (Arm DDI 0183): polled, because the log is short and must work when nothing else
 * does. */
#include "firmware/baremetal/log.h"

#include "firmware/baremetal/hal.h"
#include "firmware/baremetal/processor.h"

enum { DATA = 0x00, FLAGS = 0x18, LINE_CONTROL = 0x2c, CONTROL = 0x30 };
#define FLAG_FULL    (1u << 5)
#define LINE_8_FIFO  0x70u
#define CONTROL_SEND 0x101u /* UART and transmitter enabled */
/* Reads of a full transmitter before a character is dropped (count), so that an unconnected line
 * cannot block the switch. */
#define TRIES 100000u

static const char *name = "?";

void by_log_open(void)
{
    by_write32(by_hal.uart + LINE_CONTROL, LINE_8_FIFO);
    by_write32(by_hal.uart + CONTROL, CONTROL_SEND);
}

void by_log_name(const char *text)
{
    name = text;
}

static void put(char c)
{
    for (uint32_t i = 0; i < TRIES && by_read32(by_hal.uart + FLAGS) & FLAG_FULL; i++)
        ;
    by_write32(by_hal.uart + DATA, (uint8_t)c);
}

void by_log_raw(const char *text)
{
    for (; *text; text++)
        put(*text);
}

struct by_text *by_log_start(struct by_log *log)
{
    by_text_start(&log->text, log->line, sizeof log->line);
    by_text_add(&log->text, "banyan: ");
    by_text_add(&log->text, name);
    by_text_add(&log->text, ": ");
    return &log->text;
}

void by_log_end(struct by_log *log)
{
    by_log_raw(log->line);
    by_log_raw("\n");
}

void by_log_say(const char *text, const char *more)
{
    struct by_log log;

    by_text_add(by_log_start(&log), text);
    if (more)
        by_text_add(&log.text, more);
    by_log_end(&log);
}

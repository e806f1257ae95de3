/* The memory plan; see memory.h. */
#include "firmware/baremetal/memory.h"

#include <stdint.h>

#include "firmware/baremetal/fault.h"
#include "firmware/baremetal/hal.h"
#include "firmware/baremetal/log.h"
#include "firmware/baremetal/note.h"
#include "offload/base/bytes.h"

#define LINE 64u

extern char by_image_end[];

static uintptr_t next, end;
static int is_sealed;

void by_memory_open(void)
{
    next = ((uintptr_t)by_image_end + LINE - 1) / LINE * LINE;
    end = by_hal.ram.end - BY_NOTE_BYTES;
}

size_t by_memory_left(void)
{
    return end - next;
}

void *by_memory_take(const char *what, size_t bytes)
{
    void *memory = (void *)next;
    struct by_log log;
    struct by_text *text;

    if (is_sealed)
        by_fault_say("memory is allocated after the start");
    if (bytes > SIZE_MAX - LINE || (bytes + LINE - 1) / LINE * LINE > end - next) {
        text = by_log_start(&log);
        by_text_add(text, what);
        by_text_add(text, " needs ");
        by_text_number(text, bytes);
        by_text_add(text, " bytes, ");
        by_text_number(text, end - next);
        by_text_add(text, " are left: use fewer slots or a smaller payload");
        by_log_end(&log);
        by_fault_say("not enough memory");
    }
    next += (bytes + LINE - 1) / LINE * LINE;
    by_zero(memory, bytes);
    return memory;
}

void by_memory_seal(void)
{
    struct by_log log;
    struct by_text *text = by_log_start(&log);

    is_sealed = 1;
    by_text_add(text, "memory: ");
    by_text_number(text, (next - (uintptr_t)by_image_end) >> 10);
    by_text_add(text, " KiB in use, ");
    by_text_number(text, by_memory_left() >> 10);
    by_text_add(text, " KiB left");
    by_log_end(&log);
}

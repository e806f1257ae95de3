/* Fault handling. Every exception is a fault, because no code here expects any. The report is built
 * on the fault stack; reset.c does the rest. A switch that cannot start halts, because it would
 * fail again. */
#include "firmware/baremetal/fault.h"

#include <stddef.h>

#include "firmware/baremetal/log.h"
#include "firmware/baremetal/processor.h"
#include "firmware/baremetal/reset.h"
#include "firmware/baremetal/text_equal.h"
#include "offload/base/assert.h"

BY_STATIC_ASSERT(sizeof(struct by_fault_frame) == 256, "start.S knows the layout");

/* Exception classes (Arm ARM, ESR_EL1.EC). */
enum {
    CLASS_SHIFT = 26,
    CLASS_CODE = 0x21,
    CLASS_DATA = 0x25,
    CLASS_STACK_ALIGNMENT = 0x26,
    CLASS_BREAK = 0x3c
};

extern char by_code_start[], by_guard_start[], by_stack_start[];

/* Exceptions so far (count): the report of one may cause another. */
static uint32_t faults;
static bool is_running;

static const char *class_text(uint64_t syndrome, uint64_t address)
{
    switch (syndrome >> CLASS_SHIFT & 0x3f) {
    case CLASS_CODE:
        return "this code is not executable";
    case CLASS_DATA:
        return address >= (uintptr_t)by_guard_start && address < (uintptr_t)by_stack_start
                   ? "stack overflow"
                   : "this memory access is not allowed";
    case CLASS_STACK_ALIGNMENT:
        return "the stack pointer is not aligned";
    case CLASS_BREAK:
        return "an assertion failed";
    default:
        return "see the syndrome";
    }
}

static void say_register(const char *name, uint64_t value)
{
    struct by_log log;

    by_text_start(&log.text, log.line, sizeof log.line);
    by_text_add(&log.text, "  ");
    by_text_add(&log.text, name);
    by_text_add(&log.text, " ");
    by_text_hash(&log.text, value);
    by_log_end(&log);
}

/* Reports everything that is known. */
static void report(const struct by_fault_frame *frame, uint64_t vector, const struct by_note *note)
{
    static const char *const kinds[4] = {"synchronous exception", "interrupt", "fast interrupt",
                                         "system error"};
    struct by_log log;
    struct by_text *text = by_log_start(&log);
    char name[8];

    by_text_add(text, "fault: ");
    by_text_add(text, kinds[vector & 3]);
    by_text_add(text, " at ");
    by_text_hash(text, note->at);
    by_text_add(text, ", address ");
    by_text_hash(text, note->other);
    by_text_add(text, ": ");
    by_text_add(text, class_text(note->value, note->other));
    by_log_end(&log);
    say_register("vector  ", vector);
    say_register("syndrome", note->value);
    say_register("sp      ", frame->sp);
    for (uint32_t i = 0; i < 31; i++) {
        struct by_text short_text;

        by_text_start(&short_text, name, sizeof name);
        by_text_add(&short_text, "x");
        by_text_number(&short_text, i);
        say_register(name, frame->x[i]);
    }
}

void by_fault(const struct by_fault_frame *frame, uint64_t vector)
{
    static struct by_note first;

    if (++faults == 1) {
        first.end = BY_NOTE_EXCEPTION;
        __asm__ volatile("mrs %0, esr_el1\n\tmrs %1, far_el1\n\tmrs %2, elr_el1"
                         : "=r"(first.value), "=r"(first.other), "=r"(first.at));
        report(frame, vector, &first);
    }
    if (faults <= 2)
        by_reset_after(&first, faults == 1);
    by_reset();
}

void by_fault_running(void)
{
    is_running = true;
}

void by_fault_say(const char *text)
{
    struct by_note note = {.end = BY_NOTE_BROKEN, .at = (uintptr_t)__builtin_return_address(0)};

    by_log_say(text, is_running ? NULL : ": halted");
    if (is_running)
        by_reset_after(&note, true);
    by_reset_halt();
}

/* Grows the stack until it faults. */
static uint32_t grow(uint32_t depth)
{
    volatile uint8_t frame[1024];

    frame[0] = (uint8_t)depth;
    return depth == 0 ? 0 : grow(depth - 1) + frame[0];
}

/* Loops until the watchdog ends it. */
static __attribute__((noinline)) _Noreturn void stand_still(void)
{
    for (;;)
        __asm__ volatile("" ::: "memory");
}

void by_fault_provoke(const char *kind)
{
    if (by_text_equal(kind, "null"))
        by_write32(8, 1);
    if (by_text_equal(kind, "code"))
        *(volatile uint32_t *)by_code_start = 0;
    if (by_text_equal(kind, "stack"))
        grow(1000);
    if (by_text_equal(kind, "assert"))
        BY_ASSERT(!kind);
    if (by_text_equal(kind, "twice")) {
        by_log_name((const char *)(uintptr_t)8);
        by_write32(8, 1);
    }
    if (by_text_equal(kind, "say"))
        by_fault_say("this fault is injected");
    if (by_text_equal(kind, "hang"))
        stand_still();
    by_fault_say("setting opt/banyan/fault: it must be null, twice, code, stack, assert, say or hang");
}

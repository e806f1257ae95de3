/* Reset by the firmware; see reset.h. Also runs in faults and in the watchdog's interrupt, so
 * everything is polled. */
#include "firmware/baremetal/reset.h"

#include "firmware/baremetal/clock.h"
#include "firmware/baremetal/hal.h"
#include "firmware/baremetal/log.h"

#define SYSTEM_RESET UINT64_C(0x84000009)
#define NS_PER_S     UINT64_C(1000000000)

static bool was_at_el2, halts;
static uint64_t ends_before, began_ns;

bool by_reset_open(bool is_at_el2, struct by_note *last)
{
    bool is_there = by_note_take(last);

    was_at_el2 = is_at_el2;
    began_ns = by_clock_ns();
    ends_before = is_there ? last->ends : 0;
    return is_there;
}

void by_reset_halt_instead(void)
{
    halts = true;
}

void by_reset_halt(void)
{
    for (;;)
        __asm__ volatile("msr daifset, #0xf\n\twfi" ::: "memory");
}

void by_reset(void)
{
    register uint64_t function __asm__("x0") = SYSTEM_RESET;

    if (by_hal.has_psci && was_at_el2)
        __asm__ volatile("smc #0" : "+r"(function)::"x1", "x2", "x3", "memory");
    else if (by_hal.has_psci)
        __asm__ volatile("hvc #0" : "+r"(function)::"x1", "x2", "x3", "memory");
    by_reset_halt();
}

static void say_when(uint64_t ends, uint64_t wait_ns)
{
    struct by_log log;
    struct by_text *text = by_log_start(&log);

    if (halts || !by_hal.has_psci) {
        by_text_add(text, "halted");
    } else {
        by_text_add(text, "resetting the machine in ");
        by_text_number(text, wait_ns / NS_PER_S);
        by_text_add(text, " s (consecutive failed boots: ");
        by_text_number(text, ends);
        by_text_add(text, ")");
    }
    by_log_end(&log);
}

void by_reset_after(struct by_note *note, bool is_said)
{
    uint64_t now_ns, wait_ns;

    __asm__ volatile("msr daifset, #0xf" ::: "memory");
    now_ns = by_clock_ns();
    note->ends = by_note_ends(ends_before, now_ns - began_ns);
    wait_ns = by_note_wait_ns(note->ends);
    by_note_leave(note);
    if (is_said)
        say_when(note->ends, wait_ns);
    if (halts || !by_hal.has_psci)
        by_reset_halt();
    while (by_clock_ns() - now_ns < wait_ns)
        ;
    by_reset();
}

/*
 * The watchdog; see watchdog.h. by_watchdog_look runs in the interrupt, on the loop's stack, with
 * the floating-point registers of the interrupted code. Therefore this file and interrupt.c are
 * compiled without floating-point registers, and call other code only when the boot ends.
 */
#include "firmware/baremetal/watchdog.h"

#include "firmware/baremetal/hal.h"
#include "firmware/baremetal/interrupt.h"
#include "firmware/baremetal/log.h"
#include "firmware/baremetal/processor.h"
#include "firmware/baremetal/reset.h"

/* Checks within the limit (count). */
#define LOOKS 4u

static uint64_t limit_ms, period_ticks;
static volatile uint64_t beats;
static uint64_t seen, idle_looks;

/* Schedules the next check, a period from now. */
static void rearm(void)
{
    uint64_t now;

    __asm__ volatile("isb\n\tmrs %0, cntpct_el0" : "=r"(now)::"memory");
    __asm__ volatile("msr cntp_cval_el0, %0\n\tmsr cntp_ctl_el0, %1\n\tisb" ::"r"(now + period_ticks),
                     "r"(UINT64_C(1)));
}

void by_watchdog_open(uint64_t limit)
{
    if (limit == 0 || by_hal.watchdog_interrupt == 0)
        return;
    limit_ms = limit;
    period_ticks = limit * by_counter_hz() / 1000 / LOOKS;
    by_interrupt_enable_urgent(by_hal.watchdog_interrupt);
    rearm();
    by_interrupt_unmask();
}

void by_watchdog_beat(void)
{
    beats++;
}

/* Reports where the loop hangs, and ends this boot. */
static _Noreturn void end(uint64_t at, uint64_t link)
{
    struct by_note note = {.end = BY_NOTE_HANG, .at = at, .value = limit_ms, .other = link};
    struct by_log log;
    struct by_text *text = by_log_start(&log);

    by_text_add(text, "watchdog: the loop made no progress for ");
    by_text_number(text, limit_ms);
    by_text_add(text, " ms at ");
    by_text_hash(text, at);
    by_text_add(text, ", called from ");
    by_text_hash(text, link);
    by_log_end(&log);
    by_reset_after(&note, true);
}

void by_watchdog_look(uint64_t at, uint64_t link)
{
    uint32_t taken = by_interrupt_take();

    if (by_interrupt_number(taken) == by_hal.watchdog_interrupt) {
        idle_looks = beats == seen ? idle_looks + 1 : 0;
        seen = beats;
        if (idle_looks >= LOOKS)
            end(at, link);
        rearm();
    }
    by_interrupt_end(taken);
}

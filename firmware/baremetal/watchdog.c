/*
 * The watchdog; see watchdog.h. by_watchdog_look runs in the interrupt, on the loop's stack, with the
 * floating-point registers of whatever it interrupts: this file and interrupt.c are compiled without any, and
 * nothing else is called unless there is no way back.
 */
#include "firmware/baremetal/watchdog.h"

#include "firmware/baremetal/cache.h"
#include "firmware/baremetal/hal.h"
#include "firmware/baremetal/interrupt.h"
#include "firmware/baremetal/log.h"
#include "firmware/baremetal/processor.h"
#include "firmware/baremetal/reset.h"

/* Looks within the limit (count). */
#define LOOKS 4u
/* Marks a note for the next life: it lies where RAM ends, beyond the memory plan (memory.c). */
#define MARK UINT64_C(0x6279776174636864)

struct note {
    uint64_t mark, check;
    struct by_watchdog_end end;
};

static uint64_t limit_ms, period_ticks;
static bool was_at_el2;
static volatile uint64_t beats;
static uint64_t seen, idle_looks;

static struct note *note_place(void)
{
    return (struct note *)(uintptr_t)(by_hal.ram.end - BY_WATCHDOG_NOTE_BYTES);
}

bool by_watchdog_ended(struct by_watchdog_end *end)
{
    struct note *note = note_place();
    bool is_there = note->mark == MARK && note->check == (note->end.at ^ note->end.limit_ms ^ MARK);

    *end = note->end;
    note->mark = 0;
    return is_there;
}

/* The next look, a period from now. */
static void rearm(void)
{
    uint64_t now;

    __asm__ volatile("isb\n\tmrs %0, cntpct_el0" : "=r"(now)::"memory");
    __asm__ volatile("msr cntp_cval_el0, %0\n\tmsr cntp_ctl_el0, %1\n\tisb" ::"r"(now + period_ticks),
                     "r"(UINT64_C(1)));
}

void by_watchdog_open(uint64_t limit, bool is_at_el2)
{
    if (limit == 0 || by_hal.watchdog_interrupt == 0)
        return;
    limit_ms = limit;
    was_at_el2 = is_at_el2;
    period_ticks = limit * by_counter_hz() / 1000 / LOOKS;
    by_interrupt_enable_urgent(by_hal.watchdog_interrupt);
    by_watchdog_resume();
}

void by_watchdog_beat(void)
{
    beats++;
}

void by_watchdog_pause(void)
{
    if (limit_ms == 0)
        return;
    __asm__ volatile("msr daifset, #2" ::: "memory");
    by_interrupt_admit(true);
}

void by_watchdog_resume(void)
{
    beats++;
    if (limit_ms > 0)
        rearm(); /* before what is pending is acknowledged: its look may be among it */
    by_interrupt_clear();
    if (limit_ms == 0)
        return;
    by_interrupt_admit(false);
    __asm__ volatile("msr daifclr, #2" ::: "memory");
}

/* Says where the loop stands, leaves a note, and ends this life. */
static _Noreturn void end(uint64_t at, uint64_t link)
{
    struct note *note = note_place();
    struct by_log log;
    struct by_text *text = by_log_start(&log);

    by_text_add(text, "watchdog: the loop has stood still for ");
    by_text_number(text, limit_ms);
    by_text_add(text, " ms at ");
    by_text_hash(text, at);
    by_text_add(text, ", called from ");
    by_text_hash(text, link);
    by_text_add(text, by_hal.has_psci ? ": the machine is reset" : ": halted");
    by_log_end(&log);
    *note =
        (struct note){.mark = MARK, .check = at ^ limit_ms ^ MARK, .end = {.at = at, .limit_ms = limit_ms}};
    by_cache_clean(note, sizeof *note);
    by_reset(was_at_el2);
}

void by_watchdog_look(uint64_t at, uint64_t link)
{
    uint32_t number = by_interrupt_take();

    idle_looks = beats == seen ? idle_looks + 1 : 0;
    seen = beats;
    if (idle_looks >= LOOKS)
        end(at, link);
    rearm();
    by_interrupt_end(number);
}

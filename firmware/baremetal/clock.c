/* The generic timer's virtual counter and comparator (Arm ARM, chapter D11). */
#include "firmware/baremetal/clock.h"

#include "firmware/baremetal/processor.h"

#define NS_PER_S UINT64_C(1000000000)
#define ENABLED  UINT64_C(1)

uint64_t by_clock_ns(void)
{
    uint64_t ticks = by_counter(), hz = by_counter_hz();

    return ticks / hz * NS_PER_S + ticks % hz * NS_PER_S / hz + 1;
}

void by_clock_alarm(uint64_t ns)
{
    uint64_t hz = by_counter_hz();
    uint64_t ticks = ns / NS_PER_S * hz + ns % NS_PER_S * hz / NS_PER_S;

    __asm__ volatile("msr cntv_cval_el0, %0\n\tmsr cntv_ctl_el0, %1\n\tisb" ::"r"(by_counter() + ticks),
                     "r"(ENABLED));
}

void by_clock_quiet(void)
{
    __asm__ volatile("msr cntv_ctl_el0, xzr\n\tisb");
}

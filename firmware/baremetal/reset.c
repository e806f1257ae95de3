/* A reset by the firmware; see reset.h. */
#include "firmware/baremetal/reset.h"

#include <stdint.h>

#include "firmware/baremetal/hal.h"

#define SYSTEM_RESET UINT64_C(0x84000009)

void by_reset(bool is_at_el2)
{
    register uint64_t function __asm__("x0") = SYSTEM_RESET;

    if (by_hal.has_psci && is_at_el2)
        __asm__ volatile("smc #0" : "+r"(function)::"x1", "x2", "x3", "memory");
    else if (by_hal.has_psci)
        __asm__ volatile("hvc #0" : "+r"(function)::"x1", "x2", "x3", "memory");
    for (;;)
        __asm__ volatile("msr daifset, #0xf\n\twfi" ::: "memory");
}

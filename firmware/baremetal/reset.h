/* Starting the machine anew. */
#ifndef BY_BAREMETAL_RESET_H
#define BY_BAREMETAL_RESET_H

#include <stdbool.h>

/* Asks the firmware for a reset (PSCI 1.1, section 5.11: SYSTEM_RESET); where there is none, or it does not
 * do it, halts. `is_at_el2`: the machine started at EL2, so that firmware is reached by SMC, else by HVC. */
_Noreturn void by_reset(bool is_at_el2);

#endif

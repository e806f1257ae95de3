/*
 * The interrupt controller. Interrupts of devices are never taken: while the loop runs they are kept from the
 * processor, and while it sleeps they end that; then the loop looks at every device, as it does anyway. So
 * there are no handlers and no data that two contexts share, but for the watchdog's (watchdog.h), which is
 * more urgent than all others.
 */
#ifndef BY_BAREMETAL_INTERRUPT_H
#define BY_BAREMETAL_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

void by_interrupt_open(void);
/* Lets interrupt `number` end a sleep. */
void by_interrupt_enable(uint32_t number);
/* The same, and it may be taken when the others may not. */
void by_interrupt_enable_urgent(uint32_t number);
/* Whether all are shown to the processor, or urgent ones alone. */
void by_interrupt_admit(bool all);
/* In an interrupt: which one it is, and that it has been seen to. */
uint32_t by_interrupt_take(void);
void by_interrupt_end(uint32_t number);
/* Acknowledges what is pending; to be called when the devices that raised it have been quieted. */
void by_interrupt_clear(void);

#endif

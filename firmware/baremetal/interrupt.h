/*
 * The interrupt controller. Interrupts of devices are never taken: while the loop runs they are
 * kept from the processor, and while it sleeps they end that; then the loop looks at every device,
 * as it does anyway. So there are no handlers and no data that two contexts share, but for the
 * watchdog's (watchdog.h), which is more urgent than all others.
 */
#ifndef BY_BAREMETAL_INTERRUPT_H
#define BY_BAREMETAL_INTERRUPT_H

#include <stdint.h>

void by_interrupt_open(void);
/* Lets interrupt `number` end a sleep. */
void by_interrupt_enable(uint32_t number);
/* The same, and it may be taken when the others may not. */
void by_interrupt_enable_urgent(uint32_t number);
/* From now on urgent ones are taken, and no others. */
void by_interrupt_unmask(void);
/* Sleeps until any interrupt is pending; then as by_interrupt_unmask, so that an urgent one is
 * taken at once.
 */
void by_interrupt_sleep(void);
/* Forgets what is pending of devices; to be called when they have been quieted, before they are
 * looked at. */
void by_interrupt_clear(void);
/* In an interrupt: what was taken, the number in it (none that is enabled: it has gone again), and
 * that it has been seen to. */
uint32_t by_interrupt_take(void);
uint32_t by_interrupt_number(uint32_t taken);
void by_interrupt_end(uint32_t taken);

#endif

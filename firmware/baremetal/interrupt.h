/*
 * The interrupt controller. Interrupts of devices are never taken. While the loop runs they are
 * masked; while it sleeps they only end the sleep, and then the loop polls every device as usual.
 * So there are no handlers and no data that two contexts share, except for the watchdog's
 * (watchdog.h), which has a higher priority than all others.
 */
#ifndef BY_BAREMETAL_INTERRUPT_H
#define BY_BAREMETAL_INTERRUPT_H

#include <stdint.h>

void by_interrupt_open(void);
/* Lets interrupt `number` end a sleep. */
void by_interrupt_enable(uint32_t number);
/* The same with the higher priority: it is taken even while the others are masked. */
void by_interrupt_enable_urgent(uint32_t number);
/* Unmasks urgent interrupts only, from now on. */
void by_interrupt_unmask(void);
/* Sleeps until any interrupt is pending; then like by_interrupt_unmask, so that an urgent one is
 * taken at once. */
void by_interrupt_sleep(void);
/* Clears pending interrupts of devices. Call it after the devices' interrupts are disabled and
 * before they are polled. */
void by_interrupt_clear(void);
/* In an interrupt: acknowledge it; return its number (one that is not enabled: it has disappeared);
 * end it. */
uint32_t by_interrupt_take(void);
uint32_t by_interrupt_number(uint32_t taken);
void by_interrupt_end(uint32_t taken);

#endif

/*
 * The interrupt controller. No interrupt is ever taken: they stay masked at the processor, where they only
 * end a sleep; then the loop looks at every device, as it does anyway. So there are no handlers and no data
 * that two contexts share.
 */
#ifndef BY_BAREMETAL_INTERRUPT_H
#define BY_BAREMETAL_INTERRUPT_H

#include <stdint.h>

void by_interrupt_open(void);
/* Lets interrupt `number` end a sleep. */
void by_interrupt_enable(uint32_t number);
/* Acknowledges what is pending; to be called when the devices that raised it have been quieted. */
void by_interrupt_clear(void);

#endif

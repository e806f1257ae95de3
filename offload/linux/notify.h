/* Notifies systemd of the service's state (sd_notify(3)'s protocol: a datagram to $NOTIFY_SOCKET).
 * Has no effect without systemd. Any thread. */
#ifndef BY_LINUX_NOTIFY_H
#define BY_LINUX_NOTIFY_H

#include <stdint.h>

/* Sends a state such as "READY=1" or "STOPPING=1". */
void by_notify(const char *state);
/* Returns the period within which systemd requires "WATCHDOG=1" ($WATCHDOG_USEC of this process, in
 * milliseconds), 0 when there is none. */
uint32_t by_notify_watchdog_ms(void);

#endif

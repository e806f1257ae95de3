/*
 * Sees that the loop turns. A thread of its own looks at the loop's pulse now and then: while it
 * changes, systemd is told that the service is well (WATCHDOG=1); where it stands still too long,
 * somebody is told, who ends the process so that it is started again. Time is counted in looks, so
 * that a process that was stopped and goes on is not taken for a loop that hangs.
 */
#ifndef BY_FIRMWARE_LINUX_WATCHDOG_H
#define BY_FIRMWARE_LINUX_WATCHDOG_H

#include <stdint.h>

struct by_watchdog;

struct by_watchdog_config {
    uint32_t limit_ms;  /* the pulse may stand still so long; 0: for ever */
    uint32_t notify_ms; /* systemd waits so long for a sign (by_watchdog_notify_ms), 0: it does not */
    uint64_t (*pulse)(void *context); /* another number whenever the loop has moved; any thread */
    void (*stuck)(void *context, uint64_t pulse,
                  uint32_t still_ms); /* called once, by the watchdog's thread */
    void *context;
};

/* How long systemd waits ($WATCHDOG_USEC of this process), 0 when it does not. */
uint32_t by_watchdog_notify_ms(void);
/* 0, and NULL when there is nothing to watch for; BY_ENOMEM or BY_EIO. */
int by_watchdog_start(struct by_watchdog **watchdog, const struct by_watchdog_config *config);
/* Ends the thread. NULL is allowed. */
void by_watchdog_stop(struct by_watchdog *watchdog);

#endif

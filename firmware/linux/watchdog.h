/*
 * Detects a hung loop. A thread of its own checks the loop's pulse periodically. While the pulse
 * changes, it notifies systemd that the service is alive (WATCHDOG=1). When the pulse has not
 * changed for too long, it calls a function that ends the process, so that it is restarted. Time is
 * counted in checks, so that a process that was stopped and continued is not mistaken for a hung
 * loop.
 */
#ifndef BY_FIRMWARE_LINUX_WATCHDOG_H
#define BY_FIRMWARE_LINUX_WATCHDOG_H

#include <stdint.h>

struct by_watchdog;

struct by_watchdog_config {
    uint32_t limit_ms;                /* how long the pulse may stay unchanged; 0: no limit */
    uint32_t notify_ms;               /* systemd's timeout (by_notify_watchdog_ms); 0: none */
    uint64_t (*pulse)(void *context); /* changes whenever the loop has run; any thread */
    void (*stuck)(void *context, uint64_t pulse,
                  uint32_t still_ms); /* called once, by the watchdog's thread */
    void *context;
};

/* Starts the thread. Returns 0, with NULL when there is nothing to watch; BY_ENOMEM or BY_EIO. */
int by_watchdog_start(struct by_watchdog **watchdog, const struct by_watchdog_config *config);
/* Ends the thread. NULL is allowed. */
void by_watchdog_stop(struct by_watchdog *watchdog);

#endif

/*
 * The device of the control channel: a virtio console with several ports (virtio 1.2, section 5.3),
 * each a line with one client at a time (line.h). The device reports when a client connects and
 * disconnects, so that each client begins with a fresh channel.
 */
#ifndef BY_BAREMETAL_CONSOLE_H
#define BY_BAREMETAL_CONSOLE_H

#include "firmware/baremetal/line.h"

/* Maximum lines (count): a banyand has two clients at a switch, and operators need some. */
#define BY_CONSOLE_LINES 4u
/* Buffers for control messages, each way (count). */
#define BY_CONSOLE_CONTROL       16u
#define BY_CONSOLE_CONTROL_BYTES 64u

struct by_console {
    struct by_virtio device;
    struct by_virtio_ring control_rx, control_tx;
    uint16_t control_next; /* index of the next control message to send */
    uint32_t line_count;
    struct by_metal_line *line[BY_CONSOLE_LINES];
    BY_CACHE_ALIGNED uint8_t control_in[BY_CONSOLE_CONTROL][BY_CONSOLE_CONTROL_BYTES];
    BY_CACHE_ALIGNED uint8_t control_out[BY_CONSOLE_CONTROL][8];
};

/* Starts the first console of the board with as many lines as it has; returns false when there is
 * none. `guard` as in by_metal_line_open. Uses memory from the plan. */
bool by_console_open(struct by_console *console, struct by_agent *agent, const struct by_guard *guard);
/* Handles input and answers. Returns the amount of work done (0: none). */
uint32_t by_console_serve(struct by_console *console);
/* Sums the refusals of guarded lines, over all lines. */
void by_console_count(const struct by_console *console, struct by_guard_counters *sum);
/* Enables or disables interrupts. Returns true when there is work already. */
bool by_console_alert(struct by_console *console, bool wanted);

#endif

/*
 * The control channel's device: a virtio console with several ports (virtio 1.2, section 5.3), each
 * a line with one client at a time (line.h). The device says when a client comes and goes, so that
 * each one begins with a fresh channel.
 */
#ifndef BY_BAREMETAL_CONSOLE_H
#define BY_BAREMETAL_CONSOLE_H

#include "firmware/baremetal/line.h"

/* Lines at most (count): a banyand has two clients at a switch, and people want to look. */
#define BY_CONSOLE_LINES 4u
/* Buffers for control messages, each way (count). */
#define BY_CONSOLE_CONTROL       16u
#define BY_CONSOLE_CONTROL_BYTES 64u

struct by_console {
    struct by_virtio device;
    struct by_virtio_ring control_rx, control_tx;
    uint16_t control_next; /* place of the next control message to send */
    uint32_t line_count;
    struct by_metal_line *line[BY_CONSOLE_LINES];
    BY_CACHE_ALIGNED uint8_t control_in[BY_CONSOLE_CONTROL][BY_CONSOLE_CONTROL_BYTES];
    BY_CACHE_ALIGNED uint8_t control_out[BY_CONSOLE_CONTROL][8];
};

/* Starts the first console of the board with as many lines as it has; false when there is none.
 * `guard` as by_metal_line_open has it. Memory from the plan. */
bool by_console_open(struct by_console *console, struct by_agent *agent, const struct by_guard *guard);
/* Takes what came, answers. Returns how much was done (0: nothing). */
uint32_t by_console_serve(struct by_console *console);
/* What was refused for want of the key, on all lines. */
void by_console_count(const struct by_console *console, struct by_guard_counters *sum);
/* Asks for interrupts, or none. True when there is work already. */
bool by_console_alert(struct by_console *console, bool wanted);

#endif

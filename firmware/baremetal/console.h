/*
 * The control channel's line: port 1 of a virtio console (virtio 1.2, section 5.3). The bytes are those of
 * the UNIX sockets of banyan-switchd: a length, a message. The device says when a client comes and goes, so
 * that each one begins with a fresh channel; it serves one client at a time.
 */
#ifndef BY_BAREMETAL_CONSOLE_H
#define BY_BAREMETAL_CONSOLE_H

#include "firmware/agent/agent.h"
#include "firmware/baremetal/virtio.h"

/* Buffers for what comes in (count), of BY_CONSOLE_IN_BYTES each; for control messages, each way (count). */
#define BY_CONSOLE_IN            8u
#define BY_CONSOLE_IN_BYTES      4096u
#define BY_CONSOLE_CONTROL       16u
#define BY_CONSOLE_CONTROL_BYTES 64u

struct by_console {
    struct by_virtio device;
    struct by_ring rx, tx, control_rx, control_tx;
    bool is_sending;
    bool is_fresh;  /* the client that came last has not sent a whole message yet */
    uint16_t in_at; /* the buffer that is being read, when in_bytes > 0 */
    uint32_t in_bytes, in_done;
    uint16_t control_next; /* place of the next control message to send */
    struct by_agent *agent;
    struct by_channel channel;
    uint8_t in[BY_CONSOLE_IN][BY_CONSOLE_IN_BYTES];
    uint8_t control_in[BY_CONSOLE_CONTROL][BY_CONSOLE_CONTROL_BYTES];
    uint8_t control_out[BY_CONSOLE_CONTROL][8];
    uint8_t out[BY_CHANNEL_OUT_MIN];
};

/* Starts the first console of the board; false when there is none. */
bool by_console_open(struct by_console *console, struct by_agent *agent);
/* Takes what came, answers. Returns how much was done (0: nothing). */
uint32_t by_console_serve(struct by_console *console);
/* Asks for interrupts, or none. True when there is work already. */
bool by_console_alert(struct by_console *console, bool wanted);

#endif

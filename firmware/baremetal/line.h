/*
 * One line of the control channel: a port of the virtio console, with one client at a time. The
 * protocol is that of banyan-switchd's UNIX sockets: a length, a message; under a pre-shared key
 * where the board has one (firmware/agent/guard.h). Neighbour: console.c, the device of the lines.
 */
#ifndef BY_BAREMETAL_LINE_H
#define BY_BAREMETAL_LINE_H

#include "firmware/agent/agent.h"
#include "firmware/baremetal/cache.h"
#include "firmware/baremetal/virtio.h"

/* Buffers for input (count), of BY_LINE_IN_BYTES each. */
#define BY_LINE_IN       8u
#define BY_LINE_IN_BYTES 4096u

struct by_metal_line {
    struct by_virtio_ring rx, tx;
    bool is_sending;
    bool is_fresh;  /* the current client has not sent a complete message yet */
    uint16_t in_at; /* the buffer being read, when in_bytes > 0 */
    uint32_t in_bytes, in_done;
    struct by_agent *agent;
    bool is_guarded;
    struct by_guard guard;
    struct by_channel channel;
    BY_CACHE_ALIGNED uint8_t in[BY_LINE_IN][BY_LINE_IN_BYTES];
    BY_CACHE_ALIGNED uint8_t out[BY_CHANNEL_OUT_MIN];
};

/* Sets up the rings of port `port` of a console. `guard`: only requests under its key are accepted;
 * NULL: plain. */
void by_metal_line_open(struct by_metal_line *line, const struct by_virtio *device, uint32_t port,
                        struct by_agent *agent, const struct by_guard *guard);
/* Provides the buffers to the device, once it runs. */
void by_metal_line_start(struct by_metal_line *line);
/* Resets the line when a client connects or disconnects. */
void by_metal_line_renew(struct by_metal_line *line);
/* Reclaims sent buffers; returns the amount of work done (0: none). */
uint32_t by_metal_line_reclaim(struct by_metal_line *line);
/* Returns true when there are bytes to read now. */
bool by_metal_line_fetch(struct by_metal_line *line);
/* Reads these bytes up to the end of one message, and sends its answer. */
void by_metal_line_read(struct by_metal_line *line);
/* Enables or disables interrupts. Returns true when there is work already. */
bool by_metal_line_alert(struct by_metal_line *line, bool wanted);

#endif

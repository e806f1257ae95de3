/* The control channel over a virtio console; see console.h. */
#include "firmware/baremetal/console.h"

#include "firmware/baremetal/log.h"
#include "firmware/baremetal/memory.h"

/* Port 0 is unused: a console that has it can be of the older kind without ports. */
enum { FIRST_PORT = 1, QUEUE_CONTROL_RX = 2, QUEUE_CONTROL_TX = 3 };
enum { DEVICE_READY = 0, PORT_ADD = 1, PORT_READY = 3, PORT_OPEN = 6 };
#define FEATURE_MULTIPORT (UINT64_C(1) << 1)
/* The offset of the low byte of `max_nr_ports` in the device's configuration. */
#define CONFIG_PORTS  4u
#define MESSAGE_BYTES 8u
#define NO_PORT       0xffffffffu

/* Control messages are little-endian: port (4 bytes), event (2), value (2). */
static void put_control(struct by_console *console, uint32_t port, uint16_t event, uint16_t value)
{
    uint16_t at = console->control_next++ % BY_CONSOLE_CONTROL, head;
    uint8_t *message = console->control_out[at];
    uint32_t bytes;

    while (by_virtio_ring_take(&console->control_tx, &head, &bytes))
        ;
    for (unsigned i = 0; i < 4; i++)
        message[i] = (uint8_t)(port >> 8 * i);
    message[4] = (uint8_t)event;
    message[5] = (uint8_t)(event >> 8);
    message[6] = (uint8_t)value;
    message[7] = (uint8_t)(value >> 8);
    by_cache_clean(message, MESSAGE_BYTES);
    console->control_tx.descriptor[at] =
        (struct by_ring_descriptor){.address = (uintptr_t)message, .bytes = MESSAGE_BYTES};
    by_virtio_ring_offer(&console->control_tx, at);
    by_virtio_ring_publish(&console->control_tx);
}

static void post(struct by_console *console, uint16_t at)
{
    by_cache_drop(console->control_in[at], BY_CONSOLE_CONTROL_BYTES);
    console->control_rx.descriptor[at] =
        (struct by_ring_descriptor){.address = (uintptr_t)console->control_in[at],
                                    .bytes = BY_CONSOLE_CONTROL_BYTES,
                                    .flags = BY_RING_DEVICE_WRITES};
    by_virtio_ring_offer(&console->control_rx, at);
}

static void open_lines(struct by_console *console, struct by_agent *agent, const struct by_guard *guard)
{
    uint32_t ports = by_virtio_config8(&console->device, CONFIG_PORTS);

    while (console->line_count < BY_CONSOLE_LINES && FIRST_PORT + console->line_count < ports) {
        struct by_metal_line *line = by_memory_take("a control line", sizeof *line);

        by_metal_line_open(line, &console->device, FIRST_PORT + console->line_count, agent, guard);
        console->line[console->line_count++] = line;
    }
}

bool by_console_open(struct by_console *console, struct by_agent *agent, const struct by_guard *guard)
{
    if (!by_virtio_find(BY_VIRTIO_CONSOLE, 0, &console->device))
        return false;
    if (by_virtio_start(&console->device, FEATURE_MULTIPORT) != FEATURE_MULTIPORT)
        return false;
    by_virtio_ring(&console->device, QUEUE_CONTROL_RX, &console->control_rx);
    by_virtio_ring(&console->device, QUEUE_CONTROL_TX, &console->control_tx);
    open_lines(console, agent, guard);
    for (uint16_t i = 0; i < BY_CONSOLE_CONTROL; i++)
        post(console, i);
    by_virtio_run(&console->device);
    by_virtio_ring_publish(&console->control_rx);
    for (uint32_t i = 0; i < console->line_count; i++)
        by_metal_line_start(console->line[i]);
    put_control(console, NO_PORT, DEVICE_READY, 1);
    return console->line_count > 0;
}

static void take_control(struct by_console *console, const uint8_t *message, uint32_t bytes)
{
    uint32_t port, line;
    uint16_t event;

    if (bytes < MESSAGE_BYTES)
        return;
    port = (uint32_t)message[0] | (uint32_t)message[1] << 8 | (uint32_t)message[2] << 16 |
           (uint32_t)message[3] << 24;
    event = (uint16_t)(message[4] | message[5] << 8);
    line = port - FIRST_PORT;
    if (event == PORT_ADD) {
        put_control(console, port, PORT_READY, 1);
        if (line < console->line_count)
            put_control(console, port, PORT_OPEN, 1);
    } else if (event == PORT_OPEN && line < console->line_count) {
        by_metal_line_renew(console->line[line]);
    }
}

static uint32_t take_controls(struct by_console *console)
{
    uint32_t done = 0, bytes;
    uint16_t at;

    while (by_virtio_ring_take(&console->control_rx, &at, &bytes)) {
        if (at < BY_CONSOLE_CONTROL) {
            by_cache_drop(console->control_in[at], BY_CONSOLE_CONTROL_BYTES);
            take_control(console, console->control_in[at], bytes);
            post(console, at);
        }
        by_virtio_ring_publish(&console->control_rx);
        done++;
    }
    return done;
}

uint32_t by_console_serve(struct by_console *console)
{
    uint32_t done = take_controls(console);

    for (uint32_t i = 0; i < console->line_count; i++) {
        struct by_metal_line *line = console->line[i];

        done += by_metal_line_reclaim(line);
        /* Input of a client is handled in pieces, so that a client that sends endlessly does not
         * delay packets. */
        for (uint32_t k = 0; k < BY_LINE_IN && by_metal_line_fetch(line); k++) {
            /* The arrival of a client is reported before its first bytes, but on another ring. */
            take_controls(console);
            by_metal_line_read(line);
            done++;
        }
    }
    return done;
}

void by_console_count(const struct by_console *console, struct by_guard_counters *sum)
{
    *sum = (struct by_guard_counters){0};
    for (uint32_t i = 0; i < console->line_count; i++) {
        const struct by_guard_counters *counters = &console->line[i]->guard.counters;

#define X(name, help) sum->name += counters->name;
        BY_GUARD_COUNTER_LIST(X)
#undef X
    }
}

bool by_console_alert(struct by_console *console, bool wanted)
{
    bool is_there = by_virtio_ring_alert(&console->control_rx, wanted);

    for (uint32_t i = 0; i < console->line_count; i++)
        is_there = by_metal_line_alert(console->line[i], wanted) || is_there;
    return is_there;
}

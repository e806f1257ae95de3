/* The control channel over a virtio console; see console.h. */
#include "firmware/baremetal/console.h"

#include "firmware/baremetal/log.h"

enum { PORT = 1, QUEUE_CONTROL_RX = 2, QUEUE_CONTROL_TX = 3, QUEUE_RX = 4, QUEUE_TX = 5 };
enum { DEVICE_READY = 0, PORT_ADD = 1, PORT_READY = 3, PORT_OPEN = 6 };
#define FEATURE_MULTIPORT (UINT64_C(1) << 1)
#define MESSAGE_BYTES     8u
#define NO_PORT           0xffffffffu
/* What a request begins with, at least (bytes): its length, and its version. */
#define BEGIN_BYTES 6u

/* Control messages are little-endian: port (4 bytes), event (2), value (2). */
static void put_control(struct by_console *console, uint32_t port, uint16_t event, uint16_t value)
{
    uint16_t at = console->control_next++ % BY_CONSOLE_CONTROL, head;
    uint8_t *message = console->control_out[at];
    uint32_t bytes;

    while (by_ring_take(&console->control_tx, &head, &bytes))
        ;
    for (unsigned i = 0; i < 4; i++)
        message[i] = (uint8_t)(port >> 8 * i);
    message[4] = (uint8_t)event;
    message[5] = (uint8_t)(event >> 8);
    message[6] = (uint8_t)value;
    message[7] = (uint8_t)(value >> 8);
    console->control_tx.descriptor[at] =
        (struct by_ring_descriptor){.address = (uintptr_t)message, .bytes = MESSAGE_BYTES};
    by_ring_offer(&console->control_tx, at);
    by_ring_publish(&console->control_tx);
}

static void post(struct by_ring *ring, uint16_t at, uint8_t *buffer, uint32_t bytes)
{
    ring->descriptor[at] = (struct by_ring_descriptor){
        .address = (uintptr_t)buffer, .bytes = bytes, .flags = BY_RING_DEVICE_WRITES};
    by_ring_offer(ring, at);
}

bool by_console_open(struct by_console *console, struct by_agent *agent)
{
    struct by_virtio device;

    if (!by_virtio_find(BY_VIRTIO_CONSOLE, 0, &device))
        return false;
    console->device = device;
    console->agent = agent;
    if (by_virtio_start(&device, FEATURE_MULTIPORT) != FEATURE_MULTIPORT)
        return false;
    by_virtio_ring(&device, QUEUE_CONTROL_RX, &console->control_rx);
    by_virtio_ring(&device, QUEUE_CONTROL_TX, &console->control_tx);
    by_virtio_ring(&device, QUEUE_RX, &console->rx);
    by_virtio_ring(&device, QUEUE_TX, &console->tx);
    by_channel_init(&console->channel);
    for (uint16_t i = 0; i < BY_CONSOLE_CONTROL; i++)
        post(&console->control_rx, i, console->control_in[i], BY_CONSOLE_CONTROL_BYTES);
    for (uint16_t i = 0; i < BY_CONSOLE_IN; i++)
        post(&console->rx, i, console->in[i], BY_CONSOLE_IN_BYTES);
    by_virtio_run(&device);
    by_ring_publish(&console->control_rx);
    by_ring_publish(&console->rx);
    put_control(console, NO_PORT, DEVICE_READY, 1);
    return true;
}

static void take_control(struct by_console *console, const uint8_t *message, uint32_t bytes)
{
    uint32_t port;
    uint16_t event;

    if (bytes < MESSAGE_BYTES)
        return;
    port = (uint32_t)message[0] | (uint32_t)message[1] << 8 | (uint32_t)message[2] << 16 |
           (uint32_t)message[3] << 24;
    event = (uint16_t)(message[4] | message[5] << 8);
    if (event == PORT_ADD) {
        put_control(console, port, PORT_READY, 1);
        if (port == PORT)
            put_control(console, port, PORT_OPEN, 1);
    } else if (event == PORT_OPEN && port == PORT) {
        by_channel_init(&console->channel); /* a client came, or one went */
        console->is_fresh = true;
    }
}

/* The next bytes that came; false when there are none. */
static bool fetch(struct by_console *console)
{
    if (console->in_done < console->in_bytes)
        return true;
    if (console->in_bytes > 0) {
        post(&console->rx, console->in_at, console->in[console->in_at], BY_CONSOLE_IN_BYTES);
        by_ring_publish(&console->rx);
    }
    console->in_bytes = console->in_done = 0;
    return by_ring_take(&console->rx, &console->in_at, &console->in_bytes) && console->in_bytes > 0;
}

/* Can these bytes begin a request: a length that one may have, then field 1, version 1? As far as they go. */
static bool may_begin(const uint8_t *data, uint32_t bytes)
{
    static const uint8_t field[2] = {0x08, BY_CONTROL_VERSION};
    uint32_t length = 0;

    for (uint32_t i = 0; i < bytes && i < BY_CONTROL_LENGTH_BYTES; i++)
        length |= (uint32_t)data[i] << (24 - 8 * i);
    if (length > BY_REQUEST_BYTES_MAX)
        return false;
    for (uint32_t i = BY_CONTROL_LENGTH_BYTES; i < bytes && i < BY_CONTROL_LENGTH_BYTES + sizeof field; i++)
        if (data[i] != field[i - BY_CONTROL_LENGTH_BYTES])
            return false;
    return true;
}

/*
 * Bytes of a client that was killed within a message may lie before those of the next one, and the device
 * does not say where one ends: until the first message of a client is complete, what cannot begin a request
 * is passed over, and what can begins anew.
 */
static bool is_left_over(struct by_console *console)
{
    bool begins;

    if (!console->is_fresh || console->in_done > 0)
        return false;
    begins = may_begin(console->in[console->in_at], console->in_bytes);
    if (begins && console->in_bytes >= BEGIN_BYTES)
        by_channel_init(&console->channel);
    return !begins && console->channel.have == 0;
}

/* Reads up to the end of one message, and sends its answer. */
static void read_on(struct by_console *console)
{
    size_t used;
    int32_t made;

    if (is_left_over(console)) {
        console->in_done = console->in_bytes;
        return;
    }
    made = by_channel_step(&console->channel, console->agent, console->in[console->in_at] + console->in_done,
                           console->in_bytes - console->in_done, &used, console->out, sizeof console->out);

    /* After an impossible length the rest of this client's bytes mean nothing. */
    console->in_done = made < 0 ? console->in_bytes : console->in_done + (uint32_t)used;
    if (made <= 0)
        return;
    console->is_fresh = false;
    console->tx.descriptor[0] =
        (struct by_ring_descriptor){.address = (uintptr_t)console->out, .bytes = (uint32_t)made};
    by_ring_offer(&console->tx, 0);
    by_ring_publish(&console->tx);
    console->is_sending = true;
}

static uint32_t take_controls(struct by_console *console)
{
    uint32_t done = 0, bytes;
    uint16_t at;

    while (by_ring_take(&console->control_rx, &at, &bytes)) {
        take_control(console, console->control_in[at], bytes);
        post(&console->control_rx, at, console->control_in[at], BY_CONSOLE_CONTROL_BYTES);
        by_ring_publish(&console->control_rx);
        done++;
    }
    return done;
}

uint32_t by_console_serve(struct by_console *console)
{
    uint32_t done = take_controls(console), bytes;
    uint16_t at;

    if (console->is_sending && by_ring_take(&console->tx, &at, &bytes)) {
        console->is_sending = false;
        done++;
    }
    while (!console->is_sending && fetch(console)) {
        /* That a client came is told before its first bytes are, but on another ring. */
        take_controls(console);
        read_on(console);
        done++;
    }
    return done;
}

bool by_console_alert(struct by_console *console, bool wanted)
{
    bool control = by_ring_alert(&console->control_rx, wanted);
    bool rx = by_ring_alert(&console->rx, wanted) && !console->is_sending;
    bool tx = by_ring_alert(&console->tx, wanted && console->is_sending);

    return control || rx || tx;
}

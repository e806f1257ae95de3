/* A line of the control channel; see line.h. */
#include "firmware/baremetal/line.h"

/* Minimum bytes to recognise a request: its length, and its version or two letters of its kind. */
#define BEGIN_BYTES 6u

static uint32_t queue_rx(uint32_t port)
{
    return port == 0 ? 0 : 2 * port + 2;
}

static void post(struct by_metal_line *line, uint16_t at)
{
    by_cache_drop(line->in[at], BY_LINE_IN_BYTES);
    line->rx.descriptor[at] = (struct by_ring_descriptor){
        .address = (uintptr_t)line->in[at], .bytes = BY_LINE_IN_BYTES, .flags = BY_RING_DEVICE_WRITES};
    by_virtio_ring_offer(&line->rx, at);
}

void by_metal_line_open(struct by_metal_line *line, const struct by_virtio *device, uint32_t port,
                        struct by_agent *agent, const struct by_guard *guard)
{
    line->agent = agent;
    line->is_guarded = guard != NULL;
    if (guard)
        by_guard_open(&line->guard, &guard->key, guard->boot_nonce, (uint16_t)port);
    by_metal_line_renew(line);
    by_virtio_ring(device, queue_rx(port), &line->rx);
    by_virtio_ring(device, queue_rx(port) + 1, &line->tx);
    for (uint16_t i = 0; i < BY_LINE_IN; i++)
        post(line, i);
}

void by_metal_line_start(struct by_metal_line *line)
{
    by_virtio_ring_publish(&line->rx);
}

void by_metal_line_renew(struct by_metal_line *line)
{
    by_channel_init(&line->channel, line->is_guarded ? &line->guard : NULL);
    line->is_fresh = true;
}

uint32_t by_metal_line_reclaim(struct by_metal_line *line)
{
    uint32_t bytes;
    uint16_t at;

    if (!line->is_sending || !by_virtio_ring_take(&line->tx, &at, &bytes))
        return 0;
    line->is_sending = false;
    return 1;
}

bool by_metal_line_fetch(struct by_metal_line *line)
{
    if (line->is_sending || by_channel_wait_ns(&line->channel, line->agent) > 0)
        return false;
    if (line->in_done < line->in_bytes)
        return true;
    if (line->in_bytes > 0) {
        post(line, line->in_at);
        by_virtio_ring_publish(&line->rx);
    }
    line->in_bytes = line->in_done = 0;
    if (!by_virtio_ring_take(&line->rx, &line->in_at, &line->in_bytes))
        return false;
    if (line->in_bytes > BY_LINE_IN_BYTES)
        line->in_bytes = BY_LINE_IN_BYTES;
    if (line->in_bytes > 0) {
        by_cache_drop(line->in[line->in_at], line->in_bytes);
    } else { /* nothing is in it */
        post(line, line->in_at);
        by_virtio_ring_publish(&line->rx);
    }
    return line->in_bytes > 0;
}

/* Returns whether `data`, as far as it extends, has `what` behind its length. */
static bool has_behind(const uint8_t *data, uint32_t bytes, const char *what, uint32_t what_bytes)
{
    for (uint32_t i = 0; i < what_bytes && BY_CONTROL_LENGTH_BYTES + i < bytes; i++)
        if (data[BY_CONTROL_LENGTH_BYTES + i] != (uint8_t)what[i])
            return false;
    return true;
}

/* Returns whether these bytes, as far as they extend, may begin a client's first message: a valid
 * length, then field 1, version 1; or, on a guarded line, a session request. */
static bool may_begin(const struct by_metal_line *line, const uint8_t *data, uint32_t bytes)
{
    static const char plain[] = {0x08, BY_CONTROL_VERSION}, keyed[] = {'B', 'Y', 'K', '1'};
    uint32_t length = 0;

    for (uint32_t i = 0; i < bytes && i < BY_CONTROL_LENGTH_BYTES; i++)
        length |= (uint32_t)data[i] << (24 - 8 * i);
    return length <= BY_REQUEST_BYTES_MAX &&
           (has_behind(data, bytes, plain, sizeof plain) ||
            (line->is_guarded && has_behind(data, bytes, keyed, sizeof keyed)));
}

/*
 * Discards remains of an earlier client. Bytes of a client that was killed within a message may
 * precede those of the next one, and the device does not report the boundary. Until a client's
 * first message is complete, bytes that cannot begin a request are skipped, and the search restarts
 * at bytes that can. Under a key a client begins with a session request; sealed frames before that
 * belong to no session and are counted as such.
 */
static bool is_left_over(struct by_metal_line *line)
{
    static const char sealed[] = {'B', 'Y', 'K', '3'};
    const uint8_t *data = line->in[line->in_at];
    bool begins;

    if (!line->is_fresh || line->in_done > 0)
        return false;
    begins = may_begin(line, data, line->in_bytes);
    if (begins && line->in_bytes >= BEGIN_BYTES)
        by_metal_line_renew(line);
    if (begins || line->channel.have > 0)
        return false;
    line->guard.counters.closed +=
        line->in_bytes >= BEGIN_BYTES && has_behind(data, line->in_bytes, sealed, sizeof sealed);
    return true;
}

void by_metal_line_read(struct by_metal_line *line)
{
    size_t used;
    int32_t made;

    if (is_left_over(line)) {
        line->in_done = line->in_bytes;
        return;
    }
    made = by_channel_step(&line->channel, line->agent, line->in[line->in_at] + line->in_done,
                           line->in_bytes - line->in_done, &used, line->out, sizeof line->out);

    /* After an impossible length the rest of this client's bytes has no meaning. */
    line->in_done = made < 0 ? line->in_bytes : line->in_done + (uint32_t)used;
    if (made <= 0)
        return;
    line->is_fresh = false;
    by_cache_clean(line->out, (uint32_t)made);
    line->tx.descriptor[0] =
        (struct by_ring_descriptor){.address = (uintptr_t)line->out, .bytes = (uint32_t)made};
    by_virtio_ring_offer(&line->tx, 0);
    by_virtio_ring_publish(&line->tx);
    line->is_sending = true;
}

bool by_metal_line_alert(struct by_metal_line *line, bool wanted)
{
    bool rx = by_virtio_ring_alert(&line->rx, wanted) || line->in_done < line->in_bytes;
    bool tx = by_virtio_ring_alert(&line->tx, wanted && line->is_sending);

    return (rx && !line->is_sending) || tx;
}

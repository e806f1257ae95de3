/*
 * Turns the engine's outputs into frames. A result for many children is one payload in the engine's
 * memory: each port gets its own headers, chained to it, and the reference is returned to the
 * engine when the port has sent it.
 */
#include "firmware/baremetal/switch.h"
#include "offload/base/bytes.h"
#include "offload/wire/stripe.h"

#define HEADERS (BY_FRAME_HEADER_BYTES + BY_WIRE_HEADER_BYTES)

static void write_headers(struct by_batch *batch, const struct by_tx *tx, uint8_t *room)
{
    const struct by_batch_port *port = &batch->port[tx->port];
    const uint8_t *mac = by_batch_mac(batch, tx->port, tx->dst_ip);
    struct by_frame frame = {
        .src_ip = port->ip,
        .dst_ip = tx->dst_ip,
        .src_port = by_source_port(by_get32(tx->header + BY_HEADER_AT_JOB),
                                   by_get32(tx->header + BY_HEADER_AT_SEQ), tx->udp_port),
        .dst_port = tx->udp_port,
        .ecn = tx->ecn,
        .bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + tx->payload_bytes),
    };

    by_copy(frame.src_mac, port->mac, BY_MAC_BYTES);
    by_copy(frame.dst_mac, mac != NULL ? mac : port->peer_mac, BY_MAC_BYTES);
    by_frame_build(&frame, room);
    by_copy(room + BY_FRAME_HEADER_BYTES, tx->header, BY_WIRE_HEADER_BYTES);
}

/* Copies a payload that belongs to the action alone into a buffer of the pool, which is freed after
 * sending. */
static const uint8_t *copy_payload(struct by_metal_switch *self, const struct by_tx *tx, uint16_t *buffer)
{
    uint8_t *copy;

    *buffer = by_pool_take(&self->pool);
    if (*buffer == BY_BUFFER_NONE)
        return NULL;
    copy = by_pool_frame(&self->pool, *buffer);
    by_copy(copy, tx->payload, tx->payload_bytes);
    self->batch.counters.tx_copied++;
    return copy;
}

static void send_one(struct by_metal_switch *self, const struct by_tx *tx)
{
    struct by_metal_net *net = self->net[tx->port];
    uint8_t *head = by_net_head(net);
    const uint8_t *payload = tx->payload;
    uint16_t buffer = BY_BUFFER_NONE;

    if (head && payload && tx->ref == BY_REF_NONE)
        payload = copy_payload(self, tx, &buffer);
    if (!head || (tx->payload && !payload)) {
        self->batch.counters.tx_no_memory++;
        if (tx->ref != BY_REF_NONE)
            by_engine_release(self->engine, tx->ref);
        return;
    }
    write_headers(&self->batch, tx, head);
    if (payload) {
        self->batch.counters.tx_shared += tx->ref != BY_REF_NONE;
        by_net_send(net, HEADERS, payload, tx->payload_bytes, tx->ref, buffer);
    } else {
        by_copy(head + HEADERS, tx->small, tx->payload_bytes);
        by_net_send(net, HEADERS + tx->payload_bytes, NULL, 0, tx->ref, BY_BUFFER_NONE);
    }
}

void by_switch_send(void *context, const struct by_tx *tx, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        send_one(context, &tx[i]);
}

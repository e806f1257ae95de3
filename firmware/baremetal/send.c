/*
 * Turns the engine's actions into frames. A result for many children is one payload in the engine's
 * memory: each port gets its own headers, chained to it, and the reference is returned to the
 * engine when the port has sent it. A relayed packet is sent in the buffer in which it arrived,
 * with new MAC addresses.
 */
#include "firmware/baremetal/switch.h"
#include "offload/base/bytes.h"

#define ETHERTYPE_AT  12u
#define ETHERTYPE_ARP 0x0806u
#define HEADERS       (BY_FRAME_HEADER_BYTES + BY_WIRE_HEADER_BYTES)

static void write_headers(const struct by_metal_net *net, const struct by_tx *tx, uint8_t *room)
{
    struct by_frame frame = {
        .src_ip = net->own_ip,
        .dst_ip = tx->dst_ip,
        .src_port = by_frame_source_port(by_get32(tx->header + 4)),
        .dst_port = tx->udp_port,
        .ecn = tx->ecn,
        .bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + tx->payload_bytes),
    };

    by_copy(frame.src_mac, net->own_mac, BY_MAC_BYTES);
    by_copy(frame.dst_mac, net->peer_mac, BY_MAC_BYTES);
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
    self->counters.tx_copied++;
    return copy;
}

static void send_one(struct by_metal_switch *self, struct by_metal_net *net, const struct by_tx *tx)
{
    uint8_t *head = by_net_head(net);
    const uint8_t *payload = tx->payload;
    uint16_t buffer = BY_BUFFER_NONE;

    if (head && payload && tx->ref == BY_REF_NONE)
        payload = copy_payload(self, tx, &buffer);
    if (!head || (tx->payload && !payload)) {
        self->counters.tx_no_memory++;
        if (tx->ref != BY_REF_NONE)
            by_engine_release(self->engine, tx->ref);
        return;
    }
    write_headers(net, tx, head);
    if (payload) {
        self->counters.tx_shared += tx->ref != BY_REF_NONE;
        by_net_send(net, HEADERS, payload, tx->payload_bytes, tx->ref, buffer);
    } else {
        by_copy(head + HEADERS, tx->small, tx->payload_bytes);
        by_net_send(net, HEADERS + tx->payload_bytes, NULL, 0, tx->ref, BY_BUFFER_NONE);
    }
}

static void relay(struct by_metal_switch *self, struct by_metal_net *net, const struct by_tx *tx,
                  uint32_t index)
{
    uint16_t *buffer = &self->buffer[index];
    uint8_t *frame;

    if (*buffer == BY_BUFFER_NONE) {
        self->counters.tx_no_memory++;
        return;
    }
    frame = by_pool_frame(&self->pool, *buffer);
    by_copy(frame, net->peer_mac, BY_MAC_BYTES);
    by_copy(frame + BY_MAC_BYTES, net->own_mac, BY_MAC_BYTES);
    /* Clears a checksum that the sender may have left to its link: no checksum is legal (RFC 768),
     * a wrong one is not. */
    by_put16(frame + BY_FRAME_AT_UDP_CHECKSUM, 0);
    if (tx->ecn != self->rx[index].ecn)
        by_frame_mark(frame, tx->ecn);
    self->counters.tx_relayed++;
    by_net_forward(net, *buffer);
    *buffer = BY_BUFFER_NONE;
}

/* Keeps the received frame until it is due. */
static void park(struct by_metal_switch *self, const struct by_tx *tx, uint16_t *buffer)
{
    if (*buffer == BY_BUFFER_NONE)
        return;
    if (by_park_put(&self->park, self->now_ns + tx->wait_ns, (void *)(uintptr_t)*buffer, tx->port))
        *buffer = BY_BUFFER_NONE; /* the frame is still in use */
    else
        self->counters.tx_no_memory++; /* does not happen: the engine is told the available room */
}

void by_switch_send(struct by_metal_switch *self, const struct by_tx *tx, uint32_t tx_count,
                    uint32_t rx_first)
{
    for (uint32_t i = 0; i < tx_count; i++, tx++) {
        struct by_metal_net *net = tx->port < self->port_count ? self->net[tx->port] : NULL;

        if (!net || !net->addressed) {
            self->counters.tx_no_port++;
            if (tx->kind == BY_TX_SEND && tx->ref != BY_REF_NONE)
                by_engine_release(self->engine, tx->ref);
        } else if (tx->kind == BY_TX_RELAY) {
            relay(self, net, tx, rx_first + tx->rx_index);
        } else if (tx->kind == BY_TX_HOLD) {
            park(self, tx, &self->buffer[rx_first + tx->rx_index]);
        } else {
            send_one(self, net, tx);
        }
    }
}

bool by_switch_arp(struct by_metal_switch *self, struct by_metal_net *net, uint16_t buffer)
{
    const uint8_t *frame = by_pool_frame(&self->pool, buffer);
    uint32_t bytes = self->pool.buffer[buffer].bytes;
    uint8_t reply[BY_FRAME_HEADER_BYTES], *head;

    if (bytes < BY_FRAME_HEADER_BYTES || by_get16(frame + ETHERTYPE_AT) != ETHERTYPE_ARP)
        return false;
    bytes = net->addressed ? (uint32_t)by_arp_reply(frame, bytes, net->own_ip, net->own_mac, reply) : 0;
    if (bytes == 0)
        return true;
    head = by_net_head(net);
    if (!head) {
        self->counters.tx_no_memory++;
        return true;
    }
    by_copy(head, reply, bytes);
    by_net_send(net, bytes, NULL, 0, BY_REF_NONE, BY_BUFFER_NONE);
    self->counters.arp_replies++;
    return true;
}

/* The transport over the cables of a fabric in memory: a queue per member; packets are copied once.
 * One thread. */
#include "host-driver/memory.h"

#include <stdlib.h>
#include <string.h>

#include "host-driver/error.h"
#include "offload/base/bytes.h"

static struct by_memory_packet *take_packet(struct banyan_fabric *fabric)
{
    struct by_memory_packet *packet = fabric->spare;

    if (packet != NULL) {
        fabric->spare = packet->next;
        return packet;
    }
    return aligned_alloc(64, (sizeof(*packet) + BY_WIRE_HEADER_BYTES + BY_PAYLOAD_MAX + 63) / 64 * 64);
}

static void give_packet(struct banyan_fabric *fabric, struct by_memory_packet *packet)
{
    packet->next = fabric->spare;
    fabric->spare = packet;
}

void by_memory_drain(struct banyan_fabric *fabric)
{
    while (fabric->spare != NULL) {
        struct by_memory_packet *next = fabric->spare->next;

        free(fabric->spare);
        fabric->spare = next;
    }
}

static uint32_t memory_rx(struct by_transport *transport, struct by_rx rx[BY_RX_BATCH])
{
    struct by_memory *memory = (struct by_memory *)transport;
    uint32_t count = 0;

    while (count < BY_RX_BATCH && memory->first != NULL) {
        struct by_memory_packet *packet = memory->first;

        memory->first = packet->next;
        if (memory->first == NULL)
            memory->last = &memory->first;
        packet->next = memory->lent;
        memory->lent = packet;
        rx[count++] = (struct by_rx){.data = packet->data,
                                     .bytes = packet->bytes,
                                     .port = packet->port,
                                     .src_ip = packet->src_ip,
                                     .dst_ip = packet->dst_ip,
                                     .ecn = packet->ecn};
        transport->ports[packet->port].rx_packets++;
        transport->ports[packet->port].rx_bytes += by_packet_bytes(packet->dst_ip, packet->bytes);
    }
    return count;
}

static void memory_rx_done(struct by_transport *transport)
{
    struct by_memory *memory = (struct by_memory *)transport;

    while (memory->lent != NULL) {
        struct by_memory_packet *packet = memory->lent;

        memory->lent = packet->next;
        give_packet(memory->node->fabric, packet);
    }
}

static int listens(const struct by_memory *memory, const struct by_memory_packet *packet)
{
    if (memory->node->own != NULL)
        return 1; /* a switch accepts any packet, since it may have to relay it */
    if (packet->udp_port != 0)
        return memory->udp_port == packet->udp_port;
    return packet->bytes >= BY_WIRE_HEADER_BYTES &&
           by_get16(packet->data + BY_HEADER_AT_JOB) == memory->progress->job;
}

/* Delivers the packet over the cable at the sender's `port`: to the switch there, or to the job of
 * the host that listens on the UDP port. */
static void deliver(struct by_memory *from, uint16_t port_index, struct by_memory_packet *packet)
{
    struct by_fabric_port *port = &from->node->ports[port_index];
    struct by_port_counters *counters = &from->base.ports[port_index];
    struct by_memory *to;

    counters->tx_packets++;
    counters->tx_bytes += by_packet_bytes(packet->dst_ip, packet->bytes);
    port->sent_packets++;
    port->sent_bytes += by_packet_bytes(packet->dst_ip, packet->bytes);
    for (to = from->node->fabric->members; to != NULL; to = to->next)
        if (to->node == port->peer && listens(to, packet))
            break;
    if (to == NULL) {
        give_packet(from->node->fabric, packet); /* no receiver there (yet) */
        return;
    }
    packet->port = port->peer_port;
    packet->next = NULL;
    *to->last = packet;
    to->last = &packet->next;
}

static void memory_tx(struct by_transport *transport, const struct by_tx *const *tx, uint32_t count,
                      const struct by_rx *rx)
{
    struct by_memory *memory = (struct by_memory *)transport;

    for (uint32_t i = 0; i < count; i++) {
        struct by_memory_packet *packet;

        if (tx[i]->port >= transport->port_count)
            continue;
        packet = take_packet(memory->node->fabric);
        if (packet == NULL) {
            transport->ports[tx[i]->port].tx_drop++;
            continue;
        }
        if (tx[i]->kind == BY_TX_RELAY) {
            const struct by_rx *source = &rx[tx[i]->rx_index];

            packet->src_ip = source->src_ip;
            packet->dst_ip = source->dst_ip;
            packet->bytes = source->bytes;
            packet->ecn = source->ecn;
            packet->udp_port = 0;
            memcpy(packet->data, source->data, source->bytes);
        } else {
            packet->src_ip = memory->node->ports[tx[i]->port].image.own_ip;
            packet->dst_ip = tx[i]->dst_ip;
            packet->udp_port = tx[i]->udp_port;
            packet->bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + tx[i]->payload_bytes);
            packet->ecn = tx[i]->ecn;
            memcpy(packet->data, tx[i]->header, BY_WIRE_HEADER_BYTES);
            if (tx[i]->payload_bytes > 0)
                memcpy(packet->data + BY_WIRE_HEADER_BYTES, by_tx_payload(tx[i]), tx[i]->payload_bytes);
        }
        deliver(memory, tx[i]->port, packet);
    }
}

static uint32_t memory_fds(struct by_transport *transport, struct pollfd *fds)
{
    (void)transport;
    (void)fds;
    return 0;
}

static void memory_close(struct by_transport *transport)
{
    struct by_memory *memory = (struct by_memory *)transport;
    struct banyan_fabric *fabric = memory->node->fabric;

    memory_rx_done(transport);
    while (memory->first != NULL) {
        struct by_memory_packet *packet = memory->first;

        memory->first = packet->next;
        give_packet(fabric, packet);
    }
    for (struct by_memory **at = &fabric->members; *at != NULL; at = &(*at)->next) {
        if (*at == memory) {
            *at = memory->next;
            break;
        }
    }
    free(memory);
}

static const struct by_transport_ops memory_ops = {
    "memory", memory_rx, memory_rx_done, memory_tx, memory_fds, memory_close, NULL};

int by_fabric_join(struct banyan_fabric *fabric, struct by_fabric_node *node, uint16_t udp_port,
                   struct by_progress *progress, struct by_transport **transport)
{
    struct by_memory *memory;
    struct by_memory **at;

    for (at = &fabric->members; *at != NULL; at = &(*at)->next)
        if ((*at)->node == node && (*at)->udp_port == udp_port)
            return by_fail(BY_EBUSY, "%s has a communicator on UDP port %u already", node->header.name,
                           udp_port);
    memory = calloc(1, sizeof(*memory));
    if (memory == NULL)
        return by_fail(BY_ENOMEM, "no memory for the ports of %s", node->header.name);
    memory->base.ops = &memory_ops;
    memory->base.port_count = node->port_count;
    memory->node = node;
    memory->progress = progress;
    memory->udp_port = udp_port;
    memory->last = &memory->first;
    *at = memory;
    *transport = &memory->base;
    return 0;
}

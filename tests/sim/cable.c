/*
 * Cables of the simulated world, and the packets on them. A payload is copied when its packet leaves for the
 * cable and not before, as a NIC would read it, so that references to banks and to users' buffers live as
 * long as in a real shell. Single-threaded.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/inside.h"

/* Ethernet, IP and UDP headers, preamble, check sequence and gap: what a packet takes on a cable beside its
 * UDP payload. */
#define CABLE_OVERHEAD 66u
#define CONGESTED      3u /* CE of RFC 3168 */

struct packet *packet_get(struct world *world)
{
    struct packet *packet = world->spare;

    if (packet != NULL)
        world->spare = packet->next;
    else
        packet = malloc(sizeof(*packet));
    packet->next = NULL;
    return packet;
}

void packet_put(struct world *world, struct packet *packet)
{
    packet->next = world->spare;
    world->spare = packet;
}

struct packet *packet_copy(struct world *world, const struct packet *from)
{
    struct packet *packet = packet_get(world);

    memcpy(packet, from, offsetof(struct packet, data) + from->bytes);
    packet->next = NULL;
    return packet;
}

void packets_push(struct packets *list, struct packet *packet)
{
    if (list->head == NULL)
        list->tail = &list->head;
    packet->next = NULL;
    *list->tail = packet;
    list->tail = &packet->next;
    list->count++;
}

struct packet *packets_pop(struct packets *list)
{
    struct packet *packet = list->head;

    if (packet != NULL) {
        list->head = packet->next;
        list->count--;
    }
    return packet;
}

void packets_clear(struct world *world, struct packets *list)
{
    struct packet *packet;

    while ((packet = packets_pop(list)) != NULL)
        packet_put(world, packet);
}

void packet_fill(struct packet *packet, const struct by_tx *tx)
{
    const uint8_t *payload = tx->payload != NULL ? tx->payload : tx->small;

    memcpy(packet->data, tx->header, BY_WIRE_HEADER_BYTES);
    memcpy(packet->data + BY_WIRE_HEADER_BYTES, payload, tx->payload_bytes);
    packet->bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + tx->payload_bytes);
    packet->udp_port = tx->udp_port;
    packet->dst_ip = tx->dst_ip;
    packet->ecn = tx->ecn;
}

/* 1 when the packet that arrives at `node` falls into the burst of losses. */
static int burst_takes(struct world *world, int node, uint64_t at_ns)
{
    const struct world_config *config = &world->config;

    return config->burst_loss != 0 && node == config->burst_node &&
           at_ns % config->burst_period_ns >= config->burst_period_ns - config->burst_ns &&
           (uint32_t)by_prng_next(&world->prng) <= config->burst_loss;
}

/* Flips one bit, or up to 32 neighbouring ones: both the CRC of the header and the sum of words must see it.
 */
static void corrupt(struct world *world, struct packet *packet)
{
    uint32_t words = packet->bytes / 4u, header = BY_WIRE_HEADER_BYTES / 4u;
    uint32_t word = (uint32_t)by_prng_below(&world->prng, words);
    uint64_t drawn = by_prng_next(&world->prng);
    uint32_t bits = drawn >> 63 ? (uint32_t)drawn | 1 : 1u << (drawn & 31);

    if (words > header && drawn >> 62 & 1)
        word = header + (uint32_t)by_prng_below(&world->prng, words - header);
    for (unsigned i = 0; i < 4; i++)
        packet->data[word * 4 + i] ^= (uint8_t)(bits >> 8 * i);
    world->counters.corrupted++;
    world->counters.corrupted_headers += word < header;
}

/* Puts an arriving packet through the faults of the node at that end. */
static void arrive_later(struct world *world, int node, struct packet *packet, uint64_t at_ns)
{
    struct world_config *config = &world->config;
    uint64_t extra = 0;

    if (burst_takes(world, node, at_ns)) {
        world->counters.lost++;
        packet_put(world, packet);
        return;
    }
    if (world->fabric.nodes[node].kind == BY_NODE_SWITCH || config->host_faults) {
        switch (by_fault_draw(&config->fault)) {
        case BY_FAULT_DROP:
            world->counters.lost++;
            packet_put(world, packet);
            return;
        case BY_FAULT_DUPLICATE:
            world->counters.duplicated++;
            heap_push(&world->heap, at_ns + by_prng_below(&world->prng, config->hold_ns + 1), EVENT_ARRIVE,
                      node, packet_copy(world, packet));
            break;
        case BY_FAULT_HOLD:
            world->counters.held++;
            extra = by_prng_below(&world->prng, config->hold_ns + 1);
            break;
        case BY_FAULT_PASS:
            break;
        }
        if ((uint32_t)by_prng_next(&world->prng) < config->corrupt)
            corrupt(world, packet);
    }
    heap_push(&world->heap, at_ns + extra, EVENT_ARRIVE, node, packet);
}

static void depart(struct world *world, int link, int from, struct departure *departure)
{
    const struct fabric_link *cable = &world->fabric.links[link];
    int side = cable->b == from;
    struct direction *direction = &world->directions[link][side];
    struct packet *packet = departure->relayed;
    uint64_t bits;

    if (packet == NULL) {
        packet = packet_get(world);
        packet_fill(packet, &departure->tx);
        packet->src_ip = fabric_ip(&world->fabric, link, from);
        if (departure->tx.ref != BY_REF_NONE)
            by_engine_release(world->nodes[from].engine, departure->tx.ref);
    }
    departure->next = world->spare_departure;
    world->spare_departure = departure;
    bits = (packet->bytes + CABLE_OVERHEAD) * UINT64_C(8);
    direction->free_ns = world->now_ns + bits * 1000 / cable->mbps;
    world->counters.sent++;
    packet->port = (uint16_t)fabric_port_to(&world->fabric, side ? cable->a : cable->b, from);
    arrive_later(world, side ? cable->a : cable->b, packet, direction->free_ns + cable->latency_ns);
}

static void direction_schedule(struct world *world, int link, int side)
{
    struct direction *direction = &world->directions[link][side];

    if (direction->head != NULL && !direction->scheduled) {
        direction->scheduled = 1;
        heap_push(&world->heap, direction->free_ns, EVENT_DEPART, link * 2 + side, NULL);
    }
}

void cable_send(struct world *world, int node, const struct by_tx *tx, struct packet *relayed)
{
    int link = world->fabric.nodes[node].port_link[tx->port];
    int side = world->fabric.links[link].b == node;
    struct direction *direction = &world->directions[link][side];
    struct departure *departure = world->spare_departure;

    if (direction->count >= world->config.queue_max) {
        world->counters.overflowed++;
        if (relayed != NULL)
            packet_put(world, relayed);
        else if (tx->ref != BY_REF_NONE)
            by_engine_release(world->nodes[node].engine, tx->ref);
        return;
    }
    if (departure != NULL)
        world->spare_departure = departure->next;
    else
        departure = malloc(sizeof(*departure));
    departure->tx = *tx;
    departure->relayed = relayed;
    world->counters.waited += direction->count;
    if (world->config.mark_at > 0 && direction->count >= world->config.mark_at) {
        world->counters.marked++;
        departure->tx.ecn = CONGESTED;
        if (relayed != NULL)
            relayed->ecn = CONGESTED;
    }
    departure->next = NULL;
    if (direction->head == NULL && direction->free_ns <= world->now_ns) {
        depart(world, link, node, departure);
        return;
    }
    if (direction->head == NULL)
        direction->tail = &direction->head;
    *direction->tail = departure;
    direction->tail = &departure->next;
    direction->count++;
    direction_schedule(world, link, side);
}

void cable_on_depart(struct world *world, int link, int side)
{
    struct direction *direction = &world->directions[link][side];
    struct departure *departure = direction->head;
    const struct fabric_link *cable = &world->fabric.links[link];

    direction->scheduled = 0;
    if (departure == NULL)
        return;
    direction->head = departure->next;
    direction->count--;
    depart(world, link, side ? cable->b : cable->a, departure);
    direction_schedule(world, link, side);
}

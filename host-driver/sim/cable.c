/*
 * Cables of the simulated world, and the packets on them. A payload is copied when its packet
 * starts on the cable and not before, as a NIC would read it. So references to banks and to users'
 * buffers last as long as in a real shell. Single-threaded.
 */
#include <stdlib.h>
#include <string.h>

#include "host-driver/sim/inside.h"
#include "offload/reduce/reduce.h"

#define CE 3u

static struct by_sim_parcel *parcel_get(struct by_world *world, size_t bytes)
{
    int large = bytes > BY_PARCEL_SMALL;
    struct by_sim_parcel *parcel = world->spare[large];

    if (parcel != NULL) {
        world->spare[large] = parcel->next;
    } else {
        uint16_t room = large ? BY_PARCEL_LARGE : BY_PARCEL_SMALL;

        parcel = malloc(sizeof(*parcel) + room);
        if (parcel == NULL)
            abort();
        parcel->room = room;
    }
    parcel->next = NULL;
    parcel->bytes = (uint16_t)bytes;
    parcel->held = 0;
    return parcel;
}

void by_parcel_put(struct by_world *world, struct by_sim_parcel *parcel)
{
    int large = parcel->room > BY_PARCEL_SMALL;

    parcel->next = world->spare[large];
    world->spare[large] = parcel;
}

struct by_sim_parcel *by_parcel_copy(struct by_world *world, const struct by_sim_parcel *from)
{
    struct by_sim_parcel *parcel = parcel_get(world, from->bytes);

    parcel->udp_port = from->udp_port;
    parcel->port = from->port;
    parcel->src_ip = from->src_ip;
    parcel->dst_ip = from->dst_ip;
    parcel->ecn = from->ecn;
    memcpy(parcel->data, from->data, from->bytes);
    return parcel;
}

void by_parcels_push(struct by_parcels *list, struct by_sim_parcel *parcel)
{
    if (list->head == NULL)
        list->tail = &list->head;
    parcel->next = NULL;
    *list->tail = parcel;
    list->tail = &parcel->next;
    list->count++;
}

struct by_sim_parcel *by_parcels_pop(struct by_parcels *list)
{
    struct by_sim_parcel *parcel = list->head;

    if (parcel != NULL) {
        list->head = parcel->next;
        list->count--;
    }
    return parcel;
}

void by_parcels_clear(struct by_world *world, struct by_parcels *list)
{
    struct by_sim_parcel *parcel;

    while ((parcel = by_parcels_pop(list)) != NULL)
        by_parcel_put(world, parcel);
}

struct by_sim_parcel *by_parcel_make(struct by_world *world, const struct by_tx *tx)
{
    struct by_sim_parcel *parcel = parcel_get(world, BY_WIRE_HEADER_BYTES + (size_t)tx->payload_bytes);
    const uint8_t *payload = tx->payload != NULL ? tx->payload : tx->small;

    memcpy(parcel->data, tx->header, BY_WIRE_HEADER_BYTES);
    memcpy(parcel->data + BY_WIRE_HEADER_BYTES, payload, tx->payload_bytes);
    parcel->udp_port = tx->udp_port;
    parcel->dst_ip = tx->dst_ip;
    parcel->ecn = tx->ecn;
    return parcel;
}

/* 1 if the packet that arrives at `node` falls into a burst of losses. */
static int burst_takes(struct by_world *world, uint32_t node, uint64_t at_ps)
{
    const struct by_world_config *config = &world->config;

    return config->burst_loss != 0 && (int)node == config->burst_node &&
           at_ps / 1000 % config->burst_period_ns >= config->burst_period_ns - config->burst_ns &&
           (uint32_t)by_prng_next(&world->prng) <= config->burst_loss;
}

/*
 * 1 if a packet is lost, of which `part` (2^-32) are. Runs of losses (Gilbert, "Capacity of a
 * burst-noise channel", 1960): each lost packet is followed by another with a probability that
 * gives the configured mean length; a run begins with the probability that gives `part`.
 */
static int is_lost(struct by_world *world, struct by_sim_direction *direction, uint32_t part)
{
    uint64_t length = world->config.loss_run > 0 ? world->config.loss_run : 1;
    uint64_t begin = ((uint64_t)part << 32) / (part + length * ((UINT64_C(1) << 32) - part));

    if (part == 0)
        return 0;
    if (direction->is_losing && by_prng_below(&world->prng, length) != 0)
        return 1;
    /* after the last packet of a run, a new one may begin at once */
    direction->is_losing = (uint32_t)by_prng_next(&world->prng) < begin;
    return direction->is_losing;
}

static uint64_t hold_ps(struct by_world *world)
{
    return by_sim_ps(by_prng_below(&world->prng, world->config.hold_ns + 1));
}

static int is_sound(const struct by_sim_parcel *parcel)
{
    struct by_header header;
    const uint8_t *payload;
    int32_t bytes = by_header_decode(parcel->data, parcel->bytes, &header, &payload);

    return bytes >= 0 && by_psum(payload, (size_t)bytes) == header.psum;
}

/* Flips one bit, or several of up to 32 adjacent bits: the CRC of the header and the sum of words
 * must both detect it. A packet that was already corrupted before it was relayed is not changed
 * again: psum cannot detect two flips that cancel in the sum of words. */
static void corrupt(struct by_world *world, struct by_sim_parcel *parcel)
{
    uint32_t words = parcel->bytes / 4u, header = BY_WIRE_HEADER_BYTES / 4u;
    uint32_t word = (uint32_t)by_prng_below(&world->prng, words);
    uint64_t drawn = by_prng_next(&world->prng);
    uint32_t bits = drawn >> 63 ? (uint32_t)drawn | 1 : 1u << (drawn & 31);

    if (words > header && drawn >> 62 & 1)
        word = header + (uint32_t)by_prng_below(&world->prng, words - header);
    if (!is_sound(parcel))
        return;
    for (unsigned i = 0; i < 4; i++)
        parcel->data[word * 4 + i] ^= (uint8_t)(bits >> 8 * i);
    world->counters.corrupted++;
    world->counters.corrupted_headers += word < header;
}

/* Applies the faults of the cable and of the receiving node to an arriving packet. */
static void arrive_later(struct by_world *world, struct by_sim_direction *direction,
                         struct by_sim_parcel *parcel, uint64_t at_ps)
{
    struct by_world_config *config = &world->config;
    uint32_t node = direction->arc.to;
    int has_faults = world->nodes[node].kind == BY_NODE_SWITCH || config->host_faults;
    uint64_t extra = 0, part = direction->arc.loss + (has_faults ? (uint64_t)world->run_loss : 0);

    if (burst_takes(world, node, at_ps) ||
        is_lost(world, direction, part < UINT32_MAX ? (uint32_t)part : UINT32_MAX)) {
        world->counters.lost++;
        direction->use.lost++;
        by_parcel_put(world, parcel);
        return;
    }
    if (has_faults) {
        switch (by_fault_draw(&config->fault)) {
        case BY_FAULT_DROP:
            world->counters.lost++;
            direction->use.lost++;
            by_parcel_put(world, parcel);
            return;
        case BY_FAULT_DUPLICATE:
            world->counters.duplicated++;
            by_heap_push(&world->heap, at_ps + hold_ps(world), BY_EVENT_ARRIVE, node,
                         by_parcel_copy(world, parcel));
            break;
        case BY_FAULT_HOLD:
            world->counters.held++;
            extra = hold_ps(world);
            break;
        case BY_FAULT_PASS:
            break;
        }
        if ((uint32_t)by_prng_next(&world->prng) < config->corrupt)
            corrupt(world, parcel);
    }
    by_heap_push(&world->heap, at_ps + extra, BY_EVENT_ARRIVE, node, parcel);
}

/* Puts a packet of banyan on the cable, on which its last byte is sent at direction->free_ps. */
static void depart_packet(struct by_world *world, struct by_sim_direction *direction,
                          struct by_departure *departure)
{
    const struct by_world_arc *arc = &direction->arc;
    struct by_sim_parcel *parcel = departure->relayed;
    uint64_t frames = world->config.batch;

    if (parcel == NULL) {
        parcel = by_parcel_make(world, &departure->tx);
        if (departure->tx.ref != BY_REF_NONE)
            by_engine_release(world->nodes[arc->from].engine, departure->tx.ref);
        parcel->src_ip = direction->src_ip;
    }
    if (world->nodes[arc->from].dead) { /* its queues are lost with it */
        by_parcel_put(world, parcel);
        return;
    }
    parcel->ecn = departure->tx.ecn;
    direction->use.packets += frames;
    direction->use.payload_bytes += frames * (parcel->bytes - BY_WIRE_HEADER_BYTES);
    direction->use.header_bytes += frames * (BY_WIRE_HEADER_BYTES + BY_WORLD_FRAME_BYTES);
    world->counters.sent++;
    parcel->port = arc->to_port;
    arrive_later(world, direction, parcel, direction->free_ps + arc->latency_ps);
}

static void depart(struct by_world *world, struct by_sim_direction *direction, struct by_departure *departure)
{
    const struct by_world_arc *arc = &direction->arc;
    /* Round up, so that the cable is never faster than its rate. */
    uint64_t took_ps =
        (uint64_t)(((unsigned __int128)departure->bytes * arc->ps_num + arc->ps_den - 1) / arc->ps_den);

    direction->free_ps = world->now_ps + took_ps;
    direction->use.busy_ps += took_ps;
    if (departure->stream != UINT32_MAX)
        by_stream_on_sent(world, departure->stream, direction->free_ps);
    else
        depart_packet(world, direction, departure);
    departure->next = world->spare_departure;
    world->spare_departure = departure;
}

static void schedule(struct by_world *world, uint32_t index)
{
    struct by_sim_direction *direction = &world->directions[index];

    if (direction->head != NULL && !direction->scheduled) {
        direction->scheduled = 1;
        by_heap_push(&world->heap, direction->free_ps, BY_EVENT_DEPART, index, NULL);
    }
}

static void drop(struct by_world *world, uint32_t node, struct by_sim_direction *direction,
                 const struct by_tx *tx, struct by_sim_parcel *relayed)
{
    world->counters.overflowed++;
    direction->use.dropped++;
    if (relayed != NULL)
        by_parcel_put(world, relayed);
    else if (tx->ref != BY_REF_NONE)
        by_engine_release(world->nodes[node].engine, tx->ref);
}

static struct by_departure *departure_get(struct by_world *world)
{
    struct by_departure *departure = world->spare_departure;

    if (departure != NULL)
        world->spare_departure = departure->next;
    else
        departure = malloc(sizeof(*departure));
    if (departure == NULL)
        abort();
    departure->next = NULL;
    return departure;
}

/* 1 if the port's queue, or the memory that a switch's ports share, has room for `bytes` more. */
static int has_room(const struct by_world *world, uint32_t node, const struct by_sim_direction *direction,
                    uint64_t bytes)
{
    const struct by_world_config *config = &world->config;
    uint64_t used = world->nodes[node].queue_bytes, free_bytes;

    if (direction->count >= config->queue_max ||
        (direction->count > 0 && direction->queue_bytes + bytes > config->queue_bytes_max))
        return 0;
    if (world->nodes[node].kind != BY_NODE_SWITCH)
        return 1;
    free_bytes = used < config->shared_bytes_max ? config->shared_bytes_max - used : 0;
    return direction->queue_bytes + bytes <= free_bytes;
}

static bool is_marked(const struct by_world *world, const struct by_sim_direction *direction)
{
    const struct by_world_config *config = &world->config;

    return (config->mark_bytes > 0 && direction->queue_bytes > config->mark_bytes) ||
           (config->mark_at > 0 && direction->count >= config->mark_at);
}

/* Sends the departure, at once if the cable is free. */
static void enqueue(struct by_world *world, uint32_t index, struct by_departure *departure)
{
    struct by_sim_direction *direction = &world->directions[index];

    if (direction->head == NULL && direction->free_ps <= world->now_ps) {
        depart(world, direction, departure);
        return;
    }
    if (direction->head == NULL)
        direction->tail = &direction->head;
    *direction->tail = departure;
    direction->tail = &departure->next;
    direction->count++;
    direction->queue_bytes += departure->bytes;
    world->nodes[direction->arc.from].queue_bytes += departure->bytes;
    if (direction->queue_bytes > direction->use.queue_high)
        direction->use.queue_high = direction->queue_bytes;
    schedule(world, index);
}

void by_cable_send(struct by_world *world, uint32_t node, const struct by_tx *tx,
                   struct by_sim_parcel *relayed)
{
    uint32_t index = world->nodes[node].direction_of[tx->port];
    struct by_sim_direction *direction = &world->directions[index];
    uint64_t bytes = relayed != NULL ? relayed->bytes : BY_WIRE_HEADER_BYTES + (uint64_t)tx->payload_bytes;
    struct by_departure *departure;

    bytes = (bytes + BY_WORLD_FRAME_BYTES) * world->config.batch;
    if (!has_room(world, node, direction, bytes)) {
        drop(world, node, direction, tx, relayed);
        return;
    }
    departure = departure_get(world);
    departure->tx = *tx;
    departure->relayed = relayed;
    departure->bytes = (uint32_t)bytes;
    departure->stream = UINT32_MAX;
    world->counters.waited += direction->count;
    if (tx->ecn != 0 && is_marked(world, direction)) {
        departure->tx.ecn = CE;
        direction->use.marked++;
        world->counters.marked++;
    }
    enqueue(world, index, departure);
}

enum by_cable_fate by_cable_send_stream(struct by_world *world, uint32_t index, uint32_t stream, int ecn)
{
    struct by_sim_direction *direction = &world->directions[index];
    uint32_t bytes = BY_WORLD_STREAM_BYTES * world->config.batch;
    bool marked = ecn && is_marked(world, direction);
    struct by_departure *departure;

    if (!has_room(world, direction->arc.from, direction, bytes))
        return BY_FATE_DROPPED;
    departure = departure_get(world);
    departure->tx = (struct by_tx){.ref = BY_REF_NONE};
    departure->relayed = NULL;
    departure->bytes = bytes;
    departure->stream = stream;
    enqueue(world, index, departure);
    return marked ? BY_FATE_MARKED : BY_FATE_QUEUED;
}

void by_cable_on_depart(struct by_world *world, uint32_t index)
{
    struct by_sim_direction *direction = &world->directions[index];
    struct by_departure *departure = direction->head;

    direction->scheduled = 0;
    if (departure == NULL)
        return;
    direction->head = departure->next;
    direction->count--;
    direction->queue_bytes -= departure->bytes;
    world->nodes[direction->arc.from].queue_bytes -= departure->bytes;
    depart(world, direction, departure);
    schedule(world, index);
}

/*
 * The event loop, the nodes and the cables of the simulated world. A payload is copied when its packet leaves
 * for the cable and not before, as a NIC would read it, so that references to banks and to users' buffers
 * live as long as in a real shell. Single-threaded.
 */
#include "tests/sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/base/bytes.h"
#include "offload/reduce/reduce.h"
#include "tests/sim/heap.h"

#define PACKET_BYTES_MAX (BY_WIRE_HEADER_BYTES + BY_PAYLOAD_MAX)
/* Ethernet, IP and UDP headers, preamble, check sequence and gap: what a packet takes on a cable beside its
 * UDP payload. */
#define CABLE_OVERHEAD 66u
#define BURST_MAX      64u
#define TX_CAPACITY    (BY_CHILDREN_MAX + 2 + 64)

struct packet {
    struct packet *next;
    uint16_t bytes, udp_port, port;
    uint32_t src_ip, dst_ip;
    uint8_t ecn;
    uint8_t data[PACKET_BYTES_MAX];
};

struct packets {
    struct packet *head, **tail;
    uint32_t count;
};

/* A packet waiting for its cable; the payload still lies where the action points. */
struct departure {
    struct departure *next;
    struct by_tx tx;
    struct packet *relayed;
};

struct direction {
    struct departure *head, **tail;
    uint32_t count;
    uint64_t free_ns;
    int scheduled;
};

struct node {
    uint8_t *image;
    size_t image_bytes;
    struct by_engine *engine;
    struct by_endpoint *endpoint[FABRIC_JOBS_MAX];
    struct packets arrived;   /* from cables */
    struct packets to_engine; /* from this host's endpoints */
    struct packets to_endpoint[FABRIC_JOBS_MAX];
    uint64_t poll_ns;   /* when the next step is due; UINT64_MAX: none */
    uint64_t frozen_ns; /* does not run before */
    int dead;
};

struct world {
    struct fabric fabric;
    struct world_config config;
    world_host_step step;
    void *context;
    struct by_prng prng;
    uint64_t now_ns;
    struct heap heap;
    struct packet *spare;
    struct departure *spare_departure;
    struct node nodes[FABRIC_NODES_MAX];
    struct direction directions[FABRIC_LINKS_MAX][2];
    struct world_counters counters;
};

enum event_kind { EVENT_POLL, EVENT_ARRIVE, EVENT_DEPART };

static void *aligned(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

    if (memory == NULL)
        abort();
    return memory;
}

/* ---- packets
 * -----------------------------------------------------------------------------------------------------------------
 */

static struct packet *packet_get(struct world *world)
{
    struct packet *packet = world->spare;

    if (packet != NULL)
        world->spare = packet->next;
    else
        packet = malloc(sizeof(*packet));
    packet->next = NULL;
    return packet;
}

static void packet_put(struct world *world, struct packet *packet)
{
    packet->next = world->spare;
    world->spare = packet;
}

static struct packet *packet_copy(struct world *world, const struct packet *from)
{
    struct packet *packet = packet_get(world);

    memcpy(packet, from, offsetof(struct packet, data) + from->bytes);
    packet->next = NULL;
    return packet;
}

static void packets_push(struct packets *list, struct packet *packet)
{
    if (list->head == NULL)
        list->tail = &list->head;
    packet->next = NULL;
    *list->tail = packet;
    list->tail = &packet->next;
    list->count++;
}

static struct packet *packets_pop(struct packets *list)
{
    struct packet *packet = list->head;

    if (packet != NULL) {
        list->head = packet->next;
        list->count--;
    }
    return packet;
}

static void packets_clear(struct world *world, struct packets *list)
{
    struct packet *packet;

    while ((packet = packets_pop(list)) != NULL)
        packet_put(world, packet);
}

static void packet_fill(struct packet *packet, const struct by_tx *tx)
{
    const uint8_t *payload = tx->payload != NULL ? tx->payload : tx->small;

    memcpy(packet->data, tx->header, BY_WIRE_HEADER_BYTES);
    memcpy(packet->data + BY_WIRE_HEADER_BYTES, payload, tx->payload_bytes);
    packet->bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + tx->payload_bytes);
    packet->udp_port = tx->udp_port;
    packet->dst_ip = tx->dst_ip;
    packet->ecn = tx->ecn;
}

/* ---- cables
 * ------------------------------------------------------------------------------------------------------------------
 */

/* Puts an arriving packet through the faults of the node at that end. */
static void arrive_later(struct world *world, int node, struct packet *packet, uint64_t at_ns)
{
    struct world_config *config = &world->config;
    uint64_t extra = 0;

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
        if ((uint32_t)by_prng_next(&world->prng) < config->corrupt) {
            uint32_t word = (uint32_t)by_prng_below(&world->prng, packet->bytes / 4u);

            /* Up to 32 neighbouring bits: both the CRC of the header and the sum of words must see it. */
            for (unsigned i = 0; i < 4; i++)
                packet->data[word * 4 + i] ^= (uint8_t)(by_prng_next(&world->prng) >> 8 | (i == 0));
            world->counters.corrupted++;
        }
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

static void send_on(struct world *world, int node, const struct by_tx *tx, struct packet *relayed)
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

static void on_depart(struct world *world, int link, int side)
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

/* ---- nodes
 * -------------------------------------------------------------------------------------------------------------------
 */

static int job_index(const struct world *world, uint16_t job)
{
    for (int j = 0; j < world->fabric.job_count; j++)
        if (world->fabric.jobs[j].job == job)
            return j;
    return -1;
}

/* An endpoint's or engine's actions: to the cables, or to this host's other half. */
static void act(struct world *world, int index, const struct by_tx *tx, uint32_t count,
                struct packet *const *rx, int from_engine)
{
    struct node *node = &world->nodes[index];

    for (uint32_t i = 0; i < count; i++) {
        struct packet *packet;
        int job;

        if (tx[i].kind == BY_TX_RELAY) {
            send_on(world, index, &tx[i], packet_copy(world, rx[tx[i].rx_index]));
            continue;
        }
        if (tx[i].port != BY_PORT_LOCAL) {
            send_on(world, index, &tx[i], NULL);
            continue;
        }
        packet = packet_get(world);
        packet_fill(packet, &tx[i]);
        packet->port = BY_PORT_LOCAL;
        packet->src_ip = 0;
        if (tx[i].ref != BY_REF_NONE)
            by_engine_release(node->engine, tx[i].ref);
        job = job_index(world, by_get16(packet->data + 4));
        if (from_engine && job >= 0)
            packets_push(&node->to_endpoint[job], packet);
        else if (!from_engine)
            packets_push(&node->to_engine, packet);
        else
            packet_put(world, packet);
    }
}

/* Takes up to a burst from `list` into an array of what a step wants. */
static uint32_t take_burst(struct world *world, struct packets *list, struct packet **packets,
                           struct by_rx *rx)
{
    uint32_t count = 0;

    while (count < world->config.burst && list->head != NULL) {
        struct packet *packet = packets_pop(list);

        packets[count] = packet;
        rx[count++] = (struct by_rx){.data = packet->data,
                                     .bytes = packet->bytes,
                                     .port = packet->port,
                                     .src_ip = packet->src_ip,
                                     .dst_ip = packet->dst_ip,
                                     .ecn = packet->ecn};
    }
    return count;
}

static void step_engine(struct world *world, int index, struct packets *list)
{
    struct node *node = &world->nodes[index];
    struct packet *packets[BURST_MAX];
    struct by_rx rx[BURST_MAX];
    struct by_tx tx[TX_CAPACITY];
    uint32_t count = take_burst(world, list, packets, rx);

    for (uint32_t done = 0; done < count;) {
        uint32_t tx_count = 0;
        uint32_t taken = by_engine_step(node->engine, world->now_ns, rx + done, count - done, tx,
                                        BY_CHILDREN_MAX + 2, &tx_count);

        act(world, index, tx, tx_count, packets + done,
            1); /* rx_index counts from the first packet of that step */
        done += taken;
    }
    for (uint32_t i = 0; i < count; i++)
        packet_put(world, packets[i]);
}

static void step_endpoint(struct world *world, int index, int job)
{
    struct node *node = &world->nodes[index];
    struct packet *packets[BURST_MAX];
    struct by_rx rx[BURST_MAX];
    struct by_tx tx[TX_CAPACITY];
    uint32_t count = take_burst(world, &node->to_endpoint[job], packets, rx);
    uint32_t tx_count, rounds = 0;

    do {
        uint32_t taken = by_endpoint_step(node->endpoint[job], world->now_ns, rx, rounds == 0 ? count : 0, tx,
                                          BURST_MAX, &tx_count);

        if (rounds++ == 0 && taken != count)
            abort();
        act(world, index, tx, tx_count, packets, 0);
    } while (tx_count == BURST_MAX);
    for (uint32_t i = 0; i < count; i++)
        packet_put(world, packets[i]);
}

/* Whether a packet from a cable is for the engine of a host: what only an engine takes, and what comes from a
 * parent of its entries. */
static int for_engine(const struct node *node, const struct packet *packet)
{
    struct by_image_header header;
    uint8_t type = packet->data[1];

    if (type == BY_TYPE_CONTRIB || type == BY_TYPE_PROBE)
        return 1;
    by_image_header(node->image, &header);
    for (uint32_t e = 0; e < header.count[BY_SECTION_ENTRY]; e++) {
        struct by_image_entry entry;

        by_image_entry(node->image, e, &entry);
        if (entry.job == by_get16(packet->data + 4) && entry.tree == by_get16(packet->data + 6))
            return 1;
    }
    return 0;
}

static void sort_arrived(struct world *world, int index)
{
    struct node *node = &world->nodes[index];
    struct packet *packet;

    for (uint32_t i = 0; i < world->config.burst && (packet = packets_pop(&node->arrived)) != NULL; i++) {
        int job = job_index(world, by_get16(packet->data + 4));

        if (for_engine(node, packet))
            packets_push(&node->to_engine, packet);
        else if (job >= 0 && node->endpoint[job] != NULL)
            packets_push(&node->to_endpoint[job], packet);
        else
            packet_put(world, packet);
    }
}

static void poll_host(struct world *world, int index)
{
    struct node *node = &world->nodes[index];
    uint64_t due = UINT64_MAX;
    int again;

    sort_arrived(world, index);
    if (world->step != NULL)
        (void)world->step(world->context, world, index);
    do {
        again = 0;
        while (node->to_engine.head != NULL)
            step_engine(world, index, &node->to_engine);
        for (int j = 0; j < world->fabric.job_count; j++) {
            if (node->endpoint[j] == NULL)
                continue;
            step_endpoint(world, index, j);
            again |= node->to_endpoint[j].head != NULL;
        }
        if (world->step != NULL)
            again |= world->step(world->context, world, index);
        again |= node->to_engine.head != NULL;
    } while (again);
    for (int j = 0; j < world->fabric.job_count; j++)
        if (node->endpoint[j] != NULL && by_endpoint_deadline(node->endpoint[j]) < due)
            due = by_endpoint_deadline(node->endpoint[j]);
    if (due != UINT64_MAX)
        world_wake(world, index, due > world->now_ns ? due : world->now_ns + 1);
}

static void on_poll(struct world *world, int index, uint64_t at_ns)
{
    struct node *node = &world->nodes[index];

    if (node->poll_ns != at_ns || node->dead)
        return; /* a nearer one came first */
    node->poll_ns = UINT64_MAX;
    if (world->now_ns < node->frozen_ns) {
        world_wake(world, index, node->frozen_ns);
        return;
    }
    if (world->fabric.nodes[index].kind == BY_NODE_SWITCH)
        step_engine(world, index, &node->arrived);
    else
        poll_host(world, index);
    if (node->arrived.head != NULL)
        world_wake(world, index, world->now_ns + 1);
}

static void on_arrive(struct world *world, int index, struct packet *packet)
{
    struct node *node = &world->nodes[index];

    if (node->dead) {
        packet_put(world, packet);
        return;
    }
    world->counters.delivered++;
    packets_push(&node->arrived, packet);
    if (node->poll_ns > world->now_ns + world->config.poll_ns)
        world_wake(world, index,
                   world->now_ns + by_prng_below(&world->prng, world->config.poll_ns + UINT64_C(1)));
}

/* ---- the whole
 * ---------------------------------------------------------------------------------------------------------------
 */

static void engine_create(struct world *world, int index)
{
    struct by_engine_config config = {.payload_max = BY_PAYLOAD_MAX,
                                      .image_bytes_max = 1u << 18,
                                      .entry_count_max = FABRIC_TREES_MAX * FABRIC_JOBS_MAX,
                                      .relay_count_max = 4096,
                                      .repair_interval_ns = world->config.repair_interval_ns,
                                      .isa = by_isa_best()};
    struct by_image_header header;
    size_t bytes;

    by_image_header(world->nodes[index].image, &header);
    config.payload_max = header.payload_max;
    config.slot_count_max = header.slot_count > 0 ? header.slot_count : 1;
    bytes = by_engine_size(&config);
    if (bytes == 0 || by_engine_init(&world->nodes[index].engine, aligned(bytes), bytes, &config) != 0)
        abort();
}

static void node_load(struct world *world, int index)
{
    struct node *node = &world->nodes[index];
    struct by_image_fault fault = {0};

    free(node->image);
    node->image = fabric_image(&world->fabric, index, &node->image_bytes);
    if (node->engine == NULL)
        engine_create(world, index);
    if (by_engine_stage(node->engine, node->image, node->image_bytes, &fault) != 0 ||
        by_engine_commit(node->engine) != 0) {
        fprintf(stderr, "world: %s refuses its table: %s %u %s\n", world->fabric.nodes[index].name,
                fault.section, fault.index, fault.what);
        abort();
    }
    for (int j = 0; j < world->fabric.job_count; j++) {
        struct by_endpoint_config config = world->config.endpoint;
        size_t bytes;

        free(node->endpoint[j]);
        node->endpoint[j] = NULL;
        config.image = node->image;
        config.image_bytes = node->image_bytes;
        config.job = world->fabric.jobs[j].job;
        config.isa = by_isa_best();
        bytes = by_endpoint_size(&config);
        if (bytes == 0)
            continue;
        if (by_endpoint_init(&node->endpoint[j], aligned(bytes), bytes, &config) != 0)
            abort();
    }
}

struct world *world_create(const struct fabric *fabric, const struct world_config *config,
                           world_host_step step, void *context)
{
    struct world *world = calloc(1, sizeof(*world));

    world->fabric = *fabric;
    world->config = *config;
    world->step = step;
    world->context = context;
    world->prng.state = config->seed ^ 0x776f726c64u;
    world->config.fault.prng.state = config->seed ^ 0x6661756c74u;
    if (world->config.burst == 0 || world->config.burst > BURST_MAX)
        world->config.burst = 32;
    if (world->config.queue_max == 0)
        world->config.queue_max = UINT32_MAX;
    for (int n = 0; n < fabric->node_count; n++) {
        node_load(world, n);
        world->nodes[n].poll_ns = UINT64_MAX;
    }
    return world;
}

void world_reload(struct world *world, const struct fabric *fabric)
{
    world->fabric = *fabric;
    for (int n = 0; n < fabric->node_count; n++) {
        packets_clear(world, &world->nodes[n].to_engine);
        for (int j = 0; j < fabric->job_count; j++)
            packets_clear(world, &world->nodes[n].to_endpoint[j]);
        node_load(world, n);
    }
}

void world_destroy(struct world *world)
{
    struct event event;

    while (heap_pop(&world->heap, &event))
        free(event.packet);
    heap_free(&world->heap);
    for (int n = 0; n < world->fabric.node_count; n++) {
        struct node *node = &world->nodes[n];

        packets_clear(world, &node->arrived);
        packets_clear(world, &node->to_engine);
        for (int j = 0; j < FABRIC_JOBS_MAX; j++) {
            packets_clear(world, &node->to_endpoint[j]);
            free(node->endpoint[j]);
        }
        free(node->engine);
        free(node->image);
    }
    for (int l = 0; l < world->fabric.link_count; l++)
        for (int side = 0; side < 2; side++)
            for (struct departure *d = world->directions[l][side].head; d != NULL;) {
                struct departure *next = d->next;

                free(d->relayed);
                free(d);
                d = next;
            }
    while (world->spare != NULL) {
        struct packet *next = world->spare->next;

        free(world->spare);
        world->spare = next;
    }
    while (world->spare_departure != NULL) {
        struct departure *next = world->spare_departure->next;

        free(world->spare_departure);
        world->spare_departure = next;
    }
    free(world);
}

uint64_t world_now(const struct world *world)
{
    return world->now_ns;
}

void world_wake(struct world *world, int node, uint64_t at_ns)
{
    if (at_ns >= world->nodes[node].poll_ns)
        return;
    world->nodes[node].poll_ns = at_ns;
    heap_push(&world->heap, at_ns, EVENT_POLL, node, NULL);
}

void world_run(struct world *world, const int *done, uint64_t until_ns)
{
    struct event event;

    while (!*done && heap_pop(&world->heap, &event)) {
        if (event.at_ns > until_ns) {
            heap_push(&world->heap, event.at_ns, event.kind, event.index, event.packet);
            return;
        }
        world->now_ns = event.at_ns;
        world->counters.events++;
        if (event.kind == EVENT_POLL)
            on_poll(world, event.index, event.at_ns);
        else if (event.kind == EVENT_ARRIVE)
            on_arrive(world, event.index, event.packet);
        else
            on_depart(world, event.index / 2, event.index % 2);
    }
}

void world_kill(struct world *world, int node)
{
    world->nodes[node].dead = 1;
    packets_clear(world, &world->nodes[node].arrived);
}

void world_freeze(struct world *world, int node, uint64_t until_ns)
{
    world->nodes[node].frozen_ns = until_ns;
    world_wake(world, node, until_ns);
}

void world_calm(struct world *world)
{
    world->config.fault.loss = world->config.fault.duplicate = world->config.fault.reorder = 0;
    world->config.corrupt = 0;
}

struct by_endpoint *world_endpoint(struct world *world, int node, int job)
{
    return world->nodes[node].endpoint[job];
}

struct by_engine *world_engine(struct world *world, int node)
{
    return world->nodes[node].engine;
}

const struct world_counters *world_counters(const struct world *world)
{
    return &world->counters;
}

void world_sum_endpoints(const struct world *world, struct by_endpoint_counters *sum)
{
    memset(sum, 0, sizeof(*sum));
    for (int n = 0; n < world->fabric.node_count; n++)
        for (int j = 0; j < world->fabric.job_count; j++) {
            const struct by_endpoint_counters *one;

            if (world->nodes[n].endpoint[j] == NULL)
                continue;
            one = by_endpoint_counters(world->nodes[n].endpoint[j]);
#define X(name, help) sum->name += one->name;
            BY_ENDPOINT_COUNTER_LIST(X)
#undef X
        }
}

void world_sum_engines(const struct world *world, struct by_engine_counters *sum)
{
    memset(sum, 0, sizeof(*sum));
    for (int n = 0; n < world->fabric.node_count; n++) {
        const struct by_engine_counters *one = by_engine_counters(world->nodes[n].engine);

#define X(name, help) sum->name += one->name;
        BY_ENGINE_COUNTER_LIST(X)
#undef X
    }
}

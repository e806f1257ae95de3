/*
 * Nodes of the simulated world: packets in, a step of the engine and of the endpoints, actions out. A host
 * hands what its halves send to each other over by itself. Single-threaded.
 */
#include <stdlib.h>

#include "offload/base/bytes.h"
#include "tests/sim/inside.h"

#define TX_CAPACITY (BY_CHILDREN_MAX + 2 + BURST_MAX)

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
            cable_send(world, index, &tx[i], packet_copy(world, rx[tx[i].rx_index]));
            continue;
        }
        if (tx[i].port != BY_PORT_LOCAL) {
            cable_send(world, index, &tx[i], NULL);
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
static int for_engine(const struct node *node, const struct packet *packet, int job)
{
    uint8_t type = packet->data[1];
    uint16_t tree = by_get16(packet->data + 6);

    if (type == BY_TYPE_CONTRIB || type == BY_TYPE_PROBE)
        return 1;
    return job >= 0 && tree < FABRIC_TREES_MAX && node->interior[job] >> tree & 1;
}

static void sort_arrived(struct world *world, int index)
{
    struct node *node = &world->nodes[index];
    struct packet *packet;

    for (uint32_t i = 0; i < world->config.burst && (packet = packets_pop(&node->arrived)) != NULL; i++) {
        int job = job_index(world, by_get16(packet->data + 4));

        if (for_engine(node, packet, job))
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

void node_on_poll(struct world *world, int index, uint64_t at_ns)
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

void node_on_arrive(struct world *world, int index, struct packet *packet)
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

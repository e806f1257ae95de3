/*
 * Nodes of the simulated world: receive packets, step the engine and the endpoints, send their
 * output. A host passes packets between its halves itself. Single-threaded.
 */
#include <stdlib.h>
#include <string.h>

#include "host-driver/sim/inside.h"
#include "offload/base/bytes.h"

#define TX_CAPACITY (2 * BY_FAMILY_MAX + 2 + BY_WORLD_BURST_MAX)

/* Offsets in a header (offload/wire/PROTOCOL.md). */

int by_sim_job_index(const struct by_world *world, uint16_t job)
{
    for (uint32_t j = 0; j < world->job_count; j++)
        if (world->jobs[j] == job)
            return (int)j;
    return -1;
}

/* ---- high-water marks of trees ---- */

void by_sim_node_mark(struct by_world *world, uint32_t index)
{
    struct by_sim_node *node = &world->nodes[index];
    struct by_image_header header;
    struct by_image_entry entry;

    by_image_header(node->image, &header);
    for (uint32_t j = 0; j < world->job_count; j++) {
        free(node->marks[j]);
        node->marks[j] = NULL;
        node->mark_count[j] = 0;
    }
    node->slots_now = 0;
    for (uint32_t e = header.count[BY_SECTION_ENTRY]; e-- > 0;) {
        int j;

        by_image_entry(node->image, e, &entry);
        j = by_sim_job_index(world, entry.job);
        if (j < 0)
            continue;
        /* entries ascend: this is the job's highest tree */
        if (node->marks[j] == NULL) {
            node->mark_count[j] = entry.tree + 1u;
            node->marks[j] = calloc(node->mark_count[j], sizeof(struct by_progress_mark));
            if (node->marks[j] == NULL)
                abort();
        }
        node->marks[j][entry.tree].children = entry.child_count;
    }
}

/* Returns the mark of the tree in a header; NULL if the node has no entry for it. */
static struct by_progress_mark *mark_of(const struct by_world *world, const struct by_sim_node *node,
                                        const uint8_t *header)
{
    int j = by_sim_job_index(world, by_get16(header + BY_HEADER_AT_JOB));
    uint32_t tree = by_get16(header + BY_HEADER_AT_TREE);

    if (j < 0 || tree >= node->mark_count[j] || node->marks[j][tree].children == 0)
        return NULL;
    return &node->marks[j][tree];
}

/* Whether a packet is addressed to another node: its tree may have an entry here all the same. */
static int passes(const struct by_world *world, const struct by_sim_node *node,
                  const struct by_sim_parcel *parcel)
{
    uint32_t direction = parcel->port < node->port_count ? node->direction_of[parcel->port] : UINT32_MAX;

    return direction != UINT32_MAX && parcel->dst_ip != world->directions[direction].src_ip;
}

/* A contribution enters the engine: the first one of a chunk occupies a slot. */
static void mark_opened(struct by_world *world, struct by_sim_node *node, const uint8_t *header)
{
    struct by_progress_mark *mark = mark_of(world, node, header);
    uint32_t next = by_get32(header + BY_HEADER_AT_SEQ) + 1;

    if (mark == NULL || (int32_t)(next - mark->opened) <= 0)
        return;
    node->slots_now += next - mark->opened;
    mark->opened = next;
    if (node->slots_now > node->slots_high)
        node->slots_high = node->slots_now;
}

/* A result goes to a child; the first result of a chunk frees the slot. */
static void mark_closed(struct by_world *world, struct by_sim_node *node, const uint8_t *header)
{
    struct by_progress_mark *mark = mark_of(world, node, header);
    uint32_t seq = by_get32(header + BY_HEADER_AT_SEQ);

    if (mark == NULL || (mark->closed > 0 && seq == mark->last) || header[BY_HEADER_AT_FLAGS] & BY_FLAG_RETX)
        return;
    mark->last = seq;
    mark->closed++;
    if (node->slots_now > 0)
        node->slots_now--;
}

/* ---- steps ---- */

/* Sends the output of an endpoint or engine to the cables, or to this host's other half. */
static void act(struct by_world *world, uint32_t index, const struct by_tx *tx, uint32_t count,
                struct by_sim_parcel *const *rx, int from_engine)
{
    struct by_sim_node *node = &world->nodes[index];

    for (uint32_t i = 0; i < count; i++) {
        struct by_sim_parcel *parcel;
        int job;

        if (tx[i].kind == BY_TX_RELAY) {
            by_cable_send(world, index, &tx[i], by_parcel_copy(world, rx[tx[i].rx_index]));
            continue;
        }
        if (tx[i].kind == BY_TX_HOLD) {
            parcel = by_parcel_copy(world, rx[tx[i].rx_index]);
            parcel->held = 1;
            by_heap_push(&world->heap, world->now_ps + by_sim_ps(tx[i].wait_ns), BY_EVENT_ADDED, index,
                         parcel);
            continue;
        }
        if (from_engine && tx[i].header[BY_HEADER_AT_TYPE] == BY_TYPE_RESULT)
            mark_closed(world, node, tx[i].header);
        if (tx[i].port != BY_PORT_LOCAL) {
            by_cable_send(world, index, &tx[i], NULL);
            continue;
        }
        parcel = by_parcel_make(world, &tx[i]);
        parcel->port = BY_PORT_LOCAL;
        parcel->src_ip = 0;
        if (tx[i].ref != BY_REF_NONE)
            by_engine_release(node->engine, tx[i].ref);
        job = by_sim_job_index(world, by_get16(parcel->data + BY_HEADER_AT_JOB));
        if (from_engine && job >= 0)
            by_parcels_push(&node->to_endpoint[job], parcel);
        else if (!from_engine)
            by_parcels_push(&node->to_engine, parcel);
        else
            by_parcel_put(world, parcel);
    }
}

/* Takes up to a burst from `list` into the array that a step expects. */
static uint32_t take_burst(struct by_world *world, struct by_parcels *list, struct by_sim_parcel **parcels,
                           struct by_rx *rx)
{
    uint32_t count = 0;

    while (count < world->config.burst && list->head != NULL) {
        struct by_sim_parcel *parcel = by_parcels_pop(list);

        parcels[count] = parcel;
        rx[count++] = (struct by_rx){.data = parcel->data,
                                     .bytes = parcel->bytes,
                                     .port = parcel->port,
                                     .src_ip = parcel->src_ip,
                                     .dst_ip = parcel->dst_ip,
                                     .ecn = parcel->ecn,
                                     .held = parcel->held};
    }
    return count;
}

static void step_engine(struct by_world *world, uint32_t index, struct by_parcels *list)
{
    struct by_sim_node *node = &world->nodes[index];
    struct by_sim_parcel *parcels[BY_WORLD_BURST_MAX];
    struct by_rx rx[BY_WORLD_BURST_MAX];
    struct by_tx tx[TX_CAPACITY];
    uint32_t count = take_burst(world, list, parcels, rx);

    for (uint32_t i = 0; i < count && node->engine != NULL; i++)
        if (rx[i].bytes >= BY_WIRE_HEADER_BYTES && rx[i].data[BY_HEADER_AT_TYPE] == BY_TYPE_CONTRIB &&
            !passes(world, node, parcels[i]))
            mark_opened(world, node, rx[i].data);
    for (uint32_t done = 0; done < count && node->engine != NULL;) {
        uint32_t taken, tx_count = 0;

        by_engine_allow(node->engine, UINT32_MAX);
        taken = by_engine_step(node->engine, world->now_ps / 1000, rx + done, count - done, tx,
                               by_engine_tx_least(node->engine), &tx_count);
        /* rx_index counts from the first packet of that step. */
        act(world, index, tx, tx_count, parcels + done, 1);
        done += taken;
    }
    for (uint32_t i = 0; i < count; i++)
        by_parcel_put(world, parcels[i]);
}

static void step_endpoint(struct by_world *world, uint32_t index, uint32_t job)
{
    struct by_sim_node *node = &world->nodes[index];
    struct by_sim_parcel *parcels[BY_WORLD_BURST_MAX];
    struct by_rx rx[BY_WORLD_BURST_MAX];
    struct by_tx tx[TX_CAPACITY];
    uint32_t count = take_burst(world, &node->to_endpoint[job], parcels, rx);
    uint32_t tx_count, rounds = 0;

    do {
        uint32_t taken;

        if (rounds == 0 && count > 0 && world->config.watch != NULL)
            world->config.watch(world->context, world, index, job, rx, count, 0);
        taken = by_endpoint_step(node->endpoint[job], world->now_ps / 1000, rx, rounds == 0 ? count : 0, tx,
                                 BY_WORLD_BURST_MAX, &tx_count);
        if (rounds == 0 && count > 0 && world->config.watch != NULL)
            world->config.watch(world->context, world, index, job, rx, count, 1);
        if (rounds++ == 0 && taken != count)
            abort();
        act(world, index, tx, tx_count, parcels, 0);
    } while (tx_count == BY_WORLD_BURST_MAX);
    for (uint32_t i = 0; i < count; i++)
        by_parcel_put(world, parcels[i]);
}

/* Whether a packet from a cable is for a host's engine: contributions, which only engines receive,
 * and packets of trees in which it has an entry. */
static int for_engine(const struct by_world *world, const struct by_sim_node *node,
                      const struct by_sim_parcel *parcel)
{
    uint8_t type = parcel->data[BY_HEADER_AT_TYPE];

    return type == BY_TYPE_CONTRIB || mark_of(world, node, parcel->data) != NULL;
}

static void sort_arrived(struct by_world *world, uint32_t index)
{
    struct by_sim_node *node = &world->nodes[index];
    struct by_sim_parcel *parcel;

    for (uint32_t i = 0; i < world->config.burst && (parcel = by_parcels_pop(&node->arrived)) != NULL; i++) {
        int job = by_sim_job_index(world, by_get16(parcel->data + BY_HEADER_AT_JOB));

        if (node->engine != NULL && for_engine(world, node, parcel))
            by_parcels_push(&node->to_engine, parcel);
        else if (job >= 0 && node->endpoint[job] != NULL)
            by_parcels_push(&node->to_endpoint[by_sim_standby_endpoint(node, (uint32_t)job, parcel->data)],
                            parcel);
        else
            by_parcel_put(world, parcel);
    }
}

static void poll_host(struct by_world *world, uint32_t index)
{
    struct by_sim_node *node = &world->nodes[index];
    uint64_t now_ns = world->now_ps / 1000, due;
    int again;

    sort_arrived(world, index);
    if (world->step != NULL)
        (void)world->step(world->context, world, index);
    do {
        again = 0;
        while (node->to_engine.head != NULL)
            step_engine(world, index, &node->to_engine);
        for (uint32_t j = 0; j < world->endpoint_count; j++) {
            if (node->endpoint[j] == NULL)
                continue;
            step_endpoint(world, index, j);
            again |= node->to_endpoint[j].head != NULL;
        }
        again |= by_sim_standby_step(world, index);
        if (world->step != NULL)
            again |= world->step(world->context, world, index);
        again |= node->to_engine.head != NULL;
    } while (again);
    due = by_sim_standby_deadline(node);
    for (uint32_t j = 0; j < world->endpoint_count; j++)
        if (node->endpoint[j] != NULL && by_endpoint_deadline(node->endpoint[j]) < due)
            due = by_endpoint_deadline(node->endpoint[j]);
    if (due != UINT64_MAX)
        by_world_wake(world, index, due > now_ns ? due : now_ns + 1);
}

void by_sim_node_on_poll(struct by_world *world, uint32_t index, uint64_t at_ps)
{
    struct by_sim_node *node = &world->nodes[index];

    if (node->poll_ps != at_ps || node->dead)
        return; /* an earlier step was scheduled */
    node->poll_ps = UINT64_MAX;
    if (world->now_ps < node->frozen_ps) {
        by_world_wake_ps(world, index, node->frozen_ps);
        return;
    }
    if (node->kind == BY_NODE_SWITCH)
        step_engine(world, index, &node->arrived);
    else
        poll_host(world, index);
    if (node->arrived.head != NULL)
        by_world_wake_ps(world, index, world->now_ps + 1000);
}

void by_sim_node_on_added(struct by_world *world, uint32_t index, struct by_sim_parcel *parcel)
{
    struct by_sim_node *node = &world->nodes[index];

    if (node->dead) {
        by_parcel_put(world, parcel);
        return;
    }
    by_parcels_push(&node->arrived, parcel);
    if (node->poll_ps > world->now_ps + by_sim_ps(world->config.poll_ns))
        by_world_wake_ps(world, index,
                         world->now_ps +
                             by_sim_ps(by_prng_below(&world->prng, world->config.poll_ns + UINT64_C(1))));
}

/* Applies a node's addition rate: the time of one contribution is (children - 1) / children of the
 * time of its bytes, so that a chunk takes the time of its additions. */
static int is_added_later(struct by_world *world, uint32_t index, struct by_sim_parcel *parcel)
{
    struct by_sim_node *node = &world->nodes[index];
    const struct by_progress_mark *mark;
    unsigned __int128 bytes = (unsigned __int128)(parcel->bytes - BY_WIRE_HEADER_BYTES) * world->config.batch;

    if (node->add_den == 0 || parcel->data[BY_HEADER_AT_TYPE] != BY_TYPE_CONTRIB ||
        parcel->data[BY_HEADER_AT_FLAGS] & BY_FLAG_NODATA || passes(world, node, parcel))
        return 0;
    mark = mark_of(world, node, parcel->data);
    if (mark == NULL || mark->children < 2)
        return 0;
    if (node->adds_ps < world->now_ps)
        node->adds_ps = world->now_ps;
    node->adds_ps +=
        (uint64_t)(bytes * node->add_num * (mark->children - 1u) / node->add_den / mark->children);
    by_heap_push(&world->heap, node->adds_ps, BY_EVENT_ADDED, index, parcel);
    return 1;
}

void by_sim_node_on_arrive(struct by_world *world, uint32_t index, struct by_sim_parcel *parcel)
{
    if (world->nodes[index].dead) {
        by_parcel_put(world, parcel);
        return;
    }
    world->counters.delivered++;
    if (!is_added_later(world, index, parcel))
        by_sim_node_on_added(world, index, parcel);
}

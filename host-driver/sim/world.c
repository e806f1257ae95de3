/* The event loop of the simulated world, and its creation and destruction. Single-threaded. */
#include "host-driver/sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/sim/inside.h"
#include "offload/reduce/reduce.h"

static void *aligned(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

    if (memory == NULL)
        abort();
    return memory;
}

static void *zeroed(size_t count, size_t bytes)
{
    void *memory = calloc(count > 0 ? count : 1, bytes);

    if (memory == NULL)
        abort();
    return memory;
}

/* Detected once: in a virtual machine the detection takes as long as a small scenario. */
unsigned by_sim_isa(void)
{
    static unsigned best;

    if (best == 0)
        best = by_isa_best();
    return best;
}

static uint32_t at_least(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Counts the jobs with a share of their links. */
static uint32_t share_count(const uint8_t *image)
{
    struct by_image_header header;
    struct by_image_job job;
    uint32_t count = 0;

    by_image_header(image, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_JOB]; i++) {
        by_image_job(image, i, &job);
        count += job.share > 0;
    }
    return count;
}

static void engine_create(struct by_world *world, struct by_sim_node *node)
{
    const struct by_world_config *given = &world->config;
    struct by_engine_config config = {.repair_interval_ns = given->repair_interval_ns,
                                      .isa = by_sim_isa(),
                                      .tx_max = 2 * BY_FAMILY_MAX + 2};
    struct by_image_header header;
    size_t bytes;

    by_image_header(node->image, &header);
    config.payload_max = at_least(header.payload_max, given->payload_max);
    config.slot_count_max = at_least(at_least(header.slot_count, given->slot_count_max), 1);
    config.image_bytes_max = at_least((uint32_t)node->image_bytes, given->image_bytes_max);
    config.entry_count_max = at_least(at_least(header.count[BY_SECTION_ENTRY], given->entry_count_max), 1);
    if (header.kind == BY_NODE_SWITCH)
        config.meter_count_max = by_engine_meters(header.count[BY_SECTION_PORT], share_count(node->image));
    config.relay_count_max = at_least(header.count[BY_SECTION_RELAY], given->relay_count_max);
    bytes = by_engine_size(&config);
    if (bytes == 0 || by_engine_init(&node->engine, aligned(bytes), bytes, &config) != 0)
        abort();
}

void by_sim_retire(struct by_world *world, void *memory)
{
    if (memory == NULL)
        return;
    world->retired = realloc(world->retired, (world->retired_count + 1) * sizeof(void *));
    if (world->retired == NULL)
        abort();
    world->retired[world->retired_count++] = memory;
}

static void engine_load(struct by_world *world, struct by_sim_node *node)
{
    struct by_image_fault fault = {0};
    struct by_image_header header;

    by_image_header(node->image, &header);
    if (node->engine == NULL && header.count[BY_SECTION_ENTRY] + header.count[BY_SECTION_RELAY] == 0)
        return;
    if (node->engine == NULL)
        engine_create(world, node);
    if (by_engine_stage(node->engine, node->image, node->image_bytes, &fault) != 0 ||
        by_engine_commit(node->engine) != 0) {
        fprintf(stderr, "world: %s refuses its table: %s %u %s\n", header.name, fault.section, fault.index,
                fault.what);
        abort();
    }
}

void by_sim_engine_load(struct by_world *world, uint32_t index)
{
    engine_load(world, &world->nodes[index]);
    by_sim_node_mark(world, index);
}

/* Creates the parts of a node from its image. */
static void node_load(struct by_world *world, uint32_t index)
{
    struct by_sim_node *node = &world->nodes[index];

    by_sim_engine_load(world, index);
    for (uint32_t j = 0; j < world->job_count; j++) {
        struct by_endpoint_config config = world->config.endpoint;
        size_t bytes;

        by_sim_retire(world, node->endpoint[j]);
        node->endpoint[j] = NULL;
        config.image = node->image;
        config.image_bytes = node->image_bytes;
        config.job = world->jobs[j];
        config.isa = by_sim_isa();
        config.nonce = (uint32_t)by_prng_next(&world->nonces);
        bytes = by_endpoint_size(&config);
        if (bytes == 0)
            continue;
        if (by_endpoint_init(&node->endpoint[j], aligned(bytes), bytes, &config) != 0)
            abort();
    }
}

static void node_image(struct by_world *world, uint32_t index, const struct by_world_node *given)
{
    struct by_sim_node *node = &world->nodes[index];
    struct by_image_header header;

    free(node->image);
    node->image = given->image;
    node->image_bytes = given->image_bytes;
    node->add_num = given->add_num;
    node->add_den = given->add_den;
    by_image_header(node->image, &header);
    node->kind = header.kind;
    node->port_count = header.count[BY_SECTION_PORT];
}

static void take_config(struct by_world *world, const struct by_world_config *config)
{
    world->config = *config;
    world->prng.state = config->seed ^ 0x776f726c64u;
    world->nonces.state = config->seed ^ 0x6e6f6e6365u;
    world->config.fault.prng.state = config->seed ^ 0x6661756c74u;
    if (config->burst == 0 || config->burst > BY_WORLD_BURST_MAX)
        world->config.burst = 32;
    if (config->queue_max == 0)
        world->config.queue_max = UINT32_MAX;
    if (config->queue_bytes_max == 0)
        world->config.queue_bytes_max = UINT64_MAX;
    if (config->shared_bytes_max == 0)
        world->config.shared_bytes_max = UINT64_MAX;
    if (config->batch == 0)
        world->config.batch = 1;
    if (config->loss_run > 1) {
        world->run_loss = config->fault.loss;
        world->config.fault.loss = 0;
    }
}

static void lay_cables(struct by_world *world, const struct by_world_fabric *fabric)
{
    world->direction_count = fabric->arc_count;
    world->directions = zeroed(fabric->arc_count, sizeof(*world->directions));
    for (uint32_t a = 0; a < fabric->arc_count; a++) {
        const struct by_world_arc *arc = &fabric->arcs[a];
        struct by_sim_node *from = &world->nodes[arc->from];
        struct by_image_port port;

        if (arc->from_port >= from->port_count || arc->to_port >= world->nodes[arc->to].port_count)
            abort();
        by_image_port(from->image, arc->from_port, &port);
        world->directions[a].arc = *arc;
        world->directions[a].src_ip = port.own_ip;
        from->direction_of[arc->from_port] = a;
    }
}

struct by_world *by_world_create(const struct by_world_fabric *fabric, const struct by_world_config *config,
                                 by_world_host_step *step, void *context)
{
    struct by_world *world = zeroed(1, sizeof(*world));

    take_config(world, config);
    world->step = step;
    world->context = context;
    world->node_count = fabric->node_count;
    world->job_count = world->endpoint_count = fabric->job_count;
    memcpy(world->jobs, fabric->jobs, sizeof(world->jobs));
    world->nodes = zeroed(fabric->node_count, sizeof(*world->nodes));
    for (uint32_t n = 0; n < fabric->node_count; n++) {
        struct by_sim_node *node = &world->nodes[n];

        node_image(world, n, &fabric->nodes[n]);
        node->direction_of = zeroed(node->port_count, sizeof(uint32_t));
        memset(node->direction_of, 0xff, node->port_count * sizeof(uint32_t));
        node->poll_ps = UINT64_MAX;
    }
    lay_cables(world, fabric);
    by_streams_make(world);
    for (uint32_t n = 0; n < fabric->node_count; n++)
        node_load(world, n);
    return world;
}

static void drop_queues(struct by_world *world, struct by_sim_node *node)
{
    by_parcels_clear(world, &node->to_engine);
    for (uint32_t j = 0; j < world->endpoint_count; j++)
        by_parcels_clear(world, &node->to_endpoint[j]);
}

void by_world_reload(struct by_world *world, const struct by_world_fabric *fabric)
{
    for (uint32_t n = 0; n < world->node_count; n++) {
        drop_queues(world, &world->nodes[n]);
        node_image(world, n, &fabric->nodes[n]);
        node_load(world, n);
    }
}

/* Drops the queued packets of `index` from its engine's reference counts, because the engine is
 * about to be freed. */
static void forget_references(struct by_world *world, uint32_t index)
{
    for (uint32_t a = 0; a < world->direction_count; a++)
        for (struct by_departure *d = world->directions[a].head;
             d != NULL && world->directions[a].arc.from == index; d = d->next)
            d->tx.ref = BY_REF_NONE;
}

void by_world_forget(struct by_world *world, uint32_t index)
{
    struct by_sim_node *node = &world->nodes[index];

    forget_references(world, index);
    by_parcels_clear(world, &node->arrived);
    by_sim_retire(world, node->engine);
    engine_create(world, node);
}

void by_world_restart(struct by_world *world, uint32_t index)
{
    struct by_sim_node *node = &world->nodes[index];

    forget_references(world, index);
    by_parcels_clear(world, &node->arrived);
    drop_queues(world, node);
    by_sim_retire(world, node->engine);
    node->engine = NULL;
    node->dead = 0;
    node->poll_ps = UINT64_MAX;
    node_load(world, index);
}

static void node_free(struct by_world *world, struct by_sim_node *node)
{
    by_parcels_clear(world, &node->arrived);
    drop_queues(world, node);
    by_sim_standby_free(node);
    for (uint32_t j = 0; j < world->job_count; j++) {
        free(node->endpoint[j]);
        free(node->resume_memory[j]);
        free(node->marks[j]);
    }
    free(node->engine);
    if (node->coming_image == NULL) /* otherwise it is retired */
        free(node->image);
    free(node->direction_of);
}

void by_world_destroy(struct by_world *world)
{
    struct by_sim_event event;

    while (by_heap_pop(&world->heap, &event))
        free(event.parcel);
    by_heap_free(&world->heap);
    for (uint32_t n = 0; n < world->node_count; n++)
        node_free(world, &world->nodes[n]);
    for (uint32_t a = 0; a < world->direction_count; a++)
        for (struct by_departure *d = world->directions[a].head; d != NULL;) {
            struct by_departure *next = d->next;

            free(d->relayed);
            free(d);
            d = next;
        }
    for (unsigned size = 0; size < 2; size++)
        while (world->spare[size] != NULL) {
            struct by_sim_parcel *next = world->spare[size]->next;

            free(world->spare[size]);
            world->spare[size] = next;
        }
    while (world->spare_departure != NULL) {
        struct by_departure *next = world->spare_departure->next;

        free(world->spare_departure);
        world->spare_departure = next;
    }
    while (world->retired_count > 0)
        free(world->retired[--world->retired_count]);
    free(world->retired);
    by_streams_free(world);
    free(world->nodes);
    free(world->directions);
    free(world);
}

void by_world_wake_ps(struct by_world *world, uint32_t node, uint64_t at_ps)
{
    if (at_ps >= world->nodes[node].poll_ps)
        return;
    world->nodes[node].poll_ps = at_ps;
    by_heap_push(&world->heap, at_ps, BY_EVENT_POLL, node, NULL);
}

void by_world_wake(struct by_world *world, uint32_t node, uint64_t at_ns)
{
    by_world_wake_ps(world, node, by_sim_ps(at_ns));
}

/* Takes the samples that are due before `until_ps`. */
static void sample(struct by_world *world, uint64_t until_ps)
{
    const struct by_world_config *config = &world->config;

    for (; config->sample != NULL && world->sample_ps <= until_ps;
         world->sample_ps += by_sim_ps(config->sample_ns))
        config->sample(world->context, world, world->sample_ps / 1000);
}

void by_world_run(struct by_world *world, const int *done, uint64_t until_ns)
{
    uint64_t until_ps = by_sim_ps(until_ns);
    struct by_sim_event event;

    while (!*done && by_heap_pop(&world->heap, &event)) {
        if (event.at_ps > until_ps) {
            by_heap_push(&world->heap, event.at_ps, event.kind, event.index, event.parcel);
            return;
        }
        sample(world, event.at_ps);
        world->now_ps = event.at_ps;
        world->counters.events++;
        if (event.kind == BY_EVENT_POLL)
            by_sim_node_on_poll(world, event.index, event.at_ps);
        else if (event.kind == BY_EVENT_ARRIVE)
            by_sim_node_on_arrive(world, event.index, event.parcel);
        else if (event.kind == BY_EVENT_ADDED)
            by_sim_node_on_added(world, event.index, event.parcel);
        else if (event.kind == BY_EVENT_DEPART)
            by_cable_on_depart(world, event.index);
        else if (event.kind == BY_EVENT_TABLE)
            by_sim_on_table(world, event.index);
        else if (event.kind == BY_EVENT_FREEZE)
            by_sim_on_freeze(world, event.index);
        else if (event.kind == BY_EVENT_TELL)
            by_sim_on_tell(world, event.index, event.parcel);
        else if (event.kind == BY_EVENT_REPEAT)
            by_sim_on_repeat(world, event.index);
        else
            by_stream_on_event(world, event.index);
    }
}

void by_world_kill(struct by_world *world, uint32_t node)
{
    world->nodes[node].dead = 1;
    by_parcels_clear(world, &world->nodes[node].arrived);
}

void by_world_freeze(struct by_world *world, uint32_t node, uint64_t until_ns)
{
    world->nodes[node].frozen_ps = by_sim_ps(until_ns);
    by_world_wake(world, node, until_ns);
}

void by_world_calm(struct by_world *world)
{
    world->config.fault.loss = world->config.fault.duplicate = world->config.fault.reorder = 0;
    world->config.corrupt = 0;
    world->run_loss = 0;
    for (uint32_t a = 0; a < world->direction_count; a++)
        world->directions[a].arc.loss = 0;
}

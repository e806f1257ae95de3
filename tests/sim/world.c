/* The event loop of the simulated world, and its beginning and end. Single-threaded. */
#include "tests/sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/reduce/reduce.h"
#include "tests/sim/inside.h"

static void *aligned(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

    if (memory == NULL)
        abort();
    return memory;
}

/* Asked of the processor once: in a virtual machine that takes as long as a small scenario. */
static unsigned best_isa(void)
{
    static unsigned best;

    if (best == 0)
        best = by_isa_best();
    return best;
}

static void engine_create(struct world *world, int index)
{
    struct by_engine_config config = {.payload_max = BY_PAYLOAD_MAX,
                                      .image_bytes_max = 1u << 18,
                                      .entry_count_max = FABRIC_TREES_MAX * FABRIC_JOBS_MAX,
                                      .relay_count_max = 4096,
                                      .repair_interval_ns = world->config.repair_interval_ns,
                                      .isa = best_isa()};
    struct by_image_header header;
    size_t bytes;

    by_image_header(world->nodes[index].image, &header);
    config.payload_max = header.payload_max;
    config.slot_count_max = header.slot_count > 0 ? header.slot_count : 1;
    bytes = by_engine_size(&config);
    if (bytes == 0 || by_engine_init(&world->nodes[index].engine, aligned(bytes), bytes, &config) != 0)
        abort();
}

/* Frees `memory` with the world. */
static void retire(struct world *world, void *memory)
{
    if (memory == NULL)
        return;
    world->retired = realloc(world->retired, (world->retired_count + 1) * sizeof(void *));
    world->retired[world->retired_count++] = memory;
}

static void note_interior(struct world *world, int index)
{
    for (int j = 0; j < world->fabric.job_count; j++) {
        const struct fabric_job *job = &world->fabric.jobs[j];

        world->nodes[index].interior[j] = 0;
        for (int t = 0; t < job->tree_count; t++)
            for (int n = 0; n < world->fabric.node_count; n++)
                if (job->trees[t].parent[n] == index)
                    world->nodes[index].interior[j] |= 1u << t;
    }
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
    note_interior(world, index);
    for (int j = 0; j < world->fabric.job_count; j++) {
        struct by_endpoint_config config = world->config.endpoint;
        size_t bytes;

        retire(world, node->endpoint[j]);
        node->endpoint[j] = NULL;
        config.image = node->image;
        config.image_bytes = node->image_bytes;
        config.job = world->fabric.jobs[j].job;
        config.isa = best_isa();
        config.nonce = (uint32_t)by_prng_next(&world->nonces);
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
    world->nonces.state = config->seed ^ 0x6e6f6e6365u;
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

/* What waits for the cables of `index` no longer counts in its engine, which is about to go. */
static void forget_references(struct world *world, int index)
{
    for (int l = 0; l < world->fabric.link_count; l++) {
        const struct fabric_link *link = &world->fabric.links[l];

        if (link->a != index && link->b != index)
            continue;
        for (struct departure *d = world->directions[l][link->b == index].head; d != NULL; d = d->next)
            d->tx.ref = BY_REF_NONE;
    }
}

void world_forget(struct world *world, int index)
{
    forget_references(world, index);
    packets_clear(world, &world->nodes[index].arrived);
    retire(world, world->nodes[index].engine);
    engine_create(world, index);
}

void world_restart(struct world *world, int index)
{
    struct node *node = &world->nodes[index];

    forget_references(world, index);
    packets_clear(world, &node->arrived);
    packets_clear(world, &node->to_engine);
    for (int j = 0; j < FABRIC_JOBS_MAX; j++)
        packets_clear(world, &node->to_endpoint[j]);
    retire(world, node->engine);
    node->engine = NULL;
    node->dead = 0;
    node->poll_ns = UINT64_MAX;
    node_load(world, index);
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
    while (world->retired_count > 0)
        free(world->retired[--world->retired_count]);
    free(world->retired);
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
            node_on_poll(world, event.index, event.at_ns);
        else if (event.kind == EVENT_ARRIVE)
            node_on_arrive(world, event.index, event.packet);
        else
            cable_on_depart(world, event.index / 2, event.index % 2);
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

/* Accessors of a simulated world: time, counters, traffic. Single-threaded. */
#include <string.h>

#include "host-driver/sim/inside.h"

uint64_t by_world_now(const struct by_world *world)
{
    return world->now_ps / 1000;
}

uint64_t by_world_now_ps(const struct by_world *world)
{
    return world->now_ps;
}

struct by_endpoint *by_world_endpoint(struct by_world *world, uint32_t node, uint32_t job)
{
    return world->nodes[node].endpoint[job];
}

struct by_engine *by_world_engine(struct by_world *world, uint32_t node)
{
    return world->nodes[node].engine;
}

const uint8_t *by_world_image(const struct by_world *world, uint32_t node)
{
    return world->nodes[node].image;
}

const struct by_world_counters *by_world_counters(const struct by_world *world)
{
    return &world->counters;
}

const struct by_world_use *by_world_use(const struct by_world *world, uint32_t arc)
{
    return &world->directions[arc].use;
}

uint64_t by_world_queue(const struct by_world *world, uint32_t arc)
{
    return world->directions[arc].queue_bytes;
}

uint64_t by_world_busy_ps(const struct by_world *world, uint32_t arc, uint64_t at_ns)
{
    const struct by_sim_direction *direction = &world->directions[arc];
    uint64_t ahead_ps = direction->free_ps > by_sim_ps(at_ns) ? direction->free_ps - by_sim_ps(at_ns) : 0;

    return direction->use.busy_ps > ahead_ps ? direction->use.busy_ps - ahead_ps : 0;
}

void by_world_use_reset(struct by_world *world)
{
    for (uint32_t a = 0; a < world->direction_count; a++)
        world->directions[a].use = (struct by_world_use){.queue_high = world->directions[a].queue_bytes};
    for (uint32_t n = 0; n < world->node_count; n++)
        world->nodes[n].slots_high = world->nodes[n].slots_now;
}

uint32_t by_world_slots_high(const struct by_world *world, uint32_t node)
{
    return world->nodes[node].slots_high;
}

void by_world_sum_endpoints(const struct by_world *world, struct by_endpoint_counters *sum)
{
    memset(sum, 0, sizeof(*sum));
    for (uint32_t n = 0; n < world->node_count; n++)
        for (uint32_t j = 0; j < world->job_count; j++) {
            const struct by_endpoint_counters *one;

            if (world->nodes[n].endpoint[j] == NULL)
                continue;
            one = by_endpoint_counters(world->nodes[n].endpoint[j]);
#define X(name, help) sum->name += one->name;
            BY_ENDPOINT_COUNTER_LIST(X)
#undef X
        }
}

void by_world_sum_engines(const struct by_world *world, struct by_engine_counters *sum)
{
    memset(sum, 0, sizeof(*sum));
    for (uint32_t n = 0; n < world->node_count; n++) {
        const struct by_engine_counters *one;

        if (world->nodes[n].engine == NULL)
            continue;
        one = by_engine_counters(world->nodes[n].engine);
#define X(name, help) sum->name += one->name;
        BY_ENGINE_COUNTER_LIST(X)
#undef X
    }
}

/*
 * A new generation under which calls continue (offload/endpoint/resume.h). Tables reach the nodes
 * one by one, and so do the notifications of the hosts. Messages between hosts take time, and are
 * lost, duplicated and reordered, separately from the cables. Single-threaded.
 */
#include <stdlib.h>
#include <string.h>

#include "host-driver/sim/inside.h"
#include "offload/endpoint/resume.h"

/* Room for the longest message: some hundred trees with the longest windows. */
#define MESSAGE_MAX (1u << 18)

static void *aligned(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

    if (memory == NULL)
        abort();
    return memory;
}

/* Returns a random time from now on, within the delay of the control plane. */
static uint64_t soon_ps(struct by_world *world)
{
    return world->now_ps + by_sim_ps(by_prng_below(&world->prng, world->spread_ns + 1));
}

static uint16_t gen_in(const uint8_t *image, uint16_t job)
{
    struct by_image_header header;
    struct by_image_job found = {0};

    by_image_header(image, &header);
    for (uint32_t j = 0; j < header.count[BY_SECTION_JOB]; j++) {
        by_image_job(image, j, &found);
        if (found.job == job)
            break;
    }
    return found.gen;
}

static void send_to(struct by_world *world, uint32_t node, uint32_t job, const uint8_t *data, size_t bytes)
{
    struct by_sim_parcel *parcel = malloc(sizeof(*parcel) + bytes);

    if (parcel == NULL)
        abort();
    memset(parcel, 0, sizeof(*parcel));
    parcel->bytes = (uint16_t)bytes;
    parcel->port = (uint16_t)job;
    memcpy(parcel->data, data, bytes);
    by_heap_push(&world->heap, soon_ps(world), BY_EVENT_TELL, node, parcel);
    world->counters.told++;
}

static uint32_t node_of_rank(const struct by_world *world, uint32_t job, uint16_t rank)
{
    for (uint32_t n = 0; n < world->node_count; n++)
        if (world->nodes[n].endpoint[job] != NULL && by_endpoint_rank(world->nodes[n].endpoint[job]) == rank)
            return n;
    abort();
}

/* Sends all messages. If the cables lose packets, one message in eight is lost or duplicated. */
static void say_all(struct by_world *world, uint32_t index, uint32_t job)
{
    static uint8_t data[MESSAGE_MAX];
    struct by_sim_node *node = &world->nodes[index];
    size_t bytes;
    uint16_t to;

    while ((bytes = by_resume_say(node->resume[job], data, &to)) > 0) {
        uint64_t luck = world->config.fault.loss > 0 ? by_prng_below(&world->prng, 16) : 16;
        uint32_t peer = node_of_rank(world, job, to);

        if (luck == 0)
            continue;
        send_to(world, peer, job, data, bytes);
        if (luck == 1)
            send_to(world, peer, job, data, bytes);
    }
}

/* Continues the host's calls on the trees of the announced generation. */
static void carry(struct by_world *world, uint32_t index, uint32_t job)
{
    struct by_sim_node *node = &world->nodes[index];
    struct by_endpoint_config config = world->config.endpoint;
    struct by_endpoint *endpoint;
    size_t bytes;
    void *memory;

    config.image = node->told_image;
    config.image_bytes = node->told_bytes;
    config.job = world->jobs[job];
    config.isa = by_sim_isa();
    bytes = by_resume_copy_size(node->resume[job], &config);
    memory = aligned(bytes);
    if (by_resume_copy(node->resume[job], &endpoint, memory, bytes, &config) != 0)
        abort();
    by_sim_retire(world, node->endpoint[job]);
    node->endpoint[job] = endpoint;
    by_world_wake(world, index, world->now_ps / 1000);
}

static void look(struct by_world *world, uint32_t index, uint32_t job)
{
    say_all(world, index, job);
    if (!world->nodes[index].over[job] && by_resume_is_level(world->nodes[index].resume[job])) {
        carry(world, index, job);
        world->nodes[index].over[job] = 1;
        say_all(world, index, job);
    }
}

void by_sim_on_tell(struct by_world *world, uint32_t index, struct by_sim_parcel *parcel)
{
    struct by_sim_node *node = &world->nodes[index];
    uint32_t job = parcel->port;
    int error;

    if (node->resume[job] != NULL) {
        error = by_resume_take(node->resume[job], parcel->data, parcel->bytes);
        if (error != 0)
            abort();
        look(world, index, job);
    }
    free(parcel);
}

/* Announces to the host the next generation and its tables. */
void by_sim_on_freeze(struct by_world *world, uint32_t index)
{
    struct by_sim_node *node = &world->nodes[index];

    node->told_image = node->coming_image;
    node->told_bytes = node->coming_bytes;
    by_sim_standby_end(node);
    for (uint32_t j = 0; j < world->job_count; j++) {
        uint16_t gen = gen_in(node->told_image, world->jobs[j]);

        if (node->endpoint[j] == NULL || (node->resume[j] != NULL && node->attempt[j] == gen))
            continue;
        if (by_resume_message_max(node->endpoint[j]) > MESSAGE_MAX)
            abort();
        node->attempt[j] = gen;
        by_sim_retire(world, node->resume_memory[j]);
        node->resume_memory[j] = aligned(by_resume_size(node->endpoint[j]));
        node->over[j] = 0;
        if (by_resume_begin(&node->resume[j], node->resume_memory[j], node->endpoint[j], gen) != 0)
            abort();
        look(world, index, j);
    }
    by_heap_push(&world->heap, world->now_ps + by_sim_ps(2 * world->spread_ns + 1000), BY_EVENT_REPEAT, index,
                 NULL);
}

/* Until the calls of all ranks of a job have continued, some ranks may still need a message of this
 * one. */
void by_sim_on_repeat(struct by_world *world, uint32_t index)
{
    struct by_sim_node *node = &world->nodes[index];
    int waits = 0;

    for (uint32_t j = 0; j < world->job_count; j++) {
        int all = 1;

        for (uint32_t n = 0; n < world->node_count; n++)
            all &= world->nodes[n].endpoint[j] == NULL ||
                   (world->nodes[n].over[j] && world->nodes[n].attempt[j] == node->attempt[j]);
        if (all || node->resume[j] == NULL)
            continue;
        waits = 1;
        by_resume_repeat(node->resume[j]);
        look(world, index, j);
    }
    if (waits)
        by_heap_push(&world->heap, world->now_ps + by_sim_ps(2 * world->spread_ns + 1000), BY_EVENT_REPEAT,
                     index, NULL);
}

void by_sim_on_table(struct by_world *world, uint32_t index)
{
    struct by_sim_node *node = &world->nodes[index];

    if (node->image == node->coming_image || node->dead)
        return;
    node->image = node->coming_image;
    node->image_bytes = node->coming_bytes;
    by_sim_engine_load(world, index);
}

void by_world_resume(struct by_world *world, const struct by_world_fabric *fabric, uint64_t spread_ns)
{
    world->spread_ns = spread_ns;
    for (uint32_t n = 0; n < world->node_count; n++) {
        struct by_sim_node *node = &world->nodes[n];

        if (node->coming_image == NULL)
            by_sim_retire(world, node->image);
        node->coming_image = fabric->nodes[n].image;
        node->coming_bytes = fabric->nodes[n].image_bytes;
        /* freed with the world: endpoints still read old images for a while */
        by_sim_retire(world, node->coming_image);
        by_heap_push(&world->heap, soon_ps(world), BY_EVENT_TABLE, n, NULL);
        if (node->kind == BY_NODE_HOST)
            by_heap_push(&world->heap, soon_ps(world), BY_EVENT_FREEZE, n, NULL);
    }
}

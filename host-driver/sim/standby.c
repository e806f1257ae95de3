/*
 * Hosts that move to standby generations by themselves (PROTOCOL.md, "Standby generations"), by the
 * choice of offload/endpoint/standby.h and in the rounds of rounds.h. Neighbours: resume.c,
 * where a controller announces generations; node.c steps the endpoints. Single-threaded.
 */
#include <stdlib.h>
#include <string.h>

#include "host-driver/sim/inside.h"
#include "offload/base/bytes.h"
#include "offload/endpoint/rounds.h"
#include "offload/endpoint/standby.h"

/* A tree of rounds does not end for lack of progress: it waits for ranks that are late (ns). */
#define FOREVER_NS UINT64_C(1000000000000)

struct by_sim_standby {
    uint32_t count;
    const uint8_t *images[BY_WORLD_STANDBYS_MAX];
    size_t image_bytes[BY_WORLD_STANDBYS_MAX];
    uint16_t gens[BY_WORLD_STANDBYS_MAX];
    uint16_t trees[BY_WORLD_STANDBYS_MAX]; /* of rounds */
    uint8_t masks[BY_WORLD_STANDBYS_MAX][8];
    uint64_t patience_ns;
    uint32_t passed; /* standbys in front of those of `choice`: the calls have left them */
    struct by_standby_move choice;
    int ended; /* a controller supersedes them */
    struct by_world_move move;
    struct by_resume *resume;       /* of the attempt under way */
    struct by_level_rounds *rounds; /* NULL: no attempt is under way */
};

static void *aligned(struct by_world *world, size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

    if (memory == NULL)
        abort();
    if (world != NULL)
        by_sim_retire(world, memory); /* packets may point into it as long as the world exists */
    return memory;
}

uint32_t by_sim_standby_endpoint(const struct by_sim_node *node, uint32_t job, const uint8_t *packet)
{
    const struct by_sim_standby *standby = node->standby;

    for (uint32_t s = 0; standby != NULL && s < standby->count; s++)
        if (by_get16(packet + BY_HEADER_AT_GEN) == standby->gens[s] &&
            by_get16(packet + BY_HEADER_AT_TREE) == standby->trees[s])
            return 1 + s;
    return job;
}

static void enter(struct by_world *world, uint32_t index, uint32_t s)
{
    struct by_sim_node *node = &world->nodes[index];
    struct by_sim_standby *standby = node->standby;
    struct by_endpoint *calls = node->endpoint[0];

    world->counters.moved++;
    world->counters.abandoned += standby->rounds != NULL;
    by_standby_move_begin(&standby->choice, s, world->now_ps / 1000);
    if (standby->rounds == NULL)
        standby->move = (struct by_world_move){.frozen_ns = standby->choice.began_ns};
    s += standby->passed;
    if (by_resume_begin(&standby->resume, aligned(world, by_resume_size(calls)), calls,
                        standby->gens[s - 1]) != 0)
        abort();
    if (by_level_rounds_begin(&standby->rounds, aligned(world, by_level_rounds_size(calls)), standby->resume,
                              node->endpoint[s]) != 0)
        abort();
}

/* Lists the standbys that are left. */
static void list(struct by_sim_node *node)
{
    struct by_sim_standby *standby = node->standby;
    struct by_standby_move *choice = &standby->choice;

    choice->left = standby->passed > 0;
    choice->tried = 0;
    choice->count = standby->count - standby->passed;
    for (uint32_t s = 0; s < choice->count; s++)
        choice->list[s] = (struct by_standby_tree){.rounds = node->endpoint[1 + standby->passed + s],
                                                   .mask = standby->masks[standby->passed + s],
                                                   .mask_bytes = sizeof(standby->masks[0])};
}

/* Continues the host's calls on the trees of the standby. */
static void carry(struct by_world *world, uint32_t index)
{
    struct by_sim_node *node = &world->nodes[index];
    struct by_sim_standby *standby = node->standby;
    struct by_endpoint_config config = world->config.endpoint;
    struct by_endpoint *endpoint;
    size_t bytes;

    if (by_endpoint_rank(node->endpoint[0]) == 0)
        world->counters.rounds += by_level_rounds_count(standby->rounds);
    standby->passed += standby->choice.tried;
    config.image = standby->images[standby->passed - 1];
    config.image_bytes = standby->image_bytes[standby->passed - 1];
    config.job = world->jobs[0];
    config.isa = by_sim_isa();
    bytes = by_resume_copy_size(standby->resume, &config);
    if (by_resume_copy(standby->resume, &endpoint, aligned(NULL, bytes), bytes, &config) != 0)
        abort();
    by_sim_retire(world, node->endpoint[0]);
    node->endpoint[0] = endpoint;
    standby->rounds = NULL;
    list(node);
    standby->move.carried_ns = world->now_ps / 1000;
}

int by_sim_standby_step(struct by_world *world, uint32_t index)
{
    struct by_sim_standby *standby = world->nodes[index].standby;
    uint32_t s;
    int error;

    if (standby == NULL || standby->ended)
        return 0;
    s = by_standby_move_choose(&standby->choice, world->nodes[index].endpoint[0], standby->patience_ns,
                               world->now_ps / 1000);
    if (s > 0) {
        enter(world, index, s);
        return 1;
    }
    if (standby->rounds == NULL)
        return 0;
    error = by_level_rounds_step(standby->rounds);
    if (error < 0)
        abort();
    if (!by_level_rounds_is_over(standby->rounds))
        return error;
    carry(world, index);
    return 1;
}

uint64_t by_sim_standby_deadline(const struct by_sim_node *node)
{
    const struct by_sim_standby *standby = node->standby;

    if (standby == NULL || standby->ended)
        return UINT64_MAX;
    return by_standby_move_deadline(&standby->choice, node->endpoint[0], standby->patience_ns);
}

struct by_world_move by_world_move(const struct by_world *world, uint32_t node)
{
    const struct by_sim_standby *standby = world->nodes[node].standby;

    return standby != NULL ? standby->move : (struct by_world_move){0};
}

void by_sim_standby_end(struct by_sim_node *node)
{
    if (node->standby != NULL)
        node->standby->ended = 1;
}

void by_sim_standby_free(struct by_sim_node *node)
{
    free(node->standby);
}

/* Opens the tree of rounds of standby s. */
static void open_tree(struct by_world *world, struct by_sim_node *node, uint32_t s)
{
    struct by_endpoint_config config = world->config.endpoint;
    struct by_sim_standby *standby = node->standby;
    struct by_image_header header;
    struct by_image_job job;
    struct by_image_leaf leaf;
    size_t bytes;

    config.image = standby->images[s];
    config.image_bytes = standby->image_bytes[s];
    config.job = world->jobs[0];
    config.isa = by_sim_isa();
    config.nonce = (uint32_t)by_prng_next(&world->nonces);
    config.rounds = 1;
    config.resume = 0;
    config.stall_ns = FOREVER_NS;
    bytes = by_endpoint_size(&config);
    if (bytes == 0 || by_endpoint_init(&node->endpoint[1 + s], aligned(world, bytes), bytes, &config) != 0)
        abort();
    by_image_header(config.image, &header);
    by_image_job(config.image, 0, &job);
    by_image_leaf(config.image, header.count[BY_SECTION_LEAF] - 1, &leaf);
    standby->gens[s] = job.gen;
    standby->trees[s] = leaf.tree;
}

void by_world_stand_by(struct by_world *world, const struct by_world_standby *standbys, uint32_t count,
                       uint64_t patience_ns, uint64_t attempt_ns)
{
    if (world->job_count != 1 || count > BY_WORLD_STANDBYS_MAX)
        abort();
    world->endpoint_count = 1 + count;
    for (uint32_t n = 0; n < world->node_count; n++) {
        struct by_sim_node *node = &world->nodes[n];

        if (node->endpoint[0] == NULL)
            continue;
        node->standby = calloc(1, sizeof(*node->standby));
        if (node->standby == NULL)
            abort();
        node->standby->count = count;
        node->standby->patience_ns = patience_ns;
        node->standby->choice.attempt_ns = attempt_ns;
        for (uint32_t s = 0; s < count; s++) {
            node->standby->images[s] = standbys[s].images[n];
            node->standby->image_bytes[s] = standbys[s].image_bytes[n];
            for (uint32_t i = 0; i < 8; i++)
                node->standby->masks[s][i] = (uint8_t)(standbys[s].replaces >> 8 * i);
            by_sim_retire(world, standbys[s].images[n]);
            open_tree(world, node, s);
        }
        list(node);
    }
}

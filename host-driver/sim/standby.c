/*
 * Hosts that move to standby generations by themselves (offload/endpoint/rounds.h; PROTOCOL.md,
 * "Standby generations"): when to freeze, which standby, when to abandon it. Neighbours: resume.c,
 * where a controller announces generations; node.c steps the endpoints. Single-threaded.
 */
#include <stdlib.h>
#include <string.h>

#include "host-driver/sim/inside.h"
#include "offload/base/bytes.h"
#include "offload/endpoint/rounds.h"

/* Checks of the chunks in flight within the patience (count). */
#define LOOKS 16u
/* A tree of rounds does not end for lack of progress: it waits for ranks that are late (ns). */
#define FOREVER_NS UINT64_C(1000000000000)

struct by_sim_standby {
    uint32_t count;
    const uint8_t *images[BY_WORLD_STANDBYS_MAX];
    size_t image_bytes[BY_WORLD_STANDBYS_MAX];
    uint16_t gens[BY_WORLD_STANDBYS_MAX];
    uint16_t trees[BY_WORLD_STANDBYS_MAX]; /* of rounds */
    uint64_t replaces[BY_WORLD_STANDBYS_MAX];
    uint64_t patience_ns, attempt_ns;
    uint32_t tried;    /* standbys up to this number have been tried; 0: none */
    int ended;         /* a controller supersedes them */
    uint64_t began_ns; /* of the attempt */
    struct by_world_move move;
    struct by_resume *resume;       /* of the attempt `tried` */
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

/* Returns the trees, of those with a bit, whose chunks have waited for the patience. */
static uint64_t cut_trees(const struct by_sim_node *node, uint64_t now_ns)
{
    uint64_t trees = 0;

    for (uint32_t place = 0; place < 64; place++)
        trees |= (uint64_t)by_endpoint_is_cut(node->endpoint[0], place, now_ns, node->standby->patience_ns)
                 << place;
    return trees;
}

/* Returns the standby to which the host must move now, counted from 1; 0: none. */
static uint32_t choose(const struct by_sim_node *node, uint64_t now_ns)
{
    const struct by_sim_standby *standby = node->standby;
    uint64_t cut;

    for (uint32_t s = standby->count; s > standby->tried; s--)
        if (by_endpoint_counters(node->endpoint[s])->probe > 0)
            return s;
    if (standby->tried == standby->count)
        return 0;
    if (standby->rounds != NULL)
        return now_ns - standby->began_ns >= standby->attempt_ns << (standby->tried - 1) &&
                       by_endpoint_is_cut(node->endpoint[standby->tried], 0, now_ns, standby->patience_ns)
                   ? standby->tried + 1
                   : 0;
    cut = cut_trees(node, now_ns);
    if (cut == 0)
        return 0;
    for (uint32_t s = 0; standby->tried == 0 && s < standby->count; s++)
        if ((cut & ~standby->replaces[s]) == 0)
            return s + 1;
    return standby->tried + 1;
}

static void enter(struct by_world *world, uint32_t index, uint32_t s)
{
    struct by_sim_node *node = &world->nodes[index];
    struct by_sim_standby *standby = node->standby;
    struct by_endpoint *calls = node->endpoint[0];

    world->counters.moved++;
    world->counters.abandoned += standby->rounds != NULL;
    standby->tried = s;
    standby->began_ns = world->now_ps / 1000;
    if (standby->rounds == NULL)
        standby->move = (struct by_world_move){.frozen_ns = standby->began_ns};
    if (by_resume_begin(&standby->resume, aligned(world, by_resume_size(calls)), calls,
                        standby->gens[s - 1]) != 0)
        abort();
    if (by_level_rounds_begin(&standby->rounds, aligned(world, by_level_rounds_size(calls)), standby->resume,
                              node->endpoint[s]) != 0)
        abort();
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
    config.image = standby->images[standby->tried - 1];
    config.image_bytes = standby->image_bytes[standby->tried - 1];
    config.job = world->jobs[0];
    config.isa = by_sim_isa();
    bytes = by_resume_copy_size(standby->resume, &config);
    if (by_resume_copy(standby->resume, &endpoint, aligned(NULL, bytes), bytes, &config) != 0)
        abort();
    by_sim_retire(world, node->endpoint[0]);
    node->endpoint[0] = endpoint;
    standby->rounds = NULL;
    standby->move.carried_ns = world->now_ps / 1000;
}

int by_sim_standby_step(struct by_world *world, uint32_t index)
{
    struct by_sim_standby *standby = world->nodes[index].standby;
    uint32_t s;
    int error;

    if (standby == NULL || standby->ended)
        return 0;
    s = choose(&world->nodes[index], world->now_ps / 1000);
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

uint64_t by_sim_standby_deadline(const struct by_world *world, const struct by_sim_node *node)
{
    const struct by_sim_standby *standby = node->standby;

    if (standby == NULL || standby->ended || standby->tried == standby->count)
        return UINT64_MAX;
    if (standby->rounds != NULL)
        return standby->began_ns + (standby->attempt_ns << (standby->tried - 1));
    return by_endpoint_inflight(node->endpoint[0]) > 0 ? world->now_ps / 1000 + standby->patience_ns / LOOKS
                                                       : UINT64_MAX;
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
        node->standby->attempt_ns = attempt_ns;
        for (uint32_t s = 0; s < count; s++) {
            node->standby->images[s] = standbys[s].images[n];
            node->standby->image_bytes[s] = standbys[s].image_bytes[n];
            node->standby->replaces[s] = standbys[s].replaces;
            by_sim_retire(world, standbys[s].images[n]);
            open_tree(world, node, s);
        }
    }
}

/*
 * Predicts traffic: adds up every tree that serves a call, every chunk of its share, and every hop
 * of the tree in both directions. A chunk crosses a hop upwards with its payload if a leaf below
 * has data, and downwards with its payload if a leaf below receives data; otherwise only its header
 * is sent. Pure.
 */
#include "control/tables/traffic.h"

#include "control/base/alloc.h"
#include "control/tables/cable.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

#define BIT(collective) (1u << (collective))

/*
 * Finds the trees that serve a collective for one owner, by the endpoint's rule: its own trees,
 * then those for any rank, then those of allreduce.
 */
static int served_by(const struct by_lowering *lowering, const struct by_traffic_call *call, uint32_t rank,
                     unsigned *bits, uint16_t *owner)
{
    int rooted = by_collective_way(call->collective) != BY_DATA_BOTH;
    const unsigned wanted[3] = {BIT(call->collective), BIT(call->collective), BIT(BY_COLLECTIVE_ALLREDUCE)};
    const uint16_t owners[3] = {rooted ? (uint16_t)rank : BY_RANK_NONE, BY_RANK_NONE, BY_RANK_NONE};

    for (int pass = 0; pass < 3; pass++) {
        for (uint32_t i = 0; i < lowering->tree_count; i++) {
            const struct by_lowered_tree *tree = &lowering->trees[i];
            if (tree->job != call->job || !(tree->collectives & wanted[pass]))
                continue;
            /* trees of allreduce and barrier serve any owner */
            if (pass < 2 && rooted && tree->owner != owners[pass])
                continue;
            *bits = wanted[pass];
            *owner = owners[pass];
            return 1;
        }
    }
    return 0;
}

static int serves(const struct by_lowered_tree *tree, const struct by_traffic_call *call, unsigned bits,
                  uint16_t owner)
{
    if (tree->job != call->job || !(tree->collectives & bits) || tree->half == BY_HALF_DOWN)
        return 0;
    return (bits & (BIT(BY_COLLECTIVE_ALLREDUCE) | BIT(BY_COLLECTIVE_BARRIER))) || tree->owner == owner;
}

/* Whether the leaf of `rank` sends data, and whether it receives the result. */
static void leaf_role(const struct by_traffic_call *call, uint32_t rank, uint32_t owner, int *brings,
                      int *wants)
{
    switch ((enum by_collective)call->collective) {
    case BY_COLLECTIVE_ALLREDUCE:
        *brings = *wants = 1;
        break;
    case BY_COLLECTIVE_REDUCE:
    case BY_COLLECTIVE_REDUCE_SCATTER:
        *brings = 1;
        *wants = rank == owner;
        break;
    case BY_COLLECTIVE_ALLGATHER:
    case BY_COLLECTIVE_BROADCAST:
        *brings = rank == owner;
        *wants = rank != owner;
        break;
    case BY_COLLECTIVE_BARRIER:
    default:
        *brings = *wants = 0;
        break;
    }
}

static void add_way(const struct by_topology *topology, uint32_t from, const struct by_hop_step *way,
                    uint32_t count, uint64_t packets, uint64_t bytes, struct by_traffic_arc *arcs)
{
    bytes += packets * by_lower_extra(topology, way[0].link, from);
    for (uint32_t i = 0; i < count; i++) {
        struct by_traffic_arc *arc =
            &arcs[2 * way[i].link + (topology->links[way[i].link].a == from ? 0 : 1)];
        arc->packets += packets;
        arc->bytes += bytes;
        from = way[i].to;
    }
}

static void add_half(const struct by_lowering *lowering, const struct by_lowered_tree *tree,
                     const struct by_traffic_call *call, uint32_t owner, uint64_t bytes,
                     struct by_traffic_arc *arcs)
{
    const struct by_topology *topology = lowering->topology;
    uint64_t packets = bytes == 0 ? 1 : (bytes + lowering->payload_max - 1) / lowering->payload_max;
    uint64_t headers = packets * BY_LOWER_HEADER_BYTES;
    uint8_t *brings = by_alloc(tree->hop_count, 1), *wants = by_alloc(tree->hop_count, 1);
    int any = 0;

    for (uint32_t i = tree->hop_count; i-- > 0;) {
        const struct by_hop *hop = &tree->hops[i];
        uint32_t rank = by_lowering_rank(lowering, call->job, hop->node);
        int leaf_brings = 0, leaf_wants = 0;
        if (rank != UINT32_MAX)
            leaf_role(call, rank, owner, &leaf_brings, &leaf_wants);
        any |= leaf_brings;
        brings[i] |= (uint8_t)(leaf_brings && tree->half != BY_HALF_DOWN);
        wants[i] |= (uint8_t)(leaf_wants && tree->half != BY_HALF_UP);
        if (i == 0)
            break;
        brings[tree->hop_of[hop->parent]] |= brings[i];
        wants[tree->hop_of[hop->parent]] |= wants[i];
        add_way(topology, hop->node, hop->up, hop->up_count, packets, headers + (brings[i] ? bytes : 0),
                arcs);
    }
    for (uint32_t i = 1; i < tree->hop_count; i++) {
        const struct by_hop *hop = &tree->hops[i];
        add_way(topology, hop->parent, hop->down, hop->down_count, packets,
                headers + (wants[i] && any ? bytes : 0), arcs);
    }
    free(brings);
    free(wants);
}

/* Adds a tree, or both trees of a pair. */
static void add_tree(const struct by_lowering *lowering, const struct by_lowered_tree *tree,
                     const struct by_traffic_call *call, uint32_t owner, uint64_t bytes,
                     struct by_traffic_arc *arcs)
{
    add_half(lowering, tree, call, owner, bytes, arcs);
    if (tree->half == BY_HALF_UP)
        add_half(lowering, tree + 1, call, owner, bytes, arcs);
}

static uint64_t boundary(uint64_t total, uint64_t before, uint64_t share_total)
{
    uint64_t even = ((uint64_t)((unsigned __int128)total * before / share_total) + 63) & ~(uint64_t)63;

    if (even == 0 && before > 0)
        even = 64;
    return even < total ? even : total;
}

/*
 * Returns the tree on which every call has a chunk, by the endpoint's rule; NULL if the job has no
 * tree.
 */
static const struct by_lowered_tree *first_tree(const struct by_lowering *lowering, uint16_t job)
{
    const struct by_lowered_tree *first = NULL;

    for (uint32_t i = 0; i < lowering->tree_count; i++) {
        const struct by_lowered_tree *tree = &lowering->trees[i];

        if (tree->job != job)
            continue;
        if (tree->collectives & BIT(BY_COLLECTIVE_ALLREDUCE))
            return tree;
        if (first == NULL)
            first = tree;
    }
    return first;
}

/*
 * Adds one shard (or the whole vector) over the trees that serve it. Sets `met` if `first` is one
 * of them.
 */
static int add_shard(const struct by_lowering *lowering, const struct by_traffic_call *call, uint32_t owner,
                     const struct by_lowered_tree *first, int *met, struct by_traffic_arc *arcs)
{
    uint64_t bytes = call->shards ? call->shards[owner] : call->shard_bytes;
    uint64_t total = 0, before = 0;
    uint32_t last = UINT32_MAX;
    int barrier = call->collective == BY_COLLECTIVE_BARRIER;
    unsigned bits;
    uint16_t tree_owner;

    if (call->shards && bytes == 0)
        return 0;
    if (!served_by(lowering, call, owner, &bits, &tree_owner))
        return BY_EUNSUPPORTED;
    for (uint32_t i = 0; i < lowering->tree_count; i++) {
        if (!serves(&lowering->trees[i], call, bits, tree_owner))
            continue;
        total += lowering->trees[i].share;
        last = i;
    }
    for (uint32_t i = 0; i < lowering->tree_count; i++) {
        const struct by_lowered_tree *tree = &lowering->trees[i];
        uint64_t start, end;
        if (!serves(tree, call, bits, tree_owner))
            continue;
        start = barrier ? 0 : boundary(bytes, before, total);
        end = barrier ? 0 : i == last ? bytes : boundary(bytes, before + tree->share, total);
        /* A barrier is one empty chunk on its first tree. */
        if (end > start || (barrier && before == 0)) {
            add_tree(lowering, tree, call, owner, end - start, arcs);
            *met |= tree == first;
        }
        before += tree->share;
    }
    return 0;
}

int by_traffic_add(const struct by_lowering *lowering, const struct by_traffic_call *call,
                   struct by_traffic_arc *arcs)
{
    int sharded = by_collective_is_sharded(call->collective);
    const struct by_traffic_call word = {.job = call->job, .collective = BY_COLLECTIVE_BARRIER};
    const struct by_lowered_tree *first = first_tree(lowering, call->job);
    uint32_t begin = sharded ? 0 : call->root;
    uint32_t end = sharded ? by_lowering_rank_count(lowering, call->job) : begin + 1;
    int error = 0, met = 0;

    for (uint32_t rank = begin; rank < end && error == 0; rank++)
        error = add_shard(lowering, call, rank, first, &met, arcs);
    /* Ranks that make different calls meet on this tree, whatever other trees their calls use. */
    if (error == 0 && !met)
        add_tree(lowering, first, &word, 0, 0, arcs);
    return error;
}

void by_traffic_add_session(const struct by_lowering *lowering, uint16_t job, struct by_traffic_arc *arcs)
{
    const struct by_traffic_call roll = {.job = job, .collective = BY_COLLECTIVE_ALLREDUCE};
    const struct by_traffic_call opening = {.job = job, .collective = BY_COLLECTIVE_BARRIER};
    const struct by_lowered_tree *first = first_tree(lowering, job);

    if (first != NULL)
        add_tree(lowering, first, &roll, 0, 4 * (uint64_t)by_lowering_rank_count(lowering, job), arcs);
    for (uint32_t i = 0; i < lowering->tree_count; i++)
        if (lowering->trees[i].job == job && lowering->trees[i].half != BY_HALF_DOWN)
            add_tree(lowering, &lowering->trees[i], &opening, 0, 0, arcs);
}

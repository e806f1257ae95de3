/* Variants of fabrics: after failures, and with scattered bandwidths. See vary.h. */
#include "control/fabric/vary.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"

/* Returns a new builder with the nodes of `from` that are not lost; `index` (by old node) receives
 * their numbers. */
static struct by_builder *copy_nodes(const struct by_topology *from, const bool *lost, const char *name,
                                     uint32_t *index)
{
    struct by_builder *builder = by_builder_new(name ? name : from->name, from->unit);

    for (uint32_t i = 0; i < from->node_count; i++)
        index[i] = lost && lost[i] ? UINT32_MAX : by_builder_node(builder, &from->nodes[i]);
    return builder;
}

/* Adds link `number` of `from`, its bandwidth times `factor`. */
static int copy_link(struct by_builder *builder, const struct by_topology *from, uint32_t number,
                     const uint32_t *index, int64_t factor, struct by_problem *problem)
{
    const struct by_link *link = &from->links[number];
    struct by_fraction bandwidth;

    if (by_fraction_set((__int128)from->arcs[link->arc_ab].capacity * factor, from->scale, &bandwidth) != 0)
        return by_problem_set(problem, BY_ERANGE, (struct by_place){0, 0},
                              "the bandwidth of %s - %s times %lld does not fit 63 bits; use a smaller "
                              "--scatter",
                              from->nodes[link->a].name, from->nodes[link->b].name, (long long)factor);
    by_builder_link(builder, index[link->a], index[link->b], link->arc_ba != UINT32_MAX, bandwidth,
                    (struct by_place){0, 0});
    return 0;
}

/* State of walks over links that are not lost, in either direction. */
struct vary_walk {
    uint32_t *first, *next; /* lists of link ends: first[node], next[2 * link + side] */
    uint32_t *queue;
    uint32_t *seen; /* the round in which a node was last seen */
    uint32_t round;
};

static void walk_make(struct vary_walk *walk, const struct by_topology *topology)
{
    *walk = (struct vary_walk){0};
    walk->first = by_alloc(topology->node_count, sizeof(*walk->first));
    walk->next = by_alloc(2 * (size_t)topology->link_count, sizeof(*walk->next));
    walk->queue = by_alloc(topology->node_count, sizeof(*walk->queue));
    walk->seen = by_alloc(topology->node_count, sizeof(*walk->seen));
    for (uint32_t i = 0; i < topology->node_count; i++)
        walk->first[i] = UINT32_MAX;
    for (uint32_t i = 0; i < 2 * topology->link_count; i++) {
        uint32_t node = i % 2 ? topology->links[i / 2].b : topology->links[i / 2].a;

        walk->next[i] = walk->first[node];
        walk->first[node] = i;
    }
}

static void walk_free(struct vary_walk *walk)
{
    free(walk->first);
    free(walk->next);
    free(walk->queue);
    free(walk->seen);
}

/* Whether the two ends of `link` stay connected when it is lost together with the others. */
static bool joined_without(struct vary_walk *walk, const struct by_topology *topology, const bool *lost,
                           uint32_t link)
{
    uint32_t head = 0, tail = 0, goal = topology->links[link].b;

    walk->round++;
    walk->queue[tail++] = topology->links[link].a;
    walk->seen[topology->links[link].a] = walk->round;
    while (head < tail) {
        uint32_t node = walk->queue[head++];

        for (uint32_t i = walk->first[node]; i != UINT32_MAX; i = walk->next[i]) {
            uint32_t other = i % 2 ? topology->links[i / 2].a : topology->links[i / 2].b;

            if (lost[i / 2] || i / 2 == link || walk->seen[other] == walk->round)
                continue;
            if (other == goal)
                return true;
            walk->seen[other] = walk->round;
            walk->queue[tail++] = other;
        }
    }
    return false;
}

static void choose_failures(const struct by_topology *from, struct by_fraction fail, struct by_prng *prng,
                            bool *lost)
{
    uint64_t left = (uint64_t)((unsigned __int128)fail.num * from->link_count / (uint64_t)fail.den);
    uint32_t *order = by_alloc(from->link_count, sizeof(*order));
    struct vary_walk walk;

    walk_make(&walk, from);
    for (uint32_t i = 0; i < from->link_count; i++)
        order[i] = i;
    for (uint32_t i = 0; i < from->link_count && left > 0; i++) {
        uint32_t j = i + (uint32_t)by_prng_below(prng, from->link_count - i), link = order[j];

        order[j] = order[i];
        if (!joined_without(&walk, from, lost, link))
            continue;
        lost[link] = true;
        left--;
    }
    walk_free(&walk);
    free(order);
}

int by_vary(const struct by_topology *from, const struct by_variation *variation,
            struct by_topology **topology, struct by_problem *problem)
{
    bool *lost = by_alloc(from->link_count, sizeof(*lost));
    uint32_t *index = by_alloc(from->node_count, sizeof(*index));
    struct by_prng prng = {variation->seed};
    uint64_t span = (uint64_t)(variation->scatter_high - variation->scatter_low) + 1;
    struct by_builder *builder;
    int error = 0;

    BY_ASSERT(variation->scatter_low <= variation->scatter_high);
    *topology = NULL;
    if (variation->fail.num > 0)
        choose_failures(from, variation->fail, &prng, lost);
    builder = copy_nodes(from, NULL, variation->name, index);
    for (uint32_t i = 0; i < from->link_count && !error; i++) {
        int64_t factor = variation->scatter_high
                             /* drawn for failed links too, so that failures do not change the other
                              * factors */
                             ? variation->scatter_low + (int64_t)by_prng_below(&prng, span)
                             : 1;

        if (!lost[i])
            error = copy_link(builder, from, i, index, factor, problem);
    }
    if (!error)
        error = by_builder_finish(builder, topology, problem);
    by_builder_free(builder);
    free(index);
    free(lost);
    return error;
}

int by_topology_without(const struct by_topology *from, const bool *lost_links, const bool *lost_nodes,
                        struct by_topology **topology, struct by_problem *problem)
{
    uint32_t *index = by_alloc(from->node_count, sizeof(*index));
    struct by_builder *builder = copy_nodes(from, lost_nodes, NULL, index);
    int error = 0;

    *topology = NULL;
    for (uint32_t i = 0; i < from->link_count && !error; i++) {
        const struct by_link *link = &from->links[i];

        if ((lost_links && lost_links[i]) || index[link->a] == UINT32_MAX || index[link->b] == UINT32_MAX)
            continue;
        error = copy_link(builder, from, i, index, 1, problem);
    }
    if (!error)
        error = by_builder_finish(builder, topology, problem);
    by_builder_free(builder);
    free(index);
    return error;
}

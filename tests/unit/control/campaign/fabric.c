/* Implements fabric.h: random balanced fabrics. */
#include "tests/unit/control/campaign/fabric.h"

#include <stdio.h>
#include <stdlib.h>

#include "control/fabric/build.h"
#include "offload/base/prng.h"

static const struct by_place nowhere = {0, 0};

static uint32_t below(struct by_prng *prng, uint32_t bound)
{
    return (uint32_t)by_prng_below(prng, bound);
}

static struct by_fraction random_bandwidth(struct by_prng *prng)
{
    static const struct by_fraction choices[] = {{1, 1}, {1, 1},  {2, 1},  {3, 1}, {5, 2},
                                                 {7, 1}, {10, 1}, {25, 1}, {1, 3}, {300, 1}};

    return choices[below(prng, sizeof(choices) / sizeof(choices[0]))];
}

/* Kinds of fabrics: 0 no switch branches, 1 all do both, 2 some do both, 3 each capability at
 * random. */
static void add_nodes(struct by_builder *builder, struct by_prng *prng, uint32_t compute, uint32_t switches)
{
    uint32_t capable = below(prng, 4);

    for (uint32_t i = 0; i < compute; i++)
        by_builder_compute(builder, "host%u", i);
    for (uint32_t i = 0; i < switches; i++) {
        struct by_node node = {.multicast = capable == 1 || (capable >= 2 && below(prng, 2))};
        char name[32];

        node.aggregate = capable == 3 ? below(prng, 2) : node.multicast;
        snprintf(name, sizeof(name), "switch%u", i);
        node.name = name;
        by_builder_node(builder, &node);
    }
}

/* Adds a one-way cycle through `length` different nodes. */
static void add_cycle(struct by_builder *builder, struct by_prng *prng, uint32_t n, uint32_t length)
{
    uint32_t *order = calloc(n, sizeof(*order));
    struct by_fraction bandwidth = random_bandwidth(prng);

    if (!order)
        abort();
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = 0; i < length; i++) {
        uint32_t j = i + below(prng, n - i), kept = order[i];

        order[i] = order[j];
        order[j] = kept;
    }
    for (uint32_t i = 0; i < length; i++)
        by_builder_link(builder, order[i], order[(i + 1) % length], false, bandwidth, nowhere);
    free(order);
}

/* Adds links in both directions: a random tree in which each host joins an earlier node, then
 * chords. */
static void add_pairs(struct by_builder *builder, struct by_prng *prng, uint32_t compute, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        by_builder_link(builder, (i + compute) % n, (below(prng, i) + compute) % n, true,
                        random_bandwidth(prng), nowhere);
    for (uint32_t i = below(prng, 2 * n); i > 0; i--) {
        uint32_t a = below(prng, n), b = below(prng, n - 1);

        by_builder_link(builder, a, b + (b >= a), true, random_bandwidth(prng), nowhere);
    }
}

struct by_topology *campaign_fabric(uint64_t seed, struct fabric_sizes sizes)
{
    struct by_prng prng = {seed * 2654435761u};
    uint32_t n = sizes.nodes_min + below(&prng, sizes.nodes_max - sizes.nodes_min + 1);
    uint32_t compute = 2 + below(&prng, n - 1), kind = below(&prng, 4);
    struct by_topology *topology;
    struct by_problem problem = {0};
    struct by_builder *builder;
    char name[40];

    snprintf(name, sizeof(name), "campaign-%llu", (unsigned long long)seed);
    builder = by_builder_new(name, "GB/s");
    add_nodes(builder, &prng, compute, n - compute);
    if (kind == 0) /* only one-way links: a cycle through all nodes keeps them connected */
        add_cycle(builder, &prng, n, n);
    else
        add_pairs(builder, &prng, compute, n);
    for (uint32_t i = kind < 2 ? 1 + below(&prng, n) : 0; i > 0; i--)
        add_cycle(builder, &prng, n, 2 + below(&prng, n - 1));
    if (by_builder_finish(builder, &topology, &problem) != 0) {
        fprintf(stderr, "campaign: seed %llu: the generator made a bad fabric: %s\n",
                (unsigned long long)seed, problem.text);
        exit(2);
    }
    by_builder_free(builder);
    return topology;
}

char campaign_capability(const struct by_topology *topology)
{
    bool any = false, all = true;

    for (uint32_t i = 0; i < topology->node_count; i++) {
        const struct by_node *node = &topology->nodes[i];

        if (node->compute)
            continue;
        any |= node->multicast || node->aggregate;
        all &= node->multicast && node->aggregate;
    }
    return !any ? 'n' : all ? 'a' : 'm';
}

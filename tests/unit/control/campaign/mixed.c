/* Implements mixed.h. */
#include "tests/unit/control/campaign/mixed.h"

#include <stdio.h>
#include <stdlib.h>

#include "control/fabric/build.h"
#include "offload/base/prng.h"

static const struct by_place nowhere = {0, 0};

/* A fabric being drawn: nodes 0 to hosts - 1 are hosts, then the switches. */
struct mixed_draw {
    struct by_builder *builder;
    struct by_prng prng;
    uint32_t hosts, switches;
    struct by_fraction rate; /* of all links, unless they are drawn one by one */
    bool unequal;
    uint32_t cables; /* most cables between two nodes */
};

const char *mixed_name(enum mixed_family family)
{
    static const char *const names[] = {"chain",   "tree", "stars",   "behind",  "unequal",
                                        "oversub", "mesh", "one-way", "parallel"};

    return names[family];
}

static uint32_t below(struct mixed_draw *draw, uint32_t bound)
{
    return (uint32_t)by_prng_below(&draw->prng, bound);
}

static struct by_fraction bandwidth(struct mixed_draw *draw)
{
    static const struct by_fraction rates[] = {{1, 1}, {2, 1}, {5, 2}, {4, 1}, {10, 1}};

    return rates[below(draw, sizeof(rates) / sizeof(rates[0]))];
}

/* Adds a cable, or in the family of parallel cables one to four, equal or not. */
static void join(struct mixed_draw *draw, uint32_t a, uint32_t b, bool both)
{
    bool equal = !draw->unequal || (draw->cables > 1 && below(draw, 2));

    for (uint32_t i = draw->cables > 1 ? 1 + below(draw, draw->cables) : 1; i > 0; i--)
        by_builder_link(draw->builder, a, b, both, equal ? draw->rate : bandwidth(draw), nowhere);
}

static uint32_t host(uint32_t i)
{
    return i;
}

static uint32_t some_switch(struct mixed_draw *draw)
{
    return draw->hosts + below(draw, draw->switches);
}

static void add_nodes(struct mixed_draw *draw, enum mixed_family family)
{
    char name[32];

    for (uint32_t i = 0; i < draw->hosts; i++) {
        struct by_node node = {
            .compute = true, .forward = family == MIXED_BEHIND && below(draw, 2), .name = name};

        snprintf(name, sizeof(name), "h%u", i);
        by_builder_node(draw->builder, &node);
    }
    for (uint32_t i = 0; i < draw->switches; i++) {
        uint32_t kind = below(draw, 8); /* 0 neither, 1 and 2 multicast, 3 and 4 aggregate, else both */
        struct by_node node = {
            .multicast = kind == 1 || kind == 2 || kind > 4, .aggregate = kind > 2, .name = name};

        snprintf(name, sizeof(name), "s%u", i);
        if (node.aggregate && below(draw, 6) == 0)
            node.aggregate_rate = bandwidth(draw);
        by_builder_node(draw->builder, &node);
    }
}

/* Joins the switches to a connected graph. */
static void join_switches(struct mixed_draw *draw, enum mixed_family family)
{
    for (uint32_t i = 1; i < draw->switches; i++) {
        uint32_t top = family == MIXED_CHAIN ? i - 1 : family == MIXED_STARS ? 0 : below(draw, i);

        join(draw, draw->hosts + i, draw->hosts + top, true);
    }
    for (uint32_t i = family == MIXED_MESH ? 1 + below(draw, 2 * draw->switches) : 0; i > 0; i--) {
        uint32_t a = below(draw, draw->switches), b = below(draw, draw->switches);

        if (a != b)
            join(draw, draw->hosts + a, draw->hosts + b, true);
    }
}

static void join_hosts(struct mixed_draw *draw, enum mixed_family family)
{
    for (uint32_t i = 0; i < draw->hosts; i++) {
        bool behind = family == MIXED_BEHIND && i > 0 && below(draw, 2);

        join(draw, host(i), behind ? host(below(draw, i)) : some_switch(draw), true);
    }
    for (uint32_t i = draw->unequal || family == MIXED_MESH ? below(draw, 4) : 0; i > 0; i--) {
        uint32_t a = below(draw, draw->hosts), b = below(draw, draw->hosts);

        if (a != b)
            join(draw, a, b, true);
    }
}

/* Leaves of equal hosts, each with fewer links to the spines than to its hosts. */
static void join_leaves(struct mixed_draw *draw)
{
    uint32_t spines = draw->switches > 3 ? 2 : 1, leaves = draw->switches - spines;

    for (uint32_t l = 0; l < leaves; l++)
        for (uint32_t s = 0; s < spines; s++)
            join(draw, draw->hosts + spines + l, draw->hosts + s, true);
    for (uint32_t i = 0; i < draw->hosts; i++)
        join(draw, i, draw->hosts + spines + i % leaves, true);
}

/* A one-way ring through all nodes, and two-way links of some hosts to switches. */
static void join_ring(struct mixed_draw *draw)
{
    uint32_t n = draw->hosts + draw->switches;

    for (uint32_t i = 0; i < n; i++)
        join(draw, i, (i + 1) % n, false);
    for (uint32_t i = 0; i < draw->hosts; i++)
        if (below(draw, 3))
            join(draw, i, some_switch(draw), true);
}

struct by_topology *mixed_fabric(uint64_t seed)
{
    enum mixed_family family = (enum mixed_family)(seed % MIXED_COUNT);
    struct mixed_draw draw = {.prng = {seed * 2654435761u + 99}};
    struct by_topology *topology;
    struct by_problem problem = {0};
    char name[48];

    draw.hosts = 2 + below(&draw, 9);
    draw.switches = (family == MIXED_OVERSUB ? 2 : 1) + below(&draw, 6);
    draw.cables = family == MIXED_PARALLEL ? 4 : 1;
    draw.unequal = family == MIXED_UNEQUAL || family == MIXED_PARALLEL;
    draw.rate = bandwidth(&draw);
    snprintf(name, sizeof(name), "%s-%llu", mixed_name(family), (unsigned long long)seed);
    draw.builder = by_builder_new(name, "GB/s");
    add_nodes(&draw, family);
    if (family == MIXED_OVERSUB) {
        join_leaves(&draw);
    } else if (family == MIXED_ONEWAY) {
        join_ring(&draw);
    } else {
        join_switches(&draw, family);
        join_hosts(&draw, family);
    }
    if (by_builder_finish(draw.builder, &topology, &problem) != 0) {
        fprintf(stderr, "campaign: seed %llu: the generator made a bad fabric: %s\n",
                (unsigned long long)seed, problem.text);
        exit(2);
    }
    by_builder_free(draw.builder);
    return topology;
}

/* Implements graphs.h: small fabrics by number. */
#include "tests/unit/control/study/bound/graphs.h"

#include <stdio.h>
#include <stdlib.h>

#include "control/fabric/build.h"
#include "offload/base/prng.h"

#define NODES_MAX 6u
#define LINKS_MAX (NODES_MAX * (NODES_MAX - 1))
/* Random fabrics of GRAPH_SWITCHED (count). */
#define RANDOM_COUNT 600u

static uint32_t link_count(const struct graphs *graphs)
{
    uint32_t pairs = graphs->nodes * (graphs->nodes - 1) / 2;

    return graphs->kind == GRAPH_DIRECTED ? 2 * pairs : pairs;
}

static uint64_t power(uint64_t base, uint32_t exponent)
{
    uint64_t value = 1;

    while (exponent-- > 0)
        value *= base;
    return value;
}

/* Finds the two nodes of a link; arcs come in pairs. */
static void ends_of(const struct graphs *graphs, uint32_t link, uint32_t *a, uint32_t *b)
{
    uint32_t at = graphs->kind == GRAPH_DIRECTED ? link / 2 : link;

    for (*a = 0; at >= graphs->nodes - 1 - *a; (*a)++)
        at -= graphs->nodes - 1 - *a;
    *b = *a + 1 + at;
    if (graphs->kind == GRAPH_DIRECTED && link % 2) {
        uint32_t kept = *a;

        *a = *b;
        *b = kept;
    }
}

static uint32_t number_of_pair(uint32_t nodes, uint32_t a, uint32_t b)
{
    uint32_t low = a < b ? a : b, high = a < b ? b : a, number = 0;

    for (uint32_t i = 0; i < low; i++)
        number += nodes - 1 - i;
    return number + high - low - 1;
}

/* Returns whether no renaming of the nodes gives a smaller set of links. */
static bool is_first_of_class(uint32_t nodes, uint64_t shape)
{
    uint32_t name[NODES_MAX] = {0, 1, 2, 3, 4, 5};

    for (;;) {
        uint64_t other = 0;
        uint32_t i = nodes - 1, j = nodes - 1;

        for (uint32_t a = 0; a < nodes; a++)
            for (uint32_t b = a + 1; b < nodes; b++)
                if (shape >> number_of_pair(nodes, a, b) & 1)
                    other |= (uint64_t)1 << number_of_pair(nodes, name[a], name[b]);
        if (other < shape)
            return false;
        while (i > 0 && name[i - 1] > name[i])
            i--;
        if (i == 0)
            return true;
        while (name[j] < name[i - 1])
            j--;
        for (uint32_t kept = name[i - 1]; name[i - 1] == kept;) {
            name[i - 1] = name[j];
            name[j] = kept;
        }
        for (uint32_t low = i, high = nodes - 1; low < high; low++, high--) {
            uint32_t kept = name[low];

            name[low] = name[high];
            name[high] = kept;
        }
    }
}

/* Returns whether the links of a shape connect all nodes. */
static bool is_connected(uint32_t nodes, uint64_t shape)
{
    uint32_t reached = 1, before = 0;

    while (before != reached) {
        before = reached;
        for (uint32_t a = 0; a < nodes; a++)
            for (uint32_t b = a + 1; b < nodes; b++)
                if ((shape >> number_of_pair(nodes, a, b) & 1) && (reached >> a & 1) != (reached >> b & 1))
                    reached |= 1u << a | 1u << b;
    }
    return reached == (1u << nodes) - 1;
}

uint64_t graphs_count(struct graphs *graphs)
{
    uint64_t count = 0;

    if (graphs->kind == GRAPH_SWITCHED)
        return RANDOM_COUNT;
    if (graphs->kind != GRAPH_CLASS)
        return power((uint64_t)graphs->most + 1, link_count(graphs));
    graphs->shape_count = 0;
    for (uint64_t shape = 0; shape < power(2, link_count(graphs)); shape++)
        if (is_connected(graphs->nodes, shape) && is_first_of_class(graphs->nodes, shape)) {
            graphs->shapes[graphs->shape_count++] = shape;
            count += power((uint64_t)graphs->most, (uint32_t)__builtin_popcountll(shape));
        }
    return count;
}

/* Finds the bandwidth of each link. */
static void find_links(const struct graphs *graphs, uint64_t index, int64_t *bandwidth)
{
    uint32_t links = link_count(graphs), at = 0;
    uint64_t base = (uint64_t)graphs->most + 1, shape;

    if (graphs->kind != GRAPH_CLASS) {
        for (uint32_t i = 0; i < links; i++, index /= base)
            bandwidth[i] = (int64_t)(index % base);
        return;
    }
    for (shape = graphs->shapes[0];; shape = graphs->shapes[++at]) {
        uint64_t count = power((uint64_t)graphs->most, (uint32_t)__builtin_popcountll(shape));

        if (index < count)
            break;
        index -= count;
    }
    for (uint32_t i = 0; i < links; i++) {
        bandwidth[i] = 0;
        if (!(shape >> i & 1))
            continue;
        bandwidth[i] = 1 + (int64_t)(index % (uint64_t)graphs->most);
        index /= (uint64_t)graphs->most;
    }
}

/* Returns whether every node can reach every other along arcs. */
static bool is_one_part(const struct by_topology *topology)
{
    for (uint32_t start = 0; start < topology->node_count; start++) {
        uint32_t reached = 1u << start, before = 0;

        while (before != reached) {
            before = reached;
            for (uint32_t i = 0; i < topology->arc_count; i++)
                if (reached >> topology->arcs[i].from & 1)
                    reached |= 1u << topology->arcs[i].to;
        }
        if (reached != (1u << topology->node_count) - 1)
            return false;
    }
    return true;
}

static void add_link(struct by_builder *builder, uint32_t a, uint32_t b, bool both, int64_t bandwidth)
{
    by_builder_link(builder, a, b, both, (struct by_fraction){bandwidth, 1}, (struct by_place){0, 0});
}

static void add_switched(struct by_builder *builder, uint64_t seed, int64_t most)
{
    struct by_prng prng = {seed * 52711 + 3};
    uint32_t hosts = 3 + (uint32_t)by_prng_below(&prng, 2), n = hosts + 1 + (uint32_t)by_prng_below(&prng, 2);
    bool both = seed % 2 == 0;

    for (uint32_t i = 0; i < n; i++) {
        struct by_node node = {.name = (char[]){(char)('a' + i), 0}, .compute = i < hosts};

        by_builder_node(builder, &node);
    }
    for (uint32_t i = 1; i < n + by_prng_below(&prng, 4); i++) {
        /* each host joins a switch or an earlier node */
        uint32_t a = i < n ? (i + hosts) % n : (uint32_t)by_prng_below(&prng, n),
                 b = i < n ? ((uint32_t)by_prng_below(&prng, i) + hosts) % n
                           : (a + 1 + (uint32_t)by_prng_below(&prng, n - 1)) % n;

        add_link(builder, a, b, both, 1 + (int64_t)by_prng_below(&prng, (uint32_t)most));
        if (!both)
            add_link(builder, b, a, false, 1 + (int64_t)by_prng_below(&prng, (uint32_t)most));
    }
}

struct by_topology *graphs_make(const struct graphs *graphs, uint64_t index)
{
    struct by_builder *builder;
    struct by_topology *topology = NULL;
    struct by_problem problem = {0};
    int64_t bandwidth[LINKS_MAX];
    char name[60];

    if (graphs->kind != GRAPH_SWITCHED)
        find_links(graphs, index, bandwidth);
    snprintf(name, sizeof(name), "%s-%llu", graphs->what, (unsigned long long)index);
    builder = by_builder_new(name, "GB/s");
    if (graphs->kind == GRAPH_SWITCHED) {
        add_switched(builder, index, graphs->most);
    } else {
        for (uint32_t i = 0; i < graphs->nodes; i++)
            by_builder_compute(builder, "%u", i);
        for (uint32_t i = 0; i < link_count(graphs); i++) {
            uint32_t a, b;

            ends_of(graphs, i, &a, &b);
            if (bandwidth[i] > 0)
                add_link(builder, a, b, graphs->kind != GRAPH_DIRECTED, bandwidth[i]);
        }
    }
    if (by_builder_finish(builder, &topology, &problem) != 0)
        topology = NULL;
    by_builder_free(builder);
    if (topology && !is_one_part(topology)) {
        by_topology_free(topology);
        topology = NULL;
    }
    return topology;
}

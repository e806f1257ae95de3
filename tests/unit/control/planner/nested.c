/* Implements nested.h. */
#include "tests/unit/control/planner/nested.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "control/fabric/build.h"

#define NODES_MAX 512u
#define LINKS_MAX 4096u

/* A fabric in the making. */
struct nested {
    uint32_t node_count, link_count;
    struct by_node nodes[NODES_MAX];
    struct {
        uint32_t a, b;
        int64_t bandwidth;
    } links[LINKS_MAX];
};

static uint32_t add_node(struct nested *made, struct by_node node)
{
    assert_true(made->node_count < NODES_MAX);
    made->nodes[made->node_count] = node;
    return made->node_count++;
}

static void add_link(struct nested *made, uint32_t a, uint32_t b, int64_t bandwidth)
{
    assert_true(made->link_count < LINKS_MAX);
    made->links[made->link_count].a = a;
    made->links[made->link_count].b = b;
    made->links[made->link_count++].bandwidth = bandwidth;
}

static struct by_node random_switch(struct by_prng *prng)
{
    uint64_t can = by_prng_below(prng, 3);

    return (struct by_node){.multicast = can > 0, .aggregate = can > 0};
}

/* 1 to 4 hosts, linked to each other or by switches. */
static void make_part(struct nested *made, struct by_prng *prng)
{
    uint32_t hosts = 1 + (uint32_t)by_prng_below(prng, 4), switches = (uint32_t)by_prng_below(prng, 3);

    for (uint32_t i = 0; i < hosts; i++)
        add_node(made, (struct by_node){.compute = true});
    for (uint32_t i = 0; i < switches; i++)
        add_node(made, random_switch(prng));
    for (uint32_t i = 1; i < hosts + switches; i++)
        add_link(made, i, (uint32_t)by_prng_below(prng, i), 1 + (int64_t)by_prng_below(prng, 20));
    for (uint32_t i = (uint32_t)by_prng_below(prng, 3); i > 0 && hosts + switches > 1; i--) {
        uint32_t a = (uint32_t)by_prng_below(prng, hosts + switches);

        add_link(made, a, (a + 1) % (hosts + switches), 1 + (int64_t)by_prng_below(prng, 20));
    }
}

/* Copies all that is made, and links the same nodes of each copy to new switches. */
static void copy_parts(struct nested *made, struct by_prng *prng)
{
    uint32_t copies = 2 + (uint32_t)by_prng_below(prng, 3), nodes = made->node_count,
             links = made->link_count;
    uint32_t switches = 1 + (uint32_t)by_prng_below(prng, 3);

    for (uint32_t copy = 1; copy < copies; copy++) {
        for (uint32_t i = 0; i < nodes; i++)
            add_node(made, made->nodes[i]);
        for (uint32_t i = 0; i < links; i++)
            add_link(made, made->links[i].a + copy * nodes, made->links[i].b + copy * nodes,
                     made->links[i].bandwidth);
    }
    for (uint32_t i = 0; i < switches; i++) {
        uint32_t above = add_node(made, random_switch(prng)), linked = 0;
        int64_t bandwidth = 1 + (int64_t)by_prng_below(prng, 20);

        for (uint32_t node = 0; node < nodes; node++) {
            if (by_prng_below(prng, 2) && !(linked == 0 && node + 1 == nodes))
                continue;
            linked++;
            for (uint32_t copy = 0; copy < copies; copy++)
                add_link(made, above, node + copy * nodes, bandwidth);
        }
    }
}

/* Builds the topology, with nodes and links in random order. */
static struct by_topology *build(const struct nested *made, struct by_prng *prng)
{
    struct by_builder *builder = by_builder_new("nested", "GB/s");
    uint32_t order[NODES_MAX], index[NODES_MAX];
    struct by_topology *topology;
    struct by_problem problem = {0};

    for (uint32_t i = 0; i < made->node_count; i++) {
        uint32_t at = (uint32_t)by_prng_below(prng, i + 1);

        order[i] = order[at];
        order[at] = i;
    }
    for (uint32_t i = 0; i < made->node_count; i++) {
        struct by_node node = made->nodes[order[i]];
        char name[16];

        snprintf(name, sizeof(name), "n%u", i);
        node.name = name;
        index[order[i]] = by_builder_node(builder, &node);
    }
    for (uint32_t i = made->link_count; i-- > 0;)
        by_builder_link(builder, index[made->links[i].a], index[made->links[i].b], true,
                        (struct by_fraction){made->links[i].bandwidth, 1}, (struct by_place){0, 0});
    if (by_builder_finish(builder, &topology, &problem) != 0)
        fail_msg("%s", problem.text);
    by_builder_free(builder);
    return topology;
}

struct by_topology *nested_fabric(struct by_prng *prng)
{
    static struct nested made;

    made.node_count = made.link_count = 0;
    make_part(&made, prng);
    copy_parts(&made, prng);
    if (made.node_count < 20 && by_prng_below(prng, 2))
        copy_parts(&made, prng);
    return build(&made, prng);
}

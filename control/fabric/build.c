/* Builds topologies: collects nodes and links, then checks the whole and scales the bandwidths to
 * integers. See build.h. */
#include "control/fabric/build.h"

#include <stdarg.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

/* Sum of all capacities of a fabric (in 1/scale of the unit): keeps every sum over a cut far from
 * overflow.
 */
#define CAPACITY_SUM_MAX (INT64_MAX / 4)
/* Names listed for each part of a fabric that is not connected. */
#define PART_NAMES_MAX 4u
/* Sizes of the first block of names and of the largest (bytes). */
#define NAMES_BYTES_MIN 256u
#define NAMES_BYTES_MAX 65536u
/* Parts that are listed (count). */
#define PARTS_MAX 3u

struct pending_link {
    uint32_t a, b;
    bool both_ways;
    struct by_fraction bandwidth;
    struct by_place place;
};

struct by_builder {
    struct by_topology *topology;
    uint32_t node_room;
    size_t name_at; /* bytes of the topology's last block of names that are taken, and all of them */
    size_t name_room;
    struct pending_link *links;
    uint32_t link_count;
    uint32_t link_room;
};

struct by_builder *by_builder_new(const char *name, const char *unit)
{
    struct by_builder *builder = by_alloc(1, sizeof(*builder));

    builder->topology = by_alloc(1, sizeof(*builder->topology));
    builder->topology->name = by_copy_text(name);
    builder->topology->unit = by_copy_text(unit);
    return builder;
}

void by_builder_free(struct by_builder *builder)
{
    if (!builder)
        return;
    by_topology_free(builder->topology);
    free(builder->links);
    free(builder);
}

void by_builder_title(struct by_builder *builder, const char *name, const char *unit)
{
    free(builder->topology->name);
    free(builder->topology->unit);
    builder->topology->name = by_copy_text(name);
    builder->topology->unit = by_copy_text(unit);
}

const struct by_topology *by_builder_topology(const struct by_builder *builder)
{
    return builder->topology;
}

/* Returns a copy of a node's name, in a block of the topology. */
static char *copy_name(struct by_builder *builder, const char *name)
{
    struct by_topology *topology = builder->topology;
    size_t bytes = strlen(name) + 1;
    char *copy;

    if (bytes > builder->name_room - builder->name_at) {
        size_t room = builder->name_room < NAMES_BYTES_MAX / 2 ? 2 * builder->name_room : NAMES_BYTES_MAX;
        struct by_name_block *block;

        room = room < NAMES_BYTES_MIN ? NAMES_BYTES_MIN : room;
        room = room < bytes ? bytes : room;
        block = by_alloc(1, sizeof(*block) + room);
        block->before = topology->names;
        topology->names = block;
        builder->name_room = room;
        builder->name_at = 0;
    }
    copy = memcpy(topology->names->text + builder->name_at, name, bytes);
    builder->name_at += bytes;
    return copy;
}

uint32_t by_builder_node(struct by_builder *builder, const struct by_node *node)
{
    struct by_topology *topology = builder->topology;

    BY_ASSERT(topology->node_count < BY_TOPOLOGY_NODES_MAX);
    BY_GROW(topology->nodes, topology->node_count, builder->node_room);
    topology->nodes[topology->node_count] = *node;
    topology->nodes[topology->node_count].name = copy_name(builder, node->name);
    if (node->aggregate_rate.den == 0)
        topology->nodes[topology->node_count].aggregate_rate = (struct by_fraction){0, 1};
    if (node->task_time.den == 0)
        topology->nodes[topology->node_count].task_time = (struct by_fraction){0, 1};
    return topology->node_count++;
}

uint32_t by_builder_compute(struct by_builder *builder, const char *format, ...)
{
    struct by_node node = {.compute = true};
    char name[64];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(name, sizeof(name), format, arguments);
    va_end(arguments);
    node.name = name;
    return by_builder_node(builder, &node);
}

uint32_t by_builder_switch(struct by_builder *builder, const char *format, ...)
{
    struct by_node node = {.multicast = true, .aggregate = true};
    char name[64];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(name, sizeof(name), format, arguments);
    va_end(arguments);
    node.name = name;
    return by_builder_node(builder, &node);
}

void by_builder_link(struct by_builder *builder, uint32_t a, uint32_t b, bool both_ways,
                     struct by_fraction bandwidth, struct by_place place)
{
    BY_ASSERT(a < builder->topology->node_count && b < builder->topology->node_count && a != b);
    BY_ASSERT(bandwidth.num > 0);
    BY_GROW(builder->links, builder->link_count, builder->link_room);
    builder->links[builder->link_count++] = (struct pending_link){a, b, both_ways, bandwidth, place};
}

/* Finds the representative of `node` and compresses the path to it (union-find). */
static uint32_t part_of(uint32_t *parent, uint32_t node)
{
    while (parent[node] != node) {
        parent[node] = parent[parent[node]];
        node = parent[node];
    }
    return node;
}

/* Writes "name, name, ..." of the nodes whose part is `part`. */
static void list_part(const struct by_topology *topology, uint32_t *parent, uint32_t part, char *text,
                      size_t bytes)
{
    size_t at = 0;
    uint32_t listed = 0;

    for (uint32_t i = part; i < topology->node_count && at < bytes; i++) {
        if (part_of(parent, i) != part)
            continue;
        if (listed == PART_NAMES_MAX || at + strlen(topology->nodes[i].name) + 8 > bytes) {
            snprintf(text + at, bytes - at, ", ...");
            break;
        }
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", listed++ ? ", " : "", topology->nodes[i].name);
    }
}

/* Writes "{a, b}, {c}" of the first parts of a fabric; returns how many parts there are. */
static uint32_t list_parts(const struct by_topology *topology, uint32_t *parent, char *text, size_t bytes)
{
    uint32_t parts = 0;
    size_t at = 0;

    for (uint32_t i = 0; i < topology->node_count; i++) {
        char names[100];

        if (part_of(parent, i) != i) /* only the representative lists the part */
            continue;
        if (++parts > PARTS_MAX)
            continue;
        list_part(topology, parent, i, names, sizeof(names));
        at += (size_t)snprintf(text + at, bytes - at, "%s{%s}", at ? " and " : "", names);
    }
    if (parts > PARTS_MAX)
        snprintf(text + at, bytes - at, ", ... (%u parts)", parts);
    return parts;
}

/* Refuses a fabric that is not connected. Direction is ignored here; the planner checks what its
 * collective needs. */
static int check_connected(const struct by_topology *topology, const struct pending_link *links,
                           uint32_t link_count, struct by_problem *problem)
{
    uint32_t *parent = by_alloc(topology->node_count, sizeof(*parent));
    char parts[340] = "";
    int error = 0;

    for (uint32_t i = 0; i < topology->node_count; i++)
        parent[i] = i;
    for (uint32_t i = 0; i < link_count; i++) {
        uint32_t a = part_of(parent, links[i].a), b = part_of(parent, links[i].b);

        parent[a > b ? a : b] = a > b ? b : a; /* the first node represents its part */
    }
    if (list_parts(topology, parent, parts, sizeof(parts)) > 1)
        error = by_problem_set(problem, BY_EINVAL, (struct by_place){0, 0},
                               "no link joins %s: every node must be reachable; add a link or remove a part",
                               parts);
    free(parent);
    return error;
}

/* Least common multiple of all denominators, in 63 bits. */
static int find_scale(const struct by_builder *builder, int64_t *scale, struct by_problem *problem)
{
    const struct by_topology *topology = builder->topology;

    *scale = 1;
    for (uint32_t i = 0; i < builder->link_count; i++) {
        const struct pending_link *link = &builder->links[i];
        int64_t factor = link->bandwidth.den / by_gcd(*scale, link->bandwidth.den);

        if (__builtin_mul_overflow(*scale, factor, scale))
            return by_problem_set(
                problem, BY_ERANGE, link->place,
                "the bandwidth of %s - %s has no common unit with the others below 2^63; round the fractions",
                topology->nodes[link->a].name, topology->nodes[link->b].name);
    }
    return 0;
}

static void add_arc(struct by_topology *topology, uint32_t from, uint32_t to, int64_t capacity, uint32_t link)
{
    topology->arcs[topology->arc_count++] = (struct by_arc){from, to, capacity, link};
}

/* Scales bandwidths to integers and makes arcs and links. */
static int make_arcs(struct by_builder *builder, struct by_problem *problem)
{
    struct by_topology *topology = builder->topology;
    int64_t sum = 0;

    if (find_scale(builder, &topology->scale, problem) != 0)
        return BY_ERANGE;
    topology->arcs = by_alloc((size_t)builder->link_count * 2, sizeof(*topology->arcs));
    topology->links = by_alloc(builder->link_count, sizeof(*topology->links));
    topology->link_count = builder->link_count;
    for (uint32_t i = 0; i < builder->link_count; i++) {
        const struct pending_link *from = &builder->links[i];
        struct by_link *link = &topology->links[i];
        __int128 capacity = (__int128)from->bandwidth.num * (topology->scale / from->bandwidth.den);
        __int128 grown = sum + capacity * (from->both_ways ? 2 : 1);

        if (capacity > CAPACITY_SUM_MAX || grown > CAPACITY_SUM_MAX)
            return by_problem_set(problem, BY_ERANGE, from->place,
                                  "the bandwidths up to %s - %s add up to more than 2^61 in units of 1/%lld; "
                                  "use a larger unit or "
                                  "round the fractions",
                                  topology->nodes[from->a].name, topology->nodes[from->b].name,
                                  (long long)topology->scale);
        sum = (int64_t)grown;
        *link = (struct by_link){from->a, from->b, topology->arc_count, UINT32_MAX};
        add_arc(topology, from->a, from->b, (int64_t)capacity, i);
        if (from->both_ways) {
            link->arc_ba = topology->arc_count;
            add_arc(topology, from->b, from->a, (int64_t)capacity, i);
        }
    }
    return 0;
}

int by_builder_finish(struct by_builder *builder, struct by_topology **topology, struct by_problem *problem)
{
    int error;

    if (by_topology_compute_count(builder->topology) == 0)
        return by_problem_set(problem, BY_EINVAL, (struct by_place){0, 0},
                              "the fabric has no compute node; give at least one node \"kind\": \"compute\"");
    error = check_connected(builder->topology, builder->links, builder->link_count, problem);
    if (!error)
        error = make_arcs(builder, problem);
    if (error)
        return error;
    *topology = builder->topology;
    builder->topology = NULL;
    return 0;
}

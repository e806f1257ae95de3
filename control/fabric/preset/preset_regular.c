/* Presets without hierarchy: star, ring, complete, torus, hypercube, random. See preset.h. */
#include "control/base/alloc.h"
#include "control/fabric/preset/preset.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"

/* Dimensions of a torus (count). */
#define TORUS_DIMENSIONS_MAX 4

static const struct by_place nowhere = {0, 0};

static void add_hosts(struct by_builder *builder, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        by_builder_compute(builder, "host%lld", (long long)i);
}

static void link_both(struct by_builder *builder, int64_t a, int64_t b, struct by_fraction bandwidth)
{
    by_builder_link(builder, (uint32_t)a, (uint32_t)b, true, bandwidth, nowhere);
}

int by_preset_star(struct by_builder *builder, const struct by_preset_values *values,
                   struct by_problem *problem)
{
    int64_t hosts = values->count[0];
    uint32_t hub;

    (void)problem;
    add_hosts(builder, hosts);
    hub = by_builder_switch(builder, "switch0");
    for (int64_t i = 0; i < hosts; i++)
        link_both(builder, i, hub, values->bandwidth[1]);
    return 0;
}

int by_preset_ring(struct by_builder *builder, const struct by_preset_values *values,
                   struct by_problem *problem)
{
    int64_t hosts = values->count[0];

    (void)problem;
    add_hosts(builder, hosts);
    for (int64_t i = 0; i < (hosts == 2 ? 1 : hosts) && hosts > 1; i++)
        link_both(builder, i, (i + 1) % hosts, values->bandwidth[1]);
    return 0;
}

int by_preset_complete(struct by_builder *builder, const struct by_preset_values *values,
                       struct by_problem *problem)
{
    (void)problem;
    add_hosts(builder, values->count[0]);
    for (int64_t i = 0; i < values->count[0]; i++)
        for (int64_t j = i + 1; j < values->count[0]; j++)
            link_both(builder, i, j, values->bandwidth[1]);
    return 0;
}

/* Reads "4x4x2" into sizes; returns the number of dimensions, 0 for any other text. */
static int read_sizes(const char *text, int64_t sizes[TORUS_DIMENSIONS_MAX])
{
    int dimensions = 0;
    int64_t nodes = 1;

    for (;;) {
        char *end;
        long long size;

        if (dimensions == TORUS_DIMENSIONS_MAX || *text < '0' || *text > '9')
            return 0;
        size = strtoll(text, &end, 10);
        if (size < 1 || size > BY_TOPOLOGY_NODES_MAX || (nodes *= size) > BY_TOPOLOGY_NODES_MAX)
            return 0;
        sizes[dimensions++] = size;
        if (*end == '\0')
            return dimensions;
        if (*end != 'x')
            return 0;
        text = end + 1;
    }
}

int by_preset_torus(struct by_builder *builder, const struct by_preset_values *values,
                    struct by_problem *problem)
{
    int64_t sizes[TORUS_DIMENSIONS_MAX], nodes = 1, step = 1;
    int dimensions = read_sizes(values->text[0], sizes);

    if (dimensions == 0)
        return by_problem_set(
            problem, BY_EINVAL, nowhere,
            "--sizes is '%.40s': it must be up to %d sizes joined by x, such as 4x4, at most %u hosts in all",
            values->text[0], TORUS_DIMENSIONS_MAX, BY_TOPOLOGY_NODES_MAX);
    for (int d = 0; d < dimensions; d++)
        nodes *= sizes[d];
    add_hosts(builder, nodes);
    for (int d = 0; d < dimensions; step *= sizes[d++]) {
        for (int64_t i = 0; i < nodes && sizes[d] > 1; i++) {
            int64_t at = i / step % sizes[d];

            if (sizes[d] > 2 || at == 0)
                link_both(builder, i, i + ((at + 1) % sizes[d] - at) * step, values->bandwidth[1]);
        }
    }
    return 0;
}

int by_preset_hypercube(struct by_builder *builder, const struct by_preset_values *values,
                        struct by_problem *problem)
{
    int64_t nodes = (int64_t)1 << values->count[0];

    (void)problem;
    add_hosts(builder, nodes);
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t bit = 1; bit < nodes; bit <<= 1)
            if (!(i & bit))
                link_both(builder, i, i | bit, values->bandwidth[1]);
    return 0;
}

int by_preset_random(struct by_builder *builder, const struct by_preset_values *values,
                     struct by_problem *problem)
{
    int64_t hosts = values->count[0], switches = values->count[1], nodes = hosts + switches;
    struct by_prng prng = {(uint64_t)values->count[4]};

    (void)problem;
    add_hosts(builder, hosts);
    for (int64_t i = 0; i < switches; i++)
        by_builder_switch(builder, "switch%lld", (long long)i);
    /* Switches first, so that a host is linked to a switch or to an earlier host. */
    for (int64_t i = 1; i < nodes; i++) {
        int64_t node = (i + hosts) % nodes, to = ((int64_t)by_prng_below(&prng, (uint64_t)i) + hosts) % nodes;

        link_both(builder, node, to,
                  (struct by_fraction){1 + (int64_t)by_prng_below(&prng, (uint64_t)values->count[3]), 1});
    }
    for (int64_t i = 0; i < values->count[2] && nodes > 1; i++) {
        int64_t a = (int64_t)by_prng_below(&prng, (uint64_t)nodes),
                b = (int64_t)by_prng_below(&prng, (uint64_t)(nodes - 1));

        b += b >= a;
        link_both(builder, a, b,
                  (struct by_fraction){1 + (int64_t)by_prng_below(&prng, (uint64_t)values->count[3]), 1});
    }
    return 0;
}

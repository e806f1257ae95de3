/* Colour refinement, and comparison of parts. See alike.h. Colours are hashes of what is around a
 * node: an accident makes nodes look alike, which the comparison of links then finds. */
#include "control/planner/classes/alike.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "offload/base/prng.h"

void by_alike_init(struct by_alike *alike, const struct by_graph *graph)
{
    uint32_t n = graph->node_count, size = 16;

    *alike = (struct by_alike){.graph = graph, .count = n};
    alike->nodes = by_alloc(n, sizeof(*alike->nodes));
    alike->present = by_alloc(n, sizeof(*alike->present));
    alike->colour = by_alloc(n, sizeof(*alike->colour));
    alike->part = by_alloc(n, sizeof(*alike->part));
    alike->twin = by_alloc(n, sizeof(*alike->twin));
    alike->fine = by_alloc(n, sizeof(*alike->fine));
    alike->fresh = by_alloc(n, sizeof(*alike->fresh));
    while (size < 2 * n)
        size *= 2;
    alike->set_mask = size - 1;
    alike->set = by_alloc(size, sizeof(*alike->set));
    for (uint32_t i = 0; i < n; i++) {
        alike->nodes[i] = i;
        alike->present[i] = true;
    }
}

void by_alike_free(struct by_alike *alike)
{
    free(alike->nodes);
    free(alike->present);
    free(alike->colour);
    free(alike->part);
    free(alike->twin);
    free(alike->fine);
    free(alike->fresh);
    free(alike->set);
}

static uint64_t kind_of(const struct by_alike *alike, uint32_t node)
{
    const struct by_node *kind = &alike->graph->topology->nodes[node];
    uint64_t flags = alike->graph->compute[node] | kind->compute << 1 | kind->forward << 2 |
                     kind->multicast << 3 | kind->aggregate << 4 | (uint64_t)kind->ops << 8 |
                     (uint64_t)kind->dtypes << 24;

    return by_prng_mix(by_prng_mix(by_prng_mix(flags) + (uint64_t)kind->aggregate_rate.num) +
                       (uint64_t)kind->aggregate_rate.den);
}

/* Counts the different colours. */
static uint32_t count_colours(struct by_alike *alike, const uint64_t *colour)
{
    uint32_t count = 0;

    memset(alike->set, 0, ((size_t)alike->set_mask + 1) * sizeof(*alike->set));
    for (uint32_t i = 0; i < alike->count; i++) {
        uint64_t value = colour[alike->nodes[i]] | 1; /* 0 is free */
        uint32_t at = (uint32_t)(value >> 20) & alike->set_mask;

        while (alike->set[at] && alike->set[at] != value)
            at = (at + 1) & alike->set_mask;
        count += alike->set[at] == 0;
        alike->set[at] = value;
    }
    return count;
}

/* Refines colours until their number stays the same. */
static void refine(struct by_alike *alike, uint64_t *colour)
{
    const struct by_mesh *net = alike->graph->net;
    uint32_t before = 0, count = count_colours(alike, colour);

    while (count > before) {
        for (uint32_t i = 0; i < alike->count; i++) {
            uint32_t node = alike->nodes[i];
            uint64_t sum = 0;

            for (uint32_t j = net->first[node]; j < net->first[node + 1]; j++) {
                struct by_near near = net->near[j];

                if (alike->present[near.node])
                    sum +=
                        by_prng_mix(by_prng_mix(colour[near.node] + 3 * (uint64_t)net->capacity[near.half]) +
                                    (uint64_t)net->capacity[near.half ^ 1]);
            }
            alike->fresh[node] = by_prng_mix(colour[node] ^ sum);
        }
        for (uint32_t i = 0; i < alike->count; i++)
            colour[alike->nodes[i]] = alike->fresh[alike->nodes[i]];
        before = count;
        count = count_colours(alike, colour);
    }
}

void by_alike_colour(struct by_alike *alike, const uint32_t *apart)
{
    for (uint32_t i = 0; i < alike->count; i++) {
        uint32_t node = alike->nodes[i];

        alike->colour[node] = by_prng_mix(kind_of(alike, node) + apart[node]);
    }
    refine(alike, alike->colour);
}

/* A node of a part, in the order of colours, then parts. */
struct entry {
    uint64_t colour;
    uint32_t part, node;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->colour != y->colour)
        return x->colour < y->colour ? -1 : 1;
    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* The end of the entries with the colour of entry `first`. */
static uint32_t end_of_colour(const struct entry *entries, uint32_t first, uint32_t count)
{
    uint32_t end = first + 1;

    while (end < count && entries[end].colour == entries[first].colour)
        end++;
    return end;
}

/* Lists the nodes of parts by colour. Returns how many there are, 0 if some colour is not equally
 * often in all parts. */
static uint32_t list_entries(const struct by_alike *alike, uint32_t parts, struct entry *entries)
{
    uint32_t count = 0, end;

    for (uint32_t i = 0; i < alike->count; i++) {
        uint32_t node = alike->nodes[i];

        if (alike->part[node] != BY_PART_FIXED)
            entries[count++] = (struct entry){alike->fine[node], alike->part[node], node};
    }
    qsort(entries, count, sizeof(*entries), compare_entries);
    for (uint32_t first = 0; first < count; first = end) {
        end = end_of_colour(entries, first, count);
        if ((end - first) % parts)
            return 0;
        for (uint32_t i = first; i < end; i++)
            if (entries[i].part != 1 + (i - first) / ((end - first) / parts))
                return 0;
    }
    return count;
}

/* Gives the nodes of one colour of each part different colours, in the order of the nodes. */
static void tell_apart(struct by_alike *alike, const struct entry *entries, uint32_t first, uint32_t each,
                       uint32_t parts)
{
    for (uint32_t i = 0; i < each * parts; i++)
        alike->fine[entries[first + i].node] = by_prng_mix(entries[first].colour + 1 + i % each);
}

/* Whether all neighbours of the first part's nodes of a colour differ in colour from all other
 * nodes of their part, so that these nodes may be exchanged. `single` is by node. */
static bool is_free(const struct by_alike *alike, const struct entry *entries, uint32_t first, uint32_t each,
                    const bool *single)
{
    const struct by_mesh *net = alike->graph->net;

    for (uint32_t i = first; i < first + each; i++)
        for (uint32_t j = net->first[entries[i].node]; j < net->first[entries[i].node + 1]; j++) {
            uint32_t other = net->near[j].node;

            if (alike->present[other] && alike->part[other] != BY_PART_FIXED && !single[other])
                return false;
        }
    return true;
}

/* Tells nodes of equal colour apart, where their order does not matter, or else those of the rarest
 * colour. Returns whether all colours were single before. */
static bool separate(struct by_alike *alike, const struct entry *entries, uint32_t count, uint32_t parts,
                     bool *single)
{
    uint32_t end, rarest = UINT32_MAX, rarest_at = 0;
    bool freed = false;

    for (uint32_t first = 0; first < count; first = end) {
        end = end_of_colour(entries, first, count);
        for (uint32_t i = first; i < end; i++)
            single[entries[i].node] = end - first == parts;
    }
    for (uint32_t first = 0; first < count; first = end) {
        uint32_t each;

        end = end_of_colour(entries, first, count);
        each = (end - first) / parts;
        if (each > 1 && is_free(alike, entries, first, each, single)) {
            tell_apart(alike, entries, first, each, parts);
            freed = true;
        } else if (each > 1 && each < rarest) {
            rarest = each;
            rarest_at = first;
        }
    }
    if (!freed && rarest == UINT32_MAX)
        return true;
    if (!freed)
        tell_apart(alike, entries, rarest_at, rarest, parts);
    return false;
}

/* Whether a node has the same links as its twin. */
static bool has_same_links(const struct by_alike *alike, uint32_t node)
{
    const struct by_mesh *net = alike->graph->net;
    uint32_t twin = alike->twin[node], links = 0;

    for (uint32_t j = net->first[twin]; j < net->first[twin + 1]; j++)
        links += alike->present[net->near[j].node];
    for (uint32_t j = net->first[node]; j < net->first[node + 1]; j++) {
        struct by_near near = net->near[j];
        uint32_t other = near.node, half;

        if (!alike->present[other])
            continue;
        if (alike->part[other] != BY_PART_FIXED)
            other = alike->twin[other];
        half = by_mesh_find(net, other, twin);
        if (half == UINT32_MAX || links-- == 0 || net->capacity[half] != net->capacity[near.half] ||
            net->capacity[half ^ 1] != net->capacity[near.half ^ 1])
            return false;
    }
    return links == 0;
}

/* Compares every link of the parts with that of the first part, and what the nodes are. */
static bool compare(struct by_alike *alike, const struct entry *entries, uint32_t count, uint32_t parts,
                    const uint32_t *apart)
{
    for (uint32_t i = 0; i < count; i++)
        alike->twin[entries[i].node] = entries[i / parts * parts].node;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t node = entries[i].node, twin = alike->twin[node];

        if (kind_of(alike, node) != kind_of(alike, twin) || apart[node] != apart[twin] ||
            !has_same_links(alike, node))
            return false;
    }
    return true;
}

bool by_alike_parts(struct by_alike *alike, uint32_t parts, const uint32_t *apart)
{
    struct entry *entries = by_alloc(alike->count, sizeof(*entries));
    bool *single = by_alloc(alike->graph->node_count, sizeof(*single)), right = false, done = false;
    uint32_t count;

    for (uint32_t i = 0; i < alike->count; i++) {
        uint32_t node = alike->nodes[i];

        alike->fine[node] = alike->part[node] == BY_PART_FIXED
                                ? by_prng_mix(~(uint64_t)node)
                                : by_prng_mix(kind_of(alike, node) + apart[node]);
    }
    do {
        refine(alike, alike->fine);
        count = list_entries(alike, parts, entries);
        done = count == 0 || separate(alike, entries, count, parts, single);
    } while (!done);
    right = count > 0 && compare(alike, entries, count, parts, apart);
    free(entries);
    free(single);
    return right;
}

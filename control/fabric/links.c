/* A hash table of linked pairs, open addressing. See links.h. */
#include "control/fabric/links.h"

#include "control/base/alloc.h"

static uint32_t hash(uint32_t from, uint32_t to)
{
    uint64_t key = ((uint64_t)from << 32 | to) * 0x9e3779b97f4a7c15u;

    return (uint32_t)(key >> 32);
}

/* Returns the slot of the pair, or the free slot where it belongs. */
static uint32_t find_slot(const struct by_links *links, uint32_t from, uint32_t to)
{
    uint32_t at = hash(from, to) & links->mask;

    while (links->slots[at] &&
           (links->from[links->slots[at] - 1] != from || links->to[links->slots[at] - 1] != to))
        at = (at + 1) & links->mask;
    return at;
}

struct by_links *by_links_new(const struct by_topology *topology)
{
    struct by_links *links = by_alloc(1, sizeof(*links));
    uint32_t size = 16;

    while (size / 2 < topology->arc_count)
        size *= 2;
    links->mask = size - 1;
    links->slots = by_alloc(size, sizeof(*links->slots));
    links->from = by_alloc(topology->arc_count, sizeof(*links->from));
    links->to = by_alloc(topology->arc_count, sizeof(*links->to));
    links->capacity = by_alloc(topology->arc_count, sizeof(*links->capacity));
    for (uint32_t i = 0; i < topology->arc_count; i++) {
        const struct by_arc *arc = &topology->arcs[i];
        uint32_t at = find_slot(links, arc->from, arc->to);

        if (!links->slots[at]) {
            links->from[links->count] = arc->from;
            links->to[links->count] = arc->to;
            links->slots[at] = ++links->count;
        }
        links->capacity[links->slots[at] - 1] += arc->capacity; /* the builder bounds the sum of all */
    }
    return links;
}

void by_links_free(struct by_links *links)
{
    if (!links)
        return;
    free(links->from);
    free(links->to);
    free(links->capacity);
    free(links->slots);
    free(links);
}

uint32_t by_links_find(const struct by_links *links, uint32_t from, uint32_t to)
{
    uint32_t slot = links->slots[find_slot(links, from, to)];

    return slot ? slot - 1 : UINT32_MAX;
}

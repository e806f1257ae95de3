/* The levels of a symmetry: which switches to remove so that the rest falls into alike parts. See
 * symmetry.h; alike.c compares the parts. */
#include "control/planner/classes/symmetry.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/planner/classes/alike.h"

/* Kinds of switches that are tried for removal (count): all sets of them, so at most 2^KINDS_MAX
 * sets. */
#define KINDS_MAX 6u

struct symmetry_kind {
    uint64_t colour;
    uint32_t count;
};

struct symmetry_search {
    const struct by_graph *graph;
    struct by_symmetry *symmetry;
    struct by_alike alike;
    uint32_t kind_count;
    struct symmetry_kind kinds[KINDS_MAX];
    uint32_t *stack;
};

static int compare_kinds(const void *a, const void *b)
{
    const struct symmetry_kind *x = a, *y = b;

    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return x->colour < y->colour ? -1 : x->colour > y->colour;
}

/* Lists the colours of the switches; false if there are too many, or none. */
static bool find_kinds(struct symmetry_search *search)
{
    const struct by_alike *alike = &search->alike;

    search->kind_count = 0;
    for (uint32_t i = 0; i < alike->count; i++) {
        uint32_t node = alike->nodes[i], at = 0;

        if (search->graph->compute[node])
            continue;
        while (at < search->kind_count && search->kinds[at].colour != alike->colour[node])
            at++;
        if (at == KINDS_MAX)
            return false;
        if (at == search->kind_count)
            search->kinds[search->kind_count++] = (struct symmetry_kind){alike->colour[node], 0};
        search->kinds[at].count++;
    }
    qsort(search->kinds, search->kind_count, sizeof(*search->kinds), compare_kinds);
    return search->kind_count > 0;
}

/* Numbers the parts that remain without the nodes in part 0; returns how many there are. */
static uint32_t flood(struct symmetry_search *search)
{
    struct by_alike *alike = &search->alike;
    const struct by_mesh *net = search->graph->net;
    uint32_t parts = 0;

    for (uint32_t i = 0; i < alike->count; i++) {
        uint32_t depth = 0;

        if (alike->part[alike->nodes[i]] != BY_PART_UNKNOWN)
            continue;
        alike->part[search->stack[depth++] = alike->nodes[i]] = ++parts;
        while (depth > 0) {
            uint32_t node = search->stack[--depth];

            for (uint32_t j = net->first[node]; j < net->first[node + 1]; j++) {
                uint32_t other = net->near[j].node;

                if (alike->present[other] && alike->part[other] == BY_PART_UNKNOWN)
                    alike->part[search->stack[depth++] = other] = parts;
            }
        }
    }
    return parts;
}

/* Removes the switches of the kinds in `set`. Returns the number of parts, 0 if they do not all
 * have equal numbers of nodes. Parts without compute nodes are removed as well. */
static uint32_t split(struct symmetry_search *search, uint32_t set)
{
    struct by_alike *alike = &search->alike;
    uint32_t parts, used = 0, size = 0, *computes, *nodes, *number;
    bool equal = true;

    for (uint32_t i = 0; i < alike->count; i++) {
        uint32_t node = alike->nodes[i], kind = 0;

        if (!search->graph->compute[node])
            while (search->kinds[kind].colour != alike->colour[node])
                kind++;
        alike->part[node] =
            !search->graph->compute[node] && (set >> kind & 1) ? BY_PART_FIXED : BY_PART_UNKNOWN;
    }
    parts = flood(search);
    computes = by_alloc(3 * ((size_t)parts + 1), sizeof(*computes));
    nodes = computes + parts + 1;
    number = nodes + parts + 1;
    for (uint32_t i = 0; i < alike->count; i++) {
        computes[alike->part[alike->nodes[i]]] += search->graph->compute[alike->nodes[i]];
        nodes[alike->part[alike->nodes[i]]]++;
    }
    for (uint32_t i = 1; i <= parts; i++) {
        if (computes[i] == 0)
            continue;
        number[i] = ++used;
        equal &= size == 0 || nodes[i] == size;
        size = nodes[i];
    }
    for (uint32_t i = 0; i < alike->count; i++)
        alike->part[alike->nodes[i]] = number[alike->part[alike->nodes[i]]];
    free(computes);
    return equal && used > 1 ? used : 0;
}

/* Adds a level of `parts` alike parts; continues with the first of them and the nodes around. */
static void add_level(struct symmetry_search *search, uint32_t parts)
{
    struct by_symmetry *symmetry = search->symmetry;
    struct by_alike *alike = &search->alike;
    uint32_t number = symmetry->level_count++, kept = 0;
    struct by_level *level = &symmetry->levels[number];

    level->order = parts;
    level->place = by_alloc(symmetry->node_count, sizeof(*level->place));
    for (uint32_t i = 0; i < alike->count; i++) {
        uint32_t node = alike->nodes[i];

        if (alike->part[node] == BY_PART_FIXED) {
            alike->nodes[kept++] = node;
            continue;
        }
        symmetry->moved[node] |= 1u << number;
        level->place[node] = alike->part[node] - 1;
        symmetry->of[node] = alike->twin[node];
        if (alike->part[node] == 1)
            alike->nodes[kept++] = node;
        else
            alike->present[node] = false;
    }
    alike->count = kept;
    level->twin = by_alloc(symmetry->node_count, sizeof(*level->twin));
    memcpy(level->twin, symmetry->of, symmetry->node_count * sizeof(*level->twin));
}

static bool find_level(struct symmetry_search *search)
{
    uint32_t sets;

    by_alike_colour(&search->alike, search->symmetry->moved);
    if (!find_kinds(search))
        return false;
    sets = 1u << search->kind_count;
    for (uint32_t size = 1; size <= search->kind_count; size++)
        for (uint32_t set = 1; set < sets; set++) {
            uint32_t parts;

            if ((uint32_t)__builtin_popcount(set) != size)
                continue;
            parts = split(search, set);
            if (parts && by_alike_parts(&search->alike, parts, search->symmetry->moved)) {
                add_level(search, parts);
                return true;
            }
        }
    return false;
}

/* Sets the last representative of each node, its places at all levels, and what it is moved by. */
static void finish_nodes(struct by_symmetry *symmetry)
{
    for (uint32_t i = 0; i < symmetry->node_count; i++)
        for (uint32_t node = symmetry->of[i]; node != symmetry->of[node]; node = symmetry->of[node])
            symmetry->of[i] = symmetry->of[node];
    for (uint32_t i = 0; i < symmetry->node_count; i++)
        symmetry->moved[i] = symmetry->moved[symmetry->of[i]];
}

static size_t index_of(const struct by_symmetry *symmetry, uint32_t node, const uint32_t *place)
{
    size_t index = 0;

    for (uint32_t l = 0; l < symmetry->level_count; l++)
        if (symmetry->moved[node] >> l & 1)
            index = index * symmetry->levels[l].order + place[l];
    return symmetry->start[node] + index;
}

uint32_t by_symmetry_image(const struct by_symmetry *symmetry, uint32_t node, const uint32_t *place)
{
    return symmetry->images[index_of(symmetry, node, place)];
}

static uint64_t count_images(const struct by_symmetry *symmetry, uint32_t moved)
{
    uint64_t count = 1;

    for (uint32_t l = 0; l < symmetry->level_count; l++)
        count *= moved >> l & 1 ? symmetry->levels[l].order : 1;
    return count;
}

uint64_t by_symmetry_order(const struct by_symmetry *symmetry)
{
    return count_images(symmetry, UINT32_MAX);
}

uint64_t by_symmetry_links(const struct by_symmetry *symmetry, uint32_t from, uint32_t to)
{
    return count_images(symmetry, symmetry->moved[from] | symmetry->moved[to]);
}

/*
 * The places of a node: part numbers were given to the nodes that a level found, which lie in part
 * 0 of the levels before it. Those of other nodes are those of their twins.
 */
static void place_nodes(struct by_symmetry *symmetry)
{
    for (uint32_t l = 1; l < symmetry->level_count; l++)
        for (uint32_t i = 0; i < symmetry->node_count; i++) {
            uint32_t node = i;

            for (uint32_t before = 0; before < l; before++)
                node = symmetry->levels[before].twin[node];
            symmetry->levels[l].place[i] = symmetry->levels[l].place[node];
        }
}

static void list_images(struct by_symmetry *symmetry)
{
    uint32_t n = symmetry->node_count;
    size_t at = 0;

    symmetry->start = by_alloc(n, sizeof(*symmetry->start));
    symmetry->images = by_alloc(n, sizeof(*symmetry->images));
    symmetry->representatives = by_alloc(n, sizeof(*symmetry->representatives));
    for (uint32_t i = 0; i < n; i++) {
        if (symmetry->of[i] != i)
            continue;
        symmetry->representatives[symmetry->representative_count++] = i;
        symmetry->start[i] = at;
        at += count_images(symmetry, symmetry->moved[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t place[BY_ROTATIONS_MAX];

        for (uint32_t l = 0; l < symmetry->level_count; l++)
            place[l] = symmetry->levels[l].place[i];
        symmetry->images[index_of(symmetry, symmetry->of[i], place)] = i;
    }
}

struct by_symmetry *by_symmetry_find(const struct by_graph *graph)
{
    struct by_symmetry *symmetry = by_alloc(1, sizeof(*symmetry));
    struct symmetry_search search = {.graph = graph, .symmetry = symmetry};
    uint32_t n = symmetry->node_count = graph->node_count;

    symmetry->of = by_alloc(n, sizeof(*symmetry->of));
    symmetry->moved = by_alloc(n, sizeof(*symmetry->moved));
    for (uint32_t i = 0; i < n; i++)
        symmetry->of[i] = i;
    search.stack = by_alloc(n, sizeof(*search.stack));
    by_alike_init(&search.alike, graph);
    while (symmetry->level_count < BY_ROTATIONS_MAX && find_level(&search))
        ;
    place_nodes(symmetry);
    finish_nodes(symmetry);
    list_images(symmetry);
    by_alike_free(&search.alike);
    free(search.stack);
    return symmetry;
}

void by_symmetry_free(struct by_symmetry *symmetry)
{
    if (!symmetry)
        return;
    for (uint32_t l = 0; l < symmetry->level_count; l++) {
        free(symmetry->levels[l].place);
        free(symmetry->levels[l].twin);
    }
    free(symmetry->of);
    free(symmetry->moved);
    free(symmetry->representatives);
    free(symmetry->start);
    free(symmetry->images);
    free(symmetry);
}

struct by_rotations *by_symmetry_rotations(const struct by_symmetry *symmetry)
{
    struct by_rotations *rotations = by_alloc(1, sizeof(*rotations));
    uint32_t place[BY_ROTATIONS_MAX];

    rotations->node_count = symmetry->node_count;
    rotations->count = symmetry->level_count;
    for (uint32_t l = 0; l < symmetry->level_count; l++) {
        struct by_rotation *rotation = &rotations->list[l];

        rotation->order = symmetry->levels[l].order;
        rotation->next = by_alloc(symmetry->node_count, sizeof(*rotation->next));
        for (uint32_t i = 0; i < symmetry->node_count; i++) {
            uint32_t node = symmetry->of[i];

            for (uint32_t k = 0; k < symmetry->level_count; k++)
                place[k] = symmetry->levels[k].place[i];
            place[l] = (place[l] + 1) % rotation->order;
            rotation->next[i] = by_symmetry_image(symmetry, node, place);
        }
    }
    return rotations;
}

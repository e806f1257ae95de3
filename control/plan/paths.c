/* A table of paths. See paths.h. */
#include "control/plan/paths.h"

#include "control/base/alloc.h"
#include "offload/base/assert.h"

void by_paths_free(struct by_paths *paths)
{
    free(paths->start);
    free(paths->nodes);
    free(paths->slots);
    free(paths->reverse);
    *paths = (struct by_paths){0};
}

static uint32_t hash(const uint32_t *nodes, uint32_t count)
{
    uint64_t value = count;

    for (uint32_t i = 0; i < count; i++)
        value = (value ^ nodes[i]) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(value >> 32);
}

/* Puts a value into a free slot. */
static void fill_slot(struct by_paths *paths, uint64_t slot)
{
    uint32_t mask = paths->slot_count - 1, at = (uint32_t)(slot >> 32) & mask;

    while (paths->slots[at] != 0)
        at = (at + 1) & mask;
    paths->slots[at] = slot;
}

/* Grows the hash table to at least twice the required size. */
static void spread(struct by_paths *paths)
{
    uint32_t old_count = paths->slot_count;
    uint64_t *old = paths->slots;

    paths->slot_count = paths->slot_count ? paths->slot_count : 64;
    while (paths->slot_count < 4 * (paths->count + 1))
        paths->slot_count *= 2;
    paths->slots = by_alloc_table(paths->slot_count, sizeof(*paths->slots));
    memset(paths->slots, 0, paths->slot_count * sizeof(*paths->slots));
    for (uint32_t i = 0; i < old_count; i++)
        if (old[i] != 0)
            fill_slot(paths, old[i]);
    for (uint32_t i = 0; old == NULL && i < paths->count; i++) {
        struct by_path path = by_paths_get(paths, i);

        fill_slot(paths, (uint64_t)hash(path.nodes, path.node_count) << 32 | (i + 1));
    }
    free(old);
}

bool by_paths_are(const struct by_paths *paths, uint32_t path, const uint32_t *nodes, uint32_t count)
{
    struct by_path view = by_paths_get(paths, path);

    return view.node_count == count && memcmp(view.nodes, nodes, count * sizeof(*nodes)) == 0;
}

static uint32_t append(struct by_paths *paths, const uint32_t *nodes, uint32_t count)
{
    BY_ASSERT(count >= 2 && paths->node_count < UINT32_MAX - count && paths->count < UINT32_MAX / 4);
    while (paths->node_count + count > paths->node_room) {
        paths->node_room = paths->node_room < UINT32_MAX / 2 ? paths->node_room * 2 : UINT32_MAX;
        paths->node_room = paths->node_room ? paths->node_room : 256;
        paths->nodes = by_realloc(paths->nodes, paths->node_room, sizeof(*paths->nodes));
    }
    if (paths->count + 2 > paths->room) {
        paths->room = paths->room ? paths->room * 2 : 64;
        paths->start = by_realloc(paths->start, paths->room, sizeof(*paths->start));
    }
    paths->start[paths->count] = paths->node_count;
    memcpy(paths->nodes + paths->node_count, nodes, count * sizeof(*nodes));
    paths->node_count += count;
    paths->start[++paths->count] = paths->node_count;
    return paths->count - 1;
}

uint32_t by_paths_add(struct by_paths *paths, const uint32_t *nodes, uint32_t count)
{
    uint32_t value = hash(nodes, count), at;

    if (2 * (paths->count + 1) > paths->slot_count)
        spread(paths);
    for (at = value & (paths->slot_count - 1); paths->slots[at] != 0; at = (at + 1) & (paths->slot_count - 1))
        if (paths->slots[at] >> 32 == value &&
            by_paths_are(paths, (uint32_t)paths->slots[at] - 1, nodes, count))
            return (uint32_t)paths->slots[at] - 1;
    paths->slots[at] = (uint64_t)value << 32 | (append(paths, nodes, count) + 1);
    return paths->count - 1;
}

uint32_t by_paths_reverse(struct by_paths *paths, uint32_t path)
{
    struct by_path view;
    uint32_t *nodes;

    if (path >= paths->reverse_room) {
        paths->reverse = by_realloc(paths->reverse, paths->room, sizeof(*paths->reverse));
        memset(paths->reverse + paths->reverse_room, 0,
               (paths->room - paths->reverse_room) * sizeof(*paths->reverse));
        paths->reverse_room = paths->room;
    }
    if (paths->reverse[path] == 0) {
        view = by_paths_get(paths, path);
        nodes = by_alloc(view.node_count, sizeof(*nodes));
        for (uint32_t i = 0; i < view.node_count; i++)
            nodes[i] = view.nodes[view.node_count - 1 - i];
        paths->reverse[path] = by_paths_add(paths, nodes, view.node_count) + 1;
        free(nodes);
    }
    return paths->reverse[path] - 1;
}

uint32_t by_paths_append(struct by_paths *paths, const uint32_t *nodes, uint32_t count)
{
    BY_ASSERT(paths->slot_count == 0);
    return append(paths, nodes, count);
}

void by_paths_renumber(struct by_paths *paths, const uint32_t *number, uint32_t kept)
{
    uint32_t *start = by_alloc((size_t)kept + 1, sizeof(*start)), *nodes;

    for (uint32_t i = 0; i < paths->count; i++)
        if (number[i] != UINT32_MAX)
            start[number[i] + 1] = by_paths_hops(paths, i) + 1;
    for (uint32_t i = 0; i < kept; i++)
        start[i + 1] += start[i];
    nodes = by_alloc_table(start[kept], sizeof(*nodes));
    for (uint32_t i = 0, next; i < paths->count; i = next) { /* most numbers follow each other */
        for (next = i + 1;
             next < paths->count && number[i] != UINT32_MAX && number[next] == number[i] + (next - i);)
            next++;
        if (number[i] != UINT32_MAX)
            memcpy(nodes + start[number[i]], paths->nodes + paths->start[i],
                   (paths->start[next] - paths->start[i]) * sizeof(*nodes));
    }
    by_paths_free(paths);
    *paths = (struct by_paths){.count = kept,
                               .room = kept + 1,
                               .start = start,
                               .node_count = start[kept],
                               .node_room = start[kept],
                               .nodes = nodes};
}

static uint32_t *copy_numbers(const uint32_t *from, uint32_t count, uint32_t room)
{
    uint32_t *copy = by_alloc_table(room, sizeof(*copy));

    if (count > 0)
        memcpy(copy, from, count * sizeof(*copy));
    return copy;
}

void by_paths_copy(struct by_paths *paths, const struct by_paths *from)
{
    *paths = (struct by_paths){.count = from->count, .node_count = from->node_count};
    if (from->count == 0)
        return;
    paths->room = from->count + from->count / 16 + 64; /* some will be appended */
    paths->node_room = from->node_count + from->node_count / 16 + 256;
    paths->start = copy_numbers(from->start, from->count + 1, paths->room);
    paths->nodes = copy_numbers(from->nodes, from->node_count, paths->node_room);
}

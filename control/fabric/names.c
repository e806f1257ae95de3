/* A hash table of node names, open addressing. See names.h. */
#include "control/fabric/names.h"

#include <string.h>

#include "control/base/alloc.h"

/* Bytes of a wrong name that a message shows. */
#define SHOWN_MAX 60

struct name_slot {
    uint32_t hash;
    uint32_t node; /* index + 1, 0 is free */
};

struct by_names {
    const struct by_topology *topology;
    uint32_t count;
    uint32_t mask;
    struct name_slot *slots;
};

static uint32_t hash(const char *name, size_t bytes)
{
    uint32_t value = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < bytes; i++)
        value = (value ^ (unsigned char)name[i]) * 16777619u;
    return value ^ value >> 15;
}

/* Makes room for `count` names: at most half of the slots are taken. */
static void make_room(struct by_names *names, uint32_t count)
{
    struct name_slot *before = names->slots;
    uint32_t size = names->slots ? names->mask + 1 : 16, old = names->slots ? size : 0;

    if (old > 0 && size / 2 >= count)
        return;
    while (size / 2 < count)
        size *= 2;
    names->mask = size - 1;
    names->slots = by_alloc(size, sizeof(*names->slots));
    for (uint32_t i = 0; i < old; i++) {
        uint32_t at = before[i].hash & names->mask;

        if (before[i].node == 0)
            continue;
        while (names->slots[at].node)
            at = (at + 1) & names->mask;
        names->slots[at] = before[i];
    }
    free(before);
}

struct by_names *by_names_new(const struct by_topology *topology)
{
    struct by_names *names = by_alloc(1, sizeof(*names));

    names->topology = topology;
    make_room(names, topology->node_count);
    for (uint32_t i = 0; i < topology->node_count; i++)
        by_names_add(names, i);
    return names;
}

void by_names_add(struct by_names *names, uint32_t node)
{
    const char *name = names->topology->nodes[node].name;
    uint32_t value = hash(name, strlen(name)), at;

    make_room(names, ++names->count);
    at = value & names->mask;
    while (names->slots[at].node)
        at = (at + 1) & names->mask;
    names->slots[at] = (struct name_slot){value, node + 1};
}

void by_names_free(struct by_names *names)
{
    if (!names)
        return;
    free(names->slots);
    free(names);
}

/* Whether node `node` has this name, which may contain NUL bytes. */
static bool is_name(const struct by_names *names, uint32_t node, const char *name, size_t bytes)
{
    const char *other = names->topology->nodes[node].name;

    for (size_t i = 0; i < bytes; i++)
        if (other[i] != name[i] || other[i] == 0)
            return false;
    return other[bytes] == 0;
}

int64_t by_names_find(const struct by_names *names, const char *name, size_t bytes)
{
    uint32_t value = hash(name, bytes);

    for (uint32_t at = value & names->mask; names->slots[at].node; at = (at + 1) & names->mask)
        if (names->slots[at].hash == value && is_name(names, names->slots[at].node - 1, name, bytes))
            return names->slots[at].node - 1;
    return -1;
}

int64_t by_names_find_near(const struct by_names *names, const char *name, size_t bytes, uint32_t *near)
{
    uint32_t count = names->topology->node_count;
    int64_t found = -1;

    for (uint32_t node = *near; node < count && node - *near < 2 && found < 0; node++)
        if (is_name(names, node, name, bytes))
            found = node;
    if (found < 0)
        found = by_names_find(names, name, bytes);
    if (found >= 0)
        *near = (uint32_t)found;
    return found;
}

bool by_names_read(const struct by_names *names, struct by_json *json, uint32_t *node, const char **text,
                   int *shown)
{
    size_t bytes;
    int64_t index = -1;

    *text = "(not a string)";
    bytes = strlen(*text);
    if (by_json_peek(json) == '"' && by_json_string(json, text, &bytes))
        index = by_names_find(names, *text, bytes);
    *shown = bytes > SHOWN_MAX ? SHOWN_MAX : (int)bytes;
    if (index < 0)
        return false;
    *node = (uint32_t)index;
    return true;
}

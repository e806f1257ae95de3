/* A hash table of node names, open addressing. See names.h. */
#include "control/fabric/names.h"

#include <string.h>

#include "control/base/alloc.h"

/* Bytes of a wrong name that a message shows. */
#define SHOWN_MAX 60

struct by_names {
    const struct by_topology *topology;
    uint32_t mask;
    uint32_t *slots; /* node index + 1, 0 is free */
};

static uint32_t hash(const char *name, size_t bytes)
{
    uint32_t value = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < bytes; i++)
        value = (value ^ (unsigned char)name[i]) * 16777619u;
    return value ^ value >> 15;
}

struct by_names *by_names_new(const struct by_topology *topology)
{
    struct by_names *names = by_alloc(1, sizeof(*names));
    uint32_t size = 16;

    while (size < 2 * topology->node_count)
        size *= 2;
    names->topology = topology;
    names->mask = size - 1;
    names->slots = by_alloc(size, sizeof(*names->slots));
    for (uint32_t i = 0; i < topology->node_count; i++) {
        uint32_t at = hash(topology->nodes[i].name, strlen(topology->nodes[i].name)) & names->mask;

        while (names->slots[at])
            at = (at + 1) & names->mask;
        names->slots[at] = i + 1;
    }
    return names;
}

void by_names_free(struct by_names *names)
{
    if (!names)
        return;
    free(names->slots);
    free(names);
}

int64_t by_names_find(const struct by_names *names, const char *name, size_t bytes)
{
    for (uint32_t at = hash(name, bytes) & names->mask; names->slots[at]; at = (at + 1) & names->mask) {
        const char *other = names->topology->nodes[names->slots[at] - 1].name;

        if (strlen(other) == bytes && memcmp(other, name, bytes) == 0) /* `name` may contain NUL bytes */
            return names->slots[at] - 1;
    }
    return -1;
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

/* A table of paths, each stored once and identified by its number. Trees contain millions of
 * references to few paths. Each table belongs to one thread. */
#ifndef BY_PLAN_PATHS_H
#define BY_PLAN_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct by_path {
    uint32_t node_count; /* >= 2 */
    uint32_t *nodes;     /* node indices, parent first, child last */
};

/* All zero is an empty table. */
struct by_paths {
    uint32_t count;
    uint32_t room;
    uint32_t *start; /* by path, plus one: its first node in `nodes` */
    uint32_t node_count;
    uint32_t node_room;
    uint32_t *nodes;
    uint32_t slot_count; /* size of the hash table: a power of two, 0 until by_paths_add */
    uint64_t *slots;     /* hash << 32 | path number + 1, 0 is free */
    uint32_t reverse_room;
    uint32_t *reverse; /* by path, below reverse_room: the number of its reverse + 1, 0 is unknown */
};

void by_paths_free(struct by_paths *paths);
/* Makes `paths`, which must be empty, a copy with the same paths and numbers, for
 * by_paths_append. */
void by_paths_copy(struct by_paths *paths, const struct by_paths *from);
/* Returns the number of the path with these nodes (at least two); adds it when it is new. */
uint32_t by_paths_add(struct by_paths *paths, const uint32_t *nodes, uint32_t count);
/* Returns the number of the path with the nodes of path number `path` in reverse order; adds it
 * when it is new. */
uint32_t by_paths_reverse(struct by_paths *paths, uint32_t path);
/* Whether path number `path` has these nodes. */
bool by_paths_are(const struct by_paths *paths, uint32_t path, const uint32_t *nodes, uint32_t count);
/* Adds the path without looking for an equal one, to a table that by_paths_add has not changed
 * since it was copied. Returns its number. */
uint32_t by_paths_append(struct by_paths *paths, const uint32_t *nodes, uint32_t count);
/* Renumbers the paths: `number` (by path) is the new number of each, below `kept`, or UINT32_MAX
 * for paths to remove. */
void by_paths_renumber(struct by_paths *paths, const uint32_t *number, uint32_t kept);
/* Path number `path`: a view, valid until the next by_paths_add. */
static inline struct by_path by_paths_get(const struct by_paths *paths, uint32_t path)
{
    return (struct by_path){paths->start[path + 1] - paths->start[path], paths->nodes + paths->start[path]};
}
/* Its ends. */
static inline uint32_t by_paths_from(const struct by_paths *paths, uint32_t path)
{
    return paths->nodes[paths->start[path]];
}
static inline uint32_t by_paths_to(const struct by_paths *paths, uint32_t path)
{
    return paths->nodes[paths->start[path + 1] - 1];
}
/* Hops of path number `path`. */
static inline uint32_t by_paths_hops(const struct by_paths *paths, uint32_t path)
{
    return paths->start[path + 1] - paths->start[path] - 1;
}

#endif

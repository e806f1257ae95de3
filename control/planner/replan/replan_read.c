/* Reads a plan whose fabric has changed since: nodes and links that the plan names and the topology
 * lacks are added for reading. See replan.h. */
#include "control/base/alloc.h"
#include "control/base/json.h"
#include "control/fabric/build.h"
#include "control/fabric/names.h"
#include "control/fabric/vary.h"
#include "control/planner/replan/replan.h"
#include "offload/base/errors.h"

/* Maximum size of a plan file (bytes). */
#define FILE_BYTES_MAX ((size_t)4 << 30)

/* The topology under construction, with added nodes and links. */
struct cover {
    struct by_builder *builder;
    struct by_names *names; /* of the topology */
    uint32_t node_count;
    char **added; /* names of nodes that the topology lacks */
    uint32_t added_count, added_room;
};

/* Returns the number of a node, which is added if missing; UINT32_MAX when there are too many. */
static uint32_t find_node(struct cover *cover, const char *name, size_t bytes)
{
    int64_t found = by_names_find(cover->names, name, bytes);
    struct by_node node = {0};

    if (found >= 0)
        return (uint32_t)found;
    for (uint32_t i = 0; i < cover->added_count; i++) /* few nodes are lost */
        if (strlen(cover->added[i]) == bytes && memcmp(cover->added[i], name, bytes) == 0)
            return cover->node_count + i;
    if (cover->node_count + cover->added_count >= BY_TOPOLOGY_NODES_MAX)
        return UINT32_MAX;
    BY_GROW(cover->added, cover->added_count, cover->added_room);
    cover->added[cover->added_count] = by_copy_part(name, bytes);
    node.name = cover->added[cover->added_count++];
    return by_builder_node(cover->builder, &node);
}

/* Reads an array of node names; with `links`, links each to the next. */
static void cover_names(struct cover *cover, struct by_json *json, bool links)
{
    uint32_t before = UINT32_MAX;

    for (bool first = true; by_json_element(json, &first);) {
        const char *name;
        size_t bytes;
        uint32_t node;

        if (by_json_peek(json) != '"' || !by_json_string(json, &name, &bytes)) {
            by_json_skip(json);
            continue;
        }
        node = find_node(cover, name, bytes);
        if (links && before != UINT32_MAX && node != UINT32_MAX && node != before)
            by_builder_link(cover->builder, before, node, true, (struct by_fraction){1, 1},
                            (struct by_place){0, 0});
        before = node;
    }
}

/* Walks the plan file: "paths" is an array of paths, "bottleneck" has "nodes". */
static void cover_plan(struct cover *cover, struct by_json *json)
{
    const char *key;
    size_t bytes;

    if (by_json_peek(json) != '{')
        return;
    for (bool first = true; by_json_member(json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "paths") && by_json_peek(json) == '[') {
            for (bool inner = true; by_json_element(json, &inner);) {
                if (by_json_peek(json) == '[')
                    cover_names(cover, json, true);
                else
                    by_json_skip(json);
            }
        } else if (by_json_is(key, bytes, "bottleneck") && by_json_peek(json) == '{') {
            for (bool inner = true; by_json_member(json, &inner, &key, &bytes);) {
                if (by_json_is(key, bytes, "nodes") && by_json_peek(json) == '[')
                    cover_names(cover, json, false);
                else
                    by_json_skip(json);
            }
        } else {
            by_json_skip(json);
        }
    }
}

/* Makes a topology with everything that the plan names. Kinds and bandwidths of added nodes and
 * links are placeholders. Every added node is also linked to node 0, so that it is connected. */
static int make_cover(const char *path, const struct by_topology *topology, struct by_topology **before,
                      struct by_problem *problem)
{
    struct cover cover = {.node_count = topology->node_count};
    struct by_json json;
    char *text;
    size_t bytes;
    int error = by_text_read(path, FILE_BYTES_MAX, &text, &bytes, problem);

    if (error)
        return error;
    cover.builder = by_builder_new(topology->name, topology->unit);
    cover.names = by_names_new(topology);
    for (uint32_t i = 0; i < topology->node_count; i++)
        by_builder_node(cover.builder, &topology->nodes[i]);
    for (uint32_t i = 0; i < topology->link_count; i++)
        by_builder_link(cover.builder, topology->links[i].a, topology->links[i].b, true,
                        (struct by_fraction){1, 1}, (struct by_place){0, 0});
    by_json_open(&json, text, bytes);
    cover_plan(&cover, &json);
    by_json_close(&json);
    for (uint32_t i = 0; i < cover.added_count; i++)
        by_builder_link(cover.builder, 0, cover.node_count + i, true, (struct by_fraction){1, 1},
                        (struct by_place){0, 0});
    error = by_builder_finish(cover.builder, before, problem);
    by_builder_free(cover.builder);
    by_names_free(cover.names);
    for (uint32_t i = 0; i < cover.added_count; i++)
        free(cover.added[i]);
    free(cover.added);
    free(text);
    return error;
}

int by_replan_read(const char *path, const struct by_topology *topology, struct by_topology **before,
                   struct by_plan **plan, struct by_problem *problem)
{
    int error = make_cover(path, topology, before, problem);

    if (error)
        return error;
    error = by_plan_read(path, *before, plan, problem);
    if (error) {
        by_topology_free(*before);
        *before = NULL;
    }
    return error;
}

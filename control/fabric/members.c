/* Jobs on a subset of the compute nodes. See members.h. */
#include "control/fabric/members.h"

#include "control/base/alloc.h"
#include "control/base/json.h"
#include "control/fabric/names.h"
#include "control/fabric/vary.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

/* Maximum size of a list of names (bytes): 2^20 long ones. */
#define FILE_BYTES_MAX ((size_t)64 << 20)

static bool divides(char c)
{
    return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Adds one name, which is at `place`. */
static int add_name(const char *name, size_t bytes, struct by_place place, const struct by_names *names,
                    const struct by_topology *topology, bool *member, struct by_problem *problem)
{
    int64_t node = by_names_find(names, name, bytes);
    int shown = 0;

    while ((size_t)shown < bytes && shown < 60 && (unsigned char)name[shown] > ' ')
        shown++;
    if (node < 0)
        return by_problem_set(problem, BY_EINVAL, place, "'%.*s' is not a node of the topology '%.60s'",
                              shown, name, topology->name);
    if (!topology->nodes[node].compute)
        return by_problem_set(problem, BY_EINVAL, place, "'%.*s' is a switch: ranks are compute nodes", shown,
                              name);
    if (member[node])
        return by_problem_set(problem, BY_EINVAL, place, "'%.*s' appears twice: name each rank once", shown,
                              name);
    member[node] = true;
    return 0;
}

int by_members_parse(const char *text, size_t bytes, const struct by_topology *topology, bool **member,
                     struct by_problem *problem)
{
    struct by_names *names = by_names_new(topology);
    struct by_place place = {1, 1};
    int error = 0;

    *problem = (struct by_problem){0};
    *member = by_alloc(topology->node_count, sizeof(**member));
    for (size_t at = 0; at < bytes && !error;) {
        size_t end = at;

        while (end < bytes && !divides(text[end]))
            end++;
        if (end > at)
            error = add_name(text + at, end - at, place, names, topology, *member, problem);
        place.column += (int)(end - at) + 1;
        if (end < bytes && text[end] == '\n')
            place = (struct by_place){place.line + 1, 1};
        at = end + 1;
    }
    if (!error && by_members_count(topology, *member) < 2)
        error = by_problem_set(problem, BY_EINVAL, (struct by_place){0, 0},
                               "%u compute nodes are named; a collective needs at least two",
                               by_members_count(topology, *member));
    by_names_free(names);
    if (error) {
        free(*member);
        *member = NULL;
    }
    return error;
}

int by_members_read(const char *path, const struct by_topology *topology, bool **member,
                    struct by_problem *problem)
{
    char *text;
    size_t bytes;
    int error = by_text_read(path, FILE_BYTES_MAX, &text, &bytes, problem);

    *member = NULL;
    if (error)
        return error;
    error = by_members_parse(text, bytes, topology, member, problem);
    free(text);
    return error;
}

uint32_t by_members_count(const struct by_topology *topology, const bool *member)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < topology->node_count; i++)
        count += by_members_have(topology, member, i);
    return count;
}

/* Marks as lost the nodes that are not connected to `first` without the lost nodes. */
static void lose_far(const struct by_topology *topology, uint32_t first, bool *lost)
{
    uint32_t *parent = by_alloc(topology->node_count, sizeof(*parent));

    for (uint32_t i = 0; i < topology->node_count; i++)
        parent[i] = i;
    for (uint32_t i = 0; i < topology->link_count; i++) {
        uint32_t ends[2] = {topology->links[i].a, topology->links[i].b};

        if (lost[ends[0]] || lost[ends[1]])
            continue;
        for (unsigned side = 0; side < 2; side++)
            while (parent[ends[side]] != ends[side])
                ends[side] = parent[ends[side]] = parent[parent[ends[side]]];
        parent[ends[0]] = ends[1];
    }
    while (parent[first] != first)
        first = parent[first];
    for (uint32_t i = 0; i < topology->node_count; i++) {
        uint32_t at = i;

        while (parent[at] != at)
            at = parent[at];
        lost[i] |= at != first;
    }
    free(parent);
}

/* Turns forwarding compute nodes into switches. */
static void turn_forwarders(struct by_topology *part, const uint32_t *whole, const bool *member)
{
    for (uint32_t i = 0; i < part->node_count; i++) {
        part->nodes[i].compute &= member[whole[i]];
        part->nodes[i].forward &= part->nodes[i].compute;
    }
}

int by_members_part(const struct by_topology *topology, const bool *member, struct by_topology **part,
                    uint32_t **whole, struct by_problem *problem)
{
    uint32_t n = topology->node_count, first = UINT32_MAX, count = 0;
    bool *lost = by_alloc(n, sizeof(*lost));
    int error = 0;

    *part = NULL;
    *whole = by_alloc(n, sizeof(**whole));
    for (uint32_t i = 0; i < n; i++) {
        lost[i] = by_members_idle(topology, member, i);
        if (first == UINT32_MAX && by_members_have(topology, member, i))
            first = i;
    }
    BY_ASSERT(first != UINT32_MAX);
    lose_far(topology, first, lost);
    for (uint32_t i = 0; i < n && !error; i++) {
        if (lost[i] && by_members_have(topology, member, i))
            error = by_problem_set(problem, BY_EINVAL, (struct by_place){0, 0},
                                   "'%s' and '%s' are connected only through compute nodes that are not "
                                   "ranks and do not forward: add these to the ranks, or give them "
                                   "\"forward\": true",
                                   topology->nodes[first].name, topology->nodes[i].name);
        else if (!lost[i])
            (*whole)[count++] = i;
    }
    if (!error)
        error = by_topology_without(topology, NULL, lost, part, problem);
    if (!error)
        turn_forwarders(*part, *whole, member);
    free(lost);
    if (error) {
        free(*whole);
        *whole = NULL;
    }
    return error;
}

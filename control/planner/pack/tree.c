/* Turns paths into the trees of a plan. See tree.h. During construction a tree is an array by node:
 * the path from the node's parent, or none for the root and for nodes outside the tree. */
#include "control/planner/pack/tree.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "offload/base/assert.h"

/* The path into a node. Its nodes are those of a path of the list's table, or in `nodes` of the
 * shape. */
struct tree_step {
    uint32_t parent;
    uint32_t hops; /* 0: no path */
    uint32_t path; /* number in the table, or UINT32_MAX */
    uint32_t at;   /* else its first node in the shape */
    bool backward; /* it is the reverse of that path */
};

/* Distances in hops from a node: to the farthest node below, and to the farthest one below any
 * other child. */
struct tree_reach {
    uint32_t first, second;
    uint32_t up; /* to the farthest node not below it */
};

struct by_tree_shape {
    const struct by_graph *graph;
    const struct by_paths *table; /* of the list */
    uint32_t node_count;
    uint32_t root;
    uint32_t switches; /* inside; switches that have been removed count */
    bool *inside;
    struct tree_step *into; /* by node */
    uint32_t used, room;
    uint32_t *nodes;
    uint32_t *order, *first, *next, *children; /* scratch, by node */
    struct tree_reach *reach;                  /* the same */
};

struct by_tree_shape *by_tree_shape_new(const struct by_graph *graph)
{
    struct by_tree_shape *shape = by_alloc(1, sizeof(*shape));
    uint32_t n = graph->node_count;

    *shape = (struct by_tree_shape){.graph = graph, .node_count = n};
    shape->inside = by_alloc(n, sizeof(*shape->inside));
    shape->into = by_alloc(n, sizeof(*shape->into));
    shape->order = by_alloc(n, sizeof(*shape->order));
    shape->first = by_alloc(n, sizeof(*shape->first));
    shape->next = by_alloc(n, sizeof(*shape->next));
    shape->children = by_alloc(n, sizeof(*shape->children));
    shape->reach = by_alloc(n, sizeof(*shape->reach));
    return shape;
}

void by_tree_shape_free(struct by_tree_shape *shape)
{
    free(shape->inside);
    free(shape->into);
    free(shape->nodes);
    free(shape->order);
    free(shape->first);
    free(shape->next);
    free(shape->children);
    free(shape->reach);
    free(shape);
}

static void shape_begin(struct by_tree_shape *shape, const struct by_paths *table, uint32_t root)
{
    memset(shape->inside, 0, shape->node_count * sizeof(*shape->inside));
    memset(shape->into, 0, shape->node_count * sizeof(*shape->into));
    shape->table = table;
    shape->used = 0;
    shape->root = root;
    shape->switches = !shape->graph->compute[root];
    shape->inside[root] = true;
}

uint32_t by_tree_cut_loops(uint32_t *nodes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = count - 1; j > i; j--)
            if (nodes[i] == nodes[j]) {
                memmove(nodes + i, nodes + j, (count - j) * sizeof(*nodes));
                count -= j - i;
                break;
            }
    return count;
}

/* Returns room for `count` nodes behind those in use. */
static uint32_t *make_room(struct by_tree_shape *shape, uint32_t count)
{
    if (count > shape->room - shape->used) {
        shape->room = 2 * shape->room + count;
        shape->nodes = by_realloc(shape->nodes, shape->room, sizeof(*shape->nodes));
    }
    return shape->nodes + shape->used;
}

/* Writes the nodes of a step, hops + 1 of them. */
static void copy_nodes(const struct by_tree_shape *shape, const struct tree_step *step, uint32_t *nodes)
{
    const uint32_t *from =
        step->path != UINT32_MAX ? by_paths_get(shape->table, step->path).nodes : shape->nodes + step->at;

    for (uint32_t i = 0; i <= step->hops; i++)
        nodes[step->backward ? step->hops - i : i] = from[i];
}

/* Whether a path through the node may start there. */
static bool is_start(const struct by_tree_shape *shape, uint32_t node)
{
    return shape->inside[node] && (shape->graph->compute[node] || shape->graph->budget[node] < 0);
}

static void add_step(struct by_tree_shape *shape, uint32_t node, struct tree_step step)
{
    shape->into[node] = step;
    shape->inside[node] = true;
    shape->switches += !shape->graph->compute[node];
}

static void add_link(struct by_tree_shape *shape, uint32_t from, uint32_t to, uint32_t number)
{
    BY_ASSERT(shape->inside[from] && from != to);
    if (!is_start(shape, to))
        add_step(shape, to, (struct tree_step){from, 1, number, 0, false});
}

/* Adds a path, starting at the last of its nodes that the tree already has, with a stop at each
 * switch that may branch. `number` is that of the path in the table, or UINT32_MAX. */
static void shape_add(struct by_tree_shape *shape, const struct by_path *path, uint32_t number)
{
    const struct by_graph *graph = shape->graph;
    uint32_t *nodes, count, start = 0, at = shape->used;

    if (path->node_count == 2 && number != UINT32_MAX) { /* a single link, the most frequent path */
        add_link(shape, path->nodes[0], path->nodes[1], number);
        return;
    }
    nodes = make_room(shape, path->node_count);
    memcpy(nodes, path->nodes, path->node_count * sizeof(*nodes));
    count = by_tree_cut_loops(nodes, path->node_count);
    if (count < path->node_count)
        number = UINT32_MAX;
    BY_ASSERT(shape->inside[nodes[0]]);
    for (uint32_t i = 1; i < count; i++)
        if (is_start(shape, nodes[i]))
            start = i;
    if (start > 0)
        number = UINT32_MAX;
    for (uint32_t i = start + 1; i < count; i++) {
        if (i + 1 < count && (!graph->branch[nodes[i]] || graph->budget[nodes[i]] >= 0))
            continue;
        if (i + 1 < count)
            number = UINT32_MAX;
        add_step(shape, nodes[i], (struct tree_step){nodes[start], i - start, number, at + start, false});
        start = i;
    }
    shape->used += number == UINT32_MAX ? count : 0;
}

static void count_children(struct by_tree_shape *shape)
{
    memset(shape->children, 0, shape->node_count * sizeof(*shape->children));
    for (uint32_t i = 0; i < shape->node_count; i++)
        if (shape->into[i].hops > 0)
            shape->children[shape->into[i].parent]++;
}

/* Removes switches that lead nowhere. */
static void prune(struct by_tree_shape *shape)
{
    bool changed = true;

    count_children(shape);
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < shape->node_count; i++) {
            if (!shape->inside[i] || shape->graph->compute[i] || shape->children[i] > 0 || i == shape->root)
                continue;
            shape->children[shape->into[i].parent]--;
            shape->into[i].hops = 0;
            shape->inside[i] = false;
            changed = true;
        }
    }
}

/* Removes switches from the top as long as they have a single child: in a tree that may have
 * another root they lead nowhere. */
static void prune_top(struct by_tree_shape *shape)
{
    while (!shape->graph->compute[shape->root]) {
        uint32_t children = 0, child = 0;

        for (uint32_t i = 0; i < shape->node_count; i++)
            if (shape->into[i].hops > 0 && shape->into[i].parent == shape->root) {
                children++;
                child = i;
            }
        if (children != 1)
            break;
        shape->into[child].hops = 0;
        shape->inside[shape->root] = false;
        shape->root = child;
    }
}

/* Merges each switch with a single child into the path to that child. */
static void merge_forwarders(struct by_tree_shape *shape)
{
    count_children(shape);
    for (uint32_t i = 0; i < shape->node_count; i++) {
        struct tree_step *lower = &shape->into[i];

        while (lower->hops > 0) {
            struct tree_step *upper = &shape->into[lower->parent];
            uint32_t *nodes, count = upper->hops + lower->hops + 1;

            if (shape->graph->compute[lower->parent] || shape->children[lower->parent] != 1 ||
                upper->hops == 0)
                break;
            nodes = make_room(shape, count + 1);
            copy_nodes(shape, lower, nodes + upper->hops);
            copy_nodes(shape, upper, nodes);
            shape->inside[lower->parent] = false;
            *lower = (struct tree_step){upper->parent, by_tree_cut_loops(nodes, count) - 1, UINT32_MAX,
                                        shape->used, false};
            upper->hops = 0;
            shape->used += lower->hops + 1;
        }
    }
}

/* Re-roots the shape at `root`. */
static void shape_reroot(struct by_tree_shape *shape, uint32_t root)
{
    struct tree_step carried = {.hops = 0};
    uint32_t node = root;

    while (node != shape->root) {
        struct tree_step step = shape->into[node];
        uint32_t parent = step.parent;

        step.backward = !step.backward;
        step.parent = node;
        shape->into[node] = carried;
        carried = step;
        node = parent;
    }
    shape->into[shape->root] = carried;
    shape->root = root;
}

/* Lists the nodes inside, breadth first, children in order of their numbers; returns the count. */
static uint32_t shape_order(struct by_tree_shape *shape)
{
    uint32_t n = shape->node_count, head = 0, tail = 0, *first = shape->first, *order = shape->order;

    memset(first, 0xff, n * sizeof(*first));
    for (uint32_t i = n; i-- > 0;)
        if (shape->into[i].hops > 0) {
            uint32_t parent = shape->into[i].parent;

            shape->next[i] = first[parent];
            first[parent] = i;
        }
    order[tail++] = shape->root;
    while (head < tail)
        for (uint32_t i = first[order[head++]]; i != UINT32_MAX; i = shape->next[i])
            order[tail++] = i;
    return tail;
}

static void find_reach(struct by_tree_shape *shape, uint32_t count)
{
    const uint32_t *order = shape->order;
    struct tree_reach *reach = shape->reach;

    memset(reach, 0, shape->node_count * sizeof(*reach));
    for (uint32_t i = count; i-- > 1;) {
        const struct tree_step *step = &shape->into[order[i]];
        uint32_t below = reach[order[i]].first + step->hops;
        struct tree_reach *top = &reach[step->parent];

        if (below > top->first) {
            top->second = top->first;
            top->first = below;
        } else if (below > top->second) {
            top->second = below;
        }
    }
    for (uint32_t i = 1; i < count; i++) {
        uint32_t node = order[i], hops = shape->into[node].hops;
        const struct tree_reach *top = &reach[shape->into[node].parent];
        uint32_t beside = top->first == reach[node].first + hops ? top->second : top->first;

        reach[node].up = hops + (top->up > beside ? top->up : beside);
    }
}

/* Re-roots the shape to minimise its height. A switch with a budget does not become root, since it
 * would do one more addition. */
static void shape_centre(struct by_tree_shape *shape)
{
    const struct by_graph *graph = shape->graph;
    uint32_t best = shape->root, best_height = UINT32_MAX;

    find_reach(shape, shape_order(shape));
    for (uint32_t i = 0; i < shape->node_count; i++) {
        const struct tree_reach *reach = &shape->reach[i];
        uint32_t height = reach->up > reach->first ? reach->up : reach->first;

        if (!shape->inside[i] || (i != shape->root && graph->budget[i] >= 0))
            continue;
        if (height < best_height || (height == best_height && graph->compute[best] && !graph->compute[i])) {
            best = i;
            best_height = height;
        }
    }
    shape_reroot(shape, best);
}

/* Appends the shape to the list, breadth first. */
static void shape_finish(struct by_tree_shape *shape, struct by_tree_list *list, enum by_tree_use use,
                         struct by_fraction weight)
{
    uint32_t count = shape_order(shape);

    for (uint32_t i = 1; i < count; i++) {
        const struct tree_step *step = &shape->into[shape->order[i]];
        uint32_t *nodes;

        if (step->path != UINT32_MAX) {
            shape->order[i] = step->backward ? by_paths_reverse(&list->paths, step->path) : step->path;
            continue;
        }
        nodes = make_room(shape, step->hops + 1);
        copy_nodes(shape, step, nodes);
        shape->order[i] = by_paths_add(&list->paths, nodes, step->hops + 1);
    }
    by_tree_list_append(list, shape->root, use, weight, shape->order + 1, count - 1);
}

/* Completes a tree whose paths have been added. */
static void shape_end(struct by_tree_shape *shape, struct by_tree_list *list, enum by_tree_use use,
                      struct by_fraction weight)
{
    if (shape->switches > 0)
        prune(shape);
    if (use == BY_TREE_BOTH) {
        prune_top(shape);
        shape_centre(shape);
    }
    if (shape->switches > 0)
        merge_forwarders(shape);
    shape_finish(shape, list, use, weight);
}

void by_tree_shape_add(struct by_tree_shape *shape, struct by_tree_list *list, uint32_t root,
                       enum by_tree_use use, struct by_fraction weight, const uint32_t *numbers,
                       uint32_t count)
{
    shape_begin(shape, &list->paths, root);
    for (uint32_t i = 0; i < count; i++) {
        struct by_path path = by_paths_get(&list->paths, numbers[i]);

        shape_add(shape, &path, numbers[i]);
    }
    shape_end(shape, list, use, weight);
}

void by_tree_list_add(struct by_tree_list *list, const struct by_graph *graph, uint32_t root,
                      enum by_tree_use use, struct by_fraction weight, const struct by_path *paths,
                      uint32_t path_count)
{
    struct by_tree_shape *shape = by_tree_shape_new(graph);

    shape_begin(shape, &list->paths, root);
    for (uint32_t i = 0; i < path_count; i++)
        shape_add(shape, &paths[i], UINT32_MAX);
    shape_end(shape, list, use, weight);
    by_tree_shape_free(shape);
}

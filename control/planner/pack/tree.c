/* Turns paths into the trees of a plan. See tree.h. During construction a tree is an array by node:
 * the path from the node's parent, or none for the root and for nodes outside the tree. */
#include "control/planner/pack/tree.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "offload/base/assert.h"

struct tree_shape {
    uint32_t node_count;
    uint32_t root;
    bool *inside;
    struct by_path *from_parent; /* by node; node_count 0 if none */
};

static void shape_make(struct tree_shape *shape, uint32_t node_count, uint32_t root)
{
    *shape = (struct tree_shape){.node_count = node_count, .root = root};
    shape->inside = by_alloc(node_count, sizeof(*shape->inside));
    shape->from_parent = by_alloc(node_count, sizeof(*shape->from_parent));
    shape->inside[root] = true;
}

static void path_free(struct by_path *path)
{
    free(path->nodes);
    *path = (struct by_path){0, NULL};
}

static void shape_free(struct tree_shape *shape)
{
    for (uint32_t i = 0; i < shape->node_count; i++)
        path_free(&shape->from_parent[i]);
    free(shape->from_parent);
    free(shape->inside);
}

static uint32_t parent_of(const struct tree_shape *shape, uint32_t node)
{
    BY_ASSERT(shape->from_parent[node].nodes);
    return shape->from_parent[node].nodes[0];
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

/* Adds a path, starting at the last of its nodes that the tree already has, with a stop at each
 * switch that may branch. */
static void shape_add(struct tree_shape *shape, const struct by_graph *graph, const struct by_path *path)
{
    uint32_t *nodes = by_alloc(path->node_count, sizeof(*nodes)), count, start = 0;

    memcpy(nodes, path->nodes, path->node_count * sizeof(*nodes));
    count = by_tree_cut_loops(nodes, path->node_count);
    BY_ASSERT(shape->inside[nodes[0]]);
    for (uint32_t i = 1; i < count; i++)
        if (shape->inside[nodes[i]] && (graph->compute[nodes[i]] || graph->budget[nodes[i]] < 0))
            start = i;
    for (uint32_t i = start + 1; i < count; i++) {
        struct by_path *part = &shape->from_parent[nodes[i]];

        if (i + 1 < count && (!graph->branch[nodes[i]] || graph->budget[nodes[i]] >= 0))
            continue;
        part->node_count = i - start + 1;
        part->nodes = by_alloc(part->node_count, sizeof(*part->nodes));
        memcpy(part->nodes, nodes + start, part->node_count * sizeof(*part->nodes));
        shape->inside[nodes[i]] = true;
        start = i;
    }
    free(nodes);
}

static void count_children(const struct tree_shape *shape, uint32_t *children)
{
    memset(children, 0, shape->node_count * sizeof(*children));
    for (uint32_t i = 0; i < shape->node_count; i++)
        if (shape->from_parent[i].node_count)
            children[parent_of(shape, i)]++;
}

/* Removes switches that lead nowhere. */
static void prune(struct tree_shape *shape, const struct by_graph *graph)
{
    uint32_t *children = by_alloc(shape->node_count, sizeof(*children));
    bool changed = true;

    count_children(shape, children);
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < shape->node_count; i++) {
            if (!shape->inside[i] || graph->compute[i] || children[i] > 0 || i == shape->root)
                continue;
            children[parent_of(shape, i)]--;
            path_free(&shape->from_parent[i]);
            shape->inside[i] = false;
            changed = true;
        }
    }
    free(children);
}

/* Removes switches from the top as long as they have a single child: in a tree that may have
 * another root they lead nowhere. */
static void prune_top(struct tree_shape *shape, const struct by_graph *graph)
{
    while (!graph->compute[shape->root]) {
        uint32_t children = 0, child = 0;

        for (uint32_t i = 0; i < shape->node_count; i++)
            if (shape->from_parent[i].node_count && parent_of(shape, i) == shape->root) {
                children++;
                child = i;
            }
        if (children != 1)
            break;
        path_free(&shape->from_parent[child]);
        shape->inside[shape->root] = false;
        shape->root = child;
    }
}

/* Merges each switch with a single child into the path to that child. */
static void merge_forwarders(struct tree_shape *shape, const struct by_graph *graph)
{
    uint32_t *children = by_alloc(shape->node_count, sizeof(*children));

    count_children(shape, children);
    for (uint32_t i = 0; i < shape->node_count; i++) {
        struct by_path *lower = &shape->from_parent[i], *upper;
        uint32_t middle, *nodes;

        while (lower->node_count) {
            middle = lower->nodes[0];
            upper = &shape->from_parent[middle];
            if (graph->compute[middle] || children[middle] != 1 || upper->node_count == 0)
                break;
            nodes = by_alloc(upper->node_count + lower->node_count - 1, sizeof(*nodes));
            memcpy(nodes, upper->nodes, upper->node_count * sizeof(*nodes));
            memcpy(nodes + upper->node_count, lower->nodes + 1, (lower->node_count - 1) * sizeof(*nodes));
            free(lower->nodes);
            lower->nodes = nodes;
            lower->node_count = by_tree_cut_loops(nodes, upper->node_count + lower->node_count - 1);
            path_free(upper);
            shape->inside[middle] = false;
        }
    }
    free(children);
}

/* Re-roots the shape at `root`. */
static void shape_reroot(struct tree_shape *shape, uint32_t root)
{
    struct by_path carried = {0, NULL};
    uint32_t node = root;

    while (node != shape->root) {
        struct by_path path = shape->from_parent[node];
        uint32_t parent = parent_of(shape, node);

        for (uint32_t i = 0; i < path.node_count / 2; i++) {
            uint32_t swapped = path.nodes[i];

            path.nodes[i] = path.nodes[path.node_count - 1 - i];
            path.nodes[path.node_count - 1 - i] = swapped;
        }
        shape->from_parent[node] = carried;
        carried = path;
        node = parent;
    }
    shape->from_parent[shape->root] = carried;
    shape->root = root;
}

/* Lists the nodes inside, breadth first, children in order of their numbers; returns the count. */
static uint32_t shape_order(const struct tree_shape *shape, uint32_t *order)
{
    uint32_t n = shape->node_count, head = 0, tail = 0, *first = by_alloc(n, sizeof(*first)),
             *next = by_alloc(n, sizeof(*next));

    memset(first, 0xff, n * sizeof(*first));
    for (uint32_t i = n; i-- > 0;)
        if (shape->from_parent[i].node_count) {
            uint32_t parent = parent_of(shape, i);

            next[i] = first[parent];
            first[parent] = i;
        }
    order[tail++] = shape->root;
    while (head < tail)
        for (uint32_t i = first[order[head++]]; i != UINT32_MAX; i = next[i])
            order[tail++] = i;
    free(first);
    free(next);
    return tail;
}

/* Distances in hops from a node: to the farthest node below, and to the farthest one below any
 * other child. */
struct reach {
    uint32_t first, second;
    uint32_t up; /* to the farthest node not below it */
};

static void find_reach(const struct tree_shape *shape, const uint32_t *order, uint32_t count,
                       struct reach *reach)
{
    for (uint32_t i = count; i-- > 1;) {
        uint32_t node = order[i], below = reach[node].first + shape->from_parent[node].node_count - 1;
        struct reach *top = &reach[parent_of(shape, node)];

        if (below > top->first) {
            top->second = top->first;
            top->first = below;
        } else if (below > top->second) {
            top->second = below;
        }
    }
    for (uint32_t i = 1; i < count; i++) {
        uint32_t node = order[i], hops = shape->from_parent[node].node_count - 1;
        const struct reach *top = &reach[parent_of(shape, node)];
        uint32_t beside = top->first == reach[node].first + hops ? top->second : top->first;

        reach[node].up = hops + (top->up > beside ? top->up : beside);
    }
}

/* Re-roots the shape to minimise its height. A switch with a budget does not become root, since it
 * would do one more addition. */
static void shape_centre(struct tree_shape *shape, const struct by_graph *graph)
{
    uint32_t *order = by_alloc(shape->node_count, sizeof(*order)), count = shape_order(shape, order);
    struct reach *reach = by_alloc(shape->node_count, sizeof(*reach));
    uint32_t best = shape->root, best_height = UINT32_MAX;

    find_reach(shape, order, count, reach);
    for (uint32_t i = 0; i < shape->node_count; i++) {
        uint32_t height = reach[i].up > reach[i].first ? reach[i].up : reach[i].first;

        if (!shape->inside[i] || (i != shape->root && graph->budget[i] >= 0))
            continue;
        if (height < best_height || (height == best_height && graph->compute[best] && !graph->compute[i])) {
            best = i;
            best_height = height;
        }
    }
    shape_reroot(shape, best);
    free(order);
    free(reach);
}

/* Appends the shape to the list, breadth first. */
static void shape_finish(const struct tree_shape *shape, struct by_tree_list *list, enum by_tree_use use,
                         struct by_fraction weight)
{
    uint32_t *order = by_alloc(shape->node_count, sizeof(*order)), count = shape_order(shape, order);

    for (uint32_t i = 1; i < count; i++) {
        const struct by_path *path = &shape->from_parent[order[i]];

        order[i] = by_paths_add(&list->paths, path->nodes, path->node_count);
    }
    by_tree_list_append(list, shape->root, use, weight, order + 1, count - 1);
    free(order);
}

void by_tree_list_add(struct by_tree_list *list, const struct by_graph *graph, uint32_t root,
                      enum by_tree_use use, struct by_fraction weight, const struct by_path *paths,
                      uint32_t path_count)
{
    struct tree_shape shape;

    shape_make(&shape, graph->node_count, root);
    for (uint32_t i = 0; i < path_count; i++)
        shape_add(&shape, graph, &paths[i]);
    prune(&shape, graph);
    if (use == BY_TREE_BOTH) {
        prune_top(&shape, graph);
        shape_centre(&shape, graph);
    }
    merge_forwarders(&shape, graph);
    shape_finish(&shape, list, use, weight);
    shape_free(&shape);
}

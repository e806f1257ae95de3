/*
 * Converts a plan's tree to hops, from the root outwards. Checks that the tree spans the compute
 * nodes; removes switches with one child, which only relay and need no slots; numbers children; and
 * lays each edge on cables. Private to tables/; pure.
 */
#include "control/tables/tree.h"

#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "offload/base/errors.h"

/* A tree while it is read, by node. */
struct draft {
    const struct by_address_map *map;
    const struct by_plan *plan;
    const struct by_tree *tree;
    const char *where;
    struct by_problem *problem;
    uint32_t *parent;   /* BY_LOWER_NODE_NONE: the root, or not in the tree */
    uint32_t *edge;     /* the edge to the node from its parent */
    uint32_t *children; /* number of children, without its own leaf */
    uint8_t *seen;
};

static const char *name_of(const struct draft *draft, uint32_t node)
{
    return draft->map->topology->nodes[node].name;
}

static int read_edges(struct draft *draft)
{
    const struct by_topology *topology = draft->map->topology;
    const struct by_tree *tree = draft->tree;

    if (tree->root >= topology->node_count)
        return by_problem_say(draft->problem, BY_EINVAL,
                              "%s: the root is not a node of this fabric: plan again for this topology",
                              draft->where);
    draft->seen[tree->root] = 1;
    for (uint32_t i = 0; i < tree->edge_count; i++) {
        const struct by_path path = by_plan_edge(draft->plan, tree, i);
        for (uint32_t j = 0; j < path.node_count; j++)
            if (path.nodes[j] >= topology->node_count)
                return by_problem_say(
                    draft->problem, BY_EINVAL,
                    "%s: edge %u names a node that this fabric does not have: plan again for this topology",
                    draft->where, i);
        uint32_t parent = path.nodes[0];
        uint32_t child = path.nodes[path.node_count - 1];
        if (!draft->seen[parent] || draft->seen[child])
            return by_problem_say(draft->problem, BY_EINVAL,
                                  "%s: edge %u from '%s' to '%s' does not extend the tree: it must start at "
                                  "a node reached before and "
                                  "end at a new one",
                                  draft->where, i, name_of(draft, parent), name_of(draft, child));
        draft->seen[child] = 1;
        draft->parent[child] = parent;
        draft->edge[child] = i;
        draft->children[parent]++;
    }
    return 0;
}

/*
 * Checks that every compute node is in the tree, that no switch is a leaf, and that every node that
 * branches is able to.
 */
static int check_nodes(const struct draft *draft, enum by_table_flow flow)
{
    const struct by_topology *topology = draft->map->topology;

    for (uint32_t i = 0; i < topology->node_count; i++) {
        const struct by_node *node = &topology->nodes[i];
        bool rank = draft->map->rank[i] != UINT32_MAX;
        uint32_t below = draft->children[i] + (rank ? 1 : 0);
        if (rank && !draft->seen[i])
            return by_problem_say(draft->problem, BY_EINVAL,
                                  "%s: does not reach '%s': plan again for this topology", draft->where,
                                  node->name);
        if (!draft->seen[i])
            continue;
        if (below == 0)
            return by_problem_say(draft->problem, BY_EINVAL,
                                  "%s: the switch '%s' has no children in the tree", draft->where,
                                  node->name);
        if (below > BY_FAMILY_MAX)
            return by_problem_say(draft->problem, BY_ELIMIT,
                                  "%s: '%s' has %u children in the tree; a table entry holds %u: use a "
                                  "deeper tree (more switches, or "
                                  "plan with --in-network none)",
                                  draft->where, node->name, below, BY_FAMILY_MAX);
        if (rank || below == 1)
            continue;
        if ((flow & BY_FLOW_UP) && !node->aggregate)
            return by_problem_say(
                draft->problem, BY_EUNSUPPORTED,
                "%s: '%s' joins %u branches but cannot aggregate: plan again for this topology", draft->where,
                node->name, below);
        if ((flow & BY_FLOW_DOWN) && !node->multicast)
            return by_problem_say(
                draft->problem, BY_EUNSUPPORTED,
                "%s: '%s' feeds %u branches but cannot multicast: plan again for this topology", draft->where,
                node->name, below);
    }
    return 0;
}

/* Whether a node is a switch with one child and a parent: it neither adds nor copies. */
static int passes(const struct draft *draft, uint32_t node)
{
    return draft->map->rank[node] == UINT32_MAX && draft->children[node] == 1 &&
           draft->parent[node] != BY_LOWER_NODE_NONE;
}

/*
 * Returns the nodes from the nearest ancestor that remains in the tree down to `node`. The caller
 * frees them.
 */
static uint32_t *whole_path(const struct draft *draft, uint32_t node, uint32_t *count)
{
    uint32_t top = node, total = 1, *nodes;

    do {
        total += by_plan_edge(draft->plan, draft->tree, draft->edge[top]).node_count - 1;
        top = draft->parent[top];
    } while (passes(draft, top));
    nodes = by_alloc(total, sizeof(uint32_t));
    *count = total;
    for (uint32_t at = node, end = total; at != top; at = draft->parent[at]) {
        const struct by_path path = by_plan_edge(draft->plan, draft->tree, draft->edge[at]);
        end -= path.node_count - 1;
        memcpy(&nodes[end - 1], path.nodes, path.node_count * sizeof(uint32_t));
    }
    return nodes;
}

/* Returns the nearest ancestor of `node` that remains in the tree. */
static uint32_t real_parent(const struct draft *draft, uint32_t node)
{
    uint32_t parent = draft->parent[node];

    while (parent != BY_LOWER_NODE_NONE && passes(draft, parent))
        parent = draft->parent[parent];
    return parent;
}

/*
 * Makes the hops in breadth-first order, with children sorted by node index. Bits follow that
 * order, after the node's own leaf.
 */
static int lay_hops(const struct draft *draft, enum by_table_flow flow, struct by_lower_load *load,
                    struct by_hops *hops)
{
    uint32_t n = draft->map->topology->node_count;
    uint32_t *first = by_alloc(n, sizeof(uint32_t)),
             *next = by_alloc(n, sizeof(uint32_t)); /* linked lists of children, 0 = end */
    int error = 0;

    for (uint32_t i = n; i-- > 0;) {
        uint32_t parent = draft->seen[i] && !passes(draft, i) ? real_parent(draft, i) : BY_LOWER_NODE_NONE;
        if (parent == BY_LOWER_NODE_NONE)
            continue;
        next[i] = first[parent];
        first[parent] = i + 1;
    }
    hops->hop = by_alloc(n, sizeof(*hops->hop));
    hops->hop[0] = (struct by_hop){.node = draft->tree->root, .parent = BY_LOWER_NODE_NONE};
    hops->count = 1;
    for (uint32_t i = 0; i < hops->count && error == 0; i++) {
        struct by_hop *hop = &hops->hop[i];
        /* A host that is the root or has children adds its own leaf to its own engine. */
        if (draft->map->rank[hop->node] != UINT32_MAX && (i == 0 || first[hop->node]))
            hop->child_count = 1;
        hop->first_child = hops->count;
        for (uint32_t child = first[hop->node]; child && error == 0; child = next[child - 1]) {
            struct by_hop *below = &hops->hop[hops->count];
            uint32_t count, *nodes = whole_path(draft, child - 1, &count);
            below->node = child - 1;
            below->parent = hop->node;
            below->child = hop->child_count++;
            error = by_path_lay(draft->map, nodes, count, flow, draft->tree->weight, load, draft->where,
                                below, draft->problem);
            hops->count++;
            free(nodes);
        }
    }
    free(first);
    free(next);
    return error;
}

static void count_leaves(const struct by_address_map *map, struct by_hops *hops)
{
    for (uint32_t i = hops->count; i-- > 0;) {
        struct by_hop *hop = &hops->hop[i];
        uint32_t own = map->rank[hop->node] != UINT32_MAX ? 1 : 0;
        uint32_t below = hop->child_count ? hop->child_count - own : 0;
        hop->nleaf = own;
        for (uint32_t j = 0; j < below; j++)
            hop->nleaf += hops->hop[hop->first_child + j].nleaf;
    }
}

int by_hops_make(const struct by_address_map *map, const struct by_plan *plan, const struct by_tree *tree,
                 enum by_table_flow flow, struct by_lower_load *load, const char *where, struct by_hops *hops,
                 struct by_problem *problem)
{
    uint32_t n = map->topology->node_count;
    struct draft draft = {.map = map, .plan = plan, .tree = tree, .where = where, .problem = problem};
    int error;

    memset(hops, 0, sizeof(*hops));
    draft.parent = by_alloc(n, sizeof(uint32_t));
    draft.edge = by_alloc(n, sizeof(uint32_t));
    draft.children = by_alloc(n, sizeof(uint32_t));
    draft.seen = by_alloc(n, 1);
    for (uint32_t i = 0; i < n; i++)
        draft.parent[i] = BY_LOWER_NODE_NONE;
    error = read_edges(&draft);
    if (error == 0)
        error = check_nodes(&draft, flow);
    if (error == 0)
        error = lay_hops(&draft, flow, load, hops);
    if (error == 0)
        count_leaves(map, hops);
    else
        by_hops_free(hops);
    free(draft.parent);
    free(draft.edge);
    free(draft.children);
    free(draft.seen);
    return error;
}

void by_hops_free(struct by_hops *hops)
{
    for (uint32_t i = 0; i < hops->count; i++) {
        free(hops->hop[i].down);
        free(hops->hop[i].up);
    }
    free(hops->hop);
    memset(hops, 0, sizeof(*hops));
}

static struct by_hop_step *copy_steps(const struct by_hop_step *steps, uint32_t count)
{
    struct by_hop_step *copy = count > 0 ? by_alloc(count, sizeof(*copy)) : NULL;

    if (count > 0)
        memcpy(copy, steps, count * sizeof(*copy));
    return copy;
}

struct by_hops by_hops_copy(const struct by_hop *hops, uint32_t count)
{
    struct by_hops copy = {.count = count, .hop = by_alloc(count, sizeof(*copy.hop))};

    for (uint32_t i = 0; i < count; i++) {
        copy.hop[i] = hops[i];
        copy.hop[i].down = copy_steps(hops[i].down, hops[i].down_count);
        copy.hop[i].up = copy_steps(hops[i].up, hops[i].up_count);
    }
    return copy;
}

void by_hops_turn(struct by_hops *hops)
{
    struct by_hop old = hops->hop[0], *root = &hops->hop[0];
    uint32_t end;

    *root = hops->hop[1];
    end = root->first_child + root->child_count;
    memmove(&hops->hop[1], &hops->hop[2], (end - 2) * sizeof(*root));
    hops->hop[end - 1] = (struct by_hop){.node = old.node,
                                         .parent = root->node,
                                         .child = root->child_count,
                                         .nleaf = 1,
                                         .down_count = root->up_count,
                                         .down = root->up,
                                         .up_count = root->down_count,
                                         .up = root->down};
    root->parent = old.parent;
    root->child = old.child;
    root->down_count = root->up_count = 0;
    root->down = root->up = NULL;
    root->nleaf = old.nleaf;
    root->first_child--;
    root->child_count++;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_steps(const struct by_hop_step *a, uint32_t a_count, const struct by_hop_step *b,
                         uint32_t b_count)
{
    int order = compare_numbers(a_count, b_count);

    for (uint32_t i = 0; i < a_count && order == 0; i++) {
        order = compare_numbers(a[i].link, b[i].link);
        if (order == 0)
            order = compare_numbers(a[i].to, b[i].to);
    }
    return order;
}

int by_hops_compare(const struct by_hops *a, const struct by_hops *b)
{
    int order = compare_numbers(a->count, b->count);

    for (uint32_t i = 0; i < a->count && order == 0; i++) {
        const struct by_hop *x = &a->hop[i], *y = &b->hop[i];
        order = compare_numbers(x->node, y->node);
        if (order == 0)
            order = compare_numbers(x->parent, y->parent);
        if (order == 0)
            order = compare_steps(x->down, x->down_count, y->down, y->down_count);
        if (order == 0)
            order = compare_steps(x->up, x->up_count, y->up, y->up_count);
    }
    return order;
}

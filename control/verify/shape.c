/* Checks each tree of a plan alone: its role, edges, paths and branches. See checker.h. */
#include "control/base/alloc.h"
#include "control/verify/checker.h"
#include "offload/wire/types.h"

/* Known properties of a path: bits. */
enum { SOUND = 1, GOES_DOWN = 2, GOES_UP = 4 };

struct verify_shape {
    struct by_checker *checker;
    uint8_t *known;     /* by path */
    uint32_t *ends;     /* by path: from, to */
    uint32_t *reached;  /* by node: the last tree (number + 1) that reached it */
    uint32_t *children; /* by node, for the current tree */
    uint32_t *seen;     /* by node: the last path (number + 1) that passed it */
};

/* Checks a path alone: no node twice, only switches inside. Errors name the first tree that uses
 * it. */
static bool check_path(const struct verify_shape *shape, uint32_t number, uint32_t path)
{
    struct by_checker *checker = shape->checker;
    struct by_claim *claim = checker->claim;
    const uint32_t *nodes = claim->path_nodes + claim->path_start[path];
    uint32_t count = claim->path_start[path + 1] - claim->path_start[path];

    shape->known[path] = SOUND | GOES_DOWN | GOES_UP;
    for (uint32_t i = 0; i < count; i++) {
        if (shape->seen[nodes[i]] == path + 1)
            return by_claim_violate(claim, "tree %u: an edge passes node %s twice", number,
                                    by_claim_name(claim, nodes[i]));
        shape->seen[nodes[i]] = path + 1;
        if (i > 0 && i + 1 < count && checker->topology->nodes[nodes[i]].compute)
            return by_claim_violate(claim, "tree %u: an edge passes through compute node %s", number,
                                    by_claim_name(claim, nodes[i]));
        if (i > 0 && by_links_find(checker->links, nodes[i - 1], nodes[i]) == UINT32_MAX)
            shape->known[path] &= (uint8_t)~GOES_DOWN;
        if (i > 0 && by_links_find(checker->links, nodes[i], nodes[i - 1]) == UINT32_MAX)
            shape->known[path] &= (uint8_t)~GOES_UP;
    }
    return true;
}

/* Reports which link of the path is missing. */
static bool missing_link(const struct verify_shape *shape, const struct by_claim_tree *tree, uint32_t number,
                         uint32_t path)
{
    struct by_claim *claim = shape->checker->claim;

    for (uint32_t i = claim->path_start[path] + 1; i < claim->path_start[path + 1]; i++) {
        uint32_t above = claim->path_nodes[i - 1], below = claim->path_nodes[i];

        if (by_claim_carries_down(tree) && by_links_find(shape->checker->links, above, below) == UINT32_MAX)
            return by_claim_violate(claim, "tree %u: no link from %s to %s", number,
                                    by_claim_name(claim, above), by_claim_name(claim, below));
        if (by_claim_carries_up(tree) && by_links_find(shape->checker->links, below, above) == UINT32_MAX)
            return by_claim_violate(claim, "tree %u: no link from %s to %s", number,
                                    by_claim_name(claim, below), by_claim_name(claim, above));
    }
    return true;
}

/* Checks a node of a tree, after its children are counted. */
static bool check_branching(const struct verify_shape *shape, const struct by_claim_tree *tree,
                            uint32_t number, uint32_t node)
{
    struct by_claim *claim = shape->checker->claim;
    const struct by_node *kind = &shape->checker->topology->nodes[node];
    uint32_t children = shape->children[node];

    if (kind->compute)
        return true;
    if (children == 0)
        return by_claim_violate(claim, "tree %u: switch %s leads nowhere", number, kind->name);
    if (children == 1 && node != tree->root)
        return true;
    if (by_claim_carries_down(tree) && !kind->multicast)
        return by_claim_violate(claim, "tree %u: switch %s has %u children but does not multicast", number,
                                kind->name, children);
    if (by_claim_carries_up(tree) && !kind->aggregate)
        return by_claim_violate(claim, "tree %u: switch %s has %u children but does not aggregate", number,
                                kind->name, children);
    return true;
}

static bool check_edges(const struct verify_shape *shape, const struct by_claim_tree *tree, uint32_t number)
{
    struct by_claim *claim = shape->checker->claim;
    const uint32_t *edges = claim->edges + tree->first_edge;
    uint8_t need = (uint8_t)(SOUND | (by_claim_carries_down(tree) ? GOES_DOWN : 0) |
                             (by_claim_carries_up(tree) ? GOES_UP : 0));

    shape->reached[tree->root] = number + 1;
    for (uint32_t i = 0; i < tree->edge_count; i++) {
        uint32_t path = edges[i], parent = shape->ends[2 * path], child = shape->ends[2 * path + 1];

        if (shape->reached[parent] != number + 1)
            return by_claim_violate(claim, "tree %u: edge %u starts at %s, which the tree has not reached",
                                    number, i, by_claim_name(claim, parent));
        if (shape->reached[child] == number + 1)
            return by_claim_violate(claim, "tree %u: edge %u reaches %s a second time", number, i,
                                    by_claim_name(claim, child));
        shape->reached[child] = number + 1;
        shape->children[parent]++;
        if (!shape->known[path] && !check_path(shape, number, path))
            return false;
        if ((shape->known[path] & need) != need)
            return missing_link(shape, tree, number, path);
    }
    return true;
}

static bool check_shape(const struct verify_shape *shape, const struct by_claim_tree *tree, uint32_t number)
{
    struct by_checker *checker = shape->checker;

    memset(shape->children, 0, checker->node_count * sizeof(*shape->children));
    if (!check_edges(shape, tree, number))
        return false;
    for (uint32_t i = 0; i < checker->node_count; i++) {
        bool inside = shape->reached[i] == number + 1;

        if (checker->topology->nodes[i].compute && !inside)
            return by_claim_violate(checker->claim, "tree %u does not reach compute node %s", number,
                                    by_claim_name(checker->claim, i));
        if (inside && !check_branching(shape, tree, number, i))
            return false;
    }
    return true;
}

/* Checks where trees of this collective may be rooted, and in which direction they carry. */
static bool check_role(const struct by_checker *checker, const struct by_claim_tree *tree, uint32_t number)
{
    struct by_claim *claim = checker->claim;
    bool fits = false;

    switch ((enum by_collective)claim->collective) {
    case BY_COLLECTIVE_ALLREDUCE:
    case BY_COLLECTIVE_BARRIER:
        fits = true;
        break;
    case BY_COLLECTIVE_ALLGATHER:
    case BY_COLLECTIVE_BROADCAST:
        fits = tree->use == BY_CLAIM_DOWN;
        break;
    case BY_COLLECTIVE_REDUCE_SCATTER:
    case BY_COLLECTIVE_REDUCE:
    default:
        fits = tree->use == BY_CLAIM_UP;
    }
    if (!fits)
        return by_claim_violate(claim, "tree %u has the wrong direction for %s", number,
                                by_collective_name(claim->collective));
    if (mpq_sgn(tree->weight) <= 0)
        return by_claim_violate(claim, "tree %u has no weight", number);
    if (claim->root >= 0 && tree->root != claim->root)
        return by_claim_violate(claim, "tree %u is rooted at %s, the collective at %s", number,
                                by_claim_name(claim, tree->root),
                                by_claim_name(claim, (uint32_t)claim->root));
    if ((by_collective_is_sharded(claim->collective)) && !checker->topology->nodes[tree->root].compute)
        return by_claim_violate(claim, "tree %u is rooted at switch %s; %s has a root at each compute node",
                                number, by_claim_name(claim, tree->root),
                                by_collective_name(claim->collective));
    return true;
}

bool by_check_trees(struct by_checker *checker)
{
    const struct by_claim *claim = checker->claim;
    struct verify_shape shape = {.checker = checker};
    bool right = true;

    shape.known = by_alloc(claim->path_count, sizeof(*shape.known));
    shape.ends = by_alloc((size_t)claim->path_count * 2, sizeof(*shape.ends));
    shape.reached = by_alloc(checker->node_count, sizeof(*shape.reached));
    shape.children = by_alloc(checker->node_count, sizeof(*shape.children));
    shape.seen = by_alloc(checker->node_count, sizeof(*shape.seen));
    for (uint32_t i = 0; i < claim->path_count; i++) {
        shape.ends[2 * i] = claim->path_nodes[claim->path_start[i]];
        shape.ends[2 * i + 1] = claim->path_nodes[claim->path_start[i + 1] - 1];
    }
    for (uint32_t i = 0; i < claim->tree_count && right; i++) {
        const struct by_claim_tree *tree = &claim->trees[i];

        right = check_role(checker, tree, i) && check_shape(&shape, tree, i);
        if (by_claim_carries_up(tree))
            mpq_add(checker->up[tree->root], checker->up[tree->root], tree->weight);
        if (by_claim_carries_down(tree))
            mpq_add(checker->down[tree->root], checker->down[tree->root], tree->weight);
    }
    by_check_spread_roots(checker, checker->up);
    by_check_spread_roots(checker, checker->down);
    free(shape.known);
    free(shape.ends);
    free(shape.reached);
    free(shape.children);
    free(shape.seen);
    return right;
}

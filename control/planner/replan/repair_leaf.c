/* Moves single leaves. Where a GPU loses the link to its NVSwitch, it is a leaf in nearly all
 * trees, and its other link leads to a large switch. There the nodes next to the root come first:
 * the first edges of a tree are enough to find a place. See repair_work.h. */
#include "control/planner/replan/repair_work.h"

#include "control/base/alloc.h"

/* Edges of a tree that are read (count). */
#define READ_EDGES (BY_REPAIR_FIRST_MAX + 16u)
/* One of so many trees is read whole: the heights of trees are needed. */
#define WHOLE_EVERY 8u
/* After so many leaves more without a place than with one, all trees are read whole (count). */
#define LOSSES_MAX 16u

/* Whether the node has links to switches alone at which the nodes next to the root come first. */
static bool is_near_all(const struct by_repair *repair, uint32_t node)
{
    const struct by_mesh *net = repair->graph->net;
    bool all = repair->low;

    for (uint32_t i = net->first[node]; i < net->first[node + 1] && all; i++) {
        uint32_t other = net->near[i].node;

        all = !repair->graph->compute[other] &&
              net->first[other + 1] - net->first[other] > 2 * BY_REPAIR_FIRST_MAX;
    }
    return all;
}

/* Reads the first edges of the tree but the lost one. */
static void read_first(struct repair_work *work, const struct by_repaired *tree)
{
    const struct by_repair *repair = work->repair;

    work->use = tree->use;
    work->root = tree->root;
    work->amount = tree->amount;
    work->loose_count = work->moved_count = work->order_count = work->high = 0;
    work->changed = work->listed = false;
    work->simple = true;
    memset(work->path, 0xff, work->n * sizeof(*work->path));
    memset(work->depth, 0xff, work->n * sizeof(*work->depth));
    memset(work->kids, 0, work->n * sizeof(*work->kids));
    work->depth[tree->root] = 0;
    for (uint32_t e = 0; e < READ_EDGES; e++) {
        uint32_t number = tree->edges[e];
        const struct by_repair_path *path = &repair->path[number];

        if (e == tree->leaf)
            continue;
        work->order[work->order_count++] = path->to;
        work->path[path->to] = number;
        work->depth[path->to] = work->depth[path->from] + path->hops;
        work->kids[path->from]++;
    }
}

/* Copies the list of edges; the leaf's new edge comes last. */
static void write(struct repair_work *work, struct by_repaired *tree, uint32_t path)
{
    uint32_t *edges = by_repair_room_for_edges(work->repair, tree->edge_count);
    uint32_t after = tree->edge_count - tree->leaf - 1;

    memcpy(edges, tree->edges, tree->leaf * sizeof(*edges));
    memcpy(edges + tree->leaf, tree->edges + tree->leaf + 1, after * sizeof(*edges));
    edges[tree->edge_count - 1] = path;
    work->repair->block_used += tree->edge_count;
    tree->edges = edges;
    tree->changed = true;
    tree->high = work->high > tree->high ? work->high : tree->high;
}

bool by_repair_move_leaf(struct repair_work *work, struct by_repaired *tree)
{
    struct by_repair *repair = work->repair;
    const bool *compute = repair->graph->compute;
    uint32_t lost, node;
    struct repair_place place;

    if (!tree->one_leaf || tree->changed || tree->copy || tree->edge_count < 2 * READ_EDGES ||
        repair->fresh_node || repair->keep_parents || work->leaf_count++ % WHOLE_EVERY == 0 ||
        work->leaf_losses > LOSSES_MAX + work->leaf_count / 2)
        return false;
    lost = tree->edges[tree->leaf];
    node = repair->path[lost].to;
    if (!compute[node] || !compute[repair->path[lost].from] || !is_near_all(repair, node))
        return false; /* a switch would leave the tree with it, or other places may be better */
    read_first(work, tree);
    by_repair_load(repair, work->use, lost, -work->amount);
    work->path[node] = BY_REPAIR_LOOSE;
    work->was[node] = lost;
    place = by_repair_find(work, node);
    if (place.amount < work->amount || place.high > work->height) {
        by_repair_load(repair, work->use, lost, work->amount);
        work->leaf_losses++;
        return false;
    }
    by_repair_hang(work, node, &place);
    write(work, tree, work->path[node]);
    return true;
}

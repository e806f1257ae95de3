/* Lowers trees that became too high: branches on the way to the farthest node move nearer to the
 * root where links have room. See repair_work.h. */
#include "control/planner/replan/repair_work.h"

/* Moves of one tree (count): so many, and one for each so many of its nodes. */
#define MOVES_MAX  16u
#define NODES_MOVE 8u

/* Detaches the branch at `node`. */
static void detach(struct repair_work *work, uint32_t node)
{
    uint32_t head = 0, tail = 0;

    by_repair_list(work);
    by_repair_take_off(work, node);
    work->queue[tail++] = node;
    while (head < tail) {
        uint32_t parent = work->queue[head++];

        work->depth[parent] = UINT32_MAX;
        for (uint32_t c = work->first_child[parent]; c != UINT32_MAX; c = work->next_child[c])
            work->queue[tail++] = c;
    }
}

static uint32_t farthest(const struct repair_work *work)
{
    uint32_t far = work->root;

    for (uint32_t i = 0; i < work->order_count; i++) {
        uint32_t node = work->order[i];

        if (work->path[node] < BY_REPAIR_LOOSE && work->depth[node] > work->depth[far])
            far = node;
    }
    return far;
}

/* Moves one branch on the way to the farthest node, if that makes its way shorter. */
static bool shorten(struct repair_work *work)
{
    uint32_t far = farthest(work), depth = work->depth[far], next;

    for (uint32_t node = far; node != work->root; node = next) {
        struct repair_place place;

        next = work->repair->path[work->path[node]].from;
        detach(work, node);
        work->enough[node] = 0; /* not any place, but the lowest */
        place = by_repair_find(work, node);
        if (place.amount >= work->amount && place.high < depth) {
            by_repair_hang(work, node, &place);
            return true;
        }
        if (!by_repair_put_back(work, node))
            return false; /* its path is longer than new ones may be: the tree is not used */
    }
    return false;
}

void by_repair_lower(struct repair_work *work, struct by_repaired *tree, uint32_t limit)
{
    bool changed = false, whole = true;
    uint32_t moves_max = MOVES_MAX + tree->edge_count / NODES_MOVE;

    by_repair_read(work, tree, false);
    if (work->loose_count > 0 || work->changed) {
        by_repair_undo(work, tree);
        return;
    }
    tree->high = work->depth[farthest(work)]; /* no longer only at most so many hops */
    if (tree->high <= limit)
        return;
    work->simple = false; /* nodes may move more than once */
    for (uint32_t moves = 0; moves < moves_max && work->depth[farthest(work)] > limit && shorten(work);
         moves++)
        changed = true;
    by_repair_prune(work);
    for (uint32_t i = 0; i < work->order_count && whole; i++)
        whole = work->path[work->order[i]] != BY_REPAIR_LOOSE;
    if (changed && whole) {
        by_repair_write(work, tree);
        tree->high = work->depth[farthest(work)];
    } else {
        by_repair_undo(work, tree);
    }
}

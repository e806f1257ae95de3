/*
 * Finds places nearer to the root. See height.h. A branch of a tree can be moved in three ways:
 *
 * - over links with unused capacity, including that of its own path;
 * - by exchanging paths with the same node of another tree;
 * - if its path crosses an edge of another tree at a switch, by exchanging the rest of both paths
 *   from there.
 *
 * The other tree must stay low enough.
 */
#include "control/planner/pack/height_work.h"

#include "control/base/alloc.h"
#include "offload/base/assert.h"

/* Edges of other trees that a search examines (count): those of the nodes nearest to the root of
 * the branch's tree first, at most USES_EACH_MAX of each node. */
#define USES_MAX      9216u
#define USES_EACH_MAX 768u
/* Links that a search for unused capacity examines (count), and hops. */
#define LINKS_MAX 1500u
#define HOPS_MAX  10u

/* The current branch. */
struct height_move_branch {
    uint32_t tree, node;
    uint32_t path, parent;
    uint32_t arrival, below;
    uint32_t enough; /* the search ends at this arrival */
    int64_t amount;
};

static uint32_t tail_of(const struct by_height_work *work, uint32_t tree, uint32_t node)
{
    return by_paths_from(work->paths, work->parent[by_height_cell(work, tree, node)]);
}

/* Whether `node` is below `above` in the tree, or is `above`. */
static bool is_below(struct by_height_work *work, uint32_t tree, uint32_t node, uint32_t above)
{
    uint16_t limit = work->arrival[by_height_cell(work, tree, above)];

    while (node != above) {
        if (work->arrival[by_height_cell(work, tree, node)] <= limit)
            return false;
        node = tail_of(work, tree, node);
        work->steps++;
    }
    return true;
}

/* Whether the node may have children in the tree. */
static bool may_feed(const struct by_height_work *work, uint32_t tree, uint32_t node)
{
    return work->root[tree] == node || work->parent[by_height_cell(work, tree, node)] != BY_HEIGHT_NONE;
}

/* Whether the node can lose a child: a switch must keep at least two. */
static bool may_lose(const struct by_height_work *work, uint32_t tree, uint32_t node)
{
    return work->graph->compute[node] || work->children[by_height_cell(work, tree, node)] > 2;
}

/* Whether `tree` can attach its node `node` below `from` over `hops` and stay low enough. */
static bool may_take(struct by_height_work *work, uint32_t tree, uint32_t node, uint32_t from, uint32_t hops)
{
    size_t at = by_height_cell(work, tree, node), tail = by_height_cell(work, tree, from);
    uint32_t limit = work->height[tree] > work->target ? work->height[tree] : work->target;

    if (!may_feed(work, tree, from) || work->arrival[tail] + hops + work->below[at] > limit)
        return false;
    return work->arrival[tail] < work->arrival[at] || !is_below(work, tree, from, node);
}

static void copy_nodes(struct by_path path, uint32_t *nodes, uint32_t *count)
{
    *count = path.node_count;
    memcpy(nodes, path.nodes, path.node_count * sizeof(*nodes));
}

/* Exchanges paths with the same node of another tree. */
static void try_same_node(struct by_height_work *work, const struct height_move_branch *branch,
                          struct by_height_move *best)
{
    uint32_t hops = by_paths_hops(work->paths, branch->path);

    work->steps += work->tree_count;
    for (uint32_t other = 0; other < work->tree_count && best->arrival > branch->enough; other++) {
        uint32_t path = work->parent[by_height_cell(work, other, branch->node)], tail, arrival;

        if (path == BY_HEIGHT_NONE || path == branch->path || work->amount[other] != branch->amount)
            continue;
        tail = by_paths_from(work->paths, path);
        if (!may_feed(work, branch->tree, tail))
            continue;
        arrival = work->arrival[by_height_cell(work, branch->tree, tail)];
        if (arrival >= branch->arrival || arrival + by_paths_hops(work->paths, path) >= best->arrival ||
            !may_lose(work, other, tail) || !may_take(work, other, branch->node, branch->parent, hops))
            continue;
        *best = (struct by_height_move){.arrival = arrival + by_paths_hops(work->paths, path),
                                        .exchange = true,
                                        .other = other,
                                        .other_node = branch->node};
        if (by_paths_hops(work->paths, path) >= BY_HEIGHT_PATH_MAX || hops >= BY_HEIGHT_PATH_MAX)
            *best = (struct by_height_move){.arrival = branch->arrival};
        else {
            copy_nodes(by_paths_get(work->paths, path), best->nodes, &best->count);
            copy_nodes(by_paths_get(work->paths, branch->path), best->other_nodes, &best->other_count);
        }
    }
}

/* Joins the start of one path, up to position `i`, with the rest of the other after
 * position `j`. */
static uint32_t cross(struct by_path head, uint32_t i, struct by_path tail, uint32_t j, uint32_t *nodes)
{
    uint32_t rest = tail.node_count - j - 1;

    BY_ASSERT(i + 1 + rest <= BY_HEIGHT_PATH_MAX);
    memcpy(nodes, head.nodes, (i + 1) * sizeof(*nodes));
    memcpy(nodes + i + 1, tail.nodes + j + 1, rest * sizeof(*nodes));
    return by_tree_cut_loops(nodes, i + 1 + rest);
}

/* Tries edges of other trees that start at `tail` and pass a switch on the branch's path; returns
 * their number. */
static uint32_t try_tail(struct by_height_work *work, const struct height_move_branch *branch, uint32_t tail,
                         uint32_t early, struct by_height_move *best)
{
    const struct by_height_uses *leaving = &work->leaving[tail];
    struct by_path own = by_paths_get(work->paths, branch->path);
    uint32_t start = branch->node * 7 + branch->tree, k; /* a different part of long lists each time */

    for (k = 0; k < leaving->count && k < USES_EACH_MAX && best->arrival > branch->enough; k++) {
        struct by_height_use use = leaving->uses[(start + k) % leaving->count];
        struct by_path path;

        work->steps++;
        if (use.tree == branch->tree || work->amount[use.tree] != branch->amount || use.node == branch->node)
            continue;
        path = by_paths_get(work->paths, work->parent[by_height_cell(work, use.tree, use.node)]);
        for (uint32_t i = 1; i + 1 < path.node_count; i++) {
            uint32_t j = work->towards[path.nodes[i]];

            if (work->seen[path.nodes[i]] != work->stamp)
                continue;
            if (early + i + own.node_count - 1 - j < best->arrival && use.node != branch->parent &&
                may_lose(work, use.tree, tail) && i + own.node_count <= BY_HEIGHT_PATH_MAX &&
                j + path.node_count <= BY_HEIGHT_PATH_MAX &&
                may_take(work, use.tree, use.node, branch->parent, j + path.node_count - 1 - i)) {
                *best = (struct by_height_move){.arrival = early + i + own.node_count - 1 - j,
                                                .exchange = true,
                                                .other = use.tree,
                                                .other_node = use.node};
                best->count = cross(path, i, own, j, best->nodes);
                best->other_count = cross(own, j, path, i, best->other_nodes);
            }
            break;
        }
    }
    return k;
}

static void try_crossing(struct by_height_work *work, const struct height_move_branch *branch,
                         struct by_height_move *best)
{
    struct by_path own = by_paths_get(work->paths, branch->path);
    uint32_t uses = 0;

    if (own.node_count < 3)
        return;
    work->stamp++;
    for (uint32_t j = 1; j + 1 < own.node_count; j++) {
        work->seen[own.nodes[j]] = work->stamp;
        work->towards[own.nodes[j]] = j;
    }
    for (uint32_t i = 0; i < work->order_count && uses < USES_MAX && best->arrival > branch->enough; i++) {
        uint32_t tail = work->order[i], early = work->arrival[by_height_cell(work, branch->tree, tail)];

        if (tail == branch->parent || tail == branch->node || early + 2 >= best->arrival ||
            early >= branch->arrival)
            continue;
        uses += 1 + try_tail(work, branch, tail, early, best);
    }
}

/* Tries paths with unused capacity, found backwards from the branch through switches that only
 * forward. */
static void try_room(struct by_height_work *work, const struct height_move_branch *branch,
                     struct by_height_move *best)
{
    const struct by_mesh *net = work->graph->net;
    uint32_t head = 0, tail = 0, hops = 1, level_end = 1, links = 0;

    work->stamp++;
    work->seen[branch->node] = work->stamp;
    work->queue[tail++] = branch->node;
    for (; head < tail && links < LINKS_MAX; head++) {
        uint32_t node = work->queue[head];

        if (head == level_end) {
            hops++;
            level_end = tail;
        }
        if (hops > HOPS_MAX || hops >= best->arrival)
            break;
        for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++) {
            uint32_t other = net->near[i].node, early;

            links++;
            if (work->seen[other] == work->stamp || work->room[net->near[i].half] < branch->amount)
                continue;
            work->seen[other] = work->stamp;
            work->towards[other] = node;
            if (may_feed(work, branch->tree, other)) {
                early = work->arrival[by_height_cell(work, branch->tree, other)];
                if (early < branch->arrival && early + hops < best->arrival) {
                    *best = (struct by_height_move){.arrival = early + hops};
                    for (uint32_t at = other; at != branch->node; at = work->towards[at])
                        best->nodes[best->count++] = at;
                    best->nodes[best->count++] = branch->node;
                }
            } else if (!work->graph->compute[other]) {
                work->queue[tail++] = other;
            }
        }
    }
    work->steps += links;
}

void by_height_load(struct by_height_work *work, uint32_t path, int64_t amount)
{
    struct by_path view = by_paths_get(work->paths, path);

    for (uint32_t i = 1; i < view.node_count; i++) {
        uint32_t half = by_mesh_find(work->graph->net, view.nodes[i - 1], view.nodes[i]);

        BY_ASSERT(half != UINT32_MAX);
        work->room[half] -= amount;
    }
}

/* Removes an edge from the list of its first node. */
static void forget_use(struct by_height_work *work, uint32_t tree, uint32_t node)
{
    struct by_height_uses *leaving = &work->leaving[tail_of(work, tree, node)];
    uint32_t place = work->place[by_height_cell(work, tree, node)];
    struct by_height_use last = leaving->uses[--leaving->count];

    leaving->uses[place] = last;
    work->place[by_height_cell(work, last.tree, last.node)] = place;
}

static void note_use(struct by_height_work *work, uint32_t tree, uint32_t node)
{
    struct by_height_uses *leaving = &work->leaving[tail_of(work, tree, node)];

    BY_GROW(leaving->uses, leaving->count, leaving->room);
    work->place[by_height_cell(work, tree, node)] = leaving->count;
    leaving->uses[leaving->count++] = (struct by_height_use){tree, node};
}

static void hang(struct by_height_work *work, uint32_t tree, uint32_t node, const uint32_t *nodes,
                 uint32_t count)
{
    work->parent[by_height_cell(work, tree, node)] = by_paths_add(work->paths, nodes, count);
    by_height_load(work, work->parent[by_height_cell(work, tree, node)], work->amount[tree]);
    work->children[by_height_cell(work, tree, nodes[0])]++;
    note_use(work, tree, node);
    work->touched[tree] = true;
}

static void unhang(struct by_height_work *work, uint32_t tree, uint32_t node)
{
    by_height_load(work, work->parent[by_height_cell(work, tree, node)], -work->amount[tree]);
    work->children[by_height_cell(work, tree, tail_of(work, tree, node))]--;
    forget_use(work, tree, node);
}

bool by_height_find(struct by_height_work *work, uint32_t tree, uint32_t node, struct by_height_move *move)
{
    size_t at = by_height_cell(work, tree, node);
    struct height_move_branch branch = {tree,
                                        node,
                                        work->parent[at],
                                        tail_of(work, tree, node),
                                        work->arrival[at],
                                        work->below[at],
                                        0,
                                        work->amount[tree]};

    *move = (struct by_height_move){.arrival = branch.arrival};
    if (!may_lose(work, tree, branch.parent))
        return false;
    branch.enough = branch.below < work->target ? work->target - branch.below : 0;
    by_height_load(work, branch.path, -branch.amount);
    try_room(work, &branch, move);
    by_height_load(work, branch.path, branch.amount);
    if (move->arrival > branch.enough)
        try_same_node(work, &branch, move);
    if (move->arrival > branch.enough)
        try_crossing(work, &branch, move);
    move->tree = tree;
    move->node = node;
    move->gain = branch.arrival - move->arrival;
    move->enough = move->arrival <= branch.enough;
    return move->arrival < branch.arrival && move->count > 0;
}

void by_height_hang(struct by_height_work *work, const struct by_height_move *move)
{
    unhang(work, move->tree, move->node);
    if (move->exchange)
        unhang(work, move->other, move->other_node);
    hang(work, move->tree, move->node, move->nodes, move->count);
    if (move->exchange) {
        hang(work, move->other, move->other_node, move->other_nodes, move->other_count);
        by_height_survey(work, move->other);
    }
    by_height_survey(work, move->tree);
}

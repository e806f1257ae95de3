/* Moves branches. See repair.h. */
#include "control/planner/replan/repair.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "offload/base/assert.h"

/* Nodes of a branch that are tried as its new first node (count). */
#define STARTS_MAX 64u
/* Maximum of hops of a new path. */
#define HOPS_MAX 8u

struct repair_work {
    struct by_repair *repair;
    uint32_t n;
    uint32_t *first_child, *next_child; /* of the current tree */
    uint32_t *depth;                    /* by node connected to the root; UINT32_MAX elsewhere */
    uint32_t *queue, *branch;           /* scratch for walks */
    uint32_t *seen, round;              /* scratch of a search */
    uint32_t *towards;                  /* by node: the next node on the path to the branch */
    int64_t *wide;                      /* by node: spare capacity of that path */
    uint32_t *full;                     /* by node: fullness of the fullest hop on that path */
};

/* The best place found for a branch. */
struct move {
    int64_t amount;
    uint32_t turns; /* edges of the branch that are reversed */
    uint32_t start; /* node of the branch */
    uint32_t cost;
    uint32_t node_count;
    uint32_t nodes[HOPS_MAX + 2]; /* the path: from a node of the tree to `start` */
};

static uint32_t parent_of(const struct by_repair *repair, const struct by_repaired *tree, uint32_t node)
{
    return by_paths_from(&repair->paths, tree->parent[node]);
}

static bool hangs(const struct by_repaired *tree, uint32_t node)
{
    return tree->parent[node] != BY_REPAIR_OUTSIDE && tree->parent[node] != BY_REPAIR_LOOSE;
}

/* Returns the fullness of a hop, in eighths. Spare capacity is used unevenly, so the emptier path
 * is preferred. */
static uint32_t hop_fullness(const struct by_repair *repair, uint32_t half)
{
    int64_t capacity = repair->capacity[half], used = capacity - repair->room[half];

    return capacity > 0 && used > 0 ? (uint32_t)((__int128)used * 8 / capacity) : 0;
}

/* Whether a tree of this use loads the half from parent to child (runs_down) or the half back
 * (runs_up). */
static bool runs_down(enum by_tree_use use)
{
    return use != BY_TREE_UP;
}

static bool runs_up(enum by_tree_use use)
{
    return use != BY_TREE_DOWN;
}

/* Returns the spare capacity of a hop from parent to child, in the directions that
 * the tree uses. */
static int64_t hop_room(const struct by_repair *repair, enum by_tree_use use, uint32_t half)
{
    int64_t down = repair->room[half], up = repair->room[half ^ 1];

    if (!runs_down(use))
        return up;
    return runs_up(use) && up < down ? up : down;
}

/* Subtracts `amount` from the spare capacity of every hop of a path; a negative
 * amount restores it. */
static void load_path(struct by_repair *repair, enum by_tree_use use, const uint32_t *nodes, uint32_t count,
                      int64_t amount)
{
    for (uint32_t i = 1; i < count; i++) {
        uint32_t half = by_mesh_find(repair->graph->net, nodes[i - 1], nodes[i]);

        if (half == UINT32_MAX)
            continue; /* the link is lost */
        repair->room[half] -= runs_down(use) ? amount : 0;
        repair->room[half ^ 1] -= runs_up(use) ? amount : 0;
    }
}

static void load_edge(struct by_repair *repair, enum by_tree_use use, uint32_t path, int64_t amount)
{
    struct by_path view = by_paths_get(&repair->paths, path);

    load_path(repair, use, view.nodes, view.node_count, amount);
}

/* Whether a hop from parent to child exists, in the directions that the tree uses. */
static bool hop_stands(const struct by_repair *repair, enum by_tree_use use, uint32_t half)
{
    return half != UINT32_MAX && (!runs_down(use) || repair->capacity[half] > 0) &&
           (!runs_up(use) || repair->capacity[half ^ 1] > 0);
}

/* Returns the least spare capacity of a path in the reverse direction. */
static int64_t room_back(const struct by_repair *repair, enum by_tree_use use, uint32_t path)
{
    struct by_path view = by_paths_get(&repair->paths, path);
    int64_t least = INT64_MAX;

    for (uint32_t i = 1; i < view.node_count; i++) {
        uint32_t half = by_mesh_find(repair->graph->net, view.nodes[i], view.nodes[i - 1]);
        int64_t room = !hop_stands(repair, use, half) ? 0
                       : use == BY_TREE_BOTH          ? INT64_MAX /* already loaded in both directions */
                                                      : hop_room(repair, use, half);

        least = room < least ? room : least;
    }
    return least;
}

/* Whether all hops of the path exist. */
static bool stands(const struct by_repair *repair, enum by_tree_use use, uint32_t path)
{
    struct by_path view = by_paths_get(&repair->paths, path);

    for (uint32_t i = 1; i < view.node_count; i++)
        if (!hop_stands(repair, use, by_mesh_find(repair->graph->net, view.nodes[i - 1], view.nodes[i])))
            return false;
    return true;
}

static bool is_overloaded(const struct by_repair *repair, enum by_tree_use use, uint32_t path)
{
    struct by_path view = by_paths_get(&repair->paths, path);

    for (uint32_t i = 1; i < view.node_count; i++) {
        uint32_t half = by_mesh_find(repair->graph->net, view.nodes[i - 1], view.nodes[i]);

        if (half != UINT32_MAX && hop_room(repair, use, half) < 0)
            return true;
    }
    return false;
}

/* Builds lists of children, and finds the depth of every node connected to the root. */
static void survey(struct repair_work *work, const struct by_repaired *tree)
{
    uint32_t head = 0, tail = 0;

    for (uint32_t v = 0; v < work->n; v++) {
        work->first_child[v] = UINT32_MAX;
        work->depth[v] = UINT32_MAX;
    }
    for (uint32_t v = work->n; v-- > 0;)
        if (hangs(tree, v)) {
            uint32_t parent = parent_of(work->repair, tree, v);

            work->next_child[v] = work->first_child[parent];
            work->first_child[parent] = v;
        }
    work->queue[tail++] = tree->root;
    work->depth[tree->root] = 0;
    while (head < tail) {
        uint32_t node = work->queue[head++];

        for (uint32_t c = work->first_child[node]; c != UINT32_MAX; c = work->next_child[c]) {
            work->depth[c] = work->depth[node] + by_paths_hops(&work->repair->paths, tree->parent[c]);
            work->queue[tail++] = c;
        }
    }
}

/* Whether a new edge to `start` may begin at this node of the tree. */
static bool may_feed(const struct repair_work *work, const struct by_repaired *tree, uint32_t start,
                     uint32_t node)
{
    const struct by_graph *graph = work->repair->graph;

    return work->depth[node] != UINT32_MAX && (!tree->above || tree->above[start] == node) &&
           (graph->compute[node] || (work->repair->branch[tree->use - 1][node] && graph->budget[node] < 0) ||
            tree->above);
}

static bool better(const struct move *move, const struct move *best, int64_t want)
{
    bool full = move->amount >= want, best_full = best->amount >= want;

    if (full != best_full)
        return full;
    if (!full && move->amount != best->amount)
        return move->amount > best->amount;
    return move->turns != best->turns ? move->turns < best->turns : move->cost < best->cost;
}

/* Searches backwards from `start` through switches for a node of the tree; `limit` is the spare
 * capacity for reversing the branch. */
static void search_from(struct repair_work *work, const struct by_repaired *tree, uint32_t start,
                        uint32_t turns, int64_t limit, struct move *best)
{
    const struct by_mesh *net = work->repair->graph->net;
    uint32_t head = 0, tail = 0, hops = 1, level_end = 1;
    int64_t want = tree->amount;

    work->round++;
    work->seen[start] = work->round;
    work->wide[start] = limit;
    work->full[start] = 0;
    work->queue[tail++] = start;
    for (; head < tail && hops <= HOPS_MAX; head++) {
        uint32_t node = work->queue[head];

        if (head == level_end) {
            if (best->amount >= want && best->start == start)
                return; /* nearer nodes were found */
            hops++;
            level_end = tail;
        }
        for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++) {
            uint32_t other = net->near[i].node;
            int64_t room = hop_room(work->repair, tree->use, net->near[i].half);
            struct move move = {.turns = turns, .start = start};
            uint32_t full = hop_fullness(work->repair, net->near[i].half);

            full = full > work->full[node] ? full : work->full[node];
            room = room < work->wide[node] ? room : work->wide[node];
            if (room <= 0 || work->seen[other] == work->round)
                continue;
            if (may_feed(work, tree, start, other)) {
                move.amount = room < want ? room : want;
                move.cost = work->depth[other] + hops + work->repair->full_cost * full;
                if (better(&move, best, want)) {
                    move.nodes[move.node_count++] = other;
                    for (uint32_t v = node;; v = work->towards[v]) {
                        move.nodes[move.node_count++] = v;
                        if (v == start)
                            break;
                    }
                    *best = move;
                }
            }
            if (work->repair->graph->compute[other] || hops == HOPS_MAX)
                continue;
            work->seen[other] = work->round;
            work->wide[other] = room;
            work->full[other] = full;
            work->towards[other] = node;
            work->queue[tail++] = other;
        }
    }
}

/* Finds a new place for the branch at `loose`. The tree must have been surveyed. */
static struct move find_move(struct repair_work *work, const struct by_repaired *tree, uint32_t loose)
{
    const struct by_repair *repair = work->repair;
    struct move best = {.amount = 0};
    uint32_t head = 0, tail = 0;
    uint32_t *turns = by_alloc(work->n, sizeof(*turns));
    int64_t *limit = by_alloc(work->n, sizeof(*limit));

    work->branch[tail++] = loose;
    limit[loose] = INT64_MAX;
    while (head < tail && head < STARTS_MAX) {
        uint32_t node = work->branch[head++];
        bool sound = repair->graph->compute[node] || repair->graph->budget[node] < 0;

        if (limit[node] > 0 && sound)
            search_from(work, tree, node, turns[node], limit[node], &best);
        if (tree->above)
            break; /* re-rooting would put nodes of the branch below other parents */
        if (best.amount >= tree->amount && best.turns <= turns[node])
            break; /* later nodes only reverse more edges */
        for (uint32_t c = work->first_child[node]; c != UINT32_MAX; c = work->next_child[c]) {
            int64_t back = room_back(repair, tree->use, tree->parent[c]);

            turns[c] = turns[node] + 1;
            limit[c] = back < limit[node] ? back : limit[node];
            work->branch[tail++] = c;
        }
    }
    free(limit);
    free(turns);
    return best;
}

/* Re-roots the branch at `loose` to start at `start`, and moves its loads. */
static void turn(struct by_repair *repair, struct by_repaired *tree, uint32_t loose, uint32_t start)
{
    uint32_t carried = BY_REPAIR_LOOSE, node = start;

    while (node != loose) {
        uint32_t path = tree->parent[node], parent = parent_of(repair, tree, node), count;
        struct by_path view = by_paths_get(&repair->paths, path);
        uint32_t *nodes = by_alloc(view.node_count, sizeof(*nodes));

        count = view.node_count;
        for (uint32_t i = 0; i < count; i++)
            nodes[i] = view.nodes[count - 1 - i];
        load_edge(repair, tree->use, path, -tree->amount);
        load_path(repair, tree->use, nodes, count, tree->amount);
        tree->parent[node] = carried;
        carried = by_paths_add(&repair->paths, nodes, count);
        free(nodes);
        node = parent;
    }
    tree->parent[loose] = carried;
}

static struct by_repaired *append(struct by_repaired_list *trees, struct by_repaired tree)
{
    BY_GROW(trees->trees, trees->count, trees->room);
    trees->trees[trees->count] = tree;
    return &trees->trees[trees->count++];
}

/* Splits `amount` off tree number `number` into a copy at the end of the list. */
static void split(struct repair_work *work, struct by_repaired_list *trees, uint32_t number, int64_t amount)
{
    struct by_repaired copy = trees->trees[number];

    copy.parent = by_alloc(work->n, sizeof(*copy.parent));
    memcpy(copy.parent, trees->trees[number].parent, work->n * sizeof(*copy.parent));
    if (copy.above) {
        copy.above = by_alloc(work->n, sizeof(*copy.above));
        memcpy(copy.above, trees->trees[number].above, work->n * sizeof(*copy.above));
    }
    copy.amount = amount;
    copy.copy = true;
    trees->trees[number].amount -= amount;
    append(trees, copy);
}

/* Attaches the branch at `loose` according to `move`. Splits the tree if the place lacks capacity
 * for all of it. */
static void hang(struct repair_work *work, struct by_repaired_list *trees, uint32_t number, uint32_t loose,
                 const struct move *move)
{
    struct by_repair *repair = work->repair;
    struct by_repaired *tree;

    if (move->amount < trees->trees[number].amount)
        split(work, trees, number, trees->trees[number].amount - move->amount);
    tree = &trees->trees[number];
    turn(repair, tree, loose, move->start);
    load_path(repair, tree->use, move->nodes, move->node_count, tree->amount);
    tree->parent[move->start] = by_paths_add(&repair->paths, move->nodes, move->node_count);
    repair->moves++;
}

/* Attaches every loose branch of the tree. A branch without a place may find one below another
 * branch once that is attached. A tree is split only when no branch can be attached whole. */
static bool hang_all(struct repair_work *work, struct by_repaired_list *trees, uint32_t number)
{
    bool loose = true, progress = true;

    while (loose) {
        struct move part = {.amount = 0};
        uint32_t part_at = 0;

        if (!progress)
            return false;
        loose = progress = false;
        for (uint32_t v = 0; v < work->n; v++) {
            struct move move;

            if (trees->trees[number].parent[v] != BY_REPAIR_LOOSE)
                continue;
            survey(work, &trees->trees[number]);
            move = find_move(work, &trees->trees[number], v);
            if (move.amount == trees->trees[number].amount) {
                hang(work, trees, number, v, &move);
                progress = true;
            } else {
                loose = true;
                part_at = move.amount > part.amount ? v : part_at;
                part = move.amount > part.amount ? move : part;
            }
        }
        if (!progress && part.amount > 0) {
            hang(work, trees, number, part_at, &part);
            progress = true;
        }
    }
    return true;
}

/* Removes switches that no longer lead anywhere. */
static void prune(struct repair_work *work, struct by_repaired *tree)
{
    const struct by_graph *graph = work->repair->graph;
    bool changed = true;

    while (changed) {
        changed = false;
        survey(work, tree);
        for (uint32_t v = 0; v < work->n; v++) {
            if (graph->compute[v] || v == tree->root || tree->parent[v] == BY_REPAIR_OUTSIDE ||
                work->first_child[v] != UINT32_MAX)
                continue;
            if (hangs(tree, v))
                load_edge(work->repair, tree->use, tree->parent[v], -tree->amount);
            tree->parent[v] = BY_REPAIR_OUTSIDE;
            changed = true;
        }
    }
}

/* Detaches the edges that cannot stay: those over lost links and, with `overloads`, those over
 * overloaded links. Returns whether there were any. */
static bool take_off(struct repair_work *work, struct by_repaired *tree, bool overloads)
{
    bool any = false;

    for (uint32_t v = 0; v < work->n; v++) {
        if (!hangs(tree, v))
            continue;
        if (stands(work->repair, tree->use, tree->parent[v]) &&
            !(overloads && is_overloaded(work->repair, tree->use, tree->parent[v])))
            continue;
        load_edge(work->repair, tree->use, tree->parent[v], -tree->amount);
        tree->parent[v] = BY_REPAIR_LOOSE;
        any = true;
    }
    return any;
}

static bool has_loose(const struct repair_work *work, const struct by_repaired *tree)
{
    for (uint32_t v = 0; v < work->n; v++)
        if (tree->parent[v] == BY_REPAIR_LOOSE)
            return true;
    return false;
}

/* Marks paths that have lost a link or, with `overloads`, use an overloaded link: by path, one bit
 * for each use that occurs. */
static void flag_paths(const struct by_repair *repair, const struct by_repaired_list *trees, bool overloads,
                       uint8_t *flags)
{
    uint8_t uses = 0;

    for (uint32_t i = 0; i < trees->count; i++)
        uses |= (uint8_t)(1 << trees->trees[i].use);
    for (uint32_t p = 0; p < repair->paths.count; p++)
        for (enum by_tree_use use = BY_TREE_BOTH; use <= BY_TREE_DOWN; use++)
            if ((uses >> use & 1) &&
                (!stands(repair, use, p) || (overloads && is_overloaded(repair, use, p))))
                flags[p] |= (uint8_t)(1 << use);
}

static bool any_flagged(const struct repair_work *work, const struct by_repaired *tree, const uint8_t *flags,
                        uint32_t flag_count)
{
    for (uint32_t v = 0; v < work->n; v++)
        if (hangs(tree, v) && (tree->parent[v] >= flag_count || flags[tree->parent[v]] >> tree->use & 1))
            return true;
    return false;
}

static void find_room(struct by_repair *repair, const struct by_repaired_list *trees, uint32_t n)
{
    size_t count = repair->paths.count;
    int64_t *uses = by_alloc(4 * count, sizeof(*uses)); /* [use * paths + path] */

    memcpy(repair->room, repair->capacity,
           2 * (size_t)repair->graph->net->pair_count * sizeof(*repair->room));
    for (uint32_t i = 0; i < trees->count; i++)
        for (uint32_t v = 0; v < n; v++)
            if (hangs(&trees->trees[i], v))
                uses[trees->trees[i].use * count + trees->trees[i].parent[v]] += trees->trees[i].amount;
    for (enum by_tree_use use = BY_TREE_BOTH; use <= BY_TREE_DOWN; use++)
        for (uint32_t p = 0; p < count; p++)
            if (uses[use * count + p])
                load_edge(repair, use, p, uses[use * count + p]);
    free(uses);
}

/* One pass over all trees: lost links in the first pass, overloads in the second. Overloads are
 * evaluated as they are at that moment, so that few branches move. */
static bool pass(struct repair_work *work, struct by_repaired_list *trees, bool overloads)
{
    uint32_t flag_count = work->repair->paths.count, first_count = trees->count;
    uint8_t *flags = by_alloc(flag_count, sizeof(*flags));
    bool right = true, late = false;

    flag_paths(work->repair, trees, overloads, flags);
    for (uint32_t k = 0; k < trees->count && right && !late;
         k++) { /* copies are appended, and processed last */
        uint32_t i = work->repair->backwards && k < first_count ? first_count - 1 - k : k;
        bool touched = has_loose(work, &trees->trees[i]);

        if (any_flagged(work, &trees->trees[i], flags, flag_count))
            touched |= take_off(work, &trees->trees[i], overloads);
        if (!touched)
            continue;
        trees->trees[i].touched = true;
        prune(work, &trees->trees[i]);
        right = hang_all(work, trees, i);
        if (right)
            prune(work, &trees->trees[i]);
        late = by_plan_late(work->repair->deadline);
    }
    free(flags);
    return right && !late;
}

bool by_repair(struct by_repair *repair, struct by_repaired_list *trees)
{
    uint32_t n = repair->graph->node_count;
    struct repair_work work = {.repair = repair, .n = n};
    bool right;

    work.first_child = by_alloc(n, sizeof(*work.first_child));
    work.next_child = by_alloc(n, sizeof(*work.next_child));
    work.depth = by_alloc(n, sizeof(*work.depth));
    work.queue = by_alloc(n + 1, sizeof(*work.queue));
    work.branch = by_alloc(n + 1, sizeof(*work.branch));
    work.seen = by_alloc(n, sizeof(*work.seen));
    work.towards = by_alloc(n, sizeof(*work.towards));
    work.wide = by_alloc(n, sizeof(*work.wide));
    work.full = by_alloc(n, sizeof(*work.full));
    find_room(repair, trees, n);
    right = pass(&work, trees, false) && pass(&work, trees, true);
    for (uint32_t h = 0; h < 2 * repair->graph->net->pair_count && right; h++)
        right = repair->room[h] >= 0;
    free(work.first_child);
    free(work.next_child);
    free(work.depth);
    free(work.queue);
    free(work.branch);
    free(work.seen);
    free(work.towards);
    free(work.wide);
    free(work.full);
    return right;
}

void by_repaired_free(struct by_repaired_list *trees)
{
    for (uint32_t i = 0; i < trees->count; i++) {
        free(trees->trees[i].parent);
        free(trees->trees[i].above);
    }
    free(trees->trees);
    *trees = (struct by_repaired_list){0};
}

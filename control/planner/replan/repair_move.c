/* Finds places for loose branches, and attaches them there. See repair_work.h. */
#include "control/planner/replan/repair_work.h"

#include "control/base/alloc.h"

/* Nodes of a branch that are tried as its new first node (count). */
#define STARTS_MAX 64u
/* Nodes of the tree, as parents of one node of a branch, from which the best is chosen (count). */
#define FEEDERS_MAX 32u
/* What an overloaded half counts as: used eighths. */
#define LACK_EIGHTHS 64u
/* What a hop into the bottleneck counts as. */
#define ENTRY_EIGHTHS 8u

/* Whether a new edge to `start` may begin at this node of the tree. */
static bool may_feed(const struct repair_work *work, uint32_t start, uint32_t node)
{
    const struct by_repair *repair = work->repair;
    const struct by_graph *graph = repair->graph;

    if (work->depth[node] == UINT32_MAX)
        return false;
    if (repair->keep_parents)
        return work->above[start] == node;
    return graph->compute[node] || (repair->branch[work->use - 1][node] && graph->budget[node] < 0);
}

/* Whether a place of this amount and cost is better than `best`. */
static bool is_better(int64_t amount, uint32_t turns, uint32_t cost, const struct repair_place *best,
                      int64_t want)
{
    bool full = amount >= want, best_full = best->amount >= want;

    if (full != best_full)
        return full;
    if (!full && amount != best->amount)
        return amount > best->amount;
    return turns != best->turns ? turns < best->turns : cost < best->cost;
}

/* Sets the place to the path that was searched from `node` to `start`, and begins at `other`. */
static void set_path(const struct repair_work *work, uint32_t other, uint32_t node,
                     struct repair_place *place)
{
    place->node_count = 0;
    place->nodes[place->node_count++] = other;
    for (; node != place->start; node = work->towards[node])
        place->nodes[place->node_count++] = node;
    place->nodes[place->node_count++] = place->start;
}

/* What a place must have: room for all of the equal trees, for some, or (it is made later) none. */
enum repair_fit { REPAIR_WHOLE, REPAIR_SOME, REPAIR_FORCED };

/* A search backwards from a node of the branch. */
struct search {
    uint32_t start, turns, hops;
    uint32_t below;   /* at most this many hops lead from `start` to any node of the branch */
    uint32_t tail;    /* of work->queue */
    uint32_t feeders; /* nodes of the tree that were seen, with enough capacity (count) */
    uint32_t enough;  /* a place of at most this cost ends the search */
    int64_t least;    /* room that a link must have */
    enum repair_fit fit;
};

/* Whether branches were pushed off the half lately, and must not return. */
static bool is_left(const struct repair_work *work, uint32_t half)
{
    for (uint32_t i = 0; i < work->push_count && i < BY_REPAIR_PUSHES_KEPT; i++)
        if (work->full_halves[i] == half)
            return true;
    return false;
}

/* Forced branches may overload a half: `lacks` becomes the eighths that this counts as. Returns
 * `want`, or 0 if the half cannot carry that much at all. */
static int64_t force(const struct by_repair *repair, enum by_tree_use use, uint32_t half, int64_t want,
                     uint32_t *lacks)
{
    int64_t room = by_repair_room(repair, use, half);

    if (!by_repair_stands(repair, use, half) || (by_repair_runs_down(use) && repair->capacity[half] < want) ||
        (by_repair_runs_up(use) && repair->capacity[half ^ 1] < want))
        return 0;
    if (room < want)
        *lacks = LACK_EIGHTHS + (room < 0 && -room / want < LACK_EIGHTHS ? (uint32_t)(-room / want) : 0);
    return want;
}

/* Looks at a half into `node`: at its tail as the parent of the branch, or as a switch on the way.
 * Returns whether the search is over. */
static bool look_at(struct repair_work *work, uint32_t node, uint32_t half, struct search *search,
                    struct repair_place *best)
{
    const struct by_repair *repair = work->repair;
    uint32_t other = repair->graph->net->tail[half], lacks = 0, full;
    int64_t want = work->amount, room = by_repair_room(repair, work->use, half);

    if (search->fit == REPAIR_FORCED && work->pushes && is_left(work, half))
        return false;
    if (search->fit == REPAIR_FORCED)
        room = force(repair, work->use, half, want, &lacks);
    room = room < work->wide[node] ? room : work->wide[node];
    if (room < search->least || work->seen[other] == work->round)
        return false;
    full = repair->full[half] > work->full[node] ? repair->full[half] : work->full[node];
    full += lacks + (repair->tight && by_repair_enters(repair, other, node) ? ENTRY_EIGHTHS : 0);
    if (may_feed(work, search->start, other)) {
        uint32_t high = work->depth[other] + search->hops + search->below;
        uint32_t excess = repair->low && high > work->height ? high - work->height : 0;
        uint32_t cost = high + excess + repair->full_cost * full;

        search->feeders += room >= want;
        if (is_better(room < want ? room : want, search->turns + excess, cost, best, want)) {
            best->amount = room < want ? room : want;
            best->turns = search->turns + excess;
            best->start = search->start;
            best->cost = cost;
            best->high = high;
            set_path(work, other, node, best);
        }
        if (search->feeders == FEEDERS_MAX ||
            (best->amount >= want && best->start == search->start && best->cost <= search->enough))
            return true;
    }
    if (repair->graph->compute[other] || search->hops == BY_REPAIR_HOPS_MAX)
        return false;
    work->seen[other] = work->round;
    work->wide[other] = room;
    work->full[other] = full;
    work->towards[other] = node;
    work->queue[search->tail++] = other;
    return false;
}

/* Looks at the nodes of the tree next to its root, as neighbours of a switch with very many: they
 * make the lowest trees. */
static bool look_near_root(struct repair_work *work, uint32_t node, struct search *search,
                           struct repair_place *best)
{
    uint32_t count = work->order_count < BY_REPAIR_FIRST_MAX ? work->order_count : BY_REPAIR_FIRST_MAX;

    for (uint32_t i = 0; i <= count; i++) {
        uint32_t other = i == 0 ? work->root : work->order[i - 1];
        uint32_t half = work->depth[other] == UINT32_MAX
                            ? UINT32_MAX
                            : by_mesh_find(work->repair->graph->net, other, node);

        if (half != UINT32_MAX && look_at(work, node, half, search, best))
            return true;
    }
    return best->amount >= work->amount;
}

/* Looks at the halves into `node`, from where the last search left off. Where the tree is to find a
 * whole place, those that are known to have room for it are enough. Returns whether the search is
 * over. */
static bool look_around(struct repair_work *work, uint32_t node, struct search *search,
                        struct repair_place *best)
{
    const struct by_repair *repair = work->repair;
    const struct by_mesh *net = repair->graph->net;
    bool listed = search->fit != REPAIR_FORCED && search->least >= repair->whole;
    uint32_t *open = repair->open + net->first[node], at = work->cursor[node];
    uint32_t count = listed ? repair->open_count[node] : net->first[node + 1] - net->first[node];

    if (repair->low && count > 2 * BY_REPAIR_FIRST_MAX && look_near_root(work, node, search, best))
        return true;
    for (uint32_t left = count; left > 0; left--) {
        uint32_t half;

        at = at < count ? at : 0;
        half = listed ? open[at] : net->near[net->first[node] + at].half;
        if (listed && !by_repair_is_open(repair, half)) {
            repair->is_listed[half] = false;
            open[at] = open[--count];
            repair->open_count[node] = count;
            continue;
        }
        at++;
        if (look_at(work, node, half, search, best)) {
            work->cursor[node] = at;
            return true;
        }
    }
    return false;
}

/* Searches through switches for a node of the tree; `limit` is the spare capacity for reversing the
 * branch. */
static void search_from(struct repair_work *work, struct search *search, int64_t limit,
                        struct repair_place *best)
{
    uint32_t level_end = 1, start = search->start;

    work->round++;
    work->seen[start] = work->round;
    work->wide[start] = limit;
    work->full[start] = 0;
    work->queue[search->tail++] = start;
    for (uint32_t head = 0; head < search->tail && search->hops <= BY_REPAIR_HOPS_MAX; head++) {
        if (head == level_end) {
            if (best->amount >= work->amount && best->start == start)
                return; /* nearer nodes were found */
            search->hops++;
            level_end = search->tail;
        }
        if (look_around(work, work->queue[head], search, best))
            return;
    }
}

/* Returns the least spare capacity of a path in the reverse direction. */
static int64_t room_back(const struct repair_work *work, uint32_t path)
{
    const struct by_repair *repair = work->repair;
    int64_t least = INT64_MAX;

    for (uint32_t i = repair->paths.start[path] + 1; i < repair->paths.start[path + 1]; i++) {
        uint32_t half = repair->half[i] == UINT32_MAX ? UINT32_MAX : repair->half[i] ^ 1;
        int64_t room = !by_repair_stands(repair, work->use, half) ? 0
                       : work->use == BY_TREE_BOTH ? INT64_MAX /* already loaded in both directions */
                                                   : by_repair_room(repair, work->use, half);

        least = room < least ? room : least;
    }
    return least;
}

/* Returns the hops from the first node of a branch to its farthest node. */
static uint32_t branch_height(struct repair_work *work, uint32_t loose)
{
    uint32_t head = 0, tail = 0, high = 0;

    work->down[loose] = 0;
    work->queue[tail++] = loose;
    while (head < tail) {
        uint32_t node = work->queue[head++];

        high = work->down[node] > high ? work->down[node] : high;
        for (uint32_t c = work->kids[node] ? work->first_child[node] : UINT32_MAX; c != UINT32_MAX;
             c = work->next_child[c]) {
            work->down[c] = work->down[node] + work->repair->path[work->path[c]].hops;
            work->queue[tail++] = c;
        }
    }
    return high;
}

/* Finds a place from all nodes of the branch at `loose`. */
static struct repair_place find(struct repair_work *work, uint32_t loose, enum repair_fit fit)
{
    const struct by_repair *repair = work->repair;
    const struct by_graph *graph = repair->graph;
    struct repair_place best = {.amount = 0};
    uint32_t head = 0, tail = 0, high = branch_height(work, loose);

    work->branch[tail++] = loose;
    work->down[loose] = 0;
    work->limit[loose] = INT64_MAX;
    work->turns[loose] = 0;
    while (head < tail && head < STARTS_MAX) {
        uint32_t node = work->branch[head++];
        bool sound = graph->compute[node] || graph->budget[node] < 0;

        if (work->limit[node] >= (fit == REPAIR_SOME ? 1 : work->amount) && sound)
            search_from(work,
                        &(struct search){.start = node,
                                         .turns = work->turns[node],
                                         .hops = 1,
                                         .below = work->down[node] + high,
                                         .enough = work->enough[loose],
                                         .least = fit == REPAIR_SOME ? 1 : work->amount,
                                         .fit = fit},
                        work->limit[node], &best);
        if (best.amount >= work->amount && best.cost <= work->enough[loose])
            break;
        if (repair->keep_parents)
            break; /* re-rooting would put nodes of the branch below other parents */
        if (best.amount >= work->amount && best.turns <= work->turns[node])
            break; /* later nodes only reverse more edges */
        if (work->kids[node] == 0)
            continue;
        for (uint32_t c = work->first_child[node]; c != UINT32_MAX; c = work->next_child[c]) {
            int64_t back = room_back(work, work->path[c]);

            work->turns[c] = work->turns[node] + 1;
            work->down[c] = work->down[node] + repair->path[work->path[c]].hops;
            work->limit[c] = back < work->limit[node] ? back : work->limit[node];
            work->branch[tail++] = c;
        }
    }
    return best;
}

struct repair_place by_repair_find(struct repair_work *work, uint32_t loose)
{
    struct repair_place best;

    if (work->kids[loose] > 0)
        by_repair_list(work);
    best = find(work, loose, REPAIR_WHOLE);
    if (best.amount >= work->amount)
        work->enough[loose] = best.cost;
    else if (work->amount > 1)
        best = find(work, loose, REPAIR_SOME);
    return best;
}

struct repair_place by_repair_force(struct repair_work *work, uint32_t loose)
{
    work->enough[loose] = 0;
    return find(work, loose, REPAIR_FORCED);
}

/* Keeps the lists of children, if there are any. */
static void add_child(struct repair_work *work, uint32_t parent, uint32_t child)
{
    work->kids[parent]++;
    if (!work->listed)
        return;
    work->next_child[child] = work->first_child[parent];
    work->first_child[parent] = child;
}

static void remove_child(struct repair_work *work, uint32_t parent, uint32_t child)
{
    uint32_t *at = &work->first_child[parent];

    work->kids[parent]--;
    while (work->listed && *at != child)
        at = &work->next_child[*at];
    if (work->listed)
        *at = work->next_child[child];
}

void by_repair_take_off(struct repair_work *work, uint32_t node)
{
    uint32_t path = work->path[node];

    by_repair_load(work->repair, work->use, path, -work->amount);
    remove_child(work, work->repair->path[path].from, node);
    work->path[node] = BY_REPAIR_LOOSE;
    work->was[node] = path;
}

/* Re-roots the branch at `loose` to start at `start`, and moves its loads. */
static void turn(struct repair_work *work, uint32_t loose, uint32_t start)
{
    struct by_repair *repair = work->repair;
    uint32_t carried = BY_REPAIR_LOOSE, node = start, above = UINT32_MAX; /* the new parent */

    while (node != loose) {
        uint32_t path = work->path[node], parent = repair->path[path].from, count;
        struct by_path view = by_paths_get(&repair->paths, path);
        uint32_t *nodes = by_alloc(view.node_count, sizeof(*nodes));

        count = view.node_count;
        for (uint32_t i = 0; i < count; i++)
            nodes[i] = view.nodes[count - 1 - i];
        by_repair_load(repair, work->use, path, -work->amount);
        work->path[node] = carried;
        remove_child(work, parent, node);
        if (above != UINT32_MAX)
            add_child(work, above, node);
        above = node;
        carried = by_repair_path_of(repair, nodes, count);
        by_repair_load(repair, work->use, carried, work->amount);
        free(nodes);
        node = parent;
    }
    work->path[loose] = carried;
    add_child(work, above, loose);
}

void by_repair_hang(struct repair_work *work, uint32_t loose, const struct repair_place *place)
{
    struct by_repair *repair = work->repair;
    uint32_t start = place->start, was = work->was[loose], path;

    if (start != loose)
        turn(work, loose, start);
    path = was != UINT32_MAX && start == loose &&
                   by_paths_are(&repair->paths, was, place->nodes, place->node_count)
               ? was
               : by_repair_path_of(repair, place->nodes, place->node_count);
    by_repair_load(repair, work->use, path, work->amount);
    work->path[start] = path;
    work->simple &= work->kids[start] == 0 && start == loose;
    if (work->simple)
        work->moved[work->moved_count++] = start;
    add_child(work, place->nodes[0], start);
    work->depth[start] = work->depth[place->nodes[0]] + place->node_count - 1;
    by_repair_deepen(work, start);
    work->changed = true;
    work->high = place->high > work->high ? place->high : work->high;
    repair->moves++;
}

bool by_repair_put_back(struct repair_work *work, uint32_t loose)
{
    struct repair_place place = {.start = loose};
    struct by_path was;

    if (work->was[loose] == UINT32_MAX)
        return false;
    was = by_paths_get(&work->repair->paths, work->was[loose]);
    if (work->depth[was.nodes[0]] == UINT32_MAX || was.node_count > BY_REPAIR_HOPS_MAX + 2)
        return false;
    place.node_count = was.node_count;
    memcpy(place.nodes, was.nodes, was.node_count * sizeof(*was.nodes));
    by_repair_hang(work, loose, &place);
    work->repair->moves--;
    return true;
}

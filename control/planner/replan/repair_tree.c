/* Trees under repair as lists of edges and by node, and the loads of their paths. See
 * repair_work.h. */
#include "control/planner/replan/repair_work.h"

#include "control/base/alloc.h"

/* Edges in one block of lists (count): 2 MiB. */
#define BLOCK_EDGES ((uint32_t)1 << 19)

/* Marks of nodes, each a bit of a word beside 0 (count). */
#define MARKS_MAX 63u

/* The used eighths of a half. Spare capacity is used unevenly, so emptier paths are preferred. */
static uint8_t eighths(int64_t capacity, int64_t room)
{
    int64_t used = capacity - room;

    if (capacity <= 0 || used <= 0)
        return 0;
    used = used >= capacity ? 8 : used < INT64_MAX / 8 ? used * 8 / capacity : used / (capacity / 8);
    return (uint8_t)used;
}

/* Lists the half if it has spare capacity. */
static void open_half(struct by_repair *repair, uint32_t half)
{
    const struct by_mesh *net = repair->graph->net;
    uint32_t node = by_mesh_head(net, half);

    if (repair->is_listed[half] || !by_repair_is_open(repair, half))
        return;
    repair->is_listed[half] = true;
    repair->open[net->first[node] + repair->open_count[node]++] = half;
}

static void load_half(struct by_repair *repair, uint32_t half, int64_t amount)
{
    if (repair->room[half] < 0) {
        repair->over--;
        repair->excess += repair->room[half];
    }
    repair->room[half] -= amount;
    if (repair->room[half] < 0) {
        repair->over++;
        repair->excess -= repair->room[half];
    }
    repair->full[half] = eighths(repair->capacity[half], repair->room[half]);
    if (amount > 0)
        return;
    open_half(repair, half);
    if (repair->runs_up)
        open_half(repair, half ^ 1);
}

static void free_blocks(struct by_repair *repair)
{
    while (repair->block_count > 0)
        free(repair->blocks[--repair->block_count]);
    repair->block_used = 0;
}

void by_repair_reset(struct by_repair *repair)
{
    const struct by_mesh *net = repair->graph->net;
    uint32_t halves = 2 * net->pair_count;

    repair->excess = 0;
    repair->over = repair->work->height = repair->work->forced = repair->work->push_count = 0;
    repair->work->pushes = false;
    repair->work->leaf_count = repair->work->leaf_losses = 0;
    repair->paths.count = repair->path_count_old;
    repair->paths.node_count = repair->path_count_old > 0 ? repair->paths.start[repair->path_count_old] : 0;
    by_paths_free(&repair->fresh_paths);
    free_blocks(repair);
    memcpy(repair->carried, repair->carried_old, repair->path_count_old * sizeof(*repair->carried));
    memset(repair->open_count, 0, net->node_count * sizeof(*repair->open_count));
    memset(repair->is_listed, 0, halves * sizeof(*repair->is_listed));
    for (uint32_t h = 0; h < halves; h++) {
        repair->room[h] = repair->capacity[h] - repair->load[h];
        repair->over += repair->room[h] < 0;
        repair->excess -= repair->room[h] < 0 ? repair->room[h] : 0;
        repair->full[h] = eighths(repair->capacity[h], repair->room[h]);
    }
    for (uint32_t h = 0; h < halves; h++)
        open_half(repair, h);
    memset(repair->work->cursor, 0, net->node_count * sizeof(*repair->work->cursor));
    memset(repair->work->enough, 0, net->node_count * sizeof(*repair->work->enough));
}

void by_repair_load(struct by_repair *repair, enum by_tree_use use, uint32_t path, int64_t amount)
{
    repair->carried[path] += amount;
    for (uint32_t i = repair->paths.start[path] + 1; i < repair->paths.start[path + 1]; i++) {
        uint32_t half = repair->half[i];

        if (half == UINT32_MAX)
            continue; /* the link is lost */
        if (by_repair_runs_down(use))
            load_half(repair, half, amount);
        if (by_repair_runs_up(use))
            load_half(repair, half ^ 1, amount);
    }
}

bool by_repair_is_overloaded(const struct by_repair *repair, enum by_tree_use use, uint32_t path)
{
    for (uint32_t i = repair->paths.start[path] + 1; i < repair->paths.start[path + 1]; i++)
        if (repair->half[i] != UINT32_MAX && by_repair_room(repair, use, repair->half[i]) < 0)
            return true;
    return false;
}

/* Returns the half of the hop that ends at node `i` of the path. Often it is that of the path
 * before, as trees leave a node over one switch to many. */
static uint32_t half_of(const struct by_repair *repair, uint32_t path, uint32_t i)
{
    const uint32_t *start = repair->paths.start, *nodes = repair->paths.nodes + start[path];

    if (path > 0 && start[path - 1] + i < start[path] && repair->path[path - 1].fate == BY_PATH_WHOLE) {
        const uint32_t *before = repair->paths.nodes + start[path - 1];

        if (before[i - 1] == nodes[i - 1] && before[i] == nodes[i])
            return repair->half[start[path - 1] + i];
    }
    return by_mesh_find(repair->graph->net, nodes[i - 1], nodes[i]);
}

/* Fills the entries of path number `path`. */
static void survey_path(struct by_repair *repair, uint32_t path, enum by_path_fate fate)
{
    struct by_path view = by_paths_get(&repair->paths, path);
    const int64_t *capacity = repair->graph->net->capacity;
    uint32_t *half = repair->half + repair->paths.start[path];
    uint8_t broken = fate == BY_PATH_WHOLE ? 0 : 0xf, enters = 0;

    for (uint32_t i = 1; i < view.node_count; i++) {
        half[i] = fate == BY_PATH_WHOLE ? half_of(repair, path, i) : UINT32_MAX;
        enters += repair->inside && by_repair_enters(repair, view.nodes[i - 1], view.nodes[i]) && enters < 3;
        if (half[i] == UINT32_MAX || capacity[half[i]] == 0)
            broken |= 1 << BY_TREE_BOTH | 1 << BY_TREE_DOWN;
        if (half[i] == UINT32_MAX || capacity[half[i] ^ 1] == 0)
            broken |= 1 << BY_TREE_BOTH | 1 << BY_TREE_UP;
    }
    repair->path[path] = (struct by_repair_path){.from = (uint16_t)view.nodes[0],
                                                 .to = (uint16_t)view.nodes[view.node_count - 1],
                                                 .hops = (uint16_t)(view.node_count - 1),
                                                 .fate = (uint16_t)(fate & 3),
                                                 .enters = enters & 3,
                                                 .broken = broken & 0xf,
                                                 .plain = broken == 0 && enters == 0};
}

/* Makes room for the entries of one more path. */
static void grow(struct by_repair *repair)
{
    if (repair->half_room < repair->paths.node_room) {
        repair->half_room = repair->paths.node_room;
        repair->half = by_realloc(repair->half, repair->half_room, sizeof(*repair->half));
    }
    if (repair->path_room < repair->paths.count + 1) {
        repair->path_room = repair->paths.room;
        repair->path = by_realloc(repair->path, repair->path_room, sizeof(*repair->path));
        repair->carried = by_realloc(repair->carried, repair->path_room, sizeof(*repair->carried));
    }
}

uint32_t by_repair_path_of(struct by_repair *repair, const uint32_t *nodes, uint32_t count)
{
    uint32_t fresh_count = repair->fresh_paths.count;
    uint32_t number = repair->path_count_old + by_paths_add(&repair->fresh_paths, nodes, count);

    if (repair->fresh_paths.count == fresh_count)
        return number;
    by_paths_append(&repair->paths, nodes, count);
    grow(repair);
    survey_path(repair, number, BY_PATH_WHOLE);
    repair->carried[number] = 0;
    return number;
}

/* How often a tree must enter the bottleneck. */
static uint32_t entries_allowed(const struct by_repair *repair, uint32_t root)
{
    return repair->inside && repair->inside[root] ? 0 : 1;
}

/* Adds up what the old trees carry, by use and path, and marks trees with an edge that cannot
 * stay. */
static void survey_tree(struct by_repair *repair, struct by_repaired *tree, const uint8_t *mark_of,
                        int64_t *carried)
{
    const struct by_tree *old = &repair->from->trees[tree->origin];
    const uint32_t *edges = repair->from->edges + old->first_edge;
    const struct by_repair_path *path = repair->path;
    int64_t amount = tree->amount;
    uint64_t hops = 0, marks = 0;
    uint32_t enters = 0, broken = 0, last = 0;

    for (uint32_t e = 0; e < old->edge_count; e++) {
        const struct by_repair_path *view = &path[edges[e]];

        carried[edges[e]] += amount;
        hops += view->hops;
        if (view->plain)
            continue;
        marks |= (uint64_t)1 << view->mark;
        enters += view->enters;
        if (view->broken >> tree->use & 1) {
            broken++;
            last = e;
        }
    }
    tree->edges = edges;
    tree->edge_count = old->edge_count;
    tree->hops = hops;
    tree->unfit = broken > 0 || enters > entries_allowed(repair, tree->root);
    tree->leaf = last;
    tree->one_leaf = broken == 1 && enters <= entries_allowed(repair, tree->root) &&
                     path[edges[last]].fate == BY_PATH_WHOLE && !(marks >> mark_of[path[edges[last]].to] & 1);
}

/* Marks the nodes where broken paths end, and the paths that begin there. Returns the marks by
 * node. */
static uint8_t *mark_ends(struct by_repair *repair, uint32_t count)
{
    uint8_t *mark_of = by_alloc(repair->graph->node_count, sizeof(*mark_of));
    uint32_t marked = 0;

    for (uint32_t p = 0; p < count; p++)
        if (repair->path[p].broken && repair->path[p].fate == BY_PATH_WHOLE &&
            mark_of[repair->path[p].to] == 0)
            mark_of[repair->path[p].to] = (uint8_t)(1 + marked++ % MARKS_MAX);
    for (uint32_t p = 0; p < count && marked > 0; p++)
        if (mark_of[repair->path[p].from]) {
            repair->path[p].mark = mark_of[repair->path[p].from] & MARKS_MAX;
            repair->path[p].plain = false;
        }
    return mark_of;
}

static struct repair_work *new_work(struct by_repair *repair)
{
    uint32_t n = repair->graph->node_count;
    struct repair_work *work = by_alloc(1, sizeof(*work));
    uint32_t *words = by_alloc(19 * ((size_t)n + 1), sizeof(*words));
    uint32_t **arrays[] = {&work->path,        &work->was,        &work->depth,  &work->kids,    &work->order,
                           &work->loose,       &work->queue,      &work->branch, &work->placed,  &work->seen,
                           &work->first_child, &work->next_child, &work->turns,  &work->towards, &work->full,
                           &work->cursor,      &work->enough,     &work->moved,  &work->down};

    work->repair = repair;
    work->n = n;
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
        *arrays[i] = words + i * ((size_t)n + 1);
    work->limit = by_alloc(n, sizeof(*work->limit));
    work->wide = by_alloc(n, sizeof(*work->wide));
    work->above = by_alloc(n, sizeof(*work->above));
    return work;
}

void by_repair_begin(struct by_repair *repair, struct by_repaired_list *trees)
{
    uint32_t count = repair->paths.count, halves = 2 * repair->graph->net->pair_count;
    int64_t *carried = by_alloc((BY_TREE_DOWN + 1) * (size_t)count, sizeof(*carried)); /* by use, by path */
    uint8_t *mark_of;

    repair->path_count_old = count;
    repair->path_room = repair->paths.room;
    repair->half_room = repair->paths.node_room;
    repair->path = by_alloc_table(repair->path_room, sizeof(*repair->path));
    repair->half = by_alloc_table(repair->half_room, sizeof(*repair->half));
    repair->carried = by_alloc_table(repair->path_room, sizeof(*repair->carried));
    repair->carried_old = by_alloc(count, sizeof(*repair->carried_old));
    repair->load = by_alloc(halves, sizeof(*repair->load));
    repair->room = by_alloc(halves, sizeof(*repair->room));
    repair->full = by_alloc(halves, sizeof(*repair->full));
    repair->open = by_alloc(halves, sizeof(*repair->open));
    repair->open_count = by_alloc(repair->graph->node_count, sizeof(*repair->open_count));
    repair->is_listed = by_alloc(halves, sizeof(*repair->is_listed));
    repair->work = new_work(repair);
    for (uint32_t p = 0; p < count; p++)
        survey_path(repair, p, repair->fate ? (enum by_path_fate)repair->fate[p] : BY_PATH_WHOLE);
    mark_of = mark_ends(repair, count);
    for (uint32_t i = 0; i < trees->count; i++) {
        enum by_tree_use use = trees->trees[i].use;

        repair->runs_up |= by_repair_runs_up(use);
        if (i == 0 || trees->trees[i].amount < repair->whole)
            repair->whole = trees->trees[i].amount;
        repair->uses |= (uint8_t)(1 << use);
        survey_tree(repair, &trees->trees[i], mark_of, carried + use * (size_t)count);
    }
    for (enum by_tree_use use = BY_TREE_BOTH; use <= BY_TREE_DOWN; use++) {
        for (uint32_t p = 0; p < count && repair->uses >> use & 1; p++) {
            int64_t amount = carried[use * (size_t)count + p];

            repair->carried_old[p] += amount;
            for (uint32_t i = repair->paths.start[p] + 1; i < repair->paths.start[p + 1] && amount; i++) {
                if (repair->half[i] == UINT32_MAX)
                    continue;
                repair->load[repair->half[i]] += by_repair_runs_down(use) ? amount : 0;
                repair->load[repair->half[i] ^ 1] += by_repair_runs_up(use) ? amount : 0;
            }
        }
    }
    free(carried);
    free(mark_of);
}

void by_repair_end(struct by_repair *repair)
{
    struct repair_work *work = repair->work;

    by_paths_free(&repair->paths);
    by_paths_free(&repair->fresh_paths);
    free(repair->path);
    free(repair->half);
    free(repair->carried);
    free(repair->carried_old);
    free(repair->load);
    free(repair->room);
    free(repair->full);
    free(repair->open);
    free(repair->open_count);
    free(repair->is_listed);
    free_blocks(repair);
    free(repair->blocks);
    if (work) {
        free(work->path); /* and the arrays that follow it */
        free(work->limit);
        free(work->wide);
        free(work->above);
    }
    free(work);
}

/* Notes the old parents; the root replaces lost ones. */
static void read_parents(struct repair_work *work, const struct by_repaired *tree)
{
    const struct by_repair *repair = work->repair;
    const struct by_tree *old = &repair->from->trees[tree->origin];

    for (uint32_t v = 0; v < work->n; v++)
        work->above[v] = tree->root;
    for (uint32_t e = 0; e < old->edge_count; e++) {
        uint32_t path = repair->from->edges[old->first_edge + e];
        uint32_t child = repair->now[by_paths_to(&repair->from->paths, path)];
        uint32_t parent = repair->now[by_paths_from(&repair->from->paths, path)];

        if (child != UINT32_MAX && parent != UINT32_MAX)
            work->above[child] = parent;
    }
}

/* Whether the path cannot stay in the tree in work, which enters the bottleneck `entries` times
 * before. */
static inline bool must_go(const struct repair_work *work, uint32_t path, uint32_t entries, bool overloads)
{
    const struct by_repair *repair = work->repair;
    const struct by_repair_path *view = &repair->path[path];

    if (view->broken >> work->use & 1)
        return true;
    if (view->enters > 0 && repair->tight && entries + view->enters > entries_allowed(repair, work->root))
        return true;
    return overloads && (path >= work->unfit_count || work->unfit[path] >> work->use & 1) &&
           by_repair_is_overloaded(repair, work->use, path);
}

void by_repair_read(struct repair_work *work, const struct by_repaired *tree, bool overloads)
{
    struct by_repair *repair = work->repair;
    const bool *compute = repair->graph->compute;
    const struct by_repair_path *paths = repair->path;
    const enum by_tree_use use = tree->use;
    uint32_t *parent = work->path, *depth = work->depth, *order = work->order, *kids = work->kids,
             n = work->n, count = 0, entries = 0, height = tree->changed ? UINT32_MAX : work->height;
    bool switches = false;

    work->use = use;
    work->root = tree->root;
    work->amount = tree->amount;
    work->loose_count = work->moved_count = work->high = 0;
    work->changed = work->listed = false;
    work->simple = true;
    memset(parent, 0xff, n * sizeof(*parent));
    memset(depth, 0xff, n * sizeof(*depth));
    memset(kids, 0, n * sizeof(*kids));
    depth[tree->root] = 0;
    for (uint32_t e = 0; e < tree->edge_count; e++) {
        uint32_t number = tree->edges[e];
        const struct by_repair_path *path = &paths[number];
        uint32_t from = path->from, to = path->to, at;
        bool plain = path->plain && !overloads;

        if ((!plain && path->fate == BY_PATH_DEAD) || to == tree->root) {
            by_repair_load(repair, use, number, -tree->amount);
            work->changed = true;
            continue;
        }
        order[count++] = to;
        switches |= !compute[to];
        if (!plain && must_go(work, number, entries, overloads)) {
            by_repair_load(repair, use, number, -tree->amount);
            parent[to] = BY_REPAIR_LOOSE;
            work->was[to] = number;
            work->loose[work->loose_count++] = to;
            continue;
        }
        entries += plain ? 0 : path->enters;
        parent[to] = number;
        kids[from]++;
        at = depth[from];
        if (at == UINT32_MAX)
            continue;
        at += path->hops;
        depth[to] = at;
        height = at > height ? at : height;
    }
    work->switches = switches;
    work->height = tree->changed ? work->height : height;
    work->order_count = count;
    for (uint32_t v = 0; v < n && repair->fresh_node; v++)
        if (repair->fresh_node[v] && v != tree->root && work->path[v] == BY_REPAIR_OUTSIDE) {
            work->order[work->order_count++] = v;
            work->path[v] = BY_REPAIR_LOOSE;
            work->was[v] = UINT32_MAX;
            work->loose[work->loose_count++] = v;
        }
    if (repair->keep_parents)
        read_parents(work, tree);
}

void by_repair_prune(struct repair_work *work)
{
    const struct by_graph *graph = work->repair->graph;
    bool again = work->switches;
    uint32_t kept = 0;

    while (again) {
        again = false;
        for (uint32_t i = 0; i < work->order_count; i++) {
            uint32_t v = work->order[i], path = work->path[v];

            if (graph->compute[v] || path == BY_REPAIR_OUTSIDE || work->kids[v] > 0)
                continue;
            if (path != BY_REPAIR_LOOSE) {
                by_repair_load(work->repair, work->use, path, -work->amount);
                work->kids[work->repair->path[path].from]--;
            }
            work->path[v] = BY_REPAIR_OUTSIDE;
            work->depth[v] = UINT32_MAX;
            work->changed = again = true;
            work->simple = work->listed = false;
        }
    }
    for (uint32_t i = 0; i < work->loose_count; i++)
        if (work->path[work->loose[i]] == BY_REPAIR_LOOSE)
            work->loose[kept++] = work->loose[i];
    work->loose_count = kept;
}

void by_repair_undo(struct repair_work *work, const struct by_repaired *tree)
{
    for (uint32_t i = 0; i < work->order_count; i++)
        if (work->path[work->order[i]] < BY_REPAIR_LOOSE)
            by_repair_load(work->repair, work->use, work->path[work->order[i]], -work->amount);
    for (uint32_t e = 0; e < tree->edge_count; e++)
        by_repair_load(work->repair, work->use, tree->edges[e], work->amount);
}

/* Writes leaves that moved after all other nodes, whose order stays; returns the count. */
static uint32_t write_moved_leaves(struct repair_work *work, uint32_t *edges)
{
    uint32_t count = 0, *moved_path = work->queue;

    for (uint32_t i = 0; i < work->moved_count; i++) {
        moved_path[i] = work->path[work->moved[i]];
        work->path[work->moved[i]] = BY_REPAIR_OUTSIDE;
    }
    for (uint32_t i = 0; i < work->order_count; i++)
        if (work->path[work->order[i]] != BY_REPAIR_OUTSIDE)
            edges[count++] = work->path[work->order[i]];
    for (uint32_t i = 0; i < work->moved_count; i++)
        edges[count++] = work->path[work->moved[i]] = moved_path[i];
    return count;
}

uint32_t *by_repair_room_for_edges(struct by_repair *repair, uint32_t count)
{
    if (repair->block_count == 0 || repair->block_used + count > BLOCK_EDGES) {
        BY_GROW(repair->blocks, repair->block_count, repair->block_room);
        repair->blocks[repair->block_count++] =
            by_alloc_table(count > BLOCK_EDGES ? count : BLOCK_EDGES, sizeof(**repair->blocks));
        repair->block_used = 0;
    }
    return repair->blocks[repair->block_count - 1] + repair->block_used;
}

/* The nodes are written in their order, which few moves change; those whose parents come later are
 * passed over until the parents are there. */
void by_repair_write(struct repair_work *work, struct by_repaired *tree)
{
    struct by_repair *repair = work->repair;
    uint32_t *edges = by_repair_room_for_edges(repair, work->order_count), count = 0,
             waiting = work->order_count;

    if (work->simple && work->loose_count == 0) {
        count = write_moved_leaves(work, edges);
        waiting = 0;
    }
    memset(work->placed, 0, work->n * sizeof(*work->placed));
    memcpy(work->queue, work->order, waiting * sizeof(*work->queue));
    work->placed[work->root] = 1;
    while (waiting > 0) {
        uint32_t passed = 0;

        for (uint32_t i = 0; i < waiting; i++) {
            uint32_t node = work->queue[i], path = work->path[node];

            if (path == BY_REPAIR_OUTSIDE)
                continue; /* pruned */
            if (path == BY_REPAIR_LOOSE)
                path = by_repair_path_of(repair, (const uint32_t[]){node, node}, 2);
            else if (!work->placed[repair->path[path].from]) {
                work->queue[passed++] = node;
                continue;
            }
            if (work->path[node] == BY_REPAIR_LOOSE) /* it is read, and taken off, again */
                by_repair_load(repair, work->use, path, tree->amount);
            work->placed[node] = 1;
            edges[count++] = path;
        }
        waiting = passed;
    }
    repair->block_used += count;
    tree->edges = edges;
    tree->edge_count = count;
    tree->changed = true;
    tree->high = work->high > tree->high ? work->high : tree->high;
}

void by_repair_list(struct repair_work *work)
{
    if (work->listed)
        return;
    memset(work->first_child, 0xff, work->n * sizeof(*work->first_child));
    for (uint32_t i = work->order_count; i-- > 0;) {
        uint32_t node = work->order[i], from;

        if (work->path[node] >= BY_REPAIR_LOOSE)
            continue;
        from = work->repair->path[work->path[node]].from;
        work->next_child[node] = work->first_child[from];
        work->first_child[from] = node;
    }
    work->listed = true;
}

void by_repair_deepen(struct repair_work *work, uint32_t node)
{
    uint32_t head = 0, tail = 0;

    if (work->kids[node] == 0)
        return;
    by_repair_list(work);
    work->queue[tail++] = node;
    while (head < tail) {
        uint32_t parent = work->queue[head++];

        for (uint32_t c = work->first_child[parent]; c != UINT32_MAX; c = work->next_child[c]) {
            work->depth[c] = work->depth[parent] + work->repair->path[work->path[c]].hops;
            work->queue[tail++] = c;
        }
    }
}

void by_repaired_copy(struct by_repaired_list *trees, const struct by_repaired_list *from)
{
    trees->count = trees->room = from->count;
    trees->trees = by_alloc(from->count, sizeof(*trees->trees));
    if (from->count > 0)
        memcpy(trees->trees, from->trees, from->count * sizeof(*trees->trees));
}

void by_repaired_free(struct by_repaired_list *trees)
{
    free(trees->trees);
    *trees = (struct by_repaired_list){0};
}

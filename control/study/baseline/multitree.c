/*
 * MultiTree (Huang et al., "Communication algorithm-architecture co-design for distributed deep
 * learning", ISCA 2021). See baseline.h.
 *
 * There is one tree for each root; all trees grow together in steps. In a step a link has as many
 * units as its capacity is multiples of the slowest link's (the multi-edges of the paper;
 * ForestColl, NSDI'26, section 6.5, chooses the same unit). Trees take turns to add one node to a
 * member from an earlier step; when nothing fits, the next step begins. A tree adds a node by the
 * widest way, that is, the way whose narrowest link is widest; among equally wide ways, the one
 * from the oldest member. So a tree fills a box before it leaves it. The final loads of the links
 * determine the rate.
 */
#include "control/base/alloc.h"
#include "control/base/stage.h"
#include "control/fabric/build.h"
#include "control/study/baseline/baseline.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

struct grown {
    uint32_t *members; /* node indices, in the order of joining */
    uint32_t *paths;   /* the path that added member i + 1 */
    uint32_t count;
    uint32_t before; /* number of members from earlier steps */
    uint32_t level;  /* ways wider than this (index into `widths`) are exhausted in this step */
    uint32_t cursor; /* members before this one have no way of this width */
    bool *inside;    /* by node */
};

struct garden {
    struct by_baseline_net *net; /* in the direction of growth */
    const struct by_baseline_task *task;
    bool late;
    struct by_sketch *sketch;
    uint32_t tree_count;
    struct grown *trees;
    uint32_t *wide;  /* arcs by node, the widest first; indexed by net->first */
    uint32_t *stamp; /* by node: last search that visited it */
    uint32_t search;
    uint32_t *nodes; /* nodes of a path */
    int64_t unit;
    uint32_t width_count;
    int64_t *widths; /* distinct link widths, the widest first */
};

static int wider(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a < b) - (a > b);
}

static void list_widths(struct garden *garden)
{
    const struct by_baseline_net *net = garden->net;

    garden->widths = by_alloc(net->arc_count, sizeof(*garden->widths));
    for (uint32_t i = 0; i < net->arc_count; i++)
        garden->widths[i] = net->arcs[i].capacity;
    qsort(garden->widths, net->arc_count, sizeof(*garden->widths), wider);
    for (uint32_t i = 0; i < net->arc_count; i++)
        if (i == 0 || garden->widths[i] != garden->widths[garden->width_count - 1])
            garden->widths[garden->width_count++] = garden->widths[i];
}

static void sort_arcs(struct garden *garden)
{
    const struct by_baseline_net *net = garden->net;

    for (uint32_t i = 0; i < net->arc_count; i++)
        garden->wide[i] = i;
    for (uint32_t v = 0; v < net->node_count; v++)
        for (uint32_t i = net->first[v] + 1; i < net->first[v + 1]; i++) {
            uint32_t arc = garden->wide[i], at = i;

            for (; at > net->first[v] && net->arcs[garden->wide[at - 1]].capacity < net->arcs[arc].capacity;
                 at--)
                garden->wide[at] = garden->wide[at - 1];
            garden->wide[at] = arc;
        }
}

/*
 * Returns a node outside the tree that `from` reaches through switches, on links of at least
 * `width` with units left; UINT32_MAX if there is none.
 */
static uint32_t find_child(struct garden *garden, const struct grown *tree, uint32_t from, int64_t width)
{
    struct by_baseline_net *net = garden->net;
    uint32_t head = 0, tail = 0;

    garden->search++;
    garden->stamp[from] = garden->search;
    net->queue[tail++] = from;
    while (head < tail) {
        uint32_t node = net->queue[head++];

        for (uint32_t i = net->first[node]; i < net->first[node + 1]; i++) {
            const struct by_net_arc *arc = &net->arcs[garden->wide[i]];

            if (arc->capacity < width)
                break; /* the following links are narrower */
            if (arc->left <= 0 || garden->stamp[arc->to] == garden->search)
                continue;
            garden->stamp[arc->to] = garden->search;
            net->via[arc->to] = garden->wide[i];
            if (!net->topology->nodes[arc->to].compute)
                net->queue[tail++] = arc->to;
            else if (!tree->inside[arc->to])
                return arc->to;
        }
    }
    return UINT32_MAX;
}

/* Adds one node to the tree; returns false if none can be added in this step. */
static bool grow(struct garden *garden, struct grown *tree)
{
    struct by_baseline_net *net = garden->net;

    while (tree->level < garden->width_count) {
        uint32_t from = tree->members[tree->cursor], count = 1;
        uint32_t child = find_child(garden, tree, from, garden->widths[tree->level]);

        if (child == UINT32_MAX) {
            tree->cursor = (tree->cursor + 1) % tree->before;
            tree->level += tree->cursor == 0;
            continue;
        }
        for (uint32_t node = child; node != from; node = net->arcs[net->via[node]].from)
            count++;
        for (uint32_t node = child, i = count - 1;; i--) {
            garden->nodes[i] = node;
            if (i == 0)
                break;
            net->arcs[net->via[node]].left--;
            node = net->arcs[net->via[node]].from;
        }
        tree->paths[tree->count - 1] = by_sketch_path(garden->sketch, garden->nodes, count);
        tree->members[tree->count++] = child;
        tree->inside[child] = true;
        return true;
    }
    return false;
}

/* Runs one step; returns the number of nodes added. */
static uint64_t run_step(struct garden *garden)
{
    struct by_baseline_net *net = garden->net;
    uint64_t added = 0, turn = 1;

    for (uint32_t i = 0; i < net->arc_count; i++)
        net->arcs[i].left = net->arcs[i].capacity / garden->unit;
    for (uint32_t t = 0; t < garden->tree_count; t++) {
        garden->trees[t].before = garden->trees[t].count;
        garden->trees[t].level = garden->trees[t].cursor = 0;
    }
    for (; turn > 0 && !garden->late; added += turn) {
        turn = 0;
        for (uint32_t t = 0; t < garden->tree_count && !garden->late; t++) {
            if (garden->trees[t].count < net->compute_count)
                turn += grow(garden, &garden->trees[t]);
            garden->late = t % 64 == 63 && by_task_late(garden->task);
        }
        by_stage_add(garden->task->stage, turn);
    }
    return added;
}

static void garden_free(struct garden *garden)
{
    for (uint32_t t = 0; t < garden->tree_count; t++) {
        free(garden->trees[t].members);
        free(garden->trees[t].paths);
        free(garden->trees[t].inside);
    }
    free(garden->trees);
    free(garden->wide);
    free(garden->widths);
    free(garden->stamp);
    free(garden->nodes);
}

/* Grows all trees on `net`. */
static int garden_grow(struct garden *garden, struct by_baseline_task *task, struct by_baseline_net *net)
{
    uint32_t n = net->compute_count;
    uint64_t wanted;

    garden->net = net;
    garden->task = task;
    garden->sketch = task->sketch;
    garden->tree_count = by_task_rooted(task) ? 1 : n;
    garden->trees = by_alloc(garden->tree_count, sizeof(*garden->trees));
    garden->wide = by_alloc(net->arc_count, sizeof(*garden->wide));
    garden->stamp = by_alloc(net->node_count, sizeof(*garden->stamp));
    garden->nodes = by_alloc(net->node_count, sizeof(*garden->nodes));
    garden->unit = INT64_MAX;
    for (uint32_t i = 0; i < net->arc_count; i++)
        garden->unit = net->arcs[i].capacity < garden->unit ? net->arcs[i].capacity : garden->unit;
    sort_arcs(garden);
    list_widths(garden);
    for (uint32_t t = 0; t < garden->tree_count; t++) {
        struct grown *tree = &garden->trees[t];

        tree->members = by_alloc(n, sizeof(*tree->members));
        tree->paths = by_alloc(n, sizeof(*tree->paths));
        tree->inside = by_alloc(net->node_count, sizeof(*tree->inside));
        tree->members[0] = by_task_rooted(task) ? (uint32_t)task->root : net->compute[t];
        tree->inside[tree->members[0]] = true;
        tree->count = 1;
    }
    wanted = (uint64_t)garden->tree_count * (n - 1);
    by_stage_begin(task->stage, "multitree", wanted);
    while (wanted > 0) {
        uint64_t added = run_step(garden);

        if (garden->late)
            return BY_ETIMEDOUT;
        if (added == 0)
            return by_problem_set(task->problem, BY_EINVAL, (struct by_place){0, 0},
                                  "some compute nodes cannot reach others; add a link");
        wanted -= added;
    }
    return 0;
}

static void emit(struct by_baseline_task *task, const struct grown *tree, enum by_tree_use use)
{
    by_sketch_tree(task->sketch, tree->members[0], use, 1);
    for (uint32_t i = 0; i + 1 < tree->count; i++)
        by_sketch_edge(task->sketch, tree->paths[i]);
}

int by_baseline_multitree(struct by_baseline_task *task)
{
    unsigned collective = task->collective;
    bool down_only = by_collective_way(collective) == BY_DATA_DOWN;
    bool up_only = by_collective_way(collective) == BY_DATA_UP;
    struct by_baseline_net *turned =
        task->net->symmetric || down_only ? NULL : by_net_new(task->net->topology, true);
    struct garden down = {0}, up = {0};
    int error = 0;

    if (!turned || !up_only)
        error = garden_grow(&down, task, task->net);
    if (turned && !error)
        error = garden_grow(&up, task, turned);
    for (uint32_t t = 0; !error && t < (turned ? up : down).tree_count; t++) {
        if (turned)
            emit(task, &up.trees[t], BY_TREE_UP);
        if (down.tree_count > 0)
            emit(task, &down.trees[t],
                 turned || down_only ? BY_TREE_DOWN
                 : up_only           ? BY_TREE_UP
                                     : BY_TREE_BOTH);
    }
    garden_free(&down);
    garden_free(&up);
    by_net_free(turned);
    return error;
}

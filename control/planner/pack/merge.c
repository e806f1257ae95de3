/* Merges packings of pieces into whole trees. See merge.h. */
#include "control/planner/pack/merge.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

/* The state of one group during merging. */
struct merge_part {
    const struct by_contraction *contraction;
    const struct by_packing *packing;
    uint32_t *flow_path_start; /* by half: its first flow path */
    uint32_t *flow_path_count; /* by half: flow paths that are not used up */
    uint32_t *bundle_start;    /* by node, plus one: bundles rooted there, in `bundles` */
    uint32_t *bundle_next;     /* by node: the first bundle that is not used up */
    uint32_t *bundles;
    int64_t *bundle_left; /* by bundle */
};

/* A resource of the current tree: a flow path of a half of the group's contraction, or a bundle
 * rooted at one of its nodes. */
struct pick {
    bool is_flow_path;
    uint32_t group;
    uint32_t index; /* the flow path, or the bundle */
    uint32_t where; /* the half, or the node */
};

struct merger {
    const struct by_laminar *laminar;
    uint32_t node_count;
    struct merge_part *parts;
    uint32_t *parent;                      /* by id (node, or node_count + group): its parent group */
    uint32_t *slot;                        /* by id: its node in that group's contraction */
    struct by_merge_flow_path *flow_paths; /* sorted by group and half */
    /* The current tree. */
    uint32_t *depth; /* by node: hops from the root */
    uint32_t *ids;
    uint32_t id_count;
    struct pick *picks;
    uint32_t pick_count, pick_room;
    int64_t amount;
};

void by_contraction_make(struct by_contraction *contraction, const struct by_piece *piece,
                         const int64_t *capacity)
{
    uint32_t n = piece->count, kept = 0, count = 0, room = 0;
    const struct by_mesh *net = piece->net;
    struct by_mesh_arc *arcs = NULL;

    contraction->slot = by_alloc(n, sizeof(*contraction->slot));
    for (uint32_t i = 0; i < n; i++)
        contraction->slot[i] =
            piece->kind[i] == BY_PIECE_REMOVED || i == piece->outside ? UINT32_MAX : kept++;
    contraction->roots = by_alloc(kept, sizeof(*contraction->roots));
    for (uint32_t i = 0; i < n; i++)
        if (contraction->slot[i] != UINT32_MAX)
            contraction->roots[contraction->slot[i]] += piece->roots[i];
    for (size_t i = 0, end = capacity ? (size_t)n * n : 2 * (size_t)net->pair_count; i < end; i++) {
        uint32_t from = capacity ? (uint32_t)(i / n) : net->tail[i];
        uint32_t to = capacity ? (uint32_t)(i % n) : by_mesh_head(net, (uint32_t)i);
        int64_t amount = capacity ? capacity[i] : net->capacity[i];

        if (amount == 0 || contraction->slot[to] == UINT32_MAX)
            continue;
        if (from == piece->outside) {
            contraction->roots[contraction->slot[to]] += amount;
            continue;
        }
        BY_ASSERT(contraction->slot[from] != UINT32_MAX);
        BY_GROW(arcs, count, room);
        arcs[count++] = (struct by_mesh_arc){contraction->slot[from], contraction->slot[to], amount};
    }
    contraction->net = by_mesh_new(kept, arcs, count);
    contraction->net->deadline = piece->net->deadline;
    free(arcs);
}

void by_contraction_free(struct by_contraction *contraction)
{
    by_mesh_free(contraction->net);
    free(contraction->roots);
    free(contraction->slot);
    *contraction = (struct by_contraction){0};
}

/* ---- the tables of all groups ---- */

static void place_children(struct merger *merger, const struct by_merge_group *groups)
{
    const struct by_laminar *laminar = merger->laminar;

    for (uint32_t g = 0; g < laminar->group_count; g++)
        for (uint32_t i = 0; i < laminar->groups[g].child_count; i++) {
            merger->parent[laminar->groups[g].children[i]] = g;
            merger->slot[laminar->groups[g].children[i]] = groups[g].contraction->slot[i];
        }
}

/* Sorts flow paths by group and half, into a new array: those of one half are searched together. */
static void sort_flow_paths(struct merger *merger, const struct by_merge_flow_path *flow_paths,
                            uint32_t flow_path_count)
{
    const struct by_laminar *laminar = merger->laminar;
    uint32_t at = 0;

    for (uint32_t i = 0; i < flow_path_count; i++)
        merger->parts[flow_paths[i].group].flow_path_count[flow_paths[i].half]++;
    for (uint32_t g = 0; g < laminar->group_count; g++)
        for (uint32_t h = 0; h < 2 * merger->parts[g].contraction->net->pair_count; h++) {
            merger->parts[g].flow_path_start[h] = at;
            at += merger->parts[g].flow_path_count[h];
            merger->parts[g].flow_path_count[h] = 0;
        }
    merger->flow_paths = by_alloc(flow_path_count, sizeof(*merger->flow_paths));
    for (uint32_t i = 0; i < flow_path_count; i++) {
        struct merge_part *part = &merger->parts[flow_paths[i].group];

        merger->flow_paths[part->flow_path_start[flow_paths[i].half] +
                           part->flow_path_count[flow_paths[i].half]++] = flow_paths[i];
    }
}

static void sort_bundles(struct merge_part *part)
{
    const struct by_packing *packing = part->packing;
    uint32_t n = packing->node_count, *at = by_alloc(n + 1, sizeof(*at));

    part->bundle_start = by_alloc(n + 1, sizeof(*part->bundle_start));
    part->bundle_next = by_alloc(n, sizeof(*part->bundle_next));
    part->bundles = by_alloc(packing->count, sizeof(*part->bundles));
    part->bundle_left = by_alloc(packing->count, sizeof(*part->bundle_left));
    for (uint32_t i = 0; i < packing->count; i++)
        part->bundle_start[packing->roots[i] + 1]++;
    for (uint32_t i = 0; i < n; i++)
        part->bundle_start[i + 1] += part->bundle_start[i];
    memcpy(at, part->bundle_start, (n + 1) * sizeof(*at));
    memcpy(part->bundle_next, part->bundle_start, n * sizeof(*part->bundle_next));
    for (uint32_t i = 0; i < packing->count; i++)
        part->bundles[at[packing->roots[i]]++] = i;
    if (packing->count > 0)
        memcpy(part->bundle_left, packing->counts, packing->count * sizeof(*part->bundle_left));
    free(at);
}

static void merger_make(struct merger *merger, const struct by_laminar *laminar,
                        const struct by_merge_group *groups, const struct by_merge_flow_path *flow_paths,
                        uint32_t flow_path_count)
{
    uint32_t n = laminar->net->node_count;

    *merger = (struct merger){.laminar = laminar, .node_count = n};
    merger->parts = by_alloc(laminar->group_count, sizeof(*merger->parts));
    merger->parent = by_alloc((size_t)n + laminar->group_count, sizeof(*merger->parent));
    merger->slot = by_alloc((size_t)n + laminar->group_count, sizeof(*merger->slot));
    merger->depth = by_alloc(n, sizeof(*merger->depth));
    merger->ids = by_alloc(n, sizeof(*merger->ids));
    for (uint32_t g = 0; g < laminar->group_count; g++) {
        struct merge_part *part = &merger->parts[g];
        uint32_t halves = 2 * groups[g].contraction->net->pair_count;

        part->contraction = groups[g].contraction;
        part->packing = groups[g].packing;
        part->flow_path_start = by_alloc(halves, sizeof(*part->flow_path_start));
        part->flow_path_count = by_alloc(halves, sizeof(*part->flow_path_count));
        sort_bundles(part);
    }
    place_children(merger, groups);
    sort_flow_paths(merger, flow_paths, flow_path_count);
}

static void merger_free(struct merger *merger)
{
    for (uint32_t g = 0; g < merger->laminar->group_count; g++) {
        struct merge_part *part = &merger->parts[g];

        free(part->flow_path_start);
        free(part->flow_path_count);
        free(part->bundle_start);
        free(part->bundle_next);
        free(part->bundles);
        free(part->bundle_left);
    }
    free(merger->parts);
    free(merger->parent);
    free(merger->slot);
    free(merger->flow_paths);
    free(merger->depth);
    free(merger->ids);
    free(merger->picks);
}

/* ---- one tree ---- */

static void remember(struct merger *merger, bool is_flow_path, uint32_t group, uint32_t index, uint32_t where)
{
    BY_GROW(merger->picks, merger->pick_count, merger->pick_room);
    merger->picks[merger->pick_count++] = (struct pick){is_flow_path, group, index, where};
}

/* Among the flow paths of a half, picks the one that starts nearest to the root. */
static uint32_t pick_flow_path(const struct merger *merger, const struct merge_part *part, uint32_t half)
{
    uint32_t begin = part->flow_path_start[half], end = begin + part->flow_path_count[half], best = begin;
    uint32_t least = UINT32_MAX;

    BY_ASSERT(begin < end);
    for (uint32_t i = begin; i < end && least > 0; i++) {
        const struct by_merge_flow_path *flow_path = &merger->flow_paths[i];
        uint32_t depth = merger->depth[flow_path->from] + flow_path->hops - 1;

        if (depth < least) {
            least = depth;
            best = i;
        }
    }
    return best;
}

/* Returns the child of `group` that holds `node`. */
static uint32_t child_with(const struct merger *merger, uint32_t group, uint32_t node)
{
    while (merger->parent[node] != group)
        node = merger->node_count + merger->parent[node];
    return node;
}

/* Edges by which flow paths are read in advance (count). */
#define AHEAD 6u

/* Continues within a group from `node`, where the tree entered. The recursion is only as deep as
 * the fabric is hierarchical. */
static void enter(struct merger *merger, uint32_t group, uint32_t node)
{
    struct merge_part *part = &merger->parts[group];
    uint32_t n = merger->node_count, child = child_with(merger, group, node), root = merger->slot[child];
    uint32_t stride, bundle;
    const uint32_t *halves;

    BY_ASSERT(part->packing && part->bundle_next[root] < part->bundle_start[root + 1]);
    stride = part->packing->node_count - 1;
    bundle = part->bundles[part->bundle_next[root]];
    if (part->bundle_left[bundle] < merger->amount)
        merger->amount = part->bundle_left[bundle];
    remember(merger, false, group, bundle, root);
    if (child >= n)
        enter(merger, child - n, node);
    halves = part->packing->halves + (size_t)bundle * stride;
    for (uint32_t e = 0; e < stride && e < AHEAD; e++)
        __builtin_prefetch(&merger->flow_paths[part->flow_path_start[halves[e]]]);
    for (uint32_t e = 0; e < stride; e++) {
        uint32_t half = halves[e], at;

        /* The halves of a bundle follow no order in memory. */
        if (e + 2 * AHEAD < stride) {
            __builtin_prefetch(&part->flow_path_start[halves[e + 2 * AHEAD]]);
            __builtin_prefetch(&part->flow_path_count[halves[e + 2 * AHEAD]]);
            __builtin_prefetch(&merger->flow_paths[part->flow_path_start[halves[e + AHEAD]]]);
        }
        at = pick_flow_path(merger, part, half);
        const struct by_merge_flow_path *flow_path = &merger->flow_paths[at];

        if (flow_path->amount < merger->amount)
            merger->amount = flow_path->amount;
        remember(merger, true, group, at, half);
        merger->depth[flow_path->to] = merger->depth[flow_path->from] + flow_path->hops;
        merger->ids[merger->id_count++] = flow_path->id;
        child = child_with(merger, group, flow_path->to);
        if (child >= n)
            enter(merger, child - n, flow_path->to);
    }
}

/* Subtracts the tree's amount from everything that it picked. */
static void take_picks(struct merger *merger)
{
    for (uint32_t i = 0; i < merger->pick_count; i++) {
        const struct pick *pick = &merger->picks[i];
        struct merge_part *part = &merger->parts[pick->group];

        if (!pick->is_flow_path) {
            part->bundle_left[pick->index] -= merger->amount;
            part->bundle_next[pick->where] += part->bundle_left[pick->index] == 0;
            continue;
        }
        merger->flow_paths[pick->index].amount -= merger->amount;
        if (merger->flow_paths[pick->index].amount == 0)
            merger->flow_paths[pick->index] =
                merger->flow_paths[part->flow_path_start[pick->where] + --part->flow_path_count[pick->where]];
    }
}

int by_merge_run(const struct by_laminar *laminar, const struct by_merge_group *groups,
                 const struct by_merge_flow_path *flow_paths, uint32_t flow_path_count, double deadline,
                 by_merge_emit *emit, void *context)
{
    struct merger merger;
    uint64_t trees = 0;
    bool late = false;

    merger_make(&merger, laminar, groups, flow_paths, flow_path_count);
    for (uint32_t root = 0; root < merger.node_count && !late; root++)
        for (int64_t left = laminar->roots[root]; left > 0 && !late; left -= merger.amount) {
            merger.amount = left;
            merger.pick_count = merger.id_count = 0;
            merger.depth[root] = 0;
            enter(&merger, 0, root);
            take_picks(&merger);
            emit(context, root, merger.amount, merger.ids, merger.id_count);
            late = trees++ % 16 == 15 && by_plan_late(deadline);
        }
    merger_free(&merger);
    return late ? BY_ETIMEDOUT : 0;
}

/* ---- families without switches to remove ---- */

/* Finds the group and the half of each flow path. */
static void place_flow_paths(const struct by_laminar *laminar, const struct by_merge_group *groups,
                             struct by_merge_flow_path *flow_paths, uint32_t count)
{
    uint32_t n = laminar->net->node_count;
    uint32_t *parent = by_alloc((size_t)n + laminar->group_count, sizeof(*parent)), *depth, *slot;

    depth = by_alloc(laminar->group_count, sizeof(*depth));
    slot = by_alloc((size_t)n + laminar->group_count, sizeof(*slot));
    for (uint32_t g = 0; g < laminar->group_count; g++) {
        for (uint32_t i = 0; i < laminar->groups[g].child_count; i++) {
            parent[laminar->groups[g].children[i]] = g;
            slot[laminar->groups[g].children[i]] = groups[g].contraction->slot[i];
        }
        for (uint32_t at = g; at != 0; at = laminar->groups[at].parent)
            depth[g]++;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = flow_paths[i].from, to = flow_paths[i].to, a = parent[from], b = parent[to];

        while (a != b) {
            if (depth[a] >= depth[b]) {
                from = n + a;
                a = parent[from];
            } else {
                to = n + b;
                b = parent[to];
            }
        }
        BY_ASSERT(groups[a].contraction);
        BY_ASSERT(groups[a].contraction != NULL);
        flow_paths[i].group = a;
        flow_paths[i].half = by_mesh_find(groups[a].contraction->net, slot[from], slot[to]);
        BY_ASSERT(flow_paths[i].half != UINT32_MAX);
    }
    free(parent);
    free(depth);
    free(slot);
}

struct collector {
    struct by_packing *packing;
    uint32_t stride;
};

static void collect(void *context, uint32_t root, int64_t count, const uint32_t *ids, uint32_t id_count)
{
    struct collector *collector = context;

    BY_ASSERT(id_count == collector->stride);
    memcpy(by_pack_append(collector->packing, root, count), ids, id_count * sizeof(*ids));
}

int by_merge_halves(struct by_laminar *laminar, double deadline, struct by_packing *packing)
{
    const struct by_mesh *net = laminar->net;
    struct by_contraction *stands = by_alloc(laminar->group_count, sizeof(*stands));
    struct by_packing *packings = by_alloc(laminar->group_count, sizeof(*packings));
    struct by_merge_group *groups = by_alloc(laminar->group_count, sizeof(*groups));
    struct by_merge_flow_path *flow_paths = by_alloc(2 * (size_t)net->pair_count, sizeof(*flow_paths));
    struct collector collector = {packing, net->node_count - 1};
    uint32_t count = 0;
    int error = 0;

    BY_ASSERT(laminar->group_count > 0);
    for (uint32_t g = 0; g < laminar->group_count && !error; g++) {
        struct by_piece piece;

        by_piece_make(laminar, g, &piece);
        by_contraction_make(&stands[g], &piece, NULL);
        error = by_pack_run(stands[g].net, stands[g].roots, deadline, &packings[g]);
        groups[g] = (struct by_merge_group){&stands[g], &packings[g]};
        by_piece_free(&piece);
    }
    for (uint32_t half = 0; half < 2 * net->pair_count; half++)
        if (laminar->capacity[half] > 0 && !error)
            flow_paths[count++] = (struct by_merge_flow_path){
                net->tail[half], by_mesh_head(net, half), laminar->capacity[half], half, 1, 0, 0};
    if (!error)
        place_flow_paths(laminar, groups, flow_paths, count);
    if (!error)
        error = by_merge_run(laminar, groups, flow_paths, count, deadline, collect, &collector);
    for (uint32_t g = 0; g < laminar->group_count; g++) {
        by_contraction_free(&stands[g]);
        by_pack_free(&packings[g]);
    }
    free(stands);
    free(packings);
    free(groups);
    free(flow_paths);
    return error;
}

/* A forest under construction. See sketch.h. */
#include "control/study/baseline/sketch.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/planner/pack/tree.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Nodes `first` to `first + count - 1` of the pool. */
struct sketch_slice {
    uint32_t first;
    uint32_t count;
};

struct sketch_tree {
    uint32_t root;
    enum by_tree_use use;
    int64_t units;
    uint32_t edge_first; /* index into slices */
    uint32_t edge_count;
};

struct by_sketch {
    const struct by_baseline_net *net;
    bool keep;
    uint32_t node_count, node_room;
    uint32_t *nodes; /* pool of the nodes of all paths */
    uint32_t *down;  /* by node of the pool: the arc to the next node, and the reverse arc */
    uint32_t *up;
    uint32_t path_count, path_room;
    struct sketch_slice *paths;
    uint32_t edge_count, edge_room;
    struct sketch_slice *edges;
    uint32_t tree_count, tree_room;
    struct sketch_tree *trees;
    int64_t *load; /* by arc, in units */
    bool against;  /* a path runs against a one-way link */
    bool overflow;
    bool *reached; /* by node, for the current tree */
    uint32_t *depth;
    uint32_t height; /* of the current tree */
    uint32_t height_max;
    double height_sum, weight_sum;
    __int128 units[BY_TREE_DOWN + 1]; /* sums over trees, by use */
    struct sketch_tree open;
    bool is_open;
    struct by_fraction scale; /* bandwidth of one unit, set by by_sketch_finish */
};

struct by_sketch *by_sketch_new(const struct by_baseline_net *net, bool keep)
{
    struct by_sketch *sketch = by_alloc(1, sizeof(*sketch));

    sketch->net = net;
    sketch->keep = keep;
    sketch->load = by_alloc(net->arc_count, sizeof(*sketch->load));
    sketch->reached = by_alloc(net->node_count, sizeof(*sketch->reached));
    sketch->depth = by_alloc(net->node_count, sizeof(*sketch->depth));
    return sketch;
}

void by_sketch_free(struct by_sketch *sketch)
{
    if (!sketch)
        return;
    free(sketch->nodes);
    free(sketch->down);
    free(sketch->up);
    free(sketch->paths);
    free(sketch->edges);
    free(sketch->trees);
    free(sketch->load);
    free(sketch->reached);
    free(sketch->depth);
    free(sketch);
}

uint32_t by_sketch_path(struct by_sketch *sketch, const uint32_t *nodes, uint32_t count)
{
    if (sketch->node_room - sketch->node_count < count) {
        sketch->node_room = 2 * sketch->node_room + count + 64;
        sketch->nodes = by_realloc(sketch->nodes, sketch->node_room, sizeof(*sketch->nodes));
        sketch->down = by_realloc(sketch->down, sketch->node_room, sizeof(*sketch->down));
        sketch->up = by_realloc(sketch->up, sketch->node_room, sizeof(*sketch->up));
    }
    BY_GROW(sketch->paths, sketch->path_count, sketch->path_room);
    sketch->paths[sketch->path_count] = (struct sketch_slice){sketch->node_count, count};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = sketch->node_count++;

        sketch->nodes[at] = nodes[i];
        sketch->down[at] = sketch->up[at] = BY_NET_NO_ARC;
        if (i + 1 < count) {
            sketch->down[at] = by_net_arc(sketch->net, nodes[i], nodes[i + 1]);
            sketch->up[at] = by_net_arc(sketch->net, nodes[i + 1], nodes[i]);
        }
    }
    return sketch->path_count++;
}

static void close_tree(struct by_sketch *sketch)
{
    struct sketch_tree *tree = &sketch->open;

    if (!sketch->is_open)
        return;
    sketch->is_open = false;
    sketch->units[tree->use] += tree->units;
    sketch->height_max = sketch->height > sketch->height_max ? sketch->height : sketch->height_max;
    sketch->height_sum += (double)sketch->height * (double)tree->units;
    sketch->weight_sum += (double)tree->units;
    tree->edge_count = sketch->edge_count - tree->edge_first;
    if (sketch->keep) {
        BY_GROW(sketch->trees, sketch->tree_count, sketch->tree_room);
        sketch->trees[sketch->tree_count] = *tree;
    } else {
        sketch->edge_count = 0;
    }
    sketch->tree_count++;
}

void by_sketch_tree(struct by_sketch *sketch, uint32_t root, enum by_tree_use use, int64_t units)
{
    close_tree(sketch);
    BY_ASSERT(units > 0);
    sketch->open =
        (struct sketch_tree){.root = root, .use = use, .units = units, .edge_first = sketch->edge_count};
    sketch->is_open = true;
    sketch->height = 0;
    memset(sketch->reached, 0, sketch->net->node_count * sizeof(*sketch->reached));
    sketch->reached[root] = true;
    sketch->depth[root] = 0;
}

static void add_load(struct by_sketch *sketch, uint32_t arc)
{
    if (arc == BY_NET_NO_ARC)
        sketch->against = true;
    else if (__builtin_add_overflow(sketch->load[arc], sketch->open.units, &sketch->load[arc]))
        sketch->overflow = true;
}

/* Adds one edge between compute nodes, through switches. */
static void add_slice(struct by_sketch *sketch, struct sketch_slice slice)
{
    uint32_t last = slice.first + slice.count - 1, child = sketch->nodes[last];

    BY_GROW(sketch->edges, sketch->edge_count, sketch->edge_room);
    sketch->edges[sketch->edge_count++] = slice;
    sketch->reached[child] = true;
    sketch->depth[child] = sketch->depth[sketch->nodes[slice.first]] + slice.count - 1;
    if (sketch->depth[child] > sketch->height)
        sketch->height = sketch->depth[child];
    for (uint32_t i = slice.first; i < last; i++) {
        if (sketch->open.use != BY_TREE_UP)
            add_load(sketch, sketch->down[i]);
        if (sketch->open.use != BY_TREE_DOWN)
            add_load(sketch, sketch->up[i]);
    }
}

void by_sketch_edge(struct by_sketch *sketch, uint32_t path)
{
    struct sketch_slice whole = sketch->paths[path];
    const uint32_t *nodes = sketch->nodes + whole.first;
    uint32_t start = 0;

    BY_ASSERT(sketch->is_open && sketch->reached[nodes[0]]);
    if (sketch->reached[nodes[whole.count - 1]])
        return;
    for (uint32_t i = 1; i + 1 < whole.count; i++)
        if (sketch->reached[nodes[i]])
            start = i;
    for (uint32_t i = start + 1; i < whole.count; i++) {
        if (i + 1 < whole.count && !sketch->net->topology->nodes[nodes[i]].compute)
            continue;
        add_slice(sketch, (struct sketch_slice){whole.first + start, i - start + 1});
        start = i;
    }
}

/* Computes the bandwidth of one unit: the least ratio of capacity to load. */
static int find_scale(struct by_sketch *sketch, struct by_problem *problem)
{
    const struct by_net_arc *arcs = sketch->net->arcs;
    uint32_t tightest = BY_NET_NO_ARC;

    if (sketch->against)
        return by_problem_set(
            problem, BY_EINVAL, (struct by_place){0, 0},
            "this algorithm sends in both directions between neighbours, but the fabric has a one-way link; "
            "use the forest, or make the links two-way");
    for (uint32_t i = 0; i < sketch->net->arc_count; i++)
        if (sketch->load[i] > 0 &&
            (tightest == BY_NET_NO_ARC || (__int128)arcs[i].capacity * sketch->load[tightest] <
                                              (__int128)arcs[tightest].capacity * sketch->load[i]))
            tightest = i;
    if (!sketch->overflow && tightest != BY_NET_NO_ARC &&
        by_fraction_set(arcs[tightest].capacity,
                        (__int128)sketch->load[tightest] * sketch->net->topology->scale, &sketch->scale) == 0)
        return 0;
    return by_problem_set(problem, BY_ERANGE, (struct by_place){0, 0},
                          "the loads need more than 63 bits; round the bandwidths");
}

int by_sketch_finish(struct by_sketch *sketch, unsigned collective, struct by_sketch_facts *facts,
                     struct by_problem *problem)
{
    __int128 units;
    int error;

    close_tree(sketch);
    error = find_scale(sketch, problem);
    if (error)
        return error;
    units = sketch->units[BY_TREE_BOTH] + (by_collective_way(collective) == BY_DATA_DOWN
                                               ? sketch->units[BY_TREE_DOWN]
                                               : sketch->units[BY_TREE_UP]);
    if (units > INT64_MAX ||
        by_fraction_multiply(sketch->scale, (struct by_fraction){(int64_t)units, 1}, &facts->achieved) != 0)
        return by_problem_set(problem, BY_ERANGE, (struct by_place){0, 0},
                              "the rate needs more than 63 bits; round the bandwidths");
    facts->tree_count = sketch->tree_count;
    facts->height_max = sketch->height_max;
    facts->height_mean = sketch->weight_sum > 0 ? sketch->height_sum / sketch->weight_sum : 0;
    return 0;
}

/* ---- plans ---- */

/*
 * Returns the number of trees for each root, with multiplicity: units at a root divided by the
 * common divisor of all units.
 */
static int64_t find_k(const struct by_sketch *sketch, unsigned collective)
{
    int64_t divisor = 0, sum = 0;

    if (by_collective_way(collective) == BY_DATA_BOTH)
        return 0;
    for (uint32_t i = 0; i < sketch->tree_count; i++) {
        divisor = by_gcd(divisor, sketch->trees[i].units);
        if (sketch->trees[i].root == sketch->trees[0].root)
            sum += sketch->trees[i].units;
    }
    return divisor > 0 ? sum / divisor : 0;
}

struct by_plan *by_sketch_plan(const struct by_sketch *sketch, const struct by_plan *reference)
{
    struct by_plan *plan = by_alloc(1, sizeof(*plan));
    struct by_tree_list list = {0};
    uint32_t *numbers = NULL, room = 0;

    BY_ASSERT(sketch->keep && !sketch->is_open);
    *plan = *reference;
    plan->topology_name = by_copy_text(reference->topology_name);
    plan->unit = by_copy_text(reference->unit);
    plan->cut = by_alloc(reference->cut_count, sizeof(*plan->cut));
    memcpy(plan->cut, reference->cut, reference->cut_count * sizeof(*plan->cut));
    plan->proof = by_certificate_copy(reference->proof);
    plan->member = NULL; /* a baseline uses all compute nodes and equal shards */
    plan->shares = NULL;
    plan->trades = NULL;
    plan->trade_count = 0;
    plan->k = find_k(sketch, reference->collective);
    plan->paths = (struct by_paths){0};
    plan->trees = NULL;
    plan->edges = NULL;
    plan->tree_count = 0;
    plan->edge_count = 0;
    for (uint32_t i = 0; i < sketch->tree_count; i++) {
        const struct sketch_tree *tree = &sketch->trees[i];
        struct by_fraction weight;
        int error = by_fraction_multiply(sketch->scale, (struct by_fraction){tree->units, 1}, &weight);

        BY_ASSERT(error == 0);
        if (tree->edge_count > room)
            numbers = by_realloc(numbers, room = tree->edge_count, sizeof(*numbers));
        for (uint32_t e = 0; e < tree->edge_count; e++) {
            const struct sketch_slice *slice = &sketch->edges[tree->edge_first + e];

            numbers[e] = by_paths_add(&list.paths, sketch->nodes + slice->first, slice->count);
        }
        by_tree_list_append(&list, tree->root, tree->use, weight, numbers, tree->edge_count);
    }
    free(numbers);
    by_tree_list_move(&list, plan);
    return plan;
}

/* Computes the least common multiple of the weights' denominators. */
static int common_scale(const struct by_plan *plan, int64_t *scale)
{
    *scale = 1;
    for (uint32_t i = 0; i < plan->tree_count; i++) {
        int64_t den = plan->trees[i].weight.den;

        if (__builtin_mul_overflow(*scale, den / by_gcd(*scale, den), scale))
            return BY_ERANGE;
    }
    return 0;
}

int by_sketch_copy(struct by_sketch *sketch, const struct by_plan *plan, enum by_tree_use use)
{
    int64_t scale;

    if (common_scale(plan, &scale) != 0)
        return BY_ERANGE;
    for (uint32_t i = 0; i < plan->tree_count; i++) {
        const struct by_tree *tree = &plan->trees[i];
        int64_t units;

        if (__builtin_mul_overflow(tree->weight.num, scale / tree->weight.den, &units))
            return BY_ERANGE;
        by_sketch_tree(sketch, tree->root, use, units);
        for (uint32_t e = 0; e < tree->edge_count; e++) {
            struct by_path path = by_plan_edge(plan, tree, e);

            by_sketch_edge(sketch, by_sketch_path(sketch, path.nodes, path.node_count));
        }
    }
    return 0;
}

/* Lists of the edges at each node, both ends of each: first[node], next[2 * edge + end]. */
struct turning {
    uint32_t *first, *next;
    uint32_t *queue; /* nodes in the order in which they are reached */
    uint32_t *path;  /* nodes of one path */
};

static void list_edges(struct turning *turning, const struct by_plan *plan, const struct by_tree *tree,
                       uint32_t node_count)
{
    memset(turning->first, 0xff, node_count * sizeof(*turning->first));
    for (uint32_t end = 0; end < 2 * tree->edge_count; end++) {
        struct by_path path = by_plan_edge(plan, tree, end / 2);
        uint32_t node = path.nodes[end % 2 ? path.node_count - 1 : 0];

        turning->next[end] = turning->first[node];
        turning->first[node] = end;
    }
}

/* Adds the edges of the current tree, outwards from its root. */
static void turn_tree(struct by_sketch *sketch, struct turning *turning, const struct by_plan *plan,
                      const struct by_tree *tree)
{
    uint32_t head = 0, tail = 0;

    list_edges(turning, plan, tree, sketch->net->node_count);
    turning->queue[tail++] = sketch->open.root;
    while (head < tail) {
        for (uint32_t end = turning->first[turning->queue[head++]]; end != UINT32_MAX;
             end = turning->next[end]) {
            struct by_path path = by_plan_edge(plan, tree, end / 2);
            uint32_t last = path.node_count - 1, other = path.nodes[end % 2 ? 0 : last];

            if (sketch->reached[other])
                continue;
            for (uint32_t i = 0; i <= last; i++)
                turning->path[i] = path.nodes[end % 2 ? last - i : i];
            by_sketch_edge(sketch, by_sketch_path(sketch, turning->path, path.node_count));
            turning->queue[tail++] = other;
        }
    }
    BY_ASSERT(tail == tree->edge_count + 1);
}

int by_sketch_copy_at(struct by_sketch *sketch, const struct by_plan *plan, uint32_t root)
{
    uint32_t n = sketch->net->node_count;
    struct turning turning;
    int64_t scale;

    BY_ASSERT(sketch->net->symmetric);
    if (common_scale(plan, &scale) != 0)
        return BY_ERANGE;
    turning = (struct turning){by_alloc(n, sizeof(uint32_t)), by_alloc(2 * (size_t)n, sizeof(uint32_t)),
                               by_alloc(n, sizeof(uint32_t)), by_alloc(n, sizeof(uint32_t))};
    for (uint32_t i = 0; i < plan->tree_count && !sketch->overflow; i++) {
        const struct by_tree *tree = &plan->trees[i];
        int64_t units;

        sketch->overflow = __builtin_mul_overflow(tree->weight.num, scale / tree->weight.den, &units) ||
                           __builtin_mul_overflow(units, tree->use == BY_TREE_BOTH ? 2 : 1, &units);
        if (sketch->overflow)
            break;
        by_sketch_tree(sketch, root, BY_TREE_BOTH, units);
        turn_tree(sketch, &turning, plan, tree);
    }
    free(turning.first);
    free(turning.next);
    free(turning.queue);
    free(turning.path);
    return sketch->overflow ? BY_ERANGE : 0;
}

void by_sketch_describe(const struct by_plan *plan, uint32_t node_count, struct by_sketch_facts *facts)
{
    double weight = 0;

    *facts = (struct by_sketch_facts){.achieved = plan->achieved, .tree_count = plan->tree_count};
    for (uint32_t i = 0; i < plan->tree_count; i++) {
        uint32_t height = by_plan_height(plan, &plan->trees[i], node_count);
        double share = by_fraction_value(plan->trees[i].weight);

        facts->height_max = height > facts->height_max ? height : facts->height_max;
        facts->height_mean += height * share;
        weight += share;
    }
    facts->height_mean /= weight > 0 ? weight : 1;
}

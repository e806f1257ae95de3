/*
 * Packs the trees of a solved program. See trees.h.
 *
 * For each use of the links there is a logical fabric of compute nodes only. Its links are the
 * capacities that the program's flows provide between compute nodes. The trees are packed in this
 * fabric (Edmonds 1973, by planner/pack/forest.h). Then their edges are laid onto the ways of the
 * flows. A tree that is heavier than the rest of a way is split.
 */
#include "control/study/bound/trees.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/planner/pack/forest.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

static const struct by_place nowhere = {0, 0};

static int refuse_range(struct by_problem *problem)
{
    return by_problem_set(problem, BY_ERANGE, nowhere,
                          "an exact rate or weight needs more than 63 bits; round the bandwidths");
}

/* State for one use of the links. */
struct laying {
    const struct by_bound_program *program;
    const struct by_graph *graph; /* graph of the physical fabric, for this direction */
    enum by_program_use use;
    enum by_tree_use tree_use;
    uint32_t compute_count;
    uint32_t *node, *number;     /* by compute node: its node index; by node: its compute number */
    struct by_topology *logical; /* the fabric of compute nodes only */
    struct by_tree_list trees;   /* trees of the logical fabric */
    uint32_t *cursor;            /* by [from * compute_count + to]: the current way */
    int64_t *left;               /* by way: unused amount */
    struct by_fraction unit;     /* bandwidth of one tree */
};

static void laying_free(struct laying *laying)
{
    free(laying->node);
    free(laying->number);
    free(laying->cursor);
    free(laying->left);
    by_tree_list_free(&laying->trees);
    by_topology_free(laying->logical);
}

/* Makes the logical fabric of compute nodes only. */
static int make_logical(struct laying *laying, struct by_problem *problem)
{
    const struct by_topology *topology = laying->graph->topology;
    const struct by_program_ways *ways = &laying->program->ways[laying->use];
    uint32_t n = topology->node_count, c;
    struct by_builder *builder = by_builder_new(topology->name, topology->unit);
    int64_t *between;
    int error;

    laying->node = by_alloc(n, sizeof(*laying->node));
    laying->number = by_alloc(n, sizeof(*laying->number));
    for (uint32_t i = 0; i < n; i++) {
        laying->number[i] = laying->compute_count;
        if (!topology->nodes[i].compute)
            continue;
        by_builder_node(builder, &topology->nodes[i]);
        laying->node[laying->compute_count++] = i;
    }
    c = laying->compute_count;
    between = by_alloc((size_t)c * c, sizeof(*between));
    laying->cursor = by_alloc((size_t)c * c, sizeof(*laying->cursor));
    laying->left = by_alloc(ways->count, sizeof(*laying->left));
    for (uint32_t i = ways->count; i-- > 0;) {
        const struct by_program_way *way = &ways->ways[i];
        size_t cell =
            (size_t)laying->number[way->nodes[0]] * c + laying->number[way->nodes[way->node_count - 1]];

        between[cell] += laying->left[i] = way->amount;
        laying->cursor[cell] = i;
    }
    for (uint32_t i = 0; i < c; i++)
        for (uint32_t j = 0; j < c; j++)
            if (between[(size_t)i * c + j] > 0)
                by_builder_link(builder, i, j, false, (struct by_fraction){between[(size_t)i * c + j], 1},
                                nowhere);
    error = by_builder_finish(builder, &laying->logical, problem);
    by_builder_free(builder);
    free(between);
    return error;
}

/* Packs the trees of the logical fabric. */
static int pack_logical(struct laying *laying, double deadline, struct by_problem *problem)
{
    bool up = laying->use == BY_PROGRAM_UP;
    struct by_graph *graph = by_graph_make(laying->logical, up ? BY_DIRECTION_UP : BY_DIRECTION_DOWN, false);
    uint32_t halves = 2 * graph->net->pair_count;
    int64_t *capacity = by_alloc(halves, sizeof(*capacity)),
            *roots = by_alloc(graph->node_count, sizeof(*roots));
    struct by_forest forest = {.graph = graph, .capacity = capacity, .roots = roots, .weight = {1, 1}};
    struct by_plan unused = {0}; /* only its `seconds` is written */
    int error;

    BY_ASSERT(graph->unit.den == 1);
    forest.use = up ? BY_TREE_UP : BY_TREE_DOWN;
    forest.deadline = deadline;
    for (uint32_t half = 0; half < halves; half++)
        capacity[half] = graph->net->capacity[half] * graph->unit.num;
    for (uint32_t i = 0; i < graph->node_count; i++)
        roots[i] = laying->program->roots[laying->node[i]];
    error = by_forest_make(&forest, &laying->trees, &unused, problem);
    by_graph_free(graph);
    free(capacity);
    free(roots);
    return error;
}

/* Returns the current way of a tree edge; it is not used up. */
static uint32_t way_of(struct laying *laying, struct by_path edge)
{
    uint32_t parent = edge.nodes[0], child = edge.nodes[edge.node_count - 1];
    bool up = laying->use == BY_PROGRAM_UP;
    size_t cell = (size_t)(up ? child : parent) * laying->compute_count + (up ? parent : child);

    BY_ASSERT(edge.node_count == 2);
    while (laying->left[laying->cursor[cell]] == 0)
        laying->cursor[cell]++;
    return laying->cursor[cell];
}

/* Lays one tree of the logical fabric, split into as many parts as its ways require. */
static int lay_tree(struct laying *laying, const struct by_tree *tree, struct by_tree_list *list)
{
    const struct by_program_ways *ways = &laying->program->ways[laying->use];
    struct by_path *paths = by_alloc(tree->edge_count, sizeof(*paths));
    uint32_t *chosen = by_alloc(tree->edge_count, sizeof(*chosen));
    int64_t rest = tree->weight.num;
    int error = 0;

    BY_ASSERT(tree->weight.den == 1);
    while (rest > 0 && !error) {
        int64_t part = rest;
        struct by_fraction weight;

        for (uint32_t i = 0; i < tree->edge_count; i++) {
            chosen[i] =
                way_of(laying, by_paths_get(&laying->trees.paths, laying->trees.edges[tree->first_edge + i]));
            part = laying->left[chosen[i]] < part ? laying->left[chosen[i]] : part;
        }
        for (uint32_t i = 0; i < tree->edge_count; i++) {
            const struct by_program_way *way = &ways->ways[chosen[i]];

            laying->left[chosen[i]] -= part;
            paths[i].node_count = way->node_count;
            paths[i].nodes = by_alloc(way->node_count, sizeof(*paths[i].nodes));
            for (uint32_t k = 0; k < way->node_count; k++) /* paths lead from parent to child */
                paths[i].nodes[k] = way->nodes[laying->use == BY_PROGRAM_UP ? way->node_count - 1 - k : k];
        }
        error = by_fraction_multiply(laying->unit, (struct by_fraction){part, 1}, &weight);
        if (!error)
            by_tree_list_add(list, laying->graph, laying->node[tree->root], laying->tree_use, weight, paths,
                             tree->edge_count);
        for (uint32_t i = 0; i < tree->edge_count; i++)
            free(paths[i].nodes);
        rest -= part;
    }
    free(paths);
    free(chosen);
    return error;
}

/* Makes all trees of one use. */
static int lay_use(const struct by_bound_program *program, const struct by_graph *graph,
                   enum by_program_use use, enum by_tree_use tree_use, double deadline,
                   struct by_tree_list *list, struct by_problem *problem)
{
    struct laying laying = {.program = program, .graph = graph, .use = use, .tree_use = tree_use};
    int error = by_fraction_divide(graph->unit, (struct by_fraction){program->scale, 1}, &laying.unit);

    if (error)
        return refuse_range(problem);
    error = make_logical(&laying, problem);
    if (!error)
        error = pack_logical(&laying, deadline, problem);
    for (uint32_t i = 0; i < laying.trees.count && !error; i++)
        if (lay_tree(&laying, &laying.trees.trees[i], list) != 0)
            error = refuse_range(problem);
    if (!error)
        by_tree_list_merge(list);
    laying_free(&laying);
    return error;
}

int by_program_trees(const struct by_bound_program *program, const struct by_graph *both,
                     const struct by_graph *up, const struct by_graph *down, double deadline,
                     struct by_tree_list *list, struct by_problem *problem)
{
    struct by_tree_list rising = {0}, falling = {0};
    int error;

    BY_ASSERT(program->rate.num > 0 && list->count == 0);
    if (program->mirrored)
        return lay_use(program, both, BY_PROGRAM_DOWN, BY_TREE_BOTH, deadline, list, problem);
    error = lay_use(program, up, BY_PROGRAM_UP, BY_TREE_UP, deadline, &rising, problem);
    if (!error)
        error = lay_use(program, down, BY_PROGRAM_DOWN, BY_TREE_DOWN, deadline, &falling, problem);
    if (!error && by_tree_list_pair(&rising, &falling, list) != 0)
        error = refuse_range(problem);
    by_tree_list_free(&rising);
    by_tree_list_free(&falling);
    return error;
}

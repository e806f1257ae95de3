/* Bounds of fabrics of alike parts. See around.h. */
#include "control/planner/classes/around.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/planner/optimum/optimum.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

static const struct by_place nowhere = {0, 0};

/* Bandwidths of the links of the set, in units of the graph. */
struct border {
    int64_t entering, leaving;
    uint32_t computes;
};

static struct border find_border(const struct by_graph *graph, const bool *inside)
{
    const struct by_mesh *net = graph->net;
    struct border border = {0, 0, 0};

    for (uint32_t half = 0; half < 2 * net->pair_count; half++) {
        bool from = inside[net->tail[half]], to = inside[net->tail[half ^ 1]];

        border.entering += !from && to ? net->capacity[half] : 0;
        border.leaving += from && !to ? net->capacity[half] : 0;
    }
    for (uint32_t i = 0; i < graph->node_count; i++)
        border.computes += inside[i] && graph->compute[i];
    return border;
}

/* Keeps a bound if it is lower than all before. */
static bool lowers(struct by_around *around, struct by_fraction bound)
{
    if (around->bound.num > 0 && by_fraction_compare(bound, around->bound) >= 0)
        return false;
    around->bound = bound;
    return true;
}

/* Tries the cut around a set. */
static void try_set(struct by_around *around, const bool *inside)
{
    uint32_t n = around->graph->node_count, all = around->graph->compute_count;
    struct border border = find_border(around->graph, inside);
    bool leaves = around->both_ways && border.leaving < border.entering;
    struct by_fraction bound = {leaves ? border.leaving : border.entering, 1};

    if (border.computes == 0 || border.computes == all ||
        (!around->both_ways &&
         by_fraction_set((__int128)border.entering * all, all - border.computes, &bound) != 0))
        return;
    if (!lowers(around, bound))
        return;
    memcpy(around->inside, inside, n * sizeof(*inside));
    around->leaves = leaves;
    around->across = (struct by_fraction){leaves ? border.leaving : border.entering, 1};
}

/*
 * Tries the partition into the images of a set, of which there are `parts`, for an allreduce whose
 * trees have 2 (parts - 1) paths between parts (control/verify/proof.c). `number` (by node) is the
 * part of each node, `parts` outside.
 */
static void try_parts(struct by_around *around, const bool *inside, const uint32_t *number, uint32_t parts)
{
    const struct by_graph *graph = around->graph;
    struct border border = find_border(graph, inside);
    bool compute = false, multicast = false, aggregate = false;
    int64_t passed;
    struct by_fraction bound;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct by_node *node = &graph->topology->nodes[i];

        if (number[i] < parts)
            continue;
        compute |= node->compute;
        multicast |= node->multicast;
        aggregate |= node->aggregate;
    }
    if (compute || (multicast && aggregate))
        passed = border.entering + border.leaving;
    else if (aggregate || (!multicast && border.leaving < border.entering))
        passed = border.leaving;
    else
        passed = border.entering;
    if (by_fraction_set((__int128)passed * parts, 2 * ((__int128)parts - 1), &bound) != 0 ||
        !lowers(around, bound))
        return;
    around->part_count = parts;
    memcpy(around->part, number, graph->node_count * sizeof(*number));
}

/* Whether a node lies in the first part of levels `first` to `last`. */
static bool is_first(const struct by_symmetry *symmetry, uint32_t node, uint32_t first, uint32_t last)
{
    for (uint32_t l = first; l <= last; l++)
        if (!(symmetry->moved[node] >> l & 1) || symmetry->levels[l].place[node] != 0)
            return false;
    return true;
}

/* The number of the part of a node, by levels `first` to `last`; `parts` if it is in none. */
static uint32_t number_of(const struct by_symmetry *symmetry, uint32_t node, uint32_t first, uint32_t last,
                          uint32_t parts)
{
    uint32_t number = 0;

    for (uint32_t l = first; l <= last; l++) {
        if (!(symmetry->moved[node] >> l & 1))
            return parts;
        number = number * symmetry->levels[l].order + symmetry->levels[l].place[node];
    }
    return number;
}

/* Tries the partition by levels `first` to `last`, where `inside` is the first part. */
static void try_partition(struct by_around *around, const struct by_symmetry *symmetry, const bool *inside,
                          uint32_t first, uint32_t last)
{
    uint32_t parts = 1, *number = by_alloc(symmetry->node_count, sizeof(*number));

    for (uint32_t l = first; l <= last; l++)
        parts *= symmetry->levels[l].order;
    for (uint32_t i = 0; i < symmetry->node_count; i++)
        number[i] = number_of(symmetry, i, first, last, parts);
    try_parts(around, inside, number, parts);
    free(number);
}

/* Tries what levels `first` to `last` divide: the cut around a part, and the partition. */
static void try_levels(struct by_around *around, const struct by_symmetry *symmetry, bool *inside,
                       uint32_t first, uint32_t last)
{
    for (uint32_t i = 0; i < symmetry->node_count; i++)
        inside[i] = is_first(symmetry, i, first, last);
    try_set(around, inside);
    if (around->both_ways)
        try_partition(around, symmetry, inside, first, last);
}

/* Tries the partition into single compute nodes. */
static void try_single(struct by_around *around, const struct by_symmetry *symmetry)
{
    const struct by_graph *graph = around->graph;
    uint32_t n = graph->node_count, rank = 0, *number = by_alloc(n, sizeof(*number));
    bool *inside = by_alloc(n, sizeof(*inside));

    for (uint32_t i = 0; i < n; i++)
        number[i] = graph->compute[i] ? rank++ : graph->compute_count;
    for (uint32_t i = 0; i < symmetry->representative_count; i++) {
        uint32_t node = symmetry->representatives[i];

        if (!graph->compute[node])
            continue;
        inside[node] = true;
        try_set(around, inside);
        inside[node] = false;
    }
    if (around->both_ways && rank == by_symmetry_order(symmetry)) { /* all compute nodes are alike */
        for (uint32_t i = 0; i < symmetry->representative_count; i++)
            inside[symmetry->representatives[i]] = graph->compute[symmetry->representatives[i]];
        try_parts(around, inside, number, rank);
    }
    free(number);
    free(inside);
}

int by_around_find(struct by_around *around, const struct by_graph *graph, const struct by_symmetry *symmetry,
                   bool both_ways, struct by_problem *problem)
{
    uint32_t n = graph->node_count;
    bool *inside = by_alloc(n, sizeof(*inside));

    *around = (struct by_around){.graph = graph, .both_ways = both_ways, .bound = {0, 1}};
    around->inside = by_alloc(n, sizeof(*around->inside));
    around->part = by_alloc(n, sizeof(*around->part));
    for (uint32_t l = 0; l < symmetry->level_count; l++) {
        try_levels(around, symmetry, inside, l, l);
        if (l > 0)
            try_levels(around, symmetry, inside, 0, l);
    }
    try_single(around, symmetry);
    free(inside);
    if (around->bound.num == 0 ||
        by_fraction_divide(around->bound, (struct by_fraction){graph->compute_count, 1}, &around->each) != 0)
        return by_problem_set(problem, BY_ERANGE, nowhere,
                              "the bound needs more than 63 bits; round the bandwidths");
    return 0;
}

void by_around_free(struct by_around *around)
{
    free(around->inside);
    free(around->part);
}

bool by_around_tighten(struct by_around *around, struct by_fraction rate)
{
    const struct by_graph *graph = around->graph;
    struct by_fraction bound;
    struct by_problem ignored = {0};
    int64_t p, q;
    bool *inside, lower = false;

    if (around->both_ways || by_fraction_compare(rate, around->each) >= 0)
        return false;
    inside = by_alloc(graph->node_count, sizeof(*inside));
    if (by_optimum_allgather(graph, &p, &q, inside, &ignored) == 0 &&
        by_fraction_set((__int128)graph->compute_count * q, p, &bound) == 0 && lowers(around, bound)) {
        lower = by_fraction_set(q, p, &around->each) == 0;
        around->across = (struct by_fraction){by_graph_entering_set(graph, inside), 1};
        memcpy(around->inside, inside, graph->node_count * sizeof(*inside));
    }
    free(inside);
    return lower;
}

int by_around_describe(const struct by_around *around, struct by_plan *plan, struct by_problem *problem)
{
    /* The cut of a plan is the side that data must leave. A graph for data that flow up is
     * transposed. */
    bool up = plan->collective == BY_COLLECTIVE_REDUCE_SCATTER, side = around->leaves || up;
    uint32_t n = around->graph->node_count;

    for (uint32_t i = 0; i < n; i++)
        if (around->inside[i] == side)
            plan->cut[plan->cut_count++] = i;
    if (around->part_count)
        plan->proof = by_certificate_of_parts(around->part, n, around->part_count);
    if (by_fraction_multiply(around->across, around->graph->unit, &plan->cut_exiting) != 0)
        return by_problem_set(problem, BY_ERANGE, nowhere,
                              "the cut needs more than 63 bits; round the bandwidths");
    return 0;
}

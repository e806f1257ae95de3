/*
 * Answers whether a plan can run. Small plans are compiled, so the answer is that of `banyan
 * tables`. In plans of very many edges whose links have both directions, only limits of numbers can
 * fail, and these are counted from the edges in one pass. See runs.h.
 */
#include "control/tables/runs.h"

#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/members.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Nodes of all paths up to which a plan is compiled: some 20 ms (count). */
#define COMPILED_MAX 50000u

/* What one node needs. */
struct runs_node {
    uint32_t trees; /* at most BY_TREES_MAX */
    uint64_t relays;
    uint64_t places; /* slots for each position of a window */
};

static uint64_t path_nodes(const struct by_plan *plan)
{
    uint64_t count = 0;

    /* plan->edges may also hold numbers that no tree uses */
    for (uint32_t t = 0; t < plan->tree_count; t++)
        for (uint32_t e = 0; e < plan->trees[t].edge_count; e++)
            count += by_paths_get(&plan->paths, plan->edges[plan->trees[t].first_edge + e]).node_count;
    return count;
}

static int order_ends(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Whether several links join the same two nodes. */
static bool has_parallel(const struct by_topology *topology)
{
    uint64_t *ends = by_alloc(topology->link_count, sizeof(*ends));
    bool found = false;

    for (uint32_t i = 0; i < topology->link_count; i++) {
        uint32_t a = topology->links[i].a, b = topology->links[i].b;

        ends[i] = a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
    }
    if (topology->link_count > 0)
        qsort(ends, topology->link_count, sizeof(*ends), order_ends);
    for (uint32_t i = 1; i < topology->link_count && !found; i++)
        found = ends[i] == ends[i - 1];
    free(ends);
    return found;
}

/* Whether each link has both directions, no cables are parallel, and each tree carries both
 * directions or all carry one: then cables and ways back can always be chosen, and trees stay
 * whole. */
static bool is_plain(const struct by_topology *topology, const struct by_plan *plan)
{
    for (uint32_t i = 0; i < topology->link_count; i++)
        if (topology->links[i].arc_ab == UINT32_MAX || topology->links[i].arc_ba == UINT32_MAX)
            return false;
    for (uint32_t i = 0; i < plan->tree_count; i++)
        if (by_collective_way(plan->collective) == BY_DATA_BOTH && plan->trees[i].use != BY_TREE_BOTH)
            return false;
    return !has_parallel(topology);
}

/* Adds the entries and relays of one tree. `children` is zero for all nodes, before and after. */
static int count_tree(const struct by_topology *topology, const struct by_plan *plan,
                      const struct by_tree *tree, uint32_t *children, struct runs_node *nodes,
                      struct by_problem *problem)
{
    int error = 0;

    for (uint32_t e = 0; e < tree->edge_count; e++)
        children[by_plan_edge(plan, tree, e).nodes[0]]++;
    for (uint32_t e = 0; e <= tree->edge_count && error == 0; e++) {
        struct by_path path = {0};
        uint32_t node = tree->root, below;
        bool rank;

        if (e < tree->edge_count) {
            path = by_plan_edge(plan, tree, e);
            node = path.nodes[path.node_count - 1];
        }
        rank = by_members_have(topology, plan->member, node);
        below = children[node] + (rank && (children[node] > 0 || node == tree->root));
        if (below > BY_FAMILY_MAX)
            error =
                by_problem_say(problem, BY_ELIMIT, "'%s' has %u children in a tree; a table entry holds %u",
                               topology->nodes[node].name, below, BY_FAMILY_MAX);
        if (!rank && children[node] == 1 && node != tree->root) {
            nodes[node].relays += 2; /* it only forwards */
        } else if (below > 0) {
            nodes[node].trees++;
            nodes[node].places += 1 + by_image_sets(below);
        }
        for (uint32_t i = 1; i + 1 < path.node_count; i++)
            nodes[path.nodes[i]].relays += 2;
    }
    for (uint32_t e = 0; e < tree->edge_count; e++)
        children[by_plan_edge(plan, tree, e).nodes[0]] = 0;
    return error;
}

/* Notes the switch with the most slots. */
static void note_switch(const struct by_topology *topology, uint32_t node, uint32_t trees, uint64_t slots,
                        struct by_runs *runs)
{
    if (topology->nodes[node].compute || slots <= runs->fullest_slots)
        return;
    runs->fullest = topology->nodes[node].name;
    runs->fullest_trees = trees;
    runs->fullest_slots = (uint32_t)slots;
}

/* Compares the counts with the limits, and chooses the window like set_windows() in lower.c. */
static int judge(const struct by_topology *topology, const struct runs_node *nodes, struct by_runs *runs)
{
    uint64_t places = 1;

    for (uint32_t i = 0; i < topology->node_count; i++) {
        if (nodes[i].relays > BY_RELAYS_MAX)
            return by_problem_say(&runs->problem, BY_ELIMIT, "'%s' needs %llu relays; the limit is %u",
                                  topology->nodes[i].name, (unsigned long long)nodes[i].relays,
                                  BY_RELAYS_MAX);
        if (nodes[i].places > BY_LOWER_SLOTS)
            return by_problem_say(&runs->problem, BY_ELIMIT, "'%s' is in %u trees and has %u slots",
                                  topology->nodes[i].name, nodes[i].trees, BY_LOWER_SLOTS);
        runs->trees = nodes[i].trees > runs->trees ? nodes[i].trees : runs->trees;
        places = nodes[i].places > places ? nodes[i].places : places;
    }
    for (runs->window = BY_LOWER_WINDOW; places * runs->window > BY_LOWER_SLOTS;)
        runs->window /= 2;
    runs->slots = (uint32_t)places * runs->window;
    for (uint32_t i = 0; i < topology->node_count; i++)
        note_switch(topology, i, nodes[i].trees, nodes[i].places * runs->window, runs);
    return 0;
}

/* Turns the counts of the trees of a plan by classes into those of all their images. */
static void spread(const struct by_rotations *rotations, struct runs_node *nodes)
{
    uint32_t n = rotations->node_count, *orbit = by_rotations_orbits(rotations),
             *size = by_alloc(n, sizeof(*size));
    uint64_t images = by_rotations_images(rotations);

    for (uint32_t i = 0; i < n; i++) {
        struct runs_node *sum = &nodes[orbit[i]];

        size[orbit[i]]++;
        if (orbit[i] == i)
            continue;
        sum->trees += nodes[i].trees;
        sum->relays += nodes[i].relays;
        sum->places += nodes[i].places;
    }
    for (uint32_t i = 0; i < n; i++) {
        /* images of a tree at the node for each of its nodes in the orbit */
        uint64_t each = images / size[orbit[i]];

        if (orbit[i] != i) {
            nodes[i] = nodes[orbit[i]]; /* first nodes come before the others */
            continue;
        }
        nodes[i].trees *= (uint32_t)each;
        nodes[i].relays *= each;
        nodes[i].places *= each;
    }
    free(orbit);
    free(size);
}

static int count_plan(const struct by_topology *topology, const struct by_plan *plan, struct by_runs *runs)
{
    uint32_t n = topology->node_count, *children = by_alloc(n, sizeof(*children));
    struct runs_node *nodes = by_alloc(n, sizeof(*nodes));
    uint64_t images = by_rotations_images(plan->rotations);
    int error = 0;

    if (plan->tree_count * images > BY_TREES_MAX)
        error = by_problem_say(&runs->problem, BY_ELIMIT, "%llu trees; a job has at most %u",
                               (unsigned long long)(plan->tree_count * images), BY_TREES_MAX);
    for (uint32_t i = 0; i < plan->tree_count && error == 0; i++)
        error = count_tree(topology, plan, &plan->trees[i], children, nodes, &runs->problem);
    if (error == 0 && plan->rotations)
        spread(plan->rotations, nodes);
    if (error == 0)
        error = judge(topology, nodes, runs);
    free(children);
    free(nodes);
    return error;
}

static int compile_plan(const struct by_topology *topology, const struct by_plan *plan, struct by_runs *runs)
{
    struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = &plan};
    struct by_lowering *lowering = NULL;
    int error = by_lower(topology, &job, 1, &(struct by_lower_options){.bare = 1}, &lowering, &runs->problem);

    for (uint32_t i = 0; i < topology->node_count && error == 0; i++) {
        struct by_lower_need need = by_lowering_need(lowering, 1, i);
        uint8_t *bytes = NULL;
        size_t size;

        runs->trees = need.entries > runs->trees ? need.entries : runs->trees;
        note_switch(topology, i, need.entries, need.slots, runs);
        error = by_lowering_image(lowering, i, &bytes, &size, &runs->problem);
        free(bytes);
    }
    if (error == 0) {
        runs->slots = lowering->slots;
        runs->window = lowering->window;
        runs->part = lowering->part;
    }
    by_lowering_free(lowering);
    return error;
}

void by_runs_find(const struct by_topology *topology, const struct by_plan *plan, struct by_runs *runs)
{
    bool large = plan->rotations || path_nodes(plan) > COMPILED_MAX,
         plain = large && is_plain(topology, plan);

    *runs = (struct by_runs){.part = {1, 1}};
    if (plan->rotations && !plain)
        by_problem_say(
            &runs->problem, BY_EUNSUPPORTED,
            "it is by classes, on a fabric with one-way or parallel links: `banyan export --format "
            "plan` writes all its trees");
    else
        runs->runs = (plain ? count_plan : compile_plan)(topology, plan, runs) == 0;
}

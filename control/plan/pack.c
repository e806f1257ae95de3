/*
 * Tree packing by growing one bundle of equal trees at a time. See pack.h. All trees that are not begun are
 * known by how many start at each node, which one super node expresses; so theorem 10's network has a single
 * extra node, whatever the number of trees.
 *
 * An edge x->y may be given to mu trees of the bundle as long as every set of nodes keeps enough capacity for
 * the trees still to come: mu is a maximum flow from x to y. When mu is less than the bundle, the bundle
 * shrinks to mu, and the rest goes back to its root as if it had never grown.
 */
#include "control/plan/pack.h"

#include "control/flow/flow.h"
#include "control/plan/clock.h"
#include "control/topology/alloc.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

struct packer {
    uint32_t node_count;
    const bool *members;
    uint32_t member_count;
    int64_t *capacity; /* left, [from * node_count + to] */
    int64_t *waiting;  /* by node: trees not begun */
    int64_t waiting_sum;
    struct by_flow *flow;
    uint32_t *arc;   /* by cell: arc of the flow, UINT32_MAX where there never was capacity */
    uint32_t *start; /* by node: arc from the super node, as many as wait there */
    uint32_t *enter; /* by node: arc to the super node, infinite for the tail of the edge in question */
    int64_t *bound;  /* by cell: what mu is known not to exceed, for the bundle being grown */
    bool *side;
    /* The bundle being grown. */
    uint32_t root;
    int64_t count;
    uint32_t reached_count;
    uint32_t *reached; /* nodes in the order in which they joined */
    bool *inside;
    struct by_edge *edges;
};

static size_t cell(const struct packer *packer, uint32_t from, uint32_t to)
{
    return (size_t)from * packer->node_count + to;
}

static void set_capacity(struct packer *packer, size_t at, int64_t capacity)
{
    packer->capacity[at] = capacity;
    by_flow_set(packer->flow, packer->arc[at], capacity);
}

static void set_waiting(struct packer *packer, uint32_t node, int64_t waiting)
{
    packer->waiting_sum += waiting - packer->waiting[node];
    packer->waiting[node] = waiting;
    by_flow_set(packer->flow, packer->start[node], waiting);
}

static void packer_make(struct packer *packer, uint32_t node_count, const int64_t *capacity,
                        const int64_t *roots, const bool *members)
{
    size_t cells = (size_t)node_count * node_count;

    *packer = (struct packer){.node_count = node_count, .members = members};
    packer->capacity = by_alloc(cells, sizeof(*packer->capacity));
    packer->waiting = by_alloc(node_count, sizeof(*packer->waiting));
    packer->arc = by_alloc(cells, sizeof(*packer->arc));
    packer->start = by_alloc(node_count, sizeof(*packer->start));
    packer->enter = by_alloc(node_count, sizeof(*packer->enter));
    packer->bound = by_alloc(cells, sizeof(*packer->bound));
    packer->side = by_alloc(node_count + 1, sizeof(*packer->side));
    packer->reached = by_alloc(node_count, sizeof(*packer->reached));
    packer->inside = by_alloc(node_count, sizeof(*packer->inside));
    packer->edges = by_alloc(node_count, sizeof(*packer->edges));
    packer->flow = by_flow_new(node_count + 1);
    for (size_t i = 0; i < cells; i++) {
        packer->capacity[i] = capacity[i];
        packer->arc[i] = UINT32_MAX;
        if (capacity[i])
            packer->arc[i] = by_flow_add(packer->flow, (uint32_t)(i / node_count), (uint32_t)(i % node_count),
                                         capacity[i]);
    }
    for (uint32_t i = 0; i < node_count; i++) {
        packer->member_count += members[i];
        packer->enter[i] = by_flow_add(packer->flow, i, node_count, 0);
        packer->start[i] = by_flow_add(packer->flow, node_count, i, 0);
        set_waiting(packer, i, roots[i]);
    }
}

static void packer_free(struct packer *packer)
{
    by_flow_free(packer->flow);
    free(packer->capacity);
    free(packer->waiting);
    free(packer->arc);
    free(packer->start);
    free(packer->enter);
    free(packer->bound);
    free(packer->side);
    free(packer->reached);
    free(packer->inside);
    free(packer->edges);
}

static void forget_bounds(struct packer *packer)
{
    for (size_t i = 0; i < (size_t)packer->node_count * packer->node_count; i++)
        packer->bound[i] = INT64_MAX;
}

/* How many trees of the bundle may take the edge x->y (theorem 10). A cut that says less bounds all edges
 * that cross it. */
static int64_t growth(struct packer *packer, uint32_t x, uint32_t y)
{
    int64_t most = packer->capacity[cell(packer, x, y)], mu;

    most = most < packer->count ? most : packer->count;
    most = most < packer->bound[cell(packer, x, y)] ? most : packer->bound[cell(packer, x, y)];
    if (most == 0)
        return 0;
    by_flow_set(packer->flow, packer->enter[x], BY_FLOW_INFINITE);
    mu = by_flow_run(packer->flow, x, y, packer->waiting_sum + most) - packer->waiting_sum;
    by_flow_set(packer->flow, packer->enter[x], 0);
    BY_ASSERT(mu >= 0);
    if (mu < most) {
        by_flow_sink_side(packer->flow, packer->side);
        for (uint32_t from = 0; from < packer->node_count; from++)
            for (uint32_t to = 0; to < packer->node_count; to++)
                if (packer->inside[from] && !packer->side[from] && packer->side[to] &&
                    packer->bound[cell(packer, from, to)] > mu)
                    packer->bound[cell(packer, from, to)] = mu;
    }
    return mu;
}

/* Shrinks the bundle to `count` trees; the others start again from the root, and their edges are free again.
 */
static void shrink(struct packer *packer, int64_t count)
{
    int64_t back = packer->count - count;

    for (uint32_t i = 0; i + 1 < packer->reached_count; i++) {
        size_t at = cell(packer, packer->edges[i].from, packer->edges[i].to);

        set_capacity(packer, at, packer->capacity[at] + back);
    }
    set_waiting(packer, packer->root, packer->waiting[packer->root] + back);
    packer->count = count;
    forget_bounds(packer);
}

static void take_edge(struct packer *packer, uint32_t x, uint32_t y)
{
    size_t at = cell(packer, x, y);

    set_capacity(packer, at, packer->capacity[at] - packer->count);
    packer->edges[packer->reached_count - 1] = (struct by_edge){x, y};
    packer->reached[packer->reached_count++] = y;
    packer->inside[y] = true;
}

/* Adds one node to the bundle: the first edge, nearest to the root, that all its trees may take; else the one
 * that most may. */
static void grow(struct packer *packer)
{
    uint32_t n = packer->node_count, best_x = 0, best_y = 0;
    int64_t best = 0;

    for (uint32_t i = 0; i < packer->reached_count; i++) {
        uint32_t x = packer->reached[i];

        for (uint32_t step = 1; step < n; step++) {
            uint32_t y = (x + step) % n;
            int64_t mu;

            if (packer->inside[y] || packer->capacity[cell(packer, x, y)] <= best ||
                packer->bound[cell(packer, x, y)] <= best)
                continue;
            mu = growth(packer, x, y);
            if (mu == packer->count) {
                take_edge(packer, x, y);
                return;
            }
            if (mu > best) {
                best = mu;
                best_x = x;
                best_y = y;
            }
        }
    }
    BY_ASSERT(best > 0);
    shrink(packer, best);
    take_edge(packer, best_x, best_y);
}

/* Grows one bundle from the node where most trees wait, and appends it to the packing. */
static void grow_bundle(struct packer *packer, struct by_packing *packing)
{
    struct by_bundle *bundle;

    packer->root = 0;
    for (uint32_t i = 1; i < packer->node_count; i++)
        if (packer->waiting[i] > packer->waiting[packer->root])
            packer->root = i;
    packer->count = packer->waiting[packer->root];
    set_waiting(packer, packer->root, 0);
    forget_bounds(packer);
    memset(packer->inside, 0, packer->node_count * sizeof(*packer->inside));
    packer->inside[packer->root] = true;
    packer->reached[0] = packer->root;
    packer->reached_count = 1;
    while (packer->reached_count < packer->member_count)
        grow(packer);
    BY_GROW(packing->bundles, packing->count, packing->room);
    bundle = &packing->bundles[packing->count++];
    *bundle = (struct by_bundle){packer->root, packer->count, packer->reached_count - 1, NULL};
    bundle->edges = by_alloc(bundle->edge_count, sizeof(*bundle->edges));
    memcpy(bundle->edges, packer->edges, bundle->edge_count * sizeof(*bundle->edges));
}

int by_pack_run(uint32_t node_count, const int64_t *capacity, const int64_t *roots, const bool *members,
                double deadline, struct by_packing *packing)
{
    struct packer packer;
    int error = 0;

    *packing = (struct by_packing){0};
    packer_make(&packer, node_count, capacity, roots, members);
    while (packer.waiting_sum > 0 && !error) {
        grow_bundle(&packer, packing);
        if (deadline > 0 && by_plan_clock() > deadline)
            error = BY_ETIMEDOUT;
    }
    packer_free(&packer);
    return error;
}

void by_pack_free(struct by_packing *packing)
{
    for (uint32_t i = 0; i < packing->count; i++)
        free(packing->bundles[i].edges);
    free(packing->bundles);
    *packing = (struct by_packing){0};
}

/*
 * Grows trees, one bundle of equal trees at a time. See pack.h. Trees not yet begun are represented
 * by their number at each root. Theorem 10's network therefore needs a single extra node, the
 * source of reach.h, whatever the number of trees.
 *
 * An edge x->y may be given to mu trees of the bundle as long as every set of nodes keeps enough
 * capacity for the trees still to come: mu is the flow into y from the source and x together, minus
 * all trees still to come. When mu is less than the bundle, the bundle can shrink to mu, and the
 * other trees return to their root ungrown. After each bundle the remaining problem may have split
 * along tight sets; each piece is then packed alone, which provides most of the speed.
 */
#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/planner/pack/merge.h"
#include "control/planner/pack/pack.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

struct grower {
    const struct by_mesh *net;
    struct by_reach *reach; /* remaining capacities and roots */
    int64_t waiting_sum;
    int64_t *bound; /* by half: an upper bound of mu for the current bundle */
    /* The current bundle. */
    uint32_t root;
    int64_t count;
    uint32_t reached_count;
    uint32_t *reached; /* nodes in the order of their joining */
    bool *inside;
    uint32_t *halves;
};

static void set_waiting(struct grower *grower, uint32_t node, int64_t waiting)
{
    grower->waiting_sum += waiting - grower->reach->root[node];
    by_reach_set_root(grower->reach, node, waiting);
}

static void grower_make(struct grower *grower, const struct by_mesh *net, const int64_t *roots)
{
    uint32_t n = net->node_count;

    *grower = (struct grower){.net = net, .reach = by_reach_new(net)};
    grower->bound = by_alloc(2 * (size_t)net->pair_count, sizeof(*grower->bound));
    grower->reached = by_alloc(n, sizeof(*grower->reached));
    grower->inside = by_alloc(n, sizeof(*grower->inside));
    grower->halves = by_alloc(n, sizeof(*grower->halves));
    for (uint32_t i = 0; i < n; i++)
        set_waiting(grower, i, roots[i]);
}

static void grower_free(struct grower *grower)
{
    by_reach_free(grower->reach);
    free(grower->bound);
    free(grower->reached);
    free(grower->inside);
    free(grower->halves);
}

static void forget_bounds(struct grower *grower)
{
    for (uint32_t i = 0; i < 2 * grower->net->pair_count; i++)
        grower->bound[i] = INT64_MAX;
}

/* Records that a cut that allows only `mu` bounds all edges of the tree that cross it. */
static void learn_cut(struct grower *grower, int64_t mu)
{
    const struct by_mesh *net = grower->net;

    for (uint32_t i = 0; i < by_reach_side(grower->reach); i++) {
        uint32_t node = grower->reach->queue[i];

        for (uint32_t j = net->first[node]; j < net->first[node + 1]; j++) {
            const struct by_near *near = &net->near[j];

            if (grower->inside[near->node] && !by_reach_inside(grower->reach, near->node) &&
                grower->bound[near->half] > mu)
                grower->bound[near->half] = mu;
        }
    }
}

/* Returns how many trees of the bundle may take the half x->y (theorem 10). */
static int64_t growth(struct grower *grower, uint32_t half)
{
    uint32_t x = grower->net->tail[half], y = by_mesh_head(grower->net, half);
    int64_t most = grower->reach->capacity[half], mu;

    most = most < grower->count ? most : grower->count;
    most = most < grower->bound[half] ? most : grower->bound[half];
    if (most == 0)
        return 0;
    grower->reach->contracted[x] = true;
    mu = by_reach_flow(grower->reach, y, grower->waiting_sum + most) - grower->waiting_sum;
    grower->reach->contracted[x] = false;
    BY_ASSERT(mu >= 0);
    if (mu < most)
        learn_cut(grower, mu);
    return mu;
}

/* Shrinks the bundle to `count` trees; the others start again from the root, and their edges become
 * free. */
static void shrink(struct grower *grower, int64_t count)
{
    int64_t back = grower->count - count;

    for (uint32_t i = 0; i + 1 < grower->reached_count; i++)
        by_reach_set(grower->reach, grower->halves[i], grower->reach->capacity[grower->halves[i]] + back);
    set_waiting(grower, grower->root, grower->reach->root[grower->root] + back);
    grower->count = count;
    forget_bounds(grower);
}

static void take_half(struct grower *grower, uint32_t half)
{
    by_reach_set(grower->reach, half, grower->reach->capacity[half] - grower->count);
    grower->halves[grower->reached_count - 1] = half;
    grower->reached[grower->reached_count++] = by_mesh_head(grower->net, half);
    grower->inside[by_mesh_head(grower->net, half)] = true;
}

/* Adds one node to the bundle: the first edge, nearest to the root, that all its trees or at least
 * half of them may take; else the edge that most trees may take. */
static void grow(struct grower *grower)
{
    const struct by_mesh *net = grower->net;
    uint32_t best = UINT32_MAX;
    int64_t best_mu = 0;

    for (uint32_t i = 0; i < grower->reached_count; i++) {
        uint32_t x = grower->reached[i];

        for (uint32_t j = net->first[x]; j < net->first[x + 1]; j++) {
            uint32_t half = net->near[j].half ^ 1;
            int64_t mu;

            if (grower->inside[net->near[j].node] || grower->reach->capacity[half] <= best_mu ||
                grower->bound[half] <= best_mu)
                continue;
            mu = growth(grower, half);
            if (mu == grower->count) {
                take_half(grower, half);
                return;
            }
            if (mu > best_mu) {
                best_mu = mu;
                best = half;
            }
        }
        if (best_mu >= (grower->count + 1) / 2)
            break;
    }
    BY_ASSERT(best_mu > 0);
    shrink(grower, best_mu);
    take_half(grower, best);
}

/* Grows one bundle from the root with the most trees left, and adds it to the packing. A bundle
 * that is not complete at the deadline is dropped. */
static void grow_bundle(struct grower *grower, struct by_packing *packing)
{
    uint32_t n = grower->net->node_count;

    grower->root = 0;
    for (uint32_t i = 1; i < n; i++)
        if (grower->reach->root[i] > grower->reach->root[grower->root])
            grower->root = i;
    grower->count = grower->reach->root[grower->root];
    set_waiting(grower, grower->root, 0);
    forget_bounds(grower);
    memset(grower->inside, 0, n * sizeof(*grower->inside));
    grower->inside[grower->root] = true;
    grower->reached[0] = grower->root;
    grower->reached_count = 1;
    while (grower->reached_count < n && !grower->reach->late)
        grow(grower);
    if (grower->reach->late)
        return;
    memcpy(by_pack_append(packing, grower->root, grower->count), grower->halves,
           (n - 1) * sizeof(*grower->halves));
}

/* Packs the remaining problem in pieces if it has split; `*done` receives whether it has. */
static int pack_pieces(struct grower *grower, double deadline, struct by_packing *packing, bool *done)
{
    uint32_t n = grower->net->node_count;
    struct by_mesh rest = *grower->net; /* the same shape, with the remaining capacities */
    bool *all = by_alloc(n, sizeof(*all));
    struct by_laminar laminar;
    int error = 0;

    rest.capacity = grower->reach->capacity;
    memset(all, true, n * sizeof(*all));
    by_laminar_make(&laminar, &rest, rest.capacity, grower->reach->root, all, all);
    by_tight_laminar(&laminar);
    *done = laminar.group_count > 1;
    if (*done)
        error = by_merge_halves(&laminar, deadline, packing);
    by_laminar_free(&laminar);
    free(all);
    return error;
}

int by_pack_grow(const struct by_mesh *net, const int64_t *roots, double deadline, struct by_packing *packing)
{
    struct grower grower;
    bool done = false;
    int error = 0;

    grower_make(&grower, net, roots);
    while (grower.waiting_sum > 0 && !error && !done) {
        grow_bundle(&grower, packing);
        if (grower.reach->late || by_plan_late(deadline))
            error = BY_ETIMEDOUT;
        if (!error && grower.waiting_sum > 0 && net->node_count > 3)
            error = pack_pieces(&grower, deadline, packing, &done);
    }
    grower_free(&grower);
    return error;
}

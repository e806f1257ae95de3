/* Plans allreduce part by part. See joint.h. */
#include "control/planner/network/joint.h"

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/fabric/vary.h"
#include "control/planner/planner.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

#define NONE UINT32_MAX
/* The part number of dead ends: nodes attached to the joint without a compute node. */
#define NOWHERE (UINT32_MAX - 1)
/* Nodes of a fabric up to which compute nodes are tried as the joint as well (count): each requires
 * a search. */
#define SEARCHES_MAX 1500u

/* A part: a component that remains without the joint, plus the joint. */
struct joint_part {
    struct by_topology *topology;
    uint32_t *whole;            /* by node of the part: its number in the whole fabric */
    uint32_t joint;             /* node number in the part */
    const struct by_plan *plan; /* of this part, or of the part that it equals */
    uint32_t like;              /* the equal part that was planned */
};

struct joined {
    const struct by_graph *both;
    uint32_t joint;
    uint32_t *part_of; /* by node; NONE for the joint, NOWHERE */
    uint32_t part_count;
    struct joint_part *parts;
    struct by_plan **plans; /* by part: NULL if it equals another */
    uint32_t *queue;
};

/* Numbers the parts that remain without `joint`; returns their count, and in `*most` the compute
 * nodes of the largest. */
static uint32_t take_apart(struct joined *joined, uint32_t joint, uint32_t *most)
{
    const struct by_mesh *net = joined->both->net;
    uint32_t count = 0;

    memset(joined->part_of, 0xff, net->node_count * sizeof(*joined->part_of));
    *most = 0;
    for (uint32_t start = 0; start < net->node_count; start++) {
        uint32_t head = 0, tail = 0, compute = 0;

        if (start == joint || joined->part_of[start] != NONE)
            continue;
        joined->part_of[start] = count;
        joined->queue[tail++] = start;
        while (head < tail) {
            uint32_t at = joined->queue[head++];

            compute += joined->both->compute[at];
            for (uint32_t i = net->first[at]; i < net->first[at + 1]; i++) {
                uint32_t other = net->near[i].node;

                if (other == joint || joined->part_of[other] != NONE)
                    continue;
                joined->part_of[other] = count;
                joined->queue[tail++] = other;
            }
        }
        *most = compute > *most ? compute : *most;
        for (uint32_t i = 0; i < tail && compute == 0; i++)
            joined->part_of[joined->queue[i]] = NOWHERE;
        count += compute > 0;
    }
    return count;
}

/* Returns the node that leaves the smallest parts; NONE if none separates compute nodes. */
static uint32_t find_joint(struct joined *joined)
{
    const struct by_graph *both = joined->both;
    uint32_t best = NONE, least = NONE;

    for (uint32_t i = 0; i < both->node_count; i++) {
        uint32_t most, others = both->compute_count - both->compute[i];

        if (both->net->first[i + 1] - both->net->first[i] < 2 ||
            !(both->branch[i] || (both->compute[i] && both->node_count <= SEARCHES_MAX)))
            continue;
        take_apart(joined, i, &most);
        if (most < others && most < least) {
            best = i;
            least = most;
        }
    }
    return best;
}

static int part_make(const struct joined *joined, uint32_t number, struct joint_part *part,
                     struct by_problem *problem)
{
    const struct by_topology *topology = joined->both->topology;
    bool *lost = by_alloc(topology->node_count, sizeof(*lost));
    uint32_t count = 0;
    int error;

    part->whole = by_alloc(topology->node_count, sizeof(*part->whole));
    for (uint32_t i = 0; i < topology->node_count; i++) {
        lost[i] = i != joined->joint && joined->part_of[i] != number;
        if (i == joined->joint)
            part->joint = count;
        if (!lost[i])
            part->whole[count++] = i;
    }
    error = by_topology_without(topology, NULL, lost, &part->topology, problem);
    free(lost);
    if (!error) {
        struct by_node *node = &part->topology->nodes[part->joint];

        node->compute = true;
        node->multicast = node->aggregate = false;
    }
    return error;
}

static bool are_alike(const struct by_topology *a, const struct by_topology *b)
{
    bool alike = a->node_count == b->node_count && a->arc_count == b->arc_count && a->scale == b->scale;

    for (uint32_t i = 0; i < a->node_count && alike; i++)
        alike = a->nodes[i].compute == b->nodes[i].compute &&
                a->nodes[i].multicast == b->nodes[i].multicast &&
                a->nodes[i].aggregate == b->nodes[i].aggregate;
    for (uint32_t i = 0; i < a->arc_count && alike; i++)
        alike = a->arcs[i].from == b->arcs[i].from && a->arcs[i].to == b->arcs[i].to &&
                a->arcs[i].capacity == b->arcs[i].capacity;
    return alike;
}

/* Plans every part that does not equal an earlier one. */
static int plan_parts(struct joined *joined, const struct by_plan_options *options,
                      struct by_problem *problem)
{
    int error = 0;

    for (uint32_t i = 0; i < joined->part_count && !error; i++) {
        struct joint_part *part = &joined->parts[i];

        error = part_make(joined, i, part, problem);
        part->like = i;
        for (uint32_t j = 0; j < i && !error && part->like == i; j++)
            if (joined->plans[j] && joined->parts[j].joint == part->joint &&
                are_alike(joined->parts[j].topology, part->topology))
                part->like = j;
        if (!error && part->like == i)
            error = by_plan_make(part->topology, options, &joined->plans[i], problem);
        part->plan = error ? NULL : joined->plans[part->like];
    }
    return error;
}

/* ---- trees of the whole ---- */

/* Writes the paths of a part's tree in node numbers of the whole fabric, from the
 * joint outwards. */
static uint32_t turn_tree(const struct joint_part *part, const struct by_tree *tree, struct by_path *paths)
{
    uint32_t n = part->topology->node_count, count = 0;
    bool *inside = by_alloc(n, sizeof(*inside)), *used = by_alloc(tree->edge_count, sizeof(*used));
    bool progress = true;

    inside[part->joint] = true;
    while (progress) { /* a few rounds, since edges are ordered from the root outwards */
        progress = false;
        for (uint32_t k = 0; k < 2 * tree->edge_count; k++) {
            uint32_t e = k < tree->edge_count ? tree->edge_count - 1 - k : k - tree->edge_count;
            struct by_path view = by_plan_edge(part->plan, tree, e);
            uint32_t from = view.nodes[0], to = view.nodes[view.node_count - 1];
            struct by_path *path = &paths[count];

            if (used[e] || inside[from] == inside[to])
                continue;
            *path = (struct by_path){view.node_count, by_alloc(view.node_count, sizeof(*path->nodes))};
            for (uint32_t i = 0; i < view.node_count; i++)
                path->nodes[i] = part->whole[view.nodes[inside[from] ? i : view.node_count - 1 - i]];
            inside[from] = inside[to] = used[e] = progress = true;
            count++;
        }
    }
    free(inside);
    free(used);
    return count;
}

/* The position of a part in its list of trees, which are used one after the other. */
struct cursor {
    uint32_t tree;
    struct by_fraction left; /* of the tree's weight, in the part's share of the rate */
};

static int open_tree(const struct joint_part *part, struct by_fraction share, struct cursor *cursor)
{
    return by_fraction_multiply(part->plan->trees[cursor->tree].weight, share, &cursor->left);
}

/* Makes one tree of the whole from the current trees of all parts, with the least of their
 * remaining weights. */
static int join_trees(const struct joined *joined, struct cursor *cursors, const struct by_fraction *shares,
                      struct by_path *paths, struct by_fraction *left, struct by_tree_list *list)
{
    struct by_fraction weight = cursors[0].left;
    uint32_t count = 0;
    int error = 0;

    for (uint32_t i = 0; i < joined->part_count; i++) {
        const struct joint_part *part = &joined->parts[i];

        weight = by_fraction_compare(cursors[i].left, weight) < 0 ? cursors[i].left : weight;
        count += turn_tree(part, &part->plan->trees[cursors[i].tree], paths + count);
    }
    by_tree_list_add(list, joined->both, joined->joint, BY_TREE_BOTH, weight, paths, count);
    for (uint32_t i = 0; i < count; i++)
        free(paths[i].nodes);
    error = by_fraction_subtract(*left, weight, left);
    for (uint32_t i = 0; i < joined->part_count && !error; i++) {
        error = by_fraction_subtract(cursors[i].left, weight, &cursors[i].left);
        if (!error && cursors[i].left.num == 0 && left->num > 0) {
            cursors[i].tree++;
            BY_ASSERT(cursors[i].tree < joined->parts[i].plan->tree_count);
            error = open_tree(&joined->parts[i], shares[i], &cursors[i]);
        }
    }
    return error;
}

/* Makes all trees, at the rate of the slowest part. */
static int join_parts(const struct joined *joined, struct by_fraction rate, struct by_tree_list *list)
{
    struct cursor *cursors = by_alloc(joined->part_count, sizeof(*cursors));
    struct by_fraction *shares = by_alloc(joined->part_count, sizeof(*shares)), left = rate;
    struct by_path *paths = by_alloc((size_t)joined->both->node_count + joined->part_count, sizeof(*paths));
    int error = 0;

    for (uint32_t i = 0; i < joined->part_count && !error; i++) {
        error = by_fraction_divide(rate, joined->parts[i].plan->achieved, &shares[i]);
        if (!error)
            error = open_tree(&joined->parts[i], shares[i], &cursors[i]);
    }
    while (left.num > 0 && !error)
        error = join_trees(joined, cursors, shares, paths, &left, list);
    if (!error)
        by_tree_list_merge(list);
    free(cursors);
    free(shares);
    free(paths);
    return error;
}

/* Converts the part's proof to node numbers of the whole fabric: the set that holds the joint
 * absorbs all other parts. */
static struct by_certificate *lift_proof(const struct joined *joined, const struct joint_part *part)
{
    struct by_certificate *proof = by_certificate_copy(part->plan->proof);
    uint32_t n = joined->both->node_count;

    for (uint32_t i = 0; proof && i < proof->price_count; i++) {
        proof->prices[i].from = part->whole[proof->prices[i].from];
        proof->prices[i].to = part->whole[proof->prices[i].to];
    }
    for (uint32_t i = 0; proof && i < proof->part_count; i++) {
        struct by_part *set = &proof->parts[i];
        bool with_joint = false;

        for (uint32_t j = 0; j < set->node_count; j++) {
            with_joint |= set->nodes[j] == part->joint;
            set->nodes[j] = part->whole[set->nodes[j]];
        }
        if (!with_joint)
            continue;
        set->nodes = by_realloc(set->nodes, (size_t)set->node_count + n, sizeof(*set->nodes));
        for (uint32_t v = 0; v < n; v++)
            if (v != joined->joint &&
                (joined->part_of[v] == NOWHERE || &joined->parts[joined->part_of[v]] != part))
                set->nodes[set->node_count++] = v;
    }
    return proof;
}

/* Finds the rates of the whole, in units of capacity; the bound is the least bound of a part. */
static int find_rates(const struct joined *joined, struct by_fraction *rate, struct by_packed *packed)
{
    const struct joint_part *tightest = &joined->parts[0];

    BY_ASSERT(tightest->plan); /* at least two parts have compute nodes, and all are planned */
    *rate = tightest->plan->achieved;
    for (uint32_t i = 1; i < joined->part_count; i++) {
        const struct by_plan *plan = joined->parts[i].plan;

        *rate = by_fraction_compare(plan->achieved, *rate) < 0 ? plan->achieved : *rate;
        if (by_fraction_compare(plan->optimum, tightest->plan->optimum) < 0)
            tightest = &joined->parts[i];
    }
    if (by_fraction_divide(*rate, joined->both->unit, &packed->rate) != 0)
        return BY_ERANGE;
    packed->proof = lift_proof(joined, tightest);
    return packed->proof ? by_fraction_divide(tightest->plan->optimum, joined->both->unit, &packed->bound)
                         : 0;
}

static void joined_free(struct joined *joined)
{
    for (uint32_t i = 0; i < joined->part_count; i++) {
        by_topology_free(joined->parts[i].topology);
        free(joined->parts[i].whole);
        by_plan_free(joined->plans[i]);
    }
    free(joined->parts);
    free(joined->plans);
    free(joined->part_of);
    free(joined->queue);
}

int by_joint_pack(const struct by_graph *both, const struct by_plan_options *options,
                  struct by_tree_list *list, struct by_packed *packed, struct by_problem *problem)
{
    struct joined joined = {.both = both};
    struct by_plan_options inner = {.collective = BY_COLLECTIVE_ALLREDUCE,
                                    .root = -1,
                                    .in_network = options->in_network,
                                    .time_limit_s = options->time_limit_s};
    struct by_fraction rate;
    uint32_t most;
    int error = 0;

    *packed = (struct by_packed){.rate = {0, 1}, .bound = {0, 1}};
    joined.part_of = by_alloc(both->node_count, sizeof(*joined.part_of));
    joined.queue = by_alloc(both->node_count, sizeof(*joined.queue));
    joined.joint = find_joint(&joined);
    if (joined.joint != NONE) {
        joined.part_count = take_apart(&joined, joined.joint, &most);
        joined.parts = by_alloc(joined.part_count, sizeof(*joined.parts));
        joined.plans = by_alloc(joined.part_count, sizeof(struct by_plan *));
        error = plan_parts(&joined, &inner, problem);
        if (!error)
            error = find_rates(&joined, &rate, packed);
        if (!error)
            error = join_parts(&joined, rate, list);
    }
    joined_free(&joined);
    return error;
}

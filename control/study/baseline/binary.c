/*
 * Double binary trees (Sanders, Speck, Traff, "Two-tree algorithms for full bandwidth broadcast,
 * reduction and scan", 2009), as NCCL uses them for allreduce. See baseline.h.
 *
 * There is a binary tree over the boxes, and a chain inside each box. The number of tree pairs
 * equals the number of GPUs in a box, so each GPU communicates with other boxes in one pair. In
 * each pair the inner nodes of one tree are leaves of the other.
 */
#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/study/baseline/baseline.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

#define NO_PARENT UINT32_MAX

/*
 * Returns the parent in a binary tree whose inner nodes have even numbers: the number with its
 * lowest set bit moved up by one, if that exists.
 */
static uint32_t parent_in_tree(uint32_t number, uint32_t count)
{
    uint32_t bit = number & (~number + 1), up;

    if (number == 0)
        return NO_PARENT;
    up = (number ^ bit) | (bit << 1);
    return up < count ? up : number ^ bit;
}

/*
 * Returns the parent in the other tree of the pair: mirrored for even counts, shifted by one for
 * odd counts.
 */
static uint32_t parent_in_other(uint32_t number, uint32_t count)
{
    uint32_t moved = count % 2 == 0 ? count - 1 - number : (number + count - 1) % count;
    uint32_t parent = parent_in_tree(moved, count);

    if (parent == NO_PARENT)
        return NO_PARENT;
    return count % 2 == 0 ? count - 1 - parent : (parent + 1) % count;
}

struct binary_shape {
    uint32_t *rank_of; /* by node */
    uint32_t *ring;    /* ranks in ring order, box by box */
    uint32_t *first;   /* by box, in ring order: start of its ranks in `ring` */
    uint32_t box_count;
    uint32_t *parent; /* by rank, in the current tree */
    uint32_t *order;  /* ranks, parents first */
    uint32_t *start;  /* [n + 1], index into `next`: neighbours in the tree, in both directions */
    uint32_t *next;
};

static void shape_make(struct binary_shape *shape, const struct by_baseline_net *net, uint32_t box_count)
{
    uint32_t n = net->compute_count;

    shape->rank_of = by_alloc(net->node_count, sizeof(uint32_t));
    shape->ring = by_alloc(n, sizeof(uint32_t));
    shape->parent = by_alloc(n, sizeof(uint32_t));
    shape->order = by_alloc(n, sizeof(uint32_t));
    shape->start = by_alloc((size_t)n + 2, sizeof(uint32_t));
    shape->next = by_alloc(2 * (size_t)n, sizeof(uint32_t));
    shape->first = by_alloc((size_t)box_count + 1, sizeof(uint32_t));
    shape->box_count = box_count;
    for (uint32_t i = 0; i < n; i++)
        shape->rank_of[net->compute[i]] = i;
}

static void shape_free(struct binary_shape *shape)
{
    free(shape->rank_of);
    free(shape->ring);
    free(shape->first);
    free(shape->parent);
    free(shape->order);
    free(shape->start);
    free(shape->next);
}

/* Sorts the ring's ranks by box, and keeps the order inside each box. */
static void follow_ring(struct binary_shape *shape, const struct by_baseline_ring *ring, uint32_t n)
{
    uint32_t *number = by_alloc(shape->box_count, sizeof(*number)), met = 0;
    uint32_t *filled = by_alloc(shape->box_count, sizeof(*filled));

    memset(number, 0xff, shape->box_count * sizeof(*number));
    memset(shape->first, 0, ((size_t)shape->box_count + 1) * sizeof(*shape->first));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t box = ring->boxes.box_of[shape->rank_of[ring->order[i]]];

        if (number[box] == UINT32_MAX)
            number[box] = met++;
        shape->first[number[box] + 1]++;
    }
    for (uint32_t b = 0; b < shape->box_count; b++)
        shape->first[b + 1] += shape->first[b];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = shape->rank_of[ring->order[i]], box = number[ring->boxes.box_of[rank]];

        shape->ring[shape->first[box] + filled[box]++] = rank;
    }
    free(number);
    free(filled);
}

/*
 * Sets the parents of all ranks: a tree over the first ranks of the boxes, chains inside. Returns
 * the root.
 */
static uint32_t set_parents(struct binary_shape *shape, bool other)
{
    uint32_t root = 0;

    for (uint32_t b = 0; b < shape->box_count; b++) {
        uint32_t above = other ? parent_in_other(b, shape->box_count) : parent_in_tree(b, shape->box_count);

        if (above == NO_PARENT)
            root = shape->ring[shape->first[b]];
        shape->parent[shape->ring[shape->first[b]]] =
            above == NO_PARENT ? NO_PARENT : shape->ring[shape->first[above]];
        for (uint32_t i = shape->first[b] + 1; i < shape->first[b + 1]; i++)
            shape->parent[shape->ring[i]] = shape->ring[i - 1];
    }
    return root;
}

/* Reroots the tree at `root`, and orders its ranks. */
static void orient(struct binary_shape *shape, uint32_t n, uint32_t root)
{
    uint32_t head = 0, tail = 0;

    memset(shape->start, 0, ((size_t)n + 2) * sizeof(uint32_t));
    for (uint32_t i = 0; i < n; i++)
        if (shape->parent[i] != NO_PARENT) {
            shape->start[i + 2]++;
            shape->start[shape->parent[i] + 2]++;
        }
    for (uint32_t i = 0; i < n; i++)
        shape->start[i + 2] += shape->start[i + 1];
    for (uint32_t i = 0; i < n; i++)
        if (shape->parent[i] != NO_PARENT) {
            shape->next[shape->start[i + 1]++] = shape->parent[i];
            shape->next[shape->start[shape->parent[i] + 1]++] = i;
        }
    shape->parent[root] = NO_PARENT;
    shape->order[tail++] = root;
    while (head < tail) {
        uint32_t rank = shape->order[head++];

        for (uint32_t i = shape->start[rank]; i < shape->start[rank + 1]; i++)
            if (shape->next[i] != shape->parent[rank]) {
                shape->parent[shape->next[i]] = rank;
                shape->order[tail++] = shape->next[i];
            }
    }
    BY_ASSERT(tail == n);
}

/* Adds the tree for one use; paths run in the direction of the data. */
static int add_tree(struct by_baseline_task *task, const struct binary_shape *shape, enum by_tree_use use,
                    int64_t units)
{
    struct by_baseline_net *net = task->net;
    uint32_t *nodes = by_alloc(net->node_count, sizeof(*nodes));

    by_sketch_tree(task->sketch, net->compute[shape->order[0]], use, units);
    for (uint32_t i = 1; i < net->compute_count; i++) {
        uint32_t child = net->compute[shape->order[i]], parent = net->compute[shape->parent[shape->order[i]]];
        uint32_t count = use == BY_TREE_UP ? by_net_route(net, child, parent, 1, false, nodes)
                                           : by_net_route(net, parent, child, 1, false, nodes);

        if (count == 0) {
            free(nodes);
            return by_problem_set(task->problem, BY_EINVAL, (struct by_place){0, 0},
                                  "node '%s' cannot reach node '%s'; add a link",
                                  net->topology->nodes[use == BY_TREE_UP ? child : parent].name,
                                  net->topology->nodes[use == BY_TREE_UP ? parent : child].name);
        }
        for (uint32_t h = 0; h < count / 2 && use == BY_TREE_UP; h++) {
            uint32_t swapped = nodes[h];

            nodes[h] = nodes[count - 1 - h];
            nodes[count - 1 - h] = swapped;
        }
        by_sketch_edge(task->sketch, by_sketch_path(task->sketch, nodes, count));
    }
    free(nodes);
    return 0;
}

/* Adds both trees of a pair. */
static int add_pair(struct by_baseline_task *task, struct binary_shape *shape, int64_t units)
{
    unsigned collective = task->collective;
    int error = 0;

    for (unsigned i = 0; i < 2 && !error; i++) {
        uint32_t root = set_parents(shape, i == 1);

        if (by_task_rooted(task))
            root = shape->rank_of[task->root];
        orient(shape, task->net->compute_count, root);
        if (collective == BY_COLLECTIVE_ALLREDUCE && task->net->symmetric) {
            error = add_tree(task, shape, BY_TREE_BOTH, units);
            continue;
        }
        if (collective != BY_COLLECTIVE_BROADCAST)
            error = add_tree(task, shape, BY_TREE_UP, units);
        if (!error && collective != BY_COLLECTIVE_REDUCE)
            error = add_tree(task, shape, BY_TREE_DOWN, units);
    }
    return error;
}

int by_baseline_double_binary(struct by_baseline_task *task, uint32_t pairs_max)
{
    struct binary_shape shape = {0};
    struct by_baseline_ring ring;
    int64_t units = 1;
    int error = 0;

    if (by_collective_is_sharded(task->collective))
        return by_problem_set(
            task->problem, BY_EUNSUPPORTED, (struct by_place){0, 0},
            "double binary trees support allreduce, broadcast and reduce; %s has a root at every node",
            by_collective_name(task->collective));
    by_ring_make(&ring, task->net);
    shape_make(&shape, task->net, ring.boxes.count);
    for (uint32_t i = 0; i < pairs_max && units > 0 && !error; i++) {
        if (by_task_late(task)) {
            error = BY_ETIMEDOUT;
            break;
        }
        units = by_ring_next(&ring, task, i);
        if (units <= 0)
            break;
        follow_ring(&shape, &ring, task->net->compute_count);
        error = add_pair(task, &shape, units);
    }
    shape_free(&shape);
    by_ring_free(&ring);
    return units < 0 ? (int)units : error;
}

/*
 * Extracts reduction trees from a solution of SSR (LMR section 4.4, EXTRACT_TREES and FIND_TREE).
 * See program_reduce.h.
 *
 * A tree is built backwards from the result at the target. A message needed at a node was computed
 * there or arrived over a link; the search ends when only values at their holders are needed. Among
 * several tasks the one with the largest remaining amount is chosen, so the trees are few and
 * heavy.
 */
#include "control/study/series/rational.h"
#include "control/study/steady/program_reduce.h"
#include "offload/base/assert.h"

/* A message that a tree needs at a node. */
struct reduction_tree_need {
    uint32_t message, node;
};

struct reduction_tree_finder {
    struct by_reduction *reduction;
    uint32_t *first, *next; /* lists of links by their end node */
    uint32_t need_count, need_room;
    struct reduction_tree_need *needs;
    uint32_t used_count, used_room;
    mpq_t **used; /* amounts of the solution that the current tree uses */
};

static void use(struct reduction_tree_finder *finder, mpq_t *amount)
{
    BY_GROW(finder->used, finder->used_count, finder->used_room);
    finder->used[finder->used_count++] = amount;
}

static void need(struct reduction_tree_finder *finder, uint32_t message, uint32_t node)
{
    BY_GROW(finder->needs, finder->need_count, finder->need_room);
    finder->needs[finder->need_count++] = (struct reduction_tree_need){message, node};
}

/*
 * Adds the task with the largest remaining amount that provides the message at the node; returns
 * false if there is none.
 */
static bool satisfy(struct reduction_tree_finder *finder, struct reduction_tree_need wanted,
                    struct by_steady_lane *lane)
{
    struct by_reduction *reduction = finder->reduction;
    const struct by_links *links = reduction->platform->links;
    uint32_t split = BY_SERIES_NONE, link = BY_SERIES_NONE;
    mpq_t *best = NULL;

    for (uint32_t s = reduction->first_split[wanted.message]; s < reduction->first_split[wanted.message + 1];
         s++) {
        mpq_t *amount = &reduction->makes[(size_t)wanted.node * reduction->split_count + s];

        if (mpq_sgn(*amount) > 0 && (!best || mpq_cmp(*amount, *best) > 0)) {
            best = amount;
            split = s;
        }
    }
    for (uint32_t l = finder->first[wanted.node]; l != BY_SERIES_NONE; l = finder->next[l]) {
        mpq_t *amount = &reduction->sends[(size_t)l * reduction->message_count + wanted.message];

        if (mpq_sgn(*amount) > 0 && (!best || mpq_cmp(*amount, *best) > 0)) {
            best = amount;
            link = l;
        }
    }
    if (!best)
        return false;
    use(finder, best);
    if (link != BY_SERIES_NONE) {
        by_lane_push(lane, (struct by_series_task){
                               .message = wanted.message, .node = links->from[link], .to = wanted.node});
        need(finder, wanted.message, links->from[link]);
        return true;
    }
    by_lane_push(lane, (struct by_series_task){.message = wanted.message,
                                               .node = wanted.node,
                                               .to = BY_SERIES_NONE,
                                               .left = reduction->splits[split].left,
                                               .right = reduction->splits[split].right});
    need(finder, reduction->splits[split].right, wanted.node);
    need(finder, reduction->splits[split].left, wanted.node);
    return true;
}

/* FIND_TREE: finds tasks backwards from the result. */
static bool find_tree(struct reduction_tree_finder *finder, struct by_steady_lane *lane)
{
    const struct by_reduction *reduction = finder->reduction;

    finder->need_count = finder->used_count = 0;
    need(finder, reduction->whole, reduction->problem->targets[0]);
    while (finder->need_count > 0) {
        struct reduction_tree_need wanted = finder->needs[--finder->need_count];
        uint64_t values = reduction->values[wanted.message];

        if (!(values & (values - 1)) && reduction->problem->holders[__builtin_ctzll(values)] == wanted.node)
            continue;
        if (!satisfy(finder, wanted, lane))
            return false;
    }
    return true;
}

/*
 * Sets the tree's weight to the least amount of its tasks, subtracts it from all of them, and puts
 * the tasks into execution order.
 */
static void take_tree(struct reduction_tree_finder *finder, struct by_steady_lane *lane)
{
    BY_ASSERT(finder->used && finder->used_count > 0); /* a tree of at least two values combines them */
    mpq_set(lane->weight, *finder->used[0]);
    for (uint32_t i = 1; i < finder->used_count; i++)
        if (mpq_cmp(*finder->used[i], lane->weight) < 0)
            mpq_set(lane->weight, *finder->used[i]);
    for (uint32_t i = 0; i < finder->used_count; i++)
        mpq_sub(*finder->used[i], *finder->used[i], lane->weight);
    for (uint32_t i = 0, j = lane->task_count - 1; i < j; i++, j--) {
        struct by_series_task task = lane->tasks[i];

        lane->tasks[i] = lane->tasks[j];
        lane->tasks[j] = task;
    }
}

static void straighten(struct by_reduction *reduction)
{
    const struct by_links *links = reduction->platform->links;
    mpq_t *flow = by_rationals_new(links->count);

    for (uint32_t m = 0; m < reduction->message_count; m++) {
        for (uint32_t l = 0; l < links->count; l++)
            mpq_set(flow[l], reduction->sends[(size_t)l * reduction->message_count + m]);
        by_flow_straighten(links, reduction->platform->topology->node_count, flow);
        for (uint32_t l = 0; l < links->count; l++)
            mpq_set(reduction->sends[(size_t)l * reduction->message_count + m], flow[l]);
    }
    by_rationals_free(flow, links->count);
}

bool by_reduction_trees(struct by_reduction *reduction, struct by_lanes *lanes)
{
    const struct by_links *links = reduction->platform->links;
    uint32_t n = reduction->platform->topology->node_count;
    struct reduction_tree_finder finder = {.reduction = reduction,
                                           .first = by_alloc(n, sizeof(uint32_t)),
                                           .next = by_alloc(links->count, sizeof(uint32_t))};
    bool right = true;
    mpq_t left;

    mpq_init(left);
    mpq_set(left, reduction->throughput);
    memset(finder.first, 0xff, n * sizeof(uint32_t));
    for (uint32_t l = links->count; l-- > 0;) {
        finder.next[l] = finder.first[links->to[l]];
        finder.first[links->to[l]] = l;
    }
    straighten(reduction);
    while (right && mpq_sgn(left) > 0) {
        struct by_steady_lane *lane = by_lanes_add(lanes);

        right = find_tree(&finder, lane);
        if (!right)
            break;
        take_tree(&finder, lane);
        mpq_sub(left, left, lane->weight);
    }
    right = right && mpq_sgn(left) == 0;
    mpq_clear(left);
    free(finder.first);
    free(finder.next);
    free(finder.needs);
    free(finder.used);
    return right;
}

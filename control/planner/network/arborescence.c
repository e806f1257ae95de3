/*
 * Minimum spanning arborescences. See arborescence.h. Each level is the graph before a contraction.
 * During expansion, the arc that enters a contracted cycle replaces the cycle's own arc into the
 * same node.
 */
#include "control/planner/network/arborescence.h"

#include "control/base/alloc.h"

struct arc {
    uint32_t from, to;
    int64_t cost;
    uint32_t below; /* the arc of the level below that it represents */
};

struct arborescence_level {
    uint32_t count;
    uint32_t root;
    uint32_t arc_count;
    struct arc *arcs;
    uint32_t *best; /* by node: the arc chosen to enter it */
};

/* Chooses the cheapest arc into each node but the root; false when a node has none. */
static bool choose_best(struct arborescence_level *level)
{
    level->best = by_alloc(level->count, sizeof(*level->best));
    for (uint32_t i = 0; i < level->count; i++)
        level->best[i] = UINT32_MAX;
    for (uint32_t i = 0; i < level->arc_count; i++) {
        uint32_t to = level->arcs[i].to;

        if (to != level->root &&
            (level->best[to] == UINT32_MAX || level->arcs[i].cost < level->arcs[level->best[to]].cost))
            level->best[to] = i;
    }
    for (uint32_t i = 0; i < level->count; i++)
        if (i != level->root && level->best[i] == UINT32_MAX)
            return false;
    return true;
}

/* Numbers the nodes of the next level: each cycle of chosen arcs becomes one node. Returns their
 * count, which equals level->count if there is no cycle. */
static uint32_t number_cycles(const struct arborescence_level *level, uint32_t *number)
{
    uint32_t *seen = by_alloc(level->count, sizeof(*seen)), next = 0;

    for (uint32_t i = 0; i < level->count; i++)
        number[i] = UINT32_MAX;
    for (uint32_t i = 0; i < level->count; i++) {
        uint32_t at = i;

        while (at != level->root && seen[at] == 0 && number[at] == UINT32_MAX) {
            seen[at] = i + 1;
            at = level->arcs[level->best[at]].from;
        }
        if (at == level->root || seen[at] != i + 1 || number[at] != UINT32_MAX)
            continue;
        for (uint32_t on = at; number[on] == UINT32_MAX; on = level->arcs[level->best[on]].from)
            number[on] = next;
        next++;
    }
    for (uint32_t i = 0; i < level->count; i++)
        if (number[i] == UINT32_MAX)
            number[i] = next++;
    free(seen);
    return next;
}

/* Makes the level above: cycles are contracted, and the cost of each arc into a node is reduced by
 * that of the arc chosen for the node. */
static void contract(const struct arborescence_level *below, const uint32_t *number, uint32_t count,
                     struct arborescence_level *above)
{
    *above = (struct arborescence_level){.count = count, .root = number[below->root]};
    above->arcs = by_alloc(below->arc_count, sizeof(*above->arcs));
    for (uint32_t i = 0; i < below->arc_count; i++) {
        const struct arc *arc = &below->arcs[i];

        if (number[arc->from] == number[arc->to] || arc->to == below->root)
            continue;
        above->arcs[above->arc_count++] = (struct arc){number[arc->from], number[arc->to],
                                                       arc->cost - below->arcs[below->best[arc->to]].cost, i};
    }
}

bool by_arborescence_find(uint32_t count, const int64_t *cost, uint32_t root, uint32_t *parent)
{
    struct arborescence_level *levels = by_alloc(count, sizeof(*levels));
    uint32_t *number = by_alloc(count, sizeof(*number)), top = 0;
    bool found;

    levels[0] = (struct arborescence_level){.count = count, .root = root};
    levels[0].arcs = by_alloc((size_t)count * count, sizeof(*levels[0].arcs));
    for (uint32_t i = 0; i < count * count; i++)
        if (i / count != i % count && cost[i] != BY_ARBORESCENCE_NONE)
            levels[0].arcs[levels[0].arc_count++] = (struct arc){i / count, i % count, cost[i], 0};
    while ((found = choose_best(&levels[top]))) {
        uint32_t next = number_cycles(&levels[top], number);

        if (next == levels[top].count)
            break;
        contract(&levels[top], number, next, &levels[top + 1]);
        top++;
    }
    for (uint32_t at = top; at > 0 && found; at--) {
        struct arborescence_level *above = &levels[at], *below = &levels[at - 1];

        for (uint32_t i = 0; i < above->count; i++)
            if (i != above->root) {
                uint32_t arc = above->arcs[above->best[i]].below;

                below->best[below->arcs[arc].to] = arc;
            }
    }
    for (uint32_t i = 0; i < count && found; i++)
        if (i != root)
            parent[i] = levels[0].arcs[levels[0].best[i]].from;
    for (uint32_t i = 0; i <= top; i++) {
        free(levels[i].arcs);
        free(levels[i].best);
    }
    free(levels);
    free(number);
    return found;
}

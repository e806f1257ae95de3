/*
 * The search of tree_pricing.c for a commutative operator: the cheapest arborescence (Chu and Liu
 * 1965, Edmonds 1967), for each set of nodes that may take part. Included after tree_pricing.inc.h,
 * whose macros it uses. One thread for each pricer.
 */

struct NAMED(sets) {
    NUMBER *enter; /* by place and node: of moving a message there and combining it */
    NUMBER *leave; /* by place: of moving the result to the target */
    NUMBER *cost;  /* by two nodes of the arborescence */
    NUMBER many;   /* more than any arborescence costs */
    NUMBER infinite, total, best;
};

/* Merges the nodes of the walk from position `at` on into a new one. */
static void NAMED(merge)(struct by_arborescence *tree, struct NAMED(sets) * work, uint32_t at)
{
    uint32_t room = tree->room, merged = tree->count++;

    for (uint32_t i = at; i < tree->walk_count; i++) {
        tree->parent[tree->walk[i]] = merged;
        tree->alive[tree->walk[i]] = false;
    }
    for (uint32_t other = 0; other < merged; other++) {
        size_t out = (size_t)merged * room + other, in = (size_t)other * room + merged;

        if (!tree->alive[other])
            continue;
        SET(work->cost[out], work->infinite);
        SET(work->cost[in], work->infinite);
        for (uint32_t i = at; i < tree->walk_count; i++) {
            size_t from = (size_t)tree->walk[i] * room + other, to = (size_t)other * room + tree->walk[i];

            if (LESS(work->cost[from], work->cost[out])) {
                SET(work->cost[out], work->cost[from]);
                tree->edge[out] = tree->edge[from];
            }
            if (LESS(work->cost[to], work->cost[in])) {
                SET(work->cost[in], work->cost[to]);
                tree->edge[in] = tree->edge[to];
            }
        }
    }
    tree->alive[merged] = true;
    tree->parent[merged] = BY_SERIES_NONE;
    tree->walk[at] = merged;
    tree->walk_count = at + 1;
}

/* Takes the cheapest edge out of a node, and reduces the costs of all by its cost. Returns the node
 * at its end, or BY_SERIES_NONE. */
static uint32_t NAMED(take_edge)(struct by_arborescence *tree, struct NAMED(sets) * work, uint32_t node)
{
    NUMBER *out = work->cost + (size_t)node * tree->room;
    uint32_t to = BY_SERIES_NONE;
    NUMBER_NEW(least);

    SET(least, work->infinite);
    for (uint32_t i = 0; i < tree->count; i++)
        if (i != node && tree->alive[i] && LESS(out[i], least)) {
            SET(least, out[i]);
            to = i;
        }
    for (uint32_t i = 0; i < tree->count && to != BY_SERIES_NONE; i++)
        if (i != node && tree->alive[i] && LESS(out[i], work->infinite))
            TAKE(out[i], least);
    if (to != BY_SERIES_NONE) {
        SUM(work->total, work->total, least);
        tree->chosen[node] = tree->edge[(size_t)node * tree->room + to];
    }
    NUMBER_DROP(least);
    return to;
}

/* Walks along cheapest edges from `start` to a node that is connected to the root. */
static bool NAMED(connect)(struct by_arborescence *tree, struct NAMED(sets) * work, uint32_t start)
{
    tree->walk[0] = start;
    tree->walk_count = 1;
    for (;;) {
        uint32_t to = NAMED(take_edge)(tree, work, tree->walk[tree->walk_count - 1]), at = 0;

        if (to == BY_SERIES_NONE)
            return false;
        if (tree->connected[to])
            break;
        while (at < tree->walk_count && tree->walk[at] != to)
            at++;
        if (at < tree->walk_count)
            NAMED(merge)(tree, work, at);
        else
            tree->walk[tree->walk_count++] = to;
    }
    for (uint32_t i = 0; i < tree->walk_count; i++)
        tree->connected[tree->walk[i]] = true;
    return true;
}

/* Sets up the arborescence of the members: node 0 is the root, one edge leads to it. Starts the
 * total with the cheapest ways of the values that are not combined where they are. */
static bool NAMED(set_members)(struct by_tree_pricer *pricer, struct NAMED(sets) * work)
{
    struct by_arborescence *tree = &pricer->tree;
    uint32_t n = pricer->node_count, room = tree->room;

    by_arborescence_start(tree);
    SET(work->total, work->many);
    TAKE(work->total, work->many);
    for (uint32_t i = 1; i < tree->count; i++) {
        uint32_t from = pricer->places[tree->members[i]];

        SET(work->cost[(size_t)i * room], work->leave[tree->members[i]]);
        for (uint32_t j = 1; j < tree->count; j++)
            SET(work->cost[(size_t)i * room + j], work->enter[(size_t)tree->members[j] * n + from]);
    }
    for (uint32_t d = 0; d < pricer->value_count; d++) {
        const NUMBER *least = &work->infinite;

        if (pricer->computes[pricer->holders[d]])
            continue;
        for (uint32_t i = 1; i < tree->count; i++) {
            const NUMBER *enter = &work->enter[(size_t)tree->members[i] * n + pricer->holders[d]];

            if (LESS(*enter, *least)) {
                least = enter;
                tree->entered[d] = tree->members[i];
            }
        }
        if (least == &work->infinite)
            return false;
        SUM(work->total, work->total, *least);
    }
    return true;
}

/* Prices moves with what follows them; the result moves to the target once, since a second time
 * costs `many`. */
static void NAMED(set_moves)(struct by_tree_pricer *pricer, struct NAMED(costs) * costs, NUMBER *distance,
                             struct NAMED(sets) * work)
{
    uint32_t n = pricer->node_count;
    NUMBER_NEW(task);

    SET(work->many, costs->unit);
    for (uint32_t p = 0; p < pricer->place_count; p++) {
        NAMED(task_cost)(pricer, costs, pricer->places[p], 0, &task);
        for (uint32_t i = 0; i < n; i++) {
            NUMBER *enter = &work->enter[(size_t)p * n + i];

            SET(*enter, costs->infinite);
            if (!LESS(distance[(size_t)p * n + i], costs->infinite))
                continue;
            PRODUCT(*enter, distance[(size_t)p * n + i], costs->size[0]);
            SUM(*enter, *enter, task);
            SUM(work->many, work->many, *enter);
        }
    }
    for (uint32_t p = 0; p < pricer->place_count; p++) {
        NUMBER *leave = &distance[(size_t)pricer->target * n + pricer->places[p]];

        SET(work->leave[p], costs->infinite);
        if (!LESS(*leave, costs->infinite))
            continue;
        PRODUCT(work->leave[p], *leave, costs->size[0]);
        SUM(work->leave[p], work->leave[p], work->many);
    }
    NUMBER_DROP(task);
}

/* Fills the pricer's `sends_to` and `entered`. */
static bool NAMED(find_set)(struct by_tree_pricer *pricer, struct NAMED(costs) * costs, NUMBER *distance)
{
    struct by_arborescence *tree = &pricer->tree;
    size_t cells = (size_t)pricer->place_count * pricer->node_count, edges = (size_t)tree->room * tree->room;
    struct NAMED(sets) work = {.enter = NAMED(numbers_new)(cells),
                               .leave = NAMED(numbers_new)(pricer->place_count),
                               .cost = NAMED(numbers_new)(edges)};
    bool found = false;

    NUMBER_INIT(work.many);
    NUMBER_INIT(work.infinite);
    NUMBER_INIT(work.total);
    NUMBER_INIT(work.best);
    SET(work.infinite, costs->infinite);
    NAMED(set_moves)(pricer, costs, distance, &work);
    for (uint32_t set = 0; set < UINT32_C(1) << pricer->optional_count; set++) {
        bool right;

        by_arborescence_choose(pricer, set);
        right = NAMED(set_members)(pricer, &work);
        for (uint32_t i = 1, last = tree->count; i < last && right; i++)
            right = tree->connected[i] || tree->parent[i] != BY_SERIES_NONE || NAMED(connect)(tree, &work, i);
        if (!right || (found && !LESS(work.total, work.best)))
            continue;
        SET(work.best, work.total);
        found = true;
        by_arborescence_keep(pricer);
    }
    NUMBER_CLEAR(work.many);
    NUMBER_CLEAR(work.infinite);
    NUMBER_CLEAR(work.total);
    NUMBER_CLEAR(work.best);
    NAMED(numbers_free)(work.enter, cells);
    NAMED(numbers_free)(work.leave, pricer->place_count);
    NAMED(numbers_free)(work.cost, edges);
    return found;
}

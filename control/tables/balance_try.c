/*
 * Distributions of trees over parallel cables. See balance_try.h.
 *
 * The trees that join two nodes are items to be packed into the cables between these nodes: whole
 * ones by best fit, and what fits no cable is cut where a cable is full, as in McNaughton's rule
 * for preemptive scheduling (Management Science 6, 1959). So the cables between two nodes cause at
 * most one cut fewer than there are cables, for each direction. A cut divides the tree as a whole:
 * the other cables of the tree are chosen for each part. Cables are taken in the order of their
 * load, so that the parts of a tree that is cut at one place fit the next place without a further
 * cut on regular fabrics.
 */
#include "control/tables/balance_try.h"

#include <string.h>

#include "control/base/alloc.h"
#include "offload/base/assert.h"
#include "offload/base/limits.h"

/* An item of a piece that has no cable yet. */
struct balance_entry {
    uint32_t piece, item;
    int64_t units;
};

/* Adds what a tree needs at its nodes to `places`, or takes it back. Returns whether all nodes of
 * the tree then have at most `most`. */
static bool change_places(struct by_laid_tree *tree, bool adds, uint32_t most, uint32_t *places)
{
    bool fits = true;

    for (unsigned half = 0; half < 2; half++) {
        const struct by_hops *hops = by_balance_half(tree, half);

        for (uint32_t i = 0; i < hops->count; i++) {
            uint32_t *place = &places[hops->hop[i].node];
            uint32_t need = hops->hop[i].child_count > 0 ? 1 + by_image_sets(hops->hop[i].child_count) : 0;

            *place = adds ? *place + need : *place - need;
            fits = fits && (need == 0 || *place <= most);
        }
    }
    return fits;
}

bool by_balance_places(struct by_laid_tree *tree, uint32_t most, uint32_t *places)
{
    bool fits = change_places(tree, true, most, places);

    if (!fits)
        change_places(tree, false, most, places);
    return fits;
}

/* Splits `units` off a piece, as a new one. Returns false if the limits do not allow it. */
static bool split(const struct by_balance_work *work, struct by_balance_try *attempt, uint32_t piece,
                  int64_t units)
{
    uint32_t tree = attempt->pieces[piece].tree, items = by_balance_items(work, tree);
    struct by_laid_tree *laid = &work->laid->trees[tree];
    struct by_balance_piece *made;

    if (!attempt->splits || attempt->trees + 2 > BY_TREES_MAX ||
        !by_balance_places(laid, BY_BALANCE_PLACES_MAX, attempt->places))
        return false;
    attempt->trees += laid->down.count > 0 ? 2 : 1;
    BY_GROW(attempt->pieces, attempt->count, attempt->room);
    made = &attempt->pieces[attempt->count];
    *made = (struct by_balance_piece){tree, attempt->pieces[piece].next, units,
                                      by_alloc(items, sizeof(*made->cable))};
    memcpy(made->cable, attempt->pieces[piece].cable, items * sizeof(*made->cable));
    attempt->pieces[piece].next = attempt->count++;
    attempt->pieces[piece].units -= units;
    return true;
}

/* Bandwidth that a cable has left for an item; negative if it lacks the arcs. */
static int64_t room_of(const struct by_balance_work *work, const struct by_balance_try *attempt,
                       uint32_t link, unsigned ways)
{
    int64_t least = INT64_MAX;

    for (unsigned way = BY_WAY_OUT; way <= BY_WAY_BACK; way++) {
        uint32_t arc = by_balance_arc(work->map->topology, link, way);
        __int128 room;

        if (!(ways & way))
            continue;
        if (arc == BY_BALANCE_NONE)
            return -1;
        room = (__int128)work->limit[arc] * attempt->num / attempt->den - attempt->load[arc];
        least = room < least ? (int64_t)(room > 0 ? room : 0) : least;
    }
    return least;
}

/*
 * Returns the cable with the least sufficient room, or else with the most; of equal ones the one
 * with the lowest number of its link. `*room` is its room.
 */
static uint32_t find_cable(const struct by_balance_work *work, const struct by_balance_try *attempt,
                           const struct by_balance_group *group, unsigned ways, int64_t units, int64_t *room)
{
    uint32_t best = BY_BALANCE_NONE;

    for (uint32_t i = 0; i < group->count; i++) {
        uint32_t link = work->links[group->first + i];
        int64_t here = room_of(work, attempt, link, ways);
        bool fits = here >= units;

        if (here < 0)
            continue;
        if (best == BY_BALANCE_NONE || (fits && (*room < units || here < *room)) || (!fits && here > *room)) {
            best = link;
            *room = here;
        }
    }
    BY_ASSERT(best != BY_BALANCE_NONE); /* the item has a cable now */
    return best;
}

/* Returns the cable with the arcs of an item that is relatively least loaded with it. */
static uint32_t find_least(const struct by_balance_work *work, const struct by_balance_try *attempt,
                           const struct by_balance_group *group, unsigned ways, int64_t units)
{
    uint32_t best = BY_BALANCE_NONE;
    int64_t best_load = 0, best_limit = 1;

    for (uint32_t i = 0; i < group->count; i++) {
        uint32_t link = work->links[group->first + i];
        int64_t load = 0, limit = 1;

        if (room_of(work, attempt, link, ways) < 0)
            continue;
        for (unsigned way = BY_WAY_OUT; way <= BY_WAY_BACK; way++) {
            uint32_t arc = by_balance_arc(work->map->topology, link, way);

            if ((ways & way) &&
                by_balance_fuller(attempt->load[arc] + units, work->limit[arc], load, limit)) {
                load = attempt->load[arc] + units;
                limit = work->limit[arc];
            }
        }
        if (best == BY_BALANCE_NONE || by_balance_fuller(best_load, best_limit, load, limit)) {
            best = link;
            best_load = load;
            best_limit = limit;
        }
    }
    return best;
}

/* Heavy items first. */
static int order_entries(const void *a, const void *b)
{
    const struct balance_entry *x = a, *y = b;

    if (x->units != y->units)
        return x->units > y->units ? -1 : 1;
    if (x->piece != y->piece)
        return x->piece < y->piece ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* Lists the items of a group with the given ways. */
static struct balance_entry *list_entries(const struct by_balance_work *work,
                                          const struct by_balance_try *attempt, uint32_t group, unsigned ways,
                                          uint32_t *count, uint32_t *room)
{
    struct balance_entry *entries = NULL;

    *count = *room = 0;
    for (uint32_t u = work->group_first[group]; u < work->group_first[group + 1]; u++) {
        struct by_balance_user user = work->users[u];

        if (by_balance_item(work, user.tree, user.item)->ways != ways)
            continue;
        for (uint32_t p = user.tree; p != BY_BALANCE_NONE; p = attempt->pieces[p].next) {
            BY_GROW(entries, *count, *room);
            entries[(*count)++] = (struct balance_entry){p, user.item, attempt->pieces[p].units};
        }
    }
    if (*count > 0)
        qsort(entries, *count, sizeof(*entries), order_entries);
    return entries;
}

/*
 * Distributes the items of a group that use the cables in the given ways. An item whose piece is
 * split while it waits becomes two items.
 */
static void fill_group(const struct by_balance_work *work, struct by_balance_try *attempt, uint32_t index,
                       unsigned ways)
{
    const struct by_balance_group *group = &work->groups[index];
    uint32_t count, room, kept = 0;
    struct balance_entry *entries = list_entries(work, attempt, index, ways, &count, &room);

    for (uint32_t e = 0; e < count; e++) { /* whole ones, by best fit */
        struct balance_entry *entry = &entries[e];
        int64_t left = 0;
        uint32_t link = find_cable(work, attempt, group, ways, entry->units, &left);

        if (left < entry->units) {
            entries[kept++] = *entry;
            continue;
        }
        attempt->pieces[entry->piece].cable[entry->item] = link;
        by_balance_load(work, attempt->load, link, ways, entry->units);
    }
    count = kept;
    for (uint32_t e = 0; e < count; e++) {
        struct balance_entry entry = entries[e];
        int64_t left = 0, units = attempt->pieces[entry.piece].units;
        uint32_t link = find_cable(work, attempt, group, ways, units, &left);

        if (left < units && left > 0 && split(work, attempt, entry.piece, units - left)) {
            uint32_t waiting = count;

            for (uint32_t other = e; other < waiting; other++)
                if (entries[other].piece == entry.piece) {
                    BY_GROW(entries, count, room);
                    entries[count++] = (struct balance_entry){attempt->count - 1, entries[other].item, 0};
                }
            units = left;
        } else if (left < units) {
            link = find_least(work, attempt, group, ways, units);
        }
        attempt->pieces[entry.piece].cable[entry.item] = link;
        by_balance_load(work, attempt->load, link, ways, units);
    }
    free(entries);
}

static void make_try(const struct by_balance_work *work, const struct by_balance_use *use,
                     struct by_balance_try *attempt)
{
    const struct by_topology *topology = work->map->topology;

    attempt->count = attempt->room = work->laid->count;
    attempt->pieces = by_alloc(attempt->room, sizeof(*attempt->pieces));
    attempt->load = by_alloc(topology->arc_count, sizeof(*attempt->load));
    attempt->places = by_alloc(topology->node_count, sizeof(*attempt->places));
    attempt->trees = use->trees;
    memcpy(attempt->load, work->fixed, topology->arc_count * sizeof(*attempt->load));
    memcpy(attempt->places, use->places, topology->node_count * sizeof(*attempt->places));
    for (uint32_t t = 0; t < work->laid->count; t++)
        attempt->pieces[t] = (struct by_balance_piece){t, BY_BALANCE_NONE, work->units[t],
                                                       by_alloc(by_balance_items(work, t), sizeof(uint32_t))};
    for (uint32_t i = 0; i < work->crowded; i++) {
        /* Items of both ways first: they need room for both on one cable. */
        fill_group(work, attempt, work->order[i], BY_WAY_OUT | BY_WAY_BACK);
        fill_group(work, attempt, work->order[i], BY_WAY_OUT);
        fill_group(work, attempt, work->order[i], BY_WAY_BACK);
    }
}

void by_balance_try_free(struct by_balance_try *attempt)
{
    for (uint32_t p = 0; p < attempt->count; p++)
        free(attempt->pieces[p].cable);
    free(attempt->pieces);
    free(attempt->load);
    free(attempt->places);
    *attempt = (struct by_balance_try){0};
}

void by_balance_try_all(const struct by_balance_work *work, const struct by_balance_use *use,
                        struct by_balance_try *best, struct by_fraction *part)
{
    static const struct {
        bool splits;
        int64_t num, den;
    } tries[] = {{false, 1, 1},  {true, 1, 1},   {true, 129, 128}, {true, 65, 64},
                 {true, 33, 32}, {true, 17, 16}, {true, 9, 8},     {true, 5, 4}};

    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        struct by_balance_try attempt = {.splits = tries[i].splits, .num = tries[i].num, .den = tries[i].den};
        struct by_fraction reached;

        if (by_fraction_compare(*part, (struct by_fraction){tries[i].den, tries[i].num}) >= 0)
            break; /* no later one is better */
        make_try(work, use, &attempt);
        reached = by_balance_part(work, attempt.load);
        if (by_fraction_compare(reached, *part) > 0) {
            struct by_balance_try other = *best;

            *best = attempt;
            attempt = other;
            *part = reached;
        }
        by_balance_try_free(&attempt);
    }
}

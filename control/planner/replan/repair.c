/* Moves branches. See repair.h. */
#include "control/planner/replan/repair.h"

#include "control/base/alloc.h"
#include "control/base/clock.h"
#include "control/planner/replan/repair_work.h"

/* Branches that may overload links until others have left (count). */
#define FORCED_MAX 256u

/* Branches of a tree that are broken up because they have no place (count), and their children. */
#define BREAKS_MAX 4u
#define KIDS_MAX   16u

/* Trees that overload another link in the place of one that they cannot leave otherwise (count). */
#define PUSHES_MAX 32u

/* Trees may be so much higher than the old ones (hops): the detour over one more host. */
#define HIGHER_HOPS 2u

/* Splits `amount` from tree `number`, which is being repaired, into a copy at the end of the list.
 * The copy's loose branches are attached when the copy is processed. */
static void split(struct repair_work *work, struct by_repaired_list *trees, uint32_t number, int64_t amount)
{
    struct by_repaired copy = trees->trees[number];

    copy.amount = amount;
    copy.copy = true;
    by_repair_write(work, &copy);
    trees->trees[number].amount -= amount;
    work->amount -= amount;
    BY_GROW(trees->trees, trees->count, trees->room);
    trees->trees[trees->count++] = copy;
}

/* By how much the links that the tree must leave are overloaded, at most. */
static int64_t overload(const struct repair_work *work, const struct by_repaired *tree)
{
    const struct by_repair *repair = work->repair;
    int64_t most = 0;

    for (uint32_t e = 0; e < tree->edge_count; e++) {
        uint32_t path = tree->edges[e];

        if (path < work->unfit_count && !(work->unfit[path] >> tree->use & 1))
            continue;
        for (uint32_t i = repair->paths.start[path] + 1; i < repair->paths.start[path + 1]; i++) {
            int64_t room =
                repair->half[i] == UINT32_MAX ? 0 : by_repair_room(repair, tree->use, repair->half[i]);

            most = -room > most ? -room : most;
        }
    }
    return most;
}

/* Leaves `amount` of the tree as it was before the repair, as a copy at the end of the list, and
 * repairs the rest again. */
static void split_as_it_was(struct repair_work *work, struct by_repaired_list *trees, uint32_t number,
                            int64_t amount)
{
    struct by_repaired copy;

    by_repair_undo(work, &trees->trees[number]);
    copy = trees->trees[number];
    copy.amount = amount;
    copy.copy = true;
    trees->trees[number].amount -= amount;
    BY_GROW(trees->trees, trees->count, trees->room);
    trees->trees[trees->count++] = copy;
    by_repair_read(work, &trees->trees[number], true);
    by_repair_prune(work);
}

/* Returns the tree, and what split_as_it_was() left of it since the list had `count` trees, to one
 * tree as it was. */
static void join_as_it_was(struct repair_work *work, struct by_repaired_list *trees, uint32_t number,
                           uint32_t count)
{
    by_repair_undo(work, &trees->trees[number]);
    while (trees->count > count)
        trees->trees[number].amount += trees->trees[--trees->count].amount;
}

/* Notes the first link of the path without room for the branch, which is not to return to it. */
static bool leave(struct repair_work *work, uint32_t path)
{
    const struct by_repair *repair = work->repair;

    for (uint32_t i = repair->paths.start[path] + 1; i < repair->paths.start[path + 1]; i++) {
        uint32_t half = repair->half[i];

        if (half == UINT32_MAX || by_repair_room(repair, work->use, half) >= work->amount)
            continue;
        work->full_halves[work->push_count++ % BY_REPAIR_PUSHES_KEPT] = half;
        return true;
    }
    return false;
}

/* Attaches the first loose branch although there is no room for it: in the pass that removes
 * overloads where it was, else where it overloads the fewest links. */
static bool hang_anyhow(struct repair_work *work, bool overloads)
{
    for (uint32_t i = 0; i < work->loose_count; i++) {
        uint32_t loose = work->loose[i], was = work->was[loose];
        bool push = work->pushes && was != UINT32_MAX && leave(work, was);

        if (!overloads || push) {
            struct repair_place place = by_repair_force(work, loose);

            if (place.amount >= work->amount && ++work->forced <= FORCED_MAX)
                by_repair_hang(work, loose, &place);
            else if (!overloads && work->forced > FORCED_MAX)
                return false;
            else if (push)
                work->push_count--;
        }
        if (work->path[loose] == BY_REPAIR_LOOSE && (!overloads || !by_repair_put_back(work, loose)))
            continue;
        work->loose[i] = work->loose[--work->loose_count];
        return true;
    }
    return false;
}

/* Detaches the branches below the first node of a loose branch. */
static bool break_up(struct repair_work *work, uint32_t *breaks)
{
    for (uint32_t i = 0; *breaks > 0 && i < work->loose_count; i++) {
        uint32_t node = work->loose[i];

        if (work->kids[node] == 0 || work->kids[node] > KIDS_MAX)
            continue;
        by_repair_list(work);
        while (work->kids[node] > 0) {
            uint32_t child = work->first_child[node];

            by_repair_take_off(work, child);
            work->loose[work->loose_count++] = child;
        }
        work->simple = false;
        --*breaks;
        return true;
    }
    return false;
}

/* Attaches every loose branch of the tree in work. A branch without a place may find one below
 * another branch once that is attached. A tree is split only when no branch can be attached whole.
 */
static bool hang_all(struct repair_work *work, struct by_repaired_list *trees, uint32_t number,
                     bool overloads, int64_t lack)
{
    uint32_t breaks = BREAKS_MAX;

    while (work->loose_count > 0) {
        struct repair_place part = {.amount = 0};
        uint32_t part_at = 0, left = 0, count = work->loose_count;

        for (uint32_t i = 0; i < count; i++) {
            struct repair_place place = by_repair_find(work, work->loose[i]);

            if (place.amount == work->amount) {
                by_repair_hang(work, work->loose[i], &place);
                continue;
            }
            part_at = place.amount > part.amount ? left : part_at;
            part = place.amount > part.amount ? place : part;
            work->loose[left++] = work->loose[i];
        }
        work->loose_count = left;
        if (left < count || left == 0)
            continue;
        if (overloads && !work->repair->keep_parents && break_up(work, &breaks))
            continue;
        if (part.amount == 0) {
            if (!hang_anyhow(work, overloads))
                return false;
            continue;
        }
        if (overloads && trees->count >= work->trees_max)
            return false;
        if (overloads) {
            split_as_it_was(work, trees, number, work->amount - (lack < work->amount ? lack : part.amount));
            breaks = BREAKS_MAX;
            continue;
        }
        split(work, trees, number, work->amount - part.amount);
        by_repair_hang(work, work->loose[part_at], &part);
        work->loose[part_at] = work->loose[--work->loose_count];
    }
    return true;
}

/* Marks paths that use an overloaded link: by path, one bit for each use. */
static void mark_overloads(struct repair_work *work)
{
    const struct by_repair *repair = work->repair;

    work->unfit_count = repair->paths.count;
    work->unfit = by_alloc(work->unfit_count, sizeof(*work->unfit));
    for (uint32_t p = 0; p < work->unfit_count; p++) {
        work->unfit[p] = repair->path[p].broken; /* of copies, whose turn is yet to come */
        for (enum by_tree_use use = BY_TREE_BOTH; use <= BY_TREE_DOWN && repair->carried[p] > 0; use++)
            if (repair->uses >> use & 1 && by_repair_is_overloaded(repair, use, p))
                work->unfit[p] |= (uint8_t)(1 << use);
    }
}

/* Whether some edge of the tree may have to go. */
static bool is_unfit(const struct repair_work *work, const struct by_repaired *tree, bool overloads)
{
    uint8_t unfit = 0;

    if (!overloads)
        return tree->unfit || tree->copy || work->repair->fresh_node;
    for (uint32_t e = 0; e < tree->edge_count; e++)
        unfit |= tree->edges[e] < work->unfit_count ? work->unfit[tree->edges[e]] : 0xff;
    return unfit >> tree->use & 1;
}

/* Whether the repaired tree is better than before, when links were overloaded by `excess`. */
static bool is_gain(const struct repair_work *work, int64_t excess, bool split, uint32_t pushed)
{
    int64_t now = work->repair->excess;

    if (work->push_count > pushed)
        return now <= excess;
    return !split || now < excess;
}

/* One pass over all trees: lost links in the first pass, overloads in the second. Overloads are
 * evaluated as they are at that moment, so that few branches move. */
static bool pass(struct repair_work *work, struct by_repaired_list *trees, bool overloads)
{
    uint32_t first_count = trees->count;
    bool right = true, late = false;

    if (overloads)
        mark_overloads(work);
    for (uint32_t k = 0; k < trees->count && right && !late;
         k++) { /* copies are appended, and processed last */
        uint32_t i = work->repair->backwards && k < first_count ? first_count - 1 - k : k, count;
        uint32_t pushed;
        int64_t lack, excess;

        if (overloads && work->repair->over == 0 && k < first_count)
            continue; /* nothing is left to do but the copies */
        if (!is_unfit(work, &trees->trees[i], overloads))
            continue;
        if (!overloads && by_repair_move_leaf(work, &trees->trees[i]))
            continue;
        lack = overloads ? overload(work, &trees->trees[i]) : 0;
        excess = overloads ? work->repair->excess : INT64_MAX;
        pushed = work->push_count;
        count = trees->count;
        by_repair_read(work, &trees->trees[i], overloads);
        if (work->loose_count == 0 && !work->changed)
            continue;
        by_repair_prune(work);
        right =
            hang_all(work, trees, i, overloads, lack) && is_gain(work, excess, trees->count > count, pushed);
        if (!right && overloads) { /* it stays as it was; others may leave */
            join_as_it_was(work, trees, i, count);
            work->push_count = pushed;
            right = true;
            continue;
        }
        if (!right)
            break;
        work->pushes &= work->push_count == pushed; /* one in each pass */
        by_repair_prune(work);
        by_repair_write(work, &trees->trees[i]);
        late = by_plan_late(work->repair->deadline);
    }
    free(work->unfit);
    work->unfit = NULL;
    work->unfit_count = 0;
    return right && !late;
}

/* Passes over the trees until no link is overloaded. Where a pass gains nothing, a branch may push
 * others off a full link in the next one. */
static bool remove_overloads(struct by_repair *repair, struct by_repaired_list *trees)
{
    struct repair_work *work = repair->work;
    int64_t least = INT64_MAX;
    uint32_t pushes = 0;
    bool right = true;

    while (right && repair->excess > 0) {
        bool gains = repair->excess < least;

        least = gains ? repair->excess : least;
        if (!gains && (pushes++ == PUSHES_MAX || repair->keep_parents))
            return false;
        work->pushes = !gains;
        right = pass(work, trees, true);
    }
    work->pushes = false;
    return right;
}

bool by_repair(struct by_repair *repair, struct by_repaired_list *trees)
{
    uint32_t limit;
    bool right;

    by_repair_reset(repair);
    right = pass(repair->work, trees, false);
    repair->work->trees_max = trees->count + trees->count / 32 + 4;
    if (!right || !remove_overloads(repair, trees))
        return false;
    limit = repair->work->height / 4 > HIGHER_HOPS ? repair->work->height / 4 : HIGHER_HOPS;
    limit += repair->work->height;
    limit = limit > repair->low_hops ? limit : repair->low_hops;
    repair->low = true;
    for (uint32_t i = 0; i < trees->count && !by_plan_late(repair->deadline); i++)
        if (trees->trees[i].high > limit)
            by_repair_lower(repair->work, &trees->trees[i], limit);
    repair->high = false;
    for (uint32_t i = 0; i < trees->count; i++)
        repair->high |=
            2 * trees->trees[i].high > 3 * repair->work->height && trees->trees[i].high > repair->high_hops;
    return true;
}

/* Distributes the trees of a plan over parallel cables. See balance.h. */
#include "control/tables/balance_try.h"

#include <string.h>

#include "control/base/alloc.h"
#include "offload/base/assert.h"
#include "offload/base/limits.h"
#include "offload/wire/types.h"

static void copy_steps(struct by_hop_step **steps, uint32_t count)
{
    struct by_hop_step *copy = by_alloc(count, sizeof(*copy));

    if (count > 0)
        memcpy(copy, *steps, count * sizeof(*copy));
    *steps = copy;
}

static struct by_hops copy_hops(const struct by_hops *hops)
{
    struct by_hops copy = {hops->count, NULL};

    if (hops->count == 0)
        return copy;
    copy.hop = by_alloc(hops->count, sizeof(*copy.hop));
    memcpy(copy.hop, hops->hop, hops->count * sizeof(*copy.hop));
    for (uint32_t i = 0; i < copy.count; i++) {
        copy_steps(&copy.hop[i].down, copy.hop[i].down_count);
        copy_steps(&copy.hop[i].up, copy.hop[i].up_count);
    }
    return copy;
}

/*
 * Whether both directions of a hop use the same cables. Otherwise they share those at its ends
 * only.
 */
static bool is_mirrored(const struct by_hop *hop)
{
    if (hop->up_count != hop->down_count)
        return false;
    for (uint32_t i = 0; i < hop->down_count; i++)
        if (hop->down[i].link != hop->up[hop->up_count - 1 - i].link)
            return false;
    return true;
}

/* Writes the cables of a piece into its tree. */
static void write_cables(const struct by_balance_work *work, const struct by_balance_piece *piece,
                         struct by_laid_tree *tree)
{
    for (uint32_t i = 0; i < by_balance_items(work, piece->tree); i++) {
        const struct by_balance_item *item = by_balance_item(work, piece->tree, i);
        struct by_hop *hop = &by_balance_half(tree, item->half)->hop[item->hop];
        bool up = by_balance_flow(tree, item->half) == BY_FLOW_UP, mirrored = is_mirrored(hop);
        struct by_hop_step *data = up ? hop->up : hop->down, *other = up ? hop->down : hop->up;
        uint32_t last = (up ? hop->up_count : hop->down_count) - 1;
        uint32_t other_last = (up ? hop->down_count : hop->up_count) - 1;

        data[item->step].link = piece->cable[i];
        if (mirrored || item->step == 0)
            other[other_last - item->step].link = piece->cable[i];
        else if (item->step == last)
            other[0].link = piece->cable[i];
    }
}

static void apply(const struct by_balance_work *work, const struct by_balance_try *attempt)
{
    struct by_laid_trees *laid = work->laid;
    uint32_t whole_count = laid->count;
    mpz_t value;

    mpz_init(value);
    for (uint32_t p = 0; p < attempt->count; p++) {
        const struct by_balance_piece *piece = &attempt->pieces[p];
        struct by_laid_tree *whole = &laid->trees[piece->tree], *tree = whole;

        if (p >= whole_count) {
            BY_GROW(laid->trees, laid->count, laid->room);
            whole = &laid->trees[piece->tree];
            tree = &laid->trees[laid->count++];
            *tree = *whole;
            tree->hops = copy_hops(&whole->hops);
            tree->down = copy_hops(&whole->down);
            mpq_init(tree->weight);
            mpz_set_si(value, piece->units);
            mpz_mul_2exp(mpq_numref(tree->weight), value, work->shift);
            mpz_set(mpq_denref(tree->weight), work->common);
            mpq_canonicalize(tree->weight);
            mpq_sub(whole->weight, whole->weight, tree->weight);
        }
        write_cables(work, piece, tree);
    }
    mpz_clear(value);
}

/* Adds what the trees need that are not split. */
static void note_use(struct by_laid_trees *laid, struct by_balance_use *use)
{
    for (uint32_t t = 0; t < laid->count; t++) {
        (void)by_balance_places(&laid->trees[t], UINT32_MAX, use->places);
        use->trees += laid->trees[t].down.count > 0 ? 2 : 1;
    }
}

/* Whether the cables of a group differ by direction. */
static bool is_lopsided(const struct by_balance_work *work, const struct by_balance_group *group)
{
    for (uint32_t i = 0; i < group->count; i++) {
        uint32_t out = by_balance_arc(work->map->topology, work->links[group->first + i], BY_WAY_OUT);
        uint32_t back = by_balance_arc(work->map->topology, work->links[group->first + i], BY_WAY_BACK);

        if (out == BY_BALANCE_NONE || back == BY_BALANCE_NONE || work->limit[out] != work->limit[back])
            return true;
    }
    return false;
}

/*
 * Makes pairs of trees that carry data in both directions over crowded cables whose directions
 * differ: the tree up and the tree down may then use different cables. `made` (by tree) receives
 * which. Returns whether there are any.
 */
static bool make_pairs(const struct by_balance_work *work, struct by_balance_use *use, bool *made)
{
    bool any = false;

    for (uint32_t t = 0; t < work->laid->count; t++) {
        struct by_laid_tree *tree = &work->laid->trees[t];
        bool helps = false;

        for (uint32_t i = 0; i < by_balance_items(work, t) && !helps; i++)
            helps = is_lopsided(work, &work->groups[by_balance_item(work, t, i)->group]);
        if (!helps || tree->down.count > 0 || tree->collectives != 1u << BY_COLLECTIVE_ALLREDUCE ||
            tree->flow != BY_FLOW_BOTH || use->trees + 1 > BY_TREES_MAX ||
            !by_balance_places(tree, BY_BALANCE_PLACES_MAX, use->places))
            continue;
        tree->down = copy_hops(&tree->hops);
        use->trees++;
        made[t] = any = true;
    }
    return any;
}

static void unmake_pairs(struct by_laid_trees *laid, const bool *made)
{
    for (uint32_t t = 0; t < laid->count; t++)
        if (made[t])
            by_hops_free(&laid->trees[t].down);
}

static struct by_balance_use copy_use(const struct by_balance_use *use, uint32_t node_count)
{
    struct by_balance_use copy = {use->trees, by_alloc(node_count, sizeof(*copy.places))};

    memcpy(copy.places, use->places, node_count * sizeof(*copy.places));
    return copy;
}

/* Applies a distribution. `use` is that of the trees without splits. */
static void take(const struct by_balance_work *work, const struct by_balance_try *best,
                 struct by_balance_use *use, struct by_balance_facts *facts)
{
    if (best->count == 0)
        return;
    facts->split = best->count - work->laid->count;
    memcpy(use->places, best->places, work->map->topology->node_count * sizeof(*use->places));
    use->trees = best->trees;
    apply(work, best);
}

void by_balance(const struct by_address_map *map, struct by_laid_trees *laid, struct by_balance_use *use,
                struct by_balance_facts *facts)
{
    struct by_balance_work whole = {.map = map, .laid = laid}, paired = whole;
    struct by_balance_try best = {0}, best_paired = {0};
    uint32_t whole_count = laid->count;
    bool *made = by_alloc(laid->count, sizeof(*made));

    *facts = (struct by_balance_facts){.part = {1, 1}};
    mpz_init(whole.common);
    mpz_init(paired.common);
    note_use(laid, use);
    if (by_balance_groups(&whole) > 0) {
        struct by_balance_use other = copy_use(use, map->topology->node_count);
        struct by_fraction part = {0, 1};

        facts->part = by_balance_read(&whole);
        by_balance_try_all(&whole, use, &best, &facts->part);
        if (facts->part.num < facts->part.den && make_pairs(&whole, &other, made)) {
            (void)by_balance_groups(&paired);
            part = by_balance_read(&paired);
            by_balance_try_all(&paired, &other, &best_paired, &part);
        }
        if (by_fraction_compare(part, facts->part) > 0) {
            facts->part = part;
            use->trees = other.trees;
            memcpy(use->places, other.places, map->topology->node_count * sizeof(*use->places));
            take(&paired, &best_paired, use, facts);
        } else {
            unmake_pairs(laid, made);
            take(&whole, &best, use, facts);
        }
        free(other.places);
    }
    BY_ASSERT(laid->count == whole_count + facts->split);
    free(made);
    by_balance_try_free(&best);
    by_balance_try_free(&best_paired);
    by_balance_release(&whole);
    by_balance_release(&paired);
}

/*
 * Reads the trees of a plan and the parallel cables that they use, as integers. See
 * balance_items.h.
 */
#include "control/tables/balance_items.h"

#include <string.h>

#include "control/base/alloc.h"

/* The weights of a plan are integers whose sum has at most this size (bits): no load of a cable
 * exceeds 63 bits, even if a tree passes it at each of its nodes. */
#define UNITS_BITS 46u

/* Finds the nodes with several cables between them. Returns the number of such pairs. */
uint32_t by_balance_groups(struct by_balance_work *work)
{
    const struct by_topology *topology = work->map->topology;
    uint32_t *last = by_alloc(topology->node_count, sizeof(*last)); /* by peer: link + 1 */
    uint32_t *next = by_alloc(topology->link_count, sizeof(*next)); /* link + 1 of the same peer */
    uint32_t used = 0, room = 0;

    work->group_of = by_alloc(topology->link_count, sizeof(*work->group_of));
    work->links = by_alloc(topology->link_count, sizeof(*work->links));
    memset(work->group_of, 0xff, topology->link_count * sizeof(*work->group_of));
    for (uint32_t node = 0; node < topology->node_count; node++) {
        for (uint32_t port = work->map->port_count[node]; port-- > 0;) {
            uint32_t link = by_address_link(work->map, node, port);
            uint32_t peer = by_address_peer(topology, link, node);

            if (peer < node || (work->map->lost_links && work->map->lost_links[link]))
                continue;
            next[link] = last[peer];
            last[peer] = link + 1;
        }
        for (uint32_t port = 0; port < work->map->port_count[node]; port++) {
            uint32_t peer = by_address_peer(topology, by_address_link(work->map, node, port), node);
            uint32_t first = last[peer];

            last[peer] = 0;
            if (first == 0 || next[first - 1] == 0)
                continue;
            BY_GROW(work->groups, work->group_count, room);
            work->groups[work->group_count] = (struct by_balance_group){.first = used};
            for (uint32_t link = first; link != 0; link = next[link - 1]) {
                work->links[used++] = link - 1;
                work->group_of[link - 1] = work->group_count;
            }
            work->groups[work->group_count].count = used - work->groups[work->group_count].first;
            work->group_count++;
        }
    }
    free(last);
    free(next);
    return work->group_count;
}

/* Converts a number of 1/scale to units, rounded down. */
static int64_t units_of(const struct by_balance_work *work, mpz_srcptr number, mpz_srcptr scale)
{
    mpz_t value;
    int64_t units = INT64_MAX / 4;

    mpz_init(value);
    mpz_mul(value, work->common, number);
    mpz_tdiv_q(value, value, scale);
    mpz_tdiv_q_2exp(value, value, work->shift);
    if (mpz_cmp_si(value, INT64_MAX / 4) < 0)
        units = mpz_get_si(value);
    mpz_clear(value);
    return units;
}

/*
 * Converts weights and bandwidths to integers: exactly if their common denominator is small enough,
 * else rounded down.
 */
static void set_units(struct by_balance_work *work)
{
    const struct by_topology *topology = work->map->topology;
    mpz_t value, scale;
    mpq_t sum;

    mpz_inits(value, scale, NULL);
    mpq_init(sum);
    mpz_set_si(scale, topology->scale);
    mpz_set(work->common, scale);
    for (uint32_t i = 0; i < work->laid->count; i++) {
        mpz_lcm(work->common, work->common, mpq_denref(work->laid->trees[i].weight));
        mpq_add(sum, sum, work->laid->trees[i].weight);
    }
    mpz_mul(value, work->common, mpq_numref(sum));
    mpz_tdiv_q(value, value, mpq_denref(sum));
    work->shift = mpz_sizeinbase(value, 2) > UNITS_BITS ? mpz_sizeinbase(value, 2) - UNITS_BITS : 0;
    work->units = by_alloc(work->laid->count, sizeof(*work->units));
    for (uint32_t i = 0; i < work->laid->count; i++)
        work->units[i] =
            units_of(work, mpq_numref(work->laid->trees[i].weight), mpq_denref(work->laid->trees[i].weight));
    work->limit = by_alloc(topology->arc_count, sizeof(*work->limit));
    for (uint32_t i = 0; i < topology->arc_count; i++) {
        if (work->group_of[topology->arcs[i].link] == BY_BALANCE_NONE)
            continue;
        mpz_set_si(value, topology->arcs[i].capacity);
        work->limit[i] = units_of(work, value, scale);
    }
    mpz_clears(value, scale, NULL);
    mpq_clear(sum);
}

typedef void visit_fn(struct by_balance_work *work, uint32_t tree, struct by_balance_item item,
                      uint32_t link);

/* Calls `visit` for each use of a cable that has parallel ones. */
static void visit_items(struct by_balance_work *work, uint32_t tree, visit_fn *visit)
{
    struct by_laid_tree *laid = &work->laid->trees[tree];

    for (unsigned half = 0; half < 2; half++) {
        struct by_hops *hops = by_balance_half(laid, half);
        enum by_table_flow flow = by_balance_flow(laid, half);

        for (uint32_t i = 1; i < hops->count; i++) {
            const struct by_hop *hop = &hops->hop[i];
            const struct by_hop_step *steps = flow == BY_FLOW_UP ? hop->up : hop->down;
            uint32_t count = flow == BY_FLOW_UP ? hop->up_count : hop->down_count;
            uint32_t from = flow == BY_FLOW_UP ? hop->node : hop->parent;

            for (uint32_t s = 0; s < count; from = steps[s++].to) {
                unsigned ways = flow == BY_FLOW_BOTH ? BY_WAY_OUT | BY_WAY_BACK
                                : from < steps[s].to ? BY_WAY_OUT
                                                     : BY_WAY_BACK;
                struct by_balance_item item = {work->group_of[steps[s].link], i, s, (uint8_t)half,
                                               (uint8_t)ways};

                if (item.group != BY_BALANCE_NONE)
                    visit(work, tree, item, steps[s].link);
            }
        }
    }
}

void by_balance_load(const struct by_balance_work *work, int64_t *load, uint32_t link, unsigned ways,
                     int64_t units)
{
    for (unsigned way = BY_WAY_OUT; way <= BY_WAY_BACK; way++)
        if (ways & way)
            load[by_balance_arc(work->map->topology, link, way)] += units;
}

static void load_item(struct by_balance_work *work, uint32_t tree, struct by_balance_item item, uint32_t link)
{
    by_balance_load(work, work->fixed, link, item.ways, work->units[tree]);
}

static void count_item(struct by_balance_work *work, uint32_t tree, struct by_balance_item item,
                       uint32_t link)
{
    if (!work->groups[item.group].crowded)
        return;
    by_balance_load(work, work->fixed, link, item.ways, -work->units[tree]);
    work->first[tree + 1]++;
}

static void take_item(struct by_balance_work *work, uint32_t tree, struct by_balance_item item, uint32_t link)
{
    (void)link;
    if (work->groups[item.group].crowded)
        work->items[work->first[tree]++] = item;
}

struct by_fraction by_balance_part(const struct by_balance_work *work, const int64_t *load)
{
    const struct by_topology *topology = work->map->topology;
    struct by_fraction part = {1, 1};

    for (uint32_t i = 0; i < topology->arc_count; i++) {
        struct by_fraction here;

        if (work->group_of[topology->arcs[i].link] == BY_BALANCE_NONE || load[i] <= work->limit[i])
            continue;
        if (by_fraction_set(work->limit[i], load[i], &here) == 0 && by_fraction_compare(here, part) < 0)
            part = here;
    }
    return part;
}

/* Notes crowded groups, sorted by the load of all their cables together. */
static void find_crowded(struct by_balance_work *work)
{
    const struct by_topology *topology = work->map->topology;
    int64_t(*sums)[2] = by_alloc(work->group_count, sizeof(*sums)); /* load, bandwidth */

    work->order = by_alloc(work->group_count, sizeof(*work->order));
    for (uint32_t g = 0; g < work->group_count; g++) {
        struct by_balance_group *group = &work->groups[g];
        uint32_t place;

        for (unsigned way = BY_WAY_OUT; way <= BY_WAY_BACK; way++) {
            int64_t load = 0, limit = 0;

            for (uint32_t i = 0; i < group->count; i++) {
                uint32_t arc = by_balance_arc(topology, work->links[group->first + i], way);

                if (arc == BY_BALANCE_NONE)
                    continue;
                group->crowded |= work->fixed[arc] > work->limit[arc];
                load += work->fixed[arc];
                limit += work->limit[arc] < INT64_MAX / 4 - limit ? work->limit[arc] : 0;
            }
            if (limit > 0 && (sums[g][1] == 0 || by_balance_fuller(load, limit, sums[g][0], sums[g][1]))) {
                sums[g][0] = load;
                sums[g][1] = limit;
            }
        }
        if (!group->crowded)
            continue;
        for (place = work->crowded++;
             place > 0 && by_balance_fuller(sums[g][0], sums[g][1], sums[work->order[place - 1]][0],
                                            sums[work->order[place - 1]][1]);
             place--)
            work->order[place] = work->order[place - 1];
        work->order[place] = g;
    }
    free(sums);
}

static void find_items(struct by_balance_work *work)
{
    uint32_t count = work->laid->count;

    work->first = by_alloc((size_t)count + 1, sizeof(*work->first));
    for (uint32_t t = 0; t < count; t++)
        visit_items(work, t, count_item);
    for (uint32_t t = 0; t < count; t++)
        work->first[t + 1] += work->first[t];
    work->items = by_alloc(work->first[count], sizeof(*work->items));
    for (uint32_t t = 0; t < count; t++)
        visit_items(work, t, take_item);
    for (uint32_t t = count; t > 0; t--)
        work->first[t] = work->first[t - 1];
    work->first[0] = 0;
}

/* Lists the items of each group. */
static void find_users(struct by_balance_work *work)
{
    uint32_t count = work->laid->count;

    work->group_first = by_alloc((size_t)work->group_count + 1, sizeof(uint32_t));
    work->users = by_alloc(work->first[count], sizeof(*work->users));
    for (uint32_t i = 0; i < work->first[count]; i++)
        work->group_first[work->items[i].group + 1]++;
    for (uint32_t g = 0; g < work->group_count; g++)
        work->group_first[g + 1] += work->group_first[g];
    for (uint32_t t = 0; t < count; t++)
        for (uint32_t i = work->first[t]; i < work->first[t + 1]; i++)
            work->users[work->group_first[work->items[i].group]++] =
                (struct by_balance_user){t, i - work->first[t]};
    for (uint32_t g = work->group_count; g > 0; g--)
        work->group_first[g] = work->group_first[g - 1];
    work->group_first[0] = 0;
}

struct by_fraction by_balance_read(struct by_balance_work *work)
{
    struct by_fraction part;

    set_units(work);
    work->fixed = by_alloc(work->map->topology->arc_count, sizeof(*work->fixed));
    for (uint32_t t = 0; t < work->laid->count; t++)
        visit_items(work, t, load_item);
    part = by_balance_part(work, work->fixed);
    find_crowded(work);
    if (work->crowded > 0) {
        find_items(work);
        find_users(work);
    }
    return part;
}

void by_balance_release(struct by_balance_work *work)
{
    free(work->groups);
    free(work->links);
    free(work->group_of);
    free(work->limit);
    free(work->units);
    free(work->first);
    free(work->items);
    free(work->group_first);
    free(work->users);
    free(work->fixed);
    free(work->order);
    mpz_clear(work->common);
}

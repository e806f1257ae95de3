/*
 * Trees on parallel cables: moved or split so that no cable carries more than its bandwidth. The
 * loads are computed from the lowered trees and their shares. Single-threaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/tables/balance.h"
#include "offload/base/prng.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

static struct by_lowering *lower(const struct by_topology *topology, unsigned collective,
                                 const char *const *trees)
{
    struct by_plan *plan =
        bench_plan(topology, collective, by_collective_is_rooted(collective) ? "h0" : NULL, trees);
    struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};
    struct bench_images images;

    if (by_lower(topology, &job, 1, &(struct by_lower_options){.bare = 1}, &lowering, &problem) != 0)
        fail_msg("%s", problem.text);
    bench_plan_free(plan);
    images = bench_images(lowering);
    assert_true(bench_walk(&images) > 0);
    bench_images_free(&images);
    return lowering;
}

static void add_way(const struct by_topology *topology, uint32_t from, const struct by_hop_step *way,
                    uint32_t count, uint64_t share, uint64_t (*loads)[2])
{
    for (uint32_t i = 0; i < count; i++) {
        loads[way[i].link][topology->links[way[i].link].a != from] += share;
        from = way[i].to;
    }
}

/* Returns the load of each link by direction, and the sum of all shares. Data run as in an
 * allreduce, or only down. The caller frees it. */
static uint64_t (*loads_of(const struct by_lowering *lowering, bool down_only, uint64_t *total))[2]
{
    const struct by_topology *topology = lowering->topology;
    uint64_t(*loads)[2] = by_alloc(topology->link_count, sizeof(*loads));

    *total = 0;
    for (uint32_t i = 0; i < lowering->tree_count; i++) {
        const struct by_lowered_tree *tree = &lowering->trees[i];

        *total += tree->half == BY_HALF_DOWN ? 0 : tree->share;
        for (uint32_t j = 1; j < tree->hop_count; j++) {
            const struct by_hop *hop = &tree->hops[j];

            if (tree->half != BY_HALF_UP)
                add_way(topology, hop->parent, hop->down, hop->down_count, tree->share, loads);
            if (tree->half != BY_HALF_DOWN && !down_only)
                add_way(topology, hop->node, hop->up, hop->up_count, tree->share, loads);
        }
    }
    return loads;
}

/*
 * Fails if a link, all of which have a bandwidth of 10, is overloaded at a rate of num/den. Data
 * run as in an allreduce, or only down.
 */
static void check_loads(const struct by_lowering *lowering, bool down_only, uint64_t num, uint64_t den)
{
    const struct by_topology *topology = lowering->topology;
    uint64_t total, (*loads)[2] = loads_of(lowering, down_only, &total);

    /* load / total * num / den <= 10 */
    for (uint32_t i = 0; i < topology->link_count; i++)
        for (unsigned way = 0; way < 2; way++)
            if ((unsigned __int128)loads[i][way] * num > (unsigned __int128)10 * total * den)
                fail_msg("link %u carries %llu of %llu at a rate of %llu/%llu", i,
                         (unsigned long long)loads[i][way], (unsigned long long)total,
                         (unsigned long long)num, (unsigned long long)den);
    free(loads);
}

/* Fails unless these trees become so many that the links reach the planned rate, 20. */
static void check_whole(const char *nodes, const char *links, unsigned collective, const char *const *trees,
                        uint32_t tree_count, bool down_only)
{
    struct by_topology *topology = bench_topology(nodes, links);
    struct by_lowering *lowering = lower(topology, collective, trees);

    assert_int_equal(lowering->tree_count, tree_count);
    assert_int_equal(lowering->part.num, lowering->part.den);
    check_loads(lowering, down_only, 20, 1);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void a_tree_wider_than_a_cable_is_split(void **state)
{
    static const char *const trees[] = {"20 h0: h0>h1", NULL};
    struct by_topology *topology = bench_topology("h0 h1", "h0-h1 h0-h1");
    struct by_lowering *lowering = lower(topology, BY_COLLECTIVE_ALLREDUCE, trees);

    (void)state;
    assert_int_equal(lowering->tree_count, 2);
    assert_int_equal(lowering->trees[0].share, lowering->trees[1].share);
    assert_int_equal(lowering->part.num, lowering->part.den);
    assert_non_null(strstr(lowering->notes[0], "1 allreduce tree is split"));
    /* Of cables with as much room, the first in the file is taken. */
    assert_int_equal(lowering->trees[0].hops[1].down[0].link, 0);
    assert_int_equal(lowering->trees[1].hops[1].down[0].link, 1);
    check_loads(lowering, false, 20, 1);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void a_tree_is_split_at_one_place_for_all_of_its_cables(void **state)
{
    static const char *const trees[] = {"20 h0: h0>s0>h1 h1>s0>h2 h2>h3", NULL};

    (void)state;
    check_whole("h0 h1 h2 h3 s0", "h0-s0 h0-s0 h1-s0 h1-s0 h1-s0 h1-s0 h2-s0 h2-s0 h2-h3 h2-h3",
                BY_COLLECTIVE_BROADCAST, trees, 2, true);
}

static void three_equal_trees_on_two_cables_need_one_split(void **state)
{
    static const char *const trees[] = {"20/3 h0: h0>h1 h1>h2", "20/3 h1: h1>h0 h1>h2",
                                        "20/3 h2: h2>h1 h1>h0", NULL};

    (void)state;
    check_whole("h0 h1 h2", "h0-h1 h1-h0 h1-h2 h1-h2", BY_COLLECTIVE_ALLREDUCE, trees, 4, false);
}

static void trees_that_fit_whole_on_other_cables_are_moved(void **state)
{
    /* in this order, the least loaded cables are those with 9 and 11 */
    static const char *const trees[] = {"5 h0: h0>s0>h1 h1>h2", "6 h0: h0>s1>h1 h1>h2",
                                        "4 h0: h0>s2>h1 h1>h2", "5 h0: h0>s3>h1 h1>h2", NULL};

    (void)state;
    check_whole("h0 h1 h2 s0 s1 s2 s3", "h0-s0 s0-h1 h0-s1 s1-h1 h0-s2 s2-h1 h0-s3 s3-h1 h1-h2 h1-h2",
                BY_COLLECTIVE_ALLREDUCE, trees, 4, false);
}

static void both_trees_of_a_pair_are_split(void **state)
{
    static const char *const trees[] = {"20 up h0: h0>h1 h1>h2", "20 down h0: h0>h1 h0>h2", NULL};

    (void)state;
    check_whole("h0 h1 h2", "h0-h1 h0-h1 h1-h2 h1-h2 h2-h0 h2-h0", BY_COLLECTIVE_ALLREDUCE, trees, 4, false);
}

static void the_part_is_stated_where_no_more_trees_may_be_split(void **state)
{
    enum { SMALL = BY_BALANCE_PLACES_MAX };
    const char *trees[SMALL + 2] = {"15 h0: h0>h1"};
    char text[64];
    struct by_topology *topology = bench_topology("h0 h1", "h0-h1 h0-h1");
    struct by_lowering *lowering;

    (void)state;
    snprintf(text, sizeof(text), "5/%u h0: h0>h1", SMALL);
    for (unsigned i = 1; i <= SMALL; i++)
        trees[i] = text;
    lowering = lower(topology, BY_COLLECTIVE_ALLREDUCE, trees);
    assert_int_equal(lowering->tree_count, 2);
    assert_int_equal(lowering->part.num, 2);
    assert_int_equal(lowering->part.den, 3);
    assert_non_null(strstr(lowering->notes[0], "reach 2/3 (0.6667) of their rate"));
    check_loads(lowering, false, 40, 3);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

/* Small trees that may not be split, and that do not fit, go where they load a cable least in
 * relation to its bandwidth: 45 on one of 30, and 15 on one of 10. */
static void too_many_trees_are_divided_by_the_bandwidth_of_cables(void **state)
{
    enum { SMALL = BY_BALANCE_PLACES_MAX };
    const char *trees[SMALL + 2] = {"30 h0: h0>h1"};
    char text[64];
    struct by_topology *topology = bench_topology("h0 h1", "h0-h1 h0-h1");
    struct by_lowering *lowering;

    (void)state;
    topology->arcs[topology->links[0].arc_ab].capacity = 30;
    topology->arcs[topology->links[0].arc_ba].capacity = 30;
    snprintf(text, sizeof(text), "30/%u h0: h0>h1", SMALL);
    for (unsigned i = 1; i <= SMALL; i++)
        trees[i] = text;
    lowering = lower(topology, BY_COLLECTIVE_ALLREDUCE, trees);
    assert_in_range(lowering->part.num * 1000 / lowering->part.den, 660, 667);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

/* The common denominator of these weights, 20/3 each but for their last digits, has 93 bits: they
 * are rounded down to the precision of the units, and the cables are still filled. */
static void weights_without_a_small_denominator_are_rounded(void **state)
{
    static const char *const trees[] = {"14316557646/2147483647 h0: h0>h1",
                                        "14316557526/2147483629 h0: h0>h1",
                                        "14316557246/2147483587 h0: h0>h1", NULL};
    struct by_topology *topology = bench_topology("h0 h1", "h0-h1 h0-h1");
    struct by_lowering *lowering = lower(topology, BY_COLLECTIVE_ALLREDUCE, trees);

    (void)state;
    assert_int_equal(lowering->part.num, lowering->part.den);
    check_loads(lowering, false, 19999, 1000);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

/* Of cables with as much room, the first one takes a tree. The tree of 3 takes the first cable,
 * ten of the twelve fill the second, the first empty one, and the other two go where the least
 * sufficient room is. */
static void equal_cables_are_filled_from_the_first(void **state)
{
    static const char *const trees[] = {"12 h0: h0>h1", "3 h1: h1>h0", NULL};
    static const struct {
        uint32_t part, link; /* of 15 */
    } expected[] = {{3, 0}, {10, 1}, {2, 0}};
    struct by_topology *topology = bench_topology("h0 h1", "h0-h1 h0-h1 h0-h1");
    struct by_lowering *lowering = lower(topology, BY_COLLECTIVE_ALLREDUCE, trees);
    uint64_t total = 0;

    (void)state;
    assert_int_equal(lowering->tree_count, 3);
    for (uint32_t i = 0; i < 3; i++)
        total += lowering->trees[i].share;
    for (uint32_t e = 0; e < 3; e++) {
        bool found = false;

        for (uint32_t i = 0; i < 3; i++)
            found |= lowering->trees[i].share * 15 == expected[e].part * total &&
                     lowering->trees[i].hops[1].down[0].link == expected[e].link;
        if (!found)
            fail_msg("no tree of %u/15 on link %u", expected[e].part, expected[e].link);
    }
    by_lowering_free(lowering);
    by_topology_free(topology);
}

/* A tree of 15 whose directions fit on different cables alone becomes a pair; the tree beside it,
 * on other links, stays one tree. */
static void only_a_tree_on_cables_with_unequal_directions_becomes_a_pair(void **state)
{
    static const char *const trees[] = {"5 h2: h2>h0 h2>h1", "15 h0: h0>h1 h1>h2", NULL};
    struct by_topology *topology = bench_topology("h0 h1 h2", "h0-h1 h0-h1 h1-h2 h2-h0");
    static const int64_t capacity[4][2] = {{15, 1}, {1, 15}, {20, 20}, {20, 20}};
    struct by_lowering *lowering;
    uint32_t halves[3] = {0};

    (void)state;
    for (uint32_t l = 0; l < 4; l++) {
        topology->arcs[topology->links[l].arc_ab].capacity = capacity[l][0];
        topology->arcs[topology->links[l].arc_ba].capacity = capacity[l][1];
    }
    lowering = lower(topology, BY_COLLECTIVE_ALLREDUCE, trees);
    for (uint32_t i = 0; i < lowering->tree_count; i++)
        halves[lowering->trees[i].half]++;
    assert_int_equal(lowering->tree_count, 3);
    assert_int_equal(halves[BY_HALF_NONE], 1);
    assert_int_equal(halves[BY_HALF_UP], 1);
    assert_int_equal(halves[BY_HALF_DOWN], 1);
    assert_int_equal(lowering->part.num, lowering->part.den);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

/* The way back has as many cables as the way out, and others: those between a0 and y change for the
 * data alone. */
static void a_way_back_by_other_nodes_keeps_its_cables(void **state)
{
    static const char *const trees[] = {"20 h0: h0>a0>y>a1>h1", NULL};
    static const uint32_t up[] = {4, 5, 6, 0};
    struct by_topology *topology = bench_topology("h0 h1 a0 a1 y z", "h0-a0 a0>y a0>y y>a1 a1-h1 a1>z z>a0");
    struct by_lowering *lowering = lower(topology, BY_COLLECTIVE_BROADCAST, trees);

    (void)state;
    assert_int_equal(lowering->tree_count, 2);
    assert_int_not_equal(lowering->trees[0].hops[1].down[1].link, lowering->trees[1].hops[1].down[1].link);
    for (uint32_t t = 0; t < 2; t++) {
        assert_int_equal(lowering->trees[t].hops[1].up_count, 4);
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(lowering->trees[t].hops[1].up[i].link, up[i]);
    }
    by_lowering_free(lowering);
    by_topology_free(topology);
}

/* Trees up and down that are the same become one tree, whose data down exceed each cable. */
static void a_pair_of_equal_trees_is_balanced_in_both_directions(void **state)
{
    static const char *const trees[] = {"20 up h0: h0>h1", "20 down h0: h0>h1", NULL};
    struct by_topology *topology = bench_topology("h0 h1", "h0-h1 h0-h1");
    struct by_lowering *lowering;

    (void)state;
    for (uint32_t link = 0; link < 2; link++)
        topology->arcs[topology->links[link].arc_ba].capacity = 20;
    lowering = lower(topology, BY_COLLECTIVE_ALLREDUCE, trees);
    assert_int_equal(lowering->part.num, lowering->part.den);
    check_loads(lowering, true, 20, 1);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void a_lost_cable_carries_nothing(void **state)
{
    static const char *const text[] = {"20 h0: h0>h1", NULL};
    static const bool lost[] = {false, true, false};
    struct by_topology *topology = bench_topology("h0 h1", "h0-h1 h0-h1 h0-h1");
    struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, text);
    struct by_lower_job job = {
        .job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan, .lost_links = lost};
    struct by_lowering *lowering;
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(by_lower(topology, &job, 1, &(struct by_lower_options){0}, &lowering, &problem), 0);
    assert_int_equal(lowering->tree_count, 2);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_not_equal(lowering->trees[i].hops[1].down[0].link, 1);
    check_loads(lowering, false, 20, 1);
    by_lowering_free(lowering);
    bench_plan_free(plan);
    by_topology_free(topology);
}

/* Random trees on a ring of three hosts with several cables between each two, full to the last
 * unit: always exact. */
static void random_trees_that_fill_all_cables_reach_the_rate(void **state)
{
    static const char *const shapes[] = {"h0: h0>h1 h1>h2", "h1: h1>h2 h2>h0", "h2: h2>h0 h0>h1"};

    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct by_prng prng = {seed};
        uint32_t cables = 2 + (uint32_t)by_prng_below(&prng, 3), count = 0;
        /* each shape uses two of three sides, so each may carry half of what a side carries */
        char links[200] = "", text[64][64];
        const char *trees[64];
        struct by_topology *topology;
        struct by_lowering *lowering;

        for (uint32_t i = 0; i < cables; i++)
            strcat(links, "h0-h1 h1-h2 h2-h0 ");
        for (uint32_t shape = 0; shape < 3; shape++) {
            uint32_t left = 420; /* parts of the shape's weight, 5 * cables */

            while (left > 0) {
                uint32_t part = count % 20 == 19 ? left : 1 + (uint32_t)by_prng_below(&prng, left);

                snprintf(text[count], sizeof(text[count]), "%u/420 %s", part * 5 * cables, shapes[shape]);
                trees[count] = text[count];
                count++;
                left -= part;
            }
        }
        trees[count] = NULL;
        topology = bench_topology("h0 h1 h2", links);
        lowering = lower(topology, BY_COLLECTIVE_ALLREDUCE, trees);
        if (lowering->part.num != lowering->part.den)
            fail_msg("seed %llu: %lld/%lld", (unsigned long long)seed, (long long)lowering->part.num,
                     (long long)lowering->part.den);
        check_loads(lowering, false, 15ull * cables, 1);
        by_lowering_free(lowering);
        by_topology_free(topology);
    }
}

/* Returns the part of a planned rate that the cables carry, at most 1. */
static struct by_fraction part_of(const struct by_lowering *lowering, int64_t rate)
{
    const struct by_topology *topology = lowering->topology;
    struct by_fraction part = {1, 1}, here;
    uint64_t total, (*loads)[2] = loads_of(lowering, false, &total);

    for (uint32_t i = 0; i < topology->link_count; i++)
        for (unsigned way = 0; way < 2; way++) {
            const struct by_link *link = &topology->links[i];
            __int128 limit = topology->arcs[way ? link->arc_ba : link->arc_ab].capacity;

            if (loads[i][way] == 0)
                continue;
            /* a cable carries load / total of the rate */
            assert_int_equal(by_fraction_set(limit * total, (__int128)loads[i][way] * rate, &here), 0);
            if (by_fraction_compare(here, part) < 0)
                part = here;
        }
    free(loads);
    return part;
}

enum { SIDES = 5, SHAPES = 5, TREES = 10 };

/* Divides the bandwidth among the cables of a side, in one direction, each at least 1. */
static void divide(const struct by_topology *topology, struct by_prng *prng, uint32_t first, uint32_t count,
                   bool back, int64_t left)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct by_link *link = &topology->links[first + i];
        int64_t most = left - (count - 1 - i);
        int64_t part = i + 1 < count ? 1 + (int64_t)by_prng_below(prng, (uint64_t)most) : left;

        topology->arcs[back ? link->arc_ba : link->arc_ab].capacity = part;
        left -= part;
    }
}

/*
 * Random trees on cables of any bandwidths; in half of the seeds a cable has others for each
 * direction. Where the cables of each side have together what the trees need, they carry it, else
 * the part that is stated is that of the fullest cable.
 */
static void unequal_cables_carry_what_they_can(void **state)
{
    static const char *const sides[SIDES] = {"h0-s0 ", "h1-s0 ", "s0-s1 ", "h2-s1 ", "h1-h2 "};
    static const struct {
        const char *tree;
        uint32_t uses[SIDES];
    } shapes[SHAPES] = {{"h0: h0>s0>h1 h1>h2", {1, 1, 0, 0, 1}},
                        {"h0: h0>s0>h1 h0>s0>s1>h2", {2, 1, 1, 1, 0}},
                        {"h2: h2>s1>s0>h0 h2>h1", {1, 0, 1, 1, 1}},
                        {"h1: h1>s0>h0 h1>h2", {1, 1, 0, 0, 1}},
                        {"h1: h1>h2 h2>s1>s0>h0", {1, 0, 1, 1, 1}}};
    unsigned less = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct by_prng prng = {seed};
        char links[200] = "", text[TREES][64];
        uint32_t count = 1 + (uint32_t)by_prng_below(&prng, TREES), cables[SIDES], first = 0;
        const char *trees[TREES + 1] = {NULL};
        int64_t rate = 0, need[SIDES] = {0};
        struct by_topology *topology;
        struct by_lowering *lowering;
        struct by_fraction part;
        bool tight = seed % 4 < 2; /* parallel cables have too little */

        for (uint32_t i = 0; i < count; i++) {
            unsigned weight = 3 + (unsigned)by_prng_below(&prng, 12);
            uint64_t shape = by_prng_below(&prng, SHAPES);

            snprintf(text[i], sizeof(text[i]), "%u %s", weight, shapes[shape].tree);
            trees[i] = text[i];
            rate += weight;
            for (uint32_t side = 0; side < SIDES; side++)
                need[side] += weight * shapes[shape].uses[side];
        }
        for (uint32_t side = 0; side < SIDES; side++) {
            cables[side] = 1 + (uint32_t)by_prng_below(&prng, 3);
            for (uint32_t i = 0; i < cables[side]; i++)
                strcat(links, sides[side]);
        }
        topology = bench_topology("h0 h1 h2 s0 s1", links);
        for (uint32_t side = 0; side < SIDES; first += cables[side++]) {
            struct by_prng same = prng;
            int64_t bandwidth = need[side] == 0             ? 10
                                : tight && cables[side] > 1 ? (3 * need[side] + 3) / 4
                                                            : need[side];

            divide(topology, &prng, first, cables[side], false, bandwidth);
            divide(topology, seed % 2 ? &same : &prng, first, cables[side], true, bandwidth);
        }
        lowering = lower(topology, BY_COLLECTIVE_ALLREDUCE, trees);
        part = part_of(lowering, rate);
        if (by_fraction_compare(part, lowering->part) != 0 || (!tight && part.num < part.den))
            fail_msg("seed %llu: %lld/%lld instead of %lld/%lld", (unsigned long long)seed,
                     (long long)lowering->part.num, (long long)lowering->part.den, (long long)part.num,
                     (long long)part.den);
        less += part.num < part.den;
        by_lowering_free(lowering);
        by_topology_free(topology);
    }
    assert_in_range(less, 150, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_wider_than_a_cable_is_split),
        cmocka_unit_test(a_tree_is_split_at_one_place_for_all_of_its_cables),
        cmocka_unit_test(three_equal_trees_on_two_cables_need_one_split),
        cmocka_unit_test(trees_that_fit_whole_on_other_cables_are_moved),
        cmocka_unit_test(both_trees_of_a_pair_are_split),
        cmocka_unit_test(the_part_is_stated_where_no_more_trees_may_be_split),
        cmocka_unit_test(too_many_trees_are_divided_by_the_bandwidth_of_cables),
        cmocka_unit_test(weights_without_a_small_denominator_are_rounded),
        cmocka_unit_test(equal_cables_are_filled_from_the_first),
        cmocka_unit_test(only_a_tree_on_cables_with_unequal_directions_becomes_a_pair),
        cmocka_unit_test(a_lost_cable_carries_nothing),
        cmocka_unit_test(unequal_cables_carry_what_they_can),
        cmocka_unit_test(random_trees_that_fill_all_cables_reach_the_rate),
        cmocka_unit_test(a_way_back_by_other_nodes_keeps_its_cables),
        cmocka_unit_test(a_pair_of_equal_trees_is_balanced_in_both_directions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

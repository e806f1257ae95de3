/*
 * Trees on parallel cables, of all plans of a job: splits and pairs are made while no node is in
 * more trees of the job than the limit; the part that the cables allow is the least of all plans;
 * and the other direction of a path follows its cables. Single-threaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/tables/balance.h"
#include "control/tables/balance_items.h"
#include "offload/base/limits.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

#define PLANS_MAX 4
#define LIMIT     BY_BALANCE_PLACES_MAX

/* A plan of `count` equal trees. */
struct job_plan {
    unsigned collective;
    const char *root;
    uint32_t count, weight; /* of all trees together */
    const char *tree;
};

static struct by_plan *plan_of(const struct by_topology *topology, const struct job_plan *plan)
{
    static const char *trees[LIMIT + 2];
    char text[200];

    snprintf(text, sizeof(text), "%u/%u %s", plan->weight, plan->count, plan->tree);
    assert_in_range(plan->count, 1, LIMIT + 1);
    for (uint32_t i = 0; i < plan->count; i++)
        trees[i] = text;
    trees[plan->count] = NULL;
    return bench_plan(topology, plan->collective, plan->root, trees);
}

/* Lowers a job of these plans. */
static struct by_lowering *lower(const struct by_topology *topology, const struct job_plan *plans,
                                 uint32_t count)
{
    struct by_plan *made[PLANS_MAX];
    struct by_lower_job job = {.job = 1, .plan_count = count, .plans = (const struct by_plan *const *)made};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};
    struct bench_images images;

    assert_in_range(count, 1, PLANS_MAX);
    for (uint32_t i = 0; i < count; i++)
        made[i] = plan_of(topology, &plans[i]);
    if (by_lower(topology, &job, 1, &(struct by_lower_options){.bare = 1}, &lowering, &problem) != 0)
        fail_msg("%s", problem.text);
    for (uint32_t i = 0; i < count; i++)
        bench_plan_free(made[i]);
    images = bench_images(lowering);
    assert_true(bench_walk(&images) > 0);
    bench_images_free(&images);
    return lowering;
}

static uint32_t notes_with(const struct by_lowering *lowering, const char *text)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < lowering->note_count; i++)
        count += strstr(lowering->notes[i], text) != NULL;
    return count;
}

static uint32_t halves_of(const struct by_lowering *lowering)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < lowering->tree_count; i++)
        count += lowering->trees[i].half != BY_HALF_NONE;
    return count;
}

static void expect_part(const struct by_lowering *lowering, int64_t num, int64_t den)
{
    if (lowering->part.num != num || lowering->part.den != den)
        fail_msg("a part of %lld/%lld instead of %lld/%lld", (long long)lowering->part.num,
                 (long long)lowering->part.den, (long long)num, (long long)den);
}

/* Small trees of another plan, and two trees that are wider than a cable: each split needs a
 * further place at the root, h0. */
static void a_tree_is_split_while_its_nodes_are_in_few_trees_of_the_job(void **state)
{
    static const struct {
        uint32_t small, splits;
    } rows[] = {{1, 2}, {LIMIT - 4, 2}, {LIMIT - 3, 1}, {LIMIT - 2, 1}, {LIMIT - 1, 0}, {LIMIT, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct job_plan plans[] = {
            {BY_COLLECTIVE_BROADCAST, "h0", rows[i].small, 1, "h0: h0>h1"},
            {BY_COLLECTIVE_ALLREDUCE, NULL, 1, 20, "h0: h0>h1"},
            {BY_COLLECTIVE_REDUCE, "h0", 1, 20, "h0: h0>h1"},
            {BY_COLLECTIVE_BROADCAST, "h1", 1, 1, "h1: h1>h0"}, /* reaches its rate */
        };
        struct by_topology *topology = bench_topology("h0 h1", "h0-h1 h0-h1");
        struct by_lowering *lowering = lower(topology, plans, 4);

        assert_int_equal(notes_with(lowering, "tree is split between parallel cables"), rows[i].splits);
        assert_int_equal(notes_with(lowering, "reach 1/2 (0.5000) of their rate"), 2 - rows[i].splits);
        expect_part(lowering, 1, rows[i].splits == 2 ? 1 : 2);
        by_lowering_free(lowering);
        by_topology_free(topology);
    }
}

/* The limit counts at each inner node, here at the second host of a chain. */
static void the_limit_holds_at_each_node_that_adds_or_copies(void **state)
{
    (void)state;
    for (uint32_t more = 0; more < 2; more++) {
        const struct job_plan plans[] = {
            {BY_COLLECTIVE_BROADCAST, "h2", LIMIT - 2 + more, 1, "h2: h2>h1 h1>h0"},
            {BY_COLLECTIVE_ALLREDUCE, NULL, 1, 20, "h0: h0>h1 h1>h2"},
        };
        struct by_topology *topology = bench_topology("h0 h1 h2", "h0-h1 h0-h1 h1-h2 h1-h2");
        struct by_lowering *lowering = lower(topology, plans, 2);

        expect_part(lowering, 1, more ? 2 : 1);
        by_lowering_free(lowering);
        by_topology_free(topology);
    }
}

/* Leaves of a tree need no place, and a split that is refused takes none. */
static void nodes_without_children_and_refused_splits_take_no_place(void **state)
{
    const struct job_plan leaf[] = {{BY_COLLECTIVE_BROADCAST, "h1", LIMIT, 1, "h1: h1>h0"},
                                    {BY_COLLECTIVE_ALLREDUCE, NULL, 1, 20, "h0: h0>h1"}};
    static const char *const wide[] = {"1200 h0: h0>h1 h1>h2", "2000 h0: h0>h1 h0>h2", NULL};
    const struct job_plan small[] = {{BY_COLLECTIVE_BROADCAST, "h1", LIMIT - 1, 1, "h1: h1>h0 h1>h2"},
                                     {BY_COLLECTIVE_BROADCAST, "h0", LIMIT - 3, 1, "h0: h0>h1 h0>h2"}};
    struct by_topology *topology = bench_topology("h0 h1", "h0-h1 h0-h1");
    struct by_lowering *lowering = lower(topology, leaf, 2);
    struct by_plan *plans[3];
    struct by_lower_job job = {.job = 1, .plan_count = 3, .plans = (const struct by_plan *const *)plans};
    struct by_problem problem = {0};

    (void)state;
    expect_part(lowering, 1, 1);
    by_lowering_free(lowering);
    by_topology_free(topology);

    /* The tree of 1200 cannot be split at h1, and exceeds each cable to h2; that of 2000 is split
     * at h0, afterwards, because its cables are less full. */
    topology = bench_topology("h0 h1 h2", "h0-h1 h0-h1 h0-h2 h0-h2 h1-h2 h1-h2");
    for (uint32_t link = 0; link < 6; link++) {
        static const int64_t capacity[6] = {2400, 2400, 1000, 1100, 1100, 100};

        topology->arcs[topology->links[link].arc_ab].capacity = capacity[link];
        topology->arcs[topology->links[link].arc_ba].capacity = capacity[link];
    }
    plans[0] = plan_of(topology, &small[0]);
    plans[1] = plan_of(topology, &small[1]);
    plans[2] = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, wide);
    if (by_lower(topology, &job, 1, &(struct by_lower_options){.bare = 1}, &lowering, &problem) != 0)
        fail_msg("%s", problem.text);
    assert_int_equal(notes_with(lowering, "1 allreduce tree is split"), 1);
    expect_part(lowering, 11, 12);
    by_lowering_free(lowering);
    for (uint32_t i = 0; i < 3; i++)
        bench_plan_free(plans[i]);
    by_topology_free(topology);
}

static void several_splits_are_told_as_such(void **state)
{
    const struct job_plan plan = {BY_COLLECTIVE_ALLREDUCE, NULL, 1, 30, "h0: h0>h1"};
    struct by_topology *topology = bench_topology("h0 h1", "h0-h1 h0-h1 h0-h1");
    struct by_lowering *lowering = lower(topology, &plan, 1);

    (void)state;
    assert_int_equal(lowering->note_count, 1);
    assert_string_equal(lowering->notes[0], "job 1: 2 allreduce trees are split between parallel cables");
    by_lowering_free(lowering);
    by_topology_free(topology);
}

/* Two cables, of 15 in one direction and 1 in the other. */
static struct by_topology *lopsided(void)
{
    struct by_topology *topology = bench_topology("h0 h1", "h0-h1 h0-h1");

    for (uint32_t link = 0; link < 2; link++) {
        topology->arcs[topology->links[link].arc_ab].capacity = link ? 1 : 15;
        topology->arcs[topology->links[link].arc_ba].capacity = link ? 15 : 1;
    }
    return topology;
}

/* A tree of an allreduce becomes a pair, which needs a further place at h0; so does the split of
 * the reduce of 16. */
static void a_tree_becomes_a_pair_while_its_nodes_are_in_few_trees_of_the_job(void **state)
{
    static const struct {
        uint32_t small, halves, splits;
    } rows[] = {{1, 2, 1}, {LIMIT - 4, 2, 1}, {LIMIT - 3, 2, 0}, {LIMIT - 2, 2, 0}, {LIMIT - 1, 0, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct job_plan plans[] = {{BY_COLLECTIVE_BROADCAST, "h0", rows[i].small, 1, "h0: h0>h1"},
                                         {BY_COLLECTIVE_ALLREDUCE, NULL, 1, 15, "h0: h0>h1"},
                                         {BY_COLLECTIVE_REDUCE, "h0", 1, 16, "h0: h0>h1"}};
        struct by_topology *topology = lopsided();
        struct by_lowering *lowering = lower(topology, plans, 3);

        assert_int_equal(halves_of(lowering), rows[i].halves);
        assert_int_equal(notes_with(lowering, "1 reduce tree is split"), rows[i].splits);
        if (rows[i].halves == 0)
            assert_int_equal(notes_with(lowering, "the allreduce trees reach 1/15"), 1);
        if (rows[i].splits == 0)
            assert_int_equal(notes_with(lowering, "the reduce trees reach 15/16"), 1);
        by_lowering_free(lowering);
        by_topology_free(topology);
    }
}

/* Other trees cannot: the data of a barrier have no direction of their own, and where the paired
 * trees are no faster, a tree stays as it is. */
static void only_what_gains_by_it_becomes_a_pair(void **state)
{
    const struct job_plan barrier = {BY_COLLECTIVE_BARRIER, NULL, 1, 15, "h0: h0>h1"};
    const struct job_plan allreduce = {BY_COLLECTIVE_ALLREDUCE, NULL, 1, 20, "h0: h0>h1 h1>h2"};
    struct by_topology *topology = lopsided();
    struct by_lowering *lowering = lower(topology, &barrier, 1);

    (void)state;
    assert_int_equal(halves_of(lowering), 0);
    assert_true(lowering->part.num < lowering->part.den);
    by_lowering_free(lowering);
    by_topology_free(topology);

    /* The cables between h1 and h2 limit it either way. */
    topology = bench_topology("h0 h1 h2", "h0-h1 h0-h1 h1-h2 h1-h2");
    topology->arcs[topology->links[0].arc_ab].capacity = 11;
    topology->arcs[topology->links[1].arc_ba].capacity = 11;
    topology->arcs[topology->links[2].arc_ab].capacity = 5;
    topology->arcs[topology->links[2].arc_ba].capacity = 5;
    lowering = lower(topology, &allreduce, 1);
    assert_int_equal(halves_of(lowering), 0);
    assert_true(lowering->part.num < lowering->part.den);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

/* Loads of all cables, of two jobs whose plans reach different parts: the least is stated. */
static void the_part_of_several_jobs_is_the_least(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 2; first++) {
        struct by_topology *topology = bench_topology("h0 h1", "h0-h1 h0-h1");
        const struct job_plan full = {BY_COLLECTIVE_ALLREDUCE, NULL, 1, 20, "h0: h0>h1"};
        const struct job_plan half = {BY_COLLECTIVE_ALLREDUCE, NULL, LIMIT + 1, 40, "h0: h0>h1"};
        struct by_plan *plans[2] = {plan_of(topology, first ? &half : &full),
                                    plan_of(topology, first ? &full : &half)};
        struct by_lower_job jobs[2] = {
            {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plans[0]},
            {.job = 2, .plan_count = 1, .plans = (const struct by_plan *const *)&plans[1]}};
        struct by_lowering *lowering = NULL;
        struct by_problem problem = {0};

        if (by_lower(topology, jobs, 2, &(struct by_lower_options){0}, &lowering, &problem) != 0)
            fail_msg("%s", problem.text);
        assert_true(lowering->part.num * 100 / lowering->part.den == 49);
        by_lowering_free(lowering);
        bench_plan_free(plans[0]);
        bench_plan_free(plans[1]);
        by_topology_free(topology);
    }
}

/* A tree goes where it fills a cable exactly, so that the others fit whole. */
static void a_cable_that_fits_exactly_is_taken(void **state)
{
    static const char *const trees[] = {"6 h0: h0>h1 h1>s0>h2", "5 h0: h0>h1 h1>s1>h2",
                                        "5 h0: h0>h1 h1>s2>h2", NULL};

    (void)state;
    for (uint32_t small = 0; small < 2; small++) { /* the place of the cable of 6 */
        struct by_topology *topology =
            bench_topology("h0 h1 h2 s0 s1 s2", "h0-h1 h0-h1 h1-s0 s0-h2 h1-s1 s1-h2 h1-s2 s2-h2");
        struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
        struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
        struct by_lowering *lowering = NULL;
        struct by_problem problem = {0};

        topology->arcs[topology->links[small].arc_ab].capacity = 6;
        topology->arcs[topology->links[small].arc_ba].capacity = 6;
        if (by_lower(topology, &job, 1, &(struct by_lower_options){0}, &lowering, &problem) != 0)
            fail_msg("%s", problem.text);
        assert_int_equal(lowering->tree_count, 3);
        expect_part(lowering, 1, 1);
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(lowering->trees[i].hops[1].down[0].link == small, lowering->trees[i].share == 6);
        by_lowering_free(lowering);
        bench_plan_free(plan);
        by_topology_free(topology);
    }
}

/* The cables between h1 and h2 are full, but not beyond: their trees stay, although packed anew by
 * their weights they would not fit whole. Those between h0 and h1 are packed anew, and fit. */
static void trees_on_cables_that_are_just_full_stay_there(void **state)
{
    static const unsigned weights[] = {5, 4, 3, 3, 3, 2};
    enum { COUNT = sizeof(weights) / sizeof(weights[0]) };
    struct by_topology *topology =
        bench_topology("h0 h1 h2 h3 s0 s1 s2 s3 s4 s5",
                       "h0-h1 h0-h1 h1-h2 h1-h2 h2-s0 s0-h3 h2-s1 s1-h3 h2-s2 s2-h3 h2-s3 s3-h3 h2-s4 s4-h3 "
                       "h2-s5 s5-h3");
    char text[COUNT][64];
    const char *trees[COUNT + 1] = {NULL};
    struct by_plan *plan;
    struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};
    uint32_t loads[4] = {0};

    (void)state;
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(text[i], sizeof(text[i]), "%u h0: h0>h1 h1>h2 h2>s%u>h3", weights[i], i);
        trees[i] = text[i];
    }
    topology->arcs[topology->links[0].arc_ab].capacity = 12;
    topology->arcs[topology->links[0].arc_ba].capacity = 12;
    topology->arcs[topology->links[1].arc_ab].capacity = 8;
    topology->arcs[topology->links[1].arc_ba].capacity = 8;
    plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    if (by_lower(topology, &job, 1, &(struct by_lower_options){0}, &lowering, &problem) != 0)
        fail_msg("%s", problem.text);
    assert_int_equal(lowering->tree_count, COUNT);
    expect_part(lowering, 1, 1);
    for (uint32_t i = 0; i < COUNT; i++)
        for (uint32_t hop = 1; hop <= 2; hop++)
            loads[lowering->trees[i].hops[hop].down[0].link] += lowering->trees[i].share;
    assert_int_equal(loads[0], 12);
    assert_int_equal(loads[1], 8);
    assert_int_equal(loads[2], 10);
    assert_int_equal(loads[3], 10);
    by_lowering_free(lowering);
    bench_plan_free(plan);
    by_topology_free(topology);
}

/* One tree of several has a weight that is no whole number: the loads are exact. */
static void a_weight_of_any_tree_may_be_a_fraction(void **state)
{
    static const char *const trees[][3] = {{"31/3 h0: h0>h1", "9 h1: h1>h0", NULL},
                                           {"9 h0: h0>h1", "31/3 h1: h1>h0", NULL}};

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct by_topology *topology = bench_topology("h0 h1", "h0-h1 h0-h1");
        struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees[i]);
        struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
        struct by_lowering *lowering = NULL;
        struct by_problem problem = {0};

        if (by_lower(topology, &job, 1, &(struct by_lower_options){0}, &lowering, &problem) != 0)
            fail_msg("%s", problem.text);
        expect_part(lowering, 1, 1);
        assert_int_equal(lowering->tree_count, 3); /* 10, 1/3 and 9 */
        assert_int_equal(lowering->trees[0].share + lowering->trees[1].share + lowering->trees[2].share, 58);
        by_lowering_free(lowering);
        bench_plan_free(plan);
        by_topology_free(topology);
    }
}

/* Trees laid on the first cable between h0 and h1, one of them a pair if asked. */
static struct by_laid_trees laid(const struct by_address_map *map, const struct by_plan *plan, bool pair)
{
    struct by_laid_trees laid = {.count = plan->tree_count, .room = plan->tree_count};

    laid.trees = by_alloc(laid.count, sizeof(*laid.trees));
    for (uint32_t i = 0; i < laid.count; i++) {
        struct by_lower_load load = {.arc = by_alloc(map->topology->arc_count, sizeof(uint64_t))};
        struct by_laid_tree *tree = &laid.trees[i];
        struct by_problem problem = {0};

        tree->flow = pair ? BY_FLOW_UP : BY_FLOW_BOTH;
        tree->collectives = 1u << BY_COLLECTIVE_ALLREDUCE;
        tree->owner = BY_RANK_NONE;
        mpq_init(tree->weight);
        mpq_set_si(tree->weight, plan->trees[i].weight.num, (unsigned long)plan->trees[i].weight.den);
        if (by_hops_make(map, plan, &plan->trees[i], tree->flow, &load, "a tree", &tree->hops, &problem) !=
                0 ||
            (pair && by_hops_make(map, plan, &plan->trees[i], BY_FLOW_DOWN, &load, "a tree", &tree->down,
                                  &problem) != 0))
            fail_msg("%s", problem.text);
        free(load.arc);
    }
    return laid;
}

static void free_laid(struct by_laid_trees *laid)
{
    for (uint32_t t = 0; t < laid->count; t++) {
        by_hops_free(&laid->trees[t].hops);
        by_hops_free(&laid->trees[t].down);
        mpq_clear(laid->trees[t].weight);
    }
    free(laid->trees);
}

/* A job has at most BY_TREES_MAX trees, of which a pair is two; `use` counts those of its plans. */
static void a_tree_is_split_while_the_job_has_few_trees(void **state)
{
    static const char *const trees[] = {"20 h0: h0>h1", NULL};
    static const struct {
        bool pair, lopsided;
        uint32_t left, added; /* trees of the limit that other plans leave; what this one adds */
    } rows[] = {{false, false, 100, 2}, {false, false, 3, 2}, {false, false, 1, 1},  {true, false, 100, 4},
                {true, false, 4, 4},    {true, false, 3, 2},  {false, true, 100, 4}, {false, true, 1, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_topology *topology =
            bench_topology("h0 h1", rows[i].lopsided ? "h0-h1 h0-h1 h0>h1 h1>h0" : "h0-h1 h0-h1");
        struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
        struct by_address_map map;
        struct by_problem problem = {0};
        struct by_balance_use use = {.trees = BY_TREES_MAX - rows[i].left};
        struct by_balance_facts facts;
        struct by_laid_trees all;

        if (rows[i].lopsided)
            topology->arcs[topology->links[1].arc_ab].capacity =
                topology->arcs[topology->links[1].arc_ba].capacity = 1;
        assert_int_equal(by_address_map_make(topology, &map, &problem), 0);
        use.places = by_alloc(topology->node_count, sizeof(*use.places));
        all = laid(&map, plan, rows[i].pair);
        by_balance(&map, &all, &use, &facts);
        if (use.trees != BY_TREES_MAX - rows[i].left + rows[i].added)
            fail_msg("row %zu: %d trees are left", i, (int)(BY_TREES_MAX - use.trees));
        assert_int_equal(use.places[0], rows[i].added);
        assert_int_equal(use.places[1], 0);
        assert_int_equal(facts.split + 1, all.count);
        free_laid(&all);
        free(use.places);
        by_address_map_free(&map);
        bench_plan_free(plan);
        by_topology_free(topology);
    }
}

/* Cables between h0 and each other host, one of which carries a whole tree, and single ones that
 * are not counted. The direction that is fuller decides: 100 of 280, 150 of 198, 100 of 180 and,
 * not crowded, 200, and 100 of 1. */
static void crowded_cables_are_taken_in_the_order_of_their_load(void **state)
{
    static const char *const trees[] = {"100 h0: h0>h1 h0>h2 h0>h3 h0>h4 h0>h5",
                                        "50 h0: h0>h2 h2>s0>h1 h2>s0>h3 h2>s0>h4 h2>s0>h5", NULL};
    static const int64_t capacity[6][2] = {{0},      {75, 70},   {99, 66},
                                           {60, 99}, {100, 100}, {99, 1}}; /* by host */
    static const uint32_t order[] = {4, 1, 2, 0};
    struct by_topology *topology =
        bench_topology("h0 h1 h2 h3 h4 h5 s0", "h0-h1 h0-h1 h0-h1 h0-h1 h0-h2 h0-h2 h0-h2 h0-h3 h0-h3 h0-h3 "
                                               "h0-h4 h0-h4 h0-h5 h0>h5 s0-h1 s0-h2 s0-h3 s0-h4 s0-h5");
    struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    struct by_address_map map;
    struct by_problem problem = {0};
    struct by_laid_trees all;
    struct by_balance_work work = {.map = &map, .laid = &all};
    struct by_fraction part;

    (void)state;
    for (uint32_t l = 0; l < topology->link_count; l++) {
        const struct by_link *link = &topology->links[l];

        topology->arcs[link->arc_ab].capacity = capacity[link->b][0];
        if (link->arc_ba != UINT32_MAX)
            topology->arcs[link->arc_ba].capacity = capacity[link->b][1];
    }
    assert_int_equal(by_address_map_make(topology, &map, &problem), 0);
    all = laid(&map, plan, false);
    mpz_init(work.common);
    assert_int_equal(by_balance_groups(&work), 5);
    part = by_balance_read(&work);
    assert_int_equal(part.num, 1);
    assert_int_equal(part.den, 100);
    assert_int_equal(work.crowded, 4);
    assert_memory_equal(work.order, order, sizeof(order));
    by_balance_release(&work);
    free_laid(&all);
    by_address_map_free(&map);
    bench_plan_free(plan);
    by_topology_free(topology);
}

/* Lays trees of these weights on one of up to three cables, and balances them in a job that has
 * all trees it may have, and so splits none. */
static void expect_whole(const int64_t *capacity, const unsigned *weights, int64_t num, int64_t den)
{
    struct by_topology *topology =
        bench_topology("h0 h1", capacity[2] == 0 ? "h0-h1 h0-h1" : "h0-h1 h0-h1 h0-h1");
    char text[9][32];
    const char *trees[9] = {NULL};
    struct by_address_map map;
    struct by_problem problem = {0};
    struct by_balance_use use = {0};
    struct by_balance_facts facts;
    struct by_laid_trees all;
    struct by_plan *plan;

    for (uint32_t t = 0; weights[t] > 0; t++) {
        snprintf(text[t], sizeof(text[t]), "%u h0: h0>h1", weights[t]);
        trees[t] = text[t];
    }
    for (uint32_t link = 0; link < topology->link_count; link++)
        topology->arcs[topology->links[link].arc_ab].capacity =
            topology->arcs[topology->links[link].arc_ba].capacity = capacity[link];
    plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    assert_int_equal(by_address_map_make(topology, &map, &problem), 0);
    all = laid(&map, plan, false);
    use = (struct by_balance_use){.trees = BY_TREES_MAX - all.count,
                                  .places = by_alloc(topology->node_count, sizeof(*use.places))};
    by_balance(&map, &all, &use, &facts);
    if (facts.part.num != num || facts.part.den != den)
        fail_msg("a part of %lld/%lld instead of %lld/%lld", (long long)facts.part.num,
                 (long long)facts.part.den, (long long)num, (long long)den);
    assert_int_equal(facts.split, 0);
    free_laid(&all);
    free(use.places);
    by_address_map_free(&map);
    bench_plan_free(plan);
    by_topology_free(topology);
}

/* Trees that are packed into equal cables at this rate, and not at one beside it. */
static void each_rate_is_tried_in_turn(void **state)
{
    static const struct {
        int64_t num, den; /* of the planned rate */
        int64_t capacity[3];
        unsigned weights[9];
    } rows[] = {
        {128, 129, {512, 512}, {209, 91, 208, 131, 308, 85}},
        {64, 65, {64, 64}, {35, 29, 13, 15, 8, 30}},
        {32, 33, {128, 128}, {87, 20, 20, 23, 69, 45}},
        {16, 17, {128, 128}, {38, 43, 63, 73, 55}},
        {8, 9, {64, 64}, {8, 34, 47, 21, 9, 25}},
        {4, 5, {16, 16, 16}, {9, 7, 17, 11, 3, 13}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_whole(rows[i].capacity, rows[i].weights, rows[i].num, rows[i].den);
}

/* Trees that fit nowhere go where they load a cable least in relation to its bandwidth: 54 on one
 * of 30, and 18 on one of 10. */
static void trees_that_fit_nowhere_are_divided_by_the_bandwidth_of_cables(void **state)
{
    static const unsigned weights[9] = {9, 9, 9, 9, 9, 9, 9, 9};

    (void)state;
    expect_whole((const int64_t[3]){30, 10}, weights, 5, 9);
    expect_whole((const int64_t[3]){10, 30}, weights, 5, 9);
}

/* Two trees of 15 on cables of 10 reach 2/3, whole or split, in either direction. */
static void splits_that_gain_nothing_are_not_made(void **state)
{
    static const char *const trees[][3] = {{"15 h0: h0>h1", "15 h0: h0>h1", NULL},
                                           {"15 h1: h1>h0", "15 h1: h1>h0", NULL}};
    static const enum by_table_flow flows[] = {BY_FLOW_BOTH, BY_FLOW_UP, BY_FLOW_DOWN};

    (void)state;
    for (uint32_t row = 0; row < 6; row++) {
        struct by_topology *topology = bench_topology("h0 h1", "h0-h1 h0-h1");
        struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees[row % 2]);
        struct by_balance_use use = {.places = by_alloc(topology->node_count, sizeof(*use.places))};
        struct by_address_map map;
        struct by_problem problem = {0};
        struct by_balance_facts facts;
        struct by_laid_trees all;

        assert_int_equal(by_address_map_make(topology, &map, &problem), 0);
        all = laid(&map, plan, false);
        all.trees[0].flow = all.trees[1].flow = flows[row / 2];
        for (uint32_t t = 0; t < 2; t++)
            assert_int_equal(all.trees[t].hops.hop[1].down[0].link, 0); /* the first of equal cables */
        by_balance(&map, &all, &use, &facts);
        for (uint32_t t = 0; t < 2; t++)
            assert_int_equal(all.trees[t].hops.hop[1].down[0].link, t); /* equal trees in their order */
        assert_int_equal(facts.part.num, 2);
        assert_int_equal(facts.part.den, 3);
        assert_int_equal(facts.split, 0);
        assert_int_equal(use.trees, 2);
        free_laid(&all);
        free(use.places);
        by_address_map_free(&map);
        bench_plan_free(plan);
        by_topology_free(topology);
    }
}

/* Cables at both ends of a path, whose way back through switches is another one: both trees use
 * the same cables at the ends in both directions. */
static void the_way_back_follows_the_cables_at_the_ends(void **state)
{
    static const struct job_plan plans[] = {
        {BY_COLLECTIVE_BROADCAST, "h0", 1, 20, "h0: h0>x0>x1>h1"},
        {BY_COLLECTIVE_REDUCE, "h0", 1, 20, "h0: h0>x0>y>x1>h1"},
        {BY_COLLECTIVE_ALLREDUCE, NULL, 1, 20, "h0: h0>z0>z1>h1"}, /* the same way back */
    };
    static const uint32_t steps[][2] = {{3, 4}, {3, 4}, {3, 3}}; /* down and up */
    struct by_topology *topology =
        bench_topology("h0 h1 x0 x1 y z0 z1", "h0-x0 h0-x0 x0>x1 x1>y y>x0 x1-h1 x1-h1 h0-z0 h0-z0 z0-z1 "
                                              "z0-z1 z1-h1 z1-h1");

    (void)state;
    for (uint32_t link = 2; link < 5; link++)
        topology->arcs[topology->links[link].arc_ab].capacity = 20;
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        struct by_lowering *lowering = lower(topology, &plans[i], 1);
        const struct by_hop *hops[2];

        assert_int_equal(lowering->tree_count, 2);
        expect_part(lowering, 1, 1);
        for (uint32_t t = 0; t < 2; t++) {
            const struct by_hop *hop = hops[t] = &lowering->trees[t].hops[1];

            assert_int_equal(hop->down_count, steps[i][0]);
            assert_int_equal(hop->up_count, steps[i][1]);
            assert_int_equal(hop->down[0].link, hop->up[hop->up_count - 1].link);
            assert_int_equal(hop->down[hop->down_count - 1].link, hop->up[0].link);
            for (uint32_t s = 1; hop->up_count == hop->down_count && s < hop->down_count; s++)
                assert_int_equal(hop->down[s].link, hop->up[hop->up_count - 1 - s].link);
        }
        assert_int_not_equal(hops[0]->down[0].link, hops[1]->down[0].link);
        assert_int_not_equal(hops[0]->up[0].link, hops[1]->up[0].link);
        if (i == 2)
            assert_int_not_equal(hops[0]->up[1].link, hops[1]->up[1].link);
        by_lowering_free(lowering);
    }
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_is_split_while_its_nodes_are_in_few_trees_of_the_job),
        cmocka_unit_test(the_limit_holds_at_each_node_that_adds_or_copies),
        cmocka_unit_test(nodes_without_children_and_refused_splits_take_no_place),
        cmocka_unit_test(a_cable_that_fits_exactly_is_taken),
        cmocka_unit_test(trees_on_cables_that_are_just_full_stay_there),
        cmocka_unit_test(a_weight_of_any_tree_may_be_a_fraction),
        cmocka_unit_test(a_tree_is_split_while_the_job_has_few_trees),
        cmocka_unit_test(crowded_cables_are_taken_in_the_order_of_their_load),
        cmocka_unit_test(each_rate_is_tried_in_turn),
        cmocka_unit_test(trees_that_fit_nowhere_are_divided_by_the_bandwidth_of_cables),
        cmocka_unit_test(splits_that_gain_nothing_are_not_made),
        cmocka_unit_test(several_splits_are_told_as_such),
        cmocka_unit_test(a_tree_becomes_a_pair_while_its_nodes_are_in_few_trees_of_the_job),
        cmocka_unit_test(only_what_gains_by_it_becomes_a_pair),
        cmocka_unit_test(the_part_of_several_jobs_is_the_least),
        cmocka_unit_test(the_way_back_follows_the_cables_at_the_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

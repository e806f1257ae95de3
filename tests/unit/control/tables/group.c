/*
 * The trees of a job's plans, grouped: which are one, which collectives share them, their owners,
 * shares and pairs, and plans that do not fit together. Single-threaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/errors.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

#define BIT(name) (1u << BY_COLLECTIVE_##name)
#define PLANS_MAX 3
#define TREES_MAX 4
#define TRIANGLE  "h0-h1 h1-h2 h2-h0"
#define NO_OWNER  BY_RANK_NONE
#define H0_CHAIN  "h0: h0>h1 h1>h2"
#define H0_BOTH   "h0: h0>h1 h0>h2"
#define H1_CHAIN  "h1: h1>h2 h2>h0"

/* A plan, in the notation of bench_plan. */
struct group_plan {
    unsigned collective; /* 0: no further plan */
    const char *root;
    const char *trees[TREES_MAX + 1];
};

static int lower(const struct by_topology *topology, const struct group_plan *input,
                 struct by_lowering **lowering, struct by_problem *problem)
{
    struct by_plan *plans[PLANS_MAX];
    struct by_lower_job job = {.job = 1, .plans = (const struct by_plan *const *)plans};
    int error;

    *lowering = NULL;
    for (; job.plan_count < PLANS_MAX && input[job.plan_count].collective != 0; job.plan_count++) {
        const struct group_plan *plan = &input[job.plan_count];

        plans[job.plan_count] = bench_plan(topology, plan->collective, plan->root, plan->trees);
    }
    error = by_lower(topology, &job, 1, &(struct by_lower_options){.bare = 1}, lowering, problem);
    for (uint32_t i = 0; i < job.plan_count; i++)
        bench_plan_free(plans[i]);
    return error;
}

/* Counts the trees with these properties; `collectives` as bits. */
static uint32_t trees_like(const struct by_lowering *lowering, unsigned collectives, uint16_t owner,
                           uint32_t share)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < lowering->tree_count; i++)
        count += lowering->trees[i].collectives == collectives && lowering->trees[i].owner == owner &&
                 lowering->trees[i].share == share;
    return count;
}

static bool is_noted(const struct by_lowering *lowering, const char *text)
{
    for (uint32_t i = 0; i < lowering->note_count; i++)
        if (strstr(lowering->notes[i], text) != NULL)
            return true;
    return false;
}

/* Trees that a lowering must have. */
struct group_trees {
    unsigned collectives;
    uint16_t owner;
    uint32_t share, count;
};

static void expect(const struct by_lowering *lowering, const struct group_trees *trees)
{
    uint32_t count = 0;

    for (; trees->count > 0; trees++) {
        uint32_t found = trees_like(lowering, trees->collectives, trees->owner, trees->share);

        if (found != trees->count)
            fail_msg("%u instead of %u trees of collectives %#x, owner %u, share %u", found, trees->count,
                     trees->collectives, trees->owner, trees->share);
        count += trees->count;
    }
    assert_int_equal(lowering->tree_count, count);
}

static void collectives_share_trees_if_trees_shares_and_owner_are_the_same(void **state)
{
    static const struct {
        struct group_plan plans[PLANS_MAX];
        struct group_trees trees[5];
        const char *note;
    } rows[] = {
        {{{BY_COLLECTIVE_BROADCAST, "h0", {"1 " H0_CHAIN}}, {BY_COLLECTIVE_REDUCE, "h0", {"5 " H0_CHAIN}}},
         {{BIT(BROADCAST) | BIT(REDUCE), 0, 1, 1}},
         "1 trees serve several collectives"},
        {{{BY_COLLECTIVE_BROADCAST, "h0", {"1 " H0_CHAIN}}, {BY_COLLECTIVE_REDUCE, "h0", {"1 " H0_BOTH}}},
         {{BIT(BROADCAST), 0, 1, 1}, {BIT(REDUCE), 0, 1, 1}},
         NULL},
        {{{BY_COLLECTIVE_BROADCAST, "h0", {"1 " H0_CHAIN, "2 " H0_BOTH}},
          {BY_COLLECTIVE_REDUCE, "h0", {"3 " H0_CHAIN, "6 " H0_BOTH}}},
         {{BIT(BROADCAST) | BIT(REDUCE), 0, 1, 1}, {BIT(BROADCAST) | BIT(REDUCE), 0, 2, 1}},
         "2 trees serve several collectives"},
        {{{BY_COLLECTIVE_BROADCAST, "h0", {"1 " H0_CHAIN, "2 " H0_BOTH}},
          {BY_COLLECTIVE_REDUCE, "h0", {"1 " H0_CHAIN, "3 " H0_BOTH}}},
         {{BIT(BROADCAST), 0, 1, 1},
          {BIT(BROADCAST), 0, 2, 1},
          {BIT(REDUCE), 0, 1, 1},
          {BIT(REDUCE), 0, 3, 1}},
         NULL},
        {{{BY_COLLECTIVE_BROADCAST, "h0", {"1 " H0_CHAIN, "2 " H0_BOTH}},
          {BY_COLLECTIVE_REDUCE, "h0", {"1 " H0_CHAIN}}},
         {{BIT(BROADCAST), 0, 1, 1}, {BIT(BROADCAST), 0, 2, 1}, {BIT(REDUCE), 0, 1, 1}},
         NULL},
        /* another owner: none */
        {{{BY_COLLECTIVE_BROADCAST, "h0", {"1 " H0_CHAIN}}, {BY_COLLECTIVE_ALLREDUCE, NULL, {"1 " H0_CHAIN}}},
         {{BIT(BROADCAST), 0, 1, 1}, {BIT(ALLREDUCE) | BIT(BARRIER), NO_OWNER, 1, 1}},
         NULL},
        /* the third plan shares with the first one, and the second with none */
        {{{BY_COLLECTIVE_BROADCAST, "h0", {"1 " H0_CHAIN}},
          {BY_COLLECTIVE_BROADCAST, "h1", {"1 " H1_CHAIN}},
          {BY_COLLECTIVE_REDUCE, "h0", {"1 " H0_CHAIN}}},
         {{BIT(BROADCAST) | BIT(REDUCE), 0, 1, 1}, {BIT(BROADCAST), 1, 1, 1}},
         "1 trees serve several collectives"},
        /* a barrier uses the trees of allreduce unless it has its own */
        {{{BY_COLLECTIVE_ALLREDUCE, NULL, {"1 " H0_CHAIN}}, {BY_COLLECTIVE_BARRIER, NULL, {"1 " H0_BOTH}}},
         {{BIT(ALLREDUCE), NO_OWNER, 1, 1}, {BIT(BARRIER), NO_OWNER, 1, 1}},
         NULL},
        {{{BY_COLLECTIVE_ALLREDUCE, NULL, {"1 " H0_CHAIN}}, {BY_COLLECTIVE_BARRIER, NULL, {"1 " H0_CHAIN}}},
         {{BIT(ALLREDUCE) | BIT(BARRIER), NO_OWNER, 1, 1}},
         "1 trees serve several collectives"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_topology *topology = bench_topology("h0 h1 h2", TRIANGLE);
        struct by_lowering *lowering;
        struct by_problem problem = {0};

        if (lower(topology, rows[i].plans, &lowering, &problem) != 0)
            fail_msg("%zu: %s", i, problem.text);
        expect(lowering, rows[i].trees);
        assert_int_equal(lowering->note_count, rows[i].note ? 1 : 0);
        if (rows[i].note != NULL)
            assert_true(is_noted(lowering, rows[i].note));
        by_lowering_free(lowering);
        by_topology_free(topology);
    }
}

/* Weights without a common divisor, as long as the largest one then has 32 bits. */
static void shares_are_reduced_and_rounded_only_if_they_need_more_than_32_bits(void **state)
{
    static const struct {
        unsigned collective;
        const char *trees[3];
        struct group_trees expected[4];
        const char *note;
    } rows[] = {
        {BY_COLLECTIVE_ALLREDUCE,
         {"1099511627776 " H0_CHAIN, "3298534883328 " H0_BOTH},
         {{BIT(ALLREDUCE) | BIT(BARRIER), NO_OWNER, 1, 1}, {BIT(ALLREDUCE) | BIT(BARRIER), NO_OWNER, 3, 1}},
         NULL},
        {BY_COLLECTIVE_ALLREDUCE,
         {"1/3 " H0_CHAIN, "1/2 " H0_BOTH},
         {{BIT(ALLREDUCE) | BIT(BARRIER), NO_OWNER, 2, 1}, {BIT(ALLREDUCE) | BIT(BARRIER), NO_OWNER, 3, 1}},
         NULL},
        {BY_COLLECTIVE_ALLREDUCE,
         {"4294967295 " H0_CHAIN, "1 " H0_BOTH},
         {{BIT(ALLREDUCE) | BIT(BARRIER), NO_OWNER, UINT32_MAX, 1},
          {BIT(ALLREDUCE) | BIT(BARRIER), NO_OWNER, 1, 1}},
         NULL},
        {BY_COLLECTIVE_ALLREDUCE,
         {"4294967296 " H0_CHAIN, "1 " H0_BOTH},
         {{BIT(ALLREDUCE) | BIT(BARRIER), NO_OWNER, 0x80000000, 1},
          {BIT(ALLREDUCE) | BIT(BARRIER), NO_OWNER, 1, 1}},
         "job 1: shares of the common trees were rounded to 32 bits"},
        {BY_COLLECTIVE_BROADCAST,
         {"1099511627776 " H0_CHAIN, "4095 " H0_BOTH},
         {{BIT(BROADCAST), 0, 0x80000000, 1}, {BIT(BROADCAST), 0, 7, 1}},
         "job 1: shares of the owners' trees were rounded to 32 bits"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_topology *topology = bench_topology("h0 h1 h2", TRIANGLE);
        const char *root = rows[i].collective == BY_COLLECTIVE_BROADCAST ? "h0" : NULL;
        const struct group_plan plans[PLANS_MAX] = {
            {rows[i].collective, root, {rows[i].trees[0], rows[i].trees[1]}}};
        struct by_lowering *lowering;
        struct by_problem problem = {0};

        if (lower(topology, plans, &lowering, &problem) != 0)
            fail_msg("%zu: %s", i, problem.text);
        expect(lowering, rows[i].expected);
        assert_int_equal(lowering->note_count, rows[i].note ? 1 : 0);
        if (rows[i].note != NULL)
            assert_true(is_noted(lowering, rows[i].note));
        by_lowering_free(lowering);
        by_topology_free(topology);
    }
}

/* Each tree up meets trees down of its root until both are used up; `halves` are the trees of the
 * pairs, and the others use one path for both directions. */
static void trees_up_and_down_are_joined_by_the_lesser_weight(void **state)
{
    static const struct {
        const char *trees[TREES_MAX + 1];
        uint32_t count, halves, shares; /* sum of all shares, of pairs once */
    } rows[] = {
        {{"3 up " H0_CHAIN, "3 down " H0_BOTH}, 2, 2, 1},
        {{"3 up " H0_CHAIN, "3 down " H0_CHAIN}, 1, 0, 1},
        {{"3 up " H0_CHAIN, "1 down " H0_BOTH, "2 down h0: h0>h2 h2>h1"}, 4, 4, 3},
        {{"1 down " H0_BOTH, "2 down h0: h0>h2 h2>h1", "3 up " H0_CHAIN}, 4, 4, 3},
        {{"1 up " H0_CHAIN, "2 up " H0_BOTH, "2 down h0: h0>h2 h2>h1", "1 down " H0_BOTH}, 5, 4, 3},
        {{"1 up " H0_CHAIN, "1 up " H1_CHAIN, "1 down h1: h1>h2 h1>h0", "1 down " H0_BOTH}, 4, 4, 2},
        {{"1 " H1_CHAIN, "2 up " H0_CHAIN, "2 down " H0_BOTH}, 3, 2, 3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_topology *topology = bench_topology("h0 h1 h2", TRIANGLE);
        struct group_plan plans[PLANS_MAX] = {{BY_COLLECTIVE_ALLREDUCE, NULL, {NULL}}};
        struct by_lowering *lowering;
        struct by_problem problem = {0};
        uint32_t halves = 0, shares = 0;
        struct bench_images images;

        memcpy(plans[0].trees, rows[i].trees, sizeof(plans[0].trees));
        if (lower(topology, plans, &lowering, &problem) != 0)
            fail_msg("%zu: %s", i, problem.text);
        for (uint32_t t = 0; t < lowering->tree_count; t++) {
            halves += lowering->trees[t].half != BY_HALF_NONE;
            shares += lowering->trees[t].half != BY_HALF_DOWN ? lowering->trees[t].share : 0;
            if (lowering->trees[t].half == BY_HALF_UP)
                assert_int_equal(lowering->trees[t].hops[0].node, lowering->trees[t + 1].hops[0].node);
        }
        if (lowering->tree_count != rows[i].count || halves != rows[i].halves || shares != rows[i].shares)
            fail_msg("%zu: %u trees, %u of pairs, %u shares", i, lowering->tree_count, halves, shares);
        images = bench_images(lowering);
        assert_true(bench_walk(&images) > 0);
        bench_images_free(&images);
        by_lowering_free(lowering);
        by_topology_free(topology);
    }
}

/* Two ways through a switch in one direction: a pair whose trees have the same cables in the other
 * direction alone is no single tree. The way back of one tree is by one of both switches. */
static void a_pair_is_one_tree_if_both_ways_are_the_same(void **state)
{
    static const struct {
        const char *links;
        struct group_plan plans[2][PLANS_MAX]; /* by the one switch, and by the other */
    } rows[] = {
        {"h0-x0 h1-x1 x0>x1 x1>y y>x0 x1>z z>x0",
         {{{BY_COLLECTIVE_ALLREDUCE, NULL, {"1 up h0: h0>x0>y>x1>h1", "1 down h0: h0>x0>x1>h1"}}},
          {{BY_COLLECTIVE_ALLREDUCE, NULL, {"1 up h0: h0>x0>z>x1>h1", "1 down h0: h0>x0>x1>h1"}}}}},
        {"h0-x0 h1-x1 x1>x0 x0>y y>x1 x0>z z>x1",
         {{{BY_COLLECTIVE_ALLREDUCE, NULL, {"1 up h0: h0>x0>x1>h1", "1 down h0: h0>x0>y>x1>h1"}}},
          {{BY_COLLECTIVE_ALLREDUCE, NULL, {"1 up h0: h0>x0>x1>h1", "1 down h0: h0>x0>z>x1>h1"}}}}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_topology *topology = bench_topology("h0 h1 x0 x1 y z", rows[i].links);
        uint32_t count = 0;

        for (unsigned by = 0; by < 2; by++) {
            struct by_lowering *lowering;
            struct by_problem problem = {0};

            if (lower(topology, rows[i].plans[by], &lowering, &problem) != 0)
                fail_msg("%s", problem.text);
            count += lowering->tree_count;
            by_lowering_free(lowering);
        }
        assert_int_equal(count, 1 + 2);
        by_topology_free(topology);
    }
}

static void plans_that_cannot_be_grouped_are_refused(void **state)
{
    static const struct {
        struct group_plan plans[PLANS_MAX];
        int error;
        const char *text;
    } rows[] = {
        {{{BY_COLLECTIVE_ALLREDUCE, NULL, {"2 up " H0_CHAIN, "1 down " H0_BOTH}}},
         BY_EINVAL,
         "job 1, allreduce: the trees rooted at 'h0' do not carry as much up as down"},
        {{{BY_COLLECTIVE_ALLREDUCE, NULL, {"1 up " H0_CHAIN, "2 down " H0_BOTH}}},
         BY_EINVAL,
         "job 1, allreduce: the trees rooted at 'h0' do not carry as much up as down"},
        {{{BY_COLLECTIVE_ALLREDUCE, NULL, {"1 " H0_CHAIN, "1 down " H1_CHAIN}}},
         BY_EINVAL,
         "the trees rooted at 'h1' do not carry as much up as down"},
        {{{BY_COLLECTIVE_ALLREDUCE, NULL, {"0 up " H0_CHAIN, "0 down " H0_CHAIN, "0 " H0_CHAIN}}},
         BY_EINVAL,
         "job 1, allreduce tree 2: its weight is not above zero"},
        {{{BY_COLLECTIVE_ALLREDUCE,
           NULL,
           {"1/4294967311 up " H0_CHAIN, "1/4294967357 down " H0_BOTH, "1/3 down " H0_BOTH}}},
         BY_ERANGE,
         "job 1: a weight needs more than 63 bits"},
        {{{BY_COLLECTIVE_BROADCAST, "s0", {"1 s0: s0>h0 s0>h1 s0>h2"}}},
         BY_EINVAL,
         "job 1, broadcast tree 0: 's0' owns the data but is not a compute node"},
        {{{BY_COLLECTIVE_REDUCE_SCATTER, NULL, {"1 " H0_CHAIN, "1 s0: s0>h0 s0>h1 s0>h2"}}},
         BY_EINVAL,
         "job 1, reduce-scatter tree 1: 's0' owns the data but is not a compute node"},
        {{{BY_COLLECTIVE_REDUCE_SCATTER, NULL, {"1 " H0_CHAIN, "1 h2: h2>h1 h1>h0"}}},
         BY_EUNSUPPORTED,
         "job 1: no reduce-scatter tree is rooted at 'h1', so its shard cannot be sent: add a plan for"},
        {{{BY_COLLECTIVE_ALLREDUCE, NULL, {"1 " H0_CHAIN}},
          {BY_COLLECTIVE_ALLGATHER, NULL, {"1 " H1_CHAIN, "1 h2: h2>h1 h1>h0"}}},
         BY_EUNSUPPORTED,
         "job 1: no allgather tree is rooted at 'h0', so its shard cannot be sent"},
        {{{BY_COLLECTIVE_ALLREDUCE, NULL, {"1 " H0_CHAIN}}, {BY_COLLECTIVE_BROADCAST, "h0", {NULL}}},
         BY_EINVAL,
         "job 1: the broadcast plan has no trees"},
        {{{BY_COLLECTIVE_BROADCAST, "h0", {"1 " H0_CHAIN}},
          {BY_COLLECTIVE_BROADCAST, "h1", {"1 " H1_CHAIN}},
          {BY_COLLECTIVE_BROADCAST, "h0", {"1 " H0_BOTH}}},
         BY_EINVAL,
         "job 1: two broadcast plans for the same root: give one"},
        {{{BY_COLLECTIVE_BROADCAST, "h0", {"1 " H0_CHAIN}},
          {BY_COLLECTIVE_ALLREDUCE, NULL, {"1 " H1_CHAIN}},
          {BY_COLLECTIVE_ALLREDUCE, NULL, {"1 " H0_BOTH}}},
         BY_EINVAL,
         "job 1: two allreduce plans: give one"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_topology *topology = bench_topology("h0 h1 h2 s0*", TRIANGLE " h0-s0 h1-s0 h2-s0");
        struct by_lowering *lowering;
        struct by_problem problem = {0};
        int error = lower(topology, rows[i].plans, &lowering, &problem);

        if (error != rows[i].error || strstr(problem.text, rows[i].text) == NULL)
            fail_msg("%zu: %d, %s", i, error, problem.text);
        assert_null(lowering);
        by_topology_free(topology);
    }
}

/* Lowers one plan after a change. Returns the error. */
static int lower_changed(struct by_plan *plan, const struct by_topology *topology, struct by_problem *problem)
{
    struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
    struct by_lowering *lowering = NULL;
    int error = by_lower(topology, &job, 1, &(struct by_lower_options){.bare = 1}, &lowering, problem);

    if (error == 0)
        by_lowering_free(lowering);
    return error;
}

static void a_plan_for_another_fabric_is_refused(void **state)
{
    static const int64_t roots[] = {-1, 3, INT64_MAX};
    static const char *const trees[] = {"1 " H0_CHAIN, NULL};
    struct by_topology *topology = bench_topology("h0 h1 h2", TRIANGLE);
    struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_BROADCAST, "h0", trees);
    struct by_problem problem = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        plan->root = roots[i];
        assert_int_equal(lower_changed(plan, topology, &problem), BY_EINVAL);
        assert_non_null(strstr(problem.text, "'?' owns the data but is not a compute node"));
    }
    plan->root = 0;
    assert_int_equal(lower_changed(plan, topology, &problem), 0);
    for (uint32_t count = 2; count <= 4; count += 2) {
        plan->compute_count = count;
        assert_int_equal(lower_changed(plan, topology, &problem), BY_EINVAL);
        assert_non_null(strstr(problem.text, count == 2 ? "plan is for 2 compute nodes, this fabric has 3"
                                                        : "plan is for 4 compute nodes, this fabric has 3"));
    }
    bench_plan_free(plan);
    /* a root that the fabric lacks, of a tree and of a half of a pair */
    for (unsigned half = 0; half < 2; half++) {
        const char *const one[] = {half ? "1 up " H0_CHAIN : "1 " H0_CHAIN, NULL};

        plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, one);
        plan->trees[0].root = 3;
        assert_int_equal(lower_changed(plan, topology, &problem), BY_EINVAL);
        assert_non_null(strstr(problem.text, "the root is not a node of this fabric"));
        bench_plan_free(plan);
    }
    by_topology_free(topology);
}

/* Only an empty shard may be without trees. */
static void a_rank_without_data_needs_no_tree(void **state)
{
    static const char *const trees[] = {"1 " H0_CHAIN, "1 " H1_CHAIN, NULL};
    int64_t shares[3][3] = {{1, 1, 0}, {1, 1, 1}, {0, 1, 1}};
    struct by_topology *topology = bench_topology("h0 h1 h2", TRIANGLE);

    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        struct by_plan *plan =
            bench_plan(topology, i % 2 ? BY_COLLECTIVE_ALLGATHER : BY_COLLECTIVE_REDUCE_SCATTER, NULL, trees);
        struct by_problem problem = {0};
        int error;

        plan->shares = shares[i / 2];
        error = lower_changed(plan, topology, &problem);
        assert_int_equal(error, i / 2 == 0 ? 0 : BY_EUNSUPPORTED);
        if (error != 0)
            assert_non_null(strstr(problem.text, "tree is rooted at 'h2'"));
        bench_plan_free(plan);
    }
    by_topology_free(topology);
}

/* A switch that only adds carries a reduce, and one that only copies a broadcast. */
static void data_in_one_direction_need_one_ability_of_switches(void **state)
{
    static const char *const trees[] = {"1 h0: h0>s0 s0>h1 s0>h2", NULL};
    static const unsigned collectives[] = {BY_COLLECTIVE_REDUCE, BY_COLLECTIVE_BROADCAST,
                                           BY_COLLECTIVE_ALLREDUCE};

    (void)state;
    for (unsigned c = 0; c < 3; c++)
        for (unsigned abilities = 0; abilities < 4; abilities++) {
            struct by_topology *topology = bench_topology("h0 h1 h2 s0*", "h0-s0 h1-s0 h2-s0");
            struct by_plan *plan = bench_plan(topology, collectives[c], c < 2 ? "h0" : NULL, trees);
            struct by_problem problem = {0};
            bool adds = abilities & 1, copies = abilities & 2;
            int error;

            topology->nodes[3].aggregate = adds;
            topology->nodes[3].multicast = copies;
            error = lower_changed(plan, topology, &problem);
            assert_int_equal(error, (adds || c == 1) && (copies || c == 0) ? 0 : BY_EUNSUPPORTED);
            if (error != 0)
                assert_non_null(strstr(problem.text, adds || c == 1
                                                         ? "'s0' feeds 2 branches but cannot multicast"
                                                         : "'s0' joins 2 branches but cannot aggregate"));
            bench_plan_free(plan);
            by_topology_free(topology);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_share_trees_if_trees_shares_and_owner_are_the_same),
        cmocka_unit_test(shares_are_reduced_and_rounded_only_if_they_need_more_than_32_bits),
        cmocka_unit_test(trees_up_and_down_are_joined_by_the_lesser_weight),
        cmocka_unit_test(a_pair_is_one_tree_if_both_ways_are_the_same),
        cmocka_unit_test(plans_that_cannot_be_grouped_are_refused),
        cmocka_unit_test(a_plan_for_another_fabric_is_refused),
        cmocka_unit_test(a_rank_without_data_needs_no_tree),
        cmocka_unit_test(data_in_one_direction_need_one_ability_of_switches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

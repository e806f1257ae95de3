/* Few trees: the limit is kept, the verifier accepts the plans and their limit, and tables hold
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/plan/merge.h"
#include "control/planner/planner.h"
#include "control/tables/runs.h"
#include "offload/base/errors.h"
#include "tests/unit/control/campaign/fabric.h"
#include "tests/unit/control/campaign/mixed.h"
#include "tests/unit/control/planner/rig.h"

#define SEEDS 30u

static struct by_plan *plan_few(const struct by_topology *topology, unsigned collective, int64_t trees_max)
{
    bool rooted = collective == BY_COLLECTIVE_BROADCAST || collective == BY_COLLECTIVE_REDUCE;
    struct by_plan_options options = {
        .collective = collective, .root = rooted ? 0 : -1, .in_network = true, .trees_max = trees_max};
    struct by_problem problem = {0};
    struct by_plan *plan;

    if (by_plan_make(topology, &options, &plan, &problem) != 0)
        fail_msg("%s on %s: %s", by_collective_name(collective), topology->name, problem.text);
    assert_int_equal(plan->trees_max, trees_max);
    assert_true(by_plan_trees_each(plan, topology->node_count) <= trees_max);
    rig_verify(plan, topology,
               by_fraction_compare(plan->achieved, plan->optimum) == 0 ? BY_VERDICT_OPTIMAL
                                                                       : BY_VERDICT_VALID);
    return plan;
}

/* The best k of ForestColl's table for two MI250 boxes: 341.33 with 2 trees, 342.86 with 3, and
 * still with 4, whose k is worse. */
static void the_best_k_up_to_the_limit_is_taken(void **state)
{
    static const struct {
        int64_t most, k, num, den;
    } cases[] = {{1, 1, 320, 1}, {2, 2, 1024, 3}, {3, 3, 2400, 7}, {4, 3, 2400, 7}};
    struct by_topology *topology = rig_preset("mi250", "none", "2", NULL);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_plan *plan = plan_few(topology, BY_COLLECTIVE_ALLGATHER, cases[i].most);

        assert_int_equal(plan->k, cases[i].k);
        rig_assert_fraction(plan->achieved, cases[i].num, cases[i].den);
        by_plan_free(plan);
    }
    by_topology_free(topology);
}

/* 83 trees of two MI250 boxes, but many are equal: no root has more than 32 different ones. */
static void equal_trees_count_once(void **state)
{
    struct by_topology *topology = rig_preset("mi250", "none", "2", NULL);
    struct by_plan *plan = plan_few(topology, BY_COLLECTIVE_ALLGATHER, 40);

    (void)state;
    assert_int_equal(plan->k, 83);
    assert_true(by_fraction_compare(plan->achieved, plan->optimum) == 0);
    by_plan_free(plan);
    by_topology_free(topology);
}

/* 32 trees for an allreduce of two MI250 boxes lose at most 5 %; without a limit there are 92. */
static void few_trees_carry_most_of_an_allreduce(void **state)
{
    struct by_topology *topology = rig_preset("mi250", "none", "2", NULL);
    struct by_plan *all = rig_plan(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true);
    struct by_fraction least;

    (void)state;
    assert_true(all->tree_count > 32);
    for (int64_t most = 1; most <= 32; most *= 2) {
        struct by_plan *few = plan_few(topology, BY_COLLECTIVE_ALLREDUCE, most);

        assert_true(few->achieved.den <= 27720);
        if (most == 32) {
            assert_int_equal(by_fraction_multiply(all->achieved, (struct by_fraction){19, 20}, &least), 0);
            assert_true(by_fraction_compare(few->achieved, least) >= 0);
        }
        by_plan_free(few);
    }
    by_plan_free(all);
    by_topology_free(topology);
}

static void few_trees_on_random_fabrics_are_right_and_run(void **state)
{
    static const unsigned collectives[] = {BY_COLLECTIVE_ALLREDUCE, BY_COLLECTIVE_ALLGATHER,
                                           BY_COLLECTIVE_REDUCE_SCATTER, BY_COLLECTIVE_BROADCAST,
                                           BY_COLLECTIVE_REDUCE};

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct by_topology *topology = campaign_fabric(seed, (struct fabric_sizes){3, 12});

        print_message("few trees: seed %llu\n", (unsigned long long)seed);
        for (size_t c = 0; c < sizeof(collectives) / sizeof(collectives[0]); c++) {
            struct by_plan *plan = plan_few(topology, collectives[c], 1 + (int64_t)(seed % 4)),
                           *all = rig_plan(topology, collectives[c], plan->root, 0, true);
            struct by_runs few_run, all_run;

            /* what runs with all trees also runs with few */
            by_runs_find(topology, plan, &few_run);
            by_runs_find(topology, all, &all_run);
            if (all_run.runs && !few_run.runs)
                fail_msg("seed %llu: %s", (unsigned long long)seed, few_run.problem.text);
            by_plan_free(plan);
            by_plan_free(all);
        }
        by_topology_free(topology);
    }
}

static void the_verifier_counts_the_trees(void **state)
{
    struct by_topology *topology = rig_preset("mi250", "none", "2", NULL);
    static const struct {
        unsigned collective;
        int64_t root;
        const char *says;
    } cases[] = {{BY_COLLECTIVE_ALLGATHER, -1, "more than 2 trees start at"},
                 {BY_COLLECTIVE_BROADCAST, 0, "more than 2 trees start at"},
                 {BY_COLLECTIVE_ALLREDUCE, -1, "its trees_max is 2"}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_plan *plan = rig_plan(topology, cases[i].collective, cases[i].root, 0, true);
        struct by_verify_report report;
        struct by_problem problem = {0};
        char *text;

        plan->trees_max = 2;
        text = rig_text(plan, topology);
        assert_int_equal(by_verify_text(topology, text, strlen(text), &report, &problem), 0);
        assert_int_equal(report.verdict, BY_VERDICT_INVALID);
        assert_non_null(strstr(report.reason, cases[i].says));
        free(text);
        by_plan_free(plan);
    }
    by_topology_free(topology);
}

/* Trees whose edges are in another order are equal; pairs are equal only as pairs. */
static void equal_trees_are_merged_in_any_order_of_edges(void **state)
{
    struct by_topology *topology = rig_preset("star", "none", "3", "6", NULL);
    struct by_plan *plan = rig_plan(topology, BY_COLLECTIVE_BROADCAST, 0, 0, true);
    struct by_tree *trees = calloc(2, sizeof(*trees));
    uint32_t *edges = calloc(4, sizeof(*edges)), from = plan->edges[plan->trees[0].first_edge],
             to = plan->edges[plan->trees[0].first_edge + 1];

    (void)state;
    assert_int_equal(plan->trees[0].edge_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        trees[i] = plan->trees[0];
        trees[i].weight.den *= 2;
        trees[i].first_edge = 2 * i;
        edges[2 * i + i] = from;
        edges[2 * i + 1 - i] = to;
    }
    free(plan->trees);
    free(plan->edges);
    plan->trees = trees;
    plan->tree_count = 2;
    plan->edges = edges;
    plan->edge_count = 4;
    assert_int_equal(by_plan_merge(plan), 1);
    assert_int_equal(plan->tree_count, 1);
    assert_int_equal(by_plan_merge(plan), 0);
    rig_verify(plan, topology, BY_VERDICT_OPTIMAL);
    by_plan_free(plan);
    by_topology_free(topology);
}

static void a_limit_excludes_what_sets_the_number_of_trees(void **state)
{
    struct by_topology *topology = rig_preset("ring", NULL, "6", "1", NULL);
    struct by_plan_options cases[] = {
        {.collective = BY_COLLECTIVE_ALLGATHER, .trees_max = 2, .fixed_k = 2},
        {.collective = BY_COLLECTIVE_ALLGATHER, .trees_max = -1},
        {.collective = BY_COLLECTIVE_ALLREDUCE, .trees_max = 2, .ordered = true},
        {.collective = BY_COLLECTIVE_ALLREDUCE, .trees_max = 2, .latency_aware = true, .loss_max = {1, 10}}};
    static const int errors[] = {BY_EINVAL, BY_EINVAL, BY_EUNSUPPORTED, BY_EUNSUPPORTED};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_problem problem = {0};
        struct by_plan *plan;

        cases[i].root = -1;
        assert_int_equal(by_plan_make(topology, &cases[i], &plan, &problem), errors[i]);
        assert_non_null(strstr(problem.text, "largest number of trees"));
    }
    by_topology_free(topology);
}

/* Fabrics of mixed capabilities whose allreduces had 94 to 662 trees at the same rates. */
static void an_allreduce_has_few_trees_where_the_rate_stays(void **state)
{
    static const struct {
        uint64_t seed;
        int64_t rate;
    } cases[] = {{32, 10}, {87, 1}, {177, 2}, {249, 2}, {278, 8}, {359, 4}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology = mixed_fabric(cases[i].seed);
        struct by_plan *plan = rig_plan(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true);

        assert_true(by_plan_trees_each(plan, topology->node_count) <= 32);
        assert_int_equal(plan->trees_max, 0);
        rig_assert_fraction(plan->achieved, cases[i].rate, 1);
        rig_verify(plan, topology, BY_VERDICT_OPTIMAL);
        by_plan_free(plan);
        by_topology_free(topology);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allreduce_has_few_trees_where_the_rate_stays),
        cmocka_unit_test(the_best_k_up_to_the_limit_is_taken),
        cmocka_unit_test(equal_trees_count_once),
        cmocka_unit_test(few_trees_carry_most_of_an_allreduce),
        cmocka_unit_test(few_trees_on_random_fabrics_are_right_and_run),
        cmocka_unit_test(the_verifier_counts_the_trees),
        cmocka_unit_test(equal_trees_are_merged_in_any_order_of_edges),
        cmocka_unit_test(a_limit_excludes_what_sets_the_number_of_trees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

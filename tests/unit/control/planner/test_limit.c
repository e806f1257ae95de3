/* Time limits: whatever passes first, there is a plan, and the verifier accepts it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/clock.h"
#include "control/fabric/vary.h"
#include "control/planner/planner.h"
#include "control/planner/replan/replan.h"
#include "offload/base/errors.h"
#include "tests/unit/control/campaign/fabric.h"
#include "tests/unit/control/planner/rig.h"

#define SEEDS 60u

/* Plans every collective under the limit; each plan must be right. */
static void plan_all(const struct by_topology *topology, double limit, struct by_plan_options options)
{
    uint32_t root = 0;

    while (!topology->nodes[root].compute)
        root++;
    for (unsigned collective = 1; collective < BY_COLLECTIVE_COUNT; collective++) {
        struct by_problem problem = {0};
        struct by_plan *plan = NULL;
        struct by_plan_options used = options;
        int error;

        used.collective = collective;
        used.root = by_collective_is_rooted(collective) ? (int64_t)root : -1;
        used.time_limit_s = limit;
        error = by_plan_make(topology, &used, &plan, &problem);
        /* Some fabrics have no trees when switches only forward; no limit changes that. */
        if (error == BY_EINVAL && strstr(problem.text, "requires equal sums"))
            continue;
        if (error)
            print_message("%s, limit %g: %s\n", by_collective_name(collective), limit, problem.text);
        assert_int_equal(error, 0);
        assert_true(plan->achieved.num > 0);
        rig_verify(plan, topology,
                   by_fraction_compare(plan->achieved, plan->optimum) == 0 ? BY_VERDICT_OPTIMAL
                                                                           : BY_VERDICT_VALID);
        by_plan_free(plan);
    }
}

static void random_fabrics_have_a_plan_at_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct by_topology *topology = campaign_fabric(seed, (struct fabric_sizes){3, 16});

        plan_all(topology, 1e-9, (struct by_plan_options){.in_network = true});
        plan_all(topology, 1e-9, (struct by_plan_options){.in_network = false});
        by_topology_free(topology);
    }
}

static void the_limit_may_pass_at_any_moment(void **state)
{
    static const double limits[] = {1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2};
    struct by_topology *fabrics[] = {rig_preset("mi250", "none", "4", NULL),
                                     rig_preset("a100", "all", "6", NULL),
                                     rig_preset("torus", NULL, "5x5x4", NULL)};

    (void)state;
    for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++) {
        struct by_variation variation = {
            .fail = {5, 100}, .scatter_low = 1, .scatter_high = 4, .seed = f + 1};
        struct by_problem problem = {0};
        struct by_topology *varied;

        assert_int_equal(by_vary(fabrics[f], &variation, &varied, &problem), 0);
        for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
            plan_all(varied, limits[i], (struct by_plan_options){.in_network = true});
        by_topology_free(varied);
        by_topology_free(fabrics[f]);
    }
}

static void options_keep_their_meaning_under_a_limit(void **state)
{
    struct by_topology *topology = rig_preset("mi250", "none", "2", NULL);
    int64_t *shares = calloc(topology->node_count, sizeof(*shares));
    struct by_plan_options options = {
        .collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .shares = shares, .time_limit_s = 1e-9};
    struct by_problem problem = {0};
    struct by_plan *plan;

    (void)state;
    for (uint32_t i = 0; i < topology->node_count; i++)
        shares[i] = topology->nodes[i].compute ? i % 3 : 0;
    assert_int_equal(by_plan_make(topology, &options, &plan, &problem), 0);
    assert_true(plan->hurried);
    rig_verify(plan, topology, BY_VERDICT_VALID);
    by_plan_free(plan);
    free(shares);
    options = (struct by_plan_options){
        .collective = BY_COLLECTIVE_ALLREDUCE, .root = -1, .ordered = true, .time_limit_s = 1e-9};
    assert_int_equal(by_plan_make(topology, &options, &plan, &problem), 0);
    assert_true(plan->ordered);
    rig_verify(plan, topology, BY_VERDICT_VALID);
    by_plan_free(plan);
    by_topology_free(topology);
}

/* The first trees need no flows: on a torus they are near the bound. */
static void the_first_trees_are_good_trees(void **state)
{
    struct by_topology *topology = rig_preset("torus", NULL, "6x6x6", NULL);
    struct by_plan_options options = {
        .collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .time_limit_s = 1e-9};
    struct by_fraction part;
    struct by_problem problem = {0};
    struct by_plan *plan;

    (void)state;
    for (options.collective = BY_COLLECTIVE_ALLREDUCE; options.collective <= BY_COLLECTIVE_ALLGATHER;
         options.collective++) {
        if (by_collective_is_rooted(options.collective))
            continue;
        assert_int_equal(by_plan_make(topology, &options, &plan, &problem), 0);
        assert_true(plan->hurried);
        assert_int_equal(by_fraction_divide(plan->achieved, plan->optimum, &part), 0);
        print_message("%s: %g of the bound\n", by_collective_name(options.collective),
                      by_fraction_value(part));
        assert_true(by_fraction_compare(part, (struct by_fraction){45, 100}) > 0);
        by_plan_free(plan);
    }
    by_topology_free(topology);
}

static void a_caller_that_needs_the_best_trees_gets_none_that_were_hurried(void **state)
{
    struct by_topology *topology = rig_preset("mi250", NULL, "2", NULL);
    struct by_plan_options options = {
        .collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .time_limit_s = 1e-6};
    struct by_problem problem = {0};
    struct by_plan *plan = NULL;

    (void)state;
    assert_int_equal(by_plan_make_whole(topology, &options, &plan, &problem), BY_ETIMEDOUT);
    assert_non_null(strstr(problem.text, "time limit"));
    assert_null(plan);
    by_topology_free(topology);
}

static void a_signal_ends_a_search_without_a_limit(void **state)
{
    struct by_topology *topology = rig_preset("mi250", NULL, "2", NULL);

    (void)state;
    atomic_store(&by_plan_ended, true);
    plan_all(topology, 0, (struct by_plan_options){.in_network = true});
    atomic_store(&by_plan_ended, false);
    by_topology_free(topology);
}

static void a_repair_ends_with_new_trees(void **state)
{
    struct by_topology *topology = rig_preset("torus", NULL, "5x5", NULL), *left;
    struct by_plan *from = rig_plan(topology, BY_COLLECTIVE_ALLGATHER, -1, 0, false), *plan;
    bool *links = calloc(topology->link_count, sizeof(*links)),
         *nodes = calloc(topology->node_count, sizeof(*nodes));
    struct by_replan_report report;
    struct by_problem problem = {0};

    (void)state;
    links[3] = true;
    assert_int_equal(by_topology_without(topology, links, nodes, &left, &problem), 0);
    assert_int_equal(by_replan(topology, from, left, false, 1e-9, &plan, &report, &problem), 0);
    assert_true(report.anew && report.late && plan->hurried);
    rig_verify(plan, left, BY_VERDICT_VALID);
    by_plan_free(plan);
    by_plan_free(from);
    by_topology_free(left);
    by_topology_free(topology);
    free(links);
    free(nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_fabrics_have_a_plan_at_once),
        cmocka_unit_test(the_limit_may_pass_at_any_moment),
        cmocka_unit_test(options_keep_their_meaning_under_a_limit),
        cmocka_unit_test(the_first_trees_are_good_trees),
        cmocka_unit_test(a_caller_that_needs_the_best_trees_gets_none_that_were_hurried),
        cmocka_unit_test(a_signal_ends_a_search_without_a_limit),
        cmocka_unit_test(a_repair_ends_with_new_trees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * All bounds of known fabrics: figures of the papers, proofs that reduce-scatter followed by
 * allgather is optimal, necessary switches, and fabrics that are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/fabric/vary.h"
#include "control/planner/planner.h"
#include "control/study/bound/bound.h"
#include "control/study/bound/pack.h"
#include "offload/base/errors.h"
#include "tests/unit/control/planner/rig.h"

/* Verifies every plan behind a rate, as the command does. */
static int check(const struct by_plan *plan, const struct by_topology *topology, struct by_problem *problem)
{
    (void)problem;
    rig_verify(plan, topology,
               by_fraction_compare(plan->achieved, plan->optimum) == 0 ? BY_VERDICT_OPTIMAL
                                                                       : BY_VERDICT_VALID);
    return 0;
}

static struct by_bound *bound_of(const struct by_topology *topology)
{
    struct by_bound_options options = {.check = check};
    struct by_problem problem = {0};
    struct by_bound *bound;

    if (by_bound_make(topology, &options, &bound, &problem) != 0)
        fail_msg("%s: %s", topology->name, problem.text);
    return bound;
}

static void two_boxes_of_a100_have_the_paper_s_figures(void **state)
{
    struct by_topology *topology = rig_preset("a100", "none", "2", "8", NULL);
    struct by_bound *bound = bound_of(topology);

    (void)state;
    rig_assert_fraction(bound->allgather.inv_x, 3, 65);
    rig_assert_fraction(bound->allgather.reached, 1040, 3);
    rig_assert_fraction(bound->reduce_scatter.inv_x, 3, 65);
    for (uint32_t i = 0; i < bound->broadcast.root_count; i++) {
        rig_assert_fraction(bound->broadcast.roots[i].bound, 200, 1);
        rig_assert_fraction(bound->broadcast.roots[i].reached, 200, 1);
        rig_assert_fraction(bound->reduce.roots[i].reached, 200, 1);
    }
    rig_assert_fraction(bound->allreduce.cut_set, 200, 1);
    rig_assert_fraction(bound->allreduce.processes, 520, 3);
    rig_assert_fraction(bound->allreduce.rs_ag, 520, 3);
    rig_assert_fraction(bound->allreduce.re_bc, 100, 1);
    assert_int_equal(bound->allreduce.rs_ag_proved, BY_PROVED_PROCESSES);
    assert_null(bound->allreduce.in_network);
    by_bound_free(bound);
    by_topology_free(topology);
}

/* Theorem 19a: half of the compute nodes behind a bottleneck. */
static void a_half_behind_a_bottleneck_proves_two_phases(void **state)
{
    struct by_topology *topology =
        rig_parse("{\"name\": \"dumbbell\", \"unit\": \"GB/s\", \"nodes\": ["
                  "{\"name\": \"a\", \"kind\": \"compute\"}, {\"name\": \"b\", \"kind\": \"compute\"},"
                  "{\"name\": \"c\", \"kind\": \"compute\"}, {\"name\": \"d\", \"kind\": \"compute\"}],"
                  "\"links\": [{\"between\": [\"a\", \"b\"], \"bandwidth\": 10},"
                  "{\"between\": [\"b\", \"c\"], \"bandwidth\": 1},"
                  "{\"between\": [\"c\", \"d\"], \"bandwidth\": 10}]}");
    struct by_bound *bound = bound_of(topology);

    (void)state;
    assert_int_equal(bound->allreduce.rs_ag_proved, BY_PROVED_CUT);
    rig_assert_fraction(bound->allreduce.rs_ag, 1, 1);
    rig_assert_fraction(bound->allreduce.cut_set, 1, 1);
    by_bound_free(bound);
    by_topology_free(topology);
}

static void a_star_says_which_switch_must_work(void **state)
{
    struct by_topology *topology = rig_preset("star", "all", "8", "10", NULL);
    struct by_bound *bound = bound_of(topology);
    uint32_t centre = (uint32_t)by_topology_find(topology, "switch0");

    (void)state;
    rig_assert_fraction(bound->allreduce.rate.plan->achieved, 40, 7);
    rig_assert_fraction(bound->allreduce.in_network->achieved, 10, 1);
    rig_assert_fraction(by_bound_reached(&bound->allreduce), 10, 1);
    rig_assert_fraction(by_bound_least(&bound->allreduce), 10, 1);
    assert_int_equal(bound->allreduce.sum_count, 1);
    assert_int_equal(bound->allreduce.copy_count, 1);
    assert_true(bound->allreduce.sums[centre] && bound->allreduce.copies[centre]);
    /* processes alone allow 40/7, but not where the switch sums: this does not prove two phases */
    rig_assert_fraction(bound->allreduce.processes, 40, 7);
    assert_int_equal(bound->allreduce.rs_ag_proved, BY_PROVED_TREES);
    by_bound_free(bound);
    by_topology_free(topology);
}

/* A one-way cycle of unequal links: the program according to theorem 6, and roots of unequal
 * rates. */
static void one_way_links_have_bounds_too(void **state)
{
    struct by_topology *topology =
        rig_parse("{\"name\": \"cycle\", \"unit\": \"GB/s\", \"nodes\": ["
                  "{\"name\": \"a\", \"kind\": \"compute\"}, {\"name\": \"b\", \"kind\": \"compute\"},"
                  "{\"name\": \"c\", \"kind\": \"compute\"}],"
                  "\"links\": [{\"from\": \"a\", \"to\": \"b\", \"bandwidth\": 4},"
                  "{\"from\": \"b\", \"to\": \"c\", \"bandwidth\": 5},"
                  "{\"from\": \"c\", \"to\": \"a\", \"bandwidth\": 6}]}");
    struct by_bound *bound = bound_of(topology);

    (void)state;
    rig_assert_fraction(bound->allreduce.rate.plan->achieved, 15, 4);
    rig_assert_fraction(bound->allreduce.links, 15, 4);
    rig_assert_fraction(bound->allreduce.cut_set, 4, 1);
    assert_int_equal(bound->allreduce.rate.method, BY_RATE_PROGRAM);
    rig_assert_fraction(bound->broadcast.roots[0].bound, 4, 1); /* a: through a -> b and b -> c */
    rig_assert_fraction(bound->broadcast.roots[1].bound, 5, 1);
    rig_assert_fraction(bound->broadcast.roots[2].bound, 4, 1);
    by_bound_free(bound);
    by_topology_free(topology);
}

static void switches_that_cannot_be_split_off_are_said_to_be_so(void **state)
{
    struct by_topology *topology =
        rig_parse("{\"name\": \"lopsided\", \"unit\": \"GB/s\", \"nodes\": ["
                  "{\"name\": \"a\", \"kind\": \"compute\"}, {\"name\": \"b\", \"kind\": \"compute\"},"
                  "{\"name\": \"c\", \"kind\": \"compute\"}, {\"name\": \"s\", \"kind\": \"switch\"}],"
                  "\"links\": [{\"between\": [\"a\", \"s\"], \"bandwidth\": 4},"
                  "{\"between\": [\"b\", \"s\"], \"bandwidth\": 4},"
                  "{\"from\": \"c\", \"to\": \"s\", \"bandwidth\": 2},"
                  "{\"from\": \"s\", \"to\": \"c\", \"bandwidth\": 3}]}");
    struct by_bound *bound = bound_of(topology);

    (void)state;
    assert_int_equal(bound->allgather.reached.num, 0);
    assert_true(bound->allgather.bound.num > 0);
    assert_int_equal(bound->allreduce.rs_ag.num, 0);
    assert_int_equal(bound->allreduce.re_bc.num, 0);
    assert_non_null(strstr(bound->unreached, "'c'"));
    assert_true(bound->allreduce.rate.plan->achieved.num > 0); /* the program needs no switch removal */
    rig_assert_fraction(bound->allreduce.rate.plan->achieved, 2, 1);
    by_bound_free(bound);
    by_topology_free(topology);
}

/* Eight leaves, four spines, all links different: the planner's own columns must be rounded
 * here. */
static void the_planner_reaches_the_program_s_rate(void **state)
{
    struct by_topology *plain = rig_preset("leafspine", "none", "8", "4", "4", NULL), *topology = NULL;
    struct by_variation variation = {.fail = {0, 1}, .scatter_low = 5, .scatter_high = 8, .seed = 3};
    struct by_plan_options options = {
        .collective = BY_COLLECTIVE_ALLREDUCE, .root = -1, .in_network = true, .programs = by_program_pack};
    struct by_problem problem = {0};
    struct by_plan *plan;

    (void)state;
    assert_int_equal(by_vary(plain, &variation, &topology, &problem), 0);
    if (by_plan_make(topology, &options, &plan, &problem) != 0)
        fail_msg("%s", problem.text);
    assert_non_null(plan->proof);
    assert_true(by_fraction_compare(plan->achieved, plan->two_phases) > 0);
    rig_verify(plan, topology, BY_VERDICT_OPTIMAL);
    by_plan_free(plan);
    by_topology_free(topology);
    by_topology_free(plain);
}

/* ForestColl's hypothesis on equal bandwidths, and Zhou and Sun's question: docs/bounds.md. */
static void four_and_two_hosts_are_faster_than_their_two_phases(void **state)
{
    struct by_problem problem = {0};
    struct by_topology *topology = NULL;
    struct by_bound *bound;

    (void)state;
    assert_int_equal(by_topology_read("tests/golden/fabric/four-and-two.json", &topology, &problem), 0);
    bound = bound_of(topology);
    rig_assert_fraction(bound->allreduce.rs_ag, 3, 4);
    rig_assert_fraction(bound->allreduce.rate.plan->achieved, 1, 1);
    rig_assert_fraction(bound->allreduce.cut_set, 1, 1);
    rig_assert_fraction(bound->allreduce.re_bc, 1, 2); /* at least half of the cut set */
    by_bound_free(bound);
    by_topology_free(topology);
}

static void one_compute_node_is_refused(void **state)
{
    struct by_topology *topology =
        rig_parse("{\"name\": \"lonely\", \"unit\": \"GB/s\", \"nodes\": ["
                  "{\"name\": \"a\", \"kind\": \"compute\"}, {\"name\": \"s\", \"kind\": \"switch\"}],"
                  "\"links\": [{\"between\": [\"a\", \"s\"], \"bandwidth\": 1}]}");
    struct by_bound_options options = {0};
    struct by_problem problem = {0};
    struct by_bound *bound;

    (void)state;
    assert_int_equal(by_bound_make(topology, &options, &bound, &problem), BY_EINVAL);
    assert_non_null(strstr(problem.text, "at least two"));
    assert_null(bound);
    by_topology_free(topology);
}

static void a_time_limit_is_kept(void **state)
{
    struct by_topology *topology = rig_preset("mi250", "none", "16", "16", NULL);
    struct by_bound_options options = {.time_limit_s = 1e-6};
    struct by_problem problem = {0};
    struct by_bound *bound;

    (void)state;
    assert_int_equal(by_bound_make(topology, &options, &bound, &problem), BY_ETIMEDOUT);
    assert_non_null(strstr(problem.text, "time limit"));
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_boxes_of_a100_have_the_paper_s_figures),
        cmocka_unit_test(a_half_behind_a_bottleneck_proves_two_phases),
        cmocka_unit_test(a_star_says_which_switch_must_work),
        cmocka_unit_test(one_way_links_have_bounds_too),
        cmocka_unit_test(switches_that_cannot_be_split_off_are_said_to_be_so),
        cmocka_unit_test(the_planner_reaches_the_program_s_rate),
        cmocka_unit_test(one_compute_node_is_refused),
        cmocka_unit_test(four_and_two_hosts_are_faster_than_their_two_phases),
        cmocka_unit_test(a_time_limit_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

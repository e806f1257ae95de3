/* Forests of published algorithms: closed forms, and plans that the verifier checks, also on random
 * fabrics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/fabric/vary.h"
#include "control/planner/planner.h"
#include "control/study/baseline/baseline.h"
#include "control/study/bound/pack.h"
#include "offload/base/errors.h"
#include "tests/unit/control/planner/rig.h"

#define RANDOM_COUNT 40

static const unsigned collectives[] = {BY_COLLECTIVE_ALLGATHER, BY_COLLECTIVE_REDUCE_SCATTER,
                                       BY_COLLECTIVE_ALLREDUCE, BY_COLLECTIVE_BROADCAST,
                                       BY_COLLECTIVE_REDUCE};
#define COLLECTIVE_COUNT (sizeof(collectives) / sizeof(collectives[0]))

static int64_t root_for(const struct by_topology *topology, unsigned collective)
{
    int64_t root = topology->node_count;

    if (collective != BY_COLLECTIVE_BROADCAST && collective != BY_COLLECTIVE_REDUCE)
        return -1;
    while (!topology->nodes[--root].compute)
        continue;
    return root;
}

/* Runs an algorithm that makes a plan. Returns its error. */
static int run(const struct by_topology *topology, enum by_algorithm algorithm, unsigned collective,
               struct by_baseline *result, struct by_problem *problem)
{
    struct by_baseline_options options = {.algorithm = algorithm,
                                          .collective = collective,
                                          .root = root_for(topology, collective),
                                          .keep = true};
    struct by_plan *reference = rig_plan(topology, collective, options.root, 0, true);
    int error = by_baseline_make(topology, &options, reference, result, problem);

    by_plan_free(reference);
    return error;
}

/* The plan is valid and has the rate that the figures without a plan report. */
static void check_plan(const struct by_topology *topology, enum by_algorithm algorithm, unsigned collective,
                       struct by_baseline *result)
{
    bool best = by_fraction_compare(result->plan->achieved, result->plan->optimum) == 0;
    struct by_baseline_options options = {
        .algorithm = algorithm, .collective = collective, .root = root_for(topology, collective)};
    struct by_baseline figures;
    struct by_problem problem = {0};

    rig_verify(result->plan, topology, best ? BY_VERDICT_OPTIMAL : BY_VERDICT_VALID);
    assert_true(by_fraction_compare(result->plan->achieved, result->plan->optimum) <= 0);
    assert_int_equal(by_baseline_make(topology, &options, result->plan, &figures, &problem), 0);
    assert_null(figures.plan);
    assert_int_equal(by_fraction_compare(figures.facts.achieved, result->plan->achieved), 0);
    assert_int_equal(figures.facts.tree_count, result->plan->tree_count);
    by_baseline_free(&figures);
}

static void every_plan_on_the_usual_fabrics_is_right(void **state)
{
    static const struct {
        const char *name, *parameters[5];
    } fabrics[] = {{"star", {"5", "10"}},
                   {"ring", {"6", "10"}},
                   {"complete", {"5", "10"}},
                   {"hypercube", {"3", "10"}},
                   {"torus", {"3x4", "10"}},
                   {"leafspine", {"3", "2", "3"}},
                   {"fattree", {"4", "10"}},
                   {"dragonfly", {"3", "2"}},
                   {"rail", {"2", "4"}},
                   {"twobox", {"4", "100", "10"}},
                   {"a100", {"2"}}};

    (void)state;
    for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++) {
        struct by_topology *topology = rig_preset_list(fabrics[f].name, "none", fabrics[f].parameters);
        unsigned plans = 0;

        for (unsigned a = BY_ALGORITHM_RING; a < BY_ALGORITHM_COUNT; a++)
            for (size_t c = 0; c < COLLECTIVE_COUNT && by_algorithm_has_trees((enum by_algorithm)a); c++) {
                struct by_baseline result;
                struct by_problem problem = {0};
                int error = run(topology, (enum by_algorithm)a, collectives[c], &result, &problem);

                if (error == BY_EUNSUPPORTED)
                    continue;
                if (error)
                    fail_msg("%s, %s: %s", fabrics[f].name, by_algorithm_name((enum by_algorithm)a),
                             problem.text);
                check_plan(topology, (enum by_algorithm)a, collectives[c], &result);
                by_baseline_free(&result);
                plans++;
            }
        assert_int_equal(plans, 3 * 5 + 2 * 3); /* two lack allgather and reduce-scatter */
        by_topology_free(topology);
    }
}

static void every_plan_on_random_fabrics_is_right(void **state)
{
    const char *fixed = getenv("BY_SEED");
    unsigned first = fixed ? (unsigned)atoi(fixed) : 1, last = fixed ? first : RANDOM_COUNT;

    (void)state;
    for (unsigned seed = first; seed <= last; seed++) {
        char hosts[12], text[12];
        struct by_topology *topology;

        snprintf(hosts, sizeof(hosts), "%u", 2 + seed % 9);
        snprintf(text, sizeof(text), "%u", seed);
        topology = rig_preset("random", "all", hosts, "3", "6", "5", text, NULL);
        print_message("seed %u: replay with BY_SEED=%u\n", seed, seed);
        for (unsigned a = BY_ALGORITHM_RING; a < BY_ALGORITHM_COUNT; a++)
            for (size_t c = 0; c < COLLECTIVE_COUNT && by_algorithm_has_trees((enum by_algorithm)a); c++) {
                struct by_baseline result;
                struct by_problem problem = {0};
                int error = run(topology, (enum by_algorithm)a, collectives[c], &result, &problem);

                if (error == BY_EUNSUPPORTED)
                    continue;
                if (error)
                    fail_msg("%s", problem.text);
                check_plan(topology, (enum by_algorithm)a, collectives[c], &result);
                by_baseline_free(&result);
            }
        by_topology_free(topology);
    }
}

static void rates_have_their_closed_forms(void **state)
{
    static const struct {
        const char *fabric, *parameters[4];
        enum by_algorithm algorithm;
        unsigned collective;
        int64_t num, den;
    } rows[] = {
        /* N hosts of 10 at a switch: a ring fills every link; reduce and broadcast share them. */
        {"star", {"8", "10"}, BY_ALGORITHM_RING, BY_COLLECTIVE_ALLGATHER, 80, 7},
        {"star", {"8", "10"}, BY_ALGORITHM_RING, BY_COLLECTIVE_REDUCE_SCATTER, 80, 7},
        {"star", {"8", "10"}, BY_ALGORITHM_RING, BY_COLLECTIVE_ALLREDUCE, 40, 7},
        {"star", {"8", "10"}, BY_ALGORITHM_RING, BY_COLLECTIVE_BROADCAST, 10, 1},
        {"star", {"8", "10"}, BY_ALGORITHM_RINGS, BY_COLLECTIVE_ALLREDUCE, 40, 7},
        {"star", {"8", "10"}, BY_ALGORITHM_MULTITREE, BY_COLLECTIVE_ALLGATHER, 80, 7},
        {"star", {"8", "10"}, BY_ALGORITHM_BLINK, BY_COLLECTIVE_ALLREDUCE, 40, 7},
        {"star", {"8", "10"}, BY_ALGORITHM_BLINK, BY_COLLECTIVE_REDUCE, 10, 1},
        /* Every node is an inner node of one tree, with two children: it receives 1 + 2 halves
         * going up and 1 + 1 halves going down. */
        {"star", {"8", "10"}, BY_ALGORITHM_DOUBLE_BINARY, BY_COLLECTIVE_ALLREDUCE, 5, 1},
        /* One ring uses one direction of a cycle, two use both; so does MultiTree. */
        {"ring", {"7", "10"}, BY_ALGORITHM_RING, BY_COLLECTIVE_ALLGATHER, 70, 6},
        {"ring", {"7", "10"}, BY_ALGORITHM_RINGS, BY_COLLECTIVE_ALLGATHER, 140, 6},
        {"ring", {"7", "10"}, BY_ALGORITHM_MULTITREE, BY_COLLECTIVE_ALLGATHER, 140, 6},
        {"ring", {"7", "10"}, BY_ALGORITHM_BLINK, BY_COLLECTIVE_BROADCAST, 20, 1},
        /* A tree of height one for each root. */
        {"complete", {"6", "10"}, BY_ALGORITHM_MULTITREE, BY_COLLECTIVE_ALLGATHER, 60, 1},
        /* A torus of four rings, one for each link of a node; found by the algorithm, not given. */
        {"torus", {"4x4", "10"}, BY_ALGORITHM_RINGS, BY_COLLECTIVE_ALLGATHER, 640, 15},
        /* Two boxes of eight GPUs: one ring leaves through one GPU's 25 GB/s, eight rings through
         * all. */
        {"a100", {"2"}, BY_ALGORITHM_RING, BY_COLLECTIVE_ALLGATHER, 80, 3},
        {"a100", {"2"}, BY_ALGORITHM_RINGS, BY_COLLECTIVE_ALLGATHER, 640, 3},
        {"a100", {"2"}, BY_ALGORITHM_RINGS, BY_COLLECTIVE_ALLREDUCE, 320, 3},
        /* Trees that fill a box before they leave it enter every other box once. For many boxes
         * this is the optimum (ForestColl, NSDI'26, figure 14). With two, NVLinks carry 14
         * shards. */
        {"a100", {"2"}, BY_ALGORITHM_MULTITREE, BY_COLLECTIVE_ALLGATHER, 2400, 7},
        {"a100", {"3"}, BY_ALGORITHM_MULTITREE, BY_COLLECTIVE_ALLGATHER, 300, 1},
        {"a100", {"4"}, BY_ALGORITHM_MULTITREE, BY_COLLECTIVE_ALLREDUCE, 400, 3},
        {"a100", {"16"}, BY_ALGORITHM_MULTITREE, BY_COLLECTIVE_REDUCE_SCATTER, 640, 3},
        /* Reduce and broadcast of one root, packed together: the Reduce-Broadcast rate. */
        {"a100", {"2"}, BY_ALGORITHM_BLINK, BY_COLLECTIVE_ALLREDUCE, 520, 3},
        {"mi250", {"2", "8"}, BY_ALGORITHM_BLINK, BY_COLLECTIVE_ALLREDUCE, 128, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_topology *topology = rig_preset_list(rows[i].fabric, "none", rows[i].parameters);
        struct by_baseline result;
        struct by_problem problem = {0};

        if (run(topology, rows[i].algorithm, rows[i].collective, &result, &problem) != 0)
            fail_msg("row %zu: %s", i, problem.text);
        print_message("row %zu: %s %s\n", i, rows[i].fabric, by_algorithm_name(rows[i].algorithm));
        rig_assert_fraction(result.facts.achieved, rows[i].num, rows[i].den);
        by_baseline_free(&result);
        by_topology_free(topology);
    }
}

/* With unequal links the planner takes pairs of trees from the program; Blink moves them to one
 * root. */
static void blinks_allreduce_has_one_root_and_is_as_fast_as_any_roots(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct by_topology *even = rig_preset("leafspine", "none", "2", "2", "3", NULL), *topology;
        struct by_variation variation = {.fail = {0, 1}, .scatter_low = 1, .scatter_high = 6, .seed = seed};
        struct by_plan_options options = {
            .collective = BY_COLLECTIVE_ALLREDUCE, .root = -1, .programs = by_program_pack};
        struct by_baseline_options wanted = {.algorithm = BY_ALGORITHM_BLINK,
                                             .collective = BY_COLLECTIVE_ALLREDUCE,
                                             .root = -1,
                                             .keep = true,
                                             .programs = by_program_pack};
        struct by_problem problem = {0};
        struct by_plan *plan;
        struct by_baseline result;

        assert_int_equal(by_vary(even, &variation, &topology, &problem), 0);
        assert_int_equal(by_plan_make(topology, &options, &plan, &problem), 0);
        assert_int_equal(by_baseline_make(topology, &wanted, plan, &result, &problem), 0);
        rig_assert_fraction(result.facts.achieved, plan->achieved.num, plan->achieved.den);
        rig_verify(result.plan, topology, BY_VERDICT_OPTIMAL);
        for (uint32_t i = 0; i < result.plan->tree_count; i++)
            assert_int_equal(result.plan->trees[i].root, result.plan->trees[0].root);
        by_baseline_free(&result);
        by_plan_free(plan);
        by_topology_free(topology);
        by_topology_free(even);
    }
}

static void a_ring_of_one_way_links_is_a_ring(void **state)
{
    struct by_topology *topology = rig_parse("{\"name\": \"circle\", \"nodes\": [{\"name\": \"a\", \"kind\": "
                                             "\"compute\"}, {\"name\": \"b\", \"kind\": "
                                             "\"compute\"}, {\"name\": \"c\", \"kind\": \"compute\"}], "
                                             "\"links\": [{\"from\": \"a\", \"to\": \"b\", "
                                             "\"bandwidth\": 5}, {\"from\": \"b\", \"to\": \"c\", "
                                             "\"bandwidth\": 5}, {\"from\": \"c\", \"to\": \"a\", "
                                             "\"bandwidth\": 5}]}");
    static const enum by_algorithm algorithms[] = {BY_ALGORITHM_RING, BY_ALGORITHM_RINGS,
                                                   BY_ALGORITHM_MULTITREE, BY_ALGORITHM_DOUBLE_BINARY};

    (void)state;
    for (size_t a = 0; a < 4; a++)
        for (size_t c = 0; c < COLLECTIVE_COUNT; c++) {
            struct by_baseline result;
            struct by_problem problem = {0};
            int error = run(topology, algorithms[a], collectives[c], &result, &problem);

            if (error == BY_EUNSUPPORTED)
                continue;
            if (error)
                fail_msg("%s: %s", by_algorithm_name(algorithms[a]), problem.text);
            check_plan(topology, algorithms[a], collectives[c], &result);
            if (algorithms[a] == BY_ALGORITHM_RING && collectives[c] == BY_COLLECTIVE_ALLGATHER)
                rig_assert_fraction(result.facts.achieved, 15, 2);
            by_baseline_free(&result);
        }
    by_topology_free(topology);
}

static void what_an_algorithm_does_not_do_is_refused_with_its_reason(void **state)
{
    struct by_topology *topology = rig_preset("star", "none", "4", "10", NULL);
    static const struct {
        enum by_algorithm algorithm;
        unsigned collective;
        const char *reason;
    } rows[] = {{BY_ALGORITHM_BLINK, BY_COLLECTIVE_ALLGATHER, "one root"},
                {BY_ALGORITHM_DOUBLE_BINARY, BY_COLLECTIVE_REDUCE_SCATTER, "root at every node"},
                {BY_ALGORITHM_RING, BY_COLLECTIVE_BARRIER, "no data"}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_baseline result;
        struct by_problem problem = {0};

        assert_int_equal(run(topology, rows[i].algorithm, rows[i].collective, &result, &problem),
                         BY_EUNSUPPORTED);
        assert_non_null(strstr(problem.text, rows[i].reason));
    }
    by_topology_free(topology);
}

static void boxes_are_found_where_links_differ_and_nowhere_else(void **state)
{
    static const struct {
        const char *fabric, *parameters[3];
        uint32_t count;
    } rows[] = {{"a100", {"3", "4"}, 3}, {"mi250", {"2"}, 2},     {"rail", {"4", "2"}, 4},
                {"star", {"6"}, 6},      {"leafspine", {"2"}, 4}, {"torus", {"3x3"}, 9},
                {"twobox", {"4"}, 2},    {"hypercube", {"3"}, 8}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_topology *topology = rig_preset_list(rows[i].fabric, "none", rows[i].parameters);
        struct by_baseline_net *net = by_net_new(topology, false);
        struct by_boxes boxes;

        by_boxes_find(net, &boxes);
        print_message("%s\n", rows[i].fabric);
        assert_int_equal(boxes.count, rows[i].count);
        by_boxes_free(&boxes);
        by_net_free(net);
        by_topology_free(topology);
    }
}

static void every_algorithm_has_a_name(void **state)
{
    (void)state;
    for (unsigned i = BY_ALGORITHM_NONE + 1; i < BY_ALGORITHM_COUNT; i++)
        assert_int_equal(by_algorithm_from_name(by_algorithm_name((enum by_algorithm)i)), i);
    assert_int_equal(by_algorithm_from_name("?"), BY_ALGORITHM_NONE);
    assert_int_equal(by_algorithm_from_name("tree"), BY_ALGORITHM_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plan_on_the_usual_fabrics_is_right),
        cmocka_unit_test(every_plan_on_random_fabrics_is_right),
        cmocka_unit_test(rates_have_their_closed_forms),
        cmocka_unit_test(blinks_allreduce_has_one_root_and_is_as_fast_as_any_roots),
        cmocka_unit_test(a_ring_of_one_way_links_is_a_ring),
        cmocka_unit_test(what_an_algorithm_does_not_do_is_refused_with_its_reason),
        cmocka_unit_test(boxes_are_found_where_links_differ_and_nowhere_else),
        cmocka_unit_test(every_algorithm_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

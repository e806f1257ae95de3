/*
 * Plans by classes: random fabrics of alike parts, whose plans are verified by classes and with all
 * their trees, and compared with the bounds of plans for all nodes; rotations that are not
 * symmetries, or not those of the plan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/planner/planner.h"
#include "control/tables/runs.h"
#include "offload/base/errors.h"
#include "tests/unit/control/planner/nested.h"
#include "tests/unit/control/planner/rig.h"

/* Random fabrics (count), with three collectives each. */
#define FABRICS 100u
/* Nodes up to which an allreduce is also planned without classes (count). */
#define PLAIN_MAX 24u

/* Returns the plan by classes, or NULL if there is none. */
static struct by_plan *by_classes(const struct by_topology *topology, unsigned collective)
{
    struct by_plan_options options = {
        .collective = collective, .root = -1, .classes = true, .in_network = true};
    struct by_problem problem = {0};
    struct by_plan *plan = NULL;
    int error = by_plan_make(topology, &options, &plan, &problem);

    if (error && error != BY_EUNSUPPORTED)
        fail_msg("%s: %s", by_collective_name(collective), problem.text);
    return plan;
}

/* Verifies the text of a plan, which must not be invalid. */
static struct by_verify_report verified(const struct by_plan *plan, const struct by_topology *topology)
{
    struct by_verify_report report;
    struct by_problem problem = {0};
    char *text = rig_text(plan, topology);

    if (by_verify_text(topology, text, strlen(text), &report, &problem) != 0)
        fail_msg("%s", problem.text);
    if (report.verdict == BY_VERDICT_INVALID)
        fail_msg("%s", report.reason);
    free(text);
    return report;
}

/* Reads the text of a plan with all its trees. */
static struct by_plan *expanded(const struct by_plan *plan, const struct by_topology *topology)
{
    struct by_problem problem = {0};
    struct by_plan *all = NULL;
    char *text = rig_text(plan, topology);

    if (by_plan_parse(text, strlen(text), topology, &all, &problem) != 0)
        fail_msg("%s", problem.text);
    free(text);
    return all;
}

/* Whether all trees of `part` are trees of `all`, which has as many of that root. */
static void assert_trees_at_root(const struct by_plan *part, const struct by_plan *all, uint32_t root)
{
    uint32_t there = 0;

    for (uint32_t i = 0; i < all->tree_count; i++)
        there += all->trees[i].root == root;
    assert_int_equal(part->tree_count, there);
    for (uint32_t i = 0; i < part->tree_count; i++) {
        bool found = false;

        assert_int_equal(part->trees[i].root, root);
        for (uint32_t j = 0; j < all->tree_count && !found; j++) {
            const struct by_tree *a = &part->trees[i], *b = &all->trees[j];

            found = b->root == root && a->edge_count == b->edge_count &&
                    by_fraction_compare(a->weight, b->weight) == 0;
            for (uint32_t e = 0; e < a->edge_count && found; e++) {
                struct by_path x = by_plan_edge(part, a, e), y = by_plan_edge(all, b, e);

                found = x.node_count == y.node_count &&
                        memcmp(x.nodes, y.nodes, x.node_count * sizeof(*x.nodes)) == 0;
            }
        }
        assert_true(found);
    }
}

static void the_trees_of_one_root_are_those_of_the_whole_plan(void **state)
{
    struct by_topology *topology = rig_preset("leafspine", "none", "3", "2", "3", NULL);
    struct by_plan *plan = by_classes(topology, BY_COLLECTIVE_ALLGATHER), *all = expanded(plan, topology);
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(by_rotations_images(plan->rotations), 9);
    by_plan_free(plan);
    for (uint32_t root = 0; root < 9; root++) {
        plan = by_classes(topology, BY_COLLECTIVE_ALLGATHER);
        assert_int_equal(by_rotations_at_root(plan, topology->node_count, root, &problem), 0);
        assert_trees_at_root(plan, all, root);
        by_plan_free(plan);
    }
    plan = by_classes(topology, BY_COLLECTIVE_ALLGATHER);
    assert_int_equal(by_rotations_at_root(plan, topology->node_count, 9, &problem), BY_EINVAL);
    assert_non_null(strstr(problem.text, "name a compute node"));
    by_plan_free(plan);
    by_plan_free(all);
    by_topology_free(topology);
}

/* What was found on random fabrics. */
struct tally {
    uint32_t planned, optimal;
};

static void try_fabric(const struct by_topology *topology, unsigned collective, struct tally *tally)
{
    struct by_plan *plan = by_classes(topology, collective), *all, *plain;
    struct by_verify_report report, again;

    if (!plan)
        return;
    tally->planned++;
    report = verified(plan, topology);
    tally->optimal += report.verdict == BY_VERDICT_OPTIMAL;
    all = expanded(plan, topology);
    assert_null(all->rotations);
    again = verified(all, topology);
    assert_int_equal(again.verdict, report.verdict);
    assert_string_equal(again.achieved.num, report.achieved.num);
    assert_string_equal(again.achieved.den, report.achieved.den);
    assert_int_equal(again.tree_count, report.tree_count * report.images);
    by_plan_free(all);
    if (collective == BY_COLLECTIVE_ALLREDUCE && topology->node_count > PLAIN_MAX) {
        by_plan_free(plan);
        return;
    }
    plain = rig_plan(topology, collective, -1, 0, true);
    assert_true(by_fraction_compare(plan->achieved, plain->optimum) <= 0);
    if (collective == BY_COLLECTIVE_ALLREDUCE)
        assert_true(by_fraction_compare(plan->optimum, plain->achieved) >= 0);
    else
        rig_assert_fraction(plan->optimum, plain->optimum.num, plain->optimum.den);
    by_plan_free(plain);
    by_plan_free(plan);
}

static void plans_of_random_fabrics_are_valid(void **state)
{
    static const unsigned collectives[] = {BY_COLLECTIVE_ALLGATHER, BY_COLLECTIVE_REDUCE_SCATTER,
                                           BY_COLLECTIVE_ALLREDUCE};
    struct tally tally[3] = {{0, 0}};

    (void)state;
    for (uint64_t seed = 1; seed <= FABRICS; seed++)
        for (size_t i = 0; i < 3; i++) {
            struct by_prng prng = {seed};
            struct by_topology *topology = nested_fabric(&prng);

            try_fabric(topology, collectives[i], &tally[i]);
            by_topology_free(topology);
        }
    for (size_t i = 0; i < 3; i++)
        print_message("%s: %u of %u fabrics planned by classes, %u of them at the bound\n",
                      by_collective_name(collectives[i]), tally[i].planned, FABRICS, tally[i].optimal);
    assert_true(tally[0].planned > FABRICS / 3 && tally[0].optimal > tally[0].planned / 5);
}

/* Presets, where plans by classes reach the bound. */
static void presets_of_alike_parts_reach_the_bound(void **state)
{
    static const struct {
        const char *preset, *capable, *parameters[6];
        uint64_t images; /* of the trees of an allgather */
    } cases[] = {
        {"h100", "all", {"8", "8"}, 64},
        {"a100", "none", {"8", "8"}, 64},
        {"mi250", "none", {"8", "16"}, 8},
        {"rail", "none", {"8", "8"}, 64},
        {"rail", "all", {"8", "8"}, 64},
        {"leafspine", "none", {"8", "4", "8"}, 64},
        {"leafspine", "all", {"8", "3", "8"}, 64},
        {"fattree", "all", {"8"}, 128},
        {"twobox", "all", {"5", "20", "2", "3"}, 15},
        {"star", "all", {"9"}, 9},
    };
    static const unsigned collectives[] = {BY_COLLECTIVE_ALLGATHER, BY_COLLECTIVE_REDUCE_SCATTER,
                                           BY_COLLECTIVE_ALLREDUCE, BY_COLLECTIVE_BARRIER};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct by_topology *topology =
            rig_preset_list(cases[i].preset, cases[i].capable, cases[i].parameters);

        for (size_t j = 0; j < 4; j++) {
            struct by_plan *plan = by_classes(topology, collectives[j]);
            struct by_verify_report report;

            assert_non_null(plan);
            report = verified(plan, topology);
            /* the bound of MI250 boxes is one of trees that no partition proves */
            if (report.verdict != BY_VERDICT_OPTIMAL && (j < 2 || strcmp(cases[i].preset, "mi250") != 0))
                fail_msg("%s on %s: %s", by_collective_name(collectives[j]), topology->name,
                         report.reason[0] ? report.reason : "not optimal");
            if (j < 2)
                assert_int_equal(by_rotations_images(plan->rotations), cases[i].images);
            by_plan_free(plan);
        }
        by_topology_free(topology);
    }
}

/* What a plan needs in tables is counted from its classes as from all its trees. */
static void tables_of_classes_are_those_of_all_trees(void **state)
{
    static const unsigned collectives[] = {BY_COLLECTIVE_ALLREDUCE, BY_COLLECTIVE_ALLGATHER};
    static const char *const abilities[] = {"all", "leaf"}; /* with spines that relay */

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct by_topology *topology = rig_preset("leafspine", abilities[i / 2], "32", "4", "16", NULL);
        struct by_plan *plan = by_classes(topology, collectives[i % 2]), *all = expanded(plan, topology);
        struct by_runs runs, again;

        by_runs_find(topology, plan, &runs);
        by_runs_find(topology, all, &again);
        assert_int_equal(runs.runs, again.runs);
        assert_int_equal(runs.trees, again.trees);
        assert_int_equal(runs.slots, again.slots);
        assert_int_equal(runs.window, again.window);
        by_plan_free(all);
        by_plan_free(plan);
        by_topology_free(topology);
    }
}

static void fabrics_without_alike_parts_are_refused(void **state)
{
    static const struct {
        const char *preset, *parameters[6], *says;
    } cases[] = {
        {"torus", {"4x4"}, "no alike parts"},
        {"hypercube", {"4"}, "no alike parts"},
        {"hetero", {"3"}, "no alike parts"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct by_topology *topology = rig_preset_list(cases[i].preset, NULL, cases[i].parameters);
        struct by_plan_options options = {
            .collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .classes = true, .in_network = true};
        struct by_problem problem = {0};
        struct by_plan *plan = NULL;

        assert_int_equal(by_plan_make(topology, &options, &plan, &problem), BY_EUNSUPPORTED);
        assert_non_null(strstr(problem.text, cases[i].says));
        by_topology_free(topology);
    }
}

static void options_that_need_all_trees_are_refused(void **state)
{
    struct by_topology *topology = rig_preset("leafspine", "all", "2", "1", "2", NULL);
    struct by_plan_options options[] = {
        {.collective = BY_COLLECTIVE_BROADCAST, .root = 0},
        {.collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .fixed_k = 2},
        {.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1, .ordered = true},
        {.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1, .latency_aware = true},
        {.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1, .trees_max = 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        struct by_problem problem = {0};
        struct by_plan *plan = NULL;

        options[i].classes = options[i].in_network = true;
        assert_int_equal(by_plan_make(topology, &options[i], &plan, &problem), BY_EUNSUPPORTED);
        assert_non_null(strstr(problem.text, "plans by classes are for"));
    }
    by_topology_free(topology);
}

/* Above the limit of plans for all nodes, an allgather is planned by classes, and a broadcast,
 * which has few trees, with all of them. */
static void large_fabrics_are_planned(void **state)
{
    struct by_topology *topology = rig_preset("leafspine", "all", "128", "4", "160", NULL);
    struct by_plan *plan = rig_verified(topology, BY_COLLECTIVE_ALLGATHER, -1, 0, true, BY_VERDICT_OPTIMAL);
    struct by_plan_options options = {.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1, .in_network = true};
    struct by_problem problem = {0};
    bool *member;

    (void)state;
    assert_int_equal(by_rotations_images(plan->rotations), 128 * 160);
    by_plan_free(plan);
    plan = rig_verified(topology, BY_COLLECTIVE_BROADCAST, 5, 0, true, BY_VERDICT_OPTIMAL);
    assert_null(plan->rotations);
    by_plan_free(plan);
    options.member = member = by_alloc(topology->node_count, sizeof(*member));
    member[3] = member[700] = member[20000] = true;
    if (by_plan_make(topology, &options, &plan, &problem) != 0) /* of some compute nodes */
        fail_msg("%s", problem.text);
    rig_verify(plan, topology, BY_VERDICT_OPTIMAL);
    by_plan_free(plan);
    options.collective = BY_COLLECTIVE_ALLGATHER;
    options.classes = true;
    assert_int_equal(by_plan_make(topology, &options, &plan, &problem), BY_EUNSUPPORTED);
    assert_non_null(strstr(problem.text, "of all compute nodes, not of some"));
    free(member);
    by_topology_free(topology);
}

static void large_fabrics_without_alike_parts_are_refused(void **state)
{
    struct by_topology *topology = rig_preset("torus", "all", "150x150", NULL);
    struct by_plan_options options = {.collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .in_network = true};
    struct by_problem problem = {0};
    struct by_plan *plan = NULL;

    (void)state;
    assert_int_equal(by_plan_make(topology, &options, &plan, &problem), BY_EUNSUPPORTED);
    assert_non_null(strstr(problem.text, "22500 nodes, and above 16384 only plans by classes are made"));
    by_topology_free(topology);
}

/* ---- files that are not what they claim ---- */

static json_t *rotation(json_t *plan, size_t number)
{
    return json_array_get(json_object_get(plan, "rotations"), number);
}

static void swap_in_cycle(json_t *plan)
{
    json_t *cycle = json_array_get(json_object_get(rotation(plan, 0), "cycles"), 0);
    json_t *first = json_incref(json_array_get(cycle, 1)), *second = json_incref(json_array_get(cycle, 2));

    json_array_set_new(cycle, 1, second);
    json_array_set_new(cycle, 2, first);
}

static void drop_cycle(json_t *plan)
{
    json_array_remove(json_object_get(rotation(plan, 0), "cycles"), 0);
}

static void larger_order(json_t *plan)
{
    json_object_set_new(rotation(plan, 0), "order", json_integer(6)); /* cycles of 3 divide it */
}

static void other_order(json_t *plan)
{
    json_object_set_new(rotation(plan, 0), "order", json_integer(4));
}

static void drop_rotation(json_t *plan)
{
    json_array_remove(json_object_get(plan, "rotations"), 1);
}

static void twice_the_weight(json_t *plan)
{
    json_t *weight = json_object_get(json_array_get(json_object_get(plan, "trees"), 0), "weight");

    json_object_set_new(weight, "num", json_integer(2 * json_integer_value(json_object_get(weight, "num"))));
}

static void no_rotations(json_t *plan)
{
    json_array_clear(json_object_get(plan, "rotations"));
}

static void a_host_for_a_switch(json_t *plan)
{
    json_t *cycles = json_object_get(rotation(plan, 0), "cycles");

    json_array_clear(cycles);
    json_array_append_new(cycles, json_pack("[sss]", "host0", "leaf0", "spine0"));
}

static void a_node_twice(json_t *plan)
{
    json_array_append_new(json_object_get(rotation(plan, 0), "cycles"),
                          json_pack("[sss]", "host0", "host3", "host6"));
}

static void an_unknown_node(json_t *plan)
{
    json_array_set_new(json_array_get(json_object_get(rotation(plan, 0), "cycles"), 0), 0,
                       json_string("nobody"));
}

/* Moves hosts under one leaf only: no exchange with the rotation of leaves. */
static void one_leaf_turns(json_t *plan)
{
    json_t *cycles = json_object_get(rotation(plan, 1), "cycles");

    json_array_clear(cycles);
    json_array_append_new(cycles, json_pack("[sss]", "host0", "host1", "host2"));
}

static void tampered_rotations_are_found(void **state)
{
    static const struct {
        void (*tamper)(json_t *plan);
        const char *says;
    } cases[] = {
        {swap_in_cycle, "to one of another capacity"},
        {drop_cycle, "to one of another capacity"},
        {larger_order, "carries"},
        {other_order, "has order 4, but moves"},
        {drop_rotation, "the weights of the trees of"},
        {twice_the_weight, "carries"},
        {no_rotations, "\"rotations\" is empty"},
        {a_host_for_a_switch, "which is a different kind of node"},
        {a_node_twice, "appears twice in a rotation"},
        {an_unknown_node, "'nobody'"},
        {one_leaf_turns, "in different orders"},
    };
    struct by_topology *topology = rig_preset("leafspine", "none", "3", "2", "3", NULL);
    struct by_plan *plan = by_classes(topology, BY_COLLECTIVE_ALLGATHER);
    char *text = rig_text(plan, topology);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        json_t *json = json_loads(text, 0, NULL);
        struct by_verify_report report;
        struct by_problem problem = {0};
        struct by_plan *back = NULL;
        char *changed;

        assert_non_null(json);
        cases[i].tamper(json);
        changed = json_dumps(json, JSON_PRESERVE_ORDER);
        assert_int_equal(by_verify_text(topology, changed, strlen(changed), &report, &problem), 0);
        assert_int_equal(report.verdict, BY_VERDICT_INVALID);
        if (!strstr(report.reason, cases[i].says))
            fail_msg("\"%s\" instead of \"%s\"", report.reason, cases[i].says);
        by_plan_parse(changed, strlen(changed), topology, &back, &problem); /* must not crash */
        by_plan_free(back);
        free(changed);
        json_decref(json);
    }
    free(text);
    by_plan_free(plan);
    by_topology_free(topology);
}

/* A plan whose format does not match its contents. */
static void formats_of_both_kinds_of_plans_differ(void **state)
{
    struct by_topology *topology = rig_preset("leafspine", "none", "3", "2", "3", NULL);
    struct by_plan *plan = by_classes(topology, BY_COLLECTIVE_ALLGATHER), *back = NULL;
    struct by_verify_report report;
    struct by_problem problem = {0};
    static const char other[] = "banyan-plan-2\",\"x\":\"\" "; /* as long as the format and its quote */
    char *text = rig_text(plan, topology), *format = strstr(text, "banyan-plan-classes-1");

    (void)state;
    assert_non_null(format);
    for (size_t i = 0; i + 1 < sizeof(other); i++)
        format[i] = other[i];
    assert_int_equal(by_verify_text(topology, text, strlen(text), &report, &problem), BY_EFORMAT);
    assert_int_equal(by_plan_parse(text, strlen(text), topology, &back, &problem), BY_EFORMAT);
    assert_non_null(strstr(problem.text, "only a plan of format"));
    free(text);
    by_plan_free(plan);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_of_alike_parts_reach_the_bound),
        cmocka_unit_test(plans_of_random_fabrics_are_valid),
        cmocka_unit_test(the_trees_of_one_root_are_those_of_the_whole_plan),
        cmocka_unit_test(tables_of_classes_are_those_of_all_trees),
        cmocka_unit_test(fabrics_without_alike_parts_are_refused),
        cmocka_unit_test(options_that_need_all_trees_are_refused),
        cmocka_unit_test(large_fabrics_are_planned),
        cmocka_unit_test(large_fabrics_without_alike_parts_are_refused),
        cmocka_unit_test(tampered_rotations_are_found),
        cmocka_unit_test(formats_of_both_kinds_of_plans_differ),
    };

    return cmocka_run_group_tests_name("planner: plans by classes", tests, NULL, NULL);
}

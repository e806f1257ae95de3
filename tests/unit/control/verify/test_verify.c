/* The verifier accepts valid plans, and names the violation in each kind of wrong plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "offload/base/errors.h"
#include "tests/unit/control/planner/rig.h"

/* The fabric: leaf0 with host0, host1; leaf1 with host2, host3; spine0 above; all links 10. */
static struct by_topology *fabric(const char *capable)
{
    return rig_preset("leafspine", capable, "2", "1", "2", NULL);
}

static json_t *plan_json(const struct by_topology *topology, unsigned collective, int64_t root)
{
    struct by_plan *plan = rig_plan(topology, collective, root, 0, true);
    char *text = rig_text(plan, topology);
    json_t *json = json_loads(text, 0, NULL);

    assert_non_null(json);
    free(text);
    by_plan_free(plan);
    return json;
}

static json_t *tree(json_t *plan, size_t number)
{
    return json_array_get(json_object_get(plan, "trees"), number);
}

static json_t *edges(json_t *plan, size_t number)
{
    return json_object_get(tree(plan, number), "edges");
}

static json_t *fraction(int num, int den)
{
    return json_pack("{s:i, s:i}", "num", num, "den", den);
}

static void set_weight(json_t *plan, size_t number, int num, int den)
{
    json_object_set_new(tree(plan, number), "weight", fraction(num, den));
}

/* Each corruption breaks one property. The allgather's tree 0 is host0-leaf0, leaf0-host1,
 * leaf0-spine0-leaf1, leaf1-host2, -host3. */
static void no_weight(json_t *plan)
{
    set_weight(plan, 0, 0, 1);
}

static void not_a_fraction(json_t *plan)
{
    set_weight(plan, 0, 1, 0);
}

static void negative_weight(json_t *plan)
{
    set_weight(plan, 0, -1, 3);
}

static void heavier_tree(json_t *plan)
{
    set_weight(plan, 0, 10, 1);
}

static void lighter_tree(json_t *plan)
{
    set_weight(plan, 0, 1, 1);
}

static void missing_leaf(json_t *plan)
{
    json_array_remove(edges(plan, 0), 4);
}

static void missing_inner_edge(json_t *plan)
{
    json_array_remove(edges(plan, 0), 2);
}

static void second_parent(json_t *plan)
{
    json_array_append_new(edges(plan, 0), json_pack("[s, s]", "leaf1", "host3"));
}

static void back_to_the_root(json_t *plan)
{
    json_array_append_new(edges(plan, 0), json_pack("[s, s]", "leaf0", "host0"));
}

static void unknown_node(json_t *plan)
{
    json_array_set_new(edges(plan, 0), 4, json_pack("[s, s]", "leaf1", "host9"));
}

static void short_edge(json_t *plan)
{
    json_array_set_new(edges(plan, 0), 4, json_pack("[s]", "host3"));
}

static void no_such_link(json_t *plan)
{
    json_array_set_new(edges(plan, 0), 4, json_pack("[s, s]", "leaf0", "host3"));
}

static void node_twice_in_a_path(json_t *plan)
{
    json_array_set_new(edges(plan, 0), 4, json_pack("[s, s, s, s]", "leaf1", "spine0", "leaf1", "host3"));
}

static void path_through_a_host(json_t *plan)
{
    json_array_set_new(edges(plan, 0), 4, json_pack("[s, s, s]", "leaf1", "host2", "host3"));
}

static void dead_end(json_t *plan)
{
    json_array_set_new(edges(plan, 0), 2, json_pack("[s, s]", "leaf0", "spine0"));
    json_array_insert_new(edges(plan, 0), 3, json_pack("[s, s]", "spine0", "leaf1"));
    json_array_remove(edges(plan, 0), 5);
    json_array_remove(edges(plan, 0), 4);
}

static void number_without_a_path(json_t *plan)
{
    json_array_set_new(edges(plan, 0), 4,
                       json_integer((json_int_t)json_array_size(json_object_get(plan, "paths"))));
}

static void negative_path(json_t *plan)
{
    json_array_set_new(edges(plan, 0), 4, json_integer(-1));
}

static void spoiled_path(json_t *plan)
{
    json_array_set_new(json_object_get(plan, "paths"), 0, json_pack("[s]", "host0"));
}

static void wrong_way(json_t *plan)
{
    json_object_set_new(tree(plan, 0), "use", json_string("up"));
}

static void unknown_use(json_t *plan)
{
    json_object_set_new(tree(plan, 0), "use", json_string("sideways"));
}

static void rooted_at_a_switch(json_t *plan)
{
    json_object_set_new(tree(plan, 0), "root", json_string("leaf0"));
    json_array_set_new(edges(plan, 0), 0, json_pack("[s, s]", "leaf0", "host0"));
}

static void other_root(json_t *plan)
{
    json_object_set_new(tree(plan, 0), "root", json_string("host1"));
    json_array_set_new(edges(plan, 0), 0, json_pack("[s, s]", "host1", "leaf0"));
    json_array_set_new(edges(plan, 0), 1, json_pack("[s, s]", "leaf0", "host0"));
}

static void no_trees(json_t *plan)
{
    json_object_set_new(plan, "trees", json_array());
}

static void another_topology(json_t *plan)
{
    json_object_set_new(plan, "topology", json_string("star-4"));
}

static void another_unit(json_t *plan)
{
    json_object_set_new(plan, "unit", json_string("Mbit/s"));
}

static void unknown_collective(json_t *plan)
{
    json_object_set_new(plan, "collective", json_string("alltoall"));
}

static void other_collective(json_t *plan)
{
    json_object_set_new(plan, "collective", json_string("reduce-scatter"));
}

static void needless_root(json_t *plan)
{
    json_object_set_new(plan, "root", json_string("host0"));
}

static void no_root(json_t *plan)
{
    json_object_set_new(plan, "root", json_null());
}

/* Trees of 1 and 7/3 are not whole numbers of equal trees, k of which make 10/3. */
static void wrong_k(json_t *plan)
{
    json_t *copy = json_deep_copy(tree(plan, 0));

    json_object_set_new(copy, "weight", fraction(7, 3));
    set_weight(plan, 0, 1, 1);
    json_array_append_new(json_object_get(plan, "trees"), copy);
}

static void overstated_rate(json_t *plan)
{
    json_object_set_new(plan, "achieved", fraction(14, 1));
}

static void understated_bound(json_t *plan)
{
    json_object_set_new(plan, "optimum", fraction(13, 1));
}

static void wrong_inverse(json_t *plan)
{
    json_object_set_new(plan, "inv_x", fraction(1, 3));
}

static json_t *bottleneck(json_t *plan)
{
    return json_object_get(plan, "bottleneck");
}

static void empty_cut(json_t *plan)
{
    json_object_set_new(bottleneck(plan), "nodes", json_array());
}

static void whole_cut(json_t *plan)
{
    json_array_insert_new(json_object_get(bottleneck(plan), "nodes"), 0, json_string("host0"));
}

static void doubled_cut_node(json_t *plan)
{
    json_array_append(json_object_get(bottleneck(plan), "nodes"),
                      json_array_get(json_object_get(bottleneck(plan), "nodes"), 0));
}

static void wrong_cut_count(json_t *plan)
{
    json_object_set_new(bottleneck(plan), "compute_count", json_integer(2));
}

static void wrong_cut_bandwidth(json_t *plan)
{
    json_object_set_new(bottleneck(plan), "exiting", fraction(9, 1));
}

static void weaker_cut(json_t *plan)
{
    json_object_set_new(bottleneck(plan), "nodes", json_pack("[s, s, s]", "host0", "host1", "leaf0"));
    json_object_set_new(bottleneck(plan), "compute_count", json_integer(2));
}

static void cut_without_the_root(json_t *plan)
{
    json_object_set_new(bottleneck(plan), "nodes", json_pack("[s]", "host2"));
    json_object_set_new(bottleneck(plan), "compute_count", json_integer(1));
}

static void only_up(json_t *plan)
{
    json_object_set_new(tree(plan, 0), "use", json_string("up"));
}

static void swapped_pair(json_t *plan)
{
    json_t *trees = json_object_get(plan, "trees"), *other = json_deep_copy(tree(plan, 0));

    json_object_set_new(tree(plan, 0), "use", json_string("down"));
    json_object_set_new(other, "use", json_string("up"));
    json_array_append_new(trees, other);
}

struct corruption {
    void (*corrupt)(json_t *plan);
    const char *says;
};

static const struct corruption of_allgather[] = {
    {no_weight, "no weight"},
    {not_a_fraction, "not a fraction"},
    {negative_weight, "not a fraction"},
    {heavier_tree, "carries"},
    {lighter_tree, "equal share"},
    {missing_leaf, "does not reach compute node host3"},
    {missing_inner_edge, "which the tree has not reached"},
    {second_parent, "reaches host3 a second time"},
    {back_to_the_root, "reaches host0 a second time"},
    {unknown_node, "host9"},
    {short_edge, "fewer than two"},
    {no_such_link, "no link from leaf0 to host3"},
    {node_twice_in_a_path, "passes node leaf1 twice"},
    {path_through_a_host, "passes through compute node host2"},
    {dead_end, "host2"},
    {number_without_a_path, "but the plan has"},
    {negative_path, "but the plan has"},
    {spoiled_path, "fewer than two"},
    {wrong_way, "has the wrong direction"},
    {unknown_use, "sideways"},
    {rooted_at_a_switch, "rooted at switch leaf0"},
    {other_root, "the link from leaf0 to host0 carries 40/3 of 10 GB/s"},
    {no_trees, "no trees"},
    {another_topology, "star-4"},
    {another_unit, "Mbit/s"},
    {unknown_collective, "alltoall"},
    {other_collective, "wrong direction"},
    {needless_root, "has no root"},
    {wrong_k, "whole number"},
    {overstated_rate, "achieved"},
    {understated_bound, "optimum"},
    {wrong_inverse, "inv_x"},
    {empty_cut, "separates nothing"},
    {whole_cut, "separates nothing"},
    {doubled_cut_node, "twice"},
    {wrong_cut_count, "compute nodes"},
    {wrong_cut_bandwidth, "leaving the bottleneck"},
    {weaker_cut, "does not prove"},
};

static const struct corruption of_broadcast[] = {
    {other_root, "rooted at host1"},
    {no_root, "needs a compute node as its root"},
    {cut_without_the_root, "does not contain the root"},
    {wrong_way, "wrong direction"},
};

static const struct corruption of_allreduce[] = {
    {only_up, "different amounts"},
    {swapped_pair, "not paired"},
    {lighter_tree, "achieved"},
    {needless_root, "has no root"},
};

static void expect(const struct by_topology *topology, json_t *plan, enum by_verdict verdict,
                   const char *says)
{
    char *text = json_dumps(plan, 0);
    struct by_verify_report report;
    struct by_problem problem = {0};

    assert_int_equal(by_verify_text(topology, text, strlen(text), &report, &problem), 0);
    if (report.verdict != verdict || (says && !strstr(report.reason, says)))
        fail_msg("verdict %d instead of %d: '%s', expected '%s'", (int)report.verdict, (int)verdict,
                 report.reason, says ? says : "");
    free(text);
}

static void corrupt_all(unsigned collective, int64_t root, const struct corruption *corruptions, size_t count)
{
    struct by_topology *topology = fabric("all");

    for (size_t i = 0; i < count; i++) {
        json_t *plan = plan_json(topology, collective, root);

        print_message("%s\n", corruptions[i].says);
        expect(topology, plan, BY_VERDICT_OPTIMAL, NULL);
        corruptions[i].corrupt(plan);
        expect(topology, plan, BY_VERDICT_INVALID, corruptions[i].says);
        json_decref(plan);
    }
    by_topology_free(topology);
}

static void each_corruption_of_an_allgather_is_named(void **state)
{
    (void)state;
    corrupt_all(BY_COLLECTIVE_ALLGATHER, -1, of_allgather, sizeof(of_allgather) / sizeof(of_allgather[0]));
}

static void each_corruption_of_a_broadcast_is_named(void **state)
{
    (void)state;
    corrupt_all(BY_COLLECTIVE_BROADCAST, 0, of_broadcast, sizeof(of_broadcast) / sizeof(of_broadcast[0]));
}

static void each_corruption_of_an_allreduce_is_named(void **state)
{
    (void)state;
    corrupt_all(BY_COLLECTIVE_ALLREDUCE, -1, of_allreduce, sizeof(of_allreduce) / sizeof(of_allreduce[0]));
}

static void branching_at_a_switch_that_cannot_is_named(void **state)
{
    static const struct {
        unsigned collective;
        bool multicast, aggregate;
        enum by_verdict verdict;
        const char *says;
    } cases[] = {
        {BY_COLLECTIVE_ALLGATHER, true, false, BY_VERDICT_OPTIMAL, NULL},
        {BY_COLLECTIVE_ALLGATHER, false, true, BY_VERDICT_INVALID, "does not multicast"},
        {BY_COLLECTIVE_REDUCE_SCATTER, false, true, BY_VERDICT_OPTIMAL, NULL},
        {BY_COLLECTIVE_REDUCE_SCATTER, true, false, BY_VERDICT_INVALID, "does not aggregate"},
        {BY_COLLECTIVE_ALLREDUCE, true, false, BY_VERDICT_INVALID, "does not aggregate"},
        {BY_COLLECTIVE_ALLREDUCE, false, true, BY_VERDICT_INVALID, "does not multicast"},
    };
    struct by_topology *topology = fabric("all");

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *plan;

        for (uint32_t j = 4; j < 7; j++)
            topology->nodes[j].multicast = topology->nodes[j].aggregate = true;
        plan = plan_json(topology, cases[i].collective, -1);
        for (uint32_t j = 4; j < 7; j++) {
            topology->nodes[j].multicast = cases[i].multicast;
            topology->nodes[j].aggregate = cases[i].aggregate;
        }
        expect(topology, plan, cases[i].verdict, cases[i].says);
        json_decref(plan);
    }
    by_topology_free(topology);
}

static void a_slower_link_than_planned_is_an_overload(void **state)
{
    struct by_topology *topology = fabric("all");
    json_t *plan = plan_json(topology, BY_COLLECTIVE_ALLREDUCE, -1);

    (void)state;
    topology->arcs[9].capacity -= 1;
    expect(topology, plan, BY_VERDICT_INVALID, "carries 10 of 9 GB/s");
    json_decref(plan);
    by_topology_free(topology);
}

static void a_slower_plan_is_valid_with_its_ratio(void **state)
{
    struct by_topology *topology = fabric("all");
    json_t *plan = plan_json(topology, BY_COLLECTIVE_ALLREDUCE, -1);
    struct by_verify_report report;
    struct by_problem problem = {0};
    char *text;

    (void)state;
    set_weight(plan, 0, 15, 2);
    json_object_set_new(plan, "achieved", fraction(15, 2));
    text = json_dumps(plan, 0);
    assert_int_equal(by_verify_text(topology, text, strlen(text), &report, &problem), 0);
    assert_int_equal(report.verdict, BY_VERDICT_VALID);
    assert_string_equal(report.ratio.num, "3");
    assert_string_equal(report.ratio.den, "4");
    free(text);
    json_decref(plan);
    by_topology_free(topology);
}

static void what_is_no_plan_file_is_an_error_of_input(void **state)
{
    static const char *const texts[] = {
        "", "{", "[]", "{}", "{\"format\": \"banyan-plan-9\"}", "{\"format\": 1}"};
    struct by_topology *topology = fabric("all");
    struct by_verify_report report;
    struct by_problem problem = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(by_verify_text(topology, texts[i], strlen(texts[i]), &report, &problem), BY_EFORMAT);
    assert_int_equal(by_verify_file(topology, "/nonexistent/plan", &report, &problem), BY_EIO);
    by_topology_free(topology);
}

/* The order of members is free: paths may follow the trees. */
static void paths_may_stand_behind_the_trees(void **state)
{
    struct by_topology *topology = fabric("all");
    json_t *plan = plan_json(topology, BY_COLLECTIVE_ALLGATHER, -1),
           *paths = json_incref(json_object_get(plan, "paths"));

    (void)state;
    json_object_del(plan, "paths");
    expect(topology, plan, BY_VERDICT_INVALID, "but the plan has 0 paths");
    json_object_set_new(plan, "paths", paths);
    expect(topology, plan, BY_VERDICT_OPTIMAL, NULL);
    json_decref(plan);
    by_topology_free(topology);
}

/* Whichever member is missing, the verifier neither crashes nor returns OPTIMAL. */
static void a_plan_without_one_of_its_members_is_never_right(void **state)
{
    static const char *const members[] = {"topology", "unit", "collective", "optimum",
                                          "achieved", "k",    "bottleneck", "trees"};
    static const char *const of_tree[] = {"root", "use", "weight", "edges"};
    struct by_topology *topology = fabric("all");

    (void)state;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        json_t *plan = plan_json(topology, BY_COLLECTIVE_ALLGATHER, -1);

        json_object_del(plan, members[i]);
        expect(topology, plan, BY_VERDICT_INVALID, NULL);
        json_decref(plan);
    }
    for (size_t i = 0; i < sizeof(of_tree) / sizeof(of_tree[0]); i++) {
        json_t *plan = plan_json(topology, BY_COLLECTIVE_ALLGATHER, -1);

        json_object_del(tree(plan, 1), of_tree[i]);
        expect(topology, plan, BY_VERDICT_INVALID, NULL);
        json_decref(plan);
    }
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_corruption_of_an_allgather_is_named),
        cmocka_unit_test(each_corruption_of_a_broadcast_is_named),
        cmocka_unit_test(each_corruption_of_an_allreduce_is_named),
        cmocka_unit_test(branching_at_a_switch_that_cannot_is_named),
        cmocka_unit_test(a_slower_link_than_planned_is_an_overload),
        cmocka_unit_test(a_slower_plan_is_valid_with_its_ratio),
        cmocka_unit_test(paths_may_stand_behind_the_trees),
        cmocka_unit_test(what_is_no_plan_file_is_an_error_of_input),
        cmocka_unit_test(a_plan_without_one_of_its_members_is_never_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

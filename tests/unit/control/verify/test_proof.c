/* Proofs beside the cut: disjoint sets where nodes outside have one capability, and prices with
 * weighted cuts. Each is right on the fabric for which it was derived, and refused elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "control/planner/planner.h"
#include "control/study/bound/pack.h"
#include "offload/base/errors.h"
#include "tests/unit/control/planner/rig.h"

#define PARTS "{\"parts\": [[\"host0\"], [\"host1\"], [\"host2\"]]}"
#define INTO_HOSTS                                                                                           \
    "\"prices\": [[\"switch0\", \"host0\", 1], [\"switch0\", \"host1\", 1], [\"switch0\", \"host2\", 1]]"
#define EACH_HOST "[[1, \"host0\"], [1, \"host1\"], [1, \"host2\"]]"

/* Three hosts around a switch, links of 2. */
static struct by_topology *star(bool multicast, bool aggregate)
{
    struct by_topology *topology = rig_preset("star", "none", "3", "2", NULL);

    for (uint32_t i = 0; i < topology->node_count; i++)
        if (!topology->nodes[i].compute) {
            topology->nodes[i].multicast = multicast;
            topology->nodes[i].aggregate = aggregate;
        }
    return topology;
}

/* The verifier's report on an allreduce plan whose proof is replaced. */
static struct by_verify_report check(const struct by_topology *topology, const char *proof, int num, int den)
{
    struct by_plan *plan = rig_plan(topology, BY_COLLECTIVE_ALLREDUCE, -1, 0, true);
    char *text = rig_text(plan, topology);
    json_t *json = json_loads(text, 0, NULL);
    struct by_verify_report report;
    struct by_problem problem = {0};

    assert_non_null(json);
    free(text);
    json_object_set_new(json, "proof", json_loads(proof, 0, NULL));
    json_object_set_new(json, "optimum", json_pack("{s:i, s:i}", "num", num, "den", den));
    text = json_dumps(json, 0);
    assert_int_equal(by_verify_text(topology, text, strlen(text), &report, &problem), 0);
    print_message("%s\n", report.verdict == BY_VERDICT_INVALID ? report.reason : "accepted");
    free(text);
    json_decref(json);
    by_plan_free(plan);
    return report;
}

static void refuse(const struct by_topology *topology, const char *proof, const char *reason)
{
    struct by_verify_report report = check(topology, proof, 3, 2);

    assert_int_equal(report.verdict, BY_VERDICT_INVALID);
    assert_non_null(strstr(report.reason, reason));
}

static void parts_bound_trees_where_nodes_outside_have_one_capability(void **state)
{
    (void)state;
    for (int aggregate = 0; aggregate < 2; aggregate++) {
        struct by_topology *topology = star(!aggregate, aggregate);

        /* 6 leave (or enter) the three sets, 4 times for each tree pair */
        assert_int_equal(check(topology, PARTS, 3, 2).verdict, BY_VERDICT_OPTIMAL);
        by_topology_free(topology);
    }
}

static void parts_prove_less_where_a_switch_outside_has_both(void **state)
{
    struct by_topology *topology = star(true, true);

    (void)state;
    refuse(topology, PARTS, "optimum");
    assert_int_equal(check(topology, PARTS, 2, 1).verdict, BY_VERDICT_OPTIMAL); /* the cut */
    by_topology_free(topology);
}

static void cuts_show_what_every_pair_of_trees_pays(void **state)
{
    struct by_topology *topology = star(true, false), *both = star(true, true);

    (void)state;
    assert_int_equal(
        check(topology, "{" INTO_HOSTS ", \"down\": " EACH_HOST ", \"up\": " EACH_HOST "}", 3, 2).verdict,
        BY_VERDICT_OPTIMAL);
    /* where the switch also sums, data on their way to it pay nothing */
    refuse(both, "{" INTO_HOSTS ", \"down\": " EACH_HOST ", \"up\": " EACH_HOST "}",
           "data from host0 to switch0 pay less");
    by_topology_free(topology);
    by_topology_free(both);
}

static void forged_cuts_are_refused(void **state)
{
    struct by_topology *topology = star(true, false);

    (void)state;
    refuse(topology, "{" INTO_HOSTS ", \"down\": [[2, \"host0\"]], \"up\": " EACH_HOST "}",
           "to host0 pay less");
    refuse(topology, "{" INTO_HOSTS ", \"down\": [[1, \"host0\"], [1, \"host0\", \"switch0\"]], \"up\": []}",
           "pay less");
    refuse(topology, "{" INTO_HOSTS ", \"down\": [[1, \"switch0\"]], \"up\": []}", "holds no compute node");
    refuse(topology, "{" INTO_HOSTS ", \"down\": [[-1, \"host0\"]], \"up\": []}", "not [digits");
    refuse(topology, "{" INTO_HOSTS ", \"down\": [[1, \"host9\"]], \"up\": []}", "host9");
    refuse(topology, "{" INTO_HOSTS ", \"down\": [], \"up\": []}", "cost nothing");
    refuse(topology, "{\"down\": " EACH_HOST "}", "not an object of parts or of prices");
    by_topology_free(topology);
}

/* The Petersen graph of switches of mixed capabilities, a host at each. */
static struct by_topology *petersen(uint32_t seed)
{
    static const char *const able[] = {"", ", \"multicast\": true", ", \"aggregate\": true",
                                       ", \"multicast\": true, \"aggregate\": true"};
    struct by_topology *topology;
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);

    assert_non_null(stream);
    fputs("{\"name\": \"petersen\", \"nodes\": [", stream);
    for (uint32_t i = 0; i < 10; i++, seed = seed * 1103515245u + 12345u)
        fprintf(stream,
                "{\"name\": \"s%u\", \"kind\": \"switch\"%s}, {\"name\": \"h%u\", \"kind\": \"compute\"}%s",
                i, able[seed >> 16 & 3], i, i < 9 ? ", " : "], \"links\": [");
    for (uint32_t i = 0; i < 5; i++)
        fprintf(stream,
                "{\"between\": [\"s%u\", \"s%u\"], \"bandwidth\": 1}, {\"between\": [\"s%u\", \"s%u\"], "
                "\"bandwidth\": 1}, {\"between\": [\"s%u\", \"s%u\"], \"bandwidth\": 1}, ",
                i, (i + 1) % 5, i, i + 5, i + 5, (i + 2) % 5 + 5);
    for (uint32_t i = 0; i < 10; i++)
        fprintf(stream, "{\"between\": [\"s%u\", \"h%u\"], \"bandwidth\": 2}%s", i, i, i < 9 ? ", " : "]}");
    fclose(stream);
    topology = rig_parse(text);
    free(text);
    return topology;
}

static void petersen_graphs_with_mixed_switches_have_no_gap(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 4; seed++) {
        struct by_topology *topology = petersen(seed);
        struct by_plan_options options = {.collective = BY_COLLECTIVE_ALLREDUCE,
                                          .root = -1,
                                          .in_network = true,
                                          .programs = by_program_pack};
        struct by_problem problem = {0};
        struct by_fraction ratio;
        struct by_plan *plan;

        assert_int_equal(by_plan_make(topology, &options, &plan, &problem), 0);
        assert_int_equal(by_fraction_divide(plan->achieved, plan->optimum, &ratio), 0);
        print_message("seed %u: %g of the bound\n", seed, by_fraction_value(ratio));
        assert_true(by_fraction_compare(ratio, (struct by_fraction){999, 1000}) > 0);
        rig_verify(plan, topology,
                   by_fraction_compare(plan->achieved, plan->optimum) == 0 ? BY_VERDICT_OPTIMAL
                                                                           : BY_VERDICT_VALID);
        by_plan_free(plan);
        by_topology_free(topology);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_bound_trees_where_nodes_outside_have_one_capability),
        cmocka_unit_test(parts_prove_less_where_a_switch_outside_has_both),
        cmocka_unit_test(cuts_show_what_every_pair_of_trees_pays),
        cmocka_unit_test(forged_cuts_are_refused),
        cmocka_unit_test(petersen_graphs_with_mixed_switches_have_no_gap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Options that the planner refuses, and writing and reading of plan files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/base/clock.h"
#include "control/fabric/vary.h"
#include "control/planner/planner.h"
#include "offload/base/errors.h"
#include "tests/unit/control/planner/rig.h"

#define NODES                                                                                                \
    "{\"name\": \"t\", \"nodes\": [{\"name\": \"a\", \"kind\": \"compute\"}, {\"name\": \"b\", \"kind\": "   \
    "\"compute\"},"                                                                                          \
    "{\"name\": \"s\", \"kind\": \"switch\"}], \"links\": ["

static void refuse(const char *json, struct by_plan_options options, const char *says)
{
    struct by_topology *topology = rig_parse(json);
    struct by_problem problem = {0};
    struct by_plan *plan = NULL;

    assert_true(by_plan_make(topology, &options, &plan, &problem) < 0);
    print_message("%s\n", problem.text);
    assert_null(plan);
    assert_non_null(strstr(problem.text, says));
    by_topology_free(topology);
}

static void impossible_requests_are_refused_with_a_reason(void **state)
{
    static const char good[] = NODES
        "{\"between\": [\"a\", \"s\"], \"bandwidth\": 1}, {\"between\": [\"b\", \"s\"], \"bandwidth\": 1}]}";

    (void)state;
    refuse("{\"name\": \"t\", \"nodes\": [{\"name\": \"a\", \"kind\": \"compute\"}], \"links\": []}",
           (struct by_plan_options){.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1}, "at least two");
    refuse(good, (struct by_plan_options){.collective = 99, .root = -1}, "unknown");
    refuse(good, (struct by_plan_options){.collective = 0, .root = -1}, "unknown");
    refuse(good, (struct by_plan_options){.collective = BY_COLLECTIVE_BROADCAST, .root = -1}, "needs a root");
    refuse(good, (struct by_plan_options){.collective = BY_COLLECTIVE_REDUCE, .root = 3}, "needs a root");
    refuse(good, (struct by_plan_options){.collective = BY_COLLECTIVE_REDUCE, .root = 2}, "'s' is a switch");
    refuse(good, (struct by_plan_options){.collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .fixed_k = -1},
           "from 1 to");
    refuse(good, (struct by_plan_options){.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1, .fixed_k = 2},
           "has no k");
}

static void a_node_that_cannot_be_reached_the_right_way_is_named(void **state)
{
    static const char one_way[] = NODES "{\"from\": \"a\", \"to\": \"s\", \"bandwidth\": 1}, {\"from\": "
                                        "\"s\", \"to\": \"b\", \"bandwidth\": 1}]}";

    (void)state;
    for (unsigned collective = BY_COLLECTIVE_ALLREDUCE; collective <= BY_COLLECTIVE_ALLGATHER; collective++)
        refuse(one_way, (struct by_plan_options){.collective = collective, .root = -1}, "cannot be reached");
    refuse(one_way, (struct by_plan_options){.collective = BY_COLLECTIVE_BROADCAST, .root = 1}, "'a'");
    refuse(one_way, (struct by_plan_options){.collective = BY_COLLECTIVE_REDUCE, .root = 0}, "'b'");
}

static void an_unbalanced_switch_that_only_forwards_is_named_with_both_sums(void **state)
{
    refuse(NODES
           "{\"between\": [\"a\", \"s\"], \"bandwidth\": 3}, {\"between\": [\"b\", \"s\"], \"bandwidth\": 2},"
           "{\"from\": \"a\", \"to\": \"s\", \"bandwidth\": 2}]}",
           (struct by_plan_options){.collective = BY_COLLECTIVE_ALLGATHER, .root = -1},
           "'a' has 3 GB/s in and 5 GB/s out");
    (void)state;
}

static void bandwidths_beyond_exact_arithmetic_are_refused_not_rounded(void **state)
{
    refuse(NODES "{\"between\": [\"a\", \"s\"], \"bandwidth\": 500000000000000000},"
                 "{\"between\": [\"b\", \"s\"], \"bandwidth\": 499999999999999999}]}",
           (struct by_plan_options){.collective = BY_COLLECTIVE_ALLGATHER, .root = -1}, "bits");
    (void)state;
}

/* Under any time limit there is soon a valid plan, including the intermediate case of a small k. */
static void a_plan_under_any_time_limit_is_right(void **state)
{
    struct by_topology *topology = rig_preset("mi250", NULL, "12", NULL), *scattered;
    struct by_variation variation = {.fail = {0, 1}, .scatter_low = 1, .scatter_high = 5, .seed = 3};
    struct by_problem problem = {0};
    struct by_plan *plan = NULL;
    double limit = 1e-5;

    (void)state;
    assert_int_equal(by_vary(topology, &variation, &scattered, &problem), 0);
    for (bool optimal = false; !optimal && limit < 100; limit *= 2) {
        struct by_plan_options options = {
            .collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .time_limit_s = limit};
        double start = by_plan_clock(), seconds;
        int error = by_plan_make(scattered, &options, &plan, &problem);

        seconds = by_plan_clock() - start;
        assert_int_equal(error, 0);
        print_message("limit %g s: %s after %g s\n", limit, plan->hurried ? "few trees" : "all trees",
                      seconds);
        assert_true(seconds < limit + 5);
        optimal = !plan->hurried;
        if (plan->hurried)
            assert_int_equal(plan->k, 1);
        rig_verify(plan, scattered, optimal ? BY_VERDICT_OPTIMAL : BY_VERDICT_VALID);
        by_plan_free(plan);
    }
    assert_true(limit < 100);
    by_topology_free(topology);
    by_topology_free(scattered);
}

/* Writes a plan to a file and reads it back unchanged. */
static void a_plan_file_reads_back_the_same(void **state)
{
    struct by_topology *topology = rig_preset("mi250", "all", "2", "8", NULL);
    static const unsigned collectives[] = {BY_COLLECTIVE_ALLGATHER, BY_COLLECTIVE_BROADCAST,
                                           BY_COLLECTIVE_ALLREDUCE};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct by_plan *plan = rig_plan(topology, collectives[i], 2, 0, true), *back;
        struct by_problem problem = {0};
        char path[] = "/tmp/banyan-plan-XXXXXX", *first = rig_text(plan, topology), *second;
        int file = mkstemp(path);

        assert_true(file >= 0);
        assert_int_equal(write(file, first, strlen(first)), (ssize_t)strlen(first));
        close(file);
        if (by_plan_read(path, topology, &back, &problem) != 0)
            fail_msg("%s", problem.text);
        second = rig_text(back, topology);
        assert_string_equal(first, second);
        assert_int_equal(back->compute_count, plan->compute_count);
        unlink(path);
        free(first);
        free(second);
        by_plan_free(plan);
        by_plan_free(back);
    }
    by_topology_free(topology);
}

static void a_plan_for_another_fabric_is_refused_by_the_reader(void **state)
{
    struct by_topology *star = rig_preset("star", "all", "4", NULL),
                       *other = rig_preset("leafspine", "all", NULL);
    struct by_plan *plan = rig_plan(star, BY_COLLECTIVE_ALLREDUCE, -1, 0, true), *back;
    struct by_problem problem = {0};
    char path[] = "/tmp/banyan-plan-XXXXXX", *text = rig_text(plan, star);
    int file = mkstemp(path);

    (void)state;
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    assert_true(by_plan_read(path, other, &back, &problem) < 0);
    assert_non_null(strstr(problem.text, "switch0"));
    /* Truncated files: never a plan, never a crash. */
    for (size_t bytes = 0; bytes + 2 < strlen(text); bytes += 7) {
        assert_int_equal(truncate(path, (off_t)strlen(text)), 0);
        assert_int_equal(truncate(path, (off_t)bytes), 0);
        assert_true(by_plan_read(path, star, &back, &problem) < 0);
    }
    assert_int_equal(by_plan_read("/nonexistent/plan", star, &back, &problem), BY_EIO);
    unlink(path);
    free(text);
    by_plan_free(plan);
    by_topology_free(star);
    by_topology_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impossible_requests_are_refused_with_a_reason),
        cmocka_unit_test(a_node_that_cannot_be_reached_the_right_way_is_named),
        cmocka_unit_test(an_unbalanced_switch_that_only_forwards_is_named_with_both_sums),
        cmocka_unit_test(bandwidths_beyond_exact_arithmetic_are_refused_not_rounded),
        cmocka_unit_test(a_plan_under_any_time_limit_is_right),
        cmocka_unit_test(a_plan_file_reads_back_the_same),
        cmocka_unit_test(a_plan_for_another_fabric_is_refused_by_the_reader),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

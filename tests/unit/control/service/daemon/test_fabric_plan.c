/* Orders of plans on the remaining part of a fabric, what becomes of their results, and what is
 * recorded of lowered trees. The planner, the verifier and the separate process are replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/planner/planner.h"
#include "control/planner/replan/replan.h"
#include "control/service/daemon/fabric.h"
#include "control/verify/verify.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"
#include "tests/unit/control/service/daemon/record.h"
#include "tests/unit/control/tables/bench.h"

enum { H0, H1, H2, L0, L1, S0, NODES };

static struct {
    struct by_topology *topology;
    struct by_fabric_loss loss;
    struct by_job_spec spec;
    struct by_job_tables tables; /* the result */
    int apart_error, make_error, replan_error, write_error;
    const char *reason; /* of the first two */
    struct by_fraction achieved;
} rig;

static const struct by_apart rig_apart = {.limit_ms = 30500, .stop_fd = -1};

/* ---- the planner, the verifier and the process ---- */

int __wrap_by_apart_run(const struct by_apart *apart, by_apart_fn *run, void *context, char **bytes,
                        size_t *size, struct by_problem *problem);
int __wrap_by_plan_make(const struct by_topology *part, const struct by_plan_options *options,
                        struct by_plan **plan, struct by_problem *problem);
int __wrap_by_replan(const struct by_topology *before, const struct by_plan *from,
                     const struct by_topology *part, bool in_network, double time_limit_s,
                     struct by_plan **plan, struct by_replan_report *report, struct by_problem *problem);
int __wrap_by_plan_write(const struct by_plan *plan, const struct by_topology *part, void *stream);
int __wrap_by_verify_text(const struct by_topology *part, const char *text, size_t bytes,
                          struct by_verify_report *report, struct by_problem *problem);
int __wrap_by_plan_parse(const char *text, size_t bytes, const struct by_topology *topology,
                         struct by_plan **plan, struct by_problem *problem);

int __wrap_by_apart_run(const struct by_apart *apart, by_apart_fn *run, void *context, char **bytes,
                        size_t *size, struct by_problem *problem)
{
    int error;
    FILE *out;

    assert_ptr_equal(apart, &rig_apart);
    *bytes = NULL;
    *size = 0;
    if (rig.apart_error != 0)
        return by_problem_say(problem, rig.apart_error, "%s", rig.reason);
    out = by_text_open(bytes, size);
    error = run(context, out, problem);
    fclose(out);
    return error;
}

static struct by_plan *new_plan(unsigned collective)
{
    struct by_plan *plan = by_alloc(1, sizeof(*plan));

    plan->collective = collective;
    plan->unit = by_copy_text("GB/s");
    plan->optimum = (struct by_fraction){8, 3};
    plan->achieved = rig.achieved;
    return plan;
}

/* Records the order, with the nodes of the part and its members. */
int __wrap_by_plan_make(const struct by_topology *part, const struct by_plan_options *options,
                        struct by_plan **plan, struct by_problem *problem)
{
    record("make %s", by_collective_name(options->collective));
    if (options->root >= 0)
        record("@%s", part->nodes[options->root].name);
    record(" in %.2f s%s on", options->time_limit_s, options->in_network ? "" : " without switches");
    for (uint32_t n = 0; n < part->node_count; n++)
        record(" %s%s", part->nodes[n].name, options->member != NULL && options->member[n] ? "!" : "");
    record("%s\n", options->member != NULL ? " of members" : "");
    if (rig.make_error != 0)
        return by_problem_say(problem, rig.make_error, "%s", rig.reason);
    *plan = new_plan(options->collective);
    return 0;
}

int __wrap_by_replan(const struct by_topology *before, const struct by_plan *from,
                     const struct by_topology *part, bool in_network, double time_limit_s,
                     struct by_plan **plan, struct by_replan_report *report, struct by_problem *problem)
{
    (void)report;
    assert_ptr_equal(before, rig.topology);
    assert_true(in_network);
    record("repair %s in %.2f s on %u nodes\n", by_collective_name(from->collective), time_limit_s,
           part->node_count);
    if (rig.replan_error != 0)
        return by_problem_say(problem, rig.replan_error, "no place for a branch");
    *plan = new_plan(from->collective);
    return 0;
}

/* The text has the number of the collective, and the ranks if the plan lists them. */
int __wrap_by_plan_write(const struct by_plan *plan, const struct by_topology *part, void *stream)
{
    fprintf(stream, "%u", plan->collective);
    for (uint32_t n = 0; plan->member != NULL && n < part->node_count; n++)
        fprintf(stream, "%s", plan->member[n] ? part->nodes[n].name : "-");
    return rig.write_error;
}

int __wrap_by_verify_text(const struct by_topology *part, const char *text, size_t bytes,
                          struct by_verify_report *report, struct by_problem *problem)
{
    record("verify %.*s on %u nodes\n", (int)bytes, text, part->node_count);
    if (text[0] == 'x')
        return by_problem_say(problem, BY_EFORMAT, "not a plan");
    report->verdict = text[0] == '-' ? BY_VERDICT_INVALID : BY_VERDICT_OPTIMAL;
    snprintf(report->reason, sizeof(report->reason), "a rank is missing");
    return 0;
}

int __wrap_by_plan_parse(const char *text, size_t bytes, const struct by_topology *topology,
                         struct by_plan **plan, struct by_problem *problem)
{
    (void)bytes;
    assert_ptr_equal(topology, rig.topology);
    if (text[0] == '?')
        return by_problem_say(problem, BY_EFORMAT, "no such node");
    *plan = new_plan((unsigned)atoi(text));
    return 0;
}

/* ---- the job ---- */

static int set_up(void **state)
{
    (void)state;
    memset(&rig, 0, sizeof(rig));
    record_clear();
    rig.topology = bench_topology("h0 h1 h2 l0* l1* s0*", "h0-l0 h1-l0 h2-l1 l0-s0 l1-s0");
    by_fabric_loss_init(&rig.loss, rig.topology);
    rig.achieved = (struct by_fraction){8, 3};
    rig.spec = (struct by_job_spec){.job = 4, .want_count = 2};
    rig.spec.wants[0] = (struct by_job_want){.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1};
    rig.spec.wants[1] = (struct by_job_want){.collective = BY_COLLECTIVE_BROADCAST, .root = H2};
    return 0;
}

static void forget_tables(void)
{
    for (uint32_t i = 0; i < rig.tables.plan_count; i++)
        by_plan_free(rig.tables.plans[i]);
    free(rig.tables.plans);
    rig.tables = (struct by_job_tables){0};
}

static int tear_down(void **state)
{
    (void)state;
    forget_tables();
    by_fabric_loss_free(&rig.loss);
    free(rig.spec.member);
    by_topology_free(rig.topology);
    return 0;
}

/* Plans the job. Returns the text of the error, "" without one. */
static const char *plan(const struct by_job_tables *from, const struct by_fabric_text *made, int expected)
{
    static struct by_problem problem;

    forget_tables();
    problem.text[0] = 0;
    assert_int_equal(
        by_fabric_plan(rig.topology, &rig.spec, &rig.loss, from, made, &rig_apart, &rig.tables, &problem),
        expected);
    return problem.text;
}

#define ALL "h0 h1 h2 l0 l1 s0"

/* ---- tests ---- */

static void each_collective_is_planned_within_four_fifths_of_the_limit(void **state)
{
    (void)state;
    assert_string_equal(plan(NULL, NULL, 0), "");
    record_expect("make allreduce in 24.40 s on " ALL "\nverify 1 on 6 nodes\n"
                  "make broadcast@h2 in 24.40 s on " ALL "\nverify 4 on 6 nodes\n");
    assert_int_equal(rig.tables.plan_count, 2);
    assert_int_equal(rig.tables.plans[0]->collective, BY_COLLECTIVE_ALLREDUCE);
    assert_int_equal(rig.tables.plans[1]->collective, BY_COLLECTIVE_BROADCAST);
    assert_false(rig.tables.ahead);
    assert_string_equal(rig.tables.note, "");
}

/* Numbers of nodes are those of the part, and the plan lists its ranks. */
static void members_and_roots_have_the_numbers_of_the_part(void **state)
{
    (void)state;
    rig.spec.member = by_alloc(NODES, sizeof(bool));
    rig.spec.member[H1] = rig.spec.member[H2] = true;
    assert_string_equal(plan(NULL, NULL, 0), "");
    record_expect(
        "make allreduce in 24.40 s on h1! h2! l0 l1 s0 of members\nverify 1h1h2--- on 5 nodes\n"
        "make broadcast@h2 in 24.40 s on h1! h2! l0 l1 s0 of members\nverify 4h1h2--- on 5 nodes\n");
    rig.spec.member[H0] = true; /* all of them */
    assert_string_equal(plan(NULL, NULL, 0), "");
    record_expect("make allreduce in 24.40 s on h0! h1! h2! l0 l1 s0 of members\nverify 1 on 6 nodes\n"
                  "make broadcast@h2 in 24.40 s on h0! h1! h2! l0 l1 s0 of members\nverify 4 on 6 nodes\n");
}

static void a_job_without_a_path_is_not_planned(void **state)
{
    struct by_fabric_text texts[2] = {0};
    struct by_problem problem = {0};

    (void)state;
    rig.loss.nodes[S0] = true;
    assert_non_null(strstr(plan(NULL, NULL, BY_ENOENT), "no path is left between h0 and h2"));
    assert_null(rig.tables.plans);
    assert_int_equal(by_fabric_texts(rig.topology, &rig.spec, &rig.loss, NULL, 100, texts, &problem),
                     BY_ENOENT);
    assert_null(texts[0].text);
    record_expect("");
}

static void a_plan_is_repaired_from_that_before_if_ranks_are_the_same(void **state)
{
    struct by_plan *plans[] = {new_plan(BY_COLLECTIVE_ALLREDUCE), new_plan(BY_COLLECTIVE_BROADCAST)};
    struct by_job_tables from = {.plan_count = 1, .plans = plans};
    bool member[NODES] = {true};

    (void)state;
    assert_string_equal(plan(&from, NULL, 0), "");
    record_expect("repair allreduce in 24.40 s on 6 nodes\nverify 1 on 6 nodes\n"
                  "make broadcast@h2 in 24.40 s on " ALL "\nverify 4 on 6 nodes\n");
    from.plan_count = 2;
    rig.replan_error = BY_EUNSUPPORTED;
    assert_string_equal(plan(&from, NULL, 0), "");
    record_expect("repair allreduce in 24.40 s on 6 nodes\nmake allreduce in 24.40 s on " ALL "\n"
                  "verify 1 on 6 nodes\nrepair broadcast in 24.40 s on 6 nodes\n"
                  "make broadcast@h2 in 24.40 s on " ALL "\nverify 4 on 6 nodes\n");
    rig.spec.want_count = 1;
    plans[0]->member = member;
    assert_string_equal(plan(&from, NULL, 0), "");
    record_expect("make allreduce in 24.40 s on " ALL "\nverify 1 on 6 nodes\n");
    plans[0]->member = NULL;
    rig.spec.member = by_alloc(NODES, sizeof(bool));
    rig.spec.member[H0] = rig.spec.member[H1] = rig.spec.member[H2] = true;
    assert_string_equal(plan(&from, NULL, 0), "");
    record_expect("make allreduce in 24.40 s on h0! h1! h2! l0 l1 s0 of members\nverify 1 on 6 nodes\n");
    by_plan_free(plans[0]);
    by_plan_free(plans[1]);
}

static void plans_that_were_made_before_are_used_if_they_are_valid(void **state)
{
    static const char *const wrong[] = {"x", "-", "?"};
    struct by_fabric_text made[2] = {{(char[]){"1 made"}, 6}, {(char[]){"4 made"}, 6}};

    (void)state;
    assert_string_equal(plan(NULL, made, 0), "");
    record_expect("verify 1 made on 6 nodes\nverify 4 made on 6 nodes\n");
    assert_true(rig.tables.ahead && rig.tables.plan_count == 2);
    for (unsigned i = 0; i < 3; i++) {
        made[1] = (struct by_fabric_text){by_copy_text(wrong[i]), 1};
        assert_string_equal(plan(NULL, made, 0), "");
        assert_non_null(strstr(recorded, "make broadcast@h2"));
        assert_null(strstr(recorded, "make allreduce"));
        assert_true(!rig.tables.ahead && rig.tables.plan_count == 2);
        record_clear();
        free(made[1].text);
    }
}

static void an_order_that_fails_says_which_plan_and_why(void **state)
{
    static const struct {
        int error;
        const char *text;
    } rows[] = {{BY_ETIMEDOUT,
                 "job 4: no plan of allreduce within 30 s: allow more time with --plan-limit, or "
                 "give the job fewer ranks"},
                {BY_EABORTED, "job 4: the plan of allreduce: why"},
                {BY_EIO, "job 4: the plan of allreduce: why"},
                {BY_ELIMIT, "why"}};

    (void)state;
    rig.reason = "why";
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rig.apart_error = rows[i].error;
        assert_string_equal(plan(NULL, NULL, rows[i].error), rows[i].text);
        assert_int_equal(rig.tables.plan_count, 0);
    }
    rig.apart_error = 0;
    rig.make_error = BY_ENOENT;
    rig.reason = "no trees";
    assert_string_equal(plan(NULL, NULL, BY_ENOENT), "no trees");
    rig.make_error = 0;
    rig.write_error = BY_ENOMEM;
    assert_string_equal(plan(NULL, NULL, BY_ENOMEM), "no memory for the text of a plan");
}

static void a_plan_below_the_optimum_is_noted_once(void **state)
{
    (void)state;
    rig.achieved = (struct by_fraction){5, 2};
    assert_string_equal(plan(NULL, NULL, 0), "");
    assert_string_equal(rig.tables.note, "allreduce reaches 2.5 of 2.67 GB/s");
}

static void texts_are_made_in_this_process_until_one_fails(void **state)
{
    struct by_fabric_text texts[2] = {0};
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(by_fabric_texts(rig.topology, &rig.spec, &rig.loss, NULL, 10000, texts, &problem), 0);
    record_expect("make allreduce in 8.00 s on " ALL "\nmake broadcast@h2 in 8.00 s on " ALL "\n");
    assert_true(texts[0].bytes == 1 && strcmp(texts[0].text, "1") == 0);
    assert_true(texts[1].bytes == 1 && strcmp(texts[1].text, "4") == 0);
    free(texts[0].text);
    free(texts[1].text);
    memset(texts, 0, sizeof(texts));
    rig.make_error = BY_ENOENT;
    rig.reason = "no trees";
    assert_int_equal(by_fabric_texts(rig.topology, &rig.spec, &rig.loss, NULL, 10000, texts, &problem),
                     BY_ENOENT);
    record_expect("make allreduce in 8.00 s on " ALL "\n");
    assert_null(texts[1].text);
    free(texts[0].text);
}

/* Of ways through nodes that only forward, each link is marked. */
static void lowered_trees_are_measured(void **state)
{
    static const char *const trees[] = {"1 s0: s0>x0>y0>h0 s0>x1>h1", NULL};
    struct by_topology *topology =
        bench_topology("s0* h0 h1 x0 y0 x1 z0*", "h0-y0 y0-x0 x0-s0 h1-x1 x1-s0 x0-x1 s0-z0");
    struct by_plan *made = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    struct by_job_tables tables = {.gen = 3, .plan_count = 1, .plans = &made};
    struct by_lower_options options = {.window = 64};
    struct by_problem problem = {0};
    bool lost[7] = {true};
    uint32_t *slots;

    (void)state;
    if (by_fabric_lower(topology, 9, &options, &tables, &problem) != 0)
        fail_msg("%s", problem.text);
    for (uint32_t l = 0; l < topology->link_count; l++)
        assert_int_equal(tables.uses_link[l], l < 5);
    for (uint32_t n = 0; n < topology->node_count; n++) {
        struct by_lower_need need = by_lowering_need(tables.lowering, 9, n);

        assert_int_equal(tables.need[n].entries, need.entries);
        assert_int_equal(tables.need[n].slots, need.slots);
        assert_int_equal(tables.slot_base[n], 0);
    }
    assert_true(tables.need[0].entries > 0 && tables.need[6].entries == 0);
    assert_int_equal(tables.window, 64);
    slots = tables.slot_base;
    slots[0] = 5;
    tables.window = 32;
    options.slots = 1; /* admission checks each switch */
    assert_int_equal(by_fabric_lower(topology, 9, &options, &tables, &problem), 0);
    assert_true(tables.window == 32 && tables.slot_base == slots && slots[0] == 5);
    tables.window = 0; /* the largest one that fits */
    assert_int_equal(by_fabric_lower(topology, 9, &options, &tables, &problem), 0);
    assert_int_equal(tables.window, 1);
    tables.lost_links = lost;
    assert_int_equal(by_fabric_lower(topology, 9, &options, &tables, &problem), BY_EINVAL);
    assert_true(tables.lowering == NULL && tables.uses_link == NULL && tables.need == NULL);
    free(tables.slot_base);
    bench_plan_free(made);
    by_topology_free(topology);
}

/* Each hop uses its link in the direction of its data, and each switch has its entries. */
static void trees_of_one_direction_are_measured(void **state)
{
    static const unsigned collectives[] = {BY_COLLECTIVE_BROADCAST, BY_COLLECTIVE_REDUCE};
    static const char *const trees[] = {"1 h0: h0>s0 s0>h2 s0>s1 s1>h1 s1>h3", NULL};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct by_topology *topology = bench_topology("s0* s1* h0 h1 h2 h3", "h0-s0 h2-s0 s0-s1 s1-h1 s1-h3");
        struct by_plan *made = bench_plan(topology, collectives[i], "h0", trees);
        struct by_job_tables tables = {.gen = 3, .plan_count = 1, .plans = &made};
        struct by_problem problem = {0};

        if (by_fabric_lower(topology, 9, &(struct by_lower_options){.window = 64}, &tables, &problem) != 0)
            fail_msg("%s", problem.text);
        for (uint32_t l = 0; l < topology->link_count; l++)
            assert_true(tables.uses_link[l]);
        assert_true(tables.need[0].entries > 0 && tables.need[1].entries > 0);
        by_lowering_free(tables.lowering);
        free(tables.uses_link);
        free(tables.need);
        free(tables.slot_base);
        bench_plan_free(made);
        by_topology_free(topology);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_collective_is_planned_within_four_fifths_of_the_limit, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(members_and_roots_have_the_numbers_of_the_part, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_job_without_a_path_is_not_planned, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_plan_is_repaired_from_that_before_if_ranks_are_the_same, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(plans_that_were_made_before_are_used_if_they_are_valid, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_order_that_fails_says_which_plan_and_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_plan_below_the_optimum_is_noted_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(texts_are_made_in_this_process_until_one_fails, set_up, tear_down),
        cmocka_unit_test(lowered_trees_are_measured),
        cmocka_unit_test(trees_of_one_direction_are_measured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

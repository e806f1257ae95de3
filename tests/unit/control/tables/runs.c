/* Whether a plan can run: plans of very many edges are only counted, with the same answer as tables
 * that are made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/tables/runs.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

#define HOSTS_MAX 180u

/* A star of hosts, the last `far` of them behind a switch that only forwards. `pairs`: the second
 * host has two cables. */
static struct by_topology *star(unsigned hosts, unsigned far, int pairs)
{
    char *nodes = by_alloc(HOSTS_MAX, 8), *links = by_alloc(HOSTS_MAX + 2, 12);
    struct by_topology *topology;
    size_t n = 0, l = 0;

    for (unsigned h = 0; h < hosts; h++) {
        n += (size_t)sprintf(nodes + n, "h%u ", h);
        l += (size_t)sprintf(links + l, "h%u-%s ", h, h + far < hosts ? "s" : "x");
    }
    sprintf(nodes + n, "s* x");
    l += (size_t)sprintf(links + l, "s-x ");
    if (pairs)
        sprintf(links + l, "s-h1 "); /* stated from the other end */
    topology = bench_topology(nodes, links);
    free(nodes);
    free(links);
    return topology;
}

/* A plan of `trees` trees over that star, from different roots: equal trees would be made one. */
static struct by_plan *plan_of(const struct by_topology *topology, unsigned hosts, unsigned far,
                               unsigned trees)
{
    char **texts = by_alloc(trees + 1, sizeof(*texts));
    struct by_plan *plan;

    for (unsigned t = 0; t < trees; t++) {
        unsigned root = t % (hosts - far);
        size_t used;

        texts[t] = by_alloc(hosts + 2, 16);
        used = (size_t)sprintf(texts[t], "1 h%u: h%u>s", root, root);
        for (unsigned h = 0; h < hosts; h++)
            if (h != root)
                used += (size_t)sprintf(texts[t] + used, " s>%sh%u", h + far < hosts ? "" : "x>", h);
    }
    plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, (const char *const *)texts);
    for (unsigned t = 0; t < trees; t++)
        free(texts[t]);
    free(texts);
    return plan;
}

/* Compares the answer with the tables. */
static void expect_as_lowered(const struct by_topology *topology, const struct by_plan *plan)
{
    struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = &plan};
    struct by_lowering *lowering;
    struct by_problem problem = {0};
    struct by_lower_need most = {0};
    uint32_t entries = 0;
    struct by_runs runs;

    if (by_lower(topology, &job, 1, &(struct by_lower_options){.bare = 1}, &lowering, &problem) != 0)
        fail_msg("%s", problem.text);
    for (uint32_t i = 0; i < topology->node_count; i++) {
        struct by_lower_need need = by_lowering_need(lowering, 1, i);

        entries = need.entries > entries ? need.entries : entries;
        if (!topology->nodes[i].compute && need.slots > most.slots)
            most = need;
    }
    by_runs_find(topology, plan, &runs);
    assert_true(runs.runs);
    assert_int_equal(runs.trees, entries);
    assert_int_equal(runs.window, lowering->window);
    assert_int_equal(runs.slots, lowering->slots);
    assert_string_equal(runs.fullest, "s");
    assert_int_equal(runs.fullest_trees, most.entries);
    assert_int_equal(runs.fullest_slots, most.slots);
    assert_true(runs.part.num == lowering->part.num && runs.part.den == lowering->part.den);
    by_lowering_free(lowering);
}

/* The last three have more than 50,000 nodes on their paths. */
static void a_plan_is_counted_as_it_is_lowered(void **state)
{
    static const struct {
        unsigned hosts, far, trees;
        int pairs;
    } rows[] = {{4, 0, 2, 0},     {4, 1, 3, 0},     {4, 0, 2, 1},
                {170, 3, 160, 0}, {165, 0, 165, 0}, {165, 0, 165, 1}};

    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct by_topology *topology = star(rows[r].hosts, rows[r].far, rows[r].pairs);
        struct by_plan *plan = plan_of(topology, rows[r].hosts, rows[r].far, rows[r].trees);

        expect_as_lowered(topology, plan);
        bench_plan_free(plan);
        by_topology_free(topology);
    }
}

static void more_trees_than_a_job_has_are_refused_in_a_large_plan(void **state)
{
    const unsigned hosts = 30;
    struct by_topology *topology = star(hosts, 0, 0);

    (void)state;
    for (unsigned more = 0; more < 2; more++) {
        struct by_plan *plan = plan_of(topology, hosts, 0, BY_TREES_MAX + more);
        struct by_runs runs;

        by_runs_find(topology, plan, &runs);
        assert_int_equal(runs.runs, !more);
        if (more)
            assert_non_null(strstr(runs.problem.text, " trees; a job has at most "));
        bench_plan_free(plan);
    }
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_counted_as_it_is_lowered),
        cmocka_unit_test(more_trees_than_a_job_has_are_refused_in_a_large_plan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

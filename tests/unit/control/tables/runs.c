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

/* Adds a rotation of `order` steps that moves node i to `next[i]`. */
static void rotate(struct by_plan *plan, const struct by_topology *topology, uint32_t order,
                   const uint32_t *next)
{
    struct by_rotation *rotation;

    if (plan->rotations == NULL)
        plan->rotations = by_alloc(1, sizeof(*plan->rotations));
    plan->rotations->node_count = topology->node_count;
    rotation = &plan->rotations->list[plan->rotations->count++];
    rotation->order = order;
    rotation->next = by_alloc(topology->node_count, sizeof(*next));
    memcpy(rotation->next, next, topology->node_count * sizeof(*next));
}

/* Rotations of four hosts: none, halves, or halves and pairs, so that each tree is one of one, two
 * or four. */
static void a_plan_by_classes_is_counted_as_all_its_trees_are_lowered(void **state)
{
    static const uint32_t still[6] = {0, 1, 2, 3, 4, 5}, halves[6] = {0, 2, 1, 4, 3, 5},
                          pairs[6] = {0, 3, 4, 1, 2, 5};
    static const struct {
        uint32_t rotations;
        const char *trees[3];
        const char *fullest; /* a switch */
    } rows[] = {
        {2, {"1 h0: h0>s s>h1 s>h2 h2>x>h3"}, "s"},
        {2, {"1 h0: h0>x>h1 h1>x>h2 h2>x>h3", "2 h1: h1>x>h0 h1>x>h3 h3>x>h2"}, NULL},
        {2, {"1 h0: h0>s s>h1 s>h2 h1>x>h3", "1 h0: h0>x>h1 h1>x>h2 h2>x>h3"}, "s"},
        {1, {"1 h0: h0>s s>h1 s>h2 h2>x>h3"}, "s"},
        {1, {"1 h0: h0>x>h1 h0>x>h2 h0>x>h3"}, NULL},
        {0, {"1 s: s>h0 s>h1 s>h2 s>h3"}, "s"},
    };

    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct by_topology *topology =
            bench_topology("s* h0 h1 h2 h3 x", "h0-s h1-s h2-s h3-s h0-x h1-x h2-x h3-x");
        struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, rows[r].trees);
        struct by_lower_job job = {.job = 1, .plan_count = 1};
        struct by_lowering *lowering = NULL;
        struct by_problem problem = {0};
        struct by_runs runs;
        uint32_t entries = 0;

        rotate(plan, topology, rows[r].rotations > 0 ? 2 : 1, rows[r].rotations > 0 ? halves : still);
        if (rows[r].rotations > 1)
            rotate(plan, topology, 2, pairs);
        by_runs_find(topology, plan, &runs);
        if (!runs.runs)
            fail_msg("%s", runs.problem.text);
        if (by_rotations_expand(plan, &problem) != 0)
            fail_msg("%s", problem.text);
        job.plans = (const struct by_plan *const *)&plan;
        if (by_lower(topology, &job, 1, &(struct by_lower_options){.bare = 1}, &lowering, &problem) != 0)
            fail_msg("%s", problem.text);
        for (uint32_t i = 0; i < topology->node_count; i++) {
            struct by_lower_need need = by_lowering_need(lowering, 1, i);

            entries = need.entries > entries ? need.entries : entries;
            if (rows[r].fullest != NULL && strcmp(topology->nodes[i].name, rows[r].fullest) == 0) {
                assert_string_equal(runs.fullest, rows[r].fullest);
                assert_int_equal(runs.fullest_trees, need.entries);
                assert_int_equal(runs.fullest_slots, need.slots);
            }
        }
        assert_int_equal(runs.trees, entries);
        assert_int_equal(runs.window, lowering->window);
        assert_int_equal(runs.slots, lowering->slots);
        if (rows[r].fullest == NULL)
            assert_null(runs.fullest);
        by_lowering_free(lowering);
        bench_plan_free(plan);
        by_topology_free(topology);
    }
}

/* All relays of a tree are at the second of two switches, and a rotation exchanges these: each has
 * the relays of half of the trees, 2 * (hosts - 1) of each. */
static void relays_are_counted_at_each_place_where_classes_have_them(void **state)
{
    static const struct {
        uint32_t hosts, trees;
        const char *refusal;
    } rows[] = {{64, 64, ""}, {66, 62, "'x0' needs 531960 relays; the limit is 524288"}};
    enum { MOST = 66, NODES = MOST + 2 };

    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        uint32_t hosts = rows[r].hosts, around[NODES], across[NODES];
        char nodes[NODES * 4] = "", links[MOST * 16] = "", text[MOST * 12] = "1 h0:";
        const char *trees[MOST] = {NULL};
        size_t n = 0, l = 0, t = strlen(text);
        struct by_topology *topology;
        struct by_plan *plan;
        struct by_runs runs;

        for (uint32_t h = 0; h < hosts; h++) {
            n += (size_t)sprintf(nodes + n, "h%u ", h);
            l += (size_t)sprintf(links + l, "h%u-x0 h%u-x1 ", h, h);
            if (h > 0)
                t += (size_t)sprintf(text + t, " h0>x1>h%u", h);
            around[h] = (h + 1) % hosts;
            across[h] = h;
        }
        strcat(nodes, "x0 x1");
        links[l - 1] = '\0';
        around[hosts] = across[hosts + 1] = hosts;
        around[hosts + 1] = across[hosts] = hosts + 1;
        for (uint32_t i = 0; i < rows[r].trees; i++)
            trees[i] = text;
        topology = bench_topology(nodes, links);
        plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
        rotate(plan, topology, hosts, around);
        rotate(plan, topology, 2, across);
        by_runs_find(topology, plan, &runs);
        assert_string_equal(runs.problem.text, rows[r].refusal);
        assert_int_equal(runs.runs, rows[r].refusal[0] == '\0');
        by_rotations_free(plan->rotations);
        bench_plan_free(plan);
        by_topology_free(topology);
    }
}

/* The last plan that fits a limit, and the first that does not: trees of one host to all others, of
 * which each has two relays at x, or with more than 64 and more than 128 children. */
static void the_limits_of_a_node_are_those_of_its_tables(void **state)
{
    static const struct {
        uint32_t hosts;
        const char *edge, *refusal;
    } rows[] = {
        {33, " h0>x>h%u", ""},
        {34, " h0>x>h%u", "'x' needs 540672 relays; the limit is 524288"},
        {66, " h0>h%u", ""},
        {130, " h0>h%u", "'h0' is in 8192 trees and has 16384 slots"},
    };
    enum { MOST = 130 };
    const char **trees = by_alloc(BY_TREES_MAX + 1, sizeof(*trees));

    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        char nodes[MOST * 6] = "", links[MOST * 16] = "", text[MOST * 12] = "1 h0:";
        size_t n = 0, l = 0, t = strlen(text);
        struct by_topology *topology;
        struct by_plan *plan;
        struct by_runs runs;

        for (uint32_t h = 0; h < rows[r].hosts; h++) {
            n += (size_t)sprintf(nodes + n, "h%u ", h);
            l += (size_t)sprintf(links + l, h > 0 ? "h0-h%u h%u-x " : "h%u-x ", h, h);
            if (h > 0)
                t += (size_t)sprintf(text + t, rows[r].edge, h);
        }
        strcat(nodes, "x");
        links[l - 1] = '\0';
        for (uint32_t i = 0; i < BY_TREES_MAX; i++)
            trees[i] = text;
        topology = bench_topology(nodes, links);
        plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
        by_runs_find(topology, plan, &runs);
        assert_string_equal(runs.problem.text, rows[r].refusal);
        assert_int_equal(runs.runs, rows[r].refusal[0] == '\0');
        bench_plan_free(plan);
        by_topology_free(topology);
    }
    free(trees);
}

/* Plans by classes are counted only where cables cannot be chosen. */
static void classes_on_parallel_links_and_of_pairs_are_refused(void **state)
{
    static const struct {
        const char *links, *trees[3];
        bool runs;
    } rows[] = {
        {"h0-s s-h1", {"1 s: s>h0 s>h1"}, true},
        {"h0-s s-h0 s-h1", {"1 s: s>h0 s>h1"}, false},
        {"h0-s s-h1 h1-s", {"1 s: s>h0 s>h1"}, false},
        {"h0-s s>h1 h1-s", {"1 s: s>h0 s>h1"}, false},
        {"h0-s s-h1", {"1 up s: s>h0 s>h1", "1 s: s>h0 s>h1"}, false},
    };
    static const uint32_t still[3] = {0, 1, 2};

    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct by_topology *topology = bench_topology("h0 s* h1", rows[r].links);
        struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, rows[r].trees);
        struct by_runs runs;

        rotate(plan, topology, 1, still);
        by_runs_find(topology, plan, &runs);
        assert_int_equal(runs.runs, rows[r].runs);
        if (!rows[r].runs)
            assert_non_null(strstr(runs.problem.text, "on a fabric with one-way or parallel links"));
        by_rotations_free(plan->rotations);
        bench_plan_free(plan);
        by_topology_free(topology);
    }
}

/* 64 trees of a window of 256 slots fill a node, and one more halves it. */
static void a_window_fills_the_slots_of_a_node(void **state)
{
    static const uint32_t still[3] = {0, 1, 2};
    const char *trees[66] = {NULL};
    struct by_topology *topology = bench_topology("h0 h1 s*", "h0-s s-h1");

    (void)state;
    for (uint32_t more = 0; more < 2; more++) {
        struct by_plan *plan;
        struct by_runs runs;

        for (uint32_t i = 0; i < 64 + more; i++)
            trees[i] = "1 s: s>h0 s>h1";
        plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
        rotate(plan, topology, 1, still);
        by_runs_find(topology, plan, &runs);
        assert_int_equal(runs.window, more ? 128 : 256);
        assert_int_equal(runs.slots, more ? 65 * 128 : BY_LOWER_SLOTS);
        assert_string_equal(runs.fullest, "s");
        by_rotations_free(plan->rotations);
        bench_plan_free(plan);
    }
    by_topology_free(topology);
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
        cmocka_unit_test(a_plan_by_classes_is_counted_as_all_its_trees_are_lowered),
        cmocka_unit_test(relays_are_counted_at_each_place_where_classes_have_them),
        cmocka_unit_test(the_limits_of_a_node_are_those_of_its_tables),
        cmocka_unit_test(more_trees_than_a_job_has_are_refused_in_a_large_plan),
        cmocka_unit_test(classes_on_parallel_links_and_of_pairs_are_refused),
        cmocka_unit_test(a_window_fills_the_slots_of_a_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

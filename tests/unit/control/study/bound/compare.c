/* Implements compare.h: one fabric against the oracles. */
#include "tests/unit/control/study/bound/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/study/bound/cuts.h"
#include "control/verify/verify.h"
#include "tests/unit/control/campaign/cuts.h"
#include "tests/unit/control/study/bound/oracle.h"

struct comparison {
    const struct by_topology *topology;
    struct by_graph *up, *down;
    char *text;
    bool same;
};

static void differ(struct comparison *comparison, const char *what, struct by_fraction ours)
{
    char fraction[BY_FRACTION_TEXT_BYTES];

    if (comparison->same)
        snprintf(comparison->text, COMPARE_TEXT_BYTES, "%s: %s is %s, which is not what all tried say",
                 comparison->topology->name, what, by_fraction_text(ours, fraction));
    comparison->same = false;
}

static void expect_cut(struct comparison *comparison, const char *what, struct by_fraction ours,
                       struct cut_value oracle)
{
    if (!cut_equals(oracle, ours))
        differ(comparison, what, ours);
}

static void expect(struct comparison *comparison, const char *what, struct by_fraction ours,
                   struct by_fraction oracle)
{
    if (by_fraction_compare(ours, oracle) != 0)
        differ(comparison, what, ours);
}

static void fail(struct comparison *comparison, const char *what, const char *why)
{
    if (comparison->same)
        snprintf(comparison->text, COMPARE_TEXT_BYTES, "%s: %s: %.200s", comparison->topology->name, what,
                 why);
    comparison->same = false;
}

/* Compares allgather and reduce-scatter, and broadcast and reduce for every root. */
static void compare_one_way(struct comparison *comparison)
{
    const struct by_topology *topology = comparison->topology;
    int64_t one[CUTS_NODES_MAX] = {0};
    struct by_bound_shared gathered = {.cut = {0}}, scattered = {.cut = {0}};
    struct by_bound_rooted rooted[2] = {{0}, {0}};
    struct by_problem problem = {0};

    for (uint32_t i = 0; i < topology->node_count; i++)
        one[i] = topology->nodes[i].compute;
    if (by_cuts_shared(comparison->down, false, &gathered, &problem) != 0 ||
        by_cuts_shared(comparison->up, true, &scattered, &problem) != 0 ||
        by_cuts_rooted(comparison->down, false, &rooted[0], &problem) != 0 ||
        by_cuts_rooted(comparison->up, true, &rooted[1], &problem) != 0) {
        fail(comparison, "cuts", problem.text);
    } else {
        expect_cut(comparison, "1/x* of allgather", gathered.inv_x, cuts_shares(topology, one, false));
        expect_cut(comparison, "1/x* of reduce-scatter", scattered.inv_x, cuts_shares(topology, one, true));
        for (uint32_t i = 0; i < rooted[0].root_count; i++) {
            struct cuts cuts;

            cuts_find(topology, rooted[0].roots[i].node, &cuts);
            expect_cut(comparison, "broadcast", rooted[0].roots[i].bound, cuts.broadcast);
            expect_cut(comparison, "reduce", rooted[1].roots[i].bound, cuts.reduce);
        }
    }
    by_bound_cut_free(&gathered.cut);
    by_bound_cut_free(&scattered.cut);
    for (uint32_t way = 0; way < 2; way++) {
        for (uint32_t i = 0; i < rooted[way].cut_count; i++)
            by_bound_cut_free(&rooted[way].cuts[i]);
        free(rooted[way].cuts);
        free(rooted[way].roots);
    }
}

static void compare_allreduce_cuts(struct comparison *comparison)
{
    struct by_fraction cut_set = {0, 1}, processes = {0, 1};
    struct by_bound_cut cut = {0};
    struct by_problem problem = {0};
    uint32_t process = 0;
    struct cuts cuts;

    if (by_cuts_allreduce(comparison->down, &cut_set, &cut, &problem) != 0 ||
        by_cuts_processes(comparison->down, &processes, &process, &problem) != 0) {
        fail(comparison, "cuts of allreduce", problem.text);
    } else {
        cuts_find(comparison->topology, 0, &cuts);
        expect_cut(comparison, "the cut set", cut_set, cuts.allreduce);
        expect(comparison, "the bound of processes", processes, oracle_processes(comparison->topology));
    }
    by_bound_cut_free(&cut);
}

/* Gives the plan's text to the verifier, which must return OPTIMAL. */
static void verify(struct comparison *comparison, const struct by_plan *plan)
{
    struct by_verify_report report;
    struct by_problem problem = {0};
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);

    if (!stream || by_plan_write(plan, comparison->topology, stream) != 0 || fclose(stream) != 0)
        fail(comparison, "the plan", "cannot be written");
    else if (by_verify_text(comparison->topology, text, bytes, &report, &problem) != 0)
        fail(comparison, "the plan", problem.text);
    else if (report.verdict != BY_VERDICT_OPTIMAL)
        fail(comparison, "the plan is not OPTIMAL", report.reason);
    free(text);
}

static void compare_rate(struct comparison *comparison, bool trees, struct by_fraction *reached)
{
    const struct by_topology *topology = comparison->topology;
    struct by_fraction oracle = {0, 1};
    struct by_problem problem = {0};
    struct by_bound_rate rate;

    if (by_rate_find(topology, 0, &rate, &problem) != 0) {
        fail(comparison, "the rate", problem.text);
    } else {
        *reached = rate.plan->achieved;
        if (rate.method == BY_RATE_SPANNING)
            expect(comparison, "the Reduce-Broadcast rate", *reached, oracle_partitions(topology));
        if (trees && !oracle_trees(topology, &oracle))
            fail(comparison, "the program over all trees", "cannot be solved");
        else if (trees)
            expect(comparison, "the Reduce-Broadcast rate", *reached, oracle);
        if (!trees && rate.method != BY_RATE_SPANNING)
            fail(comparison, "the rate", "nothing to compare it with");
        verify(comparison, rate.plan);
    }
    by_rate_free(&rate);
}

bool compare_bounds(const struct by_topology *topology, bool trees, struct by_fraction *rate,
                    char text[COMPARE_TEXT_BYTES])
{
    struct comparison comparison = {.topology = topology,
                                    .up = by_graph_make(topology, BY_DIRECTION_UP, false),
                                    .down = by_graph_make(topology, BY_DIRECTION_DOWN, false),
                                    .text = text,
                                    .same = true};
    struct by_fraction reached = {0, 1};

    text[0] = 0;
    compare_one_way(&comparison);
    compare_allreduce_cuts(&comparison);
    compare_rate(&comparison, trees, &reached);
    if (rate)
        *rate = reached;
    by_graph_free(comparison.up);
    by_graph_free(comparison.down);
    return comparison.same;
}

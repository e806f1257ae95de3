/*
 * Replanning after losses: the verifier checks every repaired plan on the remaining fabric, trees
 * without a loss stay, and the report counts the changes. Prints how often the bound is reached.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/base/fraction.h"
#include "control/fabric/vary.h"
#include "control/planner/planner.h"
#include "control/planner/replan/replan.h"
#include "offload/base/errors.h"
#include "tests/unit/control/planner/rig.h"

static const unsigned collectives[] = {BY_COLLECTIVE_ALLGATHER, BY_COLLECTIVE_REDUCE_SCATTER,
                                       BY_COLLECTIVE_BROADCAST, BY_COLLECTIVE_REDUCE,
                                       BY_COLLECTIVE_ALLREDUCE};

struct replan_tally {
    unsigned plans, optimal, unsupported;
    uint64_t kept, changed, fresh, entries, entries_changed;
};

static int64_t root_of(unsigned collective)
{
    return collective == BY_COLLECTIVE_BROADCAST || collective == BY_COLLECTIVE_REDUCE ? 0 : -1;
}

/* Replans `from` (a plan for `before`) for `now`, verifies the result and updates the tally. */
static struct by_plan *again(const struct by_topology *before, const struct by_plan *from,
                             const struct by_topology *now, struct replan_tally *tally)
{
    struct by_replan_report report;
    struct by_problem problem = {0};
    struct by_plan *plan;
    int error = by_replan(before, from, now, true, 0, &plan, &report, &problem);

    if (error == BY_EUNSUPPORTED) {
        assert_true(problem.text[0]);
        tally->unsupported++;
        return NULL;
    }
    if (error)
        fail_msg("%s on %s: %s", by_collective_name(from->collective), now->name, problem.text);
    rig_verify(plan, now, report.optimal ? BY_VERDICT_OPTIMAL : BY_VERDICT_VALID);
    assert_int_equal(report.optimal, by_fraction_compare(plan->achieved, plan->optimum) == 0);
    assert_int_equal(report.trees_before, from->tree_count);
    assert_int_equal(report.trees_kept + report.trees_changed + report.trees_gone, from->tree_count);
    assert_int_equal(report.trees_kept + report.trees_changed + report.trees_new, plan->tree_count);
    assert_true(report.entries_changed <= report.entries);
    assert_true((report.entries_changed > 0) == (report.trees_changed + report.trees_new > 0));
    tally->plans++;
    tally->optimal += report.optimal;
    tally->kept += report.trees_kept;
    tally->changed += report.trees_changed;
    tally->fresh += report.trees_new;
    tally->entries += report.entries;
    tally->entries_changed += report.entries_changed;
    return plan;
}

static void tell(const char *what, const struct replan_tally *tally)
{
    print_message(
        "%-30s %u plans, %u reach the bound, %u cannot be mended; trees: %llu stay, %llu change, %llu "
        "split off; %llu of %llu entries change\n",
        what, tally->plans, tally->optimal, tally->unsupported, (unsigned long long)tally->kept,
        (unsigned long long)tally->changed, (unsigned long long)tally->fresh,
        (unsigned long long)tally->entries_changed, (unsigned long long)tally->entries);
}

/* Loses each link of the fabric in turn, then each node except the first. */
static void lose_each(const struct by_topology *topology, bool nodes, struct replan_tally *tally)
{
    uint32_t count = nodes ? topology->node_count : topology->link_count;
    bool *lost = calloc(count, sizeof(*lost));

    assert_non_null(lost);
    for (size_t c = 0; c < sizeof(collectives) / sizeof(collectives[0]); c++) {
        struct by_plan *plan = rig_plan(topology, collectives[c], root_of(collectives[c]), 0, true);

        for (uint32_t i = nodes ? 1 : 0; i < count; i++) {
            struct by_topology *left;
            struct by_problem problem = {0};

            lost[i] = true;
            if (by_topology_without(topology, nodes ? NULL : lost, nodes ? lost : NULL, &left, &problem) ==
                    0 &&
                by_topology_compute_count(left) >= 2)
                by_plan_free(again(topology, plan, left, tally));
            by_topology_free(left);
            lost[i] = false;
        }
        by_plan_free(plan);
    }
    free(lost);
}

static struct by_topology *fabric(unsigned number)
{
    switch (number) {
    case 0:
        return rig_preset("a100", "none", "3", "4", NULL);
    case 1:
        return rig_preset("twobox", "all", "4", NULL);
    case 2:
        return rig_preset("leafspine", "all", "3", "2", "3", NULL);
    case 3:
        return rig_preset("leafspine", "none", "3", "2", "3", NULL);
    case 4:
        return rig_preset("torus", NULL, "3x4", NULL);
    case 5:
        return rig_preset("hypercube", NULL, "3", NULL);
    case 6:
        return rig_preset("rail", "all", "3", "3", NULL);
    case 7:
        return rig_preset("random", "all", "8", "3", "10", NULL);
    default:
        return rig_preset("regular", NULL, "10", "4", NULL);
    }
}
#define FABRICS 9u

static void a_plan_is_mended_after_each_lost_link(void **state)
{
    struct replan_tally all = {0};

    (void)state;
    for (unsigned f = 0; f < FABRICS; f++) {
        struct by_topology *topology = fabric(f);
        struct replan_tally tally = {0};

        lose_each(topology, false, &tally);
        tell(topology->name, &tally);
        all.plans += tally.plans;
        all.optimal += tally.optimal;
        all.unsupported += tally.unsupported;
        by_topology_free(topology);
    }
    tell("links in all", &all);
    assert_int_equal(all.optimal, all.plans); /* 651 of 730 if repairs were not compared with new plans */
    assert_true(all.plans >= 20 * all.unsupported);
}

static void a_plan_is_mended_after_each_lost_node(void **state)
{
    struct replan_tally all = {0};

    (void)state;
    for (unsigned f = 0; f < FABRICS; f++) {
        struct by_topology *topology = fabric(f);
        struct replan_tally tally = {0};

        lose_each(topology, true, &tally);
        tell(topology->name, &tally);
        all.plans += tally.plans;
        all.optimal += tally.optimal;
        all.unsupported += tally.unsupported;
        by_topology_free(topology);
    }
    tell("nodes in all", &all);
    assert_int_equal(all.optimal, all.plans);
    assert_true(all.plans >= 10 * all.unsupported);
}

static void a_link_that_returns_is_used_again(void **state)
{
    struct by_topology *whole = rig_preset("a100", "none", "4", NULL), *left;
    struct by_problem problem = {0};
    struct replan_tally tally = {0};
    bool lost[64] = {false};

    (void)state;
    lost[1] = true; /* gpu0 - ib0 */
    assert_int_equal(by_topology_without(whole, lost, NULL, &left, &problem), 0);
    for (size_t c = 0; c < sizeof(collectives) / sizeof(collectives[0]); c++) {
        struct by_plan *plan = rig_plan(left, collectives[c], root_of(collectives[c]), 0, true);
        struct by_plan *back = again(left, plan, whole, &tally);

        assert_non_null(back);
        assert_true(by_fraction_compare(back->achieved, plan->achieved) >= 0);
        by_plan_free(back);
        by_plan_free(plan);
    }
    tell("a link returns", &tally);
    by_topology_free(left);
    by_topology_free(whole);
}

static void at_scale_one_lost_link_changes_few_trees_and_the_bound_is_reached(void **state)
{
    struct by_topology *whole = rig_preset("a100", "none", "32", NULL), *left;
    struct by_plan *plan = rig_plan(whole, BY_COLLECTIVE_ALLGATHER, -1, 0, true), *repaired;
    bool *lost = calloc(whole->link_count, sizeof(*lost));
    struct by_replan_report report;
    struct by_problem problem = {0};

    (void)state;
    assert_non_null(lost);
    lost[19] = true; /* gpu9 - ib0 */
    assert_int_equal(by_topology_without(whole, lost, NULL, &left, &problem), 0);
    assert_int_equal(by_replan(whole, plan, left, true, 0, &repaired, &report, &problem), 0);
    print_message("%u of %u trees stay, %llu of %llu entries change\n", report.trees_kept,
                  report.trees_before, (unsigned long long)report.entries_changed,
                  (unsigned long long)report.entries);
    rig_verify(repaired, left, BY_VERDICT_OPTIMAL);
    assert_true(report.trees_changed <= 40);
    assert_true(report.entries_changed * 20 <= report.entries);
    by_plan_free(repaired);
    by_plan_free(plan);
    by_topology_free(left);
    by_topology_free(whole);
    free(lost);
}

/* The repaired trees are at most one and a half times as high as those of a plan made without the
 * old one, and at most a tenth more. Returns whether the rate is the same too. */
static bool compare_with_fresh(const struct by_topology *whole, const struct by_plan *plan,
                               const struct by_topology *left, const char *lost)
{
    struct replan_tally tally = {0};
    struct by_plan *repaired = again(whole, plan, left, &tally), *fresh;
    uint32_t height, usual, trees, fresh_trees;
    bool same;

    assert_non_null(repaired);
    fresh = rig_plan(left, plan->collective, -1, 0, true);
    height = by_plan_heights(repaired, left->node_count).max;
    usual = by_plan_heights(fresh, left->node_count).max;
    trees = repaired->tree_count;
    fresh_trees = fresh->tree_count;
    same = by_fraction_compare(repaired->achieved, fresh->achieved) == 0;
    by_plan_free(fresh);
    by_plan_free(repaired);
    if (2 * height > 3 * usual || 10 * trees > 11 * fresh_trees)
        fail_msg("%s of %s without %s: height %u, %u trees; planned again %u, %u",
                 by_collective_name(plan->collective), whole->name, lost, height, trees, usual, fresh_trees);
    return same;
}

static const struct {
    const char *name, *capable, *sizes[4];
    unsigned collective, links; /* every so-many-th link is lost */
    const char *node;           /* that is lost */
} at_scale[] = {
    {"leafspine", "none", {"8", "4", "8"}, BY_COLLECTIVE_ALLGATHER, 7, "spine2"},
    {"leafspine", "none", {"8", "4", "8"}, BY_COLLECTIVE_ALLREDUCE, 0, "spine2"},
    {"leafspine", "all", {"8", "4", "8"}, BY_COLLECTIVE_ALLGATHER, 7, "spine2"},
    {"leafspine", "all", {"8", "4", "8"}, BY_COLLECTIVE_ALLREDUCE, 0, "spine2"},
    {"a100", "none", {"16"}, BY_COLLECTIVE_ALLGATHER, 17, "nvswitch3"},
    {"a100", "none", {"16"}, BY_COLLECTIVE_REDUCE_SCATTER, 19, "nvswitch3"},
    {"a100", "all", {"16"}, BY_COLLECTIVE_ALLGATHER, 17, "nvswitch3"},
    {"h100", "none", {"16"}, BY_COLLECTIVE_ALLGATHER, 23, "nvswitch3"},
    {"mi250", "none", {"6"}, BY_COLLECTIVE_ALLGATHER, 5, NULL},
    {"mi250", "none", {"6"}, BY_COLLECTIVE_REDUCE_SCATTER, 11, NULL},
    {"rail", "none", {"16", "8"}, BY_COLLECTIVE_ALLGATHER, 13, "rail0"},
    {"rail", "none", {"16", "8"}, BY_COLLECTIVE_REDUCE_SCATTER, 0, "rail3"},
    {"rail", "all", {"32", "8"}, BY_COLLECTIVE_ALLGATHER, 0, "rail0"},
    {"fattree", "none", {"8"}, BY_COLLECTIVE_ALLGATHER, 29, NULL},
    {"random", "none", {"64", "8", "120"}, BY_COLLECTIVE_ALLGATHER, 37, NULL},
    {"a100", "none", {"8"}, BY_COLLECTIVE_ALLGATHER, 5, "gpu50"},
    {"a100", "none", {"20"}, BY_COLLECTIVE_ALLGATHER, 79, "nvswitch3"}, /* single leaves move */
    {"hypercube", "none", {"6"}, BY_COLLECTIVE_ALLGATHER, 41, "host13"},
    {"hypercube", "none", {"7"}, BY_COLLECTIVE_REDUCE_SCATTER, 101, "host3"},
    {"regular", "none", {"64", "4"}, BY_COLLECTIVE_ALLGATHER, 29, "host50"},
    {"torus", "none", {"8x8"}, BY_COLLECTIVE_ALLGATHER, 31, "host50"},
    {"ring", "none", {"16"}, BY_COLLECTIVE_ALLGATHER, 5, "host3"},
    {"dragonfly", "none", {"5", "4", "2"}, BY_COLLECTIVE_ALLGATHER, 7, "host9"},
};

static void at_scale_a_loss_costs_neither_height_nor_trees(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(at_scale) / sizeof(at_scale[0]); i++) {
        const char *sizes[5] = {at_scale[i].sizes[0], at_scale[i].sizes[1], at_scale[i].sizes[2]};
        struct by_topology *whole = rig_preset_list(at_scale[i].name, at_scale[i].capable, sizes), *left;
        struct by_plan *plan = rig_plan(whole, at_scale[i].collective, -1, 0, true);
        bool *nodes = calloc(whole->node_count, sizeof(*nodes));
        bool *links = calloc(whole->link_count, sizeof(*links));
        struct by_problem problem = {0};
        unsigned losses = 0, same = 0;
        char name[32];

        assert_true(nodes && links);
        for (uint32_t l = 1; l < whole->link_count && at_scale[i].links; l += at_scale[i].links) {
            links[l] = true;
            if (by_topology_without(whole, links, NULL, &left, &problem) == 0) {
                snprintf(name, sizeof(name), "link %u", l);
                same += compare_with_fresh(whole, plan, left, name);
                losses++;
                by_topology_free(left);
            }
            links[l] = false;
        }
        if (at_scale[i].node) {
            nodes[by_topology_find(whole, at_scale[i].node)] = true;
            assert_int_equal(by_topology_without(whole, NULL, nodes, &left, &problem), 0);
            same += compare_with_fresh(whole, plan, left, at_scale[i].node);
            losses++;
            by_topology_free(left);
        }
        print_message("%s of %s: %u losses, %u at the rate of a plan made again\n",
                      by_collective_name(plan->collective), whole->name, losses, same);
        assert_int_equal(same, losses);
        by_plan_free(plan);
        by_topology_free(whole);
        free(nodes);
        free(links);
    }
}

static void a_plan_is_read_although_its_link_or_node_is_gone(void **state)
{
    struct by_topology *whole = rig_preset("leafspine", "all", "3", "2", "3", NULL), *left, *before;
    struct by_plan *plan = rig_plan(whole, BY_COLLECTIVE_ALLGATHER, -1, 0, true), *old;
    char path[] = "/tmp/banyan-replan-XXXXXX", *text = rig_text(plan, whole);
    bool lost_links[64] = {false}, lost_nodes[64] = {false};
    struct by_problem problem = {0};
    struct replan_tally tally = {0};
    int file = mkstemp(path);

    (void)state;
    assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
    lost_links[10] = true;
    lost_nodes[by_topology_find(whole, "host4")] = true;
    assert_int_equal(by_topology_without(whole, lost_links, lost_nodes, &left, &problem), 0);
    assert_int_equal(by_replan_read(path, left, &before, &old, &problem), 0);
    assert_int_equal(old->tree_count, plan->tree_count);
    by_plan_free(again(before, old, left, &tally));
    assert_int_equal(tally.plans, 1);
    by_plan_free(old);
    by_topology_free(before);
    assert_int_equal(by_replan_read("/nonexistent/plan", left, &before, &old, &problem), BY_EIO);
    unlink(path);
    free(text);
    by_plan_free(plan);
    by_topology_free(left);
    by_topology_free(whole);
}

/* A leaf-spine whose leaves support only one capability, or whose rate of addition is limited. */
static struct by_topology *limited(bool aggregate, int64_t rate)
{
    struct by_topology *topology = rig_preset("leafspine", "leaf", "3", "2", "3", "10", NULL);

    for (uint32_t i = 0; i < topology->node_count; i++) {
        struct by_node *node = &topology->nodes[i];

        if (!node->aggregate)
            continue;
        node->aggregate = aggregate;
        node->aggregate_rate = (struct by_fraction){rate, 1};
    }
    return topology;
}

/* Loses each link, or each node except the first. */
static void lose_each_of(const struct by_topology *topology, bool nodes, unsigned collective, bool ordered,
                         struct replan_tally *tally)
{
    struct by_plan_options options = {
        .collective = collective, .root = root_of(collective), .in_network = true, .ordered = ordered};
    uint32_t count = nodes ? topology->node_count : topology->link_count;
    bool *lost = calloc(count, sizeof(*lost));
    struct by_problem problem = {0};
    struct by_plan *plan, *next;

    assert_non_null(lost);
    assert_int_equal(by_plan_make(topology, &options, &plan, &problem), 0);
    for (uint32_t i = nodes ? 1 : 0; i < count; i++) {
        struct by_topology *left;

        lost[i] = true;
        if (by_topology_without(topology, nodes ? NULL : lost, nodes ? lost : NULL, &left, &problem) == 0) {
            next = again(topology, plan, left, tally);
            assert_true(next == NULL || next->ordered == ordered);
            by_plan_free(next);
        }
        by_topology_free(left);
        lost[i] = false;
    }
    by_plan_free(plan);
    free(lost);
}

static void pairs_limits_and_order_are_kept(void **state)
{
    struct replan_tally tally = {0};

    (void)state;
    for (int nodes = 0; nodes < 2; nodes++) {
        struct by_topology *half = limited(false, 0), *slow = limited(true, 12),
                           *plain = rig_preset("leafspine", "none", "3", "2", "3", "10", NULL),
                           *boxes = rig_preset("h100", "nvswitch", "9", NULL);

        lose_each_of(half, nodes, BY_COLLECTIVE_ALLREDUCE, false, &tally);
        lose_each_of(slow, nodes, BY_COLLECTIVE_ALLREDUCE, false, &tally);
        lose_each_of(slow, nodes, BY_COLLECTIVE_REDUCE, false, &tally);
        lose_each_of(plain, nodes, BY_COLLECTIVE_ALLREDUCE, true, &tally);
        lose_each_of(plain, nodes, BY_COLLECTIVE_REDUCE, true, &tally);
        lose_each_of(plain, nodes, BY_COLLECTIVE_REDUCE_SCATTER, true, &tally);
        if (!nodes)
            lose_each_of(boxes, nodes, BY_COLLECTIVE_REDUCE_SCATTER, true, &tally);
        by_topology_free(half);
        by_topology_free(slow);
        by_topology_free(plain);
        by_topology_free(boxes);
    }
    tell("pairs, limits, order:", &tally);
    assert_true(tally.plans > 100);
    assert_true(tally.unsupported <= tally.plans / 10);
}

static void what_cannot_be_mended_is_refused_with_the_reason(void **state)
{
    struct by_topology *star = rig_preset("star", "all", "4", NULL),
                       *more = rig_preset("star", "all", "5", NULL);
    struct by_topology *left;
    struct by_plan *broadcast = rig_plan(star, BY_COLLECTIVE_BROADCAST, 2, 0, true);
    struct by_plan *allgather = rig_plan(star, BY_COLLECTIVE_ALLGATHER, -1, 0, true), *plan;
    bool lost[5] = {false, false, true};
    struct by_replan_report report;
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(by_topology_without(star, NULL, lost, &left, &problem), 0);
    assert_int_equal(by_replan(star, broadcast, left, true, 0, &plan, &report, &problem), BY_EUNSUPPORTED);
    assert_non_null(strstr(problem.text, "root"));
    assert_int_equal(by_replan(star, allgather, more, true, 0, &plan, &report, &problem), BY_EUNSUPPORTED);
    assert_non_null(strstr(problem.text, "'host4'"));
    by_plan_free(broadcast);
    by_plan_free(allgather);
    by_topology_free(left);
    by_topology_free(more);
    by_topology_free(star);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_mended_after_each_lost_link),
        cmocka_unit_test(a_plan_is_mended_after_each_lost_node),
        cmocka_unit_test(a_link_that_returns_is_used_again),
        cmocka_unit_test(at_scale_one_lost_link_changes_few_trees_and_the_bound_is_reached),
        cmocka_unit_test(at_scale_a_loss_costs_neither_height_nor_trees),
        cmocka_unit_test(a_plan_is_read_although_its_link_or_node_is_gone),
        cmocka_unit_test(pairs_limits_and_order_are_kept),
        cmocka_unit_test(what_cannot_be_mended_is_refused_with_the_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

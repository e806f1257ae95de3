/*
 * What ranks report after a permanent fault: a switch or a host that fails, ranks that disagree.
 * Every rank ends in time and names the place.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/wire/types.h"
#include "tests/sim/scenario.h"

#define PERCENT  UINT32_C(42949672)
#define STALL_NS UINT64_C(200000000)

static struct scenario scenario;
static struct scenario_result result;

/* Returns the node that a rank suspects: the one that is waited for, else the one that does not
 * respond. */
static int suspect_of(const struct by_call_status *status)
{
    return status->missing_node != BY_NODE_NONE ? status->missing_node : status->node;
}

/* A large allreduce, so that nodes fail in the middle of it. */
static void prepare(uint64_t seed, const char *root, uint32_t loss)
{
    struct fabric_tree *tree;

    fabric_job_add(&scenario.fabric, 1, 3);
    tree = fabric_tree_add(&scenario.fabric, 0, fabric_named(&scenario.fabric, root), 1, NULL);
    assert_non_null(tree);
    tree->window = 16;
    tree->payload_max = 512;
    scenario.seed = seed;
    scenario.world.seed = seed;
    scenario.world.fault.loss = loss;
    scenario.world.endpoint.stall_ns = STALL_NS;
    scenario.limit_ns = 20 * STALL_NS;
    scenario_add_call(&scenario, 0, BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_I32, 200000);
    scenario_add_call(&scenario, 0, BY_COLLECTIVE_BARRIER, 0, BY_DTYPE_U8, 0);
}

struct death_row {
    const char *shape, *root, *dead;
    /* The suspect that each rank must report; "-": the rank itself has failed. */
    const char *suspects[6];
};

static void draw_shape(const char *shape)
{
    scenario_init(&scenario, 1);
    if (strcmp(shape, "star") == 0)
        fabric_star(&scenario.fabric, 4, 10000, 500);
    else if (strcmp(shape, "leaf-spine") == 0)
        fabric_leafspine(&scenario.fabric, 1, 2, 2, 10000, 500, 0);
    else if (strcmp(shape, "lean") == 0) /* one switch per host */
        fabric_leafspine(&scenario.fabric, 1, 3, 1, 10000, 500, 0);
    else if (strcmp(shape, "chain") == 0)
        fabric_chain(&scenario.fabric, 3, 2, 10000, 500);
    else if (strcmp(shape, "three") == 0)
        fabric_three_level(&scenario.fabric, 2, 1, 2, 10000, 500);
    else
        fabric_ring(&scenario.fabric, 4, 10000, 500);
}

static void every_rank_ends_in_time_and_names_the_dead(void **state)
{
    static const struct death_row rows[] = {
        {"star", "leaf0", "leaf0", {"leaf0", "leaf0", "leaf0", "leaf0"}},
        {"star", "leaf0", "h2", {"h2", "h2", "-", "h2"}},
        {"leaf-spine", "spine0", "leaf0", {"leaf0", "leaf0", "leaf0", "leaf0"}},
        {"leaf-spine", "spine0", "spine0", {"spine0", "spine0", "spine0", "spine0"}},
        {"leaf-spine", "spine0", "h0", {"-", "h0", "h0", "h0"}},
        {"leaf-spine", "spine0", "h3", {"h3", "h3", "h3", "-"}},
        {"three", "core0", "core0", {"core0", "core0", "core0", "core0"}},
        {"three", "core0", "spine1", {"spine1", "spine1", "spine1", "spine1"}},
        {"three", "core0", "leaf0", {"leaf0", "leaf0", "leaf0", "leaf0"}},
        {"three", "core0", "h1", {"h1", "-", "h1", "h1"}},
        {"lean", "spine0", "h1", {"h1", "-", "h1"}},
        {"lean", "spine0", "leaf2", {"leaf2", "leaf2", "leaf2"}},
        {"chain", "s0", "h5", {"h5", "h5", "h5", "h5", "h5", "-"}},
        {"chain", "s0", "h2", {"h2", "h2", "-", "h2", "h2", "h2"}},
        {"chain", "h0", "h4", {"h4", "h4", "h4", "h4", "-", "h4"}},
        /* h0 is the root, h1 and h3 are interior, h2 hangs below one of them */
        {"ring", "h0", "h0", {"-", "h0", "h0", "h0"}},
        {"ring", "h0", "h2", {"h2", "h2", "-", "h2"}},
    };

    (void)state;
    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
        for (unsigned lossy = 0; lossy < 2; lossy++)
            for (unsigned when = 0; when < 4; when++) {
                draw_shape(rows[r].shape);
                prepare(10 * r + when, rows[r].root, lossy * PERCENT);
                scenario.kill_node = fabric_named(&scenario.fabric, rows[r].dead);
                scenario.kill_ns = when == 0 ? 1 : 7000 + when * 13000; /* or it never started */
                scenario_run(&scenario, 1, &result);
                if (!result.ok)
                    fail_msg("row %u: %s", r, result.fault);
                assert_true(result.elapsed_ns < scenario.kill_ns + STALL_NS + STALL_NS / 4);
                for (int k = 0; k < scenario.fabric.jobs[0].rank_count; k++) {
                    const struct by_call_status *status = &result.ranks[0][k].status;
                    int suspect = suspect_of(status);

                    if (strcmp(rows[r].suspects[k], "-") == 0)
                        continue;
                    if (status->error != BY_ETIMEDOUT ||
                        suspect != fabric_named(&scenario.fabric, rows[r].suspects[k]))
                        fail_msg("%s: %s dies (loss %u, time %u): rank %d: %s suspects node %d (%s), not %s",
                                 rows[r].shape, rows[r].dead, lossy, when, k, by_error_name(status->error),
                                 suspect,
                                 suspect >= 0 && suspect < scenario.fabric.node_count
                                     ? scenario.fabric.nodes[suspect].name
                                     : "?",
                                 rows[r].suspects[k]);
                }
            }
}

static void a_frozen_host_is_named_and_finds_out_itself_when_it_wakes(void **state)
{
    (void)state;
    draw_shape("star");
    prepare(77, "leaf0", 0);
    scenario.freeze_node = fabric_named(&scenario.fabric, "h1");
    scenario.freeze_ns = 40000;
    scenario.thaw_ns = 5 * STALL_NS;
    scenario_run(&scenario, 1, &result);
    assert_true(result.ok);
    for (int k = 0; k < 4; k++) {
        if (k == 1)
            continue;
        assert_int_equal(result.ranks[0][k].status.error, BY_ETIMEDOUT);
        assert_int_equal(suspect_of(&result.ranks[0][k].status), fabric_named(&scenario.fabric, "h1"));
    }
    assert_int_equal(result.ranks[0][1].status.error, BY_ETIMEDOUT);
}

struct odd_row {
    const char *what;
    struct plan_call call;
};

static int differ(const struct by_err_side *a, const struct by_err_side *b)
{
    return a->op != b->op || a->dtype != b->dtype || a->mode != b->mode || a->count != b->count ||
           a->optag != b->optag;
}

/* Every rank reports two calls: its own and that of the odd rank or, at the odd rank, that of the
 * others. */
static void check_sides(const char *what, int odd, const struct plan_call *odd_call)
{
    const struct plan_call *common = &scenario.calls[0][0];

    for (int k = 0; k < scenario.fabric.jobs[0].rank_count; k++) {
        const struct by_call_status *status = &result.ranks[0][k].status;
        const struct by_call_said *mine = status->first.own ? &status->first : &status->other;
        const struct by_call_said *theirs = status->first.own ? &status->other : &status->first;
        const struct plan_call *call = k == odd ? common : odd_call;

        if (mine->own != 1 || theirs->own != 0 || !theirs->known || theirs->collective != call->collective ||
            theirs->count != call->count || theirs->root != call->root)
            fail_msg("odd %s at rank %d: rank %d reads %s of %" PRIu64 " from %u (known %u)", what, odd, k,
                     by_collective_name(theirs->collective), theirs->count, theirs->root, theirs->known);
    }
}

static void ranks_in_different_calls_all_learn_of_it(void **state)
{
    static const struct odd_row rows[] = {
        {"operator", {BY_COLLECTIVE_ALLREDUCE, BY_OP_MAX, BY_DTYPE_I32, 0, 5000, 0, 0}},
        {"type", {BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_U32, 0, 5000, 0, 0}},
        {"larger count", {BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_I32, 0, 5001, 0, 0}},
        {"smaller count", {BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_I32, 0, 3, 0, 0}},
        {"collective", {BY_COLLECTIVE_BROADCAST, BY_OP_SUM, BY_DTYPE_I32, 0, 5000, 0, 0}},
        {"barrier", {BY_COLLECTIVE_BARRIER, 0, BY_DTYPE_U8, 0, 0, 0, 0}},
        {"mode", {BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_I32, 0, 5000, 0, BY_MODE_DET}},
        {"empty call", {BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_I32, 0, 0, 0, 0}},
    };
    static const char *const shapes[] = {"star", "leaf-spine", "three", "ring"};
    static const char *const roots[] = {"leaf0", "spine0", "core0", "h0"};

    (void)state;
    for (unsigned s = 0; s < 4; s++)
        for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
            for (int odd = 0; odd < 4; odd++) {
                draw_shape(shapes[s]);
                prepare(1000 + r, roots[s], odd % 2 ? PERCENT : 0);
                scenario.calls[0][0].count = 5000;
                scenario.odd_rank = odd;
                scenario.odd_call = rows[r].call;
                scenario.outstanding_max = 1;
                scenario_run(&scenario, 1, &result);
                if (!result.ok)
                    fail_msg("%s, %s: %s", shapes[s], rows[r].what, result.fault);
                for (int k = 0; k < 4; k++) {
                    const struct by_call_status *status = &result.ranks[0][k].status;

                    if (status->error != BY_EMISMATCH)
                        fail_msg("%s, odd %s at rank %d: rank %d ends with %s", shapes[s], rows[r].what, odd,
                                 k, by_error_name(status->error));
                    assert_int_equal(status->err.reason, BY_ERR_MISMATCH);
                    assert_true(differ(&status->err.first, &status->err.other));
                    assert_true(status->node < scenario.fabric.node_count);
                }
                if (rows[r].call.count == 5000)
                    check_sides(rows[r].what, odd, &rows[r].call);
            }
}

static void a_broadcast_from_two_roots_is_refused(void **state)
{
    (void)state;
    draw_shape("leaf-spine");
    prepare(5, "spine0", 0);
    scenario.calls[0][0].collective = BY_COLLECTIVE_BROADCAST;
    scenario.odd_call = scenario.calls[0][0];
    scenario.odd_call.root = 2;
    scenario.odd_rank = 2;
    scenario_run(&scenario, 1, &result);
    for (int k = 0; k < 4; k++)
        assert_int_equal(result.ranks[0][k].status.error, BY_EMISMATCH);
}

/* Calls without a common tree: the ranks detect this on the first tree. */
static void ranks_in_calls_on_different_trees_all_learn_of_it(void **state)
{
    static const struct plan_call odd_calls[] = {
        {BY_COLLECTIVE_BROADCAST, BY_OP_SUM, BY_DTYPE_I32, 2, 5000, 0, 0},
        {BY_COLLECTIVE_REDUCE, BY_OP_SUM, BY_DTYPE_I32, 1, 5000, 0, 0},
        {BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_I32, 0, 5000, 0, 0},
        {BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_I32, 0, 0, 0, 0},
        {BY_COLLECTIVE_BARRIER, 0, BY_DTYPE_U8, 0, 0, 0, 0},
    };

    (void)state;
    for (unsigned o = 0; o < sizeof(odd_calls) / sizeof(odd_calls[0]); o++)
        for (int odd = 0; odd < 4; odd++) {
            uint64_t took;

            draw_shape("leaf-spine");
            prepare(50 + o, "spine0", 0);
            for (int rank = 0; rank < 4; rank++) {
                struct fabric_tree *tree =
                    fabric_tree_add(&scenario.fabric, 0, scenario.fabric.jobs[0].rank_node[rank], 1, NULL);

                assert_non_null(tree);
                tree->collectives = 1u << BY_COLLECTIVE_BROADCAST | 1u << BY_COLLECTIVE_REDUCE;
                tree->owner = (uint16_t)rank;
                tree->window = 16;
                tree->payload_max = 512;
            }
            scenario.call_count[0] = 0;
            scenario_add_call(&scenario, 0, BY_COLLECTIVE_BROADCAST, BY_OP_SUM, BY_DTYPE_I32, 5000);
            scenario.odd_rank = odd;
            scenario.odd_call = odd_calls[o];
            scenario_run(&scenario, 1, &result);
            took = result.elapsed_ns;
            for (int k = 0; k < 4; k++)
                if (result.ranks[0][k].status.error != BY_EMISMATCH)
                    fail_msg("odd call %u at rank %d: rank %d ends with %s", o, odd, k,
                             by_error_name(result.ranks[0][k].status.error));
            assert_true(took < STALL_NS / 2);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_ends_in_time_and_names_the_dead),
        cmocka_unit_test(a_frozen_host_is_named_and_finds_out_itself_when_it_wakes),
        cmocka_unit_test(ranks_in_different_calls_all_learn_of_it),
        cmocka_unit_test(a_broadcast_from_two_roots_is_refused),
        cmocka_unit_test(ranks_in_calls_on_different_trees_all_learn_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Tables that have served an earlier run: processes end at any point, and new ones begin on the
 * state that the switches still hold, while old packets may still be on their way. Every rank
 * finishes the second run with the right elements. It has other data, so that old results would be
 * detected.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "offload/wire/types.h"
#include "tests/sim/scenario.h"

#define PERCENT  UINT32_C(42949672)
#define STALL_NS UINT64_C(50000000)

static struct scenario scenario;
static struct scenario_result result;

struct again_shape {
    const char *name, *roots[3]; /* a tree for each root */
};

static const struct again_shape shapes[] = {
    {"star", {"leaf0", NULL, NULL}},  {"star", {"leaf0", "leaf0", NULL}},  {"star", {"h1", NULL, NULL}},
    {"star", {"h0", "leaf0", "h2"}},  {"leaf-spine", {"spine0", "leaf0"}}, {"leaf-spine", {"h3", "spine0"}},
    {"three", {"core0", NULL, NULL}}, {"three", {"leaf1", "h0", NULL}},    {"chain", {"s1", NULL, NULL}},
    {"chain", {"h0", "h5", NULL}},    {"ring", {"h0", "h2", NULL}},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static void prepare(const struct again_shape *shape, uint64_t seed, uint64_t count)
{
    scenario_init(&scenario, seed);
    if (strcmp(shape->name, "star") == 0)
        fabric_star(&scenario.fabric, 4, 10000, 500);
    else if (strcmp(shape->name, "leaf-spine") == 0)
        fabric_leafspine(&scenario.fabric, 1, 2, 2, 10000, 500, 0);
    else if (strcmp(shape->name, "three") == 0)
        fabric_three_level(&scenario.fabric, 2, 1, 2, 10000, 500);
    else if (strcmp(shape->name, "chain") == 0)
        fabric_chain(&scenario.fabric, 3, 2, 10000, 500);
    else
        fabric_ring(&scenario.fabric, 4, 10000, 500);
    fabric_job_add(&scenario.fabric, 1, 3);
    for (unsigned t = 0; t < 3 && shape->roots[t] != NULL; t++) {
        struct fabric_tree *tree =
            fabric_tree_add(&scenario.fabric, 0, fabric_named(&scenario.fabric, shape->roots[t]), 1, NULL);

        assert_non_null(tree);
        tree->window = 4;
        tree->payload_max = 256;
    }
    scenario.world.endpoint.stall_ns = STALL_NS;
    scenario.limit_ns = 20 * STALL_NS;
    scenario_add_call(&scenario, 0, BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_I32, count);
    scenario_add_call(&scenario, 0, BY_COLLECTIVE_ALLGATHER, BY_OP_SUM, BY_DTYPE_I32, count / 4);
}

static void run(const struct again_shape *shape)
{
    scenario_run(&scenario, 0, &result);
    if (!result.ok)
        fail_msg("%s, root %s, seed 0x%" PRIx64 ": %s", shape->name, shape->roots[0], scenario.seed,
                 result.fault);
    assert_true(result.again_took_ns < 3 * STALL_NS);
    assert_int_equal(result.wrong, 0);
}

/* Returns whether a tree's root is a host. Its engine is new with its process and so cannot tell
 * the packets of the earlier run, which are still on their way, from those of the new one before
 * the session has begun; the salt then ends the run. */
static int has_fresh_root(const struct again_shape *shape)
{
    int fresh = 0;

    for (unsigned t = 0; t < 3 && shape->roots[t] != NULL; t++)
        fresh |= shape->roots[t][0] == 'h';
    return fresh;
}

static void expect_right(const struct again_shape *shape)
{
    for (int k = 0; k < scenario.fabric.jobs[0].rank_count; k++) {
        const struct by_call_status *status = &result.again[0][k].status;

        if (status->error != 0)
            fail_msg("%s, root %s, seed 0x%" PRIx64 ": rank %d ends with %s (node %u, tree %u, chunk %u)",
                     shape->name, shape->roots[0], scenario.seed, k, by_error_name(status->error),
                     status->node, status->tree, status->seq);
    }
}

/* A complete run, either so short that all its banks still hold its chunks, or so long that they
 * have been reused. */
static void a_second_run_on_the_same_tables_is_right_at_every_rank(void **state)
{
    static const uint64_t counts[] = {16, 200, 40000};

    (void)state;
    for (unsigned s = 0; s < SHAPES; s++)
        for (unsigned c = 0; c < 3; c++)
            for (unsigned lossy = 0; lossy < 2; lossy++) {
                prepare(&shapes[s], 10 * s + c, counts[c]);
                scenario.world.fault.loss = lossy * PERCENT;
                scenario.again_ns = UINT64_C(1000000000);
                run(&shapes[s]);
                expect_right(&shapes[s]);
            }
}

/* Processes end at random times during a run, one of them before the others, and partial sums
 * remain. */
static void a_run_after_a_crash_is_right_at_every_rank(void **state)
{
    uint64_t longest_ns = 0;
    unsigned mismatches = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct by_prng prng = {.state = seed * 977 + 1};
        const struct again_shape *shape = &shapes[by_prng_below(&prng, SHAPES)];
        int ranks;

        prepare(shape, seed, 16 + by_prng_below(&prng, 6000));
        ranks = scenario.fabric.jobs[0].rank_count;
        scenario.again_ns = 500 + by_prng_below(&prng, 60000);
        if (by_prng_below(&prng, 2) == 0) {
            scenario.quit_node = scenario.fabric.jobs[0].rank_node[by_prng_below(&prng, (uint64_t)ranks)];
            scenario.quit_ns = by_prng_below(&prng, scenario.again_ns);
        }
        scenario.stagger_ns = by_prng_below(&prng, 3) * 4000;
        scenario.world.fault.loss = (uint32_t)by_prng_below(&prng, 3) * PERCENT;
        scenario.world.fault.duplicate = (uint32_t)by_prng_below(&prng, 2) * PERCENT;
        scenario.world.fault.reorder = (uint32_t)by_prng_below(&prng, 2) * 5 * PERCENT;
        scenario.world.hold_ns = 30000;
        run(shape);
        if (has_fresh_root(shape) && result.again[0][0].status.error == BY_EMISMATCH)
            mismatches++;
        else
            expect_right(shape);
        longest_ns = result.again_took_ns > longest_ns ? result.again_took_ns : longest_ns;
    }
    printf("  longest second run: %" PRIu64 " us; %u of 400 met old packets at new hosts\n",
           longest_ns / 1000, mismatches);
    assert_true(mismatches <= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_run_on_the_same_tables_is_right_at_every_rank),
        cmocka_unit_test(a_run_after_a_crash_is_right_at_every_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

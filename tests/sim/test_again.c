/*
 * Tables that have served an earlier run: processes end at any point, and new ones begin on the
 * state that the switches still hold. No rank ever gets a wrong element, every rank ends within its
 * timeout, and the next generation works. The second run has other data, so that old results would
 * be detected.
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

static int named(const char *name)
{
    for (int n = 0; n < scenario.fabric.node_count; n++)
        if (strcmp(scenario.fabric.nodes[n].name, name) == 0)
            return n;
    return -1;
}

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
        struct fabric_tree *tree = fabric_tree_add(&scenario.fabric, 0, named(shape->roots[t]), 1, NULL);

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

/* A complete run, either so short that all its banks still hold its chunks, or so long that they
 * have been reused. */
static void a_second_run_under_switches_is_refused_at_every_rank_and_at_once(void **state)
{
    static const uint64_t counts[] = {16, 200, 40000};

    (void)state;
    for (unsigned s = 0; s < SHAPES; s++) {
        int under_switches = shapes[s].roots[0][0] != 'h';

        for (unsigned c = 0; c < 3; c++)
            for (unsigned lossy = 0; lossy < 2; lossy++) {
                prepare(&shapes[s], 10 * s + c, counts[c]);
                scenario.world.fault.loss = lossy * PERCENT;
                scenario.again_ns = UINT64_C(1000000000);
                run(&shapes[s]);
                if (!under_switches)
                    continue;
                for (int k = 0; k < scenario.fabric.jobs[0].rank_count; k++) {
                    const struct by_call_status *status = &result.again[0][k].status;

                    if (status->error != BY_ESTATE || !status->session ||
                        scenario.fabric.nodes[status->node].kind != BY_NODE_SWITCH)
                        fail_msg("%s, root %s, %" PRIu64 " elements: rank %d ends with %s (node %u)",
                                 shapes[s].name, shapes[s].roots[0], counts[c], k,
                                 by_error_name(status->error), status->node);
                }
                assert_true(result.again_took_ns < STALL_NS / 2);
            }
    }
}

/* Below a host's own engine, which is new with its process, the ranks at used switches are refused
 * first and inform the others. */
static void a_second_run_under_a_fresh_host_is_refused_at_every_rank_and_at_once(void **state)
{
    (void)state;
    for (unsigned s = 0; s < SHAPES; s++)
        for (unsigned c = 0; c < 2; c++) {
            if (shapes[s].roots[0][0] != 'h' || strcmp(shapes[s].name, "ring") == 0)
                continue;
            prepare(&shapes[s], 70 + s, c == 0 ? 16 : 20000);
            scenario.again_ns = UINT64_C(1000000000);
            run(&shapes[s]);
            for (int k = 0; k < scenario.fabric.jobs[0].rank_count; k++) {
                const struct by_call_status *status = &result.again[0][k].status;

                if (status->error != BY_ESTATE || scenario.fabric.nodes[status->node].kind != BY_NODE_SWITCH)
                    fail_msg("%s, root %s: rank %d ends with %s (node %u)", shapes[s].name,
                             shapes[s].roots[0], k, by_error_name(status->error), status->node);
            }
            assert_true(result.again_took_ns < STALL_NS / 2);
        }
}

static void hosts_alone_hold_nothing_over(void **state)
{
    const struct again_shape *ring = &shapes[SHAPES - 1];

    (void)state;
    prepare(ring, 5, 5000);
    scenario.again_ns = UINT64_C(1000000000);
    run(ring);
    for (int k = 0; k < 4; k++)
        assert_int_equal(result.again[0][k].status.error, 0);
}

/* Processes end at random times during a run, one of them before the others, and partial sums
 * remain. A rank may time out only if a report from another rank was lost. */
static void what_a_crash_leaves_behind_never_gets_into_a_later_run(void **state)
{
    unsigned ends[4] = {0}; /* of the ranks on used tables: correct, refused, timeout, mismatch */

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
        for (int k = 0; k < ranks; k++) {
            int error = result.again[0][k].status.error;

            assert_true(error == 0 || error == BY_ESTATE || error == BY_ETIMEDOUT || error == BY_EMISMATCH ||
                        error == BY_EABORTED);
            ends[0] += error == 0;
            ends[1] += error == BY_ESTATE;
            ends[2] += error == BY_ETIMEDOUT;
            assert_true(error != BY_ETIMEDOUT || scenario.world.fault.loss > 0);
            ends[3] += error == BY_EMISMATCH;
        }
    }
    printf("  ranks on used tables: %u right, %u refused, %u in vain, %u in disagreement\n", ends[0], ends[1],
           ends[2], ends[3]);
    assert_true(ends[0] > 0 && ends[1] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_run_under_switches_is_refused_at_every_rank_and_at_once),
        cmocka_unit_test(a_second_run_under_a_fresh_host_is_refused_at_every_rank_and_at_once),
        cmocka_unit_test(hosts_alone_hold_nothing_over),
        cmocka_unit_test(what_a_crash_leaves_behind_never_gets_into_a_later_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

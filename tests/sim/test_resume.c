/*
 * Calls that survive a node: a switch fails or loses its memory during calls, and the next
 * generation has other trees. Every rank gets every correct element in its own buffers, and reuses
 * them as soon as a call has ended. No call ends with an error.
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

#define PERCENT UINT32_C(42949672)

static struct scenario scenario;
static struct scenario_result result;

static void add_tree(struct fabric *fabric, const char *root, uint16_t payload, uint32_t share)
{
    struct fabric_tree *tree = fabric_tree_add(fabric, 0, fabric_named(&scenario.fabric, root), 0, NULL);

    assert_non_null(tree);
    tree->window = 16;
    tree->payload_max = payload;
    tree->share = share;
}

/* Two spines with a tree over each; afterwards only one, with chunks of another size. */
static void prepare(uint64_t seed)
{
    scenario_init(&scenario, seed);
    fabric_leafspine(&scenario.fabric, 2, 3, 2, 10000, 700, 0);
    fabric_job_add(&scenario.fabric, 1, (uint16_t)(0xffff + seed % 2));
    scenario.after = scenario.fabric;
    add_tree(&scenario.fabric, "spine0", 512, 2);
    add_tree(&scenario.fabric, "spine1", 512, 3);
    add_tree(&scenario.after, "spine1", 1024, 1);
    scenario.crash_count = 1;
    scenario.crashes[0] =
        (struct scenario_crash){.node = fabric_named(&scenario.fabric, "spine0"), .dies = 1};
    scenario.spread_ns = 20000;
    scenario.limit_ns = UINT64_C(5000000000);
}

static void run(uint64_t seed)
{
    scenario_run(&scenario, 0, &result);
    if (!result.ok)
        fail_msg("seed %" PRIu64 ": %s", seed, result.fault);
    assert_int_equal(result.wrong, 0);
}

static void a_spine_dies_in_every_collective_and_the_calls_go_on_over_the_other(void **state)
{
    uint64_t gone_on = 0, copied = 0;

    (void)state;
    for (unsigned collective = 1; collective < BY_COLLECTIVE_COUNT; collective++)
        for (uint64_t seed = 0; seed < 8; seed++) {
            prepare(seed);
            scenario_add_seeded(&scenario, collective, seed);
            scenario.crashes[0].crash_ns = 2000 + seed * 1500;
            scenario.crashes[0].resume_ns = scenario.crashes[0].crash_ns + 30000;
            run(seed);
            gone_on += result.endpoints.gone_on;
            copied += result.endpoints.copied;
        }
    printf("  %" PRIu64 " times calls went on at a rank, with %" PRIu64 " copies\n", gone_on, copied);
    assert_true(gone_on > 100 && copied > 50);
}

/* Integers would show elements that are added twice, omitted, or copied from a rank with another
 * shard. */
static void random_crashes_leave_no_wrong_element(void **state)
{
    uint64_t gone_on = 0, copied = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 150; seed++) {
        struct by_prng prng = {.state = seed * 7919 + 5};
        uint64_t at_ns = 1000 + by_prng_below(&prng, 60000);

        prepare(seed);
        for (int c = 0; c < 6; c++) {
            scenario_add_call(&scenario, 0, 1 + by_prng_below(&prng, BY_COLLECTIVE_COUNT - 1), BY_OP_SUM,
                              BY_DTYPE_U64, 1 + by_prng_below(&prng, 3000));
            scenario.calls[0][c].in_place = (int)by_prng_below(&prng, 2);
            scenario.calls[0][c].root = (uint16_t)by_prng_below(&prng, 6);
        }
        scenario.outstanding_max = 1 + (uint32_t)by_prng_below(&prng, 4);
        scenario.stagger_ns = by_prng_below(&prng, 2) * 20000;
        scenario.world.fault = (struct by_fault){.loss = (uint32_t)by_prng_below(&prng, 3) * PERCENT,
                                                 .duplicate = PERCENT,
                                                 .reorder = 3 * PERCENT};
        scenario.world.host_faults = 1;
        scenario.crash_count = 1 + (int)by_prng_below(&prng, 2);
        for (int k = 0; k < scenario.crash_count; k++) {
            scenario.crashes[k].node =
                fabric_named(&scenario.fabric, by_prng_below(&prng, 2) ? "spine1" : "leaf1");
            scenario.crashes[k].dies = 0;
            scenario.crashes[k].crash_ns = at_ns;
            scenario.crashes[k].resume_ns = at_ns + by_prng_below(&prng, 50000);
            at_ns = scenario.crashes[k].resume_ns + by_prng_below(&prng, 60000);
        }
        run(seed);
        gone_on += result.endpoints.gone_on;
        copied += result.endpoints.copied;
    }
    printf("  %" PRIu64 " times calls went on at a rank, with %" PRIu64 " copies\n", gone_on, copied);
    assert_true(gone_on > 500 && copied > 200);
}

/* Sums of floats of any magnitudes: exact sums do not depend on the failed node, and ordered ones
 * agree among the ranks. */
static void exact_sums_are_those_of_a_run_without_a_crash(void **state)
{
    uint64_t digest[2];

    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        for (int crash = 0; crash < 2; crash++) {
            prepare(seed);
            scenario.rough_seed = seed + 1;
            for (int c = 0; c < 3; c++) {
                static const uint8_t collectives[] = {BY_COLLECTIVE_REDUCE, BY_COLLECTIVE_REDUCE_SCATTER,
                                                      BY_COLLECTIVE_ALLREDUCE};

                scenario_add_call(&scenario, 0, collectives[c], BY_OP_SUM, BY_DTYPE_F32 + seed % 2, 2500);
                scenario.calls[0][c].mode = BY_MODE_EXACT;
                scenario.calls[0][c].in_place = (int)(seed / 2 % 2);
            }
            scenario.crash_count = crash;
            scenario.crashes[0].crash_ns = 3000 + seed * 4000;
            scenario.crashes[0].resume_ns = scenario.crashes[0].crash_ns + 20000;
            run(seed);
            digest[crash] = result.digest;
        }
        if (digest[0] != digest[1])
            fail_msg("seed %" PRIu64 ": a crash shows in an exact sum", seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spine_dies_in_every_collective_and_the_calls_go_on_over_the_other),
        cmocka_unit_test(random_crashes_leave_no_wrong_element),
        cmocka_unit_test(exact_sums_are_those_of_a_run_without_a_crash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

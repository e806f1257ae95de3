/*
 * Calls that survive a node without a controller: switches fail during calls, and the hosts move to
 * standby generations by themselves (offload/wire/PROTOCOL.md, "Standby generations"). Every rank
 * gets every correct element, reuses its buffers as soon as a call has ended, and no call ends with
 * an error.
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

#include "offload/wire/seal.h"
#include "offload/wire/types.h"
#include "tests/sim/scenario.h"

#define PERCENT     UINT32_C(42949672)
#define PATIENCE_NS 40000000u
#define ATTEMPT_NS  250000000u

static struct scenario scenario;
static struct scenario_result result;
static uint64_t moved, abandoned, gone_on, copied;

static struct fabric_tree *add_tree(struct fabric *fabric, const char *root, uint16_t payload, uint32_t share)
{
    struct fabric_tree *tree = fabric_tree_add(fabric, 0, fabric_named(fabric, root), 0, NULL);

    assert_non_null(tree);
    tree->window = 16;
    tree->payload_max = payload;
    tree->share = share;
    return tree;
}

/* Adds a standby with a tree over one spine, which replaces the trees with a bit. */
static void add_standby(const char *spine, uint16_t payload, uint64_t replaces)
{
    struct fabric *fabric = &scenario.standbys[scenario.standby_count];

    *fabric = scenario.fabric;
    fabric->jobs[0].tree_count = 0;
    fabric->jobs[0].gen = (uint16_t)(scenario.fabric.jobs[0].gen + scenario.standby_count + 1);
    add_tree(fabric, spine, payload, 1);
    add_tree(fabric, spine, 1024, 1)->collectives = BY_LEAF_ROUNDS;
    scenario.replaces[scenario.standby_count++] = replaces;
}

/* Trees over two of three spines. Three standbys: over the second spine, the third, and the
 * first. */
static void prepare(uint64_t seed)
{
    scenario_init(&scenario, seed);
    fabric_leafspine(&scenario.fabric, 3, 3, 2, 10000, 700, 0);
    for (int l = 0; l < scenario.fabric.link_count; l++) /* results wait in queues of spines */
        if (scenario.fabric.links[l].a == fabric_named(&scenario.fabric, "leaf2"))
            scenario.fabric.links[l].mbps = 2000;
    scenario.fabric.cover = seed % 3 == 2 ? BY_COVER_PAYLOAD : BY_COVER_NONE;
    fabric_job_add(&scenario.fabric, 1, (uint16_t)(0xfffe + seed % 4));
    scenario.after = scenario.fabric;
    add_tree(&scenario.fabric, "spine0", 512, 2);
    add_tree(&scenario.fabric, "spine1", 512, 3);
    add_tree(&scenario.after, "spine2", 256, 1);
    add_standby("spine1", 1024, 1);
    add_standby("spine2", 512, 3);
    add_standby("spine0", 512, 2);
    scenario.patience_ns = PATIENCE_NS;
    scenario.attempt_ns = ATTEMPT_NS;
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
    moved += result.world.moved;
    abandoned += result.world.abandoned;
    gone_on += result.endpoints.gone_on;
    copied += result.endpoints.copied;
}

static void begin(void)
{
    moved = abandoned = gone_on = copied = 0;
}

static void report(void)
{
    printf("  ranks moved to a standby %" PRIu64 " times and abandoned %" PRIu64
           "; calls went on at a rank %" PRIu64 " times, with %" PRIu64 " copies\n",
           moved, abandoned, gone_on, copied);
}

static void a_spine_dies_in_every_collective_and_the_calls_go_on_in_a_standby(void **state)
{
    (void)state;
    begin();
    for (unsigned collective = 1; collective < BY_COLLECTIVE_COUNT; collective++)
        for (uint64_t seed = 0; seed < 12; seed++) {
            prepare(seed);
            scenario_add_seeded(&scenario, collective, seed);
            scenario.crashes[0].crash_ns = 8000 + seed * 2500;
            if (seed % 4 == 3) /* both: the second standby replaces both trees */
                scenario.crashes[scenario.crash_count++] =
                    (struct scenario_crash){.node = fabric_named(&scenario.fabric, "spine1"),
                                            .dies = 1,
                                            .crash_ns = scenario.crashes[0].crash_ns};
            run(seed);
        }
    report();
    assert_true(gone_on > 200 && copied > 100);
}

/* Integers would show elements that are added twice, omitted, or copied from a rank with another
 * shard. */
static void draw_calls(struct by_prng *prng)
{
    for (int c = 0; c < 6; c++) {
        scenario_add_call(&scenario, 0, 1 + by_prng_below(prng, BY_COLLECTIVE_COUNT - 1), BY_OP_SUM,
                          BY_DTYPE_U64, 1 + by_prng_below(prng, 3000));
        scenario.calls[0][c].in_place = (int)by_prng_below(prng, 2);
        scenario.calls[0][c].root = (uint16_t)by_prng_below(prng, 6);
    }
    scenario.outstanding_max = 1 + (uint32_t)by_prng_below(prng, 4);
    scenario.stagger_ns = by_prng_below(prng, 2) * 20000;
    scenario.world.fault = (struct by_fault){
        .loss = (uint32_t)by_prng_below(prng, 3) * PERCENT, .duplicate = PERCENT, .reorder = 3 * PERCENT};
    scenario.world.host_faults = 1;
}

/* The second spine fails at any time until after the first move: then the first standby, too. */
static void a_standby_that_fails_as_well_is_followed_by_the_next(void **state)
{
    (void)state;
    begin();
    for (uint64_t seed = 0; seed < 150; seed++) {
        struct by_prng prng = {.state = seed * 7919 + 5};

        prepare(seed);
        draw_calls(&prng);
        scenario.crashes[0].crash_ns = 1000 + by_prng_below(&prng, 60000);
        scenario.crashes[1] = (struct scenario_crash){
            .node = fabric_named(&scenario.fabric, "spine1"),
            .dies = 1,
            .crash_ns =
                scenario.crashes[0].crash_ns + (seed % 2 ? PATIENCE_NS + by_prng_below(&prng, PATIENCE_NS / 8)
                                                         : by_prng_below(&prng, PATIENCE_NS))};
        scenario.crash_count = 2;
        run(seed);
    }
    report();
    assert_true(abandoned > 100 && gone_on > 600 && copied > 200);
}

/* A controller installs a later generation before, while or after the ranks move. */
static void a_controller_supersedes_every_standby(void **state)
{
    (void)state;
    begin();
    for (uint64_t seed = 0; seed < 150; seed++) {
        struct by_prng prng = {.state = seed * 7919 + 6};
        struct scenario_crash *crash = &scenario.crashes[0];

        prepare(seed);
        draw_calls(&prng);
        crash->crash_ns = 1000 + by_prng_below(&prng, 60000);
        crash->resume_ns = crash->crash_ns + 1 +
                           (seed % 4 ? PATIENCE_NS + by_prng_below(&prng, PATIENCE_NS / 8)
                                     : by_prng_below(&prng, PATIENCE_NS));
        scenario.spread_ns = 1 + by_prng_below(&prng, 300000);
        run(seed);
    }
    report();
    assert_true(moved > 300 && gone_on > 600);
}

/* A rank that computes is no fault, and neither are losses. */
static void a_rank_that_is_late_moves_none(void **state)
{
    (void)state;
    begin();
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct by_prng prng = {.state = seed * 7919 + 7};

        prepare(seed);
        draw_calls(&prng);
        scenario.stagger_ns = 8 * PATIENCE_NS;
        scenario.crash_count = 0;
        run(seed);
    }
    report();
    assert_int_equal(moved, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spine_dies_in_every_collective_and_the_calls_go_on_in_a_standby),
        cmocka_unit_test(a_standby_that_fails_as_well_is_followed_by_the_next),
        cmocka_unit_test(a_controller_supersedes_every_standby),
        cmocka_unit_test(a_rank_that_is_late_moves_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

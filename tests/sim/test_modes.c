/*
 * The guarantees of the modes, on whole fabrics and with data whose sums depend on the order: DET
 * gives the same bits on the same trees in any order of packets, EXACT gives the same bits on any
 * trees, and FAST does not, which proves that the data are suitable.
 */
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
#define HOSTS   8

static struct scenario scenario;
static struct scenario_result result;

/* Eight hosts in one of several fabrics, with one or several trees. */
static void build(unsigned shape)
{
    struct by_prng prng = {shape};

    scenario_init(&scenario, 1);
    switch (shape % 4) {
    case 0:
        fabric_star(&scenario.fabric, HOSTS, 10000, 1000);
        break;
    case 1:
        fabric_leafspine(&scenario.fabric, 2, 4, 2, 10000, 1000, 0);
        break;
    case 2:
        fabric_three_level(&scenario.fabric, 2, 2, 2, 10000, 1000);
        break;
    default:
        fabric_ring(&scenario.fabric, HOSTS, 10000, 1000);
    }
    fabric_job_add(&scenario.fabric, 1, 1);
    for (unsigned t = 0; t < 1 + shape % 3; t++) {
        int root = (int)by_prng_below(&prng, (uint64_t)scenario.fabric.node_count);
        struct fabric_tree *tree;

        tree = fabric_tree_add(&scenario.fabric, 0, root, 1, &prng);
        assert_non_null(tree);
        tree->window = 8;
        tree->payload_max = (uint16_t)(shape % 2 ? 512 : 1408);
        tree->share = 1 + t;
    }
    scenario.rough_seed = 99;
    scenario.limit_ns = 20000000000;
}

/* Runs every ordered type, collective and operator of the mode in one run. Returns the digest. */
static uint64_t run(unsigned shape, unsigned mode, uint64_t seed)
{
    static const uint8_t dtypes[] = {BY_DTYPE_F32, BY_DTYPE_BF16, BY_DTYPE_F64, BY_DTYPE_F16};
    static const uint8_t collectives[] = {BY_COLLECTIVE_ALLREDUCE, BY_COLLECTIVE_REDUCE,
                                          BY_COLLECTIVE_REDUCE_SCATTER};

    build(shape);
    scenario.seed = scenario.world.seed = seed;
    scenario.stagger_ns = 30000;
    scenario.outstanding_max = 4;
    scenario.world.fault = (struct by_fault){.loss = PERCENT, .duplicate = PERCENT, .reorder = 5 * PERCENT};
    scenario.world.hold_ns = 20000;
    scenario.world.poll_ns = 1000;
    for (unsigned d = 0; d < sizeof(dtypes); d++)
        for (unsigned c = 0; c < sizeof(collectives); c++) {
            unsigned op = mode != BY_MODE_EXACT && d == 0 && c == 0 ? BY_OP_PROD : BY_OP_SUM;

            scenario_add_call(&scenario, 0, collectives[c], op, dtypes[d], 1501);
            scenario.calls[0][scenario.call_count[0] - 1].mode = (uint8_t)mode;
            scenario.calls[0][scenario.call_count[0] - 1].in_place = (int)(c & 1);
            scenario.calls[0][scenario.call_count[0] - 1].root = (uint16_t)d;
        }
    scenario_run(&scenario, 0, &result);
    if (!result.ok)
        fail_msg("shape %u, %s, seed %llu: %s", shape, by_mode_name(mode), (unsigned long long)seed,
                 result.fault);
    assert_true(result.checked > 0);
    return result.digest;
}

static void det_gives_the_same_bits_on_the_same_trees(void **state)
{
    (void)state;
    for (unsigned shape = 0; shape < 8; shape++) {
        uint64_t first = run(shape, BY_MODE_DET, 1);

        for (uint64_t seed = 2; seed < 8; seed++)
            if (run(shape, BY_MODE_DET, seed) != first)
                fail_msg("shape %u: the bits of seed %llu are not those of seed 1", shape,
                         (unsigned long long)seed);
    }
}

static void exact_gives_the_same_bits_on_any_trees(void **state)
{
    uint64_t first = run(0, BY_MODE_EXACT, 1);

    (void)state;
    for (unsigned shape = 0; shape < 12; shape++)
        for (uint64_t seed = 1; seed < 4; seed++)
            if (run(shape, BY_MODE_EXACT, seed) != first)
                fail_msg("the bits of shape %u, seed %llu are not those of shape 0, seed 1", shape,
                         (unsigned long long)seed);
}

/* Otherwise the two tests above would prove nothing. */
static void the_data_are_such_that_order_shows(void **state)
{
    unsigned differ = 0;

    (void)state;
    for (uint64_t seed = 2; seed < 6; seed++)
        differ += run(0, BY_MODE_FAST, 1) != run(0, BY_MODE_FAST, seed);
    assert_int_equal(differ, 4);
    assert_true(run(0, BY_MODE_DET, 1) != run(1, BY_MODE_DET, 1));
}

/* Calls of all modes mixed, one after another and at the same time. */
static void modes_mix(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        build((unsigned)seed);
        scenario.rough_seed = 0;
        scenario.seed = scenario.world.seed = seed;
        scenario.outstanding_max = 8;
        scenario.stagger_ns = 50000;
        scenario.world.fault = (struct by_fault){.loss = PERCENT, .duplicate = PERCENT, .reorder = PERCENT};
        scenario.world.hold_ns = 20000;
        for (unsigned c = 0; c < 60; c++) {
            scenario_add_call(&scenario, 0, 1 + (c + (unsigned)seed) % 6, BY_OP_SUM, BY_DTYPE_F16 + c % 4,
                              c % 7 * 300);
            scenario.calls[0][c].mode = (uint8_t)(1 + c % 3);
        }
        scenario_run(&scenario, 0, &result);
        if (!result.ok)
            fail_msg("seed %llu: %s", (unsigned long long)seed, result.fault);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_data_are_such_that_order_shows),
        cmocka_unit_test(det_gives_the_same_bits_on_the_same_trees),
        cmocka_unit_test(exact_gives_the_same_bits_on_any_trees),
        cmocka_unit_test(modes_mix),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

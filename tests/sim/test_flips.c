/*
 * A campaign of memory faults: in each run one bit flips in a slot of one node, at any time, in any
 * mode, with and without losses. No rank ever gets a wrong element. A run either continues without
 * effect or ends with an error that names the node.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/errors.h"
#include "offload/wire/types.h"
#include "tests/sim/scenario.h"

#define RUNS    600
#define PERCENT UINT32_C(42949672)

static struct scenario scenario;
static struct scenario_result result;

static void draw(uint64_t seed)
{
    static const uint8_t dtypes[] = {BY_DTYPE_I32, BY_DTYPE_F32, BY_DTYPE_BF16, BY_DTYPE_U8};
    struct by_prng prng = {seed};
    struct fabric_tree *tree;
    int root;

    scenario_init(&scenario, seed);
    if (seed % 2)
        fabric_leafspine(&scenario.fabric, 2, 3, 2, 10000, 1000, 0);
    else
        fabric_three_level(&scenario.fabric, 2, 2, 2, 10000, 1000);
    fabric_job_add(&scenario.fabric, 1, 1);
    do
        root = (int)by_prng_below(&prng, (uint64_t)scenario.fabric.node_count);
    while (scenario.fabric.nodes[root].kind == BY_NODE_HOST);
    tree = fabric_tree_add(&scenario.fabric, 0, root, 0, &prng);
    assert_non_null(tree);
    tree->window = 4;
    tree->payload_max = 512;
    for (unsigned c = 0; c < 6; c++) {
        scenario_add_call(&scenario, 0, 1 + (unsigned)by_prng_below(&prng, 6), BY_OP_SUM,
                          dtypes[by_prng_below(&prng, 4)], 200 + by_prng_below(&prng, 2000));
        scenario.calls[0][c].mode = (uint8_t)(1 + by_prng_below(&prng, 3));
        scenario.calls[0][c].root = (uint16_t)by_prng_below(&prng, 4);
    }
    scenario.outstanding_max = 3;
    scenario.world.seed = seed;
    scenario.world.endpoint.stall_ns = 200000000;
    scenario.world.hold_ns = 20000;
    if (seed % 3)
        scenario.world.fault =
            (struct by_fault){.loss = 2 * PERCENT, .duplicate = PERCENT, .reorder = PERCENT};
    scenario.limit_ns = 5000000000;
    do
        scenario.flip_node = (int)by_prng_below(&prng, (uint64_t)scenario.fabric.node_count);
    while (tree->parent[scenario.flip_node] == FABRIC_ABSENT ||
           scenario.fabric.nodes[scenario.flip_node].kind == BY_NODE_HOST);
    scenario.flip_ns = 4000 + by_prng_below(&prng, 300000);
}

static void no_flip_reaches_a_result_and_each_that_matters_is_named(void **state)
{
    unsigned flipped = 0, named = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        draw(seed);
        scenario_campaign(&scenario, &result);
        if (!result.ok || result.wrong > 0)
            fail_msg("seed %llu: %s", (unsigned long long)seed, result.fault);
        flipped += (unsigned)result.flipped;
        named += (unsigned)result.named;
    }
    print_message("%u of %d runs had a flip, %u ended with the node's name\n", flipped, RUNS, named);
    assert_true(named > RUNS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_flip_reaches_a_result_and_each_that_matters_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

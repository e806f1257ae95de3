/*
 * Recovery as a step function, with all possible events in random orders: after the last fault all
 * ranks reach one generation. A failure prints the seed: BANYAN_TEST_SEED=N replays it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/control/service/daemon/world.h"

static void fault(bool two_paths)
{
    uint32_t node = (uint32_t)by_prng_below(&world.prng, NODES),
             link = (uint32_t)by_prng_below(&world.prng, LINKS);
    uint32_t job = (uint32_t)by_prng_below(&world.prng, JOBS);
    uint16_t rank = (uint16_t)by_prng_below(&world.prng, RANKS);

    if (two_paths && node == 1)
        node = 0;
    switch (by_prng_below(&world.prng, 10)) {
    case 0:
        world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_DOWN, .what = node});
        break;
    case 1:
        world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_UP, .what = node});
        break;
    case 2:
        world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_REBOOTED, .what = node});
        break;
    case 3:
        world_give((struct by_recover_event){.type = BY_RECOVER_LINK_DOWN, .what = link});
        break;
    case 4:
        world_give((struct by_recover_event){.type = BY_RECOVER_LINK_UP, .what = link});
        break;
    case 5:
        world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_GONE, .what = node});
        break;
    case 6:
        world_swallows(false, node);
        break;
    case 7:
        world_swallows(true, link);
        break;
    case 8: /* only the connection */
        if (world.rank[job][rank].here) {
            world_leave(job, rank, true);
            world.rank[job][rank].away = (uint32_t)by_prng_below(&world.prng, 40);
        }
        break;
    default:
        world_give((struct by_recover_event){
            .type = BY_RECOVER_RANK_SUSPECTS, .job = job, .rank = rank, .what = node});
        break;
    }
}

static void one_world(uint64_t seed)
{
    world_open(seed);
    for (unsigned i = by_prng_below(&world.prng, 400); i > 0; i--) {
        if (by_prng_below(&world.prng, 5) == 0)
            fault(seed % 2 == 0);
        world_round(false);
    }
    for (uint32_t n = 0; n < NODES; n++)
        world_give((struct by_recover_event){.type = BY_RECOVER_SWITCH_UP, .what = n});
    for (uint32_t l = 0; l < LINKS; l++)
        world_give((struct by_recover_event){.type = BY_RECOVER_LINK_UP, .what = l});
    world_rounds(700);
    assert_true(by_recover_is_quiet(world.recover));
    assert_true(world.fails == 0 || seed % 2 == 1);
    for (uint32_t j = 0; j < JOBS; j++) {
        assert_int_equal(by_recover_base(world.recover, j), by_recover_next(world.recover, j));
        if (world.job_failed[j])
            continue;
        for (uint16_t k = 0; k < RANKS; k++) {
            assert_int_equal(world.rank[j][k].gen, by_recover_base(world.recover, j));
            assert_int_equal(world.rank[j][k].frozen, 0);
        }
    }
    for (uint32_t n = 0; n < NODES; n++)
        assert_false(by_recover_lost_nodes(world.recover)[n]);
    for (uint32_t l = 0; l < LINKS; l++)
        assert_false(by_recover_lost_links(world.recover)[l]);
    by_recover_close(world.recover);
}

static void whatever_happens_all_ranks_end_in_one_generation(void **state)
{
    const char *given = getenv("BANYAN_TEST_SEED");
    uint64_t first = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    unsigned worlds = given != NULL ? 1 : 3000;

    (void)state;
    world_trust_ns = UINT64_C(100000000);
    for (unsigned i = 0; i < worlds; i++) {
        static char line[64];

        /* cmocka does not print values: the last line identifies the world. */
        snprintf(line, sizeof(line), "BANYAN_TEST_SEED=%llu", (unsigned long long)(first + i));
        setenv("BANYAN_TEST_WORLD", line, 1);
        if (given != NULL || i % 1000 == 0)
            fprintf(stderr, " %s\n", line);
        one_world(first + i);
    }
}

/* Prints which world failed. */
static int tear_down(void **state)
{
    (void)state;
    if (getenv("BANYAN_TEST_WORLD") != NULL)
        fprintf(stderr, " the last world was of %s\n", getenv("BANYAN_TEST_WORLD"));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(whatever_happens_all_ranks_end_in_one_generation, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

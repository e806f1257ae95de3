/*
 * A quick campaign of random scenarios, and directed ones without failed nodes: windows of one and
 * two, faults of five per cent, a long straggler, a restart under the next generation, goodput
 * under loss. SIM_SEED and SIM_SECONDS change the campaign.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "offload/wire/seal.h"
#include "offload/wire/types.h"
#include "tests/sim/goodput.h"
#include "tests/sim/scenario.h"

#define PERCENT UINT32_C(42949672)

static struct scenario scenario;
static struct scenario_result result;

static void must_be_right(void)
{
    char text[2048];

    scenario_run(&scenario, 0, &result);
    if (result.ok)
        return;
    scenario_describe(&scenario, text, sizeof(text));
    fail_msg("seed 0x%" PRIx64 ": %s\n%s", scenario.seed, result.fault, text);
}

static void random_scenarios_give_every_rank_the_right_elements(void **state)
{
    const char *seed_text = getenv("SIM_SEED"), *seconds_text = getenv("SIM_SECONDS");
    uint64_t seed = seed_text != NULL ? strtoull(seed_text, NULL, 0) : 20250131, number = 0;
    time_t end = time(NULL) + (seconds_text != NULL ? atoi(seconds_text) : 8);
    uint64_t chunks = 0, again = 0, lost = 0;

    (void)state;
    for (; number < 200 || time(NULL) < end; number++) {
        scenario_draw(&scenario, seed, number);
        scenario_campaign(&scenario, &result);
        chunks += result.endpoints.result;
        again += result.endpoints.retx;
        lost += result.world.lost;
        if (!result.ok) {
            char text[2048];

            scenario_describe(&scenario, text, sizeof(text));
            fail_msg("%s\n%sreplay: make sim; build/release/tools/sim --seed 0x%" PRIx64
                     " --scenario %" PRIu64 " --verbose",
                     result.fault, text, seed, number);
        }
    }
    assert_true(chunks > 100000 && again > 0 && lost > 0);
    printf("  %" PRIu64 " scenarios, %" PRIu64 " chunks, %" PRIu64 " packets lost, %" PRIu64
           " contributions sent again\n",
           number, chunks, lost, again);
}

static void the_same_seed_gives_the_same_run(void **state)
{
    struct scenario_result first;

    (void)state;
    for (uint64_t number = 0; number < 5; number++) {
        scenario_draw(&scenario, 42, number);
        scenario_campaign(&scenario, &first);
        scenario_campaign(&scenario, &result);
        assert_true(first.elapsed_ns == result.elapsed_ns);
        assert_true(first.world.events == result.world.events);
        assert_true(first.endpoints.retx == result.endpoints.retx);
        assert_true(first.engines.wait == result.engines.wait);
    }
}

/* Two leaves of `hosts` hosts each, one spine, one tree. */
static void two_levels(uint64_t seed, int hosts, uint16_t window, uint16_t payload)
{
    struct fabric_tree *tree;

    scenario_init(&scenario, seed);
    fabric_leafspine(&scenario.fabric, 1, 2, hosts, 10000, 500, 0);
    fabric_job_add(&scenario.fabric, 1, 3);
    tree = fabric_tree_add(&scenario.fabric, 0, 0, 0, NULL);
    tree->window = window;
    tree->payload_max = payload;
}

static void small_windows_pass_many_times_under_loss_duplication_and_reordering(void **state)
{
    static const uint16_t windows[] = {1, 2, 4};

    (void)state;
    for (unsigned w = 0; w < sizeof(windows) / sizeof(windows[0]); w++)
        for (unsigned faults = 0; faults < 2; faults++) {
            two_levels(100 + w, 2, windows[w], 64);
            scenario.world.fault.loss = scenario.world.fault.duplicate = scenario.world.fault.reorder =
                faults * 5 * PERCENT;
            scenario.world.host_faults = 1;
            scenario.world.hold_ns = 50000;
            scenario_add_call(&scenario, 0, BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_F32, 16 * 300);
            scenario_add_call(&scenario, 0, BY_COLLECTIVE_ALLGATHER, BY_OP_SUM, BY_DTYPE_U8, 64 * 50);
            scenario.calls[0][0].in_place = 1;
            must_be_right();
            assert_int_equal(result.endpoints.result, 4 * (2 + 300 + 4 * 50)); /* and the session */
        }
}

static void every_operator_and_type_goes_through_the_network(void **state)
{
    (void)state;
    for (unsigned op = 1; op < BY_OP_COUNT; op++)
        for (unsigned dtype = 1; dtype < BY_DTYPE_COUNT; dtype++) {
            if (dtype >= BY_DTYPE_F16 && op > BY_OP_MAX)
                continue;
            two_levels(op * 100 + dtype, 3, 8, 128);
            scenario.world.fault.loss = PERCENT;
            scenario_add_call(&scenario, 0, BY_COLLECTIVE_ALLREDUCE, op, dtype, 301);
            scenario_add_call(&scenario, 0, BY_COLLECTIVE_REDUCE_SCATTER, op, dtype, 77);
            must_be_right();
        }
}

static void many_calls_are_outstanding_at_once(void **state)
{
    (void)state;
    two_levels(5, 2, 16, 256);
    for (int c = 0; c < SCENARIO_CALLS_MAX; c++) {
        scenario_add_call(&scenario, 0, 1 + (unsigned)c % 6, BY_OP_SUM, BY_DTYPE_I64, (uint64_t)c * 7 % 90);
        scenario.calls[0][c].root = (uint16_t)(c % 4);
        scenario.calls[0][c].in_place = c % 3 == 0;
    }
    scenario.outstanding_max = BY_CALLS_MAX;
    scenario.stagger_ns = 20000;
    scenario.world.fault.loss = 2 * PERCENT;
    must_be_right();
}

static void corruption_is_seen_and_repaired(void **state)
{
    (void)state;
    two_levels(6, 4, 32, 1024);
    scenario.world.corrupt = 3 * PERCENT;
    scenario.world.host_faults = 1;
    scenario_add_call(&scenario, 0, BY_COLLECTIVE_ALLREDUCE, BY_OP_BXOR, BY_DTYPE_U64, 40000);
    must_be_right();
    assert_true(result.world.corrupted > 100);
    assert_true(result.endpoints.drop_psum > 0 && result.engines.drop_psum > 0);
    assert_true(result.endpoints.drop_format > 0 && result.engines.drop_tag > 0);
}

static void short_queues_slow_down_but_lose_nothing_for_good(void **state)
{
    (void)state;
    two_levels(7, 4, 256, 1024);
    scenario.fabric.links[4].mbps = 1000; /* a leaf's cable to the spine is ten times slower */
    scenario.world.queue_max = 16;
    scenario_add_call(&scenario, 0, BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_I32, 500000);
    must_be_right();
    assert_true(result.world.overflowed > 0);
    /* The slow cable is the limit: 2 MB at 1 Gbit/s take 17 ms. */
    assert_true(result.elapsed_ns < 40000000);
}

static void a_host_that_pauses_for_long_delays_and_breaks_nothing(void **state)
{
    (void)state;
    two_levels(8, 2, 16, 256);
    scenario_add_call(&scenario, 0, BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_F64, 20000);
    scenario.freeze_node = scenario.fabric.jobs[0].rank_node[3];
    scenario.freeze_ns = 50000;
    scenario.thaw_ns = 500000000; /* a quarter of the stall timeout */
    must_be_right();
    assert_true(result.elapsed_ns > 500000000);
    /* No rank floods the network while it waits: each of the others sends only a few packets. */
    assert_true(result.endpoints.retx < 1000);
}

/* Four trees over two leaves, wide windows, nodes that process their packets about every `poll_ns`.
 * `node` loses all or some of its packets for 5 ms of each 30. Returns the virtual time of an
 * allreduce. */
static uint64_t bursts(uint64_t seed, uint32_t poll_ns, int node, uint32_t loss)
{
    scenario_init(&scenario, seed);
    fabric_leafspine(&scenario.fabric, 1, 2, 4, 1000, 1000, 0);
    fabric_job_add(&scenario.fabric, 1, 3);
    for (int t = 0; t < 4; t++) {
        struct fabric_tree *tree = fabric_tree_add(&scenario.fabric, 0, 0, 0, NULL);

        tree->window = 256;
        tree->payload_max = 1408;
    }
    scenario.world.poll_ns = poll_ns;
    scenario.world.endpoint.rto_min_ns = scenario.world.endpoint.rto_max_ns = 0; /* as users run it */
    scenario_add_call(&scenario, 0, BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_I32, 2 << 20);
    scenario.world.burst_node = node;
    scenario.world.burst_loss = loss;
    scenario.world.burst_ns = 5000000;
    scenario.world.burst_period_ns = 30000000;
    must_be_right();
    return result.elapsed_ns;
}

/*
 * Round trips are long because windows are: packets wait in queues, and for ranks that process them
 * late. Then a burst of losses empties the queues, and answers arrive sooner than before. Repair
 * must not mistake this for a delay, nor waiting for other ranks for a long path, and it must not
 * need a timeout for each chunk.
 */
static void bursts_of_losses_are_repaired_in_a_few_round_trips(void **state)
{
    static const uint32_t polls[] = {200, 500000}, losses[] = {PERCENT * 50, PERCENT * 90, UINT32_MAX};

    (void)state;
    for (unsigned p = 0; p < 2; p++) {
        uint64_t lossless = bursts(70, polls[p], 0, 0), worst = 0, again = 0;

        for (unsigned l = 0; l < 3; l++)
            for (int where = 0; where < 3; where++) {
                int node = where < 2 ? where : scenario.fabric.jobs[0].rank_node[3];
                uint64_t took = bursts(71 + l * 3 + (unsigned)where, polls[p], node, losses[l]);

                assert_true(result.world.lost > 100);
                worst = took > worst ? took : worst;
                again += result.endpoints.retx;
            }
        printf("  %.1f ms, with bursts of losses %.1f at the most; %" PRIu64 " sent again\n",
               (double)lossless / 1e6, (double)worst / 1e6, again);
        assert_true(worst < 3 * lossless);
    }
}

static void a_restart_under_the_next_generation_ignores_what_is_left_of_the_last(void **state)
{
    unsigned met = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        two_levels(900 + seed, 3, 8, 512);
        scenario_add_call(&scenario, 0, BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_I32, 30000);
        scenario_add_call(&scenario, 0, BY_COLLECTIVE_ALLGATHER, BY_OP_SUM, BY_DTYPE_I32, 3000);
        scenario.calls[0][0].in_place = 1;
        scenario.world.fault.loss = scenario.world.fault.duplicate = PERCENT;
        scenario.world.fault.reorder = 5 * PERCENT;
        scenario.world.hold_ns = 300000;
        scenario.reload_ns = 60000 + seed * 7000;
        must_be_right();
        met += result.engines.drop_gen + result.endpoints.drop_entry > 0;
    }
    assert_true(met >= 16); /* in the others the roll call was lost, and no packet was in flight */
}

/* 130 hosts at one switch: one tree of 130 children, and a pair whose root has 260. */
static void a_switch_with_130_children_survives_loss_duplication_and_reordering(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct by_prng prng = {seed};
        struct fabric_tree *tree;

        scenario_init(&scenario, seed);
        fabric_star(&scenario.fabric, 130, 10000, 500);
        scenario.fabric.cover = seed % 2 ? BY_COVER_NONE : BY_COVER_HEADER;
        fabric_job_add(&scenario.fabric, 1, 1);
        for (int t = 0; t < 2; t++) {
            tree = fabric_tree_add(&scenario.fabric, 0, 0, 0, &prng);
            assert_non_null(tree);
            tree->window = 4;
        }
        assert_true(fabric_pair_make(&scenario.fabric, 0, (int)(seed % 2), 0, &prng));
        scenario_add_call(&scenario, 0, BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_U32, 5000);
        scenario_add_call(&scenario, 0, BY_COLLECTIVE_BROADCAST, BY_OP_SUM, BY_DTYPE_F32, 3000);
        scenario_add_call(&scenario, 0, BY_COLLECTIVE_REDUCE, BY_OP_MAX, BY_DTYPE_I64, 900);
        scenario_add_call(&scenario, 0, BY_COLLECTIVE_BARRIER, BY_OP_SUM, BY_DTYPE_U8, 0);
        scenario.calls[0][0].in_place = 1;
        scenario.world.fault =
            (struct by_fault){.loss = PERCENT / 4, .duplicate = PERCENT, .reorder = 5 * PERCENT};
        scenario.world.host_faults = 1;
        scenario.world.hold_ns = 20000;
        must_be_right();
    }
}

static void one_per_cent_of_loss_at_each_switch_leaves_seven_tenths_of_the_goodput(void **state)
{
    static const struct {
        const char *name;
        uint32_t parts;
        double least;
    } rows[] = {{"0.01%", 429496, 0.97}, {"0.1%", 4294967, 0.88}, {"1%", PERCENT, 0.70}};
    uint16_t window = 1;
    struct goodput lossless;

    (void)state;
    while (window < 2 * goodput_bdp())
        window = (uint16_t)(window * 2);
    lossless = goodput_run(1, 0, 4u << 20, window);
    assert_true(lossless.ok);
    assert_int_equal(lossless.again, 0);
    assert_true(lossless.gbps > 9.0);
    printf("  8 hosts, two levels, window %u (a round trip holds %u chunks): %.2f Gbit/s without loss\n",
           window, goodput_bdp(), lossless.gbps);
    for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        double sum = 0;

        for (uint64_t seed = 1; seed <= 3; seed++) {
            struct goodput lossy = goodput_run(seed, rows[r].parts, 4u << 20, window);

            assert_true(lossy.ok);
            sum += lossy.gbps / lossless.gbps / 3;
        }
        printf("  loss %6s at each switch: %.3f of it\n", rows[r].name, sum);
        assert_true(sum >= rows[r].least);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_run),
        cmocka_unit_test(small_windows_pass_many_times_under_loss_duplication_and_reordering),
        cmocka_unit_test(every_operator_and_type_goes_through_the_network),
        cmocka_unit_test(many_calls_are_outstanding_at_once),
        cmocka_unit_test(corruption_is_seen_and_repaired),
        cmocka_unit_test(short_queues_slow_down_but_lose_nothing_for_good),
        cmocka_unit_test(a_host_that_pauses_for_long_delays_and_breaks_nothing),
        cmocka_unit_test(bursts_of_losses_are_repaired_in_a_few_round_trips),
        cmocka_unit_test(a_restart_under_the_next_generation_ignores_what_is_left_of_the_last),
        cmocka_unit_test(a_switch_with_130_children_survives_loss_duplication_and_reordering),
        cmocka_unit_test(one_per_cent_of_loss_at_each_switch_leaves_seven_tenths_of_the_goodput),
        cmocka_unit_test(random_scenarios_give_every_rank_the_right_elements),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

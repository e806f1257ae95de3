/*
 * How long a move to a standby takes among 128 hosts, without a controller: from the failure of a
 * spine to the first chunk after it at the last rank, in round trips. The patience is part of it.
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

#define SPINES         4
#define LEAVES         8
#define HOSTS_PER_LEAF 16
#define SEEDS          8
/* Time without progress after which a rank freezes. */
#define PATIENCE_NS 150000u
#define ATTEMPT_NS  5000000u
/* From the failure to the first chunk at the last rank (round trips of a chunk, at most). */
#define TRIPS_MAX 100u
/* The part of it from the first rank that freezes on. */
#define MOVE_TRIPS_MAX 30u

/* Parts of a move, in the order of time. */
enum part { FIRST_FROZEN, LAST_FROZEN, LAST_CARRIED, LAST_RESUMED, PARTS };

static struct scenario scenario;
static struct scenario_result result;

static void add_tree(struct fabric *fabric, int spine, uint16_t collectives)
{
    struct fabric_tree *tree = fabric_tree_add(fabric, 0, spine, 0, NULL);

    assert_non_null(tree);
    tree->window = collectives == BY_LEAF_ROUNDS ? 16 : 64;
    tree->payload_max = 1408;
    if (collectives != 0)
        tree->collectives = collectives;
}

/* A tree over each spine, of which the first fails. Standby s avoids spine s. */
static void prepare(uint64_t seed)
{
    scenario_init(&scenario, seed);
    fabric_leafspine(&scenario.fabric, SPINES, LEAVES, HOSTS_PER_LEAF, 100000, 500, 0);
    fabric_job_add(&scenario.fabric, 1, 1);
    scenario.after = scenario.fabric;
    for (int spine = 0; spine < SPINES; spine++)
        add_tree(&scenario.fabric, spine, 0);
    add_tree(&scenario.after, 1, 0);
    for (int s = 0; s < FABRIC_STANDBYS_MAX; s++) {
        struct fabric *standby = &scenario.standbys[scenario.standby_count++];

        *standby = scenario.fabric;
        standby->jobs[0].tree_count = 0;
        standby->jobs[0].gen = (uint16_t)(2 + s);
        for (int spine = 0; spine < SPINES; spine++)
            if (spine != s)
                add_tree(standby, spine, 0);
        add_tree(standby, (s + 1) % SPINES, BY_LEAF_ROUNDS);
        scenario.replaces[s] = UINT64_C(1) << s;
    }
    scenario.world.endpoint.rto_min_ns = 0; /* as in programs */
    scenario.patience_ns = PATIENCE_NS;
    scenario.attempt_ns = ATTEMPT_NS;
    scenario.outstanding_max = 1;
    scenario.limit_ns = 60000000;
}

static int order(const void *x, const void *y)
{
    const uint64_t *a = x, *b = y;

    return *a < *b ? -1 : *a > *b;
}

/* Finds the times of the parts of a move, from the failure on. */
static void measure(uint64_t failed_ns, uint64_t part[PARTS])
{
    memset(part, 0, PARTS * sizeof(*part));
    part[FIRST_FROZEN] = UINT64_MAX;
    for (int r = 0; r < scenario.fabric.jobs[0].rank_count; r++) {
        const struct by_world_move *move = &result.moves[r];
        uint64_t resumed = result.resumed_ns[r];

        assert_true(move->frozen_ns > failed_ns && move->carried_ns > move->frozen_ns && resumed > 0);
        part[FIRST_FROZEN] = move->frozen_ns < part[FIRST_FROZEN] ? move->frozen_ns : part[FIRST_FROZEN];
        part[LAST_FROZEN] = move->frozen_ns > part[LAST_FROZEN] ? move->frozen_ns : part[LAST_FROZEN];
        part[LAST_CARRIED] = move->carried_ns > part[LAST_CARRIED] ? move->carried_ns : part[LAST_CARRIED];
        part[LAST_RESUMED] = resumed > part[LAST_RESUMED] ? resumed : part[LAST_RESUMED];
    }
    for (int p = 0; p < PARTS; p++)
        part[p] -= failed_ns;
}

static void traffic_flows_again_within_a_hundred_round_trips(void **state)
{
    static const char *const names[PARTS] = {"first rank frozen", "last rank frozen",
                                             "last rank in the standby", "last rank has a chunk"};
    uint64_t parts[PARTS][SEEDS], trip_ns = 0, rounds = 0, copied = 0;
    const size_t middle = SEEDS / 2;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        uint64_t part[PARTS];

        prepare(seed);
        scenario_add_call(&scenario, 0, BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_I32, 450000);
        scenario.crash_count = 1;
        scenario.crashes[0] = (struct scenario_crash){.node = 0, .dies = 1, .crash_ns = 112000 + 1000 * seed};
        /* the last results before the failure do not reach one leaf, and are copied */
        scenario.world.burst_node = SPINES + LEAVES - 1;
        scenario.world.burst_loss = UINT32_MAX;
        scenario.world.burst_ns = 2000;
        scenario.world.burst_period_ns = scenario.crashes[0].crash_ns;
        scenario_run(&scenario, 0, &result);
        if (!result.ok)
            fail_msg("seed %" PRIu64 ": %s", seed, result.fault);
        assert_int_equal(result.wrong, 0);
        assert_int_equal(result.world.moved, scenario.fabric.jobs[0].rank_count);
        assert_int_equal(result.world.abandoned, 0);
        measure(scenario.crashes[0].crash_ns, part);
        for (int p = 0; p < PARTS; p++)
            parts[p][seed] = part[p];
        trip_ns = result.trip_ns;
        rounds += result.world.rounds;
        copied += result.endpoints.copied;
    }
    printf("  %d hosts, least round trip of a chunk %.1f us, patience %.0f us; %.1f rounds, %.0f copies\n",
           scenario.fabric.jobs[0].rank_count, (double)trip_ns / 1e3, PATIENCE_NS / 1e3,
           (double)rounds / SEEDS, (double)copied / SEEDS);
    for (int p = 0; p < PARTS; p++) {
        qsort(parts[p], SEEDS, sizeof(parts[p][0]), order);
        printf("  %-25s %5.1f round trips after the failure in the median, %5.1f at worst\n", names[p],
               (double)parts[p][middle] / (double)trip_ns, (double)parts[p][SEEDS - 1] / (double)trip_ns);
    }
    assert_true(parts[LAST_RESUMED][SEEDS - 1] <= TRIPS_MAX * trip_ns);
    assert_true(parts[LAST_RESUMED][SEEDS - 1] - parts[FIRST_FROZEN][0] <= MOVE_TRIPS_MAX * trip_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traffic_flows_again_within_a_hundred_round_trips),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

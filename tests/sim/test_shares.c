/*
 * Shares of cables: two jobs that have more to send than the cables carry, and a switch that
 * guarantees each its share (offload/engine/meter.c). Tests the division of the bandwidth, the use
 * of the cable when one job is idle, and that no data are dropped after they have used upstream
 * links.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "host-driver/sim/inside.h"
#include "offload/wire/types.h"
#include "tests/sim/scenario.h"

#define MBPS    1000u
#define PAYLOAD 1408u
#define CABLE   (PAYLOAD + 40u + 66u) /* bytes of a chunk on a cable */
#define CHUNKS  6000u
#define PARTS   (BY_SHARE_ONE / 1000) /* a thousandth */

struct shares_pair {
    const char *name;
    unsigned collective;
    uint32_t share[2]; /* thousandths; 0: no share, the rest */
    uint16_t window[2];
    uint32_t mark_at; /* queue length (packets); 0: the network does not mark */
    int alone;        /* the second job has nothing to send */
    double ratio;     /* expected chunks of the first job per chunk of the second */
    double off, used; /* maximum relative error of `ratio`; minimum use of the cable */
};

static const struct shares_pair pairs[] = {
    {"3 : 1", BY_COLLECTIVE_ALLREDUCE, {750, 250}, {256, 256}, 20, 0, 3, 0.10, 0.88},
    {"1 : 3, windows of 1024 and 32",
     BY_COLLECTIVE_ALLREDUCE,
     {250, 750},
     {1024, 32},
     20,
     0,
     1.0 / 3,
     0.10,
     0.88},
    {"7 : 1", BY_COLLECTIVE_ALLREDUCE, {875, 125}, {256, 256}, 20, 0, 7, 0.15, 0.88},
    {"3 : 1, no marks in the network", BY_COLLECTIVE_ALLREDUCE, {750, 250}, {256, 256}, 0, 0, 3, 0.10, 0.88},
    {"3 : 1, allgather", BY_COLLECTIVE_ALLGATHER, {750, 250}, {256, 256}, 20, 0, 3, 0.15, 0.80},
    {"3/4 beside none", BY_COLLECTIVE_ALLREDUCE, {750, 0}, {256, 256}, 20, 0, 3, 0.15, 0.88},
    {"1/4, the other idle", BY_COLLECTIVE_ALLREDUCE, {250, 750}, {256, 256}, 20, 1, 0, 0, 0.90},
    {"1/8 without marks, the other idle", BY_COLLECTIVE_ALLREDUCE, {125, 875}, {256, 256}, 0, 1, 0, 0, 0.90},
};

static struct scenario scenario;
static struct scenario_result result;

static void prepare(const struct shares_pair *pair, uint64_t seed)
{
    scenario_init(&scenario, seed);
    fabric_leafspine(&scenario.fabric, 1, 2, 2, MBPS, 1000, 0);
    for (int j = 0; j < 2; j++) {
        int ranks = pair->collective == BY_COLLECTIVE_ALLGATHER ? 4 : 1;

        fabric_job_add(&scenario.fabric, (uint16_t)(j + 1), 1);
        scenario.fabric.jobs[j].share = pair->share[j] * PARTS;
        for (int t = 0; t < ranks; t++) {
            struct fabric_tree *tree = fabric_tree_add(&scenario.fabric, j, 0, 0, NULL);

            assert_non_null(tree);
            tree->window = pair->window[j];
            tree->payload_max = PAYLOAD;
        }
        scenario_add_call(&scenario, j, pair->collective, BY_OP_SUM, BY_DTYPE_I32,
                          CHUNKS / (unsigned)ranks * PAYLOAD / 4);
    }
    scenario.start_ns[1] = pair->alone ? UINT64_C(1000000000) : 0;
    scenario.measure_ns = 20000000;
    scenario.world.mark_at = pair->mark_at;
    scenario.world.queue_max = 0;
    scenario.world.endpoint.rto_min_ns = scenario.world.endpoint.rto_max_ns = 0; /* as users run it */
}

static void jobs_come_to_their_shares_and_to_what_others_leave(void **state)
{
    (void)state;
    printf("  two jobs, 4 hosts, two levels, 1 Gbit/s: chunks of each, ratio, part of the cable in use, what "
           "it took\n");
    for (unsigned p = 0; p < sizeof(pairs) / sizeof(pairs[0]); p++) {
        const struct shares_pair *pair = &pairs[p];
        double x, y, used;

        prepare(pair, p + 1);
        scenario_run(&scenario, 0, &result);
        if (!result.ok || result.wrong > 0)
            fail_msg("%s: %s", pair->name, result.fault);
        x = (double)result.share[0];
        y = (double)result.share[1];
        used = (x + y) * CABLE * 8000 / MBPS / (double)result.share_ns;
        printf("  %-34s %6.0f %6.0f  %.2f  %.3f  (%llu held, %llu dropped, %llu marked, %llu sent again)\n",
               pair->name, x, y, y > 0 ? x / y : 0, used, (unsigned long long)result.engines.hold,
               (unsigned long long)result.engines.drop_share, (unsigned long long)result.world.marked,
               (unsigned long long)result.endpoints.retx);
        if (pair->ratio > 0)
            assert_true(x / y >= pair->ratio * (1 - pair->off) && x / y <= pair->ratio * (1 + pair->off));
        assert_true(used >= pair->used);
    }
}

/* Returns the ECN bits of the last of three packets that a switch relays; they arrived with `came`,
 * and the switch sent them with `left`. */
static uint8_t arrives_as(struct by_world *world, uint8_t came, uint8_t left)
{
    const struct by_tx made = {.ecn = came, .ref = BY_REF_NONE};
    const struct by_tx relay = {.kind = BY_TX_RELAY, .ecn = left, .ref = BY_REF_NONE};
    struct by_sim_event event;
    uint8_t ecn = 0xff;

    for (unsigned i = 0; i < 3; i++)
        by_cable_send(world, 0, &relay, by_parcel_make(world, &made));
    while (by_heap_pop(&world->heap, &event)) {
        world->now_ps = event.at_ps;
        if (event.kind == BY_EVENT_DEPART)
            by_cable_on_depart(world, event.index);
        if (event.kind != BY_EVENT_ARRIVE)
            continue;
        ecn = event.parcel->ecn;
        by_parcel_put(world, event.parcel);
    }
    return ecn;
}

static void marks_of_a_switch_arrive_and_the_network_marks_only_who_knows_ecn(void **state)
{
    struct by_world_node nodes[3] = {{0}};
    struct by_world_arc arcs[4] = {{.from = 0, .to = 1, .ps_num = 8000, .ps_den = 1},
                                   {.from = 1, .to = 0, .ps_num = 8000, .ps_den = 1},
                                   {.from = 0, .to = 2, .from_port = 1, .ps_num = 8000, .ps_den = 1},
                                   {.from = 2, .to = 0, .to_port = 1, .ps_num = 8000, .ps_den = 1}};
    const struct by_world_fabric cables = {
        .node_count = 3, .arc_count = 4, .job_count = 1, .nodes = nodes, .arcs = arcs, .jobs = {1}};

    (void)state;
    for (unsigned marking = 0; marking < 2; marking++) {
        struct by_world *world;

        scenario_init(&scenario, 1);
        scenario.world.mark_at = marking; /* marks packets that find one waiting, as the third does */
        fabric_star(&scenario.fabric, 2, MBPS, 1000);
        fabric_job_add(&scenario.fabric, 1, 1);
        assert_non_null(fabric_tree_add(&scenario.fabric, 0, 0, 0, NULL));
        for (int i = 0; i < 3; i++)
            nodes[i].image = fabric_image(&scenario.fabric, i, &nodes[i].image_bytes);
        world = by_world_create(&cables, &scenario.world, NULL, NULL);
        for (uint8_t ecn = 0; ecn < 4; ecn++)
            assert_int_equal(arrives_as(world, 2, ecn), marking && ecn > 0 ? 3 : ecn);
        by_world_destroy(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_come_to_their_shares_and_to_what_others_leave),
        cmocka_unit_test(marks_of_a_switch_arrive_and_the_network_marks_only_who_knows_ecn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Two jobs on the same cables: how they share the network while both have data to send, for any
 * windows, numbers of trees and start times. Jain's index is (x + y)^2 / 2 (x^2 + y^2): 1 if both
 * have the same, 0.5 if one has everything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "offload/wire/types.h"
#include "tests/sim/scenario.h"

#define MBPS    1000u
#define PAYLOAD 1408u
#define CABLE   (PAYLOAD + 40u + 66u) /* bytes of a chunk on a cable */

struct fairness_pair {
    const char *name;
    int trees[2];
    uint16_t window[2];
    uint64_t late_ns;   /* delay of the second job's start */
    uint32_t mark_at;   /* queue length (packets); 0: the network does not mark */
    uint32_t queue_max; /* maximum queue length before packets are dropped */
    uint32_t chunks;    /* of each job */
    double jain, used;  /* minimum values */
    int stated;         /* the configuration states that queues mark, which they do not */
};

static const struct fairness_pair pairs[] = {
    {"alike", {1, 1}, {256, 256}, 0, 20, 0, 3000, 0.97, 0.90, 0},
    {"windows of 32 and 1024", {1, 1}, {32, 1024}, 0, 20, 0, 3000, 0.95, 0.90, 0},
    {"one tree and eight", {1, 8}, {256, 256}, 0, 20, 0, 3000, 0.95, 0.90, 0},
    {"the second 20 ms later", {1, 1}, {256, 256}, 20000000, 20, 0, 3000, 0.95, 0.90, 0},
    {"no marks, losses", {1, 1}, {256, 256}, 0, 0, 40, 3000, 0.97, 0.95, 0},
    {"the same for longer", {1, 1}, {256, 256}, 0, 0, 40, 30000, 0.97, 0.80, 0},
    {"marks are stated in vain", {1, 1}, {256, 256}, 0, 0, 40, 30000, 0.97, 0.80, 1},
};

static struct scenario scenario;
static struct scenario_result result;

static void prepare(const struct fairness_pair *pair, uint64_t seed)
{
    scenario_init(&scenario, seed);
    fabric_leafspine(&scenario.fabric, 1, 2, 2, MBPS, 1000, 0);
    for (int j = 0; j < 2; j++) {
        fabric_job_add(&scenario.fabric, (uint16_t)(j + 1), 1);
        for (int t = 0; t < pair->trees[j]; t++) {
            struct fabric_tree *tree = fabric_tree_add(&scenario.fabric, j, 0, 0, NULL);

            assert_non_null(tree);
            tree->window = pair->window[j];
            tree->payload_max = PAYLOAD;
        }
        scenario_add_call(&scenario, j, BY_COLLECTIVE_ALLREDUCE, BY_OP_SUM, BY_DTYPE_I32,
                          pair->chunks * PAYLOAD / 4);
    }
    scenario.start_ns[1] = pair->late_ns;
    scenario.measure_ns = pair->late_ns + 5000000;
    scenario.world.mark_at = pair->mark_at;
    scenario.world.endpoint.marked = pair->mark_at > 0 || pair->stated;
    scenario.world.queue_max = pair->queue_max;
    scenario.world.endpoint.rto_min_ns = scenario.world.endpoint.rto_max_ns = 0; /* as users run it */
}

static void two_jobs_that_share_cables_get_equal_parts(void **state)
{
    (void)state;
    printf("  two jobs, 4 hosts, two levels, 1 Gbit/s: chunks of each, Jain's index, part of the cable in "
           "use\n");
    for (unsigned p = 0; p < sizeof(pairs) / sizeof(pairs[0]); p++) {
        const struct fairness_pair *pair = &pairs[p];
        double x, y, jain, used;

        prepare(pair, p + 1);
        scenario_run(&scenario, 0, &result);
        if (!result.ok || result.wrong > 0)
            fail_msg("%s: %s", pair->name, result.fault);
        x = (double)result.share[0];
        y = (double)result.share[1];
        jain = (x + y) * (x + y) / (2 * (x * x + y * y));
        used = (x + y) * CABLE * 8000 / MBPS / (double)result.share_ns;
        printf("  %-24s %6.0f %6.0f  %.3f  %.2f  (%llu marked, %llu dropped)\n", pair->name, x, y, jain, used,
               (unsigned long long)result.world.marked, (unsigned long long)result.world.overflowed);
        assert_true(jain >= pair->jain);
        assert_true(used >= pair->used);
    }
}

/* One job with windows a hundred times larger than the path's capacity: returns the mean number of
 * packets in a queue found by a packet. */
static double mean_queue(uint32_t mark_at)
{
    static const struct fairness_pair alone = {"", {1, 1}, {1024, 1024}, 0, 0, 0, 3000, 0, 0, 0};

    prepare(&alone, 9);
    scenario.fabric.job_count = 1;
    scenario.world.mark_at = mark_at;
    scenario_run(&scenario, 0, &result);
    assert_true(result.ok);
    return (double)result.world.waited / (double)result.world.sent;
}

static void marks_keep_queues_short_and_cables_busy(void **state)
{
    double without = mean_queue(0), with;
    uint64_t without_ns = result.elapsed_ns;

    (void)state;
    with = mean_queue(20);
    printf("  %.0f packets in a queue without marks in %.1f ms, %.0f with marks from 20 on in %.1f ms\n",
           without, (double)without_ns / 1e6, with, (double)result.elapsed_ns / 1e6);
    assert_true(with < 20 && with * 4 < without);
    assert_true(result.elapsed_ns < without_ns + without_ns / 50);
}

/* Other traffic on the cable from the first leaf to the spine, on which the job sends its sums. */
#define UP_ARC 4u

struct fairness_beside {
    const char *name;
    uint32_t mark_at, queue_max; /* packets */
    uint64_t trip_ns;
    int ecn;
    double least, most; /* part of the cable that TCP gets */
};

/* Runs the job from `late_ns` on beside the streams, from 20 ms on for as long as it needs. Returns
 * the part of the cable of the job; `*other` is that of the first stream. */
static double run_beside(const struct fairness_beside *beside, const struct by_world_stream *streams,
                         uint32_t count, uint64_t late_ns, uint32_t chunks, double *other)
{
    const struct fairness_pair pair = {"",     {1, 1}, {256, 0}, 0, beside->mark_at, beside->queue_max,
                                       chunks, 0,      0,        0};
    double bits;

    prepare(&pair, 1);
    scenario.fabric.job_count = 1;
    scenario.start_ns[0] = late_ns;
    scenario.measure_ns = 20000000;
    scenario.world.streams = streams;
    scenario.world.stream_count = count;
    scenario_run(&scenario, 0, &result);
    if (!result.ok || result.wrong > 0)
        fail_msg("%s: %s", beside->name, result.fault);
    bits = (double)result.share_ns * MBPS / 1000;
    *other = (double)result.streamed * 8 / bits;
    return (double)result.share[0] * CABLE * 8 / bits;
}

/* The goal is that a job takes at most two thirds of a cable beside TCP. It takes more where
 * packets are marked, and all of a short queue that drops packets (docs/known-issues.md). */
static const struct fairness_beside besides[] = {
    {"DCTCP", 20, 0, 20000, BY_WORLD_DCTCP, 0.08, 0.5},
    {"DCTCP, trip of 200 us", 20, 0, 200000, BY_WORLD_DCTCP, 0.05, 0.5},
    {"ECN", 20, 0, 20000, BY_WORLD_ECN, 0.08, 0.5},
    {"marks, TCP without ECN", 20, 60, 20000, BY_WORLD_NO_ECN, 0.5, 0.8},
    {"a queue of 40 drops", 0, 40, 20000, BY_WORLD_NO_ECN, 0, 0.5},
    {"a queue of 200 drops", 0, 200, 20000, BY_WORLD_NO_ECN, 0.08, 0.5},
};

static void a_job_and_tcp_share_a_cable(void **state)
{
    (void)state;
    printf("  a job beside TCP: part of the cable of the job and of TCP\n");
    for (unsigned s = 0; s < sizeof(besides) / sizeof(besides[0]); s++) {
        const struct fairness_beside *beside = &besides[s];
        struct by_world_stream stream = {.arc = UP_ARC, .trip_ns = beside->trip_ns, .ecn = beside->ecn};
        double other, job = run_beside(beside, &stream, 1, 0, 6000, &other);

        printf("  %-24s %.3f %.3f  (%llu marked, %llu dropped)\n", beside->name, job, other,
               (unsigned long long)result.world.marked, (unsigned long long)result.world.overflowed);
        assert_true(other >= beside->least && other <= beside->most);
        assert_true(job + other >= 0.95 && job + other <= 1.001);
    }
}

/* The model of TCP: alone it fills the cable, two streams share it, and a fixed part is that
 * part. */
static void streams_behave_like_what_they_model(void **state)
{
    const uint64_t alone_ns = 220000000;
    double other, job;

    (void)state;
    for (unsigned s = 0; s < sizeof(besides) / sizeof(besides[0]); s++) {
        struct by_world_stream stream = {.arc = UP_ARC, .trip_ns = besides[s].trip_ns, .ecn = besides[s].ecn};
        struct by_world_stream two[2] = {stream, stream};

        run_beside(&besides[s], &stream, 1, alone_ns, 1, &other);
        assert_true(other >= 0.95 && other <= 1.001);
        run_beside(&besides[s], two, 2, alone_ns, 1, &other);
        printf("  %-24s of two streams the first has %.3f\n", besides[s].name, other);
        assert_true(other >= 0.4 && other <= 0.6);
    }
    for (unsigned quarters = 1; quarters <= 3; quarters++) {
        struct by_world_stream stream = {.arc = UP_ARC, .part = quarters << 30};

        job = run_beside(&besides[0], &stream, 1, 0, 6000, &other);
        printf("  %u/4 are other packets: the job has %.3f, they have %.3f\n", quarters, job, other);
        assert_true(other >= quarters * 0.25 - 0.02 && other <= quarters * 0.25 + 0.02);
        assert_true(job >= 0.9 - quarters * 0.25);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_jobs_that_share_cables_get_equal_parts),
        cmocka_unit_test(marks_keep_queues_short_and_cables_busy),
        cmocka_unit_test(a_job_and_tcp_share_a_cable),
        cmocka_unit_test(streams_behave_like_what_they_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

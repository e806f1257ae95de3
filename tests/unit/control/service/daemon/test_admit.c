/* Admission at its limits: ranges of slots, windows, entries, ports, chunks and shares, with tables
 * of jobs that are written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/service/daemon/admit.h"
#include "offload/base/errors.h"
#include "tests/unit/control/tables/bench.h"

enum { X0, H0, H1, X1, NODES };
enum { H0_X0, X0_X1, X1_H1, LINKS };
#define JOBS_MAX 8

static struct {
    struct by_topology *topology;
    struct by_admit_limits limits[NODES];
    struct by_job_spec specs[JOBS_MAX];
    struct by_job_tables tables[JOBS_MAX];
    struct by_lower_need need[JOBS_MAX][NODES];
    uint32_t slot_base[JOBS_MAX][NODES];
    bool uses_link[JOBS_MAX][LINKS];
    struct by_admit_job jobs[JOBS_MAX];
    struct by_problem problem;
    uint32_t fits;
} rig;

/* Jobs 1, 2... with nothing. */
static void open_rig(void)
{
    memset(&rig, 0, sizeof(rig));
    rig.topology = bench_topology("x0* h0 h1 x1*", "h0-x0 x0-x1 x1-h1");
    for (unsigned i = 0; i < JOBS_MAX; i++) {
        rig.specs[i].job = (uint16_t)(i + 1);
        rig.specs[i].share = (struct by_fraction){0, 1};
        rig.tables[i] = (struct by_job_tables){
            .window = 16, .need = rig.need[i], .slot_base = rig.slot_base[i], .uses_link = rig.uses_link[i]};
        rig.jobs[i] = (struct by_admit_job){&rig.specs[i], &rig.tables[i]};
    }
}

static void close_rig(void)
{
    by_topology_free(rig.topology);
}

static void hold(unsigned job, uint32_t node, uint32_t base, uint32_t slots)
{
    rig.need[job][node] = (struct by_lower_need){.entries = 1, .slots = slots};
    rig.slot_base[job][node] = base;
}

/* Admits the last job beside the first ones. */
static int admit_slots(uint32_t others)
{
    rig.problem.text[0] = 0;
    return by_admit_slots(rig.topology, &rig.jobs[JOBS_MAX - 1], rig.jobs, others, rig.limits, &rig.fits,
                          &rig.problem);
}

static int admit_share(uint32_t others)
{
    rig.problem.text[0] = 0;
    return by_admit_share(rig.topology, &rig.jobs[JOBS_MAX - 1], rig.jobs, others, rig.limits, &rig.problem);
}

static void the_first_range_with_room_is_taken(void **state)
{
    static const struct {
        uint32_t base[3], slots[3]; /* of the others */
        uint32_t wanted, limit, place;
        int error;
    } cases[] = {
        {{0}, {0}, 10, 0, 0, 0},
        {{0}, {0}, 10, 10, 0, 0},
        {{0}, {0}, 10, 9, 0, BY_ELIMIT},
        {{0}, {7}, 10, 17, 7, 0},
        {{0}, {7}, 10, 16, 0, BY_ELIMIT},
        {{10}, {7}, 10, 20, 0, 0}, /* ends where the other begins */
        {{9}, {7}, 10, 26, 16, 0},
        {{9}, {7}, 10, 25, 0, BY_ELIMIT},
        {{20, 0}, {5, 10}, 10, 25, 10, 0}, /* between two */
        {{19, 0}, {5, 10}, 10, 34, 24, 0},
        {{30, 10, 0}, {10, 10, 10}, 10, 30, 20, 0}, /* in any order */
        {{20, 10, 0}, {10, 10, 10}, 10, 40, 30, 0},
        {{0, 0, 0}, {0, 10, 0}, 10, 20, 10, 0}, /* those without slots are nowhere in the way */
        {{5}, {0}, 10, 10, 0, 0},
        {{0}, {UINT32_MAX - 5}, 10, UINT32_MAX, 0, BY_ELIMIT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int error;

        open_rig();
        for (unsigned k = 0; k < 3; k++)
            hold(k, X1, cases[i].base[k], cases[i].slots[k]);
        hold(JOBS_MAX - 1, X1, 0, cases[i].wanted);
        rig.limits[X1].slots = cases[i].limit;
        error = admit_slots(3);
        if (error != cases[i].error || (error == 0 && rig.slot_base[JOBS_MAX - 1][X1] != cases[i].place))
            fail_msg("case %zu: %d, place %u", i, error, rig.slot_base[JOBS_MAX - 1][X1]);
        close_rig();
    }
}

static void each_switch_has_its_own_range_and_hosts_have_none(void **state)
{
    (void)state;
    open_rig();
    hold(0, X0, 0, 6);
    hold(0, X1, 0, 11);
    for (uint32_t n = 0; n < NODES; n++) {
        hold(JOBS_MAX - 1, n, 99, 10);
        rig.limits[n].slots = n == H0 || n == H1 ? 1 : 100;
    }
    assert_int_equal(admit_slots(1), 0);
    assert_int_equal(rig.slot_base[JOBS_MAX - 1][X0], 6);
    assert_int_equal(rig.slot_base[JOBS_MAX - 1][X1], 11);
    assert_int_equal(rig.slot_base[JOBS_MAX - 1][H0], 99);
    rig.need[JOBS_MAX - 1][X0].entries = 0; /* its trees do not pass here */
    rig.slot_base[JOBS_MAX - 1][X0] = 99;
    rig.limits[X0].slots = 1;
    assert_int_equal(admit_slots(1), 0);
    assert_int_equal(rig.slot_base[JOBS_MAX - 1][X0], 99);
    close_rig();
}

/* Halves, until the slots of every switch suffice. */
static void a_refusal_names_the_largest_smaller_window_that_fits_everywhere(void **state)
{
    static const struct {
        uint32_t limit[2], fits;
    } cases[] = {{{47, 0}, 8},  {{24, 0}, 8},  {{23, 0}, 4}, {{12, 24}, 4}, {{47, 24}, 4},
                 {{47, 48}, 8}, {{47, 23}, 2}, {{3, 0}, 1},  {{2, 0}, 0},   {{47, 5}, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_rig();
        hold(JOBS_MAX - 1, X0, 0, 48); /* 3 for each of 16 */
        hold(JOBS_MAX - 1, X1, 0, 96);
        for (uint32_t n = H0; n <= H1; n++) {
            hold(JOBS_MAX - 1, n, 0, 1000);
            rig.limits[n].slots = 1;
        }
        rig.limits[X0].slots = cases[i].limit[0];
        rig.limits[X1].slots = cases[i].limit[1];
        assert_int_equal(admit_slots(0), BY_ELIMIT);
        if (rig.fits != cases[i].fits)
            fail_msg("case %zu: %u", i, rig.fits);
        close_rig();
    }
    open_rig();
    hold(0, X0, 0, 20);
    hold(1, X0, 25, 10);
    hold(JOBS_MAX - 1, X0, 0, 48);
    rig.limits[X0].slots = 60;
    assert_int_equal(admit_slots(2), BY_ELIMIT);
    assert_int_equal(rig.fits, 8);
    assert_string_equal(
        rig.problem.text,
        "job 8: not enough slots on x0: it needs 48 contiguous ones for a window of 16; of 60 "
        "slots 30 are left (job 1 holds 20, job 2 holds 10): a window of 8 would fit");
    rig.limits[X0].slots = 23; /* fewer than are held: the switch has restarted with less */
    assert_int_equal(admit_slots(2), BY_ELIMIT);
    assert_int_equal(rig.fits, 1);
    assert_non_null(strstr(rig.problem.text,
                           "of 23 slots 0 are left (job 1 holds 20, job 2 holds 10): a window "
                           "of 1 would fit"));
    rig.limits[X0].slots = 5;
    assert_int_equal(admit_slots(2), BY_ELIMIT);
    assert_int_equal(rig.fits, 0);
    assert_string_equal(rig.problem.text,
                        "job 8: not enough slots on x0: it needs 48 contiguous ones for a window of 16; of 5 "
                        "slots 0 are left (job 1 holds 20, job 2 holds 10): end a job, or start the switch "
                        "with more --slots");
    rig.limits[X0].slots = 60;
    assert_int_equal(admit_slots(0), 0);
    assert_int_equal(rig.fits, 0);
    close_rig();
}

static void the_largest_holders_are_named_first_and_no_more_than_four(void **state)
{
    static const uint32_t slots[] = {5, 0, 9, 5, 7, 1};

    (void)state;
    open_rig();
    for (unsigned i = 0; i < 6; i++)
        hold(i, X0, i * 10, slots[i]);
    hold(JOBS_MAX - 1, X0, 0, 48);
    rig.limits[X0].slots = 61;
    assert_int_equal(admit_slots(6), BY_ELIMIT);
    assert_non_null(strstr(rig.problem.text, "of 61 slots 34 are left (job 3 holds 9, job 5 holds 7, job 1 "
                                             "holds 5, job 4 holds 5): "));
    assert_int_equal(admit_slots(2), 0); /* behind the first, where the rest is free */
    rig.limits[X0].slots = 47;
    assert_int_equal(admit_slots(2), BY_ELIMIT);
    assert_non_null(strstr(rig.problem.text, "(job 1 holds 5): "));
    assert_int_equal(admit_slots(0), BY_ELIMIT);
    assert_non_null(strstr(rig.problem.text, "of 47 slots 47 are left (no other job holds any): "));
    close_rig();
}

static void entries_of_all_jobs_fit_or_are_refused(void **state)
{
    (void)state;
    open_rig();
    for (unsigned i = 0; i < 2; i++)
        rig.need[i][X1] = (struct by_lower_need){.entries = 3 + i, .slots = 100};
    rig.need[0][X0].entries = 50; /* of another switch */
    rig.need[JOBS_MAX - 1][X1].entries = 2;
    assert_int_equal(admit_slots(2), 0); /* the limit is unknown */
    rig.limits[X1].entries = 9;
    assert_int_equal(admit_slots(2), 0);
    rig.limits[X1].entries = 8;
    assert_int_equal(admit_slots(2), BY_ELIMIT);
    assert_int_equal(rig.fits, 0);
    assert_string_equal(
        rig.problem.text,
        "job 8: not enough entries on x1: it needs 2; of 8 entries 1 are left (job 2 holds 4, "
        "job 1 holds 3): end a job, or plan fewer collectives");
    assert_int_equal(admit_slots(1), 0);
    close_rig();
}

static void a_communicator_leaves_room_for_others_on_the_fullest_switch(void **state)
{
    static const struct {
        uint32_t held[2], limit[2], window;
    } cases[] = {
        {{0, 0}, {0, 0}, BY_LOWER_WINDOW},
        {{0, 0}, {16 * 64, 0}, 64},
        {{0, 0}, {16 * 64, 16 * 32}, 32},
        {{0, 0}, {16 * 32, 16 * 64}, 32},
        {{1, 0}, {16 * 64, 0}, 32},
        {{1, 0}, {16 * 64 + 1, 0}, 64},
        {{50, 1}, {16 * 64 + 50, 16 * 32}, 16},
        {{0, 0}, {16 * 8, 0}, 8},
        {{0, 0}, {16 * 8 - 1, 0}, 8},
        {{5000, 0}, {10, 0}, 8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t window;

        open_rig();
        for (uint32_t n = 0; n < 2; n++) {
            uint32_t node = n == 0 ? X0 : X1;

            hold(0, node, 0, cases[i].held[n] / 2);
            hold(1, node, 0, cases[i].held[n] - cases[i].held[n] / 2);
            rig.limits[node].slots = cases[i].limit[n];
            hold(0, H0 + n, 0, 5000);
            rig.limits[H0 + n].slots = 1; /* hosts have engines of their own */
        }
        window = by_admit_budget(rig.topology, rig.jobs, 2, rig.limits);
        if (window != cases[i].window)
            fail_msg("case %zu: %u", i, window);
        close_rig();
    }
}

static void a_switch_needs_a_port_for_each_link_and_room_for_a_chunk(void **state)
{
    uint32_t ports[NODES] = {2, 1, 1, 2};
    struct by_lowering lowering = {.mtu = 1500, .payload_max = 1024};

    (void)state;
    open_rig();
    lowering.map.port_count = ports;
    assert_int_equal(by_admit_fabric(rig.topology, &lowering, rig.limits, &rig.problem), 0);
    for (uint32_t n = H0; n <= H1; n++)
        rig.limits[n] = (struct by_admit_limits){.payload_max = 1}; /* of hosts */
    ports[H0] = 9;
    rig.limits[H0].ports = 1;
    rig.limits[X0] = (struct by_admit_limits){.ports = 2, .payload_max = 1024};
    rig.limits[X1] = (struct by_admit_limits){.ports = 3, .payload_max = 2048};
    assert_int_equal(by_admit_fabric(rig.topology, &lowering, rig.limits, &rig.problem), 0);
    rig.limits[X1].ports = 1;
    assert_int_equal(by_admit_fabric(rig.topology, &lowering, rig.limits, &rig.problem), BY_ELIMIT);
    assert_string_equal(rig.problem.text,
                        "switch x1 has 1 ports, and 2 links in the fabric: start it with a port for each");
    rig.limits[X1].ports = 0;
    rig.limits[X1].payload_max = 1023;
    assert_int_equal(by_admit_fabric(rig.topology, &lowering, rig.limits, &rig.problem), BY_ELIMIT);
    assert_string_equal(rig.problem.text,
                        "switch x1 accepts chunks of 1023 bytes, and an MTU of 1500 carries 1024: start "
                        "banyand with a smaller --mtu, or the switch with a larger --payload-max");
    rig.limits[X0].ports = 1; /* the first that is too small is named */
    rig.limits[X0].payload_max = 1;
    assert_int_equal(by_admit_fabric(rig.topology, &lowering, rig.limits, &rig.problem), BY_ELIMIT);
    assert_non_null(strstr(rig.problem.text, "switch x0 has 1 ports, "));
    rig.limits[X0].ports = 2;
    assert_int_equal(by_admit_fabric(rig.topology, &lowering, rig.limits, &rig.problem), BY_ELIMIT);
    assert_non_null(strstr(rig.problem.text, "switch x0 accepts chunks of 1 bytes, "));
    close_rig();
}

static void share(unsigned job, int64_t num, int64_t den, bool first, bool second)
{
    rig.specs[job].share = (struct by_fraction){num, den};
    rig.uses_link[job][H0_X0] = first;
    rig.uses_link[job][X0_X1] = second;
}

static void the_shares_of_a_link_are_at_most_the_whole(void **state)
{
    (void)state;
    open_rig();
    share(0, 1, 2, true, true);
    share(1, 1, 4, false, true);
    share(2, 0, 1, true, true); /* what the others leave */
    share(JOBS_MAX - 1, 1, 4, true, true);
    assert_int_equal(admit_share(3), 0);
    share(JOBS_MAX - 1, 1, 2, true, false);
    assert_int_equal(admit_share(3), 0);
    share(JOBS_MAX - 1, 1, 2, true, true);
    assert_int_equal(admit_share(3), BY_ELIMIT);
    assert_string_equal(rig.problem.text,
                        "job 8: link x0 - x1: a share of 1/2 is requested, and 1/4 is left (job 1 holds 1/2, "
                        "job 2 holds 1/4): a share of 1/4 would fit");
    share(1, 1, 2, false, true);
    share(JOBS_MAX - 1, 1, 1000, false, true);
    assert_int_equal(admit_share(3), BY_ELIMIT);
    assert_string_equal(
        rig.problem.text,
        "job 8: link x0 - x1: a share of 1/1000 is requested, and 0 is left (job 1 holds 1/2, "
        "job 2 holds 1/2): end a job");
    assert_int_equal(admit_share(1), 0);
    share(JOBS_MAX - 1, 0, 1, true, true);
    assert_int_equal(admit_share(3), 0);
    share(0, INT64_C(1) << 61, (INT64_C(1) << 61) + 1, true, false);
    share(1, 1, (INT64_C(1) << 61) - 1, true, false);
    share(JOBS_MAX - 1, 1, 4, false, true);
    assert_int_equal(admit_share(2), 0);
    share(JOBS_MAX - 1, 1, 4, true, false);
    assert_int_equal(admit_share(2), BY_ERANGE);
    assert_string_equal(rig.problem.text, "job 8: the sum of the shares of link h0 - x0 exceeds 63 bits: use "
                                          "simpler fractions");
    share(JOBS_MAX - 1, 0, 1, true, false); /* it adds nothing */
    assert_int_equal(admit_share(2), 0);
    close_rig();
}

static void the_switch_that_supports_fewest_shares_decides(void **state)
{
    (void)state;
    open_rig();
    for (unsigned i = 0; i < 6; i++)
        share(i, i == 2 ? 0 : 1, 100, false, false);
    share(JOBS_MAX - 1, 1, 4, true, true);
    for (uint32_t n = H0; n <= H1; n++)
        rig.limits[n].shares = 1; /* not of hosts */
    rig.limits[X0].shares = 9;
    rig.limits[X1].shares = 6;
    assert_int_equal(admit_share(6), 0);
    rig.limits[X1].shares = 5;
    assert_int_equal(admit_share(6), BY_ELIMIT);
    assert_string_equal(rig.problem.text,
                        "job 8: no share is left on x1, which supports 5 (held by job 1, job 2, job 4, job 5 "
                        "and 1 more): end a job, or create this one without --share");
    assert_int_equal(admit_share(5), 0);
    rig.limits[X1].shares = 4;
    assert_int_equal(admit_share(5), BY_ELIMIT);
    assert_non_null(strstr(rig.problem.text, "(held by job 1, job 2, job 4, job 5): end a job"));
    rig.limits[X0].shares = 1; /* the first switch is named */
    assert_int_equal(admit_share(1), BY_ELIMIT);
    assert_non_null(strstr(rig.problem.text, "on x0, which supports 1 (held by job 1): end a job"));
    share(JOBS_MAX - 1, 0, 1, true, true);
    assert_int_equal(admit_share(6), 0);
    close_rig();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_range_with_room_is_taken),
        cmocka_unit_test(each_switch_has_its_own_range_and_hosts_have_none),
        cmocka_unit_test(a_refusal_names_the_largest_smaller_window_that_fits_everywhere),
        cmocka_unit_test(the_largest_holders_are_named_first_and_no_more_than_four),
        cmocka_unit_test(entries_of_all_jobs_fit_or_are_refused),
        cmocka_unit_test(a_communicator_leaves_room_for_others_on_the_fullest_switch),
        cmocka_unit_test(a_switch_needs_a_port_for_each_link_and_room_for_a_chunk),
        cmocka_unit_test(the_shares_of_a_link_are_at_most_the_whole),
        cmocka_unit_test(the_switch_that_supports_fewest_shares_decides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What identifies tables: images of one lowering have one cookie, and any difference that matters
 * to packets gives another. And the limits of a job's window, slots and plans. */
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
#include "tests/unit/control/tables/bench.h"

#define NODES "h0 h1 h2 h3 sw0* sw1*"
#define LINKS "h0-sw0 h1-sw0 h2-sw0 h3-sw0 h0-sw1 h1-sw1 h2-sw1 h3-sw1"
#define TREE  "10 sw0: sw0>h0 sw0>h1 sw0>h2 sw0>h3"
#define OTHER "10 sw1: sw1>h0 sw1>h1 sw1>h2 sw1>h3"

static const char *const one[] = {TREE, NULL};
static const char *const two[] = {TREE, OTHER, NULL};

/* What one lowering is made of. */
struct cookie_input {
    const char *nodes, *links;
    const char *const *trees;
    unsigned collective;
    const char *root;
    uint32_t window; /* of the job */
    struct by_lower_options options;
    uint16_t job, gen;
};

static const struct cookie_input usual = {
    .nodes = NODES, .links = LINKS, .trees = one, .collective = BY_COLLECTIVE_ALLREDUCE, .job = 3};

/* Lowers it. Returns the error. On success the caller frees both. */
static int lower(const struct cookie_input *input, struct by_topology **topology,
                 struct by_lowering **lowering, struct by_problem *problem)
{
    struct by_plan *plan;
    struct by_lower_job job = {
        .job = input->job, .gen = input->gen, .window = input->window, .plan_count = 1};
    int error;

    *topology = bench_topology(input->nodes, input->links);
    *lowering = NULL;
    plan = bench_plan(*topology, input->collective, input->root, input->trees);
    job.plans = (const struct by_plan *const *)&plan;
    error = by_lower(*topology, &job, 1, &input->options, lowering, problem);
    bench_plan_free(plan);
    if (error != 0)
        by_topology_free(*topology);
    return error;
}

/* The cookie of all images, which must be the same in each. */
static uint64_t cookie_of(const struct cookie_input *input)
{
    struct by_topology *topology;
    struct by_lowering *lowering;
    struct by_problem problem = {0};
    struct bench_images images;
    uint64_t cookie = 0;

    if (lower(input, &topology, &lowering, &problem) != 0)
        fail_msg("%s", problem.text);
    images = bench_images(lowering);
    for (uint32_t node = 0; node < images.count; node++) {
        struct by_image_header header;

        by_image_header(images.bytes[node], &header);
        assert_int_not_equal(header.cookie, 0);
        if (node > 0)
            assert_true(header.cookie == cookie);
        cookie = header.cookie;
    }
    bench_images_free(&images);
    by_lowering_free(lowering);
    by_topology_free(topology);
    return cookie;
}

static void tables_that_differ_have_different_cookies(void **state)
{
    static const char *const moved[] = {OTHER, NULL};
    static const char *const turned[] = {"10 h0: h0>sw0 sw0>h1 sw0>h2 sw0>h3", NULL};
    struct cookie_input other[] = {usual, usual, usual, usual, usual, usual, usual, usual,
                                   usual, usual, usual, usual, usual, usual, usual};
    enum { COUNT = sizeof(other) / sizeof(other[0]) };
    uint64_t cookies[COUNT];

    (void)state;
    other[1].nodes = "h0 h1 h2 h3 sw0* sw9*"; /* another name, of a switch that no tree uses */
    other[1].links = "h0-sw0 h1-sw0 h2-sw0 h3-sw0 h0-sw9 h1-sw9 h2-sw9 h3-sw9";
    other[2].trees = two;
    other[3].trees = moved;
    other[4].trees = turned;
    other[5].collective = BY_COLLECTIVE_BARRIER;
    other[6].window = 64;
    other[7].options.window = 64;
    other[8].options.mtu = 9000;
    other[9].options.det = 1;
    other[10].options.gen = 2;
    other[11].gen = 9;
    other[12].job = 4;
    other[13].links = "h0-sw0 h1-sw0 h2-sw0 h0-sw1 h3-sw0 h1-sw1 h2-sw1 h3-sw1"; /* another cable */
    other[14].window = 32;
    for (unsigned i = 0; i < COUNT; i++) {
        cookies[i] = cookie_of(&other[i]);
        for (unsigned j = 0; j < i; j++)
            if (cookies[i] == cookies[j])
                fail_msg("%u and %u have the same cookie", i, j);
    }
    assert_true(cookie_of(&usual) == cookies[0]);
}

static void a_job_with_its_own_window_has_a_power_of_two(void **state)
{
    struct by_topology *topology;
    struct by_lowering *lowering;
    static const uint32_t refused[] = {3, 48, 4095, 8192, 12288, UINT32_C(1) << 31};
    static const uint32_t taken[] = {1, 2, 64, 4096};

    (void)state;
    for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct by_problem problem = {0};
        struct cookie_input input = usual;
        char text[100];

        input.window = refused[i];
        snprintf(text, sizeof(text), "job 3: a window of %u slots: it must be a power of two, at most 4096",
                 refused[i]);
        assert_int_equal(lower(&input, &topology, &lowering, &problem), BY_EINVAL);
        assert_string_equal(problem.text, text);
    }
    for (unsigned i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        struct by_problem problem = {0};
        struct cookie_input input = usual;

        input.window = taken[i];
        assert_int_equal(lower(&input, &topology, &lowering, &problem), 0);
        assert_int_equal(lowering->trees[0].window, taken[i]);
        assert_int_equal(lowering->slots, taken[i]);
        by_lowering_free(lowering);
        by_topology_free(topology);
    }
}

static void an_mtu_holds_headers_and_a_cache_line_and_fits_an_ip_packet(void **state)
{
    static const struct {
        uint32_t mtu;
        int error;
    } rows[] = {{1, BY_EINVAL}, {131, BY_EINVAL}, {132, 0}, {65535, 0}, {65536, BY_EINVAL}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_topology *topology;
        struct by_lowering *lowering;
        struct by_problem problem = {0};
        struct cookie_input input = usual;
        char text[100];

        input.options.mtu = rows[i].mtu;
        assert_int_equal(lower(&input, &topology, &lowering, &problem), rows[i].error);
        if (rows[i].error != 0) {
            snprintf(text, sizeof(text), "an MTU of %u: it must be between 132 (headers", rows[i].mtu);
            assert_non_null(strstr(problem.text, text));
            continue;
        }
        assert_int_equal(lowering->mtu, rows[i].mtu);
        by_lowering_free(lowering);
        by_topology_free(topology);
    }
}

static void a_job_has_a_number(void **state)
{
    struct by_topology *topology;
    struct by_lowering *lowering;
    struct by_problem problem = {0};
    struct cookie_input input = usual;

    (void)state;
    input.job = 0;
    assert_int_equal(lower(&input, &topology, &lowering, &problem), BY_EINVAL);
    input.job = BY_JOBS_MAX;
    assert_int_equal(lower(&input, &topology, &lowering, &problem), BY_EINVAL);
    input.job = BY_JOBS_MAX - 1;
    assert_int_equal(lower(&input, &topology, &lowering, &problem), 0);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

/* Two trees at a switch: two slots are one for each, and one is too few. */
static void as_many_slots_as_trees_are_enough(void **state)
{
    static const char *const trees[] = {TREE, "10 sw0: sw0>h0 sw0>h1 sw0>h2 sw0>x0>h3", NULL};
    struct by_topology *topology;
    struct by_lowering *lowering;
    struct by_problem problem = {0};
    struct cookie_input input = usual;

    (void)state;
    input.nodes = "h0 h1 h2 h3 sw0* sw1* x0";
    input.links = LINKS " sw0-x0 x0-h3";
    input.trees = trees;
    input.options.slots = 2;
    assert_int_equal(lower(&input, &topology, &lowering, &problem), 0);
    assert_int_equal(lowering->window, 1);
    assert_int_equal(lowering->slots, 2);
    by_lowering_free(lowering);
    by_topology_free(topology);
    input.options.slots = 1;
    assert_int_equal(lower(&input, &topology, &lowering, &problem), BY_ELIMIT);
    assert_non_null(strstr(problem.text, "'sw0' is in 2 trees and has 1 slots"));
    input.trees = one;
    assert_int_equal(lower(&input, &topology, &lowering, &problem), 0);
    assert_int_equal(lowering->window, 1);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

/* The message of a job with one plan twice. */
static void twice(unsigned collective, const char *root, const char *const *trees, const char *message)
{
    struct by_topology *topology = bench_topology(NODES, LINKS);
    const struct by_plan *plans[2];
    struct by_plan *plan = bench_plan(topology, collective, root, trees);
    struct by_lower_job job = {.job = 3, .plan_count = 2, .plans = plans};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};

    plans[0] = plans[1] = plan;
    assert_int_equal(by_lower(topology, &job, 1, &(struct by_lower_options){0}, &lowering, &problem),
                     BY_EINVAL);
    assert_string_equal(problem.text, message);
    bench_plan_free(plan);
    by_topology_free(topology);
}

static void one_plan_for_each_collective_and_root(void **state)
{
    static const char *const down[] = {"10 h0: h0>sw0 sw0>h1 sw0>h2 sw0>h3", NULL};
    static const char *const other[] = {"10 h1: h1>sw0 sw0>h0 sw0>h2 sw0>h3", NULL};

    (void)state;
    twice(BY_COLLECTIVE_ALLREDUCE, NULL, one, "job 3: two allreduce plans: give one");
    twice(BY_COLLECTIVE_BROADCAST, "h0", down, "job 3: two broadcast plans for the same root: give one");
    twice(BY_COLLECTIVE_BROADCAST, "h1", other, "job 3: two broadcast plans for the same root: give one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_that_differ_have_different_cookies),
        cmocka_unit_test(a_job_with_its_own_window_has_a_power_of_two),
        cmocka_unit_test(an_mtu_holds_headers_and_a_cache_line_and_fits_an_ip_packet),
        cmocka_unit_test(a_job_has_a_number),
        cmocka_unit_test(as_many_slots_as_trees_are_enough),
        cmocka_unit_test(one_plan_for_each_collective_and_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

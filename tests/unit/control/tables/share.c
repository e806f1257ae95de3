/* Shares of links in tables: which nodes get them, and the rates of cables. Single-threaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "offload/base/errors.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

static void switches_get_shares_and_rates_where_a_job_has_a_share_and_hosts_do_not(void **state)
{
    static const char *const trees[] = {"10 x: x>h0 x>h1", NULL};
    struct by_topology *topology = bench_topology("h0 h1 x*", "h0-x h1-x");
    struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    struct by_lower_job jobs[2] = {
        {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan},
        {.job = 2, .plan_count = 1, .plans = (const struct by_plan *const *)&plan}};
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(by_lower_share((struct by_fraction){1, 3}), 333333333);
    assert_int_equal(by_lower_share((struct by_fraction){1, 1}), BY_SHARE_ONE);
    assert_int_equal(by_lower_share((struct by_fraction){0, 1}), 0);
    assert_int_equal(by_lower_share((struct by_fraction){1, INT64_MAX}), 1);
    for (int shared = 0; shared < 2; shared++) {
        struct by_lowering *lowering;
        struct bench_images images;

        jobs[1].share = shared ? BY_SHARE_ONE / 4 : 0;
        assert_int_equal(by_lower(topology, jobs, 2, &(struct by_lower_options){0}, &lowering, &problem), 0);
        if (!shared) /* from h1 to x */
            topology->arcs[topology->links[1].arc_ab].capacity /= 5;
        images = bench_images(lowering);
        for (uint32_t node = 0; node < 3; node++) {
            struct by_image_job job;
            struct by_image_port port;
            int kept = shared && node == 2;

            by_image_job(images.bytes[node], 0, &job);
            assert_int_equal(job.share, 0);
            by_image_job(images.bytes[node], 1, &job);
            assert_int_equal(job.share, kept ? BY_SHARE_ONE / 4 : 0);
            by_image_port(images.bytes[node], 0, &port);
            assert_int_equal(port.rate_in, kept ? 10000000 : 0);
            assert_int_equal(port.rate_out, kept ? 10000000 : 0);
            if (node == 2)
                by_image_port(images.bytes[node], 1, &port);
            assert_int_equal(port.rate_in, kept ? 2000000 : 0);
            assert_int_equal(port.rate_out, kept ? 10000000 : 0);
        }
        bench_images_free(&images);
        by_lowering_free(lowering);
    }
    bench_plan_free(plan);
    by_topology_free(topology);
}

static void one_share_more_than_a_switch_keeps_is_refused_with_the_way_out(void **state)
{
    static const char *const trees[] = {"10 x: x>h0 x>h1", NULL};
    static struct by_lower_job jobs[BY_SHARES_MAX + 2];
    struct by_topology *topology = bench_topology("h0 h1 x*", "h0-x h1-x");
    struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    struct by_lowering *lowering;
    struct by_problem problem = {0};

    (void)state;
    for (uint32_t i = 0; i < BY_SHARES_MAX + 2; i++)
        jobs[i] = (struct by_lower_job){.job = (uint16_t)(1 + i),
                                        .plan_count = 1,
                                        .plans = (const struct by_plan *const *)&plan,
                                        .window = 4,
                                        .share = i == 1 ? 0 : 1000};
    assert_int_equal(
        by_lower(topology, jobs, BY_SHARES_MAX + 1, &(struct by_lower_options){0}, &lowering, &problem), 0);
    by_lowering_free(lowering);
    assert_int_equal(
        by_lower(topology, jobs, BY_SHARES_MAX + 2, &(struct by_lower_options){0}, &lowering, &problem),
        BY_ELIMIT);
    assert_string_equal(problem.text, "job 66: 64 earlier jobs have a share, and a switch supports no more: "
                                      "remove the share of one job");
    bench_plan_free(plan);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switches_get_shares_and_rates_where_a_job_has_a_share_and_hosts_do_not),
        cmocka_unit_test(one_share_more_than_a_switch_keeps_is_refused_with_the_way_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

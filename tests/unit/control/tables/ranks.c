/* Jobs on some of the compute nodes: tables of several jobs on one fabric, walked hop by hop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/members.h"
#include "control/fabric/preset/preset.h"
#include "control/planner/planner.h"
#include "control/tables/traffic.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

/* Two leaves with three hosts each, and one spine. */
static struct by_topology *fabric(void)
{
    return bench_topology("h0 h1 h2 h3 h4 h5 leaf0* leaf1* spine0*",
                          "h0-leaf0 h1-leaf0 h2-leaf0 h3-leaf1 h4-leaf1 h5-leaf1 leaf0-spine0 leaf1-spine0");
}

/* A ring of hosts: those between two ranks must forward. */
static struct by_topology *ring(void)
{
    struct by_topology *topology = bench_topology("h0 h1 h2 h3 h4", "h0-h1 h1-h2 h2-h3 h3-h4 h4-h0");

    topology->nodes[1].forward = topology->nodes[4].forward = true;
    return topology;
}

static struct by_plan *plan_for(const struct by_topology *topology, const char *ranks, unsigned collective)
{
    struct by_plan_options options = {.collective = collective, .root = -1, .in_network = true};
    struct by_problem problem = {0};
    struct by_plan *plan = NULL;
    bool *member = NULL;

    if (ranks && by_members_parse(ranks, strlen(ranks), topology, &member, &problem) != 0)
        fail_msg("%s", problem.text);
    options.member = member;
    if (by_plan_make(topology, &options, &plan, &problem) != 0)
        fail_msg("%s: %s", ranks ? ranks : "all", problem.text);
    free(member);
    return plan;
}

struct jobs {
    struct by_plan *plans[3];
    const struct by_plan *each[3];
    struct by_lower_job jobs[3];
    uint32_t count;
};

/* Makes jobs 1, 2, ... with one allgather each, on the listed ranks. */
static void jobs_make(struct jobs *jobs, const struct by_topology *topology, const char *const *ranks)
{
    *jobs = (struct jobs){.count = 0};
    for (; ranks[jobs->count]; jobs->count++) {
        uint32_t i = jobs->count;

        jobs->plans[i] = plan_for(topology, ranks[i], BY_COLLECTIVE_ALLGATHER);
        jobs->each[i] = jobs->plans[i];
        jobs->jobs[i] =
            (struct by_lower_job){.job = (uint16_t)(i + 1), .plan_count = 1, .plans = &jobs->each[i]};
    }
}

static void jobs_free(struct jobs *jobs)
{
    for (uint32_t i = 0; i < jobs->count; i++)
        by_plan_free(jobs->plans[i]);
}

static struct by_lowering *lowered(const struct by_topology *topology, const struct jobs *jobs)
{
    struct by_lower_options options = {0};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};

    if (by_lower(topology, jobs->jobs, jobs->count, &options, &lowering, &problem) != 0)
        fail_msg("%s", problem.text);
    return lowering;
}

static uint16_t rank_in(const struct bench_images *images, uint32_t node, uint32_t job)
{
    struct by_image_job record;

    by_image_job(images->bytes[node], job, &record);
    return record.rank;
}

static void each_job_has_its_own_ranks_in_the_order_of_the_fabric(void **state)
{
    static const char *const ranks[] = {"h3,h0,h4", "h5,h1", "h0,h1,h2,h3,h4,h5", NULL};
    static const uint16_t expected[3][6] = {
        {0, BY_RANK_NONE, BY_RANK_NONE, 1, 2, BY_RANK_NONE},
        {BY_RANK_NONE, 0, BY_RANK_NONE, BY_RANK_NONE, BY_RANK_NONE, 1},
        {0, 1, 2, 3, 4, 5},
    };
    struct by_topology *topology = fabric();
    struct by_lowering *lowering;
    struct bench_images images;
    struct jobs jobs;

    (void)state;
    jobs_make(&jobs, topology, ranks);
    lowering = lowered(topology, &jobs);
    images = bench_images(lowering);
    assert_true(bench_walk(&images) > 0);
    for (uint32_t job = 0; job < 3; job++) {
        struct by_image_job record;

        by_image_job(images.bytes[0], job, &record);
        assert_int_equal(record.rank_count, job == 0 ? 3 : job == 1 ? 2 : 6);
        for (uint32_t node = 0; node < 6; node++)
            assert_int_equal(rank_in(&images, node, job), expected[job][node]);
    }
    /* A host identifies the others by their ranks in its first job. */
    for (uint32_t host = 0; host < 6; host++)
        for (uint32_t node = 0; node < 6; node++) {
            const uint16_t *first = expected[host == 1 || host == 5 ? 1 : host == 2 ? 2 : 0];
            struct by_image_name name;

            by_image_name(images.bytes[host], node, &name);
            assert_int_equal(name.rank, first[node]);
        }
    bench_images_free(&images);
    by_lowering_free(lowering);
    jobs_free(&jobs);
    by_topology_free(topology);
}

static void predicted_bytes_are_those_of_the_ranks_alone(void **state)
{
    static const char *const ranks[] = {"h0,h1", NULL};
    struct by_topology *topology = fabric();
    struct by_traffic_arc *arcs = by_alloc(2 * (size_t)topology->link_count, sizeof(*arcs));
    struct by_traffic_call call = {.job = 1, .collective = BY_COLLECTIVE_ALLGATHER, .shard_bytes = 1408};
    struct by_lowering *lowering;
    struct jobs jobs;

    (void)state;
    jobs_make(&jobs, topology, ranks);
    lowering = lowered(topology, &jobs);
    assert_int_equal(by_traffic_add(lowering, &call, arcs), 0);
    for (uint32_t link = 0; link < topology->link_count; link++)
        assert_int_equal(arcs[2 * link].bytes > 0, link < 2);
    /* h0's shard up, h1's down, each with a header; and a header for each packet in the other
     * direction. */
    assert_int_equal(arcs[0].bytes, 1408 + 2 * BY_LOWER_HEADER_BYTES);
    assert_int_equal(arcs[1].bytes, 1408 + 2 * BY_LOWER_HEADER_BYTES);
    by_lowering_free(lowering);
    jobs_free(&jobs);
    free(arcs);
    by_topology_free(topology);
}

static void a_compute_node_that_forwards_is_a_switch(void **state)
{
    static const char *const ranks[] = {"h0,h2,h3", NULL};
    struct by_topology *topology = ring();
    struct by_lowering *lowering;
    struct bench_images images;
    struct by_image_header header;
    struct jobs jobs;

    (void)state;
    jobs_make(&jobs, topology, ranks);
    lowering = lowered(topology, &jobs);
    images = bench_images(lowering);
    assert_true(bench_walk(&images) > 0);
    for (uint32_t node = 0; node < 5; node++) {
        by_image_header(images.bytes[node], &header);
        assert_int_equal(header.kind, node == 1 || node == 4 ? BY_NODE_SWITCH : BY_NODE_HOST);
        assert_int_equal(header.count[BY_SECTION_RELAY] > 0, node == 1 || node == 4);
    }
    bench_images_free(&images);
    by_lowering_free(lowering);
    jobs_free(&jobs);
    by_topology_free(topology);
}

static void refuse(const struct by_topology *topology, const struct jobs *jobs, const char *says)
{
    struct by_lower_options options = {0};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};

    assert_true(by_lower(topology, jobs->jobs, jobs->count, &options, &lowering, &problem) < 0);
    assert_null(lowering);
    if (!strstr(problem.text, says))
        fail_msg("'%s' does not say '%s'", problem.text, says);
}

static void jobs_that_do_not_fit_together_are_refused(void **state)
{
    static const char *const both[] = {"h0,h2,h3", "h0,h1", NULL}, *const mixed[] = {"h0,h2", "h0,h1", NULL};
    struct by_topology *topology = ring(), *leaves = fabric();
    struct jobs jobs;

    (void)state;
    jobs_make(&jobs, topology, both);
    refuse(topology, &jobs, "'h1' would forward for job 1 and is a rank of job 2");
    jobs_free(&jobs);
    jobs_make(&jobs, leaves, mixed);
    jobs.jobs[0].plan_count = 2; /* both plans in one job */
    jobs.count = 1;
    refuse(leaves, &jobs, "'h1' is a rank in some of its plans and not in others");
    jobs.count = 2;
    jobs_free(&jobs);
    by_topology_free(topology);
    by_topology_free(leaves);
}

/* A compute node forwards if the topology lets it, and it is no rank of the job. */
static void a_path_passes_a_compute_node_only_if_it_may_forward_and_is_no_rank(void **state)
{
    static const char *const trees[] = {"1 h0: h0>h1>h2", NULL};
    static const char *const spanning[] = {"1 h0: h0>h1>h2 h0>h1", NULL};

    (void)state;
    for (unsigned rank = 0; rank < 2; rank++)
        for (unsigned forward = 0; forward < 2; forward++) {
            struct by_topology *topology = bench_topology("h0 h1 h2", "h0-h1 h1-h2");
            struct by_plan *plan =
                bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, rank ? spanning : trees);
            bool member[] = {true, rank, true};
            struct by_lower_job job = {
                .job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
            struct by_lowering *lowering = NULL;
            struct by_problem problem = {0};
            bool passes = forward && !rank;

            plan->member = member;
            plan->compute_count = 2 + rank;
            topology->nodes[1].forward = forward;
            assert_int_equal(by_lower(topology, &job, 1, &(struct by_lower_options){0}, &lowering, &problem),
                             passes ? 0 : BY_EUNSUPPORTED);
            if (passes)
                by_lowering_free(lowering);
            else
                assert_non_null(strstr(problem.text, "passes the compute node 'h1', and hosts do not"));
            bench_plan_free(plan);
            by_topology_free(topology);
        }
}

/* Lowers a job without plans on a ring; returns the error. */
static int lower_ring(const char *hosts, struct by_problem *problem)
{
    const char *texts[BY_PRESET_PARAMETERS_MAX] = {hosts};
    struct by_lower_options options = {0};
    struct by_lower_job job = {.job = 1};
    struct by_topology *topology = NULL;
    struct by_lowering *lowering = NULL;
    int error;

    assert_int_equal(by_preset_make(by_preset_find("ring"), texts, NULL, &topology, problem), 0);
    error = by_lower(topology, &job, 1, &options, &lowering, problem);
    assert_null(lowering);
    by_topology_free(topology);
    return error;
}

/* Every rank is a node, so a fabric of at most 65,534 nodes has no rank beyond 16 bits either. */
static void a_fabric_with_more_nodes_than_16_bits_number_is_refused(void **state)
{
    struct by_topology *topology;
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(lower_ring("65535", &problem), BY_ELIMIT);
    assert_non_null(strstr(problem.text, "the fabric has 65535 nodes; a table can name at most 65534"));
    assert_int_equal(lower_ring("102400", &problem), BY_ELIMIT);
    assert_non_null(strstr(problem.text, "the fabric has 102400 nodes; a table can name at most 65534"));
    topology = bench_topology("h0 h1", "h0-h1");
    topology->link_count = BY_ADDRESS_LINKS_MAX + 1; /* the others are not read */
    assert_int_equal(by_lower(topology, &(struct by_lower_job){.job = 1}, 1, &(struct by_lower_options){0},
                              &lowering, &problem),
                     BY_ELIMIT);
    assert_non_null(strstr(problem.text, "the fabric has 65537 links; the address range 198.18.0.0/15 "
                                         "holds 65536: merge parallel links"));
    topology->link_count = 1;
    by_topology_free(topology);
    assert_int_equal(lower_ring("65534", &problem), BY_EINVAL); /* no limit, but no plan */
    assert_non_null(strstr(problem.text, "has no plan"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_job_has_its_own_ranks_in_the_order_of_the_fabric),
        cmocka_unit_test(predicted_bytes_are_those_of_the_ranks_alone),
        cmocka_unit_test(a_compute_node_that_forwards_is_a_switch),
        cmocka_unit_test(a_path_passes_a_compute_node_only_if_it_may_forward_and_is_no_rank),
        cmocka_unit_test(jobs_that_do_not_fit_together_are_refused),
        cmocka_unit_test(a_fabric_with_more_nodes_than_16_bits_number_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

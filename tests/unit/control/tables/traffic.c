/* Predicted bytes of calls on small fabrics, compared with figures calculated by hand; dumps and
 * differences of images. Single-threaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/tables/dump.h"
#include "control/tables/traffic.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

#define HEADER BY_LOWER_HEADER_BYTES

static struct by_lowering *lower_one(const struct by_topology *topology, unsigned collective,
                                     const char *root, const char *const *trees, uint32_t window)
{
    struct by_plan *plan = bench_plan(topology, collective, root, trees);
    struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};

    if (by_lower(topology, &job, 1, &(struct by_lower_options){.window = window}, &lowering, &problem) != 0)
        fail_msg("%s", problem.text);
    bench_plan_free(plan);
    return lowering;
}

static struct by_topology *star(void)
{
    return bench_topology("h0 h1 h2 sw0*", "h0-sw0 h1-sw0 sw0-h2");
}

static const char *const common[] = {"10 sw0: sw0>h0 sw0>h1 sw0>h2", NULL};

static void an_allreduce_on_a_star_crosses_each_cable_once_each_way(void **state)
{
    struct by_topology *topology = star();
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, common, 0);
    struct by_traffic_arc arcs[6] = {0};
    struct by_traffic_call call = {
        .job = 1, .collective = BY_COLLECTIVE_ALLREDUCE, .shard_bytes = 1408 * 10 + 4};

    (void)state;
    assert_int_equal(by_traffic_add(lowering, &call, arcs), 0);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(arcs[i].packets, 11);
        assert_int_equal(arcs[i].bytes, 1408 * 10 + 4 + 11 * HEADER);
    }
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void a_reduce_sends_data_to_the_root_and_bare_headers_back(void **state)
{
    struct by_topology *topology = star();
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, common, 0);
    struct by_traffic_arc arcs[6] = {0};
    struct by_traffic_call call = {
        .job = 1, .collective = BY_COLLECTIVE_REDUCE, .root = 2, .shard_bytes = 1408 * 2};

    (void)state;
    assert_int_equal(by_traffic_add(lowering, &call, arcs), 0);
    assert_int_equal(arcs[0].bytes, 1408 * 2 + 2 * HEADER); /* h0 -> sw0 */
    assert_int_equal(arcs[1].bytes, 2 * HEADER);            /* sw0 -> h0 */
    assert_int_equal(arcs[4].bytes, 1408 * 2 + 2 * HEADER); /* sw0 -> h2 */
    assert_int_equal(arcs[5].bytes, 1408 * 2 + 2 * HEADER); /* h2 -> sw0: the root's own part */
    by_lowering_free(lowering);
    by_topology_free(topology);
}

/* Data pass a switch only on their way from or to a host that sends or receives them. */
static void a_switch_between_others_gets_data_for_its_hosts_alone(void **state)
{
    static const char *const trees[] = {"10 sw0: sw0>h0 sw0>sw1 sw1>h1 sw1>h2", NULL};
    static const struct {
        unsigned collective;
        int down, up; /* whether data pass the link between the switches */
    } rows[] = {{BY_COLLECTIVE_REDUCE, 0, 1}, {BY_COLLECTIVE_BROADCAST, 1, 0}};
    struct by_topology *topology = bench_topology("h0 h1 h2 sw0* sw1*", "h0-sw0 sw0-sw1 sw1-h1 sw1-h2");
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees, 0);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_traffic_arc arcs[8] = {0};
        struct by_traffic_call call = {.job = 1, .collective = rows[i].collective, .shard_bytes = 1408};

        assert_int_equal(by_traffic_add(lowering, &call, arcs), 0);
        assert_int_equal(arcs[2].bytes, HEADER + (rows[i].down ? 1408 : 0));
        assert_int_equal(arcs[3].bytes, HEADER + (rows[i].up ? 1408 : 0));
    }
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void an_allgather_without_trees_of_its_own_uses_those_of_allreduce(void **state)
{
    struct by_topology *topology = star();
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, common, 0);
    struct by_traffic_arc arcs[6] = {0};
    struct by_traffic_call call = {.job = 1, .collective = BY_COLLECTIVE_ALLGATHER, .shard_bytes = 1408};

    (void)state;
    assert_int_equal(by_traffic_add(lowering, &call, arcs), 0);
    assert_int_equal(arcs[0].bytes, 1408 + 3 * HEADER);     /* one shard up, credits for three shards */
    assert_int_equal(arcs[1].bytes, 2 * 1408 + 3 * HEADER); /* the other hosts' shards down */
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void a_broadcast_from_a_host_costs_its_cable_one_copy(void **state)
{
    static const char *const trees[] = {"10 h0: h0>sw0 sw0>h1 sw0>h2", NULL};
    struct by_topology *topology = star();
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_BROADCAST, "h0", trees, 0);
    struct by_traffic_arc arcs[6] = {0};
    struct by_traffic_call call = {
        .job = 1, .collective = BY_COLLECTIVE_BROADCAST, .root = 0, .shard_bytes = 1408};

    (void)state;
    assert_int_equal(by_traffic_add(lowering, &call, arcs), 0);
    assert_int_equal(arcs[0].bytes, 1408 + HEADER);
    assert_int_equal(arcs[1].bytes, HEADER);
    assert_int_equal(arcs[2].bytes, HEADER);
    assert_int_equal(arcs[3].bytes, 1408 + HEADER);
    call.root = 1;
    assert_int_equal(by_traffic_add(lowering, &call, arcs), BY_EUNSUPPORTED);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void a_call_is_cut_over_trees_at_cache_lines(void **state)
{
    static const char *const trees[] = {"1 h0: h0>h1", "2 h1: h1>h0", NULL};
    struct by_topology *topology = bench_topology("h0 h1", "h0-h1");
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees, 0);
    struct by_traffic_arc arcs[2] = {0};
    struct by_traffic_call call = {.job = 1, .collective = BY_COLLECTIVE_ALLREDUCE, .shard_bytes = 4300};

    (void)state;
    /* 4300 / 3 = 1433 -> 1472 on the first tree: two chunks; 2828 on the second: three. */
    assert_int_equal(by_traffic_add(lowering, &call, arcs), 0);
    assert_int_equal(arcs[0].packets, 5);
    assert_int_equal(arcs[0].bytes, 4300 + 5 * HEADER);
    assert_int_equal(arcs[1].bytes, 4300 + 5 * HEADER);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

/* Trees on cables of their own, with shares of 1, 2 and 3, or of 1, 1000 and 1000: whole cache
 * lines, at most the rest, and one for the first tree. */
static void each_tree_carries_its_share(void **state)
{
    static const char *const trees[][4] = {
        {"1 h0: h0>x0>h1", "2 h0: h0>x1>h1", "3 h0: h0>x2>h1", NULL},
        {"1 h0: h0>x0>h1", "1000 h0: h0>x1>h1", "1000 h0: h0>x2>h1", NULL},
    };
    static const struct {
        uint32_t trees;
        uint64_t bytes, parts[3];
    } rows[] = {
        {0, 6400, {1088, 2112, 3200}}, {0, 100, {64, 0, 36}},
        {0, 10, {10, 0, 0}},           {0, 64, {64, 0, 0}},
        {0, 384, {64, 128, 192}},      {0, 385, {64, 128, 193}},
        {0, 390, {128, 128, 134}},     {0, 1408 * 12, {2816, 5632, 8448}},
        {1, 100, {64, 0, 36}},         {1, 6400, {64, 3200, 3136}},
    };
    struct by_topology *topology = bench_topology("h0 h1 x0 x1 x2", "h0-x0 x0-h1 h0-x1 x1-h1 h0-x2 x2-h1");

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_lowering *lowering =
            lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees[rows[i].trees], 0);
        struct by_traffic_arc arcs[12] = {0};
        struct by_traffic_call call = {
            .job = 1, .collective = BY_COLLECTIVE_ALLREDUCE, .shard_bytes = rows[i].bytes};

        assert_int_equal(by_traffic_add(lowering, &call, arcs), 0);
        for (unsigned arc = 0; arc < 12; arc++) {
            uint64_t part = rows[i].parts[arc / 4];

            assert_int_equal(arcs[arc].packets, (part + 1407) / 1408);
            assert_int_equal(arcs[arc].bytes, part + (part + 1407) / 1408 * HEADER);
        }
        by_lowering_free(lowering);
    }
    by_topology_free(topology);
}

/* Each host sends its own shard up, and credits for the others'; an empty shard costs nothing. */
static void shards_of_unequal_size_cost_what_they_hold(void **state)
{
    static const uint64_t shards[] = {0, 2 * 1408, 100};
    static const uint64_t packets[] = {0, 2, 1};
    struct by_topology *topology = star();
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, common, 0);
    struct by_traffic_arc arcs[6] = {0};
    struct by_traffic_call call = {.job = 1, .collective = BY_COLLECTIVE_ALLGATHER, .shards = shards};
    static const unsigned up[] = {0, 2, 5}, down[] = {1, 3, 4}; /* arcs of the hosts */

    (void)state;
    assert_int_equal(by_traffic_add(lowering, &call, arcs), 0);
    for (unsigned host = 0; host < 3; host++) {
        assert_int_equal(arcs[up[host]].bytes, shards[host] + 3 * HEADER);
        assert_int_equal(arcs[down[host]].bytes, 2 * 1408 + 100 - shards[host] + 3 * HEADER);
        assert_int_equal(arcs[up[host]].packets, packets[0] + packets[1] + packets[2]);
    }
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void a_barrier_is_one_empty_chunk(void **state)
{
    struct by_topology *topology = star();
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, common, 0);
    struct by_traffic_arc arcs[6] = {0};
    struct by_traffic_call call = {.job = 1, .collective = BY_COLLECTIVE_BARRIER};

    (void)state;
    assert_int_equal(by_traffic_add(lowering, &call, arcs), 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(arcs[i].bytes, HEADER);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

/* The trees of allreduce are the first ones, whatever the order of the plans and of the jobs. */
static void a_call_off_the_first_tree_sends_its_word_there(void **state)
{
    static const char *const first[] = {"1 h0: h0>h1", NULL}, *const own[] = {"1 h1: h1>h0", NULL};
    static const char *const other[] = {"1 h0: h0>x>h1", NULL};

    (void)state;
    for (unsigned row = 0; row < 4; row++) {
        bool swapped = row & 1;
        uint16_t number = row & 2 ? 3 : 1; /* after or before the other job */
        struct by_topology *topology = bench_topology("h0 h1 x", "h0-h1 h0-x x-h1");
        struct by_plan *plans[3] = {bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, first),
                                    bench_plan(topology, BY_COLLECTIVE_BROADCAST, "h1", own),
                                    bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, other)};
        const struct by_plan *job_plans[2] = {plans[swapped], plans[!swapped]}, *other_plan = plans[2];
        struct by_lower_job jobs[2] = {{.job = number, .plan_count = 2, .plans = job_plans},
                                       {.job = 2, .plan_count = 1, .plans = &other_plan}};
        struct by_lowering *lowering = NULL;
        struct by_problem problem = {0};
        struct by_traffic_arc arcs[6] = {0};
        struct by_traffic_call call = {
            .job = number, .collective = BY_COLLECTIVE_BROADCAST, .root = 1, .shard_bytes = 100};

        if (number > jobs[1].job) {
            struct by_lower_job job = jobs[0];

            jobs[0] = jobs[1];
            jobs[1] = job;
        }
        if (by_lower(topology, jobs, 2, &(struct by_lower_options){0}, &lowering, &problem) != 0)
            fail_msg("%s", problem.text);
        assert_int_equal(by_traffic_add(lowering, &call, arcs), 0);
        for (int i = 0; i < 2;
             i++) { /* data one way, acknowledgements the other; the empty packet both ways */
            assert_int_equal(arcs[i].packets, 2);
            assert_int_equal(arcs[i].bytes, (i == 1 ? 100 : 0) + 2 * HEADER);
        }
        memset(arcs, 0, sizeof(arcs));
        call = (struct by_traffic_call){.job = number, .collective = BY_COLLECTIVE_ALLREDUCE};
        assert_int_equal(by_traffic_add(lowering, &call, arcs), 0); /* an empty call is only that packet */
        assert_int_equal(arcs[0].bytes, HEADER);
        by_traffic_add_session(lowering, number, arcs);
        for (int i = 0; i < 2; i++) /* a nonce for each rank, and openings of its two trees */
            assert_int_equal(arcs[i].bytes, (2 + 2) * HEADER + 2 * 4);
        for (int i = 2; i < 6; i++)
            assert_int_equal(arcs[i].packets, 0);
        by_lowering_free(lowering);
        for (unsigned i = 0; i < 3; i++)
            bench_plan_free(plans[i]);
        by_topology_free(topology);
    }
}

/* One empty chunk on the first of its own trees, and the word on that of allreduce. */
static void a_barrier_with_trees_of_its_own_uses_the_first(void **state)
{
    static const char *const sums[] = {"1 h0: h0>h1", NULL};
    static const char *const own[] = {"1 h0: h0>x>h1", "2 h0: h0>y>h1", NULL};
    static const uint64_t packets[] = {1, 1, 1, 0, 0}; /* by link, each way */
    struct by_topology *topology = bench_topology("h0 h1 x y", "h0-h1 h0-x x-h1 h0-y y-h1");
    struct by_plan *plans[2] = {bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, sums),
                                bench_plan(topology, BY_COLLECTIVE_BARRIER, NULL, own)};
    struct by_lower_job job = {.job = 1, .plan_count = 2, .plans = (const struct by_plan *const *)plans};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};
    struct by_traffic_arc arcs[10] = {0};
    struct by_traffic_call call = {.job = 1, .collective = BY_COLLECTIVE_BARRIER};

    (void)state;
    if (by_lower(topology, &job, 1, &(struct by_lower_options){0}, &lowering, &problem) != 0)
        fail_msg("%s", problem.text);
    assert_int_equal(by_traffic_add(lowering, &call, arcs), 0);
    for (uint32_t arc = 0; arc < 10; arc++) {
        assert_int_equal(arcs[arc].packets, packets[arc / 2]);
        assert_int_equal(arcs[arc].bytes, packets[arc / 2] * HEADER);
    }
    by_lowering_free(lowering);
    bench_plan_free(plans[0]);
    bench_plan_free(plans[1]);
    by_topology_free(topology);
}

/* Both trees of a pair: data up on the one, and down on the other. */
static void a_pair_carries_data_up_and_down_on_its_own_trees(void **state)
{
    static const char *const trees[] = {"1 up h0: h0>x>h1", "1 down h0: h0>y>h1", NULL};
    static const uint64_t data[] = {0, 1, 0, 1, 1, 0, 1, 0}; /* by arc: up by x, down by y */
    struct by_topology *topology = bench_topology("h0 h1 x y", "h0-x x-h1 h0-y y-h1");
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees, 0);
    struct by_traffic_arc arcs[8] = {0};
    struct by_traffic_call call = {.job = 1, .collective = BY_COLLECTIVE_ALLREDUCE, .shard_bytes = 100};

    (void)state;
    assert_int_equal(by_traffic_add(lowering, &call, arcs), 0);
    for (uint32_t arc = 0; arc < 8; arc++) {
        assert_int_equal(arcs[arc].packets, 1);
        assert_int_equal(arcs[arc].bytes, HEADER + 100 * data[arc]);
    }
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void a_relayed_hop_counts_on_every_cable(void **state)
{
    static const char *const trees[] = {"1 h0: h0>x0>h1", NULL};
    struct by_topology *topology = bench_topology("h0 h1 x0", "h0-x0 h1-x0");
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees, 0);
    struct by_traffic_arc arcs[4] = {0};
    struct by_traffic_call call = {.job = 1, .collective = BY_COLLECTIVE_ALLREDUCE, .shard_bytes = 8};

    (void)state;
    assert_int_equal(by_traffic_add(lowering, &call, arcs), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(arcs[i].bytes, 8 + HEADER);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void a_dump_tells_every_record_and_a_difference_only_what_changed(void **state)
{
    struct by_topology *topology = star();
    struct by_lowering *a = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, common, 64);
    struct by_lowering *b = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, common, 128);
    struct bench_images x = bench_images(a), y = bench_images(b);
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    json_t *json = by_dump_json(x.bytes[3], x.size[3]);
    char ip[BY_ADDRESS_TEXT];

    (void)state;
    by_dump_text(x.bytes[3], x.size[3], stream);
    fclose(stream);
    assert_non_null(strstr(text, "switch sw0: node 3"));
    assert_non_null(strstr(text, "entry job 1 tree 0: slots 0+64, window 64"));
    assert_non_null(strstr(text, "root; children: node 0 by port 0 at 198.18.0.0:46247 (rank 0)"));
    free(text);
    stream = open_memstream(&text, &size);
    by_dump_text(x.bytes[0], x.size[0], stream);
    fclose(stream);
    assert_non_null(strstr(text, "allreduce"));
    assert_int_equal(json_array_size(json_object_get(json, "ports")), 3);
    assert_int_equal(by_dump_diff(x.bytes[3], x.bytes[3], NULL), 0);
    assert_string_equal(by_dump_ip(NULL, 0x0a000001, ip), "10.0.0.1");
    assert_string_equal(by_dump_ip(x.bytes[3], 0x0a000001, ip), "10.0.0.1");
    /* Header (cookie, slots) and entry, old and new. */
    assert_int_equal(by_dump_diff(x.bytes[3], y.bytes[3], NULL), 4);
    json_decref(json);
    free(text);
    bench_images_free(&x);
    bench_images_free(&y);
    by_lowering_free(a);
    by_lowering_free(b);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allreduce_on_a_star_crosses_each_cable_once_each_way),
        cmocka_unit_test(a_reduce_sends_data_to_the_root_and_bare_headers_back),
        cmocka_unit_test(an_allgather_without_trees_of_its_own_uses_those_of_allreduce),
        cmocka_unit_test(a_broadcast_from_a_host_costs_its_cable_one_copy),
        cmocka_unit_test(a_call_is_cut_over_trees_at_cache_lines),
        cmocka_unit_test(each_tree_carries_its_share),
        cmocka_unit_test(shards_of_unequal_size_cost_what_they_hold),
        cmocka_unit_test(a_barrier_is_one_empty_chunk),
        cmocka_unit_test(a_call_off_the_first_tree_sends_its_word_there),
        cmocka_unit_test(a_relayed_hop_counts_on_every_cable),
        cmocka_unit_test(a_dump_tells_every_record_and_a_difference_only_what_changed),
        cmocka_unit_test(a_barrier_with_trees_of_its_own_uses_the_first),
        cmocka_unit_test(a_pair_carries_data_up_and_down_on_its_own_trees),
        cmocka_unit_test(a_switch_between_others_gets_data_for_its_hosts_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

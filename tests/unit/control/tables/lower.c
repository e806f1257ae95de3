/*
 * Lowering: tables of small fabrics, validated like at a switch and walked like packets; shares,
 * windows, merging, limits, and plans that do not fit. Single-threaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/planner/planner.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

#define BIT(name) (1u << BY_COLLECTIVE_##name)

static const char *const star_allreduce[] = {"10 sw0: sw0>h0 sw0>h1 sw0>h2 sw0>h3", NULL};
static const char *const star_gather[] = {
    "10/4 h0: h0>sw0 sw0>h1 sw0>h2 sw0>h3", "10/4 h1: h1>sw0 sw0>h0 sw0>h2 sw0>h3",
    "10/4 h2: h2>sw0 sw0>h0 sw0>h1 sw0>h3", "10/4 h3: h3>sw0 sw0>h0 sw0>h1 sw0>h2", NULL};

static struct by_topology *star(void)
{
    return bench_topology("h0 h1 h2 h3 sw0*", "h0-sw0 h1-sw0 h2-sw0 h3-sw0");
}

/* Lowers plans of job 1 and frees them. Fails the test on an error. */
static struct by_lowering *lower_plans(const struct by_topology *topology, struct by_plan **plans,
                                       uint32_t count, const struct by_lower_options *options)
{
    struct by_lower_job job = {.job = 1, .plan_count = count, .plans = (const struct by_plan *const *)plans};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};

    if (by_lower(topology, &job, 1, options, &lowering, &problem) != 0)
        fail_msg("%s", problem.text);
    for (uint32_t i = 0; i < count; i++)
        bench_plan_free(plans[i]);
    return lowering;
}

static struct by_lowering *lower_one(const struct by_topology *topology, unsigned collective,
                                     const char *root, const char *const *trees)
{
    struct by_plan *plan = bench_plan(topology, collective, root, trees);

    return lower_plans(topology, &plan, 1, &(struct by_lower_options){0});
}

/* Lowers one plan that must be refused with `error`; the message must contain `words`. */
static void expect_refusal(const struct by_topology *topology, unsigned collective, const char *root,
                           const char *const *trees, const struct by_lower_options *options, int error,
                           const char *const *words)
{
    struct by_plan *plan = bench_plan(topology, collective, root, trees);
    struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};

    assert_int_equal(by_lower(topology, &job, 1, options, &lowering, &problem), error);
    assert_null(lowering);
    for (; *words != NULL; words++)
        if (strstr(problem.text, *words) == NULL)
            fail_msg("'%s' is not in: %s", *words, problem.text);
    bench_plan_free(plan);
}

/* Walks a lowering's images and frees them. Returns the number of hops. */
static uint32_t walk(const struct by_lowering *lowering)
{
    struct bench_images images = bench_images(lowering);
    uint32_t hops = bench_walk(&images);

    bench_images_free(&images);
    return hops;
}

static void a_star_sums_and_copies_at_its_switch(void **state)
{
    struct by_topology *topology = star();
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, star_allreduce);
    struct bench_images images = bench_images(lowering);
    struct by_image_header header;
    struct by_image_entry entry;
    struct by_image_leaf leaf;

    (void)state;
    assert_int_equal(bench_walk(&images), 4);
    by_image_header(images.bytes[4], &header);
    assert_string_equal(header.name, "sw0");
    assert_int_equal(header.count[BY_SECTION_ENTRY], 1);
    assert_int_equal(header.count[BY_SECTION_LEAF], 0);
    assert_int_equal(header.slot_count, BY_LOWER_WINDOW);
    by_image_entry(images.bytes[4], 0, &entry);
    assert_int_equal(entry.parent_node, BY_NODE_NONE);
    assert_int_equal(entry.nleaf, 4);
    assert_int_equal(entry.payload_max, 1408);
    by_image_leaf(images.bytes[2], 0, &leaf);
    assert_int_equal(leaf.parent_child, 2);
    assert_int_equal(leaf.owner, BY_RANK_NONE);
    /* No barrier was planned: it uses the trees of allreduce. */
    assert_int_equal(leaf.collectives, BIT(ALLREDUCE) | BIT(BARRIER));
    bench_images_free(&images);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void addresses_follow_the_order_of_links(void **state)
{
    struct by_topology *topology = star();
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, star_allreduce);
    struct bench_images images = bench_images(lowering);
    struct by_image_port port;
    const uint8_t mac[6] = {0x02, 0x62, 198, 18, 0, 5};

    (void)state;
    by_image_port(images.bytes[4], 2, &port); /* end b of link 2 */
    assert_string_equal(port.name, "p2");
    assert_int_equal(port.own_ip, 0xc6120005);
    assert_int_equal(port.peer_ip, 0xc6120004);
    assert_memory_equal(port.own_mac, mac, 6);
    assert_int_equal(port.peer_node, 2);
    by_image_port(images.bytes[2], 0, &port);
    assert_string_equal(port.name, "eth0");
    bench_images_free(&images);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void equal_plans_share_their_trees(void **state)
{
    struct by_topology *topology = star();
    struct by_plan *plans[3] = {bench_plan(topology, BY_COLLECTIVE_ALLGATHER, NULL, star_gather),
                                bench_plan(topology, BY_COLLECTIVE_REDUCE_SCATTER, NULL, star_gather),
                                bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, star_allreduce)};
    struct by_lowering *lowering = lower_plans(topology, plans, 3, &(struct by_lower_options){0});

    (void)state;
    assert_int_equal(lowering->tree_count, 5);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(lowering->trees[i].collectives, BIT(ALLGATHER) | BIT(REDUCE_SCATTER));
        assert_int_equal(lowering->trees[i].owner, i);
    }
    assert_int_equal(lowering->trees[4].owner, BY_RANK_NONE);
    assert_int_equal(lowering->note_count, 1);
    assert_int_equal(walk(lowering),
                     4 * (2 + 3) + 4); /* the root's own leaf, the switch and its three hosts */
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void a_host_that_is_root_adds_its_own_leaf_locally(void **state)
{
    static const char *const trees[] = {"10 h1: h1>sw0 sw0>h0 sw0>h2 sw0>h3", NULL};
    struct by_topology *topology = star();
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_REDUCE, "h1", trees);
    struct bench_images images = bench_images(lowering);
    struct by_image_entry entry;
    struct by_image_child child;
    struct by_image_leaf leaf;

    (void)state;
    assert_int_equal(bench_walk(&images), 5);
    by_image_entry(images.bytes[1], 0, &entry);
    assert_int_equal(entry.child_count, 2);
    assert_int_equal(entry.nleaf, 4);
    by_image_child(images.bytes[1], entry.first_child, &child);
    assert_int_equal(child.port, BY_PORT_LOCAL);
    assert_int_equal(child.rank, 1);
    by_image_leaf(images.bytes[1], 0, &leaf);
    assert_int_equal(leaf.parent_port, BY_PORT_LOCAL);
    assert_int_equal(leaf.owner, 1);
    bench_images_free(&images);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void a_leaf_spine_walks_through_two_levels(void **state)
{
    static const char *const trees[] = {
        "5 spine: spine>leaf0 spine>leaf1 leaf0>h0 leaf0>h1 leaf1>h2 leaf1>h3", NULL};
    struct by_topology *topology = bench_topology(
        "h0 h1 h2 h3 leaf0* leaf1* spine*", "h0-leaf0 h1-leaf0 h2-leaf1 h3-leaf1 leaf0-spine leaf1-spine");
    struct by_lowering *lowering;

    (void)state;
    /* In the bench's notation 'h' marks hosts; no switch here has an 'h'. */
    lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    assert_int_equal(walk(lowering), 6);
    assert_int_equal(lowering->relay_count, 0);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void a_spine_that_only_forwards_relays_both_ways(void **state)
{
    static const char *const paths[] = {"5 leaf0: leaf0>spine>leaf1 leaf0>h0 leaf0>h1 leaf1>h2 leaf1>h3",
                                        NULL};
    static const char *const nodes[] = {
        "5 leaf0: leaf0>spine spine>leaf1 leaf0>h0 leaf0>h1 leaf1>h2 leaf1>h3", NULL};
    const char *const *const variants[] = {paths, nodes};
    struct by_topology *topology = bench_topology(
        "h0 h1 h2 h3 leaf0* leaf1* spine", "h0-leaf0 h1-leaf0 h2-leaf1 h3-leaf1 leaf0-spine leaf1-spine");

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, variants[i]);
        struct bench_images images = bench_images(lowering);
        struct by_image_header header;
        assert_int_equal(bench_walk(&images), 5);
        by_image_header(images.bytes[6], &header);
        assert_int_equal(header.count[BY_SECTION_RELAY], 2);
        assert_int_equal(header.count[BY_SECTION_ENTRY], 0);
        assert_int_equal(header.slot_count, 0);
        bench_images_free(&images);
        by_lowering_free(lowering);
    }
    by_topology_free(topology);
}

/* A tree from each of 190 hosts to all others, through a switch that only forwards. The switch has
 * more than 2^16 relays, as the outer switch of 1,024 GPUs has. */
static void a_switch_relays_for_a_tree_of_each_host(void **state)
{
    enum { HOSTS = 190, RELAYS = 2 * HOSTS * (HOSTS - 1) };
    char nodes[8 * HOSTS], links[10 * HOSTS], *trees[HOSTS + 1] = {NULL};
    struct by_topology *topology;
    struct by_lowering *lowering;
    struct bench_images images;
    struct by_image_header header;
    size_t n = 0, l = 0;

    (void)state;
    for (unsigned i = 0; i < HOSTS; i++) {
        size_t used;

        n += (size_t)sprintf(nodes + n, "h%u ", i);
        l += (size_t)sprintf(links + l, "h%u-x ", i);
        trees[i] = calloc(HOSTS + 1, 16);
        assert_non_null(trees[i]);
        used = (size_t)sprintf(trees[i], "1 h%u:", i);
        for (unsigned j = 0; j < HOSTS; j++)
            if (j != i)
                used += (size_t)sprintf(trees[i] + used, " h%u>x>h%u", i, j);
    }
    sprintf(nodes + n, "x");
    links[l - 1] = '\0';
    topology = bench_topology(nodes, links);
    lowering = lower_one(topology, BY_COLLECTIVE_ALLGATHER, NULL, (const char *const *)trees);
    images = bench_images(lowering);
    by_image_header(images.bytes[HOSTS], &header);
    assert_int_equal(header.count[BY_SECTION_RELAY], RELAYS);
    assert_int_equal(by_image_check(images.bytes[HOSTS], images.size[HOSTS], NULL, NULL), 0);
    for (uint32_t i = 0; i < RELAYS; i++) { /* from one cable to the host at the other */
        struct by_image_relay relay;
        struct by_image_port from, to;

        by_image_relay(images.bytes[HOSTS], i, &relay);
        by_image_port(images.bytes[HOSTS], relay.from - 1u, &from);
        by_image_port(images.bytes[HOSTS], relay.port, &to);
        assert_int_equal(relay.src_ip, from.peer_ip);
        assert_int_equal(relay.dst_ip, to.peer_ip);
        assert_int_not_equal(relay.port, relay.from - 1u);
    }
    bench_images_free(&images);
    by_lowering_free(lowering);
    by_topology_free(topology);
    for (unsigned i = 0; i < HOSTS; i++)
        free(trees[i]);
}

static void a_ring_of_hosts_makes_them_interior(void **state)
{
    static const char *const trees[] = {"5 h0: h0>h1 h1>h2 h2>h3", "5 h0: h0>h3 h3>h2 h2>h1",
                                        "5 h1: h1>h2 h2>h3 h3>h0", NULL};
    struct by_topology *topology = bench_topology("h0 h1 h2 h3", "h0-h1 h1-h2 h2-h3 h3-h0");
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);

    (void)state;
    assert_int_equal(walk(lowering),
                     3 * (3 + 3)); /* three hops, and the own leaves of the three forwarding hosts */
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void shares_are_exact_whole_numbers(void **state)
{
    static const char *const trees[] = {"3/4 h0: h0>h1 h1>h2", "1/6 h0: h0>h2 h2>h1", "1/12 h0: h0>h1 h0>h2",
                                        NULL};
    struct by_topology *topology = bench_topology("h0 h1 h2", "h0-h1 h1-h2 h2-h0");
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    uint64_t sum = 0, product = 1;

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        sum += lowering->trees[i].share;
        product *= lowering->trees[i].share;
    }
    assert_int_equal(sum, 12); /* 9 + 2 + 1 */
    assert_int_equal(product, 18);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void shares_beyond_32_bits_are_rounded_and_told(void **state)
{
    static const char *const trees[] = {"1099511627776 h0: h0>h1", "3 h1: h1>h0", NULL};
    struct by_topology *topology = bench_topology("h0 h1", "h0-h1");
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);

    (void)state;
    assert_int_equal(lowering->note_count, 1);
    assert_non_null(strstr(lowering->notes[0], "rounded"));
    for (uint32_t i = 0; i < 2; i++)
        assert_true(lowering->trees[i].share == 1 || lowering->trees[i].share == 0x80000000u);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void equal_trees_of_a_plan_become_one(void **state)
{
    static const char *const trees[] = {"1/3 h0: h0>h1", "2/3 h0: h0>h1", "3 h1: h1>h0", NULL};
    struct by_topology *topology = bench_topology("h0 h1", "h0-h1");
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);

    (void)state;
    assert_int_equal(lowering->tree_count, 2);
    assert_int_equal(lowering->trees[0].share + lowering->trees[1].share, 4);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void parallel_cables_are_filled_evenly(void **state)
{
    static const char *const trees[] = {"5 h0: h0>h1", "5 h1: h1>h0", "5 h0: h0>x0>h1", NULL};
    struct by_topology *topology = bench_topology("h0 h1 x0", "h0-h1 h0-h1 h0-x0 x0-h1");
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    uint32_t used[4] = {0};

    (void)state;
    for (uint32_t i = 0; i < lowering->tree_count; i++)
        used[lowering->trees[i].hops[1].down[0].link]++;
    assert_int_equal(used[0], 1);
    assert_int_equal(used[1], 1);
    assert_int_equal(walk(lowering), 6);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

/* A host's table names the relays between a node and its parent, in order from the node. */
static void a_hop_names_the_relays_on_its_way(void **state)
{
    static const char *const trees[] = {"5 h0: h0>x0>x1>h1", NULL};
    struct by_topology *topology = bench_topology("h0 h1 x0 x1", "h0-x0 x0-x1 x1-h1");
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_BROADCAST, "h0", trees);
    struct bench_images images = bench_images(lowering);
    struct by_image_header header;
    unsigned named = 0;

    (void)state;
    by_image_header(images.bytes[0], &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_HOP]; i++) {
        struct by_image_hop hop;

        by_image_hop(images.bytes[0], i, &hop);
        assert_int_equal(hop.relays, hop.node == 1 ? 2 : 0);
        /* Upwards from h1: x1, then x0. */
        assert_int_equal(hop.via, hop.node != 1 ? 0 : by_image_hop_is_own(&hop) ? 3 : 2);
        named += hop.relays > 0;
    }
    assert_int_equal(named, 2);
    bench_images_free(&images);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void one_way_links_between_switches_answer_by_another_way(void **state)
{
    static const char *const trees[] = {"5 h0: h0>x0>x1>h1", NULL};
    struct by_topology *topology =
        bench_topology("h0 h1 x0 x1 x2 x3", "h0-x0 x0>x1 x1-h1 x1-x3 x3-x2 x1>x2 x2>x0"); /* and a loop */
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_BROADCAST, "h0", trees);

    (void)state;
    assert_int_equal(lowering->trees[0].hops[1].up_count, 4);
    assert_int_equal(walk(lowering), 2);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void data_that_run_up_take_the_up_direction(void **state)
{
    static const char *const trees[] = {"5 h0: h0>x0>x1>h1", NULL};
    struct by_topology *topology = bench_topology("h0 h1 x0 x1 x2", "h0-x0 x1>x0 x1-h1 x0>x2 x2>x1");
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_REDUCE, "h0", trees);

    (void)state;
    assert_int_equal(lowering->trees[0].hops[1].up_count, 3);
    assert_int_equal(lowering->trees[0].hops[1].down_count, 4);
    assert_int_equal(walk(lowering), 2);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void a_root_that_carries_more_up_than_down_is_refused(void **state)
{
    static const char *const trees[] = {"1 up h0: h0>h1", "2 down h0: h0>h1", NULL};
    struct by_topology *topology = bench_topology("h0 h1", "h0-h1");

    (void)state;
    expect_refusal(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees, &(struct by_lower_options){0}, BY_EINVAL,
                   (const char *const[]){"'h0'", "as much up as down", "plan again", NULL});
    by_topology_free(topology);
}

static void two_one_way_links_between_the_same_nodes_answer_each_other(void **state)
{
    static const char *const trees[] = {"5 h0: h0>h1", NULL};
    struct by_topology *topology = bench_topology("h0 h1", "h0>h1 h1>h0");
    struct by_lowering *lowering = lower_one(topology, BY_COLLECTIVE_BROADCAST, "h0", trees);

    (void)state;
    assert_int_equal(lowering->trees[0].hops[1].down[0].link, 0);
    assert_int_equal(lowering->trees[0].hops[1].up[0].link, 0);
    assert_int_equal(walk(lowering), 2);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void windows_are_halved_until_the_slots_suffice(void **state)
{
    struct by_topology *topology = star();
    struct by_plan *plans[2] = {bench_plan(topology, BY_COLLECTIVE_ALLGATHER, NULL, star_gather),
                                bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, star_allreduce)};
    struct by_lowering *lowering = lower_plans(topology, plans, 2, &(struct by_lower_options){.slots = 400});

    (void)state;
    assert_int_equal(lowering->window, 64); /* 5 trees at sw0: 5 x 64 <= 400 < 5 x 128 */
    assert_non_null(strstr(lowering->notes[0], "'sw0' is in 5 trees and has 400 slots"));
    walk(lowering);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void entries_for_mode_det_have_a_slot_for_each_two_children(void **state)
{
    struct by_topology *topology = star();
    struct by_plan *plans[1] = {bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, star_allreduce)};
    struct by_lowering *lowering =
        lower_plans(topology, plans, 1, &(struct by_lower_options){.slots = 400, .det = 1});
    struct bench_images images = bench_images(lowering);
    struct by_image_header header;
    struct by_image_entry entry;

    (void)state;
    by_image_header(images.bytes[4], &header);
    by_image_entry(images.bytes[4], 0, &entry);
    assert_int_equal(entry.child_count, 4);
    assert_int_equal(entry.depth, 2);
    assert_int_equal(entry.window, 128); /* twice 256 slots are more than 400 */
    assert_int_equal(header.slot_count, 256);
    assert_non_null(strstr(lowering->notes[0], "for --det counted once for every two children"));
    bench_images_free(&images);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

static void two_jobs_live_on_the_same_nodes(void **state)
{
    struct by_topology *topology = star();
    struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, star_allreduce);
    const struct by_plan *const plans[1] = {plan};
    struct by_lower_job jobs[2] = {{.job = 1, .plan_count = 1, .plans = plans},
                                   {.job = 7, .plan_count = 1, .plans = plans}};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};
    struct bench_images images;
    struct by_image_entry entry;
    struct by_image_child child;

    (void)state;
    assert_int_equal(by_lower(topology, jobs, 2, &(struct by_lower_options){0}, &lowering, &problem), 0);
    images = bench_images(lowering);
    assert_int_equal(bench_walk(&images), 8);
    by_image_entry(images.bytes[4], 1, &entry);
    assert_int_equal(entry.job, 7);
    assert_int_equal(entry.slot_base, BY_LOWER_WINDOW);
    by_image_child(images.bytes[4], entry.first_child, &child);
    assert_int_equal(child.udp_port, BY_UDP_PORT + 6);
    bench_images_free(&images);
    by_lowering_free(lowering);
    jobs[1].job = 1;
    assert_int_equal(by_lower(topology, jobs, 2, &(struct by_lower_options){0}, &lowering, &problem),
                     BY_EINVAL);
    assert_non_null(strstr(problem.text, "ascending"));
    bench_plan_free(plan);
    by_topology_free(topology);
}

static void the_same_input_gives_the_same_bytes(void **state)
{
    struct by_topology *topology = star();
    struct by_lowering *a = lower_one(topology, BY_COLLECTIVE_ALLGATHER, NULL, star_gather);
    struct by_lowering *b = lower_one(topology, BY_COLLECTIVE_ALLGATHER, NULL, star_gather);
    struct bench_images x = bench_images(a), y = bench_images(b);

    (void)state;
    for (uint32_t i = 0; i < x.count; i++) {
        assert_int_equal(x.size[i], y.size[i]);
        assert_memory_equal(x.bytes[i], y.bytes[i], x.size[i]);
    }
    bench_images_free(&x);
    bench_images_free(&y);
    by_lowering_free(a);
    by_lowering_free(b);
    by_topology_free(topology);
}

static void payloads_fit_the_mtu_in_whole_cache_lines(void **state)
{
    static const struct {
        uint32_t mtu, payload;
    } table[] = {{68, 0}, {131, 0}, {132, 64}, {1500, 1408}, {8260, 8192}, {9000, 8192}, {65535, 8192}};

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        assert_int_equal(by_lower_payload(table[i].mtu), table[i].payload);
}

static void what_cannot_be_lowered_is_refused_by_name(void **state)
{
    static const struct {
        const char *tree;
        int error;
        const char *words[4];
    } table[] = {
        {"1 sw0: sw0>h0 sw0>h1 sw0>h2", BY_EINVAL, {"does not reach 'h3'"}},
        {"1 sw0: sw0>h0 sw0>h1 sw0>h2 sw0>h3 sw0>h3", BY_EINVAL, {"edge 4 from 'sw0' to 'h3'"}},
        {"1 sw0: sw0>h0 h1>h2 sw0>h1 sw0>h3", BY_EINVAL, {"edge 1 from 'h1' to 'h2'"}},
        {"1 sw0: sw0>h0 sw0>h1 sw0>h2 h2>h3",
         BY_EINVAL,
         {"'h2' to 'h3' and back, which this fabric does not have"}},
        {"1 sw0: sw0>h0 sw0>h1 sw0>h2 h2>h0>h3", BY_EUNSUPPORTED, {"passes the compute node 'h0'"}},
        {"1 x0: x0>h0 x0>h1 x0>h2 x0>h3", BY_EUNSUPPORTED, {"'x0' joins 4 branches but cannot aggregate"}},
        {"1 sw0: sw0>h0 sw0>h1 sw0>h2 sw0>h3 sw0>h0>x0", BY_EINVAL, {"switch 'x0' has no children"}},
        {"0 sw0: sw0>h0 sw0>h1 sw0>h2 sw0>h3", BY_EINVAL, {"weight is not above zero"}},
    };
    struct by_topology *topology =
        bench_topology("h0 h1 h2 h3 sw0* x0", "h0-sw0 h1-sw0 h2-sw0 h3-sw0 h0-x0 h1-x0 h2-x0 h3-x0");

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const char *const trees[] = {table[i].tree, NULL};
        expect_refusal(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees, &(struct by_lower_options){0},
                       table[i].error, table[i].words);
    }
    by_topology_free(topology);
}

static void limits_are_named_with_node_and_remedy(void **state)
{
    static const char *const window[] = {"window of 48", "power of two", NULL};
    static const char *const mtu[] = {"MTU of 100", "132", NULL};
    static const char *const slots[] = {"'sw0'", "4 trees", "has 3 slots", "--slots", NULL};
    static const char *const cable[] = {"one-way", "'h0'", "both directions", NULL};
    static const char *const back[] = {"no path back", "from 'h1' to 'h0'", "add a link", NULL};
    static const char *const direct[] = {"1 h0: h0>h1", NULL};
    static const char *const through[] = {"1 h0: h0>x0>x1>h1", NULL};
    struct by_topology *topology = star();

    (void)state;
    expect_refusal(topology, BY_COLLECTIVE_ALLREDUCE, NULL, star_allreduce,
                   &(struct by_lower_options){.window = 48}, BY_EINVAL, window);
    expect_refusal(topology, BY_COLLECTIVE_ALLREDUCE, NULL, star_allreduce,
                   &(struct by_lower_options){.window = 2 * BY_WINDOW_MAX}, BY_EINVAL, window + 1);
    expect_refusal(topology, BY_COLLECTIVE_ALLREDUCE, NULL, star_allreduce,
                   &(struct by_lower_options){.mtu = 100}, BY_EINVAL, mtu);
    by_topology_free(topology);
    topology = star();
    expect_refusal(topology, BY_COLLECTIVE_ALLGATHER, NULL, star_gather,
                   &(struct by_lower_options){.slots = 3}, BY_ELIMIT, slots);
    by_topology_free(topology);
    topology = bench_topology("h0 h1 x0", "h0>h1 h1>x0 x0>h0");
    expect_refusal(topology, BY_COLLECTIVE_BROADCAST, "h0", direct, &(struct by_lower_options){0},
                   BY_EUNSUPPORTED, cable);
    by_topology_free(topology);
    topology = bench_topology("h0 h1 x0 x1", "h0-x0 x0>x1 x1-h1");
    expect_refusal(topology, BY_COLLECTIVE_BROADCAST, "h0", through, &(struct by_lower_options){0},
                   BY_EUNSUPPORTED, back);
    by_topology_free(topology);
}

static void an_allgather_without_a_tree_for_each_rank_is_refused(void **state)
{
    const char *const trees[] = {star_gather[0], star_gather[1], star_gather[3], NULL};
    static const char *const words[] = {"no allgather tree is rooted at 'h2'", NULL};
    struct by_topology *topology = star();

    (void)state;
    expect_refusal(topology, BY_COLLECTIVE_ALLGATHER, NULL, trees, &(struct by_lower_options){0},
                   BY_EUNSUPPORTED, words);
    by_topology_free(topology);
}

/* 16 leaves of 16 hosts below a spine, allgather: 256 trees of 273 nodes. */
static void of_very_many_hops_hosts_keep_their_own_neighbours_alone(void **state)
{
    char nodes[4096] = "", links[8192] = "";
    struct by_plan_options options = {.collective = BY_COLLECTIVE_ALLGATHER, .root = -1, .in_network = true};
    struct by_lower_job job = {.job = 1, .plan_count = 1};
    struct by_problem problem = {0};
    struct by_topology *topology;
    struct by_lowering *lowering;
    struct bench_images images;
    struct by_plan *plan;
    size_t n = 0, l = 0;

    (void)state;
    for (unsigned host = 0; host < 256; host++) {
        n += (size_t)snprintf(nodes + n, sizeof nodes - n, "h%u ", host);
        l += (size_t)snprintf(links + l, sizeof links - l, "h%u-leaf%u ", host, host / 16);
    }
    for (unsigned leaf = 0; leaf < 16; leaf++) {
        n += (size_t)snprintf(nodes + n, sizeof nodes - n, "leaf%u* ", leaf);
        l += (size_t)snprintf(links + l, sizeof links - l, "leaf%u-spine0%s", leaf, leaf < 15 ? " " : "");
    }
    snprintf(nodes + n, sizeof nodes - n, "spine0*");
    topology = bench_topology(nodes, links);
    if (by_plan_make(topology, &options, &plan, &problem) != 0)
        fail_msg("%s", problem.text);
    job.plans = (const struct by_plan *const *)&plan;
    if (by_lower(topology, &job, 1, &(struct by_lower_options){.window = 4}, &lowering, &problem) != 0)
        fail_msg("%s", problem.text);
    by_plan_free(plan);
    assert_true(lowering->brief);
    assert_non_null(strstr(lowering->notes[0], "69888 hops in all trees"));
    images = bench_images(lowering);
    assert_true(bench_walk(&images) > 0); /* the tables are still valid */
    for (uint32_t node = 0; node < images.count; node++) {
        struct by_image_header header;

        by_image_header(images.bytes[node], &header);
        assert_int_equal(header.count[BY_SECTION_HOP], 0);
        assert_true(images.size[node] < 100000);
    }
    bench_images_free(&images);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_star_sums_and_copies_at_its_switch),
        cmocka_unit_test(addresses_follow_the_order_of_links),
        cmocka_unit_test(equal_plans_share_their_trees),
        cmocka_unit_test(a_host_that_is_root_adds_its_own_leaf_locally),
        cmocka_unit_test(a_leaf_spine_walks_through_two_levels),
        cmocka_unit_test(a_spine_that_only_forwards_relays_both_ways),
        cmocka_unit_test(a_switch_relays_for_a_tree_of_each_host),
        cmocka_unit_test(a_ring_of_hosts_makes_them_interior),
        cmocka_unit_test(shares_are_exact_whole_numbers),
        cmocka_unit_test(shares_beyond_32_bits_are_rounded_and_told),
        cmocka_unit_test(equal_trees_of_a_plan_become_one),
        cmocka_unit_test(parallel_cables_are_filled_evenly),
        cmocka_unit_test(a_hop_names_the_relays_on_its_way),
        cmocka_unit_test(one_way_links_between_switches_answer_by_another_way),
        cmocka_unit_test(data_that_run_up_take_the_up_direction),
        cmocka_unit_test(a_root_that_carries_more_up_than_down_is_refused),
        cmocka_unit_test(two_one_way_links_between_the_same_nodes_answer_each_other),
        cmocka_unit_test(windows_are_halved_until_the_slots_suffice),
        cmocka_unit_test(entries_for_mode_det_have_a_slot_for_each_two_children),
        cmocka_unit_test(two_jobs_live_on_the_same_nodes),
        cmocka_unit_test(the_same_input_gives_the_same_bytes),
        cmocka_unit_test(payloads_fit_the_mtu_in_whole_cache_lines),
        cmocka_unit_test(what_cannot_be_lowered_is_refused_by_name),
        cmocka_unit_test(limits_are_named_with_node_and_remedy),
        cmocka_unit_test(of_very_many_hops_hosts_keep_their_own_neighbours_alone),
        cmocka_unit_test(an_allgather_without_a_tree_for_each_rank_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

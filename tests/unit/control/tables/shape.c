/*
 * Tables of trees of special shapes: pairs of trees up and down, nodes of more than 64 children,
 * and windows and relays at their limits. Single-threaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/errors.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

#define BIT(name) (1u << BY_COLLECTIVE_##name)

static struct by_lowering *lower(const struct by_topology *topology, const char *const *trees, uint8_t det)
{
    struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};

    if (by_lower(topology, &job, 1, &(struct by_lower_options){.det = det}, &lowering, &problem) != 0)
        fail_msg("%s", problem.text);
    bench_plan_free(plan);
    return lowering;
}

static void trees_up_and_down_of_an_allreduce_become_pairs(void **state)
{
    /* up 3 = down 1 + 2: two pairs, of which the second uses one path for both directions */
    static const char *const trees[] = {"3 up s0: s0>h0 s0>h1 h1>h2", "1 down s0: s0>h0 s0>h2 h2>h1",
                                        "2 down s0: s0>h0 s0>h1 h1>h2", NULL};
    struct by_topology *topology = bench_topology("h0 h1 h2 s0*", "h0-s0 h1-s0 h2-s0 h1-h2");
    struct by_lowering *lowering = lower(topology, trees, 0);
    static const uint8_t halves[] = {BY_HALF_UP, BY_HALF_DOWN, BY_HALF_NONE};
    struct bench_images images = bench_images(lowering);
    uint32_t whole = lowering->trees[0].half == BY_HALF_NONE ? 0 : 2;
    struct by_image_entry up, down;

    (void)state;
    assert_int_equal(lowering->tree_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(lowering->trees[i].collectives, BIT(ALLREDUCE) | BIT(BARRIER));
        assert_int_equal(lowering->trees[i].owner, BY_RANK_NONE);
        assert_int_equal(lowering->trees[i].half, halves[(i + 2 - whole) % 3]);
        assert_int_equal(lowering->trees[i].share, lowering->trees[i].half == BY_HALF_NONE ? 2 : 1);
    }
    by_image_entry(images.bytes[3], 2 - whole / 2 - 1, &up);
    by_image_entry(images.bytes[3], 2 - whole / 2, &down);
    assert_int_equal(up.joined, 0);
    assert_int_equal(down.joined, 1);
    assert_int_equal(down.slot_base, up.slot_base);
    assert_int_equal(by_image_entry_slots(&down), 0);
    assert_int_equal(down.nleaf, 3);
    assert_int_equal(by_lowering_need(lowering, 1, 3).slots, 2 * up.window);
    assert_true(bench_walk(&images) > 0);
    bench_images_free(&images);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

/* Makes a star of `hosts` hosts, with a tree from its switch. */
static struct by_topology *wide_star(int hosts, char *tree)
{
    static char nodes[16384], links[32768];
    size_t a = 0, b = 0, c = (size_t)sprintf(tree, "1 sw0:");

    for (int i = 0; i < hosts; i++) {
        a += (size_t)snprintf(nodes + a, sizeof(nodes) - a, "h%d ", i);
        b += (size_t)snprintf(links + b, sizeof(links) - b, "h%d-sw0 ", i);
        c += (size_t)sprintf(tree + c, " sw0>h%d", i);
    }
    snprintf(nodes + a, sizeof(nodes) - a, "sw0*");
    return bench_topology(nodes, links);
}

static void an_entry_of_100_children_has_two_sets(void **state)
{
    static char tree[32768];
    struct by_topology *topology = wide_star(100, tree);
    struct by_lowering *lowering = lower(topology, (const char *[]){tree, NULL}, 1);
    struct bench_images images = bench_images(lowering);
    struct by_image_entry entry;
    struct by_image_leaf leaf;

    (void)state;
    by_image_entry(images.bytes[100], 0, &entry);
    assert_int_equal(entry.child_count, 100);
    assert_int_equal(entry.sets, 1);
    assert_int_equal(by_image_entry_slots(&entry), 2 * entry.window);
    by_image_leaf(images.bytes[99], 0, &leaf);
    assert_int_equal(leaf.parent_child, 99 - 64);
    assert_false(leaf.modes >> BY_MODE_DET & 1); /* for at most 64 children */
    assert_int_equal(bench_walk(&images), 100);
    bench_images_free(&images);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

/* A switch has as many children as an entry holds, a host one fewer: its own leaf is one. Two of
 * them are behind a switch that only forwards, because a node has no more ports. */
static void a_node_has_as_many_children_as_an_entry_holds(void **state)
{
    static char nodes[16384], links[32768], tree[32768];

    (void)state;
    for (unsigned kind = 0; kind < 2; kind++)
        for (unsigned more = 0; more < 2; more++) {
            const char *root = kind ? "sw0" : "hub"; /* a name with 'h' is that of a host */
            const char *const trees[] = {tree, NULL};
            const unsigned children = BY_FAMILY_MAX - (kind ? 0 : 1) + more;
            size_t a = 0, b = 0, c = (size_t)sprintf(tree, "1 %s:", root);
            struct by_topology *topology;
            struct by_plan *plan;
            struct by_lower_job job = {
                .job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
            struct by_lowering *lowering = NULL;
            struct by_problem problem = {0};
            int error;

            for (unsigned i = 0; i < children; i++) {
                bool far = i + 2 >= children;

                a += (size_t)snprintf(nodes + a, sizeof(nodes) - a, "h%u ", i);
                b += (size_t)snprintf(links + b, sizeof(links) - b, "h%u-%s ", i, far ? "x" : root);
                c += (size_t)snprintf(tree + c, sizeof(tree) - c, " %s>%sh%u", root, far ? "x>" : "", i);
            }
            snprintf(nodes + a, sizeof(nodes) - a, "%s x", kind ? "sw0*" : "hub");
            snprintf(links + b, sizeof(links) - b, "%s-x", root);
            topology = bench_topology(nodes, links);
            plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
            error = by_lower(topology, &job, 1, &(struct by_lower_options){.bare = 1}, &lowering, &problem);
            assert_int_equal(error, more ? BY_ELIMIT : 0);
            if (more)
                assert_non_null(
                    strstr(problem.text, "has 1025 children in the tree; a table entry holds 1024"));
            else
                assert_int_equal(lowering->trees[0].hops[0].child_count, BY_FAMILY_MAX);
            if (error == 0)
                by_lowering_free(lowering);
            bench_plan_free(plan);
            by_topology_free(topology);
        }
}

static void more_links_than_ports_are_refused(void **state)
{
    static char tree[32768];
    struct by_topology *topology = wide_star(1025, tree);
    struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, (const char *[]){tree, NULL});
    struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(by_lower(topology, &job, 1, &(struct by_lower_options){0}, &lowering, &problem),
                     BY_ELIMIT);
    assert_non_null(strstr(problem.text, "'sw0' has 1025 links"));
    bench_plan_free(plan);
    by_topology_free(topology);
}

/* A tree with 70 children at h0 needs two places there. With so many trees that no place is left,
 * one that is wider than a cable is not split. */
static void a_node_of_more_than_64_children_needs_more_places(void **state)
{
    enum { HOSTS = 71, PLACES = BY_LOWER_SLOTS / 64 };
    static const char *trees[PLACES / 2];
    char nodes[HOSTS * 5] = "", links[HOSTS * 16] = "h0-h1 ", text[2][HOSTS * 8] = {"1/1000 h0:", "20 h0:"};
    struct by_topology *topology;

    (void)state;
    for (unsigned h = 0; h < HOSTS; h++) {
        sprintf(nodes + strlen(nodes), "h%u ", h);
        if (h == 0)
            continue;
        sprintf(links + strlen(links), "h0-h%u%s", h, h + 1 < HOSTS ? " " : "");
        for (unsigned i = 0; i < 2; i++)
            sprintf(text[i] + strlen(text[i]), " h0>h%u", h);
    }
    topology = bench_topology(nodes, links);
    for (unsigned full = 0; full < 2; full++) {
        const char *const wide[] = {text[1], NULL};
        struct by_plan *plans[2] = {NULL, bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, wide)};
        struct by_lower_job job = {.job = 1, .plan_count = 2, .plans = (const struct by_plan *const *)plans};
        struct by_lowering *lowering = NULL;
        struct by_problem problem = {0};

        for (unsigned i = 0; i < PLACES / 2 - 2 + full; i++)
            trees[i] = text[0];
        trees[PLACES / 2 - 2 + full] = NULL;
        plans[0] = bench_plan(topology, BY_COLLECTIVE_BROADCAST, "h0", trees);
        if (by_lower(topology, &job, 1, &(struct by_lower_options){.bare = 1}, &lowering, &problem) != 0)
            fail_msg("%s", problem.text);
        assert_int_equal(lowering->part.num * (full ? 2 : 1), lowering->part.den);
        by_lowering_free(lowering);
        bench_plan_free(plans[0]);
        bench_plan_free(plans[1]);
    }
    by_topology_free(topology);
}

static void a_window_of_any_power_of_two_is_kept(void **state)
{
    static const char *const trees[] = {"1 s: s>h0 s>h1", NULL};
    struct by_topology *topology = bench_topology("h0 h1 s*", "h0-s h1-s");
    struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};

    (void)state;
    for (uint32_t window = 1; window <= BY_WINDOW_MAX; window *= 2) {
        struct by_lowering *lowering = NULL;
        struct by_problem problem = {0};
        struct by_image_header header;
        uint8_t *image;
        size_t bytes;

        if (by_lower(topology, &job, 1, &(struct by_lower_options){.window = window}, &lowering, &problem) !=
            0)
            fail_msg("%s", problem.text);
        assert_int_equal(lowering->window, window);
        assert_int_equal(by_lowering_image(lowering, 2, &image, &bytes, &problem), 0);
        by_image_header(image, &header);
        assert_int_equal(header.slot_count, window);
        free(image);
        by_lowering_free(lowering);
    }
    bench_plan_free(plan);
    by_topology_free(topology);
}

static void numbers_and_windows_of_jobs_have_limits(void **state)
{
    static const char *const trees[] = {"1 s: s>h0 s>h1", NULL};
    static const struct {
        uint16_t job;
        uint32_t window;
        const char *refusal;
    } rows[] = {
        {1, 1, ""},
        {BY_JOBS_MAX - 1, BY_WINDOW_MAX, ""},
        {0, 1, "job 0: a job's number is between 1 and 1023"},
        {BY_JOBS_MAX, 1, "job 1024: a job's number is between 1 and 1023"},
        {1, 48, "job 1: a window of 48 slots: it must be a power of two, at most 4096"},
        {1, 8192, "job 1: a window of 8192 slots: it must be a power of two, at most 4096"},
    };
    struct by_topology *topology = bench_topology("h0 h1 s*", "h0-s h1-s");
    struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);

    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct by_lower_job job = {.job = rows[r].job,
                                   .window = rows[r].window,
                                   .plan_count = 1,
                                   .plans = (const struct by_plan *const *)&plan};
        struct by_lowering *lowering = NULL;
        struct by_problem problem = {0};
        int error = by_lower(topology, &job, 1, &(struct by_lower_options){0}, &lowering, &problem);

        assert_string_equal(problem.text, rows[r].refusal);
        assert_int_equal(error, rows[r].refusal[0] == '\0' ? 0 : BY_EINVAL);
        by_lowering_free(lowering);
    }
    bench_plan_free(plan);
    by_topology_free(topology);
}

/* The relays of a lowering are replaced by as many as an image may have, to further addresses. */
static void an_image_has_relays_up_to_the_limit(void **state)
{
    enum { X0 = 2 };
    static const char *const trees[] = {"1 h0: h0>x0>h1", NULL};
    struct by_topology *topology = bench_topology("h0 h1 x0", "h0-x0 x0-h1");
    struct by_lowering *lowering = lower(topology, trees, 0);
    struct by_lowered_relay *relays = calloc(BY_RELAYS_MAX + 1, sizeof(*relays)), *own = lowering->relays;
    uint32_t own_count = lowering->relay_count;
    struct by_problem problem = {0};
    struct by_image_header header;
    uint8_t *image = NULL;
    size_t bytes;

    (void)state;
    assert_non_null(relays);
    for (uint32_t i = 0; i <= BY_RELAYS_MAX; i++) {
        relays[i] = own[0];
        relays[i].dst_ip = own[0].dst_ip + i;
    }
    assert_int_equal(relays[0].node, X0);
    lowering->relays = relays;
    lowering->relay_count = BY_RELAYS_MAX;
    assert_int_equal(by_lowering_image(lowering, X0, &image, &bytes, &problem), 0);
    by_image_header(image, &header);
    assert_int_equal(header.count[BY_SECTION_RELAY], BY_RELAYS_MAX);
    free(image);
    image = NULL;
    lowering->relay_count++;
    assert_int_equal(by_lowering_image(lowering, X0, &image, &bytes, &problem), BY_ELIMIT);
    assert_non_null(strstr(problem.text, "'x0' needs 524289 relays and "));
    assert_non_null(strstr(problem.text, "the limits are 524288 and 67108864: plan with"));
    assert_null(image);
    lowering->relays = own;
    lowering->relay_count = own_count;
    free(relays);
    by_lowering_free(lowering);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_up_and_down_of_an_allreduce_become_pairs),
        cmocka_unit_test(an_entry_of_100_children_has_two_sets),
        cmocka_unit_test(a_node_has_as_many_children_as_an_entry_holds),
        cmocka_unit_test(more_links_than_ports_are_refused),
        cmocka_unit_test(a_window_of_any_power_of_two_is_kept),
        cmocka_unit_test(an_image_has_relays_up_to_the_limit),
        cmocka_unit_test(a_node_of_more_than_64_children_needs_more_places),
        cmocka_unit_test(numbers_and_windows_of_jobs_have_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Lowerings with standby generations: their trees, slots and keys beside those in use, and that a
 * host's own table of a standby fits the switches. Single-threaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/tables/dump.h"
#include "control/tables/keyed.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

static const char *const by_sw0[] = {"5 sw0: sw0>h0 sw0>h1", NULL};
static const char *const by_sw1[] = {"5 sw1: sw1>h0 sw1>h1", NULL};

static struct by_topology *fabric(void)
{
    return bench_topology("h0 h1 sw0* sw1*", "h0-sw0 h1-sw0 h0-sw1 h1-sw1");
}
#define SW0 2u
#define SW1 3u

/* Job 1 in generation 5 over sw0, its standby 6 over sw1, and job 2 over sw0. */
struct three {
    struct by_plan *plans[3];
    struct by_lower_job jobs[3];
    uint8_t secrets[3][BY_SIPHASH_KEY_BYTES];
};

static void make(struct three *three, const struct by_topology *topology)
{
    *three = (struct three){.secrets = {{1}, {2}, {3}}};
    for (uint32_t i = 0; i < 3; i++) {
        three->plans[i] = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, i == 1 ? by_sw1 : by_sw0);
        three->jobs[i] = (struct by_lower_job){.job = i == 2 ? 2 : 1,
                                               .first_tree = i == 1,
                                               .plan_count = 1,
                                               .plans = (const struct by_plan *const *)&three->plans[i],
                                               .gen = (uint16_t)(5 + i),
                                               .window = i == 1 ? 16 : 64,
                                               .secret = three->secrets[i]};
    }
}

static void drop(struct three *three)
{
    for (uint32_t i = 0; i < 3; i++)
        bench_plan_free(three->plans[i]);
}

static struct by_lowering *lower(const struct by_topology *topology, const struct by_lower_job *jobs,
                                 uint32_t count)
{
    struct by_lower_options options = {0};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};

    assert_int_equal(by_lower_keyed(&options, NULL, NULL, &problem), 0);
    if (by_lower(topology, jobs, count, &options, &lowering, &problem) != 0)
        fail_msg("%s", problem.text);
    return lowering;
}

static void a_standby_has_trees_slots_and_a_key_of_its_own(void **state)
{
    struct by_topology *topology = fabric();
    struct by_image_entry entry;
    struct by_image_header header;
    struct by_image_job job;
    struct by_image_key key;
    struct bench_images images;
    struct by_lowering *lowering;
    struct three three;

    (void)state;
    make(&three, topology);
    lowering = lower(topology, three.jobs, 3);
    images = bench_images(lowering);
    assert_true(bench_walk(&images) > 0);
    by_image_header(images.bytes[SW1], &header);
    assert_int_equal(header.count[BY_SECTION_JOB], 3);
    by_image_job(images.bytes[SW1], 0, &job);
    assert_true(job.job == 1 && job.gen == 5 && job.tree_count == 1);
    by_image_job(images.bytes[SW1], 1, &job);
    assert_true(job.job == 1 && job.gen == 6 && job.tree_count == 3);
    assert_true(!by_image_job_is_standby(images.bytes[SW1], 0) &&
                by_image_job_is_standby(images.bytes[SW1], 1) &&
                !by_image_job_is_standby(images.bytes[SW1], 2));
    /* the tree of its plan, and that of rounds */
    assert_int_equal(header.count[BY_SECTION_ENTRY], 2);
    for (uint16_t i = 0; i < 2; i++) {
        by_image_entry(images.bytes[SW1], i, &entry);
        assert_true(entry.job == 1 && entry.tree == 1 + i && entry.window == 16);
    }
    assert_int_equal(header.slot_count, 32);
    /* A switch has the keys of those generations only whose trees it runs. */
    assert_int_equal(by_image_key_find(images.bytes[SW1], 1, &key), 0);
    assert_int_equal(by_image_key_at(images.bytes[SW1], 1, 1, &key), 1);
    assert_int_equal(key.key[0], 2);
    assert_int_equal(by_image_key_find(images.bytes[SW1], 2, &key), 0);
    assert_int_equal(by_image_key_find(images.bytes[SW0], 1, &key), 1);
    assert_int_equal(key.key[0], 1);
    assert_int_equal(by_image_key_at(images.bytes[SW0], 1, 1, &key), 0);
    assert_int_equal(by_image_key_find(images.bytes[SW0], 2, &key), 1);
    assert_int_equal(key.key[0], 3);
    by_image_header(images.bytes[SW0], &header);
    assert_int_equal(header.slot_count, 128);
    bench_images_free(&images);
    by_lowering_free(lowering);
    drop(&three);
    by_topology_free(topology);
}

/* Returns the image of a node. */
static uint8_t *image_of(const struct by_lowering *lowering, uint32_t node)
{
    struct by_problem problem = {0};
    uint8_t *bytes;
    size_t size;

    if (by_lowering_image(lowering, node, &bytes, &size, &problem) != 0)
        fail_msg("%s", problem.text);
    return bytes;
}

static void the_table_of_a_host_for_a_standby_alone_fits_the_switches(void **state)
{
    struct by_topology *topology = fabric();
    struct by_lowering *all, *alone;
    struct three three;

    (void)state;
    make(&three, topology);
    all = lower(topology, three.jobs, 3);
    alone = lower(topology, &three.jobs[1], 1);
    for (uint32_t host = 0; host < 2; host++) {
        uint8_t *both = image_of(all, host), *one = image_of(alone, host), *at = image_of(all, SW1);
        struct by_image_header header;
        struct by_image_job job;
        struct by_image_leaf leaf, same;
        struct by_image_entry entry;
        struct by_image_child child;
        struct by_image_key key, of_switch;

        by_image_header(one, &header);
        assert_true(header.count[BY_SECTION_JOB] == 1 && header.count[BY_SECTION_LEAF] == 2);
        by_image_job(one, 0, &job);
        assert_true(job.gen == 6 && job.tree_count == 3 && job.rank == host);
        for (uint32_t i = 0; i < 2; i++) {
            memset(&leaf, 0, sizeof(leaf));
            memset(&same, 0, sizeof(same));
            by_image_leaf(one, i, &leaf);
            by_image_leaf(both, 1 + i, &same);
            assert_memory_equal(&leaf, &same, sizeof(leaf));
            assert_int_equal(leaf.collectives == BY_LEAF_ROUNDS, i == 1);
            by_image_entry(at, i, &entry);
            by_image_child(at, entry.first_child + leaf.parent_child, &child);
            assert_true(leaf.tree == entry.tree && leaf.window == entry.window && child.node == host);
        }
        assert_int_equal(by_image_key_find(one, 1, &key), 1);
        assert_int_equal(by_image_key_at(at, 1, 1, &of_switch), 1);
        assert_memory_equal(key.key, of_switch.key, sizeof(key.key));
        free(both);
        free(one);
        free(at);
    }
    by_lowering_free(alone);
    by_lowering_free(all);
    drop(&three);
    by_topology_free(topology);
}

static void trees_of_a_standby_follow_those_in_use(void **state)
{
    struct by_topology *topology = fabric();
    struct by_lower_options options = {0};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};
    struct three three;

    (void)state;
    make(&three, topology);
    three.jobs[1].first_tree = 0;
    assert_int_equal(by_lower(topology, three.jobs, 3, &options, &lowering, &problem), BY_EINVAL);
    three.jobs[1].first_tree = BY_TREES_MAX;
    assert_int_equal(by_lower(topology, three.jobs, 3, &options, &lowering, &problem), BY_ELIMIT);
    three.jobs[1].first_tree = BY_TREES_MAX - 1; /* the tree of rounds has no number */
    assert_int_equal(by_lower(topology, three.jobs, 3, &options, &lowering, &problem), BY_ELIMIT);
    assert_non_null(strstr(problem.text, "no number is left for its last tree"));
    drop(&three);
    by_topology_free(topology);
}

/* Ranks level by the lowest tree of any collective whose inner nodes are switches that sum and
 * copy; a host that is the root becomes a leaf. */
static void ranks_level_by_the_lowest_tree_that_serves(void **state)
{
    static const char *const high[] = {"2 sw0: sw0>h0 sw0>sw1 sw1>h1", "1 sw1: sw1>h0 sw1>h1", NULL};
    static const char *const down[] = {"5 h0: h0>sw0 sw0>h1 sw0>h2", NULL};
    static const char *const ends[] = {"h0-sw0 h1-sw0 h0-sw1 h1-sw1 sw0-sw1", "h0-sw0 h1-sw0 h2-sw0"};
    struct by_lower_options options = {0};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        /* in the last fabric the switch copies only */
        struct by_topology *topology = bench_topology(i == 0   ? "h0 h1 sw0* sw1*"
                                                      : i == 1 ? "h0 h1 h2 sw0*"
                                                               : "h0 h1 h2 sw0",
                                                      ends[i > 0]);
        struct by_plan *plan;
        struct by_lower_job jobs[2] = {
            {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan}};
        struct by_lowering *lowering;
        struct by_problem problem = {0};
        const struct by_lowered_tree *rounds;
        struct bench_images images;

        if (i == 2)
            topology->nodes[3].multicast = true;
        plan = i == 0 ? bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, high)
                      : bench_plan(topology, BY_COLLECTIVE_BROADCAST, "h0", down);
        jobs[1] = jobs[0];
        jobs[1].first_tree = (uint16_t)plan->tree_count;
        jobs[1].gen = 2;
        if (i == 2) {
            assert_int_equal(by_lower(topology, jobs, 2, &options, &lowering, &problem), BY_EUNSUPPORTED);
            assert_non_null(strstr(problem.text, "switches that both sum and copy"));
        } else {
            lowering = lower(topology, jobs, 2);
            rounds = &lowering->trees[lowering->tree_count - 1];
            assert_true(rounds->tree == 2 * plan->tree_count && lowering->tree_count == rounds->tree + 1u);
            assert_true(rounds->collectives == BY_LEAF_ROUNDS && rounds->owner == BY_RANK_NONE);
            assert_int_equal(rounds->hops[0].node, i == 0 ? SW1 : 3);
            images = bench_images(lowering);
            assert_true(bench_walk(&images) > 0);
            bench_images_free(&images);
            for (uint32_t k = 0; k + 1 < lowering->tree_count; k++)
                assert_int_not_equal(lowering->trees[k].collectives, BY_LEAF_ROUNDS);
            by_lowering_free(lowering);
        }
        bench_plan_free(plan);
        by_topology_free(topology);
    }
}

static void standbys_are_printed_as_such(void **state)
{
    struct by_topology *topology = fabric();
    struct three three;
    struct by_lowering *lowering;
    struct by_problem problem = {0};
    uint8_t *image;
    size_t size, bytes;
    char *text = NULL;
    FILE *stream;

    (void)state;
    make(&three, topology);
    lowering = lower(topology, three.jobs, 3);
    assert_int_equal(by_lowering_image(lowering, SW1, &image, &size, &problem), 0);
    stream = by_text_open(&text, &bytes);
    by_dump_text(image, size, stream);
    free(image);
    assert_int_equal(by_lowering_image(lowering, 0, &image, &size, &problem), 0);
    by_dump_text(image, size, stream);
    fclose(stream);
    if (strstr(text, "job 1: generation 5, 2 ranks, 1 trees") == NULL ||
        strstr(text, "job 1: standby generation 6, 2 ranks, 2 trees") == NULL ||
        strstr(text, "leaf job 1 tree 2: rounds of levelling of all ranks") == NULL ||
        strstr(text, "key job 1 standby: ") == NULL)
        fail_msg("%s", text);
    free(text);
    free(image);
    by_lowering_free(lowering);
    drop(&three);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_standby_has_trees_slots_and_a_key_of_its_own),
        cmocka_unit_test(the_table_of_a_host_for_a_standby_alone_fits_the_switches),
        cmocka_unit_test(trees_of_a_standby_follow_those_in_use),
        cmocka_unit_test(ranks_level_by_the_lowest_tree_that_serves),
        cmocka_unit_test(standbys_are_printed_as_such),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

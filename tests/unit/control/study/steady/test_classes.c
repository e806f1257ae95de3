/*
 * Programs in which alike flows are one variable: on random fabrics of alike boxes they must reach
 * exactly the throughput of the programs as they are, with fewer variables than those; and large
 * regular fabrics the closed forms of their all-to-alls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/study/steady/flow_classes.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"
#include "tests/unit/control/planner/rig.h"
#include "tests/unit/control/study/steady/rig.h"

#define SEEDS 150u

static uint32_t below(struct by_prng *prng, uint32_t bound)
{
    return (uint32_t)by_prng_below(prng, bound);
}

static void link(struct by_builder *builder, uint32_t a, uint32_t b, bool both, uint32_t rate)
{
    by_builder_link(builder, a, b, both, (struct by_fraction){rate, 1}, (struct by_place){0, 0});
}

static struct by_topology *finish(struct by_builder *builder)
{
    struct by_topology *topology = NULL;
    struct by_problem problem = {0};

    if (by_builder_finish(builder, &topology, &problem) != 0)
        fail_msg("%s", problem.text);
    by_builder_free(builder);
    return topology;
}

static void add_nodes(struct by_builder *builder, uint32_t count, bool compute)
{
    static uint32_t number;

    for (uint32_t i = 0; i < count; i++) {
        char name[32];
        struct by_node node = {.name = name, .compute = compute};

        snprintf(name, sizeof(name), "n%u", number++);
        by_builder_node(builder, &node);
    }
}

/* Copies of one random box, joined by switches to which each node of a box has a link or none;
 * `odd` adds one link that only the first box has. */
static struct by_topology *alike_boxes(struct by_prng *prng, uint32_t boxes, uint32_t hosts, bool odd)
{
    struct by_builder *builder = by_builder_new("boxes", "GB/s");
    uint32_t switches = 1 + below(prng, 2), inside = below(prng, 2), size = hosts + inside;

    add_nodes(builder, switches, false);
    for (uint32_t b = 0; b < boxes; b++) {
        add_nodes(builder, hosts, true);
        add_nodes(builder, inside, false);
    }
    for (uint32_t i = 0; i < size; i++)
        for (uint32_t j = i + 1; j < size; j++) {
            uint32_t kind = below(prng, 4), rate = 1 + below(prng, 3);

            for (uint32_t b = 0; b < boxes && kind > 0; b++)
                link(builder, switches + b * size + i, switches + b * size + j, true, rate);
        }
    for (uint32_t i = 0; i < size; i++)
        for (uint32_t s = 0; s < switches; s++) {
            uint32_t rate = (s == 0 || i == 0) + below(prng, 3);

            for (uint32_t b = 0; b < boxes && rate > 0; b++)
                link(builder, switches + b * size + i, s, true, rate);
        }
    if (odd)
        link(builder, switches, switches + 1 + below(prng, size - 1), true, 1 + below(prng, 4));
    return finish(builder);
}

static struct by_steady_problem gossip(const struct by_topology *topology, enum by_series_ports ports,
                                       uint32_t *ranks)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < topology->node_count; i++)
        if (topology->nodes[i].compute)
            ranks[count++] = i;
    return (struct by_steady_problem){.topology = topology,
                                      .operation = BY_SERIES_GOSSIP,
                                      .ports = ports,
                                      .source_count = count,
                                      .sources = ranks,
                                      .target_count = count,
                                      .targets = ranks};
}

static void alike_flows_reach_what_single_ones_reach(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct by_prng prng = {seed * 15485863};
        uint32_t boxes = 2 + below(&prng, 3), hosts = 1 + below(&prng, 3), ranks[32];
        struct by_topology *topology = alike_boxes(&prng, boxes, hosts, seed % 3 == 0 && hosts > 1);
        struct by_steady_problem problem =
            gossip(topology, (enum by_series_ports)(1 + below(&prng, 3)), ranks);
        struct by_fraction matrix[144];
        struct by_series *single, *alike;

        if (seed % 2) { /* sizes by the places in the boxes, so that boxes stay alike */
            uint32_t size[2][16];

            for (uint32_t i = 0; i < 16; i++) {
                size[0][i] = below(&prng, 3);
                size[1][i] = 1 + below(&prng, 3);
            }
            for (uint32_t i = 0; i < problem.source_count; i++)
                for (uint32_t j = 0; j < problem.source_count; j++)
                    matrix[i * problem.source_count + j] =
                        (struct by_fraction){size[i / hosts != j / hosts][i % hosts * 4 + j % hosts], 1};
            problem.operation = BY_SERIES_EXCHANGE;
            problem.matrix = matrix;
        }
        problem.classes_from = UINT32_MAX;
        single = steady_made(&problem);
        problem.classes_from = 1;
        alike = steady_made(&problem);
        if (!mpq_equal(single->throughput, alike->throughput)) {
            gmp_fprintf(stderr, "seed %lu: %Qd with classes, %Qd without\n", (unsigned long)seed,
                        alike->throughput, single->throughput);
            fail();
        }
        by_series_free(single);
        by_series_free(alike);
        by_topology_free(topology);
    }
}

/* The classes of a gossip. */
static uint32_t count_classes(const struct by_topology *topology)
{
    struct by_platform *platform = by_platform_new(topology, BY_SERIES_MANY_PORTS);
    uint32_t n = topology->node_count, *ranks = by_alloc(n, sizeof(*ranks)), count;
    struct by_fraction *sizes = by_alloc((size_t)n * n, sizeof(*sizes));
    bool *idle = by_alloc(n, sizeof(*idle));
    struct by_resources resources;
    struct by_flow_classes classes;
    uint32_t roots = gossip(topology, BY_SERIES_MANY_PORTS, ranks).source_count;
    const struct by_flow_pairs pairs = {platform, &resources, roots, ranks, sizes, idle, 0};

    for (uint32_t r = 0; r < roots; r++)
        for (uint32_t i = 0; i < n; i++)
            sizes[r * n + i] = (struct by_fraction){topology->nodes[i].compute && i != ranks[r], 1};
    by_resources_make(&resources, platform, NULL);
    assert_int_equal(by_flow_classes_find(&classes, &pairs), 0);
    count = classes.flows.count;
    by_flow_classes_free(&classes);
    by_resources_free(&resources);
    by_platform_free(platform);
    free(ranks);
    free(sizes);
    free(idle);
    return count;
}

/* Hosts in two triangles and in a hexagon have equal neighbours, but are not alike. */
static void triangles_and_a_hexagon_are_told_apart(void **state)
{
    struct by_builder *builder = by_builder_new("rings", "GB/s");
    struct by_topology *topology;
    struct by_steady_problem problem;
    uint32_t ranks[16];
    struct by_series *single, *alike;

    (void)state;
    add_nodes(builder, 12, true);
    add_nodes(builder, 1, false);
    for (uint32_t i = 0; i < 6; i++) {
        link(builder, i, i / 3 * 3 + (i + 1) % 3, true, 2);
        link(builder, 6 + i, 6 + (i + 1) % 6, true, 2);
    }
    for (uint32_t i = 0; i < 12; i++)
        link(builder, i, 12, true, 1);
    topology = finish(builder);
    problem = gossip(topology, BY_SERIES_MANY_PORTS, ranks);
    problem.classes_from = UINT32_MAX;
    single = steady_made(&problem);
    problem.classes_from = 1;
    alike = steady_made(&problem);
    assert_true(mpq_equal(single->throughput, alike->throughput));
    by_series_free(single);
    by_series_free(alike);
    by_topology_free(topology);
}

static void regular_fabrics_have_few_classes(void **state)
{
    struct by_topology *small = rig_preset("a100", "none", "4", "8", NULL);
    struct by_topology *large = rig_preset("a100", "none", "16", "8", NULL);

    (void)state;
    assert_true(count_classes(small) <= 20);
    assert_int_equal(count_classes(small), count_classes(large));
    by_topology_free(small);
    by_topology_free(large);
}

/* All data of a box for others leaves over its links to InfiniBand: 8 GPUs at 25 GB/s each, with
 * 8 x (count - 8) messages. */
static void an_all_to_all_of_256_gpus_has_its_closed_form(void **state)
{
    struct by_topology *topology = rig_preset("a100", "none", "32", "8", NULL);
    uint32_t *ranks = by_alloc(topology->node_count, sizeof(*ranks));
    struct by_steady_problem problem = gossip(topology, BY_SERIES_MANY_PORTS, ranks);
    struct by_series_verdict verdict;
    struct by_series *series = NULL;
    struct by_problem trouble = {0};

    (void)state;
    if (by_steady_make(&problem, &series, &trouble) != 0)
        fail_msg("%s", trouble.text);
    steady_assert_rational(series->throughput, 25, 248);
    by_series_check(series, topology, &verdict);
    assert_int_equal(verdict.verdict, BY_VERDICT_OPTIMAL);
    assert_int_equal(series->lane_count, 256 * 255);
    by_series_free(series);
    by_topology_free(topology);
    free(ranks);
}

static void irregular_fabrics_of_that_size_are_refused(void **state)
{
    struct by_prng prng = {11};
    struct by_builder *builder = by_builder_new("irregular", "GB/s");
    struct by_topology *topology;
    struct by_steady_problem problem;
    struct by_problem trouble = {0};
    struct by_series *series = NULL;
    uint32_t ranks[256];

    (void)state;
    add_nodes(builder, 256, true);
    for (uint32_t i = 1; i < 256; i++)
        link(builder, below(&prng, i), i, true, 1 + below(&prng, 1000));
    for (uint32_t i = 0; i < 600; i++)
        link(builder, i % 256, (i + 1 + below(&prng, 255)) % 256, true, 1 + below(&prng, 1000));
    topology = finish(builder);
    problem = gossip(topology, BY_SERIES_MANY_PORTS, ranks);
    assert_int_equal(by_steady_make(&problem, &series, &trouble), BY_ELIMIT);
    assert_non_null(strstr(trouble.text, "a more regular fabric"));
    problem.deadline = 1; /* long ago */
    assert_int_equal(by_steady_make(&problem, &series, &trouble), BY_ETIMEDOUT);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alike_flows_reach_what_single_ones_reach),
        cmocka_unit_test(triangles_and_a_hexagon_are_told_apart),
        cmocka_unit_test(regular_fabrics_have_few_classes),
        cmocka_unit_test(an_all_to_all_of_256_gpus_has_its_closed_form),
        cmocka_unit_test(irregular_fabrics_of_that_size_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

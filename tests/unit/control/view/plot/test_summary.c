/* Large fabrics by classes: which nodes are equivalent, what represents them, and that nothing is
 * lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/fabric/preset/preset.h"
#include "control/fabric/vary.h"
#include "control/plan/plan.h"
#include "control/planner/planner.h"
#include "control/view/plot/classes.h"
#include "control/view/plot/crown.h"
#include "control/view/plot/layout.h"
#include "control/view/plot/picture.h"
#include "control/view/plot/summary.h"
#include "offload/wire/types.h"

static struct by_topology *make(const char *name, const char *const *texts)
{
    const char *all[BY_PRESET_PARAMETERS_MAX] = {NULL};
    struct by_topology *topology;
    struct by_problem problem = {0};

    for (size_t i = 0; texts[i]; i++)
        all[i] = texts[i];
    if (by_preset_make(by_preset_find(name), all, NULL, &topology, &problem) != 0)
        fail_msg("%s: %s", name, problem.text);
    return topology;
}
#define MAKE(name, ...) make((name), (const char *const[]){__VA_ARGS__, NULL})

static uint32_t count_classes(const struct by_topology *topology)
{
    struct by_fabric *fabric = by_fabric_make(topology, NULL, -1, 0);
    uint32_t *levels = by_layout_levels(fabric), count;
    struct by_classes classes;

    by_classes_find(fabric, levels, 16, UINT32_MAX, &classes);
    count = classes.count;
    free(classes.of);
    free(levels);
    by_fabric_free(fabric);
    return count;
}

static void nodes_that_a_symmetry_exchanges_are_alike(void **state)
{
    static const struct {
        const char *name, *parameter;
        uint32_t classes;
    } cases[] = {{"star", "9", 2},      {"ring", "12", 1},    {"torus", "4x4x4", 1},
                 {"hypercube", "5", 1}, {"a100", "4", 3},     {"fattree", "4", 4},
                 {"rail", "4", 3},      {"complete", "7", 1}, {"leafspine", "3", 3}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology = MAKE(cases[i].name, cases[i].parameter);

        print_message("%s\n", topology->name);
        assert_int_equal(count_classes(topology), cases[i].classes);
        by_topology_free(topology);
    }
}

static void a_lost_link_tells_its_ends_apart(void **state)
{
    struct by_topology *ring = MAKE("ring", "8"), *line;
    bool lost[8] = {true};
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(by_topology_without(ring, lost, NULL, &line, &problem), 0);
    assert_int_equal(count_classes(ring), 1);
    assert_int_equal(count_classes(line), 4); /* a line of 8: each node and its mirror image */
    by_topology_free(line);
    by_topology_free(ring);
}

/* Every node is in one group, every channel in one bundle, and frames contain their members. */
static void check_whole(const struct by_summary *summary)
{
    const struct by_fabric *fabric = summary->fabric;
    uint32_t nodes = 0, channels = 0;

    for (uint32_t i = 0; i < summary->group_count; i++) {
        const struct by_plot_group *group = &summary->groups[i];
        const struct by_plot_frame *frame = &summary->frames[group->frame];

        nodes += group->count;
        assert_true(group->x - group->half_width >= frame->x - frame->width / 2);
        assert_true(group->x + group->half_width <= frame->x + frame->width / 2);
        assert_true(group->y - group->half_height >= frame->y);
        assert_true(group->y + group->half_height <= frame->y + frame->height);
    }
    assert_int_equal(nodes, fabric->topology->node_count);
    for (uint32_t n = 0; n < fabric->topology->node_count; n++) {
        assert_true(summary->group_of[n] < summary->group_count);
        assert_int_equal(fabric->shaded[n], summary->groups[summary->group_of[n]].shaded);
    }
    for (uint32_t i = 0; i < summary->bundle_count; i++)
        channels += summary->bundles[i].count;
    assert_int_equal(channels, fabric->channel_count);
}

static struct by_summary *summarise(const struct by_topology *topology, struct by_fabric **fabric)
{
    *fabric = by_fabric_make(topology, NULL, -1, 0);
    return by_summary_make(*fabric);
}

static void a_box_is_drawn_once_with_its_number(void **state)
{
    struct by_topology *topology = MAKE("a100", "128");
    struct by_fabric *fabric;
    struct by_summary *summary = summarise(topology, &fabric);

    (void)state;
    check_whole(summary);
    assert_int_equal(summary->group_count, 1 + 1 + 8);
    assert_int_equal(summary->frame_count, 2);
    assert_int_equal(summary->frames[1].copies, 128);
    assert_int_equal(summary->frames[1].size, 9);
    assert_true(summary->frames[1].whole);
    assert_int_equal(summary->bundle_count, 16);
    by_summary_free(summary);
    by_fabric_free(fabric);
    by_topology_free(topology);
}

static void pods_hold_racks(void **state)
{
    struct by_topology *topology = MAKE("fattree", "16");
    struct by_fabric *fabric;
    struct by_summary *summary = summarise(topology, &fabric);

    (void)state;
    check_whole(summary);
    assert_int_equal(summary->frame_count, 3);
    assert_int_equal(summary->frames[1].copies, 16);
    assert_int_equal(summary->frames[2].copies, 128);
    assert_int_equal(summary->frames[2].parent, 1);
    by_summary_free(summary);
    by_fabric_free(fabric);
    by_topology_free(topology);
}

static void a_dragonfly_is_drawn_as_groups(void **state)
{
    struct by_topology *topology = MAKE("dragonfly", "33", "8", "4");
    struct by_fabric *fabric;
    struct by_summary *summary = summarise(topology, &fabric);
    uint32_t apart = 0;

    (void)state;
    check_whole(summary);
    assert_int_equal(summary->frame_count >= 2, true);
    assert_int_equal(summary->frames[1].copies, 33);
    for (uint32_t i = 0; i < summary->bundle_count; i++)
        apart += summary->bundles[i].apart ? summary->bundles[i].count : 0;
    assert_int_equal(apart, 33 * 32 / 2);
    by_summary_free(summary);
    by_fabric_free(fabric);
    by_topology_free(topology);
}

static void irregular_fabrics_stay_small(void **state)
{
    static const char *const presets[] = {"a100", "mi250",     "hetero",   "pcie",
                                          "rail", "dragonfly", "leafspine"};

    (void)state;
    for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            struct by_topology *regular = MAKE(presets[i], "32"), *topology;
            struct by_variation variation = {.fail = {1, 20}, .seed = seed};
            struct by_problem problem = {0};
            struct by_summary *summary;
            struct by_fabric *fabric;

            if (seed % 2) {
                variation.scatter_low = 1;
                variation.scatter_high = 5;
            }
            assert_int_equal(by_vary(regular, &variation, &topology, &problem), 0);
            summary = summarise(topology, &fabric);
            check_whole(summary);
            assert_true(summary->group_count <= 250);
            by_summary_free(summary);
            by_fabric_free(fabric);
            by_topology_free(topology);
            by_topology_free(regular);
        }
}

static void a_plan_is_drawn_with_its_cut_its_loads_and_a_tree(void **state)
{
    struct by_topology *topology = MAKE("rail", "16", "8");
    struct by_plan_options options = {.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1, .in_network = true};
    struct by_problem problem = {0};
    struct by_fabric *fabric;
    struct by_summary *summary;
    struct by_plan *plan;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    uint32_t shaded = 0;

    (void)state;
    assert_int_equal(by_plan_make(topology, &options, &plan, &problem), 0);
    fabric = by_fabric_make(topology, plan, -1, 1);
    summary = by_summary_make(fabric);
    check_whole(summary);
    for (uint32_t i = 0; i < summary->group_count; i++)
        shaded += summary->groups[i].shaded;
    assert_true(shaded > 0);
    assert_non_null(out);
    by_picture_summary_write(fabric, out);
    fclose(out);
    assert_non_null(strstr(text, "256 directions: 256 full")); /* the rails are the bottleneck */
    assert_non_null(strstr(text, "\xc3\x97"));
    assert_non_null(strstr(text, "</svg>"));
    assert_null(strstr(text, "nan"));
    free(text);
    by_summary_free(summary);
    by_fabric_free(fabric);
    by_plan_free(plan);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_that_a_symmetry_exchanges_are_alike),
        cmocka_unit_test(a_lost_link_tells_its_ends_apart),
        cmocka_unit_test(a_box_is_drawn_once_with_its_number),
        cmocka_unit_test(pods_hold_racks),
        cmocka_unit_test(a_dragonfly_is_drawn_as_groups),
        cmocka_unit_test(irregular_fabrics_stay_small),
        cmocka_unit_test(a_plan_is_drawn_with_its_cut_its_loads_and_a_tree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

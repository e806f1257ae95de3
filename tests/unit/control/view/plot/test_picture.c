/* Pictures: loads, positions and the text of the files. The fabrics are small and written out; the
 * plans are made by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/fabric/preset/preset.h"
#include "control/view/plot/fabric.h"
#include "control/view/plot/layout.h"
#include "control/view/plot/picture.h"
#include "offload/wire/types.h"

#define HOST(name) "{\"name\": \"" name "\", \"kind\": \"compute\"}"
#define SWITCH(name)                                                                                         \
    "{\"name\": \"" name "\", \"kind\": \"switch\", \"multicast\": true, \"aggregate\": true}"
#define LINK(a, b) "{\"between\": [\"" a "\", \"" b "\"], \"bandwidth\": 10}"

static const char leafspine[] =
    "{\"name\": \"ls\", \"unit\": \"GB/s\", \"nodes\": [" SWITCH("spine") "," HOST("h0") "," HOST("h1") "," SWITCH("leaf0") "," SWITCH("leaf1") "," HOST("h2") "," HOST("h3") "], \"links\": [" LINK(
        "h0",
        "leaf0") "," LINK("h1",
                          "leaf0") "," LINK("h2",
                                            "leaf1") "," LINK("h3",
                                                              "leaf1") "," LINK("spine",
                                                                                "leaf0") "," LINK("leaf1",
                                                                                                  "spine") "," LINK("leaf1",
                                                                                                                    "spine") "]}";
static const char ring[] =
    "{\"name\": \"ring\", \"unit\": \"GB/s\", \"nodes\": [" HOST("a") "," HOST("b") "," HOST("c") "," HOST(
        "d") "], \"links\": [" LINK("a", "b") "," LINK("b", "c") "," LINK("c", "d") "," LINK("d", "a") "]}";
static const char odd_name[] = "{\"name\": \"x<y & \\\"z\\\"\", \"unit\": \"GB/s\", \"nodes\": [" HOST(
    "a") "," HOST("b") "], \"links\": [" LINK("a", "b") "]}";

static struct by_topology *parse(const char *json)
{
    struct by_topology *topology = NULL;
    struct by_problem problem = {0};

    if (by_topology_parse(json, strlen(json), &topology, &problem) != 0)
        fail_msg("%d:%d: %s", problem.line, problem.column, problem.text);
    return topology;
}

static uint32_t node(const struct by_topology *topology, const char *name)
{
    int64_t index = by_topology_find(topology, name);

    assert_true(index >= 0);
    return (uint32_t)index;
}

/* A plan of one tree on the leaf-spine above, rooted at the spine, weight 5/2. */
struct fixture {
    struct by_topology *topology;
    struct by_plan plan;
    struct by_tree tree;
    uint32_t edges[6];
    uint32_t starts[7];
    uint32_t nodes[6][2];
    uint32_t cut[1];
};

static void make_plan(struct fixture *fixture, unsigned collective)
{
    static const char *const pairs[6][2] = {{"spine", "leaf0"}, {"spine", "leaf1"}, {"leaf0", "h0"},
                                            {"leaf0", "h1"},    {"leaf1", "h2"},    {"leaf1", "h3"}};

    memset(fixture, 0, sizeof(*fixture));
    fixture->topology = parse(leafspine);
    for (unsigned e = 0; e < 6; e++) {
        for (unsigned i = 0; i < 2; i++)
            fixture->nodes[e][i] = node(fixture->topology, pairs[e][i]);
        fixture->edges[e] = e;
        fixture->starts[e + 1] = 2 * (e + 1);
    }
    fixture->tree = (struct by_tree){
        .root = node(fixture->topology, "spine"), .use = BY_TREE_BOTH, .weight = {5, 2}, .edge_count = 6};
    fixture->cut[0] = node(fixture->topology, "h0");
    fixture->plan =
        (struct by_plan){.topology_name = "ls",
                         .unit = "GB/s",
                         .collective = collective,
                         .root = -1,
                         .compute_count = 4,
                         .optimum = {10, 1},
                         .achieved = {5, 2},
                         .cut_count = 1,
                         .cut = fixture->cut,
                         .cut_exiting = {10, 1},
                         .tree_count = 1,
                         .trees = &fixture->tree,
                         .paths = {.count = 6, .start = fixture->starts, .nodes = fixture->nodes[0]},
                         .edge_count = 6,
                         .edges = fixture->edges};
}

static void check_loads(unsigned collective, double down, double up)
{
    struct fixture fixture;
    struct by_fabric *fabric;

    make_plan(&fixture, collective);
    fabric = by_fabric_make(fixture.topology, &fixture.plan, -1, 8);
    for (unsigned e = 0; e < 6; e++) {
        unsigned direction;
        struct by_plot_channel *channel =
            by_fabric_channel(fabric, fixture.nodes[e][0], fixture.nodes[e][1], &direction);

        assert_non_null(channel);
        assert_true(channel->load[direction] == down);
        assert_true(channel->load[!direction] == up);
    }
    by_fabric_free(fabric);
    by_topology_free(fixture.topology);
}

static void an_allreduce_loads_its_links_in_both_directions(void **state)
{
    (void)state;
    check_loads(BY_COLLECTIVE_ALLREDUCE, 2.5, 2.5);
}

static void a_broadcast_loads_its_links_from_the_root_on(void **state)
{
    (void)state;
    check_loads(BY_COLLECTIVE_BROADCAST, 2.5, 0);
}

static void a_reduce_loads_its_links_towards_the_root(void **state)
{
    (void)state;
    check_loads(BY_COLLECTIVE_REDUCE, 0, 2.5);
}

static void parallel_cables_add_up(void **state)
{
    struct by_topology *topology = parse(leafspine);
    struct by_fabric *fabric = by_fabric_make(topology, NULL, -1, 8);
    unsigned direction;
    const struct by_plot_channel *channel =
        by_fabric_channel(fabric, node(topology, "spine"), node(topology, "leaf1"), &direction);

    (void)state;
    assert_int_equal(fabric->channel_count, 6);
    assert_int_equal(channel->cable_count, 2);
    assert_true(channel->capacity[0] == 20 && channel->capacity[1] == 20);
    by_fabric_free(fabric);
    by_topology_free(topology);
}

static void only_trees_of_the_chosen_root_are_drawn(void **state)
{
    struct fixture fixture;
    struct by_fabric *fabric;

    (void)state;
    make_plan(&fixture, BY_COLLECTIVE_ALLREDUCE);
    fabric = by_fabric_make(fixture.topology, &fixture.plan, node(fixture.topology, "spine"), 8);
    assert_int_equal(fabric->drawn_count, 1);
    by_fabric_free(fabric);
    fabric = by_fabric_make(fixture.topology, &fixture.plan, node(fixture.topology, "leaf0"), 8);
    assert_int_equal(fabric->drawn_count, 0);
    by_fabric_free(fabric);
    fabric = by_fabric_make(fixture.topology, &fixture.plan, -1, 0);
    assert_int_equal(fabric->drawn_count, 0);
    assert_int_equal(fabric->matching_count, 1);
    by_fabric_free(fabric);
    by_topology_free(fixture.topology);
}

static void check_places(struct by_topology *topology)
{
    struct by_fabric *fabric = by_fabric_make(topology, NULL, -1, 8);
    struct by_layout *layout = by_layout_make(fabric);

    for (uint32_t i = 0; i < topology->node_count; i++) {
        const struct by_spot *p = &layout->places[i];

        assert_true(p->x - p->half_width >= 0 && p->x + p->half_width <= layout->width);
        assert_true(p->y - p->half_height >= 0 && p->y + p->half_height <= layout->height);
        for (uint32_t j = 0; j < i; j++) {
            const struct by_spot *q = &layout->places[j];

            assert_true(fabs(p->x - q->x) >= p->half_width + q->half_width ||
                        fabs(p->y - q->y) >= p->half_height + q->half_height);
        }
    }
    by_layout_free(layout);
    by_fabric_free(fabric);
    by_topology_free(topology);
}

static void no_two_nodes_overlap(const char *json)
{
    check_places(parse(json));
}

static struct by_topology *dragonfly(const char *groups, const char *routers)
{
    const char *parameters[BY_PRESET_PARAMETERS_MAX] = {groups, routers, "2"};
    struct by_topology *topology = NULL;
    struct by_problem problem = {0};

    if (by_preset_make(by_preset_find("dragonfly"), parameters, NULL, &topology, &problem) != 0)
        fail_msg("%s", problem.text);
    return topology;
}

/* Groups are on a ring, each in its own sector with its hosts. */
static void a_dragonfly_s_groups_stand_on_a_ring(void **state)
{
    static const char *const sizes[][2] = {{"5", "4"}, {"4", "3"}, {"9", "4"}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct by_topology *topology = dragonfly(sizes[i][0], sizes[i][1]);
        struct by_fabric *fabric = by_fabric_make(topology, NULL, -1, 0);
        struct by_layout *layout = by_layout_make(fabric);

        assert_int_equal(layout->shape, BY_SHAPE_RING);
        assert_int_equal(layout->group_count, atoi(sizes[i][0]));
        for (uint32_t n = 0; n < topology->node_count; n++) {
            const struct by_spot *place = &layout->places[n];
            double angle = atan2(place->x - layout->width / 2, layout->height / 2 - place->y);
            const struct by_sector *sector = &layout->sectors[layout->group[n]];

            angle += angle < 0 ? 6.28318530717958647692 : 0;
            assert_true(angle > sector->from && angle < sector->to);
        }
        by_layout_free(layout);
        by_fabric_free(fabric);
        check_places(topology);
    }
}

static void nodes_stand_apart_and_inside_the_picture(void **state)
{
    (void)state;
    no_two_nodes_overlap(leafspine);
    no_two_nodes_overlap(ring);
    no_two_nodes_overlap(odd_name);
}

static void switches_stand_above_what_they_serve(void **state)
{
    struct by_topology *topology = parse(leafspine);
    struct by_fabric *fabric = by_fabric_make(topology, NULL, -1, 8);
    struct by_layout *layout = by_layout_make(fabric);

    (void)state;
    assert_true(layout->places[node(topology, "spine")].y < layout->places[node(topology, "leaf0")].y);
    assert_true(layout->places[node(topology, "leaf0")].y < layout->places[node(topology, "h0")].y);
    assert_true(layout->places[node(topology, "h0")].y == layout->places[node(topology, "h3")].y);
    assert_true(layout->places[node(topology, "leaf0")].y == layout->places[node(topology, "leaf1")].y);
    by_layout_free(layout);
    by_fabric_free(fabric);
    by_topology_free(topology);
}

static char *written(const struct by_fabric *fabric, void (*write)(const struct by_fabric *, FILE *))
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    assert_non_null(out);
    write(fabric, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static unsigned count_of(const char *text, const char *word)
{
    unsigned count = 0;

    for (; (text = strstr(text, word)) != NULL; text += strlen(word))
        count++;
    return count;
}

static void names_are_escaped_in_svg(void **state)
{
    struct by_topology *topology = parse(odd_name);
    struct by_fabric *fabric = by_fabric_make(topology, NULL, -1, 8);
    char *svg = written(fabric, by_picture_write);

    (void)state;
    assert_non_null(strstr(svg, ">x&lt;y &amp; &quot;z&quot;</text>"));
    assert_null(strstr(svg, "x<y"));
    assert_int_equal(count_of(svg, "<text"), count_of(svg, "</text>"));
    assert_int_equal(count_of(svg, "<g"), count_of(svg, "</g>"));
    free(svg);
    by_fabric_free(fabric);
    by_topology_free(topology);
}

static void names_are_escaped_in_dot(void **state)
{
    struct by_topology *topology = parse(odd_name);
    struct by_fabric *fabric = by_fabric_make(topology, NULL, -1, 8);
    char *dot = written(fabric, by_dot_write);

    (void)state;
    assert_non_null(strstr(dot, "digraph \"x<y & \\\"z\\\"\" {"));
    assert_int_equal(count_of(dot, "{"), count_of(dot, "}"));
    free(dot);
    by_fabric_free(fabric);
    by_topology_free(topology);
}

static void a_plan_s_picture_holds_the_facts(void **state)
{
    struct fixture fixture;
    struct by_fabric *fabric;
    char *svg, *dot;

    (void)state;
    make_plan(&fixture, BY_COLLECTIVE_ALLREDUCE);
    fabric = by_fabric_make(fixture.topology, &fixture.plan, -1, 8);
    svg = written(fabric, by_picture_write);
    assert_non_null(strstr(svg, "ls: allreduce"));
    assert_non_null(strstr(svg, "5/2 GB/s (algbw), 25.0% of the bound 10"));
    assert_non_null(strstr(svg, "tree 0 of spine: 5/2 GB/s"));
    assert_non_null(strstr(svg, "bottleneck: 10 GB/s can leave this side"));
    free(svg);
    dot = written(fabric, by_dot_write);
    assert_int_equal(count_of(dot, by_tree_color(0)), 6);
    free(dot);
    by_fabric_free(fabric);
    by_topology_free(fixture.topology);
}

static void a_cut_of_most_nodes_shades_the_others(void **state)
{
    struct fixture fixture;
    struct by_fabric *fabric;
    uint32_t cut[6], count = 0;

    (void)state;
    make_plan(&fixture, BY_COLLECTIVE_ALLREDUCE);
    for (uint32_t n = 0; n < 7; n++)
        if (n != node(fixture.topology, "h2"))
            cut[count++] = n;
    fixture.plan.cut = cut;
    fixture.plan.cut_count = count;
    fabric = by_fabric_make(fixture.topology, &fixture.plan, -1, 8);
    assert_true(fabric->shaded_receives);
    for (uint32_t n = 0; n < 7; n++)
        assert_int_equal(fabric->shaded[n], n == node(fixture.topology, "h2"));
    by_fabric_free(fabric);
    by_topology_free(fixture.topology);
}

static void a_partition_is_drawn_part_by_part(void **state)
{
    struct fixture fixture;
    struct by_fabric *fabric;
    struct by_part parts[2] = {{0}};
    struct by_certificate proof = {.kind = BY_CERTIFICATE_PARTS, .part_count = 2, .parts = parts};
    uint32_t first[3], second[3];
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream;

    (void)state;
    make_plan(&fixture, BY_COLLECTIVE_ALLREDUCE);
    for (unsigned i = 0; i < 3; i++) {
        first[i] = node(fixture.topology, (const char *[]){"leaf0", "h0", "h1"}[i]);
        second[i] = node(fixture.topology, (const char *[]){"leaf1", "h2", "h3"}[i]);
    }
    parts[0] = (struct by_part){.node_count = 3, .nodes = first};
    parts[1] = (struct by_part){.node_count = 3, .nodes = second};
    fixture.plan.proof = &proof;
    fabric = by_fabric_make(fixture.topology, &fixture.plan, -1, 8);
    assert_int_equal(fabric->part_count, 2);
    assert_int_equal(fabric->part[node(fixture.topology, "h1")], 0);
    assert_int_equal(fabric->part[node(fixture.topology, "h2")], 1);
    assert_int_equal(fabric->part[node(fixture.topology, "spine")], BY_FABRIC_NO_PART);
    stream = open_memstream(&text, &bytes);
    assert_non_null(stream);
    by_picture_write(fabric, stream);
    fclose(stream);
    assert_non_null(strstr(text, "tight partition: 20 GB/s leave its 2 parts, each pair of trees 2 times"));
    assert_null(strstr(text, "bottleneck"));
    free(text);
    by_fabric_free(fabric);
    by_topology_free(fixture.topology);
}

static void a_long_name_is_cut_between_characters(void **state)
{
    char label[BY_LABEL_BYTES];

    (void)state;
    assert_string_equal(by_layout_label("leaf0", label), "leaf0");
    assert_string_equal(by_layout_label("a-switch-with-a-long-name", label), "a-switch-wit\xe2\x80\xa6");
    assert_string_equal(by_layout_label("12345678901\xc3\xa9 and more of it", label),
                        "12345678901\xe2\x80\xa6");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allreduce_loads_its_links_in_both_directions),
        cmocka_unit_test(a_broadcast_loads_its_links_from_the_root_on),
        cmocka_unit_test(a_reduce_loads_its_links_towards_the_root),
        cmocka_unit_test(parallel_cables_add_up),
        cmocka_unit_test(only_trees_of_the_chosen_root_are_drawn),
        cmocka_unit_test(nodes_stand_apart_and_inside_the_picture),
        cmocka_unit_test(a_dragonfly_s_groups_stand_on_a_ring),
        cmocka_unit_test(switches_stand_above_what_they_serve),
        cmocka_unit_test(names_are_escaped_in_svg),
        cmocka_unit_test(names_are_escaped_in_dot),
        cmocka_unit_test(a_plan_s_picture_holds_the_facts),
        cmocka_unit_test(a_cut_of_most_nodes_shades_the_others),
        cmocka_unit_test(a_partition_is_drawn_part_by_part),
        cmocka_unit_test(a_long_name_is_cut_between_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

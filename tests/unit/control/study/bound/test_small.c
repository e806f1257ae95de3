/*
 * Bounds and rates of small fabrics against exhaustive enumeration: every set of nodes, every
 * partition, every tree as a variable. `make bound-check` runs many more, up to all connected
 * graphs of six nodes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "tests/unit/control/study/bound/compare.h"
#include "tests/unit/control/study/bound/graphs.h"

/* Tries every `step`th fabric. Returns their number. */
static uint32_t try_all(struct graphs graphs, uint64_t step, bool trees)
{
    uint64_t count = graphs_count(&graphs);
    uint32_t tried = 0;

    for (uint64_t i = 0; i < count; i += step) {
        struct by_topology *topology = graphs_make(&graphs, i);
        char text[COMPARE_TEXT_BYTES];

        if (!topology)
            continue;
        if (!compare_bounds(topology, trees, NULL, text))
            fail_msg("%s", text);
        by_topology_free(topology);
        tried++;
    }
    return tried;
}

static void graphs_of_four_nodes_have_the_rates_of_all_partitions_and_trees(void **state)
{
    (void)state;
    assert_true(try_all((struct graphs){GRAPH_SYMMETRIC, 3, 3, "graph-3", 0, {0}}, 1, true) > 30);
    assert_true(try_all((struct graphs){GRAPH_SYMMETRIC, 4, 2, "graph-4", 0, {0}}, 1, false) > 400);
}

static void shapes_of_six_nodes_have_the_rates_of_all_partitions(void **state)
{
    (void)state;
    assert_int_equal(try_all((struct graphs){GRAPH_CLASS, 5, 1, "class-5", 0, {0}}, 1, false), 21);
    assert_int_equal(try_all((struct graphs){GRAPH_CLASS, 6, 1, "class-6", 0, {0}}, 1, false), 112);
}

static void directed_graphs_have_the_rates_of_all_trees(void **state)
{
    (void)state;
    assert_true(try_all((struct graphs){GRAPH_DIRECTED, 3, 2, "directed-3", 0, {0}}, 1, true) > 300);
    assert_true(try_all((struct graphs){GRAPH_DIRECTED, 4, 1, "directed-4", 0, {0}}, 23, true) > 50);
}

static void switches_that_forward_give_the_rates_of_all_trees(void **state)
{
    (void)state;
    assert_true(try_all((struct graphs){GRAPH_SWITCHED, 0, 5, "switched", 0, {0}}, 9, true) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_of_four_nodes_have_the_rates_of_all_partitions_and_trees),
        cmocka_unit_test(shapes_of_six_nodes_have_the_rates_of_all_partitions),
        cmocka_unit_test(directed_graphs_have_the_rates_of_all_trees),
        cmocka_unit_test(switches_that_forward_give_the_rates_of_all_trees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

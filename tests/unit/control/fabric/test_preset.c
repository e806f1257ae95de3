/* Presets: sizes, degrees, capabilities, and refusal of impossible parameters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "control/fabric/preset/preset.h"
#include "offload/base/errors.h"

static struct by_topology *make(const char *name, const char *const *texts, const char *capable)
{
    struct by_topology *topology;
    struct by_problem problem = {0};
    int error = by_preset_make(by_preset_find(name), texts, capable, &topology, &problem);

    if (error)
        print_error("%s: %s\n", name, problem.text);
    assert_int_equal(error, 0);
    return topology;
}

static void presets_have_the_nodes_and_links_of_their_kind(void **state)
{
    static const struct {
        const char *name;
        const char *texts[BY_PRESET_PARAMETERS_MAX];
        uint32_t compute, nodes, links;
    } cases[] = {
        {"star", {"8"}, 8, 9, 8},
        {"ring", {"5"}, 5, 5, 5},
        {"ring", {"2"}, 2, 2, 1},
        {"complete", {"6"}, 6, 6, 15},
        {"torus", {"4x4"}, 16, 16, 32},
        {"torus", {"3x2x1"}, 6, 6, 9},
        {"hypercube", {"4"}, 16, 16, 32},
        {"leafspine", {"3", "2", "4"}, 12, 17, 18},
        {"fattree", {"4"}, 16, 36, 48},
        {"clos", {NULL}, 8, 18, 20},
        {"clos", {"3", "2", "4", "5", "7"}, 24, 80, 159},
        {"clos", {"80", "32", "40", "40", "32"}, 102400, 109440, 307200},
        {"dragonfly", {"5", "2", "2"}, 20, 30, 35},
        {"rail", {"4", "4"}, 16, 24, 32},
        {"twobox", {"4"}, 8, 11, 16},
        {"a100", {"2"}, 16, 19, 32},
        {"h100", {"16", "8"}, 128, 145, 256},
        {"mi250", {"2"}, 32, 33, 88},
        {"mi250", {"2", "8"}, 16, 17, 38},
        {"random", {"8", "3", "6", "5", "7"}, 8, 11, 16},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology = make(cases[i].name, cases[i].texts, NULL);

        print_message("%s\n", topology->name);
        assert_int_equal(by_topology_compute_count(topology), cases[i].compute);
        assert_int_equal(topology->node_count, cases[i].nodes);
        assert_int_equal(topology->link_count, cases[i].links);
        assert_int_equal(topology->arc_count, 2 * cases[i].links);
        by_topology_free(topology);
    }
}

/* Returns the sum of capacities leaving a node, in the topology's unit. */
static int64_t leaving(const struct by_topology *topology, const char *name)
{
    int64_t sum = 0, node = by_topology_find(topology, name);

    assert_true(node >= 0);
    for (uint32_t i = 0; i < topology->arc_count; i++)
        sum += topology->arcs[i].from == node ? topology->arcs[i].capacity : 0;
    assert_int_equal(sum % topology->scale, 0);
    return sum / topology->scale;
}

static void real_machines_have_the_bandwidths_of_their_links(void **state)
{
    static const char *const none[BY_PRESET_PARAMETERS_MAX] = {NULL};
    struct by_topology *topology = make("mi250", none, NULL);

    (void)state;
    assert_int_equal(leaving(topology, "gcd0"), 7 * 50 + 16);
    assert_int_equal(leaving(topology, "gcd15"), 7 * 50 + 16);
    assert_int_equal(leaving(topology, "ib0"), 32 * 16);
    by_topology_free(topology);
    topology = make("a100", none, NULL);
    assert_int_equal(leaving(topology, "gpu9"), 325);
    assert_int_equal(leaving(topology, "nvswitch1"), 2400);
    by_topology_free(topology);
    topology = make("h100", none, NULL);
    assert_int_equal(leaving(topology, "gpu0"), 500);
    by_topology_free(topology);
}

static void capable_takes_names_classes_all_and_none(void **state)
{
    static const char *const none[BY_PRESET_PARAMETERS_MAX] = {NULL};
    static const struct {
        const char *capable;
        uint32_t count;
    } cases[] = {{"all", 3}, {"none", 0}, {"leaf", 2}, {"spine0", 1}, {"leaf1,spine", 2}, {NULL, 3}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology = make("leafspine", none, cases[i].capable);
        uint32_t count = 0;

        for (uint32_t j = 0; j < topology->node_count; j++) {
            assert_int_equal(topology->nodes[j].multicast, topology->nodes[j].aggregate);
            count += topology->nodes[j].multicast;
        }
        assert_int_equal(count, cases[i].count);
        by_topology_free(topology);
    }
}

static void impossible_parameters_are_refused_by_name(void **state)
{
    static const struct {
        const char *name;
        const char *texts[BY_PRESET_PARAMETERS_MAX];
        const char *capable;
        const char *says;
    } cases[] = {
        {"star", {"0"}, NULL, "--hosts"},
        {"star", {"many"}, NULL, "--hosts"},
        {"star", {"2.5"}, NULL, "--hosts"},
        {"star", {"9999999"}, NULL, "1048575"},
        {"star", {NULL, "0"}, NULL, "--bandwidth"},
        {"star", {NULL, "-1"}, NULL, "--bandwidth"},
        {"star", {NULL, NULL}, "spine", "'spine'"},
        {"star", {NULL, NULL}, "host0", "'host0'"},
        {"fattree", {"5"}, NULL, "even"},
        {"torus", {"4x"}, NULL, "--sizes"},
        {"torus", {"0x4"}, NULL, "--sizes"},
        {"torus", {"2x2x2x2x2"}, NULL, "--sizes"},
        {"torus", {"9999999999x9999999999"}, NULL, "--sizes"},
        {"leafspine", {"4096", "256", "1024"}, NULL, "nodes; the limit is 1048576"},
        {"leafspine", {"4096", "1024", "1"}, NULL, "4198400 links; the limit is 4194304"},
        {"clos", {"4096", "1024", "1024"}, NULL, "nodes; the limit is 1048576"},
        {"clos", {"8", "64", "1", "128", "4096"}, NULL, "--cores"},
        {"clos", {"80", "256", "1", "256"}, NULL, "5283840 links; the limit is 4194304"},
        {"dragonfly", {"2048", "64", "1"}, NULL, "6355968 links; the limit is 4194304"},
    };

    (void)state;
    assert_null(by_preset_find("moebius"));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology = NULL;
        struct by_problem problem = {0};

        assert_true(by_preset_make(by_preset_find(cases[i].name), cases[i].texts, cases[i].capable, &topology,
                                   &problem) < 0);
        print_message("%s\n", problem.text);
        assert_non_null(strstr(problem.text, cases[i].says));
        assert_null(topology);
    }
}

static void the_same_seed_gives_the_same_random_fabric(void **state)
{
    static const char *const seven[BY_PRESET_PARAMETERS_MAX] = {NULL, NULL, NULL, NULL, "7"};
    static const char *const eight[BY_PRESET_PARAMETERS_MAX] = {NULL, NULL, NULL, NULL, "8"};
    struct by_topology *a = make("random", seven, NULL), *b = make("random", seven, NULL),
                       *c = make("random", eight, NULL);

    (void)state;
    assert_memory_equal(a->arcs, b->arcs, a->arc_count * sizeof(*a->arcs));
    assert_int_equal(a->arc_count, c->arc_count);
    assert_memory_not_equal(a->arcs, c->arcs, a->arc_count * sizeof(*a->arcs));
    by_topology_free(a);
    by_topology_free(b);
    by_topology_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_have_the_nodes_and_links_of_their_kind),
        cmocka_unit_test(real_machines_have_the_bandwidths_of_their_links),
        cmocka_unit_test(capable_takes_names_classes_all_and_none),
        cmocka_unit_test(impossible_parameters_are_refused_by_name),
        cmocka_unit_test(the_same_seed_gives_the_same_random_fabric),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

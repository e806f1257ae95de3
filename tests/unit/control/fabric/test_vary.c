/* Failed links and scattered bandwidths: the requested number, a connected fabric, the same for the
 * same seed; irregular presets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "control/fabric/preset/preset.h"
#include "control/fabric/vary.h"
#include "offload/base/errors.h"

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
#define MAKE(name, ...) make((name), (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static struct by_topology *vary(const struct by_topology *from, struct by_variation variation)
{
    struct by_topology *topology;
    struct by_problem problem = {0};

    if (by_vary(from, &variation, &topology, &problem) != 0)
        fail_msg("%s", problem.text);
    return topology;
}

static void as_many_links_fail_as_asked_and_every_node_stays(void **state)
{
    struct by_topology *torus = MAKE("torus", "6x6");

    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct by_topology *failed = vary(torus, (struct by_variation){.fail = {1, 10}, .seed = seed});

        assert_int_equal(failed->node_count, 36);
        assert_int_equal(failed->link_count, 72 - 7);
        by_topology_free(failed);
    }
    by_topology_free(torus);
}

static void links_that_hold_the_fabric_together_do_not_fail(void **state)
{
    struct by_topology *ring = MAKE("ring", "9"), *star = MAKE("star", "5");
    struct by_topology *line = vary(ring, (struct by_variation){.fail = {9, 10}, .seed = 3});
    struct by_topology *whole = vary(star, (struct by_variation){.fail = {9, 10}, .seed = 3});

    (void)state;
    assert_int_equal(line->link_count, 8);
    assert_int_equal(whole->link_count, 5);
    by_topology_free(line);
    by_topology_free(whole);
    by_topology_free(ring);
    by_topology_free(star);
}

static void scattered_bandwidths_are_whole_multiples_in_the_range_and_equal_both_ways(void **state)
{
    struct by_topology *torus = MAKE("torus", "5x5", "5/2");
    struct by_topology *scattered =
        vary(torus, (struct by_variation){.fail = {0, 1}, .scatter_low = 2, .scatter_high = 4, .seed = 8});
    unsigned seen[5] = {0};

    (void)state;
    assert_int_equal(scattered->link_count, torus->link_count);
    for (uint32_t i = 0; i < scattered->link_count; i++) {
        int64_t capacity = scattered->arcs[scattered->links[i].arc_ab].capacity;

        assert_int_equal(scattered->arcs[scattered->links[i].arc_ba].capacity, capacity);
        assert_int_equal(capacity * 2 % (5 * scattered->scale), 0);
        capacity = capacity * 2 / (5 * scattered->scale);
        assert_in_range(capacity, 2, 4);
        seen[capacity]++;
    }
    assert_true(seen[2] > 0 && seen[3] > 0 && seen[4] > 0);
    by_topology_free(scattered);
    by_topology_free(torus);
}

static void the_same_seed_fails_the_same_links(void **state)
{
    struct by_topology *torus = MAKE("torus", "6x6");
    struct by_topology *a = vary(torus, (struct by_variation){.fail = {1, 5}, .seed = 5});
    struct by_topology *b = vary(torus, (struct by_variation){.fail = {1, 5}, .seed = 5});
    struct by_topology *c = vary(torus, (struct by_variation){.fail = {1, 5}, .seed = 6});

    (void)state;
    assert_memory_equal(a->arcs, b->arcs, a->arc_count * sizeof(*a->arcs));
    assert_memory_not_equal(a->arcs, c->arcs, a->arc_count * sizeof(*a->arcs));
    by_topology_free(a);
    by_topology_free(b);
    by_topology_free(c);
    by_topology_free(torus);
}

static void a_factor_that_does_not_fit_is_refused(void **state)
{
    struct by_topology *star = MAKE("star", "2", "100000000000000000"), *topology;
    struct by_variation variation = {.fail = {0, 1}, .scatter_low = 1000000, .scatter_high = 1000000};
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(by_vary(star, &variation, &topology, &problem), BY_ERANGE);
    assert_null(topology);
    assert_non_null(strstr(problem.text, "host0"));
    by_topology_free(star);
}

static void what_is_lost_takes_its_links_along_and_the_rest_must_hold_together(void **state)
{
    struct by_topology *ring = MAKE("ring", "5"), *left;
    bool nodes[5] = {false, true}, links[5] = {false, false, false, true};
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(by_topology_without(ring, NULL, nodes, &left, &problem), 0);
    assert_int_equal(left->node_count, 4);
    assert_int_equal(left->link_count, 3);
    assert_true(by_topology_find(left, "host1") < 0);
    by_topology_free(left);
    assert_int_equal(by_topology_without(ring, links, NULL, &left, &problem), 0);
    assert_int_equal(left->node_count, 5);
    assert_int_equal(left->link_count, 4);
    by_topology_free(left);
    assert_int_equal(by_topology_without(ring, links, nodes, &left, &problem), BY_EINVAL);
    assert_null(left);
    by_topology_free(ring);
}

static void every_host_of_a_regular_fabric_has_as_many_different_neighbours(void **state)
{
    static const char *const cases[][2] = {{"8", "4"}, {"8", "3"}, {"50", "7"}, {"9", "2"}, {"6", "4"}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology = MAKE("regular", cases[i][0], cases[i][1]);
        uint32_t degree = (uint32_t)atoi(cases[i][1]), n = topology->node_count;
        uint8_t *met = calloc(n, n);

        assert_non_null(met);
        assert_int_equal(topology->link_count, n * degree / 2);
        for (uint32_t j = 0; j < topology->arc_count; j++)
            met[topology->arcs[j].from * n + topology->arcs[j].to] = 1;
        for (uint32_t a = 0; a < n; a++) {
            uint32_t count = 0;

            for (uint32_t b = 0; b < n; b++)
                count += met[a * n + b];
            assert_int_equal(count, degree);
        }
        free(met);
        by_topology_free(topology);
    }
}

static void a_regular_fabric_that_cannot_be_is_refused(void **state)
{
    static const char *const cases[][BY_PRESET_PARAMETERS_MAX] = {{"8", "8"}, {"7", "3"}, {"8", "1"}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology;
        struct by_problem problem = {0};

        assert_true(by_preset_make(by_preset_find("regular"), cases[i], NULL, &topology, &problem) < 0);
        assert_non_null(strstr(problem.text, "--degree"));
    }
}

static void a_gpu_behind_pcie_has_a_switch_and_a_nic_between_it_and_the_network(void **state)
{
    struct by_topology *topology = MAKE("pcie", "2", "3");

    (void)state;
    assert_int_equal(by_topology_compute_count(topology), 6);
    assert_int_equal(topology->node_count, 6 + 2 + 4 + 6 + 1);
    assert_int_equal(topology->link_count, 6 * 4);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_links_fail_as_asked_and_every_node_stays),
        cmocka_unit_test(links_that_hold_the_fabric_together_do_not_fail),
        cmocka_unit_test(scattered_bandwidths_are_whole_multiples_in_the_range_and_equal_both_ways),
        cmocka_unit_test(the_same_seed_fails_the_same_links),
        cmocka_unit_test(a_factor_that_does_not_fit_is_refused),
        cmocka_unit_test(what_is_lost_takes_its_links_along_and_the_rest_must_hold_together),
        cmocka_unit_test(every_host_of_a_regular_fabric_has_as_many_different_neighbours),
        cmocka_unit_test(a_regular_fabric_that_cannot_be_is_refused),
        cmocka_unit_test(a_gpu_behind_pcie_has_a_switch_and_a_nic_between_it_and_the_network),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

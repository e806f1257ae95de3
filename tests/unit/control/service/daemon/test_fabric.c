/* The remaining part of a fabric: what it contains, what a job without a path reads, and which jobs
 * a loss hits. No plans are made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/fabric.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

enum { H0, H1, H2, L0, L1, S0, NODES };
enum { H0_L0, H1_L0, H2_L1, L0_S0, L1_S0, LINKS };

static struct by_topology *topology;
static struct by_fabric_loss loss;
static struct by_job_spec spec;

static int set_up(void **state)
{
    (void)state;
    topology = bench_topology("h0 h1 h2 l0* l1* s0*", "h0-l0 h1-l0 h2-l1 l0-s0 l1-s0");
    by_fabric_loss_init(&loss, topology);
    spec = (struct by_job_spec){.job = 4};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    by_fabric_loss_free(&loss);
    assert_true(loss.nodes == NULL && loss.links == NULL);
    free(spec.member);
    by_topology_free(topology);
    return 0;
}

/* Loses parts (by bit) and requests the rest. Returns the text of the error, "" without one. */
static const char *lose(unsigned nodes, unsigned links, struct by_topology **part)
{
    static struct by_problem problem;
    struct by_fabric_loss all;
    int error;

    for (uint32_t n = 0; n < NODES; n++)
        loss.nodes[n] = nodes >> n & 1;
    for (uint32_t l = 0; l < LINKS; l++)
        loss.links[l] = links >> l & 1;
    problem.text[0] = 0;
    by_fabric_loss_copy(&all, &loss, topology);
    error = by_fabric_part(topology, &spec, &all, part, &problem);
    by_fabric_loss_free(&all);
    assert_int_equal(error, problem.text[0] != 0 ? BY_ENOENT : 0);
    assert_int_equal(error == 0, *part != NULL);
    return problem.text;
}

static void a_job_without_a_path_reads_what_is_lost_between_which_ranks(void **state)
{
    static const struct {
        unsigned nodes, links;
        const char *between, *lost;
    } cases[] = {
        {1 << S0, 0, "h0 and h2", "switch s0 is"},
        {1 << S0 | 1 << L1, 0, "h0 and h2", "switch l1, switch s0 are"},
        {1 << L0, 0, "h0 and h1 and others", "switch l0 is"},
        {0, 1 << H0_L0, "h0 and h1 and others", "link h0 - l0 is"},
        {0, 1 << L0_S0, "h0 and h2", "link l0 - s0 is"},
        {0, 1 << L1_S0, "h0 and h2", "link l1 - s0 is"},
        {0, 1 << L0_S0 | 1 << L1_S0, "h0 and h2", "link l0 - s0 is"}, /* the other one is behind it */
        {0, 1 << H1_L0 | 1 << H2_L1, "h0 and h1 and others", "link h1 - l0, link h2 - l1 are"},
        {1 << S0, 1 << H1_L0, "h0 and h1 and others", "switch s0, link h1 - l0 are"},
        {1 << H1, 0, "h0 and h1", "host h1 is"},
        {1 << H0, 0, "h1 and h0", "host h0 is"},
        {1 << H0 | 1 << H2, 0, "h1 and h0 and others", "host h0, host h2 are"},
        {1 << H0 | 1 << H1 | 1 << H2, 0, "h0 and h0 and others", "host h0, host h1, host h2 are"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *part;
        char expected[300];

        snprintf(
            expected, sizeof(expected),
            "job 4: no path is left between %s: %s lost; the job can start again when they are connected, "
            "or without these ranks",
            cases[i].between, cases[i].lost);
        assert_string_equal(lose(cases[i].nodes, cases[i].links, &part), expected);
    }
}

static void ranks_that_only_an_idle_host_connects_have_no_path(void **state)
{
    struct by_topology *other = bench_topology("h0 h1 h2", "h0-h1 h1-h2"), *part;
    struct by_fabric_loss none;
    struct by_problem problem = {0};

    (void)state;
    by_fabric_loss_init(&none, other);
    spec.member = by_alloc(3, sizeof(bool));
    spec.member[0] = spec.member[2] = true;
    assert_int_equal(by_fabric_part(other, &spec, &none, &part, &problem), BY_ENOENT);
    assert_string_equal(
        problem.text,
        "job 4: no path is left between h0 and h2: every link between them is lost; the job can "
        "start again when they are connected, or without these ranks");
    by_fabric_loss_free(&none);
    by_topology_free(other);
}

/* Loses all nodes, or links, of a fabric from one on. Returns the text of the error. */
static const char *lose_many(const char *nodes, const char *links, bool are_links, uint32_t from)
{
    static struct by_problem problem;
    struct by_topology *many = bench_topology(nodes, links), *part;
    struct by_fabric_loss all;

    problem.text[0] = 0;
    by_fabric_loss_init(&all, many);
    for (uint32_t i = from; i < (are_links ? many->link_count : many->node_count); i++)
        (are_links ? all.links : all.nodes)[i] = true;
    assert_int_equal(by_fabric_part(many, &spec, &all, &part, &problem), BY_ENOENT);
    by_fabric_loss_free(&all);
    by_topology_free(many);
    return problem.text;
}

static void many_losses_are_named_as_far_as_the_text_has_room(void **state)
{
    (void)state;
    assert_non_null(strstr(lose_many("h0 h1 x0* x1* x2* x3* x4* x5* x6* x7* x8* x9* y0* y1* y2* y3*",
                                     "h0-x0 x0-x1 x1-x2 x2-x3 x3-x4 x4-x5 x5-x6 x6-x7 x7-x8 x8-x9 x9-y0 "
                                     "y0-y1 y1-y2 y2-y3 y3-h1",
                                     false, 2),
                           "switch x0, switch x1, switch x2, switch x3, switch x4, switch x5, switch "
                           "x6, switch x7, switch x8, switch x9, switch y0, switch y1 are lost; "));
    assert_non_null(strstr(lose_many("h0 h1 h2 h3 h4 h5 h6 h7 h8 h9 x*",
                                     "h0-x h1-x h2-x h3-x h4-x h5-x h6-x h7-x h8-x h9-x", true, 1),
                           "between h0 and h1 and others: link h1 - x, link h2 - x, link h3 - x, "
                           "link h4 - x, link h5 - x, link h6 - x, link h7 - x are lost; "));
}

/* To the last byte: 120 bytes of nodes and 80 bytes of links are the end. */
static void no_more_losses_are_named_than_surely_have_room(void **state)
{
    const char *text =
        lose_many("h0 h1 x0xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx* x1xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx* "
                  "x2xxxxxxxxxxxxxxxxxxxxxxxxxxxxx* x3*",
                  "h0-x0xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx x0xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-h1 "
                  "h0-x1xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx h0-x2xxxxxxxxxxxxxxxxxxxxxxxxxxxxx h0-x3",
                  false, 2);
    const char *end = strstr(text, " are lost; the job can start again ");

    (void)state;
    assert_non_null(end);
    assert_memory_equal(end - 31, "x2xxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 31);
    text = lose_many("h0 h1hhhhhhhhhhhhh h2hhhhhhhhhhhhh h3hhhhhhhhhhhhh xxxxxxxxxxxxxxxx*",
                     "h0-xxxxxxxxxxxxxxxx h1hhhhhhhhhhhhh-xxxxxxxxxxxxxxxx "
                     "h2hhhhhhhhhhhhh-xxxxxxxxxxxxxxxx h3hhhhhhhhhhhhh-xxxxxxxxxxxxxxxx",
                     true, 1);
    assert_non_null(strstr(text, ": link h1hhhhhhhhhhhhh - xxxxxxxxxxxxxxxx, link h2hhhhhhhhhhhhh - "
                                 "xxxxxxxxxxxxxxxx are lost; the job can start again "));
}

/* Its names, in order. */
static void has_nodes(struct by_topology *part, const char *names, uint32_t links)
{
    char text[100] = "";

    for (uint32_t n = 0; n < part->node_count; n++) {
        strcat(text, n > 0 ? " " : "");
        strcat(text, part->nodes[n].name);
    }
    assert_string_equal(text, names);
    assert_int_equal(part->link_count, links);
    by_topology_free(part);
}

static void the_part_has_what_the_ranks_reach(void **state)
{
    struct by_topology *part;

    (void)state;
    assert_string_equal(lose(0, 0, &part), "");
    has_nodes(part, "h0 h1 h2 l0 l1 s0", 5);
    spec.member = by_alloc(NODES, sizeof(bool));
    spec.member[H0] = spec.member[H1] = true;
    assert_string_equal(lose(1 << S0, 0, &part), ""); /* what is behind s0 is cut off */
    has_nodes(part, "h0 h1 l0", 2);
    assert_string_equal(lose(0, 1 << L0_S0, &part), "");
    has_nodes(part, "h0 h1 l0", 2);
    assert_string_equal(lose(1 << H2, 0, &part), "");
    has_nodes(part, "h0 h1 l0 l1 s0", 4);
    spec.member[H2] = true;
    spec.member[H1] = false;
    assert_string_equal(lose(1 << H1, 0, &part), "");
    has_nodes(part, "h0 h2 l0 l1 s0", 4);
    assert_string_equal(
        lose(1 << S0, 0, &part),
        "job 4: no path is left between h0 and h2: switch s0 is lost; the job can start again "
        "when they are connected, or without these ranks");
}

static void a_loss_of_a_node_is_one_of_its_links(void **state)
{
    struct by_fabric_loss all;

    (void)state;
    loss.nodes[L1] = loss.links[H0_L0] = true;
    by_fabric_loss_copy(&all, &loss, topology);
    for (uint32_t n = 0; n < NODES; n++)
        assert_int_equal(all.nodes[n], n == L1);
    for (uint32_t l = 0; l < LINKS; l++)
        assert_int_equal(all.links[l], l == H0_L0 || l == H2_L1 || l == L1_S0);
    by_fabric_loss_free(&all);
}

static void jobs_are_hit_by_losses_of_links_and_nodes_of_their_trees(void **state)
{
    bool uses[LINKS] = {false};
    struct by_job_tables tables = {.uses_link = uses};

    (void)state;
    for (uint32_t l = 0; l < LINKS; l++) {
        memset(uses, 0, sizeof(uses));
        uses[l] = true;
        for (uint32_t n = 0; n < NODES; n++) {
            memset(loss.nodes, 0, NODES * sizeof(bool));
            loss.nodes[n] = true;
            assert_int_equal(by_fabric_is_hit(topology, &tables, &loss),
                             topology->links[l].a == n || topology->links[l].b == n);
        }
        memset(loss.nodes, 0, NODES * sizeof(bool));
        for (uint32_t k = 0; k < LINKS; k++) {
            memset(loss.links, 0, LINKS * sizeof(bool));
            loss.links[k] = true;
            assert_int_equal(by_fabric_is_hit(topology, &tables, &loss), k == l);
        }
        memset(loss.links, 0, LINKS * sizeof(bool));
    }
}

/* As the process of plans in advance makes them (ahead.c). */
static void the_texts_of_all_plans_of_a_job_can_be_read(void **state)
{
    struct by_fabric_text texts[2] = {0};
    struct by_problem problem = {0};

    (void)state;
    spec.want_count = 2;
    spec.wants[0] = (struct by_job_want){.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1};
    spec.wants[1] = (struct by_job_want){.collective = BY_COLLECTIVE_BROADCAST, .root = H1};
    if (by_fabric_texts(topology, &spec, &loss, NULL, 60000, texts, &problem) != 0)
        fail_msg("%s", problem.text);
    for (unsigned i = 0; i < 2; i++) {
        struct by_plan *plan = NULL;

        if (by_plan_parse(texts[i].text, texts[i].bytes, topology, &plan, &problem) != 0)
            fail_msg("%s", problem.text);
        assert_int_equal(plan->collective, spec.wants[i].collective);
        by_plan_free(plan);
        free(texts[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_job_without_a_path_reads_what_is_lost_between_which_ranks, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(ranks_that_only_an_idle_host_connects_have_no_path, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(many_losses_are_named_as_far_as_the_text_has_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_more_losses_are_named_than_surely_have_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_part_has_what_the_ranks_reach, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_loss_of_a_node_is_one_of_its_links, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_texts_of_all_plans_of_a_job_can_be_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(jobs_are_hit_by_losses_of_links_and_nodes_of_their_trees, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Topology files: accepted values are exact, and errors are refused with their place and name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/fabric/topology.h"
#include "offload/base/errors.h"

#define HEAD    "{\"name\": \"t\", \"unit\": \"GB/s\",\n \"nodes\": [\n"
#define A       "  {\"name\": \"a\", \"kind\": \"compute\"},\n"
#define B       "  {\"name\": \"b\", \"kind\": \"compute\"}],\n"
#define LINK(x) " \"links\": [\n  {\"between\": [\"a\", \"b\"], \"bandwidth\": " x "}]}"
#define NAME48  "abcdefghijabcdefghijabcdefghijabcdefghijabcdefgh"

static int parse(const char *text, struct by_topology **topology, struct by_problem *problem)
{
    memset(problem, 0, sizeof(*problem));
    return by_topology_parse(text, strlen(text), topology, problem);
}

static void a_bandwidth_keeps_its_exact_value(void **state)
{
    static const struct {
        const char *text;
        int64_t capacity, scale;
    } cases[] = {
        {"300", 300, 1},
        {"12.5", 25, 2},
        {"\"25/2\"", 25, 2},
        {"0.1", 1, 10},
        {"1e3", 1000, 1},
        {"1.5E+1", 15, 1},
        {"0.30000000000000004", 7500000000000001, 25000000000000000},
        {"\"7\"", 7, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology;
        struct by_problem problem;
        char text[400];

        snprintf(text, sizeof(text), HEAD A B LINK("%s"), cases[i].text);
        print_message("%s\n", cases[i].text);
        assert_int_equal(parse(text, &topology, &problem), 0);
        assert_int_equal(topology->arc_count, 2);
        assert_int_equal(topology->arcs[0].capacity, cases[i].capacity);
        assert_int_equal(topology->scale, cases[i].scale);
        by_topology_free(topology);
    }
}

static void bad_files_are_refused_with_line_and_name(void **state)
{
    static const struct {
        const char *text;
        int error;
        int line; /* 0: the error concerns the whole file */
        const char *says;
    } cases[] = {
        {HEAD A B LINK("\"3/0\""), BY_EINVAL, 6, "3/0"},
        {HEAD A B LINK("\"1e3x\""), BY_EINVAL, 6, "1e3x"},
        {HEAD A B LINK("\"abc\""), BY_EINVAL, 6, "abc"},
        {HEAD A B LINK("\"\""), BY_EINVAL, 6, "positive"},
        {HEAD A B LINK("-5"), BY_EINVAL, 6, "-5"},
        {HEAD A B LINK("0"), BY_EINVAL, 6, "positive"},
        {HEAD A B LINK("0.0"), BY_EINVAL, 6, "positive"},
        {HEAD A B LINK("\"99999999999999999999\""), BY_EINVAL, 6, "63 bits"},
        {HEAD A B LINK("1e30"), BY_EINVAL, 6, "63 bits"},
        {HEAD A B LINK("99999999999999999999"), BY_EINVAL, 6, "63 bits"},
        {HEAD A B LINK("1e400"), BY_EINVAL, 6, "63 bits"},
        {HEAD A B LINK("\"0/5\""), BY_EINVAL, 6, "0/5"},
        {HEAD A B LINK("9000000000000000000"), BY_ERANGE, 6, "2^61"},
        {HEAD A B LINK("true"), BY_EINVAL, 6, "number"},
        {HEAD A B LINK("null"), BY_EINVAL, 6, "number"},
        {HEAD A B LINK("[1]"), BY_EINVAL, 6, "number"},
        {HEAD A B " \"links\": [{\"between\": [\"a\", \"c\"], \"bandwidth\": 1}]}", BY_EINVAL, 5, "'c'"},
        {HEAD A B " \"links\": [{\"between\": [\"a\", 7], \"bandwidth\": 1}]}", BY_EINVAL, 5, "string"},
        {HEAD A B " \"links\": [{\"between\": [\"a\"], \"bandwidth\": 1}]}", BY_EINVAL, 5, "two node names"},
        {HEAD A B " \"links\": [{\"between\": [\"a\", \"a\"], \"bandwidth\": 1}]}", BY_EINVAL, 5, "itself"},
        {HEAD A B " \"links\": [{\"between\": [\"a\", \"b\"]}]}", BY_EINVAL, 5, "no bandwidth"},
        {HEAD A B " \"links\": [{\"bandwidth\": 1}]}", BY_EINVAL, 5, "between"},
        {HEAD A B " \"links\": [{\"from\": \"a\", \"bandwidth\": 1}]}", BY_EINVAL, 5, "between"},
        {HEAD A B
         " \"links\": [{\"from\": \"a\", \"to\": \"b\", \"between\": [\"a\", \"b\"], \"bandwidth\": 1}]}",
         BY_EINVAL, 5, "either"},
        {HEAD A B " \"links\": [{\"between\": [\"a\", \"b\"], \"bandwidth\": 1, \"delay\": 3}]}", BY_EINVAL,
         5, "'delay'"},
        {HEAD A B " \"links\": [{\"between\": [\"a\", \"b\"], \"bandwidth\": 1, \"bandwidth\": 3}]}",
         BY_EFORMAT, 5, "duplicate key 'bandwidth'"},
        {HEAD A "  {\"name\": \"b\", \"kind\": \"switch\", \"name\": \"b\"}],\n \"links\": []}", BY_EFORMAT,
         4, "duplicate key 'name'"},
        {HEAD A B " \"links\": [],\n \"links\": []}", BY_EFORMAT, 6, "duplicate key 'links'"},
        {HEAD A B " \"links\": [7],\n \"unit\": }", BY_EFORMAT, 6, "not valid JSON"},
        {HEAD A B " \"links\": [{\"between\": [\"a\", \"b\", \"b\"], \"bandwidth\": 1}]}", BY_EINVAL, 5,
         "two node names"},
        {HEAD A B " \"links\": [{\"between\": {\"a\": \"b\"}, \"bandwidth\": 1}]}", BY_EINVAL, 5,
         "two node names"},
        {"{\"links\":\n [{\"between\": [\"a\", \"b\"], \"bandwidth\": 0}], \"name\": \"t\", \"nodes\": [" A B
         "}",
         BY_EFORMAT, 4, "not valid JSON"},
        {"{\"links\":\n [{\"between\": [\"a\", \"b\"], \"bandwidth\": 0}], \"name\": \"t\", \"nodes\": [" A
         "  {\"name\": \"b\", \"kind\": \"compute\"}]}",
         BY_EINVAL, 2, "positive"},
        {"{\"links\": {}, \"name\": \"t\", \"nodes\": [" A "  {\"name\": \"b\", \"kind\": \"compute\"}]}",
         BY_EINVAL, 1, "array"},
        {HEAD A B " \"links\": []}", BY_EINVAL, 0, "{a}"},
        {HEAD A B " \"links\": {}}", BY_EINVAL, 5, "array"},
        {HEAD A B " \"wires\": []}", BY_EINVAL, 5, "'wires'"},
        {HEAD A "  {\"name\": \"a\", \"kind\": \"compute\"}],\n \"links\": []}", BY_EINVAL, 4,
         "'a' appears twice"},
        {HEAD A "  {\"name\": \"b\", \"kind\": \"router\"}],\n \"links\": []}", BY_EINVAL, 4, "'router'"},
        {HEAD A "  {\"name\": \"b\"}],\n \"links\": []}", BY_EINVAL, 4, "no kind"},
        {HEAD A "  {\"kind\": \"switch\"}],\n \"links\": []}", BY_EINVAL, 4, "no name"},
        {HEAD A "  {\"name\": \"b c\", \"kind\": \"switch\"}],\n \"links\": []}", BY_EINVAL, 4, "'b c'"},
        {HEAD A "  {\"name\": \"\", \"kind\": \"switch\"}],\n \"links\": []}", BY_EINVAL, 4, "1 to 47"},
        {HEAD A "  {\"name\": \"" NAME48 "\", \"kind\": \"switch\"}],\n \"links\": []}", BY_EINVAL, 4,
         "1 to 47"},
        {HEAD A "  {\"name\": 3, \"kind\": \"switch\"}],\n \"links\": []}", BY_EINVAL, 4, "string"},
        {HEAD A "  {\"name\": \"b\", \"kind\": \"switch\", \"multicast\": 1}],\n \"links\": []}", BY_EINVAL,
         4, "true or false"},
        {HEAD A "  {\"name\": \"b\", \"kind\": \"switch\", \"speed\": 1}],\n \"links\": []}", BY_EINVAL, 4,
         "'speed'"},
        {HEAD A "  {\"name\": \"b\", \"kind\": \"switch\", \"aggregate_rate\": 1}],\n \"links\": []}",
         BY_EINVAL, 4, "does not aggregate"},
        {HEAD A "  {\"name\": \"b\", \"kind\": \"switch\", \"ops\": \"sum\"}],\n \"links\": []}", BY_EINVAL,
         4, "has ops but does not aggregate"},
        {HEAD A "  {\"name\": \"b\", \"kind\": \"switch\", \"ops\": \"sum,mean\"}],\n \"links\": []}",
         BY_EINVAL, 4, "'mean' is unknown"},
        {HEAD A "  {\"name\": \"b\", \"kind\": \"switch\", \"dtypes\": \"i32,\"}],\n \"links\": []}",
         BY_EINVAL, 4, "'' is unknown"},
        {HEAD A "  {\"name\": \"b\", \"kind\": \"switch\", \"dtypes\": [\"i32\"]}],\n \"links\": []}",
         BY_EINVAL, 4, "must be a string"},
        {HEAD A "  {\"name\": \"b\", \"kind\": \"compute\", \"dtypes\": \"i32\"}],\n \"links\": []}",
         BY_EINVAL, 4, "belong to switches"},
        {HEAD A "  {\"name\": \"b\", \"kind\": \"compute\", \"task_time\": -1}],\n \"links\": []}", BY_EINVAL,
         4, "0 or a positive"},
        {HEAD A "  {\"name\": \"b\", \"kind\": \"compute\", \"multicast\": true}],\n \"links\": []}",
         BY_EINVAL, 4, "belong to switches"},
        {HEAD "  {\"name\": \"b\", \"kind\": \"switch\"}],\n \"links\": []}", BY_EINVAL, 0,
         "no compute node"},
        {HEAD "  7],\n \"links\": []}", BY_EINVAL, 3, "object"},
        {"{\"name\": \"t\", \"nodes\": []}", BY_EINVAL, 1, "links"},
        {"{\"nodes\": [], \"links\": []}", BY_EINVAL, 1, "name"},
        {"{\"name\": \"t\", \"links\": []}", BY_EINVAL, 1, "nodes"},
        {"[]", BY_EINVAL, 1, "object"},
        {"", BY_EFORMAT, 0, "empty"},
        {" \n ", BY_EFORMAT, 2, "JSON"},
        {"null", BY_EINVAL, 1, "object"},
        {"{\"name\": \"\\u0000\"}", BY_EFORMAT, 1, "JSON"},
        {"{\"name\": \"\xff\"}", BY_EFORMAT, 1, "UTF-8"},
        {"{} {}", BY_EFORMAT, 1, "JSON"},
        {HEAD A B, BY_EFORMAT, 5, "JSON"},
        {"{\"name\": \"t\",\n \"nodes\": [}", BY_EFORMAT, 2, "JSON"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_topology *topology = NULL;
        struct by_problem problem;
        int error = parse(cases[i].text, &topology, &problem);

        print_message("%d:%d: %s\n", problem.line, problem.column, problem.text);
        assert_int_equal(error, cases[i].error);
        assert_int_equal(problem.line, cases[i].line);
        assert_non_null(strstr(problem.text, cases[i].says));
        assert_null(topology);
    }
}

static void a_part_that_no_link_reaches_is_named(void **state)
{
    struct by_topology *topology;
    struct by_problem problem;

    (void)state;
    assert_int_equal(parse("{\"name\": \"t\", \"nodes\": [{\"name\": \"a\", \"kind\": \"compute\"}, "
                           "{\"name\": \"b\", \"kind\": \"compute\"},"
                           "{\"name\": \"lonely\", \"kind\": \"compute\"}],"
                           "\"links\": [{\"between\": [\"a\", \"b\"], \"bandwidth\": 1}]}",
                           &topology, &problem),
                     BY_EINVAL);
    assert_non_null(strstr(problem.text, "{a, b}"));
    assert_non_null(strstr(problem.text, "{lonely}"));
}

static void many_parts_are_counted_and_the_first_ones_named(void **state)
{
    struct by_topology *topology;
    struct by_problem problem;
    char text[4000];
    size_t at = (size_t)snprintf(text, sizeof(text), "{\"name\": \"t\", \"nodes\": [");

    (void)state;
    for (int i = 0; i < 40; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s{\"name\": \"n%d\", \"kind\": \"compute\"}",
                               i ? "," : "", i);
    at += (size_t)snprintf(text + at, sizeof(text) - at, "], \"links\": [");
    for (int i = 2; i < 10; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at,
                               "%s{\"between\": [\"n%d\", \"n%d\"], \"bandwidth\": 1}", i > 2 ? "," : "", i,
                               i + 1);
    snprintf(text + at, sizeof(text) - at, "]}");
    assert_int_equal(parse(text, &topology, &problem), BY_EINVAL);
    print_message("%s\n", problem.text);
    assert_non_null(strstr(problem.text, "{n0} and {n1} and {n2, n3, n4, n5, ...}, ... (32 parts)"));
}

static void a_link_that_appears_twice_adds_up(void **state)
{
    struct by_topology *topology;
    struct by_problem problem;

    (void)state;
    assert_int_equal(parse(HEAD A B " \"links\": [{\"between\": [\"a\", \"b\"], \"bandwidth\": 1},"
                                    "{\"between\": [\"b\", \"a\"], \"bandwidth\": 2}]}",
                           &topology, &problem),
                     0);
    assert_int_equal(topology->link_count, 2); /* two links remain two */
    assert_int_equal(topology->arc_count, 4);  /* planning adds parallel links (test_options.c) */
    by_topology_free(topology);
}

static void denominators_without_a_common_multiple_are_refused(void **state)
{
    struct by_topology *topology;
    struct by_problem problem;

    (void)state;
    assert_int_equal(
        parse("{\"name\": \"t\", \"nodes\": [{\"name\": \"a\", \"kind\": \"compute\"}, {\"name\": \"b\", "
              "\"kind\": \"compute\"}],"
              "\"links\": [{\"between\": [\"a\", \"b\"], \"bandwidth\": \"1/4611686018427387847\"},\n"
              "{\"between\": [\"a\", \"b\"], \"bandwidth\": \"1/4611686018427387733\"}]}",
              &topology, &problem),
        BY_ERANGE);
    assert_int_equal(problem.line, 2);
}

static void what_is_written_reads_back_the_same(void **state)
{
    static const char text[] = "{\"name\": \"a \\\"quoted\\\" name\", \"unit\": \"Gbit/s\", \"nodes\": "
                               "[{\"name\": \"a\", \"kind\": \"compute\", \"task_time\": 0},"
                               "{\"name\": \"s\", \"kind\": \"switch\", \"multicast\": true, \"aggregate\": "
                               "true, \"aggregate_rate\": \"5/3\", \"ops\": \"max,sum\", \"dtypes\": "
                               "\"f64,u8\"},"
                               "{\"name\": \"b\", \"kind\": \"compute\", \"task_time\": \"2/3\"}],"
                               "\"links\": [{\"between\": [\"a\", \"s\"], \"bandwidth\": 12.5}, {\"from\": "
                               "\"s\", \"to\": \"b\", \"bandwidth\": \"1/3\"},"
                               "{\"from\": \"b\", \"to\": \"s\", \"bandwidth\": 2}, {\"between\": [\"a\", "
                               "\"s\"], \"bandwidth\": 1}]}";
    struct by_topology *first, *second;
    struct by_problem problem;
    char *written = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&written, &bytes);

    (void)state;
    assert_int_equal(parse(text, &first, &problem), 0);
    assert_int_equal(by_topology_write(first, stream), 0);
    fclose(stream);
    assert_int_equal(by_topology_parse(written, bytes, &second, &problem), 0);
    assert_string_equal(first->name, second->name);
    assert_string_equal(first->unit, second->unit);
    assert_int_equal(first->scale, second->scale);
    assert_int_equal(first->node_count, second->node_count);
    assert_int_equal(first->link_count, 4);
    assert_int_equal(second->link_count, 4);
    assert_int_equal(second->arc_count, 6);
    assert_memory_equal(first->arcs, second->arcs, first->arc_count * sizeof(*first->arcs));
    assert_memory_equal(first->links, second->links, first->link_count * sizeof(*first->links));
    assert_true(second->nodes[1].multicast && second->nodes[1].aggregate);
    assert_true(second->nodes[1].aggregate_rate.num == 5 && second->nodes[1].aggregate_rate.den == 3);
    assert_int_equal(second->nodes[1].ops, 1u << 1 | 1u << 4);
    assert_int_equal(second->nodes[1].dtypes, 1u << 2 | 1u << 10);
    assert_int_equal(second->nodes[0].ops | second->nodes[2].dtypes, 0);
    assert_true(second->nodes[0].has_task_time && second->nodes[0].task_time.num == 0);
    assert_false(second->nodes[1].has_task_time);
    assert_true(second->nodes[2].task_time.num == 2 && second->nodes[2].task_time.den == 3);
    assert_int_equal(by_topology_find(second, "b"), 2);
    assert_int_equal(by_topology_find(second, "c"), -1);
    assert_int_equal(by_topology_compute_count(second), 2);
    by_topology_free(first);
    by_topology_free(second);
    free(written);
}

static void members_are_read_in_any_order(void **state)
{
    static const char text[] =
        "{\"links\": [{\"bandwidth\": 3, \"to\": \"b\", \"from\": \"a\"}, {\"bandwidth\": \"1/2\", "
        "\"between\": [\"b\", \"\\u0061\"]}],"
        "\"nodes\": [{\"kind\": \"compute\", \"name\": \"a\"},"
        "{\"forward\": true, \"kind\": \"compute\", \"name\": \"\\u0062\"}],"
        "\"unit\": \"Gbit/s\", \"name\": \"caf\\u00e9\"}";
    struct by_topology *topology;
    struct by_problem problem;

    (void)state;
    assert_int_equal(parse(text, &topology, &problem), 0);
    assert_string_equal(topology->name, "caf\xc3\xa9");
    assert_string_equal(topology->unit, "Gbit/s");
    assert_string_equal(topology->nodes[1].name, "b");
    assert_true(topology->nodes[1].forward);
    assert_int_equal(topology->link_count, 2);
    assert_int_equal(topology->arcs[0].from, 0);
    assert_int_equal(topology->arcs[0].capacity, 6);
    assert_int_equal(topology->links[0].arc_ba, UINT32_MAX);
    assert_int_equal(topology->links[1].a, 1);
    assert_int_equal(topology->arcs[2].capacity, 1);
    by_topology_free(topology);
}

static void the_column_of_a_link_is_its_own_on_a_long_line(void **state)
{
    struct by_topology *topology;
    struct by_problem problem;

    (void)state;
    assert_int_equal(
        parse("{\"name\": \"t\", \"nodes\": [{\"name\": \"a\", \"kind\": \"compute\"}, {\"name\": \"b\", "
              "\"kind\": \"compute\"}],\n"
              "\"links\": [{\"between\": [\"a\", \"b\"], \"bandwidth\": 1}, {\"between\": [\"a\", \"b\"]}]}",
              &topology, &problem),
        BY_EINVAL);
    assert_int_equal(problem.line, 2);
    assert_int_equal(problem.column, 52);
    assert_non_null(strstr(problem.text, "link 1 has no bandwidth"));
}

static void a_file_that_is_not_there_is_an_error_of_reading(void **state)
{
    struct by_topology *topology;
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(by_topology_read("/nonexistent/topology.json", &topology, &problem), BY_EIO);
    assert_non_null(strstr(problem.text, "No such file"));
}

static void a_truncated_file_never_crashes(void **state)
{
    static const char whole[] = HEAD A B LINK("12.5");

    (void)state;
    for (size_t bytes = 0; bytes + 1 < sizeof(whole) - 1; bytes++) {
        struct by_topology *topology;
        struct by_problem problem;

        assert_int_equal(by_topology_parse(whole, bytes, &topology, &problem), BY_EFORMAT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bandwidth_keeps_its_exact_value),
        cmocka_unit_test(bad_files_are_refused_with_line_and_name),
        cmocka_unit_test(a_part_that_no_link_reaches_is_named),
        cmocka_unit_test(many_parts_are_counted_and_the_first_ones_named),
        cmocka_unit_test(a_link_that_appears_twice_adds_up),
        cmocka_unit_test(denominators_without_a_common_multiple_are_refused),
        cmocka_unit_test(what_is_written_reads_back_the_same),
        cmocka_unit_test(members_are_read_in_any_order),
        cmocka_unit_test(the_column_of_a_link_is_its_own_on_a_long_line),
        cmocka_unit_test(a_file_that_is_not_there_is_an_error_of_reading),
        cmocka_unit_test(a_truncated_file_never_crashes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

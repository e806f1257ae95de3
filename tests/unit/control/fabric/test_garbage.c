/* Long and malformed topology files: each is refused within limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "control/fabric/topology.h"
#include "tests/unit/control/fabric/garbage.h"

static int read_topology(const char *path, struct by_problem *problem)
{
    struct by_topology *topology = NULL;

    return by_topology_read(path, &topology, problem);
}

static void a_million_lines_of_garbage_are_refused_in_bounded_time_and_memory(void **state)
{
#define TOPOLOGY "{\"name\": \"t\", \"nodes\": [\n"
#define LINK     "{\"between\":[\"a\",\"b\"],\"bandwidth\":1},"
#define TWO      "{\"name\": \"a\", \"kind\": \"compute\"}, {\"name\": \"b\", \"kind\": \"compute\"}"
    static const struct garbage cases[] = {
        {"words", "", "garbage of line %d\n", "", "not valid JSON"},
        {"open brackets", "", "[\n", "", "not valid JSON"},
        {"open objects", "", "{\"a\":\n", "", "not valid JSON"},
        {"an open string", "{\"name\": \"", "never closed %d\n", "", "not valid JSON"},
        {"numbers in an array", "[", "%d,\n", "0]", "must be an object"},
        {"numbers for nodes", TOPOLOGY, "%d,\n", "0], \"links\": []}", "node 0 must be an object"},
        {"keys that nobody knows", "{", "\"key%d\": 0,\n", "\"name\": \"t\"}", "'key0'"},
        {"too many nodes", TOPOLOGY,
         "{\"name\": \"n%d\", \"kind\": \"switch\"}, {\"name\": \"m%d\", \"kind\": \"switch\"},\n",
         "0], \"links\": []}", "has 2000001 nodes; the limit is 1048576"},
        {"too many links", TOPOLOGY TWO "], \"links\": [\n", LINK LINK LINK LINK LINK "\n", "0]}",
         "has 5000001 links; the limit is 4194304"},
        {"numbers of forty digits", TOPOLOGY TWO "], \"links\": [\n", "%040d,\n", "0]}", "not valid JSON"},
        {"a name of a million lines", "{\"name\": \"", "line %d\\n", "\", \"nodes\": []}", "limit is 255"},
        {"blank lines", "", "   \n", "{}", "no \"name\""},
        {"a syntax error in the last line", "[", "\"%d\",\n", "", "not valid JSON"},
    };

    (void)state;
    garbage_refuse_all(read_topology, cases, sizeof(cases) / sizeof(cases[0]));
}

static void a_file_without_end_is_refused(void **state)
{
    char text[500];

    (void)state;
    garbage_refuse(read_topology, "/dev/zero", "zeros without end", text, sizeof(text));
    assert_non_null(strstr(text, "larger than 512 MiB"));
    garbage_refuse(read_topology, "/dev/null", "nothing", text, sizeof(text));
    assert_non_null(strstr(text, "empty"));
    garbage_refuse(read_topology, "/", "a folder", text, sizeof(text));
    assert_non_null(strstr(text, "cannot read"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_million_lines_of_garbage_are_refused_in_bounded_time_and_memory),
        cmocka_unit_test(a_file_without_end_is_refused),
    };

    return cmocka_run_group_tests(tests, garbage_setup, garbage_teardown);
}

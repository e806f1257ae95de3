/*
 * Long and malformed files of other programs, of shares and of ranks: each is refused within
 * limits. A message names either the limit of the fabric or the place of the error.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "control/fabric/import/import.h"
#include "control/fabric/members.h"
#include "control/plan/shares.h"
#include "tests/unit/control/fabric/garbage.h"

static int import(const char *format, const char *path, struct by_problem *problem)
{
    struct by_import_options options = {.rate = {25, 1}, .nvlink = {0, 1}, .cpu = {0, 1}};
    struct by_import_report report;
    struct by_topology *topology = NULL;
    size_t file = 0;

    return by_import(format, &path, 1, &options, &topology, &report, problem, &file);
}

static int read_nccl(const char *path, struct by_problem *problem)
{
    return import("nccl", path, problem);
}

static int read_ibnetdiscover(const char *path, struct by_problem *problem)
{
    return import("ibnetdiscover", path, problem);
}

static int read_lldp(const char *path, struct by_problem *problem)
{
    return import("lldp", path, problem);
}

static int read_dot(const char *path, struct by_problem *problem)
{
    return import("dot", path, problem);
}

/* Two hosts at one switch. */
static int small_fabric(struct by_topology **topology, struct by_problem *problem)
{
    static const char json[] =
        "{\"name\": \"t\", \"nodes\": [{\"name\": \"a\", \"kind\": \"compute\"}, "
        "{\"name\": \"b\", \"kind\": \"compute\"}, {\"name\": \"s\", \"kind\": \"switch\"}], "
        "\"links\": [{\"between\": [\"a\", \"s\"], \"bandwidth\": 1}, "
        "{\"between\": [\"b\", \"s\"], \"bandwidth\": 1}]}";

    return by_topology_parse(json, sizeof(json) - 1, topology, problem);
}

static int read_shares(const char *path, struct by_problem *problem)
{
    struct by_topology *topology = NULL;
    int64_t *shares = NULL;

    return small_fabric(&topology, problem) || by_shares_read(path, topology, NULL, &shares, problem);
}

static int read_ranks(const char *path, struct by_problem *problem)
{
    struct by_topology *topology = NULL;
    bool *member = NULL;

    return small_fabric(&topology, problem) || by_members_read(path, topology, &member, problem);
}

#define REFUSE(read, cases) garbage_refuse_all((read), (cases), sizeof(cases) / sizeof((cases)[0]))

static void a_million_lines_for_the_importer_of_nccl_are_refused(void **state)
{
    static const struct garbage cases[] = {
        {"words", "", "garbage of line %d\n", "", "not valid XML"},
        {"elements that are never closed", "", "<cpu numaid=\"%d\">\n", "", "begins with <cpu>"},
        {"too many GPUs", "<system version=\"1\"><cpu numaid=\"0\">",
         "<pci busid=\"%08x:0\" class=\"0x030200\" link_speed=\"8 GT/s\" link_width=\"8\">"
         "<gpu dev=\"%d\" sm=\"80\" rank=\"0\"/></pci>\n",
         "</cpu></system>", ""},
        {"elements that nobody knows", "<system version=\"1\">", "<thing number=\"%d\"/>\n", "</system>",
         "outside a <cpu>"},
    };

    (void)state;
    REFUSE(read_nccl, cases);
}

static void a_million_lines_for_the_importer_of_ibnetdiscover_are_refused(void **state)
{
    static const struct garbage cases[] = {
        {"words", "", "garbage of line %d\n", "", "neither a node"},
        {"switches without ports", "", "Switch 36 \"S-%016x\" # \"sw%d\" base port 0 lid 1 lmc 0\n", "",
         "larger than 64 MiB"},
        {"ports of nobody", "", "[%d] \"S-1\"[1] # lid 1 lmc 0 \"x\" 4xHDR\n", "", "precedes every node"},
    };

    (void)state;
    REFUSE(read_ibnetdiscover, cases);
}

static void a_million_lines_for_the_importer_of_lldp_are_refused(void **state)
{
    static const struct garbage cases[] = {
        {"words", "", "garbage of line %d\n", "", "larger than 8 MiB"},
        {"open brackets", "", "[\n", "", "not valid JSON"},
        {"interfaces of nothing", "{\"lldp\": {\"interface\": [", "{\"eth%d\": {}},\n", "{}]}}",
         "larger than 8 MiB"},
        {"neighbours without end", "{\"lldp\": {\"interface\": [",
         "{\"eth%d\": {\"chassis\": {\"sw%d\": {}}, \"port\": {}}},\n", "{}]}}", "larger than 8 MiB"},
    };

    (void)state;
    REFUSE(read_lldp, cases);
}

static void a_million_lines_for_the_importer_of_dot_are_refused(void **state)
{
    static const struct garbage cases[] = {
        {"words", "", "garbage of line %d\n", "", "not 'garbage'"},
        {"subgraphs within subgraphs", "graph {", "{ n%d\n", "", "more than 31 deep"},
        {"too many nodes", "graph {", "n%d; m%d;\n", "}", "more than 1048576 nodes"},
        {"too many links", "graph {", "a -- b;\n", "}", "whether 'a' is a switch"},
        {"an open comment", "graph { /*", "line %d\n", "", "the file ends where"},
    };

    (void)state;
    REFUSE(read_dot, cases);
}

static void a_million_lines_of_shares_or_ranks_are_refused(void **state)
{
    static const struct garbage shares[] = {
        {"words for shares", "", "garbage of line %d\n", "", "larger than 16 MiB"},
        {"shares of strangers", "{", "\"n%d\": 1,\n", "\"a\": 1}", "'n0', which is not a node"},
        {"more shares than nodes", "[", "%d,\n", "0]", "more shares than the 2 participating compute nodes"},
        {"a share of a million digits", "[0", "%d\n", "]", ""},
        {"open brackets for shares", "", "[\n", "", ""},
    };
    static const struct garbage ranks[] = {
        {"words for ranks", "", "x%d\n", "", "'x0' is not a node"},
        {"a rank named a million times", "", "a\n", "", "'a' appears twice"},
        {"blank lines for ranks", "", "   \n", "", "0 compute nodes are named"},
    };

    (void)state;
    REFUSE(read_shares, shares);
    REFUSE(read_ranks, ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_million_lines_for_the_importer_of_nccl_are_refused),
        cmocka_unit_test(a_million_lines_for_the_importer_of_ibnetdiscover_are_refused),
        cmocka_unit_test(a_million_lines_for_the_importer_of_lldp_are_refused),
        cmocka_unit_test(a_million_lines_for_the_importer_of_dot_are_refused),
        cmocka_unit_test(a_million_lines_of_shares_or_ranks_are_refused),
    };

    return cmocka_run_group_tests(tests, garbage_setup, garbage_teardown);
}

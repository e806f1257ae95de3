/* Fabrics from files of other programs: samples of each format, what is refused and where, and
 * garbage. Runs in the root of the tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "control/base/fraction.h"
#include "control/fabric/import/import.h"
#include "tests/unit/control/planner/rig.h"

#define SAMPLES "tests/golden/import/"

static const struct by_import_options usual = {.rate = {0, 1}, .nvlink = {0, 1}, .cpu = {0, 1}};

static struct by_topology *import(const char *format, const struct by_import_options *options,
                                  const char *const *paths, size_t count)
{
    struct by_topology *topology;
    struct by_import_report report;
    struct by_problem problem = {0};
    size_t file;

    if (by_import(format, paths, count, options, &topology, &report, &problem, &file) != 0)
        fail_msg("%s:%d:%d: %s", paths[file], problem.line, problem.column, problem.text);
    return topology;
}

static struct by_topology *import_one(const char *format, const struct by_import_options *options,
                                      const char *path)
{
    return import(format, options, &path, 1);
}

/* Checks the bandwidth from one node to another, the sum of parallel links. */
static void assert_bandwidth(const struct by_topology *topology, const char *from, const char *to,
                             int64_t num, int64_t den)
{
    int64_t a = by_topology_find(topology, from), b = by_topology_find(topology, to), sum = 0;
    struct by_fraction bandwidth;

    if (a < 0 || b < 0)
        fail_msg("there is no %s", a < 0 ? from : to);
    for (uint32_t i = 0; i < topology->arc_count; i++)
        if (topology->arcs[i].from == a && topology->arcs[i].to == b)
            sum += topology->arcs[i].capacity;
    assert_int_equal(by_fraction_set(sum, topology->scale, &bandwidth), 0);
    rig_assert_fraction(bandwidth, num, den);
}

static void a_dump_of_nccl_is_a_box_of_gpus(void **state)
{
    struct by_topology *topology = import_one("nccl", &usual, SAMPLES "nccl-a100.xml");

    (void)state;
    assert_int_equal(by_topology_compute_count(topology), 8);
    assert_string_equal(topology->nodes[7].name, "gpu7");
    assert_bandwidth(topology, "gpu3", "nvswitch0", 300, 1);
    assert_bandwidth(topology, "nvswitch0", "gpu3", 300, 1);
    assert_bandwidth(topology, "gpu3", "pci-0000-41-00.0", 2048, 65); /* 16 lanes of 16 GT/s */
    assert_bandwidth(topology, "pci-0000-41-00.0", "cpu3", 2048, 65);
    assert_bandwidth(topology, "cpu3", "cpu7", 20, 1);
    /* A single host reaches nothing through its network ports, so these are omitted. */
    assert_int_equal(by_topology_find(topology, "net0"), -1);
    assert_int_equal(by_topology_find(topology, "nic-0000-0c-00.0"), -1);
    by_topology_free(topology);
}

static void copies_of_a_box_meet_in_a_network(void **state)
{
    struct by_import_options options = usual;
    struct by_topology *topology;
    struct by_plan *plan;

    (void)state;
    options.copies = 2;
    topology = import_one("nccl", &options, SAMPLES "nccl-a100.xml");
    assert_int_equal(by_topology_compute_count(topology), 16);
    assert_string_equal(topology->nodes[9].name, "h1.gpu1");
    assert_bandwidth(topology, "h1.nic-0000-0c-00.0", "net0", 25, 1);
    /* A GPU receives 300 by NVLink and 2048/65 by PCIe, and needs 15/16 of the data. */
    plan = rig_verified(topology, BY_COLLECTIVE_ALLGATHER, -1, 0, true, BY_VERDICT_OPTIMAL);
    rig_assert_fraction(plan->achieved, (300 * 65 + 2048) * 16, 65 * 15);
    by_plan_free(plan);
    by_topology_free(topology);
    options.rails = true;
    topology = import_one("nccl", &options, SAMPLES "nccl-a100.xml");
    assert_bandwidth(topology, "h0.nic-0000-ba-00.0", "rail6", 25, 1);
    assert_bandwidth(topology, "h1.nic-0000-ba-00.0", "rail6", 25, 1);
    by_topology_free(topology);
}

static void nvlinks_between_gpus_are_counted_once(void **state)
{
    struct by_import_options options = usual;
    struct by_topology *topology = import_one("nccl", &options, SAMPLES "nccl-pairs.xml");

    (void)state;
    assert_bandwidth(topology, "gpu0", "gpu1", 300, 1);
    assert_bandwidth(topology, "gpu2", "gpu3", 300, 1);
    assert_bandwidth(topology, "gpu0", "gpu2", 0, 1);
    assert_bandwidth(topology, "gpu0", "cpu0", 1024, 65); /* no speed in the file: 16 lanes of 8 GT/s */
    by_topology_free(topology);
    options.nvlink = (struct by_fraction){10, 1};
    options.cpu = (struct by_fraction){32, 1};
    topology = import_one("nccl", &options, SAMPLES "nccl-pairs.xml");
    assert_bandwidth(topology, "gpu0", "gpu1", 120, 1);
    assert_bandwidth(topology, "cpu0", "cpu3", 32, 1);
    by_topology_free(topology);
}

static void several_dumps_are_several_hosts(void **state)
{
    static const char *const paths[] = {SAMPLES "nccl-a100.xml", SAMPLES "nccl-pairs.xml"};
    struct by_topology *topology = import("nccl", &usual, paths, 2);

    (void)state;
    assert_int_equal(by_topology_compute_count(topology), 12);
    assert_string_equal(topology->nodes[8].name, "h1.gpu0");
    assert_bandwidth(topology, "net0", "h1.nic-of-cpu", 25, 2);
    by_topology_free(topology);
}

/* The sample is the output of ibnetdiscover on a simulated fabric (ibsim): 2 leaves, 2 spines, 4
 * hosts. */
static void what_ibnetdiscover_prints_is_a_fabric(void **state)
{
    struct by_topology *topology = import_one("ibnetdiscover", &usual, SAMPLES "ibnetdiscover-sim.txt");

    (void)state;
    assert_int_equal(topology->node_count, 8);
    assert_int_equal(by_topology_compute_count(topology), 4);
    assert_int_equal(topology->link_count, 8);
    assert_string_equal(topology->nodes[0].name, "host0");
    assert_string_equal(topology->nodes[3].name, "host3");
    assert_bandwidth(topology, "host2", "leaf1", 1, 1); /* 4xSDR: 8 Gb/s of data */
    assert_bandwidth(topology, "spine1", "leaf0", 1, 1);
    by_topology_free(topology);
}

static void adapters_are_nodes_or_their_hosts_are(void **state)
{
    struct by_import_options options = usual;
    struct by_topology *topology;

    (void)state;
    options.capable = "MF0-leaf01-MQM8700-U1,spine";
    topology = import_one("ibnetdiscover", &options, SAMPLES "ibnetdiscover-hdr.txt");
    assert_int_equal(by_topology_compute_count(topology), 8); /* aggregation nodes of SHARP do not count */
    assert_bandwidth(topology, "node02-mlx5_1", "MF0-leaf01-MQM8700-U1", 25, 1);
    assert_bandwidth(topology, "MF0-leaf02-MQM8700-U1", "spine01", 50, 1);
    assert_true(topology->nodes[by_topology_find(topology, "spine01")].aggregate);
    assert_false(topology->nodes[by_topology_find(topology, "MF0-leaf02-MQM8700-U1")].multicast);
    by_topology_free(topology);
    options.capable = NULL;
    options.hosts = true;
    topology = import_one("ibnetdiscover", &options, SAMPLES "ibnetdiscover-hdr.txt");
    assert_int_equal(by_topology_compute_count(topology), 4);
    assert_bandwidth(topology, "node02", "MF0-leaf01-MQM8700-U1", 50, 1);
    by_topology_free(topology);
}

static void what_lldpctl_prints_of_each_node_is_a_fabric(void **state)
{
    static const char *const paths[] = {SAMPLES "lldp/host3.json", SAMPLES "lldp/leaf0.json",
                                        SAMPLES "lldp/host0.json", SAMPLES "lldp/host1.json",
                                        SAMPLES "lldp/leaf1.json", SAMPLES "lldp/host2.json"};
    static const char *const two[] = {SAMPLES "lldp0/host0.json", SAMPLES "lldp0/host1.json"};
    struct by_topology *topology = import("lldp", &usual, paths, 6);

    (void)state;
    assert_int_equal(topology->node_count, 7);
    assert_int_equal(topology->link_count, 8); /* not twice, although both ends report it */
    assert_string_equal(topology->nodes[0].name, "host0");
    assert_bandwidth(topology, "host0", "leaf0", 25, 2);
    assert_bandwidth(topology, "spine0", "leaf1", 25, 1); /* two links; the spine has no own file */
    assert_false(topology->nodes[by_topology_find(topology, "spine0")].compute);
    by_topology_free(topology);
    topology = import("lldp", &usual, two, 2); /* output of -f json0 */
    assert_int_equal(topology->node_count, 3);
    assert_bandwidth(topology, "host1", "leaf0", 25, 8);
    by_topology_free(topology);
}

static void a_graph_of_graphviz_is_a_fabric(void **state)
{
    struct by_topology *topology = import_one("dot", &usual, SAMPLES "fabric.dot");

    (void)state;
    assert_string_equal(topology->name, "two racks");
    assert_int_equal(by_topology_compute_count(topology), 4);
    assert_int_equal(topology->node_count, 8);
    assert_int_equal(topology->link_count, 8);
    assert_bandwidth(topology, "h3", "leaf1", 25, 2);
    assert_bandwidth(topology, "spine.0", "leaf1", 100, 1);
    assert_bandwidth(topology, "leaf0", "spine.1", 50, 1);
    assert_true(topology->nodes[by_topology_find(topology, "leaf1")].aggregate);
    assert_false(topology->nodes[by_topology_find(topology, "spine.1")].multicast);
    by_topology_free(topology);
}

/* ---- what is refused, and where ---- */

static int import_text(const char *format, const struct by_import_options *options, const char *text,
                       size_t bytes, struct by_problem *problem)
{
    char path[] = "/tmp/banyan-import-XXXXXX";
    const char *const paths[] = {path};
    int descriptor = mkstemp(path), error;
    struct by_topology *topology;
    struct by_import_report report;
    size_t file;

    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, text, bytes), (ssize_t)bytes);
    close(descriptor);
    *problem = (struct by_problem){0};
    error = by_import(format, paths, 1, options, &topology, &report, problem, &file);
    unlink(path);
    by_topology_free(topology);
    return error;
}

#define IB_PAIR                                                                                              \
    "Switch 2 \"S-1\" # \"s\" base port 0\n[1] \"H-1\"[1] # \"h\" lid 1 4xEDR\n[2] \"H-2\"[1] # \"k\" lid "  \
    "2 4xEDR\n"                                                                                              \
    "Ca 1 \"H-1\" # \"h\"\n[1](1) \"S-1\"[1] # lid 1 lmc 0 \"s\" lid 3 4xEDR\n"

static void wrong_files_are_refused_at_their_place(void **state)
{
    static const struct {
        const char *format, *text;
        int line, column;
        const char *reason;
    } rows[] = {
        {"nccl", "<system>\n <cpu/>\n</system>", 2, 2, "no attribute numaid"},
        {"nccl", "<graphs/>", 1, 1, "begins with <graphs>"},
        {"nccl", "<system>\n<pci busid=\"0\"/></system>", 2, 1, "outside a <cpu>"},
        {"nccl",
         "<system><cpu numaid=\"0\">\n<pci busid=\"0:1\" class=\"0x030000\">\n<gpu dev=\"0\" rank=\"x\" "
         "sm=\"80\"/></pci></cpu></system>",
         3, 1, "rank of <gpu> is 'x'; it must be an integer from 0"},
        {"nccl",
         "<system><cpu numaid=\"0\"><pci busid=\"0:1\" class=\"0x030000\"><gpu dev=\"0\" rank=\"0\" "
         "sm=\"50\">\n  <nvlink target=\"1\" count=\"1\"/></gpu></pci></cpu></system>",
         2, 3, "--nvlink"},
        {"nccl", "<system version=\"1\">\n</sistem>", 2, 3, "not valid XML"},
        {"nccl", "<system version=\"1\"></system>", 0, 0, "no GPU with a rank"},
        {"nccl", "<!DOCTYPE s SYSTEM \"x\">\n<system/>", 1, 0, "document type"},
        {"ibnetdiscover", "Switch 36 S-1\n", 1, 1, "no quoted identity"},
        {"ibnetdiscover", "# x\n\n[1] \"S-1\"[1] # 4xEDR\n", 3, 1, "precedes every node"},
        {"ibnetdiscover", "Switch 2 \"S-1\" # \"s\"\n[1] \"H-1\" # 4xEDR\n", 2, 10, "must be [PORT]"},
        {"ibnetdiscover", "Switch 2 \"S-1\" # \"s\"\n[x] \"H-1\"[1] # 4xEDR\n", 2, 1, "must be [PORT]"},
        {"ibnetdiscover", "what is this\n", 1, 1, "neither a node"},
        {"ibnetdiscover", "Switch 2 \"S-1\" # \"s\"\n[1] \"H-1\"[1] # 4xEDR\n", 2, 1, "does not describe"},
        {"ibnetdiscover", IB_PAIR "Ca 1 \"H-2\" # \"k\"\n[1](2) \"S-1\"[1] # lid 1 4xEDR\n", 3, 1,
         "leads elsewhere"},
        {"ibnetdiscover", IB_PAIR "Ca 1 \"H-2\" # \"k\"\n[1](2) \"S-1\"[2] # lid 1 4xHDR\n", 3, 1,
         "different speed"},
        {"ibnetdiscover",
         IB_PAIR "Ca 1 \"H-2\" # \"k\"\n[1](2) \"S-1\"[2] # lid 1 4xEDR\n[1](2) \"S-1\"[2] # 4xEDR\n", 8, 1,
         "appears twice"},
        {"ibnetdiscover",
         "Switch 2 \"S-1\" # \"s\"\n[1] \"H-1\"[1] # \"h\"\nCa 1 \"H-1\" # \"h\"\n[1] \"S-1\"[1] # \"s\"\n",
         2, 1, "--rate"},
        {"lldp", "{\"lldp\":\n {\"interface\": }}", 2, 16, "not valid JSON"},
        {"lldp", "{}", 1, 1, "no \"lldp\""},
        {"lldp", "{\"lldp\": {\"interface\":\n  {\"eth7\": {\"port\": {}}}}}", 2, 4,
         "interface 'eth7' has a neighbour"},
        {"lldp",
         "{\"lldp\": {\"interface\": {\"eth0\":\n{\"chassis\": {\"leaf0\": {\"id\": {\"type\": "
         "\"mac\"}}}}}}}",
         1, 25, "--rate"},
        {"dot", "graph {\n a -> b\n}", 2, 4, "-- is expected here"},
        {"dot", "graph {\n a -- b [bandwidth=\"fast\"]\n}", 2, 7, "bandwidth is 'fast'"},
        {"dot", "graph {\n a -- b [bandwidth=1]\n}", 2, 2, "--switches or --compute"},
        {"dot", "graph {\n a [kind=router]\n}", 2, 2, "must be compute or switch"},
        {"dot", "graph {\n a -- a [bandwidth=1]\n}", 2, 7, "to itself"},
        {"dot", "graph { a [kind=compute]; b [kind=compute];\n a -- b [label=\"5/10\"] }", 2, 7, "--rate"},
        {"dot", "graph { a -- \"b", 1, 14, "is not terminated"},
        {"dot", "graph { a -- ", 1, 14, "the file ends where a node or {"},
        {"dot", "graph { ] }", 1, 9, "not ']'"},
        {"dot", "tree {}", 1, 1, "graph or digraph is expected here, not 'tree'"},
        {"dot", "graph {} x", 1, 10, "the end of the file"},
        {"dot", "graph { a ! b }", 1, 11, "not valid in a DOT"},
        {"yaml", "", 0, 0, "no format named 'yaml'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_problem problem;
        int error = import_text(rows[i].format, &usual, rows[i].text, strlen(rows[i].text), &problem);

        if (error == 0 || !strstr(problem.text, rows[i].reason))
            fail_msg("row %zu (%s): '%s' instead of '%s'", i, rows[i].format,
                     error ? problem.text : "(taken)", rows[i].reason);
        if (problem.line != rows[i].line || (rows[i].column && problem.column != rows[i].column))
            fail_msg("row %zu (%s): at %d:%d instead of %d:%d: %s", i, rows[i].format, problem.line,
                     problem.column, rows[i].line, rows[i].column, problem.text);
    }
}

static void what_a_file_does_not_say_can_be_said(void **state)
{
    static const char graph[] = "graph { h0 -- s; h1 -- s }";
    struct by_import_options options = usual;
    struct by_problem problem;

    (void)state;
    options.rate = (struct by_fraction){10, 1};
    assert_int_not_equal(import_text("dot", &options, graph, strlen(graph), &problem), 0);
    options.switches = "s";
    assert_int_equal(import_text("dot", &options, graph, strlen(graph), &problem), 0);
    options.switches = NULL;
    options.compute = "h"; /* the class of h0 and h1 */
    assert_int_equal(import_text("dot", &options, graph, strlen(graph), &problem), 0);
    options.compute = "h0";
    options.switches = "s";
    assert_int_not_equal(import_text("dot", &options, graph, strlen(graph), &problem), 0);
}

/* ---- garbage ---- */

static const struct {
    const char *format, *path;
} samples[] = {{"nccl", SAMPLES "nccl-a100.xml"},
               {"nccl", SAMPLES "nccl-pairs.xml"},
               {"ibnetdiscover", SAMPLES "ibnetdiscover-hdr.txt"},
               {"lldp", SAMPLES "lldp/leaf0.json"},
               {"lldp", SAMPLES "lldp0/host0.json"},
               {"dot", SAMPLES "fabric.dot"}};

static char *read_sample(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);

    assert_non_null(file);
    assert_non_null(text);
    *bytes = fread(text, 1, 1 << 16, file);
    fclose(file);
    return text;
}

static void a_sample_that_is_cut_off_or_spoilt_breaks_nothing(void **state)
{
    uint32_t seed = 1;

    (void)state;
    for (size_t s = 0; s < sizeof(samples) / sizeof(samples[0]); s++) {
        size_t bytes;
        char *text = read_sample(samples[s].path, &bytes);
        struct by_problem problem;

        for (size_t cut = 0; cut < bytes; cut += 37)
            if (import_text(samples[s].format, &usual, text, cut, &problem) != 0)
                assert_true(problem.text[0] != '\0');
        for (unsigned round = 0; round < 300; round++) {
            char *spoilt = malloc(bytes);

            assert_non_null(spoilt);
            memcpy(spoilt, text, bytes);
            for (unsigned change = 0; change < 1 + round % 4; change++) {
                seed = seed * 1664525u + 1013904223u;
                spoilt[(seed >> 8) % bytes] = (char)("<>\"[]{}#\n01,-x\0\xff"[seed >> 28]);
            }
            if (import_text(samples[s].format, &usual, spoilt, bytes, &problem) != 0)
                assert_true(problem.text[0] != '\0');
            free(spoilt);
        }
        free(text);
    }
}

static void a_million_lines_of_garbage_are_refused_in_bounded_time(void **state)
{
    static const struct {
        const char *format, *start, *line;
    } rows[] = {
        {"nccl", "", "garbage\n"},
        {"nccl", "<system>", "<cpu>\n"},
        {"nccl", "<system><cpu numaid=\"0\">", "<pci busid=\"0\">\n"},
        {"nccl", "<system>", "<x/>\n"},
        {"nccl", "<system>", "<cpu numaid=\"0\"/>\n"},
        {"nccl",
         "<system><cpu numaid=\"0\"><pci busid=\"1\" class=\"0x03\"><gpu dev=\"0\" rank=\"0\" sm=\"80\">",
         "<nvlink target=\"1\" count=\"1\"/>\n"},
        {"ibnetdiscover", "", "garbage\n"},
        {"ibnetdiscover", "", "[1] \"S-1\"[1] # 4xEDR\n"},
        {"ibnetdiscover", "Switch 1 \"S-1\" # \"s\"\n", "[1] \"S-1\"[1] # 4xEDR\n"},
        {"ibnetdiscover", "", "# a comment\n"},
        {"lldp", "", "garbage\n"},
        {"lldp", "", "[\n"},
        {"lldp", "{\"lldp\": [", "1,\n"},
        {"lldp", "{\"lldp\": {\"interface\": [", "{\"name\": \"e\", \"chassis\": {\"s\": {}}},\n"},
        {"dot", "", "garbage\n"},
        {"dot", "graph {", "{\n"},
        {"dot", "graph {", "a--b[bandwidth=1]\n"},
        {"dot", "graph {", "a--\n"},
        {"dot", "graph { node [kind=switch]; {", "a;b\n"},
        {"dot", "graph { node [kind=switch]; {a}--{", "b;b\n"},
        {"dot", "graph {", "<\n"},
        {"dot", "graph {", "/*\n"},
    };
    clock_t begin = clock();

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t start = strlen(rows[i].start), line = strlen(rows[i].line), bytes = start + 1000000 * line;
        char *text = malloc(bytes);
        struct by_problem problem;

        assert_non_null(text);
        memcpy(text, rows[i].start, start);
        for (size_t n = 0; n < 1000000; n++)
            memcpy(text + start + n * line, rows[i].line, line);
        if (import_text(rows[i].format, &usual, text, bytes, &problem) == 0)
            fail_msg("row %zu was taken", i);
        assert_true(problem.text[0] != '\0');
        free(text);
    }
    assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 60);
}

/* A name in Latin-1, as in old drawings, must not lead to invalid JSON. */
static void a_name_that_is_no_utf8_is_made_one(void **state)
{
    static const struct {
        const char *text, *name;
    } cases[] = {
        {"graph \"K\xf6ln\" { a [kind=compute]; b [kind=compute]; a -- b [bandwidth=1] }", "K_ln"},
        {"graph \"K\xc3\xb6ln\" { a [kind=compute]; b [kind=compute]; a -- b [bandwidth=1] }", "K\xc3\xb6ln"},
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char path[] = "/tmp/banyan-import-XXXXXX", *text = NULL;
        int file = mkstemp(path);
        struct by_topology *topology;
        size_t bytes = 0;
        FILE *out;

        assert_int_equal(write(file, cases[i].text, strlen(cases[i].text)), (ssize_t)strlen(cases[i].text));
        close(file);
        topology = import_one("dot", &usual, path);
        unlink(path);
        assert_string_equal(topology->name, cases[i].name);
        out = open_memstream(&text, &bytes);
        assert_int_equal(by_topology_write(topology, out), 0);
        fclose(out);
        by_topology_free(topology);
        by_topology_free(rig_parse(text));
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dump_of_nccl_is_a_box_of_gpus),
        cmocka_unit_test(a_name_that_is_no_utf8_is_made_one),
        cmocka_unit_test(copies_of_a_box_meet_in_a_network),
        cmocka_unit_test(nvlinks_between_gpus_are_counted_once),
        cmocka_unit_test(several_dumps_are_several_hosts),
        cmocka_unit_test(what_ibnetdiscover_prints_is_a_fabric),
        cmocka_unit_test(adapters_are_nodes_or_their_hosts_are),
        cmocka_unit_test(what_lldpctl_prints_of_each_node_is_a_fabric),
        cmocka_unit_test(a_graph_of_graphviz_is_a_fabric),
        cmocka_unit_test(wrong_files_are_refused_at_their_place),
        cmocka_unit_test(what_a_file_does_not_say_can_be_said),
        cmocka_unit_test(a_sample_that_is_cut_off_or_spoilt_breaks_nothing),
        cmocka_unit_test(a_million_lines_of_garbage_are_refused_in_bounded_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

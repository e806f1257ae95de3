/* Implements bench.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/control/discover/bench.h"

int bench_open(void **state)
{
    *state = calloc(1, sizeof(struct discover_bench));
    return *state == NULL;
}

int bench_close(void **state)
{
    struct discover_bench *bench = *state;

    by_discovery_free(&bench->discovery);
    by_cables_free(&bench->cables);
    by_facts_list_free(&bench->facts);
    by_report_free(&bench->report);
    free(bench->site);
    free(bench);
    return 0;
}

static void add(struct discover_bench *bench, const char *name, const char *prefix, uint32_t count)
{
    uint32_t node = bench->facts.count;
    struct by_facts *facts = by_facts_add(&bench->facts, name, "a test");

    facts->is_switch = facts->multicast = facts->aggregate = prefix[0] == 'p';
    for (uint32_t i = 0; i < count; i++) {
        struct by_facts_interface *interface;
        char text[32];

        snprintf(text, sizeof(text), "%s%u", prefix, i);
        interface = by_facts_interface(facts, text);
        interface->mtu = 1500;
        interface->speed_mbps = 10000;
        interface->has_mac = true;
        interface->mac[0] = 2;
        interface->mac[4] = (uint8_t)node;
        interface->mac[5] = (uint8_t)i;
        snprintf(interface->addresses, sizeof(interface->addresses), "10.%u.%u.1/31 fd00::%u/64", node, i, i);
    }
}

void bench_host(struct discover_bench *bench, const char *name, uint32_t count)
{
    add(bench, name, "eth", count);
}

void bench_switch(struct discover_bench *bench, const char *name, uint32_t count)
{
    add(bench, name, "p", count);
    snprintf(bench->facts.nodes[bench->facts.count - 1].control, 160, "tcp:%s:46248", name);
}

struct by_facts_interface *bench_interface(struct discover_bench *bench, const char *node, const char *name)
{
    for (uint32_t i = 0; i < bench->facts.count; i++)
        if (strcmp(bench->facts.nodes[i].node, node) == 0)
            return &bench->facts.nodes[i].interfaces[by_facts_find(&bench->facts.nodes[i], name)];
    fail_msg("no node %s", node);
    return NULL;
}

struct by_facts_neighbour *bench_hears(struct discover_bench *bench, const char *node, const char *port,
                                       const char *other, const char *other_port)
{
    struct by_facts_interface *interface = bench_interface(bench, node, port);
    struct by_facts_neighbour neighbour = {.forwards = other_port[0] == 'p'};

    snprintf(neighbour.node, sizeof(neighbour.node), "%s", other);
    snprintf(neighbour.port, sizeof(neighbour.port), "%s", other_port);
    by_facts_hear(interface, &neighbour);
    return &interface->neighbours[interface->neighbour_count - 1];
}

void bench_cable(struct discover_bench *bench, const char *node, const char *port, const char *other,
                 const char *other_port)
{
    bench_hears(bench, node, port, other, other_port);
    bench_hears(bench, other, other_port, node, port);
}

void bench_leafspine(struct discover_bench *bench)
{
    bench_host(bench, "host0", 2);
    bench_host(bench, "host1", 1);
    bench_host(bench, "host2", 1);
    bench_host(bench, "host10", 1);
    bench_switch(bench, "leaf0", 3);
    bench_switch(bench, "leaf1", 3);
    bench_switch(bench, "spine0", 2);
    bench_cable(bench, "host0", "eth1", "leaf0", "p0");
    bench_cable(bench, "leaf0", "p1", "host1", "eth0");
    bench_cable(bench, "host2", "eth0", "leaf1", "p1");
    bench_cable(bench, "host10", "eth0", "leaf1", "p2");
    bench_cable(bench, "spine0", "p1", "leaf1", "p0");
    bench_cable(bench, "leaf0", "p2", "spine0", "p0");
}

int bench_discover(struct discover_bench *bench)
{
    const struct by_discovery_options options = {.name = "site", .rate = {0, 1}};
    size_t bytes;
    int error;

    by_cables_find(&bench->cables, &bench->facts, &bench->report);
    error = by_discovery_make(&bench->discovery, &bench->cables, &options, &bench->report, &bench->problem);
    if (error == 0) {
        FILE *stream = open_memstream(&bench->site, &bytes);

        by_discovery_write_site(&bench->discovery, &bench->cables, stream);
        fclose(stream);
    }
    return error;
}

void bench_trouble(const struct discover_bench *bench, uint32_t count, const char *check, const char *text)
{
    bool found = false;

    for (uint32_t i = 0; i < bench->report.count; i++) {
        const struct by_finding *finding = &bench->report.findings[i];

        if (finding->grade != BY_GRADE_TROUBLE)
            continue;
        print_message("%s: %s: %s -> %s\n", finding->check, finding->subject, finding->text, finding->remedy);
        assert_int_not_equal(finding->remedy[0], 0);
        found = found || (strcmp(finding->check, check) == 0 &&
                          (strstr(finding->text, text) != NULL || strstr(finding->remedy, text) != NULL));
    }
    assert_int_equal(by_report_count(&bench->report, BY_GRADE_TROUBLE), count);
    assert_true(count == 0 || found);
}

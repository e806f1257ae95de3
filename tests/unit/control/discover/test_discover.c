/* banyan discover: facts as JSON, cables from what nodes hear, the topology and the site. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include <cmocka.h>

#include "control/discover/collect.h"
#include "control/discover/local.h"
#include "control/fabric/site.h"
#include "offload/base/errors.h"
#include "tests/unit/control/discover/bench.h"

/* ---- facts ---- */

static int parse(struct discover_bench *bench, const char *json)
{
    return by_facts_parse(&bench->facts, "x.json", json, strlen(json), &bench->problem);
}

static void facts_read_as_they_were_written(void **state)
{
    struct discover_bench *bench = *state;
    struct by_facts_interface *from, *to;
    char *text;
    size_t bytes;
    FILE *stream;

    bench_host(bench, "host0", 2);
    from = bench_interface(bench, "host0", "eth1");
    from->numa = 2;
    from->queues = 8;
    from->is_down = true;
    snprintf(from->driver, sizeof(from->driver), "mlx5_core");
    snprintf(from->bus, sizeof(from->bus), "0000:41:00.0");
    snprintf(from->features, sizeof(from->features), "rx-checksum");
    bench_hears(bench, "host0", "eth1", "leaf0", "p3")->has_mac = true;
    stream = open_memstream(&text, &bytes);
    by_facts_write(&bench->facts.nodes[0], stream);
    fclose(stream);
    assert_int_equal(parse(bench, text), 0);
    free(text);
    assert_int_equal(bench->facts.count, 2);
    assert_string_equal(bench->facts.nodes[1].node, "host0");
    from = &bench->facts.nodes[0].interfaces[1];
    to = &bench->facts.nodes[1].interfaces[1];
    assert_memory_equal(from, to, sizeof(*to));
}

static void facts_that_cannot_be_right_are_refused(void **state)
{
#define FACTS(interfaces)                                                                                    \
    "{\"format\": \"banyan-facts-1\", \"node\": \"a\", \"interfaces\": [" interfaces "]}"
    static const struct {
        const char *json, *text;
    } wrong[] = {
        {"{", "not valid JSON"},
        {"[]", "is it the output of `banyan discover --local`?"},
        {"{\"format\": \"banyan-facts-1\", \"interfaces\": []}", "\"node\" must be"},
        {"{\"format\": \"banyan-facts-1\", \"node\": \"a b\", \"interfaces\": []}", "\"node\" must be"},
        {"{\"format\": \"banyan-facts-1\", \"node\": \"a/b\", \"interfaces\": []}", "\"node\" must be"},
        {"{\"format\": \"banyan-facts-1\", \"node\": \"a\"}", "\"interfaces\" must be"},
        {FACTS("3"), "\"interfaces\" must be an array of objects"},
        {FACTS("{}"), "\"name\" must be a text"},
        {FACTS("{\"name\": \"e\", \"mtu\": -1}"), "interface 'e': \"mtu\" must be a number from 0 to 65535"},
        {FACTS("{\"name\": \"e\", \"mtu\": 1e3}"), "\"mtu\" must be a number"},
        {FACTS("{\"name\": \"e\", \"mac\": \"x\"}"), "\"mac\" must be a MAC address"},
        {FACTS("{\"name\": \"e\", \"down\": 1}"), "\"down\" must be true or false"},
        {FACTS("{\"name\": \"e\"}, {\"name\": \"e\"}"), "each name appears once"},
        {FACTS("{\"name\": \"e\", \"neighbours\": [{\"node\": \"b\"}]}"), "\"port\" must be a text"},
        {FACTS("{\"name\": \"e\", \"neighbours\": {}}"), "\"neighbours\" must be an array"},
    };
    struct discover_bench *bench = *state;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(parse(bench, wrong[i].json), BY_EFORMAT);
        if (strstr(bench->problem.text, wrong[i].text) == NULL)
            fail_msg("%s: %s", wrong[i].json, bench->problem.text);
    }
}

static void neighbours_are_read_from_lldpctl(void **state)
{
    static const char json[] =
        "{\"lldp\": {\"interface\": [{\"eth0\": {\"chassis\": {\"leaf0.example.org\": {\"id\": {\"type\": \"mac\", "
        "\"value\": \"02:00:00:00:00:09\"}, \"capability\": [{\"type\": \"Bridge\", \"enabled\": true}]}}, \"port\": "
        "{\"id\": {\"type\": \"mac\", \"value\": \"02:00:00:00:00:07\"}, \"descr\": \"p1\"}}}, {\"eth7\": "
        "{\"chassis\": {\"x\": {}}, \"port\": {\"id\": {\"value\": \"y\"}}}}]}}";
    struct discover_bench *bench = *state;
    const struct by_facts_neighbour *neighbour;

    bench_host(bench, "host0", 1);
    assert_int_equal(by_local_lldpctl(&bench->facts.nodes[0], json, strlen(json), &bench->problem), 0);
    assert_int_equal(bench->facts.nodes[0].interfaces[0].neighbour_count, 1);
    neighbour = &bench->facts.nodes[0].interfaces[0].neighbours[0];
    assert_string_equal(neighbour->node, "leaf0.example.org");
    assert_string_equal(neighbour->description, "p1");
    assert_true(neighbour->has_mac && neighbour->mac[5] == 7 && neighbour->forwards);
    assert_int_equal(by_local_lldpctl(&bench->facts.nodes[0], "{}", 2, &bench->problem), BY_EFORMAT);
}

static void ports_of_a_switch_are_taken_from_its_answer(void **state)
{
    struct discover_bench *bench = *state;
    by_InterfacesReply reply = {.interfaces_count = 1};
    const struct by_facts_interface *interface;

    reply.interfaces[0] =
        (by_Interface){.name = "p0", .kernel = true, .mtu = 9000, .speed = 100000, .numa = 1};
    reply.interfaces[0].has_neighbour = true;
    snprintf(reply.interfaces[0].neighbour.node, 48, "bad\"name");
    snprintf(reply.interfaces[0].neighbour.port, 48, "eth0");
    by_collect_take(by_facts_add(&bench->facts, "leaf0", "a test"), &reply);
    interface = &bench->facts.nodes[0].interfaces[0];
    assert_int_equal(interface->speed_mbps, 100000);
    assert_false(interface->has_mac);
    assert_string_equal(interface->neighbours[0].node, "bad?name");
}

/* ---- cables ---- */

static void a_leafspine_is_found_as_it_is(void **state)
{
    static const char *const nodes[] = {"host0", "host1", "host2", "host10", "leaf0", "leaf1", "spine0"};
    struct discover_bench *bench = *state;
    const struct by_topology *topology;

    bench_leafspine(bench);
    assert_int_equal(bench_discover(bench), 0);
    bench_trouble(bench, 0, "", "");
    topology = bench->discovery.topology;
    assert_int_equal(topology->node_count, 7);
    assert_int_equal(topology->link_count, 6);
    assert_string_equal(topology->unit, "Gb/s");
    for (uint32_t i = 0; i < 7; i++) {
        assert_string_equal(topology->nodes[i].name, nodes[i]);
        assert_int_equal(topology->nodes[i].compute, i < 4);
        assert_int_equal(topology->nodes[i].aggregate, i >= 4);
        assert_int_equal(topology->nodes[i].multicast, i >= 4);
    }
    for (uint32_t i = 0; i < topology->arc_count; i++)
        assert_int_equal(topology->arcs[i].capacity, 10 * topology->scale);
}

/* Each switch's ports must be its links, in the order of the topology. */
static void links_have_the_order_of_the_switches_ports(void **state)
{
    struct discover_bench *bench = *state;
    uint32_t next[7] = {0};

    bench_leafspine(bench);
    assert_int_equal(bench_discover(bench), 0);
    for (uint32_t i = 0; i < bench->discovery.link_count; i++)
        for (unsigned s = 0; s < 2; s++) {
            const struct by_cable_end *end = &bench->discovery.links[i].ends[s];

            if (end->node >= 4)
                assert_int_equal(end->interface, next[end->node]++);
        }
    assert_int_equal(next[4] + next[5] + next[6], 8);
}

static void the_site_states_names_addresses_macs_and_mtus(void **state)
{
    struct discover_bench *bench = *state;
    const struct by_site_end *end;
    struct by_topology *topology;

    bench_leafspine(bench);
    bench_interface(bench, "leaf0", "p0")->is_kernel = false; /* a device of DPDK has no address */
    bench_interface(bench, "leaf0", "p0")->addresses[0] = 0;
    assert_int_equal(bench_discover(bench), 0);
    topology = bench->discovery.topology;
    assert_int_equal(by_site_parse(bench->site, strlen(bench->site), topology, &bench->problem), 0);
    for (uint32_t i = 0; i < topology->link_count; i++) {
        const struct by_cable *link = &bench->discovery.links[i];

        for (unsigned s = 0; s < 2; s++) {
            const struct by_facts_interface *from = by_cables_interface(&bench->cables, &link->ends[s]);

            end = by_site_end(topology, i, s == 0 ? topology->links[i].a : topology->links[i].b);
            assert_memory_equal(end->mac, from->mac, 6);
            if (from->is_kernel) {
                assert_string_equal(end->interface, from->name);
                assert_int_equal(end->ip, 0x0a000001u | from->mac[4] << 16 | (unsigned)from->mac[5] << 8);
            } else {
                assert_string_equal(end->interface, "");
                assert_int_equal(end->ip, 0x0a000100u); /* the other address of 10.0.1.1/31 */
            }
        }
    }
}

/* Links without IPv4 addresses, whose switch states none: a subnet of two addresses has the other
 * one, and a larger one says nothing of it. */
static void addresses_of_ipv6_are_stated_at_both_ends_or_none(void **state)
{
    struct discover_bench *bench = *state;
    char text[INET6_ADDRSTRLEN];

    bench_host(bench, "host0", 1);
    bench_host(bench, "host1", 1);
    bench_switch(bench, "sw", 2);
    bench_hears(bench, "sw", "p0", "host0", "eth0");
    bench_hears(bench, "sw", "p1", "host1", "eth0");
    snprintf(bench_interface(bench, "host0", "eth0")->addresses, 96, "fe80::9/64 fd00:5::4/127");
    snprintf(bench_interface(bench, "host1", "eth0")->addresses, 96, "fd00:6::4/64");
    bench_interface(bench, "sw", "p0")->addresses[0] = bench_interface(bench, "sw", "p1")->addresses[0] = 0;
    assert_int_equal(bench_discover(bench), 0);
    assert_non_null(strstr(bench->site, "\"address\": \"fd00:5::4\""));
    assert_non_null(strstr(bench->site, "\"address\": \"fd00:5::5\""));
    assert_null(strstr(bench->site, "fd00:6"));
    assert_int_equal(
        by_site_parse(bench->site, strlen(bench->site), bench->discovery.topology, &bench->problem), 0);
    assert_int_equal(by_site_book(bench->discovery.topology).count, 2);
    assert_non_null(
        inet_ntop(AF_INET6, by_site_book(bench->discovery.topology).records + 4, text, sizeof(text)));
    assert_string_equal(text, "fd00:5::4");
}

static void a_cable_is_found_if_one_end_hears(void **state)
{
    struct discover_bench *bench = *state;

    bench_host(bench, "host0", 1);
    bench_host(bench, "host1", 1);
    bench_switch(bench, "sw", 2);
    bench_hears(bench, "host0", "eth0", "sw", "p0");
    bench_hears(bench, "sw", "p1", "host1.example.org", "eth0");
    assert_int_equal(bench_discover(bench), 0);
    bench_trouble(bench, 0, "", "");
    assert_int_equal(bench->discovery.topology->link_count, 2);
}

static void a_neighbour_is_found_by_its_mac_address(void **state)
{
    struct discover_bench *bench = *state;
    struct by_facts_neighbour *neighbour;

    bench_host(bench, "host0", 1);
    bench_switch(bench, "sw", 2);
    neighbour =
        bench_hears(bench, "host0", "eth0", "box.example.org", "port 7"); /* lldpd names the machine */
    neighbour->has_mac = true;
    memcpy(neighbour->mac, bench_interface(bench, "sw", "p0")->mac, 6);
    assert_int_equal(bench_discover(bench), 0);
    assert_int_equal(bench->discovery.topology->node_count, 2);
    assert_string_equal(bench->discovery.links[0].ends[1].port, "p0");
}

static void two_nodes_of_one_name_are_trouble(void **state)
{
    struct discover_bench *bench = *state;

    bench_leafspine(bench);
    bench_host(bench, "host1", 0);
    bench_discover(bench);
    bench_trouble(bench, 2, "nodes", "give each node a name of its own");
}

static void an_interface_that_hears_two_is_trouble(void **state)
{
    struct discover_bench *bench = *state;

    bench_leafspine(bench);
    bench_hears(bench, "host0", "eth1", "leaf0", "p1");
    assert_int_equal(bench_discover(bench), 0);
    bench_trouble(bench, 1, "cables", "has a cable to");
}

static void a_loop_to_the_same_node_is_trouble(void **state)
{
    struct discover_bench *bench = *state;

    bench_leafspine(bench);
    bench_hears(bench, "host0", "eth0", "host0", "eth0");
    assert_int_equal(bench_discover(bench), 0);
    bench_trouble(bench, 1, "cables", "it hears its own node");
}

static void an_address_or_mac_address_twice_is_trouble(void **state)
{
    struct discover_bench *bench = *state;

    bench_leafspine(bench);
    snprintf(bench_interface(bench, "host1", "eth0")->addresses, 96, "10.0.1.1/24");
    memcpy(bench_interface(bench, "host2", "eth0")->mac, bench_interface(bench, "host1", "eth0")->mac, 6);
    assert_int_equal(bench_discover(bench), 0);
    bench_trouble(bench, 2, "addresses", "its address 10.0.1.1 is that of");
}

static void ends_that_differ_are_trouble_and_the_smaller_counts(void **state)
{
    struct discover_bench *bench = *state;

    bench_host(bench, "host0", 1);
    bench_switch(bench, "sw", 1);
    bench_cable(bench, "host0", "eth0", "sw", "p0");
    bench_interface(bench, "sw", "p0")->speed_mbps = 2500;
    bench_interface(bench, "sw", "p0")->mtu = 9000;
    assert_int_equal(bench_discover(bench), 0);
    bench_trouble(bench, 2, "mtu", "ip link set IF mtu 9000");
    bench_trouble(bench, 2, "speed", "10000 Mb/s");
    assert_int_equal(bench->discovery.topology->arcs[0].capacity * 2, 5 * bench->discovery.topology->scale);
    assert_non_null(strstr(bench->site, "\"mtu\": 1500"));
}

static void ports_out_of_order_are_trouble_with_the_right_order(void **state)
{
    struct discover_bench *bench = *state;

    bench_host(bench, "host0", 1);
    bench_switch(bench, "sw", 3);
    bench_host(bench, "host1", 1);
    bench_cable(bench, "host0", "eth0", "sw", "p2");
    bench_cable(bench, "host1", "eth0", "sw", "p0"); /* p1 has no cable */
    assert_int_equal(bench_discover(bench), 0);
    bench_trouble(bench, 1, "ports", "with these ports in this order: p0 p2");
}

static void contradicting_orders_of_two_switches_are_trouble(void **state)
{
    struct discover_bench *bench = *state;

    bench_host(bench, "host0", 1);
    bench_switch(bench, "a", 3);
    bench_switch(bench, "b", 2);
    bench_cable(bench, "host0", "eth0", "a", "p0");
    bench_cable(bench, "a", "p1", "b", "p1");
    bench_cable(bench, "a", "p2", "b", "p0");
    assert_int_equal(bench_discover(bench), 0);
    bench_trouble(bench, 1, "ports", "with these ports in this order: p1 p0");
}

static void a_plain_switch_is_a_node_that_only_forwards(void **state)
{
    struct discover_bench *bench = *state;
    const struct by_topology *topology;

    bench_host(bench, "host0", 1);
    bench_host(bench, "host1", 1);
    bench_switch(bench, "sw", 2);
    bench_hears(bench, "host0", "eth0", "tor", "port1");
    bench_hears(bench, "sw", "p0", "tor", "port2");
    bench_cable(bench, "sw", "p1", "host1", "eth0");
    bench_hears(bench, "host1", "eth0", "edge", "port9"); /* leads nowhere, and shares a segment */
    bench_discover(bench);
    bench_trouble(bench, 1, "cables", "has a cable to");
    topology = bench->discovery.topology;
    assert_int_equal(topology->node_count, 4);
    assert_false(topology->nodes[by_topology_find(topology, "tor")].multicast);
}

static void a_host_that_was_not_asked_is_named_and_left_out(void **state)
{
    struct discover_bench *bench = *state;

    bench_leafspine(bench);
    bench_switch(bench, "extra", 2);
    bench_cable(bench, "extra", "p0", "spine0", "p1"); /* a second cable at p1 */
    bench_hears(bench, "extra", "p1", "host9", "eth0");
    bench_discover(bench);
    assert_int_equal(by_report_count(&bench->report, BY_GRADE_UNSEEN), 1);
    assert_int_equal(by_topology_find(bench->discovery.topology, "host9"), -1);
}

static void without_cables_or_speeds_there_is_no_topology(void **state)
{
    struct discover_bench *bench = *state;

    bench_host(bench, "host0", 1);
    bench_switch(bench, "sw", 1);
    assert_int_equal(bench_discover(bench), BY_EINVAL);
    assert_non_null(strstr(bench->problem.text, "no cable was found between 2 nodes"));
    by_cables_free(&bench->cables);
    bench_cable(bench, "host0", "eth0", "sw", "p0");
    bench_interface(bench, "host0", "eth0")->speed_mbps = 0;
    bench_interface(bench, "sw", "p0")->speed_mbps = 0;
    assert_int_equal(bench_discover(bench), BY_EINVAL);
    assert_non_null(strstr(bench->problem.text, "state that of such cables with --rate"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(facts_read_as_they_were_written),
        TEST(facts_that_cannot_be_right_are_refused),
        TEST(neighbours_are_read_from_lldpctl),
        TEST(ports_of_a_switch_are_taken_from_its_answer),
        TEST(a_leafspine_is_found_as_it_is),
        TEST(links_have_the_order_of_the_switches_ports),
        TEST(the_site_states_names_addresses_macs_and_mtus),
        TEST(addresses_of_ipv6_are_stated_at_both_ends_or_none),
        TEST(a_cable_is_found_if_one_end_hears),
        TEST(a_neighbour_is_found_by_its_mac_address),
        TEST(two_nodes_of_one_name_are_trouble),
        TEST(an_interface_that_hears_two_is_trouble),
        TEST(a_loop_to_the_same_node_is_trouble),
        TEST(an_address_or_mac_address_twice_is_trouble),
        TEST(ends_that_differ_are_trouble_and_the_smaller_counts),
        TEST(ports_out_of_order_are_trouble_with_the_right_order),
        TEST(contradicting_orders_of_two_switches_are_trouble),
        TEST(a_plain_switch_is_a_node_that_only_forwards),
        TEST(a_host_that_was_not_asked_is_named_and_left_out),
        TEST(without_cables_or_speeds_there_is_no_topology),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

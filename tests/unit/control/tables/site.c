/* Tables of a site: MTUs of links, learned MAC addresses, VLANs, UDP ports, and nodes that do not
 * run banyan. Single-threaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/tables/address.h"
#include "control/tables/book.h"
#include "control/tables/cable.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

#define SITE(text) "{\"format\": \"banyan-site-1\", " text "}"

/* h0 and h1 under sw0*, h2 and h3 under sw1*, and the plain switch x0 between sw0 and sw1. */
struct site_rig {
    struct by_topology *topology;
    struct by_lowering *lowering;
    struct by_problem problem;
};

static int lower(struct site_rig *rig, const char *site, uint32_t mtu, const char *tree)
{
    const char *trees[] = {tree, NULL};
    struct by_plan *plan;
    struct by_lower_job job = {.job = 2, .plan_count = 1};
    int error;

    *rig = (struct site_rig){.topology =
                                 bench_topology("h0 h1 h2 sw0* sw1* x0 h3",
                                                "h0-sw0 h1-sw0 sw0-x0 x0-sw1 h2-sw1 h1-h2 h3-sw1 h2-h3")};
    plan = bench_plan(rig->topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    job.plans = (const struct by_plan *const *)&plan;
    if (by_site_parse(site, strlen(site), rig->topology, &rig->problem) != 0)
        fail_msg("%s: %s", site, rig->problem.text);
    error = by_lower(rig->topology, &job, 1, &(struct by_lower_options){.mtu = mtu}, &rig->lowering,
                     &rig->problem);
    bench_plan_free(plan);
    return error;
}

static void done(struct site_rig *rig)
{
    by_lowering_free(rig->lowering);
    by_topology_free(rig->topology);
}

static const char two_level[] = "10 sw0: sw0>h0 sw0>h1 sw0>x0>sw1 sw1>h2 sw1>h3";

/* The image of a node, which the caller frees. */
static uint8_t *image_of(const struct site_rig *rig, uint32_t node)
{
    struct by_problem problem = {0};
    uint8_t *image;
    size_t bytes;

    if (by_lowering_image(rig->lowering, node, &image, &bytes, &problem) != 0)
        fail_msg("%s", problem.text);
    return image;
}

static void packets_are_as_long_as_the_smallest_link_that_a_tree_uses(void **state)
{
    static const struct {
        const char *site;
        uint32_t given, mtu;
    } rows[] = {
        {SITE("\"links\": []"), 0, 1500},
        {SITE("\"links\": []"), 9000, 9000},
        /* links that state nothing have 1500 */
        {SITE("\"links\": [{\"between\": [\"h0\", \"sw0\"], \"mtu\": 9000}]"), 0, 1500},
        {SITE("\"links\": [{\"between\": [\"h0\", \"sw0\"], \"mtu\": 1400}]"), 0, 1400},
        {SITE("\"links\": [{\"between\": [\"h0\", \"sw0\"], \"mtu\": 1400}]"), 1000, 1000},
        {SITE("\"links\": [{\"between\": [\"sw0\", \"x0\"], \"ends\": [{\"mtu\": 1450}, {\"mtu\": 1300}]}]"),
         0, 1300},
        /* no tree uses this link */
        {SITE("\"links\": [{\"between\": [\"h1\", \"h2\"], \"mtu\": 600}]"), 0, 1500},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct site_rig rig;

        if (lower(&rig, rows[i].site, rows[i].given, two_level) != 0)
            fail_msg("%s: %s", rows[i].site, rig.problem.text);
        assert_int_equal(rig.lowering->mtu, rows[i].mtu);
        assert_int_equal(rig.lowering->payload_max, by_lower_payload(rows[i].mtu));
        done(&rig);
    }
}

/* All links count, and one without a statement has the usual MTU. */
static void the_smallest_mtu_of_a_fabric_is_that_of_any_link(void **state)
{
    static const struct {
        const char *site;
        uint32_t least;
    } rows[] = {
        {SITE("\"links\": []"), BY_LOWER_MTU},
        {SITE("\"links\": [{\"between\": [\"h0\", \"h1\"], \"mtu\": 9000}]"), BY_LOWER_MTU},
        {SITE("\"links\": [{\"between\": [\"h0\", \"h1\"], \"mtu\": 9000}, {\"between\": [\"h1\", "
              "\"h2\"], \"mtu\": 8000}]"),
         8000},
        {SITE("\"links\": [{\"between\": [\"h0\", \"h1\"], \"mtu\": 7000}, {\"between\": [\"h1\", "
              "\"h2\"], \"mtu\": 8000}]"),
         7000},
        {SITE("\"links\": [{\"between\": [\"h1\", \"h2\"], \"mtu\": 1400}]"), 1400},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_topology *topology = bench_topology("h0 h1 h2", "h0-h1 h1-h2");
        struct by_problem problem = {0};

        if (by_site_parse(rows[i].site, strlen(rows[i].site), topology, &problem) != 0)
            fail_msg("%s: %s", rows[i].site, problem.text);
        assert_int_equal(by_lower_mtu_least(topology), rows[i].least);
        by_topology_free(topology);
    }
}

static void a_port_has_the_mtu_of_its_link(void **state)
{
    struct by_image_port port;
    struct site_rig rig;
    uint8_t *image;

    (void)state;
    assert_int_equal(
        lower(&rig, SITE("\"links\": [{\"between\": [\"h1\", \"h2\"], \"mtu\": 600}]"), 0, two_level), 0);
    image = image_of(&rig, 1);
    by_image_port(image, 0, &port);
    assert_int_equal(port.mtu, 1500);
    by_image_port(image, 1, &port);
    assert_int_equal(port.mtu, 600);
    free(image);
    done(&rig);
}

static void refused(const char *site, uint32_t mtu, const char *tree, int error, const char *words)
{
    struct site_rig rig;

    assert_int_equal(lower(&rig, site, mtu, tree), error);
    if (strstr(rig.problem.text, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, rig.problem.text);
    by_topology_free(rig.topology);
}

static void the_end_of_a_link_that_is_too_small_is_named(void **state)
{
    (void)state;
    refused(
        SITE("\"links\": [{\"between\": [\"sw0\", \"h1\"], \"mtu\": 9000, \"ends\": [{}, "
             "{\"interface\": \"enp1s0\", \"mtu\": 1500}]}]"),
        9000, two_level, BY_EINVAL,
        "the link 'h1' - 'sw0' has an MTU of 1500 bytes at 'h1' (enp1s0), and tables are made for 9000: use "
        "--mtu 1500");
    refused(SITE("\"links\": [{\"between\": [\"sw0\", \"h1\"], \"mtu\": 1500}]"), 1501, two_level, BY_EINVAL,
            "at 'h1' (eth0)");
}

static void an_address_without_a_mac_address_is_learned(void **state)
{
    static const uint8_t none[6] = {0};
    struct by_image_port port;
    struct site_rig rig;
    uint8_t *image;

    (void)state;
    assert_int_equal(
        lower(&rig,
              SITE("\"links\": [{\"between\": [\"h0\", \"sw0\"], \"vlan\": 7, \"ends\": [{\"address\": "
                   "\"10.0.0.1\"}, {\"address\": \"10.0.0.2\", \"mac\": \"0c:42:a1:00:00:01\"}]},"
                   "{\"between\": [\"h1\", \"sw0\"], \"ends\": [{}, {\"mac\": \"arp\"}]}]"),
              0, two_level),
        0);
    image = image_of(&rig, 3);
    by_image_port(image, 0, &port);
    assert_memory_equal(port.own_mac, "\x0c\x42\xa1\x00\x00\x01", 6);
    assert_memory_equal(port.peer_mac, none, 6);
    assert_int_equal(port.peer_ip, 0x0a000001);
    assert_int_equal(port.vlan, 7);
    by_image_port(image, 1, &port);
    assert_memory_equal(port.own_mac, none, 6);
    assert_memory_equal(port.peer_mac, "\x02\x62\xc6\x12\x00\x02", 6);
    assert_int_equal(port.vlan, 0);
    free(image);
    done(&rig);
}

static void hosts_listen_on_the_ports_of_the_site(void **state)
{
    struct by_image_job job;
    struct site_rig rig;
    uint8_t *image;

    (void)state;
    assert_int_equal(lower(&rig, SITE("\"udp_port\": 20000"), 0, two_level), 0);
    image = image_of(&rig, 0);
    by_image_job(image, 0, &job);
    assert_int_equal(job.udp_port, 20001); /* of job 2 */
    free(image);
    image = image_of(&rig, 3);
    by_image_job(image, 0, &job);
    assert_int_equal(job.udp_port, 20001);
    free(image);
    done(&rig);
}

/* A router has no table; the switches before and after it send to each other, by its MAC
 * address. */
static void a_router_gets_no_relays(void **state)
{
    static const uint8_t none[6] = {0};
    struct by_image_port port;
    struct by_image_child child;
    struct site_rig rig;
    uint8_t *image;

    (void)state;
    assert_int_equal(lower(&rig, SITE("\"nodes\": [{\"name\": \"x0\", \"runs\": \"router\"}]"), 0, two_level),
                     0);
    assert_int_equal(rig.lowering->relay_count, 0);
    image = image_of(&rig, 3);
    by_image_port(image, 2, &port);
    assert_int_equal(port.peer_ip, by_address_ip(rig.topology, 2, 5));
    assert_memory_equal(port.peer_mac, none, 6);
    by_image_child(image, 2, &child);
    assert_int_equal(child.ip, by_address_ip(rig.topology, 3, 4));
    free(image);
    done(&rig);
    assert_int_equal(lower(&rig, SITE("\"links\": []"), 0, two_level), 0);
    assert_int_equal(rig.lowering->relay_count, 2);
    done(&rig);
}

static void neighbours_behind_a_bridge_are_the_receivers(void **state)
{
    struct by_image_port port;
    struct site_rig rig;
    uint8_t *image;

    (void)state;
    assert_int_equal(lower(&rig, SITE("\"nodes\": [{\"name\": \"x0\", \"runs\": \"bridge\"}]"), 0, two_level),
                     0);
    assert_int_equal(rig.lowering->relay_count, 0);
    image = image_of(&rig, 3);
    by_image_port(image, 2, &port);
    assert_int_equal(port.peer_ip, 0);
    free(image);
    done(&rig);
}

static void a_node_that_does_not_run_banyan_cannot_add(void **state)
{
    (void)state;
    refused(SITE("\"nodes\": [{\"name\": \"sw1\", \"runs\": \"router\"}]"), 0, two_level, BY_EUNSUPPORTED,
            "lets 'sw1' add or copy, and the site states that it is a router");
}

/* Both ends of a link between two nodes. */
#define SIX(a, b, x, y)                                                                                      \
    "{\"between\": [\"" a "\", \"" b "\"], \"ends\": [{\"address\": \"" x "\"}, {\"address\": \"" y "\"}]}"

static void packets_of_ipv6_have_longer_headers(void **state)
{
    static const char site[] = SITE("\"links\": [" SIX("h0", "sw0", "fd00::1", "fd00::2") "]");
    struct by_image_address address;
    struct by_image_header header;
    struct by_ipv6_book book;
    struct by_image_port port;
    struct site_rig rig;
    uint8_t *image;

    (void)state;
    assert_int_equal(lower(&rig, site, 0, two_level), 0);
    assert_int_equal(rig.lowering->payload_max, by_lower_payload(1480));
    assert_int_equal(by_lower_extra(rig.topology, 0, 0), 20);
    assert_int_equal(by_lower_extra(rig.topology, 1, 1), 0);
    image = image_of(&rig, 0);
    by_image_header(image, &header);
    by_image_book(image, &book);
    by_image_port(image, 0, &port);
    assert_int_equal(header.count[BY_SECTION_ADDRESS], 2);
    by_image_address(image, 1, &address);
    assert_int_equal(address.number, port.peer_ip);
    assert_memory_equal(by_ipv6_address(&book, port.own_ip), "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
    free(image);
    image = image_of(&rig, 1); /* no link of h1 has such addresses */
    by_image_header(image, &header);
    assert_int_equal(header.count[BY_SECTION_ADDRESS], 0);
    free(image);
    done(&rig);
    assert_int_equal(lower(&rig, site, 1280, two_level), 0);
    done(&rig);
    refused(site, 1279, two_level, BY_EINVAL, "an MTU of 1279: the trees use links with IPv6 addresses");
}

static void a_relay_between_links_of_different_families_is_refused(void **state)
{
    struct site_rig rig;

    (void)state;
    refused(SITE("\"links\": [" SIX("sw0", "x0", "fd00::1", "fd00::2") "]"), 0, two_level, BY_EUNSUPPORTED,
            "packets from 'sw0' (fd00::1) pass 'x0' unchanged on their way to 'sw1'");
    assert_int_equal(lower(&rig,
                           SITE("\"links\": [" SIX("sw0", "x0", "fd00::1",
                                                   "fd00::2") "," SIX("x0", "sw1", "fd00::3", "fd00::4") "]"),
                           0, two_level),
                     0);
    done(&rig);
}

/* The addresses of an image are those of its records: its ports' and their peers', of a parent and
 * children behind a relay, and those that it relays; and no others. */
static void an_image_has_the_addresses_that_it_uses_and_no_others(void **state)
{
    static const unsigned counts[] = {0, 0, 0, /* hosts on links of IPv4 */
                                      3,       /* sw0: its own, its peer's, and that of its child behind x0 */
                                      3,       /* sw1: its own, its peer's, and that of its parent */
                                      4,       /* x0: of two links */
                                      0};
    struct site_rig rig;

    (void)state;
    assert_int_equal(lower(&rig,
                           SITE("\"links\": [" SIX("sw0", "x0", "fd00::1",
                                                   "fd00::2") "," SIX("x0", "sw1", "fd00::3", "fd00::4") "]"),
                           0, two_level),
                     0);
    for (uint32_t node = 0; node < rig.lowering->node_count; node++) {
        uint8_t *image = image_of(&rig, node);
        struct by_image_fault fault = {.section = "", .what = ""};
        struct by_image_header header;

        if (by_image_addresses_check(image, &fault) != 0)
            fail_msg("node %u: %s %u: %s", node, fault.section, fault.index, fault.what);
        by_image_header(image, &header);
        assert_int_equal(header.count[BY_SECTION_ADDRESS], counts[node]);
        free(image);
    }
    done(&rig);
}

static void a_router_behind_a_bridge_is_refused(void **state)
{
    struct by_problem problem = {0};
    struct by_topology *topology =
        bench_topology("h0 h1 b0 b1 x0 r0", "h0-b0 b0-b1 b1-r0 r0-h1 b1-x0 x0-h1 b0-x0");
    static const char site[] = SITE("\"nodes\": [{\"name\": \"b0\", \"runs\": \"bridge\"}, {\"name\": "
                                    "\"b1\", \"runs\": \"bridge\"}, {\"name\": \"r0\", \"runs\": "
                                    "\"router\"}]");

    (void)state;
    if (by_site_parse(site, strlen(site), topology, &problem) != 0)
        fail_msg("%s", problem.text);
    for (unsigned router = 0; router < 2; router++) { /* behind two bridges */
        const char *const trees[] = {router ? "1 h0: h0>b0>b1>r0>h1" : "1 h0: h0>b0>b1>x0>h1", NULL};
        struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
        struct by_lower_job job = {.job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
        struct by_lowering *lowering = NULL;
        int error = by_lower(topology, &job, 1, &(struct by_lower_options){0}, &lowering, &problem);

        assert_int_equal(error, router ? BY_EUNSUPPORTED : 0);
        if (error == 0)
            by_lowering_free(lowering);
        else
            assert_non_null(strstr(problem.text, "is followed by the router 'r0'"));
        bench_plan_free(plan);
    }
    by_topology_free(topology);
    refused(
        SITE(
            "\"nodes\": [{\"name\": \"x0\", \"runs\": \"bridge\"}, {\"name\": \"sw1\", \"runs\": \"router\"}]"),
        0, "10 sw0: sw0>h0 sw0>h1 sw0>x0>sw1>h2 h2>h3", BY_EUNSUPPORTED,
        "the bridge 'x0' is followed by the router 'sw1'");
}

static void the_text_of_an_address_has_each_byte(void **state)
{
    uint8_t record[BY_IPV6_RECORD_BYTES] = {0, 0, 0, 9, 0xfd};
    const struct by_ipv6_book book = {record, 1};
    char text[BY_ADDRESS_TEXT];

    (void)state;
    assert_string_equal(by_address_text(&book, 0xcb0071fe, text), "203.0.113.254");
    assert_string_equal(by_address_text(&book, 0xffffffff, text), "255.255.255.255");
    assert_string_equal(by_address_text(&book, 0x0102f304, text), "1.2.243.4");
    assert_string_equal(by_address_text(&book, 9, text), "fd00::");
    assert_string_equal(by_address_text(&book, 8, text), "IPv6 address 8 of the table");
}

/* Fabrics at each limit of the tables, and beyond it: a ring of `nodes`, the first of which have
 * `links` together. */
static void what_tables_cannot_number_is_refused(void **state)
{
    static const struct {
        uint32_t nodes, links, name_bytes;
        const char *refusal;
    } rows[] = {
        {65534, 0, 1, ""},
        {65535, 0, 1, "the fabric has 65535 nodes; a table can name at most 65534: split the fabric"},
        {128, 65536, 1, ""},
        {130, 65537, 1,
         "the fabric has 65537 links; the address range 198.18.0.0/15 holds 65536: merge parallel links"},
        {2, 1024, 1, ""},
        {2, 1025, 1, "node 'n' has 1025 links; a node has at most 1024 ports: use fewer, wider links"},
        {2, 1, 47, ""},
        {2, 1, 48,
         "node 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn...': the name has 48 bytes; the limit is "
         "47: shorten it"},
    };

    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        char name[64] = "", last[] = "n";
        struct by_topology topology = {.node_count = rows[r].nodes, .link_count = rows[r].links};
        struct by_address_map map;
        struct by_problem problem = {0};
        int error;

        memset(name, 'n', rows[r].name_bytes);
        topology.nodes = calloc(rows[r].nodes, sizeof(*topology.nodes));
        topology.links = calloc(rows[r].links + 1, sizeof(*topology.links));
        assert_true(topology.nodes != NULL && topology.links != NULL);
        for (uint32_t i = 0; i < rows[r].nodes; i++)
            topology.nodes[i].name = i == 0 ? name : last;
        for (uint32_t i = 0; i < rows[r].links; i++)
            topology.links[i] = (struct by_link){.a = i % rows[r].nodes, .b = (i + 1) % rows[r].nodes};
        error = by_address_map_make(&topology, &map, &problem);
        assert_string_equal(problem.text, rows[r].refusal);
        assert_int_equal(error, rows[r].refusal[0] == '\0' ? 0 : BY_ELIMIT);
        by_address_map_free(&map);
        free(topology.nodes);
        free(topology.links);
    }
}

/* Two records of each section, with a number in each field that holds an address; a number that no
 * record has is left out. */
static void an_image_has_the_ipv6_addresses_of_all_its_records(void **state)
{
    enum { UNUSED = 15, COUNT = 16 };
    struct by_image_header header = {.kind = BY_NODE_SWITCH, .name = "sw"};
    uint8_t records[COUNT * BY_IPV6_RECORD_BYTES] = {0}, *image;
    struct by_ipv6_book book = {records, COUNT};
    size_t bytes;

    (void)state;
    for (uint32_t number = 1; number <= COUNT; number++) {
        records[(number - 1) * BY_IPV6_RECORD_BYTES + 3] = (uint8_t)number;
        records[(number - 1) * BY_IPV6_RECORD_BYTES + 4] = 0xfd;
        records[number * BY_IPV6_RECORD_BYTES - 1] = (uint8_t)number;
    }
    header.count[BY_SECTION_PORT] = header.count[BY_SECTION_ENTRY] = header.count[BY_SECTION_CHILD] = 2;
    header.count[BY_SECTION_LEAF] = header.count[BY_SECTION_RELAY] = 2;
    image = calloc(1, by_image_bytes(header.count));
    assert_non_null(image);
    by_image_put_header(image, &header);
    for (uint32_t i = 0; i < 2; i++) {
        by_image_put_port(image, i, &(struct by_image_port){.own_ip = 1 + i, .peer_ip = 3 + i});
        by_image_put_entry(image, i, &(struct by_image_entry){.parent_ip = 5 + i, .child_count = 1});
        by_image_put_child(image, i, &(struct by_image_child){.ip = 7 + i});
        by_image_put_leaf(image, i, &(struct by_image_leaf){.parent_ip = 9 + i});
        by_image_put_relay(image, i,
                           &(struct by_image_relay){.src_ip = 11 + i, .dst_ip = i == 0 ? 13 : COUNT});
    }
    image = by_emit_addresses(image, &book, &bytes);
    by_image_header(image, &header);
    assert_int_equal(bytes, by_image_bytes(header.count));
    assert_int_equal(header.count[BY_SECTION_ADDRESS], COUNT - 2);
    for (uint32_t i = 0, number = 1; i < COUNT - 2; i++, number++) {
        struct by_image_address address;

        number += number == 14 || number == UNUSED ? COUNT - number : 0;
        by_image_address(image, i, &address);
        assert_int_equal(address.number, number);
        assert_memory_equal(address.address, by_ipv6_address(&book, number), BY_IPV6_BYTES);
    }
    free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_are_as_long_as_the_smallest_link_that_a_tree_uses),
        cmocka_unit_test(the_smallest_mtu_of_a_fabric_is_that_of_any_link),
        cmocka_unit_test(a_port_has_the_mtu_of_its_link),
        cmocka_unit_test(the_end_of_a_link_that_is_too_small_is_named),
        cmocka_unit_test(an_address_without_a_mac_address_is_learned),
        cmocka_unit_test(hosts_listen_on_the_ports_of_the_site),
        cmocka_unit_test(a_router_gets_no_relays),
        cmocka_unit_test(neighbours_behind_a_bridge_are_the_receivers),
        cmocka_unit_test(a_node_that_does_not_run_banyan_cannot_add),
        cmocka_unit_test(a_router_behind_a_bridge_is_refused),
        cmocka_unit_test(packets_of_ipv6_have_longer_headers),
        cmocka_unit_test(a_relay_between_links_of_different_families_is_refused),
        cmocka_unit_test(an_image_has_the_addresses_that_it_uses_and_no_others),
        cmocka_unit_test(an_image_has_the_ipv6_addresses_of_all_its_records),
        cmocka_unit_test(the_text_of_an_address_has_each_byte),
        cmocka_unit_test(what_tables_cannot_number_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

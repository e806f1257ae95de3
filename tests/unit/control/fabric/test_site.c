/* The names of a site: what is stated is used, what is not is generated, and files that cannot be
 * right are refused with the place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/fabric/site.h"
#include "control/tables/address.h"
#include "offload/base/errors.h"

#define SITE(links)  "{\"format\": \"banyan-site-1\", \"links\": [" links "]}"
#define NODES(nodes) "{\"format\": \"banyan-site-1\", \"nodes\": [" nodes "]}"
#define END(interface, address, mac)                                                                         \
    "{\"interface\": \"" interface "\", \"address\": \"" address "\", \"mac\": \"" mac "\"}"

/* a and b have two cables, b and c one. */
static struct by_topology *fabric(void)
{
    static const char json[] =
        "{\"name\": \"f\", \"nodes\": [{\"name\": \"a\", \"kind\": \"compute\"},"
        "{\"name\": \"b\", \"kind\": \"switch\"}, {\"name\": \"c\", \"kind\": \"compute\"}],"
        "\"links\": [{\"between\": [\"a\", \"b\"], \"bandwidth\": 1},"
        "{\"between\": [\"c\", \"b\"], \"bandwidth\": 1},"
        "{\"between\": [\"b\", \"a\"], \"bandwidth\": 1}]}";
    struct by_topology *topology = NULL;
    struct by_problem problem = {0};

    if (by_topology_parse(json, strlen(json), &topology, &problem) != 0)
        fail_msg("%s", problem.text);
    return topology;
}

static int parse(struct by_topology *topology, const char *json, struct by_problem *problem)
{
    return by_site_parse(json, strlen(json), topology, problem);
}

static void what_is_stated_is_used_and_the_rest_is_generated(void **state)
{
    struct by_topology *topology = fabric();
    struct by_address_map map;
    struct by_problem problem = {0};
    uint8_t mac[6];
    char name[BY_INTERFACE_BYTES];

    (void)state;
    /* The second link between a and b, which the topology has from b to a. */
    assert_int_equal(parse(topology,
                           SITE("{\"between\": [\"a\", \"b\"], \"number\": 1, \"mtu\": 9000, \"ends\": [" END(
                               "enp1s0", "10.0.0.1", "0c:42:a1:00:00:01") ", {\"interface\": \"swp7\"}]}"),
                           &problem),
                     0);
    assert_int_equal(by_address_map_make(topology, &map, &problem), 0);
    assert_int_equal(by_address_ip(topology, 2, 0), 0x0a000001);
    assert_int_equal(by_address_ip(topology, 2, 1), BY_ADDRESS_BASE + 4);
    assert_int_equal(by_address_ip(topology, 0, 0), BY_ADDRESS_BASE);
    by_address_mac(topology, 2, 0, mac);
    assert_memory_equal(mac, "\x0c\x42\xa1\x00\x00\x01", 6);
    by_address_mac(topology, 2, 1, mac);
    assert_memory_equal(mac, "\x02\x62\xc6\x12\x00\x04", 6);
    by_address_interface(&map, 2, 0, name);
    assert_string_equal(name, "enp1s0");
    by_address_interface(&map, 2, 1, name);
    assert_string_equal(name, "swp7");
    by_address_interface(&map, 0, 1, name);
    assert_string_equal(name, "p0");
    by_address_interface(&map, 0, 0, name);
    assert_string_equal(name, "eth0");
    assert_int_equal(by_site_mtu(topology, 2), 9000);
    assert_int_equal(by_site_mtu(topology, 0), 0);
    by_address_map_free(&map);
    by_topology_free(topology);
}

static void ends_of_a_link_have_its_mtu_and_vlan_unless_they_state_their_own(void **state)
{
    struct by_topology *topology = fabric();
    struct by_problem problem = {0};
    uint8_t mac[6];

    (void)state;
    assert_int_equal(parse(topology,
                           SITE("{\"between\": [\"a\", \"b\"], \"mtu\": 9000, \"vlan\": 4094, \"ends\": "
                                "[{\"mtu\": 1500, \"mac\": \"arp\"}, {\"address\": \"10.0.0.1\"}]},"
                                "{\"between\": [\"b\", \"c\"], \"ends\": [{\"vlan\": 3}, {\"mtu\": 4000}]}"),
                           &problem),
                     0);
    assert_int_equal(by_site_mtu(topology, 0), 1500);
    assert_int_equal(by_site_end(topology, 0, 1)->mtu, 9000);
    assert_int_equal(by_site_mtu(topology, 1), 4000);
    assert_int_equal(by_address_vlan(topology, 0), 4094);
    assert_int_equal(by_address_vlan(topology, 1), 3); /* one end states it */
    assert_int_equal(by_address_vlan(topology, 2), 0);
    assert_false(by_address_mac(topology, 0, 0, mac));
    assert_false(by_address_mac(topology, 0, 1, mac)); /* its address is the site's */
    assert_true(by_address_mac(topology, 1, 1, mac));
    by_topology_free(topology);
}

static void nodes_have_control_addresses_and_what_they_run(void **state)
{
    struct by_topology *topology = fabric();
    struct by_problem problem = {0};
    uint8_t mac[6];

    (void)state;
    assert_int_equal(
        parse(topology, NODES("{\"name\": \"b\", \"control\": \"tls:10.0.0.5:7700\"}"), &problem), 0);
    assert_string_equal(by_site_control(topology, 1), "tls:10.0.0.5:7700");
    assert_null(by_site_control(topology, 0));
    assert_true(by_site_is_switch(topology, 1));
    assert_false(by_site_is_switch(topology, 0));
    assert_int_equal(parse(topology, NODES("{\"name\": \"b\", \"runs\": \"router\"}"), &problem), 0);
    assert_false(by_site_is_switch(topology, 1));
    assert_false(by_address_mac(topology, 0, 1, mac));
    assert_true(by_address_mac(topology, 0, 0, mac));
    by_topology_free(topology);
}

static void a_later_site_replaces_an_earlier_one(void **state)
{
    struct by_topology *topology = fabric();
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(parse(topology,
                           SITE("{\"between\": [\"b\", \"c\"], \"ends\": [{}, {\"address\": \"10.0.0.9\"}]}"),
                           &problem),
                     0);
    assert_int_equal(by_address_ip(topology, 1, 2), 0x0a000009);
    assert_int_equal(parse(topology, SITE(""), &problem), 0);
    assert_int_equal(by_address_ip(topology, 1, 2), BY_ADDRESS_BASE + 2);
    by_topology_free(topology);
}

static void a_file_that_cannot_be_right_is_refused(void **state)
{
    static const struct {
        const char *json, *words;
    } rows[] = {
        {"", "line"},
        {"[]", "a site must be an object"},
        {"{\"links\": []}", "has no \"format\""},
        {"{\"format\": \"banyan-site-2\", \"links\": []}", "must be banyan-site-1"},
        {"{\"format\": \"banyan-site-1\", \"link\": []}", "key 'link' of a site is unknown"},
        {SITE("{}"), "\"between\" with two nodes"},
        {SITE("{\"between\": [\"a\"]}"), "\"between\" with two nodes"},
        {SITE("{\"between\": [\"a\", \"b\", \"c\"]}"), "a link has two nodes"},
        {SITE("{\"between\": [\"a\", \"d\"]}"), "has no node 'd'"},
        {SITE("{\"between\": [\"a\", \"c\"]}"), "no link 0 between 'a' and 'c'"},
        {SITE("{\"between\": [\"a\", \"b\"], \"number\": 2}"), "no link 2 between 'a' and 'b'"},
        {SITE("{\"between\": [\"a\", \"b\"], \"number\": -1}"), "must be a number from 0"},
        {SITE("{\"between\": [\"c\", \"b\"]}, {\"between\": [\"b\", \"c\"]}"), "appears twice"},
        {SITE("{\"between\": [\"a\", \"b\"], \"mtu\": 575}"), "from 576 to 65535"},
        {SITE("{\"between\": [\"a\", \"b\"], \"mtu\": 65536}"), "from 576 to 65535"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{}]}"), "has two elements"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{}, {}, {}]}"), "a link has two ends"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [1, {}]}"), "an end must be an object"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"ip\": \"10.0.0.1\"}, {}]}"), "key 'ip'"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"interface\": \"\"}, {}]}"), "1 to 15"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"interface\": \"sixteen-letters1\"}, {}]}"),
         "1 to 15"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"interface\": \"a/b\"}, {}]}"),
         "not the name of an"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"interface\": 5}, {}]}"), "must be a string"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"address\": \"10.0.0\"}, {}]}"),
         "not an IPv4 address"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"address\": \"fe80::1\"}, {}]}"),
         "fe80::1 is a link-local address, which more than one link may have: give the end a unique local "
         "address (fd00::/8)"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"address\": \"fe80::1%eth0\"}, {}]}"),
         "link-local"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"address\": \"fd00::1%eth0\"}, {}]}"),
         "nor an IPv6 address"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"address\": \"fd00::1/64\"}, {}]}"),
         "without the length of a prefix"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"address\": \"ff02::1\"}, {}]}"), "multicast"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"address\": \"::1\"}, {}]}"), "loopback"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"address\": \"::\"}, {}]}"), "unspecified"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"address\": \"::ffff:10.0.0.1\"}, {}]}"),
         "write it as 10.1.2.3"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"address\": \"0.0.0.1\"}, {}]}"), "reserved"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"address\": \"127.0.0.1\"}, {}]}"), "loopback"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"address\": \"224.0.0.1\"}, {}]}"), "multicast"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"mac\": \"0c:42:a1:00:00\"}, {}]}"),
         "not a MAC address"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"mac\": \"0c:42:a1:00:00:0g\"}, {}]}"),
         "not a MAC"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"mac\": \"00:00:00:00:00:00\"}, {}]}"),
         "one station"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"mac\": \"01:00:5e:00:00:01\"}, {}]}"),
         "one station"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"mac\": \"ARP\"}, {}]}"), "nor \"arp\""},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"mtu\": 100}, {}]}"), "the MTU of an end"},
        {SITE("{\"between\": [\"a\", \"b\"], \"vlan\": 4095}"), "from 0 to 4094"},
        {SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"vlan\": -1}, {}]}"), "from 0 to 4094"},
        {SITE("{\"between\": [\"b\", \"a\"], \"ends\": [{\"vlan\": 5}, {\"vlan\": 6}]}"),
         "link 0 between 'b' and 'a' has VLAN 6 at 'a' and VLAN 5 at 'b'"},
        {SITE("{\"between\": [\"b\", \"a\"], \"vlan\": 5, \"ends\": [{\"vlan\": 0}, {}]}"),
         "has VLAN 5 at 'a' and VLAN 0 at 'b' (0: no tag)"},
        {NODES("{}"), "must have a \"name\""},
        {NODES("5"), "a node must be an object"},
        {NODES("{\"name\": \"d\"}"), "has no node 'd'"},
        {NODES("{\"name\": \"b\"}, {\"name\": \"b\"}"), "node 'b' appears twice"},
        {NODES("{\"name\": \"b\", \"address\": 1}"), "key 'address' of a node is unknown"},
        {NODES("{\"name\": \"b\", \"runs\": \"linux\"}"), "it runs banyan, router or bridge"},
        {NODES("{\"name\": \"a\", \"runs\": \"router\"}"), "node 'a' is a host"},
        {NODES("{\"name\": \"c\", \"control\": \"tcp:a:1\"}"), "node 'c' is a host"},
        {NODES("{\"name\": \"b\", \"control\": \"tcp:a:1\", \"runs\": \"bridge\"}"), "remove one of both"},
        {NODES("{\"name\": \"b\", \"control\": \"\"}"), "1 to 255"},
        {"{\"format\": \"banyan-site-1\", \"udp_port\": 1023}", "from 1024 to 64513"},
        {"{\"format\": \"banyan-site-1\", \"udp_port\": 64514}", "from 1024 to 64513"},
        {SITE("") "x", "x"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_topology *topology = fabric();
        struct by_problem problem = {0};
        int error = parse(topology, rows[i].json, &problem);

        if (error == 0 || problem.line == 0 || problem.text[0] == 0 ||
            (i > 0 && i + 1 < sizeof(rows) / sizeof(rows[0]) && strstr(problem.text, rows[i].words) == NULL))
            fail_msg("%s: %d, %d:%d: '%s' instead of '%s'", rows[i].json, error, problem.line, problem.column,
                     problem.text, rows[i].words);
        assert_null(topology->site);
        by_topology_free(topology);
    }
}

static void a_file_that_is_cut_anywhere_is_refused(void **state)
{
    static const char json[] =
        SITE("{\"between\": [\"a\", \"b\"], \"number\": 1, \"mtu\": 9000, \"ends\": [" END(
            "enp1s0", "10.0.0.1", "0c:42:a1:00:00:01") ", {}]}");

    (void)state;
    for (size_t bytes = 0; bytes + 1 < sizeof(json); bytes++) {
        struct by_topology *topology = fabric();
        struct by_problem problem = {0};

        assert_int_not_equal(by_site_parse(json, bytes, topology, &problem), 0);
        assert_true(problem.text[0] != 0);
        by_topology_free(topology);
    }
}

#define SIX(link, a, b)                                                                                      \
    SITE("{\"between\": [" link "], \"ends\": [{\"address\": \"" a "\"}, {\"address\": \"" b "\"}]}")

/* What only a whole file shows has no place in it. */
static void ends_of_different_families_and_small_links_of_ipv6_are_refused(void **state)
{
    static const struct {
        const char *json, *words;
    } rows[] = {
        {SIX("\"a\", \"b\"", "fd00::1", "10.0.0.1"),
         "the link between 'a' and 'b' has an IPv6 address at 'a' and an IPv4 address at 'b': give both ends "
         "addresses of one family"},
        {SIX("\"b\", \"a\"", "fd00::1", "10.0.0.1"), "an IPv6 address at 'b' and an IPv4 address at 'a'"},
        {SITE("{\"between\": [\"c\", \"b\"], \"ends\": [{}, {\"address\": \"fd00::1\"}]}"),
         "an IPv6 address at 'b' and none at 'c'"},
        {SITE("{\"between\": [\"c\", \"b\"], \"ends\": [{\"address\": \"fd00::2\"}, {\"mtu\": 1279, "
              "\"address\": \"fd00::1\"}]}"),
         "has an MTU of 1279 bytes; with IPv6 addresses it must be at least 1280"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_topology *topology = fabric();
        struct by_problem problem = {0};

        assert_int_equal(parse(topology, rows[i].json, &problem), BY_EFORMAT);
        if (strstr(problem.text, rows[i].words) == NULL)
            fail_msg("'%s' is not in '%s'", rows[i].words, problem.text);
        by_topology_free(topology);
    }
}

static void ipv6_addresses_are_numbered_in_their_order(void **state)
{
    struct by_topology *topology = fabric();
    struct by_problem problem = {0};
    char text[BY_ADDRESS_TEXT];
    struct by_ipv6_book book;
    uint8_t mac[6];

    (void)state;
    assert_int_equal(
        parse(
            topology,
            SITE("{\"between\": [\"a\", \"b\"], \"mtu\": 1280, \"ends\": [{\"address\": \"fd00:0:0:2::1\"}, "
                 "{\"address\": \"fd00::ff\", \"mac\": \"nd\"}]}, {\"between\": [\"b\", \"c\"], \"ends\": "
                 "[{\"address\": \"2001:db8::1\"}, {\"address\": \"FD00::0:9\", \"mac\": "
                 "\"02:00:00:00:00:09\"}]}"),
            &problem),
        0);
    book = by_site_book(topology);
    assert_int_equal(book.count, 4);
    assert_int_equal(by_address_ip(topology, 1, 1), 1); /* 2001:db8::1 */
    assert_int_equal(by_address_ip(topology, 1, 2), 2); /* fd00::9 */
    assert_int_equal(by_address_ip(topology, 0, 1), 3);
    assert_int_equal(by_address_ip(topology, 0, 0), 4);
    assert_int_equal(by_address_ip(topology, 2, 0), BY_ADDRESS_BASE + 5); /* from b to a: end b */
    assert_string_equal(by_address_of(topology, 1, 2, text), "fd00::9");
    assert_string_equal(by_address_of(topology, 2, 1, text), "198.18.0.4");
    assert_string_equal(by_address_text(&book, 9, text), "IPv6 address 9 of the table");
    assert_false(by_address_mac(topology, 0, 1, mac)); /* learned */
    assert_true(by_address_mac(topology, 1, 2, mac));
    by_topology_free(topology);
}

/* The map of the fabric with a site must be refused with these words. */
static void refused(const char *json, const char *words)
{
    struct by_topology *topology = fabric();
    struct by_address_map map;
    struct by_problem problem = {0};

    assert_int_equal(parse(topology, json, &problem), 0);
    assert_int_equal(by_address_map_make(topology, &map, &problem), BY_EINVAL);
    if (strstr(problem.text, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, problem.text);
    by_topology_free(topology);
}

static void two_ends_with_one_address_or_interface_are_named(void **state)
{
    (void)state;
    refused(SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"address\": \"10.0.0.1\"}, {}]},"
                 "{\"between\": [\"b\", \"c\"], \"ends\": [{}, {\"address\": \"10.0.0.1\"}]}"),
            "node 'a' has the address 10.0.0.1 on its link to 'b', and node 'c' has it on its link to 'b'");
    /* the generated address of c's end of link 1 */
    refused(SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{\"address\": \"198.18.0.2\"}, {}]}"),
            "has the address 198.18.0.2");
    refused(SIX("\"a\", \"b\"", "fd00::1", "fd00:0::0:1"),
            "node 'a' has the address fd00::1 on its link to 'b', and node 'b' has it on its link to 'a'");
    refused(SITE("{\"between\": [\"a\", \"b\"], \"ends\": [{}, {\"interface\": \"p1\"}]}"),
            "node 'b' has the interface p1 for its links to 'a' and to 'c'");
}

static void a_file_that_is_not_there_is_named(void **state)
{
    struct by_topology *topology = fabric();
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(by_site_read("/nothing/site.json", topology, &problem), BY_EIO);
    by_topology_free(topology);
}

static void count_control(void *context, const char *name, const char *address)
{
    assert_string_equal(name, "b");
    assert_string_equal(address, "unix:/b.sock");
    ++*(unsigned *)context;
}

static void control_addresses_are_read_without_a_topology(void **state)
{
    static const struct {
        const char *json;
        unsigned count;
        int error;
    } rows[] = {
        {"{\"nodes\": [{\"control\": \"unix:/b.sock\", \"name\": \"b\"}, {\"name\": \"x\", \"runs\": "
         "\"router\"}], \"links\": [5], \"format\": \"banyan-site-1\"}",
         1, 0},
        {"{\"format\": \"banyan-site-1\"}", 0, 0},
        {"{\"nodes\": []}", 0, BY_EFORMAT},
        {"{\"format\": \"banyan-site-2\"}", 0, BY_EFORMAT},
        {NODES("{\"control\": \"unix:/b.sock\"}"), 0, BY_EFORMAT},
        {NODES("{\"name\": \"b\", \"control\": 5}"), 0, BY_EFORMAT},
        {NODES("5"), 0, BY_EFORMAT},
        {NODES("{\"name\": \"b\"}") "x", 0, BY_EFORMAT},
        {"", 0, BY_EFORMAT},
    };
    char path[] = "/tmp/test-site-XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_problem problem = {0};
        unsigned count = 0;
        ssize_t bytes = (ssize_t)strlen(rows[i].json);

        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, rows[i].json, (size_t)bytes, 0), bytes);
        if (by_site_controls(path, count_control, &count, &problem) != rows[i].error ||
            count != rows[i].count || (rows[i].error != 0) != (problem.text[0] != 0))
            fail_msg("%s: %u: %s", rows[i].json, count, problem.text);
    }
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_stated_is_used_and_the_rest_is_generated),
        cmocka_unit_test(ends_of_a_link_have_its_mtu_and_vlan_unless_they_state_their_own),
        cmocka_unit_test(nodes_have_control_addresses_and_what_they_run),
        cmocka_unit_test(ends_of_different_families_and_small_links_of_ipv6_are_refused),
        cmocka_unit_test(ipv6_addresses_are_numbered_in_their_order),
        cmocka_unit_test(a_later_site_replaces_an_earlier_one),
        cmocka_unit_test(a_file_that_cannot_be_right_is_refused),
        cmocka_unit_test(a_file_that_is_cut_anywhere_is_refused),
        cmocka_unit_test(two_ends_with_one_address_or_interface_are_named),
        cmocka_unit_test(control_addresses_are_read_without_a_topology),
        cmocka_unit_test(a_file_that_is_not_there_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

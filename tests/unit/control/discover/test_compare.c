/* banyan doctor --topology: cables that are not those of the topology and the site. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/fabric/site.h"
#include "control/view/doctor/doctor.h"
#include "tests/unit/control/discover/bench.h"

/* Writes the files of the bench's leafspine as it is; a test changes the facts afterwards. */
static void write_files(struct discover_bench *bench)
{
    bench_leafspine(bench);
    assert_int_equal(bench_discover(bench), 0);
    assert_int_equal(
        by_site_parse(bench->site, strlen(bench->site), bench->discovery.topology, &bench->problem), 0);
}

/* Removes the neighbours of one interface. */
static void unplug(struct discover_bench *bench, const char *node, const char *port)
{
    bench_interface(bench, node, port)->neighbour_count = 0;
}

/* Exchanges the cables of two hosts at their switch. */
static void cross(struct discover_bench *bench)
{
    unplug(bench, "host2", "eth0");
    unplug(bench, "host10", "eth0");
    unplug(bench, "leaf1", "p1");
    unplug(bench, "leaf1", "p2");
    bench_cable(bench, "host2", "eth0", "leaf1", "p2");
    bench_cable(bench, "host10", "eth0", "leaf1", "p1");
}

static void compare(struct discover_bench *bench)
{
    struct by_doctor doctor = {.fabric = {.topology = bench->discovery.topology, .facts = bench->facts}};

    by_check_cables(&doctor);
    by_report_free(&bench->report);
    bench->report = doctor.report;
}

static void a_fabric_that_is_as_its_files_has_no_trouble(void **state)
{
    struct discover_bench *bench = *state;

    write_files(bench);
    compare(bench);
    bench_trouble(bench, 0, "", "");
    assert_int_equal(by_report_count(&bench->report, BY_GRADE_OK), 6);
}

static void two_crossed_cables_are_trouble_with_what_to_exchange(void **state)
{
    struct discover_bench *bench = *state;

    write_files(bench);
    cross(bench);
    compare(bench);
    bench_trouble(bench, 2, "cables", "its cable leads to p2 of 'leaf1', and should lead to p1 of 'leaf1'");
    bench_trouble(bench, 2, "cables", "exchange its other end with that of the cable from eth0 of 'host10'");
}

static void crossed_cables_are_seen_without_a_site(void **state)
{
    struct discover_bench *bench = *state;

    write_files(bench);
    by_site_free(bench->discovery.topology->site);
    bench->discovery.topology->site = NULL;
    cross(bench);
    compare(bench);
    bench_trouble(bench, 2, "cables", "and should lead to 'host2'");
}

static void a_missing_cable_is_trouble(void **state)
{
    struct discover_bench *bench = *state;

    write_files(bench);
    unplug(bench, "leaf0", "p2");
    unplug(bench, "spine0", "p0");
    compare(bench);
    bench_trouble(bench, 1, "cables", "no cable was found here, and the topology has one to");
}

static void a_cable_in_a_port_that_should_be_free_is_trouble(void **state)
{
    struct discover_bench *bench = *state;

    write_files(bench);
    unplug(bench, "host0", "eth1");
    unplug(bench, "leaf0", "p0");
    bench_cable(bench, "host0", "eth0", "leaf0", "p0");
    compare(bench);
    bench_trouble(bench, 1, "cables", "no cable was found here");
}

static void a_slower_cable_is_trouble_and_a_faster_one_advice(void **state)
{
    struct discover_bench *bench = *state;

    write_files(bench);
    bench_interface(bench, "host1", "eth0")->speed_mbps = 1000;
    compare(bench);
    bench_trouble(bench, 1, "cables", "its cable has 1000 Mb/s, and the topology 10000 Mb/s");
    bench_interface(bench, "host1", "eth0")->speed_mbps = 40000;
    bench_interface(bench, "leaf0", "p1")->speed_mbps = 40000;
    compare(bench);
    bench_trouble(bench, 0, "", "");
    assert_int_equal(by_report_count(&bench->report, BY_GRADE_ADVICE), 1);
}

static void an_mtu_below_the_sites_is_trouble(void **state)
{
    struct discover_bench *bench = *state;

    write_files(bench);
    bench_interface(bench, "leaf1", "p0")->mtu = 1400;
    compare(bench);
    bench_trouble(bench, 1, "cables", "its MTU is 1400 bytes, and the site states 1500");
}

static void names_that_the_site_has_otherwise_are_trouble(void **state)
{
    struct discover_bench *bench = *state;

    write_files(bench);
    snprintf(bench_interface(bench, "host1", "eth0")->addresses, 96, "10.9.9.9/24");
    bench_interface(bench, "host2", "eth0")->mac[1] = 9;
    snprintf(bench_interface(bench, "host10", "eth0")->name, 16, "eth5");
    compare(bench);
    bench_trouble(bench, 3, "cables", "the site gives it the address 10.1.0.1, and it has 10.9.9.9/24");
    bench_trouble(bench, 3, "cables", "its MAC address is 02:09:00:00:02:00");
    bench_trouble(bench, 3, "cables", "the site names this interface, and the node does not have it");
}

static void ports_in_another_order_than_the_site_has_are_trouble(void **state)
{
    struct discover_bench *bench = *state;

    write_files(bench);
    snprintf(bench_interface(bench, "spine0", "p0")->name, 16, "x");
    snprintf(bench_interface(bench, "spine0", "p1")->name, 16, "p0");
    snprintf(bench_interface(bench, "spine0", "x")->name, 16, "p1");
    compare(bench);
    assert_true(by_report_count(&bench->report, BY_GRADE_TROUBLE) >= 2);
    bench_trouble(bench, by_report_count(&bench->report, BY_GRADE_TROUBLE), "cables",
                  "it is port 0, for which the site names p0");
}

static void links_of_nodes_that_were_not_asked_are_unseen(void **state)
{
    struct discover_bench *bench = *state;

    write_files(bench);
    for (uint32_t i = 0; i < bench->facts.count; i++)
        free(bench->facts.nodes[i].interfaces);
    bench->facts.count = 0;
    compare(bench);
    assert_int_equal(by_report_count(&bench->report, BY_GRADE_UNSEEN), 6);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_fabric_that_is_as_its_files_has_no_trouble),
        TEST(two_crossed_cables_are_trouble_with_what_to_exchange),
        TEST(crossed_cables_are_seen_without_a_site),
        TEST(a_missing_cable_is_trouble),
        TEST(a_cable_in_a_port_that_should_be_free_is_trouble),
        TEST(a_slower_cable_is_trouble_and_a_faster_one_advice),
        TEST(an_mtu_below_the_sites_is_trouble),
        TEST(names_that_the_site_has_otherwise_are_trouble),
        TEST(ports_in_another_order_than_the_site_has_are_trouble),
        TEST(links_of_nodes_that_were_not_asked_are_unseen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

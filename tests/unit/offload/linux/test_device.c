/* Facts of interfaces: the loopback interface of a network namespace of this test, which has
 * addresses only there, and a pair of virtual ones where the kernel and the rights allow it. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/linux/device.h"

static bool apart; /* this process has a network namespace of its own */

static int enter(void **state)
{
    (void)state;
    apart =
        unshare(CLONE_NEWNET) == 0 &&
        system(
            "ip link set lo up && ip addr add 192.0.2.1/25 dev lo && "
            "ip link add v0 type veth peer name v1 && ip link set v0 address 02:00:00:00:00:07 mtu 1400 && "
            "ip addr add fd00::7/64 dev v0 nodad && ip addr add 198.51.100.9/30 dev v0 && "
            "ip link set v0 up") == 0;
    return 0;
}

static void an_absent_interface_has_no_facts(void **state)
{
    static const char *const names[] = {"by-none", "", "a-name-of-more-than-15-characters"};
    uint8_t mac[6] = {1, 2, 3, 4, 5, 6};
    char text[64] = "x";
    struct by_device device;

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        memset(&device, 0xff, sizeof(device));
        by_device_read(names[i], &device);
        assert_false(device.exists);
        assert_int_equal(device.mtu, 0);
        assert_string_equal(device.driver, "");
        assert_false(by_device_mac(names[i], mac));
        assert_int_equal(mac[0], 1);
        by_device_addresses(names[i], text, sizeof(text));
        assert_string_equal(text, "");
    }
    assert_int_equal(by_device_numa("no:address"), 0);
}

static void the_loopback_interface_is_no_ethernet(void **state)
{
    struct by_device device;

    (void)state;
    by_device_read("lo", &device);
    assert_true(device.exists);
    assert_false(device.is_ethernet);
    assert_true(device.mtu >= 1280);
    assert_string_equal(device.bus, "");
    assert_int_equal(device.numa, 0);
}

static void a_virtual_interface_has_its_address_and_carrier(void **state)
{
    static const uint8_t wanted[6] = {2, 0, 0, 0, 0, 7};
    struct by_device device;
    uint8_t mac[6];

    (void)state;
    if (!apart)
        skip();
    by_device_read("v0", &device);
    assert_true(device.exists && device.is_up && device.is_ethernet);
    assert_false(device.has_carrier); /* its other end is down */
    assert_int_equal(device.mtu, 1400);
    assert_memory_equal(device.mac, wanted, 6);
    assert_string_equal(device.driver, "veth");
    assert_string_equal(device.bus, "");
    assert_true(device.queues >= 1);
    assert_non_null(strstr(device.features, "tx-checksum-ip-generic"));
    assert_true(by_device_mac("v0", mac));
    assert_memory_equal(mac, wanted, 6);
    assert_int_equal(system("ip link set v1 up"), 0);
    by_device_read("v0", &device);
    assert_true(device.has_carrier);
}

static void addresses_are_listed_as_far_as_they_fit(void **state)
{
    char text[64];

    (void)state;
    if (!apart)
        skip();
    by_device_addresses("lo", text, sizeof(text));
    assert_memory_equal(text, "127.0.0.1/8 192.0.2.1/25", 24);
    by_device_addresses("v0", text, sizeof(text));
    assert_string_equal(text, "198.51.100.9/30 fd00::7/64");
    by_device_addresses("v0", text, 20);
    assert_string_equal(text, "198.51.100.9/30");
    by_device_addresses("v0", text, 12);
    assert_string_equal(text, "fd00::7/64");
    by_device_addresses("v0", text, 4);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_absent_interface_has_no_facts),
        cmocka_unit_test(the_loopback_interface_is_no_ethernet),
        cmocka_unit_test(a_virtual_interface_has_its_address_and_carrier),
        cmocka_unit_test(addresses_are_listed_as_far_as_they_fit),
    };

    return cmocka_run_group_tests(tests, enter, NULL);
}

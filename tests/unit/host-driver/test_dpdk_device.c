/* Which device of DPDK serves each port of a host, and messages of the dataplane in a host's
 * terms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host-driver/plugin/dpdk/device.h"
#include "offload/base/errors.h"

static struct by_image_port ports[3] = {{.name = "eth0"}, {.name = "eth1"}, {.name = "eth10"}};
static struct by_dpdk_device device[3];
static char why[256];

static int read_list(const char *list, uint32_t count)
{
    memset(device, 0, sizeof(device));
    why[0] = 0;
    return by_dpdk_devices_read(list, ports, count, device, why, sizeof(why));
}

static void is_device(uint32_t index, uint8_t kind, const char *text)
{
    assert_int_equal(device[index].kind, kind);
    assert_string_equal(device[index].text, text);
}

static void without_a_list_each_port_is_its_interface(void **state)
{
    (void)state;
    assert_int_equal(read_list("", 3), 0);
    is_device(0, BY_PORT_IFACE, "eth0");
    is_device(1, BY_PORT_IFACE, "eth1");
    is_device(2, BY_PORT_IFACE, "eth10");
}

static void devices_follow_the_order_of_the_ports(void **state)
{
    (void)state;
    assert_int_equal(read_list("0000:01:00.0;net_af_packet0,iface=eth1,qpairs=1;lan0", 3), 0);
    is_device(0, BY_PORT_PCI, "0000:01:00.0");
    is_device(1, BY_PORT_VDEV, "net_af_packet0,iface=eth1,qpairs=1");
    is_device(2, BY_PORT_IFACE, "lan0");
    assert_int_equal(read_list("1a:00.1", 2), 0);
    is_device(0, BY_PORT_PCI, "0000:1a:00.1");
    is_device(1, BY_PORT_IFACE, "eth1");
}

static void a_device_may_name_its_port(void **state)
{
    (void)state;
    assert_int_equal(read_list("eth10=01:00.0;eth0=net_af_packet0,iface=x", 3), 0);
    is_device(0, BY_PORT_VDEV, "net_af_packet0,iface=x");
    is_device(1, BY_PORT_IFACE, "eth1");
    is_device(2, BY_PORT_PCI, "0000:01:00.0");
    /* the next in order follows the port that was named */
    assert_int_equal(read_list("eth0=a0;b0", 3), 0);
    is_device(1, BY_PORT_IFACE, "b0");
}

static void wrong_lists_are_refused_with_their_limit(void **state)
{
    static const struct {
        const char *list, *words;
    } cases[] = {
        {"a;b;c;d", "more devices than the table has ports: 3 (eth0, eth1, eth10)"},
        {"eth7=01:00.0", "'eth7=01:00.0' names no port of the table, which has eth0, eth1, eth10"},
        {"eth1=a;eth1=b", "port eth1 two devices"},
        {"eth1=a;eth0=b;c", "port eth1 two devices"},
        {"a;;b", "a device has 0 characters"},
        {"eth0=", "a device has 0 characters"},
        {"an-interface-with-a-name-that-no-kernel-would-accept", "at most 47 characters"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(read_list(cases[i].list, 3), BY_EINVAL);
        if (strstr(why, cases[i].words) == NULL)
            fail_msg("'%s' gives '%s'", cases[i].list, why);
    }
}

static void a_text_that_is_too_long_is_refused(void **state)
{
    char list[400];

    (void)state;
    memset(list, 'x', sizeof(list));
    memcpy(list, "net_", 4);
    list[250] = 0;
    assert_int_equal(read_list(list, 1), BY_EINVAL);
    list[249] = 0;
    assert_int_equal(read_list(list, 1), 0);
    assert_int_equal(strlen(device[0].text), 249);
}

static void messages_name_settings_in_place_of_options(void **state)
{
    char text[64];

    (void)state;
    by_dpdk_words("--iface eth0: use --driver af_packet, or run with --no-huge", text, sizeof(text));
    assert_string_equal(text, "eth0: use BANYAN_DPDK_DRIVER=af_packet, or run with BANYAN_DPDK");
    by_dpdk_words("--pci 0000:01:00.0: no such device", text, sizeof(text));
    assert_string_equal(text, "0000:01:00.0: no such device");
    by_dpdk_words("", text, sizeof(text));
    assert_string_equal(text, "");
    by_dpdk_words("--driver x", text, 5);
    assert_string_equal(text, "BANY");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_list_each_port_is_its_interface),
        cmocka_unit_test(devices_follow_the_order_of_the_ports),
        cmocka_unit_test(a_device_may_name_its_port),
        cmocka_unit_test(wrong_lists_are_refused_with_their_limit),
        cmocka_unit_test(a_text_that_is_too_long_is_refused),
        cmocka_unit_test(messages_name_settings_in_place_of_options),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

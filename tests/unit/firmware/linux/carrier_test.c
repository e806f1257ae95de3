/* The carriers of ports: those that are polled, and an interface of the kernel in a
 * network namespace of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "firmware/linux/carrier.h"

#define MS UINT64_C(1000000)

/* Ports with a state that the test sets; those from `kernel` on are the loopback interface. */
struct carrier_ports {
    unsigned kernel;
    bool down[3];
    unsigned asked;
};

static bool is_kernel(void *context, unsigned port)
{
    return port >= ((struct carrier_ports *)context)->kernel;
}

static bool loopback_is_down(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(ioctl(fd, SIOCGIFFLAGS, &request), 0);
    close(fd);
    return (request.ifr_flags & IFF_UP) == 0;
}

static bool is_down(void *context, unsigned port)
{
    struct carrier_ports *ports = context;

    ports->asked++;
    return is_kernel(context, port) ? loopback_is_down() : ports->down[port];
}

static struct by_carrier *open_ports(struct carrier_ports *ports, unsigned count)
{
    struct by_carrier *carrier = by_carrier_open(&(struct by_carrier_config){
        .port_count = count, .is_kernel = is_kernel, .is_down = is_down, .context = ports});

    assert_non_null(carrier);
    return carrier;
}

static void ports_without_messages_are_asked_at_intervals(void **state)
{
    struct carrier_ports ports = {.kernel = 3, .down = {false, true, false}};
    struct by_carrier *carrier = open_ports(&ports, 3);

    (void)state;
    assert_int_equal(by_carrier_fd(carrier), -1);
    assert_false(by_carrier_changed(carrier, 1000 * MS)); /* as they were when it began */
    ports.asked = 0;
    ports.down[2] = true;
    assert_false(by_carrier_changed(carrier, 1009 * MS));
    assert_int_equal(ports.asked, 0);
    assert_true(by_carrier_changed(carrier, 1010 * MS));
    assert_int_equal(ports.asked, 3);
    assert_false(by_carrier_changed(carrier, 1020 * MS));
    ports.down[1] = ports.down[2] = false;
    assert_true(by_carrier_changed(carrier, 1030 * MS));
    assert_false(by_carrier_changed(carrier, 1040 * MS));
    by_carrier_close(carrier);
}

static void set_loopback(bool up)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = up ? IFF_UP : 0};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &request), 0);
    close(fd);
}

static void an_interface_reports_its_carrier(void **state)
{
    struct carrier_ports ports = {.kernel = 0};
    struct by_carrier *carrier;
    struct pollfd news = {.events = POLLIN};

    (void)state;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 && unshare(CLONE_NEWNET) != 0)
        skip(); /* namespaces are not permitted here */
    carrier = open_ports(&ports, 1);
    news.fd = by_carrier_fd(carrier);
    assert_true(news.fd >= 0);
    assert_int_equal(poll(&news, 1, 0), 0);
    for (unsigned i = 0; i < 3; i++) {
        set_loopback(i % 2 == 0);
        assert_int_equal(poll(&news, 1, 2000), 1);
        assert_true(by_carrier_changed(carrier, 5 * MS)); /* the interval does not matter */
        assert_int_equal(poll(&news, 1, 0), 0);
        ports.asked = 0;
        assert_false(by_carrier_changed(carrier, 1000 * MS));
        assert_int_equal(ports.asked, 0);
    }
    set_loopback(false); /* both changes before the switch looks */
    set_loopback(true);
    assert_false(by_carrier_changed(carrier, 5 * MS));
    by_carrier_close(carrier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_without_messages_are_asked_at_intervals),
        cmocka_unit_test(an_interface_reports_its_carrier),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

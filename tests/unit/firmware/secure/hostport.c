/* Hosts and ports as text, and which machines can reach an address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>

#include "firmware/secure/hostport.h"
#include "offload/base/errors.h"

static void host_and_port_are_parted_at_the_last_colon(void **state)
{
    static const struct {
        const char *text, *host, *port;
    } rows[] = {{"127.0.0.1:46251", "127.0.0.1", "46251"},
                {"leaf0.lab:7", "leaf0.lab", "7"},
                {"[::1]:46251", "::1", "46251"},
                {"::1:46251", "::1", "46251"},
                {":80", "", "80"},
                {"[fe80::1%eth0]:http", "fe80::1%eth0", "http"},
                {"[]:80", "[]", "80"},
                {"[a:80", "[a", "80"}};
    struct by_hostport hostport;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(by_hostport_read(rows[i].text, strlen(rows[i].text), &hostport), 0);
        assert_string_equal(hostport.host, rows[i].host);
        assert_string_equal(hostport.port, rows[i].port);
    }
}

static void no_more_is_read_than_there_is(void **state)
{
    struct by_hostport hostport;

    (void)state;
    assert_int_equal(by_hostport_read("leaf0:12#key", 8, &hostport), 0);
    assert_string_equal(hostport.port, "12");
    assert_int_equal(by_hostport_read("leaf0:12", 5, &hostport), BY_EINVAL);
    assert_int_equal(by_hostport_read("leaf0:", 6, &hostport), BY_EINVAL);
    assert_int_equal(by_hostport_read("", 0, &hostport), BY_EINVAL);
    assert_int_equal(by_hostport_read("leaf0:65535", 11, &hostport), 0);
    assert_int_equal(by_hostport_read("leaf0:65536", 11, &hostport), BY_EINVAL);
    assert_int_equal(by_hostport_read("leaf0:4294967297", 16, &hostport), BY_EINVAL);
}

static void what_is_too_long_is_refused(void **state)
{
    struct by_hostport hostport;
    char text[400];

    (void)state;
    for (size_t host = 250; host < 260; host++) {
        int length = snprintf(text, sizeof(text), "%0*d:1", (int)host, 0);

        assert_int_equal(by_hostport_read(text, (size_t)length, &hostport),
                         host < sizeof(hostport.host) ? 0 : BY_EINVAL);
        length = snprintf(text, sizeof(text), "[%0*d]:1", (int)host, 0);
        assert_int_equal(by_hostport_read(text, (size_t)length, &hostport),
                         host < sizeof(hostport.host) ? 0 : BY_EINVAL);
    }
    assert_int_equal(by_hostport_read("a:abcdefghijklmno", 17, &hostport), 0);
    assert_int_equal(by_hostport_read("a:abcdefghijklmnop", 18, &hostport), BY_EINVAL);
}

static void loopback_is_what_only_this_machine_reaches(void **state)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};

    (void)state;
    inet_pton(AF_INET, "127.9.8.7", &four.sin_addr);
    assert_true(by_hostport_is_loopback((struct sockaddr *)&four));
    inet_pton(AF_INET, "128.0.0.1", &four.sin_addr);
    assert_false(by_hostport_is_loopback((struct sockaddr *)&four));
    inet_pton(AF_INET6, "::1", &six.sin6_addr);
    assert_true(by_hostport_is_loopback((struct sockaddr *)&six));
    inet_pton(AF_INET6, "::2", &six.sin6_addr);
    assert_false(by_hostport_is_loopback((struct sockaddr *)&six));
    four.sin_family = AF_UNIX;
    assert_false(by_hostport_is_loopback((struct sockaddr *)&four));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_and_port_are_parted_at_the_last_colon),
        cmocka_unit_test(no_more_is_read_than_there_is),
        cmocka_unit_test(what_is_too_long_is_refused),
        cmocka_unit_test(loopback_is_what_only_this_machine_reaches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

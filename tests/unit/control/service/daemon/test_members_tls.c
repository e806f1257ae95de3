/*
 * Hosts that join over TLS, with libbanyan's own line at their end. A host's identity is the name
 * in its certificate, and clients that are not hosts of the fabric cannot send to the controller.
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-driver/error.h"
#include "host-driver/line.h"
#include "tests/unit/control/service/daemon/loop.h"
#include "tests/unit/firmware/secure/keys.h"

/* Timeout of every wait (ns); a loaded machine is slow. */
#define PATIENCE_NS UINT64_C(20000000000)

static char failure[400]; /* in place of libbanyan's error text */
static char address[64];

int by_fail(int status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(failure, sizeof(failure), format, arguments);
    va_end(arguments);
    return status;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Returns a port of loopback that is unused now. */
static unsigned free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
    close(fd);
    return ntohs(at.sin_port);
}

static int make_keys(void **state)
{
    (void)state;
    keys_open();
    keys_issue("a", "operator", BY_KEYS_CONTROLLER, 30);
    keys_issue("a", "h0", BY_KEYS_HOST, 30);
    keys_issue("a", "h1", BY_KEYS_HOST, 30);
    keys_issue("a", "late", BY_KEYS_HOST, 0);
    keys_issue("a", "leaf0", BY_KEYS_SWITCH, 30);
    keys_issue("b", "h0", BY_KEYS_HOST, 30);
    return 0;
}

static int remove_keys(void **state)
{
    (void)state;
    keys_close();
    return 0;
}

static int set_up(void **state)
{
    char keys[KEYS_PATH];

    (void)state;
    snprintf(address, sizeof(address), "tls:127.0.0.1:%u", free_port());
    return members_open(&(struct by_daemon_options){
        .member_count = 1, .members = {address}, .access.keys = keys_path("a/operator", keys)});
}

static int tear_down(void **state)
{
    (void)state;
    members_close();
    return 0;
}

/* Joins with these keys as the host of that name, until the controller sends a text or the
 * connection has ended. `text` is the controller's text, or the reason why the line is down. */
static void join(const char *keys, const char *name, char text[400])
{
    struct by_member_frame hello = {.type = BY_MEMBER_HELLO,
                                    .rank = 0xffff,
                                    .number = 7,
                                    .data = (const uint8_t *)name,
                                    .bytes = (uint32_t)strlen(name)};
    uint64_t until = now_ns() + PATIENCE_NS;
    struct by_member_frame frame;
    struct by_host_line line;
    char path[KEYS_PATH];

    text[0] = 0;
    if (by_host_line_open(&line, address, keys_path(keys, path)) != 0)
        fail_msg("%s", failure);
    while (text[0] == 0 && now_ns() < until) {
        uint64_t before = now_ns();

        if (by_host_line_step(&line, before) == BY_LINE_UP)
            by_host_line_put(&line, &hello, before);
        assert_true(now_ns() - before < UINT64_C(2000000000)); /* a step does not block */
        if (by_host_line_get(&line, &frame, before) == 0)
            snprintf(text, 400, "%.*s", (int)frame.bytes, (const char *)frame.data);
        else if (line.why[0] != 0)
            snprintf(text, 400, "%s", line.why);
        members_turn();
        if (text[0] == 0 && line.up && members_daemon()->now_ms < 1000 + BY_MEMBERS_HELLO_MS)
            members_daemon()->now_ms += 100; /* until it need not wait for its job any longer */
    }
    by_host_line_close(&line);
    members_turn();
}

static void a_host_is_who_its_certificate_names(void **state)
{
    char text[400];

    (void)state;
    join("a/h1", "h1", text);
    if (strstr(text, "no job has host h1") == NULL) /* authenticated, but there is no such job */
        fail_msg("%s", text);
}

static void a_host_that_says_another_ones_name_is_refused(void **state)
{
    char text[400];

    (void)state;
    join("a/h1", "h0", text);
    if (strstr(text, "it claims to be h0, but its certificate names h1") == NULL)
        fail_msg("%s", text);
}

static void who_is_no_host_of_the_authority_is_refused_and_reads_why(void **state)
{
    static const struct {
        const char *keys, *words;
    } cases[] = {{"b/h0", "keys of the same authority"},
                 {"a/leaf0", "refused our certificate"},
                 {"a/operator", "refused our certificate"},
                 {"a/late", "alert certificate expired"}};
    char text[400];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        join(cases[i].keys, "h0", text);
        if (strstr(text, cases[i].words) == NULL)
            fail_msg("%s: %s", cases[i].keys, text);
    }
}

static void a_line_over_tls_without_keys_says_what_to_do(void **state)
{
    struct by_host_line line;

    (void)state;
    assert_int_equal(by_host_line_open(&line, "tls:127.0.0.1:1", ""), BY_EINVAL);
    assert_non_null(strstr(failure, "BANYAN_KEYS"));
    by_host_line_close(&line);
    assert_int_equal(by_host_line_open(&line, "tls:127.0.0.1:1", "/nonexistent"), BY_ENOENT);
    assert_non_null(strstr(failure, "/nonexistent/ca.pem"));
    by_host_line_close(&line);
}

/* A server that accepts but sends nothing: calls continue, and the line is given up after a
 * while. */
static void a_silent_controller_blocks_nobody(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char where[64], path[KEYS_PATH];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint64_t began = now_ns(), at_ns = began;
    struct by_host_line line;
    unsigned port = free_port();

    (void)state;
    at.sin_port = htons((uint16_t)port);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 4), 0);
    snprintf(where, sizeof(where), "tls:127.0.0.1:%u", port);
    assert_int_equal(by_host_line_open(&line, where, keys_path("a/h0", path)), 0);
    for (unsigned i = 0; i < 200 && line.why[0] == 0; i++) {
        assert_int_equal(by_host_line_step(&line, at_ns), BY_LINE_NOTHING);
        at_ns += UINT64_C(50000000);
        usleep(100);
    }
    assert_non_null(strstr(line.why, "does not authenticate"));
    assert_true(at_ns - began > UINT64_C(5000000000) && at_ns - began < UINT64_C(6000000000));
    assert_true(now_ns() - began < UINT64_C(4000000000)); /* in almost no real time */
    by_host_line_close(&line);
    close(fd);
}

static void plain_tcp_beyond_loopback_is_refused_for_keyed_jobs(void **state)
{
    struct by_daemon_options options = {.member_count = 1, .members = {"tcp:0.0.0.0:0"}, .lower.cover = 1};

    (void)state;
    assert_int_equal(members_open(&options), BY_EINVAL);
    members_close();
    options.access.plain_keys = 1;
    assert_int_equal(members_open(&options), 0);
    members_close();
    options.access.plain_keys = 0;
    options.members[0] = "tcp:127.0.0.1:0";
    assert_int_equal(members_open(&options), 0);
    members_close();
    options.members[0] = "tls:127.0.0.1:0"; /* without keys */
    assert_int_equal(members_open(&options), BY_EINVAL);
    members_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_host_is_who_its_certificate_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_host_that_says_another_ones_name_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_is_no_host_of_the_authority_is_refused_and_reads_why, set_up,
                                        tear_down),
        cmocka_unit_test(a_line_over_tls_without_keys_says_what_to_do),
        cmocka_unit_test(a_silent_controller_blocks_nobody),
        cmocka_unit_test(plain_tcp_beyond_loopback_is_refused_for_keyed_jobs),
    };

    return cmocka_run_group_tests(tests, make_keys, remove_keys);
}

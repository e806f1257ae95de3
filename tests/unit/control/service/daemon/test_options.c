/* The command line of banyand: the values without options, where each option goes, and what is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/service/daemon/daemon.h"
#include "control/service/daemon/options.h"
#include "offload/wire/seal.h"

enum { ARGUMENTS_MAX = 16 };

static struct by_daemon_options options;
static char said[4096]; /* on stderr by the last parse */

/* Parses a command line of words with spaces between. Returns what by_daemon_options_parse does. */
static int parse(const char *line)
{
    static char words[1024];
    char *argv[ARGUMENTS_MAX + 1] = {NULL}, *rest = words;
    int argc = 0, status, saved = dup(STDERR_FILENO);
    FILE *out = tmpfile();
    size_t bytes;

    assert_non_null(out);
    snprintf(words, sizeof(words), "%s", line);
    while ((argv[argc] = strsep(&rest, " ")) != NULL && argc < ARGUMENTS_MAX)
        argc++;
    fflush(stderr);
    dup2(fileno(out), STDERR_FILENO);
    memset(&options, 0xa5, sizeof(options)); /* nothing may be left as it was */
    status = by_daemon_options_parse(&options, argc, argv);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(out);
    bytes = fread(said, 1, sizeof(said) - 1, out);
    said[bytes] = 0;
    fclose(out);
    return status;
}

static void accepts(const char *line)
{
    if (parse(line) != -1)
        fail_msg("%s: %s", line, said);
    assert_string_equal(said, "");
}

/* Refused as bad usage, and stderr has `part`. */
static void refuses(const char *line, const char *part)
{
    assert_int_equal(parse(line), 2);
    if (strncmp(said, "banyand: ", 9) != 0 || strstr(said, part) == NULL)
        fail_msg("%s: \"%s\" lacks \"%s\"", line, said, part);
}

static void without_options_each_value_is_the_documented_one(void **state)
{
    (void)state;
    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
    accepts("banyand fabric.json --sockets /run/x");
    assert_string_equal(options.topology, "fabric.json");
    assert_string_equal(options.sockets, "/run/x");
    assert_int_equal(options.heartbeat_ms, 100);
    assert_int_equal(options.quiet_ms, 2000);
    assert_int_equal(options.trust_ms, 10000);
    assert_int_equal(options.communicators, 64);
    assert_int_equal(options.plan_limit_s, 300);
    assert_int_equal(options.access.timeout_ms, 2000);
    assert_int_equal(options.renew_after, 2147483648u);
    assert_true(options.http);
    assert_int_equal(options.http_port, 46249);
    assert_false(options.http_open);
    assert_false(options.takeover);
    assert_false(options.lower.det);
    assert_false(options.access.plain_keys);
    assert_int_equal(options.lower.mtu, 0);
    assert_int_equal(options.lower.cover, 0);
    assert_int_equal(options.lose, 0);
    assert_int_equal(options.to_count, 0);
    assert_int_equal(options.job_count, 0);
    assert_int_equal(options.member_count, 0);
    assert_null(options.site);
    assert_null(options.state);
    assert_null(options.store);
    assert_null(options.store_keys);
    assert_ptr_equal(options.socket, options.socket_default);
}

static void each_option_sets_its_value(void **state)
{
    (void)state;
    accepts("banyand f --to s0=unix:/a --to s1=tcp:h:1 --job 1=all --job 2=barrier --job 3=all");
    assert_int_equal(options.to_count, 2);
    assert_string_equal(options.to[0], "s0=unix:/a");
    assert_string_equal(options.to[1], "s1=tcp:h:1");
    assert_int_equal(options.job_count, 3);
    assert_string_equal(options.jobs[2], "3=all");
    accepts(
        "banyand f --site s.json --members unix:/m --members tcp:h:2 --members tls:h:3 --communicators 0");
    assert_string_equal(options.site, "s.json");
    assert_int_equal(options.member_count, 3);
    assert_string_equal(options.members[2], "tls:h:3");
    assert_int_equal(options.communicators, 0);
    accepts(
        "banyand f --sockets d --quiet 150 --trust 160 --plan-limit 7 --lose 3 --heartbeat 20 --timeout 4");
    assert_int_equal(options.quiet_ms, 150);
    assert_int_equal(options.trust_ms, 160);
    assert_int_equal(options.plan_limit_s, 7);
    assert_int_equal(options.lose, 3);
    assert_int_equal(options.heartbeat_ms, 20);
    assert_int_equal(options.access.timeout_ms, 4000);
    accepts("banyand f --sockets d --mtu 9000 --det --state /s --takeover --http-open --plain-keys");
    assert_int_equal(options.lower.mtu, 9000);
    assert_true(options.lower.det);
    assert_string_equal(options.state, "/s");
    assert_true(options.takeover);
    assert_true(options.http_open);
    assert_true(options.access.plain_keys);
    accepts("banyand f --sockets d --store etcd:http://h:1 --store-keys /k --renew-after 5");
    assert_string_equal(options.store, "etcd:http://h:1");
    assert_string_equal(options.store_keys, "/k");
    assert_int_equal(options.renew_after, 5);
}

static void the_http_port_and_the_socket_may_be_off(void **state)
{
    (void)state;
    accepts("banyand f --sockets d --http 0");
    assert_true(options.http);
    assert_int_equal(options.http_port, 0);
    accepts("banyand f --sockets d --http 65535");
    assert_int_equal(options.http_port, 65535);
    accepts("banyand f --sockets d --http off");
    assert_false(options.http);
    refuses("banyand f --sockets d --http 65536", "65535");
    refuses("banyand f --sockets d --http of", "--http");
    accepts("banyand f --sockets d --socket off");
    assert_null(options.socket);
    accepts("banyand f --sockets d --socket /other");
    assert_string_equal(options.socket, "/other");
}

static void tags_cover_the_header_or_the_payload(void **state)
{
    (void)state;
    accepts("banyand f --sockets d --keyed");
    assert_int_equal(options.lower.cover, BY_COVER_HEADER);
    accepts("banyand f --sockets d --keyed=header");
    assert_int_equal(options.lower.cover, BY_COVER_HEADER);
    accepts("banyand f --sockets d --keyed=payload");
    assert_int_equal(options.lower.cover, BY_COVER_PAYLOAD);
    refuses("banyand f --sockets d --keyed=all", "--keyed");
}

static void addresses_without_a_form_are_refused(void **state)
{
    (void)state;
    refuses("banyand f --to s0", "write NAME=ADDR, such as leaf0=unix:/run/banyan/leaf0.sock");
    refuses("banyand f --to =unix:/a", "write NAME=ADDR");
    refuses("banyand f --to s0=udp:h:1", "udp:h:1");
    refuses("banyand f --sockets d --members udp:h:1",
            "it must be unix:PATH, tls:HOST:PORT or tcp:HOST:PORT");
    refuses("banyand f --sockets d --members unix", "it must be unix:PATH");
    refuses("banyand f --sockets d --members xunix:/m", "it must be unix:PATH");
}

static void a_folder_has_at_most_250_characters(void **state)
{
    char line[400], name[300];

    (void)state;
    memset(name, 's', sizeof(name));
    name[250] = 0;
    snprintf(line, sizeof(line), "banyand f --sockets d --state %s", name);
    accepts(line);
    assert_string_equal(options.state, name);
    name[250] = 's';
    name[251] = 0;
    snprintf(line, sizeof(line), "banyand f --sockets d --state %s", name);
    refuses(line, "at most 250 characters");
}

static void switches_need_addresses_and_one_store_is_enough(void **state)
{
    (void)state;
    refuses("banyand f",
            "banyand: f: no addresses of switches: give --to for each, --sockets DIR, or --site FILE");
    accepts("banyand f --to s0=unix:/a");
    accepts("banyand f --site s");
    refuses("banyand f --sockets d --state /s --store etcd:http://h:1",
            "--state and --store exclude each other");
    refuses("banyand f --sockets d --store etcd:http://h:1 --store etcd:http://h:2", "--store");
    refuses("banyand --sockets d", "TOPOLOGY");
    refuses("banyand f g --sockets d", "g");
}

static void numbers_have_limits(void **state)
{
    static const struct {
        const char *option;
        unsigned least, most;
    } rows[] = {{"communicators", 0, BY_DAEMON_JOBS_MAX - 1},
                {"quiet", 100, 3600000},
                {"trust", 100, 3600000},
                {"plan-limit", 1, 86400},
                {"lose", 0, 500},
                {"heartbeat", 10, 1000},
                {"timeout", 1, 60},
                {"mtu", 576, 9216},
                {"renew-after", 1, UINT32_MAX}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char line[200], limit[40];

        snprintf(line, sizeof(line), "banyand f --sockets d --%s %u", rows[i].option, rows[i].least);
        accepts(line);
        snprintf(line, sizeof(line), "banyand f --sockets d --%s %u", rows[i].option, rows[i].most);
        accepts(line);
        snprintf(limit, sizeof(limit), "%u", rows[i].most);
        snprintf(line, sizeof(line), "banyand f --sockets d --%s %llu", rows[i].option, rows[i].most + 1ull);
        refuses(line, limit);
        if (rows[i].least == 0)
            continue;
        snprintf(limit, sizeof(limit), "%u", rows[i].least);
        snprintf(line, sizeof(line), "banyand f --sockets d --%s %u", rows[i].option, rows[i].least - 1);
        refuses(line, limit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_options_each_value_is_the_documented_one),
        cmocka_unit_test(each_option_sets_its_value),
        cmocka_unit_test(the_http_port_and_the_socket_may_be_off),
        cmocka_unit_test(tags_cover_the_header_or_the_payload),
        cmocka_unit_test(addresses_without_a_form_are_refused),
        cmocka_unit_test(a_folder_has_at_most_250_characters),
        cmocka_unit_test(switches_need_addresses_and_one_store_is_enough),
        cmocka_unit_test(numbers_have_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

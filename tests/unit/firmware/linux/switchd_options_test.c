/* The command line and the boards of banyan-switchd: what it accepts and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "firmware/linux/board.h"
#include "firmware/linux/options.h"
#include "offload/base/errors.h"

#define ARGUMENTS_MAX 32

/* Parses a line of words, without its messages in the test's output. */
static int parse(struct by_switchd_options *options, const char *line)
{
    static char words[1024];
    static char *arguments[ARGUMENTS_MAX];
    int count = 0, saved = dup(STDERR_FILENO), status;

    snprintf(words, sizeof words, "banyan-switchd %s", line);
    for (char *word = strtok(words, " "); word && count < ARGUMENTS_MAX - 1; word = strtok(NULL, " "))
        arguments[count++] = word;
    arguments[count] = NULL;
    assert_non_null(freopen("/dev/null", "w", stderr));
    status = by_switchd_options_parse(options, count, arguments);
    dup2(saved, STDERR_FILENO);
    close(saved);
    return status;
}

static void ports_keep_the_order_given(void **state)
{
    struct by_switchd_options options;

    (void)state;
    assert_int_equal(
        parse(&options,
              "--name s --iface p0 --vdev net_ring0 --pci 0000:01:00.0 --iface p1 --control unix:/x"),
        -1);
    assert_int_equal(options.port_count, 4);
    assert_string_equal(options.ports[0].text, "p0");
    assert_int_equal(options.ports[1].kind, BY_PORT_VDEV);
    assert_int_equal(options.ports[2].kind, BY_PORT_PCI);
    assert_string_equal(options.ports[3].text, "p1");
    assert_int_equal(options.driver, BY_DRIVER_NONE); /* that of the board */
    assert_false(by_fault_enabled(&options.fault));
}

static void what_follows_two_dashes_is_for_eal(void **state)
{
    struct by_switchd_options options;

    (void)state;
    assert_int_equal(parse(&options, "--name s --iface p0 --control unix:/x -- -m 64 --no-pci"), -1);
    assert_int_equal(options.eal_count, 3);
    assert_string_equal(options.eal[0], "-m");
    assert_int_equal(parse(&options, "--name s --iface p0 --control unix:/x"), -1);
    assert_int_equal(options.eal_count, 0);
    assert_int_equal(parse(&options, "--name s --iface p0 --control unix:/x stray"), 2);
}

static void probabilities_become_parts_of_2_to_the_32(void **state)
{
    static const struct {
        const char *text;
        uint32_t parts;
    } good[] = {{"0", 0},
                {"0.0", 0},
                {"0.5", 0x80000000u},
                {".25", 0x40000000u},
                {"1", UINT32_MAX},
                {"1.000", UINT32_MAX},
                {"0.01", 42949672u},
                {"0.000000001", 4},
                {"0.0000000001", 0},
                {"1e-3", 4294967},
                {"25e-2", 1u << 30}};
    static const char *const bad[] = {"1.1", "2",   "-0.1", "",          ".",   "0.1.2",
                                      "0,5", "1e-", "x",    "1.0000001", "nan", "0.5 "};
    struct by_switchd_options options;
    char line[128];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(line, sizeof line, "--name s --iface p0 --control unix:/x --loss %s --seed 5", good[i].text);
        assert_int_equal(parse(&options, line), -1);
        assert_int_equal(options.fault.loss, good[i].parts);
        assert_int_equal(options.fault.prng.state, 5);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (strchr(bad[i], ' ') || bad[i][0] == 0)
            continue; /* words of a line contain no blanks */
        snprintf(line, sizeof line, "--name s --iface p0 --control unix:/x --dup %s", bad[i]);
        assert_int_equal(parse(&options, line), 2);
    }
}

static void bad_lines_are_refused_with_2(void **state)
{
    static const char *const bad[] = {
        "",
        "--name s",
        "--iface p0 --control unix:/x",
        "--name s --iface p0",
        "--name a/b --iface p0 --control unix:/x",
        "--name s --iface p0 --control x",
        "--name s --iface p0 --control unix:/x --driver best",
        "--name s --iface p0 --control unix:/x --slots 0",
        "--name s --iface p0 --control unix:/x --slots 1k",
        "--name s --iface p0 --control unix:/x --slots -1",
        "--name s --iface p0 --control unix:/x --payload-max 9000",
        "--name s --iface p0 --control unix:/x --unknown",
        "--name s --iface p0 --control unix:/1 --control unix:/2 --control unix:/3 --control unix:/4 "
        "--control unix:/5",
        "--name s --iface",
    };
    struct by_switchd_options options;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(parse(&options, bad[i]), 2);
}

static void more_ports_than_the_core_knows_are_refused(void **state)
{
    struct by_switchd_options options;
    char *arguments[2 * BY_PORTS_MAX + 8];
    int count = 0;

    (void)state;
    arguments[count++] = (char *)"banyan-switchd";
    for (unsigned i = 0; i <= BY_PORTS_MAX; i++) {
        arguments[count++] = (char *)"--iface";
        arguments[count++] = (char *)"p";
    }
    arguments[count] = NULL;
    assert_int_equal(by_switchd_options_parse(&options, count, arguments), 2);
}

static void the_boards_of_this_tree_are_built_in(void **state)
{
    struct by_board board;

    (void)state;
    assert_int_equal(by_board_read("x86-dpdk", &board), 0);
    assert_string_equal(board.name, "x86-dpdk");
    assert_int_equal(by_board_read("lab-veth", &board), 0);
    assert_in_range(board.slots, 256, 1 << 20);
    assert_int_equal(by_board_read(by_board_default(), &board), 0);
    assert_int_equal(by_board_read("toaster", &board), BY_ENOENT);
}

static void a_board_file_is_checked_field_by_field(void **state)
{
    static const struct {
        const char *json;
        int result;
    } cases[] = {
        {"{\"name\":\"b\",\"ports\":4,\"slots\":8,\"payload_max\":64,\"entries\":1,\"relays\":1,\"image_"
         "bytes\":4096}",
         0},
        {"{\"name\":\"b\",\"ports\":0,\"slots\":8,\"payload_max\":64,\"entries\":1,\"relays\":1,\"image_"
         "bytes\":4096}",
         BY_ELIMIT},
        {"{\"name\":\"b\",\"ports\":65,\"slots\":8,\"payload_max\":64,\"entries\":1,\"relays\":1,\"image_"
         "bytes\":4096}",
         BY_ELIMIT},
        {"{\"name\":\"b\",\"ports\":4,\"slots\":8,\"payload_max\":8193,\"entries\":1,\"relays\":1,\"image_"
         "bytes\":4096}",
         BY_ELIMIT},
        {"{\"name\":\"b\",\"ports\":\"4\",\"slots\":8,\"payload_max\":64,\"entries\":1,\"relays\":1,\"image_"
         "bytes\":4096}",
         BY_EFORMAT},
        {"{\"ports\":4}", BY_EFORMAT},
        {"{\"name\":\"b\"", BY_EFORMAT},
        {"[]", BY_EFORMAT},
        {"", BY_EFORMAT},
    };
    char path[] = "/tmp/banyan-board-XXXXXX";
    struct by_board board;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, cases[i].json, strlen(cases[i].json), 0), strlen(cases[i].json));
        assert_int_equal(by_board_read(path, &board), cases[i].result);
    }
    close(fd);
    unlink(path);
    assert_int_equal(by_board_read(path, &board), BY_ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_keep_the_order_given),
        cmocka_unit_test(what_follows_two_dashes_is_for_eal),
        cmocka_unit_test(probabilities_become_parts_of_2_to_the_32),
        cmocka_unit_test(bad_lines_are_refused_with_2),
        cmocka_unit_test(more_ports_than_the_core_knows_are_refused),
        cmocka_unit_test(the_boards_of_this_tree_are_built_in),
        cmocka_unit_test(a_board_file_is_checked_field_by_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

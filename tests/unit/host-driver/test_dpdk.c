/*
 * The transport dpdk without hugepages and cards: its plugin is found, refused where it does not
 * belong to this library, and reports what it cannot open. Each case has a process of its own,
 * because a plugin stays loaded. tests/lab/lab-dpdk.sh moves packets.
 */
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/host-driver/rig.h"

static char fake[512];
static char folder[64];

/* Creates a communicator with these settings in a child, which must fail with `status` and
 * `words`. */
static void fails(const char *const settings[][2], banyan_status_t status, const char *words)
{
    pid_t pid = fork();
    int code;

    assert_true(pid >= 0);
    if (pid == 0) {
        struct banyan_context *context = NULL;
        struct banyan_config config;
        struct banyan_comm *comm = NULL;
        char table[96];
        banyan_status_t got;

        for (int i = 0; settings[i][0] != NULL; i++)
            setenv(settings[i][0], settings[i][1], 1);
        snprintf(table, sizeof(table), "%s/h0.table", folder);
        banyan_config_init(&config);
        config.table = table;
        config.transport = "dpdk";
        got = banyan_init(&config, &context);
        if (got == BANYAN_OK)
            got = banyan_comm_create(context, 0, &comm);
        if (got != status || strstr(banyan_last_error(), words) == NULL) {
            fprintf(stderr, "status %d: %s\n", got, banyan_last_error());
            _exit(1);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_int_equal(code, 0);
}

static void a_missing_plugin_is_named_with_its_place(void **state)
{
    static const char *const settings[][2] = {{"BANYAN_DPDK_LIBRARY", "/nowhere/plugin.so"}, {NULL, NULL}};

    (void)state;
    fails(settings, BANYAN_ENOENT, "transport dpdk: /nowhere/plugin.so: cannot open shared object file");
    fails(settings, BANYAN_ENOENT,
          "it requires DPDK (Debian's package dpdk), and libbanyan-dpdk.so.0 beside");
}

static void a_library_that_is_no_plugin_is_refused(void **state)
{
    static const char *const settings[][2] = {{"BANYAN_DPDK_LIBRARY", "libm.so.6"}, {NULL, NULL}};

    (void)state;
    fails(settings, BANYAN_EVERSION, "libm.so.6 is not banyan's plugin for DPDK");
}

static void a_plugin_of_another_version_is_refused(void **state)
{
    const char *const settings[][2] = {{"BANYAN_DPDK_LIBRARY", fake}, {NULL, NULL}};

    (void)state;
    fails(settings, BANYAN_EVERSION, "is of version 99.7 and does not belong to this libbanyan");
}

static void devices_that_do_not_exist_are_reported(void **state)
{
    static const struct {
        const char *ports, *driver;
        banyan_status_t status;
        const char *words;
    } cases[] = {
        {"nowhere0", "af_packet", BANYAN_ENOENT,
         "transport dpdk: nowhere0: no such interface; available: lo"},
        {"ffff:ff:1f.7", "af_packet", BANYAN_ENOENT, "ffff:ff:1f.7: no such device; network devices: "},
        {"a0;b0", "af_packet", BANYAN_EINVAL, "more devices than the table has ports: 1 ("},
        {"lo", "warp", BANYAN_EINVAL, "BANYAN_DPDK_DRIVER warp: no such driver; available: auto ring"},
        {"lo", "xdp", BANYAN_EUNSUPPORTED, "is a driver of switches"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const settings[][2] = {{"BANYAN_DPDK_PORTS", cases[i].ports},
                                           {"BANYAN_DPDK_DRIVER", cases[i].driver},
                                           {"BANYAN_DPDK_OPTIONS", "--no-huge"},
                                           {NULL, NULL}};

        fails(settings, cases[i].status, cases[i].words);
    }
}

static void a_virtual_device_that_does_not_exist_is_reported(void **state)
{
    static const char *const settings[][2] = {
        {"BANYAN_DPDK_PORTS", "net_nothing0"}, {"BANYAN_DPDK_OPTIONS", "--no-huge -m 64"}, {NULL, NULL}};

    (void)state;
    fails(settings, BANYAN_ENOENT, "net_nothing0: no such virtual device, or it refuses its arguments");
}

static void options_that_dpdk_refuses_are_reported(void **state)
{
    static const char *const settings[][2] = {{"BANYAN_DPDK_PORTS", "net_null0"},
                                              {"BANYAN_DPDK_OPTIONS", "--no-huge --such-is-no-option"},
                                              {NULL, NULL}};

    (void)state;
    fails(settings, BANYAN_EINVAL, "cannot start DPDK: ");
}

static void a_payload_above_the_mtu_is_refused(void **state)
{
    static const char *const settings[][2] = {
        {"BANYAN_DPDK_PORTS", "net_ring0"}, {"BANYAN_DPDK_OPTIONS", "--no-huge -m 64"}, {NULL, NULL}};
    static struct fabric fabric;
    struct fabric_tree *tree;
    char usual[64];
    int job;

    (void)state;
    memset(&fabric, 0, sizeof(fabric));
    fabric_host(&fabric, "h0");
    fabric_host(&fabric, "h1");
    fabric_cable(&fabric, 0, 1, 1000, 1000);
    job = fabric_job_add(&fabric, 1, 1);
    tree = fabric_tree_add(&fabric, job, 0, 1, NULL);
    tree->payload_max = 8192;
    memcpy(usual, folder, sizeof(usual));
    rig_write(&fabric, folder);
    fails(settings, BANYAN_ELIMIT, "net_ring0 has an MTU of 1500; chunks of 8192 bytes need 8260");
    rig_remove(folder);
    memcpy(folder, usual, sizeof(usual));
}

/* A port without a descriptor is polled between naps; nothing answers, and the operation ends. */
static void a_polled_device_opens_and_an_operation_times_out(void **state)
{
    pid_t pid = fork();
    char files[64];
    int code;

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        struct banyan_context *context = NULL;
        struct banyan_config config;
        struct banyan_comm *comm[2] = {NULL, NULL};
        char table[96];
        bool right;

        setenv("BANYAN_DPDK_PORTS", "net_ring0", 1);
        setenv("BANYAN_DPDK_OPTIONS", "--no-huge -m 64", 1);
        snprintf(table, sizeof(table), "%s/h0.table", folder);
        banyan_config_init(&config);
        config.table = table;
        config.transport = "dpdk";
        config.timeout_ms = 300;
        right = banyan_init(&config, &context) == BANYAN_OK &&
                banyan_comm_create(context, 0, &comm[0]) == BANYAN_OK &&
                strcmp(banyan_comm_transport(comm[0]), "dpdk") == 0 &&
                banyan_barrier(comm[0]) == BANYAN_ETIMEDOUT;
        /* the job runs once at a time, and again after it */
        right = right && banyan_comm_create(context, 0, &comm[1]) == BANYAN_EBUSY &&
                strstr(banyan_last_error(), "in use by another communicator of this process") != NULL;
        right = right && banyan_comm_destroy(comm[0]) == BANYAN_OK &&
                banyan_comm_create(context, 0, &comm[1]) == BANYAN_OK &&
                banyan_comm_destroy(comm[1]) == BANYAN_OK && banyan_finalize(context) == BANYAN_OK;
        if (!right)
            fprintf(stderr, "%s\n", banyan_last_error());
        exit(right ? 0 : 1); /* not _exit: the plugin removes DPDK's files */
    }
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_int_equal(code, 0);
    snprintf(files, sizeof(files), "/var/run/dpdk/banyan.h0.%d", (int)pid);
    assert_int_not_equal(access(files, F_OK), 0);
}

static int write_tables(void **state)
{
    (void)state;
    rig_write_loopback(2, folder);
    return 0;
}

static int remove_tables(void **state)
{
    (void)state;
    rig_remove(folder);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_plugin_is_named_with_its_place),
        cmocka_unit_test(a_library_that_is_no_plugin_is_refused),
        cmocka_unit_test(a_plugin_of_another_version_is_refused),
        cmocka_unit_test(devices_that_do_not_exist_are_reported),
        cmocka_unit_test(a_virtual_device_that_does_not_exist_is_reported),
        cmocka_unit_test(options_that_dpdk_refuses_are_reported),
        cmocka_unit_test(a_payload_above_the_mtu_is_refused),
        cmocka_unit_test(a_polled_device_opens_and_an_operation_times_out),
    };

    (void)argc;
    snprintf(fake, sizeof(fake), "%s/../lib/libfake-dpdk.so", dirname(argv[0]));
    setenv("HOME", "/nonexistent", 1);
    setenv("BANYAN_LOG", "0", 1);
    return cmocka_run_group_tests(tests, write_tables, remove_tables);
}

/*
 * AF_XDP between two network namespaces, with banyan-perf, which checks every element: native mode
 * and multi-buffer. All other packets must reach the kernel, and nothing must remain after a kill.
 * Needs root; skipped without it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/host-driver/rig.h"

static char perf[512];
static char folder[64];
static char name[2][32];

static int command(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int command(const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return system(text);
}

/* Two hosts on one cable, with host 0 as root, with the lab's addresses. */
static void write_tables(uint16_t payload_max)
{
    static struct fabric fabric;
    struct fabric_tree *tree;
    int job;

    memset(&fabric, 0, sizeof(fabric));
    fabric_host(&fabric, "h0");
    fabric_host(&fabric, "h1");
    fabric_cable(&fabric, 0, 1, 1000, 1000);
    job = fabric_job_add(&fabric, 1, 1);
    tree = fabric_tree_add(&fabric, job, 0, 1, NULL);
    assert_non_null(tree);
    tree->window = 64;
    tree->payload_max = payload_max;
    rig_write(&fabric, folder);
}

/* Returns the interface name and MAC address of a host's only port, from its table. */
static struct by_image_port port_of(int host)
{
    struct by_image_port port;
    uint8_t image[8192];
    char path[96];
    FILE *file;

    snprintf(path, sizeof(path), "%s/h%d.table", folder, host);
    file = fopen(path, "rb");
    assert_non_null(file);
    assert_true(fread(image, 1, sizeof(image), file) > 200);
    fclose(file);
    by_image_port(image, 0, &port);
    return port;
}

static void make_cable(int mtu)
{
    for (int h = 0; h < 2; h++)
        assert_int_equal(command("ip netns add %s && ip -n %s link set lo up", name[h], name[h]), 0);
    assert_int_equal(command("ip link add %.12s netns %s mtu %d type veth peer name %.12s netns %s mtu %d",
                             port_of(0).name, name[0], mtu, port_of(1).name, name[1], mtu),
                     0);
    for (int h = 0; h < 2; h++) {
        struct by_image_port port = port_of(h);
        struct in_addr ip = {htonl(port.own_ip)};

        assert_int_equal(command("ip -n %s link set %.12s address %02x:%02x:%02x:%02x:%02x:%02x up && ip -n "
                                 "%s addr add %s/31 dev %.12s",
                                 name[h], port.name, port.own_mac[0], port.own_mac[1], port.own_mac[2],
                                 port.own_mac[3], port.own_mac[4], port.own_mac[5], name[h], inet_ntoa(ip),
                                 port.name),
                         0);
    }
}

static void remove_cable(void)
{
    for (int h = 0; h < 2; h++)
        command("ip netns del %s 2>/dev/null", name[h]);
    rig_remove(folder);
}

/* Enters only the network namespace: /sys does not change. */
static void enter(int host)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/run/netns/%s", name[host]);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
        _exit(97);
    close(fd);
}

static pid_t start(int host, const char *iterations, const char *bytes)
{
    char table[96], output[96];
    pid_t pid = fork();
    int fd;

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    snprintf(table, sizeof(table), "%s/h%d.table", folder, host);
    snprintf(output, sizeof(output), "%s/h%d.output", folder, host);
    enter(host);
    fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
        _exit(99);
    execl(perf, perf, "--table", table, "-c", "all", "-b", bytes, "-n", iterations, "--transport", "afxdp",
          "-T", "2", (char *)NULL);
    _exit(98);
}

static const char *output_of(int host)
{
    static char text[8192];
    char path[96];
    FILE *file;
    size_t bytes;

    snprintf(path, sizeof(path), "%s/h%d.output", folder, host);
    file = fopen(path, "r");
    assert_non_null(file);
    bytes = fread(text, 1, sizeof(text) - 1, file);
    text[bytes] = 0;
    fclose(file);
    return text;
}

static int finish(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int program_attached(int host)
{
    return command("ip -n %s link show %.12s | grep -q xdp", name[host], port_of(host).name) == 0;
}

/* Returns errno of a TCP connection from host 0 to a closed port of host 1: ECONNREFUSED proves
 * that both kernels took part. */
static int knock(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        struct sockaddr_in to = {
            .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(port_of(0).peer_ip)};
        struct timeval patience = {2, 0};
        int fd;

        enter(0);
        fd = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
        _exit(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 ? 0 : errno);
    }
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

static void run_both(uint16_t payload_max, int mtu)
{
    pid_t pid[2];

    write_tables(payload_max);
    make_cable(mtu);
    for (int h = 0; h < 2; h++)
        pid[h] = start(h, "2", "300K");
    for (int h = 0; h < 2; h++) {
        int code = finish(pid[h]);

        if (code != 0)
            fail_msg("MTU %d: rank %d ends with %d: %s", mtu, h, code, output_of(h));
    }
    assert_non_null(strstr(output_of(0), "transport afxdp"));
    assert_non_null(strstr(output_of(0), "# Out of bounds values : 0 OK"));
    assert_false(program_attached(0));
    remove_cable();
}

static void need_root(void)
{
    if (geteuid() != 0 || access("/run", W_OK) != 0)
        skip();
}

static void all_collectives_are_right_over_whole_frames(void **state)
{
    (void)state;
    need_root();
    run_both(1408, 1500);
}

static void all_collectives_are_right_over_frames_of_more_than_a_page(void **state)
{
    (void)state;
    need_root();
    run_both(8192, 9000);
}

static void other_packets_pass_and_a_killed_process_leaves_no_program(void **state)
{
    pid_t pid[2];

    (void)state;
    need_root();
    write_tables(1408);
    make_cable(1500);
    for (int h = 0; h < 2; h++)
        pid[h] = start(h, "100000", "64K");
    for (int tries = 0; tries < 200 && !(program_attached(0) && program_attached(1)); tries++)
        usleep(20000);
    assert_true(program_attached(0));
    assert_true(program_attached(1));
    assert_int_equal(knock(), ECONNREFUSED);
    kill(pid[1], SIGKILL);
    assert_int_equal(finish(pid[1]), 1000 + SIGKILL);
    assert_false(program_attached(1));
    assert_int_equal(finish(pid[0]), 3);
    assert_non_null(strstr(output_of(0), "h1 (rank 1)"));
    assert_false(program_attached(0));
    remove_cable();
}

static void a_second_process_of_the_job_is_refused(void **state)
{
    pid_t first, second;

    (void)state;
    need_root();
    write_tables(1408);
    make_cable(1500);
    first = start(0, "1", "64K");
    for (int tries = 0; tries < 200 && !program_attached(0); tries++)
        usleep(20000);
    second = start(0, "1", "64K");
    assert_int_equal(finish(second), 3);
    assert_non_null(strstr(output_of(0), "in use by process"));
    assert_int_equal(finish(first), 3);
    remove_cable();
}

static int clean_up(void **state)
{
    (void)state;
    for (int h = 0; h < 2; h++)
        command("ip netns del %s 2>/dev/null", name[h]);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(all_collectives_are_right_over_whole_frames, clean_up),
        cmocka_unit_test_teardown(all_collectives_are_right_over_frames_of_more_than_a_page, clean_up),
        cmocka_unit_test_teardown(other_packets_pass_and_a_killed_process_leaves_no_program, clean_up),
        cmocka_unit_test_teardown(a_second_process_of_the_job_is_refused, clean_up),
    };

    (void)argc;
    snprintf(perf, sizeof(perf), "%s/../bin/banyan-perf", dirname(argv[0]));
    for (int h = 0; h < 2; h++)
        snprintf(name[h], sizeof(name[h]), "byx%d-%d", getpid(), h);
    setenv("HOME", "/nonexistent", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

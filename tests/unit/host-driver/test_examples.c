/*
 * The examples of the public interface, each as two processes over UDP on the loopback interface,
 * with real sockets and without privileges. They check their results themselves. Also the messages
 * of a process whose peer fails or whose address is in use.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/host-driver/rig.h"

static char tools[512]; /* folder of the examples, beside that of this program */
static char folder[64];

/* Starts an example as rank `rank`; its output goes to a file in the folder of the tables. */
static pid_t start(const char *example, int rank, const char *argument)
{
    char program[640], table[96], output[96];
    pid_t pid = fork();
    int fd;

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    snprintf(program, sizeof(program), "%s/example-%s", tools, example);
    snprintf(table, sizeof(table), "%s/h%d.table", folder, rank);
    snprintf(output, sizeof(output), "%s/h%d.output", folder, rank);
    fd = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
        _exit(99);
    setenv("BANYAN_TABLE", table, 1);
    if (getenv("WORLD_SIZE") != NULL)
        setenv("RANK", rank == 0 ? "0" : "1", 1);
    execl(program, program, argument, (char *)NULL);
    _exit(98);
}

static int finish(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static const char *output_of(int rank)
{
    static char text[4096];
    char path[96];
    FILE *file;
    size_t bytes;

    snprintf(path, sizeof(path), "%s/h%d.output", folder, rank);
    file = fopen(path, "r");
    assert_non_null(file);
    bytes = fread(text, 1, sizeof(text) - 1, file);
    text[bytes] = 0;
    fclose(file);
    return text;
}

static void run_both(const char *example)
{
    pid_t first = start(example, 0, NULL);
    pid_t second = start(example, 1, NULL);
    int code[2] = {finish(first), finish(second)};

    for (int rank = 0; rank < 2; rank++)
        if (code[rank] != 0)
            fail_msg("%s: rank %d ends with %d: %s", example, rank, code[rank], output_of(rank));
}

static void every_example_runs_right_over_loopback(void **state)
{
    static const char *const examples[] = {"allreduce",  "reduce_scatter", "reduce_scatterv", "allgather",
                                           "allgatherv", "broadcast",      "reduce",          "barrier",
                                           "groups",     "persistent",     "capability",      "counters",
                                           "modes",      "query",          "alloc",           "register"};

    (void)state;
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
        run_both(examples[i]);
}

/* The tables have trees for all other collectives: only the setting makes the ranks meet. */
static void exchanges_run_where_ranks_are_connected(void **state)
{
    static const char *const names[] = {"WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "BANYAN_FALLBACK",
                                        "BANYAN_LOG"};
    static const char *const values[] = {"2", "127.0.0.1", "29517", "circulant", "1"};

    (void)state;
    assert_int_equal(finish(start("alltoall", 0, NULL)), 1);
    assert_non_null(strstr(output_of(0), "BANYAN_FALLBACK connects them"));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        rig_set(names[i], values[i]);
    run_both("alltoall");
    run_both("scatter_gather");
    assert_non_null(
        strstr(output_of(0), "all-to-all, scatter and gather (BANYAN_FALLBACK) run between hosts"));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        rig_set(names[i], NULL);
    rig_set("BANYAN_LOG", "0");
}

static void every_example_runs_right_with_packets_lost_doubled_and_overtaken(void **state)
{
    (void)state;
    rig_set("BANYAN_LOSS", "0.1");
    rig_set("BANYAN_DUP", "0.1");
    rig_set("BANYAN_REORDER", "0.1");
    run_both("persistent");
    run_both("barrier");
    rig_set("BANYAN_LOSS", NULL);
    rig_set("BANYAN_DUP", NULL);
    rig_set("BANYAN_REORDER", NULL);
}

static void an_abort_from_a_signal_wakes_a_rank_that_sleeps(void **state)
{
    (void)state;
    assert_int_equal(finish(start("abort", 0, NULL)), 0);
    assert_non_null(strstr(output_of(0), "aborted"));
}

static void the_fabric_in_one_process_runs_from_a_folder_of_tables(void **state)
{
    static struct fabric fabric;
    char tables[64];

    (void)state;
    rig_star(&fabric, 4, 8);
    rig_write(&fabric, tables);
    assert_int_equal(finish(start("in_process", 0, tables)), 0);
    assert_non_null(strstr(output_of(0), "3 packets, 270 bytes"));
    rig_remove(tables);
}

static void a_rank_whose_peer_never_comes_ends_with_its_name(void **state)
{
    (void)state;
    rig_set("BANYAN_TIMEOUT", "0.5");
    assert_int_equal(finish(start("barrier", 1, NULL)), 1);
    assert_non_null(strstr(output_of(1), "no answer from h0 (rank 0)"));
    assert_int_equal(finish(start("barrier", 0, NULL)), 1);
    assert_non_null(strstr(output_of(0), "h1 (rank 1) has not contributed"));
    rig_set("BANYAN_TIMEOUT", NULL);
}

static void a_rank_whose_peer_is_killed_ends_within_the_timeout(void **state)
{
    pid_t first, second;

    (void)state;
    rig_set("BANYAN_TIMEOUT", "1");
    first = start("barrier", 0, NULL);
    second = start("abort", 1, NULL); /* joins, but skips the barrier */
    kill(second, SIGKILL);
    assert_int_equal(finish(first), 1);
    assert_non_null(strstr(output_of(0), "rank 1"));
    finish(second);
    rig_set("BANYAN_TIMEOUT", NULL);
}

static void an_address_that_is_taken_is_named(void **state)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(46247), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int taken = socket(AF_INET, SOCK_DGRAM, 0);

    (void)state;
    assert_true(taken >= 0);
    assert_int_equal(bind(taken, (const struct sockaddr *)&address, sizeof address), 0);
    rig_set("BANYAN_TIMEOUT", "1");
    assert_int_equal(finish(start("barrier", 0, NULL)), 1);
    assert_non_null(strstr(output_of(0), "127.0.0.1:46247 (lo) cannot be bound"));
    rig_set("BANYAN_TIMEOUT", NULL);
    close(taken);
}

static void a_second_program_of_a_job_is_told_which_runs(void **state)
{
    pid_t first, second;
    char want[60];

    (void)state;
    rig_set("BANYAN_TIMEOUT", "5");
    first = start("barrier", 0, NULL);
    usleep(200000);
    rig_set("BANYAN_TIMEOUT", "1");
    second = start("barrier", 0, NULL);
    assert_int_equal(finish(second), 1);
    snprintf(want, sizeof want, "in use by process %d", (int)first);
    assert_non_null(strstr(output_of(0), want));
    assert_int_equal(finish(first), 1);
    rig_set("BANYAN_TIMEOUT", NULL);
}

static int set_up(void **state)
{
    (void)state;
    rig_set("BANYAN_TRANSPORT", "udp");
    rig_set("BANYAN_LOG", "0");
    setenv("HOME", "/nonexistent", 1);
    rig_write_loopback(2, folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rig_remove(folder);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_example_runs_right_over_loopback),
        cmocka_unit_test(exchanges_run_where_ranks_are_connected),
        cmocka_unit_test(every_example_runs_right_with_packets_lost_doubled_and_overtaken),
        cmocka_unit_test(an_abort_from_a_signal_wakes_a_rank_that_sleeps),
        cmocka_unit_test(the_fabric_in_one_process_runs_from_a_folder_of_tables),
        cmocka_unit_test(a_rank_whose_peer_never_comes_ends_with_its_name),
        cmocka_unit_test(a_rank_whose_peer_is_killed_ends_within_the_timeout),
        cmocka_unit_test(an_address_that_is_taken_is_named),
        cmocka_unit_test(a_second_program_of_a_job_is_told_which_runs),
    };

    (void)argc;
    snprintf(tools, sizeof(tools), "%s/../tools", dirname(argv[0]));
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

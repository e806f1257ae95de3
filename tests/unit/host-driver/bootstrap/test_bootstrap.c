/*
 * How ranks find each other: the texts of places and the lines of PMI-1, and complete meetings over
 * the program's callbacks and over a PMI-1 launcher inside the test, with correct and wrong
 * answers.
 */
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-driver/bootstrap/bootstrap.h"
#include "host-driver/clock.h"
#include "host-driver/error.h"
#include "offload/base/errors.h"

#define RANKS 4u

/* ---- lines and places */

static void a_line_of_pmi_is_cut_into_fields(void **state)
{
    char text[] = "cmd=get_result rc=0 msg=success value=0a:b=c";
    struct by_pmi_line line;

    (void)state;
    assert_int_equal(by_pmi_parse(text, strlen(text), &line), 0);
    assert_int_equal(line.count, 4);
    assert_true(by_pmi_is(&line, "get_result"));
    assert_false(by_pmi_is(&line, "put_result"));
    assert_string_equal(by_pmi_value(&line, "value"), "0a:b=c");
    assert_null(by_pmi_value(&line, "key"));
}

static void what_is_no_line_of_pmi_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "   ",
        "init",
        "rc=0 cmd=init",
        "cmd",
        "cmd=a b",
        "cmd=a =b",
        "cmd=a\tb=c",
        "=cmd",
        "cmd=a b=\x80",
        "cmd=a a=1 a=2 a=3 a=4 a=5 a=6 a=7 a=8 a=9 a=1 a=2 a=3 a=4 a=5 a=6 a=7",
    };
    char refused[] = "cmd=put_result rc=-1 msg=no";
    struct by_pmi_line line;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char text[128];

        snprintf(text, sizeof(text), "%s", wrong[i]);
        if (by_pmi_parse(text, strlen(text), &line) != BY_EFORMAT)
            fail_msg("'%s' is taken for a line", wrong[i]);
    }
    assert_int_equal(by_pmi_parse(refused, strlen(refused), &line), 0);
    assert_false(by_pmi_is(&line, "put_result"));
}

/* In a network namespace: one link has a carrier, the other one not. Status 1: the place is wrong,
 * 2: its links could not be made, 3: no right to. */
static int place_of_links(void)
{
    struct by_bootstrap_place place;

    if (unshare(CLONE_NEWNET) != 0)
        return 3;
    if (system("ip link add a0 type veth peer name a1 && ip link add b0 type veth peer name b1 && "
               "ip addr add 10.1.2.3/24 dev a0 && ip addr add 10.1.3.3/24 dev b0 && ip link set a0 up && "
               "ip link set b0 up && ip link set b1 up") != 0)
        return 2;
    for (unsigned i = 0; i < 50; i++) { /* the kernel reports that b0 runs within a second */
        by_place_here(&place, 7);
        if (place.count != 2)
            return 1;
        if (place.ip[0] == 0x0a010303)
            return place.ip[1] == 0x0a010203 && place.bits[1] == 24 ? 0 : 1;
        usleep(100000);
    }
    return 1;
}

static void a_place_lists_links_without_a_carrier_last(void **state)
{
    pid_t child = fork();
    int status;

    (void)state;
    assert_true(child >= 0);
    if (child == 0)
        _exit(place_of_links());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 3)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_place_survives_its_text(void **state)
{
    struct by_bootstrap_place place = {.machine = UINT64_C(0x0123456789abcdef),
                                       .port = 40001,
                                       .count = BY_PLACE_MAX},
                              twice;
    char text[BY_PLACE_TEXT];

    (void)state;
    for (uint32_t i = 0; i < BY_PLACE_MAX; i++) {
        place.ip[i] = 0x0a000001 + i;
        place.bits[i] = (uint8_t)(i * 4);
    }
    by_place_write(&place, text);
    assert_int_equal(by_place_read(text, &twice), 0);
    assert_memory_equal(&place, &twice, sizeof(place));
    for (size_t cut = 0; cut < strlen(text); cut++) {
        char less[BY_PLACE_TEXT] = "";

        memcpy(less, text, cut);
        assert_int_equal(by_place_read(less, &twice), BY_EFORMAT);
    }
    text[0] = 'x';
    assert_int_equal(by_place_read(text, &twice), BY_EFORMAT);
}

static void a_near_network_is_tried_first_and_an_own_address_never(void **state)
{
    const struct by_bootstrap_place root = {
        .machine = 1,
        .count = 3,
        .ip = {0xac110001 /* a bridge on each host */, 0x0a000001, 0xc6120001},
        .bits = {16, 8, 24}};
    const struct by_bootstrap_place here = {
        .machine = 2, .count = 2, .ip = {0xac110001, 0xc6120007}, .bits = {16, 24}};
    struct by_bootstrap_place same = here;
    uint32_t ip[BY_PLACE_MAX + 1];

    (void)state;
    assert_int_equal(by_place_order(&root, &here, ip), 2);
    assert_int_equal(ip[0], 0xc6120001);
    assert_int_equal(ip[1], 0x0a000001);
    same.machine = 1;
    assert_int_equal(by_place_order(&root, &same, ip), 4);
    assert_int_equal(ip[0], 0x7f000001);
}

/* ---- meetings: each rank a process */

/* The body of a member whose environment is set: an allreduce over the communicator. Returns 0 if
 * the result is correct. */
static int meet(const struct banyan_config *config, uint32_t rank)
{
    struct banyan_context *context = NULL;
    int wrong = 1;

    for (int again = 0; again < 2; again++) { /* two contexts, with two communicators each */
        wrong = 1;
        if (banyan_init(config, &context) != BANYAN_OK)
            break;
        for (int i = 0; i < 2; i++) {
            struct banyan_comm *comm = NULL;
            uint32_t send = rank + 1, sum = 0;

            if (banyan_comm_create(context, 0, &comm) != BANYAN_OK)
                break;
            wrong = banyan_allreduce(comm, &send, &sum, 1, BANYAN_U32, BANYAN_SUM) != BANYAN_OK ||
                    sum != RANKS * (RANKS + 1) / 2 || banyan_comm_rank(comm) != rank;
            banyan_comm_destroy(comm);
            if (wrong)
                break;
        }
        banyan_finalize(context);
        if (wrong)
            break;
    }
    if (wrong)
        fprintf(stderr, "rank %u: %s\n", rank, banyan_last_error());
    return wrong;
}

static void all_end_well(const pid_t *process, uint32_t count)
{
    for (uint32_t rank = 0; rank < count; rank++) {
        int status;

        assert_int_equal(waitpid(process[rank], &status, 0), process[rank]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("rank %u: status %x", rank, (unsigned)status);
    }
}

/* An allgather over a socket to the test, which returns the texts of all ranks to each rank. */
struct circle {
    int fd;
    uint32_t count;
    int fails;
};

static int go_round(void *context, const void *mine, void *all, size_t bytes)
{
    struct circle *circle = context;

    if (circle->fails)
        return 7;
    return write(circle->fd, mine, bytes) == (ssize_t)bytes &&
                   recv(circle->fd, all, bytes * circle->count, MSG_WAITALL) ==
                       (ssize_t)(bytes * circle->count)
               ? 0
               : 1;
}

static void the_programs_own_callbacks_let_ranks_meet(void **state)
{
    int pair[RANKS][2];
    pid_t process[RANKS];
    char all[RANKS * BY_PLACE_TEXT];

    (void)state;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        struct circle circle = {.count = RANKS};
        struct banyan_bootstrap bootstrap = {.size = sizeof(bootstrap),
                                             .rank = rank,
                                             .rank_count = RANKS,
                                             .context = &circle,
                                             .allgather = go_round};
        struct banyan_config config;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair[rank]), 0);
        process[rank] = fork();
        if (process[rank] != 0)
            continue;
        circle.fd = pair[rank][1];
        banyan_config_init(&config);
        config.bootstrap = &bootstrap;
        _exit(meet(&config, rank));
    }
    for (int context = 0; context < 2;
         context++) { /* one allgather per context, for any number of communicators */
        for (uint32_t rank = 0; rank < RANKS; rank++)
            assert_int_equal(recv(pair[rank][0], all + rank * BY_PLACE_TEXT, BY_PLACE_TEXT, MSG_WAITALL),
                             BY_PLACE_TEXT);
        for (uint32_t rank = 0; rank < RANKS; rank++)
            assert_int_equal(write(pair[rank][0], all, sizeof(all)), sizeof(all));
    }
    all_end_well(process, RANKS);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        close(pair[rank][0]);
        close(pair[rank][1]);
    }
}

static void callbacks_that_are_wrong_are_refused(void **state)
{
    struct circle circle = {.count = 2, .fails = 1};
    struct banyan_bootstrap bootstrap = {
        .size = sizeof(bootstrap), .rank = 0, .rank_count = 2, .context = &circle, .allgather = go_round};
    struct banyan_context *context;
    struct banyan_config config;
    struct banyan_comm *comm;

    (void)state;
    banyan_config_init(&config);
    config.bootstrap = &bootstrap;
    assert_int_equal(banyan_init(&config, &context), BANYAN_OK);
    assert_int_equal(banyan_comm_create(context, 0, &comm), BANYAN_EIO);
    assert_non_null(strstr(banyan_last_error(), "it returned 7"));
    assert_int_equal(banyan_finalize(context), BANYAN_OK);
    bootstrap.rank = 2;
    assert_int_equal(banyan_init(&config, &context), BANYAN_EINVAL);
    assert_non_null(strstr(banyan_last_error(), "rank 2 of 2"));
    bootstrap.rank = 0;
    bootstrap.allgather = NULL;
    assert_int_equal(banyan_init(&config, &context), BANYAN_EINVAL);
    bootstrap.size = 1;
    assert_int_equal(banyan_init(&config, &context), BANYAN_EVERSION);
}

/* ---- a launcher of PMI-1 */

struct launcher {
    FILE *in[RANKS];
    int fd[RANKS];
    char value[256];
    uint32_t in_barrier, finished;
    const char *answer_to_init; /* NULL: the correct answer */
};

static void reply(const struct launcher *launcher, uint32_t rank, const char *text)
{
    (void)!write(launcher->fd[rank], text, strlen(text));
}

/* Handles a line of `rank`. Returns false if the line is not of this protocol. */
static bool serve(struct launcher *launcher, uint32_t rank, char *line)
{
    char text[512];
    char *value = strstr(line, "value=");

    if (strncmp(line, "cmd=init ", 9) == 0) {
        reply(launcher, rank,
              launcher->answer_to_init != NULL
                  ? launcher->answer_to_init
                  : "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    } else if (strcmp(line, "cmd=get_my_kvsname\n") == 0) {
        reply(launcher, rank, "cmd=my_kvsname kvsname=kvs_7_0\n");
    } else if (strncmp(line, "cmd=put kvsname=kvs_7_0 key=", 28) == 0 && value != NULL &&
               strlen(value) < 256) {
        value[strcspn(value, "\n")] = 0;
        strcpy(launcher->value, value + 6);
        reply(launcher, rank, "cmd=put_result rc=0 msg=success\n");
    } else if (strcmp(line, "cmd=barrier_in\n") == 0) {
        if (++launcher->in_barrier == RANKS)
            for (uint32_t all = launcher->in_barrier = 0; all < RANKS; all++)
                reply(launcher, all, "cmd=barrier_out\n");
    } else if (strncmp(line, "cmd=get kvsname=kvs_7_0 key=", 28) == 0) {
        snprintf(text, sizeof(text), "cmd=get_result rc=0 msg=success value=%s\n", launcher->value);
        for (size_t at = 0, length = strlen(text); at < length; at += 7) /* in pieces, as from a socket */
            (void)!write(launcher->fd[rank], text + at, length - at < 7 ? length - at : 7);
    } else if (strcmp(line, "cmd=finalize\n") == 0) {
        launcher->finished++;
        reply(launcher, rank, "cmd=finalize_ack\n");
    } else {
        return false;
    }
    return true;
}

static pid_t start_member(struct launcher *launcher, uint32_t rank, int (*body)(uint32_t rank))
{
    int pair[2];
    pid_t process;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    process = fork();
    if (process == 0) {
        char text[16];

        snprintf(text, sizeof(text), "%d", pair[1]);
        setenv("PMI_FD", text, 1);
        snprintf(text, sizeof(text), "%u", rank);
        setenv("PMI_RANK", text, 1);
        snprintf(text, sizeof(text), "%u", RANKS);
        setenv("PMI_SIZE", text, 1);
        alarm(60);
        exit(body(rank)); /* exit() runs the handlers that send the finalize command */
    }
    close(pair[1]);
    launcher->fd[rank] = pair[0];
    launcher->in[rank] = fdopen(pair[0], "r");
    return process;
}

static int meet_by_launcher(uint32_t rank)
{
    return meet(NULL, rank);
}

static void ranks_of_a_pmi_launcher_meet_without_settings(void **state)
{
    struct launcher launcher = {0};
    pid_t process[RANKS];
    struct pollfd fds[RANKS];
    char line[512];

    (void)state;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        process[rank] = start_member(&launcher, rank, meet_by_launcher);
        fds[rank] = (struct pollfd){.fd = launcher.fd[rank], .events = POLLIN};
    }
    for (uint32_t left = RANKS; left > 0;) {
        assert_true(poll(fds, RANKS, 60000) > 0);
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            if (fds[rank].fd < 0 || fds[rank].revents == 0)
                continue;
            if (fgets(line, sizeof(line), launcher.in[rank]) ==
                NULL) { /* each rank waits for the answer to its line */
                fds[rank].fd = -1;
                left--;
            } else if (!serve(&launcher, rank, line)) {
                fail_msg("rank %u says '%s'", rank, line);
            }
        }
    }
    all_end_well(process, RANKS);
    assert_int_equal(launcher.finished, RANKS);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        fclose(launcher.in[rank]);
}

/* Exits with 0 if an error comes in time and its text has "PMI-1" and the cause. */
static int be_refused(uint32_t rank)
{
    struct banyan_context *context;
    struct banyan_comm *comm;
    uint64_t begin_ns = by_clock_ns();

    if (banyan_init(NULL, &context) != BANYAN_OK)
        return 1;
    if (banyan_comm_create(context, 0, &comm) == BANYAN_OK ||
        strstr(banyan_last_error(), "PMI-1: ") == NULL || by_clock_ns() - begin_ns > UINT64_C(2000000000)) {
        fprintf(stderr, "rank %u: %s\n", rank, banyan_last_error());
        return 2;
    }
    banyan_finalize(context);
    return 0;
}

static void a_launcher_that_answers_nonsense_or_nothing_is_refused_in_time(void **state)
{
    static const char *const answers[] = {"",
                                          "\n",
                                          "hello\n",
                                          "cmd=response_to_init rc=-1\n",
                                          "cmd=maxes kvsname_max=9\n",
                                          "rc=0 cmd=response_to_init\n",
                                          "cmd=response_to_init rc=0 "};
    char endless[BY_PMI_LINE_MAX + 2];

    (void)state;
    memset(endless, 'x', sizeof(endless) - 1);
    endless[sizeof(endless) - 1] = 0;
    setenv("BANYAN_TIMEOUT", "1", 1);
    for (size_t i = 0; i <= sizeof(answers) / sizeof(answers[0]); i++) {
        struct launcher launcher = {.answer_to_init =
                                        i < sizeof(answers) / sizeof(answers[0]) ? answers[i] : endless};
        pid_t process = start_member(&launcher, 0, be_refused);
        char line[512];

        assert_non_null(fgets(line, sizeof(line), launcher.in[0]));
        assert_true(serve(&launcher, 0, line));
        all_end_well(&process, 1);
        fclose(launcher.in[0]);
    }
    setenv("BANYAN_TIMEOUT", "20", 1);
}

/* ---- choice */

static void what_is_asked_for_must_be_there(void **state)
{
    struct banyan_context *context;

    (void)state;
    setenv("BANYAN_BOOTSTRAP", "pmix", 1);
    assert_int_equal(banyan_init(NULL, &context), BANYAN_EINVAL);
    assert_non_null(strstr(banyan_last_error(), "BANYAN_BOOTSTRAP is pmix, but its variables are not set"));
    setenv("BANYAN_BOOTSTRAP", "slurm", 1);
    assert_int_equal(banyan_init(NULL, &context), BANYAN_EINVAL);
    assert_non_null(strstr(banyan_last_error(), "use auto, env, pmix, pmi or none"));
    setenv("BANYAN_BOOTSTRAP", "auto", 1);
    assert_int_equal(banyan_init(NULL, &context), BANYAN_EINVAL);
    assert_non_null(strstr(banyan_last_error(),
                           "tried: RANK and related variables (not set), PMIx (PMIX_NAMESPACE is not set), "
                           "PMI-1 (PMI_FD is not set)"));
    unsetenv("BANYAN_BOOTSTRAP");
}

static void four_variables_come_before_a_launcher_and_some_of_them_do_not(void **state)
{
    struct banyan_config config;
    struct by_bootstrap bootstrap;
    static struct by_settings settings;

    (void)state;
    banyan_config_init(&config);
    config.launcher = "auto";
    setenv("PMI_FD", "3", 1);
    setenv("PMI_RANK", "0", 1);
    setenv("PMI_SIZE", "2", 1);
    setenv("RANK", "0", 1);
    by_bootstrap_init(&bootstrap);
    assert_int_equal(by_bootstrap_find(&bootstrap, &settings, &config), 0);
    assert_int_equal(bootstrap.source, BY_SOURCE_PMI);
    setenv("WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", "29500", 1);
    assert_int_equal(by_bootstrap_find(&bootstrap, &settings, &config), 0);
    assert_int_equal(bootstrap.source, BY_SOURCE_ENV);
    by_bootstrap_close(&bootstrap);
    by_bootstrap_init(&bootstrap);
    config.launcher = "none";
    assert_int_equal(by_bootstrap_find(&bootstrap, &settings, &config), 0);
    assert_int_equal(bootstrap.source, BY_SOURCE_NONE);
    by_bootstrap_close(&bootstrap);
}

static int fail_round(void *context, const void *mine, void *all, size_t bytes)
{
    (void)mine;
    (void)all;
    (void)bytes;
    return context != NULL ? by_fail(-7, "%s", (const char *)context) : -7;
}

static void an_exchange_that_fails_gives_its_own_reason_and_no_earlier_one(void **state)
{
    char cause[] = "the parent has failed";
    const struct banyan_bootstrap with = {.context = cause, .allgather = fail_round};
    const struct banyan_bootstrap without = {.allgather = fail_round};
    char byte = 0;

    (void)state;
    assert_int_equal(by_bootstrap_exchange(&with, &byte, &byte, 1), BY_EIO);
    assert_string_equal(by_fail_text(), "bootstrap.allgather failed: it returned -7: the parent has failed");
    assert_int_equal(by_bootstrap_exchange(&without, &byte, &byte, 1), BY_EIO);
    assert_string_equal(by_fail_text(), "bootstrap.allgather failed: it returned -7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exchange_that_fails_gives_its_own_reason_and_no_earlier_one),
        cmocka_unit_test(a_line_of_pmi_is_cut_into_fields),
        cmocka_unit_test(what_is_no_line_of_pmi_is_refused),
        cmocka_unit_test(a_place_survives_its_text),
        cmocka_unit_test(a_place_lists_links_without_a_carrier_last),
        cmocka_unit_test(a_near_network_is_tried_first_and_an_own_address_never),
        cmocka_unit_test(the_programs_own_callbacks_let_ranks_meet),
        cmocka_unit_test(callbacks_that_are_wrong_are_refused),
        cmocka_unit_test(ranks_of_a_pmi_launcher_meet_without_settings),
        cmocka_unit_test(a_launcher_that_answers_nonsense_or_nothing_is_refused_in_time),
        cmocka_unit_test(what_is_asked_for_must_be_there),
        cmocka_unit_test(four_variables_come_before_a_launcher_and_some_of_them_do_not),
    };

    setenv("HOME", "/nonexistent", 1);
    setenv("BANYAN_LOG", "0", 1);
    setenv("BANYAN_TIMEOUT", "20", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

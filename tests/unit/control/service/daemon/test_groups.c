/*
 * Jobs that hosts create for communicators: a whole banyand between two switches, h0 - x0 - x1 -
 * h1, and hosts that speak its protocol.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/service/daemon/daemon.h"
#include "offload/base/errors.h"
#include "offload/wire/member.h"
#include "tests/unit/control/service/daemon/rig.h"

#define WAIT_S 20

static struct daemon_rig rig;
static char members[96];

static struct rig_daemon start(const char *limit)
{
    const char *more[] = {"--members", members,   "--job",   "1=allreduce", "--communicators",
                          limit,       "--state", rig.state, NULL};
    struct rig_daemon daemon = rig_start(&rig, more);

    rig_await(&daemon, "job 1 runs");
    return daemon;
}

static int join(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct timeval wait = {.tv_sec = WAIT_S};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(to.sun_path, sizeof(to.sun_path), "%s", members + 5);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    return fd;
}

static void say(int fd, struct by_member_frame frame)
{
    uint8_t bytes[BY_MEMBER_FIXED_MAX + BY_NAME_MAX + 1 + BY_MEMBER_GROUP_BYTES];
    size_t fixed = by_member_put(&frame, bytes);

    if (frame.bytes > 0)
        memcpy(bytes + fixed, frame.data, frame.bytes);
    assert_int_equal(send(fd, bytes, fixed + frame.bytes, MSG_NOSIGNAL), fixed + frame.bytes);
}

/* The host `name` requests a job for the ranks of `job` in the set `ranks`. */
static int ask(const char *name, uint16_t job, uint8_t ranks, uint64_t nonce)
{
    uint8_t data[BY_NAME_MAX + 2];
    size_t bytes = strlen(name) + 1;
    int fd = join();

    memcpy(data, name, bytes);
    data[bytes++] = ranks;
    say(fd, (struct by_member_frame){.type = BY_MEMBER_GROUP,
                                     .job = job,
                                     .rank = 0xffff,
                                     .number = nonce,
                                     .data = data,
                                     .bytes = (uint32_t)bytes});
    return fd;
}

static int hello(const char *name, uint16_t job, uint64_t nonce)
{
    int fd = join();

    say(fd, (struct by_member_frame){.type = BY_MEMBER_HELLO,
                                     .job = job,
                                     .rank = 0xffff,
                                     .number = nonce,
                                     .data = (const uint8_t *)name,
                                     .bytes = (uint32_t)strlen(name)});
    return fd;
}

/* Reads the next frame, whose data are valid until the next call. */
static struct by_member_frame hear(int fd)
{
    static uint8_t bytes[1 << 16];
    struct by_member_frame frame = {0};
    size_t used = 0, length;
    int error = BY_EAGAIN;

    while (error == BY_EAGAIN) {
        ssize_t got = recv(fd, bytes + used, used < 4 ? 4 - used : 1, 0);

        if (got <= 0)
            fail_msg("no frame from banyand");
        used += (size_t)got;
        error = by_member_get(bytes, used, BY_MEMBER_CONTROLLER, &frame, &length);
    }
    assert_int_equal(error, 0);
    return frame;
}

static void leave(int fd, uint16_t job, uint16_t rank, uint16_t gen)
{
    say(fd, (struct by_member_frame){.type = BY_MEMBER_BYE, .job = job, .rank = rank, .gen = gen});
    close(fd);
}

static void refused(const char *name, uint16_t job, uint8_t ranks, const char *words)
{
    int fd = ask(name, job, ranks, 1);
    struct by_member_frame frame = hear(fd);
    char text[BY_MEMBER_TEXT_MAX + 1] = "";

    memcpy(text, frame.data, frame.bytes);
    if (frame.type != BY_MEMBER_FAIL || strstr(text, words) == NULL)
        fail_msg("type %u, '%s' instead of '%s'", frame.type, text, words);
    close(fd);
}

static int set_up(void **state)
{
    (void)state;
    rig_open(&rig);
    snprintf(members, sizeof(members), "unix:%s/members", rig.folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static void a_communicator_has_a_job_until_its_hosts_have_left(void **state)
{
    struct rig_daemon daemon = start("1");
    int first = ask("h1", 1, 3, 11), second;
    struct by_member_frame frame = hear(first);

    (void)state;
    assert_int_equal(frame.type, BY_MEMBER_WELCOME);
    assert_int_equal(frame.job, 2);
    assert_int_equal(frame.rank, 1);
    assert_true(frame.bytes > 0);
    second = hello("h0", 2, 12);
    assert_int_equal(hear(second).type, BY_MEMBER_WELCOME);
    refused("h0", 1, 3, "1 jobs of communicators exist, the limit of banyand");
    leave(first, 2, 1, frame.gen);
    assert_false(rig_has_said(&daemon, "job 2 has ended"));
    leave(second, 2, 0, frame.gen);
    rig_await(&daemon, "job 2 has ended");
    assert_int_equal(rig_stop(&daemon), 0);
}

/* The next program, while the jobs of the last one's communicators are still there. */
static void a_host_without_a_job_number_gets_no_job_of_a_communicator(void **state)
{
    struct rig_daemon daemon = start("64");
    int first = ask("h0", 1, 3, 11), next;
    struct by_member_frame frame = hear(first);

    (void)state;
    assert_int_equal(frame.type, BY_MEMBER_WELCOME);
    assert_int_equal(frame.job, 2);
    next = hello("h1", 0, 12);
    frame = hear(next);
    assert_int_equal(frame.type, BY_MEMBER_WELCOME);
    assert_int_equal(frame.job, 1);
    close(next);
    close(first);
    assert_int_equal(rig_stop(&daemon), 0);
}

static void the_job_of_a_communicator_ends_when_its_programs_have_died(void **state)
{
    struct rig_daemon daemon = start("64");
    int first = ask("h0", 1, 3, 11);

    (void)state;
    assert_int_equal(hear(first).type, BY_MEMBER_WELCOME);
    close(first);
    rig_await(&daemon, "job 2 has ended");
    assert_int_equal(rig_stop(&daemon), 0);
}

/* Programs that die while their job moves to another generation, which then never settles. */
static void the_job_of_a_communicator_ends_when_its_programs_die_in_a_recovery(void **state)
{
    struct rig_daemon daemon = start("64");
    int first = ask("h0", 1, 3, 11), second = join();
    struct by_member_frame frame = hear(first);

    (void)state;
    assert_int_equal(frame.type, BY_MEMBER_WELCOME);
    assert_int_equal(frame.job, 2);
    say(second,
        (struct by_member_frame){.type = BY_MEMBER_HELLO,
                                 .job = 2,
                                 .rank = 0xffff,
                                 .gen = (uint16_t)(frame.gen + 1), /* banyand lost it: it plans again */
                                 .number = 12,
                                 .data = (const uint8_t *)"h1",
                                 .bytes = 2});
    while (hear(first).type != BY_MEMBER_FREEZE) {
    }
    close(first);
    close(second);
    rig_await(&daemon, "job 2 has ended");
    assert_int_equal(rig_stop(&daemon), 0);
}

static void a_restarted_daemon_still_ends_the_job_of_a_communicator(void **state)
{
    struct rig_daemon daemon = start("64");
    int first = ask("h0", 1, 3, 11), again;
    struct by_member_frame frame = hear(first);
    uint16_t gen = frame.gen;

    (void)state;
    assert_int_equal(rig_stop(&daemon), 0);
    close(first);
    daemon = rig_start(&rig, (const char *[]){"--members", members, "--state", rig.state, NULL});
    rig_await(&daemon, "ready");
    again = hello("h0", 2, 11);
    frame = hear(again);
    assert_int_equal(frame.type, BY_MEMBER_WELCOME);
    leave(again, 2, frame.rank, gen);
    rig_await(&daemon, "job 2 has ended");
    assert_int_equal(rig_stop(&daemon), 0);
}

/* Job 1 would wait until the push to the silent switch ends by its time limit. */
static void a_job_that_is_made_gives_way_when_a_running_one_loses_a_switch(void **state)
{
    struct rig_daemon daemon;
    struct by_member_frame frame;
    int fd;

    (void)state;
    rig_double(&rig);
    daemon = rig_start(
        &rig, (const char *[]){"--members", members, "--job", "1=allreduce", "--timeout", "60", NULL});
    rig_await(&daemon, "job 1 runs");
    rig.fake[1]->silent = 1;
    fd = ask("h0", 1, 3, 11);
    rig_await(&daemon, "switch x1 does not answer: planning again");
    rig_await(&daemon, "job 1 is in generation 2");
    frame = hear(fd); /* then it is made */
    if (frame.type != BY_MEMBER_WELCOME)
        fail_msg("type %u, %.*s", frame.type, (int)frame.bytes, (const char *)frame.data);
    close(fd);
    rig.fake[1]->silent = 0;
    assert_int_equal(rig_stop(&daemon), 0);
}

/* A split of a program into many groups. */
static void as_many_jobs_as_are_allowed_may_be_requested_at_once(void **state)
{
    struct rig_daemon daemon = start("48");
    int fd[48];

    (void)state;
    for (unsigned i = 0; i < 48; i++)
        fd[i] = ask("h0", 1, 3, 11 + i);
    for (unsigned i = 0; i < 48; i++) {
        struct by_member_frame frame = hear(fd[i]);

        if (frame.type != BY_MEMBER_WELCOME)
            fail_msg("request %u: type %u, %.*s", i, frame.type, (int)frame.bytes, (const char *)frame.data);
    }
    for (unsigned i = 0; i < 48; i++)
        close(fd[i]);
    assert_int_equal(rig_stop(&daemon), 0);
}

static void a_request_that_cannot_be_served_is_refused_with_the_reason(void **state)
{
    struct rig_daemon daemon = start("64");

    (void)state;
    refused("h0", 7, 3, "banyand has no job 7");
    refused("h0", 1, 1, "a communicator has 1 hosts");
    refused("h0", 1, 7, "a communicator has rank 2 of job 1, which has 2 ranks");
    refused("h9", 1, 3, "the topology has no host h9");
    assert_int_equal(rig_stop(&daemon), 0);
    daemon = rig_start(&rig, (const char *[]){"--members", members, "--communicators", "0", NULL});
    rig_await(&daemon, "ready");
    refused("h0", 1, 3, "--communicators 0: hosts create no jobs");
    assert_int_equal(rig_stop(&daemon), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_communicator_has_a_job_until_its_hosts_have_left, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_host_without_a_job_number_gets_no_job_of_a_communicator, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_job_of_a_communicator_ends_when_its_programs_have_died, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_job_of_a_communicator_ends_when_its_programs_die_in_a_recovery,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_restarted_daemon_still_ends_the_job_of_a_communicator, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_job_that_is_made_gives_way_when_a_running_one_loses_a_switch,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(as_many_jobs_as_are_allowed_may_be_requested_at_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_request_that_cannot_be_served_is_refused_with_the_reason, set_up,
                                        tear_down),
    };

    /* rig_start executes this program again, as banyand */
    if (strcmp(argv[0], "banyand") == 0)
        return by_daemon_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

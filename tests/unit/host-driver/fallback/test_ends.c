/*
 * How collectives between hosts begin and end after an error: ranks that are killed, stopped or in
 * another collective, that abort or do not come. Each rank is a process.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
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

#include "host-driver/clock.h"
#include "host-driver/fallback/peers.h"
#include "offload/table/image.h"
#include "offload/wire/types.h"
#include "tests/unit/host-driver/fallback/team.h"
#include "tests/unit/host-driver/rig.h"

#define TIMEOUT  2.0 /* seconds, in these tests */
#define CULPRIT  1u
#define ELEMENTS 300000u

static float send_buffer[ELEMENTS], recv_buffer[ELEMENTS];

/* Runs allreduces until one fails. It must fail within the timeout plus one second, with this
 * status and with a text that names the rank. */
static int until_it_fails(struct team_member *member, banyan_status_t wanted, const char *said)
{
    banyan_status_t status = BANYAN_OK;
    uint64_t begin_ns = 0;
    double took;

    for (int i = 0; i < 1000000 && status == BANYAN_OK; i++) {
        begin_ns = by_clock_ns();
        status =
            banyan_allreduce(member->comm, send_buffer, recv_buffer, 1u << (i % 17), BANYAN_F32, BANYAN_SUM);
    }
    took = (double)(by_clock_ns() - begin_ns) / 1e9;
    if (took > TIMEOUT + 1 || (getenv("BANYAN_WAIT") != NULL && took < TIMEOUT))
        return member_wrong(member, "took %.1f s to see it", took);
    if (status != wanted)
        return member_wrong(member, "%s (%d): %s", banyan_strerror(status), status, banyan_last_error());
    if (strstr(banyan_last_error(), said) == NULL)
        return member_wrong(member, "does not say '%s': %s", said, banyan_last_error());
    if (banyan_comm_async_error(member->comm) != wanted)
        return member_wrong(member, "the communicator has another error");
    if (banyan_allreduce(member->comm, send_buffer, recv_buffer, 1, BANYAN_F32, BANYAN_SUM) != BANYAN_ESTATE)
        return member_wrong(member, "a failed communicator takes another operation");
    return 0;
}

/* The culprit takes part for a while, then `signal` hits it. */
static int suffer(struct team_member *member)
{
    int signal_number = *(const int *)member->argument;
    int wrong = member_open(member);

    if (wrong)
        return wrong;
    if (member->rank == CULPRIT) {
        for (int i = 0; i < 50; i++)
            banyan_allreduce(member->comm, send_buffer, recv_buffer, 1u << (i % 17), BANYAN_F32, BANYAN_SUM);
        kill(getpid(), signal_number);
    }
    wrong = until_it_fails(member, signal_number == SIGKILL ? BANYAN_EIO : BANYAN_ETIMEDOUT,
                           "rank 1 (127.0.0.1)");
    member_close(member);
    return wrong;
}

static void expect_right_but_culprit(const struct team *team)
{
    for (uint32_t rank = 0; rank < team->count; rank++)
        if (rank != CULPRIT && (!WIFEXITED(team->status[rank]) || WEXITSTATUS(team->status[rank]) != 0))
            fail_msg("rank %u of %u: status %x", rank, team->count, (unsigned)team->status[rank]);
}

static void a_killed_rank_is_named_by_all_others_in_time(void **state)
{
    int signal_number = SIGKILL;

    (void)state;
    for (uint32_t count = 2; count <= 9; count += count < 4 ? 1 : 5) {
        struct team team;

        team_run(&team, count, suffer, &signal_number);
        assert_true(WIFSIGNALED(team.status[CULPRIT]));
        expect_right_but_culprit(&team);
    }
}

/* Another process kills the stopped member after the others have ended, so that the test can end.
 * On a busy machine they need some seconds to meet. */
static int suffer_stop(struct team_member *member)
{
    int wrong;

    if (member->rank == CULPRIT) {
        pid_t self = getpid(), waker = fork();

        if (waker == 0) {
            sleep((unsigned)TIMEOUT + 8);
            kill(self, SIGKILL);
            _exit(0);
        }
    }
    wrong = suffer(member);
    return wrong;
}

static void a_stopped_rank_is_named_by_all_others_in_time(void **state)
{
    int signal_number = SIGSTOP;
    struct team team;

    (void)state;
    team_run(&team, 3, suffer_stop, &signal_number);
    expect_right_but_culprit(&team);
}

/* In a ring each rank waits for its predecessor. Rank 4 times out first: it waits for rank 3, which
 * is itself delayed. */
static int suffer_impatiently(struct team_member *member)
{
    setenv("BANYAN_FALLBACK", "ring", 1);
    if (member->rank == 4)
        setenv("BANYAN_TIMEOUT", "1.5", 1);
    return suffer_stop(member);
}

static void the_first_to_lose_patience_names_the_stopped_rank_and_not_its_neighbour(void **state)
{
    int signal_number = SIGSTOP;
    struct team team;

    (void)state;
    team_run(&team, 6, suffer_impatiently, &signal_number);
    expect_right_but_culprit(&team);
}

/* A rank that computes for longer than BANYAN_TIMEOUT before its next call. */
static int compute(struct team_member *member)
{
    int wrong;

    setenv("BANYAN_TIMEOUT", "0.5", 1);
    setenv("BANYAN_WAIT", "30", 1);
    wrong = member_open(member);
    for (int i = 0; i < 3 && !wrong; i++) {
        if (member->rank == CULPRIT && i > 0)
            usleep(2000000);
        if (banyan_allreduce(member->comm, send_buffer, recv_buffer, 1u << 16, BANYAN_F32, BANYAN_SUM) !=
            BANYAN_OK)
            wrong = member_wrong(member, "call %d: %s", i, banyan_last_error());
    }
    member_close(member);
    return wrong;
}

static void a_rank_that_computes_for_long_is_waited_for(void **state)
{
    (void)state;
    team_must(2, compute, NULL);
    team_must(5, compute, NULL);
}

/* Its machine acknowledges questions, so the limit is BANYAN_WAIT. */
static int suffer_patiently(struct team_member *member)
{
    setenv("BANYAN_TIMEOUT", "0.5", 1);
    setenv("BANYAN_WAIT", "2", 1);
    return suffer_stop(member);
}

static void a_stopped_rank_is_named_after_the_longer_limit(void **state)
{
    int signal_number = SIGSTOP;
    struct team team;

    (void)state;
    team_run(&team, 3, suffer_patiently, &signal_number);
    expect_right_but_culprit(&team);
}

static int disagree(struct team_member *member)
{
    int wrong = member_open(member);
    banyan_status_t status;

    if (wrong)
        return wrong;
    status = member->rank == CULPRIT
                 ? banyan_allreduce(member->comm, send_buffer, recv_buffer, 5000, BANYAN_F32, BANYAN_MAX)
                 : banyan_allreduce(member->comm, send_buffer, recv_buffer, 5000, BANYAN_F32, BANYAN_SUM);
    if (status != BANYAN_EMISMATCH)
        wrong = member_wrong(member, "%s: %s", banyan_strerror(status), banyan_last_error());
    member_close(member);
    return wrong;
}

static void ranks_in_different_operations_are_told(void **state)
{
    (void)state;
    team_must(2, disagree, NULL);
    team_must(5, disagree, NULL);
}

static int abort_one(struct team_member *member)
{
    int wrong = member_open(member);

    if (wrong)
        return wrong;
    if (member->rank == CULPRIT) {
        struct banyan_request *request;
        int done = 0;

        usleep(200000);
        banyan_allreduce_init(member->comm, send_buffer, recv_buffer, 9, BANYAN_F32, BANYAN_SUM, &request);
        banyan_post(request);
        banyan_abort(member->comm);
        while (!done)
            if (banyan_test(request, &done) == BANYAN_EABORTED)
                break;
        wrong = banyan_comm_async_error(member->comm) == BANYAN_EABORTED
                    ? 0
                    : member_wrong(member, "not aborted");
    } else {
        wrong = until_it_fails(member, BANYAN_EABORTED, "rank 1 (127.0.0.1)");
    }
    member_close(member);
    return wrong;
}

static void an_abort_ends_the_others_too(void **state)
{
    (void)state;
    team_must(4, abort_one, NULL);
}

/* ---- the meeting */

static int stay_away(struct team_member *member)
{
    int wrong = 0;

    if (member->rank == 2)
        return 0;
    if (banyan_init(NULL, &member->context) != BANYAN_OK)
        return member_wrong(member, "%s", banyan_last_error());
    if (banyan_comm_create(member->context, 0, &member->comm) == BANYAN_OK)
        wrong = member_wrong(member, "there is a communicator without rank 2");
    else if (strstr(banyan_last_error(),
                    member->rank == 0 ? "have not joined: 2" : "which still waits for rank 2 of 4") == NULL)
        wrong = member_wrong(member, "does not say who is missing: %s", banyan_last_error());
    member_close(member);
    return wrong;
}

static void a_rank_that_does_not_come_is_named(void **state)
{
    (void)state;
    team_must(4, stay_away, NULL);
}

/* Rank 0 starts a foreign process, which connects first and sends nothing, or half of the
 * greeting. */
static int bring_a_stranger(struct team_member *member)
{
    const char *port = getenv("MASTER_PORT");
    pid_t stranger = 0;
    int wrong;

    if (member->rank == 0) {
        stranger = fork();
        if (stranger == 0) {
            uint64_t end_ns = by_clock_ns() + (uint64_t)(2 * TIMEOUT * 1e9);
            int silent = by_peer_connect(INADDR_LOOPBACK, (uint16_t)atoi(port), end_ns);
            int halting = by_peer_connect(INADDR_LOOPBACK, (uint16_t)atoi(port), end_ns);

            (void)!write(halting, "by", 2);
            alarm(10); /* if nothing ends it */
            pause();
            _exit(silent < 0 || halting < 0);
        }
    } else {
        usleep(300000);
    }
    wrong = member_open(member);
    member_close(member);
    if (stranger > 0) {
        kill(stranger, SIGKILL);
        waitpid(stranger, NULL, 0);
    }
    return wrong;
}

static void strangers_who_say_nothing_hold_up_no_meeting(void **state)
{
    (void)state;
    team_must(3, bring_a_stranger, NULL);
}

static int come_twice(struct team_member *member)
{
    int wrong = 0;

    if (member->rank == 2)
        setenv("RANK", "1", 1);
    if (banyan_init(NULL, &member->context) != BANYAN_OK)
        return member_wrong(member, "%s", banyan_last_error());
    if (banyan_comm_create(member->context, 0, &member->comm) == BANYAN_OK)
        wrong = member_wrong(member, "there is a communicator with rank 1 twice");
    else if (member->rank == 0 && strstr(banyan_last_error(), "that rank has joined already") == NULL)
        wrong = member_wrong(member, "does not say why: %s", banyan_last_error());
    member_close(member);
    return wrong;
}

static void a_rank_that_comes_twice_is_refused(void **state)
{
    (void)state;
    team_must(3, come_twice, NULL);
}

static void a_meeting_that_is_half_described_is_refused(void **state)
{
    static const struct {
        const char *rank, *size, *host, *port, *said;
    } cases[] = {
        {NULL, "2", "127.0.0.1", "29500", "RANK is not set"},
        {"0", NULL, "127.0.0.1", "29500", "WORLD_SIZE is not set"},
        {"0", "2", NULL, "29500", "MASTER_ADDR is not set"},
        {"0", "2", "127.0.0.1", NULL, "MASTER_PORT is not set"},
        {"2", "2", "127.0.0.1", "29500", "RANK is '2'; use a whole number from 0 to 1"},
        {"-1", "2", "127.0.0.1", "29500", "RANK is '-1'"},
        {"0", "0", "127.0.0.1", "29500", "WORLD_SIZE is '0'; use a whole number from 1 to 1000"},
        {"0", "1001", "127.0.0.1", "29500", "WORLD_SIZE is '1001'"},
        {"0", "2", "127.0.0.1", "65536", "MASTER_PORT is '65536'"},
        {"0", "2x", "127.0.0.1", "29500", "WORLD_SIZE is '2x'"},
    };
    static const char *const names[] = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const values[] = {cases[i].rank, cases[i].size, cases[i].host, cases[i].port};
        struct banyan_context *context;

        for (size_t n = 0; n < 4; n++)
            if (values[n] != NULL)
                setenv(names[n], values[n], 1);
            else
                unsetenv(names[n]);
        assert_int_equal(banyan_init(NULL, &context), BANYAN_EINVAL);
        if (strstr(banyan_last_error(), cases[i].said) == NULL)
            fail_msg("does not say '%s': %s", cases[i].said, banyan_last_error());
    }
    for (size_t n = 0; n < 4; n++)
        unsetenv(names[n]);
}

static void settings_that_leave_no_way_are_refused(void **state)
{
    struct banyan_context *context;

    (void)state;
    assert_int_equal(banyan_init(NULL, &context), BANYAN_EINVAL);
    assert_non_null(strstr(banyan_last_error(), "or RANK, WORLD_SIZE"));
    rig_set("BANYAN_OFFLOAD", "off");
    assert_int_equal(banyan_init(NULL, &context), BANYAN_EINVAL);
    assert_non_null(strstr(banyan_last_error(), "no setting states where ranks meet"));
    rig_set("BANYAN_OFFLOAD", "never");
    assert_int_equal(banyan_init(NULL, &context), BANYAN_EINVAL);
    assert_non_null(strstr(banyan_last_error(), "use auto or off"));
    rig_set("BANYAN_OFFLOAD", NULL);
}

static int choose_badly(struct team_member *member)
{
    setenv("BANYAN_FALLBACK", "tree", 1);
    if (banyan_init(NULL, &member->context) != BANYAN_OK)
        return member_wrong(member, "%s", banyan_last_error());
    if (banyan_comm_create(member->context, 0, &member->comm) != BANYAN_EINVAL ||
        strstr(banyan_last_error(), "use circulant, ring, rhd or off") == NULL)
        return member_wrong(member, "%s", banyan_last_error());
    member_close(member);
    setenv("BANYAN_FALLBACK", "ring", 1);
    setenv("BANYAN_NEAR", "here", 1);
    if (banyan_init(NULL, &member->context) != BANYAN_OK ||
        banyan_comm_create(member->context, 0, &member->comm) != BANYAN_EINVAL ||
        strstr(banyan_last_error(), "BANYAN_NEAR is 'here' (environment); use memory, pairs or tcp") == NULL)
        return member_wrong(member, "%s", banyan_last_error());
    member_close(member);
    return 0;
}

static void an_unknown_schedule_or_way_is_refused(void **state)
{
    (void)state;
    team_must(1, choose_badly, NULL);
}

/* What rank 0 writes to stderr. */
static int speak(struct team_member *member)
{
    char text[1000] = "", said[240];
    FILE *caught = tmpfile();
    int wrong;

    setenv("BANYAN_LOG", "1", 1);
    setenv("BANYAN_FALLBACK", "ring", 1);
    snprintf(
        said, sizeof(said),
        "not offloaded: BANYAN_TABLE is not set; all collectives run %s, by ring schedules",
        strcmp(getenv("BANYAN_NEAR"), "memory") == 0
            ? "through memory that all ranks share on this host, all-to-all, scatter and gather between them"
            : "between hosts over TCP");
    if (caught == NULL)
        return member_wrong(member, "no file");
    dup2(fileno(caught), 2);
    wrong = member_open(member);
    rewind(caught);
    text[fread(text, 1, sizeof(text) - 1, caught)] = 0;
    if (member->rank > 0)
        wrong |= text[0] != 0;
    else
        wrong |= strstr(text, said) == NULL || strchr(text, '\n') != text + strlen(text) - 1;
    member_close(member);
    return wrong;
}

static void a_communicator_says_in_one_line_that_it_is_not_offloaded(void **state)
{
    (void)state;
    team_must(2, speak, NULL);
}

/* Each other rank opens two connections to a rank (data and control), perhaps while that rank is
 * busy. */
static void a_listener_has_room_for_connections_that_are_not_taken_yet(void **state)
{
    int fds[64];
    struct sockaddr_in own = {0};
    socklen_t bytes = sizeof(own);
    int listener = by_peer_listen(INADDR_LOOPBACK, 0);
    uint64_t deadline_ns = by_clock_ns() + UINT64_C(900000000); /* below a SYN's first retransmission */

    (void)state;
    assert_true(listener >= 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&own, &bytes), 0);
    for (unsigned i = 0; i < 64; i++) {
        fds[i] = by_peer_connect(INADDR_LOOPBACK, ntohs(own.sin_port), deadline_ns);
        assert_true(fds[i] >= 0);
    }
    for (unsigned i = 0; i < 64; i++)
        close(fds[i]);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest meetings[] = {
        cmocka_unit_test(a_meeting_that_is_half_described_is_refused),
        cmocka_unit_test(settings_that_leave_no_way_are_refused),
        cmocka_unit_test(an_unknown_schedule_or_way_is_refused),
        cmocka_unit_test(a_listener_has_room_for_connections_that_are_not_taken_yet),
        cmocka_unit_test(a_rank_that_does_not_come_is_named),
        cmocka_unit_test(a_rank_that_comes_twice_is_refused),
        cmocka_unit_test(strangers_who_say_nothing_hold_up_no_meeting),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_rank_is_named_by_all_others_in_time),
        cmocka_unit_test(a_stopped_rank_is_named_by_all_others_in_time),
        cmocka_unit_test(the_first_to_lose_patience_names_the_stopped_rank_and_not_its_neighbour),
        cmocka_unit_test(a_rank_that_computes_for_long_is_waited_for),
        cmocka_unit_test(a_stopped_rank_is_named_after_the_longer_limit),
        cmocka_unit_test(ranks_in_different_operations_are_told),
        cmocka_unit_test(an_abort_ends_the_others_too),
        cmocka_unit_test(a_communicator_says_in_one_line_that_it_is_not_offloaded),
    };

    int failed;

    setenv("HOME", "/nonexistent", 1);
    setenv("BANYAN_TIMEOUT", "2", 1);
    failed = cmocka_run_group_tests_name("meetings", meetings, NULL, NULL) +
             cmocka_run_group_tests_name("ends", tests, NULL, NULL);
    setenv("BANYAN_NEAR", "memory", 1);
    return failed + cmocka_run_group_tests_name("ends where all ranks share memory", tests, NULL, NULL);
}

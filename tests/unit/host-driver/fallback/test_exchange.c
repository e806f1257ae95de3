/*
 * What a rank has sent arrives though it computes, ends, or another is stopped, whatever carries messages;
 * and all ranks take the same. Each rank is a process.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-driver/clock.h"
#include "tests/unit/host-driver/fallback/team.h"

#define TIMEOUT  2.0 /* seconds, of these tests */
#define CULPRIT  1u
#define ELEMENTS 300000u

static float buffer[ELEMENTS];

/* What was sent arrives though its sender computes, and though it ends while a receiver computes. Over UDP
 * packets are lost on the way. */
static int compute_and_leave(struct member *member)
{
    useconds_t pause = (useconds_t)(0.6 * TIMEOUT * 1e6);
    int wrong;

    setenv("BANYAN_LOSS", "0.1", 1);
    wrong = member_open(member);
    for (int i = 0; i < 20 && !wrong; i++) {
        uint64_t begin_ns = by_clock_ns(), count = i == 19 ? 1000 : ELEMENTS;
        double seconds;

        buffer[count - 1] = member->rank == CULPRIT ? (float)i : -1;
        if (banyan_broadcast(member->comm, buffer, count, BANYAN_F32, CULPRIT) != BANYAN_OK ||
            buffer[count - 1] != (float)i)
            wrong = member_wrong(member, "broadcast %d: %s", i, banyan_last_error());
        seconds = (double)(by_clock_ns() - begin_ns) / 1e9;
        if (!wrong && i == 15 && seconds > TIMEOUT / 2)
            wrong = member_wrong(member, "broadcast %d waited for its root: %.2f s", i, seconds);
        if (member->rank == CULPRIT ? i == 15 : i == 18)
            usleep(pause);
    }
    member_close(member);
    return wrong;
}

static void what_was_sent_arrives_though_its_sender_computes_or_ends(void **state)
{
    (void)state;
    team_must(3, compute_and_leave, NULL);
}

static int take_another_way(struct member *member)
{
    setenv("BANYAN_EXCHANGE", member->rank == CULPRIT ? "tcp" : "udp", 1);
    if (banyan_init(NULL, &member->context) != BANYAN_OK)
        return member_wrong(member, "%s", banyan_last_error());
    if (banyan_comm_create(member->context, 0, &member->comm) == BANYAN_OK)
        return member_wrong(member, "there is a communicator over both");
    if (member->rank == 0 && strstr(banyan_last_error(), "BANYAN_EXCHANGE must be the same") == NULL)
        return member_wrong(member, "does not say why: %s", banyan_last_error());
    member_close(member);
    return 0;
}

static void ranks_that_send_over_different_ways_are_told(void **state)
{
    (void)state;
    team_must(3, take_another_way, NULL);
}

/* The others have nothing to do any more but to tell the stopped one what they have. */
static int end_beside_a_stopped_one(struct member *member)
{
    int wrong = member_open(member);
    uint64_t begin_ns;

    if (wrong)
        return wrong;
    if (member->rank == CULPRIT) {
        pid_t self = getpid(), waker = fork();

        if (waker == 0) {
            usleep((useconds_t)((TIMEOUT + 2) * 1e6));
            kill(self, SIGKILL);
            _exit(0);
        }
        kill(self, SIGSTOP);
    }
    usleep(200000);
    if (member->rank == 0 && banyan_broadcast(member->comm, buffer, 10, BANYAN_F32, 0) != BANYAN_OK)
        wrong = member_wrong(member, "broadcast: %s", banyan_last_error());
    begin_ns = by_clock_ns();
    member_close(member);
    if ((double)(by_clock_ns() - begin_ns) / 1e9 > TIMEOUT + 1)
        wrong = member_wrong(member, "took %.1f s to end", (double)(by_clock_ns() - begin_ns) / 1e9);
    return wrong;
}

static void a_stopped_rank_does_not_keep_others_from_ending(void **state)
{
    struct team team;

    (void)state;
    team_run(&team, 2, end_beside_a_stopped_one, NULL);
    assert_true(WIFEXITED(team.status[0]) && WEXITSTATUS(team.status[0]) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sent_arrives_though_its_sender_computes_or_ends),
        cmocka_unit_test(a_stopped_rank_does_not_keep_others_from_ending),
    };
    const struct CMUnitTest different[] = {
        cmocka_unit_test(ranks_that_send_over_different_ways_are_told),
    };

    setenv("BANYAN_TIMEOUT", "2", 1);
    return cmocka_run_group_tests_name("over tcp", tests, team_tcp, NULL) +
           cmocka_run_group_tests_name("over udp", tests, team_udp, NULL) +
           cmocka_run_group_tests_name("over both", different, NULL, NULL);
}

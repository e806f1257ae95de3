/*
 * A rank's data arrive although the rank computes or ends, or another rank is stopped, over every
 * transport; and all ranks choose the same transport. Each rank is a process.
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
#include "host-driver/fallback/mesh.h"
#include "offload/base/errors.h"
#include "tests/unit/host-driver/fallback/team.h"

#define TIMEOUT  2.0 /* seconds, in these tests */
#define CULPRIT  1u
#define ELEMENTS 300000u
#define MANY     8000000u /* more than the sockets' buffers hold */

static float buffer[ELEMENTS], wide[MANY];

/* A message arrives while its sender computes, and after its sender has ended. */
static int compute_and_leave(struct team_member *member)
{
    useconds_t pause = (useconds_t)(0.6 * TIMEOUT * 1e6);
    int wrong = member_open(member);

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

/* Rank 0 ends during an operation that rank 1 begins late: rank 0 does not wait, and rank 1 gets an
 * error. */
static int leave_in_the_midst(struct team_member *member)
{
    struct banyan_request *request;
    int wrong = member_open(member), done = 0;
    uint64_t begin_ns;

    if (wrong)
        return wrong;
    if (member->rank == CULPRIT) {
        usleep((useconds_t)(0.7 * TIMEOUT * 1e6));
        if (banyan_broadcast(member->comm, wide, MANY, BANYAN_F32, 0) != BANYAN_EABORTED ||
            strstr(banyan_last_error(), "rank 0 (127.0.0.1)") == NULL)
            wrong = member_wrong(member, "is not told: %s", banyan_last_error());
        member_close(member);
        return wrong;
    }
    banyan_broadcast_init(member->comm, wide, MANY, BANYAN_F32, 0, &request);
    banyan_post(request);
    for (int i = 0; i < 100; i++)
        banyan_test(request, &done);
    begin_ns = by_clock_ns();
    member_close(member);
    if ((double)(by_clock_ns() - begin_ns) / 1e9 > TIMEOUT / 4)
        wrong = member_wrong(member, "took %.1f s to end", (double)(by_clock_ns() - begin_ns) / 1e9);
    return done ? member_wrong(member, "its broadcast has ended") : wrong;
}

static void who_leaves_in_the_midst_of_an_operation_does_so_at_once_and_says_it(void **state)
{
    (void)state;
    team_must(2, leave_in_the_midst, NULL);
}

/* The other ranks have finished, except that they must notify the stopped rank. */
static int end_beside_a_stopped_one(struct team_member *member)
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

/* Rank 0, which receives a failure notice with an invalid error. */
static int hear_nonsense(const struct team_member *member, struct by_host_mesh *mesh, uint64_t deadline_ns)
{
    struct by_mesh_fault fault = {0};

    while (fault.error == 0 && by_clock_ns() < deadline_ns)
        by_mesh_listen(mesh, &fault);
    return fault.error == BY_EIO && fault.rank == CULPRIT ? 0 : member_wrong(member, "error %d", fault.error);
}

/* Two ranks with a mesh; rank 1 sends an invalid notice and ends. */
static int mesh_and_end(struct team_member *member)
{
    const struct by_mesh_fault nonsense = {.error = 5, .rank = CULPRIT};
    uint64_t deadline_ns = by_clock_ns() + (uint64_t)(TIMEOUT * 1e9);
    struct by_circulant circulant;
    struct by_meeting meeting;
    struct by_peers peers;
    struct by_host_mesh mesh;
    int wrong = 0;

    if (by_meeting_read(&meeting) != 0 || by_peers_meet(&peers, &meeting, 1, deadline_ns) != 0 ||
        !by_circulant_init(&circulant, member->count) ||
        by_mesh_open(&mesh, &circulant, &peers, BY_REACH_ALL, 1, false, deadline_ns) != 0)
        return member_wrong(member, "%s", banyan_last_error());
    if (member->rank != CULPRIT)
        wrong = hear_nonsense(member, &mesh, deadline_ns);
    else
        by_mesh_warn(&mesh, &nonsense);
    by_mesh_close(&mesh);
    by_peers_close(&peers);
    return wrong;
}

static void a_notice_of_a_failure_is_one_whatever_its_error(void **state)
{
    (void)state;
    team_must(2, mesh_and_end, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sent_arrives_though_its_sender_computes_or_ends),
        cmocka_unit_test(a_stopped_rank_does_not_keep_others_from_ending),
        cmocka_unit_test(who_leaves_in_the_midst_of_an_operation_does_so_at_once_and_says_it),
        cmocka_unit_test(a_notice_of_a_failure_is_one_whatever_its_error),
    };

    setenv("BANYAN_TIMEOUT", "2", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

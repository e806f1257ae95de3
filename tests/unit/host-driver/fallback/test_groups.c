/*
 * Communicators of some ranks of another one whose ranks all run on one host: they share its
 * memory, without a table, a switch or a controller. Each rank is a process.
 */
#include <dirent.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-driver/clock.h"
#include "tests/unit/host-driver/fallback/team.h"

#define ELEMENTS 40000u /* several slices */
#define TIMEOUT  1.0    /* seconds, in tests of failures */
#define LOOPS    2000u
#define SOON     0.5 /* seconds in which a rank that has ended is found */

static int32_t in_buffer[ELEMENTS * 8], out_buffer[ELEMENTS * 8];

static int32_t value(uint32_t rank, uint64_t at)
{
    return (int32_t)((rank + 1) * 1000003u + (uint32_t)at * 7919u);
}

static int32_t sum_at(const uint32_t *of, uint32_t count, uint64_t at)
{
    uint32_t sum = 0;

    for (uint32_t rank = 0; rank < count; rank++)
        sum += (uint32_t)value(of[rank], at);
    return (int32_t)sum;
}

static int failed(const struct team_member *member, const char *what)
{
    return member_wrong(member, "%s: %s", what, banyan_last_error());
}

/* Opens the member, and a copy of its communicator. */
static int open_copy(struct team_member *member, struct banyan_comm **copy)
{
    int wrong = member_open(member);

    if (wrong == 0 && banyan_comm_dup(member->comm, copy) != BANYAN_OK)
        wrong = failed(member, "a copy");
    return wrong;
}

static int compare(const struct team_member *member, const char *what, int32_t got, int32_t wanted,
                   uint64_t at)
{
    return got == wanted ? 0
                         : member_wrong(member, "%s: element %llu is wrong", what, (unsigned long long)at);
}

/* Runs all-to-all, scatter and gather with shares of `count` elements. */
static int check_shares(const struct team_member *member, struct banyan_comm *comm, const uint32_t *of,
                        uint32_t size, uint64_t count)
{
    uint32_t own = banyan_comm_rank(comm);
    int wrong = 0;

    for (uint64_t i = 0; i < count * size; i++)
        in_buffer[i] = value(member->rank, i);
    if (banyan_alltoall(comm, in_buffer, out_buffer, count, BANYAN_I32) != BANYAN_OK)
        return failed(member, "alltoall");
    for (uint64_t i = 0; i < count * size; i++)
        wrong += compare(member, "alltoall", out_buffer[i], value(of[i / count], own * count + i % count), i);
    for (uint32_t root = 0; root < size; root++) {
        if (banyan_scatter(comm, own == root ? in_buffer : NULL, out_buffer, count, BANYAN_I32, root) !=
            BANYAN_OK)
            return failed(member, "scatter");
        for (uint64_t i = 0; i < count; i++)
            wrong += compare(member, "scatter", out_buffer[i], value(of[root], own * count + i), i);
        if (banyan_gather(comm, in_buffer, own == root ? out_buffer : NULL, count, BANYAN_I32, root) !=
            BANYAN_OK)
            return failed(member, "gather");
        for (uint64_t i = 0; i < count * size && own == root; i++)
            wrong += compare(member, "gather", out_buffer[i], value(of[i / count], i % count), i);
    }
    return wrong;
}

/* Runs every collective of `count` elements on a communicator of the world's ranks `of`. */
static int check_size(const struct team_member *member, struct banyan_comm *comm, const uint32_t *of,
                      uint32_t size, uint64_t count)
{
    uint32_t own = banyan_comm_rank(comm);
    int wrong = 0;

    for (uint64_t i = 0; i < count * size; i++)
        in_buffer[i] = value(member->rank, i);
    if (banyan_allreduce(comm, in_buffer, out_buffer, count, BANYAN_I32, BANYAN_SUM) != BANYAN_OK)
        return failed(member, "allreduce");
    for (uint64_t i = 0; i < count; i++)
        wrong += compare(member, "allreduce", out_buffer[i], sum_at(of, size, i), i);
    if (banyan_allgather(comm, in_buffer, out_buffer, count, BANYAN_I32) != BANYAN_OK)
        return failed(member, "allgather");
    for (uint64_t i = 0; i < count * size; i++)
        wrong += compare(member, "allgather", out_buffer[i], value(of[i / count], i % count), i);
    if (banyan_reduce_scatter(comm, in_buffer, out_buffer, count, BANYAN_I32, BANYAN_SUM) != BANYAN_OK)
        return failed(member, "reduce-scatter");
    for (uint64_t i = 0; i < count; i++)
        wrong += compare(member, "reduce-scatter", out_buffer[i], sum_at(of, size, own * count + i), i);
    for (uint32_t root = 0; root < size; root++) {
        memcpy(out_buffer, in_buffer, count * sizeof(*in_buffer));
        if (banyan_broadcast(comm, out_buffer, count, BANYAN_I32, root) != BANYAN_OK)
            return failed(member, "broadcast");
        for (uint64_t i = 0; i < count; i++)
            wrong += compare(member, "broadcast", out_buffer[i], value(of[root], i), i);
        if (banyan_reduce(comm, in_buffer, out_buffer, count, BANYAN_I32, BANYAN_SUM, root) != BANYAN_OK)
            return failed(member, "reduce");
        for (uint64_t i = 0; i < count && own == root; i++)
            wrong += compare(member, "reduce", out_buffer[i], sum_at(of, size, i), i);
    }
    if (banyan_barrier(comm) != BANYAN_OK)
        return failed(member, "barrier");
    return wrong + check_shares(member, comm, of, size, count);
}

static int check_all(const struct team_member *member, const char *name, struct banyan_comm *comm,
                     const uint32_t *of, uint32_t size)
{
    uint64_t counts[TEAM_MAX];
    int wrong = 0;

    if (comm == NULL)
        return failed(member, name);
    if (banyan_comm_size(comm) != size || of[banyan_comm_rank(comm)] != member->rank)
        return member_wrong(member, "%s: its place is wrong", name);
    if (strcmp(banyan_comm_transport(comm), "host") != 0)
        return member_wrong(member, "%s: its transport is %s", name, banyan_comm_transport(comm));
    for (uint64_t count = 1; count <= ELEMENTS; count *= 200)
        wrong += check_size(member, comm, of, size, count);
    for (uint32_t r = 0; r < size; r++)
        counts[r] = 1;
    if (banyan_alltoallv(comm, in_buffer, counts, NULL, out_buffer, counts, NULL, BANYAN_I32) !=
            BANYAN_EUNSUPPORTED ||
        strstr(banyan_last_error(), "shares of equal size") == NULL)
        return member_wrong(member, "%s: an all-to-all with counts: %s", name, banyan_last_error());
    return wrong;
}

/* ---- every shape */

static int make_shapes(struct team_member *member)
{
    uint32_t own = member->rank, n = member->count, half = n / 2, of[8], size = 0;
    struct banyan_comm *parts = NULL, *back = NULL, *copy = NULL, *most = NULL, *pair = NULL, *one = NULL;
    int wrong = member_open(member);

    if (wrong)
        return wrong;
    if (banyan_comm_split(member->comm, own < half ? 1 : 0, 0, &parts) != BANYAN_OK ||
        banyan_comm_split(member->comm, 3, -(int)own, &back) != BANYAN_OK ||
        banyan_comm_dup(member->comm, &copy) != BANYAN_OK ||
        banyan_comm_split(member->comm, own == 0 ? BANYAN_UNDEFINED : 0, 0, &most) != BANYAN_OK ||
        banyan_comm_split(member->comm, (int)own, 0, &one) != BANYAN_OK)
        return failed(member, "a split");
    for (uint32_t r = own < half ? 0 : half; r < (own < half ? half : n); r++)
        of[size++] = r;
    wrong += check_all(member, "halves", parts, of, size);
    for (uint32_t r = 0; r < n; r++)
        of[r] = n - 1 - r;
    wrong += check_all(member, "reversed order", back, of, n);
    /* of a communicator that has no table either */
    if (banyan_comm_split(back, own < 2 ? 0 : BANYAN_UNDEFINED, 0, &pair) != BANYAN_OK)
        return failed(member, "a split of a split");
    of[0] = 1, of[1] = 0;
    if (own < 2)
        wrong += check_all(member, "split of a split", pair, of, 2);
    for (uint32_t r = 0; r < n; r++)
        of[r] = r;
    wrong += check_all(member, "a copy", copy, of, n);
    if (own > 0)
        wrong += check_all(member, "all but one", most, of + 1, n - 1);
    wrong += check_all(member, "alone", one, of + own, 1);
    for (struct banyan_comm **comm = (struct banyan_comm *[]){parts, back, copy, most, pair, one},
                            **end = comm + 6;
         comm < end; comm++)
        if (*comm != NULL && banyan_comm_destroy(*comm) != BANYAN_OK)
            wrong += failed(member, "free");
    member_close(member);
    return wrong;
}

static void groups_of_one_host_have_right_results(void **state)
{
    (void)state;
    for (uint32_t count = 2; count <= 8; count += count < 5 ? 1 : 3)
        team_must(count, make_shapes, NULL);
}

/* ---- several calls at once */

#define AT_ONCE 20

static int call_at_once(struct team_member *member)
{
    static int32_t in[2][AT_ONCE][1000], out[2][AT_ONCE][1000];
    struct banyan_request *request[2][AT_ONCE];
    struct banyan_comm *comm[2] = {NULL, NULL};
    uint32_t of[8];
    int wrong = member_open(member);

    if (wrong)
        return wrong;
    for (uint32_t r = 0; r < member->count; r++)
        of[r] = r;
    if (banyan_comm_dup(member->comm, &comm[0]) != BANYAN_OK ||
        banyan_comm_dup(member->comm, &comm[1]) != BANYAN_OK)
        return failed(member, "a copy");
    for (uint32_t k = 0; k < 2; k++) { /* half of the ranks begin with the second */
        uint32_t c = (k + member->rank) % 2;

        for (uint32_t call = 0; call < AT_ONCE; call++) {
            for (uint64_t i = 0; i < 1000; i++)
                in[c][call][i] = value(member->rank, i + call + c);
            if (banyan_allreduce_init(comm[c], in[c][call], out[c][call], 1000, BANYAN_I32, BANYAN_SUM,
                                      &request[c][call]) != BANYAN_OK ||
                banyan_post(request[c][call]) != BANYAN_OK)
                return failed(member, "a post");
        }
    }
    for (uint32_t c = 0; c < 2; c++)
        for (uint32_t call = 0; call < AT_ONCE; call++) {
            if (banyan_wait(request[c][call]) != BANYAN_OK)
                return failed(member, "a wait");
            for (uint64_t i = 0; i < 1000; i++)
                wrong +=
                    compare(member, "at once", out[c][call][i], sum_at(of, member->count, i + call + c), i);
        }
    if (banyan_comm_destroy(comm[0]) != BANYAN_OK || banyan_comm_destroy(comm[1]) != BANYAN_OK)
        wrong += failed(member, "free");
    member_close(member);
    return wrong;
}

static void calls_of_two_groups_run_at_once(void **state)
{
    (void)state;
    team_must(4, call_at_once, NULL);
}

/* ---- made and freed */

static uint32_t count_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    uint32_t count = 0;

    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count;
}

/* Returns the pages of this process. */
static long count_pages(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%ld", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages;
}

static int make_and_free(struct team_member *member)
{
    uint32_t files = 0, of[8];
    long pages = 0;
    int wrong = member_open(member);

    for (uint32_t r = 0; r < member->count; r++)
        of[r] = r;
    for (uint32_t i = 0; i < LOOPS && wrong == 0; i++) {
        struct banyan_comm *comm;

        if (i == LOOPS / 10) {
            files = count_files();
            pages = count_pages();
        }
        if (banyan_comm_dup(member->comm, &comm) != BANYAN_OK)
            return failed(member, "a copy");
        if (i % 100 == 0)
            wrong += check_size(member, comm, of, member->count, 1 + i);
        if (banyan_comm_destroy(comm) != BANYAN_OK)
            return failed(member, "free");
    }
    if (wrong == 0 && count_files() != files)
        wrong = member_wrong(member, "%u descriptors, %u before", count_files(), files);
    if (wrong == 0 && count_pages() > pages + 256)
        wrong = member_wrong(member, "%ld pages, %ld before", count_pages(), pages);
    member_close(member);
    return wrong;
}

static void groups_made_and_freed_leave_nothing(void **state)
{
    (void)state;
    team_must(3, make_and_free, NULL);
}

/* ---- ranks that fail */

#define CULPRIT 1u

/* Calls until one fails; `text` must be in the error. */
static int until_it_fails(const struct team_member *member, struct banyan_comm *comm, banyan_status_t wanted,
                          const char *text, double limit)
{
    uint64_t begin_ns = by_clock_ns();
    banyan_status_t status = BANYAN_OK;

    while (status == BANYAN_OK && by_clock_ns() - begin_ns < UINT64_C(10000000000)) {
        begin_ns = by_clock_ns();
        status = banyan_allreduce(comm, in_buffer, out_buffer, 100, BANYAN_I32, BANYAN_SUM);
    }
    if (status != wanted || strstr(banyan_last_error(), text) == NULL)
        return member_wrong(member, "status %d instead of %d and '%s': %s", (int)status, (int)wanted, text,
                            banyan_last_error());
    if ((double)(by_clock_ns() - begin_ns) / 1e9 > limit)
        return member_wrong(member, "the error took %.1f s", (double)(by_clock_ns() - begin_ns) / 1e9);
    return 0;
}

/* Rank CULPRIT of the group, not the first, is hit by a signal; its number in the world differs. */
static int suffer(struct team_member *member)
{
    int signal_number = *(const int *)member->argument;
    struct banyan_comm *comm;
    int wrong = member_open(member);

    if (wrong)
        return wrong;
    if (banyan_comm_split(member->comm, 0, -(int)member->rank, &comm) != BANYAN_OK)
        return failed(member, "a split");
    for (int i = 0; i < 20; i++)
        if (banyan_barrier(comm) != BANYAN_OK)
            return failed(member, "a barrier");
    if (banyan_comm_rank(comm) == CULPRIT) {
        pid_t self = getpid();

        if (signal_number == SIGSTOP && fork() == 0) { /* so that the test can end */
            sleep((unsigned)TIMEOUT + 8);
            kill(self, SIGKILL);
            _exit(0);
        }
        kill(self, signal_number);
    }
    wrong = until_it_fails(member, comm, signal_number == SIGKILL ? BANYAN_EIO : BANYAN_ETIMEDOUT,
                           signal_number == SIGKILL ? "rank 1 has closed" : "rank 1 was silent",
                           signal_number == SIGKILL ? SOON : TIMEOUT + 2);
    /* the world is another communicator, and has its own error */
    banyan_comm_destroy(comm);
    member_close(member);
    return wrong;
}

static void expect_right_but_culprit(const struct team *team)
{
    for (uint32_t rank = 0; rank < team->count; rank++)
        if (rank != team->count - 1 - CULPRIT &&
            (!WIFEXITED(team->status[rank]) || WEXITSTATUS(team->status[rank]) != 0))
            fail_msg("rank %u of %u: status %x", rank, team->count, (unsigned)team->status[rank]);
}

static void a_killed_rank_of_a_group_is_named_at_once(void **state)
{
    int signal_number = SIGKILL;

    (void)state;
    for (uint32_t count = 2; count <= 8; count += 3) {
        struct team team;

        team_run(&team, count, suffer, &signal_number);
        expect_right_but_culprit(&team);
    }
}

static void a_stopped_rank_of_a_group_is_named_in_time(void **state)
{
    int signal_number = SIGSTOP;
    struct team team;

    (void)state;
    setenv("BANYAN_TIMEOUT", "1", 1);
    team_run(&team, 4, suffer, &signal_number);
    unsetenv("BANYAN_TIMEOUT");
    expect_right_but_culprit(&team);
}

static int leave_early(struct team_member *member)
{
    struct banyan_comm *comm;
    int wrong = open_copy(member, &comm);

    if (wrong)
        return wrong;
    if (member->rank == CULPRIT)
        banyan_comm_destroy(comm);
    else
        wrong = until_it_fails(member, comm, BANYAN_EIO, "rank 1 has closed", SOON);
    if (member->rank != CULPRIT)
        banyan_comm_destroy(comm);
    if (banyan_barrier(member->comm) != BANYAN_OK)
        wrong += failed(member, "the world");
    member_close(member);
    return wrong;
}

static void a_rank_that_has_freed_a_group_is_named(void **state)
{
    (void)state;
    team_must(4, leave_early, NULL);
}

static int disagree(struct team_member *member)
{
    struct banyan_comm *comm;
    banyan_status_t status;
    int wrong = open_copy(member, &comm);

    if (wrong)
        return wrong;
    status = banyan_allreduce(comm, in_buffer, out_buffer, member->rank == CULPRIT ? 7 : 8, BANYAN_I32,
                              BANYAN_SUM);
    if (status != BANYAN_EMISMATCH)
        wrong = member_wrong(member, "status %d: %s", (int)status, banyan_last_error());
    banyan_comm_destroy(comm);
    member_close(member);
    return wrong;
}

static void different_calls_of_a_group_are_found(void **state)
{
    (void)state;
    team_must(4, disagree, NULL);
}

static int abort_one(struct team_member *member)
{
    struct banyan_comm *comm;
    struct banyan_request *request;
    int wrong = open_copy(member, &comm);

    if (wrong)
        return wrong;
    if (member->rank == CULPRIT) {
        if (banyan_allreduce_init(comm, in_buffer, out_buffer, 8, BANYAN_I32, BANYAN_SUM, &request) !=
                BANYAN_OK ||
            banyan_post(request) != BANYAN_OK || banyan_abort(comm) != BANYAN_OK ||
            banyan_wait(request) != BANYAN_EABORTED)
            wrong = failed(member, "an abort");
    } else {
        wrong = until_it_fails(member, comm, BANYAN_EABORTED, "rank 1", SOON);
    }
    banyan_comm_destroy(comm);
    member_close(member);
    return wrong;
}

static void an_abort_ends_the_calls_of_all_ranks_of_a_group(void **state)
{
    (void)state;
    team_must(4, abort_one, NULL);
}

/* ---- refusals */

static int expect_refusal(struct team_member *member, const char *text)
{
    struct banyan_comm *comm = NULL;

    if (banyan_comm_dup(member->comm, &comm) != BANYAN_EUNSUPPORTED || comm != NULL ||
        strstr(banyan_last_error(), text) == NULL)
        return member_wrong(member, "it is not refused for '%s': %s", text, banyan_last_error());
    return banyan_barrier(member->comm) == BANYAN_OK ? 0 : failed(member, "the world");
}

static int share_nothing(struct team_member *member)
{
    int wrong;

    if (member->rank == 2)
        setenv("BANYAN_NEAR", "pairs", 1);
    wrong = member_open(member);
    wrong = wrong ? wrong : expect_refusal(member, "rank 2 shares no memory");
    member_close(member);
    return wrong;
}

static void a_rank_that_shares_no_memory_is_named_by_all(void **state)
{
    (void)state;
    team_must(4, share_nothing, NULL);
}

static int be_another_user(struct team_member *member)
{
    int wrong;

    if (member->rank == 3 && setuid(65534) != 0)
        return member_wrong(member, "cannot become another user");
    wrong = member_open(member);
    wrong = wrong ? wrong : expect_refusal(member, "rank 3 cannot share memory with rank 0");
    member_close(member);
    return wrong;
}

static void ranks_of_several_users_share_no_memory(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    team_must(4, be_another_user, NULL);
}

/* Rank 1 is in a process namespace of its own. */
static int be_elsewhere(struct team_member *member)
{
    int status = 1;
    pid_t child;

    if (member->rank != 1)
        return make_shapes(member);
    if (unshare(CLONE_NEWPID) != 0)
        return member_wrong(member, "no process namespace");
    child = fork();
    if (child == 0)
        _exit(make_shapes(member));
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void ranks_in_several_process_namespaces_share_memory(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    team_must(4, be_elsewhere, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_of_one_host_have_right_results),
        cmocka_unit_test(calls_of_two_groups_run_at_once),
        cmocka_unit_test(groups_made_and_freed_leave_nothing),
        cmocka_unit_test(a_killed_rank_of_a_group_is_named_at_once),
        cmocka_unit_test(a_stopped_rank_of_a_group_is_named_in_time),
        cmocka_unit_test(a_rank_that_has_freed_a_group_is_named),
        cmocka_unit_test(different_calls_of_a_group_are_found),
        cmocka_unit_test(an_abort_ends_the_calls_of_all_ranks_of_a_group),
        cmocka_unit_test(a_rank_that_shares_no_memory_is_named_by_all),
        cmocka_unit_test(ranks_of_several_users_share_no_memory),
        cmocka_unit_test(ranks_in_several_process_namespaces_share_memory),
    };

    setenv("BANYAN_NEAR", "memory", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

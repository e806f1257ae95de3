/*
 * Exchanges in jobs of more ranks than are connected when they meet: the first message of a pair
 * opens its connection. Each rank is a process.
 */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-driver/clock.h"
#include "host-driver/fallback/exchange.h"
#include "host-driver/fallback/fallback.h"
#include "offload/wire/types.h"
#include "tests/open_files.h"
#include "tests/unit/host-driver/fallback/team.h"

#define SHARE_MAX  5u /* elements of a share */
#define SMALL_TEAM 24u
#define CULPRIT    7u
#define TIMEOUT    6.0 /* seconds, in small teams */

struct many_buffers {
    uint32_t *send, *recv;
    uint64_t *send_count, *send_at, *recv_count, *recv_at;
};

static uint64_t count_of(uint32_t from, uint32_t to)
{
    return (from + 3u * to) % (SHARE_MAX + 1);
}

static uint32_t value_of(uint32_t from, uint32_t to, uint64_t index)
{
    return from * 1000003u + to * 1009u + (uint32_t)index;
}

static void allocate(struct many_buffers *buffers, uint32_t count)
{
    size_t elements = (size_t)count * SHARE_MAX;

    buffers->send = calloc(elements, sizeof(uint32_t));
    buffers->recv = calloc(elements, sizeof(uint32_t));
    buffers->send_count = calloc(count, sizeof(uint64_t));
    buffers->send_at = calloc(count, sizeof(uint64_t));
    buffers->recv_count = calloc(count, sizeof(uint64_t));
    buffers->recv_at = calloc(count, sizeof(uint64_t));
    if (buffers->send == NULL || buffers->recv == NULL || buffers->send_count == NULL ||
        buffers->send_at == NULL || buffers->recv_count == NULL || buffers->recv_at == NULL)
        abort();
}

static void release(struct many_buffers *buffers)
{
    free(buffers->send);
    free(buffers->recv);
    free(buffers->send_count);
    free(buffers->send_at);
    free(buffers->recv_count);
    free(buffers->recv_at);
}

/* All shares of a rank, one behind another. */
static void fill(struct many_buffers *buffers, uint32_t rank, uint32_t count)
{
    uint64_t sent = 0, received = 0;

    for (uint32_t peer = 0; peer < count; peer++) {
        buffers->send_count[peer] = count_of(rank, peer);
        buffers->send_at[peer] = sent;
        for (uint64_t i = 0; i < count_of(rank, peer); i++)
            buffers->send[sent++] = value_of(rank, peer, i);
        buffers->recv_count[peer] = count_of(peer, rank);
        buffers->recv_at[peer] = received;
        received += count_of(peer, rank);
    }
    memset(buffers->recv, 0, (size_t)count * SHARE_MAX * sizeof(uint32_t));
}

static int check(const struct team_member *member, const struct many_buffers *buffers, const char *name)
{
    for (uint32_t peer = 0; peer < member->count; peer++)
        for (uint64_t i = 0; i < buffers->recv_count[peer]; i++)
            if (buffers->recv[buffers->recv_at[peer] + i] != value_of(peer, member->rank, i))
                return member_wrong(member, "%s: element %u of rank %u is %x", name, (unsigned)i, peer,
                                    (unsigned)buffers->recv[buffers->recv_at[peer] + i]);
    return 0;
}

/* What this rank sends to `root`, or receives from it, is a share at the start of a buffer. */
static int gather_and_scatter(const struct team_member *member, struct many_buffers *buffers, uint32_t root)
{
    uint64_t to_root = count_of(member->rank, root), from_root = count_of(root, member->rank);
    uint32_t own[SHARE_MAX + 1] = {0};
    int wrong = 0;

    fill(buffers, member->rank, member->count);
    if (banyan_gatherv(member->comm, buffers->send + buffers->send_at[root], to_root, buffers->recv,
                       buffers->recv_count, buffers->recv_at, BANYAN_U32, root) != BANYAN_OK)
        return member_wrong(member, "gatherv: %s", banyan_last_error());
    if (member->rank == root)
        wrong = check(member, buffers, "gatherv");
    if (banyan_scatterv(member->comm, buffers->send, buffers->send_count, buffers->send_at, own, from_root,
                        BANYAN_U32, root) != BANYAN_OK)
        return member_wrong(member, "scatterv: %s", banyan_last_error());
    for (uint64_t i = 0; i < from_root; i++)
        if (own[i] != value_of(root, member->rank, i))
            wrong |= member_wrong(member, "scatterv: element %u is %x", (unsigned)i, (unsigned)own[i]);
    return wrong;
}

static int run_rooted(struct team_member *member)
{
    struct many_buffers buffers;
    int wrong = member_open(member);

    allocate(&buffers, member->count);
    if (!wrong)
        wrong = gather_and_scatter(member, &buffers, member->count - 1);
    release(&buffers);
    member_close(member);
    return wrong;
}

/* The ranks have half of the files that a root needs, and may open more. */
static void forms_with_v_run_among_512_ranks(void **state)
{
    struct rlimit files, before;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    files = before;
    files.rlim_cur = 256;
    if (before.rlim_max < 2048)
        skip();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    setenv("BANYAN_TIMEOUT", "60", 1); /* the ranks have less than a hundredth of a processor each */
    team_must(512, run_rooted, NULL);
    setenv("BANYAN_TIMEOUT", "20", 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static int run_all_to_all(struct team_member *member)
{
    struct many_buffers buffers;
    unsigned before, after;
    int wrong = member_open(member);

    allocate(&buffers, member->count);
    before = open_files();
    for (int i = 0; i < 2 && !wrong; i++) {
        fill(&buffers, member->rank, member->count);
        if (banyan_alltoallv(member->comm, buffers.send, buffers.send_count, buffers.send_at, buffers.recv,
                             buffers.recv_count, buffers.recv_at, BANYAN_U32) != BANYAN_OK)
            wrong = member_wrong(member, "alltoallv: %s", banyan_last_error());
        else
            wrong = check(member, &buffers, "alltoallv");
    }
    after = open_files();
    /* one connection to each rank, and one for notices to the peers of the rounds */
    if (!wrong && (before >= member->count || after > before + member->count))
        wrong = member_wrong(member, "%u files before, and %u after", before, after);
    release(&buffers);
    member_close(member);
    return wrong;
}

static void an_all_to_all_among_more_than_128_ranks_has_one_connection_for_a_pair(void **state)
{
    (void)state;
    team_must(BY_MESH_ALL_MAX + 2, run_all_to_all, NULL);
}

/* ---- errors, in smaller teams that connect like large ones */

static uint64_t absent_ns;

/* The communicator's part that runs calls between hosts. */
static int open_fallback(struct team_member *member, enum by_way way, struct by_fallback **fallback)
{
    static struct by_meeting meeting;
    struct by_fallback_config config = {.meeting = &meeting,
                                        .key = 1,
                                        .way = way,
                                        .reach = BY_REACH_SCHEDULES,
                                        .stall_ns = (uint64_t)(TIMEOUT * 1e9),
                                        .absent_ns = absent_ns};

    if (by_meeting_read(&meeting) != 0 || by_fallback_open(&config, fallback) != 0)
        return member_wrong(member, "%s", banyan_last_error());
    return 0;
}

static int run_call(struct by_fallback *fallback, const struct by_call *call)
{
    uint32_t id;
    int error = by_fallback_post(fallback, call, &id);

    while (error == 0 && (error = by_fallback_test(fallback, id)) == BY_EAGAIN) {
        struct pollfd fds[BY_MESH_FDS];

        error = 0;
        if (by_fallback_step(fallback, by_clock_ns()) == 0)
            poll(fds, by_fallback_fds(fallback, fds), 20);
    }
    return error;
}

/* An all-to-all of unequal shares. */
static int run_alltoallv(struct by_fallback *fallback, const struct team_member *member,
                         struct many_buffers *buffers)
{
    uint64_t *numbers = malloc(4 * (size_t)member->count * sizeof(*numbers));
    struct by_call call = {.collective = BANYAN_ALLTOALL,
                           .dtype = BANYAN_U32,
                           .mode = BANYAN_FAST,
                           .count = 1,
                           .offsets = numbers,
                           .send = buffers->send,
                           .recv = buffers->recv};
    size_t bytes = member->count * sizeof(*numbers);
    int error;

    if (numbers == NULL)
        abort();
    memcpy(numbers + (size_t)BY_SEND_COUNT * member->count, buffers->send_count, bytes);
    memcpy(numbers + (size_t)BY_SEND_AT * member->count, buffers->send_at, bytes);
    memcpy(numbers + (size_t)BY_RECV_COUNT * member->count, buffers->recv_count, bytes);
    memcpy(numbers + (size_t)BY_RECV_AT * member->count, buffers->recv_at, bytes);
    error = run_call(fallback, &call);
    free(numbers);
    return error;
}

/* Equal shares of one element; in the ring schedule each would travel directly. */
static int run_alltoall(struct by_fallback *fallback, const struct team_member *member)
{
    uint32_t send[SMALL_TEAM], recv[SMALL_TEAM] = {0};
    struct by_call call = {.collective = BANYAN_ALLTOALL,
                           .dtype = BANYAN_U32,
                           .mode = BANYAN_FAST,
                           .count = 1,
                           .send = send,
                           .recv = recv};
    int error;

    for (uint32_t peer = 0; peer < member->count; peer++)
        send[peer] = value_of(member->rank, peer, 0);
    error = run_call(fallback, &call);
    for (uint32_t peer = 0; error == 0 && peer < member->count; peer++)
        if (recv[peer] != value_of(peer, member->rank, 0))
            return member_wrong(member, "element %u is %x", peer, recv[peer]);
    return error == 0 ? 0 : member_wrong(member, "alltoall: %d, %s", error, by_fallback_text(fallback));
}

static int run_with_few_files(struct team_member *member)
{
    /* enough for the connections of the meeting, to 10 others or 11 */
    struct rlimit files = {.rlim_cur = 32, .rlim_max = 32};
    const struct by_call barrier = {.collective = BY_COLLECTIVE_BARRIER, .mode = BANYAN_FAST};
    struct by_fallback *fallback;
    struct many_buffers buffers;
    int wrong, error;

    if (member->rank == CULPRIT && setrlimit(RLIMIT_NOFILE, &files) != 0)
        return member_wrong(member, "no limit");
    wrong = open_fallback(member, BY_WAY_RING, &fallback);
    if (wrong)
        return wrong;
    wrong = run_alltoall(fallback, member);
    /* The culprit may be in the barrier while another rank is in the next call, which fails. */
    error = wrong ? 0 : run_call(fallback, &barrier);
    if (error != 0 && error != BY_ELIMIT)
        wrong = member_wrong(member, "barrier: %d, %s", error, by_fallback_text(fallback));
    allocate(&buffers, member->count);
    fill(&buffers, member->rank, member->count);
    if (error == 0)
        error = run_alltoallv(fallback, member, &buffers);
    if (!wrong && (error != BY_ELIMIT || strstr(by_fallback_text(fallback), "rank 7 (127.0.0.1)") == NULL ||
                   strstr(by_fallback_text(fallback), "ulimit -n") == NULL))
        wrong = member_wrong(member, "alltoallv: %d, %s", error, by_fallback_text(fallback));
    release(&buffers);
    by_fallback_close(fallback);
    return wrong;
}

static void a_rank_with_too_few_files_gets_equal_shares_and_is_named_in_other_forms(void **state)
{
    (void)state;
    team_must(SMALL_TEAM, run_with_few_files, NULL);
}

/* The culprit computes for longer than the first limit, and most of the others have no connection
 * to it. */
static int compute(struct team_member *member)
{
    struct by_fallback *fallback;
    struct many_buffers buffers;
    int wrong = open_fallback(member, BY_WAY_CIRCULANT, &fallback), error;

    if (wrong)
        return wrong;
    allocate(&buffers, member->count);
    fill(&buffers, member->rank, member->count);
    if (member->rank == CULPRIT)
        usleep((useconds_t)((TIMEOUT + 3) * 1e6));
    error = run_alltoallv(fallback, member, &buffers);
    if (error != 0)
        wrong = member_wrong(member, "%d: %s", error, by_fallback_text(fallback));
    release(&buffers);
    by_fallback_close(fallback);
    return wrong;
}

static void a_rank_that_computes_is_waited_for_by_ranks_without_a_connection_to_it(void **state)
{
    (void)state;
    absent_ns = UINT64_C(60000000000);
    team_must(SMALL_TEAM, compute, NULL);
    absent_ns = 0;
}

/* The culprit ends before it has sent; most of the others have no connection to it. */
static int lose_one(struct team_member *member)
{
    struct by_fallback *fallback;
    struct many_buffers buffers;
    uint64_t begin_ns;
    int wrong = open_fallback(member, BY_WAY_CIRCULANT, &fallback), error = 0;

    if (wrong)
        return wrong;
    allocate(&buffers, member->count);
    fill(&buffers, member->rank, member->count);
    if (*(const int *)member->argument) {
        error = run_alltoallv(fallback, member, &buffers);
        if (error != 0)
            return member_wrong(member, "%d: %s", error, by_fallback_text(fallback));
    }
    if (member->rank == CULPRIT) {
        usleep(300000);
        kill(getpid(), SIGKILL);
    }
    begin_ns = by_clock_ns();
    for (int i = 0; i < 100 && error == 0; i++)
        error = run_alltoallv(fallback, member, &buffers);
    if (error != BY_EIO || strstr(by_fallback_text(fallback), "rank 7 (127.0.0.1)") == NULL)
        wrong = member_wrong(member, "%d: %s", error, by_fallback_text(fallback));
    if ((double)(by_clock_ns() - begin_ns) / 1e9 > TIMEOUT / 2)
        wrong = member_wrong(member, "took %.1f s", (double)(by_clock_ns() - begin_ns) / 1e9);
    release(&buffers);
    by_fallback_close(fallback);
    return wrong;
}

static void a_killed_rank_is_named_by_all_others(void **state)
{
    struct team team;

    (void)state;
    for (int connected = 0; connected < 2; connected++) {
        team_run(&team, SMALL_TEAM, lose_one, &connected);
        for (uint32_t rank = 0; rank < team.count; rank++)
            if (rank == CULPRIT)
                assert_true(WIFSIGNALED(team.status[rank]));
            else if (!WIFEXITED(team.status[rank]) || WEXITSTATUS(team.status[rank]) != 0)
                fail_msg("rank %u: status %x", rank, (unsigned)team.status[rank]);
    }
}

/* A rank that is stopped is named by all others after the time limit, also by those that have a
 * connection to it only on demand. */
static int stop_one(struct team_member *member)
{
    struct by_fallback *fallback;
    struct many_buffers buffers;
    int wrong = open_fallback(member, BY_WAY_CIRCULANT, &fallback), error = 0;

    if (wrong)
        return wrong;
    allocate(&buffers, member->count);
    fill(&buffers, member->rank, member->count);
    if (member->rank == CULPRIT) {
        pid_t self = getpid(), waker = fork();

        if (waker == 0) {
            usleep((useconds_t)((TIMEOUT + 3) * 1e6));
            kill(self, SIGKILL);
            _exit(0);
        }
        kill(self, SIGSTOP);
    }
    error = run_alltoallv(fallback, member, &buffers);
    if (error != BY_ETIMEDOUT || strstr(by_fallback_text(fallback), "rank 7 (127.0.0.1)") == NULL)
        wrong = member_wrong(member, "%d: %s", error, by_fallback_text(fallback));
    release(&buffers);
    by_fallback_close(fallback);
    return wrong;
}

static void a_stopped_rank_is_named_by_all_others(void **state)
{
    struct team team;

    (void)state;
    team_run(&team, SMALL_TEAM, stop_one, NULL);
    for (uint32_t rank = 0; rank < team.count; rank++)
        if (rank != CULPRIT && (!WIFEXITED(team.status[rank]) || WEXITSTATUS(team.status[rank]) != 0))
            fail_msg("rank %u: status %x", rank, (unsigned)team.status[rank]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_with_v_run_among_512_ranks),
        cmocka_unit_test(an_all_to_all_among_more_than_128_ranks_has_one_connection_for_a_pair),
        cmocka_unit_test(a_rank_with_too_few_files_gets_equal_shares_and_is_named_in_other_forms),
        cmocka_unit_test(a_rank_that_computes_is_waited_for_by_ranks_without_a_connection_to_it),
        cmocka_unit_test(a_killed_rank_is_named_by_all_others),
        cmocka_unit_test(a_stopped_rank_is_named_by_all_others),
    };

    setenv("BANYAN_TIMEOUT", "20", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

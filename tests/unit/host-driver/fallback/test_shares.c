/*
 * All-to-all, scatter and gather between hosts, each rank a process on the loopback interface:
 * every number of ranks up to 17, equal shares and unequal ones, by rounds and directly, in place
 * and out of place; and what happens where ranks disagree, end or stop. Every element shows its
 * sender, its receiver and its place, so that one in another place is found.
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
#include "tests/unit/host-driver/fallback/team.h"

#define SHARE_MAX 40001u /* elements; directly under every schedule */
#define TIMEOUT   2.0    /* seconds, where a rank fails */
#define CULPRIT   1u
#define UNTOUCHED UINT32_C(0xdeadbeef)

struct shares_buffers {
    uint32_t *send, *recv; /* TEAM_MAX * SHARE_MAX elements each */
};

static const uint64_t share_counts[] = {0, 1, 3, 255, 4097, SHARE_MAX};

static int open_all(struct team_member *member, struct shares_buffers *buffers)
{
    size_t bytes = (size_t)TEAM_MAX * SHARE_MAX * sizeof(uint32_t);

    if (member->argument != NULL)
        setenv("BANYAN_FALLBACK", member->argument, 1);
    buffers->send = malloc(bytes);
    buffers->recv = malloc(bytes);
    return buffers->send == NULL || buffers->recv == NULL ? member_wrong(member, "no memory")
                                                          : member_open(member);
}

static int close_all(struct team_member *member, struct shares_buffers *buffers, int wrong)
{
    member_close(member);
    free(buffers->send);
    free(buffers->recv);
    return wrong;
}

static uint32_t value_of(uint32_t from, uint32_t to, uint64_t index)
{
    return from << 27 | to << 22 | (uint32_t)(index % 4000037u);
}

static void fill(uint32_t *at, uint32_t from, uint32_t to, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        at[i] = value_of(from, to, i);
}

static int check(const struct team_member *member, const char *what, const uint32_t *at, uint32_t from,
                 uint32_t to, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (at[i] != value_of(from, to, i))
            return member_wrong(member, "%s: element %llu of %llu from rank %u is %x", what,
                                (unsigned long long)i, (unsigned long long)count, from, at[i]);
    return 0;
}

static int failed(const struct team_member *member, const char *what)
{
    return member_wrong(member, "%s: %s", what, banyan_last_error());
}

/* ---- equal shares */

static int exchange_all(struct team_member *member, struct shares_buffers *buffers, uint64_t count,
                        bool in_place)
{
    uint32_t *send = in_place ? buffers->recv : buffers->send;
    int wrong = 0;

    memset(buffers->recv, 0xff, member->count * count * sizeof(uint32_t));
    for (uint32_t rank = 0; rank < member->count; rank++)
        fill(send + rank * count, member->rank, rank, count);
    if (banyan_alltoall(member->comm, send, buffers->recv, count, BANYAN_U32) != BANYAN_OK)
        return failed(member, "alltoall");
    for (uint32_t rank = 0; rank < member->count && !wrong; rank++)
        wrong = check(member, "alltoall", buffers->recv + rank * count, rank, member->rank, count);
    return wrong;
}

static int scatter_all(struct team_member *member, struct shares_buffers *buffers, uint64_t count,
                       uint32_t root, bool in_place)
{
    bool is_root = member->rank == root;
    uint32_t *recv = in_place && is_root ? buffers->send + root * count : buffers->recv;

    for (uint32_t rank = 0; rank < member->count && is_root; rank++)
        fill(buffers->send + rank * count, root, rank, count);
    if (banyan_scatter(member->comm, is_root ? buffers->send : NULL, recv, count, BANYAN_U32, root) !=
        BANYAN_OK)
        return failed(member, "scatter");
    return check(member, "scatter", recv, root, member->rank, count);
}

static int gather_all(struct team_member *member, struct shares_buffers *buffers, uint64_t count,
                      uint32_t root, bool in_place)
{
    bool is_root = member->rank == root;
    uint32_t *send = in_place && is_root ? buffers->recv + root * count : buffers->send;
    int wrong = 0;

    fill(send, member->rank, root, count);
    if (banyan_gather(member->comm, send, is_root ? buffers->recv : NULL, count, BANYAN_U32, root) !=
        BANYAN_OK)
        return failed(member, "gather");
    for (uint32_t rank = 0; rank < member->count && is_root && !wrong; rank++)
        wrong = check(member, "gather", buffers->recv + rank * count, rank, root, count);
    return wrong;
}

static bool is_in_one_memory(void)
{
    return strcmp(getenv("BANYAN_NEAR"), "memory") == 0;
}

/* team.c states which ranks share memory. */
static int check_memory(struct team_member *member)
{
    uint64_t sent = member_counter(member, "hosts/tx_bytes"),
             shared = member_counter(member, "hosts/shared_bytes");
    bool all = member->count % 2 == 0, none = !all && member->rank % 2 == 1;

    if (is_in_one_memory())
        return member_counter(member, "hosts/single") > 0 && sent == 0
                   ? 0
                   : member_wrong(member, "%llu bytes went over connections", (unsigned long long)sent);
    if (member->count > 1 && (all ? shared != sent : none ? shared != 0 : shared == 0 || shared >= sent))
        return member_wrong(member, "of %llu bytes %llu went through memory", (unsigned long long)sent,
                            (unsigned long long)shared);
    return 0;
}

static int try_equal(struct team_member *member)
{
    struct shares_buffers buffers;
    int wrong = open_all(member, &buffers);

    for (size_t i = 0; i < sizeof(share_counts) / sizeof(share_counts[0]) && !wrong; i++) {
        uint64_t count = share_counts[i];

        for (int in_place = 0; in_place < 2 && !wrong; in_place++) {
            uint32_t root = (uint32_t)(i * 5 + (size_t)in_place) % member->count;

            wrong = exchange_all(member, &buffers, count, in_place);
            if (!wrong)
                wrong = scatter_all(member, &buffers, count, root, in_place);
            if (!wrong)
                wrong = gather_all(member, &buffers, count, member->count - 1 - root, in_place);
        }
    }
    if (!wrong)
        wrong = check_memory(member);
    return close_all(member, &buffers, wrong);
}

static void equal_shares_arrive_for_every_number_of_ranks(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= TEAM_MAX; count++)
        team_must(count, try_equal, "circulant");
}

static void equal_shares_arrive_under_the_other_schedules(void **state)
{
    (void)state;
    team_must(5, try_equal, "ring");
    team_must(8, try_equal, "rhd");
}

/* Small shares take ceil(log2 n) rounds, large ones as many as the query predicts: n - 1, unless
 * the measured latency of this machine is long (a_query_predicts_the_rounds has larger ones). */
static int count_rounds(struct team_member *member)
{
    struct shares_buffers buffers;
    struct banyan_query query;
    uint64_t before, small, large;
    int wrong = open_all(member, &buffers);

    if (wrong)
        return wrong;
    banyan_query_init(&query);
    query.collective = BANYAN_ALLTOALL;
    query.count = SHARE_MAX;
    if (banyan_comm_query(member->comm, &query) != BANYAN_OK)
        wrong = failed(member, "query");
    before = member_counter(member, "hosts/rounds");
    if (!wrong)
        wrong = exchange_all(member, &buffers, 1, false);
    small = member_counter(member, "hosts/rounds") - before;
    if (!wrong)
        wrong = exchange_all(member, &buffers, SHARE_MAX, false);
    large = member_counter(member, "hosts/rounds") - before - small;
    if (!wrong && (small != 4 || large != query.round_count))
        wrong = member_wrong(member, "%llu rounds for a small and %llu for a large all-to-all, not %llu",
                             (unsigned long long)small, (unsigned long long)large,
                             (unsigned long long)query.round_count);
    return close_all(member, &buffers, wrong);
}

static void shares_take_the_rounds_that_the_query_predicts(void **state)
{
    (void)state;
    team_must(13, count_rounds, "circulant");
}

/* ---- unequal shares */

/* Elements that `from` sends to `to`: none, one, or many. */
static uint64_t unequal_count(uint32_t from, uint32_t to)
{
    return (from + to) % 3 == 0 ? 0 : from == to ? 7 : (uint64_t)from * 131 + to * 17 + 1;
}

/* Fills counts, and offsets with gaps, of a rank's shares for (or from) all others. */
static void plan_shares(const struct team_member *member, bool sends, uint64_t *counts, uint64_t *offsets)
{
    uint64_t at = 2;

    for (uint32_t rank = 0; rank < member->count; rank++) {
        counts[rank] = sends ? unequal_count(member->rank, rank) : unequal_count(rank, member->rank);
        offsets[rank] = at;
        at += counts[rank] + rank % 2;
    }
}

static int exchange_unequal(struct team_member *member, struct shares_buffers *buffers, bool packed)
{
    uint64_t counts[2][TEAM_MAX], offsets[2][TEAM_MAX], at = 0;
    int wrong = 0;

    plan_shares(member, true, counts[0], offsets[0]);
    plan_shares(member, false, counts[1], offsets[1]);
    for (uint32_t rank = 0; rank < member->count; rank++) {
        fill(buffers->send + (packed ? at : offsets[0][rank]), member->rank, rank, counts[0][rank]);
        at += counts[0][rank];
    }
    buffers->recv[0] = UNTOUCHED;
    if (banyan_alltoallv(member->comm, buffers->send, counts[0], packed ? NULL : offsets[0], buffers->recv,
                         counts[1], packed ? NULL : offsets[1], BANYAN_U32) != BANYAN_OK)
        return failed(member, "alltoallv");
    at = 0;
    for (uint32_t rank = 0; rank < member->count && !wrong; rank++) {
        wrong = check(member, "alltoallv", buffers->recv + (packed ? at : offsets[1][rank]), rank,
                      member->rank, counts[1][rank]);
        at += counts[1][rank];
    }
    if (!wrong && !packed && buffers->recv[0] != UNTOUCHED)
        wrong = member_wrong(member, "alltoallv wrote before the first share");
    return wrong;
}

/* In place both ranks of a pair send each other as much. */
static int exchange_in_place(struct team_member *member, struct shares_buffers *buffers)
{
    uint64_t counts[TEAM_MAX], offsets[TEAM_MAX], at = 0;
    int wrong = 0;

    for (uint32_t rank = 0; rank < member->count; rank++) {
        counts[rank] = (uint64_t)(rank + member->rank) * 9 % 31;
        offsets[rank] = at;
        at += counts[rank];
        fill(buffers->recv + offsets[rank], member->rank, rank, counts[rank]);
    }
    if (banyan_alltoallv(member->comm, buffers->recv, counts, offsets, buffers->recv, counts, NULL,
                         BANYAN_U32) != BANYAN_OK)
        return failed(member, "alltoallv in place");
    for (uint32_t rank = 0; rank < member->count && !wrong; rank++)
        wrong = check(member, "alltoallv in place", buffers->recv + offsets[rank], rank, member->rank,
                      counts[rank]);
    return wrong;
}

static int root_unequal(struct team_member *member, struct shares_buffers *buffers, uint32_t root)
{
    uint64_t counts[TEAM_MAX], offsets[TEAM_MAX];
    uint64_t down = unequal_count(root, member->rank), up = unequal_count(member->rank, root);
    bool is_root = member->rank == root;
    int wrong = 0;

    plan_shares(member, true, counts, offsets);
    for (uint32_t rank = 0; rank < member->count && is_root; rank++)
        fill(buffers->send + offsets[rank], root, rank, counts[rank]);
    if (banyan_scatterv(member->comm, is_root ? buffers->send : NULL, is_root ? counts : NULL,
                        is_root ? offsets : NULL, buffers->recv, down, BANYAN_U32, root) != BANYAN_OK)
        return failed(member, "scatterv");
    wrong = check(member, "scatterv", buffers->recv, root, member->rank, down);
    plan_shares(member, false, counts, offsets);
    fill(buffers->send, member->rank, root, up);
    if (!wrong &&
        banyan_gatherv(member->comm, buffers->send, up, is_root ? buffers->recv : NULL,
                       is_root ? counts : NULL, is_root ? offsets : NULL, BANYAN_U32, root) != BANYAN_OK)
        return failed(member, "gatherv");
    for (uint32_t rank = 0; rank < member->count && is_root && !wrong; rank++)
        wrong = check(member, "gatherv", buffers->recv + offsets[rank], rank, root, counts[rank]);
    return wrong;
}

static int try_unequal(struct team_member *member)
{
    struct shares_buffers buffers;
    int wrong = open_all(member, &buffers);

    for (int packed = 0; packed < 2 && !wrong; packed++)
        wrong = exchange_unequal(member, &buffers, packed);
    if (!wrong)
        wrong = exchange_in_place(member, &buffers);
    for (uint32_t root = 0; root < member->count && !wrong; root += 3)
        wrong = root_unequal(member, &buffers, root);
    return close_all(member, &buffers, wrong);
}

static void unequal_shares_arrive_for_every_number_of_ranks(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= TEAM_MAX; count++)
        team_must(count, try_unequal, NULL);
}

/* ---- requests */

/* Several operations at a time, each posted twice, between allreduces. */
static int try_requests(struct team_member *member)
{
    struct banyan_request *request[3];
    struct shares_buffers buffers;
    uint64_t count = 1000;
    uint32_t n = member->count;
    int64_t sum = 0;
    int wrong = open_all(member, &buffers);
    uint32_t *send = buffers.send, *recv = buffers.recv;

    if (wrong)
        return wrong;
    if (banyan_alltoall_init(member->comm, send, recv, count, BANYAN_U32, &request[0]) != BANYAN_OK ||
        banyan_scatter_init(member->comm, send, recv + n * count, count, BANYAN_U32, 0, &request[1]) !=
            BANYAN_OK ||
        banyan_gather_init(member->comm, send, recv + (n + 1) * count, count, BANYAN_U32, n - 1,
                           &request[2]) != BANYAN_OK)
        return failed(member, "init");
    for (uint32_t rank = 0; rank < n; rank++)
        fill(send + rank * count, member->rank, rank, count);
    for (int post = 0; post < 2 && !wrong; post++) {
        int64_t one = 1;

        for (int i = 0; i < 3; i++)
            if (banyan_post(request[i]) != BANYAN_OK)
                return failed(member, "post");
        if (banyan_allreduce(member->comm, &one, &sum, 1, BANYAN_I64, BANYAN_SUM) != BANYAN_OK || sum != n)
            wrong = failed(member, "allreduce");
        for (int i = 0; i < 3 && !wrong; i++)
            for (int done = 0; !done && !wrong;)
                if (banyan_test(request[i], &done) != BANYAN_OK)
                    wrong = failed(member, "test");
        for (uint32_t rank = 0; rank < n && !wrong; rank++)
            wrong = check(member, "alltoall", recv + rank * count, rank, member->rank, count);
        if (!wrong)
            wrong = check(member, "scatter", recv + n * count, 0, member->rank, count);
        if (!wrong && member->rank == n - 1)
            wrong = check(member, "gather", recv + (n + 1) * count, 0, 0, count);
        memset(recv, 0xff, (2 * n + 1) * count * sizeof(*recv));
    }
    return close_all(member, &buffers, wrong);
}

static void requests_of_exchanges_are_posted_again(void **state)
{
    (void)state;
    team_must(6, try_requests, NULL);
}

static int query_all(struct team_member *member)
{
    struct banyan_query query;
    int wrong = member_open(member);

    for (int i = BANYAN_ALLTOALL; i <= BANYAN_GATHER && !wrong; i++) {
        banyan_query_init(&query);
        query.collective = (banyan_collective_t)i;
        query.count = 1;
        if (banyan_comm_query(member->comm, &query) != BANYAN_OK || query.path != BANYAN_HOSTS ||
            query.round_count != 3 || query.predicted_ns == 0)
            wrong = member_wrong(member, "query: path %d, %llu rounds: %s", (int)query.path,
                                 (unsigned long long)query.round_count, query.reason);
        query.count = 10000000;
        if (!wrong && (banyan_comm_query(member->comm, &query) != BANYAN_OK || query.round_count != 5))
            wrong = member_wrong(member, "query: %llu rounds of large shares",
                                 (unsigned long long)query.round_count);
    }
    member_close(member);
    return wrong;
}

static void a_query_predicts_the_rounds(void **state)
{
    (void)state;
    team_must(6, query_all, NULL);
}

/* ---- errors */

static int refuse(const struct team_member *member, banyan_status_t status, banyan_status_t wanted,
                  const char *said)
{
    if (status != wanted)
        return member_wrong(member, "%s instead of %s (%s)", banyan_strerror(status), banyan_strerror(wanted),
                            banyan_last_error());
    return strstr(banyan_last_error(), said) != NULL
               ? 0
               : member_wrong(member, "does not say '%s': %s", said, banyan_last_error());
}

static int refuse_arguments(struct team_member *member)
{
    uint64_t counts[3] = {1, 1, 1}, other[3] = {1, 1, 1}, huge[3] = {1, UINT64_MAX / 4, 1};
    uint64_t far[3] = {0, UINT64_MAX - 1, 2}, shifted[3] = {1, 2, 3};
    uint32_t a[9] = {0}, b[9];
    struct banyan_comm *comm;
    int wrong = member_open(member);

    if (wrong)
        return wrong;
    comm = member->comm;
    other[member->rank] = 2;
    wrong = refuse(member, banyan_alltoall(NULL, a, b, 1, BANYAN_U32), BANYAN_EINVAL, "comm") ||
            refuse(member, banyan_alltoall(comm, NULL, b, 1, BANYAN_U32), BANYAN_EINVAL, "send is NULL") ||
            refuse(member, banyan_alltoall(comm, a, NULL, 1, BANYAN_U32), BANYAN_EINVAL, "recv is NULL") ||
            refuse(member, banyan_alltoall(comm, a, a + 1, 1, BANYAN_U32), BANYAN_EINVAL, "overlap") ||
            refuse(member, banyan_alltoall(comm, a, b, UINT64_MAX / 16, BANYAN_U32), BANYAN_ELIMIT,
                   "address space") ||
            refuse(member, banyan_alltoall(comm, a, b, 1, (banyan_dtype_t)77), BANYAN_EINVAL, "type 77") ||
            refuse(member, banyan_scatter(comm, a, b, 1, BANYAN_U32, 3), BANYAN_EINVAL, "root 3") ||
            refuse(member, banyan_gather(comm, a, b, 1, BANYAN_U32, UINT32_MAX), BANYAN_EINVAL, "root") ||
            refuse(member, banyan_alltoallv(comm, a, NULL, NULL, b, counts, NULL, BANYAN_U32), BANYAN_EINVAL,
                   "send_counts is NULL") ||
            refuse(member, banyan_alltoallv(comm, a, counts, NULL, b, NULL, NULL, BANYAN_U32), BANYAN_EINVAL,
                   "recv_counts is NULL") ||
            refuse(member, banyan_alltoallv(comm, a, huge, NULL, b, counts, NULL, BANYAN_U32), BANYAN_ELIMIT,
                   "send_counts and offsets up to rank 1") ||
            refuse(member, banyan_alltoallv(comm, a, counts, far, b, counts, NULL, BANYAN_U32), BANYAN_ELIMIT,
                   "send_counts and offsets up to rank 1") ||
            refuse(member, banyan_alltoallv(comm, a, counts, NULL, b, other, NULL, BANYAN_U32), BANYAN_EINVAL,
                   "to itself") ||
            refuse(member, banyan_alltoallv(comm, a, counts, NULL, a, counts, shifted, BANYAN_U32),
                   BANYAN_EINVAL, "overlap");
    if (!wrong && member->rank == 1)
        wrong = refuse(member, banyan_gatherv(comm, a, 1, b, NULL, NULL, BANYAN_U32, 1), BANYAN_EINVAL,
                       "counts is NULL") ||
                refuse(member, banyan_scatterv(comm, a, counts, NULL, b, 2, BANYAN_U32, 1), BANYAN_EINVAL,
                       "to itself");
    member_close(member);
    return wrong;
}

static void arguments_out_of_range_are_refused(void **state)
{
    (void)state;
    team_must(3, refuse_arguments, NULL);
}

enum shares_dispute { ALL_COUNT = 1, ALL_PAIR, SCATTER_COUNT, SCATTER_ROOT, GATHER_PAIR, KINDS };

/* One rank describes the operation in another way than the others. */
static banyan_status_t disagree_about(const struct team_member *member, enum shares_dispute dispute)
{
    static uint32_t send[5 * 64], recv[5 * 64];
    uint64_t counts[5] = {2, 2, 2, 2, 2}, sizes[5] = {2, 2, 2, 2, 2};
    bool culprit = member->rank == CULPRIT;
    uint64_t count = culprit ? 3 : 2;

    switch (dispute) {
    case ALL_COUNT:
        return banyan_alltoall(member->comm, send, recv, count, BANYAN_U32);
    case ALL_PAIR: /* rank 2 expects nothing of rank 1, which sends it two elements */
        sizes[CULPRIT] = member->rank == CULPRIT + 1 ? 0 : 2;
        return banyan_alltoallv(member->comm, send, counts, NULL, recv, sizes, NULL, BANYAN_U32);
    case SCATTER_COUNT:
        return banyan_scatter(member->comm, send, recv, count, BANYAN_U32, 0);
    case SCATTER_ROOT:
        return banyan_scatter(member->comm, send, recv, 2, BANYAN_U32, culprit ? 4 : 0);
    case GATHER_PAIR:
        return banyan_gatherv(member->comm, send, count, recv, counts, NULL, BANYAN_U32, 0);
    case KINDS:
    default:
        return culprit ? banyan_gather(member->comm, send, recv, 2, BANYAN_U32, 0)
                       : banyan_alltoall(member->comm, send, recv, 2, BANYAN_U32);
    }
}

/* An operation ends at ranks that are not concerned. The next one tells them. A rank that waits for
 * a message of another root finds, after half the time limit, one of the real root. */
static int disagree(struct team_member *member)
{
    enum shares_dispute dispute = *(const enum shares_dispute *)member->argument;
    banyan_status_t status;
    int wrong;

    setenv("BANYAN_TIMEOUT", dispute == SCATTER_ROOT ? "4" : "20", 1);
    wrong = member_open(member);

    if (wrong)
        return wrong;
    status = disagree_about(member, dispute);
    for (int i = 0; i < 1000 && status == BANYAN_OK; i++)
        status = banyan_barrier(member->comm);
    if (status != BANYAN_EMISMATCH)
        wrong = member_wrong(member, "dispute %d: %s: %s", (int)dispute, banyan_strerror(status),
                             banyan_last_error());
    member_close(member);
    return wrong;
}

static void ranks_that_disagree_are_told(void **state)
{
    (void)state;
    for (enum shares_dispute dispute = ALL_COUNT; dispute <= KINDS; dispute++)
        team_must(5, disagree, &dispute);
}

/* Large and small all-to-alls, in turn, until one fails in time and names the culprit. */
static int suffer(struct team_member *member)
{
    int signal_number = *(const int *)member->argument;
    banyan_status_t wanted = signal_number == SIGKILL ? BANYAN_EIO : BANYAN_ETIMEDOUT;
    banyan_status_t status = BANYAN_OK;
    struct shares_buffers buffers;
    uint64_t begin_ns = 0;
    int wrong;

    member->argument = NULL;
    wrong = open_all(member, &buffers);
    for (int i = 0; status == BANYAN_OK && !wrong; i++) {
        if (i == 30 && member->rank == CULPRIT)
            kill(getpid(), signal_number);
        begin_ns = by_clock_ns();
        status =
            banyan_alltoall(member->comm, buffers.send, buffers.recv, share_counts[1 + i % 5], BANYAN_U32);
    }
    if (!wrong && (double)(by_clock_ns() - begin_ns) / 1e9 > TIMEOUT + 1)
        wrong = member_wrong(member, "took %.1f s to see it", (double)(by_clock_ns() - begin_ns) / 1e9);
    if (!wrong)
        wrong = refuse(member, status, wanted, "rank 1 (127.0.0.1)");
    return close_all(member, &buffers, wrong);
}

static void expect_right_but_culprit(const struct team *team)
{
    for (uint32_t rank = 0; rank < team->count; rank++)
        if (rank != CULPRIT && (!WIFEXITED(team->status[rank]) || WEXITSTATUS(team->status[rank]) != 0))
            fail_msg("rank %u of %u: status %x", rank, team->count, (unsigned)team->status[rank]);
}

static void a_killed_rank_is_named_by_all_others(void **state)
{
    int signal_number = SIGKILL;
    struct team team;

    (void)state;
    setenv("BANYAN_TIMEOUT", "2", 1);
    team_run(&team, 6, suffer, &signal_number);
    expect_right_but_culprit(&team);
}

/* Another process ends the stopped member, so that the test can end. */
static int suffer_stop(struct team_member *member)
{
    pid_t self = getpid();

    if (member->rank == CULPRIT && fork() == 0) {
        usleep((useconds_t)((TIMEOUT + 2.5) * 1e6));
        kill(self, SIGKILL);
        _exit(0);
    }
    return suffer(member);
}

static void a_stopped_rank_is_named_by_all_others_in_time(void **state)
{
    int signal_number = SIGSTOP;
    struct team team;

    (void)state;
    setenv("BANYAN_TIMEOUT", "2", 1);
    team_run(&team, 6, suffer_stop, &signal_number);
    expect_right_but_culprit(&team);
}

static void equal_shares_arrive_in_one_memory(void **state)
{
    static const uint32_t counts[] = {2, 3, 5, 8, 17};

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        team_must(counts[i], try_equal, "circulant");
}

/* Shares of unequal size travel over the connections. */
static void unequal_shares_arrive_beside_one_memory(void **state)
{
    (void)state;
    team_must(6, try_unequal, NULL);
}

int main(void)
{
    const struct CMUnitTest in_memory[] = {
        cmocka_unit_test(equal_shares_arrive_in_one_memory),
        cmocka_unit_test(unequal_shares_arrive_beside_one_memory),
        cmocka_unit_test(requests_of_exchanges_are_posted_again),
        cmocka_unit_test(arguments_out_of_range_are_refused),
        cmocka_unit_test(ranks_that_disagree_are_told),
        cmocka_unit_test(a_killed_rank_is_named_by_all_others),
        cmocka_unit_test(a_stopped_rank_is_named_by_all_others_in_time),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_shares_arrive_for_every_number_of_ranks),
        cmocka_unit_test(equal_shares_arrive_under_the_other_schedules),
        cmocka_unit_test(shares_take_the_rounds_that_the_query_predicts),
        cmocka_unit_test(unequal_shares_arrive_for_every_number_of_ranks),
        cmocka_unit_test(requests_of_exchanges_are_posted_again),
        cmocka_unit_test(a_query_predicts_the_rounds),
        cmocka_unit_test(arguments_out_of_range_are_refused),
        cmocka_unit_test(ranks_that_disagree_are_told),
        cmocka_unit_test(a_killed_rank_is_named_by_all_others),
        cmocka_unit_test(a_stopped_rank_is_named_by_all_others_in_time),
    };

    int failed_count = cmocka_run_group_tests(tests, NULL, NULL);

    setenv("BANYAN_NEAR", "memory", 1);
    return failed_count + cmocka_run_group_tests_name("all ranks share memory", in_memory, NULL, NULL);
}

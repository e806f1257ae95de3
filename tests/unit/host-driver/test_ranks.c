/*
 * Several ranks on a host: two hosts on the loopback interface, joined by one cable, with any
 * number of ranks on each, in any layout. Each rank is a process. Every collective is compared with
 * what its definition says; ranks that are killed, late or in another call are named.
 */
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
#include "host-driver/local/mates.h"
#include "host-driver/local/seats.h"
#include "host-driver/local/slices.h"
#include "host-driver/local/sum.h"
#include "offload/wire/types.h"
#include "tests/unit/host-driver/fallback/team.h"
#include "tests/unit/host-driver/rig.h"

#define RANKS_MAX 7u
#define TIMEOUT   1.0 /* seconds, in tests of failures */

/* Which of the two hosts each rank is on, as text: "0101". */
static const char *const layouts[] = {"01", "0011", "0101", "1001", "00101", "1110", "0111011"};

static char folder[64];

/* ---- ranks */

static int open_on(struct team_member *member, const char *layout)
{
    char table[96];

    snprintf(table, sizeof(table), "%s/h%c.table", folder, layout[member->rank]);
    setenv("BANYAN_TABLE", table, 1);
    return member_open(member);
}

/* A value that differs by rank and place, and whose sums are exact. */
static int32_t value(uint32_t rank, uint64_t at)
{
    return (int32_t)((rank + 1) * 1000003u + (uint32_t)at * 7919u);
}

static int32_t sum_at(uint32_t count, uint64_t at)
{
    uint32_t sum = 0;

    for (uint32_t rank = 0; rank < count; rank++)
        sum += (uint32_t)value(rank, at);
    return (int32_t)sum;
}

static void fill(int32_t *buffer, uint32_t rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        buffer[i] = value(rank, i);
}

static int check(const struct team_member *member, const char *what, const int32_t *got, uint64_t at,
                 int32_t wanted)
{
    return got[at] == wanted
               ? 0
               : member_wrong(member, "%s: element %llu is wrong", what, (unsigned long long)at);
}

/* Runs one collective of `count` elements (of each shard), in place or not. */
static int run_one(struct team_member *member, banyan_collective_t collective, uint64_t count, bool in_place,
                   int32_t *send, int32_t *recv)
{
    struct banyan_comm *comm = member->comm;
    uint32_t rank = member->rank, n = member->count, root = (uint32_t)count % n;
    banyan_status_t status = BANYAN_OK;
    int wrong = 0;

    fill(send, rank, n * count);
    memset(recv, 0, n * count * sizeof(*recv));
    switch (collective) {
    case BANYAN_ALLREDUCE:
        recv = in_place ? send : recv;
        status = banyan_allreduce(comm, send, recv, count, BANYAN_I32, BANYAN_SUM);
        if (status != BANYAN_OK)
            break;
        for (uint64_t i = 0; i < count; i++)
            wrong += check(member, "allreduce", recv, i, sum_at(n, i));
        break;
    case BANYAN_REDUCE:
        recv = in_place && rank == root ? send : recv;
        status = banyan_reduce(comm, send, rank == root ? recv : NULL, count, BANYAN_I32, BANYAN_SUM, root);
        for (uint64_t i = 0; i < count && rank == root; i++)
            wrong += check(member, "reduce", recv, i, sum_at(n, i));
        break;
    case BANYAN_BROADCAST:
        recv = rank == root ? send : recv;
        status = banyan_broadcast(comm, recv, count, BANYAN_I32, root);
        for (uint64_t i = 0; i < count; i++)
            wrong += check(member, "broadcast", recv, i, value(root, i));
        break;
    case BANYAN_ALLGATHER:
        if (in_place)
            memcpy(recv + rank * count, send, count * sizeof(*recv));
        status = banyan_allgather(comm, in_place ? recv + rank * count : send, recv, count, BANYAN_I32);
        for (uint64_t i = 0; i < n * count; i++)
            wrong += check(member, "allgather", recv, i, value((uint32_t)(i / count), i % count));
        break;
    case BANYAN_REDUCE_SCATTER:
        recv = in_place ? send + rank * count : recv;
        status = banyan_reduce_scatter(comm, send, recv, count, BANYAN_I32, BANYAN_SUM);
        for (uint64_t i = 0; i < count; i++)
            wrong += check(member, "reduce-scatter", recv, i, sum_at(n, rank * count + i));
        break;
    case BANYAN_ALLTOALL:
    case BANYAN_SCATTER:
    case BANYAN_GATHER:
        break;
    case BANYAN_BARRIER:
        status = banyan_barrier(comm);
        break;
    }
    return status != BANYAN_OK ? member_wrong(member, "%s", banyan_last_error()) : wrong != 0;
}

/* Shards of unequal size, some empty. */
static int run_unequal(struct team_member *member, uint64_t unit, int32_t *send, int32_t *recv)
{
    uint32_t rank = member->rank, n = member->count;
    uint64_t counts[RANKS_MAX] = {0}, first = 0, all = 0;
    banyan_status_t status;
    int wrong = 0;

    for (uint32_t r = 0; r < n; r++) {
        counts[r] = r % 3 == 1 ? 0 : unit * (r + 1) + r;
        first += r < rank ? counts[r] : 0;
        all += counts[r];
    }
    fill(send, rank, all);
    status = banyan_allgatherv(member->comm, send, recv, counts, BANYAN_I32);
    if (status != BANYAN_OK)
        return member_wrong(member, "%s", banyan_last_error());
    for (uint64_t r = 0, at = 0; r < n; at += counts[r++])
        for (uint64_t i = 0; i < counts[r]; i++)
            wrong += check(member, "allgatherv", recv, at + i, value((uint32_t)r, i));
    status = banyan_reduce_scatterv(member->comm, send, recv, counts, BANYAN_I32, BANYAN_SUM);
    if (status != BANYAN_OK)
        return member_wrong(member, "%s", banyan_last_error());
    for (uint64_t i = 0; i < counts[rank]; i++)
        wrong += check(member, "reduce-scatterv", recv, i, sum_at(n, first + i));
    return wrong != 0;
}

/* Runs every collective in sizes around a slot, and of many slots. */
static int run_all(struct team_member *member)
{
    static const uint64_t counts[] = {1, 7, 4096, 65536, 65537, 200003, 900001};
    int32_t *send = calloc(RANKS_MAX * counts[6], sizeof(*send));
    int32_t *recv = calloc(RANKS_MAX * counts[6], sizeof(*recv));
    int wrong = open_on(member, member->argument);

    for (size_t size = 0; size < 7 && wrong == 0; size++)
        for (unsigned c = BANYAN_ALLREDUCE; c <= BANYAN_BARRIER && wrong == 0; c++) {
            bool sharded = c == BANYAN_ALLGATHER || c == BANYAN_REDUCE_SCATTER;

            for (int in_place = 0; in_place < 2 && wrong == 0; in_place++)
                wrong = run_one(member, (banyan_collective_t)c,
                                sharded ? (counts[size] + 7) / 8 : counts[size], in_place, send, recv);
        }
    if (wrong == 0)
        wrong = run_unequal(member, 5, send, recv) || run_unequal(member, 20000, send, recv);
    member_close(member);
    free(send);
    free(recv);
    return wrong;
}

static void every_collective_is_right_in_any_layout(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        team_must((uint32_t)strlen(layouts[i]), run_all, layouts[i]);
}

/* Posts many calls before it waits for any. */
static int run_many(struct team_member *member)
{
    enum { CALLS = 40, COUNT = 50000 };
    struct banyan_request *request[CALLS];
    int32_t *buffer = calloc(CALLS * (size_t)COUNT, sizeof(*buffer));
    int wrong = open_on(member, member->argument);

    for (int c = 0; c < CALLS && wrong == 0; c++) {
        fill(buffer + c * COUNT, member->rank + (uint32_t)c, COUNT);
        if (banyan_allreduce_init(member->comm, buffer + c * COUNT, buffer + c * COUNT, COUNT, BANYAN_I32,
                                  BANYAN_MAX, &request[c]) != BANYAN_OK ||
            banyan_post(request[c]) != BANYAN_OK)
            wrong = member_wrong(member, "%s", banyan_last_error());
    }
    for (int c = CALLS; c-- > 0 && wrong == 0;) {
        if (banyan_wait(request[c]) != BANYAN_OK)
            wrong = member_wrong(member, "%s", banyan_last_error());
        for (uint64_t i = 0; i < 200 && wrong == 0; i++)
            wrong =
                check(member, "maximum", buffer + c * COUNT, i, value(member->count - 1 + (uint32_t)c, i));
    }
    member_close(member);
    free(buffer);
    return wrong;
}

static void many_calls_run_at_once(void **state)
{
    (void)state;
    team_must(4, run_many, "0110");
}

static bool same_bytes(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

/* A sum of floats that depends on the order has the same bits at all ranks. */
static int run_floats(struct team_member *member)
{
    enum { COUNT = 100000 };
    float *buffer = calloc(COUNT, sizeof(*buffer)), *again = calloc(COUNT, sizeof(*again));
    int wrong = open_on(member, member->argument);
    uint64_t digest[RANKS_MAX] = {0}, hash = 0;

    for (int round = 0; round < 2 && wrong == 0; round++) {
        float *into = round == 0 ? buffer : again;

        for (uint64_t i = 0; i < COUNT; i++)
            into[i] = 1.0f / (float)(i * 31 + member->rank * 977 + 3);
        if (banyan_allreduce(member->comm, into, into, COUNT, BANYAN_F32, BANYAN_SUM) != BANYAN_OK)
            wrong = member_wrong(member, "%s", banyan_last_error());
    }
    if (wrong == 0 && !same_bytes(buffer, again, COUNT * sizeof(*buffer)))
        wrong = member_wrong(member, "two sums of the same numbers differ");
    for (uint64_t i = 0; i < COUNT; i++) {
        uint32_t bits;

        memcpy(&bits, &buffer[i], sizeof(bits));
        hash = hash * 31 + bits;
    }
    if (wrong == 0 && banyan_allgather(member->comm, &hash, digest, 1, BANYAN_U64) != BANYAN_OK)
        wrong = member_wrong(member, "%s", banyan_last_error());
    for (uint32_t rank = 0; rank < member->count && wrong == 0; rank++)
        if (digest[rank] != hash)
            wrong = member_wrong(member, "rank %u has other bits", rank);
    member_close(member);
    free(buffer);
    free(again);
    return wrong;
}

static void sums_of_floats_have_the_same_bits_at_all_ranks_and_times(void **state)
{
    (void)state;
    team_must(5, run_floats, "01101");
}

/* ---- answers */

static int run_answers(struct team_member *member)
{
    struct banyan_query query;
    float number = 1;
    int wrong = open_on(member, member->argument);

    if (wrong != 0)
        return wrong;
    banyan_query_init(&query);
    query.count = 1000;
    query.root = member->count - 1;
    query.collective = BANYAN_REDUCE;
    if (banyan_comm_query(member->comm, &query) != BANYAN_OK || query.path != BANYAN_TREES ||
        query.rank != member->rank || query.rank_count != member->count || query.packet_count == 0)
        wrong = member_wrong(member, "the query says %s: %s", query.reason, banyan_last_error());
    if (!banyan_comm_serves(member->comm, BANYAN_BROADCAST, member->count - 1) ||
        banyan_comm_serves(member->comm, BANYAN_BROADCAST, member->count))
        wrong = member_wrong(member, "serves a root that it has not, or not one that it has");
    query.collective = BANYAN_ALLREDUCE;
    query.mode = BANYAN_EXACT;
    if (banyan_comm_query(member->comm, &query) != BANYAN_OK || query.path != BANYAN_NOWHERE ||
        strstr(query.reason, "where several ranks share a host") == NULL)
        wrong = member_wrong(member, "the query of an exact sum says %s", query.reason);
    setenv("BANYAN_MODE", "exact", 1);
    member_close(member);
    if (wrong == 0)
        wrong = member_open(member);
    if (wrong == 0 &&
        (banyan_allreduce(member->comm, &number, &number, 1, BANYAN_F32, BANYAN_SUM) != BANYAN_EUNSUPPORTED ||
         strstr(banyan_last_error(), "start one rank on each host") == NULL))
        wrong = member_wrong(member, "an exact sum: %s", banyan_last_error());
    /* that was refused before anything was sent */
    if (wrong == 0 && banyan_barrier(member->comm) != BANYAN_OK)
        wrong = member_wrong(member, "%s", banyan_last_error());
    member_close(member);
    return wrong;
}

static void queries_and_refusals_are_the_same_at_all_ranks(void **state)
{
    (void)state;
    team_must(4, run_answers, "0110");
}

/* ---- failures */

struct accident {
    const char *layout;
    uint32_t culprit;
    enum { KILLED = 1, STOPPED, ABSENT, OTHER_CALL, OTHER_SIZE } how;
    const char *near;  /* said at the other ranks of its host */
    const char *there; /* at the other host */
};

/* Runs allreduces until one fails, which must be in time and for the right reason. */
static int suffer(struct team_member *member)
{
    static float buffer[300000];
    const struct accident *accident = member->argument;
    bool near = accident->layout[member->rank] == accident->layout[accident->culprit];
    const char *wanted = near ? accident->near : accident->there;
    banyan_status_t status = BANYAN_OK;
    uint64_t begin_ns = by_clock_ns();

    if (open_on(member, accident->layout) != 0)
        return 1;
    for (int i = 0; i < 1000000 && status == BANYAN_OK; i++) {
        begin_ns = by_clock_ns();
        if (member->rank == accident->culprit && i == 20) {
            if (accident->how == KILLED || accident->how == STOPPED)
                raise(accident->how == KILLED ? SIGKILL : SIGSTOP);
            if (accident->how == ABSENT) {
                sleep(4);
                _exit(0);
            }
            if (accident->how == OTHER_CALL)
                status = banyan_broadcast(member->comm, buffer, 300000, BANYAN_F32, 0);
            else
                status = banyan_allreduce(member->comm, buffer, buffer, 299000, BANYAN_F32, BANYAN_SUM);
            continue;
        }
        status = banyan_allreduce(member->comm, buffer, buffer, 300000, BANYAN_F32, BANYAN_SUM);
    }
    if (status == BANYAN_OK || strstr(banyan_last_error(), wanted) == NULL)
        return member_wrong(member, "'%s' instead of '%s'", status != BANYAN_OK ? banyan_last_error() : "",
                            wanted);
    if ((double)(by_clock_ns() - begin_ns) / 1e9 > 2 * TIMEOUT + 1)
        return member_wrong(member, "took %.1f s to see it", (double)(by_clock_ns() - begin_ns) / 1e9);
    if (banyan_barrier(member->comm) != BANYAN_ESTATE)
        return member_wrong(member, "a failed communicator takes another call");
    member_close(member);
    return 0;
}

/* Sends SIGKILL to ranks that have stopped themselves, once the others have had time to see it. */
static void happens(const struct accident *accident)
{
    uint32_t count = (uint32_t)strlen(accident->layout);
    pid_t keeper = 0;
    struct team team;

    rig_set("BANYAN_TIMEOUT", "1");
    if (accident->how == STOPPED) {
        keeper = fork();
        if (keeper == 0) {
            char words[256];

            /* a stopped rank keeps its parent waiting */
            snprintf(
                words, sizeof(words),
                "sleep 4; for p in $(cat /proc/%d/task/%d/children); do case $(cat /proc/$p/stat) in *') T '*) "
                "kill -9 $p;; esac; done",
                (int)getppid(), (int)getppid());
            execl("/bin/sh", "sh", "-c", words, (char *)NULL);
            _exit(1);
        }
    }
    team_run(&team, count, suffer, accident);
    if (keeper > 0)
        waitpid(keeper, NULL, 0);
    for (uint32_t rank = 0; rank < count; rank++)
        if (rank != accident->culprit || accident->how >= OTHER_CALL)
            assert_true(WIFEXITED(team.status[rank]) && WEXITSTATUS(team.status[rank]) == 0);
    rig_set("BANYAN_TIMEOUT", NULL);
}

static void a_killed_rank_is_named_on_all_hosts(void **state)
{
    static const struct accident follower = {"0011", 3, KILLED, "rank 3 on h1 (process ",
                                             "rank 3 on h1 has ended"};
    static const struct accident leader = {"0101", 1, KILLED, "rank 1 on h1 (process ", "h1 (ranks 1, 3)"};
    static const struct accident root = {"0101", 0, KILLED, "rank 0 on h0 (process ", "h0 (ranks 0, 2)"};

    (void)state;
    happens(&follower);
    happens(&leader);
    happens(&root);
}

static void a_rank_that_stops_or_does_not_call_is_named(void **state)
{
    static const struct accident stops = {"0011", 1, STOPPED, "rank 1 on h0 has not contributed",
                                          "rank 1 on h0 has not contributed for 1 s"};
    static const struct accident absent = {"00011", 2, ABSENT, "rank 2 on h0 has not contributed",
                                           "rank 2 on h0 has not contributed for 1 s"};

    (void)state;
    happens(&stops);
    happens(&absent);
}

static void ranks_in_different_calls_are_named_and_get_no_data(void **state)
{
    static const struct accident call = {"0011", 3, OTHER_CALL, "the ranks of h1 disagree: rank 2: allreduce",
                                         "h1 (ranks 2, 3)"};
    static const struct accident size = {"0011", 1, OTHER_SIZE, "rank 1: allreduce, sum of 299000 f32",
                                         "h0 (ranks 0, 1)"};
    static const struct accident hosts = {"001", 2, OTHER_SIZE, "the ranks disagree", "the ranks disagree"};

    (void)state;
    happens(&call);
    happens(&size);
    happens(&hosts);
}

static int find_nothing(struct team_member *member)
{
    char table[96];

    snprintf(table, sizeof(table), "%s/h0.table", folder);
    setenv("BANYAN_TABLE", table, 1);
    if (banyan_init(NULL, &member->context) != BANYAN_OK ||
        banyan_comm_create(member->context, 0, &member->comm) == BANYAN_OK)
        return member_wrong(member, "opened without a rank on h1");
    return strstr(banyan_last_error(), "none of the 3 ranks runs on host 1 of the 2 hosts") != NULL
               ? 0
               : member_wrong(member, "%s", banyan_last_error());
}

static void a_host_without_a_rank_is_refused_by_all(void **state)
{
    (void)state;
    team_must(3, find_nothing, NULL);
}

static int set_up(void **state)
{
    (void)state;
    rig_write_loopback(2, folder);
    setenv("BANYAN_TRANSPORT", "udp", 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rig_remove(folder);
    return 0;
}

/* ---- parts */

unsigned __real_by_isa_best(void);
unsigned __wrap_by_isa_best(void);

static unsigned detections;

unsigned __wrap_by_isa_best(void)
{
    detections++;
    return __real_by_isa_best();
}

/* In a virtual machine a detection may take 100 us. */
static void the_instruction_set_is_detected_once(void **state)
{
    int32_t in[2] = {3, 4}, out;
    const void *inputs[] = {&in[0], &in[1]};

    (void)state;
    by_mates_sum(BY_OP_SUM, BY_DTYPE_I32, &out, inputs, 2, 1);
    detections = 0;
    for (int i = 0; i < 100; i++)
        by_mates_sum(BY_OP_SUM, BY_DTYPE_I32, &out, inputs, 2, 1);
    assert_int_equal(out, 7);
    assert_int_equal(detections, 0);
}

static void a_sum_has_the_order_of_the_ranks_for_any_number_of_them(void **state)
{
    enum { COUNT = 5000, INPUTS = 19 };
    static float in[INPUTS][COUNT], out[COUNT];
    const void *inputs[INPUTS];

    (void)state;
    for (int i = 0; i < INPUTS; i++) {
        inputs[i] = in[i];
        for (int k = 0; k < COUNT; k++)
            in[i][k] = 1.0f / (float)(k * 19 + i + 1);
    }
    for (uint32_t n = 1; n <= INPUTS; n++) {
        by_mates_sum(BY_OP_SUM, BY_DTYPE_F32, out, inputs, n, COUNT);
        for (int k = 0; k < COUNT; k++) {
            float wanted = in[0][k];

            for (uint32_t i = 1; i < n; i++)
                wanted += in[i][k];
            assert_memory_equal(&wanted, &out[k], sizeof(wanted));
        }
    }
}

/* Every element of every shard is in one slice, and fits a slot. */
static void slices_cover_every_element_once(void **state)
{
    static const uint16_t host_of[] = {1, 0, 2, 1, 1, 0};
    static uint8_t slot[4096], user[6 * 3000 * 8], back[6 * 3000 * 8];
    struct by_seats seats;

    (void)state;
    assert_int_equal(by_seats_make(&seats, host_of, 6, 3, 3), 0);
    assert_int_equal(seats.index, 1);
    assert_int_equal(seats.mates, 3);
    for (size_t i = 0; i < sizeof(user); i++)
        user[i] = (uint8_t)(i * 7 + i / 251);
    for (uint64_t count = 1; count < 3000; count += 97) {
        struct by_call call = {.collective = BY_COLLECTIVE_ALLGATHER,
                               .op = BY_OP_BOR,
                               .dtype = BY_DTYPE_U64,
                               .count = count,
                               .send = user,
                               .recv = back};
        struct by_slices slices, packing;

        by_slices_cut(&slices, &call, &seats, sizeof(slot));
        packing = slices;
        packing.call.collective = BY_COLLECTIVE_REDUCE_SCATTER; /* packs the shards of all ranks */
        memset(back, 0, sizeof(back));
        for (uint64_t i = 0; i < slices.count; i++) {
            assert_true(by_slices_bytes(&slices, i) > 0 && by_slices_bytes(&slices, i) <= sizeof(slot));
            by_slices_pack(&packing, i, slot);
            by_slices_unpack(&slices, i, slot);
        }
        assert_memory_equal(back, user, 6 * count * 8);
    }
    by_seats_free(&seats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_instruction_set_is_detected_once),
        cmocka_unit_test(a_sum_has_the_order_of_the_ranks_for_any_number_of_them),
        cmocka_unit_test(slices_cover_every_element_once),
        cmocka_unit_test(every_collective_is_right_in_any_layout),
        cmocka_unit_test(many_calls_run_at_once),
        cmocka_unit_test(sums_of_floats_have_the_same_bits_at_all_ranks_and_times),
        cmocka_unit_test(queries_and_refusals_are_the_same_at_all_ranks),
        cmocka_unit_test(a_killed_rank_is_named_on_all_hosts),
        cmocka_unit_test(a_rank_that_stops_or_does_not_call_is_named),
        cmocka_unit_test(ranks_in_different_calls_are_named_and_get_no_data),
        cmocka_unit_test(a_host_without_a_rank_is_refused_by_all),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}

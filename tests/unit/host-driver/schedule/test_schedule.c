/*
 * libbanyan executes schedules of banyan steady: all-to-all, scatter, gather and reduce over hosts
 * that pass on and combine what others send, of all sizes, several calls at once, in place; and
 * ranks that end, disagree or have another file get errors. Each rank is a process. Members compute
 * every element that they must receive.
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

#include "host-driver/schedule/program.h"
#include "tests/unit/host-driver/fallback/team.h"
#include "tests/unit/host-driver/schedule/made.h"

#define MOST    60000u /* elements of a share */
#define RANKS   5u
#define CULPRIT 2u
#define AT_ONCE 3u

static int32_t from[AT_ONCE][RANKS * MOST], to[AT_ONCE][RANKS * MOST];

static const uint64_t counts[] = {0, 1, 3, 1000, 7777, MOST};

/* Element i of the share of rank `source` for rank `target` in call `call`. */
static int32_t value(uint32_t call, uint32_t source, uint32_t target, uint64_t i)
{
    return (int32_t)(call * 1000003u + source * 70001u + target * 10007u + i);
}

static void fill(uint32_t call, const struct team_member *member, uint64_t count)
{
    memset(to[call], 0xee, sizeof(to[call]));
    for (uint32_t target = 0; target < member->count; target++)
        for (uint64_t i = 0; i < count; i++)
            from[call][target * count + i] = value(call, member->rank, target, i);
}

/* Compares what has arrived in `got` with the shares of all ranks for this one. */
static int check(uint32_t call, const struct team_member *member, const int32_t *got, uint64_t count)
{
    for (uint32_t source = 0; source < member->count; source++)
        for (uint64_t i = 0; i < count; i++)
            if (got[source * count + i] != value(call, source, member->rank, i))
                return member_wrong(member, "call %u: element %llu of rank %u is %d", call,
                                    (unsigned long long)i, source, got[source * count + i]);
    return 0;
}

static int wrong_call(const struct team_member *member, const char *name)
{
    return member_wrong(member, "%s: %s", name, banyan_last_error());
}

static int exchange_all(struct team_member *member)
{
    int wrong = member_open(member);

    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]) && !wrong; c++) {
        struct banyan_request *requests[AT_ONCE];

        for (uint32_t call = 0; call < AT_ONCE && !wrong; call++) {
            fill(call, member, counts[c]);
            /* one rank posts late what others pass on, another one what they have for it already */
            if (call == 0 && member->rank == (c + 1) % member->count)
                usleep(30000);
            if (call > 0 && member->rank == (c + 3) % member->count)
                usleep(60000);
            if (banyan_alltoall_init(member->comm, from[call], call == 1 ? from[call] : to[call], counts[c],
                                     BANYAN_I32, &requests[call]) != BANYAN_OK ||
                banyan_post(requests[call]) != BANYAN_OK)
                wrong = wrong_call(member, "post");
        }
        for (uint32_t call = AT_ONCE; call-- > 0 && !wrong;) {
            if (banyan_wait(requests[call]) != BANYAN_OK || banyan_free(requests[call]) != BANYAN_OK)
                wrong = wrong_call(member, "wait");
            else
                wrong = check(call, member, call == 1 ? from[call] : to[call], counts[c]);
        }
    }
    if (!wrong && member_counter(member, "schedule/calls") != AT_ONCE * 5)
        wrong = member_wrong(member, "the schedule has executed %llu calls",
                             (unsigned long long)member_counter(member, "schedule/calls"));
    member_close(member);
    return wrong;
}

/* Shares of (source + 2 target) % 5 times 100 elements; an odd place in the buffers. */
static uint64_t unequal(uint32_t source, uint32_t target)
{
    return (source + 2 * target) % 5 * 100;
}

static int exchange_unequal(struct team_member *member)
{
    uint64_t sizes[2][RANKS], places[2][RANKS];
    int wrong = member_open(member);

    for (uint32_t peer = 0; peer < member->count; peer++) {
        sizes[0][peer] = unequal(member->rank, peer);
        sizes[1][peer] = unequal(peer, member->rank);
        places[0][peer] = 5 + peer * 1000;
        places[1][peer] = 7 + (member->count - 1 - peer) * 1000;
        for (uint64_t i = 0; i < sizes[0][peer]; i++)
            from[0][places[0][peer] + i] = value(0, member->rank, peer, i);
    }
    for (int turn = 0; turn < 3 && !wrong; turn++) {
        memset(to[0], 0, sizeof(to[0]));
        if (banyan_alltoallv(member->comm, from[0], sizes[0], places[0], to[0], sizes[1], places[1],
                             BANYAN_I32) != BANYAN_OK)
            wrong = wrong_call(member, "alltoallv");
        for (uint32_t peer = 0; peer < member->count && !wrong; peer++)
            for (uint64_t i = 0; i < sizes[1][peer]; i++)
                if (to[0][places[1][peer] + i] != value(0, peer, member->rank, i))
                    wrong = member_wrong(member, "element %llu of rank %u", (unsigned long long)i, peer);
    }
    if (!wrong && member_counter(member, "schedule/calls") != 3)
        wrong = member_wrong(member, "the schedule has not executed the calls");
    member_close(member);
    return wrong;
}

static int scatter_and_gather(struct team_member *member)
{
    const struct made *made = member->argument;
    uint32_t root = made->rank;
    int wrong = member_open(member);

    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]) && !wrong; c++) {
        uint64_t count = counts[c];
        banyan_status_t status;

        fill(0, member, count);
        if (made->is_gather)
            status = banyan_gather(member->comm, from[0] + root * count, to[0], count, BANYAN_I32, root);
        else
            status = banyan_scatter(member->comm, from[0], to[0], count, BANYAN_I32, root);
        if (status != BANYAN_OK)
            wrong = wrong_call(member, "call");
        else if (made->is_gather && member->rank == root)
            wrong = check(0, member, to[0], count);
        for (uint64_t i = 0; !made->is_gather && i < count && !wrong; i++)
            if (to[0][i] != value(0, root, member->rank, i))
                wrong = member_wrong(member, "element %llu is %d", (unsigned long long)i, to[0][i]);
    }
    if (!wrong && member_counter(member, "schedule/calls") != 5)
        wrong = member_wrong(member, "the schedule has not executed the calls");
    member_close(member);
    return wrong;
}

static int reduce(struct team_member *member)
{
    const struct made *made = member->argument;
    uint32_t sum = member->count * (member->count + 1) / 2;
    int wrong = member_open(member);

    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]) && !wrong; c++)
        for (int in_place = 0; in_place < 2 && !wrong; in_place++) {
            float *send = (float *)from[0], *recv = in_place ? send : (float *)to[0];

            for (uint64_t i = 0; i < counts[c]; i++)
                send[i] = (float)((member->rank + 1) * (i % 100));
            if (banyan_reduce(member->comm, send, recv, counts[c], BANYAN_F32, BANYAN_SUM, made->rank) !=
                BANYAN_OK)
                wrong = wrong_call(member, "reduce");
            for (uint64_t i = 0; i < counts[c] && !wrong && member->rank == made->rank; i++)
                if (recv[i] != (float)(sum * (i % 100)))
                    wrong =
                        member_wrong(member, "element %llu is %g", (unsigned long long)i, (double)recv[i]);
        }
    if (!wrong && member_counter(member, "schedule/calls") != 10)
        wrong = member_wrong(member, "the schedule has not executed the calls");
    member_close(member);
    return wrong;
}

/* Runs `body` on all ranks with the file of `made`. */
static void run(const struct made *made, uint32_t count, member_fn *body)
{
    char path[64];

    made_file(made, path);
    setenv("BANYAN_SCHEDULE", path, 1);
    team_must(count, body, made);
    unsetenv("BANYAN_SCHEDULE");
    unlink(path);
}

static const struct {
    const char *topology;
    uint32_t ranks;
} fabrics[] = {{RING, 4}, {TWO_SWITCHES, 5}};

static const enum by_series_ports ports[] = {BY_SERIES_ONE_PORT, BY_SERIES_HOST_PORTS, BY_SERIES_MANY_PORTS};

static void all_to_alls_take_the_paths_of_a_schedule(void **state)
{
    (void)state;
    for (size_t f = 0; f < 2; f++)
        for (size_t p = 0; p < 3; p++)
            run(&(struct made){fabrics[f].topology, BY_SERIES_GOSSIP, ports[p], 0, false, NULL},
                fabrics[f].ranks, exchange_all);
}

static void unequal_shares_take_the_same_paths(void **state)
{
    /* a matrix of the same shares, and so without the messages that are empty */
    static unsigned matrix[RANKS * RANKS];

    (void)state;
    run(&(struct made){TWO_SWITCHES, BY_SERIES_GOSSIP, BY_SERIES_ONE_PORT, 0, false, NULL}, RANKS,
        exchange_unequal);
    for (uint32_t s = 0; s < RANKS; s++)
        for (uint32_t t = 0; t < RANKS; t++)
            matrix[s * RANKS + t] = s == t ? 0 : (unsigned)unequal(s, t) / 100;
    run(&(struct made){TWO_SWITCHES, BY_SERIES_EXCHANGE, BY_SERIES_MANY_PORTS, 0, false, matrix}, RANKS,
        exchange_unequal);
}

static void scatters_and_gathers_take_the_paths_of_a_schedule(void **state)
{
    (void)state;
    for (uint32_t root = 0; root < 2; root++) {
        run(&(struct made){TWO_SWITCHES, BY_SERIES_SCATTER, BY_SERIES_ONE_PORT, root, false, NULL}, RANKS,
            scatter_and_gather);
        run(&(struct made){RING, BY_SERIES_GOSSIP, BY_SERIES_MANY_PORTS, root, true, NULL}, 4,
            scatter_and_gather);
    }
}

static void reduces_combine_where_the_schedule_does(void **state)
{
    (void)state;
    for (size_t f = 0; f < 2; f++)
        for (size_t p = 0; p < 3; p++)
            run(&(struct made){fabrics[f].topology, BY_SERIES_REDUCE, ports[p], (uint32_t)(f + p) % 3, false,
                               NULL},
                fabrics[f].ranks, reduce);
}

/* ---- errors */

/* One rank of several calls a second operation with another size, ends, or stops. */
enum schedule_fault { ANOTHER_SIZE = 1, ANOTHER_SHARE, END, STOP, NO_MESSAGE };

static enum schedule_fault fault;

/* Stops this process for some seconds. */
static void stop_for(unsigned seconds)
{
    if (fork() == 0) {
        sleep(seconds);
        kill(getppid(), SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
}

static int meet_a_fault(struct team_member *member)
{
    static const char *const says[] = {[ANOTHER_SIZE] = "another",
                                       [ANOTHER_SHARE] = "another",
                                       [END] = "rank 2",
                                       [STOP] = "rank 2",
                                       [NO_MESSAGE] = "for which the schedule"};
    uint64_t none[RANKS] = {0}, one[RANKS] = {1, 1, 1, 1, 1}, many[RANKS] = {100, 100, 100, 100, 100},
             more[RANKS] = {101, 100, 100, 100, 100};
    int wrong = member_open(member);
    banyan_status_t status;
    bool must;

    for (int turn = 0; turn < 2 && !wrong && fault != NO_MESSAGE; turn++) {
        fill(0, member, 1000);
        if (banyan_alltoall(member->comm, from[0], to[0], 1000, BANYAN_I32) != BANYAN_OK)
            wrong = wrong_call(member, "alltoall");
    }
    if (!wrong && banyan_barrier(member->comm) != BANYAN_OK)
        wrong = wrong_call(member, "barrier");
    if (!wrong)
        sleep(1); /* the others have left the barrier, too */
    if (wrong || (member->rank == CULPRIT && fault == END))
        _exit(wrong);
    if (member->rank == CULPRIT && fault == STOP)
        stop_for(9);
    if (fault == NO_MESSAGE)
        status = banyan_alltoallv(member->comm, from[0], member->rank == CULPRIT ? one : none, NULL, to[0],
                                  member->rank == CULPRIT ? one : none, NULL, BANYAN_I32);
    else if (fault == ANOTHER_SHARE)
        status = banyan_alltoallv(member->comm, from[0], member->rank == CULPRIT ? more : many, NULL, to[0],
                                  many, NULL, BANYAN_I32);
    else
        status = banyan_alltoall(member->comm, from[0], to[0],
                                 member->rank == CULPRIT && fault == ANOTHER_SIZE ? 1001 : MOST, BANYAN_I32);
    /* where one pair of ranks disagrees, or one has too much, others may have ended before */
    must = fault == NO_MESSAGE ? member->rank == CULPRIT : fault == ANOTHER_SHARE ? member->rank == 0 : true;
    if (status == BANYAN_OK && must)
        wrong = member_wrong(member, "the call has succeeded");
    else if (must && (member->rank != CULPRIT || fault == NO_MESSAGE) &&
             strstr(banyan_last_error(), says[fault]) == NULL)
        wrong = member_wrong(member, "does not say '%s': %s", says[fault], banyan_last_error());
    member_close(member);
    return wrong;
}

static void ranks_that_end_or_differ_end_all_with_an_error(void **state)
{
    static const unsigned matrix[RANKS * RANKS] = {[1] = 1, [2 * RANKS] = 1};
    static const struct made gossip = {TWO_SWITCHES, BY_SERIES_GOSSIP, BY_SERIES_ONE_PORT, 0, false, NULL};
    static const struct made pairs = {TWO_SWITCHES, BY_SERIES_EXCHANGE, BY_SERIES_ONE_PORT, 0, false, matrix};

    (void)state;
    setenv("BANYAN_TIMEOUT", "4", 1);
    for (fault = ANOTHER_SIZE; fault <= NO_MESSAGE; fault++) {
        char path[64];

        made_file(fault == NO_MESSAGE ? &pairs : &gossip, path);
        setenv("BANYAN_SCHEDULE", path, 1);
        team_must(RANKS, meet_a_fault, NULL);
        unlink(path);
    }
    unsetenv("BANYAN_SCHEDULE");
    unsetenv("BANYAN_TIMEOUT");
}

/* Joins with a file that cannot be used here, or that other ranks do not have. */
static int fail_to_open(struct team_member *member)
{
    const char *const *says = member->argument;

    if (member->rank == CULPRIT && says[1] != NULL)
        setenv("BANYAN_SCHEDULE", says[1], 1);
    if (banyan_init(NULL, &member->context) == BANYAN_OK &&
        banyan_comm_create(member->context, 0, &member->comm) == BANYAN_OK)
        return member_wrong(member, "has joined");
    if (strstr(banyan_last_error(), says[0]) == NULL)
        return member_wrong(member, "does not say '%s': %s", says[0], banyan_last_error());
    member_close(member);
    return 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void files_that_cannot_be_used_are_refused(void **state)
{
    static const char *const broken[][2] = {
        {"[1]", "no schedule of moves"},
        {"{\"format\": ", "BANYAN_SCHEDULE: /tmp/"},
        {"{\"format\": \"banyan-moves-1\", \"operation\": \"gossip\", \"ranks\": 3, \"chunks\": 1, \"rounds\": "
         "1, \"interval\": 1, \"paths\": [], \"hosts\": []}",
         "is for 3 ranks, and the job has 5"},
        {"{\"format\": \"banyan-moves-1\", \"operation\": \"gossip\", \"ranks\": 5, \"chunks\": 1, \"rounds\": "
         "1, \"interval\": 1, \"hosts\": []}",
         "it has no paths"},
        {"{\"format\": \"banyan-moves-1\", \"operation\": \"gossip\", \"ranks\": 5, \"chunks\": 1, \"rounds\": "
         "1, \"interval\": 1, \"paths\": [], \"hosts\": [{\"rank\": 0, \"moves\": []}]}",
         "no host for each rank"},
        {"{\"format\": \"banyan-moves-1\", \"operation\": \"reduce\", \"ranks\": 5, \"chunks\": 1, \"rounds\": "
         "1, \"interval\": 1, \"paths\": [], \"hosts\": []}",
         "target and partials"},
    };
    char path[64], other[64];
    const char *says[2] = {NULL, NULL};

    (void)state;
    made_file(&(struct made){RING, BY_SERIES_GOSSIP, BY_SERIES_ONE_PORT, 0, false, NULL}, path);
    made_file(&(struct made){TWO_SWITCHES, BY_SERIES_GOSSIP, BY_SERIES_ONE_PORT, 0, false, NULL}, other);
    setenv("BANYAN_SCHEDULE", path, 1);
    says[0] = "is for 4 ranks, and the job has 5";
    team_must(RANKS, fail_to_open, says);
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        write_file(path, broken[i][0]);
        says[0] = broken[i][1];
        team_must(RANKS, fail_to_open, says);
    }
    unlink(path);
    says[0] = "No such file";
    team_must(RANKS, fail_to_open, says);
    /* one rank has a file of its own */
    setenv("BANYAN_SCHEDULE", other, 1);
    made_file(&(struct made){TWO_SWITCHES, BY_SERIES_GOSSIP, BY_SERIES_MANY_PORTS, 0, false, NULL}, path);
    says[0] = "other files";
    says[1] = path;
    team_must(RANKS, fail_to_open, says);
    unlink(path);
    unlink(other);
    unsetenv("BANYAN_SCHEDULE");
}

/* Reads the file with every seventh byte changed in turn, and cut there: it is refused, or read as
 * a program whose numbers are within their limits. */
static void damaged_files_do_no_harm(void **state)
{
    static const char changes[] = "0\"}]9-";
    static const enum by_series_operation operations[] = {BY_SERIES_GOSSIP, BY_SERIES_REDUCE};
    static char text[1 << 16];

    (void)state;
    for (size_t o = 0; o < 2; o++) {
        char path[64];
        FILE *file;
        size_t bytes;

        made_file(&(struct made){RING, operations[o], BY_SERIES_ONE_PORT, 0, false, NULL}, path);
        file = fopen(path, "r");
        assert_non_null(file);
        bytes = fread(text, 1, sizeof(text) - 1, file);
        fclose(file);
        text[bytes] = 0;
        for (size_t at = 0; at < bytes; at += 7) {
            struct by_program *program;
            char kept = text[at];

            text[at] = changes[at / 7 % (sizeof(changes) - 1)];
            write_file(path, text);
            if (by_schedule_program_read(path, 1, 4, &program) == 0)
                by_schedule_program_free(program);
            text[at] = 0;
            write_file(path, text);
            if (by_schedule_program_read(path, 1, 4, &program) == 0)
                fail_msg("the first %zu bytes are accepted", at);
            text[at] = kept;
        }
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_to_alls_take_the_paths_of_a_schedule),
        cmocka_unit_test(unequal_shares_take_the_same_paths),
        cmocka_unit_test(scatters_and_gathers_take_the_paths_of_a_schedule),
        cmocka_unit_test(reduces_combine_where_the_schedule_does),
        cmocka_unit_test(ranks_that_end_or_differ_end_all_with_an_error),
        cmocka_unit_test(files_that_cannot_be_used_are_refused),
        cmocka_unit_test(damaged_files_do_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

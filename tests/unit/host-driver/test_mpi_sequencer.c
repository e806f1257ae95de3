/* The first call that libbanyan executes on a communicator whose calls do not wait for each other
 * is the same on all ranks, however far apart they are, and whatever happens to one of them. Each
 * rank is a thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>

#include "host-driver/clock.h"
#include "host-driver/plugin/mpi/sequencer.h"

#define RANKS        5u
#define EVER         UINT64_MAX
#define PATIENCE_MS  300 /* a rank waits for ever for one that never comes */
#define ROUNDS       20
#define AHEAD        300u
#define WAITING_EACH 10u
#define BEFORE       3u /* calls of each rank before it requests the job */

enum fault { NO_FAULT, LEAVES_EARLY, LEAVES_LATE, CANNOT_OPEN, WRONG_KEY };

static struct by_mpi_facts facts;
static uint64_t next_id;
static atomic_ullong slowest; /* calls of the slowest rank */

struct test_rank {
    uint32_t rank;
    uint64_t id;
    unsigned seed;
    unsigned pause_us; /* most between two calls */
    enum fault fault;
    unsigned waiting; /* calls of WAITING_EACH that wait for all ranks */
    int gives_up;
    int opened;
    uint64_t calls; /* that MPI has executed */
    int is_late;    /* it has given up */
    int is_on;      /* libbanyan executes the next */
    int status;
    char text[BY_MPI_TEXT_MAX];
};

static void nap(unsigned microseconds)
{
    const struct timespec time = {.tv_nsec = (long)microseconds * 1000};

    if (microseconds > 0)
        nanosleep(&time, NULL);
}

/* Two exchanges, as libbanyan makes some. */
static int open_job(const struct banyan_bootstrap *ranks, void *context, char text[BY_MPI_TEXT_MAX])
{
    struct test_rank *self = context;
    struct block {
        uint32_t rank;
        uint8_t more[300];
    } mine = {.rank = self->rank}, all[RANKS];

    for (int i = 0; i < 2; i++) {
        nap((unsigned)rand_r(&self->seed) % 3000);
        if (ranks->allgather(ranks->context, &mine, all, sizeof(mine)) != 0) {
            snprintf(text, BY_MPI_TEXT_MAX, "%s", banyan_last_error());
            return BANYAN_EIO;
        }
        for (uint32_t rank = 0; rank < RANKS; rank++)
            if (all[rank].rank != rank)
                return BANYAN_EMISMATCH;
    }
    if (self->fault == CANNOT_OPEN) {
        snprintf(text, BY_MPI_TEXT_MAX, "no socket");
        return BANYAN_EIO;
    }
    self->opened = 1;
    return 0;
}

/* The rank that is ahead: by at most AHEAD calls, as the others must reach the call that is
 * decided. */
static void keep_within(const struct test_rank *self)
{
    for (int i = 0; i < 1000 && self->calls > BEFORE + AHEAD + atomic_load(&slowest); i++)
        nap(100);
}

static void rest(void)
{
    nap(50);
}

static void *run(void *context)
{
    struct test_rank *self = context;
    struct by_mpi_facts other = facts;
    struct by_mpi_opening_config config = {.sequencer = &facts,
                                           .id = self->id,
                                           .rank = self->rank,
                                           .size = RANKS,
                                           .calls = BEFORE,
                                           .timeout_ns = UINT64_C(60000000000),
                                           .open = open_job,
                                           .context = self};
    struct by_mpi_opening *opening;
    enum by_mpi_way way = BY_MPI_WAY_MPI;
    uint64_t end_ns = by_clock_ns() + PATIENCE_MS * UINT64_C(1000000);
    uint64_t left = self->fault == LEAVES_EARLY  ? 5
                    : self->fault == LEAVES_LATE ? 5 + (uint64_t)rand_r(&self->seed) % 400
                                                 : EVER;

    if (self->fault == WRONG_KEY) {
        other.door_key++;
        config.sequencer = &other;
    }
    self->calls = BEFORE;
    nap((unsigned)rand_r(&self->seed) % 5000);
    opening = by_mpi_opening_begin(&config);
    while (opening != NULL && left-- > 0 && !self->is_late) {
        /* one call in WAITING_EACH waits for all ranks, at the same place on each */
        way = by_mpi_opening_call(opening, self->calls % WAITING_EACH < self->waiting ? rest : NULL);
        if (way != BY_MPI_WAY_MPI)
            break;
        self->calls++;
        if (self->pause_us == 50u << (RANKS - 1))
            atomic_store(&slowest, self->calls);
        self->is_late = self->gives_up && by_clock_ns() > end_ns;
        if (self->pause_us > 0)
            nap((unsigned)rand_r(&self->seed) % self->pause_us);
        else
            keep_within(self);
    }
    self->is_on = way == BY_MPI_WAY_LANE;
    self->status = opening != NULL ? by_mpi_opening_end(opening, self->text) : BANYAN_ENOMEM;
    return NULL;
}

static struct test_rank ranks[RANKS];

static unsigned waiting; /* for the ranks of the next run */

static void run_all(unsigned seed, enum fault fault)
{
    pthread_t thread[RANKS];
    uint64_t id = ++next_id;

    atomic_store(&slowest, 0);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        ranks[rank] = (struct test_rank){.rank = rank, .id = id, .seed = seed * 31 + rank};
        /* one rank starts its calls without a pause, far ahead of all others */
        ranks[rank].waiting = waiting;
        ranks[rank].gives_up = fault != NO_FAULT;
        ranks[rank].pause_us = rank == seed % (RANKS - 1) ? 0 : 50u << rank;
        if (rank == (seed + 1) % RANKS)
            ranks[rank].fault = fault;
        assert_int_equal(pthread_create(&thread[rank], NULL, run, &ranks[rank]), 0);
    }
    for (uint32_t rank = 0; rank < RANKS; rank++)
        pthread_join(thread[rank], NULL);
}

static void all_ranks_begin_with_the_same_call(void **state)
{
    uint64_t most = 0;

    (void)state;
    for (unsigned seed = 0; seed < ROUNDS; seed++) {
        run_all(seed, NO_FAULT);
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            assert_true(ranks[rank].is_on);
            assert_true(ranks[rank].opened);
            assert_int_equal(ranks[rank].status, 0);
            assert_int_equal(ranks[rank].calls, ranks[0].calls);
        }
        most = ranks[0].calls > most ? ranks[0].calls : most;
    }
    assert_true(most > BEFORE);
}

/* Calls that wait for all ranks wait for the decision: of the calls before, and of those that were
 * permitted beyond it, no more stay with MPI. */
static void calls_that_wait_for_all_ranks_wait_for_the_decision(void **state)
{
    (void)state;
    waiting = 1;
    for (unsigned seed = 0; seed < ROUNDS; seed++) {
        run_all(seed, NO_FAULT);
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            assert_true(ranks[rank].is_on);
            assert_int_equal(ranks[rank].status, 0);
            assert_int_equal(ranks[rank].calls, ranks[0].calls);
            assert_true(ranks[rank].calls <= BEFORE + WAITING_EACH + 8);
        }
    }
    waiting = 0;
}

/* No rank runs on trees that another one does not use. */
static void without_one_rank_all_stay_with_mpi(void **state)
{
    static const enum fault faults[] = {LEAVES_EARLY, CANNOT_OPEN, WRONG_KEY};

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        for (unsigned seed = 0; seed < 5; seed++) {
            run_all(seed, faults[i]);
            for (uint32_t rank = 0; rank < RANKS; rank++)
                assert_false(ranks[rank].is_on);
        }
}

/* A rank frees the communicator after a call that all others make as well; then they are alike in
 * these calls, and those that go on do so only with calls that it has not made. */
static void a_rank_that_leaves_during_the_decision_differs_in_no_call(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < ROUNDS; seed++) {
        const struct test_rank *left = &ranks[(seed + 1) % RANKS];

        run_all(seed, LEAVES_LATE);
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            if (left->is_on && ranks[rank].is_on)
                assert_int_equal(ranks[rank].calls, left->calls);
            else if (ranks[rank].is_on)
                assert_true(ranks[rank].calls >= left->calls);
            else if (left->is_on && !ranks[rank].is_late)
                fail_msg("rank %u stays with MPI, but rank %u does not: %s", rank, left->rank,
                         ranks[rank].text);
        }
    }
}

static int begin(void **state)
{
    (void)state;
    return by_mpi_sequencer_open(&facts);
}

static void idle(void)
{
}

static int end(void **state)
{
    (void)state;
    by_mpi_sequencer_close(idle);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_begin_with_the_same_call),
        cmocka_unit_test(calls_that_wait_for_all_ranks_wait_for_the_decision),
        cmocka_unit_test(without_one_rank_all_stay_with_mpi),
        cmocka_unit_test(a_rank_that_leaves_during_the_decision_differs_in_no_call),
    };

    return cmocka_run_group_tests(tests, begin, end);
}

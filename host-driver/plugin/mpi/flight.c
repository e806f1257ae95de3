/* Calls under way; see flight.h. The lock protects the list, all stages and libbanyan's
 * communicator; it is not held while MPI is called. */
#include "host-driver/plugin/mpi/flight.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SLICE_US 500u    /* maximum delay of MPI's own messages during a wait */
#define AWAY_NS  200000u /* a program that has not moved packets for this long is away */
#define TURN_US  100u    /* how long the thread then moves them before it looks again */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wanted; /* a call has started, or the thread shall end */
    struct by_mpi_flight *first, *last;
    struct by_mpi_flight *turn; /* the next to test; NULL: the first */
    uint64_t rounds;            /* of progress by the program */
    pthread_t thread;
    int has_thread, has_to_end;
} air = {.lock = PTHREAD_MUTEX_INITIALIZER, .wanted = PTHREAD_COND_INITIALIZER};

/* ---- the list ---- */

static void link_last(struct by_mpi_flight *flight)
{
    flight->next = NULL;
    flight->previous = air.last;
    if (air.last != NULL)
        air.last->next = flight;
    else
        air.first = flight;
    air.last = flight;
}

static void end(struct by_mpi_flight *flight, banyan_status_t status)
{
    flight->stage = BY_MPI_ENDED;
    flight->status = status;
    if (status != BANYAN_OK)
        snprintf(flight->text, sizeof(flight->text), "%s", banyan_last_error());
    else if (!flight->is_own)
        by_mpi_count(flight->call.collective);
    if (air.turn == flight)
        air.turn = flight->next;
    if (flight->next != NULL)
        flight->next->previous = flight->previous;
    else
        air.last = flight->previous;
    if (flight->previous != NULL)
        flight->previous->next = flight->next;
    else
        air.first = flight->next;
}

/* Posts the calls that wait, in their order, as far as libbanyan accepts them. */
static void post_queued(void)
{
    struct by_mpi_flight *next;

    for (struct by_mpi_flight *flight = air.first; flight != NULL; flight = next) {
        banyan_status_t status;

        next = flight->next;
        if (flight->stage != BY_MPI_QUEUED)
            continue;
        status = banyan_post(flight->request);
        if (status == BANYAN_EAGAIN)
            return;
        if (status == BANYAN_OK)
            flight->stage = BY_MPI_RUNNING;
        else
            end(flight, status);
    }
}

/* Waits for a running call for at most `microseconds`; 0: only tests. Returns whether it ended. */
static int advance(struct by_mpi_flight *flight, uint64_t microseconds)
{
    int done = 0;
    banyan_status_t status = microseconds > 0 ? banyan_wait_for(flight->request, microseconds, &done)
                                              : banyan_test(flight->request, &done);

    if (done || status != BANYAN_OK)
        end(flight, status);
    return done || status != BANYAN_OK;
}

/* Tests one running call after another, in turns, until one has not ended. */
static int round_of_tests(void)
{
    int ended = 0, found;

    do {
        struct by_mpi_flight *flight = air.turn != NULL ? air.turn : air.first;

        post_queued();
        if (flight == NULL || flight->stage != BY_MPI_RUNNING)
            flight = air.first; /* all calls behind one that waits are waiting as well */
        found = 0;
        if (flight != NULL && flight->stage == BY_MPI_RUNNING) {
            air.turn = flight->next;
            found = advance(flight, 0);
        }
        ended += found;
    } while (found && air.first != NULL);
    return ended;
}

/* ---- the thread ---- */

static void *move_meanwhile(void *unused)
{
    const struct timespec pause = {.tv_nsec = AWAY_NS};
    uint64_t seen;

    (void)unused;
    pthread_mutex_lock(&air.lock);
    while (!air.has_to_end) {
        if (air.first == NULL) {
            pthread_cond_wait(&air.wanted, &air.lock);
            continue;
        }
        seen = air.rounds;
        pthread_mutex_unlock(&air.lock);
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&air.lock);
        if (air.rounds != seen || air.has_to_end)
            continue;
        post_queued();
        if (air.first != NULL && air.first->stage == BY_MPI_RUNNING)
            advance(air.first, TURN_US);
    }
    pthread_mutex_unlock(&air.lock);
    return NULL;
}

/* The thread takes no signals of the program. Without it, calls proceed only while the program
 * waits in MPI. */
static void make_thread(void)
{
    sigset_t all, before;

    if (air.has_thread)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    air.has_thread = pthread_create(&air.thread, NULL, move_meanwhile, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void by_mpi_land(void)
{
    int has_thread;

    pthread_mutex_lock(&air.lock);
    has_thread = air.has_thread;
    air.has_to_end = 1;
    pthread_cond_signal(&air.wanted);
    pthread_mutex_unlock(&air.lock);
    if (has_thread)
        pthread_join(air.thread, NULL);
    air.has_thread = air.has_to_end = 0;
    air.first = air.last = air.turn = NULL;
}

/* ---- calls ---- */

int by_mpi_open(struct by_mpi_flight *flight)
{
    banyan_status_t status;

    pthread_mutex_lock(&air.lock);
    status = by_mpi_request(&flight->call, &flight->request);
    if (status != BANYAN_OK) {
        flight->request = NULL;
        snprintf(flight->text, sizeof(flight->text), "%s", banyan_last_error());
    }
    flight->stage = BY_MPI_IDLE;
    flight->status = status;
    pthread_mutex_unlock(&air.lock);
    return status;
}

void by_mpi_start(struct by_mpi_flight *flight)
{
    pthread_mutex_lock(&air.lock);
    flight->stage = BY_MPI_QUEUED;
    link_last(flight);
    make_thread();
    pthread_cond_signal(&air.wanted);
    air.rounds++;
    post_queued();
    /* the first packets leave now: the program may not enter MPI for a while */
    if (flight->stage == BY_MPI_RUNNING)
        advance(flight, 0);
    pthread_mutex_unlock(&air.lock);
}

/* One slice of a wait. Returns whether the call has ended. */
static int wait_slice(struct by_mpi_flight *flight)
{
    int ended;

    pthread_mutex_lock(&air.lock);
    air.rounds++;
    post_queued();
    if (flight->stage == BY_MPI_RUNNING)
        advance(flight, SLICE_US);
    else if (flight->stage == BY_MPI_QUEUED && air.first->stage == BY_MPI_RUNNING)
        advance(air.first, SLICE_US);
    ended = flight->stage == BY_MPI_ENDED;
    pthread_mutex_unlock(&air.lock);
    return ended;
}

int by_mpi_run(struct by_mpi_flight *flight, void (*idle)(void))
{
    pthread_mutex_lock(&air.lock);
    flight->stage = BY_MPI_QUEUED;
    link_last(flight);
    pthread_mutex_unlock(&air.lock);
    while (!wait_slice(flight))
        idle();
    return flight->status;
}

void by_mpi_enter(struct by_mpi_facts *facts, void (*idle)(void))
{
    struct by_mpi_flight flight = {.call = {.collective = BANYAN_BARRIER}, .is_own = 1};

    if (by_mpi_open(&flight) == BANYAN_OK)
        by_mpi_run(&flight, idle);
    facts->status = flight.status;
    memcpy(facts->text, flight.text, sizeof(facts->text));
    by_mpi_close(&flight);
}

int by_mpi_progress(void)
{
    int ended;

    /* another thread moves them now */
    if (pthread_mutex_trylock(&air.lock) != 0)
        return 0;
    air.rounds++;
    ended = round_of_tests();
    pthread_mutex_unlock(&air.lock);
    return ended;
}

int by_mpi_has_ended(const struct by_mpi_flight *flight)
{
    int ended;

    pthread_mutex_lock(&air.lock);
    ended = flight->stage == BY_MPI_ENDED;
    pthread_mutex_unlock(&air.lock);
    return ended;
}

void by_mpi_close(struct by_mpi_flight *flight)
{
    pthread_mutex_lock(&air.lock);
    /* after an error the communicator has failed, and frees the request */
    if (flight->request != NULL && flight->status == BANYAN_OK)
        banyan_free(flight->request);
    flight->request = NULL;
    pthread_mutex_unlock(&air.lock);
}

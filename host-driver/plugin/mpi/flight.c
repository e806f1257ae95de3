/* Calls under way; see flight.h. The lock protects the lists, all stages and libbanyan's
 * communicators; it is not held while MPI is called. */
#include "host-driver/plugin/mpi/flight.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host-driver/clock.h"
#include "host-driver/plugin/mpi/kept.h"

#define SLICE_US 500u    /* maximum delay of MPI's own messages during a wait */
#define AWAY_NS  200000u /* a program that has not moved packets for this long is away */
#define TURN_US  100u    /* how long the thread then moves them before it looks again */
#define SPENT_NS 50000u  /* processor time between two calls of MPI, if the program waits there */
#define QUIET_NS 500000u /* a wait in which no call has ended for this long sleeps */
#define NAP_US   100u    /* at a time: maximum delay of MPI's own messages */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wanted;     /* a call has started, or the thread shall end */
    struct by_mpi_lane *lanes; /* the last is MPI_COMM_WORLD's */
    unsigned on_trees;         /* lanes that are not of one host */
    uint64_t rounds;           /* of progress by the program */
    uint64_t quiet_ns;         /* since when the program waits and no call has ended */
    pthread_t thread;
    int has_thread, has_to_end;
} air = {.lock = PTHREAD_MUTEX_INITIALIZER, .wanted = PTHREAD_COND_INITIALIZER};

/* ---- the lists ---- */

static void link_last(struct by_mpi_flight *flight)
{
    struct by_mpi_lane *lane = flight->lane;

    flight->next = NULL;
    flight->previous = lane->last;
    if (lane->last != NULL)
        lane->last->next = flight;
    else
        lane->first = flight;
    lane->last = flight;
}

static void end(struct by_mpi_flight *flight, banyan_status_t status)
{
    struct by_mpi_lane *lane = flight->lane;

    flight->stage = BY_MPI_ENDED;
    flight->status = status;
    if (status != BANYAN_OK)
        snprintf(flight->text, sizeof(flight->text), "%s", banyan_last_error());
    else if (!flight->is_own)
        by_mpi_count(flight->call.collective);
    if (lane->turn == flight)
        lane->turn = flight->next;
    if (flight->next != NULL)
        flight->next->previous = flight->previous;
    else
        lane->last = flight->previous;
    if (flight->previous != NULL)
        flight->previous->next = flight->next;
    else
        lane->first = flight->next;
}

/* Posts the calls that wait, in their order, as far as libbanyan accepts them. */
static void post_queued(struct by_mpi_lane *lane)
{
    struct by_mpi_flight *next;

    for (struct by_mpi_flight *flight = lane->first; flight != NULL; flight = next) {
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

/* Leaves a communicator; the lane is in no list any more. */
static void leave(struct by_mpi_lane *lane)
{
    banyan_comm_destroy(lane->comm);
    by_mpi_lane_free(lane);
}

static void unlink_lane(struct by_mpi_lane *lane)
{
    struct by_mpi_lane **at = &air.lanes;

    while (*at != NULL && *at != lane)
        at = &(*at)->next;
    if (*at == NULL)
        return;
    *at = lane->next;
    air.on_trees -= !lane->is_near;
}

void by_mpi_lane_open(struct by_mpi_lane *lane)
{
    pthread_mutex_lock(&air.lock);
    lane->next = air.lanes;
    air.lanes = lane;
    air.on_trees += !lane->is_near;
    pthread_mutex_unlock(&air.lock);
}

/* Leaves the kept lanes that are too many or too old; `any`: all. Returns how many. */
static uint32_t leave_kept(int any)
{
    uint64_t now_ns = by_clock_ns();
    struct by_mpi_lane *lane;
    uint32_t count = 0;

    for (; (lane = by_mpi_kept_oldest(now_ns, any)) != NULL; count++) {
        unlink_lane(lane);
        leave(lane);
    }
    return count;
}

/* Keeps the communicator, or leaves it, if nothing needs it any more. */
static void leave_unused(struct by_mpi_lane *lane)
{
    if (!lane->is_left || lane->flights > 0)
        return;
    if (lane->member != NULL && banyan_comm_async_error(lane->comm) == BANYAN_OK) {
        by_mpi_kept_put(lane, by_clock_ns());
        leave_kept(0);
        return;
    }
    unlink_lane(lane);
    leave(lane);
}

uint32_t by_mpi_lanes_borrow(const uint32_t *member, uint32_t size, struct by_mpi_lane **own)
{
    uint32_t count, usable = 0;

    pthread_mutex_lock(&air.lock);
    count = by_mpi_kept_take(member, size, own);
    for (uint32_t i = 0; i < count; i++) {
        if (banyan_comm_async_error(own[i]->comm) == BANYAN_OK) {
            own[usable++] = own[i];
            continue;
        }
        unlink_lane(own[i]);
        leave(own[i]);
    }
    pthread_mutex_unlock(&air.lock);
    return usable;
}

void by_mpi_lanes_return(struct by_mpi_lane **own, uint32_t count, uint64_t id, struct by_mpi_lane *lane)
{
    pthread_mutex_lock(&air.lock);
    for (uint32_t i = 0; i < count; i++) {
        if (own[i]->id != id) {
            by_mpi_kept_put(own[i], by_clock_ns());
            continue;
        }
        unlink_lane(own[i]);
        lane->comm = own[i]->comm;
        lane->serves = own[i]->serves;
        memcpy(lane->reduces, own[i]->reduces, sizeof(lane->reduces));
        lane->id = id;
        by_mpi_lane_free(own[i]);
    }
    pthread_mutex_unlock(&air.lock);
}

uint32_t by_mpi_lanes_drop(void)
{
    uint32_t count;

    pthread_mutex_lock(&air.lock);
    count = leave_kept(1);
    pthread_mutex_unlock(&air.lock);
    return count;
}

void by_mpi_lane_close(struct by_mpi_lane *lane)
{
    pthread_mutex_lock(&air.lock);
    lane->is_left = 1;
    leave_unused(lane);
    pthread_mutex_unlock(&air.lock);
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
static int round_of_tests(struct by_mpi_lane *lane)
{
    int ended = 0, found;

    do {
        struct by_mpi_flight *flight = lane->turn != NULL ? lane->turn : lane->first;

        post_queued(lane);
        if (flight == NULL || flight->stage != BY_MPI_RUNNING)
            flight = lane->first; /* all calls behind one that waits are waiting as well */
        found = 0;
        if (flight != NULL && flight->stage == BY_MPI_RUNNING) {
            lane->turn = flight->next;
            found = advance(flight, 0);
        }
        ended += found;
    } while (found && lane->first != NULL);
    return ended;
}

/* Moves packets of all lanes but one; NULL: of all. Those without calls may be inner nodes, but not
 * in the memory of one host. */
static int move_others(const struct by_mpi_lane *but)
{
    int ended = 0;

    for (struct by_mpi_lane *lane = air.lanes; lane != NULL; lane = lane->next) {
        if (lane == but)
            continue;
        if (lane->first != NULL)
            ended += round_of_tests(lane);
        else if (!lane->is_near && air.on_trees > 1) /* alone, it is moved by its calls */
            banyan_comm_progress(lane->comm);
    }
    if (by_mpi_kept_any())
        leave_kept(0);
    return ended;
}

static struct by_mpi_lane *busy_lane(void)
{
    struct by_mpi_lane *lane = air.lanes;

    while (lane != NULL && lane->first == NULL)
        lane = lane->next;
    return lane;
}

/* ---- the thread ---- */

static void *move_meanwhile(void *unused)
{
    const struct timespec pause = {.tv_nsec = AWAY_NS};
    struct by_mpi_lane *lane;
    uint64_t seen;

    (void)unused;
    pthread_mutex_lock(&air.lock);
    while (!air.has_to_end) {
        if (busy_lane() == NULL) {
            pthread_cond_wait(&air.wanted, &air.lock);
            continue;
        }
        seen = air.rounds;
        pthread_mutex_unlock(&air.lock);
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&air.lock);
        if (air.rounds != seen || air.has_to_end)
            continue;
        lane = busy_lane();
        if (lane == NULL)
            continue;
        post_queued(lane);
        if (lane->first != NULL && lane->first->stage == BY_MPI_RUNNING)
            advance(lane->first, TURN_US);
        move_others(lane);
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
    while (air.lanes != NULL && air.lanes != by_mpi_world()) {
        struct by_mpi_lane *lane = air.lanes;

        air.lanes = lane->next;
        leave(lane);
    }
    by_mpi_kept_clear();
    air.lanes = NULL;
    air.on_trees = 0;
}

/* ---- calls ---- */

int by_mpi_open(struct by_mpi_flight *flight)
{
    banyan_status_t status;

    pthread_mutex_lock(&air.lock);
    flight->lane->flights++;
    status = by_mpi_request(flight->lane, &flight->call, &flight->request);
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
    post_queued(flight->lane);
    /* the first packets leave now: the program may not enter MPI for a while */
    if (flight->stage == BY_MPI_RUNNING)
        advance(flight, 0);
    pthread_mutex_unlock(&air.lock);
}

/* One slice of a wait. Returns whether the call has ended. */
static int wait_slice(struct by_mpi_flight *flight)
{
    struct by_mpi_lane *lane = flight->lane;
    int ended;

    pthread_mutex_lock(&air.lock);
    air.rounds++;
    post_queued(lane);
    if (flight->stage == BY_MPI_RUNNING)
        advance(flight, SLICE_US);
    else if (flight->stage == BY_MPI_QUEUED && lane->first->stage == BY_MPI_RUNNING)
        advance(lane->first, SLICE_US);
    ended = flight->stage == BY_MPI_ENDED;
    if (!ended)
        move_others(lane);
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
    struct by_mpi_flight flight = {
        .lane = by_mpi_world(), .call = {.collective = BANYAN_BARRIER}, .is_own = 1};

    by_mpi_lane_open(flight.lane);
    if (by_mpi_open(&flight) == BANYAN_OK)
        by_mpi_run(&flight, idle);
    facts->status = flight.status;
    memcpy(facts->text, flight.text, sizeof(facts->text));
    by_mpi_close(&flight);
}

/* Returns whether this thread has used almost no processor time since it was asked last: a program
 * that yields in a loop uses little, however long it waits for its turn. */
static int has_waited(void)
{
    static _Thread_local uint64_t before;
    uint64_t now = by_clock_thread_ns(), since = now - before;

    before = now;
    return since < SPENT_NS;
}

/* Sleeps until packets of the first call arrive, or for NAP_US, if the program waits for nothing
 * else than slow calls. MPI's own loops yield at most, and processes that yield all the time may
 * keep others, such as a switch on the same machine, from their processors. Returns the calls that
 * ended. */
static int nap(int ended)
{
    const struct by_mpi_lane *lane = busy_lane();

    if (!has_waited() || ended > 0)
        air.quiet_ns = by_clock_ns();
    else if (by_clock_ns() - air.quiet_ns > QUIET_NS && lane != NULL && lane->first->stage == BY_MPI_RUNNING)
        ended = advance(lane->first, NAP_US);
    return ended;
}

int by_mpi_progress(void)
{
    int ended;

    /* another thread moves them now */
    if (pthread_mutex_trylock(&air.lock) != 0)
        return 0;
    air.rounds++;
    ended = nap(move_others(NULL));
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
    flight->lane->flights--;
    leave_unused(flight->lane);
    pthread_mutex_unlock(&air.lock);
}

/* Jobs of communicators that are requested; see requested.h. */
#include "host-driver/plugin/mpi/requested.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/plugin/mpi/flight.h"
#include "host-driver/plugin/mpi/kept.h"

/* The number of a communicator, the same on all its ranks, which its rank 0 broadcasts. */
struct by_shim_number {
    uint64_t id;
    MPI_Request request;
    struct by_shim_number *next; /* list of those whose communicator has been freed before */
};

static struct {
    pthread_mutex_t lock;
    uint32_t numbered; /* communicators that have a number of this rank */
    struct by_shim_comm *openings;
    struct by_shim_number *forgotten;
} jobs = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- lanes */

struct by_mpi_lane *by_shim_lane_new(const struct by_shim_comm *comm)
{
    size_t bytes = (size_t)comm->size * sizeof(*comm->member);
    struct by_mpi_lane *lane = calloc(1, sizeof(*lane));

    if (lane != NULL && comm->is_near < 0 && comm->member != NULL) {
        lane->size = (uint32_t)comm->size;
        lane->member = malloc(bytes);
        if (lane->member != NULL)
            memcpy(lane->member, comm->member, bytes);
    }
    if (lane != NULL && (lane->size == 0 || lane->member != NULL))
        return lane;
    free(lane);
    by_shim_out_of_memory("a communicator");
    return NULL;
}

/* ---- requests */

static void list_opening(struct by_shim_comm *comm)
{
    pthread_mutex_lock(&jobs.lock);
    comm->next = jobs.openings;
    jobs.openings = comm;
    pthread_mutex_unlock(&jobs.lock);
}

/* Ends the request, if there is one. Returns how it has ended. */
static int stop_opening(struct by_shim_comm *comm, char text[BY_MPI_TEXT_MAX])
{
    struct by_shim_comm **at = &jobs.openings;
    int status = BANYAN_OK;

    pthread_mutex_lock(&jobs.lock);
    while (*at != NULL && *at != comm)
        at = &(*at)->next;
    if (*at != NULL)
        *at = comm->next;
    if (comm->number != NULL) {
        comm->number->next = jobs.forgotten;
        jobs.forgotten = comm->number;
    }
    comm->number = NULL;
    pthread_mutex_unlock(&jobs.lock);
    if (comm->opening != NULL)
        status = by_mpi_opening_end(comm->opening, text);
    comm->opening = NULL;
    return status;
}

/* Frees the lane of a job that no call has used, open or not. */
static void drop_lane(struct by_shim_comm *comm)
{
    if (comm->lane != NULL && comm->lane->comm != NULL)
        by_mpi_lane_close(comm->lane);
    else
        by_mpi_lane_free(comm->lane);
    comm->lane = NULL;
}

void by_shim_requested_forget(struct by_shim_comm *comm)
{
    char text[BY_MPI_TEXT_MAX];

    if (comm->number == NULL && comm->opening == NULL)
        return;
    stop_opening(comm, text);
    drop_lane(comm);
}

void by_shim_requested_end(void)
{
    while (jobs.openings != NULL)
        by_shim_requested_forget(jobs.openings);
    while (jobs.forgotten != NULL) {
        struct by_shim_number *number = jobs.forgotten;

        jobs.forgotten = number->next;
        PMPI_Wait(&number->request, MPI_STATUS_IGNORE);
        free(number);
    }
}

int by_shim_requested_announce(struct by_shim_comm *comm, const struct by_shim_gather *on)
{
    struct by_shim_number *number = calloc(1, sizeof(*number));
    int rank = 0;

    if (number == NULL) {
        by_shim_out_of_memory("a communicator");
        return 0;
    }
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pthread_mutex_lock(&jobs.lock);
    number->id = (uint64_t)rank << 32 | ++jobs.numbered;
    pthread_mutex_unlock(&jobs.lock);
    if (on->spread(on, &number->id, (int)sizeof(number->id), &number->request) != MPI_SUCCESS) {
        free(number);
        return 0;
    }
    comm->number = number;
    list_opening(comm);
    return 1;
}

/* Runs in a thread of its own. */
static int open_lane(const struct banyan_bootstrap *ranks, void *context, char text[BY_MPI_TEXT_MAX])
{
    struct by_mpi_lane *lane = context;
    int status = by_mpi_branch(ranks, lane, text);

    if (status == BANYAN_OK)
        by_mpi_lane_open(lane);
    return status;
}

void by_shim_requested_begin(struct by_shim_comm *comm, const struct by_mpi_facts *first, int is_now)
{
    struct by_mpi_opening_config config = {.sequencer = first,
                                           .rank = (uint32_t)comm->rank,
                                           .size = (uint32_t)comm->size,
                                           .calls = comm->calls,
                                           .timeout_ns = by_mpi_timeout_ns(),
                                           .open = open_lane};
    int has_come = 0;

    if (is_now ? PMPI_Test(&comm->number->request, &has_come, MPI_STATUS_IGNORE) != MPI_SUCCESS || !has_come
               : PMPI_Wait(&comm->number->request, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return;
    config.id = comm->number->id;
    config.context = comm->lane = by_shim_lane_new(comm);
    comm->opening = comm->lane != NULL ? by_mpi_opening_begin(&config) : NULL;
    if (comm->opening == NULL) { /* the next call tries again; no other rank is served without this one */
        drop_lane(comm);
        return;
    }
    free(comm->number);
    comm->number = NULL;
}

enum by_mpi_way by_shim_requested_call(struct by_shim_comm *comm, int is_now, int *status,
                                       char text[BY_MPI_TEXT_MAX])
{
    enum by_mpi_way way = by_mpi_opening_call(comm->opening, is_now ? NULL : by_shim_idle);

    *status = BANYAN_OK;
    if (way == BY_MPI_WAY_MPI)
        return way;
    *status = stop_opening(comm, text);
    if (way != BY_MPI_WAY_LANE)
        drop_lane(comm);
    return way;
}

/* A communicator whose job opens while MPI executes its calls; see sequencer.h. */
#include "host-driver/plugin/mpi/sequencer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "host-driver/bootstrap/bootstrap.h"
#include "host-driver/clock.h"
#include "host-driver/error.h"

#define REACH_NS UINT64_C(300000000)           /* for one of several addresses */
#define PAUSE_NS 100000                        /* between two looks whether the job is open */
#define EVER_NS  UINT64_C(1000000000000000000) /* ranks come when their program calls */

enum opening_stage { STAGE_OPENING = 1, STAGE_ASKING, STAGE_NEVER };

struct by_mpi_opening {
    struct by_mpi_opening_config config;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows, and of messages after the job has opened */
    enum opening_stage stage;
    uint64_t calls; /* that this rank has started */
    uint64_t limit; /* calls up to this number stay with MPI */
    int is_decided; /* and later ones do not */
    int fd;         /* to the sequencer, or -1 */
    int is_over;    /* by_mpi_opening_end has been called */
    int status;
    char text[BY_MPI_TEXT_MAX];
};

/* ---- messages */

/* Sends a message, and receives the head of the answer. 0, or an error with its text. */
static int ask(const struct by_mpi_opening *opening, const struct by_mpi_message *message, const void *bytes,
               struct by_mpi_message *answer, uint64_t deadline_ns)
{
    int error = by_peer_write(opening->fd, message, sizeof(*message), deadline_ns);

    if (error == 0)
        error = by_peer_write(opening->fd, bytes, message->bytes, deadline_ns);
    if (error == 0)
        error = by_peer_read(opening->fd, answer, sizeof(*answer), deadline_ns);
    if (error != 0)
        return by_fail(error, "rank 0 of MPI_COMM_WORLD does not answer: %s",
                       error == BY_ETIMEDOUT ? "is it stopped?"
                       : errno != 0          ? strerror(errno)
                                             : "it has ended");
    if (answer->kind == BY_MPI_OVER)
        return by_fail(BY_EIO, "a rank of the communicator has left it while its job was requested");
    return 0;
}

/* The allgather of the ranks that open the job. */
static int gather(void *context, const void *mine, void *all, size_t bytes)
{
    const struct by_mpi_opening *opening = context;
    const struct by_mpi_message message = {.kind = BY_MPI_BLOCK, .bytes = (uint32_t)bytes};
    uint64_t deadline_ns = by_clock_ns() + EVER_NS;
    struct by_mpi_message answer = {0};
    int error = ask(opening, &message, mine, &answer, deadline_ns);

    if (error == 0 && (answer.kind != BY_MPI_BLOCKS || answer.bytes != bytes * opening->config.size))
        error = by_fail(BY_EFORMAT, "rank 0 of MPI_COMM_WORLD answers with message %u of %u bytes",
                        answer.kind, answer.bytes);
    if (error == 0)
        error = by_peer_read(opening->fd, all, answer.bytes, deadline_ns);
    return error;
}

/* Takes an answer to OPEN or CALL. */
static void learn(struct by_mpi_opening *opening, int error, const struct by_mpi_message *answer)
{
    if (error != 0 || (answer->kind != BY_MPI_LIMIT && answer->kind != BY_MPI_DECIDED)) {
        opening->stage = STAGE_NEVER;
        opening->status = error != 0 ? error : BY_EFORMAT;
        snprintf(opening->text, sizeof(opening->text), "%s",
                 error != 0 ? by_fail_text() : "rank 0 of MPI_COMM_WORLD sends an unknown message");
        return;
    }
    opening->limit = answer->number;
    opening->is_decided = answer->kind == BY_MPI_DECIDED;
}

/* ---- the thread */

static int reach(const char *door, uint64_t deadline_ns)
{
    struct by_bootstrap_place place, here;
    uint32_t ip[BY_PLACE_MAX + 1], count;
    int fd = BY_EIO;

    if (by_place_read(door, &place) != 0)
        return by_fail(BY_EFORMAT, "rank 0 of MPI_COMM_WORLD has an invalid address");
    by_place_here(&here, 0);
    count = by_place_order(&place, &here, ip);
    do {
        for (uint32_t i = 0; i < count; i++) {
            uint64_t until_ns = by_clock_ns() + REACH_NS;

            fd = by_peer_connect(ip[i], place.port, until_ns < deadline_ns ? until_ns : deadline_ns);
            if (fd >= 0)
                return fd;
        }
    } while (count > 0 && by_clock_ns() < deadline_ns);
    return by_fail(fd, "cannot reach rank 0 of MPI_COMM_WORLD: %s",
                   count > 0 ? strerror(errno) : "it has no IPv4 address");
}

/* Connects, and waits for all ranks of the communicator. */
static int arrive(struct by_mpi_opening *opening)
{
    const struct by_mpi_opening_config *config = &opening->config;
    const struct by_mpi_facts *facts = config->sequencer;
    const struct by_mpi_hello hello = {facts->door_key, config->id, config->rank, config->size};
    const struct by_mpi_message message = {.kind = BY_MPI_HELLO, .bytes = sizeof(hello)};
    uint64_t deadline_ns = by_clock_ns() + config->timeout_ns;
    uint8_t mine = 1, *all = malloc(config->size);
    int fd = all != NULL ? reach(facts->door, deadline_ns)
                         : by_fail(BY_ENOMEM, "no memory for %u ranks", config->size);
    int error = fd < 0 ? fd : 0, is_over;

    pthread_mutex_lock(&opening->lock);
    opening->fd = fd >= 0 ? fd : -1;
    is_over = opening->is_over;
    pthread_mutex_unlock(&opening->lock);
    if (error == 0 && is_over)
        error = by_fail(BY_EABORTED, "the communicator has been freed");
    if (error == 0 && (by_peer_write(fd, &message, sizeof(message), deadline_ns) != 0 ||
                       by_peer_write(fd, &hello, sizeof(hello), deadline_ns) != 0))
        error = by_fail(BY_EIO, "rank 0 of MPI_COMM_WORLD has ended: %s", strerror(errno));
    if (error == 0)
        error = gather(opening, &mine, all, sizeof(mine));
    free(all);
    return error;
}

static void *run(void *context)
{
    struct by_mpi_opening *opening = context;
    const struct banyan_bootstrap ranks = {.size = sizeof(ranks),
                                           .rank = opening->config.rank,
                                           .rank_count = opening->config.size,
                                           .context = opening,
                                           .allgather = gather};
    char text[BY_MPI_TEXT_MAX] = "";
    struct by_mpi_message message = {.kind = BY_MPI_OPEN}, answer = {0};
    int status = arrive(opening);

    if (status != 0)
        snprintf(text, sizeof(text), "%s", by_fail_text());
    else
        status = opening->config.open(&ranks, opening->config.context, text);
    pthread_mutex_lock(&opening->lock);
    opening->status = status;
    memcpy(opening->text, text, sizeof(text));
    if (status != 0) {
        opening->stage = STAGE_NEVER;
    } else {
        /* calls that start meanwhile wait for the lock */
        opening->stage = STAGE_ASKING;
        message.number = opening->calls;
        status = ask(opening, &message, NULL, &answer, by_clock_ns() + opening->config.timeout_ns);
        learn(opening, status, &answer);
    }
    pthread_mutex_unlock(&opening->lock);
    return NULL;
}

struct by_mpi_opening *by_mpi_opening_begin(const struct by_mpi_opening_config *config)
{
    struct by_mpi_opening *opening = calloc(1, sizeof(*opening));
    sigset_t all, before;
    int made;

    if (opening == NULL)
        return NULL;
    opening->config = *config;
    opening->calls = config->calls;
    opening->stage = STAGE_OPENING;
    opening->fd = -1;
    pthread_mutex_init(&opening->lock, NULL);
    sigfillset(&all); /* the thread takes no signals of the program */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    made = pthread_create(&opening->thread, NULL, run, opening) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (made)
        return opening;
    pthread_mutex_destroy(&opening->lock);
    free(opening);
    return NULL;
}

/* ---- calls */

static enum by_mpi_way decide(struct by_mpi_opening *opening, int settles)
{
    struct by_mpi_message message = {.kind = settles ? BY_MPI_SETTLE : BY_MPI_CALL,
                                     .number = ++opening->calls},
                          answer = {0};

    if (opening->stage == STAGE_OPENING)
        return BY_MPI_WAY_MPI;
    if (opening->stage == STAGE_ASKING && opening->calls > opening->limit && !opening->is_decided)
        learn(opening, ask(opening, &message, NULL, &answer, by_clock_ns() + opening->config.timeout_ns),
              &answer);
    if (opening->stage == STAGE_NEVER)
        return BY_MPI_WAY_NEVER;
    return opening->calls > opening->limit ? BY_MPI_WAY_LANE : BY_MPI_WAY_MPI;
}

/* The ranks open the job in their threads, for which MPI need not progress once all have begun. */
static void wait_until_open(struct by_mpi_opening *opening, void (*idle)(void))
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    enum opening_stage stage;

    for (;;) {
        pthread_mutex_lock(&opening->lock);
        stage = opening->stage;
        pthread_mutex_unlock(&opening->lock);
        if (stage != STAGE_OPENING)
            return;
        idle();
        nanosleep(&pause, NULL);
    }
}

enum by_mpi_way by_mpi_opening_call(struct by_mpi_opening *opening, void (*idle)(void))
{
    enum by_mpi_way way;

    if (idle != NULL)
        wait_until_open(opening, idle);
    pthread_mutex_lock(&opening->lock);
    way = decide(opening, idle != NULL);
    pthread_mutex_unlock(&opening->lock);
    return way;
}

int by_mpi_opening_end(struct by_mpi_opening *opening, char text[BY_MPI_TEXT_MAX])
{
    int status;

    pthread_mutex_lock(&opening->lock);
    opening->is_over = 1;
    if (opening->fd >= 0)
        shutdown(opening->fd, SHUT_RDWR);
    pthread_mutex_unlock(&opening->lock);
    pthread_join(opening->thread, NULL);
    if (opening->fd >= 0)
        close(opening->fd);
    status = opening->status;
    memcpy(text, opening->text, sizeof(opening->text));
    pthread_mutex_destroy(&opening->lock);
    free(opening);
    return status;
}

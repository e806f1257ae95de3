/*
 * Communicators that come and go: in each round every rank, a thread of this process, makes a
 * context and a communicator, sums over it and frees both. In the end there must be no more memory
 * allocated, and no more files open, than after the first rounds; malloc must be told to keep
 * nothing for its threads (lab-leaks.sh does).
 *
 *   communicators ROUNDS tcp RANKS
 *       between hosts, on the loopback interface
 *   communicators ROUNDS udp|afxdp COMMAND NAMESPACE=TABLE...
 *       one rank in each network namespace; COMMAND renews the tables before each round
 */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <banyan/banyan.h>

#include "tests/open_files.h"

#define RANKS_MAX  16u
#define WARM       5 /* rounds until what is kept for ever is there */
#define ELEMENTS   3000u
#define TEXT_BYTES 512u

struct communicators_rank {
    pthread_t thread;
    uint32_t number;
    const char *space, *table; /* or NULL */
    bool failed;
};

static struct {
    uint32_t rank_count;
    const char *transport;
    pthread_barrier_t begin, end, meeting;
    bool over;
    char said[RANKS_MAX][TEXT_BYTES]; /* of the allgather */
    struct communicators_rank rank[RANKS_MAX];
} all;

/* The program's own bootstrap: the ranks are threads. */
static int gather(void *context, const void *mine, void *every, size_t bytes)
{
    const struct communicators_rank *rank = context;

    if (bytes > TEXT_BYTES)
        return 1;
    memcpy(all.said[rank->number], mine, bytes);
    pthread_barrier_wait(&all.meeting);
    for (uint32_t i = 0; i < all.rank_count; i++)
        memcpy((char *)every + i * bytes, all.said[i], bytes);
    pthread_barrier_wait(&all.meeting);
    return 0;
}

/* Makes, uses and frees a communicator. False, with a text, when something is wrong. */
static bool live(struct communicators_rank *rank)
{
    static _Thread_local float send[ELEMENTS], recv[ELEMENTS];
    struct banyan_bootstrap bootstrap = {.size = sizeof(bootstrap),
                                         .rank = rank->number,
                                         .rank_count = all.rank_count,
                                         .context = rank,
                                         .allgather = gather};
    struct banyan_context *context = NULL;
    struct banyan_comm *comm = NULL;
    struct banyan_config config;
    banyan_status_t status;
    uint32_t sum = all.rank_count * (all.rank_count + 1) / 2;
    float wanted = (float)sum;

    banyan_config_init(&config);
    config.table = rank->table;
    if (rank->table != NULL)
        config.transport = all.transport;
    else
        config.bootstrap = &bootstrap;
    for (uint32_t i = 0; i < ELEMENTS; i++)
        send[i] = (float)(rank->number + 1);
    status = banyan_init(&config, &context);
    if (status == BANYAN_OK)
        status = banyan_comm_create(context, 0, &comm);
    if (status == BANYAN_OK)
        status = banyan_allreduce(comm, send, recv, ELEMENTS, BANYAN_F32, BANYAN_SUM);
    if (status == BANYAN_OK && (recv[0] != wanted || recv[ELEMENTS - 1] != wanted)) {
        fprintf(stderr, "rank %u: %g instead of %g\n", rank->number, (double)recv[0], (double)wanted);
        return false;
    }
    if (status != BANYAN_OK)
        fprintf(stderr, "rank %u: %s\n", rank->number, banyan_last_error());
    if (comm != NULL)
        banyan_comm_destroy(comm);
    if (context != NULL)
        banyan_finalize(context);
    return status == BANYAN_OK;
}

static void *run(void *argument)
{
    struct communicators_rank *rank = argument;

    if (rank->space != NULL) {
        char path[128];
        int fd;

        snprintf(path, sizeof(path), "/run/netns/%s", rank->space);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        rank->failed = fd < 0 || setns(fd, CLONE_NEWNET) != 0;
        if (rank->failed)
            perror(path);
        if (fd >= 0)
            close(fd);
    }
    for (;;) {
        pthread_barrier_wait(&all.begin);
        if (all.over)
            return NULL;
        if (!rank->failed)
            rank->failed = !live(rank);
        pthread_barrier_wait(&all.end);
    }
}

static bool is_well(void)
{
    for (uint32_t i = 0; i < all.rank_count; i++)
        if (all.rank[i].failed)
            return false;
    return true;
}

/* Rounds, and what is left of them. */
static int go(long rounds, const char *command)
{
    size_t heap = 0, heap_then = 0;
    unsigned files = 0, files_then = 0;

    for (long i = 0; i < rounds; i++) {
        if (command != NULL && system(command) != 0) {
            fprintf(stderr, "round %ld: '%s' has failed\n", i, command);
            return 3;
        }
        pthread_barrier_wait(&all.begin);
        pthread_barrier_wait(&all.end);
        if (!is_well()) {
            fprintf(stderr, "round %ld has failed\n", i);
            return 1;
        }
        heap = mallinfo2().uordblks;
        files = open_files();
        if (i == WARM) {
            heap_then = heap;
            files_then = files;
        }
    }
    printf("%ld rounds of %u communicators: %zu bytes allocated after round %d and %zu after the last, %u "
           "and %u files\n",
           rounds, all.rank_count, heap_then, WARM, heap, files_then, files);
    return heap > heap_then || files > files_then ? 1 : 0;
}

int main(int argc, char **argv)
{
    long rounds = argc > 3 ? strtol(argv[1], NULL, 10) : 0;
    bool between = argc > 3 && strcmp(argv[2], "tcp") == 0;
    int status;

    if (rounds <= WARM || argc - 4 > (int)RANKS_MAX || (!between && argc < 6)) {
        fprintf(stderr,
                "usage: communicators ROUNDS tcp RANKS | ROUNDS udp|afxdp COMMAND NAMESPACE=TABLE...\n");
        return 2;
    }
    all.transport = argv[2];
    all.rank_count = between ? (uint32_t)strtoul(argv[3], NULL, 10) : (uint32_t)argc - 4;
    if (all.rank_count == 0 || all.rank_count > RANKS_MAX)
        return 2;
    pthread_barrier_init(&all.begin, NULL, all.rank_count + 1);
    pthread_barrier_init(&all.end, NULL, all.rank_count + 1);
    pthread_barrier_init(&all.meeting, NULL, all.rank_count);
    for (uint32_t i = 0; i < all.rank_count; i++) {
        struct communicators_rank *rank = &all.rank[i];

        rank->number = i;
        if (!between) {
            rank->space = strtok(argv[4 + i], "=");
            rank->table = strtok(NULL, "");
        }
        if (pthread_create(&rank->thread, NULL, run, rank) != 0)
            return 3;
    }
    status = go(rounds, between ? NULL : argv[3]);
    if (status != 0 && !is_well())
        _exit(status); /* the others may wait for the one that failed */
    all.over = true;
    pthread_barrier_wait(&all.begin);
    for (uint32_t i = 0; i < all.rank_count; i++)
        pthread_join(all.rank[i].thread, NULL);
    return status;
}
